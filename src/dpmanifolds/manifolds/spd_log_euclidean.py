"""Positive definite matrices with the log-Euclidean metric."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, namespace
from dpmanifolds.manifolds._derivatives import call_smoothly
from dpmanifolds.manifolds._matrix_log import log_triangle
from dpmanifolds.manifolds._spectral import matrix_form
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

    def eigenvalue_radius(self, low: float, high: float) -> float:
        """½√k·ln(high/low), attained."""
        return math.sqrt(self.k) * math.log(high / low) / 2

    def chart(self, point: Array) -> Array:
        return upper_triangle(_matrix_function("log", point))

    def log_coordinates(self, base: Array, points: Array) -> Array:
        return log_triangle(points, self.k) - log_triangle(base[None, ...], self.k)[0, ...]

    def inverse_chart(self, coordinates: Array) -> Array:
        return _matrix_function("exp", from_upper_triangle(coordinates, self.k))

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        smooth = partial(matrix_form, "log")
        return upper_triangle(call_smoothly(_log_differential, smooth, (2, 2), base, vector))

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        matrix = from_upper_triangle(coordinates, self.k)
        return call_smoothly(_exp_differential, _smooth_exp_differential, (2, 2), base, matrix)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        """D²exp at log p, of the two velocities of log."""
        steps = (from_upper_triangle(self.to_coordinates(base, vector), self.k) for vector in (u, v))
        return matrix_form("exp", _matrix_function("log", base), *steps)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return apply_function(self._random_symmetric(size, rng), np.exp)


def _matrix_function(name: str, matrix: Array) -> Array:
    if is_numpy(matrix):
        return apply_function(matrix, getattr(np, name))
    return matrix_form(name, matrix)


def _log_differential(base: Array, vector: Array) -> Array:
    """D log at the base."""
    log_values, vectors = _log_eigen(base)
    return differential(vectors, log_difference_quotient(log_values), vector)


def _exp_differential(base: Array, vector: Array) -> Array:
    """D exp at the logarithm of the base."""
    log_values, vectors = _log_eigen(base)
    return differential(vectors, sinhc_quotient(log_values), vector)


def _smooth_exp_differential(base: Array, vector: Array) -> Array:
    return matrix_form("exp", matrix_form("log", base), vector)


def _log_eigen(base: Array) -> tuple[Array, Array]:
    xp = namespace(base)
    values, vectors = xp.linalg.eigh(base)
    return xp.log(values), vectors
