"""The records of a descent: prepared once where they are, told of before anything is spent, summed in every step.

>>> import numpy as np
>>> from dpmanifolds import Ball, SPD
>>> from dpmanifolds.descent.losses import FrechetMeanLoss
>>> loss = FrechetMeanLoss(Ball(SPD(2), np.eye(2), 2.0))
>>> held = hold_records(loss, SPD(2).random_point(900, rng=0), group_by=np.repeat(np.arange(300), 3))
>>> held.count
300

Preparing looks at each record on its own, in tiles of one shape, like everything up to the integers. Arrays are
prepared once and kept; blocks of files and iterators in every pass; chunks of Dask arrays once, by their workers, which
send sums. Which records make a random batch is drawn by the caller, like all noise.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import count_records, cut_tile, has_parts, join, leaves, on_host, records_at
from dpmanifolds._validate import choice, hide_records, refuse_empty
from dpmanifolds.descent.losses.loss import Loss, refuse_malformed
from dpmanifolds.errors import ArgumentError
from dpmanifolds.ledger import keyed_fingerprint
from dpmanifolds.records.persons import Persons, persons_of
from dpmanifolds.records.source import (
    ArraySource,
    Merge,
    Part,
    Source,
    State,
    is_dask,
    is_sliceable_file,
    source_of,
)
from dpmanifolds.sums.contribution import Contribution
from dpmanifolds.sums.outer import OuterContribution, sum_outer
from dpmanifolds.sums.total import ExactSum, _stays, sum_persons, sum_records, tile_size

ON_INVALID = ("raise", "center")
_TILE_BYTES = 1 << 17
_DIGEST = 32


@dataclass(frozen=True, eq=False)
class HeldRecords:
    """Prepared records as sums see them: blocks (records, numbers of the rules they break)."""

    source: Source
    reference: Array
    """One record as it was given, for its library."""
    persons: Persons | None
    given: Source
    """The records as they were given."""

    @property
    @hide_records()
    def count(self) -> int:
        """How many records, or persons; public unless neighbours add and remove them."""
        return self.source.counted() if self.persons is None else self.persons.count

    def unit_of(self, loss: Loss) -> str:
        """What neighbours differ in: one of the loss's records, or a person."""
        return loss.unit if self.persons is None else "person"

    @hide_records()
    def head(self) -> Array:
        """One prepared record, for its shape."""
        return self.source.sample(1)[0]

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of all records, and of who is who: the same in any order, cut into any blocks.

        The sum of the keyed digests of the records, each a pseudorandom number of 256 bits, and 2^256 for each.
        """
        numbers = None if self.persons is None else self.persons.numbers
        if numbers is not None:
            self.given.locate()
        return keyed_fingerprint(str(self.given.reduce(_Digests(key, numbers), operator.add)).encode(), key)

    @hide_records()
    def total(self, contribution: Contribution | OuterContribution, chosen: np.ndarray | None) -> ExactSum:
        """The exact sum over all, or over those of these numbers. Not private."""
        if isinstance(contribution, OuterContribution):
            return sum_outer(self.source, contribution, self.persons, chosen)
        if self.persons is not None:
            return sum_persons(self.source, contribution, self.persons, chosen)
        return sum_records(self.source, contribution, chosen)


@hide_records()
def hold_records(
    loss: Loss, records: Any, *, group_by: Any = None, on_invalid: str = "raise", may_be_empty: bool = False
) -> HeldRecords:
    """The records as the loss prepares them; malformed ones raise before anything is spent, or are replaced.

    What is held already stays as it is.
    """
    if isinstance(records, HeldRecords):
        return records
    choice("on_invalid", on_invalid, ON_INVALID)
    if on_invalid == "center" and loss.filler is None:
        raise ArgumentError(f"on_invalid='center' needs a public stand-in for records, which {loss.name} lacks.")
    source = _source(loss, records, may_be_empty)
    source.refuse_single_use()
    prepared = _prepared(source, _Prepare(loss))
    counts = prepared.reduce(_count_broken, operator.add)
    if on_invalid == "raise":
        refuse_malformed(loss, counts)
    persons = None if group_by is None else persons_of(group_by, prepared.counted())
    return HeldRecords(prepared, source.template(), persons, source)


def _source(loss: Loss, records: Any, may_be_empty: bool) -> Source:
    if loss.record_manifold is not None:
        return source_of(loss.record_manifold, records, allow_empty=may_be_empty)
    if _is_streamed(records):
        shape = np.shape(loss.filler) if loss.filler is not None and not has_parts(loss.filler) else None
        return source_of(None, records, allow_empty=may_be_empty, shape=shape)
    array = loss.form(records)
    if not may_be_empty:
        refuse_empty(count_records(array), "records")
    return ArraySource(array)


def _is_streamed(records: Any) -> bool:
    """Whether records are read block by block rather than taken into memory."""
    if has_parts(records):
        return any(map(is_dask, records))
    return (
        isinstance(records, np.memmap)
        or hasattr(records, "__dask_graph__")
        or (callable(records) and not hasattr(records, "shape"))
        or is_sliceable_file(records)
    )


def _prepared(source: Source, prepare: _Prepare) -> Source:
    if source.is_in_memory:
        blocks = source.reduce(lambda _, __, block: [prepare(block)], operator.add)
        return ArraySource(join(*blocks))
    kept = source.resident(prepare)
    return _PreparedSource(source, prepare) if kept is None else kept


class _PreparedSource(Source):
    """Blocks that are prepared whenever they are read."""

    def __init__(self, source: Source, prepare: _Prepare) -> None:
        self._source = source
        self._prepare = prepare
        self.longest_block = source.longest_block

    @property
    def count(self) -> int | None:  # type: ignore[override]
        return self._source.count

    def counted(self) -> int:
        return self._source.counted()

    def reduce(self, part: Part[State], merge: Merge[State]) -> State:
        return self._source.reduce(lambda number, first, raw: part(number, first, self._prepare(raw)), merge)

    def sample(self, most: int) -> Array:
        return self._prepare(self._source.sample(most))


@dataclass(frozen=True)
class _Prepare:
    """From a block as it was read to (prepared records, numbers of broken rules), in tiles of one shape."""

    loss: Loss

    def __call__(self, raw: Any) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            formed = self.loss.form(raw if _stays(raw) else on_host(raw))
        parts = leaves(formed)
        count, size = int(parts[0].shape[0]), tile_size(parts, _TILE_BYTES)
        pieces = []
        for first in range(0, count, size):
            rows = min(size, count - first)
            with np.errstate(all="ignore"):
                brought = self.loss.bring(cut_tile(formed, first, size, self.loss.filler, in_rows=True))
            pieces.append(records_at(brought, slice(0, rows)))
        return join(*pieces) if pieces else (formed, np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class _Digests:
    """The sum of the digests of a block's records, each with the number of its person."""

    key: bytes
    numbers: np.ndarray | None

    def __call__(self, _: int, first: int, block: Any) -> int:
        parts = [to_numpy(leaf) for leaf in leaves(block)]
        parts = [np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<")) for part in parts]
        start = hashlib.blake2b(key=self.key, digest_size=_DIGEST)
        start.update(str([(part.dtype.str, part.shape[1:]) for part in parts]).encode())
        total = 0
        for row in range(len(parts[0])):
            digest = start.copy()
            for part in parts:
                digest.update(part[row].tobytes())
            if self.numbers is not None:
                digest.update(int(self.numbers[first + row]).to_bytes(8, "little"))
            total += (1 << 8 * _DIGEST) + int.from_bytes(digest.digest(), "little")
        return total


def _count_broken(_: int, __: int, block: Any) -> np.ndarray:
    return np.bincount(to_numpy(block[1]), minlength=8)
