"""Functions of symmetric matrices, with derivatives that stay right where eigenvalues repeat (Daleckii–Krein).

With A = U diag(λ) Uᵀ: f(A) = U f(λ) Uᵀ, Df(A)[V] = U (f[λᵢ,λⱼ] ∘ UᵀVU) Uᵀ, and D²f(A)[V,W] has the entries
Σ_k f[λᵢ,λ_k,λⱼ](V_ik W_kj + W_ik V_kj) in the same frame: no difference of eigenvectors ever appears.

>>> import numpy as np
>>> matrix_form("log", np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])).round(12).tolist()
[[0.0, 1.0], [1.0, 0.0]]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, sym, transpose
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.manifolds._derivatives import multilinear

__all__ = ["matrix_form"]

_LARGEST_ORDER = 3
_TERMS = 22


class _Scalar(NamedTuple):
    """derivative(n, x) is f⁽ⁿ⁾(x), and room(x) how far from x on f has no singularity."""

    derivative: Callable[[int, Array], Array]
    room: Callable[[Array], Array]


def matrix_form(name: str, matrix: Array, *directions: Array) -> Array:
    """Dⁿf(A)[V₁,…,V_n] of symmetric parts, n ≤ 3, to be differentiated until then; f is "log", "exp" or "arc".

    "arc" is arccos(x)/√(1−x²), the angle over its sine as a function of its cosine.
    """
    return multilinear(_form(name), matrix, *directions)


@cache
def _form(name: str) -> Callable[..., Array]:
    return partial(_evaluate, _SCALARS[name])


def _evaluate(scalar: _Scalar, matrix: Array, *directions: Array) -> Array:
    xp = namespace(matrix, *directions)
    order = len(directions)
    if order > _LARGEST_ORDER:
        raise NotAvailableError(
            f"derivatives of order {order} of functions of matrices are not available; those of order "
            f"{_LARGEST_ORDER} and below are."
        )
    values, frame = xp.linalg.eigh(sym(matrix))
    if not order:
        return sym((frame * scalar.derivative(0, values)[..., None, :]) @ transpose(frame))
    seen = [transpose(frame) @ sym(direction) @ frame for direction in directions]
    # axes i₀, …, i_n of all the eigenvalues that meet, direction m between i_m and i_{m+1}
    nodes = [values[(..., *_slots(order, m))] for m in range(order + 1)]
    total = 0
    for chosen in permutations(seen):
        term = chosen[0][(..., *_slots(order, 0, 1))]
        for m in range(1, order):
            term = term * chosen[m][(..., *_slots(order, m, m + 1))]
        total = total + term
    inner = total * _divided(scalar, xp.sort(xp.stack(xp.broadcast_arrays(*nodes), axis=-1), axis=-1))
    if order > 1:
        inner = xp.sum(inner, axis=tuple(range(-order, -1)))
    return sym(frame @ inner @ transpose(frame))


def _slots(order: int, *kept: int) -> tuple[slice | None, ...]:
    """An index that puts the last axes of an array at these of `order` + 1 places."""
    return tuple(slice(None) if place in kept else None for place in range(order + 1))


def _divided(scalar: _Scalar, points: Array) -> Array:
    """f[x₀,…,x_n] of sorted points on the last axis.

    By the outer two; where these are close the mean of f⁽ⁿ⁾ over the simplex of weights (Hermite–Genocchi).
    """
    xp = namespace(points)
    order = points.shape[-1] - 1
    low = points[..., 0]
    if order == 0:
        return scalar.derivative(0, low)
    spread = points[..., -1] - low
    near = spread < 0.3 * scalar.room(low)
    reaches, weights = _simplex(order)
    place = low[..., None]
    for m in range(order):
        step = xp.where(near, points[..., m + 1] - points[..., m], xp.zeros_like(low))
        place = place + step[..., None] * like(reaches[:, m], low)
    mean = xp.sum(scalar.derivative(order, place) * like(weights, low), axis=-1)
    far = _divided(scalar, points[..., 1:]) - _divided(scalar, points[..., :-1])
    return xp.where(near, mean, far / xp.where(near, xp.ones_like(low), spread))


@cache
def _simplex(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes 1 ≥ t₁ ≥ … ≥ t_n ≥ 0 and weights of the mean over them: Gauss–Legendre in t₁, t₂/t₁, …."""
    nodes, weights = np.polynomial.legendre.leggauss(8 if order < _LARGEST_ORDER else 6)
    pairs = np.array(list(product(zip((nodes + 1) / 2, weights / 2, strict=True), repeat=order)))
    ratios, shares = pairs[..., 0], pairs[..., 1]
    return np.cumprod(ratios, axis=1), np.prod(shares * ratios ** np.arange(order - 1, -1, -1), axis=1)


def _log(order: int, x: Array) -> Array:
    return namespace(x).log(x) if order == 0 else (-1) ** (order - 1) * math.factorial(order - 1) / x**order


def _exp(order: int, x: Array) -> Array:
    return namespace(x).exp(x)


def _arc(order: int, x: Array) -> Array:
    """h(x) = arccos(x)/√(1−x²), x > −1: (1−x²)h⁽ⁿ⁺¹⁾ = n²h⁽ⁿ⁻¹⁾ + (2n+1)xh⁽ⁿ⁾ and (1−x²)h' = xh − 1.

    Near x = 1 the power series Σ n!/(2n+1)!!·(1−x)ⁿ.
    """
    xp = namespace(x)
    near = x > 0.6
    u = xp.where(near, 1 - x, xp.zeros_like(x))
    coefficients = [1.0]
    for n in range(_TERMS + order):
        coefficients.append(coefficients[-1] * (n + 1) / (2 * n + 3))
    series = xp.zeros_like(x)
    for n in reversed(range(order, len(coefficients))):
        series = series * u + (-1) ** order * math.perm(n, order) * coefficients[n]
    y = xp.where(near, xp.zeros_like(x), x)
    rest = (1 - y) * (1 + y)
    found = [xp.acos(y) / xp.sqrt(rest)]
    found.append((y * found[0] - 1) / rest)
    for n in range(1, order):
        found.append((n * n * found[n - 1] + (2 * n + 1) * y * found[n]) / rest)
    return xp.where(near, series, found[order])


_SCALARS = {
    "log": _Scalar(_log, lambda x: x),
    "exp": _Scalar(_exp, lambda x: namespace(x).ones_like(x)),
    "arc": _Scalar(_arc, lambda x: 1 + x),
}
