"""Positive definite records: their decompositions, and the refusal of what is not positive."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds._arrays import Array, contract, eye, is_numpy, namespace, transpose
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds._logarithms import matrix_logs
from dpmanifolds.manifolds._small_eigen import log_entries

__all__ = [
    "log_near_diagonal",
    "log_summary",
    "not_positive",
    "positive_eigen",
    "positive_log_entries",
    "positive_matrix_logs",
]


def not_positive() -> NotOnManifoldError:
    """The error for records that turn out not to be positive definite."""
    return NotOnManifoldError(
        "records must be symmetric positive definite matrices, and at least one is not. Check them with "
        "dpmanifolds.validate; shrink covariance estimates, or drop such records."
    )


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
