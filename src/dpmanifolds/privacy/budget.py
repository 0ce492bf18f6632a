"""What every kind of budget says about itself: how it reads a promise, adds up, splits, prints and is written down.

>>> from dpmanifolds.privacy import GaussianDP, Guarantee
>>> budget = GaussianDP(0.5)
>>> budget.read(Guarantee.pure(0.1)).mu < budget.mu, budget.cost[0]
(True, Fraction(1, 4))
>>> Budget.from_dict(budget.to_dict()) == budget
True

A kind of budget is one class below `Budget`, a frozen dataclass of numbers. It is known by its name from then on: to
JSON, to the ledger as the filter `filter`, to the command line by the names of its numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from dpmanifolds._validate import positive_number, probability, shown
from dpmanifolds.errors import ArgumentError, LargeDeltaWarning, NotAvailableError, warn_user
from dpmanifolds.privacy.rounding import float_above, float_below, keeps, keeps_as_sum, root_above, root_below

if TYPE_CHECKING:
    from dpmanifolds.privacy.budgets import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
    from dpmanifolds.privacy.guarantee import Guarantee
    from dpmanifolds.privacy.terms import Term

_LARGEST = 700.0
_LARGEST_ORDER = 1e100
NOTHING = 2.0**-1022
"""Stands for a promise of ε = 0."""
_SMALLEST = 1e-100
_LETTERS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ", "alpha": "α"}
KINDS: dict[str, type[Budget]] = {}
"""The kinds of budget by their names."""
KINDS_BY_FILTER: dict[str, type[Budget]] = {}
"""The same by the names of their filters."""
NOTED: dict[tuple[str | None, str, str], Counter[Guarantee]] = {}
"""What was spent in this process, by data set and what neighbours are; `spent` reads it."""
NOTING = Lock()
Cost = tuple[Fraction, Fraction]
"""What adds up: (ε or μ² or ρ or D_α, δ)."""


def spendable(name: str, value: Any) -> float:
    """A number from 1e−100 to 700, or 2^−1022, which stands for nothing at all.

    Above, e^ε is no number and the promise says nothing; below, the noise is more than numbers can hold.
    """
    number = positive_number(name, value)
    if number < _SMALLEST and number != NOTHING:
        raise ArgumentError(
            f"= {number:g} asks for more noise than numbers can hold: allowed is from {_SMALLEST:g}. Useful "
            "budgets are above about 0.001; check the units.",
            argument=name,
        )
    if number > _LARGEST:
        raise ArgumentError(
            f"= {number:g} promises nothing: allowed is up to {_LARGEST:g}. Useful budgets are below about 10; "
            "check the units, or release without noise and without a claim of privacy.",
            argument=name,
        )
    return number


def told(promise: float) -> float:
    """A promise that was computed, as a number that a budget can hold: raised to 1e−100 where it is below, not if 0."""
    return NOTHING if promise <= NOTHING else max(promise, _SMALLEST)


def order(alpha: Any) -> float:
    """A Rényi order above 1, or an error."""
    number = positive_number("alpha", alpha)
    if number <= 1:
        raise ArgumentError(f"alpha must be above 1; got {number}. Orders from 1.1 to 64 are usual.")
    if number > _LARGEST_ORDER:
        raise ArgumentError(
            f"alpha must be at most {_LARGEST_ORDER:g}; got {number:g}. Orders from 1.1 to 64 are usual."
        )
    return number


def checked_budget(budget: Any) -> Budget:
    """A budget, or an error that lists the kinds."""
    if not isinstance(budget, Budget):
        *names, last = KINDS
        raise ArgumentError(f"budget must be {', '.join(names)} or {last}; got {shown(budget)}.")
    return budget


def refuse_as_domain(given: Any) -> None:
    """A budget where the domain belongs: the domain was forgotten, and not the budget."""
    if isinstance(given, Budget):
        raise ArgumentError(
            f"is missing: the ball where records live comes before the budget; got {given!r} in its place.",
            argument="domain",
        )


def warn_of_delta(budget: Budget, n: int) -> None:
    """Say that a budget allows to publish records as they are, where its δ is 1/n or more; n is public, or a guess."""
    delta = budget.kept.get("delta", 0.0)
    if delta * n >= 1:
        warn_user(
            f"δ = {delta:g} is not below 1/n = {1 / n:g}: publishing one record in n as it is would keep this promise. "
            "Choose δ far below 1/n, for instance 1e-6.",
            LargeDeltaWarning,
        )


def note_spending(dataset: str | None, guarantee: Guarantee) -> None:
    """Count a promise that is about to be spent."""
    with NOTING:
        NOTED.setdefault((dataset, guarantee.adjacency, guarantee.unit), Counter())[guarantee] += 1


def checked_kind(name: str, kind: Any) -> type[Budget]:
    """A kind of budget, or an error that lists them."""
    if not isinstance(kind, type) or kind not in KINDS.values():
        raise ArgumentError(f"must be one of {', '.join(KINDS)}; got {shown(kind)}.", argument=name)
    found: type[Budget] = kind
    return found


def budget_of(**numbers: float | None) -> Budget:
    """The budget that has these numbers by name and no others; None is not given.

    >>> budget_of(epsilon=1.0, delta=None), budget_of(epsilon=1.0, delta=1e-6)
    (PureDP(epsilon=1.0), ApproxDP(epsilon=1.0, delta=1e-06))
    """
    given = {name: number for name, number in numbers.items() if number is not None}
    for kind in KINDS.values():
        if {field.name for field in fields(kind)} == set(given):
            return kind(**given)
    raise ArgumentError(f"no kind of budget has the numbers {', '.join(given) or 'none'} and no others.")


_CHECKS: dict[str, Callable[[str, Any], float]] = {"delta": probability, "alpha": lambda _, alpha: order(alpha)}


@dataclass(frozen=True)
class Budget(ABC):
    """What the kinds share, from what each says of itself.

    >>> from dpmanifolds.privacy import ApproxDP, Budget, GaussianDP, PureDP
    >>> all(isinstance(budget, Budget) for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6), GaussianDP(1.0)))
    True
    >>> round(GaussianDP(0.5).as_approx(delta=1e-6).epsilon, 6)
    2.254085
    """

    spends: ClassVar[str] = "epsilon"
    """The name of the number that is spent; others (δ, α) are kept."""
    power: ClassVar[int] = 1
    """Of that number, the power that adds up: μ², but ε, ρ and D_α themselves."""
    reader: ClassVar[str]
    """The method of budgets and guarantees that reads them as a promise of this kind."""
    term_kind: ClassVar[type[Term] | None] = None
    """The term of a guarantee that promises this and no more, with the same numbers."""
    filter: ClassVar[str]
    """The name of the rule by which releases within such a limit add up."""
    filter_reads: ClassVar[str]
    """Which releases that rule can read, in words."""
    bounded_loss: ClassVar[bool] = False
    """Whether only noise of bounded privacy loss keeps it, whose ε adds up over steps, and no Gaussian noise."""
    gains_by_batches: ClassVar[bool] = False
    """Whether random batches are known to leave more of it."""
    exact_mu: ClassVar[bool] = False
    """Whether `gaussian_mu` is the largest that keeps it, to the last bit."""
    _instead: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, number in asdict(self).items():
            object.__setattr__(self, name, _CHECKS.get(name, spendable)(name, number))

    def __init_subclass__(cls) -> None:
        KINDS[cls.__name__] = KINDS_BY_FILTER[cls.filter] = cls

    def _refuse(self, kind: str) -> NotAvailableError:
        return NotAvailableError(f"{self} implies no {kind} promise. {self._instead}".rstrip())

    def as_pure(self) -> PureDP:
        """The ε-DP that follows, where one does."""
        raise self._refuse("pure ε")

    def as_approx(self, delta: float) -> ApproxDP:
        """The (ε, δ)-DP that follows at this δ, where one does."""
        raise self._refuse(f"(ε, {delta:g})")

    def as_gaussian(self) -> GaussianDP:
        """The μ-Gaussian-DP that follows, where one does."""
        raise self._refuse("Gaussian μ")

    def as_zcdp(self) -> ZeroConcentratedDP:
        """The ρ-zCDP that follows, where one does."""
        raise self._refuse("zCDP ρ")

    def as_renyi(self, alpha: float) -> RenyiDP:
        """The Rényi-DP of this order that follows, where one does."""
        raise self._refuse(f"Rényi (order {alpha:g})")

    @property
    def amount(self) -> float:
        """The number that is spent."""
        number: float = getattr(self, self.spends)
        return number

    @property
    def kept(self) -> dict[str, float]:
        """The numbers that are not spent but kept, by name."""
        return {name: getattr(self, name) for name in self._kept_names()}

    @classmethod
    def _kept_names(cls) -> list[str]:
        return [field.name for field in fields(cls) if field.name != cls.spends]

    @classmethod
    def choose_kept(cls, what: str, **given: float | None) -> dict[str, float]:
        """Those of the given numbers that this kind keeps; an error that says `what` needs one that is None."""
        chosen = {name: given[name] for name in cls._kept_names()}
        for name, number in chosen.items():
            if number is None:
                raise ArgumentError(f"{what} {cls.__name__} needs {name}=; none was given.")
        return {name: number for name, number in chosen.items() if number is not None}

    @classmethod
    def read_from(cls, promise: Guarantee | Budget, **kept: float) -> Budget:
        """The promise of this kind, at the numbers kept, that follows from another, where one does."""
        found: Budget = getattr(promise, cls.reader)(**kept)
        return found

    def read(self, promise: Guarantee | Budget) -> Budget:
        """The same at the numbers that this budget keeps."""
        return self.read_from(promise, **self.kept)

    def spent_by(self, guarantee: Guarantee) -> float | None:
        """How much of the number that is spent a guarantee takes; None where it promises nothing of this kind."""
        return None

    def admits(self, guarantee: Guarantee, *, strict: bool = False) -> bool:
        """Whether a guarantee is within this budget; see `Guarantee.fits`."""
        one_part = sum(term.count for term in guarantee.terms) == 1
        spent = self.spent_by(guarantee)
        return keeps(spent, self.amount) if strict or one_part else keeps_as_sum(spent, self.amount)

    @property
    def term(self) -> Term:
        """This promise, and nothing else known, as a term of a guarantee."""
        if self.term_kind is None:
            raise NotAvailableError(f"no guarantee is known by {self} alone.")
        return self.term_kind(**asdict(self))

    def largest_epsilon(self) -> float | None:
        """The largest ε such that every ε-DP mechanism keeps it, by formula; None where that must be searched for."""
        return None

    @abstractmethod
    def gaussian_mu(self) -> float:
        """The μ of Gaussian noise that just keeps it, up to rounding unless `exact_mu`."""

    def largest_rho(self) -> float | None:
        """The largest ρ such that every ρ-zCDP mechanism keeps it; None where that must be searched for."""
        return None

    @property
    def cost(self) -> Cost:
        """What it adds to the sums of its kind, exactly."""
        return Fraction(self.amount) ** self.power, Fraction(0)

    def with_cost(self, cost: Cost, *, up: bool) -> Budget | None:
        """The budget of this kind with these sums, rounded up or down; None is nothing."""
        number = self._rounded(cost[0], up=up)
        return None if number <= 0 or (not up and number < _SMALLEST) else self._with(number)

    def _rounded(self, total: Fraction, *, up: bool) -> float:
        if self.power == 2:
            return root_above(total) if up else root_below(total)
        return float_above(total) if up else float_below(total)

    def _with(self, number: float) -> Budget:
        return replace(self, **{self.spends: number})

    def cut(self, shares: Sequence[Fraction]) -> list[tuple[Budget, ...]]:
        """Ways to cut it by exact shares whose sum is at most 1, every part rounded down; see `split`."""
        whole = self.cost[0]
        return [tuple(self._with(self._rounded(whole * share, up=False)) for share in shares)]

    def limit(self, filter: str, alpha: float | None) -> Budget:
        """The limit of the filter of this name ("auto": the usual one) under which the total stays within it."""
        if filter not in ("auto", self.filter) or alpha is not None:
            raise ArgumentError(
                f"{self} is kept by filter={self.filter!r} and needs no alpha; got filter={filter!r}, "
                f"alpha={alpha!r}. The other filters are for a total of ApproxDP."
            )
        return self

    @classmethod
    @abstractmethod
    def limit_within(cls, total: ApproxDP, alpha: float | None) -> Budget:
        """The largest limit of this kind that implies a total of (ε, δ); `alpha` is for `RenyiDP` alone."""

    @property
    def pure_total(self) -> PureDP | None:
        """The ε that pure releases may add up to besides the filter, where that is a way of its own."""
        return None

    def charge(self, guarantee: Guarantee, delta: float | None = None) -> Budget:
        """What the filter with this limit adds for a release; `delta` is for (ε, δ) alone."""
        return self.read(guarantee)

    def in_words(self) -> str:
        """Its numbers with their letters.

        >>> from dpmanifolds import ApproxDP
        >>> ApproxDP(1.0, 1e-6).in_words()
        'ε = 1, δ = 1e-06'
        """
        return ", ".join(f"{_LETTERS.get(name, name)} = {number:.6g}" for name, number in asdict(self).items())

    @property
    def label(self) -> str:
        """The same for narrow columns: ε=1, δ=1e-06."""
        return ", ".join(f"{_LETTERS.get(name, name)}={number:.4g}" for name, number in asdict(self).items())

    @property
    def letter(self) -> str:
        """Of the number that is spent."""
        return _LETTERS.get(self.spends, self.spends)

    def to_dict(self) -> dict[str, Any]:
        """The kind and its numbers, for JSON."""
        return {"kind": type(self).__name__, **asdict(self)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Budget:
        """The budget that `to_dict` described."""
        if data["kind"] not in KINDS:
            raise ArgumentError(f"no budget is of the kind {data['kind']!r}.")
        return KINDS[data["kind"]](**{name: value for name, value in data.items() if name != "kind"})


def split(budget: Budget, shares: Sequence[float]) -> list[tuple[Budget, ...]]:
    """Ways to cut a budget by shares that sum to at most 1; releases within one way's parts are together within it.

    ε, ρ and D_α are cut by the shares, μ by their roots. A point (ε, δ) cannot be cut without loss: it is cut as the
    pure ε and as the Gaussian μ that it affords, for noise of either kind.

    >>> from dpmanifolds.privacy import PureDP, split
    >>> [round(part.epsilon, 6) for part in split(PureDP(1.0), [0.25, 0.75])[0]]
    [0.25, 0.75]
    """
    try:
        parts = [positive_number("share", share) for share in shares]
    except TypeError:
        raise ArgumentError(f"shares must be a list of numbers such as [0.5, 0.5]; got {shares!r}.") from None
    if not parts or math.fsum(parts) > 1 + 1e-12:
        raise ArgumentError(f"shares must be one or more numbers above 0 with a sum of at most 1; got {parts}.")
    exact = [Fraction(part) for part in parts]
    # ten times the float 0.1 is a hair more than 1
    total = max(sum(exact, Fraction(0)), Fraction(1))
    return checked_budget(budget).cut([share / total for share in exact])
