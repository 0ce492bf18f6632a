"""Records as sums see them: where they come from, whose they are, and one exact pass over them at a time.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> from dpmanifolds.sums.contribution import TangentContribution
>>> records = read_records(Euclidean(1), np.array([[1.0], [3.0], [8.0]]), group_by=["ann", "ann", "bob"])
>>> records.count, records.total(TangentContribution(Euclidean(1), np.zeros(1), radius=16.0, exponent=4)).integers
(2, [10])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._validate import hide_records
from dpmanifolds.manifolds import Manifold
from dpmanifolds.records.persons import Persons, persons_of
from dpmanifolds.records.source import Source, source_of
from dpmanifolds.sums.contribution import Contribution
from dpmanifolds.sums.persons import sum_persons
from dpmanifolds.sums.total import ExactSum, sum_records

__all__ = ["RecordSums", "read_records"]


@dataclass(frozen=True)
class RecordSums:
    """Records, each a term of its own, or one term for each person."""

    source: Source
    persons: Persons | None = None
    guess: int | None = None
    """A public guess of how many terms there are, where that is protected."""

    @property
    def known_count(self) -> int | None:
        """How many terms; None where only a pass can tell."""
        return self.source.count if self.persons is None else self.persons.count

    @property
    @hide_records()
    def count(self) -> int:
        """How many terms, by a pass that only counts where need be. Public, or private: the adjacency says."""
        return self.source.counted() if self.persons is None else self.persons.count

    @hide_records()
    def total(self, contribution: Contribution, chosen: np.ndarray | None = None) -> ExactSum:
        """One pass: the exact sum over all terms, or over those of these numbers (ascending)."""
        terms = self.known_count if self.guess is None else self.guess
        if self.persons is None:
            return sum_records(self.source, contribution, chosen, terms)
        return sum_persons(self.source, contribution, self.persons, chosen, terms)


@hide_records()
def read_records(
    manifold: Manifold | None,
    points: Any,
    *,
    group_by: Any = None,
    guess: int | None = None,
    shape: tuple[int, ...] | None = None,
) -> RecordSums:
    """`points` in any form that can be read block by block; nothing is read yet but their shape.

    With a `guess` of their number, that number is protected: there may be none at all, if their `shape` is known.
    """
    source = source_of(manifold, points, allow_empty=guess is not None, shape=shape)
    if group_by is None:
        return RecordSums(source, guess=guess)
    source.refuse_single_use()
    return RecordSums(source, persons_of(group_by, source.counted()), guess)
