"""The nearest integers of columns of numbers, and whether they lie in a body, exactly.

>>> import numpy as np
>>> nearest_integers(np.array([[2.6], [-0.5], [9.0]]), 4).tolist()
[[3], [0], [4]]
"""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds._arrays import Array, clamp, is_numpy, namespace

# numbers next to 1.5·2⁵² are whole: adding it rounds to the nearest, ties to even, and leaves an integer in the last
# bits
_WHOLE, _BITS_OF_WHOLE = 1.5 * 2.0**52, 0x4338 << 48
_FINEST = 29
_PLAIN_LEAST, _PLAIN_MOST = 1e-140, 1e140  # squares of such lengths are in range


def nearest_integers(scaled: Array, radius: int) -> Array:
    """The nearest integers, cut to ±radius; NumPy's numbers are written to."""
    xp = namespace(scaled)
    if is_numpy(scaled):
        np.clip(scaled, -radius, radius, out=scaled)
        scaled += _WHOLE
        whole: np.ndarray = scaled.view(np.int64)
        whole -= _BITS_OF_WHOLE
        return whole
    return xp.astype(clamp(xp.round(scaled), -radius, radius), xp.int64)


def keep_columns(columns: Array, which: Array) -> Array:
    """The columns that are kept, and 0 in place of the others."""
    xp = namespace(columns)
    return xp.where(which, columns, xp.zeros_like(columns[:1, :1]))


def box_fits(whole: Array, exponent: int) -> Array:
    """Whether no integer of a column is larger than 2^exponent."""
    xp = namespace(whole)
    return xp.all(xp.abs(whole) <= 1 << exponent, axis=0)


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
    squares = np.einsum("ij,ij->j", whole, whole) if is_numpy(whole) else xp.sum(whole * whole, axis=0)
    return squares <= 1 << (2 * exponent)


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


def ball_integers(
    rows: Array,
    exponent: int,
    *,
    radius: float = 1.0,
    usable: Array | None = None,
    shares: Array | None = None,
    lengths: Array | None = None,
) -> Array:
    """Integers (dim, n), int64, of rows (n, dim): each column from one row alone, 0 where it is not usable.

    Rows are float64 arrays of any library, to be multiplied by their `shares` and then as long as `lengths`, where
    these are given. One column per record: what follows adds up along the last axis.
    """
    xp = namespace(rows)
    columns = xp.permute_dims(rows, (1, 0))
    most, limit = 1 << exponent, shortened_length(columns.shape[0], exponent)
    with np.errstate(all="ignore"):
        if not _PLAIN_LEAST < radius < _PLAIN_MOST:
            columns, radius, lengths = columns / radius, 1.0, None if lengths is None else lengths / radius
        length = xp.sqrt(xp.sum(columns * columns, axis=0)) if lengths is None else lengths
        factor = limit * most / clamp(length, limit * radius, math.inf)
        if shares is not None:
            factor = factor * shares
        if is_numpy(columns):
            return fitting_integers(columns * factor, exponent, usable)
        usable = length < math.inf if usable is None else usable & (length < math.inf)
        whole = nearest_integers(keep_columns(columns * factor, usable), most)
    return keep_columns(whole, length_fits(whole, exponent))


def fitting_integers(scaled: np.ndarray, exponent: int, usable: np.ndarray | None = None) -> np.ndarray:
    """The nearest integers z of NumPy's columns, which are written to; 0 where Σz² > 4^exponent, or not usable.

    *In integers.* 1.5·2⁵² is added and taken away again. Where |y| ≤ 2⁵⁰ for what is left, the sum was next to 1.5·2⁵²:
    numbers are whole there, and differences exact, so that y is whole and z = y in the last bits of the sum, whatever
    had been added. NaN, inf and numbers out of range leave no such y.

    *Exactly.* Squares of d whole numbers y, added up in any order, with fused products or without, are (1 + e)·Σy² with
    |e| ≤ (d + 1)·2⁻⁵³ to first order. If what was computed is at most 4^m·(1 − (d + 8)·2⁻⁵²), then Σy² < 4^m, and all
    |y| < 2^m. The others, NaN among them, are counted in 64-bit integers, each column by itself (docs/proofs/sums.md).

    >>> fitting_integers(np.array([[2.6, 3.0, np.nan], [-1.0, 4.0, 0.0]]), exponent=2).tolist()  # 9 + 16 > 4²
    [[3, 0, 0], [-1, 0, 0]]
    """
    scaled += _WHOLE
    seen = scaled - _WHOLE
    whole: np.ndarray = scaled.view(np.int64)
    whole -= _BITS_OF_WHOLE
    fits = np.einsum("ij,ij->j", seen, seen) <= 4.0**exponent * (1 - (len(seen) + 8) * 2.0**-52)
    doubtful = np.flatnonzero(~fits)
    if doubtful.size:
        small = (np.abs(seen[:, doubtful]) <= 1 << exponent).all(axis=0)
        # squares of the others may leave 64 bits
        fits[doubtful] = small & length_fits(whole[:, doubtful] * small, exponent)
    if usable is not None:
        fits &= usable
    whole[:, np.flatnonzero(~fits)] = 0
    return whole


def box_integers(rows: Array, exponent: int) -> Array:
    """Integers (dim, n) of rows (n, dim) in [−1, 1]^dim, each number cut on its own; 0 where one is not finite."""
    xp = namespace(rows)
    columns = xp.permute_dims(rows, (1, 0))
    radius = 1 << exponent
    finite = ~xp.isnan(columns)
    cut = clamp(xp.where(finite, columns, xp.zeros_like(columns)), -1.0, 1.0)
    return nearest_integers(cut * radius, radius)
