"""Points of a domain from coordinates at public points, and how far floating point tells them."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.manifolds import Manifold

_FARTHEST = 2.0**20
_MOST_AXES = 64
_SHORTER = 0.75
_MOST_TRIES = 60


def point_at(domain: Domain, coordinates: np.ndarray) -> Array:
    """exp at the centre, after shrinking the coordinates into the domain's radius, then clipped onto the domain.

    Post-processing. Balls are convex here and hold the statistic, so that shrinking brings the draw no farther from
    it in the tangent space. Where floating point has no such point the way there is shortened by quarters: noise is
    drawn and paid for by now, and the release must not fail.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Euclidean
    >>> from dpmanifolds.sums import point_at
    >>> point_at(Ball(Euclidean(2), [1.0, 1.0], radius=5.0), np.array([6.0, 8.0])).round(6).tolist()
    [4.0, 5.0]
    """
    length = np.linalg.norm(coordinates, axis=-1, keepdims=True)
    inside = coordinates * np.minimum(1.0, domain.radius / np.maximum(length, 1e-300))
    for factor in (*(_SHORTER**power for power in range(_MOST_TRIES)), 0.0):
        point = try_move(domain, host(domain.center), factor * inside)
        if point is not None:
            return point
    raise ScaleOutOfRangeError(f"the centre is no point of {domain.manifold!r} in double precision.")


def try_move(domain: Domain, base: Array, coordinates: np.ndarray, *, inside: bool = False) -> Array | None:
    """The point of the domain that coordinates at a public point lead to; None where floating point has none.

    `inside`: it is known that clipping would leave it where it is.
    """
    try:
        with np.errstate(all="ignore"):
            point = domain.manifold.move(base, coordinates)
            return point if inside else domain.clip(point)
    except (ScaleOutOfRangeError, np.linalg.LinAlgError):
        return None


def horizon(domain: Domain) -> float:
    """How far from the centre floating point still tells the points that are reached from anywhere in the domain.

    Infinite on compact spaces; 0 where it does not even hold the domain. Looked for in the directions of the axes, from
    the ends of the domain outwards: public.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, Hyperbolic, Sphere
    >>> from dpmanifolds.sums import horizon
    >>> balls = (Ball(m, c, 1.0) for m, c in ((SPD(2), np.eye(2)), (Hyperbolic(2), Hyperbolic(2).origin)))
    >>> [round(horizon(ball)) for ball in balls], horizon(Ball(Sphere(2), [0.0, 0.0, 1.0], 1.0))
    ([19, 333], inf)
    """
    manifold, radius = domain.manifold, domain.radius
    if not manifold.is_hadamard:
        return math.inf
    distance = _FARTHEST * radius
    while distance >= radius:
        if _is_told(manifold, host(domain.center), radius, distance):
            return distance
        distance *= _SHORTER
    return 0.0


def _is_told(manifold: Manifold, center: Array, radius: float, distance: float) -> bool:
    axes = np.eye(manifold.dim)[:: math.ceil(manifold.dim / _MOST_AXES)]
    ways = np.concatenate([axes, -axes])
    try:
        with np.errstate(all="ignore"):
            points = manifold.move(manifold.move(center, radius * ways), (radius + distance) * ways)
            seen = np.linalg.norm(manifold.log_coordinates(center, points), axis=-1)
    except (ScaleOutOfRangeError, np.linalg.LinAlgError):
        return False
    return bool(np.all((seen >= distance) & (seen <= distance + 4 * radius)))
