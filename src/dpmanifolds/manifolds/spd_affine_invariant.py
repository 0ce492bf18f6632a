"""Positive definite matrices with the affine-invariant metric."""

from __future__ import annotations

import math
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np

from dpmanifolds._arrays import (
    Array,
    contract,
    eps,
    eye,
    is_numpy,
    log_sinhc,
    namespace,
    norm,
    root,
    stack_last,
    sym,
    transpose,
)
from dpmanifolds.manifolds._common import capped_exp
from dpmanifolds.manifolds._derivatives import differentiated_by
from dpmanifolds.manifolds._log_triangle import log_triangle, whitened_entries, whitener_of
from dpmanifolds.manifolds._symmetric import (
    LARGEST_SMALL,
    apply_function,
    from_upper_triangle,
    jacobi_eigen,
    matrix_form,
    upper_triangle,
)
from dpmanifolds.manifolds.base import Seen
from dpmanifolds.manifolds.linearization import HessianBlock, Linearization, outer_sum, spread_weights, weighted_sum
from dpmanifolds.manifolds.spd import (
    SPDBase,
    log_near_diagonal,
    log_summary,
    log_triangle_of_one,
    not_positive,
    positive_eigen,
    positive_log_entries,
)

_PIECE_BYTES = 320_000


class SPDAffineInvariant(SPDBase):
    """SPD(k) with ⟨u,v⟩_p = tr(p⁻¹u p⁻¹v), invariant under p ↦ a p aᵀ; curvature in [−½, 0].

    With p = LLᵀ and the singular values of L_p⁻¹L_q = U Σ Vᵀ (not the eigenvalues of their product: half the
    digits of a badly conditioned pair survive that way): ρ(p,q) = 2‖log Σ‖, log_p q = L U (2 log Σ) Uᵀ Lᵀ.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> round(float(SPD(2).dist(np.eye(2), np.exp(1) * np.eye(2))), 9)
    1.414213562
    """

    metric = "affine-invariant"
    flat_metric = "log-euclidean"
    has_symmetric_coordinates = True
    injectivity_radius = math.inf

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self.curvature_bounds = (-0.5, 0.0) if self.k > 1 else (0.0, 0.0)

    @property
    def average_curvature(self) -> float:
        """Ricci is −k/4 times the metric across the multiples of the base, and 0 along them."""
        return -self.k / (4 * self.dim) if self.k > 1 else 0.0

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        lower = namespace(base, vector).linalg.cholesky(base)
        return _exp_whitened(lower, _whiten(lower, vector))

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        lower = namespace(base, vector).linalg.cholesky(base)
        return sym(lower @ matrix_form("exp", _whiten(lower, vector)) @ transpose(lower))

    @differentiated_by("_smooth_log")
    def log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        lower, vectors, values = _relative_singular(base, point)
        moved = lower @ vectors
        return sym((moved * (2 * xp.log(values))[..., None, :]) @ transpose(moved))

    def _smooth_log(self, base: Array, point: Array) -> Array:
        lower = namespace(base, point).linalg.cholesky(base)
        return sym(lower @ matrix_form("log", _whiten(lower, point)) @ transpose(lower))

    def log_coordinates(self, base: Array, points: Array) -> Array:
        """Those of log(L⁻¹xL⁻ᵀ), base = LLᵀ: one logarithm of a symmetric matrix per record."""
        lower = namespace(base, points).linalg.cholesky(base)
        whitener = namespace(lower).linalg.inv(lower)
        if points.ndim == base.ndim == 2 and is_numpy(points):
            return log_triangle_of_one(whitener @ points @ whitener.T)
        return log_triangle(points, self.k, whitener)

    def exp_coordinates(self, base: Array, coordinates: np.ndarray) -> Array:
        """Without whitening a tangent vector, which would find the coordinates again."""
        if not is_numpy(base):
            return super().exp_coordinates(base, coordinates)
        return _exp_whitened(np.linalg.cholesky(base), from_upper_triangle(coordinates, self.k))

    def see(self, base: Array, points: Array) -> Seen | None:
        return self._see(points, whitener_of(base.tobytes(), self.k), None) if is_numpy(points) else None

    @differentiated_by("_smooth_dist")
    def dist(self, a: Array, b: Array) -> Array:
        xp = namespace(a, b)
        return 2 * norm(xp.log(xp.linalg.svdvals(_relative_root(xp.linalg.cholesky(a), b))))

    def _smooth_dist(self, a: Array, b: Array) -> Array:
        return root(self._smooth_squared_dist(a, b))

    @differentiated_by("_smooth_squared_dist")
    def squared_dist(self, a: Array, b: Array) -> Array:
        distance = self.dist(a, b)
        return distance * distance

    def _smooth_squared_dist(self, a: Array, b: Array) -> Array:
        whitened = matrix_form("log", _whiten(namespace(a, b).linalg.cholesky(a), b))
        return contract(whitened, whitened)

    @differentiated_by("_smooth_geodesic", 2, 2, 0)
    def geodesic(self, a: Array, b: Array, t: Array | float) -> Array:
        """L U Σ^2t Uᵀ Lᵀ: never through a tangent matrix, which could not hold a badly conditioned pair."""
        xp = namespace(a, b)
        lower, vectors, values = _relative_singular(a, b)
        time = t if isinstance(t, (int, float)) else t[..., None]
        root = lower @ (vectors * xp.exp(time * xp.log(values))[..., None, :])
        return sym(root @ transpose(root))

    def _smooth_geodesic(self, a: Array, b: Array, t: Array | float) -> Array:
        lower = namespace(a, b).linalg.cholesky(a)
        time = t if isinstance(t, (int, float)) else t[..., None, None]
        return sym(lower @ matrix_form("exp", time * matrix_form("log", _whiten(lower, b))) @ transpose(lower))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        lower = namespace(base, u, v).linalg.cholesky(base)
        return contract(_whiten(lower, u), _whiten(lower, v))

    @differentiated_by("_smooth_transport")
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        lower, vectors, values = _relative_singular(base, to)
        inner = transpose(vectors) @ _whiten(lower, vector) @ vectors
        moved = lower @ (vectors * values[..., None, :])
        return sym(moved @ inner @ transpose(moved))

    def _smooth_transport(self, base: Array, to: Array, vector: Array) -> Array:
        lower = namespace(base, to, vector).linalg.cholesky(base)
        half = lower @ matrix_form("exp", matrix_form("log", _whiten(lower, to)) / 2)
        return sym(half @ _whiten(lower, vector) @ transpose(half))

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        return upper_triangle(_whiten(namespace(base, vector).linalg.cholesky(base), vector))

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        lower = namespace(base, coordinates).linalg.cholesky(base)
        return sym(lower @ from_upper_triangle(coordinates, self.k) @ transpose(lower))

    def retract(self, base: Array, vector: Array) -> Array:
        """p + v + ½v p⁻¹v = ½p + ½(p + v)p⁻¹(p + v): positive definite for every v, of second order."""
        xp = namespace(base, vector)
        half = xp.linalg.solve(xp.linalg.cholesky(base), base + vector)
        return sym(base + transpose(half) @ half) / 2

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return sym(u @ namespace(base, u, v).linalg.solve(base, v))

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        values = xp.linalg.eigvalsh(_whiten(xp.linalg.cholesky(base), vector))
        gaps = (values[..., :, None] - values[..., None, :]) / 2
        return xp.sum(log_sinhc(gaps), axis=(-2, -1)) / 2

    def linearize(self, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
        """Hess V = U (h_ab coth h_ab ∘ UᵀVU) Uᵀ, h_ab = (l_a − l_b)/2, for L⁻¹xL⁻ᵀ = U e^l Uᵀ and base = LLᵀ."""
        xp = namespace(base, points)
        whitener = xp.linalg.inv(xp.linalg.cholesky(base))
        if self.k > LARGEST_SMALL:
            return _large(self, base, whitener, points, weights, hessian)
        entries = whitened_entries(whitener, points)
        if hessian:
            return _small(self, base, entries, weights)
        return _small_first_order(self, base, entries, weights)

    def ambient_moment(self, points: Array, weights: Array) -> Array:
        """Σ w x and Σ w x⁻¹, stacked."""
        xp = namespace(points)
        try:
            inverses = xp.linalg.inv(points)
        except np.linalg.LinAlgError:
            raise not_positive() from None
        return xp.stack([weighted_sum(points, weights), weighted_sum(inverses, weights)])

    def point_of_moment(self, moment: Array) -> Array:
        """The geometric mean of the arithmetic and the harmonic mean; the former if rounding spoils the other."""
        xp = namespace(moment)
        arithmetic = sym(moment[0, ...])
        try:
            harmonic = sym(xp.linalg.inv(sym(moment[1, ...])))
            lower = xp.linalg.cholesky(arithmetic)
        except np.linalg.LinAlgError:
            raise not_positive() from None
        half = xp.linalg.solve(lower, harmonic)
        relative = sym(xp.linalg.solve(lower, transpose(half)))
        if not bool(xp.all(xp.linalg.eigvalsh(relative) > 0)):
            return arithmetic
        return sym(lower @ apply_function(relative, xp.sqrt) @ transpose(lower))

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        """cond(base) ≤ cond(centre)·e^{√2r}, and a whitened record has condition at most e^{√2·2r}."""
        values = np.linalg.eigvalsh(center)
        return 4 * self.k**2 * float(values[-1] / values[0]) * capped_exp(3 * math.sqrt(2) * radius)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return apply_function(self._random_symmetric(size, rng), np.exp)


def _whiten(lower: Array, matrix: Array) -> Array:
    """L⁻¹ m L⁻ᵀ for symmetric m, symmetric to the last bit."""
    xp = namespace(lower, matrix)
    half = xp.linalg.solve(lower, matrix)
    return sym(xp.linalg.solve(lower, transpose(half)))


def _exp_whitened(lower: Array, matrix: Array) -> Array:
    """L e^m Lᵀ."""
    xp = namespace(lower, matrix)
    values, vectors = xp.linalg.eigh(matrix)
    root = lower @ (vectors * xp.exp(values / 2)[..., None, :])
    return sym(root @ transpose(root))


def _relative_root(lower: Array, point: Array) -> Array:
    """L⁻¹K with point = KKᵀ."""
    xp = namespace(lower, point)
    return xp.linalg.solve(lower, xp.linalg.cholesky(point))


def _relative_singular(base: Array, point: Array) -> tuple[Array, Array, Array]:
    """L, U and Σ with base = LLᵀ, point = KKᵀ and L⁻¹K = U Σ Vᵀ."""
    xp = namespace(base, point)
    lower = xp.linalg.cholesky(base)
    vectors, values, _ = xp.linalg.svd(_relative_root(lower, point), full_matrices=False)
    return lower, vectors, values


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
