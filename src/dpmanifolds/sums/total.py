"""Exact sums of contributions over records, or persons, in memory, in blocks, in files, on workers or on a device.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> from dpmanifolds.sums.contribution import TangentContribution
>>> values = np.array([[1.0], [3.0], [8.0]])
>>> pull = TangentContribution(Euclidean(1), np.zeros(1), radius=16.0, exponent=4)
>>> whole, cut = read_records(Euclidean(1), values), read_records(Euclidean(1), np.array_split(values, 2))
>>> whole.total(pull).integers, cut.total(pull).integers
([12], [12])
>>> persons = read_records(Euclidean(1), values, group_by=["ann", "ann", "bob"])
>>> persons.count, persons.total(pull).integers  # (1 + 3)/2 + 8
(2, [10])

Integers add up to the same total in any order, any cut and any place. Blocks are worked on in tiles of one fixed shape,
the last one filled up with a public point. Totals are kept in two halves of 31 and 64 bits, so that none can overflow
whatever the number of records is.

The integers of a person's records are averaged, exactly, and count as one record. Each record's integers lie in a
convex body, so does their average, and rounding it towards zero keeps every integer inside; the exact check is made
once more. Neighbours differ in one person, with as many records as that person likes: one vector of the body is
replaced by another (docs/proofs/sums.md).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, bytes_per_record, has_doubles, on_accelerator, to_numpy
from dpmanifolds._points import count_records, cut_tile, has_parts, leaves, on_host, records_at, taken
from dpmanifolds._validate import hide_records
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.records.blocks import block_size, evenly
from dpmanifolds.records.persons import Persons, persons_of
from dpmanifolds.records.source import Source, source_of
from dpmanifolds.statistics.kernels.integers import LONGEST_PIECE
from dpmanifolds.sums.contribution import Contribution

_LOW_BITS = 31
_FEWEST_BYTES = 32
_MOST_INTEGERS = 1 << 20
_DEVICE_TILE = 1 << 20
_MOST_RULES = 8
_ROOM = 1 << 62


@dataclass(frozen=True)
class ExactSum:
    """A total of integers (dim,), how many records it holds, and how many of them broke which rule. Not private."""

    high: np.ndarray
    low: np.ndarray
    """The total is high·2³¹ + low."""
    rows: int
    broken: np.ndarray
    """Private: it decides whether a release is refused (`on_invalid="raise"`), and nothing else."""

    @classmethod
    def of(cls, total: np.ndarray, rows: int, broken: np.ndarray) -> ExactSum:
        counts = np.bincount(broken[broken != 0], minlength=_MOST_RULES)
        counts[0] = len(broken) - counts.sum()
        return cls(total >> _LOW_BITS, total & ((1 << _LOW_BITS) - 1), rows, counts)

    @classmethod
    def of_counts(cls, total: np.ndarray, counts: np.ndarray) -> ExactSum:
        """From how many records keep all rules, break the first, the second, …"""
        one = cls.of(total, int(counts.sum()), np.zeros(0, dtype=np.int64))
        return replace(one, broken=np.pad(counts, (0, _MOST_RULES - len(counts))))

    def __add__(self, other: ExactSum) -> ExactSum:
        low = self.low + other.low
        carried = low >> _LOW_BITS
        return ExactSum(
            self.high + other.high + carried,
            low & ((1 << _LOW_BITS) - 1),
            self.rows + other.rows,
            self.broken + other.broken,
        )

    @property
    def integers(self) -> list[int]:
        """The total as integers of any size."""
        return [(high << _LOW_BITS) + low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]


def check_rules(total: ExactSum, rules: tuple[str, ...], what: Any) -> None:
    """Refuse malformed records before anything is drawn: outside of the promise, naming the rule and no record."""
    for number, rule in enumerate(rules, start=1):
        if total.broken[number]:
            raise NotOnManifoldError(
                f"records must lie on {what}, and at least one does not: {rule}. Check them with "
                "dpmanifolds.validate; repair, project or drop such records, or pass on_invalid='center'."
            )


@dataclass(frozen=True)
class RecordSums:
    """Records, each a term of its own, or one term for each person; one exact pass over them at a time."""

    source: Source
    persons: Persons | None = None
    guess: int | None = None
    """A public guess of how many terms there are, where that is protected."""

    @property
    def known_count(self) -> int | None:
        """How many terms; None where only a pass can tell."""
        return self.source.count if self.persons is None else self.persons.count

    @property
    def count(self) -> int:
        """How many terms, by a pass that only counts where need be. Public, or private: the adjacency says."""
        known = self.known_count
        if known is not None:
            return known
        with hide_records():
            return self.source.counted()

    @hide_records()
    def total(self, contribution: Contribution, chosen: np.ndarray | None = None) -> ExactSum:
        """One pass: the exact sum over all terms, or over those of these numbers (ascending)."""
        terms = self.known_count if self.guess is None else self.guess
        if self.persons is None:
            fixed = self.guess is None and chosen is None
            return sum_records(self.source, contribution, chosen, terms, fixed_rows=fixed)
        return sum_persons(self.source, contribution, self.persons, chosen, terms)


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
    with hide_records():
        return RecordSums(source, persons_of(group_by, source.counted()), guess)


def sum_records(
    source: Source,
    contribution: Contribution,
    chosen: np.ndarray | None = None,
    terms: int | None = None,
    *,
    fixed_rows: bool = False,
) -> ExactSum:
    """One pass over the records, or over those of these numbers (ascending); not private until noise is added.

    `terms`, a public number of records, or a guess of it, decides how long tiles are; `fixed_rows`: neighbours have as
    many records, each in the same place.
    """
    if chosen is not None:
        source.locate()
    total: ExactSum = source.uncut().reduce(_Part(contribution, chosen, terms, fixed_rows), operator.add)
    return total


@dataclass(frozen=True)
class _Part:
    """The sum of one block, where the block is."""

    contribution: Contribution
    chosen: np.ndarray | None
    terms: int | None
    fixed_rows: bool

    def __call__(self, number: int, first: int, block: Any) -> ExactSum:
        if self.chosen is not None:
            ends = np.searchsorted(self.chosen, [first, first + count_records(block)])
            block = taken(block, self.chosen[slice(*ends)] - first)
        return sum_block(self.contribution, block, self.terms, fixed_rows=self.fixed_rows)


def sum_block(
    contribution: Contribution, block: Any, terms: int | None = None, *, fixed_rows: bool = False
) -> ExactSum:
    """The exact sum of a block of records as it was read."""
    parts = leaves(block)
    if _stay(parts):
        pieces = _fused(contribution.sum_on_device, block, LONGEST_PIECE)
        if pieces:
            return reduce(operator.add, (ExactSum.of_counts(*piece) for piece in pieces))
    zeros = np.zeros(contribution.dim, dtype=np.int64)
    total = ExactSum(zeros, zeros, 0, np.zeros(_MOST_RULES, dtype=np.int64))
    for tile, rows in _tiles(contribution, block, parts, terms, fixed_rows):
        with np.errstate(all="ignore"):
            one, broken = contribution.sum_tile(tile, rows)
        total = total + ExactSum.of(one, rows, broken)
    return total


def integers_of(
    contribution: Contribution, block: Any, terms: int | None = None, *, fixed_rows: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The integers (dim, n) of all records of a block, and the rules they break; for persons, and for tests."""
    parts = leaves(block)
    found = _fused(contribution.integers_on_device, block, _DEVICE_TILE) if _stay(parts) else []
    if not found:
        for tile, rows in _tiles(contribution, block, parts, terms, fixed_rows):
            with np.errstate(all="ignore"):
                whole, broken = contribution(tile)
            found.append((whole[:, :rows], broken[:rows]))
    if not found:
        return np.zeros((contribution.dim, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    wholes, codes = zip(*found, strict=True)
    return np.concatenate(list(map(to_numpy, wholes)), axis=1), np.concatenate(list(map(to_numpy, codes)))


def _tiles(
    contribution: Contribution, block: Any, parts: list[Array], terms: int | None, fixed_rows: bool
) -> Iterator[tuple[Any, int]]:
    """Tiles of one shape, and how many records each holds: NumPy's, where no fused kernel works on an accelerator.

    Only these are known to make a record's integers of that record alone, bit for bit: other libraries make one large
    product of a stack of products, and work on the last few numbers by other code, so that a record's place decides.
    Where no place can change, arrays on an accelerator stay there.
    """
    stays = _stay(parts) and (fixed_rows or contribution.fixed_rows)
    if not stays:
        block = on_host(block)
        parts = leaves(block)
    count, size = int(parts[0].shape[0]), tile_size(parts, contribution.tile_bytes, contribution.dim, terms)
    if stays:
        size = evenly(count, size)
    filler = contribution.filler
    layout = {name: getattr(contribution, name) for name in ("in_rows", "in_columns", "in_doubles")}
    # what a hard record does to floating point is nobody's business: no warning tells of it
    with np.errstate(all="ignore"):
        formed = contribution.form(block) if count else block
    for first in range(0, count, size):
        with np.errstate(all="ignore"):
            tile = cut_tile(formed, first, size, filler, **layout)
        yield tile, min(size, count - first)


def _fused(run: Callable[[Array], Any], block: Any, size: int) -> list[Any]:
    """What a kernel makes of a block that lives on an accelerator, in pieces of so many records; none without one."""
    if has_parts(block):
        return []
    count = int(block.shape[0])
    found: list[Any] = []
    for first in range(0, count, size):
        piece = run(records_at(block, slice(first, min(first + size, count))))
        if piece is None:
            return []
        found.append(piece)
    return found


def tile_size(parts: list[Array], tile_bytes: int, dim: int = 1, terms: int | None = None) -> int:
    """How many records are worked on together: a function of the shape of one record and of its integers.

    Where a public number of records is known it is cut evenly into blocks, as sources do, and these into tiles: the
    last tile of a block is filled up, and costs like the rest.
    """
    read, made = sum(map(bytes_per_record, parts)), 8 * dim
    if on_accelerator(parts[0]):
        return max(1, min(_DEVICE_TILE, (1 << 28) // read, (1 << 30) // made))
    return _host_tile_size(read, made, tile_bytes, terms)


@lru_cache(maxsize=256)
def _host_tile_size(read: int, made: int, tile_bytes: int, terms: int | None) -> int:
    most = max(1, min(tile_bytes // _FEWEST_BYTES, tile_bytes // read, max(tile_bytes, _MOST_INTEGERS) // made))
    return evenly(evenly(terms, block_size(read)), most) if terms else most


def _stays(block: Any) -> bool:
    return _stay(leaves(block))


def _stay(parts: list[Array]) -> bool:
    """Whether arrays are worked on where they live: on an accelerator with double precision."""
    return all(on_accelerator(part) and has_doubles(part) for part in parts)


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
    sums = source.reduce(_PersonPart(contribution, persons.numbers, wanted, terms), _joined)
    means = divide_towards_zero(sums.whole, np.maximum(sums.counts, 1))
    means = means * contribution.fits(means)
    count = len(persons.starts) - 1 if chosen is None else len(chosen)
    total = ExactSum.of(means.sum(axis=1), count, np.zeros(0, dtype=np.int64))
    return ExactSum(total.high, total.low, count, sums.broken)


def divide_towards_zero(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Sums of integers of a body over how many there were: `//` alone would leave the body.

    >>> divide_towards_zero(np.array([-7, 7]), np.array([2, 2])).tolist()
    [-3, 3]
    """
    return np.asarray(np.sign(sums) * (np.abs(sums) // counts))


@dataclass(frozen=True)
class _Sums:
    """Sums of integers by person: (dim, persons), of how many records each."""

    numbers: np.ndarray
    """Ascending."""
    whole: np.ndarray
    counts: np.ndarray
    broken: np.ndarray


@dataclass(frozen=True)
class _PersonPart:
    """The sums of the persons of one block."""

    contribution: Contribution
    numbers: np.ndarray
    wanted: np.ndarray | None
    terms: int | None

    def __call__(self, _: int, first: int, block: Any) -> _Sums:
        rows = np.arange(first, first + count_records(block))
        if self.wanted is not None:
            rows = rows[self.wanted[rows]]
            block = taken(block, rows - first)
        whole, broken = integers_of(self.contribution, block, self.terms)
        own, place = np.unique(self.numbers[rows], return_inverse=True)
        order = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=len(own))
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        sums = np.add.reduceat(whole[:, order], starts, axis=1) if len(own) else whole[:, :0]
        return _Sums(own, sums, counts, np.bincount(broken, minlength=_MOST_RULES))


def _joined(a: _Sums, b: _Sums) -> _Sums:
    numbers = np.union1d(a.numbers, b.numbers)
    whole = np.zeros((a.whole.shape[0], len(numbers)), dtype=np.int64)
    counts = np.zeros(len(numbers), dtype=np.int64)
    for part in (a, b):
        places = np.searchsorted(numbers, part.numbers)
        whole[:, places] += part.whole
        counts[places] += part.counts
    return _Sums(numbers, whole, counts, a.broken + b.broken)
