"""The affine-invariant metric: logarithms of whitened matrices, one decomposition each per pass."""

from __future__ import annotations

import math
from functools import cached_property, reduce
from itertools import combinations

import numpy as np

from dpmanifolds._arrays import Array, contract, eps, eye, is_numpy, namespace, stack_last, sym, transpose
from dpmanifolds.manifolds import SPDAffineInvariant
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL, jacobi_eigen
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle
from dpmanifolds.statistics._linearize import (
    HessianBlock,
    Linearization,
    linearize,
    outer_sum,
    spread_weights,
    weighted_sum,
)
from dpmanifolds.statistics._positive import (
    log_near_diagonal,
    log_summary,
    not_positive,
    positive_eigen,
    positive_log_entries,
)
from dpmanifolds.statistics.kernels.device import log_sums

__all__ = ["linearize_on_device", "whitened_entries"]

_PIECE_BYTES = 320_000


@linearize.register
def _(manifold: SPDAffineInvariant, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
    """Hess V = U (h_ab coth h_ab ∘ UᵀVU) Uᵀ, h_ab = (l_a − l_b)/2, for L⁻¹xL⁻ᵀ = U e^l Uᵀ and base = LLᵀ."""
    xp = namespace(base, points)
    whitener = xp.linalg.inv(xp.linalg.cholesky(base))
    if manifold.k > LARGEST_SMALL:
        return _large(manifold, base, whitener, points, weights, hessian)
    entries = whitened_entries(whitener, points)
    if hessian:
        return _small(manifold, base, entries, weights)
    return _small_first_order(manifold, base, entries, weights)


def linearize_on_device(
    manifold: SPDAffineInvariant, base: np.ndarray, points: Array, weights: Array | None, hessian: bool
) -> Linearization | None:
    """k ≤ 3 by a fused kernel, with everything but the records on the host; None where a record needs more care."""
    whitener = np.linalg.inv(np.linalg.cholesky(base))
    sums = log_sums(points, weights, whitener=whitener, hessian=hessian)
    if sums is None:
        return None
    spectrum = np.linalg.eigvalsh(base)
    one = np.ones_like(sums.squared)
    return Linearization(
        value=sums.squared / 2,
        pull=sums.total,
        convexity=one,
        rounding=4 * manifold.k**2 * eps(base) * spectrum[-1] / spectrum[0] * sums.spread,
        farthest=sums.farthest,
        hessian=None if sums.hessian is None else eye(manifold.dim, base) + sums.hessian,
        covered=1.0,
    )


def _sums(
    manifold: SPDAffineInvariant, base: Array, squared: Array, spread: Array, pull: Array, weights: Array
) -> Linearization:
    """Sums from squared distances and the conditions λ_max/λ_min of the whitened matrices, both (n, *batch).

    Rounding: whitening and eigensolver perturb a whitened matrix W by at most 4k²·eps·cond(base)·λ_max(W), and the
    matrix logarithm has Lipschitz constant 1/λ_min(W).
    """
    xp = namespace(squared)
    spectrum = xp.linalg.eigvalsh(base)
    unit = 4 * manifold.k**2 * eps(squared) * spectrum[..., -1] / spectrum[..., 0]
    return Linearization(
        value=weighted_sum(squared, weights) / 2,
        pull=pull,
        convexity=weighted_sum(xp.ones_like(squared), weights),
        rounding=unit * weighted_sum(spread, weights),
        farthest=xp.sqrt(xp.max(squared, axis=0)),
        covered=float(xp.sum(weights)),
    )


def _small(
    manifold: SPDAffineInvariant, base: Array, entries: dict[tuple[int, int], Array], weights: Array
) -> Linearization:
    """k ≤ 3: one array per entry, Jacobi rotations, the dense Hessian I + Σ (h coth h − 1) e eᵀ."""
    k = manifold.k
    values, u = jacobi_eigen(entries, k)
    xp = namespace(values[0])
    if not all(bool(xp.all(value > 0)) for value in values):
        raise not_positive()
    logs = [xp.log(value) for value in values]
    root = math.sqrt(2)
    pairs = list(combinations(range(k), 2))
    scaled = [[logs[a] * u[i][a] for a in range(k)] for i in range(k)]
    coordinates = [sum(scaled[i][a] * u[i][a] for a in range(k)) for i in range(k)]
    coordinates += [root * sum(scaled[i][a] * u[j][a] for a in range(k)) for i, j in pairs]
    pull = stack_last(*(weighted_sum(entry, weights) for entry in coordinates))
    squared = sum(log * log for log in logs)
    spread = reduce(xp.maximum, values) / reduce(xp.minimum, values)
    result = _sums(manifold, base, squared, spread, pull, weights)
    hessian = result.convexity[..., None, None] * eye(manifold.dim, pull)
    for a, b in pairs:
        axis = [root * u[i][a] * u[i][b] for i in range(k)]
        axis += [u[i][a] * u[j][b] + u[j][a] * u[i][b] for i, j in pairs]
        excess = _log_gap_factor(values[a], values[b], logs[a], logs[b]) - 1
        hessian = hessian + outer_sum(stack_last(*axis), spread_weights(weights, excess.ndim) * excess)
    result.hessian = hessian
    return result


def _small_first_order(
    manifold: SPDAffineInvariant, base: Array, entries: dict[tuple[int, int], Array], weights: Array
) -> Linearization:
    """k ≤ 3 without Hessian: closed-form logarithms."""
    logs = positive_log_entries(entries, manifold.k)
    coordinates, squared, spread = log_summary(logs, manifold.k)
    pull = stack_last(*(weighted_sum(entry, weights) for entry in coordinates))
    return _sums(manifold, base, squared, spread, pull, weights)


def _log_gap_factor(a: Array, b: Array, log_a: Array, log_b: Array) -> Array:
    """h·coth(h) at h = (log a − log b)/2, through coth(h) = (a + b)/(a − b).

    As (|h| + t)/(|tanh h| + t) with a small t: right to about t everywhere, and 1 where a = b.
    """
    xp = namespace(a, b)
    small = math.sqrt(eps(a)) / 8
    total = a + b
    return (xp.abs(log_a - log_b) / 2 + small) * total / (xp.abs(a - b) + small * total)


def whitened_entries(whitener: Array, points: Array) -> dict[tuple[int, int], Array]:
    """Entries of MxMᵀ, for one M by a single matrix product with its symmetrised Kronecker square."""
    xp = namespace(whitener, points)
    k = points.shape[-1]
    positions = [(i, j) for i in range(k) for j in range(i, k)]
    if whitener.ndim > 2:
        whitened = whitener @ points @ transpose(whitener)
        return {(i, j): whitened[..., i, j] for i, j in positions}
    kernel = xp.stack([xp.reshape(whitener[i, :][:, None] * whitener[j, :][None, :], (k * k,)) for i, j in positions])
    flat = kernel @ transpose(xp.reshape(points, (-1, k * k)))
    return {at: flat[row, :] for row, at in enumerate(positions)}


def _large(
    manifold: SPDAffineInvariant, base: Array, whitener: Array, points: Array, weights: Array, hessian: bool
) -> Linearization:
    """k > 3: LAPACK, and the Hessian as an operator on the kept eigenvectors."""
    xp = namespace(base, points)
    values, vectors = positive_eigen(whitener @ points @ transpose(whitener))
    logs = xp.log(values)
    weighted_logs = spread_weights(weights, logs.ndim) * logs
    pull = upper_triangle(_spectral_sum(vectors, weighted_logs))
    squared = xp.sum(logs * logs, axis=-1)
    result = _sums(manifold, base, squared, values[..., -1] / values[..., 0], pull, weights)
    if hessian:
        result.blocks = [_SpectralBlock(manifold, values, vectors, weights)]
    return result


class _SpectralBlock(HessianBlock):
    """Eigenvectors of a block of whitened matrices, for the Hessian and for logarithms close by."""

    def __init__(self, manifold: SPDAffineInvariant, values: Array, vectors: Array, weights: Array) -> None:
        self.manifold = manifold
        self.values, self.vectors, self.weights = values, vectors, weights
        self.memory = 2 * 8 * math.prod(vectors.shape)

    @cached_property
    def _factor(self) -> Array:
        rows, columns = (..., slice(None), None), (..., None, slice(None))
        logs = namespace(self.values).log(self.values)
        gaps = _log_gap_factor(self.values[rows], self.values[columns], logs[rows], logs[columns])
        return spread_weights(self.weights, gaps.ndim) * gaps

    def apply(self, vector: Array) -> Array:
        inner = transpose(self.vectors) @ (from_upper_triangle(vector, self.manifold.k) @ self.vectors)
        return upper_triangle(_spectral_sum(self.vectors, self._factor * inner))

    def nearby(self, base: Array, points: Array, weights: Array, allowance: float) -> Linearization | None:
        """Logarithms of UᵀWU = D + E by the perturbation series of `log_near_diagonal`: matrix products only."""
        xp = namespace(base, points)
        whitener = xp.linalg.inv(xp.linalg.cholesky(base))
        seen = transpose(self.vectors) @ (whitener @ points @ transpose(whitener)) @ self.vectors
        near = log_near_diagonal(seen)
        if near is None:
            return None
        logs, remainder, spread = near
        if float(xp.max(weighted_sum(remainder, weights))) > allowance * float(xp.sum(weights)):
            return None
        pull = upper_triangle(_spectral_sum(self.vectors, spread_weights(weights, logs.ndim) * logs))
        result = _sums(self.manifold, base, contract(logs, logs), spread, pull, weights)
        result.rounding = result.rounding + weighted_sum(remainder, weights)
        return result


def _spectral_sum(vectors: Array, middle: Array) -> Array:
    """Σ_i U_i m_i U_iᵀ over the first axis, for symmetric m_i (n, *batch, k, k) or diagonals (n, *batch, k)."""
    xp = namespace(vectors, middle)
    k = vectors.shape[-1]
    full = middle.ndim == vectors.ndim
    if vectors.ndim > 3:
        rows = transpose(vectors)
        return sym(xp.sum(vectors @ (middle @ rows if full else middle[..., None] * rows), axis=0))
    # long products of contiguous arrays are several times faster than many small ones and a sum; in pieces that
    # stay in the cache and below the size at which an allocator maps fresh pages
    size = vectors.shape[0] if not is_numpy(vectors) else max(1, _PIECE_BYTES // (8 * k * k))
    total: Array = 0.0
    for start in range(0, vectors.shape[0], size):
        piece, inner = vectors[start : start + size, ...], middle[start : start + size, ...]
        tall = xp.reshape(transpose(piece), (-1, k))
        if full:
            moved = xp.reshape(inner @ xp.reshape(tall, piece.shape), (-1, k))
        else:
            moved = tall * xp.reshape(inner, (-1, 1))
        total = total + transpose(tall) @ moved
    return sym(total)
