"""Landmark shapes, directions on a sphere and points of the hyperbolic plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Hyperbolic, Manifold, PlanarShapes, Sphere
from dpmanifolds.show.plots._axes import DOMAIN, NOISE, VALUE, axes, bare, need_matplotlib
from dpmanifolds.show.plots._regions import directions

__all__ = ["plot_poincare", "plot_shape", "plot_sphere"]

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
    size = 5 if len(rows) == 1 else 4
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
    ax.plot(x, y, "o", color=VALUE, markersize=5 if len(rows) == 1 else 4)
    bare(ax)
    ax.set_xlim(-1.05, 1.05)
    ax.set_ylim(-1.05, 1.05)
    return ax
