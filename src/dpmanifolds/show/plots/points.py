"""Landmark shapes, directions on a sphere and points of the hyperbolic plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Hyperbolic, Manifold, PlanarShapes, Sphere
from dpmanifolds.show.plots._axes import AXIS_COLORS, DOMAIN, NOISE, VALUE, axes, bare, directions, need_matplotlib

_NUMBERED_UP_TO = 40
_LINKS = ("closed", "open", "none")


def plot_shape(
    shape: Any, *, uncertainty: Any = None, reference: Any = None, links: str = "closed", ax: Any = None
) -> Any:
    """Landmarks (complex (k,), or real (k, 2)), joined in their order, each with a circle of radius `uncertainty`.

    `reference` is drawn dashed behind it, rotated onto the shape. Both are centred and scaled to unit size first.
    `links` is "closed", "open" or "none".

    >>> from dpmanifolds.show.plots import plot_shape
    >>> ax = plot_shape([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]], uncertainty=0.05)
    >>> len(ax.patches)
    3
    """
    if links not in _LINKS:
        raise ArgumentError(f"links must be one of {', '.join(map(repr, _LINKS))}; got {links!r}.")
    given = np.asarray(shape)
    space = PlanarShapes(given.shape[0] if given.ndim else 0)
    point = space.as_points(given, "shape")
    ax = axes(ax, (4.6, 4.6))
    if reference is not None:
        seen = space.align(point, space.as_points(np.asarray(reference), "reference"))
        ax.plot(*_joined(seen, links), color=DOMAIN, linestyle="--", linewidth=1, marker=".", markersize=4, zorder=1)
    if uncertainty is not None:
        circle = need_matplotlib("matplotlib.patches").Circle
        for place, radius in zip(point, np.broadcast_to(np.asarray(uncertainty, float), point.shape), strict=True):
            ax.add_patch(circle((place.real, place.imag), radius, color=NOISE, alpha=0.28, linewidth=0, zorder=2))
    ax.plot(*_joined(point, links), color=VALUE, linewidth=1.3, alpha=0.8, zorder=3)
    # small dots let small circles be seen
    ax.plot(point.real, point.imag, "o", color=VALUE, markersize=5 if uncertainty is None else 3, zorder=4)
    if space.k <= _NUMBERED_UP_TO:
        _number(point, ax)
    bare(ax)
    ax.autoscale_view()
    return ax


def _joined(point: np.ndarray, links: str) -> tuple[np.ndarray, np.ndarray]:
    if links == "none":
        points = np.stack([point, np.full_like(point, np.nan)], axis=1).ravel()
    else:
        points = np.append(point, point[:1]) if links == "closed" else point
    return points.real, points.imag


def _number(point: np.ndarray, ax: Any) -> None:
    """1, 2, … a little outside of the landmarks, seen from the middle."""
    for index, place in enumerate(point):
        outward = place / abs(place) if abs(place) > 1e-9 else 1.0
        offset = (9 * outward.real, 9 * outward.imag)
        ax.annotate(
            str(index + 1),
            (place.real, place.imag),
            offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize="x-small",
            zorder=5,
        )


def plot_sphere(points: Any, *, cap: Ball | None = None, edges: Any = (), ax: Any = None) -> Any:
    """Points (3,) or (n, 3) of a sphere in space, seen from above the middle of the cap (or of the points).

    `cap` is a ball of the sphere, drawn as a shaded cap. `edges` are further closed curves (m, 3), such as the edge of
    a confidence region. Points on the far side are drawn faintly.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> from dpmanifolds.show.plots import plot_sphere
    >>> north = np.array([0.0, 0.0, 1.0])
    >>> ax = plot_sphere(north, cap=Ball(Sphere(2), north, 0.5))
    >>> ax.get_aspect()
    1.0
    """
    rows = np.atleast_2d(np.asarray(points, dtype=float))
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ArgumentError(f"points must have the shape (3,) or (n, 3); got {np.shape(points)}.")
    ax = axes(ax, (4.6, 4.6))
    radius = float(np.linalg.norm(rows[0]))
    middle = np.asarray(cap.center, dtype=float) if cap is not None else rows.mean(axis=0)
    view = _looking_at(middle if np.linalg.norm(middle) > 1e-9 else rows[0])
    circle = need_matplotlib("matplotlib.patches").Circle
    ax.add_patch(circle((0, 0), radius, facecolor=DOMAIN, alpha=0.10, linewidth=0))
    ax.add_patch(circle((0, 0), radius, fill=False, edgecolor=DOMAIN, linewidth=1))
    _graticule(radius, view, ax)
    if cap is not None:
        rim = _rim(cap)
        x, y, _ = view @ rim.T
        ax.fill(x, y, color=DOMAIN, alpha=0.22, linewidth=0)
        _curve(rim, view, ax, color=DOMAIN, linewidth=1.2, linestyle="--")
    for edge in edges:
        curve = np.asarray(edge, dtype=float)
        x, y, depth = view @ curve.T
        if np.all(depth > 0):
            ax.fill(x, y, color=NOISE, alpha=0.30, linewidth=0)
        _curve(curve, view, ax, color=NOISE, linewidth=1.2)
    x, y, depth = view @ rows.T
    size = _dot(rows, edges)
    ax.plot(x[depth < 0], y[depth < 0], "o", color=VALUE, alpha=0.25, markersize=size)
    ax.plot(x[depth >= 0], y[depth >= 0], "o", color=VALUE, markersize=size)
    bare(ax)
    ax.set_xlim(-1.05 * radius, 1.05 * radius)
    ax.set_ylim(-1.05 * radius, 1.05 * radius)
    return ax


def _looking_at(target: np.ndarray) -> np.ndarray:
    """Rows right, up and towards the eye, with the eye 25° above the target, north up."""
    unit = target / np.linalg.norm(target)
    helper = np.array([0.0, 0.0, 1.0]) if abs(unit[2]) < 0.9 else np.array([0.0, 1.0, 0.0])
    right = np.cross(helper, unit)
    right /= np.linalg.norm(right)
    up = np.cross(unit, right)
    tilt = math.radians(25)
    eye = math.cos(tilt) * unit - math.sin(tilt) * up
    return np.stack([right, np.cross(eye, right), eye])


def _graticule(radius: float, view: np.ndarray, ax: Any) -> None:
    turn = np.linspace(0, 2 * np.pi, 181)
    zero = np.zeros_like(turn)
    for latitude in np.radians(np.arange(-60, 61, 30)):
        level = np.cos(latitude)
        ring = np.stack([level * np.cos(turn), level * np.sin(turn), zero + np.sin(latitude)], axis=1)
        _curve(radius * ring, view, ax, color=DOMAIN, linewidth=0.5, alpha=0.5)
    for longitude in np.radians(np.arange(0, 180, 30)):
        ring = np.stack([np.cos(turn) * np.cos(longitude), np.cos(turn) * np.sin(longitude), np.sin(turn)], axis=1)
        _curve(radius * ring, view, ax, color=DOMAIN, linewidth=0.5, alpha=0.5)


def _curve(points: np.ndarray, view: np.ndarray, ax: Any, **style: Any) -> None:
    """The front of a curve."""
    x, y, depth = view @ points.T
    hidden = depth < 0
    ax.plot(np.where(hidden, np.nan, x), np.where(hidden, np.nan, y), **style)


def _dot(rows: np.ndarray, edges: Any) -> float:
    """How large a point is drawn: a small dot lets a small region be seen."""
    if len(edges):
        return 2.5
    return 5 if len(rows) == 1 else 4


def _rim(ball: Ball) -> np.ndarray:
    """The edge of a ball of a surface, as a closed curve."""
    manifold: Manifold = ball.manifold
    if not isinstance(manifold, (Sphere, Hyperbolic)) or manifold.dim != 2:
        raise ArgumentError(f"the ball must lie on Sphere(2) or Hyperbolic(2); got {manifold!r}.")
    center = np.asarray(ball.center, dtype=float)
    steps = manifold.from_coordinates(center, ball.radius * directions(2, 181))
    return np.asarray(manifold.exp(center, steps))


def plot_poincare(
    points: Any, *, ball: Ball | None = None, edges: Any = (), curvature: float = -1.0, ax: Any = None
) -> Any:
    """Points (3,) or (n, 3) of the hyperbolic plane (Lorentz coordinates) in Poincaré's disc.

    `ball` is drawn as a shaded disc and sets the curvature; `edges` are further closed curves (m, 3). Grey circles are
    1, 2, 3, … away from the origin, in units of 1/√−curvature.

    >>> from dpmanifolds import Hyperbolic
    >>> from dpmanifolds.show.plots import plot_poincare
    >>> ax = plot_poincare(Hyperbolic(2).random_point(5, rng=0))
    >>> ax.get_aspect()
    1.0
    """
    plane = Hyperbolic(2, curvature=curvature) if ball is None else ball.manifold
    rows = np.atleast_2d(np.asarray(points, dtype=float))
    if not isinstance(plane, Hyperbolic) or rows.ndim != 2 or rows.shape[1] != 3:
        raise ArgumentError(f"points must be of Hyperbolic(2), shape (3,) or (n, 3); got {np.shape(points)}.")
    ax = axes(ax, (4.6, 4.6))
    circle = need_matplotlib("matplotlib.patches").Circle
    ax.add_patch(circle((0, 0), 1.0, facecolor=DOMAIN, alpha=0.08, linewidth=0))
    ax.add_patch(circle((0, 0), 1.0, fill=False, edgecolor=DOMAIN, linewidth=1.4))
    for distance in range(1, 6):
        ax.add_patch(circle((0, 0), math.tanh(distance / 2), fill=False, edgecolor=DOMAIN, linewidth=0.5, alpha=0.5))
    if ball is not None:
        x, y = plane.to_poincare(_rim(ball)).T
        ax.fill(x, y, color=DOMAIN, alpha=0.18, linewidth=0)
        ax.plot(x, y, color=DOMAIN, linewidth=1.2, linestyle="--")
    for edge in edges:
        x, y = plane.to_poincare(np.asarray(edge, dtype=float)).T
        ax.fill(x, y, color=NOISE, alpha=0.30, linewidth=0)
        ax.plot(x, y, color=NOISE, linewidth=1.2)
    x, y = plane.to_poincare(rows).T
    ax.plot(x, y, "o", color=VALUE, markersize=_dot(rows, edges))
    bare(ax)
    ax.set_xlim(-1.05, 1.05)
    ax.set_ylim(-1.05, 1.05)
    return ax


_MOST_GLYPHS = 400
_NUMBERS_UP_TO = 6


def plot_spd(matrices: Any, *, spread: Any = None, reference: Any = None, ax: Any = None) -> Any:
    """One k×k matrix, or a field of 2×2 or 3×3 ones (m, k, k), each drawn as {x : xᵀM⁻¹x = 1}.

    k = 2: the ellipse of the matrix. k = 3: the ellipsoid, seen from above the x-y plane at an angle. Larger: a table
    of colours. `spread` (m, k, k) are drawn faintly behind a single matrix, such as the edge of a confidence region;
    `reference` is drawn dashed, such as the public centre. Fields of 3×3 matrices are coloured by the direction of
    their longest axis (x red, y green, z blue), as tensor maps are, and grey where they are round.

    >>> import numpy as np
    >>> from dpmanifolds.show.plots import plot_spd
    >>> ax = plot_spd(np.array([[2.0, 0.5], [0.5, 1.0]]))
    >>> len(ax.lines) > 0
    True
    """
    stack = np.asarray(matrices, dtype=float)
    if stack.ndim not in (2, 3) or stack.shape[-1] != stack.shape[-2] or stack.shape[-1] < 1:
        raise ArgumentError(f"matrices must have the shape (k, k), or (m, k, k) for a field; got {stack.shape}.")
    k = stack.shape[-1]
    if stack.ndim == 3 and stack.shape[0] == 1:
        stack = stack[0]
    if stack.ndim == 3:
        if k not in (2, 3):
            raise ArgumentError(f"a field is drawn for 2×2 and 3×3 matrices; got {k}×{k}. Draw one matrix at a time.")
        return _field(stack, axes(ax, (5.0, 5.0)))
    if k not in (2, 3):
        return plot_matrix(stack, ax=ax)
    ax = axes(ax, (4.6, 4.6))
    faint = np.empty((0, k, k)) if spread is None else np.asarray(spread, dtype=float).reshape(-1, k, k)
    for outline in _outlines(faint):
        ax.plot(*outline, color=NOISE, linewidth=0.7, alpha=min(0.5, 12 / (len(faint) + 1)), zorder=1)
    if reference is not None:
        ax.plot(*_outlines(np.asarray(reference, dtype=float)[None])[0], color=DOMAIN, linestyle="--", linewidth=1)
    ax.plot(*_outlines(stack[None])[0], color=VALUE, linewidth=2.2, zorder=3)
    _principal_axes(stack, ax)
    if k == 3:
        _wires(stack, ax)
        _compass(ax)
        bare(ax)
    else:
        ax.set_aspect("equal")
        ax.set(xlabel="first coordinate", ylabel="second coordinate")
        ax.grid(alpha=0.25)
    return ax


def plot_matrix(matrix: Any, *, ax: Any = None) -> Any:
    """A table of colours, white at 0; the numbers are written in where they fit."""
    table = np.asarray(matrix, dtype=float)
    ax = axes(ax, (5.0, 4.2))
    top = float(np.max(np.abs(table))) or 1.0
    image = ax.imshow(table, cmap="RdBu_r", vmin=-top, vmax=top)
    ax.figure.colorbar(image, ax=ax, shrink=0.85)
    rows, columns = table.shape
    ax.set_xticks(range(columns) if columns <= 12 else range(0, columns, math.ceil(columns / 10)))
    ax.set_yticks(range(rows) if rows <= 12 else range(0, rows, math.ceil(rows / 10)))
    ax.tick_params(length=0)
    if max(rows, columns) <= _NUMBERS_UP_TO:
        # two digits of the largest number
        decimals = max(0, 2 - round(math.log10(top)))
        for (row, column), number in np.ndenumerate(table):
            shade = "white" if abs(number) > 0.6 * top else "black"
            ax.text(
                column,
                row,
                f"{round(number, decimals) + 0.0:.{decimals}f}",
                ha="center",
                va="center",
                color=shade,
                fontsize="small",
            )
    return ax


def _view() -> np.ndarray:
    """The two rows of the projection: from 30° above, turned by 30°."""
    turn, height = math.radians(-30), math.radians(30)
    right = [math.cos(turn), math.sin(turn), 0.0]
    up = [-math.sin(height) * math.sin(turn), math.sin(height) * math.cos(turn), math.cos(height)]
    return np.array([right, up])


def _projected(vectors: np.ndarray) -> np.ndarray:
    return vectors @ _view().T if vectors.shape[-1] == 3 else vectors


def _outlines(matrices: np.ndarray) -> np.ndarray:
    """The outline (m, 2, points) of each: an ellipsoid's shadow is the ellipse of PMPᵀ."""
    flat = matrices if matrices.shape[-1] == 2 else _view() @ matrices @ _view().T
    angles = np.linspace(0.0, 2 * np.pi, 73)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    outlines: np.ndarray = _roots(flat) @ circle
    return outlines


def _roots(matrices: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrices)
    scaled: np.ndarray = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return scaled


def _principal_axes(matrix: np.ndarray, ax: Any) -> None:
    for end in _projected(_roots(matrix).T):
        ax.plot([-end[0], end[0]], [-end[1], end[1]], color=VALUE, linewidth=0.9, alpha=0.6, zorder=2)


def _wires(matrix: np.ndarray, ax: Any) -> None:
    """The three great ellipses through pairs of principal axes, and circles between them."""
    roots = _roots(matrix)
    angles = np.linspace(0.0, 2 * np.pi, 61)
    ring = np.stack([np.cos(angles), np.sin(angles)])
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        for height in (-0.75, -0.4, 0.0, 0.4, 0.75):
            sphere = np.zeros((3, angles.size))
            sphere[others] = math.sqrt(1 - height * height) * ring
            sphere[axis] = height
            x, y = _projected((roots @ sphere).T).T
            ax.plot(x, y, color=VALUE, linewidth=0.6, alpha=0.55 if height == 0 else 0.22, zorder=2)


def _compass(ax: Any) -> None:
    """Where x, y and z point, in the lower left corner."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    size = 0.11 * max(right - left, top - bottom)
    start = np.array([left + 0.3 * size, bottom + 0.3 * size])
    for name, color, step in zip("xyz", AXIS_COLORS, _projected(np.eye(3)), strict=True):
        end = start + size * step
        ax.plot([start[0], end[0]], [start[1], end[1]], color=color, linewidth=1.4)
        ax.text(*(start + 1.25 * size * step), name, color=color, ha="center", va="center", fontsize="small")


def _anisotropy(matrices: np.ndarray) -> np.ndarray:
    """Fractional anisotropy, from 0 (a ball) to 1 (a needle)."""
    values = np.linalg.eigvalsh(matrices)
    off = values - values.mean(axis=-1, keepdims=True)
    share: np.ndarray = np.minimum(np.sqrt(1.5 * np.sum(off**2, axis=-1) / np.sum(values**2, axis=-1)), 1.0)
    return share


def _field(stack: np.ndarray, ax: Any) -> Any:
    """Glyphs in rows, an even selection where there are very many."""
    collections = need_matplotlib("matplotlib.collections")
    shown = stack
    if len(stack) > _MOST_GLYPHS:
        shown = stack[np.linspace(0, len(stack) - 1, _MOST_GLYPHS).round().astype(int)]
        ax.set_title(f"{_MOST_GLYPHS} of {len(stack)} matrices", fontsize="medium")
    columns = math.ceil(math.sqrt(len(shown)))
    places = np.array([divmod(i, columns) for i in range(len(shown))], dtype=float)[:, ::-1] * [1.0, -1.0]
    sizes = np.sqrt(np.linalg.eigvalsh(shown)[:, -1])
    outlines = _outlines(shown) * (0.47 / sizes.max()) + places[:, :, None]
    colors: Any = VALUE
    if stack.shape[-1] == 3:
        longest = np.linalg.eigh(shown)[1][:, :, -1]
        # round tensors point nowhere: the less anisotropic, the greyer
        share = _anisotropy(shown)[:, None]
        colors = 0.85 * share * np.clip(np.abs(longest), 0, 1) + 0.6 * (1 - share)
    polygons = collections.PolyCollection(
        np.moveaxis(outlines, 1, 2), facecolors=colors, edgecolors=colors, alpha=0.75, linewidths=0.6
    )
    ax.add_collection(polygons)
    ax.set_xlim(-0.7, columns - 0.3)
    ax.set_ylim(float(places[:, 1].min()) - 0.7, 0.7)
    bare(ax)
    return ax
