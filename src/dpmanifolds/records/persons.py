"""Whose records are whose: several records of one person, told by a name for each record.

>>> import numpy as np
>>> from dpmanifolds.records.persons import persons_of
>>> persons = persons_of(["ann", "bob", "ann"], 3)
>>> persons.count, persons.means(np.array([[1.0], [5.0], [3.0]])).tolist()
(2, [[2.0], [5.0]])

The neighbour of a data set has other records of one person, as many as that person likes. Every statistic here is a
function of one term per person (a point, a gradient, a second moment), each computed from that person's records alone
and lying in a convex set whatever they are: replacing a person replaces one term, so that every bound for n records
holds for n persons. The number of persons is public, how many records each has is not.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from dpmanifolds._arrays import plain_numpy
from dpmanifolds.errors import ArgumentError

_KINDS = "biufSUOmM"
_MISSING = ("nan", "NaN", "NaT", "<NA>")
"""How NumPy, decimals and pandas write that there is none."""
_NUMERAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True, eq=False)
class Persons:
    """The records of each person; persons are numbered."""

    numbers: np.ndarray
    """The number of the person of each record."""
    order: np.ndarray
    """The records, person by person."""
    starts: np.ndarray
    """Where each person begins in `order`, and the end."""

    @property
    def count(self) -> int:
        """How many persons there are; public."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> np.ndarray:
        """How many records each person has; private."""
        return np.diff(self.starts)

    def rows(self, number: int) -> np.ndarray:
        """The records of one person."""
        return self.order[self.starts[number] : self.starts[number + 1]]

    def of(self, chosen: np.ndarray) -> Persons:
        """The records of some persons, in the order given; `order` tells where they are among all."""
        sizes = self.sizes[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        shifts = np.repeat(self.starts[:-1][chosen] - starts[:-1], sizes)
        return Persons(np.repeat(np.arange(len(chosen)), sizes), self.order[shifts + np.arange(starts[-1])], starts)

    def means(self, rows: np.ndarray) -> np.ndarray:
        """The mean row of each person (count, …), each added up from its own rows alone."""
        return self.means_of_sorted(rows[self.order])

    def means_of_sorted(self, rows: np.ndarray) -> np.ndarray:
        """The same, for rows in the order of `order`."""
        sums = np.add.reduceat(rows, self.starts[:-1], axis=0)
        return np.asarray(sums / self.sizes.reshape(-1, *[1] * (rows.ndim - 1)))


def persons_of(group_by: Any, count: int) -> Persons:
    """The persons that `group_by` names, one name for each of `count` records; no error quotes a name."""
    names = names_of(group_by)
    if names.shape != (count,):
        raise ArgumentError(
            "must name a person for each of the records: a list or an array of as many names.", argument="group_by"
        )
    if _some_missing(names):
        raise ArgumentError(
            "must name a person for each of the records, and at least one name is missing (empty or not a "
            "number). Give persons without a name names of their own, or leave their records out.",
            argument="group_by",
        )
    if names.dtype.kind == "O":
        distinct, numbers = _numbered(names)
    else:
        found, numbers = np.unique(names, return_inverse=True)
        distinct = found.tolist()
    if names.dtype.kind in "SUO" and len({spelled(name) for name in distinct}) < len(distinct):
        raise ArgumentError(
            "spells a name in two ways that differ in blanks, in how a number or an accent is written, such as 'ann' "
            "and 'ann ', 7 and '7.0': one person would count as two, and be protected by half. Give each person one "
            "name, for instance by str.strip().",
            argument="group_by",
        )
    order = np.argsort(numbers, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
    return Persons(numbers, order, starts)


def names_of(group_by: Any) -> np.ndarray:
    """Names as they are: those of a list find no common type, in which one name could make others equal.

    An iterator is used up by it: who asks twice must ask for the array.
    """
    if getattr(group_by, "dtype", None) is not None and hasattr(group_by, "__array__"):
        given = plain_numpy(group_by)
        if given.dtype.kind in _KINDS:
            return given
    else:
        try:
            listed = list(group_by)
        except TypeError:
            listed = None
        if listed is not None and not isinstance(group_by, str | bytes | dict | set):
            names = np.empty(len(listed), dtype=object)
            names[:] = [_plain(name) for name in listed]
            return names
    raise ArgumentError(
        "must be a list or an array of names, numbers or strings, one for each record.", argument="group_by"
    )


def _plain(name: Any) -> Any:
    """A number of an array library as Python has it: two tensors are equal to nothing but themselves."""
    if name is np.ma.masked:
        return None
    return name.item() if getattr(name, "ndim", None) == 0 and hasattr(name, "item") else name


def spelled(name: Any) -> Any:
    """What spellings of one name have in common: 7, 7.0, "7", "007" and b"7 " are one number, other names are text.

    Python writes numbers of 17 digits and more as 1e+16.

    >>> spelled(7) == spelled("007") == spelled(b"7 ") == spelled(7.0), spelled("ann ") == spelled("ann")
    (True, True)
    >>> spelled(20_260_000_000_000_000) == spelled(2.026e16)
    True
    """
    text = _text(_plain(name))
    return Decimal(text) if _NUMERAL.fullmatch(text) else text


def _text(name: Any) -> str:
    """A name as one reads it."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    return unicodedata.normalize("NFC", text).strip()


def _numbered(names: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """All names in the order in which they first come, and the number of each; each is compared with others by itself.

    What is equal to nothing but itself names nobody: two such names of one person would be two persons.
    """
    found: dict[Any, int] = {}
    try:
        plain = [_plain(name) for name in names]
        by_itself: Any = object.__hash__
        if any(type(name).__hash__ is by_itself for name in plain):
            raise TypeError
        numbers = [found.setdefault(name, len(found)) for name in plain]
    except TypeError:
        raise ArgumentError(
            "must hold numbers or strings, and at least one name is neither.", argument="group_by"
        ) from None
    return list(found), np.array(numbers, dtype=np.int64)


def _some_missing(names: np.ndarray) -> bool:
    kind = names.dtype.kind
    if kind in "SU":
        return bool(np.any(np.strings.str_len(np.strings.strip(names)) == 0))
    if kind == "O":
        return any(name is None or not str(name).strip() or str(name) in _MISSING for name in names)
    return bool(np.any(np.isnan(names))) if kind == "f" else kind in "mM" and bool(np.any(np.isnat(names)))


def label_array(name: str, labels: Any) -> np.ndarray:
    """Labels as an array that can be sorted; the error names no label."""
    try:
        array = np.asarray(labels)
        if array.dtype.kind in _KINDS:
            np.unique(array)
            return array
    except (TypeError, ValueError):
        pass
    raise ArgumentError(
        "must be a list or an array of numbers or of strings that can be sorted.", argument=name
    ) from None
