"""Logarithms of many positive definite matrices: by products where they are well conditioned, else by eigh.

>>> import numpy as np
>>> logs, _ = matrix_logs(np.array([np.diag([1.0, 2.0, 3.0, 4.0])]))
>>> bool(np.allclose(logs[0], np.diag(np.log([1.0, 2.0, 3.0, 4.0])), atol=1e-15))
True
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, namespace, transpose
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL
from dpmanifolds.statistics._positive import positive_eigen

__all__ = ["largest_spread", "matrix_logs"]

# the squares of Cayley's transform that the polynomial is made for; at 0.8 and below, its powers are well conditioned
_LARGEST_SQUARE = 0.8
_BLOCKS = 6
# covariances have more small eigenvalues than large ones: a centre below their mean serves both ends
_CENTER = 0.3
# beyond, eigh is the faster one
_LARGEST_SIZE = 64
# stays in the cache, with the powers
_PIECE_BYTES = 1 << 18
# so many records tell whether products will do
_PROBE = 32


def matrix_logs(matrices: Array) -> tuple[Array, Array]:
    """log X and s with ‖error of log X‖ ≤ 4k²·s·eps, for each X (*batch, k, k); an error if one is not positive.

    With c = 0.3·tr X/k and Cayley's transform Y = I − 2c(X + cI)⁻¹, whose eigenvalues (λ−c)/(λ+c) lie in (−1, 1),

        log X = log c·I + 2·artanh Y = log c·I + 2Y·h(Y²),    h(z) = artanh(√z)/√z,

    and where Y² ≤ 0.8 a polynomial of degree 35 is h up to rounding: one inverse and 15 products, half the time of an
    eigendecomposition. ‖Y²‖ ≤ (tr Y³²)^{1/16} =: z decides, and shows that X is positive: λ_max/λ_min ≤ m² with
    m = (1+√z)/(1−√z). The inverse costs less than 4k²·2m² units of rounding, the products, of matrices of norm at most
    √k, less than 32k²: s = 2m² + 8 (docs/proofs/numerics.md, section 6). The eigensolver moves X by 4k²·λ_max units,
    of which the logarithm makes at most 1/λ_min: s = λ_max/λ_min.
    """
    k = matrices.shape[-1]
    if not is_numpy(matrices) or matrices.dtype != np.float64 or not largest_spread(k):
        return _by_eigen(matrices)
    records = matrices.reshape(-1, k, k)
    logs, spread = np.empty(records.shape), np.empty(len(records))
    start, stop, products = 0, _PROBE, True
    while start < len(records):
        part = slice(start, stop)
        # where most of a piece are badly conditioned, so are the others, most likely
        products = products and _by_products(records[part], logs[part], spread[part])
        if not products:
            logs[part], spread[part] = _by_eigen(records[part])
        start, stop = stop, stop + max(1, _PIECE_BYTES // (8 * k * k))
    return logs.reshape(matrices.shape), spread.reshape(matrices.shape[:-2])


def largest_spread(k: int) -> float:
    """The largest s of k×k matrices whose logarithms come from products: 0 where none do."""
    return _spread(_LARGEST_SQUARE) if LARGEST_SMALL < k <= _LARGEST_SIZE else 0.0


def _spread(square: Any) -> Any:
    root = np.sqrt(square)
    return 2 * ((1 + root) / (1 - root)) ** 2 + 8


def _by_eigen(matrices: Array) -> tuple[Array, Array]:
    values, vectors = positive_eigen(matrices)
    logs = (vectors * namespace(values).log(values)[..., None, :]) @ transpose(vectors)
    return logs, values[..., -1] / values[..., 0]


def _by_products(matrices: np.ndarray, logs: np.ndarray, spread: np.ndarray) -> bool:
    """Write logarithms and s; False, and nothing written, if most matrices are too badly conditioned."""
    count, k, _ = matrices.shape
    flat = (count, k * k)
    center = (_CENTER / k) * np.trace(matrices, axis1=1, axis2=2)
    with np.errstate(all="ignore"):
        moved = matrices.copy()
        _diagonal(moved)[...] += center[:, None]
        try:
            cayley = np.linalg.inv(moved)
        except np.linalg.LinAlgError:
            return False
        cayley *= (-2 * center)[:, None, None]
        _diagonal(cayley)[...] += 1
        square = cayley @ cayley
        power = square @ square
        power = power @ power
        power = (power @ power).reshape(flat)
        largest = np.vecdot(power, power) ** (1 / 16)
        inside = (largest <= _LARGEST_SQUARE) & (center > 0)
        if 2 * np.count_nonzero(inside) < count:
            return False
        np.matmul(cayley, _polynomial(square), out=logs)
        _diagonal(logs)[...] += np.log(center)[:, None]
        spread[...] = _spread(largest)
    if not inside.all():
        logs[~inside], spread[~inside] = _by_eigen(matrices[~inside])
    return True


def _polynomial(square: np.ndarray) -> np.ndarray:
    """2h(Y²), from 10 products: powers T, …, T⁶ of T = 2Y²/0.8 − I, and Horner's rule in T⁶ (Paterson, Stockmeyer)."""
    shape = square.shape
    powers = np.empty((_BLOCKS, *shape))
    np.multiply(square, 2 / _LARGEST_SQUARE, out=powers[0])
    _diagonal(powers[0])[...] -= 1
    for number in range(2, _BLOCKS + 1):
        np.matmul(powers[number // 2 - 1], powers[number - number // 2 - 1], out=powers[number - 1])
    coefficients = _coefficients()
    sums = (coefficients[:, 1:] @ powers[:-1].reshape(_BLOCKS - 1, -1)).reshape(_BLOCKS, *shape)
    total: np.ndarray = sums[-1]
    for number in range(_BLOCKS - 1, -1, -1):
        if number < _BLOCKS - 1:
            total = total @ powers[-1]
            total += sums[number]
        _diagonal(total)[...] += coefficients[number, 0]
    return total


def _diagonal(matrices: np.ndarray) -> np.ndarray:
    """The diagonals (n, k), to be written to."""
    count, k, _ = matrices.shape
    return matrices.reshape(count, k * k)[:, :: k + 1]


@cache
def _coefficients() -> np.ndarray:
    """Of 2h(0.4(t+1)) as a polynomial in t, interpolated near Chebyshev's points; six to a row, rising powers.

    Worked out in 60 digits by Newton's divided differences: to go from one basis to another loses many.
    """
    count = _BLOCKS * _BLOCKS
    with localcontext(Context(prec=60)):
        nodes = [Decimal(math.cos(math.pi * (i + 0.5) / count)) for i in range(count)]
        values = [_twice_artanh_over(Decimal(_LARGEST_SQUARE) / 2 * (node + 1)) for node in nodes]
        for order in range(1, count):
            for i in range(count - 1, order - 1, -1):
                values[i] = (values[i] - values[i - 1]) / (nodes[i] - nodes[i - order])
        rising = [Decimal(0)] * count
        for value, node in zip(reversed(values), reversed(nodes), strict=True):
            rising = [below - node * own for below, own in zip([Decimal(0), *rising], rising, strict=False)]
            rising[0] += value
    return np.array(rising, dtype=np.float64).reshape(_BLOCKS, _BLOCKS)


def _twice_artanh_over(square: Decimal) -> Decimal:
    """2·artanh(√z)/√z."""
    root = square.sqrt()
    return ((1 + root) / (1 - root)).ln() / root
