"""Maps on a grid of voxels, of which the smooth part counts."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, transpose
from dpmanifolds._validate import positive_integer, shown
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds._common import normal_array
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.euclidean import FlatManifold
from dpmanifolds.manifolds.names import manifold_from_json


class SmoothMaps(FlatManifold):
    """Maps x of points of a flat manifold on a grid of voxels, up to what is rough in them.

    With c(x) the chart of every voxel and B the orthonormal cosines of fewer than `frequencies` half-waves along each
    axis of the grid, ρ(x,y) = ‖Bᵀ(c(x) − c(y))‖: the distance of `Power` to the nearest map that differs from y by a
    rough one alone. Two maps that have the same smooth part are one point. exp adds a smooth map and leaves everything
    else of its base as it is: a mean that is released in a ball around a public template is that template, with its
    details, moved smoothly. Where voxels are missing, records take those of the template.

    A map of m voxels has a ball √m times as wide as a voxel's, and noise in m·d dimensions: of 200 people and 10,000
    tensors nothing is left but the centre. Smooth maps have frequencies³·d dimensions, whatever m is.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, SmoothMaps
    >>> space = SmoothMaps(SPD(3, "log-euclidean"), (20, 20, 20), frequencies=4)
    >>> space.point_shape, space.dim
    ((20, 20, 20, 3, 3), 384)
    >>> center, brighter = space.natural_center, np.e * space.natural_center
    >>> round(float(space.dist(center, brighter) / np.sqrt(8000 * 3)), 9)  # √3 in every voxel
    1.0
    """

    def __init__(self, manifold: Manifold, shape: tuple[int, ...], frequencies: int) -> None:
        if not isinstance(manifold, FlatManifold) or manifold.is_complex:
            raise ArgumentError(
                f"SmoothMaps needs a flat manifold, such as SPD(3, 'log-euclidean'); got {shown(manifold)}.",
                argument="manifold",
            )
        if not isinstance(shape, (tuple, list)) or not shape:
            raise ArgumentError(
                f"must be the sizes of a grid, such as (20, 20, 20); got {shown(shape)}.", argument="shape"
            )
        self.manifold = manifold
        self.shape = tuple(positive_integer("shape", size) for size in shape)
        self.frequencies = positive_integer("frequencies", frequencies)
        self.kept = tuple(min(size, self.frequencies) for size in self.shape)
        self.dim = math.prod(self.kept) * manifold.dim
        self.point_shape = (*self.shape, *manifold.point_shape)
        self.rules = manifold.rules

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.manifold, self.shape, self.frequencies)

    @property
    def words(self) -> str:
        return f"smooth maps of {'×'.join(map(str, self.shape))} {self.manifold.words}"

    def to_json(self) -> dict[str, Any]:
        own = {"shape": list(self.shape), "frequencies": self.frequencies}
        return {"name": type(self).__name__, "manifold": self.manifold.to_json(), **own}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(manifold_from_json(data["manifold"]), tuple(data["shape"]), data["frequencies"])

    @property
    def natural_center(self) -> Array | None:
        center = self.manifold.natural_center
        return None if center is None else np.broadcast_to(center, self.point_shape).copy()

    def chart(self, point: Array) -> Array:
        return self._smooth_part(self.manifold.chart(point))

    def log_coordinates(self, base: Array, points: Array) -> Array:
        return self._smooth_part(self.manifold.log_coordinates(base, points))

    def inverse_chart(self, coordinates: Array) -> Array:
        """The map that has no rough part."""
        return self.manifold.inverse_chart(self._map_of(coordinates))

    def exp(self, base: Array, vector: Array) -> Array:
        return self._moved(base, self.to_coordinates(base, vector))

    def exp_coordinates(self, base: Array, coordinates: np.ndarray) -> Array:
        return self._moved(base, like(coordinates, base))

    def geodesic(self, a: Array, b: Array, t: Array | float) -> Array:
        step = self.chart(b) - self.chart(a)
        return self._moved(a, (t if isinstance(t, (int, float)) else t[..., None]) * step)

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        return self._smooth_part(self.manifold.to_coordinates(base, vector))

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        return self.manifold.from_coordinates(base, self._map_of(coordinates))

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return self.manifold.acceleration(base, u, v)

    def project_tangent(self, base: Array, vector: Array) -> Array:
        """The smooth part of a tangent map, in the metric."""
        return self.from_coordinates(base, self.to_coordinates(base, self.manifold.project_tangent(base, vector)))

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        """Whether every voxel holds a point."""
        xp = namespace(point)
        return xp.all(self.manifold.belongs(point, tolerance), axis=self._axes)

    def broken_rule(self, points: Array) -> Array:
        broken = self.manifold.broken_rule(points)
        return namespace(broken).max(broken, axis=self._axes)

    def first_broken_rule(self, block: Array) -> str | None:
        return self.manifold.first_broken_rule(block)

    def place(self, points: Array) -> Array:
        return self.manifold.place(points)

    def project(self, point: Array) -> Array:
        return self.manifold.project(point)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return self.inverse_chart(normal_array(rng, size, (self.dim,)))

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-len(self.shape), 0))

    def _moved(self, base: Array, coordinates: Array) -> Array:
        return self.manifold.inverse_chart(self.manifold.chart(base) + self._map_of(coordinates))

    def _smooth_part(self, values: Array) -> Array:
        """Bᵀv for maps of coordinates (..., *shape, d): one axis after the other, one small product for each record."""
        leading = tuple(values.shape[: values.ndim - len(self.shape) - 1])
        return self._along_axes(values, leading, self.shape, self.kept, transposed=False)

    def _map_of(self, coordinates: Array) -> Array:
        """The map (..., *shape, d) of coordinates with these cosines."""
        leading = tuple(coordinates.shape[:-1])
        found = self._along_axes(coordinates, leading, self.kept, self.shape, transposed=True)
        return namespace(found).reshape(found, (*leading, *self.shape, self.manifold.dim))

    def _along_axes(
        self,
        values: Array,
        leading: tuple[int, ...],
        given: tuple[int, ...],
        wanted: tuple[int, ...],
        *,
        transposed: bool,
    ) -> Array:
        xp = namespace(values)
        done = 1
        for number, size in enumerate(given):
            cosines = like(_cosines(self.shape[number], self.kept[number]), values)
            rest = math.prod(given[number + 1 :]) * self.manifold.dim
            values = xp.reshape(values, (*leading, done, size, rest))
            values = (transpose(cosines) if transposed else cosines) @ values
            done *= wanted[number]
        return xp.reshape(values, (*leading, done * self.manifold.dim))


def _cosines(size: int, kept: int) -> np.ndarray:
    """Orthonormal rows cos(π·f·(i + ½)/size), f = 0, 1, …: those of the discrete cosine transform."""
    angles = np.pi * np.outer(np.arange(kept), np.arange(size) + 0.5) / size
    rows = np.cos(angles) * math.sqrt(2 / size)
    rows[0] = math.sqrt(1 / size)
    return rows
