"""Logarithms of gentle 3×3 matrices in closed form: plainly symmetric and positive, eigenvalues within a factor 2¹⁸.

>>> import numpy as np
>>> x = {(i, j): np.array([4.0 if i == j else 1.0, -1.0]) for i in range(3) for j in range(3)}
>>> logs, gentle = gentle_logs(np, {at: entry for at, entry in x.items() if at[0] <= at[1]})
>>> gentle.tolist(), [round(float(entry[0]), 4) for entry in logs[:2]], round(float(np.log(6) - np.log(3)), 4)
([True, False], [1.3297, 1.3297], 0.6931)

With q = tr X/3 and B = X/q − 1, an eigenvalue of B is 2p·cos φ, p² = tr B²/6. The cosine of 3φ is det B/2p³, its sine
comes from the discriminant. That is the Gram determinant of 1, B and B², a sum of squares of minors, which keeps its
digits where eigenvalues come together. log X = c₀ + c₁B + c₂B² interpolates log at the eigenvalues.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

from dpmanifolds._arrays import Array
from dpmanifolds.statistics.kernels.formulas import Entries

_LEAST = 2.0**-110
_LOWEST = 2.0**-18


def gentle_logs(xp: Any, w: Entries) -> tuple[list[Array], Array]:
    """Orthonormal coordinates of the logarithm of matrices of entries (i, j), i ≤ j, and which ones are gentle.

    Those that are not have any numbers.
    """
    mean = (w[0, 0] + w[1, 1] + w[2, 2]) / 3
    gentle = (mean > 2.0**-100) & (mean < 2.0**100)
    one, zero = xp.ones_like(mean), xp.zeros_like(mean)
    mean = xp.where(gentle, mean, one)
    b = {(i, j): entry / mean - (1.0 if i == j else 0.0) for (i, j), entry in w.items()}
    s = {(i, j): sum(b[min(i, r), max(i, r)] * b[min(r, j), max(r, j)] for r in range(3)) for i, j in w}
    trace = s[0, 0] + s[1, 1] + s[2, 2]
    # 6 at most where all eigenvalues are positive; the comparison is false for what is not a number
    gentle = gentle & (trace < 8)
    spread = xp.maximum(xp.where(gentle, trace, one) / 6, _LEAST * one)
    p = xp.sqrt(spread)
    cosine, sine = _third_of_angle(xp, _determinant(b), _discriminant_root(xp, b, s, trace))
    first, across = 2 * p * cosine, math.sqrt(3) * p * sine
    second, third = across - first / 2, -across - first / 2
    gentle = gentle & (1 + third > _LOWEST)
    e1, e2, e3 = (1 + xp.where(gentle, entry, zero) for entry in (first, second, third))
    # gaps by themselves: differences of eigenvalues would lose digits
    upper = xp.where(gentle, xp.maximum(1.5 * first - across, zero), zero)
    lower = xp.where(gentle, 2 * across, zero)
    slope = _log1p_over(xp, upper / e2) / e2
    bend = (slope - _log1p_over(xp, lower / e3) / e3) / xp.maximum(upper + lower, _LEAST * one)
    linear = slope - bend * (first + second)
    top = xp.log(mean * e1) + first * (bend * second - slope)
    logs = {at: bend * s[at] + linear * b[at] for at in w}
    return [logs[i, i] + top for i in range(3)] + [math.sqrt(2) * logs[at] for at in combinations(range(3), 2)], gentle


def _determinant(b: Entries) -> Array:
    a, d, f = b[0, 0], b[1, 1], b[2, 2]
    return (
        a * (d * f - b[1, 2] * b[1, 2])
        - b[0, 1] * (b[0, 1] * f - b[0, 2] * b[1, 2])
        + b[0, 2] * (b[0, 1] * b[1, 2] - b[0, 2] * d)
    )


def _discriminant_root(xp: Any, b: Entries, s: Entries, trace: Array) -> Array:
    """2p³·sin 3φ: two thirds of the area that B and B² − tr B²/3 span, in coordinates without trace."""
    rows = []
    for m, last in ((b, b[2, 2]), (s, s[2, 2] - trace / 3)):
        rows.append([(m[0, 0] - m[1, 1]) / 2, math.sqrt(3) / 2 * last, m[0, 1], m[0, 2], m[1, 2]])
    u, v = rows
    return 2 / 3 * xp.sqrt(sum((u[i] * v[j] - u[j] * v[i]) ** 2 for i, j in combinations(range(5), 2)))


def _third_of_angle(xp: Any, x: Array, y: Array) -> tuple[Array, Array]:
    """Cosine and sine of a third of the angle of (x, y), y ≥ 0: single precision, then one step of Newton's method."""
    long = xp.sqrt(x * x + y * y)
    there = long > 0
    x = xp.where(there, x / xp.where(there, long, xp.ones_like(long)), xp.ones_like(long))
    y = xp.where(there, y / xp.where(there, long, xp.ones_like(long)), xp.zeros_like(long))
    angle = xp.astype(xp.atan2(xp.astype(y, xp.float32), xp.astype(x, xp.float32)) / 3, xp.float32)
    c, s = xp.astype(xp.cos(angle), xp.float64), xp.astype(xp.sin(angle), xp.float64)
    size = xp.sqrt(c * c + s * s)
    c, s = c / size, s / size
    turn = (y * c * (c * c - 3 * s * s) - x * s * (3 * c * c - s * s)) / 3
    bend = turn * turn / 2
    return c - s * turn - c * bend, s + c * turn - s * bend


def _log1p_over(xp: Any, x: Array) -> Array:
    """log(1 + x)/x for x ≥ 0, and 1 for x = 0."""
    apart = x > 0
    safe = xp.where(apart, x, xp.ones_like(x))
    return xp.where(apart, xp.log1p(safe) / safe, xp.ones_like(x))
