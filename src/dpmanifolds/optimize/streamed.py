"""Records of a descent that are not in memory: every step is a pass over blocks, where these are.

>>> import numpy as np
>>> from dpmanifolds import ApproxDP, Ball, SPD
>>> from dpmanifolds.optimize import FrechetMeanLoss, private_descent
>>> ball, records = Ball(SPD(2), np.eye(2), 2.0), SPD(2).random_point(900, rng=0)
>>> options = dict(start=np.eye(2), budget=ApproxDP(1.0, 1e-6), steps=3, step_size=0.5, rng=1)
>>> whole = private_descent(FrechetMeanLoss(ball), records, SPD(2), **options)
>>> streamed = private_descent(FrechetMeanLoss(ball), lambda: iter(np.split(records, 9)), SPD(2), **options)
>>> bool(np.allclose(whole.point, streamed.point, rtol=0, atol=1e-12))
True

A step asks each block for the sum of its clipped gradients and adds these up as a tree. Blocks of Dask arrays stay on
their workers, prepared once; what travels is the public point one way and sums the other. Which records make a random
batch is drawn by the caller, like all noise, so a task that runs twice draws nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, leaves, namespace, to_numpy
from dpmanifolds.errors import ArgumentError
from dpmanifolds.statistics.blocks import longest_sum
from dpmanifolds.statistics.sources import is_dask, is_sliceable_file, source_of
from dpmanifolds.statistics.streaming import Preparation, Records

if TYPE_CHECKING:
    from dpmanifolds.optimize.loss import Loss

__all__ = ["StreamedRecords", "block_total", "held_records", "is_streamed", "taken"]

_HEAD = 256


@dataclass(frozen=True, eq=False)
class StreamedRecords:
    """All records, or some chosen ones, as sums of gradients see them."""

    records: Records
    count: int
    head: Array
    """The first few, prepared."""
    chosen: np.ndarray | None = None
    """The numbers of those that take part, ascending; None: all."""

    @classmethod
    def of(cls, records: Records) -> StreamedRecords:
        """Records after one pass that prepares them all, so that a malformed one shows before anything is spent."""
        records.source.refuse_single_use()
        records = records.resident()
        return cls(records, records.each(_rows, _added), records.head(_HEAD))

    @property
    def shape(self) -> tuple[int]:
        """Like that of an array, as far as the records go."""
        return (self.count,)

    @property
    def longest_sum(self) -> int:
        """As for the same records in one array, whose blocks are as long; a tree is lower than their row is long."""
        return max(longest_sum(block, self.count) for block in (self.records.source.template(), self.head))

    def only(self, chosen: np.ndarray) -> StreamedRecords:
        """The records of these numbers."""
        return replace(self, chosen=chosen)

    def clipped_total(self, loss: Loss, w: Any, clip: float) -> np.ndarray:
        """`loss.clipped_sum` over the records. Not private."""
        total = self.records.each(_GradientPart(loss, w, clip, self.chosen), _added)
        if total is None:
            return np.zeros(loss.manifold.dim)
        with np.errstate(invalid="ignore", over="ignore"):
            return loss.finished(w, total)


@dataclass(frozen=True)
class _GradientPart:
    """The sum of the clipped gradients of one block; None where no record of it takes part."""

    loss: Loss
    w: Any
    clip: float
    chosen: np.ndarray | None

    def __call__(self, _: int, first: int, block: Array) -> np.ndarray | None:
        if self.chosen is not None:
            ends = np.searchsorted(self.chosen, [first, first + leaves(block)[0].shape[0]])
            if ends[0] == ends[1]:
                return None
            block = taken(block, self.chosen[slice(*ends)] - first)
        return block_total(self.loss, self.w, block, self.clip)


def block_total(loss: Loss, w: Any, block: Array, clip: float) -> np.ndarray:
    """What one block adds to the sum, on the host in double precision; what is not finite shows in the total."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(to_numpy(loss.block_sum(w, block, clip)), dtype=np.float64)


def _added(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    with np.errstate(invalid="ignore", over="ignore"):
        return a + b


def _rows(_: int, __: int, block: Array) -> int:
    return int(leaves(block)[0].shape[0])


@dataclass(frozen=True)
class _ByLoss(Preparation):
    """Blocks as the loss prepares them, each record on its own."""

    loss: Loss | None = None

    def read(self, raw: Array) -> Array:
        assert self.loss is not None
        return self.loss.prepare(raw)

    def ready(self, block: Array) -> Array:
        return block


def is_streamed(records: Any) -> bool:
    """Whether records are read block by block rather than taken into memory."""
    if isinstance(records, tuple):
        return bool(records) and any(map(is_dask, records))
    return (
        isinstance(records, StreamedRecords | np.memmap)
        or hasattr(records, "__dask_graph__")
        or (callable(records) and not hasattr(records, "shape"))
        or is_sliceable_file(records)
    )


def held_records(loss: Loss, records: Any, *, in_memory: bool = False) -> Any:
    """The records as the loss prepares them: arrays, or `StreamedRecords` of what is read block by block.

    `in_memory`: they are asked for as arrays, and an error says what to do where they are none.
    """
    if not is_streamed(records):
        return loss.prepare(records)
    if in_memory:
        raise ArgumentError(
            "group_by needs records in memory, as those of a person may lie in different blocks: pass one array."
        )
    if isinstance(records, StreamedRecords):
        return records
    return StreamedRecords.of(Records(source_of(None, records), _ByLoss(loss.manifold, loss=loss)))


def taken(records: Array, chosen: np.ndarray) -> Array:
    """The records of these numbers, in every part of a tuple."""
    if isinstance(records, tuple):
        return tuple(taken(part, chosen) for part in records)
    if is_numpy(records):
        return records[chosen]
    xp = namespace(records)
    return xp.take(records, xp.asarray(chosen), axis=0)
