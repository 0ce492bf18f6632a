"""Integer noise on a lattice: the discrete Gaussian and the discrete Laplace, through OpenDP.

>>> from dpmanifolds.noise.lattice import LatticeGaussian, LatticeLaplace
>>> gaussian = LatticeGaussian(dim=3, sigma=2.0**30)
>>> gaussian.release([10, -20, 30]).dtype.name
'int64'
>>> gaussian.rho(l2_steps=2.0**30)
0.5
>>> LatticeLaplace(dim=3, sigma=4.0).epsilon(l1_steps=2.0)
0.5

Values, scales and sensitivities are in lattice steps. The draws and the privacy maps are OpenDP's. OpenDP draws from
its own secure source and takes no seed: with `rng` the same law is drawn by coin tosses of rational probability, for
experiments that must be repeated. Their algorithms are those of Canonne, Kamath and Steinke (2020), section 5; every
number is an integer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise.exact import BitStream, exact_sigma, saturated_sum, whole_steps
from dpmanifolds.noise.generators import as_generator

_LARGEST_scale = 2.0**52
_features = Lock()


@dataclass(frozen=True)
class _LatticeNoise:
    """values + a law of the integers in every coordinate, all in lattice steps."""

    dim: int
    sigma: float
    law: ClassVar[str]

    def __post_init__(self) -> None:
        positive_integer("dim", self.dim)
        exact = exact_sigma(self.sigma, _LARGEST_scale)
        if exact != float(exact):
            raise ArgumentError(
                f"sigma must be a floating-point number, for OpenDP takes no other; got {self.sigma!r}."
            )

    def release(self, values: Any, rng: Any = None) -> np.ndarray:
        """The integers `values` (dim,) plus noise, as int64 (dim,)."""
        steps = whole_steps(values, self.dim)
        if rng is None:
            return np.asarray(self._measurement(steps.tolist()), dtype=np.int64)
        source = BitStream(as_generator(rng))
        sigma = exact_sigma(self.sigma, _LARGEST_scale)
        return saturated_sum(steps, [self._draw(sigma, source) for _ in range(self.dim)])

    @property
    def _measurement(self) -> Any:
        return _measurement(self.law, int(self.dim), float(self.sigma))

    def _draw(self, sigma: Fraction, source: BitStream) -> int:
        raise NotImplementedError


class LatticeGaussian(_LatticeNoise):
    """values + N_Z(0, scale²) in every coordinate, P(k) ∝ exp(−k²/(2·scale²)) on the integers.

    It is ρ-zCDP with ρ = l2_steps²/(2·scale²) (Canonne, Kamath and Steinke 2020; docs/proofs/numerics.md, theorem 3),
    and what else it is says `Guarantee.discrete_gaussian`. Sums beyond int64 are set to the nearest int64, which is
    post-processing: no value is refused, so nothing about the values shows in an error.

    >>> from dpmanifolds.noise import LatticeGaussian
    >>> LatticeGaussian(dim=2, sigma=8.0).rho(l2_steps=8.0)
    0.5
    >>> LatticeGaussian(dim=2, sigma=8.0).release([0, 0], rng=0).shape
    (2,)
    """

    law: ClassVar[str] = "gaussian"

    def _draw(self, sigma: Fraction, source: BitStream) -> int:
        return discrete_gaussian(sigma**2, source)

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim), up to a constant."""
        return np.asarray(-np.sum(np.square(offsets / float(self.sigma)), axis=-1) / 2)

    def rho(self, l2_steps: float) -> float:
        """OpenDP's privacy map, rounded up: ρ of zCDP for values that move by up to `l2_steps` in ℓ2."""
        return float(self._measurement.map(_distance("l2_steps", l2_steps)))


class LatticeLaplace(_LatticeNoise):
    """values + the discrete Laplace law in every coordinate, P(k) ∝ exp(−|k|/sigma) on the integers.

    It is ε-DP with ε = l1_steps/sigma (docs/proofs/numerics.md, theorem 3). Sums beyond int64 are set to the
    nearest int64, which is post-processing.

    >>> from dpmanifolds.noise import LatticeLaplace
    >>> LatticeLaplace(dim=2, sigma=4.0).epsilon(l1_steps=2.0)
    0.5
    >>> LatticeLaplace(dim=2, sigma=4.0).release([0, 0], rng=0).shape
    (2,)
    """

    law: ClassVar[str] = "laplace"

    def _draw(self, sigma: Fraction, source: BitStream) -> int:
        return discrete_laplace(sigma, source)

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim), up to a constant."""
        return np.asarray(-np.linalg.norm(offsets / float(self.sigma), ord=1, axis=-1))

    def epsilon(self, l1_steps: float) -> float:
        """OpenDP's privacy map, rounded up: ε for values that move by up to `l1_steps` in ℓ1."""
        return float(self._measurement.map(_distance("l1_steps", l1_steps)))


def _distance(name: str, steps: Any) -> float:
    if not 0 <= steps < math.inf:
        raise ArgumentError(f"must be finite and at least 0; got {steps!r}.", argument=name)
    nearest = float(steps)
    # an integer or a fraction may lie above the nearest float
    return nearest if nearest >= steps else math.nextafter(nearest, math.inf)


@contextmanager
def _contrib() -> Iterator[None]:
    """OpenDP asks for an opt-in to build these measurements; it is given here and taken back."""
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    with _features:
        given_already = "contrib" in GLOBAL_FEATURES
        enable_features("contrib")
        try:
            yield
        finally:
            if not given_already:
                disable_features("contrib")


@lru_cache(maxsize=32)
def _measurement(law: str, dim: int, sigma: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance

    make, distance = (make_gaussian, l2_distance) if law == "gaussian" else (make_laplace, l1_distance)
    with _contrib():
        return make(vector_domain(atom_domain(T="i64"), size=dim), distance(T="f64"), scale=sigma)


def discrete_gaussian(variance: Fraction, source: BitStream) -> int:
    """One draw of P(k) ∝ exp(−k²/(2·variance)) on the integers (variance is the parameter σ²).

    With t = ⌊σ⌋ + 1, a discrete Laplace draw k of scale t is accepted with probability
    exp(−(|k| − σ²/t)²/(2σ²)), which is ∝ exp(−k²/(2σ²))·exp(|k|/t).
    """
    top, below = variance.numerator, variance.denominator
    steps = math.isqrt(top // below) + 1
    spread = 2 * top * below * steps * steps
    while True:
        draw = discrete_laplace(Fraction(steps), source)
        if bernoulli_exp((abs(draw) * below * steps - top) ** 2, spread, source):
            return draw


def discrete_laplace(sigma: Fraction, source: BitStream) -> int:
    """One draw of P(k) ∝ exp(−|k|/sigma) on the integers.

    With sigma = t/s in lowest terms, X = U + t·V is geometric, P(X = x) ∝ exp(−x/t), for U on 0, …, t − 1 with
    P(U) ∝ exp(−U/t) and V geometric, P(V) ∝ exp(−V); ⌊X/s⌋ has P ∝ exp(−y·s/t); a fair sign follows, where −0 is
    drawn again so that 0 does not count twice.
    """
    top, below = sigma.numerator, sigma.denominator
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
