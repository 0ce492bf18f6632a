"""What the log says was spent on a data set, and whether it affords one release more.

>>> from dpmanifolds.ledger.records import Dataset
>>> from dpmanifolds.ledger.standing import Standing
>>> from dpmanifolds.privacy import Guarantee, PureDP
>>> untouched = Standing(Dataset("survey", PureDP(1.0), PureDP(1.0), "replace-one", "record", None))
>>> untouched.priced(Guarantee.pure(0.25))
PureDP(epsilon=0.25)

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

from dpmanifolds.errors import ArgumentError, BudgetExceededError, NotAvailableError
from dpmanifolds.ledger import filters
from dpmanifolds.ledger.records import Dataset, Entry
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import Cost

__all__ = ["Standing", "pure_epsilon"]

_NOTHING = (Fraction(0), Fraction(0))


def pure_epsilon(guarantee: Guarantee) -> float | None:
    """Σε of a release with bounded loss, None for any other."""
    try:
        return guarantee.as_pure().epsilon
    except (NotAvailableError, ArgumentError):
        return None


@dataclass(frozen=True)
class Standing:
    """A data set, the sums of its filter, Σε where all was pure (else None), and whether one release took all."""

    dataset: Dataset
    sums: Cost = _NOTHING
    pure: Fraction | None = Fraction(0)
    whole: bool = False

    def after(self, entry: Entry) -> Standing:
        """The standing with one more entry of the log."""
        charged = entry.charged
        if charged is None:
            return Standing(self.dataset, self.sums, self.pure, self.whole or entry.takes_whole)
        return self._with(charged, entry.details["pure"])

    def _with(self, charged: Budget, pure: float | None) -> Standing:
        both = None if self.pure is None or pure is None else self.pure + Fraction(pure)
        return Standing(self.dataset, filters.add(self.sums, charged.cost), both, self.whole)

    @property
    def untouched(self) -> bool:
        """Whether nothing has been spent."""
        return not self.whole and self.sums == _NOTHING

    @property
    def by_filter(self) -> bool:
        """Whether the sums of the filter are within its limit."""
        return filters.within(self.dataset.limit, self.sums)

    @property
    def sound(self) -> bool:
        """Whether what was spent is within the total budget, by the filter or by Σε."""
        return self.by_filter or self._within_pure

    @property
    def _within_pure(self) -> bool:
        total = self.dataset.budget.pure_total
        return total is not None and self.pure is not None and filters.within(total, (self.pure, Fraction(0)))

    @property
    def spent(self) -> Budget | None:
        """In the kind of the filter; as pure ε beyond its limit; the total where one release took the whole."""
        if self.whole:
            return self.dataset.budget
        total = self.dataset.budget.pure_total
        if not self.by_filter and total is not None and self.pure is not None:
            return filters.told(total, (self.pure, Fraction(0)))
        return filters.told(self.dataset.limit, self.sums)

    @property
    def remaining(self) -> Budget | None:
        """In the kind of the filter; as pure ε where the filter has nothing left; None is nothing."""
        if self.whole:
            return None
        return filters.left(self.dataset.limit, self.sums) or self.remaining_pure

    @property
    def remaining_pure(self) -> Budget | None:
        """The ε that a pure release can still spend by Σε alone; None is nothing."""
        limit = self.dataset.limit
        total = limit if limit.bounded_loss else self.dataset.budget.pure_total
        if self.whole or total is None or self.pure is None:
            return None
        return filters.left(total, (self.pure, Fraction(0)))

    def priced(self, guarantee: Guarantee, delta: float | None = None, *, plan: bool = False) -> Budget | None:
        """What the release is charged, None for the whole budget; or a refusal."""
        dataset = self.dataset
        if (guarantee.adjacency, guarantee.unit) != (dataset.adjacency, dataset.unit):
            raise ArgumentError(
                f"data set {dataset.name!r} is accounted for {dataset.adjacency!r} and one {dataset.unit!r} at a time; "
                f"the release is for {guarantee.adjacency!r} and {guarantee.unit!r}. Promises add up only when both "
                "agree: say unit= and adjacency= as the account has them, where they are true of the records."
            )
        filters.check_delta(dataset.limit, delta)
        asked: Budget | None = None
        too_much = ""
        try:
            asked = filters.charge(dataset.limit, guarantee, delta)
        except NotAvailableError:
            if not (plan and self.untouched and guarantee.fits(dataset.budget)):
                raise
            return None
        except ArgumentError as error:
            too_much = f"what no budget holds ({error})"
        if asked is not None and not self.whole and self._with(asked, pure_epsilon(guarantee)).sound:
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
