"""Eigendecomposition of many tiny symmetric matrices at once, one array per entry.

LAPACK spends most of a 3×3 call on overhead. Cyclic Jacobi rotations on arrays of entries keep every processor lane
busy, and keep small eigenvalues of positive definite matrices accurate.
"""

from __future__ import annotations

import math
from itertools import combinations

from dpmanifolds._arrays import Array, is_numpy, namespace

__all__ = ["LARGEST_SMALL", "jacobi_eigen", "log_entries"]

LARGEST_SMALL = 3
_SWEEPS = 6


def jacobi_eigen(entries: dict[tuple[int, int], Array], k: int) -> tuple[list[Array], list[list[Array]]]:
    """Eigenvalues λ_a and eigenvector entries U[i][a] of matrices given by their entries (i, j), i ≤ j.

    The values are not sorted. Each rotation by t = tan φ with t = 2a_pq/(a_qq − a_pp ± √…) removes a_pq. One rotation
    does for k = 2; for k = 3 the sweeps converge quadratically, and six of them, always, leave nothing above rounding:
    how often a matrix is turned does not depend on its neighbours in the block.
    """
    first = entries[(0, 0)]
    xp = namespace(first)
    a = dict(entries)
    one, zero = xp.ones_like(first), xp.zeros_like(first)
    u = [[one if i == j else zero for j in range(k)] for i in range(k)]
    pairs = list(combinations(range(k), 2))
    for p, q in pairs * (_SWEEPS if k > 2 else 1):
        _rotate(a, u, p, q, k)
    return [a[(i, i)] for i in range(k)], u


def _rotate(a: dict[tuple[int, int], Array], u: list[list[Array]], p: int, q: int, k: int) -> None:
    """Replace a by JᵀaJ and u by uJ, with the rotation J in the plane (p, q) that makes a_pq zero."""
    off = a[(p, q)]
    xp = namespace(off)
    gap = a[(q, q)] - a[(p, p)]
    twice = off + off
    tiny = float(xp.finfo(off.dtype).smallest_normal)
    tangent = twice / (gap + xp.copysign(xp.sqrt(gap * gap + twice * twice) + tiny, gap))
    cosine = 1 / xp.sqrt(1 + tangent * tangent)
    sine = tangent * cosine
    change = tangent * off
    a[(p, p)] = a[(p, p)] - change
    a[(q, q)] = a[(q, q)] + change
    a[(p, q)] = xp.zeros_like(off)
    for r in range(k):
        if r not in (p, q):
            rp, rq = (min(r, p), max(r, p)), (min(r, q), max(r, q))
            a[rp], a[rq] = cosine * a[rp] - sine * a[rq], sine * a[rp] + cosine * a[rq]
        u[r][p], u[r][q] = cosine * u[r][p] - sine * u[r][q], sine * u[r][p] + cosine * u[r][q]


Entries = dict[tuple[int, int], Array]


def log_entries(entries: Entries, k: int) -> Entries:
    """Entries (i, j), i ≤ j, of the matrix logarithm for k ≤ 3; NaN for a matrix that is not positive.

    Newton interpolation of log at the closed-form eigenvalues λ₁ ≥ λ₂ ≥ λ₃:
    f(λ₁)I + f[λ₁,λ₂](A−λ₁) + f[λ₁,λ₂,λ₃](A−λ₁)(A−λ₂). Its error is a product of eigenvalue errors, so that the √eps
    which the trigonometric formula loses at a double eigenvalue does not show; but that product is divided by λ₃²,
    so a matrix of condition above 100 goes through Jacobi rotations instead, each decided by itself.
    """
    closed_forms = {1: lambda a: [a[(0, 0)]], 2: _pair_values, 3: _triple_values}
    values = closed_forms[k](entries)
    xp = namespace(values[0])
    poor = ~(values[-1] > 0.01 * values[0])
    safe = [xp.where(poor, xp.ones_like(value), value) for value in values]
    result = _interpolated(entries, safe, k)
    if is_numpy(poor) and poor.ndim:
        few = _log_by_rotations({at: entry[poor] for at, entry in entries.items()}, k)
        for at, entry in few.items():
            result[at][poor] = entry
        return result
    rotated = _log_by_rotations(entries, k)
    return {at: xp.where(poor, rotated[at], result[at]) for at in result}


def _interpolated(entries: Entries, values: list[Array], k: int) -> Entries:
    xp = namespace(values[0])
    result = {(i, j): xp.log(values[0]) if i == j else xp.zeros_like(values[0]) for i, j in entries}
    if k == 1:
        return result
    first = _shifted(entries, values[0])
    slope = _log_slope(values[0], values[1])
    result = {at: result[at] + slope * first[at] for at in first}
    if k == 2:
        return result
    second = _shifted(entries, values[1])
    spread = values[0] - values[2]
    bend = (slope - _log_slope(values[1], values[2])) / xp.where(spread > 0, spread, xp.ones_like(spread))
    for i, j in first:
        square = sum(first[_at(i, r)] * second[_at(r, j)] for r in range(k))
        result[(i, j)] = result[(i, j)] + bend * square
    return result


def _log_by_rotations(entries: Entries, k: int) -> Entries:
    values, u = jacobi_eigen(entries, k)
    xp = namespace(values[0])
    logs = [xp.log(xp.where(value > 0, value, xp.full_like(value, math.nan))) for value in values]
    return {(i, j): sum(logs[a] * u[i][a] * u[j][a] for a in range(k)) for i, j in entries}


def _pair_values(a: Entries) -> list[Array]:
    xp = namespace(a[(0, 0)])
    middle = (a[(0, 0)] + a[(1, 1)]) / 2
    half_gap = xp.hypot((a[(0, 0)] - a[(1, 1)]) / 2, a[(0, 1)])
    largest = middle + half_gap
    return [largest, (a[(0, 0)] * a[(1, 1)] - a[(0, 1)] * a[(0, 1)]) / largest]


def _triple_values(a: Entries) -> list[Array]:
    """q + 2p·cos(φ + 2πj/3) with A = q + pB, det B = 2 cos 3φ."""
    xp = namespace(a[(0, 0)])
    off = a[(0, 1)] * a[(0, 1)] + a[(0, 2)] * a[(0, 2)] + a[(1, 2)] * a[(1, 2)]
    q = (a[(0, 0)] + a[(1, 1)] + a[(2, 2)]) / 3
    x, y, z = a[(0, 0)] - q, a[(1, 1)] - q, a[(2, 2)] - q
    p = xp.sqrt((x * x + y * y + z * z + 2 * off) / 6)
    det = x * (y * z - a[(1, 2)] * a[(1, 2)]) + a[(0, 1)] * (a[(1, 2)] * a[(0, 2)] - a[(0, 1)] * z)
    det = det + a[(0, 2)] * (a[(0, 1)] * a[(1, 2)] - y * a[(0, 2)])
    ratio = det / (2 * xp.where(p > 0, p * p * p, xp.ones_like(p)))
    angle = xp.acos(xp.clip(ratio, -1.0, 1.0)) / 3
    largest = q + 2 * p * xp.cos(angle)
    smallest = q + 2 * p * xp.cos(angle + 2 * math.pi / 3)
    return [largest, 3 * q - largest - smallest, smallest]


def _log_slope(a: Array, b: Array) -> Array:
    """(log a − log b)/(a − b), and 1/b where they coincide."""
    xp = namespace(a, b)
    x = (a - b) / b
    apart = xp.abs(x) > 0
    safe = xp.where(apart, x, xp.ones_like(x))
    return xp.where(apart, xp.log1p(safe) / safe, xp.ones_like(x)) / b


def _shifted(a: Entries, value: Array) -> Entries:
    return {(i, j): entry - value if i == j else entry for (i, j), entry in a.items()}


def _at(i: int, j: int) -> tuple[int, int]:
    return (i, j) if i <= j else (j, i)
