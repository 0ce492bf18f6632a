"""Logarithms of many positive definite matrices up to 10⁻⁸, for integers.

>>> import numpy as np
>>> from dpmanifolds.manifolds._near_logs import near_logs
>>> logs = near_logs(np.array([np.diag([1.0, 2.0, 3.0, 4.0])]))
>>> bool(np.allclose(logs[0], np.diag(np.log([1.0, 2.0, 3.0, 4.0])), rtol=0, atol=1e-8))
True
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from functools import cache

import numpy as np

from dpmanifolds.manifolds._logarithms import LARGEST_SIZE, call_each, diagonals, matrix_logs, monomials

_BETWEEN = 0.75
"""The centre, in means of the eigenvalues, geometric of arithmetic and harmonic: covariances have more small ones."""
_LARGEST, _SHIFT = 4.2, 1.8
_DEGREE = 12
# stay in the cache: matrices with their inverses, and matrices with their powers
_TILE_BYTES, _PIECE_BYTES = 1 << 20, 1 << 17
_LARGEST_WHOLE = 10


def near_logs(matrices: np.ndarray) -> np.ndarray:
    """log X for each X of (n, k, k), k > 3, with eigenvalues right up to 10⁻⁸; NaN where X is not positive.

    With S = (X/c + cX⁻¹)/2 = cosh log(X/c) and D = (X/c − cX⁻¹)/2, its hyperbolic sine,

        log X = log c·I + D·h(S),    h(s) = arcosh(s)/√(s² − 1),

    and where S ≤ 4.2 a polynomial of degree 12 is near h: one inverse and six products. With T = S − 1.8·I the
    eigenvalues of T are at most ‖T³‖^⅓ in size, which decides, for each matrix by itself. Up to 2.4 it also shows that
    X is positive: of λ < 0 cosh would be below −1. All others have their logarithm from `matrix_logs`. Every product
    and every call of LAPACK is one of a single matrix.
    """
    count, k, _ = matrices.shape
    if k > LARGEST_SIZE:
        return matrix_logs(matrices)[0]
    matrices = np.ascontiguousarray(matrices)
    logs = np.empty_like(matrices)
    right = np.empty(count, dtype=np.bool_)
    with np.errstate(all="ignore"):
        for tile in _cut(0, count, _TILE_BYTES // (8 * k * k)):
            inverses = (_swept if k <= _LARGEST_WHOLE else _inverses)(matrices[tile])
            for piece in _cut(tile.start, tile.stop, _PIECE_BYTES // (8 * k * k)):
                own = inverses[piece.start - tile.start : piece.stop - tile.start]
                right[piece] = _write_logs(matrices[piece], own, logs[piece])
    hard = np.flatnonzero(~right)
    if hard.size:
        logs[hard] = matrix_logs(matrices[hard])[0]
    return logs


def _cut(start: int, stop: int, most: int) -> list[slice]:
    size = max(1, most)
    return [slice(first, min(first + size, stop)) for first in range(start, stop, size)]


def _inverses(matrices: np.ndarray) -> np.ndarray:
    """Of the positive ones, by halves: with A⁻¹ and the complement C = D − BᵀA⁻¹B of [A B; Bᵀ D]."""
    k = matrices.shape[-1]
    if k <= _LARGEST_WHOLE:
        return np.asarray(call_each(np.linalg.inv, matrices))
    h = k // 2
    result = np.empty_like(matrices)
    top = _inverses(matrices[:, :h, :h])
    leading = top @ matrices[:, :h, h:]
    last = _inverses(matrices[:, h:, h:] - matrices[:, h:, :h] @ leading)
    trailing = leading @ last
    np.add(top, trailing @ np.swapaxes(leading, 1, 2), out=result[:, :h, :h])
    np.negative(trailing, out=result[:, :h, h:])
    np.negative(np.swapaxes(trailing, 1, 2), out=result[:, h:, :h])
    result[:, h:, h:] = last
    return result


def _swept(matrices: np.ndarray) -> np.ndarray:
    """By Gauss and Jordan, upper triangles alone, one entry of all matrices after the other."""
    count, k, _ = matrices.shape
    a = np.array(matrices.reshape(count, k * k).T, order="C", copy=True).reshape(k, k, count)
    column, scaled, held = (np.empty((k, count)) for _ in range(3))
    for pivot in range(k):
        column[:pivot], column[pivot:] = a[:pivot, pivot], a[pivot, pivot:]
        share = 1 / column[pivot]
        np.multiply(column, share, out=scaled)
        for i in range(k):
            a[i, i:] -= np.multiply(scaled[i], column[i:], out=held[i:])
        a[:pivot, pivot], a[pivot, pivot:] = scaled[:pivot], scaled[pivot:]
        np.negative(share, out=a[pivot, pivot])
    places = np.arange(k * k).reshape(k, k)
    upper = np.minimum(places, places.T)
    return -np.ascontiguousarray(a.reshape(k * k, count)[upper.ravel()].T).reshape(count, k, k)


def _write_logs(matrices: np.ndarray, inverses: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Logarithms, and which of them are right; inverses are written to."""
    center = _BETWEEN * np.sqrt(np.einsum("iaa->i", matrices) / np.einsum("iaa->i", inverses))
    sinh = matrices * (0.5 / center)[:, None, None]
    inverses *= (0.5 * center)[:, None, None]
    shifted = sinh + inverses
    sinh -= inverses
    diagonals(shifted)[...] -= _SHIFT
    square = shifted @ shifted
    cube = square @ shifted
    np.matmul(sinh, _polynomial(shifted, square, cube, inverses), out=logs)
    diagonals(logs)[...] += np.log(center)[:, None]
    rows = cube.reshape(len(cube), -1)
    return np.asarray(np.einsum("ij,ij->i", rows, rows) <= (_LARGEST - _SHIFT) ** 6)


def _polynomial(shifted: np.ndarray, square: np.ndarray, cube: np.ndarray, held: np.ndarray) -> np.ndarray:
    """By Horner's rule in the cube (Paterson, Stockmeyer)."""
    constants, ones, twos, highest = _coefficients()
    total: np.ndarray = highest * cube
    for number in range(len(constants) - 1, -1, -1):
        if number < len(constants) - 1:
            total = total @ cube
        total += np.multiply(shifted, ones[number], out=held)
        total += np.multiply(square, twos[number], out=held)
        diagonals(total)[...] += constants[number]
    return total


@cache
def _coefficients() -> tuple[list[float], list[float], list[float], float]:
    """Of h(t + 1.8), interpolated near Chebyshev's points: of 1, t³, …, t⁹, of t, …, t¹⁰, of t², …, t¹¹, and of t¹²."""
    with localcontext(Context(prec=60)):
        largest, shift = Decimal(_LARGEST), Decimal(_SHIFT)
        *rising, highest = monomials(lambda t: _slope(t + shift), _DEGREE, 1 - shift, largest - shift).tolist()
    return rising[::3], rising[1::3], rising[2::3], highest


def _slope(s: Decimal) -> Decimal:
    """arcosh(s)/√(s² − 1)."""
    root = (s * s - 1).sqrt()
    return (s + root).ln() / root
