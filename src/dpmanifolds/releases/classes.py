"""A private Fréchet mean for each class of labelled records; classes are decided label by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import count_records, stack, taken
from dpmanifolds._validate import hide_records, positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.records.persons import Persons, label_array, persons_of
from dpmanifolds.records.source import ArraySource, record_form
from dpmanifolds.releases.public_sample import PublicSample, read_sample
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, check_request, domain_first, warn_of_noise
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import RecordSums


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


@domain_first
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
    public_sample: Any = None,
    group_by: Any = None,
    classes_per_person: int = 1,
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

    `group_by` names a person for each record: a person's records of a class count as one, as in `private_mean`. A
    person may have records of up to `classes_per_person` classes, a public number k, by default 1; a person with more
    raises before anything is spent or drawn, or, with private labels and `on_invalid="center"`, is in no class. Such a
    person is one vector, the parts of all classes side by side with 0 where there are no records, and moves k class
    sums at once (docs/proofs/sums.md, section 3): each class gets a k-th of the budget (ε/k, μ/√k), and all classes
    together keep the whole. With public labels, which classes a person has is public, while the values of all of that
    person's records, and how many there are of each class, are protected together; with private labels everything is.

    `public_sample` is a pair (points, labels) of public records like those of each class: each class gets an ellipsoid
    of its own from them, as in `private_mean`, where that is expected to do better than the ball. Laws are then of one
    kind for all classes: Laplace for a pure budget, Gaussian for others.

    Other arguments as in `private_mean`.

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
    most = positive_integer("classes_per_person", classes_per_person)
    if most > 1 and group_by is None:
        raise ArgumentError("classes_per_person is for group_by=, which names a person for each record.")
    if public_sample is not None and most > 1:
        raise ArgumentError("is for persons of one class each.", argument="public_sample")
    groups, names, count = read_groups(request, points, labels, classes, group_by, private=private_labels, most=most)
    if public_sample is not None:
        samples = _read_samples(request, public_sample, names)
        shaped = _release_shaped(request, groups, names, private_labels, count, samples)
        if shaped is not None:
            return shaped
    return _released(request, groups, names, private_labels, count, min(most, len(names)))


def _read_samples(request: Request, given: Any, names: tuple[Any, ...]) -> list[PublicSample]:
    """The public records of each class."""
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise ArgumentError("must be a pair (points, labels) of public records.", argument="public_sample")
    points, tags = record_form(request.domain.manifold, given[0]), np.asarray(_listed(given[1]))
    if tags.shape != request.domain.manifold.batch_shape(points) or not np.all(np.isin(tags, np.asarray(names))):
        raise ArgumentError(f"must have a label for each point, of {list(names)}.", argument="public_sample")
    return [read_sample(request, taken(points, np.flatnonzero(tags == name))) for name in names]


def _release_shaped(
    request: Request,
    groups: list[RecordSums],
    names: tuple[Any, ...],
    private: bool,
    count: int,
    samples: list[PublicSample],
) -> ClassMeans | None:
    """A body of its own for each class, from public records; None where the domain alone is predicted to do better.

    Noise is of one law in units of each body, so that all classes make one promise.
    """
    kind = "wrapped-laplace" if request.budget.bounded_loss else "wrapped-gaussian"
    request = replace(
        request,
        unit=request.unit if private else f"{request.unit} within class",
        mechanism=kind if request.mechanism == "auto" else request.mechanism,
        numerics="rounded" if request.numerics == "safe" else request.numerics,
    )
    number = request.guess or count
    sizes = [max(1, number // len(names)) if private else group.count for group in groups]
    shaped = [sample.shape_class(request, n, private) for sample, n in zip(samples, sizes, strict=True)]
    alone = [request.plan(n, labelled=private).expected_error.mean for n in sizes]
    if sum(alone) <= sum(each.fit.predicted for each in shaped):
        return None
    promise = shaped[0].plan.guarantee
    if any(each.plan.guarantee != promise for each in shaped):
        raise ArgumentError("needs numerics 'rounded': others promise each body something else.", argument="numerics")
    looks = [each.look(group) for each, group in zip(shaped, groups, strict=True)]
    told = {"classes": len(names), "private_labels": private, "classes_per_person": 1}
    request.spend("class means", promise, number, **told, domain=request.domain)
    releases = [
        replace(each.draw(look), statistic="class mean", guarantee=promise)
        for each, look in zip(shaped, looks, strict=True)
    ]
    return ClassMeans(names, tuple(releases), promise, request.budget, private)


def read_groups(
    request: Request,
    points: Any,
    labels: Any,
    classes: Sequence[Any] | None,
    group_by: Any,
    *,
    private: bool,
    most: int = 1,
) -> tuple[list[RecordSums], tuple[Any, ...], int]:
    """The records, or persons, of each class; the classes; and how many records, or persons, there are in all.

    A person has records of at most so many classes.
    """
    guess, lenient, manifold = request.guess, private and request.mends, request.domain.manifold
    with hide_records():
        array = record_form(manifold, points, allow_empty=guess is not None)
    count = count_records(array)
    tags, names = read_classes(labels, count, classes, private=private, lenient=lenient)
    persons = None if group_by is None else persons_of(group_by, count)
    if persons is not None and most == 1:
        tags = classes_of_persons(tags, persons, lenient)
    elif persons is not None:
        tags = drop_persons_of_many_classes(tags, persons, len(names), most, lenient)
    if guess is not None and not private:
        raise ArgumentError(
            "adjacency='add-remove-one' protects class counts, so labels too: pass private_labels=True."
        )
    terms = len(tags) if persons is None else persons.count
    protected = (guess or terms) if private else None
    chosen = [np.flatnonzero(tags == number) for number in range(len(names))]
    if persons is not None and most > 1:
        return [_persons_of_class(array, rows, persons, protected) for rows in chosen], names, terms
    return [_records_of_class(array, rows, persons, protected) for rows in chosen], names, terms


def _records_of_class(array: Any, wanted: np.ndarray, persons: Persons | None, guess: int | None) -> RecordSums:
    """The records, or the persons, of one class; with a public guess of how many, where labels are private."""
    if persons is None:
        return RecordSums(ArraySource(taken(array, wanted)), guess=guess)
    own = persons.of(wanted)
    return RecordSums(ArraySource(taken(array, own.order)), replace(own, order=np.arange(len(own.order))), guess)


def _persons_of_class(array: Any, rows: np.ndarray, persons: Persons, guess: int | None) -> RecordSums:
    """Persons with their records of one class alone."""
    own = persons_of(persons.numbers[rows], len(rows))
    return RecordSums(ArraySource(taken(array, rows)), own, guess)


def _released(
    request: Request, groups: list[RecordSums], names: tuple[Any, ...], private: bool, count: int, most: int
) -> ClassMeans:
    """One plan for every class, so that all make one promise; then the steps of each, side by side.

    A person is in `most` classes at most: what is promised is that of as many releases of one class.
    """
    request = replace(request, unit=request.unit if private else f"{request.unit} within class")
    number = request.guess or count
    typical = max(1, number * most // len(names))
    sizes = [typical] * len(names) if private else [group.count for group in groups]
    smallest = _plan_part(request, min(sizes), private, most)
    promise, walk = smallest.guarantee.k_fold(most), request.walk()
    plans = [smallest.for_count(size) for size in sizes]
    looks = [walk.first_look(group, plan) for group, plan in zip(groups, plans, strict=True)]
    warn_of_noise(request.domain, *(plan.expected_error for plan in plans))
    told = {"classes": len(names), "private_labels": private, "classes_per_person": most}
    request.spend("class means", promise, number, **told, domain=request.domain)
    releases = []
    for group, plan, first in zip(groups, plans, looks, strict=True):
        *stages, last = request.release_steps(walk, plan, walk.take(group, plan, first=first))
        releases.append(replace(last, statistic="class mean", guarantee=promise, stages=tuple(stages)))
    return ClassMeans(names, tuple(releases), promise, request.budget, private)


def _plan_part(request: Request, n: int, private: bool, most: int) -> StepPlan:
    """The steps of a class within its part of the budget, the whole where a person is in one class."""
    if most == 1:
        return request.plan(n, labelled=private)

    def plan(*parts: Budget) -> StepPlan:
        return request.plan(n, parts[0], labelled=private)

    return best_cut(request.budget, [[1 / most] * most], plan, lambda found: found.predicted)


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
        _check_classes(given)
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


def _check_classes(labels: np.ndarray) -> None:
    """Refuse numbers that name no class; labels are public here."""
    if labels.dtype.kind in "fc" and not np.all(np.isfinite(labels) & (labels == np.round(labels))):
        raise ArgumentError(
            "labels must name classes, as whole numbers or strings, and at least one is continuous: a fraction, NaN or "
            "infinite. "
            "For a number to be predicted there is PrivateGeodesicRegression; write the classes of numbers as strings."
        )


def _listed(labels: Any) -> list[Any]:
    """Labels one by one, as Python has them: no common type is looked for."""
    if hasattr(labels, "tolist"):
        labels = labels.tolist()
    try:
        return list(labels)
    except TypeError:
        raise ArgumentError("labels must be a list or an array, with one entry for each record.") from None


def _looked_up(table: dict[Any, int], label: Any) -> int:
    if label is np.ma.masked:
        return -1
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
            "all records of a person must have the same label, and those of at least one person differ. Class means "
            "take classes_per_person=, a public number of classes that a person may have; they share the budget."
        )
    return np.where(agrees, first, -1)


def drop_persons_of_many_classes(
    numbers: np.ndarray, persons: Persons, classes: int, most: int, lenient: bool
) -> np.ndarray:
    """The class of each record; −1 for all those of a person with more classes than allowed, where `lenient`."""
    has = np.zeros((persons.count, classes), dtype=bool)
    known = numbers >= 0
    has[persons.numbers[known], numbers[known]] = True
    allowed = has.sum(axis=1) <= most
    if not lenient and not allowed.all():
        raise ArgumentError(
            f"a person may have records of {most} classes at most, and at least one person has more. Pass a larger "
            "public number, up to that of all classes; they share the budget.",
            argument="classes_per_person",
        )
    return np.where(allowed[persons.numbers], numbers, -1)
