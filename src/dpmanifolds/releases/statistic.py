"""What every statistic does around its own arithmetic: check, read, choose, charge, draw, release; written once.

A statistic is one small file. Its function makes a `Request` of its arguments (`check_request`; or `check_terms`,
without a domain), reads the records, plans from public facts, charges the account by `spend` once everything that can
fail has been tried, draws, and makes releases by `release`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds._validate import auto_or_integer, choice, hide_records, positive_integer, refuse_empty, shown, text
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import (
    ArgumentError,
    NoiseExceedsDomainWarning,
    NotAvailableError,
    warn_user,
)
from dpmanifolds.ledger.account import mark_domain
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.privacy import Budget, Guarantee, split
from dpmanifolds.privacy.budget import checked_budget, note_spending, refuse_as_domain, warn_of_delta
from dpmanifolds.records.persons import names_of, spelled
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.sums import ADJACENCIES, TANGENT, Draw, ExpectedError, Facts, Mechanism, choose, mean_facts
from dpmanifolds.sums.counts import CountsNoise, counts_noise
from dpmanifolds.sums.steps import StepPlan, plan_steps
from dpmanifolds.sums.total import ExactSum, RecordSums, check_rules, read_records
from dpmanifolds.sums.walk import Stage, Walk, generator_of
from dpmanifolds.sums.wrapped import WrappedMechanism

ON_INVALID = ("raise", "center")
SAFE = ("safe", "rounded", "lattice")
"""Numerics that hold down to the last bit."""

Way = TypeVar("Way")
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Account:
    """Where randomness comes from and where it is paid for."""

    rng: np.random.Generator | None
    """None: the secure source."""
    ledger: Any
    dataset: str | None

    @property
    def reproducible(self) -> bool:
        return self.rng is not None

    def spend(self, what: str, guarantee: Guarantee, *, domain: Domain, **parameters: Any) -> None:
        """Record the promise before the noise is drawn; a refusal leaves nothing behind. `domain`: as it was given."""
        if self.ledger is not None:
            told = parameters | {"domain": repr(domain)} | mark_domain(self.ledger, self.dataset, domain)
            self.ledger.spend(self.dataset, guarantee, what=what, parameters=told, reproducible=self.reproducible)
        if not self.reproducible:
            note_spending(self.dataset, guarantee)


def open_account(ledger: Any, dataset: str | None, rng: Any) -> Account:
    """Check the three arguments that every entry point takes."""
    generator = None if rng is None else generator_of(rng)
    if ledger is None:
        if dataset is not None:
            raise ArgumentError("dataset= names an account of a ledger; pass ledger= too, or leave both out.")
        return Account(generator, None, None)
    if not isinstance(dataset, str) or not dataset:
        raise ArgumentError(f"a ledger needs dataset=, the name of the account to charge; got {shown(dataset)}.")
    if generator is not None:
        raise ArgumentError("a release made with rng= is reproducible, and a ledger takes none of those. Drop rng=.")
    from dpmanifolds.ledger import as_ledger

    return Account(None, as_ledger(ledger), dataset)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What every statistic is asked for under, checked; everything in it is public."""

    budget: Budget
    adjacency: str = "replace-one"
    guess: int | None = None
    """The public guess of the number of records, where that number is protected."""
    on_invalid: str = "raise"
    unit: str = "record"
    account: Account

    @property
    def mends(self) -> bool:
        """Whether malformed records count as the centre, inside of the promise."""
        return self.on_invalid == "center"

    def public_count(self, n: int | None) -> int | None:
        """n as a release tells it: None where it is protected."""
        return n if self.guess is None else None

    def spend(self, what: str, guarantee: Guarantee, n: int, *, domain: Domain, **told: Any) -> None:
        """Charge the account; a number of records that is protected is not told."""
        warn_of_delta(self.budget, n)
        told["n" if self.guess is None else "n_guess"] = n
        self.account.spend(what, guarantee, domain=domain, **told)

    def release(self, law: Mechanism, drawn: Draw, **about: Any) -> Release:
        """What one mechanism let out; `about` it: see `release_of`."""
        return release_of(law, drawn, budget=self.budget, reproducible=self.account.reproducible, **about)


@dataclass(frozen=True, kw_only=True)
class Request(Terms):
    """A question about records of a domain that a mean by tangent steps answers, or helps to answer."""

    domain: Domain
    mechanism: str = "auto"
    numerics: str = "safe"
    steps: int | str = "auto"

    def read(self, points: Any, group_by: Any = None, *, once: bool = False) -> RecordSums:
        """Records in every form that can be read block by block; more than once, unless `once` will do."""
        records = read_records(self.domain.manifold, points, group_by=group_by, guess=self.guess)
        if not once:
            records.source.refuse_single_use()
        return records

    def count_of(self, records: RecordSums) -> int:
        """How many records all is planned for: their number, or the public guess of it."""
        count = self.guess or records.count
        refuse_empty(count)
        return count

    def plan(self, n: int, budget: Budget | None = None, *, once: bool = False, labelled: bool = False) -> StepPlan:
        """The steps that public facts suggest; one where records can be read only once."""
        if once and self.steps not in ("auto", 1):
            raise ArgumentError(
                f"is an iterator, which can be read only once, and steps={self.steps} reads them as often. Pass "
                "an array of numbers, a list of blocks, or a function that returns a fresh iterator.",
                argument="points",
            )
        return plan_steps(
            self.domain,
            n,
            budget or self.budget,
            steps=1 if once else self.steps,
            mechanism=self.mechanism,
            numerics=self.numerics,
            adjacency=self.adjacency,
            unit=self.unit,
            labelled=labelled,
        )

    def refuse_malformed(self, first: ExactSum) -> ExactSum:
        """What the first pass saw, before anything is spent; an error where a malformed record is not mended."""
        if not self.mends:
            check_rules(first, self.domain.manifold.rules, self.domain.manifold)
        return first

    def number_facts(self, half: float, n: int) -> Facts:
        """Of the mean of numbers in [0, 2·half]: each is `half`, and a number in [−half, half]."""
        interval = Ball(Euclidean(1), np.array([half]), half)
        return mean_facts(interval, n, adjacency=self.adjacency, unit=self.unit)

    def draw_number(self, law: WrappedMechanism, total: ExactSum, half: float, most: float) -> Draw:
        """The noisy mean of such numbers, brought into [0, most]."""
        drawn = law.noisy_mean(total.integers, total.rows, self.account.rng) + half
        return Draw(float(np.clip(drawn[0], 0.0, most)), drawn)

    def choose(self, facts: Facts, budget: Budget) -> WrappedMechanism:
        """The mechanism for another sum of the same question."""
        law = choose(facts, budget, mechanism=self.mechanism, numerics=self.numerics).mechanism
        assert isinstance(law, WrappedMechanism)
        return law

    def counts(self, cells: int, part: Budget, unit: int) -> CountsNoise:
        """The noise for counts of records in so many cells."""
        return counts_noise(cells, part, self.unit, unit=unit, adjacency=self.adjacency)

    def walk(self, domain: Domain | None = None) -> Walk:
        """The steps in the domain, or in a smaller one."""
        return Walk(domain or self.domain, self.substitute, self.account.rng)

    @property
    def substitute(self) -> Array | None:
        """The public centre where it takes the place of malformed records."""
        return host(self.domain.center) if self.mends else None

    def release_steps(self, walk: Walk, plan: StepPlan, stages: Iterable[Stage]) -> tuple[Release, ...]:
        """Each step as a release on its own, the last with the error of all of them."""
        made = [
            self.release(law, drawn, statistic="mean", n=count, reason=plan.reason, domain=walk.domain, base=base)
            for law, drawn, base, count in stages
        ]
        return (*made[:-1], replace(made[-1], expected_error=plan.expected_error))


def domain_first(function: Callable[P, T]) -> Callable[P, T]:
    """A release that says so where the domain was forgotten and the budget stands in its place.

    Python would call the budget missing.
    """
    place = list(signature(function).parameters).index("domain")

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if len(args) > place:
            refuse_as_domain(args[place])
        return function(*args, **kwargs)

    return checked


def check_terms(
    budget: Any,
    *,
    group_by: Any = None,
    adjacency: Any = "replace-one",
    n_guess: Any = None,
    on_invalid: Any = "raise",
    unit: Any = None,
    ledger: Any = None,
    dataset: Any = None,
    rng: Any = None,
) -> Terms:
    """The arguments that every entry point takes in the same way, or an error that names one of them."""
    checked_budget(budget)
    choice("on_invalid", on_invalid, ON_INVALID)
    added = choice("adjacency", adjacency, ADJACENCIES) == "add-remove-one"
    if n_guess is not None and not added:
        raise ArgumentError("n_guess is for adjacency='add-remove-one'; with 'replace-one' n is public.")
    if n_guess is None and added:
        raise ArgumentError("adjacency='add-remove-one' needs n_guess, a public guess of the number of records.")
    guess = positive_integer("n_guess", n_guess) if added else None
    if unit is None:
        unit = "record" if group_by is None else "person"
    text("unit", unit, "what one record is, for instance 'person'")
    account = open_account(ledger, dataset, rng)
    return Terms(budget=budget, adjacency=adjacency, guess=guess, on_invalid=on_invalid, unit=unit, account=account)


def read_named(name: str, domain: Domain, points: Any, group_by: Any) -> RecordSums:
    """Records that are read several times, under the name that their argument has."""
    try:
        records = read_records(domain.manifold, points, group_by=group_by)
        records.source.refuse_single_use()
        return records
    except ArgumentError as problem:
        argument = name if problem.argument == "points" else problem.argument
        raise type(problem)(problem.message, argument=argument) from None


def names_of_groups(x: Any, y: Any, group_by: Any, *, disjoint: bool = True) -> tuple[Any, Any]:
    """The names of the persons of two groups, or two times None; where groups must be disjoint, what is seen in both
    is refused: one person would move both.
    """
    if disjoint and x is y:
        raise ArgumentError("is x itself: each record would move both groups. Give two groups.", argument="y")
    if group_by is None:
        return None, None
    if not isinstance(group_by, tuple | list) or len(group_by) != 2:
        raise ArgumentError(
            "must be a pair, the names of the persons of x and those of y, one for each record.", argument="group_by"
        )
    # an iterator of names is used up by one look
    names = (names_of(group_by[0]), names_of(group_by[1]))
    with hide_records():
        apart = {spelled(name) for name in names[0]}.isdisjoint(spelled(name) for name in names[1])
    if disjoint and not apart:
        raise ArgumentError(
            "names somebody in both groups: one person would move both. Keep each person's records in one group, for "
            "instance the first visit, or test differences within persons.",
            argument="group_by",
        )
    return names


def check_domain(domain: Any, *, ball_for: str | None = None) -> Domain:
    """A domain, or the ball that a statistic needs, or an error that says what it is for."""
    refuse_as_domain(domain)
    if ball_for is not None and not isinstance(domain, Ball):
        raise ArgumentError(f"domain must be a Ball for {ball_for}; got {type(domain).__name__}.")
    if not isinstance(domain, Domain):
        raise ArgumentError(
            f"domain must be a Domain such as Ball(manifold, center, radius), the public promise about where records "
            f"live; got {type(domain).__name__}."
        )
    return domain


def check_request(
    domain: Any,
    budget: Any,
    *,
    mechanism: str = "auto",
    numerics: str = "safe",
    steps: int | str = "auto",
    kinds: tuple[str, ...] = SAFE,
    ball_for: str | None = None,
    shaped: bool = False,
    **terms: Any,
) -> Request:
    """The arguments of a mean by sums, or of what is built on one.

    `kinds` of numerics that it has; `shaped`: whether an ellipsoid will do.
    """
    if check_domain(domain, ball_for=ball_for).body is not None and not shaped:
        raise ArgumentError(f"domain must be a Ball here, an ellipsoid is for means; got {domain!r}.")
    known = check_terms(budget, **terms)
    choice("numerics", numerics, kinds)
    choice("mechanism", mechanism, TANGENT)
    wanted = auto_or_integer("steps", steps)
    return Request(domain=domain, mechanism=mechanism, numerics=numerics, steps=wanted, **vars(known))


def warn_of_noise(domain: Domain, *errors: ExpectedError) -> None:
    """Say, before anything is spent, that the noise is as large as the domain: from public facts alone."""
    if any(error.exceeds(domain) for error in errors):
        warn_user(NoiseExceedsDomainWarning.words, NoiseExceedsDomainWarning)


def best_cut(
    budget: Budget, shares: Iterable[list[float]], plan: Callable[..., Way], error: Callable[[Way], float]
) -> Way:
    """The plan with the least error among those for all ways to cut the budget into such shares: all public."""
    found, refusal = [], NotAvailableError(f"no cut of {budget!r} leaves a part for every stage.")
    for cut in shares:
        for parts in split(budget, cut):
            try:
                found.append(plan(*parts))
            except NotAvailableError as reason:
                refusal = reason
    if not found:
        raise refusal
    return min(found, key=error)
