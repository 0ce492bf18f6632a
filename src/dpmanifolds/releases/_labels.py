"""The classes of labelled records, decided label by label, and the one class of each person.

>>> read_classes(["left", None, "right"], 3, ["left", "right"], private=True, lenient=True)[0].tolist()
[0, -1, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.records.persons import Persons, label_array

__all__ = ["class_names", "classes_of_persons", "read_classes"]


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
    except (TypeError, ValueError):
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
