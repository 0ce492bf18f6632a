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


def sampled_laplace_delta(
    sampling: str, rate: float, noise: float, epsilon: float, *, backward: bool = False
) -> mp.mpf:
    """The divergence of the worst mixtures of Laplace laws, by exact integrals between the points where they change."""
    q, s, grow = mp.mpf(rate), mp.mpf(noise), mp.exp(mp.mpf(epsilon))
    if sampling == "poisson":
        pair = [(1 - q, 0), (q, 1)], [(1 - q, 0), (q, -1)]
    elif sampling == "fixed-size":
        pair = [(1 - q, 0), (q, 2)], [(mp.mpf(1), 0)]
    else:
        pair = [(1 - q, 0), (q, 1)], [(mp.mpf(1), 0)]
        pair = pair[::-1] if backward else pair

    def below(law: list[tuple[mp.mpf, int]], x: mp.mpf) -> mp.mpf:
        parts = (w * (mp.exp((x - at) / s) / 2 if x < at else 1 - mp.exp(-(x - at) / s) / 2) for w, at in law)
        return mp.fsum(parts)

    def above(law: list[tuple[mp.mpf, int]], x: mp.mpf) -> mp.mpf:
        parts = (w * (mp.exp(-(x - at) / s) / 2 if x > at else 1 - mp.exp((x - at) / s) / 2) for w, at in law)
        return mp.fsum(parts)

    def rest(law: list[tuple[mp.mpf, int]], x: mp.mpf, sign: int) -> mp.mpf:
        return above(law, x) if sign > 0 else below(law, x)

    # likelihood ratios are monotone: the best test is a half-line, towards the side where the first law lies
    sign = -1 if sampling == "poisson-add-remove" and backward else 1

    def value(x: mp.mpf) -> mp.mpf:
        return rest(pair[0], x, sign) - grow * rest(pair[1], x, sign)

    low, high = mp.mpf(-1), mp.mpf(2)
    # between the corners −1, 0, 1, 2 the value is a·e^{x/s} + b·e^{−x/s} + c: its stationary point in closed form
    best = mp.mpf(0)
    for start in (-1, 0, 1):
        points = [mp.mpf(start), mp.mpf(start) + mp.mpf(1) / 2, mp.mpf(start + 1)]
        basis = mp.matrix([[mp.exp(x / s), mp.exp(-x / s), 1] for x in points])
        a, b, _ = mp.lu_solve(basis, mp.matrix([value(x) for x in points]))
        inside = s / 2 * mp.log(b / a) if a * b > 0 else low
        for x in (*points, min(max(inside, points[0]), points[2])):
            best = max(best, value(x))
    return max(best, value(low), value(high))
