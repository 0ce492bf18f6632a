"""The nearest integers of columns of numbers, and whether they lie in a body, exactly.

>>> import numpy as np
>>> nearest_integers(np.array([[2.6], [-0.5], [9.0]]), 4).tolist()
[[3], [0], [4]]
"""

from __future__ import annotations

import numpy as np

from dpmanifolds._arrays import Array, clamp, is_numpy, namespace

# numbers next to 1.5·2⁵² are whole: adding it rounds to the nearest, ties to even, and leaves an integer in the last
# bits
WHOLE, BITS_OF_WHOLE = 1.5 * 2.0**52, 0x4338 << 48


def nearest_integers(scaled: Array, radius: int) -> Array:
    """The nearest integers, cut to ±radius; NumPy's numbers are written to."""
    xp = namespace(scaled)
    if is_numpy(scaled):
        np.clip(scaled, -radius, radius, out=scaled)
        scaled += WHOLE
        whole: np.ndarray = scaled.view(np.int64)
        whole -= BITS_OF_WHOLE
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
