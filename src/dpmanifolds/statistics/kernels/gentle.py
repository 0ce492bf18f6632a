"""Integers of gentle 3×3 matrices in closed form, for Pallas kernels.

Gentle are those that are plainly symmetric and positive, with eigenvalues within a factor 2¹⁸ or so.

With q = tr X/3 and B = X/q − 1, an eigenvalue of B is 2p·cos φ, p² = tr B²/6. The cosine of 3φ is det B/2p³, its sine
comes from the discriminant. That is the Gram determinant of 1, B and B², a sum of squares of minors, which keeps its
digits where eigenvalues come together. log X = c₀ + c₁B + c₂B² interpolates log at the eigenvalues.

Divisions, roots and elementary functions in double precision are slow on an accelerator. So reciprocals, roots and the
angle start from single precision; one step of third order, or of Newton, makes doubles of them. `triton_gentle.py` is
the same for PyTorch.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple

from dpmanifolds._arrays import Array
from dpmanifolds.statistics.kernels.formulas import Entries, whitened

_LEAST = 2.0**-110
"""What single precision can still hold."""
_LOG2 = math.log(2)


def gentle_terms(x: Entries, numbers: Any, *, whiten: bool) -> tuple[list[Array], Array]:
    """Integers of records given by their entries, float64, and which ones are gentle; the others have zeros.

    `numbers`: those of `BallNumbers.flat`. No gentle record breaks a rule: its entries are as like as one part in 2²¹,
    and no square of them leaves floating point.
    """
    from jax import numpy as xp

    sizes = {at: _high_word(entry) & 0x7FFFFFFF for at, entry in x.items()}
    size = reduce(xp.maximum, sizes.values())
    gentle = (size < _word(500)) & (size > _word(-500))
    for i, j in combinations(range(3), 2):
        gentle = gentle & ((_high_word(x[i, j] - x[j, i]) & 0x7FFFFFFF) <= size - (21 << 20))
    full = {(i, j): x[min(i, j), max(i, j)] for i, j in x}
    matrix = {(i, j): numbers[3 * i + j] for i in range(3) for j in range(3)}
    upper = {(i, j): full[i, j] for i in range(3) for j in range(i, 3)}
    logs, closed = gentle_logs(whitened(full, matrix, 3) if whiten else upper)
    inverse_radius, limit, scale = numbers[15], numbers[16], numbers[17]
    rows = [(entry - numbers[9 + at]) * inverse_radius for at, entry in enumerate(logs)]
    squared = sum(entry * entry for entry in rows)
    gentle = gentle & closed & (squared < 2.0**100)
    long = gentle & (squared > limit * limit)
    one = xp.ones_like(squared)
    factor = xp.where(long, scale * limit * _reciprocal_root(xp.where(long, squared, one)), scale)
    whole = [_nearest(xp.where(gentle, entry * factor, 0.0)) for entry in rows]
    radius = scale.astype(xp.int64)
    fits = sum(entry * entry for entry in whole) <= radius * radius
    return [xp.where(fits, entry, xp.zeros_like(entry)) for entry in whole], gentle


def gentle_logs(w: Entries) -> tuple[list[Array], Array]:
    """Orthonormal coordinates of the logarithm of matrices of entries (i, j), i ≤ j, and which ones are gentle.

    Those that are not have any numbers.
    """
    from jax import numpy as xp

    mean = (w[0, 0] + w[1, 1] + w[2, 2]) * (1 / 3)
    word, one, zero = _high_word(mean), xp.ones_like(mean), xp.zeros_like(mean)
    gentle = (word > _word(-100)) & (word < _word(100))
    mean = xp.where(gentle, mean, one)
    per = _reciprocal(mean)
    b = {(i, j): entry * per - 1.0 if i == j else entry * per for (i, j), entry in w.items()}
    s = {(i, j): sum(b[min(i, r), max(i, r)] * b[min(r, j), max(r, j)] for r in range(3)) for i, j in w}
    trace = s[0, 0] + s[1, 1] + s[2, 2]
    # 6 at most where all eigenvalues are positive; the comparison is false for what is not a number
    gentle = gentle & (trace < 8.0)
    # what would leave single precision is a multiple of the identity up to rounding, and any angle serves
    spread = xp.maximum(trace * (1 / 6), _LEAST)
    root = _reciprocal_root(spread)
    p, cubed = spread * root, root * root * root
    off = b[0, 1] * s[0, 1] + b[0, 2] * s[0, 2] + b[1, 2] * s[1, 2]
    cubes = b[0, 0] * s[0, 0] + b[1, 1] * s[1, 1] + b[2, 2] * s[2, 2] + 2.0 * off
    sine_square = xp.maximum(_area(b, s, trace) * cubed * cubed * (1 / 9), _LEAST)
    cosine, sine = _third_of_angle(cubes * cubed * (1 / 6), sine_square * _reciprocal_root(sine_square))
    half, across = p * cosine, math.sqrt(3) * p * sine
    first, second, third = 2.0 * half, across - half, -across - half
    gentle = gentle & (_high_word(1.0 + third) > _word(-18))
    first, second, third = (xp.where(gentle, entry, zero) for entry in (first, second, third))
    # gaps by themselves: differences of eigenvalues would lose digits
    upper = xp.where(gentle, xp.maximum(3.0 * half - across, 0.0), zero)
    lower = xp.where(gentle, 2.0 * across, zero)
    r2, r3 = _reciprocal(1.0 + second), _reciprocal(1.0 + third)
    slope = _log1p_over(upper * r2) * r2
    bend = (slope - _log1p_over(lower * r3) * r3) * _reciprocal(xp.maximum(upper + lower, _LEAST))
    linear = slope - bend * (first + second)
    top = _log(mean * (1.0 + first)) + first * (bend * second - slope)
    logs = {at: bend * s[at] + linear * b[at] for at in w}
    return [logs[i, i] + top for i in range(3)] + [math.sqrt(2) * logs[at] for at in combinations(range(3), 2)], gentle


def _area(b: Entries, s: Entries, trace: Array) -> Array:
    """The squared area that B and B² − tr B²/3 span, over 2, by their coordinates without trace."""
    rows = []
    for m, last in ((b, b[2, 2]), (s, s[2, 2] - trace * (1 / 3))):
        rows.append([(m[0, 0] - m[1, 1]) * 0.5, math.sqrt(0.75) * last, m[0, 1], m[0, 2], m[1, 2]])
    minors = [rows[0][i] * rows[1][j] - rows[0][j] * rows[1][i] for i, j in combinations(range(5), 2)]
    return sum(minor * minor for minor in minors)


def _third_of_angle(x: Array, y: Array) -> tuple[Array, Array]:
    """Cosine and sine of a third of the angle of (x, y), a unit vector with y ≥ 0."""
    from jax import numpy as xp

    angle = xp.atan2(y.astype(xp.float32), x.astype(xp.float32)) * xp.float32(1 / 3)
    c, s = xp.cos(angle).astype(xp.float64), xp.sin(angle).astype(xp.float64)
    long = c * c + s * s - 1.0
    short = 1.0 + long * (0.375 * long - 0.5)
    c, s = c * short, s * short
    turn = (y * c * (c * c - 3.0 * s * s) - x * s * (3.0 * c * c - s * s)) * (1 / 3)
    bend = 0.5 * turn * turn
    return c - s * turn - c * bend, s + c * turn - s * bend


class _Parts(NamedTuple):
    """x = 2^power·part, part between 1/√2 and √2."""

    power: Array
    part: Array


def _parts(x: Array) -> _Parts:
    from jax import lax
    from jax import numpy as xp

    power = lax.shift_right_arithmetic(_high_word(x) - 0x3FE6A09E, xp.int32(20))
    bits = lax.bitcast_convert_type(x, xp.int64) - lax.shift_left(power.astype(xp.int64), xp.int64(52))
    return _Parts(power, lax.bitcast_convert_type(bits, xp.float64))


def _log(x: Array) -> Array:
    """For positive normal numbers."""
    power, part = _parts(x)
    rest = part - 1.0
    return power * _LOG2 + rest * _log_of_part(rest)


def _log1p_over(x: Array) -> Array:
    """log(1 + x)/x for x ≥ 0, and 1 for x = 0."""
    from jax import numpy as xp

    power, part = _parts(x + 1.0)
    near = power == 0
    rest = xp.where(near, x, part - 1.0)
    share = _log_of_part(rest)
    return xp.where(near, share, (power * _LOG2 + rest * share) * _reciprocal(xp.where(near, 1.0, x)))


def _log_of_part(rest: Array) -> Array:
    """log(1 + rest)/rest, rest between 1/√2 − 1 and √2 − 1, by the series of artanh."""
    half = _reciprocal(rest + 2.0)
    square = (rest * half) ** 2
    total = square * 0.0 + 1 / 21
    for odd in range(19, 0, -2):
        total = total * square + 1 / odd
    return total * 2.0 * half


def _reciprocal(x: Array) -> Array:
    from jax import numpy as xp

    seed = (1 / x.astype(xp.float32)).astype(xp.float64)
    rest = 1.0 - x * seed
    return seed + seed * (rest + rest * rest)


def _reciprocal_root(x: Array) -> Array:
    from jax import lax
    from jax import numpy as xp

    seed = lax.rsqrt(x.astype(xp.float32)).astype(xp.float64)
    rest = 1.0 - x * seed * seed
    return seed + seed * rest * (0.5 + 0.375 * rest)


def _nearest(x: Array) -> Array:
    """The nearest integer, for numbers below 2⁵¹."""
    from jax import lax
    from jax import numpy as xp

    # the bits of 1.5·2⁵²
    return lax.bitcast_convert_type(x + 1.5 * 2.0**52, xp.int64) - xp.int64(0x4338 << 48)


def _high_word(x: Array) -> Array:
    """Sign, exponent and twenty bits: in the same order for positive numbers, the largest for what is no number."""
    from jax import lax
    from jax import numpy as xp

    return lax.shift_right_arithmetic(lax.bitcast_convert_type(x, xp.int64), xp.int64(32)).astype(xp.int32)


def _word(power: int) -> int:
    """The high word of 2^power."""
    return (1023 + power) << 20
