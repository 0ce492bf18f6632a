"""A private Fréchet mean for each class of labelled records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, leaves, like, namespace, to_numpy
from dpmanifolds._validate import choice
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.mechanisms import NUMERICS, Facts, Mechanism, mean_facts, offered
from dpmanifolds.optimize.streamed import taken
from dpmanifolds.privacy import Budget, Guarantee, compose, split
from dpmanifolds.releases._counts import counts_noise
from dpmanifolds.releases._labels import class_names, classes_of_persons
from dpmanifolds.releases.entry import (
    Account,
    checked_budget,
    checked_domain,
    clipped_records,
    computed_mean,
    grouped,
    open_account,
    precision_of,
    stacked,
)
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.statistics.persons import label_array, persons_of

__all__ = ["ClassMeans", "private_class_means"]

_COUNTS_SHARE = 0.1
_MARGIN = 2.0


@dataclass(frozen=True)
class ClassMeans:
    """One release per class, and what all of them together promise.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> X, y = dpm.SPD(2).random_point(400, rng=0), np.repeat(["left", "right"], 200)
    >>> both = dpm.private_class_means(X, y, ball, dpm.PureDP(1.0))
    >>> both.classes, both.means.shape, len(both.releases)
    (('left', 'right'), (2, 2, 2), 2)
    """

    classes: tuple[Any, ...]
    """The labels, public."""
    releases: tuple[Release, ...]
    """The mean of each class, in the order of `classes`."""
    guarantee: Guarantee
    """What holds for all releases together."""
    budget: Budget
    counts: Release | None = None
    """The private class counts that were paid for, where labels are private."""

    @property
    def means(self) -> Array:
        """The private means (classes, *point_shape)."""
        return stacked([release.value for release in self.releases])

    def __repr__(self) -> str:
        labels = "private labels" if self.counts is not None else "public labels and class counts"
        return (
            f"ClassMeans({len(self.classes)} classes, {self.budget!r}, {labels}, one record is {self.guarantee.unit})"
        )


def private_class_means(
    points: Any,
    labels: Any,
    domain: Domain,
    budget: Budget,
    *,
    classes: Sequence[Any] | None = None,
    private_labels: bool = False,
    mechanism: str = "auto",
    numerics: str = "safe",
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str = "person",
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> ClassMeans:
    """The Fréchet mean of each class, all of them together within `budget`.

    By default labels and class counts are public, and neighbours differ in one record of one class
    (unit "person within class"): each class may then spend the whole budget, since a record is in one of them only.

    `private_labels=True` also protects the label. Then `classes` must be listed, as the labels that occur are private;
    a tenth of the budget buys noisy class counts, and the rest is shared between the two classes that a changed label
    touches. Each class is brought to its noisy (hence public) size by dropping its last records or by filling up with
    the centre, so that a changed record replaces one record in at most two classes. A record whose label is none of
    `classes` raises (outside of the promise), or with `on_invalid="center"` is in no class (inside of it).

    `group_by` names a person for each record: a person's records become one point, as in `private_mean`, of the one
    class that all of them must have. A person with several classes raises before anything is spent or drawn, or, with
    private labels and `on_invalid="center"`, is in no class.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> X, y = dpm.SPD(2).random_point(400, rng=0), np.repeat(["left", "right"], 200)
    >>> both = dpm.private_class_means(X, y, ball, dpm.PureDP(1.0))
    >>> both.classes, both.means.shape, both.guarantee.unit
    (('left', 'right'), (2, 2, 2), 'person within class')
    """
    checked_domain(domain)
    checked_budget(budget)
    choice("numerics", numerics, NUMERICS)
    account = open_account(ledger, dataset, rng)
    records = clipped_records(points, domain, on_invalid)
    lenient = private_labels and on_invalid == "center"
    count = domain.manifold.batch_shape(records)[0]
    tags, names = _checked_labels(labels, count, classes, private_labels, lenient)
    if group_by is not None:
        persons = persons_of(group_by, count)
        tags = classes_of_persons(tags, persons, lenient)
        records = grouped(domain, records, persons)
    request = _Request(domain, budget, mechanism, numerics, unit, account)
    rows = [np.flatnonzero(tags == number) for number in range(len(names))]
    if private_labels:
        return request.with_private_labels(records, rows, names)
    return request.with_public_labels(records, rows, names)


@dataclass(frozen=True)
class _Request:
    domain: Domain
    budget: Budget
    mechanism: str
    numerics: str
    unit: str
    account: Account

    def with_public_labels(self, records: Array, rows: list[np.ndarray], names: tuple[Any, ...]) -> ClassMeans:
        dtype = precision_of(records)
        facts = [mean_facts(self.domain, len(each), dtype, unit=f"{self.unit} within class") for each in rows]
        laws, reason = self._laws(facts, self.budget)
        promise = laws[0].guarantee
        groups = [taken(records, each) for each in rows]
        points = [computed_mean(self.domain, group, dtype).point for group in groups]
        self.account.spend("class means", promise, classes=len(names), domain=repr(self.domain))
        releases = self._released(laws, points, groups, self.budget, reason)
        return ClassMeans(names, releases, promise, self.budget)

    def with_private_labels(self, records: Array, rows: list[np.ndarray], names: tuple[Any, ...]) -> ClassMeans:
        if self.numerics == "idealized":
            raise ArgumentError(
                "private labels are offered with the numerics 'safe', 'rounded' and 'lattice'; got 'idealized'."
            )
        dtype, n = precision_of(records), self.domain.manifold.batch_shape(records)[0]
        counts_part, mean_part = self._best_split(n, dtype, len(names))
        noise = counts_noise(len(names), counts_part, self.unit)
        one = self._laws([mean_facts(self.domain, max(1, n // len(names)), dtype, unit=self.unit)], mean_part)[0][0]
        promise = compose(noise.guarantee, one.guarantee.k_fold(2))
        self.account.spend("class means", promise, classes=len(names), private_labels=True, domain=repr(self.domain))
        counted = noise.release(np.array([len(each) for each in rows]), self.account, n)
        # a little below the noisy count: dropping a few records costs less than filling up with the centre
        sizes = [min(n, max(1, int(size - _MARGIN * noise.deviation))) for size in counted.value]
        groups = [_sized(records, each, size, self.domain.center) for each, size in zip(rows, sizes, strict=True)]
        fixed = replace(self, mechanism=one.name, numerics=one.numerics)
        facts = [mean_facts(self.domain, size, dtype, unit=self.unit) for size in sizes]
        laws, reason = fixed._laws(facts, mean_part)
        points = [computed_mean(self.domain, group, dtype).point for group in groups]
        releases = fixed._released(laws, points, groups, mean_part, reason)
        return ClassMeans(names, releases, promise, self.budget, counted)

    def _best_split(self, n: int, dtype: str, classes: int) -> tuple[Budget, Budget]:
        """The part for the counts and the part for one class; two classes are paid for."""
        share = (1 - _COUNTS_SHARE) / 2
        facts = mean_facts(self.domain, max(1, n // classes), dtype, unit=self.unit)
        errors = {}
        for counts_part, first, _ in split(self.budget, [_COUNTS_SHARE, share, share]):
            try:
                laws, _ = self._laws([facts], first)
            except NotAvailableError as problem:
                refusal = problem
                continue
            errors[counts_part, first] = laws[0].expected_error.mean
        if not errors:
            raise refusal
        return min(errors, key=lambda parts: errors[parts])

    def _laws(self, facts: list[Facts], part: Budget) -> tuple[list[Mechanism], str]:
        """The mechanism that errs least over all classes together, the same for each."""
        choices = [offered(each, part, mechanism=self.mechanism, numerics=self.numerics) for each in facts]
        kinds = [(law.name, law.numerics) for law in choices[0]]
        for laws in choices[1:]:
            kinds = [kind for kind in kinds if kind in {(law.name, law.numerics) for law in laws}]
        tables = {
            kind: [next(law for law in laws if (law.name, law.numerics) == kind) for laws in choices] for kind in kinds
        }
        # one promise for all classes: profiles that depend on the size of a class may cross, and none covers the rest
        tables = {kind: laws for kind, laws in tables.items() if len({law.guarantee for law in laws}) == 1}
        if not tables:
            raise NotAvailableError(
                "no mechanism makes every class the same promise; the smallest class is too small, or the promise of "
                "the mechanism depends on the size of the class. Take a wrapped mechanism."
            )
        best = min(tables.values(), key=lambda laws: sum(law.expected_error.mean for law in laws))
        return best, f"smallest expected error over {len(facts)} classes among {len(tables)} that keep the budget"

    def _released(
        self, laws: list[Mechanism], points: list[Array], groups: list[Array], part: Budget, reason: str
    ) -> tuple[Release, ...]:
        return tuple(
            release_of(
                law,
                law.draw(point, records=group, rng=self.account.rng),
                statistic="class mean",
                budget=part,
                n=self.domain.manifold.batch_shape(group)[0],
                reason=reason,
                reproducible=self.account.reproducible,
            )
            for law, point, group in zip(laws, points, groups, strict=True)
        )


def _checked_labels(
    labels: Any, count: int, classes: Sequence[Any] | None, private_labels: bool, lenient: bool
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The number of each record's class, and the classes; −1 for a label of no class where that is `lenient`."""
    given = label_array("labels", labels)
    if given.shape != (count,):
        raise ArgumentError(f"labels must have one entry per record, shape ({count},); got {given.shape}.")
    if classes is None:
        if private_labels:
            raise ArgumentError("private_labels=True needs classes=[…]: which labels occur is private too.")
        found, numbers = np.unique(given, return_inverse=True)
        return numbers, tuple(found.tolist())
    names = class_names(classes)
    numbers = np.full(count, -1)
    for number, name in enumerate(names):
        numbers[given == name] = number
    if (numbers < 0).any() and not lenient:
        raise ArgumentError("every label must be one of classes, and at least one is not.")
    if not private_labels and len(np.unique(numbers)) < len(names):
        raise ArgumentError("every one of classes must have a record where class counts are public; leave others out.")
    return numbers, names


def _sized(records: Array, rows: np.ndarray, size: int, center: Array) -> Array:
    """The first `size` records of a class, filled up with the centre."""
    kept = taken(records, rows[:size])
    return _filled(kept, size, center)


def _filled(records: Array, size: int, center: Array) -> Array:
    if isinstance(records, tuple):
        return tuple(_filled(part, size, middle) for part, middle in zip(records, center, strict=True))
    missing = size - records.shape[0]
    if not missing:
        return records
    xp = namespace(records)
    middle = like(to_numpy(center), leaves(records)[0])
    return xp.concat([records, xp.broadcast_to(middle[None], (missing, *middle.shape))], axis=0)
