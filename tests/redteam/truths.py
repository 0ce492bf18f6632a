"""True profiles and divergences by definition, in mpmath's working precision; nothing is shared with src."""

from __future__ import annotations

import mpmath as mp

__all__ = ["discrete_gaussian_delta", "discrete_laplace_delta"]


def discrete_gaussian_delta(sigma: float, shift: int, epsilon: float) -> mp.mpf:
    """Σ(P(x) − e^ε P(x − k))₊ for P(x) ∝ e^{−x²/2σ²} on the integers."""
    variance, grow, reach = mp.mpf(sigma) ** 2, mp.exp(mp.mpf(epsilon)), int(45 * sigma) + shift + 2
    weight = {x: mp.exp(-mp.mpf(x * x) / (2 * variance)) for x in range(-reach - shift, reach + 1)}
    total = mp.fsum(weight.values())
    return mp.fsum(max(weight[x] - grow * weight[x - shift], mp.mpf(0)) for x in range(-reach, reach + 1)) / total


def discrete_laplace_delta(scale: float, shift: int, epsilon: float) -> mp.mpf:
    """Σ(P(x) − e^ε P(x − k))₊ for P(x) ∝ e^{−|x|/s} on the integers, what lies below 0 in closed form."""
    fall, grow = mp.exp(-1 / mp.mpf(scale)), mp.exp(mp.mpf(epsilon))
    mass = (1 - fall) / (1 + fall)
    below = max(1 - grow * fall**shift, mp.mpf(0)) / (1 + fall)
    inner = (mass * (fall**x - grow * fall ** abs(x - shift)) for x in range(1, shift + 1))
    return below + mp.fsum(max(value, mp.mpf(0)) for value in inner)
