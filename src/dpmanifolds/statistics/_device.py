"""Matrices up to 3×3 on a device: one fused kernel per pass instead of hundreds of small ones.

The same formulas as on the host, written without any decision that depends on the data, so that JAX (`jit`) and
PyTorch (`compile`) make one kernel of them: the records are read once, everything else stays in registers. What a
decision would have been for comes back as a flag, and the general code takes over where it is raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial, reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_jax_array, is_torch_array

from dpmanifolds._arrays import Array, eps, like, namespace
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL

__all__ = [
    "LogSums",
    "compiled_kernel",
    "device_blocks",
    "fits_device",
    "hessian_sum",
    "log_kernel",
    "log_sums",
    "longest_device_sum",
]

Entries = dict[tuple[int, int], Array]

_ROWS = 1 << 22
_SMALLEST = 1 << 10
_SWEEPS = 4
_compile_failed = False


class LogSums(NamedTuple):
    """For logarithms y of records, less a centre and clipped to a ball around it: what a mean needs of them."""

    total: Array
    """Σ w y, in orthonormal coordinates."""
    size: Array
    """Σ w‖y‖."""
    squared: Array
    """Σ w‖y‖²."""
    spread: Array
    """Σ w λ_max/λ_min, over records inside of the ball."""
    farthest: Array
    """max ‖y‖."""


def fits_device(array: Any, k: int) -> bool:
    """Whether these records have a fused kernel: k×k matrices, k ≤ 3, that live on an accelerator."""
    return k <= LARGEST_SMALL and getattr(array, "ndim", 0) == 3 and on_accelerator(array)


def on_accelerator(array: Any) -> bool:
    """Whether an array of JAX or PyTorch lives on another device than the processor."""
    if is_jax_array(array):
        return bool(next(iter(array.devices())).platform != "cpu")
    return bool(is_torch_array(array) and array.is_cuda)


def longest_device_sum(count: int) -> int:
    """How many numbers one total adds up, at most: in a group, the groups of a block, and the blocks."""
    rows = min(count, _ROWS)
    return 4 * math.isqrt(2 * rows) + 4 + -(-count // _ROWS)


def log_sums(
    points: Array,
    weights: Array | None = None,
    *,
    whitener: Array | None = None,
    center: np.ndarray | None = None,
    radius: float = math.inf,
) -> LogSums | None:
    """The sums for y = log(M x Mᵀ); None where a record is malformed or needs more care than the kernel takes.

    `weights` None: all the same, with sum one. `whitener`: M.
    """
    k = int(points.shape[-1])
    d = k * (k + 1) // 2
    xp = namespace(points)
    kernel = compiled_kernel(points, log_kernel, k, whitener is not None)
    given = (
        like(np.eye(k), points) if whitener is None else whitener,
        like(np.zeros(d) if center is None else center, points),
        like(np.asarray(radius), points),
    )
    sums, peaks = [], []
    for block, shares in device_blocks(points, weights):
        rows = kernel(block, shares, *given)
        sums.append(_grouped_sum(xp, rows[:-2, :]))
        peaks.append(xp.max(rows[-2:, :], axis=1))
    total, peak = xp.sum(xp.stack(sums), axis=0), xp.max(xp.stack(peaks), axis=0)
    if not bool(peak[1] == 0):
        return None
    return LogSums(total[:d], total[d], total[d + 1], total[d + 2], peak[0])


def hessian_sum(points: Array, weights: Array, whitener: Array) -> Array:
    """Σ w (h coth h − 1) e eᵀ over records and pairs of eigenvectors: the affine-invariant Hessian but for Σ w·I."""
    k = int(points.shape[-1])
    kernel = compiled_kernel(points, _hessian_kernel, k, True)
    parts = [kernel(block, shares, whitener) for block, shares in device_blocks(points, weights)]
    return reduce(lambda a, b: a + b, parts)


def device_blocks(points: Array, weights: Array | None) -> Iterator[tuple[Array, Array]]:
    """Blocks of a few sizes only, as every size is compiled once: powers of two, the last filled with the identity."""
    xp = namespace(points)
    count, k = int(points.shape[0]), int(points.shape[-1])
    every = weights if weights is not None else like(np.full(min(count, _ROWS), 1 / count), points)
    for first in range(0, count, _ROWS):
        rows = min(_ROWS, count - first)
        size = max(_SMALLEST, 1 << (rows - 1).bit_length())
        block = points[first : first + rows, ...]
        start = 0 if weights is None else first
        shares = every[start : start + rows]
        if size > rows:
            filler = xp.broadcast_to(like(np.eye(k), points), (size - rows, k, k))
            block = xp.concat([block, filler], axis=0)
            shares = xp.concat([shares, xp.zeros_like(filler[:, 0, 0])], axis=0)
        yield block, shares


def compiled_kernel(points: Array, kernel: Callable[..., Any], k: int, whitened: bool) -> Callable[..., Any]:
    """The kernel as the library at hand compiles it, or as it is where there is nothing to compile with."""
    unit = eps(points)
    if is_jax_array(points):
        return _jax_kernel(kernel, k, whitened, unit)
    if is_torch_array(points) and points.is_cuda and not _compile_failed:
        return _torch_kernel(kernel, k, whitened, unit)
    return partial(kernel, namespace(points), k, whitened, unit)


@cache
def _jax_kernel(kernel: Callable[..., Any], k: int, whitened: bool, unit: float) -> Callable[..., Any]:
    import jax

    compiled: Callable[..., Any] = jax.jit(partial(kernel, jax.numpy, k, whitened, unit))
    return compiled


@cache
def _torch_kernel(kernel: Callable[..., Any], k: int, whitened: bool, unit: float) -> Callable[..., Any]:
    import array_api_compat.torch as xp
    import torch

    plain = partial(kernel, xp, k, whitened, unit)
    compiled = torch.compile(plain, dynamic=False)

    def run(*arguments: Array) -> Any:
        global _compile_failed  # noqa: PLW0603  (once per process: a missing compiler stays missing)
        if not _compile_failed:
            try:
                return compiled(*arguments)
            except Exception:
                _compile_failed = True
        return plain(*arguments)

    return run


def log_kernel(
    xp: Any,
    k: int,
    whitened: bool,
    unit: float,
    points: Array,
    weights: Array,
    matrix: Array,
    center: Array,
    radius: Array,
) -> Array:
    """What is summed up, and in the last two rows the distance and the flag: an array (d + 5, records).

    Summed outside: a compiler that fuses eleven sums with this would work everything out eleven times.
    """
    x = {(i, j): points[:, i, j] for i in range(k) for j in range(k)}
    flag = _malformed(xp, x, k, 1e-6 if unit < 1e-10 else 1e-3)
    entries = _whitened(x, matrix, k) if whitened else {at: x[at] for at in x if at[0] <= at[1]}
    rotated, _ = _rotations(xp, entries, k, _SWEEPS, unit)
    smallest, middle, largest = _sorted_values(xp, rotated, k)
    flag = flag | ~(smallest > 0) | _unfinished(xp, rotated, k, unit)
    one, zero = xp.ones_like(smallest), xp.zeros_like(smallest)
    values = [xp.where(flag, one, value) for value in (largest, middle, smallest)]
    logs = _interpolated(xp, entries, values, k)
    root = math.sqrt(2)
    coordinates = [logs[(i, i)] for i in range(k)] + [root * logs[at] for at in combinations(range(k), 2)]
    moved = [entry - center[at] for at, entry in enumerate(coordinates)]
    squared = sum(entry * entry for entry in moved)
    distance = xp.sqrt(squared)
    inside = distance <= radius
    target = radius * (1 - math.sqrt(unit) / 16)
    shrink = xp.where(inside, one, target / xp.where(inside, one, distance))
    shares = weights * shrink
    summed = [shares * entry for entry in moved]
    summed += [shares * distance, shares * shrink * squared, weights * xp.where(inside, values[0] / values[2], zero)]
    return xp.stack([*summed, shrink * distance, xp.where(flag, one, zero)])


def _hessian_kernel(
    xp: Any, k: int, whitened: bool, unit: float, points: Array, weights: Array, matrix: Array
) -> Array:
    """Σ w (h coth h − 1) e eᵀ of one block, with e the coordinates of (u_a u_bᵀ + u_b u_aᵀ)/√2."""
    x = {(i, j): points[:, i, j] for i in range(k) for j in range(k)}
    rotated, u = _rotations(xp, _whitened(x, matrix, k), k, _SWEEPS + 1, unit, with_vectors=True)
    pairs = list(combinations(range(k), 2))
    root, small = math.sqrt(2), math.sqrt(unit) / 8
    total = xp.zeros_like(points[0, 0, 0]) * matrix[0, 0]
    for a, b in pairs:
        axis = [root * u[i][a] * u[i][b] for i in range(k)]
        axis += [u[i][a] * u[j][b] + u[j][a] * u[i][b] for i, j in pairs]
        p, q = rotated[(a, a)], rotated[(b, b)]
        # as on the host: (|h| + t)/(|tanh h| + t) with a small t, which is 1 where the eigenvalues coincide
        excess = (xp.abs(xp.log(p) - xp.log(q)) / 2 + small) * (p + q) / (xp.abs(p - q) + small * (p + q)) - 1
        rows = xp.stack(axis)
        total = total + (rows * (weights * excess)) @ xp.matrix_transpose(rows)
    return total


def _grouped_sum(xp: Any, values: Array) -> Array:
    """Σ of each row in two stages, so that no number passes through more than about 3√n sums, in whatever order."""
    kinds, count = int(values.shape[0]), int(values.shape[1])
    groups = 1 << ((count.bit_length() - 1) // 2)
    return xp.sum(xp.sum(xp.reshape(values, (kinds, groups, -1)), axis=2), axis=1)


def _malformed(xp: Any, x: Entries, k: int, slack: float) -> Array:
    """Not finite, or not symmetric up to the slack that `belongs` allows."""
    size = reduce(xp.maximum, [xp.abs(entry) for entry in x.values()])
    flag = ~(size < math.inf)
    for i, j in combinations(range(k), 2):
        flag = flag | ~(xp.abs(x[(i, j)] - x[(j, i)]) <= slack * size)
    return flag


def _whitened(x: Entries, matrix: Array, k: int) -> Entries:
    """Entries (i, j), i ≤ j, of M x Mᵀ."""
    half = {(i, j): sum(matrix[i, a] * x[(a, j)] for a in range(k)) for i in range(k) for j in range(k)}
    return {(i, j): sum(half[(i, a)] * matrix[j, a] for a in range(k)) for i in range(k) for j in range(i, k)}


def _rotations(
    xp: Any, entries: Entries, k: int, sweeps: int, unit: float, *, with_vectors: bool = False
) -> tuple[Entries, list[list[Array]]]:
    """Jacobi rotations as in `manifolds/_small_eigen.py`, a fixed number of sweeps; eigenvectors if asked for."""
    a = dict(entries)
    one, zero = xp.ones_like(a[(0, 0)]), xp.zeros_like(a[(0, 0)])
    u = [[one if i == j else zero for j in range(k)] for i in range(k)]
    tiny = 2.2250738585072014e-308 if unit < 1e-10 else 1.1754943508222875e-38
    for p, q in list(combinations(range(k), 2)) * (sweeps if k > 2 else 1):
        gap, twice = a[(q, q)] - a[(p, p)], 2 * a[(p, q)]
        tangent = twice / (gap + xp.copysign(xp.sqrt(gap * gap + twice * twice) + tiny, gap))
        cosine = 1 / xp.sqrt(1 + tangent * tangent)
        sine = tangent * cosine
        change = tangent * a[(p, q)]
        a[(p, p)], a[(q, q)], a[(p, q)] = a[(p, p)] - change, a[(q, q)] + change, zero
        for r in range(k):
            if r not in (p, q):
                rp, rq = (min(r, p), max(r, p)), (min(r, q), max(r, q))
                a[rp], a[rq] = cosine * a[rp] - sine * a[rq], sine * a[rp] + cosine * a[rq]
            if with_vectors:
                u[r][p], u[r][q] = cosine * u[r][p] - sine * u[r][q], sine * u[r][p] + cosine * u[r][q]
    return a, u


def _unfinished(xp: Any, a: Entries, k: int, unit: float) -> Array:
    """Whether a_pq² is above rounding of a_pp·a_qq: an eigenvalue is off by no more than that share of itself."""
    flag = xp.zeros_like(a[(0, 0)]) > 0
    for p, q in combinations(range(k), 2):
        flag = flag | (a[(p, q)] * a[(p, q)] > unit / 4 * xp.abs(a[(p, p)] * a[(q, q)]))
    return flag


def _sorted_values(xp: Any, a: Entries, k: int) -> tuple[Array, Array, Array]:
    """Smallest, middle and largest eigenvalue; the largest stands in for a middle one that there is not."""
    if k == 1:
        return a[(0, 0)], a[(0, 0)], a[(0, 0)]
    low, high = xp.minimum(a[(0, 0)], a[(1, 1)]), xp.maximum(a[(0, 0)], a[(1, 1)])
    if k == 2:
        return low, high, high
    last = a[(2, 2)]
    return xp.minimum(low, last), xp.maximum(low, xp.minimum(high, last)), xp.maximum(high, last)


def _interpolated(xp: Any, entries: Entries, values: list[Array], k: int) -> Entries:
    """Newton interpolation of log at the eigenvalues λ₁ ≥ λ₂ ≥ λ₃, as in `manifolds/_small_eigen.py`."""
    largest, middle, smallest = values
    constant = xp.log(largest)
    if k == 1:
        return {(0, 0): constant}
    second = middle if k > 2 else smallest
    slope = _log_slope(xp, largest, second)
    first = {(i, j): entry - largest if i == j else entry for (i, j), entry in entries.items()}
    result = {(i, j): slope * entry + constant if i == j else slope * entry for (i, j), entry in first.items()}
    if k == 2:
        return result
    shifted = {(i, j): entry - middle if i == j else entry for (i, j), entry in entries.items()}
    width = largest - smallest
    bend = (slope - _log_slope(xp, middle, smallest)) / xp.where(width > 0, width, xp.ones_like(width))
    for i, j in first:
        square = sum(first[min(i, r), max(i, r)] * shifted[min(r, j), max(r, j)] for r in range(k))
        result[(i, j)] = result[(i, j)] + bend * square
    return result


def _log_slope(xp: Any, a: Array, b: Array) -> Array:
    """(log a − log b)/(a − b), and 1/b where they coincide."""
    x = (a - b) / b
    apart = xp.abs(x) > 0
    safe = xp.where(apart, x, xp.ones_like(x))
    return xp.where(apart, xp.log1p(safe) / safe, xp.ones_like(x)) / b
