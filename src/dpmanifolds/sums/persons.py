"""Persons with several records: the integers of a person are averaged, exactly, and count as one record.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> from dpmanifolds.records.persons import persons_of
>>> from dpmanifolds.records.source import source_of
>>> from dpmanifolds.sums.contribution import TangentContribution
>>> records, names = np.array([[1.0], [3.0], [8.0]]), persons_of(["ann", "ann", "bob"], 3)
>>> pull = TangentContribution(Euclidean(1), np.zeros(1), radius=16.0, exponent=4)
>>> total = sum_persons(source_of(Euclidean(1), records), pull, names)
>>> total.integers, total.rows  # (1 + 3)/2 + 8
([10], 2)

Each record's integers lie in a convex body, so does their average, and rounding it towards zero keeps every integer
inside; the exact check is made once more. Neighbours differ in one person, with as many records as that person likes:
one vector of the body is replaced by another (docs/proofs/sums.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.records.persons import Persons
from dpmanifolds.records.source import Source
from dpmanifolds.sums.contribution import Contribution
from dpmanifolds.sums.total import ExactSum, integers_of, select_rows

__all__ = ["sum_persons"]

_ROOM = 1 << 62


def sum_persons(
    source: Source,
    contribution: Contribution,
    persons: Persons,
    chosen: np.ndarray | None = None,
    terms: int | None = None,
) -> ExactSum:
    """One pass; the exact sum over persons, or over those of these numbers. Sums of each person are held in memory."""
    if len(persons.numbers) * contribution.bound >= _ROOM:
        raise ArgumentError("so many records of persons do not fit 64-bit integers; leave group_by out, or cut them.")
    wanted = None if chosen is None else np.isin(persons.numbers, chosen)
    source.locate()
    sums = source.reduce(_Part(contribution, persons.numbers, wanted, terms), _joined)
    means = np.sign(sums.whole) * (np.abs(sums.whole) // np.maximum(sums.counts, 1))
    means = means * contribution.fits(means)
    count = len(persons.starts) - 1 if chosen is None else len(chosen)
    total = ExactSum.of(means.sum(axis=1), count, np.zeros(0, dtype=np.int64))
    return ExactSum(total.high, total.low, count, sums.broken)


@dataclass(frozen=True)
class _Sums:
    """Sums of integers by person: (dim, persons), of how many records each."""

    numbers: np.ndarray
    """Ascending."""
    whole: np.ndarray
    counts: np.ndarray
    broken: np.ndarray


@dataclass(frozen=True)
class _Part:
    """The sums of the persons of one block."""

    contribution: Contribution
    numbers: np.ndarray
    wanted: np.ndarray | None
    terms: int | None

    def __call__(self, _: int, first: int, block: Any) -> _Sums:
        rows, block = select_rows(self.wanted, first, block)
        whole, broken = integers_of(self.contribution, block, self.terms)
        own, place = np.unique(self.numbers[rows], return_inverse=True)
        order = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=len(own))
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        sums = np.add.reduceat(whole[:, order], starts, axis=1) if len(own) else whole[:, :0]
        return _Sums(own, sums, counts, np.bincount(broken, minlength=8))


def _joined(a: _Sums, b: _Sums) -> _Sums:
    numbers = np.union1d(a.numbers, b.numbers)
    whole = np.zeros((a.whole.shape[0], len(numbers)), dtype=np.int64)
    counts = np.zeros(len(numbers), dtype=np.int64)
    for part in (a, b):
        places = np.searchsorted(numbers, part.numbers)
        whole[:, places] += part.whole
        counts[places] += part.counts
    return _Sums(numbers, whole, counts, a.broken + b.broken)
