"""Logarithms of many positive definite 3×3 matrices up to 10⁻⁹, for integers.

>>> import numpy as np
>>> x = {(0, 0): 1.0, (1, 1): 2.0, (2, 2): 3.0, (0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0}
>>> rows, near = near_triples({at: np.array([number]) for at, number in x.items()})
>>> bool(np.allclose(rows[:, 0], [*np.log([1.0, 2.0, 3.0]), 0.0, 0.0, 0.0], rtol=0, atol=1e-9)), near.tolist()
(True, [True])
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations

import numpy as np

from dpmanifolds.manifolds._symmetric import Entries, log_by_rotations

_LEAST = 1e-9
"""Of λ₂λ₃² in units of λ₁³ for the closed form."""
_SMALLEST, _LARGEST = 1e-90, 1e100  # means of eigenvalues whose cubes, and those of 10⁻⁷ of them, are in range
_APART = 1e-14  # of q², added to p²
_INSIDE = 1 - 1e-15
_SINE = (
    -1.4067611001490543e-13,
    1.4000362329153287e-10,
    -9.072368204966797e-08,
    3.429355281054587e-05,
    -0.0061728395061725165,
    0.3333333333333333,
)
"""sin(y/3)/y as a polynomial of y² ≤ π²/4, highest power first: the best one, with errors of 10⁻¹⁷."""
_SWEEPS = 4


def near_triples(x: Entries) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (6, n) of log A for entries (i, j), i ≤ j, each (n,); and which are right: within 10⁻⁹, 10⁻¹¹ mostly.

    With A = q + B, tr B = 0, 6p² = |B|² and det B = 2p³·sin 3ψ, |ψ| ≤ π/6, the eigenvalues of B are

        −2p·sin ψ    and    p·sin ψ ± √(3p² − 3p²·sin²ψ),

    and by Newton interpolation of log at those of A, with c = log[λ₁,λ₂,λ₃] and b = log[λ₁,λ₂] + c·(λ₃ − q),

        log A = (log det A)/3 + c·p² + b·B + c·adj B,    adj B = B² − 3p².

    Interpolation holds whatever its points are, with an error that is the product of their distances from the true
    eigenvalues. So points may be moved apart by 10⁻⁸, and no divided difference is one of equal numbers: sin 3ψ is kept
    within 1 − 10⁻¹⁵, and p² is larger by 10⁻¹⁴q². Rounding moves λ₂λ₃ by some eps·λ₁², and λ₃ by some eps·λ₁: those
    with λ₂λ₃² > 10⁻⁹·λ₁³ are right, each decided by itself. All of it is element-wise, on arrays of one layout.
    """
    count = x[0, 0].size
    # of B and of adj B the diagonal from its end, and what stands opposite to each: (0, 1), (0, 2), (1, 2)
    b, adjugate, held = (np.empty((2, 3, count)) for _ in range(3))
    q = x[0, 0] + x[1, 1]
    q += x[2, 2]
    q *= 1 / 3
    for place, i in enumerate((2, 1, 0)):
        np.subtract(x[i, i], q, out=b[0, place])
    for place, at in enumerate(((0, 1), (0, 2), (1, 2))):
        b[1, place] = x[at]
    for place in range(3):
        np.multiply(b[:, place - 2], b[:, place - 1], out=adjugate[:, place])
    adjugate -= np.multiply(b[::-1], b[1], out=held)
    square = adjugate[0, 0] + adjugate[0, 1]
    square += adjugate[0, 2]
    square *= -1 / 3
    square += np.multiply(np.multiply(q, q, out=held[0, 0]), _APART, out=held[0, 0])
    values, bend = _values(q, square, _sine(b, adjugate, square, held), held)
    logs = np.log(values, out=held[0])
    cube = np.multiply(values[0], values[0], out=held[1, 0])
    cube *= values[0]
    cube *= _LEAST
    small = np.multiply(values[2], values[2], out=held[1, 1])
    small *= values[1]
    near = small > cube
    near &= q > _SMALLEST
    near &= q < _LARGEST
    gaps = np.subtract(values[:2], values[1:], out=held[1, :2])
    slopes = logs[:2] - logs[1:]
    slopes /= gaps
    bend, slope = np.divide(slopes[0] - slopes[1], bend, out=bend), slopes[0]
    slope += np.multiply(np.subtract(values[2], q, out=q), bend, out=q)
    middle = logs[0]
    middle += logs[1]
    middle += logs[2]
    middle *= 1 / 3
    middle += np.multiply(square, bend, out=square)
    return _rows(b, adjugate, middle, slope, bend), near


def _sine(b: np.ndarray, adjugate: np.ndarray, square: np.ndarray, held: np.ndarray) -> np.ndarray:
    """p·sin ψ from p²: sin 3ψ = det B/2p³, by the last row of B and its cofactors; `held` is written to."""
    np.multiply(b[0, 0], adjugate[0, 0], out=held[0, 0])
    np.multiply(b[1, 1:], adjugate[1, 1:], out=held[0, 1:])
    sine = held[0, 0]
    sine += held[0, 1]
    sine += held[0, 2]
    sine *= 0.5
    p = np.sqrt(square, out=held[1, 0])
    sine /= np.multiply(p, square, out=held[1, 1])
    angle = np.arcsin(np.clip(sine, -_INSIDE, _INSIDE, out=sine), out=sine)
    angle_squared = np.multiply(angle, angle, out=held[1, 1])
    total: np.ndarray = np.multiply(angle_squared, _SINE[0], out=held[0, 1])
    for coefficient in _SINE[1:-1]:
        total += coefficient
        total *= angle_squared
    total += _SINE[-1]
    total *= angle
    total *= p
    return total


def _values(q: np.ndarray, square: np.ndarray, sine: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues (3, n), and λ₁ − λ₃, from p² and p·sin ψ, which is written to."""
    wide = np.multiply(sine, sine, out=np.empty_like(q))
    np.subtract(square, wide, out=wide)
    wide *= 3
    np.sqrt(wide, out=wide)
    values = np.empty((3, q.size))
    middle = np.add(q, sine, out=held[0, 0])
    np.add(middle, wide, out=values[0])
    np.subtract(middle, wide, out=values[2])
    sine *= 2
    np.subtract(q, sine, out=values[1])
    wide *= 2
    return values, wide


def _rows(b: np.ndarray, adjugate: np.ndarray, middle: np.ndarray, slope: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """middle + slope·B + bend·adj B: the diagonal, then √2 times what is above it; all but B is written to."""
    rows = np.empty((6, slope.size))
    diagonal, above = rows[:3], rows[3:]
    adjugate[0] *= bend
    np.multiply(b[0, ::-1], slope, out=diagonal)
    diagonal += adjugate[0, ::-1]
    diagonal += middle
    slope *= math.sqrt(2)
    bend *= math.sqrt(2)
    adjugate[1] *= bend
    np.multiply(b[1], slope, out=above)
    above += adjugate[1]
    return rows


def log_hard(x: Entries) -> np.ndarray:
    """The same (6, n) for any entries; NaN where A is not positive.

    By rotations, of A over a power of two, as they square. Four sweeps leave what six do (tests).
    """
    exponents = np.frexp(reduce(np.maximum, (x[i, i] for i in range(3))))[1]
    rows = entry_rows(log_by_rotations({at: np.ldexp(entry, -exponents) for at, entry in x.items()}, 3, _SWEEPS), 3)
    rows[:3] += exponents * math.log(2)
    return rows


def entry_rows(logs: Entries, k: int) -> np.ndarray:
    """Coordinates (dim, n) of symmetric matrices with these entries (i, j), i ≤ j."""
    diagonal = [logs[i, i] for i in range(k)]
    return np.stack([*diagonal, *(math.sqrt(2) * logs[pair] for pair in combinations(range(k), 2))])
