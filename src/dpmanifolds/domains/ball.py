"""Geodesic balls: the usual promise about where records live."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._arrays import Array, eps, is_numpy, namespace, to_numpy
from dpmanifolds._points import choose_points, has_parts, like_parts
from dpmanifolds._validate import number_between, positive_number, shown
from dpmanifolds.domains.domain import Domain, check_center, check_reach, check_sample, mean_of_sample
from dpmanifolds.domains.typical import find_typical
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean, Manifold, Sphere
from dpmanifolds.manifolds.base import check_manifold


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
    kind: ClassVar[str] = "ball"
    written: ClassVar[tuple[str, ...]] = ("center", "radius", "manifold")

    def __post_init__(self) -> None:
        center = check_center(self.manifold, self.center)
        radius = check_reach(self.manifold, positive_number("radius", self.radius), "radius")
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "center", center)

    def __repr__(self) -> str:
        return f"Ball({self.manifold!r}, radius={self.radius:.6g})"

    def clip(self, points: Array) -> Array:
        """Records beyond the radius move along the geodesic to the centre until they reach it."""
        points = self.manifold.as_points(points)
        if type(points) is np.ndarray and points.ndim == len(self.manifold.point_shape):
            return self.clip(points[None, ...])[0]
        center = like_parts(self.center, points)
        distance = self.manifold.dist(center, points)
        xp = namespace(distance)
        outside = distance > self.radius
        # a hair inside, so that rounding (of badly conditioned points too) does not put the record out again
        target = self.radius * (1 - math.sqrt(eps(distance)) / 16)
        if is_numpy(distance) and distance.ndim > 0 and not has_parts(points):
            clipped = points.copy()
            rows = points[outside]
            if len(rows):
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
        coverage = number_between("coverage", coverage, 0.0, 1.0)
        margin = number_between("margin", margin, 0.0, 10.0)
        points = check_sample(manifold, sample)
        center = mean_of_sample(manifold, points)
        distances = np.sort(to_numpy(manifold.dist(center, points)))
        reach = distances[max(math.ceil(coverage * distances.size), 1) - 1]
        return cls(manifold, center, float(reach) * (1 + margin))

    @classmethod
    def typical(cls, manifold: Manifold, kind: str, *, unit: str | None = None, center: Any = None) -> Ball:
        """The ball for a common kind of data, from public knowledge (`domains.typical`, with sources).

        "diffusion-tensor" in "mm²/s" or "µm²/ms" (also typed mm2/s, um2/ms), "eeg" covariances in "µV²" or "V²",
        "correlation" matrices shrunk by 0.1, "landmark-shape" around your public template `center`, "composition".

        >>> from dpmanifolds import SPD
        >>> Ball.typical(SPD(3), "diffusion-tensor", unit="mm²/s")
        Ball(SPD(3, metric='affine-invariant'), radius=2.94552)
        """
        check_manifold(manifold)
        found = find_typical(kind, unit)
        if manifold.single.typed.partition(":")[0] != found.space:
            raise ArgumentError(f"the typical ball of {kind} is one of {found.space}; got {shown(manifold)}.")
        if (center is None) == (found.radius is not None):
            told = "needs center=, your public template" if center is None else "brings its own centre"
            raise ArgumentError(f"{kind} {told}.", argument="kind")
        if found.radius is not None:
            return cls(manifold, center, found.radius)
        if found.eigenvalues is None:
            return cls.positive_orthant(manifold)
        low, high = found.eigenvalues
        # the trace of a k×k correlation matrix is k
        return cls.from_eigenvalues(
            manifold, low, low + (1 - low) * manifold.point_shape[-1] if high == math.inf else high
        )

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
