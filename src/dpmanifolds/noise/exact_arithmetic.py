"""Integers only: random bits revealed as they are needed, and logarithms between two integers.

>>> from dpmanifolds.noise.exact_arithmetic import minus_log
>>> low, high = minus_log(1, 1, 64)
>>> low <= 12786308645202655659 < high  # ln 2 in units of 2^-64 is 12786308645202655659.9…
True

Both are what an exact sampler stands on (docs/proofs/numerics.md): no float, no tolerance and no mathematical library
enters, so that every comparison made with these bounds is a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

Tape: TypeAlias = Callable[[int], int]
"""tape(n): the next n bits of one endless string of fair bits, as an integer below 2^n."""

_BUFFER = 4096
_TABLE_BITS = 7


class BitStream:
    """Fair bits from a generator, in whole bytes; every bit is handed out once."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._bytes = b""
        self._next = 0

    def take(self, bits: int) -> int:
        """An integer uniform on 0, …, 2^bits − 1."""
        count = -(-bits // 8)
        start, stop = self._next, self._next + count
        if stop > len(self._bytes):
            self._bytes = self._generator.bytes(max(_BUFFER, count))
            start, stop = 0, count
        self._next = stop
        return int.from_bytes(self._bytes[start:stop]) >> (8 * count - bits)

    def below(self, limit: int) -> int:
        """An integer uniform on 0, …, limit − 1 (by rejection, so without bias)."""
        bits = (limit - 1).bit_length()
        while True:
            number = self.take(bits)
            if number < limit:
                return number

    def tape(self) -> Tape:
        """The bits of one more independent real number uniform on (0, 1)."""
        return self.take


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
