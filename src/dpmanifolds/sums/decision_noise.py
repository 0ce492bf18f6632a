"""Noise on the statistic of every permutation, and the one bit, or the place, that is made of it.

>>> noise = DecisionNoise.of("laplace", shift=20, ratio=1.0)
>>> noise.sigma, noise.guarantee("record").as_pure()
(20.0, PureDP(epsilon=1.0))
>>> among_largest([9, 1, 2, 3], rank=1), among_largest([3, 1, 2, 3], rank=1)  # a tie is no discovery
(True, False)

M_i = T(π_i) + noise for the records as they are (i = 0) and under B random permutations; the question is whether M_0 is
among the k = ⌊α(B + 1)⌋ largest (Kim and Schrab 2023; docs/proofs/tests.md). Given the other noise, M_0 less the k-th
largest of the others moves by at most Δ₀ + Δ between neighbours, which is how far T moves as it is and under any
permutation: the answer is post-processing of one number with noise for that, whatever B is. Where the null hypothesis
holds all M_i are exchangeable: the level is exact in finite samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Protocol

from dpmanifolds.errors import NotAvailableError
from dpmanifolds.noise import as_generator
from dpmanifolds.noise.exact import BitStream, draw_rounded
from dpmanifolds.noise.lattice import discrete_laplace
from dpmanifolds.privacy import Budget, Guarantee, affordable_epsilon, affordable_mu

_LARGEST_SIGMA = 2.0**60


class Statistic(Protocol):
    """A statistic in lattice steps, and how far one record moves it."""

    @property
    def sensitivity(self) -> int:
        """Δ: of every permutation, at most."""

    @property
    def own_sensitivity(self) -> int:
        """Δ₀: of the records as they are, at most."""

    @property
    def unit(self) -> float:
        """How many steps are 1."""


@dataclass(frozen=True)
class DecisionNoise:
    """Integer noise on the statistic of every permutation, and what one answer then promises."""

    law: str
    """"laplace" or "gaussian"."""
    sigma: float
    """In lattice steps."""
    shift: int
    """What σ is for: Δ₀ + Δ, how far the number that decides can move; Δ₀ + 3Δ + 2 for a rank."""
    pvalue: bool = False

    @classmethod
    def of(cls, law: str, shift: int, ratio: float, *, pvalue: bool = False) -> DecisionNoise:
        """The least noise with shift/σ ≤ ratio, as exact numbers."""
        sigma = shift / ratio
        while Fraction(shift) > Fraction(ratio) * Fraction(sigma):
            sigma = math.nextafter(sigma, math.inf)
        if not sigma <= _LARGEST_SIGMA:
            raise NotAvailableError("noise for so small a budget does not fit the lattice. Ask for a larger budget.")
        return cls(law, sigma, shift, pvalue)

    def guarantee(self, unit: str) -> Guarantee:
        """What the decision promises, or the rank."""
        ratio = float(Fraction(self.shift) / Fraction(self.sigma))
        if Fraction(ratio) * Fraction(self.sigma) < self.shift:
            ratio = math.nextafter(ratio, math.inf)
        if self.pvalue:
            return Guarantee.pure(ratio, unit=unit)
        if self.law == "gaussian":
            return Guarantee.gaussian(ratio, unit=unit)
        return Guarantee.discrete_laplace(self.shift, self.sigma, unit=unit)

    def reach(self, level: float) -> float:
        """By how much a statistic must exceed its null level for a power of 0.8, where noise alone matters."""
        if self.law == "gaussian":
            return self.sigma * (NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(0.8))
        return self.sigma * (max(math.log(0.5 / level), 0.0) + math.log(2.5))

    def add_to(self, values: Sequence[int], rng: Any = None) -> list[int]:
        """Each value with noise of its own; integers of any size, so that nothing is cut off."""
        source, sigma = BitStream(as_generator(rng)), Fraction(self.sigma)
        if self.law == "gaussian":
            noise: Iterable[int] = draw_rounded(len(values), sigma, source, radial=False)
        else:
            noise = (discrete_laplace(sigma, source) for _ in values)
        return [value + change for value, change in zip(values, noise, strict=True)]


def decision_noise(statistic: Statistic, budget: Budget, level: float, *, pvalue: bool = False) -> DecisionNoise:
    """The noise that keeps the budget and asks for the smallest effect."""
    epsilon = affordable_epsilon(budget)
    shift = statistic.own_sensitivity + statistic.sensitivity
    if pvalue:
        return DecisionNoise.of("laplace", shift + 2 * statistic.sensitivity + 2, epsilon, pvalue=True)
    found = [DecisionNoise.of("laplace", shift, epsilon)]
    with suppress(NotAvailableError):
        found.append(DecisionNoise.of("gaussian", shift, affordable_mu(budget)))
    return min(found, key=lambda noise: noise.reach(level))


def among_largest(noisy: Sequence[int], rank: int) -> bool:
    """Whether the first is among the `rank` largest of all; ties count against it."""
    return sum(other >= noisy[0] for other in noisy[1:]) < rank


def rank_of_first(noisy: Sequence[int], rng: Any = None) -> int:
    """The place of the first from the top, 1 for the largest; among equals each place is as likely."""
    above = sum(other > noisy[0] for other in noisy[1:])
    equal = sum(other == noisy[0] for other in noisy[1:])
    return 1 + above + (BitStream(as_generator(rng)).below(equal + 1) if equal else 0)
