"""A difference of two groups as the picture that suits its manifold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.releases import Difference
from dpmanifolds.show.plots._axes import DOMAIN, NOISE, VALUE, axes, directions
from dpmanifolds.show.plots.points import plot_poincare, plot_shape, plot_spd, plot_sphere

PICTURES = ("ellipsoids", "shape", "sphere", "disc")
"""What is drawn as such; of other manifolds coordinates are drawn."""
_EDGE, _SHOWN_ELLIPSES = 181, 40


def plot_difference(difference: Difference, *, ax: Any = None) -> Any:
    """The first mean (grey), the second (blue), and where the second population's may lie, seen from it (orange).

    Shapes, ellipsoids, directions and points of the hyperbolic plane as such; elsewhere the coordinates of the tangent
    vector from the first mean to the second, each with what the region leaves of it. Everything is computed from the
    releases, and may be shown to whom they may be shown.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show.plots import plot_difference
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> x, y = dpm.SPD(2).random_point(400, rng=2), dpm.SPD(2).random_point(300, rng=3)
    >>> plot_difference(dpm.private_difference(x, y, ball, dpm.GaussianDP(1.0), rng=0)).get_aspect()
    1.0
    """
    if not isinstance(difference, Difference):
        raise ArgumentError(f"difference must be a Difference; got {type(difference).__name__}.")
    first, second = (host(release.value) for release in difference.releases)
    longest = float(np.sqrt(np.linalg.eigvalsh(difference.shape)[-1]))
    reach = np.sqrt(np.diag(difference.shape))
    if difference.manifold.picture not in PICTURES:
        return draw_coordinates(difference.vector, reach, "second less first", ax)
    return draw_change(difference.manifold, first, second, partial(edge_of_difference, difference), longest, ax)


def caption_difference(difference: Difference) -> str:
    """What the picture shows, in a sentence or two."""
    level = f"{100 * difference.level:g} %"
    if difference.manifold.picture not in PICTURES:
        return (
            f"Blue: the coordinates of the tangent vector from the first mean to the second. Orange: what the {level} "
            "region of the populations' difference leaves of each. Grey: no difference."
        )
    return (
        f"Grey: the first mean. Blue: the second. Orange: where the second population's mean lies, as seen from the "
        f"first, with {level} confidence."
    )


def edge_of_difference(difference: Difference, count: int) -> Any:
    """Points on the edge of the region, as far as it lies in the domain."""
    values, frame = np.linalg.eigh(difference.shape)
    steps = directions(difference.manifold.dim, count) * np.sqrt(np.maximum(values, 0.0)) @ frame.T
    return difference.first.domain.clip(
        difference.manifold.exp_coordinates(host(difference.first.value), difference.vector + steps)
    )


def draw_change(
    space: Manifold, first: Any, second: Any, edge: Callable[[int], Any], longest: float, ax: Any = None
) -> Any:
    """A point (grey), another (blue), and so many points on the edge of where the other may lie (orange).

    `longest` is how far away from it that edge is at most.
    """
    picture = space.picture
    if picture == "ellipsoids":
        return plot_spd(second, spread=edge(_SHOWN_ELLIPSES), reference=first, ax=ax)
    if picture == "shape":
        circle = np.sqrt(1 - 1 / len(first)) * 2 * np.sin(min(longest, np.pi / 2) / 2)
        return plot_shape(second, uncertainty=circle, reference=first, ax=ax)
    if picture == "sphere":
        return plot_sphere(second, cap=Ball(space, first, 0.03), edges=(edge(_EDGE),), ax=ax)
    return plot_poincare(second, ball=Ball(space, first, 0.05), edges=(edge(_EDGE),), ax=ax)


def draw_coordinates(vector: np.ndarray, reach: np.ndarray, label: str, ax: Any = None) -> Any:
    """Tangent coordinates (blue), and how far each may be off (orange)."""
    ax = axes(ax, (6.0, 3.4))
    places = np.arange(1, vector.size + 1)
    ax.axhline(0.0, color=DOMAIN, linewidth=0.8)
    ax.vlines(places, vector - reach, vector + reach, color=NOISE, alpha=0.45, linewidth=4)
    ax.plot(places, vector, "o", color=VALUE, markersize=5 if vector.size <= 60 else 2)
    ax.set(xlabel="coordinate", ylabel=label)
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax
