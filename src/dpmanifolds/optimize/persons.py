"""Descent that protects persons with several records: the mean gradient of each person is one term.

>>> import numpy as np
>>> from dpmanifolds import Ball, SPD
>>> from dpmanifolds.optimize import FrechetMeanLoss
>>> from dpmanifolds.optimize.persons import by_person
>>> loss = FrechetMeanLoss(Ball(SPD(2), np.eye(2), 1.0))
>>> visits = SPD(2).random_point(6, rng=0)
>>> of_persons, numbers = by_person(loss, visits, ["ann", "bob", "ann", "ann", "bob", "cleo"])
>>> numbers.shape, of_persons.gradients(np.eye(2), numbers).shape
((3,), (3, 3))

A person's loss is the mean of that of their records, its gradient the mean of their gradients, shortened to the norm C
around the anchor like that of a single record: one person moves the sum by at most 2C and takes part in it with at most
C, so that docs/proofs/descent.md holds word for word with persons in place of records. A proven bound C on the
gradients of records bounds their means, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, eps, leaves, to_numpy
from dpmanifolds.manifolds import Manifold
from dpmanifolds.optimize.loss import Loss
from dpmanifolds.optimize.streamed import taken
from dpmanifolds.statistics.blocks import block_size, bytes_per_record
from dpmanifolds.statistics.persons import Persons, persons_of

__all__ = ["PersonLoss", "by_person"]


def by_person(loss: Loss, records: Array, group_by: Any) -> tuple[Loss, np.ndarray]:
    """The loss whose records are the numbers of the persons that `group_by` names, and these numbers."""
    persons = persons_of(group_by, leaves(records)[0].shape[0])
    return PersonLoss(loss, records, persons), np.arange(persons.count)


@dataclass(frozen=True, eq=False)
class PersonLoss(Loss):
    """(1/m)Σf(w, x) over the m records of a person; it holds them, and is handed numbers of persons."""

    loss: Loss
    records: Array
    persons: Persons

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        return self.loss.manifold

    @property
    def name(self) -> str:
        return f"{self.loss.name} of persons"

    @property
    def bound(self) -> float | None:
        return self.loss.bound

    def anchor(self, w: Array) -> np.ndarray | None:
        return self.loss.anchor(w)

    def value(self, w: Array, records: Array) -> float:
        return float(np.mean([self.loss.value(w, taken(self.records, self.persons.rows(each))) for each in records]))

    def gradients(self, w: Array, records: Array) -> np.ndarray:
        """The mean gradient of each person, added up on the host from that person's rows alone."""
        means = []
        for piece in self._pieces(records):
            own = self.persons.of(piece)
            rows = np.asarray(to_numpy(self.loss.gradients(w, taken(self.records, own.order))), dtype=np.float64)
            means.append(own.means_of_sorted(rows))
        return np.concatenate(means)

    def row_slack(self, clip: float, count: int) -> float:
        """A row is computed among more or fewer others if a person's number of records changes, and may round so.

        (dim + 16)·u of the size of a gradient, u the unit of rounding of the records, for each person.
        """
        unit = max(eps(leaf) for leaf in leaves(self.records))
        return count * (self.manifold.dim + 16) * unit * max(1.0, self.loss.magnitude(clip) / clip)

    def _pieces(self, chosen: np.ndarray) -> Iterator[np.ndarray]:
        """Persons, as many at a time as keep their records in the cache."""
        most = block_size(sum(bytes_per_record(leaf) for leaf in leaves(self.records)))
        piece = np.cumsum(self.persons.sizes[chosen]) // most
        yield from np.split(chosen, np.flatnonzero(np.diff(piece)) + 1)
