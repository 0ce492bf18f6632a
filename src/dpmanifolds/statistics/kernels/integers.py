"""Exact integer sums of logarithms of matrices on a device; up to 3×3 by one fused kernel that reads each record once.

>>> import numpy as np
>>> half = BallRule(None, np.zeros(3), radius=2.0, limit=0.99, exponent=10)
>>> whole, broken = ball_columns(np.stack([np.diag([np.e, 1.0]), np.diag([1.0, -1.0]), np.full((2, 2), np.nan)]), half)
>>> whole.tolist(), broken.tolist()
([[512, 0, 0], [0, 0, 0], [0, 0, 0]], [0, 3, 1])

A record's integers are a function of that record and of public numbers, bit for bit (docs/proofs/sums.md). So there is
no flag for a block: rotations come in a fixed number, whatever is wrong with a record is found by comparisons within
that record and masks its integers, and Σz² ≤ 4^exponent is checked for each of them, in 64-bit integers. PyTorch gets
Triton kernels, JAX a Pallas one: closed forms for 3×3 records that are gentle, each by itself, and rotations for the
others. Elsewhere the formulas below run as they are, in pieces of one fixed shape. Arithmetic is in double precision;
PyTorch's gentle 3×3 records of single precision have their logarithm in single precision, and all after it in double.
Larger matrices have theirs from products (`manifolds/_device_logs.py`), and in PyTorch a kernel at either end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial, reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import device as device_of
from array_api_compat import is_jax_array, is_torch_array

from dpmanifolds._arrays import Array, has_doubles, namespace, on_accelerator, to_numpy
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds._log_triangle import whitener_of
from dpmanifolds.manifolds._symmetric import LARGEST_SMALL
from dpmanifolds.manifolds.spd_affine_invariant import SPDAffineInvariant
from dpmanifolds.manifolds.spd_log_euclidean import SPDLogEuclidean, chart_of
from dpmanifolds.statistics.kernels.formulas import Entries, log_coordinates, rotations, sorted_values, whitened

LARGEST_EXPONENT = 30
"""Six squares of integers up to 2³⁰ add up to less than 2⁶³."""
LONGEST_PIECE = 1 << 27
"""How many records one total is made of, at most: 2²⁷ integers up to 2³⁰ stay below 2⁶³, positions below 2³¹."""
INTEGER_SWEEPS = 4
RULES = 4
"""Records that keep all rules, and those that are not finite, not symmetric, not positive definite."""

_WITH_LOGARITHM = (SPDAffineInvariant, SPDLogEuclidean)
# the registers of one program hold no larger matrices
_LARGEST_HELD = 128
_FORMULA_PIECE = 1 << 18
_SHORTEST = 1 << 10
_UNIT = 2.0**-52
_TINY = 2.0**-1022
_SLACK = 1e-6
_FAR, _STEP = 500, 574


class BallRule(NamedTuple):
    """The public numbers that make integers of y = (log(MxMᵀ) − centre)/radius."""

    whitener: np.ndarray | None
    """M; None for the identity."""
    center: np.ndarray
    """In orthonormal coordinates (dim,)."""
    radius: float
    limit: float
    """Longer rows y are shortened to this length, a hair below 1."""
    exponent: int
    """Integers are y·2^exponent, rounded."""

    def numbers(self, k: int) -> BallNumbers:
        """M is divided by a power of two, so that it can neither overflow nor vanish; the centre pays for that."""
        matrix = np.eye(k) if self.whitener is None else np.asarray(self.whitener, dtype=np.float64)
        power = 0 if self.whitener is None else int(np.frexp(np.max(np.abs(matrix)))[1])
        moved = np.array(self.center, dtype=np.float64)
        moved[:k] -= 2 * power * math.log(2)
        return BallNumbers(np.ldexp(matrix, -power), moved, 1 / self.radius, self.limit, float(1 << self.exponent))


class BallNumbers(NamedTuple):
    """What a kernel is handed along with the records."""

    matrix: np.ndarray
    center: np.ndarray
    inverse_radius: float
    limit: float
    scale: float

    @property
    def flat(self) -> np.ndarray:
        """One after the other."""
        return np.concatenate([self.matrix.ravel(), self.center, self[2:]])


def ball_rule(
    manifold: Manifold, base: np.ndarray, points: Any, *, offset: Any, radius: float, limit: float, exponent: int
) -> BallRule | None:
    """The rule for log at a base, less an offset; None where such records have no fused kernel.

    They have one where they are matrices up to 3×3 with a metric that takes a logarithm, in one of two precisions, on
    an accelerator, and six squares fit 64 bits.
    """
    if not isinstance(manifold, _WITH_LOGARITHM) or manifold.k > LARGEST_SMALL:
        return None
    if exponent > LARGEST_EXPONENT or not on_accelerator(points) or not has_doubles(points) or points.ndim != 3:
        return None
    if points.dtype not in (namespace(points).float32, namespace(points).float64):
        return None
    return _rule_at(manifold, base, offset, radius, limit, exponent)


def large_rule(
    manifold: Manifold, base: np.ndarray, points: Any, *, offset: Any, radius: float, limit: float, exponent: int
) -> BallRule | None:
    """The same for matrices from 4×4 to 128×128, which have one in PyTorch, in double precision."""
    if not isinstance(manifold, _WITH_LOGARITHM) or not LARGEST_SMALL < manifold.k <= _LARGEST_HELD:
        return None
    if manifold.dim << 2 * exponent >= 1 << 63:
        return None
    if not is_torch_array(points) or not on_accelerator(points) or points.dtype != namespace(points).float64:
        return None
    return _rule_at(manifold, base, offset, radius, limit, exponent) if _large_kernel_works(manifold.k) else None


def _rule_at(
    manifold: SPDAffineInvariant | SPDLogEuclidean,
    base: np.ndarray,
    offset: Any,
    radius: float,
    limit: float,
    exponent: int,
) -> BallRule:
    off = np.zeros(manifold.dim) if offset is None else np.asarray(offset, dtype=np.float64)
    numbers = np.asarray(base, dtype=np.float64).tobytes()
    if isinstance(manifold, SPDLogEuclidean):
        center = chart_of(numbers, manifold.k)
        return BallRule(None, off if center is None else center + off, radius, limit, exponent)
    return BallRule(whitener_of(numbers, manifold.k), off, radius, limit, exponent)


def large_integers(points: Array, rule: BallRule, rows: int | None = None) -> tuple[Array, Array, Array]:
    """Integers (dim, n) of matrices from 4×4 on, or the total (dim,) of the first `rows`; codes; who has a logarithm.

    The codes are 1 for a matrix that is not finite, 2 for one that is not symmetric, else 0: for others the integers
    are 0. They are 0 too for what has no logarithm.
    """
    from dpmanifolds.statistics.kernels import triton_large

    return triton_large.large_integers(points, rule, len(points) if rows is None else rows, each=rows is None)


@cache
def _large_kernel_works(k: int) -> bool:
    """Whether it can be compiled and run here, tried once with a public record."""
    try:
        import torch

        one = torch.eye(k, dtype=torch.float64, device="cuda")[None]
        rule = BallRule(None, np.zeros(k * (k + 1) // 2), 1.0, 0.5, 10)
        found = [large_integers(one, rule, rows) for rows in (None, 1)]
    except Exception:
        # an old library, or none of its compiler
        return False
    return all(bool(seen.all()) and not whole.any() and not codes.any() for whole, codes, seen in found)


def ball_sums(points: Array, rule: BallRule) -> tuple[np.ndarray, np.ndarray]:
    """Totals (dim,) of the integers of at most 2²⁷ records (n, k, k), and how many of them break which rule (4,)."""
    run = _on_best_path(points, rule, each=False)
    totals = sum(to_numpy(total) for total in run)
    k = int(points.shape[-1])
    dim = k * (k + 1) // 2
    counts = np.asarray(totals)[dim:]
    return np.asarray(totals)[:dim], np.concatenate([[int(points.shape[0]) - counts.sum()], counts])


def ball_columns(points: Array, rule: BallRule) -> tuple[Array, Array]:
    """Integers (dim, n) of at most 2²⁷ records, on the device, and the number of the rule that each breaks."""
    table = namespace(points).concat(list(_on_best_path(points, rule, each=True)), axis=1)
    return table[:-1, :], table[-1, :]


def _on_best_path(points: Array, rule: BallRule, *, each: bool) -> Iterator[Array]:
    """Totals and counts, or columns and codes, of pieces. Which path it is depends on no record."""
    library = "jax" if is_jax_array(points) else "torch" if is_torch_array(points) else "other"
    k = int(points.shape[-1])
    if on_accelerator(points) and _kernel_works(library, k, str(points.dtype), rule.whitener is not None):
        fused = _by_pallas if library == "jax" else _by_triton
        return iter([fused(points, rule, each)])
    return _by_formulas(points, rule, each)


@cache
def _kernel_works(library: str, k: int, precision: str, whiten: bool) -> bool:
    """Whether the kernel can be compiled and run here, tried once with a public record."""
    if library == "other":
        return False
    single = "32" in precision
    record = np.eye(k, dtype=np.float32 if single else np.float64)[None]
    rule = BallRule(np.eye(k) if whiten else None, np.zeros(k * (k + 1) // 2), 1.0, 0.5, 10)
    try:
        if library == "jax":
            import jax.numpy as jnp

            found = [_by_pallas(jnp.asarray(record), rule, each) for each in (False, True)]
        else:
            import torch

            found = [_by_triton(torch.asarray(record, device="cuda"), rule, each) for each in (False, True)]
    except Exception:
        # an old library, or none of its compiler
        return False
    return all(not to_numpy(each).any() for each in found)


def _by_triton(points: Array, rule: BallRule, each: bool) -> Array:
    from dpmanifolds.statistics.kernels.triton_integers import triton_integers

    k = int(points.shape[-1])
    at = {1: [0], 2: [0, 1, 3], 3: [0, 1, 2, 3, 4, 5]}[k]
    numbers = rule.numbers(k)
    padded, middle = np.eye(3), np.zeros(6)
    padded[:k, :k], middle[at] = numbers.matrix, numbers.center
    given = np.concatenate([numbers._replace(matrix=padded, center=middle).flat, constants(k)])
    found = triton_integers(points, given, whitened=rule.whitener is not None, each=each)
    return found[[*at, *range(6, 6 + (1 if each else RULES - 1))]]


def constants(k: int) -> np.ndarray:
    """The fixed numbers of `ball_terms`, for a compiler that would make single precision of them."""
    far, step = 2.0**_FAR, 2.0**_STEP
    return np.array(
        [_TINY, math.sqrt(2), _SLACK, far, 1 / far, 1 / step, step, _STEP * math.log(2), k * _UNIT], dtype=np.float64
    )


def _by_pallas(points: Array, rule: BallRule, each: bool) -> Array:
    from dpmanifolds.statistics.kernels.pallas import pallas_integers

    count, k = int(points.shape[0]), int(points.shape[-1])
    # every length is compiled once: of the short ones only powers of two
    size = max(_SHORTEST, 1 << (count - 1).bit_length()) if count < _FORMULA_PIECE else count
    kernel = pallas_integers(k, whiten=rule.whitener is not None, each=each)
    found = kernel(_filled(points, size), rule.numbers(k).flat, np.asarray(count, np.int32))
    return found[:, :count] if each else found


def _by_formulas(points: Array, rule: BallRule, each: bool) -> Iterator[Array]:
    """The formulas as they are, or compiled by JAX, in pieces of one shape, the last one filled up."""
    xp = namespace(points)
    k, count = int(points.shape[-1]), int(points.shape[0])
    whiten = rule.whitener is not None
    run = _jax_formulas(k, whiten, each) if is_jax_array(points) else partial(_formulas, xp, k, whiten, each)
    numbers = xp.asarray(rule.numbers(k).flat, dtype=xp.float64, device=device_of(points))
    for first in range(0, max(count, 1), _FORMULA_PIECE):
        rows = min(_FORMULA_PIECE, count - first)
        with np.errstate(all="ignore"):
            there = xp.arange(_FORMULA_PIECE, device=device_of(points)) < rows
            found = run(_filled(points[first : first + rows, ...], _FORMULA_PIECE), numbers, there)
        yield found[:, :rows] if each else found


def _filled(points: Array, size: int) -> Array:
    """Records with identities behind them."""
    missing = size - int(points.shape[0])
    if not missing:
        return points
    xp = namespace(points)
    one = xp.eye(points.shape[-1], dtype=points.dtype, device=device_of(points))
    return xp.concat([points, xp.broadcast_to(one[None, ...], (missing, *one.shape))], axis=0)


@cache
def _jax_formulas(k: int, whiten: bool, each: bool) -> Any:
    import jax

    return jax.jit(partial(_formulas, jax.numpy, k, whiten, each))


def _formulas(xp: Any, k: int, whiten: bool, each: bool, points: Array, numbers: Array, there: Array) -> Array:
    x = {(i, j): xp.astype(points[:, i, j], xp.float64) for i in range(k) for j in range(k)}
    integers, broken = ball_terms(xp, k, x, numbers, whiten=whiten)
    if each:
        return xp.stack([*integers, broken])
    kinds = [*integers, *rule_counts(xp, broken)]
    return xp.stack([xp.sum(xp.where(there, kind, xp.zeros_like(kind))) for kind in kinds])


def rule_counts(xp: Any, broken: Array) -> list[Array]:
    """For each rule 1 where it is broken."""
    return [xp.astype(broken == number, xp.int64) for number in range(1, RULES)]


def ball_terms(xp: Any, k: int, x: Entries, numbers: Any, *, whiten: bool) -> tuple[list[Array], Array]:
    """Integers of records given by their entries, float64, one array each, and the first rule that each breaks.

    `numbers`: those of `BallNumbers.flat`. A record that is not positive where the logarithm needs it, but is where
    `SPDBase.belongs` looks, breaks no rule and is merely out of reach: its integers are 0.
    """
    dim = k * (k + 1) // 2
    one = xp.ones_like(x[(0, 0)])
    zero = xp.zeros_like(one)
    # sixteenths: nine numbers that are finite have a finite sum
    finite = sum(xp.abs(entry) / 16 for entry in x.values()) < math.inf
    x = {(i, j): xp.where(finite, entry, one if i == j else zero) for (i, j), entry in x.items()}
    size = reduce(xp.maximum, [xp.abs(entry) for entry in x.values()])
    symmetric = finite
    for i, j in combinations(range(k), 2):
        symmetric = symmetric & (xp.abs(x[(i, j)] - x[(j, i)]) <= _SLACK * size)
    # squares must neither overflow nor vanish
    large, small = size > 2.0**_FAR, size < 2.0**-_FAR
    factor = xp.where(large, 2.0**-_STEP * one, xp.where(small, 2.0**_STEP * one, one))
    shift = _STEP * math.log(2) * xp.where(large, one, xp.where(small, -one, zero))
    upper = {(i, j): factor * x[(i, j)] for i in range(k) for j in range(i, k)}
    full = {(i, j): upper[min(i, j), max(i, j)] for i in range(k) for j in range(k)}
    matrix = {(i, j): numbers[k * i + j] for i in range(k) for j in range(k)}
    entries = whitened(full, matrix, k) if whiten else upper
    rotated, _ = rotations(xp, entries, k, INTEGER_SWEEPS, _UNIT)
    smallest, middle, largest = sorted_values(xp, rotated, k)
    positive = smallest > 0
    values = [xp.where(positive, value, one) for value in (largest, middle, smallest)]
    coordinates = log_coordinates(xp, entries, values, k)
    coordinates = [entry + shift if at < k else entry for at, entry in enumerate(coordinates)]
    seen = positive & (sum(xp.abs(entry) for entry in coordinates) < math.inf)
    belongs = _eliminates(upper, k * _UNIT * factor * size, k)
    none = xp.astype(zero, xp.int64)
    broken = xp.where(symmetric, xp.where(seen | belongs, none, none + 3), xp.where(finite, none + 2, none + 1))
    inverse_radius, limit, scale = (numbers[k * k + dim + at] for at in range(3))
    rows = [(entry - numbers[k * k + at]) * inverse_radius for at, entry in enumerate(coordinates)]
    return _ball_integers(xp, rows, symmetric & seen, limit, scale), broken


def _eliminates(a: Entries, floor: Array, k: int) -> Array:
    """Whether all eigenvalues are above the floor: Gaussian elimination of a − floor·I has positive pivots."""
    rest = {(i, j): entry - floor if i == j else entry for (i, j), entry in a.items()}
    good = rest[(0, 0)] > 0
    for p in range(k - 1):
        for i in range(p + 1, k):
            share = rest[(p, i)] / rest[(p, p)]
            for j in range(i, k):
                rest[(i, j)] = rest[(i, j)] - share * rest[(p, j)]
        good = good & (rest[(p + 1, p + 1)] > 0)
    return good


def _ball_integers(xp: Any, rows: list[Array], usable: Array, limit: Any, scale: Any) -> list[Array]:
    """As `sums.contribution.ball_integers`: shortened, rounded, cut, and checked in exact integers."""
    squared = sum(entry * entry for entry in rows)
    usable = usable & (squared < math.inf)
    length = xp.sqrt(xp.where(usable, squared, xp.zeros_like(squared)))
    one = xp.ones_like(length)
    long = length > limit
    factor = scale * xp.where(long, limit / xp.where(long, length, one), one)
    whole = []
    for entry in rows:
        scaled = xp.floor(xp.where(usable, entry * factor, xp.zeros_like(entry)) + 0.5)
        whole.append(xp.astype(xp.minimum(xp.maximum(scaled, -scale), scale), xp.int64))
    radius = xp.astype(scale, xp.int64)
    fits = sum(entry * entry for entry in whole) <= radius * radius
    return [xp.where(fits, entry, xp.zeros_like(entry)) for entry in whole]
