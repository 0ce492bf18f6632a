"""The rules by which releases add up when each is chosen in view of the ones before, down to how much it may spend.

>>> from dpmanifolds.ledger.filters import charge, limit_of
>>> from dpmanifolds.privacy import ApproxDP, GaussianDP, Guarantee
>>> limit_of(GaussianDP(1.0), "auto")
GaussianDP(mu=1.0)
>>> limit_of(ApproxDP(1.0, 1e-6), "basic")
ApproxDP(epsilon=1.0, delta=1e-06)
>>> charge(GaussianDP(1.0), Guarantee.pure(0.5)).mu > 0.5
True

A filter is fixed when a data set is opened. It is named by its limit, a budget of the filter's kind; every release is
read as a promise of that kind and its amount added:

| limit | rule | theorem |
|---|---|---|
| `PureDP(ε)` | Σε ≤ ε | Rogers, Roth, Ullman and Vadhan 2016 |
| `ApproxDP(ε, δ)` | Σε ≤ ε and Σδ ≤ δ | Rogers, Roth, Ullman and Vadhan 2016 |
| `GaussianDP(μ)` | Σμ² ≤ μ² | Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023 |
| `RenyiDP(α, ε)` | ΣD_α ≤ ε, one α | Feldman and Zrnic 2021; Lécuyer 2021 |
| `ZeroConcentratedDP(ρ)` | Σρ ≤ ρ | the same, at every α at once |

Costs are exact fractions of the stored floats. A sum may exceed its limit by a relative 1e−12, as in
`Guarantee.fits`, so that a budget split in ten and added up again still fits.
"""

from __future__ import annotations

from fractions import Fraction

from dpmanifolds._validate import choice
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import KINDS_BY_FILTER, Cost, checked_budget
from dpmanifolds.privacy.calibration import probability
from dpmanifolds.privacy.rounding import SUM_SLACK

__all__ = ["FILTERS", "add", "charge", "check_delta", "left", "limit_of", "told", "within"]

FILTERS = ("auto", *sorted(KINDS_BY_FILTER))


def limit_of(budget: Budget, filter: str = "auto", alpha: float | None = None) -> Budget:
    """The limit of the named filter under which the total stays within `budget`.

    A budget other than (ε, δ) has the one filter of its own kind. For (ε, δ), "auto" is "renyi", which reads the most
    kinds of release, at the order `alpha` at which Gaussian noise gets the most out of (ε, δ), unless one is given.
    """
    checked_budget(budget)
    return budget.limit(choice("filter", filter, FILTERS), alpha)


def check_delta(limit: Budget, delta: float | None) -> None:
    """Refuse a `delta` that the filter has no use for, or that is none."""
    if delta is None:
        return
    probability("delta", delta)
    if limit.filter != "basic":
        raise ArgumentError(f"delta= is for filter='basic'; this data set is kept by {limit.filter!r}.")


def charge(limit: Budget, guarantee: Guarantee, delta: float | None = None) -> Budget:
    """The guarantee read as a promise of the limit's kind; `NotAvailableError` where the filter cannot read it."""
    try:
        return limit.charge(guarantee, delta)
    except NotAvailableError:
        kinds = ", ".join(sorted({term.kind for term in guarantee.terms}))
        raise NotAvailableError(
            f"the filter {limit.filter!r} with limit {limit} cannot read a release with terms {kinds}; it reads "
            f"{limit.filter_reads}. Use such noise, or reserve the release as a plan on an untouched data set."
        ) from None


def add(one: Cost, other: Cost) -> Cost:
    """Both sums."""
    return one[0] + other[0], one[1] + other[1]


def within(limit: Budget, spent: Cost) -> bool:
    """Whether the sums are within the limit, up to the slack."""
    slack = Fraction(1 + SUM_SLACK)
    main, delta = limit.cost
    return spent[0] <= main * slack**limit.power and spent[1] <= delta * slack


def told(limit: Budget, spent: Cost) -> Budget | None:
    """Sums as a budget of the limit's kind, rounded up, and never above the limit by the slack; None is nothing."""
    main, delta = limit.cost
    return limit.with_cost((min(spent[0], main), min(spent[1], delta)), up=True)


def left(limit: Budget, spent: Cost) -> Budget | None:
    """What may still be spent in one release, rounded down; None where no more than the rounding of sums is left."""
    # a remainder of the size of the slack is rounding, not a budget
    rest = [
        have - used if have - used > SUM_SLACK * have else Fraction(0)
        for have, used in zip(limit.cost, spent, strict=True)
    ]
    return limit.with_cost((rest[0], rest[1]), up=False)
