"""Records of one manifold as every statistic reads them: in blocks, prepared on the way in, as often as needed.

A statistic is a `part` of one block, a `merge` of two parts and what it makes of the total: memory stays at a few
blocks whatever the number of records, and the noise of a release is drawn once, after the last merge.

>>> import numpy as np
>>> from dpmanifolds import SPD, frechet_mean
>>> blocks = [np.stack([np.eye(2)] * 3), np.stack([4 * np.eye(2)] * 3)]
>>> frechet_mean(SPD(2), blocks).point.round(9)
array([[2., 0.],
       [0., 2.]])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, like, namespace
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import FlatManifold, Manifold, Power
from dpmanifolds.statistics._clipping import assigned, clip_block
from dpmanifolds.statistics.blocks import bytes_per_record
from dpmanifolds.statistics.records import check_block, is_exact, record_weights
from dpmanifolds.statistics.sources import ArraySource, Part, Source, source_of

__all__ = ["Preparation", "Records", "clipped_records_of", "materialised", "records_of"]

State = TypeVar("State")


@dataclass(frozen=True)
class Preparation:
    """What happens to a block between reading it and using it: the same for every record alone."""

    manifold: Manifold
    domain: Domain | None = None
    """Records are clipped to it."""
    in_chart: bool = False
    """Whether the statistic clips in the chart of a flat manifold, where it has the coordinates anyway."""
    in_double: bool = False
    """Whether NumPy records of single precision become double: exact, and cheaper than the noise it saves."""
    is_checked: bool = False
    """Whether the records are known to lie on the manifold."""
    place: Callable[[Array], Array] | None = None
    """Puts records that nearly lie on the manifold onto it, before they are clipped."""
    mend: Callable[[Array], Array] | None = None
    """Does all of this, and takes the centre for malformed records, instead of refusing them."""
    is_done: bool = False
    """Whether blocks come prepared."""

    def __call__(self, raw: Array) -> Array:
        """From a block as it was read to one that is ready for use."""
        return self.ready(self.read(raw))

    @property
    def changes_nothing(self) -> bool:
        """Whether records on the manifold are used as they come."""
        return self.domain is None and self.place is None and self.mend is None

    def ready(self, block: Array) -> Array:
        """The block checked, placed and clipped, or mended."""
        if self.is_done:
            return block
        if self.mend is not None:
            return self.mend(block)
        if not self.is_checked:
            check_block(self.manifold, block)
        if self.place is not None and not is_exact(self.manifold, block):
            block = self.place(block)
        return block if self.domain is None or self.in_chart else clip_block(self.domain, block)

    def read(self, raw: Array) -> Array:
        """The block as points of the manifold."""
        if self.is_done:
            return raw
        block = self.manifold.as_points(raw)
        if self.in_double and is_numpy(block) and block.dtype in (np.float32, np.complex64):
            return block.astype(np.complex128 if block.dtype.kind == "c" else np.float64)
        return block


@dataclass(frozen=True)
class _Patch:
    """What preparing changed of a block: some rows, all of them (rows is None), or nothing (values is None)."""

    rows: Array | None = None
    values: Array | None = None

    @property
    def bytes(self) -> int:
        return 0 if self.values is None else int(self.values.shape[0]) * bytes_per_record(self.values)


@dataclass
class Records:
    """Records in blocks, with weights that sum to one."""

    source: Source
    preparation: Preparation
    weights: Array | None = None
    """None: all the same."""
    patches: dict[int, _Patch] = field(default_factory=dict)
    """What preparing did to the blocks that were read."""
    _kept: int = 0
    _uniform: dict[tuple[int, int], Array] = field(default_factory=dict)

    @property
    def manifold(self) -> Manifold:
        return self.preparation.manifold

    @property
    def domain(self) -> Domain | None:
        return self.preparation.domain

    @property
    def reference(self) -> Array:
        """One record or so, for its library, device and precision."""
        return self.preparation.read(self.source.template())

    def reduce(self, part: Callable[[int, Array, Array], State], merge: Callable[[State, State], State]) -> State:
        """One pass: part(number, block, weights) of every prepared block, merged in the order of the blocks.

        While the number of records is unknown every weight is one.
        """
        if not self.source.is_local:
            task: Part[State] = _Task(part, self.preparation, self.source.count)
            return self.source.reduce(task, merge)
        return self.source.reduce(
            lambda number, first, raw: part(number, *self._prepared(number, first, raw)),
            merge,
        )

    def head(self, most: int) -> Array:
        """The first `most` records, prepared."""
        return self.preparation(self.source.sample(most))

    def sample(self, most: int) -> Records:
        """Some of the records, prepared and held in memory."""
        block = self.head(most)
        return Records(ArraySource(block), Preparation(self.manifold, is_checked=True))

    @property
    def memory(self) -> int:
        """How many bytes a pass may keep for the next one; nearly none where they would travel between processes."""
        return self.source.memory

    @property
    def longest_sum(self) -> int:
        """How many numbers one total of a pass adds up, at most: those of a block, and the depth of the tree."""
        blocks = self.source.counted() / self.source.longest_block
        return self.source.longest_block + 2 + math.ceil(math.log2(blocks + 1))

    def _prepared(self, number: int, first: int, raw: Array) -> tuple[Array, Array]:
        """The block ready for use; what the first pass found out is kept, unless that were a copy of the data."""
        known = self.patches.get(number)
        if known is not None and known.rows is None and known.values is not None:
            return known.values, self._weights_at(first, int(known.values.shape[0]), known.values)
        block = self.preparation.read(raw)
        weights = self._weights_at(first, int(block.shape[0]), block)
        if known is None:
            ready = self.preparation.ready(block)
            self._keep(number, block, ready)
            return ready, weights
        return (block if known.values is None else assigned(block, known.rows, known.values)), weights

    def _keep(self, number: int, block: Array, ready: Array) -> None:
        """Note what became of a block: nothing, what changed, or all of it where much did or memory allows."""
        whole = _Patch(None, ready)
        if ready is block:
            self.patches[number] = _Patch()
        elif self.source.is_in_memory and self._kept + whole.bytes <= self.memory // 4:
            self._kept += whole.bytes
            self.patches[number] = whole
        elif self._kept < 2 * self.memory:
            xp = namespace(ready)
            rows = xp.any(xp.reshape(ready != block, (block.shape[0], -1)), axis=1)
            changed = int(xp.count_nonzero(rows))
            few = _Patch(rows, ready[rows]) if changed else _Patch()
            patch = whole if 4 * changed > block.shape[0] else few
            self._kept += patch.bytes
            self.patches[number] = patch

    def _weights_at(self, first: int, rows: int, block: Array) -> Array:
        if self.weights is not None:
            return self.weights[first : first + rows]
        key = (rows, self.source.count or 1)
        if key not in self._uniform:
            self._uniform[key] = uniform_weights(*key, block)
        return self._uniform[key]


@dataclass(frozen=True)
class _Task:
    """A part of a statistic that travels to the process where the block is."""

    part: Callable[[int, Array, Array], Any]
    preparation: Preparation
    count: int | None

    def __call__(self, number: int, first: int, raw: Array) -> Any:
        block = self.preparation(raw)
        return self.part(number, block, uniform_weights(int(block.shape[0]), self.count or 1, block))


def uniform_weights(rows: int, count: int, reference: Array) -> Array:
    """1/count for each of so many rows."""
    return like(np.full(rows, 1 / count), reference)


def materialised(records: Records) -> Array:
    """All prepared records in one array, clipped."""
    preparation = replace(records.preparation, in_chart=False)
    source = records.source
    if isinstance(source, ArraySource):
        if is_numpy(source.array):
            return preparation(source.array)
        if preparation.changes_nothing:
            return preparation.read(source.array)
    source.refuse_single_use()
    blocks = Records(source, preparation).reduce(_as_list, operator.add)
    return namespace(blocks[0]).concat(blocks, axis=0)


def _as_list(_: int, block: Array, __: Array) -> list[Array]:
    return [block]


def records_of(manifold: Manifold, points: Any, *, sample_weight: Any = None) -> Records:
    """`points`, in any form that can be read block by block, as records of a manifold (no product)."""
    records = Records(source_of(manifold, points), Preparation(manifold))
    source = records.source
    if not _is_flat(manifold):
        source.refuse_single_use()
        source.counted()
    if sample_weight is not None:
        if not source.is_local:
            raise ArgumentError(
                "sample_weight is not offered for Dask arrays or bags: weights would have to travel with them."
            )
        source.refuse_single_use()
        records.weights = record_weights(sample_weight, records.reference, source.counted())
    return records


def clipped_records_of(
    points: Any, domain: Domain, *, place: Callable[[Array], Array], mend: Callable[[Array], Array] | None = None
) -> Records:
    """`points` as records of a domain, each placed on the manifold and clipped while it is read.

    In a ball of a flat manifold the statistic clips in the chart instead, which reads each record once, so that nothing
    hangs on how exactly it lies on the manifold.
    """
    manifold = domain.manifold
    records = records_of(manifold, points)
    in_chart = mend is None and isinstance(domain, Ball) and isinstance(manifold, FlatManifold)
    records.preparation = Preparation(
        manifold, domain, in_chart, in_double=True, place=None if in_chart else place, mend=mend
    )
    return records


def _is_flat(manifold: Manifold) -> bool:
    return isinstance(manifold.manifold if isinstance(manifold, Power) else manifold, FlatManifold)
