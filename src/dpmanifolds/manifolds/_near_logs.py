"""Logarithms of many positive definite matrices up to 10⁻⁸, for integers.

>>> import numpy as np
>>> from dpmanifolds.manifolds._near_logs import near_logs
>>> logs = near_logs(np.array([np.diag([1.0, 2.0, 3.0, 4.0])]))
>>> bool(np.allclose(logs[0], np.diag(np.log([1.0, 2.0, 3.0, 4.0])), rtol=0, atol=1e-8))
True
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dpmanifolds.manifolds._logarithms import LARGEST_SIZE, REACHES, call_each, diagonals, matrix_logs

_BETWEEN = 0.75
"""The centre, in means of the eigenvalues, geometric of arithmetic and harmonic: covariances have more small ones."""
LARGEST, SHIFT, SCALE = 4.2, 1.8, 0.24496475250574445
_FIRST = (-1.9207517202174489, 2.865679319551081, -2.909890981517256)
_SECOND = (0.6205996034830411, -0.9401929308718997)
_THIRD = (0.3823675965511572, 6.453238102655669, -6.897423823369175)
_FOURTH = (2.242175029405809, 1.0519649959497979, -0.9128488077728283)
_TAIL = (9.285548116207748, -16.92108994887525, 10.84029611018925)
# stay in the cache: matrices with their inverses, and matrices with their powers
_TILE_BYTES, _PIECE_BYTES = 1 << 20, 1 << 19
_LARGEST_WHOLE, _LEAST_HALF = 10, 24


def near_logs(matrices: np.ndarray) -> np.ndarray:
    """log X for each X of (n, k, k), k > 3, with eigenvalues right up to 10⁻⁸; NaN where X is not positive.

    With S = (X/c + cX⁻¹)/2 = cosh log(X/c) and D = (X/c − cX⁻¹)/2, its hyperbolic sine,

        log X = log c·I + D·h(S),    h(s) = arcosh(s)/√(s² − 1),

    and where S ≤ 4.2 a polynomial is near h: one inverse and five products. With T = S − 1.8·I the eigenvalues of T are
    at most ‖T⁴‖^¼ in size, which decides, for each matrix by itself. Up to 2.4 it also shows that X is positive: of
    λ < 0 cosh would be below −1. All others have their logarithm from `matrix_logs`. Every product and every call of
    LAPACK is one of a single matrix.
    """
    count, k, _ = matrices.shape
    if k > LARGEST_SIZE:
        return matrix_logs(matrices)[0]
    matrices = np.ascontiguousarray(matrices)
    logs = np.empty_like(matrices)
    right = np.empty(count, dtype=np.bool_)
    with np.errstate(all="ignore"):
        for tile in _cut(0, count, _TILE_BYTES // (8 * k * k)):
            found = (_parts_in_columns if k <= _LARGEST_WHOLE else _inverses)(matrices[tile])
            for piece in _cut(tile.start, tile.stop, _PIECE_BYTES // (8 * k * k)):
                own = slice(piece.start - tile.start, piece.stop - tile.start)
                if isinstance(found, tuple):
                    parts = found[0][own], found[1][own], found[2][own]
                else:
                    parts = _parts(matrices[piece], found[own])
                right[piece] = _write_logs(*parts, logs[piece])
    hard = np.flatnonzero(~right)
    if hard.size:
        logs[hard] = matrix_logs(matrices[hard], REACHES[-1:])[0]
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


def _parts(matrices: np.ndarray, inverses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres c, and the matrices D and T for them, each times `SCALE`; inverses are written to."""
    center = _BETWEEN * np.sqrt(np.einsum("iaa->i", matrices) / np.einsum("iaa->i", inverses))
    sinh = matrices * (0.5 * SCALE / center)[:, None, None]
    inverses *= (0.5 * SCALE * center)[:, None, None]
    shifted = sinh + inverses
    sinh -= inverses
    diagonals(shifted)[...] -= SCALE * SHIFT
    return center, sinh, shifted


def _parts_in_columns(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same from upper triangles alone, one entry of all matrices after the other."""
    count, k, _ = matrices.shape
    if count == 1:
        # sums over the entries of one matrix alone would go another way
        center, sinh, shifted = _parts_in_columns(np.concatenate([matrices, matrices]))
        return center[:1], sinh[:1], shifted[:1]
    a = np.array(matrices.reshape(count, k * k).T, order="C", copy=True).reshape(k, k, count)
    above, places = _triangle(k)
    sinh = a[above]
    _invert(a)
    inverses = a[above]
    # the diagonal comes first
    center = _BETWEEN * np.sqrt(sinh[:k].sum(axis=0) / inverses[:k].sum(axis=0))
    sinh *= 0.5 * SCALE / center
    inverses *= 0.5 * SCALE * center
    shifted = np.add(sinh, inverses, out=a.reshape(k * k, count)[: len(sinh)])
    sinh -= inverses
    shifted[:k] -= SCALE * SHIFT
    sinh, shifted = (np.ascontiguousarray(part[places].T).reshape(count, k, k) for part in (sinh, shifted))
    return center, sinh, shifted


@cache
def _triangle(k: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """The entries of the diagonal and those above it, and which of them each entry of a matrix is."""
    rows, columns = (np.concatenate([np.arange(k), part]) for part in np.triu_indices(k, 1))
    places = np.empty((k, k), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return (rows, columns), places.ravel()


def _invert(a: np.ndarray) -> None:
    """Replace matrices (k, k, n), of which the upper triangles are read, by their inverses.

    A = LDLᵀ, and then A⁻¹ = D⁻¹L⁻¹ + (I − Lᵀ)A⁻¹ from the last row on (Takahashi).
    """
    k = len(a)
    factors = np.empty_like(a)
    for j in range(k):
        if j:
            a[j, j:] -= np.einsum("pn,pin->in", a[:j, j], factors[:j, j:])
        np.divide(1, a[j, j], out=a[j, j])
        np.multiply(a[j, j + 1 :], a[j, j], out=factors[j, j + 1 :])
    for i in reversed(range(k - 1)):
        own, row = factors[i, i + 1 :], a[i, i + 1 :]
        np.einsum("pn,pjn->jn", own, a[i + 1 :, i + 1 :], out=row)
        a[i, i] += np.einsum("pn,pn->n", own, row)
        np.negative(row, out=row)
        a[i + 1 :, i] = row


def _write_logs(center: np.ndarray, sinh: np.ndarray, shifted: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Logarithms, and which of them are right."""
    square = _squared(shifted)
    fourth = _squared(square)
    np.matmul(sinh, polynomial(shifted, square, fourth, np.empty_like(square)), out=logs)
    diagonals(logs)[...] += np.log(center)[:, None]
    rows = fourth.reshape(len(fourth), -1)
    return np.asarray(np.einsum("ij,ij->i", rows, rows) <= (SCALE * (LARGEST - SHIFT)) ** 8)


def _squared(matrices: np.ndarray) -> np.ndarray:
    """Of symmetric ones; where it pays by a product with the transpose, of which half of the numbers are computed."""
    other = np.swapaxes(matrices, 1, 2) if matrices.shape[-1] >= _LEAST_HALF else matrices
    return np.asarray(matrices @ other)


def polynomial(t: np.ndarray, square: np.ndarray, fourth: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Of degree 16 in t by two products more (Sastre 2018), near h(t/scale + 1.8)/scale; `held` is written to.

        y = (t⁴ + a₁t² + a₂t + a₃)(t⁴ + b₁t² + b₂),    (y + c₁t² + c₂t + c₃)(y + d₁t⁴ + d₂t + d₃) + e₁t² + e₂t + e₃

    Constants cost a diagonal each: they save sums of matrices. The scale and the numbers are a least-squares fit in
    Chebyshev's points; tests look how near it is.
    """
    y = _plus(fourth, (square, t), _FIRST, held) @ _plus(fourth, (square,), _SECOND, held)
    total = _plus(y, (square, t), _THIRD, held) @ _plus(y, (fourth, t), _FOURTH, held)
    for array, factor in zip((square, t), _TAIL, strict=False):
        total += np.multiply(array, factor, out=held)
    diagonals(total)[...] += _TAIL[-1]
    return np.asarray(total)


def _plus(
    first: np.ndarray, others: tuple[np.ndarray, ...], factors: tuple[float, ...], held: np.ndarray
) -> np.ndarray:
    """The first array, multiples of the others, and the last factor times the identity."""
    total = others[0] * factors[0]
    total += first
    for array, factor in zip(others[1:], factors[1:], strict=False):
        total += np.multiply(array, factor, out=held)
    diagonals(total)[...] += factors[-1]
    return total
