"""The classes of labelled records, and the one class of each person.

>>> from dpmanifolds.releases._labels import class_names
>>> class_names(["left", "right"])
('left', 'right')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.statistics.persons import Persons

__all__ = ["class_names", "classes_of_persons"]


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
