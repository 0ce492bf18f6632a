"""The rules by which releases add up, each chosen in view of the ones before, and what they leave of a data set.

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

With a total of (ε, δ) there is a second way besides the filter: as long as all releases are pure, Σε ≤ ε is enough.

**Either way is enough.** Let a filter imply (ε, δ) for all interactions within its limit, and let every release be
admitted after which either the filter's sum is within its limit, or all releases so far are pure with Σε ≤ ε. Then the
interaction is (ε, δ)-DP. Proof: for neighbours with transcript laws p and q, split ∫(p − e^ε q)₊ by whether the final
transcript is within the filter's limit. On those that are, p and q agree with the laws of the interaction that is
halted before it leaves the limit, since sums only grow and such a transcript never left it; so that part is at most
the integral for the halted interaction, which is at most δ. On all others p ≤ e^{Σε} q ≤ e^ε q, and the part is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpmanifolds._validate import choice, probability
from dpmanifolds.errors import ArgumentError, BudgetExceededError, NotAvailableError
from dpmanifolds.ledger.records import Dataset, Entry
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import KINDS_BY_FILTER, Cost, checked_budget
from dpmanifolds.privacy.rounding import SUM_SLACK

FILTERS = ("auto", *sorted(KINDS_BY_FILTER))
_NOTHING = (Fraction(0), Fraction(0))


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


def pure_epsilon(guarantee: Guarantee) -> float | None:
    """Σε of a release with bounded loss, None for any other."""
    try:
        return guarantee.as_pure().epsilon
    except (NotAvailableError, ArgumentError):
        return None


@dataclass(frozen=True)
class Standing:
    """A data set, the sums of its filter, Σε where all was pure (else None), and whether one release took all.

    >>> from dpmanifolds.ledger.filters import Standing
    >>> from dpmanifolds.ledger.records import Dataset
    >>> from dpmanifolds.privacy import Guarantee, PureDP
    >>> untouched = Standing(Dataset("survey", PureDP(1.0), PureDP(1.0), "replace-one", "record", None))
    >>> untouched.priced(Guarantee.pure(0.25))
    PureDP(epsilon=0.25)
    """

    dataset: Dataset
    sums: Cost = _NOTHING
    pure: Fraction | None = Fraction(0)
    whole: bool = False

    def after(self, entry: Entry) -> Standing:
        """The standing with one more entry of the log."""
        charged = entry.charged
        if charged is None:
            return Standing(self.dataset, self.sums, self.pure, self.whole or entry.takes_whole)
        return self.with_charge(charged, entry.details["pure"])

    def with_charge(self, charged: Budget, pure: float | None) -> Standing:
        """The standing after one more charge; `pure` is its ε, where it has one."""
        both = None if self.pure is None or pure is None else self.pure + Fraction(pure)
        return Standing(self.dataset, add(self.sums, charged.cost), both, self.whole)

    @property
    def untouched(self) -> bool:
        """Whether nothing has been spent."""
        return not self.whole and self.sums == _NOTHING

    @property
    def by_filter(self) -> bool:
        """Whether the sums of the filter are within its limit."""
        return within(self.dataset.limit, self.sums)

    @property
    def sound(self) -> bool:
        """Whether what was spent is within the total budget, by the filter or by Σε."""
        return self.by_filter or self._within_pure

    @property
    def _within_pure(self) -> bool:
        total = self.dataset.budget.pure_total
        return total is not None and self.pure is not None and within(total, (self.pure, Fraction(0)))

    @property
    def spent(self) -> Budget | None:
        """In the kind of the filter; as pure ε beyond its limit; the total where one release took the whole."""
        if self.whole:
            return self.dataset.budget
        total = self.dataset.budget.pure_total
        if not self.by_filter and total is not None and self.pure is not None:
            return told(total, (self.pure, Fraction(0)))
        return told(self.dataset.limit, self.sums)

    @property
    def remaining(self) -> Budget | None:
        """In the kind of the filter; as pure ε where the filter has nothing left; None is nothing."""
        if self.whole:
            return None
        return left(self.dataset.limit, self.sums) or self.remaining_pure

    @property
    def remaining_pure(self) -> Budget | None:
        """The ε that a pure release can still spend by Σε alone; None is nothing."""
        limit = self.dataset.limit
        total = limit if limit.bounded_loss else self.dataset.budget.pure_total
        if self.whole or total is None or self.pure is None:
            return None
        return left(total, (self.pure, Fraction(0)))

    def priced(self, guarantee: Guarantee, delta: float | None = None, *, plan: bool = False) -> Budget | None:
        """What the release is charged, None for the whole budget; or a refusal."""
        dataset = self.dataset
        if (guarantee.adjacency, guarantee.unit) != (dataset.adjacency, dataset.unit):
            raise ArgumentError(
                f"data set {dataset.name!r} is accounted for {dataset.adjacency!r} and one {dataset.unit!r} at a time; "
                f"the release is for {guarantee.adjacency!r} and {guarantee.unit!r}. Promises add up only when both "
                "agree: say unit= and adjacency= as the account has them, where they are true of the records."
            )
        check_delta(dataset.limit, delta)
        asked: Budget | None = None
        too_much = ""
        try:
            asked = charge(dataset.limit, guarantee, delta)
        except NotAvailableError:
            if not (plan and self.untouched and guarantee.fits(dataset.budget)):
                raise
            return None
        except ArgumentError as error:
            too_much = f"what no budget holds ({error})"
        if asked is not None and not self.whole and self.with_charge(asked, pure_epsilon(guarantee)).sound:
            return asked
        # a release that is the only one needs no filter: that it is the first was decided before any output was seen
        if self.untouched and guarantee.fits(dataset.budget):
            return None
        raise self._refusal(asked, too_much)

    def _refusal(self, asked: Budget | None, too_much: str) -> BudgetExceededError:
        spent, remaining, pure = self.spent, self.remaining, self.remaining_pure
        also = f" (or {pure})" if pure is not None and pure != remaining else ""
        return BudgetExceededError(
            f"data set {self.dataset.name!r}: spent {spent or 'nothing'}, asked {asked or too_much}, remaining "
            f"{remaining or 'nothing'}{also}, of a total of {self.dataset.budget}. Nothing was recorded; ask for a "
            "smaller budget.",
            dataset=self.dataset.name,
            spent=spent,
            asked=asked,
            remaining=remaining,
        )
