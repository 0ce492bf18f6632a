"""Positive definite matrices with the log-Euclidean metric."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, dot, is_numpy, namespace, stack_last
from dpmanifolds.manifolds._common import capped_exp
from dpmanifolds.manifolds._derivatives import call_smoothly
from dpmanifolds.manifolds._log_triangle import log_triangle
from dpmanifolds.manifolds._logarithms import largest_spread
from dpmanifolds.manifolds._symmetric import (
    LARGEST_SMALL,
    apply_function,
    differential,
    from_upper_triangle,
    log_difference_quotient,
    matrix_form,
    sinhc_quotient,
    upper_triangle,
)
from dpmanifolds.manifolds.base import Seen
from dpmanifolds.manifolds.euclidean import FlatManifold
from dpmanifolds.manifolds.linearization import FlatSums, weighted_sum
from dpmanifolds.manifolds.spd import (
    SPDBase,
    log_summary,
    log_triangle_of_one,
    positive_log_entries,
    positive_matrix_logs,
)


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
    has_symmetric_coordinates = True

    def chart(self, point: Array) -> Array:
        return upper_triangle(_matrix_function("log", point))

    def log_coordinates(self, base: Array, points: Array) -> Array:
        if is_numpy(base) and is_numpy(points) and base.ndim == points.ndim == 2:
            return log_triangle_of_one(points) - log_triangle_of_one(base)
        if is_numpy(base) and base.ndim == 2 and base.dtype == np.float64:
            center = chart_of(base.tobytes(), self.k)
            return log_triangle(points, self.k) - (0.0 if center is None else center)
        return log_triangle(points, self.k) - log_triangle(base[None, ...], self.k)[0, ...]

    def see(self, base: Array, points: Array) -> Seen | None:
        return self._see(points, None, chart_of(base.tobytes(), self.k)) if is_numpy(points) else None

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

    def chart_sums(self, block: Array, weights: Array) -> FlatSums:
        """As for any chart. The closed forms for small k move x by less than the 4k²·λ_max units of an eigensolver, of
        which the logarithm makes at most 1/λ_min.
        """
        k = self.k
        total, size, spread = (_small_sums if k <= LARGEST_SMALL else _large_sums)(k, block, weights)
        return FlatSums(total, size, 4 * k * k * weighted_sum(spread, weights))

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        """log p is the centre's plus a matrix of norm at most r: the condition grows by at most e^{√2r}."""
        logs = np.log(np.linalg.eigvalsh(center))
        condition = min(condition, capped_exp(float(logs[-1] - logs[0]) + math.sqrt(2) * radius))
        return 4 * self.k**2 * condition + 32 * (float(np.linalg.norm(logs)) + radius)

    @property
    def rounding_in_double(self) -> float:
        """Logarithms by products report a bound of their own."""
        return 4 * self.k**2 * largest_spread(self.k)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return apply_function(self._random_symmetric(size, rng), np.exp)


@lru_cache(maxsize=64)
def chart_of(numbers: bytes, k: int) -> np.ndarray | None:
    """Coordinates of the logarithm of a public point; None for the identity."""
    chart = log_triangle(np.frombuffer(numbers).reshape(1, k, k), k)[0]
    return chart if np.any(chart) else None


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


def _small_sums(k: int, block: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Sums, and what bounds the rounding of each record's logarithm in units of 4k²."""
    xp = namespace(block)
    entries = {(i, j): xp.asarray(block[..., i, j], copy=True) for i in range(k) for j in range(i, k)}
    small = positive_log_entries(entries, k)
    coordinates, squared, spread = log_summary(small, k)
    total = stack_last(*(weighted_sum(entry, weights) for entry in coordinates))
    return total, weighted_sum(xp.sqrt(squared), weights), spread


def _large_sums(k: int, block: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The same for larger matrices."""
    xp = namespace(block)
    logs, spread = positive_matrix_logs(block)
    flat = xp.reshape(logs, (*logs.shape[:-2], k * k))
    # no less than Σ w‖log x‖, by Cauchy and Schwarz
    size = xp.sqrt(xp.sum(weights) * weighted_sum(dot(flat, flat), weights))
    return upper_triangle(weighted_sum(logs, weights)), size, spread
