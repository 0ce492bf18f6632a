"""One private step: a batch, the exact sum of its gradients as integers, and integer noise of exact law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpmanifolds.descent.contribution import GradientContribution, OuterGradient, contribution_at, exponent_for
from dpmanifolds.descent.losses.loss import Loss, OuterLoss
from dpmanifolds.descent.noise_plan import DescentPlan
from dpmanifolds.descent.records import HeldRecords
from dpmanifolds.noise.exact import RoundedGaussian, RoundedLaplace
from dpmanifolds.sums.total import ExactSum

__all__ = ["NoisyGradient", "draw_batch"]

_LARGEST = 1 << 62


@dataclass(frozen=True)
class NoisyGradient:
    """Σ(clipped gradients)/divisor + noise + anchor, as coordinates at the public w."""

    loss: Loss
    records: HeldRecords
    plan: DescentPlan
    rng: np.random.Generator
    clip: float | None = None
    """To what gradients are shortened, where the noise follows: σ of the plan is for clip = `plan.clip`."""

    @property
    def length(self) -> float:
        return self.plan.clip if self.clip is None else self.clip

    @property
    def exponent(self) -> int:
        """C is 2^exponent lattice steps."""
        return exponent_for(self.loss, self.plan.n, float(self._noise_of_sum), self.plan.law)

    @property
    def scale(self) -> float:
        """The noise of the sum in lattice steps, no less than what the plan promises: σ·divisor·2^exponent/C."""
        exact = self._noise_of_sum * (1 << self.exponent)
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)

    @property
    def _noise_of_sum(self) -> Fraction:
        """In units of what one record adds, C."""
        return Fraction(self.plan.noise) * self.plan.exact_divisor / Fraction(self.plan.clip)

    def rule(self, w: Any) -> GradientContribution | OuterGradient:
        """What a record adds at w; in any company where a neighbour may have more or fewer rows, or other places.

        So it is in random batches: with a record in it a batch has one row more than without, or another one.
        """
        fixed = self.plan.batch_size is None and self.records.persons is None
        moving = not fixed or self.plan.adjacency != "replace-one"
        return contribution_at(self.loss, w, clip=self.length, exponent=self.exponent, moving=moving)

    def total(self, w: Any) -> ExactSum:
        """The integers of one batch, summed exactly. Not private."""
        return self.records.total(self.rule(w), draw_batch(self.plan, self.records.count, self.rng))

    def private(self, w: Any, total: ExactSum) -> np.ndarray:
        """The noisy gradient at w: the sum of integers and rounded noise, then functions of it alone.

        Cutting integers to ±2⁶² moves no two sums apart; the exponent keeps them far below where n is public.
        """
        law = RoundedLaplace if self.plan.law == "laplace" else RoundedGaussian
        whole = np.array([max(-_LARGEST, min(_LARGEST, number)) for number in total.integers], dtype=np.int64)
        noisy = law(whole.size, self.scale).release(whole, self.rng) * (self.length / 2.0**self.exponent)
        mean = np.asarray(noisy / self.plan.divisor)
        if isinstance(self.loss, OuterLoss):
            return self.loss.coordinates(w, mean.reshape(self.loss.shape))
        anchor = self.loss.anchor(w)
        return mean if anchor is None else mean + anchor


def draw_batch(plan: DescentPlan, count: int, rng: np.random.Generator) -> np.ndarray | None:
    """The numbers of the records of one step, of `count`: None for all, each with `plan.rate`, or a uniform set."""
    if plan.batch_size is None:
        return None
    if plan.sampling == "poisson":
        return np.flatnonzero(rng.random(count) < plan.rate)
    return np.sort(rng.choice(count, plan.batch_size, replace=False, shuffle=False))
