"""Bounds that prove: logarithms between two integers, and normal numbers in floating point with a bound on its error.

>>> low, high = minus_log(1, 1, 64)
>>> low <= 12786308645202655659 < high  # ln 2 in units of 2^-64 is 12786308645202655659.9…
True

No tolerance and no mathematical library enters: floating point is used for sums, products, quotients and roots alone,
which IEEE 754 rounds to the nearest, so that every comparison made with these bounds is a proof
(docs/proofs/numerics.md, lemmas 2 and 3).
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

_TABLE_BITS = 7
_UNIT = 2.0**-53


def minus_log(value: int, shift: int, precision: int) -> tuple[int, int]:
    """Integers low ≤ 2^precision · (−ln(value/2^shift)) ≤ high, for 0 < value ≤ 2^shift.

    With value = m·2^e, 1 ≤ m < 2, and C/2^7 the table point below m: −ln(value/2^shift) = (shift − e)·ln 2 −
    ln(C/2^7) − 2·artanh((m − C/2^7)/(m + C/2^7)), each term between two integers. high − low is at most
    (shift + 2)·(2·precision + 12).
    """
    exponent = value.bit_length() - 1
    halvings = shift - exponent
    point = value >> (exponent - _TABLE_BITS) if exponent >= _TABLE_BITS else value << (_TABLE_BITS - exponent)
    table = _log_table(precision)
    log2_low, log2_high = table[-1]
    point_low, point_high = table[point - (1 << _TABLE_BITS)]
    above, below = value << _TABLE_BITS, point << exponent
    rest_low, rest_high = _two_artanh(above - below, above + below, precision)
    return halvings * log2_low - point_high - rest_high, halvings * log2_high - point_low - rest_low


@lru_cache(maxsize=8)
def _log_table(precision: int) -> tuple[tuple[int, int], ...]:
    """Bounds of ln(C/2^7) for C = 2^7, …, 2^8; the last entry is ln 2."""
    one = 1 << _TABLE_BITS
    return tuple(_two_artanh(point - one, point + one, precision) for point in range(one, 2 * one + 1))


def _two_artanh(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Integers low ≤ 2^precision · 2·artanh(z) ≤ high for z = numerator/denominator in [0, 1/3].

    artanh z = Σ z^(2i+1)/(2i+1). Every division below rounds down. A power is short of its true value by less than
    2 units: the first by less than 1, z² by less than 2·(1/3) + 1 < 1.7, and a power of error e gives the next one an
    error below e/9 + 1.7/3 + 1 < 2. So each of the n terms is short by less than 2 + 1, and the terms that are left
    out, each at most 1/9 of the one before, sum to less than 2·9/8 < 3: artanh z is short by less than 3(n + 1).
    """
    power = (numerator << precision) // denominator
    square = power * power >> precision
    total, odd = 0, 1
    while power:
        total += power // odd
        power = power * square >> precision
        odd += 2
    # odd = 2n + 1
    return 2 * total, 2 * total + 3 * (odd + 1)


def minus_log_between(inner: int, outer: int, shift: int, precision: int) -> tuple[int, int]:
    """Integers low ≤ 2^precision · (−ln t) ≤ high for every t in [inner, outer]/2^shift, t ≤ 1."""
    low, high = minus_log(inner, shift, precision)
    # ln outer − ln inner ≤ (outer − inner)/inner
    return max(low + ((inner - outer) << precision) // inner, 0), high


def enclosed_in_disc(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which points of [u, u + 2^-53] × [v, v + 2^-53] lie inside the unit disc, and for which that is proven."""
    squared = u * u + v * v
    return squared < 1, np.abs(squared - 1) > 2.0**-49


def enclosed_sizes(
    u: np.ndarray, v: np.ndarray, scale: tuple[np.ndarray, np.ndarray], unsure: float
) -> tuple[np.ndarray, np.ndarray]:
    """|x| and |z| of the polar method (2, n) times their scales, rounded to integers, and where these are proven.

    The points lie in [u, u + 2^-53] × [v, v + 2^-53], u and v multiples of 2^-53; each scale is known up to a share of
    `unsure`. Lemma 3 of docs/proofs/numerics.md bounds the error of each float by `doubt`.
    """
    with np.errstate(all="ignore"):
        squared = u * u + v * v
        logs, halvings = _float_minus_log(squared)
        factor = np.sqrt(2 * logs / squared)
        per_root = 1 / np.sqrt(squared)
        shared = (4.9 * per_root + 2.4 * halvings) / logs + 4.3 * per_root + (4 + unsure / _UNIT)
        rounded, proven = np.empty((2, u.size)), np.empty((2, u.size), dtype=bool)
        for at, part in enumerate((u, v)):
            size = scale[at] * part * factor
            share = 2 * _UNIT * (shared + 1 / part)
            np.rint(size, out=rounded[at])
            # share is NaN or infinite where a part or a logarithm is 0
            proven[at] = (share < 0.125) & (np.abs(size - rounded[at]) + size * share < 0.5 - 2.0**-40)
        return np.where(proven, rounded, 0.0).astype(np.int64), proven


def _float_minus_log(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """−ln of floats in (0, 1), with an error of at most 4h units of 2^-53, and h: as `minus_log`, in floats."""
    mantissa, exponent = np.frexp(values)
    mantissa, halvings = 2 * mantissa, (1 - exponent).astype(np.float64)
    place = np.clip(mantissa * (1 << _TABLE_BITS), 1 << _TABLE_BITS, (2 << _TABLE_BITS) - 1).astype(np.int64)
    point = place / (1 << _TABLE_BITS)
    z = (mantissa - point) / (mantissa + point)
    q = z * z
    rest = 2 * z * (1 + q * (1 / 3 + q * (1 / 5 + q / 7)))
    table = _float_table()
    return halvings * table[-1] - table[place - (1 << _TABLE_BITS)] - rest, halvings


@cache
def _float_table() -> np.ndarray:
    """The floats nearest to ln(C/2^7); the last entry is ln 2."""
    return np.array([(low + high) / (1 << 161) for low, high in _log_table(160)])
