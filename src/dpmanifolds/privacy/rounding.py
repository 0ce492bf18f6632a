"""Which way numbers are rounded: what is promised up, what is afforded down; and when a promise keeps to a limit.

>>> from fractions import Fraction
>>> from dpmanifolds.privacy.rounding import float_above, float_below, keeps, keeps_as_sum
>>> float_below(Fraction(1, 3)) < Fraction(1, 3) < float_above(Fraction(1, 3))
True
>>> tenths = float_above(3 * Fraction(0.1))
>>> keeps(tenths, 0.3), keeps_as_sum(tenths, 0.3)
(False, True)

`float_above` and `float_below` round exact values. `up` and `down` move what floating-point operations have produced by
2^−46 of itself, or by 2^−bits: enough for some 2^(52−bits) correctly rounded operations, or for a function that is
right to as many units in the last place.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

ULP = 2.0**-52
_BITS = 46
SUM_SLACK = 1e-12


def up(value: Any, bits: int = _BITS) -> Any:
    """A number or an array of numbers of at least 0, moved up by 2^−bits of itself."""
    return value * (1 + 2.0**-bits)


def down(value: Any, bits: int = _BITS) -> Any:
    """A number or an array of numbers of at least 0, moved down by 2^−bits of itself."""
    return value * (1 - 2.0**-bits)


def float_above(exact: Fraction) -> float:
    """The smallest float that is not below an exact value."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def float_below(exact: Fraction) -> float:
    """The largest float that is not above an exact value."""
    return -float_above(-exact)


def root_above(exact: Fraction) -> float:
    """A float whose square is not below an exact value, the smallest or the one after it."""
    root = math.sqrt(exact)
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def root_below(exact: Fraction) -> float:
    """A float whose square is not above an exact value, the largest or the one before it."""
    root = math.sqrt(exact)
    while Fraction(root) ** 2 > exact:
        root = math.nextafter(root, 0.0)
    return root


def keeps(spent: float | None, allowed: float) -> bool:
    """Whether a promise keeps to a limit: with no slack at all, as every calibration must; None is no promise."""
    return spent is not None and spent <= allowed


def keeps_as_sum(spent: float | None, allowed: float) -> bool:
    """Whether a sum of finished parts keeps to a limit, up to the 1e−12 of it that their own rounding can add."""
    return spent is not None and spent <= allowed * (1 + SUM_SLACK)
