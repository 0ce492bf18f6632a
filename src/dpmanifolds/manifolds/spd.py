"""Symmetric positive definite matrices: what the metrics share, and the door to them.

And records of them: their decompositions, and the refusal of what is not positive.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from dpmanifolds._arrays import (
    Array,
    call_compiled,
    contract,
    eps,
    eye,
    is_numpy,
    largest_entry,
    like,
    namespace,
    sym,
    transpose,
)
from dpmanifolds._validate import choice, positive_integer
from dpmanifolds._words import tell_percent
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds._common import default_tolerance, normal_array, number_rules, step_around
from dpmanifolds.manifolds._derivatives import differentiated_by, frozen
from dpmanifolds.manifolds._log_triangle import log_triangle, see_large, see_small
from dpmanifolds.manifolds._logarithms import matrix_logs
from dpmanifolds.manifolds._symmetric import (
    LARGEST_SMALL,
    apply_function,
    from_upper_triangle,
    log_entries,
    upper_triangle,
)
from dpmanifolds.manifolds.base import Manifold, Seen

METRICS = ("affine-invariant", "log-euclidean", "log-cholesky")
# λ_min/λ_max from which on an eigensolver has hardly more rounding than closed forms
_CLOSE = 0.01
_OTHER_NAMES = {"riemann": "affine-invariant", "logeuclid": "log-euclidean", "logchol": "log-cholesky"}


def metric_name(metric: Any) -> str:
    """The name of a metric, which may be given under pyRiemann's, or an error that lists both.

    >>> metric_name("riemann"), metric_name("log-cholesky")
    ('affine-invariant', 'log-cholesky')
    """
    known = choice("metric", metric, (*METRICS, *_OTHER_NAMES))
    return _OTHER_NAMES.get(known, known)


class SPDBase(Manifold):
    """k×k symmetric positive definite matrices; tangent vectors are symmetric matrices."""

    metric: str
    has_units = True
    typed = "spd:3"
    rules = (
        "all numbers must be finite, not NaN or inf",
        "matrices must be symmetric",
        "matrices must be positive definite",
    )

    def __init__(self, k: int) -> None:
        self.k = positive_integer("k", k)
        self.dim = self.k * (self.k + 1) // 2
        self.point_shape = (self.k, self.k)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.k,)

    @property
    def words(self) -> str:
        return f"positive definite {self.k}×{self.k} matrices ({self.metric} metric)"

    def describe_distance(self, point: Array, distance: float) -> str:
        """On average over directions; the diagonal holds variances, powers of channels."""
        moved = step_around(self, point, distance)
        with np.errstate(all="ignore"):
            if self.k != 3:
                new, old = (np.diagonal(each, axis1=-2, axis2=-1) for each in (moved, point))
                share = float(np.mean(np.abs(new / old - 1)))
                return f"{tell_percent(share)} in a variance (diagonal entry)" if math.isfinite(share) else ""
            (old, old_anisotropy), (new, new_anisotropy) = map(_diffusion, (point, moved))
            share = float(np.mean(np.abs(new / old - 1)))
            bent = float(np.mean(np.abs(new_anisotropy - old_anisotropy)))
        if not math.isfinite(share + bent):
            return ""
        told = f"{tell_percent(share)} in mean diffusivity and {bent:.2g} in fractional anisotropy"
        return f"{told}, if these are diffusion tensors"

    @property
    def picture(self) -> str:  # type: ignore[override]
        return "ellipsoids" if self.k <= 3 else "matrix"

    @classmethod
    def from_sizes(cls, *sizes: Any, metric: str | None = None) -> Manifold:
        """With the metric that is asked for, whichever of them this one is."""
        (k,) = sizes
        return SPD(k) if metric is None else SPD(k, metric)

    @property
    def natural_center(self) -> Array:
        return np.eye(self.k)

    def eigenvalue_radius(self, low: float, high: float) -> float:
        """No matrix with eigenvalues in [low, high] is farther than this from √(low·high)·I: ½√k·ln(high/low)."""
        return math.sqrt(self.k) * math.log(high / low) / 2

    def __repr__(self) -> str:
        return f"SPD({self.k}, metric={self.metric!r})"

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        """Symmetric up to the tolerance and with all eigenvalues above rounding error."""
        xp = namespace(point)
        finite = xp.all(xp.isfinite(point), axis=(-2, -1))
        safe = xp.where(finite[..., None, None], point, xp.zeros_like(point))
        size = xp.max(xp.abs(safe), axis=(-2, -1))
        skew = xp.max(xp.abs(safe - transpose(safe)), axis=(-2, -1))
        smallest = xp.linalg.eigvalsh(sym(safe))[..., 0]
        floor = self.k * float(xp.finfo(point.dtype).eps) * size
        return finite & (skew <= default_tolerance(point, tolerance) * size) & (smallest > floor)

    def side_by_side(self, points: Array) -> Array:
        """One entry of all small matrices after the other: what is done to them is done entry by entry."""
        return np.asfortranarray(points) if is_numpy(points) and self.in_columns else points

    @property
    def in_columns(self) -> bool:  # type: ignore[override]
        return self.k <= LARGEST_SMALL

    def broken_rule(self, points: Array) -> Array:
        """Finite and symmetric; that it is positive shows in the decomposition that the statistic needs anyway."""
        return call_compiled(_first_look, self.side_by_side(points))

    def _see(self, points: np.ndarray, whitener: np.ndarray | None, center: np.ndarray | None) -> Seen:
        """log(MxMᵀ) less public numbers."""
        if self.k <= LARGEST_SMALL:
            rows, lengths, sound = see_small(points, whitener, center)
        else:
            rows, lengths = see_large(points, whitener, center)
            sound = _seem_symmetric(points)
        broken = np.zeros(len(points), dtype=np.int64)
        odd = np.flatnonzero(~sound)
        if odd.size:
            broken[odd] = self.broken_rule(points[odd])
        return Seen(rows, broken, None, lengths)

    def first_broken_rule(self, block: Array) -> str | None:
        if is_numpy(block) and block.flags.c_contiguous and _seem_symmetric(block).all():
            return None
        return super().first_broken_rule(block)

    def place(self, points: Array) -> Array:
        """The symmetric part; eigenvalues are left alone, as they are positive already."""
        return sym(points)

    @differentiated_by("_smooth_project")
    def project(self, point: Array) -> Array:
        """The symmetric part with eigenvalues raised to at least 16·k·eps times the largest."""
        return apply_function(sym(point), self._raised)

    def _raised(self, values: Array) -> Array:
        xp = namespace(values)
        largest = xp.max(xp.abs(values), axis=-1, keepdims=True)
        floor = xp.broadcast_to(16 * self.k * float(xp.finfo(values.dtype).eps) * largest, values.shape)
        return xp.where(values < floor, floor, values)

    def _smooth_project(self, point: Array) -> Array:
        """The symmetric part itself where nothing is raised."""
        xp = namespace(point)
        values = xp.linalg.eigvalsh(frozen(sym(point)))
        low = xp.any(self._raised(values) > values, axis=-1)[..., None, None]
        other = like(np.diag(np.arange(1.0, self.k + 1)), point)
        return xp.where(low, apply_function(xp.where(low, sym(point), other), self._raised), sym(point))

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return sym(vector)

    def _random_symmetric(self, size: tuple[int, ...] | int, rng: Any) -> Array:
        return from_upper_triangle(normal_array(rng, size, (self.dim,)), self.k)


def not_positive() -> NotOnManifoldError:
    """The error for records that turn out not to be positive definite."""
    return NotOnManifoldError(
        "records must be symmetric positive definite matrices, and at least one is not. Check them with "
        "dpmanifolds.validate; shrink covariance estimates, or drop such records."
    )


def _first_look(points: Array) -> Array:
    xp = namespace(points)
    # a largest number is finite if all are
    size = largest_entry(points)
    skew = xp.max(points - transpose(points), axis=(-2, -1))
    return number_rules(xp.isfinite(size), skew <= default_tolerance(points, None) * size)


def _seem_symmetric(block: np.ndarray) -> np.ndarray:
    """Which records one product each finds finite and symmetric up to rounding; False settles nothing.

    It weighs the differences a_ij − a_ji with fixed numbers of no simple ratio. Differences that cancel all the same
    cost nothing but the error message: each record is read in one way only, or made symmetric first.
    """
    k = block.shape[-1]
    with np.errstate(all="ignore"):
        rows = block.reshape(-1, k * k)
        seen = np.einsum("ij,j->i", rows, _skew_weights(k).astype(block.dtype))
        return np.asarray(np.abs(seen) <= 16 * k * k * eps(block) * rows[:, 0])


@cache
def _skew_weights(k: int) -> np.ndarray:
    """A skew matrix, flattened."""
    weights = np.triu(np.random.default_rng(0).uniform(0.5, 1.0, (k, k)), 1)
    return (weights - weights.T).ravel()


def SPD(k: int, metric: str = "affine-invariant") -> SPDBase:
    """The manifold of k×k symmetric positive definite matrices with one of three metrics.

    "affine-invariant" (Fisher–Rao, curved, unchanged by any change of basis), "log-euclidean" (flat, through the
    matrix logarithm, unchanged by rotations and scaling) or "log-cholesky" (flat, through the Cholesky factor).
    pyRiemann's names "riemann", "logeuclid" and "logchol" mean the same.

    >>> from dpmanifolds import SPD
    >>> SPD(3, metric="log-euclidean").dim
    6
    """
    metric = metric_name(metric)
    if metric == "affine-invariant":
        from dpmanifolds.manifolds.spd_affine_invariant import SPDAffineInvariant

        return SPDAffineInvariant(k)
    if metric == "log-euclidean":
        from dpmanifolds.manifolds.spd_log_euclidean import SPDLogEuclidean

        return SPDLogEuclidean(k)
    from dpmanifolds.manifolds.spd_log_cholesky import SPDLogCholesky

    return SPDLogCholesky(k)


def positive_eigen(matrices: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors, or the refusal of a matrix that is not positive."""
    xp = namespace(matrices)
    try:
        values, vectors = xp.linalg.eigh(matrices)
    except np.linalg.LinAlgError:
        raise not_positive() from None
    if not bool(xp.all(values[..., 0] > 0)):
        raise not_positive()
    return values, vectors


def positive_log_entries(entries: dict[tuple[int, int], Array], k: int) -> dict[tuple[int, int], Array]:
    """Entries of the logarithms of k×k matrices, k ≤ 3, or the refusal of one that is not positive."""
    logs = log_entries(entries, k)
    xp = namespace(logs[(0, 0)])
    if not bool(xp.all(xp.isfinite(logs[(0, 0)]))):
        raise not_positive()
    return logs


def positive_matrix_logs(matrices: Array) -> tuple[Array, Array]:
    """log X and s with ‖error of log X‖ ≤ 4k²·s·eps for k > 3, or the refusal of a matrix that is not positive."""
    k = matrices.shape[-1]
    if is_numpy(matrices) and matrices.dtype == np.float64:
        logs, spread = matrix_logs(matrices.reshape(-1, k, k))
        if not np.isfinite(logs).all():
            raise not_positive()
        return logs.reshape(matrices.shape), spread.reshape(matrices.shape[:-2])
    values, vectors = positive_eigen(matrices)
    return (vectors * namespace(values).log(values)[..., None, :]) @ transpose(vectors), values[..., -1] / values[
        ..., 0
    ]


def log_triangle_of_one(matrix: np.ndarray) -> np.ndarray:
    """`log_triangle` of a single NumPy matrix: by LAPACK where the eigenvalues are close enough together for it.

    Closed forms are for many matrices: of one they take ten times as long.
    """
    k = matrix.shape[-1]
    if k <= LARGEST_SMALL and matrix.dtype == np.float64 and np.isfinite(matrix).all():
        values, vectors = np.linalg.eigh(matrix)
        if values[0] > _CLOSE * values[-1]:
            return np.asarray(upper_triangle((vectors * np.log(values)) @ vectors.T))
    return np.asarray(log_triangle(matrix, k))


def log_summary(logs: dict[tuple[int, int], Array], k: int) -> tuple[list[Array], Array, Array]:
    """Orthonormal coordinates, squared norm and a bound on λ_max/λ_min, from the entries of matrix logarithms.

    The eigenvalues of the traceless part, of norm s, differ by at most √2·s.
    """
    xp = namespace(logs[(0, 0)])
    root = math.sqrt(2)
    diagonal = [logs[(i, i)] for i in range(k)]
    above = [root * logs[(i, j)] for i in range(k) for j in range(i + 1, k)]
    squared = sum(entry * entry for entry in (*diagonal, *above))
    trace = sum(diagonal)
    traceless = xp.maximum(squared - trace * trace / k, xp.zeros_like(squared))
    return [*diagonal, *above], squared, xp.exp(root * xp.sqrt(traceless))


def log_near_diagonal(matrices: Array) -> tuple[Array, Array, Array] | None:
    """Logarithms of nearly diagonal positive matrices D + E, a bound on their error and one on λ_max/λ_min.

    log(D+E) = log D + F∘E + S + remainder with F_ij = log[dᵢ,dⱼ], and off the diagonal
    S_ij = ((F∘E)E − E(F∘E))_ij/(dᵢ−dⱼ), on it S_ii = Σ_k (1/dᵢ − F_ik)/(dᵢ−d_k)·E_ik². With Z = D^{−½}ED^{−½} and
    log A = ∫((1+t)⁻¹ − (A+t)⁻¹)dt, the remainder is at most ‖Z‖³/(1−‖Z‖)·(½ + ¼ln(4·d_max/d_min)). Where dᵢ and dⱼ
    are too close to divide by their gap, S_ij is dropped; |S_ij| ≤ Σ_k |E_ik E_kj|/(2·min(dᵢ,d_k,dⱼ)²) then, which the
    bound adds. None if some ‖Z‖ exceeds 0.01.
    """
    xp = namespace(matrices)
    identity = eye(matrices.shape[-1], matrices)
    diagonal = xp.sum(matrices * identity, axis=-1)
    smallest, largest = xp.min(diagonal, axis=-1), xp.max(diagonal, axis=-1)
    if not bool(xp.all(smallest > 0)):
        return None
    rows, columns = diagonal[..., :, None], diagonal[..., None, :]
    off = matrices - identity * rows
    scaled = off / rows
    # ‖Z‖² = Σ E_ij²/(dᵢdⱼ) = Σ (E_ij/dᵢ)(E_ji/dⱼ)
    size = xp.sqrt(contract(scaled, transpose(scaled)))
    if not bool(xp.all(size <= 0.01)):
        return None
    logs = xp.log(diagonal)
    gap = rows - columns
    apart = xp.abs(gap) > 1e-6 * rows
    inverse = xp.where(apart, 1 / xp.where(apart, gap, rows), xp.zeros_like(gap))
    slope = xp.where(apart, (logs[..., :, None] - logs[..., None, :]) * inverse, 2 / (rows + columns))
    first = slope * off
    product = first @ off
    own = xp.where(apart, (1 / rows - slope) * inverse, -0.5 / (rows * rows)) * off * off
    second = (product - transpose(product)) * inverse
    result = first + second + identity * (logs + xp.sum(own, axis=-1))[..., None, :]
    close = xp.where(apart, xp.zeros_like(gap), 1 - identity)
    dropped = contract(close, xp.abs(off) @ xp.abs(off)) / (2 * smallest * smallest) if bool(xp.any(close)) else 0.0
    spread = largest / smallest
    remainder = size**3 / (1 - size) * (0.5 + 0.25 * xp.log(4 * spread)) + dropped
    return result, remainder, 1.1 * spread


def _diffusion(tensors: Array) -> tuple[Array, Array]:
    """Mean diffusivity and fractional anisotropy, √(3/2)·|D − tr(D)/3·I|/|D|."""
    mean = np.trace(tensors, axis1=-2, axis2=-1) / 3
    rest = tensors - mean[..., None, None] * np.eye(3)
    return mean, np.sqrt(1.5) * np.linalg.norm(rest, axis=(-2, -1)) / np.linalg.norm(tensors, axis=(-2, -1))
