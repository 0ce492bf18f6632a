"""Positive definite matrices with the log-Cholesky metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, contract, gather, is_numpy, like, namespace, norm, sym, transpose
from dpmanifolds.manifolds._common import capped_exp, normal_array
from dpmanifolds.manifolds._logarithms import call_each
from dpmanifolds.manifolds.euclidean import FlatManifold
from dpmanifolds.manifolds.linearization import FlatSums, weighted_sum
from dpmanifolds.manifolds.spd import SPDBase, not_positive

_CELLS = 64


class SPDLogCholesky(SPDBase, FlatManifold):
    """SPD(k) through p = LLᵀ: coordinates are ln diag L, then the strictly lower part of L, row by row.

    ρ(p,q)² = Σ_{i>j} (L_ij − K_ij)² + Σ_i (ln L_ii − ln K_ii)²; the density of exp is 1.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> space = SPD(2, metric="log-cholesky")
    >>> round(float(space.dist(np.eye(2), np.diag([1.0, np.exp(2)]))), 9)
    1.0
    """

    metric = "log-cholesky"

    def eigenvalue_radius(self, low: float, high: float) -> float:
        """With h = ln(high/low): diag L stays within a factor e^{h/4} of that of the centre.

        ‖strictly lower L‖² = tr p − Σ L_ii² ≤ tr p − k·det(p)^{1/k} is convex in the eigenvalues, hence largest at a
        corner of the range.
        """
        k = self.k
        corners = (
            m * high + (k - m) * low - k * math.exp((m * math.log(high) + (k - m) * math.log(low)) / k)
            for m in range(k + 1)
        )
        return math.sqrt(max(corners) + k * (math.log(high / low) / 4) ** 2)

    def chart(self, point: Array) -> Array:
        if is_numpy(point):
            factors = call_each(np.linalg.cholesky, point.reshape(-1, self.k, self.k)).reshape(point.shape)
            with np.errstate(invalid="ignore"):
                return self.chart_of_factor(factors)
        return self.chart_of_factor(namespace(point).linalg.cholesky(point))

    def chart_of_factor(self, factor: Array) -> Array:
        """Global coordinates of the point with this Cholesky factor."""
        xp = namespace(factor)
        diagonal, lower = self._split(factor)
        return xp.concat([xp.log(diagonal), lower], axis=-1)

    def log_coordinates(self, base: Array, points: Array) -> Array:
        """The chart by one factorisation per record."""
        if not is_numpy(points):
            return super().log_coordinates(base, points)
        with np.errstate(all="ignore"):
            flat = points.reshape(-1, self.k, self.k)
            factors = call_each(np.linalg.cholesky, np.where(np.isfinite(flat), flat, 0.0)).reshape(points.shape)
            middle = call_each(np.linalg.cholesky, base.reshape(-1, self.k, self.k)).reshape(base.shape)
            return np.asarray(self.chart_of_factor(factors) - self.chart_of_factor(middle))

    def inverse_chart(self, coordinates: Array) -> Array:
        xp = namespace(coordinates)
        factor = self._join(xp.exp(coordinates[..., : self.k]), coordinates[..., self.k :])
        return sym(factor @ transpose(factor))

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        factor = xp.linalg.cholesky(base)
        half = xp.linalg.solve(factor, vector)
        whitened = xp.linalg.solve(factor, transpose(half))
        change = factor @ (xp.tril(whitened) * like(_half_diagonal(self.k), base))
        diagonal, lower = self._split(change)
        return xp.concat([diagonal / self._split(factor)[0], lower], axis=-1)

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(base, coordinates)
        factor = xp.linalg.cholesky(base)
        diagonal = coordinates[..., : self.k] * self._split(factor)[0]
        change = self._join(diagonal, coordinates[..., self.k :])
        product = factor @ transpose(change)
        return product + transpose(product)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        """That of LLᵀ, where the diagonal of L moves as an exponential and the rest evenly."""
        xp = namespace(base, u, v)
        factor = xp.linalg.cholesky(base)
        diagonal = self._split(factor)[0]
        first, second = (self.to_coordinates(base, vector) for vector in (u, v))
        moves = [self._join(c[..., : self.k] * diagonal, c[..., self.k :]) for c in (first, second)]
        both = first * second
        bend = self._join(both[..., : self.k] * diagonal, 0 * both[..., self.k :])
        return 2 * sym(bend @ transpose(factor) + moves[0] @ transpose(moves[1]))

    def chart_sums(self, block: Array, weights: Array) -> FlatSums:
        """The factorisation moves x by k·tr(x) units, which moves L by at most ‖L‖·‖x⁻¹‖ times that."""
        xp = namespace(block)
        try:
            factor = xp.linalg.cholesky(block)
            inverse = xp.linalg.inv(factor)
        except np.linalg.LinAlgError:
            raise not_positive() from None
        chart = self.chart_of_factor(factor)
        condition = contract(factor, factor) * contract(inverse, inverse)
        error = self.k * condition * (1 + xp.sqrt(contract(factor, factor)))
        return FlatSums(weighted_sum(chart, weights), weighted_sum(norm(chart), weights), weighted_sum(error, weights))

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        """The largest over how the radius is split between the logarithms of the diagonal (a) and the rest (b).

        L = D(I + N) with ‖N‖ ≤ ‖rest‖·‖D⁻¹‖, and (I + N)⁻¹ = Σ_{p<k} (−N)^p. The j-th largest change of a logarithm is
        at most a/√j. Cells of a, each at its worst corner.
        """
        factor = np.linalg.cholesky(center)
        diagonal, rest = np.diagonal(factor), float(np.linalg.norm(np.tril(factor, -1)))
        chart = math.hypot(float(np.linalg.norm(np.log(diagonal))), rest) + radius
        worst = 0.0
        for cell in range(_CELLS):
            below = rest + radius * math.sqrt(1 - (cell / _CELLS) ** 2)
            ladder = [capped_exp(radius * (cell + 1) / _CELLS / math.sqrt(j)) for j in range(1, self.k + 1)]
            stretch = math.hypot(*ladder)
            size = math.hypot(below, stretch * float(diagonal.max()))
            strict = below * ladder[0] / float(diagonal.min())
            series = 1.0
            for _ in range(self.k - 1):
                series = 1 + strict * series
            both = size * stretch / float(diagonal.min()) * series
            worst = max(worst, both * both * (1 + size))
        return self.k * worst + 32 * chart

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return self.inverse_chart(normal_array(rng, size, (self.dim,)))

    def _split(self, factor: Array) -> tuple[Array, Array]:
        """Diagonal and strictly lower part."""
        xp = namespace(factor)
        rows, columns = np.tril_indices(self.k, -1)
        flat = xp.reshape(factor, (*factor.shape[:-2], self.k * self.k))
        return gather(flat, np.arange(self.k) * (self.k + 1)), gather(flat, rows * self.k + columns)

    def _join(self, diagonal: Array, lower: Array) -> Array:
        """The lower triangular matrix with this diagonal and strictly lower part."""
        xp = namespace(diagonal, lower)
        source = np.full((self.k, self.k), self.dim)
        source[np.diag_indices(self.k)] = np.arange(self.k)
        source[np.tril_indices(self.k, -1)] = np.arange(self.k, self.dim)
        parts = xp.concat([diagonal, lower, xp.zeros_like(diagonal[..., :1])], axis=-1)
        return xp.reshape(gather(parts, source.ravel()), (*diagonal.shape[:-1], self.k, self.k))


def _half_diagonal(k: int) -> np.ndarray:
    return np.ones((k, k)) - np.eye(k) / 2
