"""What every domain is: a public promise, and a rule that moves a record onto it, alone; and what domains are made of.

>>> import numpy as np
>>> axes = Axes(np.array([2.0, 1.0]))
>>> axes.restore(axes.whiten(np.array([[3.0, 0.0], [0.5, 0.5], [0.0, -7.0]]))).round(6).tolist()
[[2.0, 0.0], [0.5, 0.5], [0.0, -1.0]]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, to_numpy
from dpmanifolds._points import map_parts
from dpmanifolds._validate import hide_records
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, RadiusTooLargeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold

_ITERATIONS = 16
_FARTHEST = 2.0**20


@dataclass(frozen=True, eq=False)
class Axes:
    """The ellipsoid {U·diag(a)·w : |w| ≤ 1}: public semi-axes a > 0 (k,) in public directions U (dim, k).

    U has orthonormal columns up to rounding; there may be fewer of them than dimensions: directions without an axis
    stay at the centre. Integers are those of w: the promise knows nothing of the axes, and the noise that is added to
    them takes the ellipsoid's shape when U·diag(a) leads back (docs/proofs/sums.md, section 8).
    """

    lengths: np.ndarray
    basis: np.ndarray | None = None
    """Columns are directions; None: the coordinates themselves."""

    @property
    def count(self) -> int:
        """k."""
        return int(self.lengths.size)

    def whiten(self, rows: Array) -> Array:
        """w (n, k) for rows of coordinates (n, dim): of the nearest point of the ellipsoid, each from its row alone."""
        if self.basis is not None:
            # one product for each record, so that it depends on no other
            rows = (rows[:, None, :] @ like(self.basis, rows))[:, 0, :]
        return nearest_in_ellipsoid(rows, self.lengths)

    def restore(self, whitened: np.ndarray) -> np.ndarray:
        """Coordinates (..., dim) for w (..., k)."""
        long: np.ndarray = whitened * self.lengths
        return long if self.basis is None else long @ self.basis.T


def nearest_in_ellipsoid(rows: Array, lengths: np.ndarray) -> Array:
    """w (n, k), |w| ≤ 1 up to rounding, with diag(a)·w nearest to each row (n, k); a > 0: semi-axes (k,), or (n, k).

    Outside, w_i = a_i·c_i/(a_i² + e) with the one e > 0 that makes |w| = 1: Newton's method for 1/|w| = 1, which is
    concave in e, from e = 0, so that e grows towards it; a fixed number of times for every row. Rows beyond 10⁶ times
    the longest axis are shortened to that first, so that no square overflows. Each row of w is a function of that row
    and of a alone, bit for bit.

    >>> import numpy as np
    >>> nearest_in_ellipsoid(np.array([[3.0, 4.0]]), np.array([1.0, 1.0])).round(6).tolist()
    [[0.6, 0.8]]
    """
    xp = namespace(rows)
    longest = float(np.max(lengths))
    axes = like(lengths / longest, rows)
    with np.errstate(all="ignore"):
        scaled = rows / longest
        largest = xp.max(xp.abs(scaled), axis=-1, keepdims=True)
        scaled = scaled * xp.where(largest > _FARTHEST, _FARTHEST / largest, xp.ones_like(largest))
        squares, shift = axes * axes, xp.zeros_like(largest)
        weighted = axes * scaled
        for _ in range(_ITERATIONS):
            width = squares + shift
            powers = (weighted / width) ** 2
            total = xp.sum(powers, axis=-1, keepdims=True)
            slope = xp.sum(powers / width, axis=-1, keepdims=True)
            outside = total > 1
            step = (xp.sqrt(total) - 1) * total / xp.where(outside, slope, xp.ones_like(slope))
            shift = shift + xp.where(outside, step, xp.zeros_like(step))
        return weighted / (squares + shift)


class Domain(ABC):
    """The public promise about where records live.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.domains import Domain
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=1.0)
    >>> isinstance(ball, Domain), ball.clip(np.array([3.0, 4.0])).round(6).tolist()
    (True, [0.6, 0.8])
    """

    manifold: Manifold
    center: Array
    radius: float
    """No point of the domain is farther than this from `center`."""

    largest_condition: float = math.inf
    """The largest condition number of a matrix of the domain, where one is known beyond what the radius implies."""

    body: Axes | None = None
    """What it looks like in tangent coordinates at the centre, in units of the radius; None for a ball."""

    @property
    def has_unique_mean(self) -> bool:
        """Whether records of the domain have one Fréchet mean, inside of it, whatever they are."""
        return self.radius < self.manifold.max_radius

    @property
    def diameter(self) -> float:
        """Largest distance between two points of the domain (or an upper bound of it)."""
        return 2 * self.radius

    @abstractmethod
    def clip(self, points: Array) -> Array:
        """Each record moved onto the domain, alone and by a fixed rule; records inside stay bit for bit."""

    @abstractmethod
    def contains(self, points: Array) -> Array:
        """Whether each point lies in the domain, up to rounding."""


@dataclass(frozen=True, eq=False)
class WholeSpace(Domain):
    """All of a manifold: no promise at all, and a public point of it. A descent may go anywhere; no sum is bounded.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.domains import WholeSpace
    >>> WholeSpace(Sphere(2), [0.0, 0.0, 1.0])
    all of Sphere(2, 1.0)
    """

    manifold: Manifold
    center: Array
    radius = math.inf

    def __repr__(self) -> str:
        return f"all of {self.manifold!r}"

    def clip(self, points: Array) -> Array:
        """Points as they are."""
        return points

    def contains(self, points: Array) -> Array:
        return np.ones(self.manifold.batch_shape(points), dtype=bool)


_MOST_STEPS = 500
_SHORTEST_STEP = 1e-12


def check_center(manifold: Manifold, center: Any) -> Array:
    """One point of a manifold that has balls, or an error that says what is wrong."""
    check_manifold(manifold)
    point = manifold.as_points(center, "center")
    if manifold.batch_shape(point) != ():
        raise ArgumentError(
            f"must be one point of {manifold!r}; got leading axes {manifold.batch_shape(point)}.", argument="center"
        )
    if not bool(manifold.belongs(point)):
        raise NotOnManifoldError(f"center does not lie on {manifold!r}; use manifold.project to put it there.")
    _refuse_optimisation_only(manifold)
    return point


def check_sample(manifold: Manifold, sample: Any, *, at_least: int = 1, argument: str = "sample") -> Array:
    """Points (m, *point_shape) of a manifold that has balls, m ≥ `at_least`, or an error that says what is wrong."""
    check_manifold(manifold)
    _refuse_optimisation_only(manifold)
    points = manifold.as_points(sample, argument)
    shape = manifold.batch_shape(points)
    if len(shape) != 1 or shape[0] < at_least:
        needed = "one point" if at_least == 1 else f"{at_least} points"
        raise ArgumentError(f"must have one leading axis, of at least {needed}; got {shape}.", argument=argument)
    rule = manifold.first_broken_rule(points)
    if rule is not None:
        raise NotOnManifoldError(f"must lie on {manifold!r}: {rule}.", argument=argument)
    return points


def check_reach(manifold: Manifold, radius: float, argument: str) -> float:
    """How far a domain reaches from its centre, or an error where exp comes round again."""
    limit = manifold.injectivity_radius
    if radius >= limit:
        raise RadiusTooLargeError(
            f"must be below {limit:.6g} on {manifold!r}, where the farthest points from a centre lie; "
            f"got {radius:.6g}. Use a smaller domain (records outside are clipped to it) or another manifold.",
            argument=argument,
        )
    return radius


def _refuse_optimisation_only(manifold: Manifold) -> None:
    if manifold.max_radius == 0:
        raise RadiusTooLargeError(f"{manifold!r} is for optimisation only: no ball of it has a proven mean.")


@hide_records()
def mean_of_sample(manifold: Manifold, points: Array) -> Array:
    """The Fréchet mean by steps along the mean logarithm, halved where they do not bring the points closer."""
    center, step = map_parts(lambda part: part[0, ...], points), 1.0
    with np.errstate(all="ignore"):
        logs = to_numpy(manifold.log_coordinates(center, points))
        for _ in range(_MOST_STEPS):
            pull = np.mean(logs, axis=0)
            following = manifold.exp_coordinates(center, step * pull)
            there = to_numpy(manifold.log_coordinates(following, points))
            if np.sum(there * there) < np.sum(logs * logs):
                center, logs, step = following, there, min(1.0, 2 * step)
            else:
                step /= 2
            if step * np.linalg.norm(pull) <= _SHORTEST_STEP * (1 + np.max(np.abs(logs))):
                break
    return center
