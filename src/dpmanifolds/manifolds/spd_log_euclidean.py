"""Positive definite matrices with the log-Euclidean metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, namespace
from dpmanifolds.manifolds._matrix_log import log_triangle
from dpmanifolds.manifolds._symmetric import (
    apply_function,
    differential,
    from_upper_triangle,
    log_difference_quotient,
    sinhc_quotient,
    upper_triangle,
)
from dpmanifolds.manifolds.euclidean import FlatManifold
from dpmanifolds.manifolds.spd import SPDBase

__all__ = ["SPDLogEuclidean"]


class SPDLogEuclidean(SPDBase, FlatManifold):
    """SPD(k) with ρ(p,q) = ‖logm p − logm q‖: the matrix logarithm is an isometry onto the symmetric matrices.

    ⟨u,v⟩_p = tr(D logm_p[u] · D logm_p[v]); the density of exp is 1.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> space = SPD(2, metric="log-euclidean")
    >>> round(float(space.dist(np.eye(2), np.diag([1.0, np.exp(2)]))), 9)
    2.0
    """

    metric = "log-euclidean"

    def chart(self, point: Array) -> Array:
        xp = namespace(point)
        return upper_triangle(apply_function(point, xp.log))

    def log_coordinates(self, base: Array, points: Array) -> Array:
        return log_triangle(points, self.k) - log_triangle(base[None, ...], self.k)[0, ...]

    def inverse_chart(self, coordinates: Array) -> Array:
        xp = namespace(coordinates)
        return apply_function(from_upper_triangle(coordinates, self.k), xp.exp)

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        log_values, vectors = _log_eigen(base)
        return upper_triangle(differential(vectors, log_difference_quotient(log_values), vector))

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        log_values, vectors = _log_eigen(base)
        return differential(vectors, sinhc_quotient(log_values), from_upper_triangle(coordinates, self.k))

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return apply_function(self._random_symmetric(size, rng), np.exp)


def _log_eigen(base: Array) -> tuple[Array, Array]:
    xp = namespace(base)
    values, vectors = xp.linalg.eigh(base)
    return xp.log(values), vectors
