"""Exact sums of contributions over records in memory, in blocks, in files, on workers or on a device.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> from dpmanifolds.records.source import source_of
>>> from dpmanifolds.sums.contribution import TangentContribution
>>> records = np.random.default_rng(0).standard_normal((1000, 2))
>>> pull = TangentContribution(Euclidean(2), np.zeros(2), radius=3.0)
>>> whole = sum_records(source_of(Euclidean(2), records), pull)
>>> cut = sum_records(source_of(Euclidean(2), np.array_split(records, 7)), pull)
>>> whole.rows, whole.integers == cut.integers
(1000, True)

Integers add up to the same total in any order, any cut and any place. Blocks are worked on in tiles of one fixed shape,
the last one filled up with a public point. Totals are kept in two halves of 31 and 64 bits, so that none can overflow
whatever the number of records is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, has_doubles, is_numpy, like, namespace, on_accelerator, to_numpy
from dpmanifolds._points import count_records, has_parts, leaves, map_parts, on_host, records_at, taken
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.records.blocks import block_size, bytes_per_record, evenly
from dpmanifolds.records.source import Source
from dpmanifolds.statistics.kernels.integers import LONGEST_PIECE
from dpmanifolds.sums.contribution import Contribution

__all__ = ["ExactSum", "check_rules", "integers_of", "select_rows", "sum_block", "sum_records"]

_LOW_BITS = 31
_FEWEST_BYTES = 32
_MOST_INTEGERS = 1 << 20
_DEVICE_TILE = 1 << 20
_MOST_RULES = 8


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
        counts = np.bincount(broken, minlength=_MOST_RULES)
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


def sum_records(
    source: Source, contribution: Contribution, chosen: np.ndarray | None = None, terms: int | None = None
) -> ExactSum:
    """One pass over the records, or over those of these numbers (ascending); not private until noise is added.

    `terms`, a public number of records, or a guess of it, decides how long tiles are.
    """
    if chosen is not None:
        source.locate()
    return source.reduce(_Part(contribution, chosen, terms), _plus)


def check_rules(total: ExactSum, rules: tuple[str, ...], what: str) -> None:
    """Refuse malformed records before anything is drawn: outside of the promise, naming the rule and no record."""
    for number, rule in enumerate(rules, start=1):
        if total.broken[number]:
            raise NotOnManifoldError(
                f"records must lie on {what}, and at least one does not: {rule}. Check them with "
                "dpmanifolds.validate; repair, project or drop such records, or pass on_invalid='center'."
            )


@dataclass(frozen=True)
class _Part:
    """The sum of one block, where the block is."""

    contribution: Contribution
    chosen: np.ndarray | None
    terms: int | None

    def __call__(self, number: int, first: int, block: Any) -> ExactSum:
        if self.chosen is not None:
            ends = np.searchsorted(self.chosen, [first, first + count_records(block)])
            block = taken(block, self.chosen[slice(*ends)] - first)
        return sum_block(self.contribution, block, self.terms)


def select_rows(wanted: np.ndarray | None, first: int, block: Any) -> tuple[np.ndarray, Any]:
    """Which records of a block are wanted, by their numbers among all, and the block of them."""
    rows = np.arange(first, first + count_records(block))
    if wanted is None:
        return rows, block
    rows = rows[wanted[rows]]
    return rows, taken(block, rows - first)


def _plus(a: ExactSum, b: ExactSum) -> ExactSum:
    return a + b


def sum_block(contribution: Contribution, block: Any, terms: int | None = None) -> ExactSum:
    """The exact sum of a block of records as it was read."""
    total: ExactSum | None = None
    for whole_total, counts in _fused(contribution.sum_on_device, block, LONGEST_PIECE):
        one = ExactSum.of_counts(whole_total, counts)
        total = one if total is None else total + one
    if total is not None:
        return total
    for whole, broken in _tiles(contribution, block, terms):
        xp = namespace(whole)
        one = ExactSum.of(to_numpy(xp.sum(whole, axis=1)), int(whole.shape[1]), to_numpy(broken))
        total = one if total is None else total + one
    if total is None:
        zeros = np.zeros(contribution.dim, dtype=np.int64)
        return ExactSum(zeros, zeros, 0, np.zeros(_MOST_RULES, dtype=np.int64))
    return total


def integers_of(contribution: Contribution, block: Any, terms: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The integers (dim, n) of all records of a block, and the rules they break; for persons, and for tests."""
    parts = [(to_numpy(whole), to_numpy(broken)) for whole, broken in _tiles(contribution, block, terms)]
    if not parts:
        return np.zeros((contribution.dim, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate([part[0] for part in parts], axis=1), np.concatenate([part[1] for part in parts])


def _tiles(contribution: Contribution, block: Any, terms: int | None) -> Any:
    """Integers and broken rules, tile by tile. Arrays that live on an accelerator stay there; all others are NumPy's.

    So PyTorch and JAX on a processor, and every other library, give the integers that NumPy gives.
    """
    fused = _fused(contribution.integers_on_device, block, _DEVICE_TILE)
    if fused:
        yield from fused
        return
    block = block if _stays(block) else on_host(block)
    parts = leaves(block)
    count = int(parts[0].shape[0])
    size = tile_size(parts, contribution.tile_bytes, contribution.dim, terms)
    for first in range(0, count, size):
        rows = min(size, count - first)
        # what a hard record does to floating point is nobody's business: no warning tells of it
        with np.errstate(all="ignore"):
            tile = contribution.form(records_at(block, slice(first, first + rows)))
            whole, broken = contribution(_laid_out(_filled(tile, contribution.filler, size)))
        yield whole[:, :rows], broken[:rows]


def _fused(run: Callable[[Array], Any], block: Any, size: int) -> list[Any]:
    """What a kernel makes of a block that lives on an accelerator, in pieces of so many records; none without one."""
    if has_parts(block) or not _stays(block):
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
    most = max(1, min(tile_bytes // _FEWEST_BYTES, tile_bytes // read, _MOST_INTEGERS // made))
    return evenly(evenly(terms, block_size(read)), most) if terms else most


def _stays(block: Any) -> bool:
    return all(on_accelerator(part) and has_doubles(part) for part in leaves(block))


def _laid_out(tile: Any) -> Any:
    """The tile in one memory layout, whatever that of the block was: the order of NumPy's sums depends on it.

    Vectors lie one number of all records after the other, so that records are worked on side by side; matrices lie one
    after the other.
    """

    def laid_out(part: Array) -> Array:
        if not is_numpy(part):
            return part
        return np.asfortranarray(part) if part.ndim == 2 else np.ascontiguousarray(part)

    return map_parts(laid_out, tile)


def _filled(tile: Any, filler: Any, size: int) -> Any:
    """The tile with public records behind its own, so that every tile has one shape."""
    missing = size - count_records(tile)
    if filler is None or not missing:
        return tile

    def filled(part: Array, middle: Array) -> Array:
        xp = namespace(part)
        middle = middle if is_numpy(part) else like(to_numpy(middle), part)
        return xp.concat([part, xp.broadcast_to(middle[None, ...], (missing, *middle.shape))], axis=0)

    return map_parts(filled, tile, filler)
