"""Logarithms of many positive definite matrices: by products for those that are well conditioned, else by eigh.

>>> import numpy as np
>>> logs, _ = matrix_logs(np.array([np.diag([1.0, 2.0, 3.0, 4.0])]))
>>> bool(np.allclose(logs[0], np.diag(np.log([1.0, 2.0, 3.0, 4.0])), atol=1e-15))
True

A matrix that LAPACK refuses costs the others nothing.

>>> factors = call_each(np.linalg.cholesky, np.stack([4 * np.eye(2), -np.eye(2)]))
>>> factors[0].tolist(), bool(np.isnan(factors[1]).all())
([[2.0, 0.0], [0.0, 2.0]], True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._points import leaves, map_parts
from dpmanifolds.manifolds._symmetric import LARGEST_SMALL


class Reach(NamedTuple):
    """Matrices that one polynomial serves."""

    blocks: int
    """Its degree is blocks² − 1."""
    square: float
    """The largest squares of Cayley's transform that it is made for."""
    center: float
    """In means of the eigenvalues. Covariances have more small ones than large ones: below 1 it serves both ends."""


# up to rounding, one after the other; beyond 0.8 powers are no longer well conditioned
REACHES = (Reach(5, 0.7, 0.4), Reach(6, 0.8, 0.3))
# beyond, eigh is the faster one
LARGEST_SIZE = 64
# stays in the cache, with the powers
_PIECE_BYTES = 1 << 17


def matrix_logs(matrices: np.ndarray, reaches: Sequence[Reach] = REACHES) -> tuple[np.ndarray, np.ndarray]:
    """log X for each X of (n, k, k), k > 3, NaN where X is not positive; and s with ‖error of log X‖ ≤ 4k²·s·eps.

    With c = 0.4·tr X/k and Cayley's transform Y = I − 2c(X + cI)⁻¹, whose eigenvalues (λ−c)/(λ+c) lie in (−1, 1),

        log X = log c·I + 2·artanh Y = log c·I + 2Y·h(Y²),    h(z) = artanh(√z)/√z,

    and where Y² ≤ 0.7 a polynomial of degree 24 is h up to rounding: one inverse and 10 products, half the time of an
    eigendecomposition. ‖Y²‖ ≤ (tr Y²⁰)^{1/10} decides, for each matrix by itself, and shows that X is positive. Where
    it says no one of degree 35 is tried, for Y² ≤ 0.8 and c = 0.3·tr X/k; the others go through eigh. Every product and
    every call of LAPACK is one of a single matrix. NumPy, double precision.

    λ_max/λ_min ≤ m² with m = (1+√z)/(1−√z), z = (tr Y²⁰)^{1/10}; the inverse costs less than 4k²·2m² units of rounding,
    the products, of matrices of norm at most √k, less than 32k²: s = 2m² + 8 (docs/proofs/numerics.md, section 6). The
    eigensolver moves X by 4k²·λ_max units, of which the logarithm makes at most 1/λ_min: s = λ_max/λ_min.
    """
    count, k, _ = matrices.shape
    logs, spread = np.empty((count, k, k)), np.empty(count)
    hard = np.arange(count)
    with np.errstate(all="ignore"):
        for reach in reaches if largest_spread(k) else ():
            if not hard.size:
                break
            hard = _by_products(matrices, hard, reach, logs, spread)
        if hard.size:
            logs[hard], spread[hard] = _by_eigen(matrices[hard])
    return logs, spread


def largest_spread(k: int) -> float:
    """The largest s of k×k matrices whose logarithms come from products: 0 where none do."""
    return float(_spread(REACHES[-1].square)) if LARGEST_SMALL < k <= LARGEST_SIZE else 0.0


def _spread(square: Any) -> Any:
    root = np.sqrt(square)
    return 2 * ((1 + root) / (1 - root)) ** 2 + 8


def _by_eigen(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The others; each is divided by a power of two first, so that LAPACK sees no number near the ends of the range."""
    k = matrices.shape[-1]
    exponents = np.frexp(np.max(np.abs(matrices), axis=(1, 2), initial=0.0))[1]
    usable = np.isfinite(matrices).all(axis=(1, 2))
    scaled = np.where(usable[:, None, None], np.ldexp(matrices, -exponents[:, None, None]), np.eye(k))
    values, vectors = call_each(np.linalg.eigh, scaled)
    values = np.where((values > 0) & usable[:, None], values, np.nan)
    logs = np.log(values) + (exponents * math.log(2))[:, None]
    return (vectors * logs[:, None, :]) @ np.swapaxes(vectors, 1, 2), values[:, -1] / values[:, 0]


def _by_products(
    matrices: np.ndarray, rows: np.ndarray, reach: Reach, logs: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Write logarithms and s of matrices of these numbers; the numbers of those that are out of reach."""
    k = matrices.shape[-1]
    size = max(1, _PIECE_BYTES // (8 * k * k))
    left = []
    for first in range(0, rows.size, size):
        some = rows[first : first + size]
        square, found, inside = _piece_by_products(matrices[some], reach)
        done = some[inside]
        logs[done], spread[done] = found, _spread(square[inside])
        left.append(np.delete(some, inside))
    return np.concatenate(left)


def _piece_by_products(matrices: np.ndarray, reach: Reach) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tr Y²⁰)^{1/10}, logarithms of those that are within reach, and which these are."""
    count, k, _ = matrices.shape
    center = (reach.center / k) * np.trace(matrices, axis1=1, axis2=2)
    usable = (center > 0) & (center < math.inf)
    moved = np.where(usable[:, None, None], matrices, np.eye(k))
    center = np.where(usable, center, 1.0)
    diagonals(moved)[...] += center[:, None]
    cayley = call_each(np.linalg.inv, moved)
    cayley *= (-2 * center)[:, None, None]
    diagonals(cayley)[...] += 1
    # powers of T = 2Y²/z − I, z the largest square
    powers = np.empty((count, reach.blocks, k, k))
    np.matmul(cayley, cayley, out=powers[:, 0])
    powers[:, 0] *= 2 / reach.square
    np.einsum("iaa->ia", powers[:, 0])[...] -= 1
    for number in range(2, reach.blocks + 1):
        np.matmul(powers[:, number // 2 - 1], powers[:, number - number // 2 - 1], out=powers[:, number - 1])
    # one product for each matrix: its powers by the table of coefficients
    constants, factors = coefficient_table(reach)
    sums = np.matmul(factors, powers.reshape(count, reach.blocks, k * k)).reshape(count, len(factors), k, k)
    np.einsum("ijaa->ija", sums)[...] += constants[:, None]
    tenth = sums[:, -1].reshape(count, k * k)
    square = np.einsum("ij,ij->i", tenth, tenth) ** 0.1
    inside = np.flatnonzero(usable & (square <= reach.square))
    if inside.size < count:
        cayley, center, highest, sums = cayley[inside], center[inside], powers[inside, -1], sums[inside]
    else:
        highest = powers[:, -1]
    # Horner's rule in the highest power (Paterson, Stockmeyer)
    total: np.ndarray = sums[:, -2]
    for number in range(reach.blocks - 2, -1, -1):
        total = total @ highest
        total += sums[:, number]
    found = cayley @ total
    diagonals(found)[...] += np.log(center)[:, None]
    return square, found, inside


@cache
def coefficient_table(reach: Reach) -> tuple[np.ndarray, np.ndarray]:
    """Multiples of I and of T, T², … that make the parts of 2h, and at last Y¹⁰ = (z(T + I)/2)⁵."""
    parts = polynomials(reach.blocks, reach.square)
    fifth = [(reach.square / 2) ** 5 * math.comb(5, power) for power in range(reach.blocks + 1)]
    factors = np.concatenate([parts, np.zeros((reach.blocks, 1))], axis=1)
    table = np.concatenate([factors, [fifth]])
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1:])


def diagonals(matrices: np.ndarray) -> np.ndarray:
    """The diagonals (n, k), to be written to."""
    count, k, _ = matrices.shape
    return matrices.reshape(count, k * k)[:, :: k + 1]


@cache
def polynomials(blocks: int, square: float) -> np.ndarray:
    """Of 2h(square·(t+1)/2) as a polynomial in t, interpolated near Chebyshev's points; `blocks` to a row, rising.

    Worked out in 60 digits by Newton's divided differences: to go from one basis to another loses many.
    """
    count = blocks * blocks
    with localcontext(Context(prec=60)):
        nodes = [Decimal(math.cos(math.pi * (i + 0.5) / count)) for i in range(count)]
        values = [_twice_artanh_over(Decimal(square) / 2 * (node + 1)) for node in nodes]
        for order in range(1, count):
            for i in range(count - 1, order - 1, -1):
                values[i] = (values[i] - values[i - 1]) / (nodes[i] - nodes[i - order])
        rising = [Decimal(0)] * count
        for value, node in zip(reversed(values), reversed(nodes), strict=True):
            rising = [below - node * own for below, own in zip([Decimal(0), *rising], rising, strict=False)]
            rising[0] += value
    return np.array(rising, dtype=np.float64).reshape(blocks, blocks)


def _twice_artanh_over(square: Decimal) -> Decimal:
    """2·artanh(√z)/√z."""
    root = square.sqrt()
    return ((1 + root) / (1 - root)).ln() / root


def call_each(routine: Callable[[np.ndarray], Any], matrices: np.ndarray) -> Any:
    """routine(matrices) for a routine of `np.linalg`, with NaN for the matrices that it refuses.

    NumPy calls LAPACK once for each matrix, on a copy of that matrix in the same place, so that what comes out for one
    does not depend on the others; only its refusal is for all of them together. Where it refuses they are handed over
    one by one: the same calls, hence the same bits (tests/sums/test_contract.py).
    """
    try:
        return routine(matrices)
    except np.linalg.LinAlgError:
        pass
    found = routine(np.broadcast_to(np.eye(matrices.shape[-1]), (1, *matrices.shape[1:])))
    results = map_parts(lambda part: np.full((len(matrices), *part.shape[1:]), np.nan), found)
    for row, matrix in enumerate(matrices):
        try:
            one = routine(matrix[None])
        except np.linalg.LinAlgError:
            continue
        for result, part in zip(leaves(results), leaves(one), strict=True):
            result[row] = part[0]
    return results
