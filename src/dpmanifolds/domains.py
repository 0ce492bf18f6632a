"""Where records are promised to live: the public domain that every record is clipped to.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)
>>> clipped = ball.clip(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
>>> ball.contains(clipped).tolist()
[True, True]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, eps, is_numpy, namespace, to_numpy
from dpmanifolds._points import choose_points, has_parts, leaves, like_parts, map_parts, on_host, taken
from dpmanifolds._validate import hide_records, number_between, positive_number, shown
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, RadiusTooLargeError
from dpmanifolds.manifolds import Euclidean, Manifold, Sphere
from dpmanifolds.manifolds.base import check_manifold

__all__ = ["Ball", "Domain", "ValidationReport", "WholeSpace", "validate"]

_MOST_STEPS = 500
_SHORTEST_STEP = 1e-12


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

    @property
    def has_unique_mean(self) -> bool:
        """Whether records of the domain have one Fréchet mean, inside of it, whatever they are."""
        return self.radius < self.manifold.max_radius

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest distance between two points of the domain (or an upper bound of it)."""

    @abstractmethod
    def clip(self, points: Array) -> Array:
        """Each record moved onto the domain, alone and by a fixed rule; records inside stay bit for bit."""

    @abstractmethod
    def contains(self, points: Array) -> Array:
        """Whether each point lies in the domain, up to rounding."""


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """The closed geodesic ball of `radius` around a public `center`.

    On a positively curved or closed manifold the radius must be below the injectivity radius (`RadiusTooLargeError`);
    from `manifold.max_radius` on, half of that or less, the Fréchet mean need not be unique, and a release says so.
    Centre and radius must come from public knowledge (physics, the literature, a public reference sample), never from
    the records.

    >>> import dpmanifolds as dpm
    >>> dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5).diameter
    1.0
    >>> dpm.Ball.from_eigenvalues(dpm.SPD(3), 0.1, 10.0)  # from what the eigenvalues can be
    Ball(SPD(3, metric='affine-invariant'), radius=3.98819)
    """

    manifold: Manifold
    center: Array
    radius: float

    def __post_init__(self) -> None:
        check_manifold(self.manifold)
        radius = positive_number("radius", self.radius)
        center = self.manifold.as_points(self.center, "center")
        if self.manifold.batch_shape(center) != ():
            raise ArgumentError(
                f"must be one point of {self.manifold!r}; got leading axes {self.manifold.batch_shape(center)}.",
                argument="center",
            )
        if not bool(self.manifold.belongs(center)):
            raise NotOnManifoldError(f"center does not lie on {self.manifold!r}; use manifold.project to put it there.")
        _refuse_optimisation_only(self.manifold)
        limit = self.manifold.injectivity_radius
        if radius >= limit:
            raise RadiusTooLargeError(
                f"must be below {limit:.6g} on {self.manifold!r}, where the farthest points from a centre lie; "
                f"got {radius:.6g}. Use a smaller ball (records outside are clipped to it) or another manifold.",
                argument="radius",
            )
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "center", center)

    def __repr__(self) -> str:
        return f"Ball({self.manifold!r}, radius={self.radius:.6g})"

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    def clip(self, points: Array) -> Array:
        """Records beyond the radius move along the geodesic to the centre until they reach it."""
        points = self.manifold.as_points(points)
        center = like_parts(self.center, points)
        distance = self.manifold.dist(center, points)
        xp = namespace(distance)
        outside = distance > self.radius
        # a hair inside, so that rounding (of badly conditioned points too) does not put the record out again
        target = self.radius * (1 - math.sqrt(eps(distance)) / 16)
        if is_numpy(distance) and distance.ndim > 0 and not has_parts(points):
            clipped = points.copy()
            rows = points[outside]
            clipped[outside] = self.manifold.geodesic(center, rows, target / distance[outside])
            return clipped
        factor = xp.where(outside, target / xp.where(outside, distance, xp.ones_like(distance)), 1.0)
        return choose_points(outside, self.manifold.geodesic(center, points, factor), points)

    def contains(self, points: Array) -> Array:
        points = self.manifold.as_points(points)
        distance = self.manifold.dist(like_parts(self.center, points), points)
        return distance <= self.radius * (1 + 64 * eps(distance))

    @classmethod
    def from_eigenvalues(cls, manifold: Manifold, smallest: float, largest: float) -> Ball:
        """The smallest centred ball that holds every SPD matrix with eigenvalues in [smallest, largest].

        The range is public physics in the units of the data: diffusivities of water in tissue lie within
        [1e−4, 3e−3] mm²/s, say. Around √(smallest·largest)·I, with the radius that each metric proves
        (`eigenvalue_radius`): ½√k·ln(largest/smallest) for the affine-invariant one.

        >>> from dpmanifolds import SPD
        >>> round(Ball.from_eigenvalues(SPD(3), 1e-4, 3e-3).radius, 4)
        2.9455
        """
        low, high = positive_number("smallest", smallest), positive_number("largest", largest)
        if low >= high:
            raise ArgumentError(f"must be below largest; got {low} and {high}.", argument="smallest")
        check_manifold(manifold)
        radius = manifold.eigenvalue_radius(low, high)
        center = math.sqrt(low) * math.sqrt(high) * np.asarray(manifold.natural_center)
        return cls(manifold, center, radius * (1 + 1e-12))

    @classmethod
    def from_bounds(cls, manifold: Manifold, lower: Any, upper: Any) -> Ball:
        """The ball around the box lower ≤ x ≤ upper of a Euclidean space, in the physical units of the data.

        >>> from dpmanifolds import Euclidean
        >>> Ball.from_bounds(Euclidean(2), [0, 0], [6, 8]).radius
        5.0
        """
        if not isinstance(manifold, Euclidean):
            raise ArgumentError(f"from_bounds needs a Euclidean space; got {shown(manifold)}.")
        low, high = manifold.as_points(lower, "lower"), manifold.as_points(upper, "upper")
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            raise ArgumentError("lower and upper must be finite, and lower below upper in every coordinate.")
        return cls(manifold, (low + high) / 2, float(np.linalg.norm(high - low)) / 2)

    @classmethod
    def from_sample(cls, manifold: Manifold, sample: Any, *, coverage: float = 1.0, margin: float = 0.1) -> Ball:
        """The ball around the mean of a PUBLIC sample that holds the share `coverage` of it, widened by `margin`.

        The sample must be public: an atlas, a published study, simulated data, people who are not in the private
        records. A ball computed from the private records themselves leaks them.

        >>> import numpy as np
        >>> from dpmanifolds import Sphere
        >>> tilts = np.array([[1.0, 0.1, 0.0], [1.0, -0.1, 0.0], [1.0, 0.0, 0.1], [1.0, 0.0, -0.1]])
        >>> public = Sphere(2).project(tilts)
        >>> round(Ball.from_sample(Sphere(2), public).radius, 4)
        0.1096
        """
        check_manifold(manifold)
        coverage = number_between("coverage", coverage, 0.0, 1.0)
        margin = number_between("margin", margin, 0.0, 10.0)
        _refuse_optimisation_only(manifold)
        points = manifold.as_points(sample, "sample")
        shape = manifold.batch_shape(points)
        if len(shape) != 1 or not shape[0]:
            raise ArgumentError(f"must have one leading axis, of at least one point; got {shape}.", argument="sample")
        rule = manifold.first_broken_rule(points)
        if rule is not None:
            raise NotOnManifoldError(f"must lie on {manifold!r}: {rule}.", argument="sample")
        center = _karcher_mean(manifold, points)
        distances = np.sort(to_numpy(manifold.dist(center, points)))
        reach = distances[max(math.ceil(coverage * shape[0]), 1) - 1]
        return cls(manifold, center, float(reach) * (1 + margin))

    @classmethod
    def positive_orthant(cls, manifold: Manifold) -> Ball:
        """The ball that holds every point of a sphere with no negative coordinate: square roots of compositions.

        Its centre is the uniform composition and its radius arccos(1/√(d+1))/√κ, below π/(2√κ) in any dimension.

        >>> from dpmanifolds import Sphere
        >>> round(Ball.positive_orthant(Sphere(2)).radius, 6)
        0.955317
        """
        if not isinstance(manifold, Sphere):
            raise ArgumentError(f"needs a sphere; got {shown(manifold)}.", argument="positive_orthant")
        size = manifold.dim + 1
        center = np.full(size, manifold.sphere_radius / math.sqrt(size))
        angle = math.atan(math.sqrt(manifold.dim))
        return cls(manifold, center, angle * manifold.sphere_radius * (1 + 1e-12))


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

    @property
    def diameter(self) -> float:
        return math.inf

    def clip(self, points: Array) -> Array:
        """Points as they are."""
        return points

    def contains(self, points: Array) -> Array:
        return np.ones(self.manifold.batch_shape(points), dtype=bool)


def _refuse_optimisation_only(manifold: Manifold) -> None:
    if manifold.max_radius == 0:
        raise RadiusTooLargeError(f"{manifold!r} is for optimisation only: no ball of it has a proven mean.")


@hide_records()
def _karcher_mean(manifold: Manifold, points: Array) -> Array:
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


@dataclass(frozen=True)
class ValidationReport:
    """What `validate` found. Private: it tells indices and distances of records.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=1.0)
    >>> report = dpm.validate(np.array([[0.5, 0.0], [3.0, 4.0]]), ball)
    >>> report.ok, report.outside, report.largest_distance
    (True, (1,), 5.0)
    """

    records: int
    not_finite: tuple[int, ...]
    off_manifold: tuple[int, ...]
    outside: tuple[int, ...]
    largest_distance: float

    @property
    def ok(self) -> bool:
        """Whether every record is usable as it is (records outside the domain will be clipped, which is fine)."""
        return not self.not_finite and not self.off_manifold

    def __str__(self) -> str:
        return (
            f"{self.records} records: {len(self.not_finite)} not finite, {len(self.off_manifold)} off the manifold, "
            f"{len(self.outside)} outside the domain (to be clipped); largest distance to the centre "
            f"{self.largest_distance:.4g}. This report is private: do not publish it."
        )


def validate(points: Any, domain: Domain) -> ValidationReport:
    """The custodian's own check of records against a domain: NOT private, it tells all.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Euclidean, validate
    >>> print(validate(np.array([[0.0], [9.0], [np.nan]]), Ball(Euclidean(1), [0.0], 2.0)))
    3 records: 1 not finite, 1 off the manifold, 1 outside the domain (to be clipped); largest distance to the
    centre 9. This report is private: do not publish it.
    """
    if not isinstance(domain, Domain):
        raise ArgumentError(f"domain must be a Domain such as Ball; got {type(domain).__name__}.")
    manifold = domain.manifold
    array = on_host(manifold.take_form(points))
    if len(manifold.batch_shape(array)) != 1:
        raise ArgumentError(
            f"must have one leading axis of records; got {manifold.batch_shape(array)}.", argument="points"
        )
    count = manifold.batch_shape(array)[0]
    finite = np.ones(count, dtype=bool)
    for leaf in leaves(array):
        finite &= np.isfinite(leaf).all(axis=tuple(range(1, leaf.ndim)))
    usable = finite.copy()
    usable[finite] = to_numpy(manifold.belongs(taken(array, finite)))
    good = taken(array, usable)
    distance = to_numpy(manifold.dist(like_parts(domain.center, good), good))
    outside = np.flatnonzero(usable)[~to_numpy(domain.contains(good))]
    return ValidationReport(
        records=count,
        not_finite=tuple(np.flatnonzero(~finite).tolist()),
        off_manifold=tuple(np.flatnonzero(~usable).tolist()),
        outside=tuple(outside.tolist()),
        largest_distance=float(distance.max(initial=0.0)),
    )
