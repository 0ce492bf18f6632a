"""What a loss must bring to be descended privately: per-record Riemannian gradients in orthonormal coordinates.

>>> import numpy as np
>>> from dpmanifolds import Ball, SPD
>>> from dpmanifolds.optimize import FrechetMeanLoss
>>> loss = FrechetMeanLoss(Ball(SPD(2), np.eye(2), 1.0))
>>> loss.gradients(np.eye(2), np.array([[[2.0, 0.0], [0.0, 1.0]]])).round(6).tolist()
[[-0.693147, -0.0, -0.0]]

The mean loss is F(w) = (1/n)Σf(w, x_i). A step needs Σ over records of the gradients, each pulled to within C of a
public vector a(w), the `anchor` (zero unless the loss says otherwise). One record moves that sum by at most 2C, and
takes part in it with at most C: this holds for replaced records, and for records that a random batch leaves out. As
every row is computed from one record and the public w alone, errors in computing it cost nothing; only the rounding of
the sum does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, has_doubles, leaves, like, namespace, norm
from dpmanifolds._validate import numeric_array
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.optimize.streamed import StreamedRecords, block_total
from dpmanifolds.statistics.blocks import longest_sum, map_blocks

__all__ = ["Loss", "clip_factors", "clipped_total", "in_double", "like_point", "rounding_slack"]


class Loss(ABC):
    """f(w, x) for w on `manifold` and one record x; a value that holds no records.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.optimize import Loss
    >>> class Offset(Loss):  # ½|w − x|²
    ...     manifold = Euclidean(2)
    ...
    ...     def value(self, w, records):
    ...         return float(np.mean(np.sum((w - records) ** 2, axis=-1)) / 2)
    ...
    ...     def gradients(self, w, records):
    ...         return w - records
    >>> Offset().clipped_sum(np.zeros(2), np.array([[1.0, 0.0], [0.0, 1.0]]), 2.0)
    array([-1., -1.])
    """

    manifold: Manifold
    """Where w lives."""

    unit: str = "person"
    """What one record is, in the words of the guarantee."""

    @property
    def name(self) -> str:
        """What ledgers and files of state call it."""
        return type(self).__name__

    @property
    def bound(self) -> float | None:
        """A proven C with ‖grad f(w, x) − a(w)‖ ≤ C for all w and prepared x: clipping there changes nothing."""
        return None

    def prepare(self, records: Any) -> Array:
        """The records as arrays with one leading axis, each brought into the domain of the loss on its own."""
        if isinstance(records, tuple):
            parts = tuple(numeric_array("records", part) for part in records)
            if not parts or any(part.ndim == 0 or part.shape[0] != parts[0].shape[0] for part in parts):
                raise ArgumentError("records given as a tuple must be arrays with the same leading axis.")
            return parts
        array = numeric_array("records", records)
        if array.ndim == 0:
            raise ArgumentError("records must be an array with one leading axis of records; got a single number.")
        return array

    def anchor(self, w: Array) -> np.ndarray | None:
        """The public vector a(w) around which gradients are clipped, in coordinates; None for zero."""
        return None

    @abstractmethod
    def value(self, w: Array, records: Array) -> float:
        """F(w) over these records. Not private."""

    @abstractmethod
    def gradients(self, w: Array, records: Array) -> Array:
        """Coordinates (n, dim) of the Riemannian gradients at w, one row per record. Not private."""

    def clipped_sum(self, w: Array, records: Array, clip: float) -> Array:
        """Σ over records of grad f(w, x) − a(w), each shortened to the norm `clip`: (dim,). Not private."""
        rows = in_double(self.gradients(w, records))
        anchor = self.anchor(w)
        if anchor is not None:
            rows = rows - like(anchor, rows)
        return clip_factors(norm(rows), clip) @ rows

    def block_sum(self, w: Array, records: Array, clip: float) -> Array:
        """What blocks of records add up to, linear in their rows; `finished` makes `clipped_sum` of the total."""
        return self.clipped_sum(w, records, clip)

    def finished(self, w: Array, total: np.ndarray) -> np.ndarray:
        """Coordinates (dim,) from the total of all blocks: a linear function that is public given w."""
        return total

    def magnitude(self, clip: float) -> float:
        """A bound on the size of the numbers that `clipped_sum` adds up, per record; C unless a fused form says so."""
        return clip

    def row_slack(self, clip: float, count: int) -> float:
        """What rounding of the rows of unchanged records adds, relative to C: nothing, as each is computed alone."""
        return 0.0


def clip_factors(lengths: Array, clip: float) -> Array:
    """min(1, C/length): rows times this have length ≤ C; not a number where the length is none."""
    xp = namespace(lengths)
    return clip / xp.maximum(lengths, xp.full_like(lengths, clip))


def in_double(array: Array) -> Array:
    """`array` in double precision where its library has one: sums of many records are taken there."""
    xp = namespace(array)
    return xp.astype(array, xp.float64) if has_doubles(array) else array


def clipped_total(loss: Loss, w: Array, records: Any, clip: float) -> np.ndarray:
    """`loss.clipped_sum` over all records, block by block with threads where they are NumPy arrays."""
    if isinstance(records, StreamedRecords):
        return records.clipped_total(loss, w, clip)
    count = leaves(records)[0].shape[0]
    if count == 0:
        return np.zeros(loss.manifold.dim)

    parts = map_blocks(lambda _, block, __: block_total(loss, w, block, clip), records, np.broadcast_to(0.0, (count,)))
    total = next(parts)
    for part in parts:
        total = total + part
    with np.errstate(invalid="ignore", over="ignore"):
        return loss.finished(w, total)


def rounding_slack(loss: Loss, records: Any, clip: float) -> float:
    """What the rounding of the sum adds to the sensitivity 2C, relative to it; a function of shapes and dtype.

    A sum of m numbers in any order is off by at most m·u times the sum of their sizes (u the unit of rounding), on both
    sides of a pair of neighbours: n·m·u·magnitude/C. Clipping itself is off by (dim + 4)u. The 64 are for the trees in
    which the sums of blocks are added up, however the records were cut.
    """
    count = leaves(records)[0].shape[0]
    streamed = isinstance(records, StreamedRecords)
    reference = leaves(records.head if streamed else records)[0]
    longest = records.longest_sum if streamed else longest_sum(records)
    unit = 2.0**-52 if has_doubles(reference) else 2.0**-23
    terms = longest + loss.manifold.dim + 64
    of_sum = unit * (count * terms * max(1.0, loss.magnitude(clip) / clip) + loss.manifold.dim + 16)
    return float(of_sum + loss.row_slack(clip, count))


def like_point(w: Any, records: Array) -> Any:
    """The public point w in the library, device and precision of the records."""
    reference = leaves(records)[0]
    if isinstance(w, tuple):
        return tuple(like_point(part, records) for part in w)
    return like(w, reference)
