"""Smooth functions of squared lengths, for derivatives: a power series near 0, the closed form elsewhere.

Both sides of every choice are finite with all their derivatives, which automatic differentiation needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpmanifolds._arrays import Array, namespace

__all__ = ["arc_ratio", "arsinh_ratio", "cos_root", "cosh_root", "sinc_root", "sinhc_root"]

_TERMS = 12


def _polynomial(x: Array, coefficients: list[float]) -> Array:
    total = namespace(x).full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _series_or(s: Array, coefficients: list[float], far: Callable[[Array], Array], below: float) -> Array:
    xp = namespace(s)
    near = s < below
    series = _polynomial(xp.where(near, s, xp.zeros_like(s)), coefficients)
    return xp.where(near, series, far(xp.where(near, xp.ones_like(s), s)))


def cos_root(s: Array) -> Array:
    """cos √s."""
    xp = namespace(s)
    return _series_or(s, [(-1) ** j / math.factorial(2 * j) for j in range(_TERMS)], lambda t: xp.cos(xp.sqrt(t)), 1.0)


def sinc_root(s: Array) -> Array:
    """sin √s / √s."""
    xp = namespace(s)
    coefficients = [(-1) ** j / math.factorial(2 * j + 1) for j in range(_TERMS)]
    return _series_or(s, coefficients, lambda t: xp.sin(xp.sqrt(t)) / xp.sqrt(t), 1.0)


def cosh_root(s: Array) -> Array:
    """cosh √s."""
    xp = namespace(s)
    return _series_or(s, [1 / math.factorial(2 * j) for j in range(_TERMS)], lambda t: xp.cosh(xp.sqrt(t)), 1.0)


def sinhc_root(s: Array) -> Array:
    """sinh √s / √s."""
    xp = namespace(s)
    coefficients = [1 / math.factorial(2 * j + 1) for j in range(_TERMS)]
    return _series_or(s, coefficients, lambda t: xp.sinh(xp.sqrt(t)) / xp.sqrt(t), 1.0)


def arsinh_ratio(s: Array) -> Array:
    """arsinh √s / √s."""
    xp = namespace(s)
    coefficients = [(-1) ** j * math.comb(2 * j, j) / 4**j / (2 * j + 1) for j in range(_TERMS)]
    return _series_or(s, coefficients, lambda t: xp.asinh(xp.sqrt(t)) / xp.sqrt(t), 0.05)


def arc_ratio(s: Array, c: Array) -> Array:
    """atan2(√s, c)/√s: the angle over its sine, from the sine's square and the cosine; smooth at s = 0 where c > 0."""
    xp = namespace(s, c)
    near = (c > 0) & (s < 0.05 * c * c)
    one = xp.ones_like(s)
    cosine = xp.where(near, c, one)
    tangent = xp.where(near, s, xp.zeros_like(s)) / (cosine * cosine)
    series = _polynomial(tangent, [(-1) ** j / (2 * j + 1) for j in range(_TERMS)]) / cosine
    sine = xp.sqrt(xp.where(near | (s == 0), one, s))
    return xp.where(near, series, xp.atan2(sine, c) / sine)
