"""Elements of Dask bags: records, or blocks of them, and what tells one from the other.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> readings = Elements(Euclidean(2))([[1.0, 2.0], np.zeros((50, 2)), [3.0, 4.0]])
>>> len(readings.blocks), readings.records.tolist(), readings.votes
(52, [[1.0, 2.0], [nan, nan], [3.0, 4.0]], -1)

A partition may hold a single element, which may be a record or a block: what its elements are is decided for all
partitions together, so that one of them decides nothing but what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold


class Readings(NamedTuple):
    """Two readings of a partition whose elements may be records or blocks of them."""

    blocks: Array
    """With blocks as what they are."""
    records: Array | None
    """With blocks as malformed records; None where there are none."""
    votes: int
    """How many more elements are blocks than are not."""


@dataclass(frozen=True)
class Elements:
    """A partition of a bag as one array.

    Most elements of the bag say whether it holds records or blocks of them: a block among records is one record, which
    is malformed, as it would move a sum by as much as it has rows. In blocks each row is read by itself.
    """

    manifold: Manifold
    in_blocks: bool | None = None
    """None until all partitions were looked at: then both readings are handed out."""

    def __call__(self, partition: Any) -> Array | Readings:
        elements = list(partition)
        if self.in_blocks is not None:
            return self._joined(elements, self.in_blocks)
        blocks = self._joined(elements, True)
        if all(map(self._is_record, elements)):
            return Readings(blocks, None, -len(elements))
        votes = 2 * sum(map(self._is_block, elements)) - len(elements)
        return Readings(blocks, self._joined(elements, False), votes)

    def _joined(self, elements: list[Any], in_blocks: bool) -> np.ndarray:
        kind = np.complex128 if self.manifold.is_complex else np.float64
        empty = np.empty((0, *self.manifold.point_shape), dtype=kind)
        return np.concatenate([self._rows(element, in_blocks) for element in elements] or [empty])

    def _rows(self, element: Any, in_blocks: bool) -> np.ndarray:
        """One record, or those of a block; what is neither is a record that is malformed."""
        whole = in_blocks and not self._is_record(element)
        try:
            found = np.asarray(self.manifold.take_form(element if whole else [element]))
            if len(self.manifold.batch_shape(found)) == 1:
                return found
        except ArgumentError:
            pass
        return np.full((1, *self.manifold.point_shape), np.nan)

    def _is_record(self, element: Any) -> bool:
        return _shape_of(element) in self.manifold.record_shapes

    def _is_block(self, element: Any) -> bool:
        """Whether most rows of an element that is no record look like records."""
        if hasattr(element, "shape"):
            return _shape_of(element)[1:] in self.manifold.record_shapes
        if self._is_record(element) or not isinstance(element, list | tuple):
            return False
        return 2 * sum(map(self._is_record, element)) >= len(element) > 0


def _shape_of(value: Any) -> tuple[int, ...]:
    """() for what has none, and for lists of unequal length."""
    if hasattr(value, "shape"):
        return tuple(np.shape(value))
    try:
        entries = np.asarray(value, dtype=object)
    except ValueError:
        return ()
    return () if any(isinstance(entry, list | tuple | np.ndarray) for entry in entries.flat) else entries.shape
