"""Flat space, and the spaces that are flat after a change of variables."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, dot, like, namespace, norm, root
from dpmanifolds._validate import positive_integer
from dpmanifolds.manifolds._common import check_gradient, normal_array
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.linearization import FlatSums, weighted_sum


class FlatManifold(Manifold):
    """A space that a global chart maps isometrically onto R^dim.

    A subclass gives the chart, its inverse, and the differential of both; every other operation follows:
    exp_p v = chart⁻¹(chart(p) + d chart_p(v)).

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.manifolds import FlatManifold
    >>> space = SPD(2, "log-euclidean")
    >>> isinstance(space, FlatManifold), space.chart(np.eye(2)).tolist()
    (True, [0.0, 0.0, 0.0])
    """

    is_model_space = True
    has_chart = True
    curvature_bounds = (0.0, 0.0)
    injectivity_radius = math.inf

    @abstractmethod
    def chart(self, point: Array) -> Array:
        """Global coordinates (..., dim) in which distance is Euclidean."""

    @abstractmethod
    def inverse_chart(self, coordinates: Array) -> Array:
        """The point with these global coordinates."""

    def chart_sums(self, block: Array, weights: Array) -> FlatSums:
        """The sums of a block, shapes (*batch, dim), batch and batch."""
        chart = self.chart(block)
        size = weighted_sum(norm(chart), weights)
        return FlatSums(weighted_sum(chart, weights), size, 0 * size)

    def exp(self, base: Array, vector: Array) -> Array:
        return self.inverse_chart(self.chart(base) + self.to_coordinates(base, vector))

    def log(self, base: Array, point: Array) -> Array:
        return self.from_coordinates(base, self.chart(point) - self.chart(base))

    def log_coordinates(self, base: Array, points: Array) -> Array:
        return self.chart(points) - self.chart(base)

    def exp_coordinates(self, base: Array, coordinates: np.ndarray) -> Array:
        """The differential of the chart and its inverse cancel; both would lose the digits of a bad condition."""
        return self.inverse_chart(self.chart(base) + like(coordinates, base))

    def dist(self, a: Array, b: Array) -> Array:
        return root(self.squared_dist(a, b))

    def squared_dist(self, a: Array, b: Array) -> Array:
        difference = self.chart(b) - self.chart(a)
        return dot(difference, difference)

    def geodesic(self, a: Array, b: Array, t: Array | float) -> Array:
        start = self.chart(a)
        step = self.chart(b) - start
        return self.inverse_chart(start + (t if isinstance(t, (int, float)) else t[..., None]) * step)

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return dot(self.to_coordinates(base, u), self.to_coordinates(base, v))

    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        return self.from_coordinates(to, self.to_coordinates(base, vector))

    def retract(self, base: Array, vector: Array) -> Array:
        """exp itself: there is nothing cheaper."""
        return self.exp(base, vector)

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        return 0 * self.inner(base, vector, vector)


class Euclidean(FlatManifold):
    """R^d with the dot product.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> float(Euclidean(2).dist(np.array([0.0, 0.0]), np.array([3.0, 4.0])))
    5.0
    """

    log_can_fail = False
    has_units = True
    typed = "euclidean:5"

    def __init__(self, d: int) -> None:
        self.dim = positive_integer("d", d)
        self.point_shape = (self.dim,)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.dim,)

    @property
    def words(self) -> str:
        return f"vectors of {self.dim} numbers"

    def describe_distance(self, point: Array, distance: float) -> str:
        return f"{distance / math.sqrt(self.dim):.2g} in a coordinate (root mean square)"

    @property
    def picture(self) -> str:  # type: ignore[override]
        return "plane" if self.dim == 2 else "numbers"

    @property
    def natural_center(self) -> Array:
        return np.zeros(self.dim)

    def chart(self, point: Array) -> Array:
        return point

    def inverse_chart(self, coordinates: Array) -> Array:
        return coordinates

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        return vector

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        return coordinates

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return vector

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return 0 * (u + v)

    def gradient_coordinates(self, base: Array, gradient: Array) -> Array:
        check_gradient(self, gradient)
        return gradient

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        xp = namespace(point)
        return xp.all(xp.isfinite(point), axis=-1)

    def project(self, point: Array) -> Array:
        return point

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        return 32 * (float(np.linalg.norm(center)) + radius)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return normal_array(rng, size, self.point_shape)
