"""How much noise a budget asks for: the most of one kind of promise that it affords, and the noise for it.

>>> from dpmanifolds.privacy import ApproxDP, affordable_mu, affordable_rho, gaussian_sigma
>>> round(gaussian_sigma(sensitivity=1.0, epsilon=1.0, delta=1e-5), 6)
3.730632
>>> affordable_rho(ApproxDP(1.0, 1e-5)) < affordable_mu(ApproxDP(1.0, 1e-5)) ** 2 / 2
True

What is afforded is rounded down and a scale of noise up, by at most 1e−12 of itself (3e−10 for `affordable_shift`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from scipy import optimize

from dpmanifolds._validate import positive_number
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy.budget import Budget, checked_budget
from dpmanifolds.privacy.budgets import ApproxDP
from dpmanifolds.privacy.conversions import mu_for
from dpmanifolds.privacy.guarantee import Guarantee
from dpmanifolds.privacy.l2_laplace import LEAST_SHIFT, MOST_DIMENSIONS
from dpmanifolds.privacy.rounding import up

_HALVINGS = 60
_LARGEST, _SMALLEST = 700.0, 2.0**-60


def largest_affordable(promise: Callable[[float], Guarantee], budget: Budget, *, slack: float = 0.0) -> float:
    """The largest x in (2⁻⁶⁰, 700] whose promise(x), which grows with x, fits the budget, strictly.

    Where promises are dear it may be smaller by a share `slack` of itself.

    >>> from dpmanifolds.privacy import Guarantee, PureDP, largest_affordable
    >>> round(largest_affordable(Guarantee.pure, PureDP(1.0)), 9)
    1.0
    """
    checked_budget(budget)
    low = 1.0
    while not promise(low).fits(budget, strict=True):
        low /= 16
        if low < _SMALLEST:
            raise NotAvailableError(f"noise of this kind gives no promise within {budget!r}.")
    high = min(16 * low, _LARGEST)
    while high < _LARGEST and promise(high).fits(budget, strict=True):
        low, high = high, min(16 * high, _LARGEST)
    if promise(high).fits(budget, strict=True):
        return high
    low, high = _narrowed(promise, budget, low, high)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if not low * (1 + slack) < middle < high:
            break
        low, high = (middle, high) if promise(middle).fits(budget, strict=True) else (low, middle)
    return low


def _narrowed(promise: Callable[[float], Guarantee], budget: Budget, low: float, high: float) -> tuple[float, float]:
    """A bracket 1e−10 wide around the root: what is spent is a smooth function, and dear."""

    def excess(log_x: float) -> float:
        guarantee = promise(math.exp(log_x))
        if isinstance(budget, ApproxDP):
            return math.log(max(guarantee.delta(budget.epsilon), 1e-300)) - math.log(budget.delta)
        spent = budget.spent_by(guarantee)
        return math.inf if spent is None else math.log(max(spent, 1e-300)) - math.log(budget.amount)

    if not excess(math.log(low)) < 0 < excess(math.log(high)) < math.inf:
        return low, high
    root = math.exp(optimize.brentq(excess, math.log(low), math.log(high), xtol=1e-12))
    inside, outside = root * (1 - 1e-10), root * (1 + 1e-10)
    return (
        inside if promise(inside).fits(budget, strict=True) else low,
        high if promise(outside).fits(budget, strict=True) else outside,
    )


@lru_cache(maxsize=1024)
def affordable_epsilon(budget: Budget, *, on_the_line: bool = False) -> float:
    """The largest ε such that every ε-DP mechanism keeps the budget; `on_the_line`, Laplace noise on R with that ε.

    >>> from dpmanifolds.privacy import ApproxDP, PureDP, affordable_epsilon
    >>> affordable_epsilon(PureDP(1.0)), affordable_epsilon(ApproxDP(1.0, 1e-6)) >= 1.0
    (1.0, True)
    """
    known = checked_budget(budget).largest_epsilon()
    return largest_affordable(Guarantee.laplace if on_the_line else Guarantee.pure, budget) if known is None else known


@lru_cache(maxsize=1024)
def affordable_shift(budget: Budget, dim: int) -> float:
    """The largest a = Δ/σ such that ℓ2-Laplace noise of scale σ in R^dim keeps the budget; the ε of a pure one.

    `NotAvailableError` where the profile is not worked out: a below 1e−6, or beyond a million dimensions.

    >>> from dpmanifolds.privacy import ApproxDP, affordable_shift
    >>> round(affordable_shift(ApproxDP(1.0, 1e-6), 21), 6)
    1.314028
    """
    known = checked_budget(budget).largest_epsilon()
    if known is not None:
        return known
    if dim > MOST_DIMENSIONS:
        raise NotAvailableError(f"the profile of ℓ2-Laplace noise is not worked out in {dim} dimensions.")
    return largest_affordable(lambda shift: Guarantee.l2_laplace(max(shift, LEAST_SHIFT), dim), budget, slack=2e-10)


@lru_cache(maxsize=1024)
def affordable_mu(budget: Budget) -> float:
    """The largest μ such that every μ-Gaussian-DP mechanism keeps the budget; none keeps a pure ε.

    >>> from dpmanifolds.privacy import ApproxDP, affordable_mu
    >>> round(affordable_mu(ApproxDP(1.0, 1e-6)), 6)
    0.236704
    """
    mu = checked_budget(budget).gaussian_mu()
    return mu if budget.exact_mu else largest_affordable(Guarantee.gaussian, budget)


@lru_cache(maxsize=1024)
def affordable_rho(budget: Budget) -> float:
    """The largest ρ such that every ρ-zCDP mechanism keeps the budget; none keeps a pure ε or a Gaussian μ.

    >>> from dpmanifolds.privacy import ZeroConcentratedDP, affordable_rho
    >>> affordable_rho(ZeroConcentratedDP(0.5))
    0.5
    """
    known = checked_budget(budget).largest_rho()
    return largest_affordable(Guarantee.zcdp, budget) if known is None else known


def gaussian_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """The analytic Gaussian (Balle and Wang 2018): the smallest σ with N(0, σ²I) noise (ε, δ)-DP at ℓ2-sensitivity Δ.

    Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ, so σ = Δ/μ*(ε, δ); rounded up.

    >>> from dpmanifolds.privacy import gaussian_sigma
    >>> round(gaussian_sigma(0.5, 0.1, 1e-3), 6)
    8.702198
    """
    return _above(positive_number("sensitivity", sensitivity) / mu_for(epsilon, delta))


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    """σ = Δ/ε, rounded up: for Laplace noise on R, for ℓ2-Laplace noise ∝ exp(−‖y‖/σ) on R^d at ℓ2-sensitivity Δ, and
    for the Riemannian Laplace on a homogeneous space with unrestricted support (MATH.md section 4).

    >>> from dpmanifolds.privacy import laplace_scale
    >>> laplace_scale(1.0, 0.5) >= 2.0
    True
    """
    return _above(positive_number("sensitivity", sensitivity) / positive_number("epsilon", epsilon))


def _above(value: float) -> float:
    """A float above a value that a few correctly rounded operations have produced."""
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"the noise scale leaves the range of floating-point numbers ({value}).")
    return float(up(value, 48))
