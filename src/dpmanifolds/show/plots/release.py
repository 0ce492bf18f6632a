"""A release as the picture that suits its manifold."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import has_parts, host
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import PlanarShapes
from dpmanifolds.releases import ConfidenceRegion, Release, confidence_region
from dpmanifolds.show.plots._axes import DOMAIN, NOISE, VALUE, axes, directions, need_matplotlib
from dpmanifolds.show.plots.points import plot_matrix, plot_poincare, plot_shape, plot_spd, plot_sphere
from dpmanifolds.sums import point_at

_SHOWN_ELLIPSES = 40
_TABLES = {"matrix": "released matrix", "projector": "projector onto the released subspace"}
_WITH_DOMAIN = ("ellipsoids", "shape", "sphere", "disc", "plane")


def plot_release(release: Release, *, level: float = 0.9, ax: Any = None) -> Any:
    """The released value, the public domain (grey) and where the answer without privacy lies (orange, at `level`).

    Everything that is drawn is computed from the release, and may be shown to whom the release may be shown.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show.plots import plot_release
    >>> ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)
    >>> X = ball.clip(dpm.Sphere(2).random_point(1000, rng=0))
    >>> plot_release(dpm.private_mean(X, ball, dpm.PureDP(1.0))).get_aspect()
    1.0
    """
    if not isinstance(release, Release):
        raise ArgumentError(f"release must be a Release; got {type(release).__name__}.")
    region = known_region(release, level)
    return _PICTURES[_picture_of(release)](release, region, ax)


def _picture_of(release: Release) -> str:
    """That of the manifold, or of numbers that are no point of it: a covariance, or scores."""
    if isinstance(release.value, float):
        return "number"
    if has_parts(release.value) or np.shape(release.value) == release.manifold.point_shape:
        return release.manifold.picture
    return "matrix" if np.ndim(release.value) == 2 else "vector"


def caption_of(release: Release, level: float = 0.9) -> str:
    """What the picture shows, in one sentence or two."""
    region = known_region(release, level)
    picture = _picture_of(release)
    if picture in _TABLES:
        return f"The {_TABLES[picture]}: blue below 0, white at 0, red above."
    if picture == "field":
        return f"The released {release.statistic}, one glyph per matrix."
    parts = [f"Blue: the released {release.statistic}."]
    if region is not None and picture != "vector":
        likely = f"lies with a probability of {100 * level:.0f} %, behind the blue where that is wider"
        parts.append(f"Orange: where {region.about} {likely}.")
    if picture in _WITH_DOMAIN:
        parts.append("Grey: the public centre or domain, chosen before the records were seen.")
    return " ".join(parts)


def _coordinates(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    """Coordinates at the centre of the domain, for manifolds without a picture of their own."""
    ax = axes(ax, (6.0, 3.4))
    coordinates = release.manifold.log_coordinates(release.viewpoint, host(release.value))
    known = region if region is not None and region.metric == "coordinates" else None
    return _stems(coordinates, known, noisy_coordinates(release), "coordinate at the centre", ax)


def _ellipsoids(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    edge = None if region is None else edge_of(region, _SHOWN_ELLIPSES)
    return plot_spd(release.value, spread=edge, reference=release.domain.center, ax=ax)


def _shape(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    """Each landmark within its circle: a shape at distance ρ moves one by at most √(1 − 1/k)·2sin(ρ/2).

    In unit size, rotated onto the release; coordinates at the centre are no shorter than distances, as the
    curvature is nowhere negative.
    """
    manifold, center = cast(PlanarShapes, release.manifold), host(release.domain.center)
    shape = manifold.align(center, host(release.value))
    circles = None
    if region is not None:
        circles = np.sqrt(1 - 1 / manifold.k) * 2 * np.sin(min(reach_of(region), np.pi / 2) / 2)
    return plot_shape(shape, uncertainty=circles, reference=center, ax=ax)


def _sphere(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    edges = () if region is None else (edge_of(region, 181),)
    cap = release.domain if isinstance(release.domain, Ball) else None
    return plot_sphere(release.value, cap=cap, edges=edges, ax=ax)


def _disc(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    if not isinstance(release.domain, Ball):
        return _vector(release, region, ax)
    edges = () if region is None else (edge_of(region, 181),)
    return plot_poincare(release.value, ball=release.domain, edges=edges, ax=ax)


def _numbers(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    middle = np.asarray(release.domain.center) + noisy_coordinates(release)
    return _stems(np.asarray(release.value).ravel(), region, middle, "coordinate", axes(ax, (6.0, 3.4)))


def _plane(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    ax = axes(ax, (4.6, 4.6))
    circle = need_matplotlib("matplotlib.patches").Circle
    domain = release.domain
    if math.isfinite(domain.radius):
        ax.add_patch(circle(tuple(domain.center), domain.radius, color=DOMAIN, alpha=0.15, linewidth=0))
    if region is not None:
        ax.add_patch(
            circle(
                tuple(domain.center + noisy_coordinates(release)), region.radius, color=NOISE, alpha=0.3, linewidth=0
            )
        )
    ax.plot(*release.value, "o", color=VALUE, markersize=7)
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.grid(alpha=0.25)
    ax.set(xlabel="first coordinate", ylabel="second coordinate")
    return ax


def _matrix(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    return plot_matrix(release.value, ax=ax)


def _projector(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    """The projector onto the subspace, which does not depend on the basis."""
    return plot_matrix(release.value @ np.swapaxes(release.value, -1, -2), ax=ax)


def _field(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    return plot_spd(release.value, ax=ax)


def _vector(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    numbers = np.asarray(release.value).ravel()
    return _stems(numbers, None, numbers, "component", axes(ax, (6.0, 3.4)))


def _stems(numbers: np.ndarray, region: ConfidenceRegion | None, middle: np.ndarray, name: str, ax: Any) -> Any:
    """Numbers side by side, each with an interval of the same length around what was drawn for it."""
    places = np.arange(1, numbers.size + 1)
    ax.axhline(0.0, color=DOMAIN, linewidth=0.8)
    if region is not None:
        ax.vlines(places, middle - region.radius, middle + region.radius, color=NOISE, alpha=0.45, linewidth=4)
    ax.plot(places, numbers, "o", color=VALUE, markersize=5 if numbers.size <= 60 else 2)
    ax.set(xlabel=name, ylabel="value")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax


def _number(release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    ax = axes(ax, (6.0, 1.4))
    if region is not None:
        middle = middle_of_number(release)
        ax.axvspan(max(0.0, middle - region.radius), max(0.0, middle + region.radius), color=NOISE, alpha=0.3)
    ax.axvline(release.value, color=VALUE, linewidth=2.5)
    ax.set(xlabel=release.statistic, ylim=(0, 1))
    if release.statistic == "variance":
        ax.set_xlim(0, max(release.domain.radius**2, release.value))
    ax.set_yticks([])
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    return ax


_PICTURES: dict[str, Callable[[Release, ConfidenceRegion | None, Any], Any]] = {
    "number": _number,
    "coordinates": _coordinates,
    "ellipsoids": _ellipsoids,
    "field": _field,
    "shape": _shape,
    "sphere": _sphere,
    "disc": _disc,
    "plane": _plane,
    "numbers": _numbers,
    "vector": _vector,
    "matrix": _matrix,
    "projector": _projector,
}


def known_region(release: Release, level: float) -> ConfidenceRegion | None:
    """The confidence region, or None where none is known or it is all of the domain."""
    try:
        region = confidence_region(release, level)
    except NotAvailableError:
        return None
    return region if math.isfinite(region.radius) else None


def edge_of(region: ConfidenceRegion, count: int) -> Array:
    """Points on the edge of the region, as far as it lies in the domain."""
    release = region.release
    manifold, domain = release.manifold, release.domain
    steps = region.radius * directions(manifold.dim, count)
    if region.metric == "distance":
        return domain.clip(manifold.move(host(release.value), steps))
    if release.base is None:
        return point_at(domain, noisy_coordinates(release) + steps)
    return domain.clip(manifold.move(release.base, noisy_coordinates(release) + steps))


def noisy_coordinates(release: Release) -> np.ndarray:
    """The middle of a region in coordinates: those that were drawn, which may lie outside of the domain.

    A spread that was drawn with a mean stands behind it; of a cluster sums and counts were drawn.
    """
    drawn, dim = release.coordinates, release.manifold.dim
    if drawn is not None and (drawn.size == dim or release.spread is not None):
        return np.asarray(drawn[:dim])
    return np.asarray(release.manifold.log_coordinates(release.viewpoint, host(release.value)))


def reach_of(region: ConfidenceRegion) -> float:
    """A radius around the released value itself that holds the region, in the region's own metric."""
    release = region.release
    if region.metric == "distance":
        return region.radius
    if region.metric == "number":
        return region.radius + abs(middle_of_number(release) - float(release.value))
    shown = release.manifold.log_coordinates(release.viewpoint, host(release.value))
    return region.radius + float(np.linalg.norm(shown - noisy_coordinates(release)))


def middle_of_number(release: Release) -> float:
    """The noisy number before it was cut to its range."""
    return float(release.value if release.coordinates is None else release.coordinates[0])


# stands for "the colour of the text around" while matplotlib draws
_INK = "#010203"
_PAGE_COLORS = {_INK: "currentColor", VALUE: "var(--value)", NOISE: "var(--noise)"}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpmanifolds",
    "font.family": "sans-serif",
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def figure_svg(release: Release) -> str | None:
    """The picture of a release, or None without matplotlib."""
    return svg_of(partial(plot_release, release), 1.4 if isinstance(release.value, float) else 4.2)


def svg_of(draw: Callable[..., Any], height: float = 4.2) -> str | None:
    """What `draw(ax=...)` draws, or None without matplotlib or a picture; it refers to nothing outside of a page."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        return None
    out = io.StringIO()
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, height), layout="compressed")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_facecolor("none")
        try:
            draw(ax=axes)
        except (NotAvailableError, np.linalg.LinAlgError):
            return None
        figure.savefig(
            out, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
        )
    return _inline(out.getvalue())


def _inline(svg: str) -> str:
    """Only the drawing: no prologue, no metadata, sized by the page."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'^<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", body)
    body = re.sub(r'^<svg ([^>]*?)height="[^"]*"([^>]*?)width="[^"]*"', r"<svg \1\2", body)
    for drawn, shown in _PAGE_COLORS.items():
        body = body.replace(drawn, shown)
    return body.strip()
