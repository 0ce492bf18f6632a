"""The discrete Laplace and Gaussian laws by coin tosses of rational probability: exact, and reproducible.

>>> from fractions import Fraction
>>> from dpmanifolds.noise import as_generator
>>> from dpmanifolds.noise.exact_arithmetic import BitStream
>>> from dpmanifolds.noise.lattice_reference import discrete_gaussian
>>> draws = [discrete_gaussian(Fraction(9), BitStream(as_generator(seed))) for seed in range(200)]
>>> 4 < sum(draw * draw for draw in draws) / 200 < 16
True

The algorithms are those of Canonne, Kamath and Steinke (2020), section 5; every number is an integer.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from dpmanifolds.noise.exact_arithmetic import BitStream

__all__ = ["bernoulli_exp", "discrete_gaussian", "discrete_laplace"]


def discrete_gaussian(variance: Fraction, source: BitStream) -> int:
    """One draw of P(k) ∝ exp(−k²/(2·variance)) on the integers (variance is the parameter σ²).

    With t = ⌊σ⌋ + 1, a discrete Laplace draw k of scale t is accepted with probability
    exp(−(|k| − σ²/t)²/(2σ²)), which is ∝ exp(−k²/(2σ²))·exp(|k|/t).
    """
    top, below = variance.numerator, variance.denominator
    steps = isqrt(top // below) + 1
    spread = 2 * top * below * steps * steps
    while True:
        draw = discrete_laplace(Fraction(steps), source)
        if bernoulli_exp((abs(draw) * below * steps - top) ** 2, spread, source):
            return draw


def discrete_laplace(scale: Fraction, source: BitStream) -> int:
    """One draw of P(k) ∝ exp(−|k|/scale) on the integers.

    With scale = t/s in lowest terms, X = U + t·V is geometric, P(X = x) ∝ exp(−x/t), for U on 0, …, t − 1 with
    P(U) ∝ exp(−U/t) and V geometric, P(V) ∝ exp(−V); ⌊X/s⌋ has P ∝ exp(−y·s/t); a fair sign follows, where −0 is
    drawn again so that 0 does not count twice.
    """
    top, below = scale.numerator, scale.denominator
    while True:
        remainder = source.below(top)
        if not bernoulli_exp(remainder, top, source):
            continue
        whole = 0
        while bernoulli_exp(1, 1, source):
            whole += 1
        size = (remainder + top * whole) // below
        negative = source.take(1)
        if size or not negative:
            return -size if negative else size


def bernoulli_exp(numerator: int, denominator: int, source: BitStream) -> bool:
    """True with probability exp(−numerator/denominator), for a rational number of at least 0.

    For x in [0, 1]: toss coins of probability x/1, x/2, x/3, … until one fails. The k-th is reached with probability
    x^(k−1)/(k−1)!, so the first failure is at an odd toss with probability Σ (−x)^k/k! = e^−x. A larger number is a
    sum of ones and a rest.
    """
    while numerator > denominator:
        if not bernoulli_exp(1, 1, source):
            return False
        numerator -= denominator
    toss = 1
    while source.below(denominator * toss) < numerator:
        toss += 1
    return toss % 2 == 1
