"""A private Fréchet mean for each class of labelled records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host, stack, taken
from dpmanifolds._validate import choice
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.records.persons import Persons, persons_of
from dpmanifolds.records.source import ArraySource, record_form
from dpmanifolds.releases._labels import classes_of_persons, read_classes
from dpmanifolds.releases.entry import (
    ON_INVALID,
    checked_domain,
    checked_guess,
    checked_unit,
    open_account,
)
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.tangent import TANGENT, TangentMean
from dpmanifolds.sums.records import RecordSums

__all__ = ["ClassMeans", "private_class_means"]

_SAFE = ("safe", "rounded", "lattice")


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
    private_labels: bool = False
    """Whether the class of a record is protected too."""

    @property
    def means(self) -> Array:
        """The private means (classes, *point_shape)."""
        return stack(*(release.value for release in self.releases))

    def __repr__(self) -> str:
        labels = "private labels" if self.private_labels else "public labels and class counts"
        told = f"{self.budget!r}, {labels}, neighbours differ in one {self.guarantee.unit}"
        return f"ClassMeans({len(self.classes)} classes, {told})"


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
    steps: int | str = "auto",
    group_by: Any = None,
    adjacency: str = "replace-one",
    n_guess: int | None = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> ClassMeans:
    """The Fréchet mean of each class, all of them together within `budget`.

    By default labels and class counts are public, and neighbours differ in one record of one class
    (unit "record within class"): each class may then spend the whole budget, since a record is in one of them only.

    `private_labels=True` also protects the label. Then `classes` must be listed, as the labels that occur are private.
    Each class has a sum of its own, to which a record adds its integers and a count: a record that changes its value
    moves one of them by 2R, one that changes its class two of them by R each and both counts. Gaussian noise does not
    notice the counts, Laplace noise pays a few per cent for them, and each mean is divided by the noisy count of its
    class. A record whose label is none of `classes` raises (outside of the promise), or with `on_invalid="center"` is
    in no class (inside of it), decided label by label.

    `group_by` names a person for each record: a person's records count as one, as in `private_mean`, of the one class
    that all of them must have. A person with several classes raises before anything is spent or drawn, or, with
    private labels and `on_invalid="center"`, is in no class. Other arguments as in `private_mean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> X, y = dpm.SPD(2).random_point(400, rng=0), np.repeat(["left", "right"], 200)
    >>> both = dpm.private_class_means(X, y, ball, dpm.PureDP(1.0))
    >>> both.classes, both.means.shape, both.guarantee.unit
    (('left', 'right'), (2, 2, 2), 'record within class')
    """
    checked_domain(domain)
    checked_budget(budget)
    choice("numerics", numerics, _SAFE)
    choice("mechanism", mechanism, TANGENT)
    choice("on_invalid", on_invalid, ON_INVALID)
    guess = checked_guess(adjacency, n_guess)
    unit = checked_unit(unit, group_by)
    account = open_account(ledger, dataset, rng)
    request = TangentMean(domain, budget, mechanism, numerics, steps, adjacency, guess, on_invalid, unit, account)
    array = record_form(domain.manifold, points, allow_empty=guess is not None)
    count = int(domain.manifold.batch_shape(array)[0])
    tags, names = read_classes(
        labels, count, classes, private=private_labels, lenient=private_labels and on_invalid == "center"
    )
    persons = None if group_by is None else persons_of(group_by, count)
    if persons is not None:
        tags = classes_of_persons(tags, persons, private_labels and on_invalid == "center")
    if guess is not None and not private_labels:
        raise ArgumentError(
            "adjacency='add-remove-one' protects class counts, so labels too: pass private_labels=True."
        )
    protected = (guess or len(tags)) if private_labels else None
    groups = [_records_of_class(array, tags == number, persons, protected) for number in range(len(names))]
    return _released(request, groups, names, private_labels, len(tags))


def _records_of_class(array: Any, wanted: np.ndarray, persons: Persons | None, guess: int | None) -> RecordSums:
    """The records, or the persons, of one class; with a public guess of how many, where labels are private."""
    if persons is None:
        return RecordSums(ArraySource(taken(array, np.flatnonzero(wanted))), guess=guess)
    own = persons.of(np.flatnonzero(wanted))
    return RecordSums(ArraySource(taken(array, own.order)), replace(own, order=np.arange(len(own.order))), guess)


def _released(
    request: TangentMean, groups: list[RecordSums], names: tuple[Any, ...], private: bool, count: int
) -> ClassMeans:
    """One plan for every class, so that all make one promise; then the steps of each, side by side."""
    unit = request.unit if private else f"{request.unit} within class"
    request = replace(request, unit=unit)
    sizes = [max(1, (request.guess or count) // len(names))] * len(names) if private else [g.count for g in groups]
    smallest = request.plan(request.domain, min(sizes), request.budget, labelled=private)
    plans = [smallest.for_count(size) for size in sizes]
    first = [
        group.total(request.look(request.domain, host(request.domain.center), plan.mechanisms[0]))
        for group, plan in zip(groups, plans, strict=True)
    ]
    for total in first:
        request.check(total)
    request.spend("class means", smallest.guarantee, request.guess or count, classes=len(names), private_labels=private)
    releases = []
    for group, plan, total in zip(groups, plans, first, strict=True):
        (*stages, last), _ = request.go(group, request.domain, plan, host(request.domain.center), total)
        releases.append(replace(last, statistic="class mean", guarantee=smallest.guarantee, stages=tuple(stages)))
    return ClassMeans(names, tuple(releases), smallest.guarantee, request.budget, private)
