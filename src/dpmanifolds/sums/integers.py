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

import numpy as np

from dpmanifolds._arrays import Array, clamp, namespace

__all__ = ["ball_integers", "box_fits", "box_integers", "finest_exponent", "length_fits", "shortened_length"]

_FINEST = 29
_PLAIN_LEAST, _PLAIN_MOST = 1e-140, 1e140  # squares of such lengths are in range


def finest_exponent(dim: int) -> int:
    """The largest exponent, 29 or less, at which dim·4^exponent fits 63 bits.

    Rounding then moves a sum of n records by about √(n/12) steps of 2R that one record can move it by, and shortening
    costs √d/2^exponent of the radius: 1e−8 for small d, 5e−4 at d = 10⁶.

    >>> finest_exponent(6), finest_exponent(1000), finest_exponent(10**6)
    (29, 26, 21)
    """
    return min(_FINEST, (62 - (dim - 1).bit_length()) // 2)


def shortened_length(dim: int, exponent: int) -> float:
    """The length 1 − η that long rows are cut to: η = (d + 8)·2⁻⁵² for floating point, and √d lattice steps."""
    return 1 - (dim + 8) * 2.0**-52 - math.sqrt(dim) * 2.0**-exponent


def ball_integers(rows: Array, exponent: int, *, radius: float = 1.0, usable: Array | None = None) -> Array:
    """Integers (dim, n), int64, of rows (n, dim): each column from one row alone, 0 where it is not usable.

    Rows are float64 arrays of any library. One column per record: what follows adds up along the last axis.
    """
    xp = namespace(rows)
    columns = xp.permute_dims(rows, (1, 0))
    most, limit = 1 << exponent, shortened_length(columns.shape[0], exponent)
    with np.errstate(all="ignore"):
        if not _PLAIN_LEAST < radius < _PLAIN_MOST:
            columns, radius = columns / radius, 1.0
        squared = xp.sum(columns * columns, axis=0)
        length = xp.sqrt(squared)
        factor = xp.where(length > limit * radius, limit / length, xp.full_like(length, 1 / radius)) * most
        usable = squared < math.inf if usable is None else usable & (squared < math.inf)
        scaled = xp.where(usable, columns * factor, xp.zeros_like(length))
    whole = _as_integers(scaled, most)
    return whole * xp.astype(length_fits(whole, exponent), xp.int64)


def box_integers(rows: Array, exponent: int) -> Array:
    """Integers (dim, n) of rows (n, dim) in [−1, 1]^dim, each number cut on its own; 0 where one is not finite."""
    xp = namespace(rows)
    columns = xp.permute_dims(rows, (1, 0))
    radius = 1 << exponent
    finite = ~xp.isnan(columns)
    cut = clamp(xp.where(finite, columns, xp.zeros_like(columns)), -1.0, 1.0)
    return _as_integers(cut * radius, radius)


def box_fits(whole: Array, exponent: int) -> Array:
    """Whether no integer of a column is larger than 2^exponent."""
    xp = namespace(whole)
    return xp.all(xp.abs(whole) <= 1 << exponent, axis=0)


def _as_integers(scaled: Array, radius: int) -> Array:
    xp = namespace(scaled)
    return clamp(xp.astype(xp.round(scaled), xp.int64), -radius, radius)


def length_fits(whole: Array, exponent: int) -> Array:
    """Whether Σz² ≤ 4^exponent for each column of integers |z| ≤ 2^exponent, in exact arithmetic.

    So fine a lattice that a sum of squares could leave 64 bits is not used: `finest_exponent`.

    >>> import numpy as np
    >>> length_fits(np.array([[3, 3], [4, 5]]), 3).tolist()  # 25 and 34 against 64
    [True, True]
    >>> length_fits(np.array([[2**20, 2**20], [0, 1]]), 20).tolist()
    [True, False]
    """
    xp = namespace(whole)
    return xp.sum(whole * whole, axis=0) <= 1 << (2 * exponent)
