"""Logarithms of matrices up to 3×3 without any decision that depends on the data, for compilers to fuse.

The same formulas as on the host (`manifolds/_symmetric.py`). Every quantity is one array over records; what a
decision would have been for comes back as a flag.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple

from dpmanifolds._arrays import Array

Entries = dict[tuple[int, int], Array]

TINY = {True: 2.2250738585072014e-308, False: 1.1754943508222875e-38}
"""The smallest normal number, in double precision and in single."""
SWEEPS = 4


class Terms(NamedTuple):
    """What each record adds to the sums and what goes into the largest, one array each."""

    summed: list[Array]
    """w·y in orthonormal coordinates, w‖y‖, w‖y‖², w·λ_max/λ_min; then the Hessian's upper triangle, row by row."""
    peaks: list[Array]
    """‖y‖, and whether the record needs more care."""


def log_terms(
    xp: Any,
    k: int,
    unit: float,
    x: Entries,
    weights: Array,
    matrix: Entries | None,
    center: list[Array],
    radius: Array,
    *,
    hessian: bool,
) -> Terms:
    """The terms of y = log(M x Mᵀ) − centre, clipped to a ball; `matrix` None: M is the identity."""
    flag = _malformed(xp, x, k, 1e-6 if unit < 1e-10 else 1e-3)
    entries = {at: x[at] for at in x if at[0] <= at[1]} if matrix is None else whitened(x, matrix, k)
    rotated, u = rotations(xp, entries, k, SWEEPS + hessian, unit, with_vectors=hessian)
    smallest, middle, largest = sorted_values(xp, rotated, k)
    flag = flag | ~(smallest > 0) | _unfinished(xp, rotated, k, unit)
    one, zero = xp.ones_like(smallest), xp.zeros_like(smallest)
    values = [xp.where(flag, one, value) for value in (largest, middle, smallest)]
    coordinates = log_coordinates(xp, entries, values, k)
    moved = [entry - middle for entry, middle in zip(coordinates, center, strict=True)]
    squared = sum(entry * entry for entry in moved)
    distance = xp.sqrt(squared)
    inside = distance <= radius
    target = radius * (1 - math.sqrt(unit) / 16)
    shrink = xp.where(inside, one, target / xp.where(inside, one, distance))
    shares = weights * shrink
    summed = [shares * entry for entry in moved]
    summed += [shares * distance, shares * shrink * squared, weights * xp.where(inside, values[0] / values[2], zero)]
    if hessian:
        summed += _hessian_terms(xp, k, unit, rotated, u, weights)
    return Terms(summed, [shrink * distance, xp.where(flag, one, zero)])


def column_sums(xp: Any, values: Array) -> Array:
    """Σ over the rows, in groups of 1,024: no number passes through more sums than a group and the groups have."""
    rows, kinds = int(values.shape[0]), int(values.shape[1])
    even = rows - rows % 1024
    total = xp.sum(values[even:, :], axis=0)
    if even:
        total = total + xp.sum(xp.sum(xp.reshape(values[:even, :], (-1, 1024, kinds)), axis=1), axis=0)
    return total


def _hessian_terms(xp: Any, k: int, unit: float, rotated: Entries, u: list[list[Array]], weights: Array) -> list[Array]:
    """w Σ (h coth h − 1) e eᵀ over pairs of eigenvectors, with e the coordinates of (u_a u_bᵀ + u_b u_aᵀ)/√2."""
    pairs = list(combinations(range(k), 2))
    dim = k + len(pairs)
    root, small = math.sqrt(2), math.sqrt(unit) / 8
    zero = xp.zeros_like(weights)
    places = [(i, j) for i in range(dim) for j in range(i, dim)]
    total = dict.fromkeys(places, zero)
    for a, b in pairs:
        axis = [root * u[i][a] * u[i][b] for i in range(k)]
        axis += [u[i][a] * u[j][b] + u[j][a] * u[i][b] for i, j in pairs]
        p, q = rotated[(a, a)], rotated[(b, b)]
        # as on the host: (|h| + t)/(|tanh h| + t) with a small t, which is 1 where the eigenvalues coincide
        excess = (xp.abs(xp.log(p) - xp.log(q)) / 2 + small) * (p + q) / (xp.abs(p - q) + small * (p + q)) - 1
        scaled = [weights * excess * entry for entry in axis]
        for i, j in places:
            total[(i, j)] = total[(i, j)] + scaled[i] * axis[j]
    return [total[at] for at in places]


def _malformed(xp: Any, x: Entries, k: int, slack: float) -> Array:
    """Not finite, or not symmetric up to the slack that `belongs` allows."""
    size = reduce(xp.maximum, [xp.abs(entry) for entry in x.values()])
    flag = ~(size < math.inf)
    for i, j in combinations(range(k), 2):
        flag = flag | ~(xp.abs(x[(i, j)] - x[(j, i)]) <= slack * size)
    return flag


def whitened(x: Entries, matrix: Entries, k: int) -> Entries:
    """Entries (i, j), i ≤ j, of M x Mᵀ."""
    half = {(i, j): sum(matrix[i, a] * x[(a, j)] for a in range(k)) for i in range(k) for j in range(k)}
    return {(i, j): sum(half[(i, a)] * matrix[j, a] for a in range(k)) for i in range(k) for j in range(i, k)}


def rotations(
    xp: Any, entries: Entries, k: int, sweeps: int, unit: float, *, with_vectors: bool = False
) -> tuple[Entries, list[list[Array]]]:
    """Jacobi rotations as in `manifolds/_symmetric.py`, a fixed number of sweeps; eigenvectors if asked for."""
    a = dict(entries)
    one, zero = xp.ones_like(a[(0, 0)]), xp.zeros_like(a[(0, 0)])
    u = [[one if i == j else zero for j in range(k)] for i in range(k)]
    tiny = TINY[unit < 1e-10]
    for p, q in list(combinations(range(k), 2)) * (sweeps if k > 2 else 1):
        gap, twice = a[(q, q)] - a[(p, p)], 2 * a[(p, q)]
        root = xp.sqrt(gap * gap + twice * twice) + tiny
        tangent = twice / (gap + xp.where(gap < 0, -root, root))
        cosine = 1 / xp.sqrt(1 + tangent * tangent)
        sine = tangent * cosine
        change = tangent * a[(p, q)]
        a[(p, p)], a[(q, q)], a[(p, q)] = a[(p, p)] - change, a[(q, q)] + change, zero
        for r in range(k):
            if r not in (p, q):
                rp, rq = (min(r, p), max(r, p)), (min(r, q), max(r, q))
                a[rp], a[rq] = cosine * a[rp] - sine * a[rq], sine * a[rp] + cosine * a[rq]
            if with_vectors:
                u[r][p], u[r][q] = cosine * u[r][p] - sine * u[r][q], sine * u[r][p] + cosine * u[r][q]
    return a, u


def _unfinished(xp: Any, a: Entries, k: int, unit: float) -> Array:
    """Whether a_pq² is above rounding of a_pp·a_qq: an eigenvalue is off by no more than that share of itself."""
    flag = xp.zeros_like(a[(0, 0)]) > 0
    for p, q in combinations(range(k), 2):
        flag = flag | (a[(p, q)] * a[(p, q)] > unit / 4 * xp.abs(a[(p, p)] * a[(q, q)]))
    return flag


def sorted_values(xp: Any, a: Entries, k: int) -> tuple[Array, Array, Array]:
    """Smallest, middle and largest eigenvalue; the largest stands in for a middle one that there is not."""
    if k == 1:
        return a[(0, 0)], a[(0, 0)], a[(0, 0)]
    low, high = xp.minimum(a[(0, 0)], a[(1, 1)]), xp.maximum(a[(0, 0)], a[(1, 1)])
    if k == 2:
        return low, high, high
    last = a[(2, 2)]
    return xp.minimum(low, last), xp.maximum(low, xp.minimum(high, last)), xp.maximum(high, last)


def log_coordinates(xp: Any, entries: Entries, values: list[Array], k: int) -> list[Array]:
    """Orthonormal coordinates of the logarithm by the eigenvalues λ₁ ≥ λ₂ ≥ λ₃: its diagonal, √2 times the rest."""
    logs = _interpolated(xp, entries, values, k)
    root = math.sqrt(2)
    return [logs[(i, i)] for i in range(k)] + [root * logs[at] for at in combinations(range(k), 2)]


def _interpolated(xp: Any, entries: Entries, values: list[Array], k: int) -> Entries:
    """Newton interpolation of log at the eigenvalues λ₁ ≥ λ₂ ≥ λ₃, as in `manifolds/_symmetric.py`."""
    largest, middle, smallest = values
    constant = xp.log(largest)
    if k == 1:
        return {(0, 0): constant}
    second = middle if k > 2 else smallest
    slope = _log_slope(xp, largest, second)
    first = {(i, j): entry - largest if i == j else entry for (i, j), entry in entries.items()}
    result = {(i, j): slope * entry + constant if i == j else slope * entry for (i, j), entry in first.items()}
    if k == 2:
        return result
    shifted = {(i, j): entry - middle if i == j else entry for (i, j), entry in entries.items()}
    width = largest - smallest
    bend = (slope - _log_slope(xp, middle, smallest)) / xp.where(width > 0, width, xp.ones_like(width))
    for i, j in first:
        square = sum(first[min(i, r), max(i, r)] * shifted[min(r, j), max(r, j)] for r in range(k))
        result[(i, j)] = result[(i, j)] + bend * square
    return result


def _log_slope(xp: Any, a: Array, b: Array) -> Array:
    """(log a − log b)/(a − b), and 1/b where they coincide."""
    x = (a - b) / b
    apart = xp.abs(x) > 0
    safe = xp.where(apart, x, xp.ones_like(x))
    return xp.where(apart, xp.log1p(safe) / safe, xp.ones_like(x)) / b
