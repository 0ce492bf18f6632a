"""How much noise, how many steps, which promise: any one of the three from the other two, before a record is read.

>>> from dpmanifolds.descent import plan_descent
>>> from dpmanifolds.privacy import ApproxDP
>>> plan = plan_descent(n=10_000, clip_norm=1.0, budget=ApproxDP(1.0, 1e-6), steps=100)
>>> plan.guarantee.fits(ApproxDP(1.0, 1e-6)), round(plan.sigma, 6)
(True, 0.008449)
>>> plan_descent(n=10_000, clip_norm=1.0, budget=ApproxDP(1.0, 1e-6), sigma=plan.sigma).steps
100

One step releases the mean of per-record gradients, each within C of a public vector, plus N(0, σ²I) in orthonormal
coordinates. Full batch: T steps are exactly μ-Gaussian-DP with μ = 2C√T/(nσ) (docs/proofs/descent.md). Random batches
go through `poisson_descent` and `fixed_size_descent`. A `PureDP` budget gets ℓ2-Laplace noise of scale 2CT/(nε).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import (
    Budget,
    Guarantee,
    Sensitivity,
    affordable_epsilon,
    fixed_size_descent,
    full_batch_descent,
    laplace_scale,
    poisson_descent,
)
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.privacy.rounding import float_above
from dpmanifolds.sums.noisy import NoiseSource

SAMPLINGS = ("poisson", "without-replacement")
_MOST_STEPS = 10**9
_PRECISION = 5e-4
_UP = 1 + 2.0**-46


@dataclass(frozen=True)
class DescentPlan:
    """The public numbers of a run. `sigma` is σ per coordinate of the mean gradient (the scale of the ℓ2-Laplace).

    >>> from dpmanifolds.descent import plan_descent
    >>> from dpmanifolds.privacy import GaussianDP
    >>> plan = plan_descent(n=10_000, clip_norm=1.0, budget=GaussianDP(1.0), steps=25)
    >>> round(plan.sigma, 6), plan.guarantee.fits(GaussianDP(1.0))  # σ = 2C√T/(nμ)
    (0.001, True)
    """

    n: int
    steps: int
    sigma: float
    clip_norm: float
    guarantee: Guarantee
    law: str = "gaussian"
    batch_size: int | None = None
    sampling: str = "poisson"
    adjacency: str = "replace-one"
    """Under "add-remove-one" `n` is a public guess and the sum is divided by it."""

    @property
    def rate(self) -> float:
        """The probability with which a record takes part in a step, as it is drawn and accounted."""
        return _rate(self.n, self.batch_size or self.n)

    @property
    def exact_divisor(self) -> Fraction:
        """What the sum of gradients is divided by: n, b, or q·n under Poisson sampling; never a realised number."""
        if self.batch_size is None:
            return Fraction(self.n)
        return Fraction(self.rate) * self.n if self.sampling == "poisson" else Fraction(self.batch_size)

    @property
    def divisor(self) -> float:
        """The same as a float."""
        return float(self.exact_divisor)

    def draw_batch(self, count: int, noise: NoiseSource) -> np.ndarray | None:
        """The numbers of the records of one step, of `count`: None for all, each with `rate`, or a uniform set."""
        if self.batch_size is None:
            return None
        return (
            noise.poisson_batch(count, self.rate)
            if self.sampling == "poisson"
            else noise.fixed_batch(count, self.batch_size)
        )

    @property
    def sensitivity(self) -> Sensitivity:
        """The most that one record can move the mean gradient of one step."""
        one = self.adjacency == "add-remove-one"
        statement = (
            "C/n for gradients that are integers within C"
            if one
            else "2C/n for per-record gradients that are integers within C of a public vector"
        )
        moved = float_above((1 if one else 2) * Fraction(self.clip_norm) / Fraction(self.divisor))
        return Sensitivity(moved, "B1", "P", statement, self.adjacency)

    @property
    def unit(self) -> str:
        """What one record is."""
        return self.guarantee.unit


def plan_descent(
    *,
    n: int,
    clip_norm: float,
    budget: Budget | None = None,
    steps: int | None = None,
    sigma: float | None = None,
    batch_size: int | None = None,
    sampling: str = "poisson",
    unit: str = "record",
    adjacency: str = "replace-one",
) -> DescentPlan:
    """Exactly two of `budget`, `steps` and `sigma` are given; the third follows, and the promise fits the budget.

    The smallest noise (up to 5e−4 of itself for random batches), or the most steps. Public numbers only. Where
    neighbours have one record more or less (adjacency="add-remove-one"), n is a public guess of their number, and a
    record moves the sum by C instead of 2C; random batches are then Poisson ones.

    >>> from dpmanifolds.descent import plan_descent
    >>> from dpmanifolds.privacy import PureDP
    >>> plan = plan_descent(n=1000, clip_norm=1.0, budget=PureDP(1.0), steps=10)
    >>> plan.law, round(plan.sigma, 6)  # 2CT/(nε)
    ('laplace', 0.02)
    """
    n, clip_norm = positive_integer("n", n), positive_number("clip_norm", clip_norm)
    choice("sampling", sampling, SAMPLINGS)
    if (budget is None) + (steps is None) + (sigma is None) != 1:
        given = [name for name, value in (("budget", budget), ("steps", steps), ("sigma", sigma)) if value is not None]
        raise ArgumentError(
            f"give exactly two of budget, steps and sigma, the third follows from them; got {given or 'none of them'}."
        )
    if budget is not None:
        checked_budget(budget)
    steps = None if steps is None else positive_integer("steps", steps)
    sigma = None if sigma is None else positive_number("sigma", sigma)
    batch_size = _batch(batch_size, n)
    law = "laplace" if budget is not None and budget.bounded_loss else "gaussian"
    if law == "laplace" and batch_size is not None:
        raise ArgumentError(
            "a PureDP budget needs the full batch: Gaussian noise has no pure ε, and ℓ2-Laplace noise gains nothing "
            "here from random batches. Leave batch_size out, or give an ApproxDP, GaussianDP or zCDP budget."
        )
    if (
        choice("adjacency", adjacency, ADJACENCIES) == "add-remove-one"
        and batch_size is not None
        and sampling != "poisson"
    ):
        raise NotAvailableError(
            "batches of a fixed size are drawn from a public number of records: use sampling='poisson', leave "
            "batch_size out, or take adjacency='replace-one'."
        )
    terms = _Terms(n, clip_norm, law, batch_size, sampling, unit, adjacency)
    if sigma is None:
        assert budget is not None
        assert steps is not None
        sigma = terms.least_sigma(budget, steps)
    elif steps is None:
        assert budget is not None
        steps = terms.most_steps(budget, sigma)
    return DescentPlan(n, steps, sigma, clip_norm, terms.promise(steps, sigma), law, batch_size, sampling, adjacency)


def _batch(batch_size: Any, n: int) -> int | None:
    if batch_size is None:
        return None
    size = positive_integer("batch_size", batch_size)
    if size > n:
        raise ArgumentError(f"is at most the number of records, {n}; got {size}.", argument="batch_size")
    return size if size < n else None


def _rate(n: int, size: int) -> float:
    """size/n on the grid of 2^−53 on which uniform numbers are drawn, so that P(U < rate) is the rate itself."""
    return math.floor(math.ldexp(size / n, 53)) * 2.0**-53


@dataclass(frozen=True)
class _Terms:
    """What is fixed about a run before its steps and its noise are."""

    n: int
    clip_norm: float
    law: str
    batch_size: int | None
    sampling: str
    unit: str
    adjacency: str

    def promise(self, steps: int, sigma: float) -> Guarantee:
        added = self.adjacency == "add-remove-one"
        if self.batch_size is None:
            # a record that is added moves the sum by C, as if it were replaced with clip norm C/2
            whole = self._full_batch(steps, sigma, self.clip_norm / 2 if added else self.clip_norm)
            return replace(whole, adjacency=self.adjacency) if added else whole
        common: dict[str, Any] = {"n": self.n, "steps": steps, "clip": self.clip_norm, "sigma": sigma}
        if self.sampling == "poisson":
            rate = _rate(self.n, self.batch_size)
            return poisson_descent(rate=rate, adjacency=self.adjacency, unit=self.unit, **common)
        return fixed_size_descent(batch=self.batch_size, unit=self.unit, **common)

    def _full_batch(self, steps: int, sigma: float, clip_norm: float) -> Guarantee:
        if self.law == "laplace":
            return Guarantee.pure(laplace_scale(2 * clip_norm / self.n, sigma), unit=self.unit).k_fold(steps)
        return full_batch_descent(n=self.n, steps=steps, clip=clip_norm, sigma=sigma, unit=self.unit)

    def _fits(self, budget: Budget, steps: int, sigma: float) -> bool:
        return self.promise(steps, sigma).fits(budget, strict=True)

    @property
    def _size(self) -> int:
        return self.batch_size or self.n

    @property
    def _sensitivity(self) -> float:
        return (self.clip_norm if self.adjacency == "add-remove-one" else 2 * self.clip_norm) / self._size

    def _gains(self, budget: Budget) -> bool:
        """A μ or a ρ of a sampled step is not known to be below that of the full step: nothing to gain."""
        return self.batch_size is not None and budget.gains_by_batches

    def least_sigma(self, budget: Budget, steps: int) -> float:
        """The closed form without sampling; with it, bisection from that noise times the share b/n of a batch."""
        if budget.bounded_loss:
            sigma = self._sensitivity * steps / affordable_epsilon(budget) * _UP
        else:
            sigma = self._sensitivity * math.sqrt(steps) / budget.gaussian_mu() * _UP
        margin = 2.0**-46
        while not self._fits(budget, steps, sigma):
            if margin > 1e-3:
                raise ArgumentError(
                    f"no amount of noise was found that keeps {steps} steps within {budget}. Use fewer steps or a "
                    "larger budget."
                )
            margin *= 4
            sigma *= 1 + margin
        if not self._gains(budget):
            return sigma
        # the noise of full batches, on the same scale, is where random ones end up at best
        low = high = sigma * (self._size / self.n)
        while high < sigma and not self._fits(budget, steps, high):
            low, high = high, min(2 * high, sigma)
        while high > low * (1 + _PRECISION):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._fits(budget, steps, middle) else (middle, high)
        return high

    def most_steps(self, budget: Budget, sigma: float) -> int:
        """The largest T that fits; at least what full batches would allow, from where on it doubles and bisects."""
        if not self._fits(budget, 1, sigma):
            raise ArgumentError(
                f"not even one step with sigma {sigma:g} keeps {budget}. Use more noise, a smaller clip_norm or more "
                "records."
            )
        ratio = sigma / self._sensitivity
        guess = ratio * affordable_epsilon(budget) if budget.bounded_loss else (ratio * budget.gaussian_mu()) ** 2
        too_many = ArgumentError(
            f"the budget allows more than {_MOST_STEPS:g} steps at sigma {sigma:g}: give steps instead."
        )
        if guess > _MOST_STEPS:
            raise too_many
        low = max(1, int(guess * (1 + 1e-9)))
        while low > 1 and not self._fits(budget, low, sigma):
            low -= 1
        if not self._gains(budget):
            return low
        high = 2 * low
        while self._fits(budget, high, sigma):
            low, high = high, 2 * high
            if high > _MOST_STEPS:
                raise too_many
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(budget, middle, sigma) else (low, middle)
        return low
