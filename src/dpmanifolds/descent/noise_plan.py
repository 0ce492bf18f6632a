"""How much noise, how many steps, which promise: any one of the three from the other two, before a record is read.

>>> from dpmanifolds.descent import plan_descent
>>> from dpmanifolds.privacy import ApproxDP
>>> plan = plan_descent(n=10_000, clip=1.0, budget=ApproxDP(1.0, 1e-6), steps=100)
>>> plan.guarantee.fits(ApproxDP(1.0, 1e-6)), round(plan.noise, 6)
(True, 0.008449)
>>> plan_descent(n=10_000, clip=1.0, budget=ApproxDP(1.0, 1e-6), noise=plan.noise).steps
100

One step releases the mean of per-record gradients, each within C of a public vector, plus N(0, σ²I) in orthonormal
coordinates. Full batch: T steps are exactly μ-Gaussian-DP with μ = 2C√T/(nσ) (docs/proofs/descent.md). Random batches
go through `poisson_descent` and `fixed_size_descent`. A `PureDP` budget gets ℓ2-Laplace noise of scale 2CT/(nε).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

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

__all__ = ["SAMPLINGS", "DescentPlan", "plan_descent"]

SAMPLINGS = ("poisson", "without-replacement")
_MOST_STEPS = 10**9
_PRECISION = 5e-4
_UP = 1 + 2.0**-46


@dataclass(frozen=True)
class DescentPlan:
    """The public numbers of a run. `noise` is σ per coordinate of the mean gradient (the scale of the ℓ2-Laplace).

    >>> from dpmanifolds.descent import plan_descent
    >>> from dpmanifolds.privacy import GaussianDP
    >>> plan = plan_descent(n=10_000, clip=1.0, budget=GaussianDP(1.0), steps=25)
    >>> round(plan.noise, 6), plan.guarantee.fits(GaussianDP(1.0))  # σ = 2C√T/(nμ)
    (0.001, True)
    """

    n: int
    steps: int
    noise: float
    clip: float
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

    @property
    def sensitivity(self) -> Sensitivity:
        """The most that one record can move the mean gradient of one step."""
        one = self.adjacency == "add-remove-one"
        statement = (
            "C/n for gradients that are integers within C"
            if one
            else "2C/n for per-record gradients that are integers within C of a public vector"
        )
        moved = float_above((1 if one else 2) * Fraction(self.clip) / Fraction(self.divisor))
        return Sensitivity(moved, "B1", "P", statement, self.adjacency)

    @property
    def unit(self) -> str:
        """What one record is."""
        return self.guarantee.unit


def plan_descent(
    *,
    n: int,
    clip: float,
    budget: Budget | None = None,
    steps: int | None = None,
    noise: float | None = None,
    batch_size: int | None = None,
    sampling: str = "poisson",
    unit: str = "record",
    adjacency: str = "replace-one",
) -> DescentPlan:
    """Exactly two of `budget`, `steps` and `noise` are given; the third follows, and the promise fits the budget.

    The smallest noise (up to 5e−4 of itself for random batches), or the most steps. Public numbers only. Where
    neighbours have one record more or less (adjacency="add-remove-one"), n is a public guess of their number, and a
    record moves the sum by C instead of 2C; random batches are then Poisson ones.

    >>> from dpmanifolds.descent import plan_descent
    >>> from dpmanifolds.privacy import PureDP
    >>> plan = plan_descent(n=1000, clip=1.0, budget=PureDP(1.0), steps=10)
    >>> plan.law, round(plan.noise, 6)  # 2CT/(nε)
    ('laplace', 0.02)
    """
    n, clip = positive_integer("n", n), positive_number("clip", clip)
    choice("sampling", sampling, SAMPLINGS)
    if (budget is None) + (steps is None) + (noise is None) != 1:
        given = [name for name, value in (("budget", budget), ("steps", steps), ("noise", noise)) if value is not None]
        raise ArgumentError(
            f"give exactly two of budget, steps and noise, the third follows from them; got {given or 'none of them'}."
        )
    if budget is not None:
        checked_budget(budget)
    steps = None if steps is None else positive_integer("steps", steps)
    noise = None if noise is None else positive_number("noise", noise)
    batch_size = _batch(batch_size, n)
    law = "laplace" if budget is not None and budget.bounded_loss else "gaussian"
    if law == "laplace" and batch_size is not None:
        raise ArgumentError(
            "a PureDP budget needs the full batch: Gaussian noise has no pure ε, and ℓ2-Laplace noise gains nothing "
            "here from random batches. Leave batch_size out, or give an ApproxDP, GaussianDP or zCDP budget."
        )
    moves = 2 * clip
    if choice("adjacency", adjacency, ADJACENCIES) == "add-remove-one":
        moves = clip
        if batch_size is not None and sampling != "poisson":
            raise NotAvailableError(
                "batches of a fixed size are drawn from a public number of records: use sampling='poisson', leave "
                "batch_size out, or take adjacency='replace-one'."
            )

    def promise(count: int, scale: float) -> Guarantee:
        return _promise(law, n, count, scale, clip, batch_size, sampling, unit, adjacency)

    if noise is None:
        assert budget is not None
        assert steps is not None
        size = batch_size or n
        noise = _least_noise(budget, steps, moves / size, promise, size / n)
    elif steps is None:
        assert budget is not None
        steps = _most_steps(budget, noise, moves / (batch_size or n), promise, batch_size is not None)
    return DescentPlan(n, steps, noise, clip, promise(steps, noise), law, batch_size, sampling, adjacency)


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


def _promise(
    law: str,
    n: int,
    steps: int,
    noise: float,
    clip: float,
    batch_size: int | None,
    sampling: str,
    unit: str,
    adjacency: str,
) -> Guarantee:
    if adjacency == "add-remove-one" and batch_size is not None:
        rate = _rate(n, batch_size)
        return poisson_descent(n=n, rate=rate, steps=steps, clip=clip, sigma=noise, adjacency=adjacency, unit=unit)
    if adjacency == "add-remove-one":
        # a record moves the sum by C, as if it were replaced with clip C/2
        return replace(
            _promise(law, n, steps, noise, clip / 2, None, sampling, unit, "replace-one"), adjacency=adjacency
        )
    if law == "laplace":
        return Guarantee.pure(laplace_scale(2 * clip / n, noise), unit=unit).k_fold(steps)
    if batch_size is None:
        return full_batch_descent(n=n, steps=steps, clip=clip, sigma=noise, unit=unit)
    if sampling == "poisson":
        return poisson_descent(n=n, rate=_rate(n, batch_size), steps=steps, clip=clip, sigma=noise, unit=unit)
    return fixed_size_descent(n=n, batch=batch_size, steps=steps, clip=clip, sigma=noise, unit=unit)


def _least_noise(
    budget: Budget, steps: int, sensitivity: float, promise: Callable[[int, float], Guarantee], share: float
) -> float:
    """The closed form without sampling; with it, bisection from that noise times the share b/n of a batch."""
    if budget.bounded_loss:
        noise = sensitivity * steps / affordable_epsilon(budget) * _UP
    else:
        noise = sensitivity * math.sqrt(steps) / budget.gaussian_mu() * _UP
    margin = 2.0**-46
    while not promise(steps, noise).fits(budget, strict=True):
        if margin > 1e-3:
            raise ArgumentError(
                f"no amount of noise was found that keeps {steps} steps within {budget}. Use fewer steps or a larger "
                "budget."
            )
        margin *= 4
        noise *= 1 + margin
    # a μ or a ρ of a sampled step is not known to be below that of the full step: nothing to gain
    if share == 1 or not budget.gains_by_batches:
        return noise
    # the noise of full batches, on the same scale, is where random ones end up at best
    low = high = noise * share
    while high < noise and not promise(steps, high).fits(budget, strict=True):
        low, high = high, min(2 * high, noise)
    while high > low * (1 + _PRECISION):
        middle = math.sqrt(low * high)
        if promise(steps, middle).fits(budget, strict=True):
            high = middle
        else:
            low = middle
    return high


def _most_steps(
    budget: Budget, noise: float, sensitivity: float, promise: Callable[[int, float], Guarantee], sampled: bool
) -> int:
    """The largest T that fits; at least what full batches would allow, from where on it doubles and bisects."""
    if not promise(1, noise).fits(budget, strict=True):
        raise ArgumentError(
            f"not even one step with noise {noise:g} keeps {budget}. Use more noise, a smaller clip or more records."
        )
    ratio = noise / sensitivity
    guess = ratio * affordable_epsilon(budget) if budget.bounded_loss else (ratio * budget.gaussian_mu()) ** 2
    if guess > _MOST_STEPS:
        raise ArgumentError(
            f"the budget allows more than {_MOST_STEPS:g} steps at noise {noise:g}: give steps instead."
        )
    low = max(1, int(guess * (1 + 1e-9)))
    while low > 1 and not promise(low, noise).fits(budget, strict=True):
        low -= 1
    if not sampled or not budget.gains_by_batches:
        return low
    high = 2 * low
    while promise(high, noise).fits(budget, strict=True):
        low, high = high, 2 * high
        if high > _MOST_STEPS:
            raise ArgumentError(
                f"the budget allows more than {_MOST_STEPS:g} steps at noise {noise:g}: give steps instead."
            )
    while high - low > 1:
        middle = (low + high) // 2
        if promise(middle, noise).fits(budget, strict=True):
            low = middle
        else:
            high = middle
    return low
