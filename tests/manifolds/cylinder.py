"""CONTRIBUTING's worked example of a manifold: all that is known of it stands in its one class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, namespace, row_dot, stack_last
from dpmanifolds._validate import positive_number
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds._common import default_tolerance, normal_array

__all__ = ["Cylinder"]


class Cylinder(Manifold):
    """Points (x, y, z) with x² + y² = r² and the metric of R³: ρ² = (r·Δθ)² + Δz², flat, with closed geodesics.

    >>> import numpy as np
    >>> round(float(Cylinder(2.0).dist(np.array([2.0, 0.0, 0.0]), np.array([0.0, 2.0, 1.0]))), 6)
    3.296908
    """

    dim = 2
    point_shape = (3,)
    curvature_bounds = (0.0, 0.0)
    log_can_fail = False
    typed = "cylinder:1.0"

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = positive_number("radius", radius)
        self.injectivity_radius = math.pi * self.radius

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.radius,)

    @property
    def words(self) -> str:
        return f"positions on a cylinder of radius {self.radius:g}"

    @property
    def natural_center(self) -> Array:
        return np.array([self.radius, 0.0, 0.0])

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        """Around the axis, and along it."""
        around = base[..., 0] * vector[..., 1] - base[..., 1] * vector[..., 0]
        return stack_last(around / self.radius, vector[..., 2] + 0 * around)

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        turn = coordinates[..., 0] / self.radius
        return stack_last(-base[..., 1] * turn, base[..., 0] * turn, coordinates[..., 1] + 0 * base[..., 2])

    def exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        angle = self.to_coordinates(base, vector)[..., 0] / self.radius
        cosine, sine = xp.cos(angle), xp.sin(angle)
        x, y = base[..., 0], base[..., 1]
        return stack_last(x * cosine - y * sine, x * sine + y * cosine, base[..., 2] + vector[..., 2])

    def log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        across = base[..., 0] * point[..., 1] - base[..., 1] * point[..., 0]
        along = base[..., 0] * point[..., 0] + base[..., 1] * point[..., 1]
        angle = xp.atan2(across, along)
        return self.from_coordinates(base, stack_last(self.radius * angle, point[..., 2] - base[..., 2]))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return row_dot(self.to_coordinates(base, u), self.to_coordinates(base, v))

    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        return self.from_coordinates(to, self.to_coordinates(base, vector))

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        return 0 * self.inner(base, vector, vector)

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        xp = namespace(point)
        distance = xp.hypot(point[..., 0], point[..., 1])
        return xp.isfinite(point[..., 2]) & (xp.abs(distance / self.radius - 1) <= default_tolerance(point, tolerance))

    def project(self, point: Array) -> Array:
        xp = namespace(point)
        factor = self.radius / xp.hypot(point[..., 0], point[..., 1])
        return stack_last(point[..., 0] * factor, point[..., 1] * factor, point[..., 2])

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return self.from_coordinates(base, self.to_coordinates(base, vector))

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        bend = self.to_coordinates(base, u)[..., 0] * self.to_coordinates(base, v)[..., 0] / self.radius**2
        return stack_last(-base[..., 0] * bend, -base[..., 1] * bend, 0 * bend)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return self.project(normal_array(rng, size, self.point_shape))
