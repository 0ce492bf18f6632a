"""One record, one integer vector: rows of coordinates on a public lattice, inside of a public ball, checked exactly.

>>> import numpy as np
>>> rows = np.array([[3.0, 4.0], [0.25, 0.0], [np.nan, 1.0]])
>>> ball_integers(rows, exponent=4).tolist()  # in sixteenths of the radius, which is 1
[[9, 4, 0], [12, 0, 0]]

A row w of length at most 1 becomes z = w·R rounded to integers, R = 2^exponent; a longer one is shortened first, one
that is not finite becomes 0. Whatever floating point made of it, Σz² ≤ R² is checked in exact integers at the end, and
a row that fails becomes 0: the promise rests on that check alone (docs/proofs/sums.md). Shortening aims a hair below 1,
so that neither rounding to the nearest integer nor floating point ever makes it fail.
"""

from __future__ import annotations

import math

from dpmanifolds._arrays import Array, namespace

__all__ = ["LARGEST_EXPONENT", "ball_integers", "box_fits", "box_integers", "length_fits", "shortened_length"]

LARGEST_EXPONENT = 40
_INT64_BITS = 63


def shortened_length(dim: int, exponent: int) -> float:
    """The length 1 − η that long rows are cut to: η = (d + 8)·2⁻⁵² for floating point, and √d lattice steps."""
    return 1 - (dim + 8) * 2.0**-52 - math.sqrt(dim) * 2.0**-exponent


def ball_integers(rows: Array, exponent: int) -> Array:
    """Integers (dim, n), int64, of rows (n, dim) in units of the radius: each column from one row alone.

    Rows are float64 arrays of any library. One column per record: what follows adds up along the last axis.
    """
    xp = namespace(rows)
    columns = xp.permute_dims(rows, (1, 0))
    dim = columns.shape[0]
    radius, limit = 1 << exponent, shortened_length(dim, exponent)
    squared = xp.sum(columns * columns, axis=0)
    length = xp.sqrt(squared)
    factor = xp.where(length > limit, limit / length, xp.ones_like(length)) * radius
    finite = squared < math.inf
    scaled = columns * xp.where(finite, factor, xp.zeros_like(factor))
    whole = _as_integers(xp.where(finite, scaled, xp.zeros_like(scaled)), radius)
    return whole * xp.astype(length_fits(whole, exponent), xp.int64)


def box_integers(rows: Array, exponent: int) -> Array:
    """Integers (dim, n) of rows (n, dim) in [−1, 1]^dim, each number cut on its own; 0 where one is not finite."""
    xp = namespace(rows)
    columns = xp.permute_dims(rows, (1, 0))
    radius = 1 << exponent
    finite = columns == columns
    cut = xp.clip(xp.where(finite, columns, xp.zeros_like(columns)), -1.0, 1.0)
    return _as_integers(cut * radius, radius)


def box_fits(whole: Array, exponent: int) -> Array:
    """Whether no integer of a column is larger than 2^exponent."""
    xp = namespace(whole)
    return xp.all(xp.abs(whole) <= 1 << exponent, axis=0)


def _as_integers(scaled: Array, radius: int) -> Array:
    xp = namespace(scaled)
    return xp.clip(xp.astype(xp.round(scaled), xp.int64), -radius, radius)


def length_fits(whole: Array, exponent: int) -> Array:
    """Whether Σz² ≤ 4^exponent for each column of integers |z| ≤ 2^exponent, in exact arithmetic.

    Where a sum of squares could leave 64 bits, z = a·2^L + b with 0 ≤ b < 2^L, 2L ≥ exponent, and
    Σz² = A·4^L + B·2^{L+1} + C with A = Σa², B = Σab, C = Σb², put together from two halves.

    >>> import numpy as np
    >>> length_fits(np.array([[3, 3], [4, 5]]) << 38, 40 + 1).tolist()  # 5 and 5.8 against 8
    [True, True]
    >>> length_fits(np.array([[2**40, 2**40], [0, 1]]), 40).tolist()
    [True, False]
    """
    xp = namespace(whole)
    dim = whole.shape[0]
    if 2 * exponent + (dim - 1).bit_length() < _INT64_BITS:
        return xp.sum(whole * whole, axis=0) <= 1 << (2 * exponent)
    low_bits = (exponent + 2) // 2
    low = xp.bitwise_and(xp.abs(whole), (1 << low_bits) - 1)
    high = xp.bitwise_right_shift(xp.abs(whole), xp.asarray(low_bits))
    highs, mixed, lows = (xp.sum(product, axis=0) for product in (high * high, high * low, low * low))
    # B·2^{L+1} is split at 4^L: its upper part is whole multiples of 4^L
    upper = highs + mixed // (1 << (low_bits - 1))
    lower = mixed % (1 << (low_bits - 1)) * (1 << (low_bits + 1)) + lows
    upper, lower = upper + lower // (1 << (2 * low_bits)), lower % (1 << (2 * low_bits))
    limit = 2 * exponent - 2 * low_bits
    if limit >= 0:
        return (upper < 1 << limit) | ((upper == 1 << limit) & (lower == 0))
    return (upper == 0) & (lower <= 1 << (2 * exponent))
