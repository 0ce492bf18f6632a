"""A release as the picture that suits its manifold."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import (
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Power,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)
from dpmanifolds.manifolds.spd import SPDBase
from dpmanifolds.plotting._axes import DOMAIN, NOISE, VALUE, axes, need_matplotlib
from dpmanifolds.plotting._regions import edge_of, known_region, middle_of_number, noisy_coordinates, reach_of
from dpmanifolds.plotting.points import plot_poincare, plot_shape, plot_sphere
from dpmanifolds.plotting.spd import plot_matrix, plot_spd
from dpmanifolds.releases import ConfidenceRegion, Release

__all__ = ["caption_of", "plot_release"]

_SHOWN_ELLIPSES = 40


def plot_release(release: Release, *, level: float = 0.9, ax: Any = None) -> Any:
    """The released value, the public domain (grey) and where the answer without privacy lies (orange, at `level`).

    Everything that is drawn is computed from the release, and may be shown to whom the release may be shown.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.plotting import plot_release
    >>> ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)
    >>> X = ball.clip(dpm.Sphere(2).random_point(1000, rng=0))
    >>> plot_release(dpm.private_mean(X, ball, dpm.PureDP(1.0))).get_aspect()
    1.0
    """
    if not isinstance(release, Release):
        raise ArgumentError(f"release must be a Release; got {type(release).__name__}.")
    region = known_region(release, level)
    if isinstance(release.value, float):
        return _number(release, region, ax)
    return _drawn(release.manifold, release, region, ax)


def caption_of(release: Release, level: float = 0.9) -> str:
    """What the picture shows, in one sentence or two."""
    region, manifold = known_region(release, level), release.manifold
    number = isinstance(release.value, float)
    inner = manifold.manifold if isinstance(manifold, Power) else manifold
    if not number and (
        isinstance(inner, (SpecialOrthogonal, Grassmann, Stiefel)) or (isinstance(inner, SPDBase) and inner.k > 3)
    ):
        kind = "projector onto the released subspace" if isinstance(inner, (Grassmann, Stiefel)) else "released matrix"
        return f"The {kind}: blue below 0, white at 0, red above."
    if not number and isinstance(manifold, Power) and isinstance(inner, SPDBase):
        return f"The released {release.statistic}, one glyph per matrix."
    parts = [f"Blue: the released {release.statistic}."]
    if region is not None and not _is_vector(release):
        parts.append(f"Orange: where {region.about} lies with a probability of {100 * level:.0f} %.")
    if not number and (isinstance(inner, (SPDBase, PlanarShapes)) or _is_planar(release)):
        parts.append("Grey: the public centre or domain, chosen before the records were seen.")
    return " ".join(parts)


def _is_planar(release: Release) -> bool:
    return isinstance(release.manifold, (Sphere, Hyperbolic, Euclidean)) and release.manifold.dim == 2


def _is_vector(release: Release) -> bool:
    """Drawn as components, without the region."""
    return isinstance(release.manifold, (Sphere, Hyperbolic)) and not _is_planar(release)


@singledispatch
def _drawn(manifold: Manifold, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    """Coordinates at the centre of the domain, for manifolds without a picture of their own."""
    ax = axes(ax, (6.0, 3.4))
    coordinates = manifold.log_coordinates(release.viewpoint, host(release.value))
    known = region if region is not None and region.metric == "coordinates" else None
    return _stems(coordinates, known, noisy_coordinates(release), "coordinate at the centre", ax)


@_drawn.register
def _(manifold: SPDBase, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    edge = None if region is None or manifold.k > 3 else edge_of(region, _SHOWN_ELLIPSES)
    reference = None if manifold.k > 3 else release.domain.center
    return plot_spd(release.value, spread=edge, reference=reference, ax=ax)


@_drawn.register
def _(manifold: PlanarShapes, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    """Each landmark within its circle: a shape at distance ρ moves one by at most √(1 − 1/k)·2sin(ρ/2).

    In unit size, rotated onto the release; coordinates at the centre are no shorter than distances, as the
    curvature is nowhere negative.
    """
    center = host(release.domain.center)
    shape = manifold.align(center, host(release.value))
    circles = None
    if region is not None:
        circles = np.sqrt(1 - 1 / manifold.k) * 2 * np.sin(min(reach_of(region), np.pi / 2) / 2)
    return plot_shape(shape, uncertainty=circles, reference=center, ax=ax)


@_drawn.register
def _(manifold: Sphere, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    if manifold.dim != 2:
        return _vector(release, ax)
    edges = () if region is None else (edge_of(region, 181),)
    cap = release.domain if isinstance(release.domain, Ball) else None
    return plot_sphere(release.value, cap=cap, edges=edges, ax=ax)


@_drawn.register
def _(manifold: Hyperbolic, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    if manifold.dim != 2 or not isinstance(release.domain, Ball):
        return _vector(release, ax)
    edges = () if region is None else (edge_of(region, 181),)
    return plot_poincare(release.value, ball=release.domain, edges=edges, ax=ax)


@_drawn.register
def _(manifold: Euclidean, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    if manifold.dim != 2:
        ax = axes(ax, (6.0, 3.4))
        middle = np.asarray(release.domain.center) + noisy_coordinates(release)
        return _stems(np.asarray(release.value), region, middle, "coordinate", ax)
    ax = axes(ax, (4.6, 4.6))
    circle = need_matplotlib("matplotlib.patches").Circle
    domain = release.domain
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


@_drawn.register
def _(manifold: SpecialOrthogonal, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    return plot_matrix(release.value, ax=ax)


@_drawn.register(Grassmann)
@_drawn.register(Stiefel)
def _(manifold: Manifold, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    """The projector onto the subspace, which does not depend on the basis."""
    return plot_matrix(release.value @ np.swapaxes(release.value, -1, -2), ax=ax)


@_drawn.register
def _(manifold: Power, release: Release, region: ConfidenceRegion | None, ax: Any) -> Any:
    inner = manifold.manifold
    if isinstance(inner, SPDBase) and inner.k in (2, 3):
        return plot_spd(release.value, ax=ax)
    general = _drawn.dispatch(Manifold)
    return general(manifold, release, region, ax)


def _vector(release: Release, ax: Any) -> Any:
    numbers = np.asarray(release.value)
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
