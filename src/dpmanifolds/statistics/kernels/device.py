"""Matrices up to 3×3 on a device: one fused kernel per pass instead of hundreds of small ones.

The records are read once, everything else stays in registers, and a few numbers come back to the host. PyTorch gets a
Triton kernel, JAX a Pallas one; where those are missing, JAX compiles the formulas and other libraries run them as they
are. A record that needs more care than a kernel takes raises a flag, and the general code takes over.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_array, is_torch_array

from dpmanifolds._arrays import Array, eps, eye, like, namespace, on_accelerator, stack_last, to_numpy
from dpmanifolds.manifolds import SPDAffineInvariant
from dpmanifolds.manifolds._symmetric import LARGEST_SMALL
from dpmanifolds.manifolds.linearization import Linearization
from dpmanifolds.statistics.kernels.formulas import column_sums, log_terms

_PIECE = 1 << 22
_EXACT = 1 << 17
_LONGEST = 1 << 27
_SMALLEST = 1 << 10
_unavailable: set[str] = set()


class LogSums(NamedTuple):
    """For logarithms y of records, less a centre and clipped to a ball around it: what a mean needs of them.

    NumPy arrays, in the precision of the records.
    """

    total: np.ndarray
    """Σ w y, in orthonormal coordinates."""
    size: np.ndarray
    """Σ w‖y‖."""
    squared: np.ndarray
    """Σ w‖y‖²."""
    spread: np.ndarray
    """Σ w λ_max/λ_min, over records inside of the ball."""
    farthest: np.ndarray
    """max ‖y‖."""
    hessian: np.ndarray | None
    """Σ w (h coth h − 1) e eᵀ over pairs of eigenvectors: the affine-invariant Hessian but for Σ w·I."""


def fits_device(array: Any, k: int) -> bool:
    """Whether these records have a fused kernel: k×k matrices, k ≤ 3, that live on an accelerator."""
    return k <= LARGEST_SMALL and getattr(array, "ndim", 0) == 3 and on_accelerator(array)


def longest_device_sum(count: int) -> int:
    """How many numbers one total adds up, at most: in a group, the groups of a piece, and the pieces."""
    return 2 * min(count, 1024) + min(count, _PIECE) // 1024 + 1 + -(-count // (1 << 17))


def log_sums(
    points: Array,
    weights: Array | None = None,
    *,
    whitener: np.ndarray | None = None,
    center: np.ndarray | None = None,
    radius: float = math.inf,
    hessian: bool = False,
) -> LogSums | None:
    """The sums for y = log(M x Mᵀ); None where a record is malformed or needs more care than the kernel takes.

    Without `weights` every record has the weight one over their number. `whitener`: M.
    """
    count, k = int(points.shape[0]), int(points.shape[-1])
    d = k * (k + 1) // 2
    matrix = np.eye(k) if whitener is None else to_numpy(whitener).astype(np.float64)
    middle = np.zeros(d) if center is None else np.asarray(center, dtype=np.float64)
    call = _Call(k, eps(points), weights is not None, whitener is not None, hessian)
    given = _Given(matrix, middle, radius, 1 / count)
    sums, peaks = _on_best_path(call, points, weights, given)
    if peaks[1] != 0:
        return None
    rounded = partial(np.asarray, dtype=np.float32 if eps(points) > 1e-10 else np.float64)
    return LogSums(
        total=rounded(sums[:d]),
        size=rounded(sums[d]),
        squared=rounded(sums[d + 1]),
        spread=rounded(sums[d + 2]),
        farthest=rounded(peaks[0]),
        hessian=rounded(_square(sums[d + 3 :], d)) if hessian else None,
    )


class _Call(NamedTuple):
    """What a kernel is compiled for."""

    k: int
    unit: float
    weighted: bool
    whitened: bool
    hessian: bool


class _Given(NamedTuple):
    """The few numbers that a kernel is handed along with the records."""

    matrix: np.ndarray
    center: np.ndarray
    radius: float
    share: float
    """The weight of every record where no weights are given."""

    @property
    def flat(self) -> np.ndarray:
        """M, the centre and the radius, one after the other."""
        return np.concatenate([self.matrix.ravel(), self.center, [self.radius]])


def _on_best_path(call: _Call, points: Array, weights: Array | None, given: _Given) -> tuple[np.ndarray, np.ndarray]:
    """Sums and peaks by the fastest way that works here; one that failed is not tried again."""
    library = "jax" if is_jax_array(points) else "torch" if is_torch_array(points) else "other"
    if on_accelerator(points) and library not in _unavailable and library != "other":
        fused = _by_pallas if library == "jax" else _by_triton
        try:
            return fused(call, points, weights, given)
        except Exception:
            # an old library, or none of its compiler: whatever is wrong with the records shows below as well
            _unavailable.add(library)
    return _by_formulas(call, points, weights, given)


def _by_triton(call: _Call, points: Array, weights: Array | None, given: _Given) -> tuple[np.ndarray, np.ndarray]:
    import array_api_compat.torch as xp

    from dpmanifolds.statistics.kernels.triton import triton_sums

    k, at = call.k, {1: [0], 2: [0, 1, 3], 3: [0, 1, 2, 3, 4, 5]}[call.k]
    padded, middle = np.eye(3), np.zeros(6)
    padded[:k, :k], middle[at] = given.matrix, given.center
    whole = given._replace(matrix=padded, center=middle)
    sums, peaks = triton_sums(points, weights, given.share, whole.flat, whitened=call.whitened, hessian=call.hessian)
    found = to_numpy(xp.concat([column_sums(xp, sums), xp.max(peaks, axis=0)]))
    parts = [found[at], found[6:9]]
    if call.hessian:
        square = _square(found[9:30], 6)[np.ix_(at, at)]
        parts.append(square[np.triu_indices(len(at))])
    return np.concatenate(parts), found[-2:]


def _by_pallas(call: _Call, points: Array, weights: Array | None, given: _Given) -> tuple[np.ndarray, np.ndarray]:
    from dpmanifolds.statistics.kernels.pallas import pallas_sums

    count = int(points.shape[0])
    if count > _LONGEST:
        halves = [
            _by_pallas(call, points[part, ...], None if weights is None else weights[part], given)
            for part in (slice(_LONGEST), slice(_LONGEST, None))
        ]
        return halves[0][0] + halves[1][0], np.maximum(halves[0][1], halves[1][1])
    kind = np.float32 if call.unit > 1e-10 else np.float64
    shares = np.zeros(1, kind) if weights is None else weights
    if count < _EXACT:
        # every length is compiled once: of the short ones only powers of two
        size = max(_SMALLEST, 1 << (count - 1).bit_length())
        points = _jax_filled(size)(points)
        shares = shares if weights is None else _jax_filled(size)(shares)
    kernel = pallas_sums(call.k, call.unit, weighted=call.weighted, whitened=call.whitened, hessian=call.hessian)
    numbers = np.append(given.flat, given.share).astype(kind)
    found = to_numpy(kernel(points, shares, numbers, np.asarray(count, np.int32))).astype(np.float64)
    return found[:-2], found[-2:]


@cache
def _jax_filled(size: int) -> Any:
    """Records with enough zeros behind them."""
    import jax
    import jax.numpy as jnp

    return jax.jit(lambda array: jnp.pad(array, [(0, size - array.shape[0])] + [(0, 0)] * (array.ndim - 1)))


def _by_formulas(call: _Call, points: Array, weights: Array | None, given: _Given) -> tuple[np.ndarray, np.ndarray]:
    """The formulas as they are, or compiled by JAX, piece by piece."""
    sums, peaks = [], []
    run = _jax_formulas(call) if is_jax_array(points) else partial(_formulas, namespace(points), call)
    numbers = like(given.flat, points)
    count = int(points.shape[0])
    for first in range(0, count, _PIECE):
        part = slice(first, min(first + _PIECE, count))
        shares = like(np.asarray(given.share), points) if weights is None else weights[part]
        found, peak = run(points[part, ...], shares, numbers)
        sums.append(to_numpy(found).astype(np.float64))
        peaks.append(to_numpy(peak))
    return np.sum(sums, axis=0), np.max(peaks, axis=0)


@cache
def _jax_formulas(call: _Call) -> Any:
    import jax

    return jax.jit(partial(_formulas, jax.numpy, call))


def _formulas(xp: Any, call: _Call, points: Array, weights: Array, given: Array) -> tuple[Array, Array]:
    k = call.k
    d = k * (k + 1) // 2
    x = {(i, j): points[:, i, j] for i in range(k) for j in range(k)}
    matrix = {(i, j): given[k * i + j] for i in range(k) for j in range(k)} if call.whitened else None
    center = [given[k * k + at] for at in range(d)]
    every = weights + xp.zeros_like(points[:, 0, 0])
    terms = log_terms(xp, k, call.unit, x, every, matrix, center, given[k * k + d], hessian=call.hessian)
    return column_sums(xp, stack_last(*terms.summed)), xp.max(stack_last(*terms.peaks), axis=0)


def _square(triangle: np.ndarray, d: int) -> np.ndarray:
    """The symmetric matrix of an upper triangle, given row by row."""
    result = np.zeros((d, d))
    result[np.triu_indices(d)] = triangle
    return result + np.triu(result, 1).T


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
