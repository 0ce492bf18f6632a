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

Amounts are exact fractions of the stored floats. A sum may exceed its limit by a relative 1e−12, as in
`Guarantee.fits`, so that a budget split in ten and added up again still fits.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpmanifolds._validate import choice
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import ApproxDP, Budget, GaussianDP, Guarantee, PureDP, RenyiDP, ZeroConcentratedDP
from dpmanifolds.privacy._renyi import epsilon_of_renyi
from dpmanifolds.privacy.affordable import affordable_mu, affordable_rho
from dpmanifolds.privacy.budgets import order, rounded_up
from dpmanifolds.privacy.calibration import probability
from dpmanifolds.privacy.terms import ApproxTerm

__all__ = [
    "FILTERS",
    "SLACK",
    "Amount",
    "add",
    "amount",
    "charge",
    "check_delta",
    "filter_of",
    "left",
    "limit_of",
    "told",
    "within",
]

FILTERS = ("auto", "basic", "gaussian", "pure", "renyi", "zcdp")
SLACK = 1e-12
_LEAST = 1e-100
Amount = tuple[Fraction, Fraction]
"""What adds up: (ε or μ² or ρ or D_α, δ)."""

_NATURAL: dict[type[Budget], str] = {
    PureDP: "pure",
    GaussianDP: "gaussian",
    ZeroConcentratedDP: "zcdp",
    RenyiDP: "renyi",
    ApproxDP: "basic",
}
_READS = {
    "pure": "releases with a bounded loss: pure ε and Laplace noise",
    "gaussian": "releases with a μ: Gaussian, pure ε and Laplace noise",
    "zcdp": "releases with a ρ: lattice and other Gaussian, pure ε and Laplace noise",
    "renyi": "releases with Rényi divergences: all Gaussian noise, random batches, pure ε and Laplace noise",
    "basic": "pure ε and (ε, δ) as they are, and any other release at the δ that spend(…, delta=…) names",
}


def filter_of(limit: Budget) -> str:
    """The name of the filter with this limit."""
    return _NATURAL[type(limit)]


def limit_of(budget: Budget, filter: str = "auto", alpha: float | None = None) -> Budget:
    """The limit of the named filter under which the total stays within `budget`.

    A budget other than (ε, δ) has the one filter of its own kind. For (ε, δ), "auto" is "renyi", which reads the most
    kinds of release, at the order `alpha` at which Gaussian noise gets the most out of (ε, δ), unless one is given.
    """
    if type(budget) not in _NATURAL:
        raise ArgumentError(
            f"budget must be PureDP, ApproxDP, GaussianDP, ZeroConcentratedDP or RenyiDP; got {budget!r}."
        )
    choice("filter", filter, FILTERS)
    if not isinstance(budget, ApproxDP):
        if filter not in ("auto", filter_of(budget)) or alpha is not None:
            raise ArgumentError(
                f"{budget} is kept by filter={filter_of(budget)!r} and needs no alpha; got filter={filter!r}, "
                f"alpha={alpha!r}. The other filters are for a total of ApproxDP."
            )
        return budget
    name = "renyi" if filter == "auto" else filter
    if alpha is not None and name != "renyi":
        raise ArgumentError(f"alpha is the order of filter='renyi'; got filter={filter!r}, alpha={alpha!r}.")
    if name == "gaussian":
        return GaussianDP(affordable_mu(budget))
    if name == "zcdp":
        return ZeroConcentratedDP(affordable_rho(budget))
    if name == "renyi":
        return _renyi_limit(budget, alpha)
    return PureDP(budget.epsilon) if name == "pure" else budget


def _renyi_limit(budget: ApproxDP, alpha: float | None) -> RenyiDP:
    """(α, r) with r as large as Canonne, Kamath and Steinke (2020) allow: ε − log(1 − 1/α) + log(δα)/(α − 1).

    Gaussian noise has D_α = ρα, so the order that affords the largest ρ maximises r/α; any order gives a true rule.
    """
    if alpha is None:
        orders = 1 + np.exp(np.linspace(-5.0, 40.0, 4501))
        affords = budget.epsilon - np.log1p(-1 / orders) + np.log(budget.delta * orders) / (orders - 1)
        alpha = float(f"{orders[np.argmax(affords / orders)]:.4g}")
    alpha = order(alpha)
    afforded = budget.epsilon - math.log1p(-1 / alpha) + (math.log(budget.delta) + math.log(alpha)) / (alpha - 1)
    divergence = min(afforded, 700.0)
    step = max(2.0**-50 * budget.epsilon, 2.0**-1074)
    while divergence > 0 and epsilon_of_renyi(alpha, divergence, budget.delta) > budget.epsilon:
        divergence, step = divergence - step, 2 * step
    if divergence <= 0:
        raise ArgumentError(f"no Rényi divergence of order alpha = {alpha:g} keeps {budget}. Leave alpha out.")
    return RenyiDP(alpha, divergence)


def check_delta(limit: Budget, delta: float | None) -> None:
    """Refuse a `delta` that the filter has no use for, or that is none."""
    if delta is None:
        return
    probability("delta", delta)
    if not isinstance(limit, ApproxDP):
        raise ArgumentError(f"delta= is for filter='basic'; this data set is kept by {filter_of(limit)!r}.")


def charge(limit: Budget, guarantee: Guarantee, delta: float | None = None) -> Budget:
    """The guarantee read as a promise of the limit's kind; `NotAvailableError` where the filter cannot read it."""
    try:
        if isinstance(limit, PureDP):
            return guarantee.as_pure()
        if isinstance(limit, GaussianDP):
            return guarantee.as_gaussian()
        if isinstance(limit, ZeroConcentratedDP):
            return guarantee.as_zcdp()
        if isinstance(limit, RenyiDP):
            return guarantee.as_renyi(limit.alpha)
        return _basic_charge(guarantee) if delta is None else guarantee.as_approx(delta)
    except NotAvailableError:
        kinds = ", ".join(sorted({term.kind for term in guarantee.terms}))
        raise NotAvailableError(
            f"the filter {filter_of(limit)!r} with limit {limit} cannot read a release with terms {kinds}; it reads "
            f"{_READS[filter_of(limit)]}. Use such noise, or reserve the release as a plan on an untouched data set."
        ) from None


def _basic_charge(guarantee: Guarantee) -> Budget:
    """Σε and Σδ of terms that state a pure ε or a point (ε, δ)."""
    points = [term for term in guarantee.terms if isinstance(term, ApproxTerm)]
    if not points:
        return guarantee.as_pure()
    epsilon = sum((term.count * Fraction(term.epsilon) for term in points), Fraction(0))
    delta = sum((term.count * Fraction(term.delta) for term in points), Fraction(0))
    rest = tuple(term for term in guarantee.terms if not isinstance(term, ApproxTerm))
    if rest:
        epsilon += Fraction(replace(guarantee, terms=rest).as_pure().epsilon)
    return ApproxDP(rounded_up(epsilon), rounded_up(delta))


def amount(budget: Budget) -> Amount:
    """What a budget adds to the sum of its kind, exactly."""
    if isinstance(budget, GaussianDP):
        return Fraction(budget.mu) ** 2, Fraction(0)
    if isinstance(budget, ZeroConcentratedDP):
        return Fraction(budget.rho), Fraction(0)
    if isinstance(budget, ApproxDP):
        return Fraction(budget.epsilon), Fraction(budget.delta)
    assert isinstance(budget, PureDP | RenyiDP)
    return Fraction(budget.epsilon), Fraction(0)


def add(one: Amount, other: Amount) -> Amount:
    """Both sums."""
    return one[0] + other[0], one[1] + other[1]


def within(limit: Budget, spent: Amount) -> bool:
    """Whether the sums are within the limit, up to the slack."""
    allowed = amount(limit)
    slack = Fraction(1 + SLACK)
    main = slack**2 if isinstance(limit, GaussianDP) else slack
    return spent[0] <= allowed[0] * main and spent[1] <= allowed[1] * slack


def told(limit: Budget, spent: Amount) -> Budget | None:
    """Sums as a budget of the limit's kind, rounded up, and never above the limit by the slack; None is nothing."""
    allowed = amount(limit)
    return _as_budget(limit, (min(spent[0], allowed[0]), min(spent[1], allowed[1])), up=True)


def left(limit: Budget, spent: Amount) -> Budget | None:
    """What may still be spent in one release, rounded down; None where no more than the rounding of sums is left."""
    allowed = amount(limit)
    rest = tuple(have - used for have, used in zip(allowed, spent, strict=True))
    # a remainder of the size of the slack is rounding, not a budget
    kept = [part if part > SLACK * have else Fraction(0) for part, have in zip(rest, allowed, strict=True)]
    return _as_budget(limit, (kept[0], kept[1]), up=False)


def _as_budget(limit: Budget, sums: Amount, *, up: bool) -> Budget | None:
    main = _root(sums[0], up=up) if isinstance(limit, GaussianDP) else _rounded(sums[0], up=up)
    delta = _rounded(sums[1], up=up)
    if main <= 0 or (not up and main < _LEAST):
        return None
    if isinstance(limit, RenyiDP):
        return RenyiDP(limit.alpha, main)
    if isinstance(limit, ApproxDP):
        return ApproxDP(main, delta) if delta > 0 else PureDP(main)
    return type(limit)(main)  # type: ignore[call-arg]


def _rounded(exact: Fraction, *, up: bool) -> float:
    return rounded_up(exact) if up else -rounded_up(-exact)


def _root(square: Fraction, *, up: bool) -> float:
    """√ of an exact value, rounded to one side."""
    root = math.sqrt(square)
    if up:
        while Fraction(root) ** 2 < square:
            root = math.nextafter(root, math.inf)
    else:
        while Fraction(root) ** 2 > square:
            root = math.nextafter(root, 0.0)
    return root
