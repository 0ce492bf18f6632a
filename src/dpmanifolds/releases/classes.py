"""A private Fréchet mean for each class of labelled records; classes are decided label by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import stack, taken
from dpmanifolds._validate import hide_records
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.records.persons import Persons, label_array, persons_of
from dpmanifolds.records.source import ArraySource, record_form
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, check_request
from dpmanifolds.sums.total import RecordSums

__all__ = ["ClassMeans", "private_class_means", "read_classes", "read_groups"]


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
    request = check_request(
        domain,
        budget,
        shaped=True,
        mechanism=mechanism,
        numerics=numerics,
        steps=steps,
        group_by=group_by,
        adjacency=adjacency,
        n_guess=n_guess,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    groups, names, count = read_groups(request, points, labels, classes, group_by, private=private_labels)
    return _released(request, groups, names, private_labels, count)


def read_groups(
    request: Request, points: Any, labels: Any, classes: Sequence[Any] | None, group_by: Any, *, private: bool
) -> tuple[list[RecordSums], tuple[Any, ...], int]:
    """The records, or persons, of each class; the classes; and how many records, or persons, there are in all."""
    guess, lenient, manifold = request.guess, private and request.mends, request.domain.manifold
    with hide_records():
        array = record_form(manifold, points, allow_empty=guess is not None)
    count = int(manifold.batch_shape(array)[0])
    tags, names = read_classes(labels, count, classes, private=private, lenient=lenient)
    persons = None if group_by is None else persons_of(group_by, count)
    if persons is not None:
        tags = classes_of_persons(tags, persons, lenient)
    if guess is not None and not private:
        raise ArgumentError(
            "adjacency='add-remove-one' protects class counts, so labels too: pass private_labels=True."
        )
    protected = (guess or len(tags)) if private else None
    groups = [_records_of_class(array, tags == number, persons, protected) for number in range(len(names))]
    return groups, names, len(tags)


def _records_of_class(array: Any, wanted: np.ndarray, persons: Persons | None, guess: int | None) -> RecordSums:
    """The records, or the persons, of one class; with a public guess of how many, where labels are private."""
    if persons is None:
        return RecordSums(ArraySource(taken(array, np.flatnonzero(wanted))), guess=guess)
    own = persons.of(np.flatnonzero(wanted))
    return RecordSums(ArraySource(taken(array, own.order)), replace(own, order=np.arange(len(own.order))), guess)


def _released(
    request: Request, groups: list[RecordSums], names: tuple[Any, ...], private: bool, count: int
) -> ClassMeans:
    """One plan for every class, so that all make one promise; then the steps of each, side by side."""
    request = replace(request, unit=request.unit if private else f"{request.unit} within class")
    number = request.guess or count
    sizes = [max(1, number // len(names))] * len(names) if private else [group.count for group in groups]
    smallest = request.plan(min(sizes), labelled=private)
    promise, walk = smallest.guarantee, request.walk()
    plans = [smallest.for_count(size) for size in sizes]
    looks = [walk.first_look(group, plan) for group, plan in zip(groups, plans, strict=True)]
    request.spend("class means", promise, number, classes=len(names), private_labels=private, domain=request.domain)
    releases = []
    for group, plan, first in zip(groups, plans, looks, strict=True):
        *stages, last = request.release_steps(walk, plan, walk.take(group, plan, first=first))
        releases.append(replace(last, statistic="class mean", guarantee=promise, stages=tuple(stages)))
    return ClassMeans(names, tuple(releases), promise, request.budget, private)


def class_names(classes: Sequence[Any]) -> tuple[Any, ...]:
    """The listed classes, each once."""
    try:
        names = tuple(classes)
        once = 0 < len(set(names)) == len(names)
    except TypeError:
        raise ArgumentError(f"classes must list the labels; got {type(classes).__name__}.") from None
    if not once:
        raise ArgumentError(f"classes must list each label once; got {list(names)!r}.")
    return names


def read_classes(
    labels: Any, count: int, classes: Sequence[Any] | None, *, private: bool, lenient: bool
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The number of each record's class, and the classes; −1 for a label of no class where that is `lenient`.

    Where labels are private each is looked up by itself: a label of another type, None or NaN is of no class, and
    changes no other one's.

    >>> read_classes(["left", None, "right"], 3, ["left", "right"], private=True, lenient=True)[0].tolist()
    [0, -1, 1]
    """
    if classes is None:
        if private:
            raise ArgumentError("private_labels=True needs classes=[…]: which labels occur is private too.")
        given = label_array("labels", labels)
        _check_shape(given.shape, count)
        found, numbers = np.unique(given, return_inverse=True)
        return numbers, tuple(found.tolist())
    names = class_names(classes)
    table = {name: number for number, name in enumerate(names)}
    given_list = _listed(labels)
    _check_shape((len(given_list),), count)
    numbers = np.fromiter((_looked_up(table, label) for label in given_list), dtype=np.int64, count=count)
    if (numbers < 0).any() and not lenient:
        raise ArgumentError("every label must be one of classes, and at least one is not.")
    if not private and len(np.unique(numbers)) < len(names):
        raise ArgumentError("every one of classes must have a record where class counts are public; leave others out.")
    return numbers, names


def _listed(labels: Any) -> list[Any]:
    """Labels one by one, as Python has them: no common type is looked for."""
    if hasattr(labels, "tolist"):
        labels = labels.tolist()
    try:
        return list(labels)
    except TypeError:
        raise ArgumentError("labels must be a list or an array, with one entry for each record.") from None


def _looked_up(table: dict[Any, int], label: Any) -> int:
    try:
        return table.get(label.item() if hasattr(label, "item") else label, -1)
    except Exception:
        # whatever a label does when it is compared, it is none of them
        return -1


def _check_shape(shape: tuple[int, ...], count: int) -> None:
    if shape != (count,):
        raise ArgumentError("labels must have one entry per record, in a list or an array of as many.")


def classes_of_persons(numbers: np.ndarray, persons: Persons, lenient: bool) -> np.ndarray:
    """The class of each person from those of the records; −1, no class, for a person with several where `lenient`."""
    first = numbers[persons.order[persons.starts[:-1]]]
    agrees = np.logical_and.reduceat((numbers == first[persons.numbers])[persons.order], persons.starts[:-1])
    if not lenient and not agrees.all():
        raise ArgumentError(
            "all records of a person must have the same label, and those of at least one person differ. Release the "
            "classes one by one, by private_mean with group_by, and split the budget between them."
        )
    return np.where(agrees, first, -1)
