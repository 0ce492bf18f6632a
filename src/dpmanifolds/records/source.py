"""Where records come from, and one pass over them: arrays, memory maps, Zarr, any iterable of blocks, Dask.

>>> import numpy as np
>>> from dpmanifolds import SPD
>>> source = source_of(SPD(2), [np.stack([np.eye(2)] * 3), np.stack([np.eye(2)] * 4)])
>>> source.count, source.reduce(lambda number, first, block: block.sum(axis=0), np.add)[0, 0]
(7, np.float64(7.0))
"""

from __future__ import annotations

import math
import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from dpmanifolds._arrays import Array, bytes_per_record, is_numpy, namespace, on_accelerator, plain_numpy
from dpmanifolds._points import has_parts, leaves, records_at
from dpmanifolds._validate import hide_records, refuse_empty
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.records.blocks import (
    block_size,
    cores,
    device_block_size,
    evenly,
    is_tiny,
    leading_axes,
    ordered_map,
    record_form,
    slabs_of,
    total_of,
)

State = TypeVar("State")
Part = Callable[[int, int, Array], State]
"""(number of the block, number of its first record, the block as it was read) → what is summed."""
Merge = Callable[[State, State], State]

_MAPPED_BYTES = 1 << 28


class Source(ABC):
    """Records that a pass reads block by block; no more than a few blocks are in memory at a time."""

    count: int | None
    """How many records; None where only a pass can tell."""
    longest_block: int
    """How many records one block has, at most."""
    is_local: bool = True
    """Whether the blocks are read in this process, so that what a pass learns of a block can be kept for the next."""
    is_in_memory: bool = False
    """Whether all records are in the memory of this process, or of its device, already."""
    memory: int = 1 << 27
    """How many bytes may be kept so."""

    @abstractmethod
    def reduce(self, part: Part[State], merge: Merge[State]) -> State:
        """One pass: `part` of every block, merged in the order of the blocks."""

    @abstractmethod
    def sample(self, most: int) -> Array:
        """The first `most` records, or all: the same ones from every source."""

    def template(self) -> Array:
        """One record or so, for its shape, library, device and precision; its numbers may be any."""
        return self.sample(1)

    def resident(self, prepare: Callable[[Array], Array]) -> Source | None:
        """The records after `prepare`, worked out once and kept by other processes; None where there are none."""
        return None

    def uncut(self) -> Source:
        """The same records for a part that cuts what lives on a device by itself: all of it in one block."""
        return self

    is_single_use: bool = False
    """Whether the records can be read only once."""

    def refuse_single_use(self) -> None:  # noqa: B027  (most sources have nothing to refuse)
        """An error where the records can be read only once."""

    def locate(self) -> None:  # noqa: B027  (most sources are read in one piece)
        """Find out where every block begins, if need be."""

    def counted(self) -> int:
        """How many records, by a pass that only counts where need be."""
        if self.count is None:
            self.count = self.reduce(lambda number, first, block: int(block.shape[0]), lambda a, b: a + b)
        return self.count


class ArraySource(Source):
    """An array that can be sliced in any thread at no cost: NumPy, a memory map, an array on a device, or a tuple."""

    def __init__(self, array: Array, *, mapped: bool = False, mapping: mmap.mmap | None = None) -> None:
        self.array = array
        self.is_in_memory = not mapped
        self._mapping = mapping if hasattr(mmap, "MADV_DONTNEED") else None
        parts = leaves(array)
        self.count = self._rows = int(parts[0].shape[0])
        self._is_numpy = all(map(is_numpy, parts))
        self._record_bytes = sum(map(bytes_per_record, parts))
        self._size = evenly(self._rows, _size_of_blocks(parts))
        self.longest_block = min(self._rows, self._size)
        if not self._is_numpy:
            self.memory = 1 << 31

    def reduce(self, part: Part[State], merge: Merge[State]) -> State:
        rows = self._rows

        def run(first: int) -> State:
            return part(first // self._size, first, records_at(self.array, slice(first, min(first + self._size, rows))))

        firsts = range(0, rows, self._size) if rows else range(1)
        if not self._is_numpy:
            return total_of(map(run, firsts), merge)
        threads = min(len(firsts), cores())
        parts = ordered_map(run, firsts, threads, tiny=is_tiny(rows, self._record_bytes))
        return total_of(self._letting_go(parts), merge)

    def uncut(self) -> Source:
        if self._is_numpy or not all(map(on_accelerator, leaves(self.array))):
            return self
        whole = copy(self)
        whole._size = max(1, self._rows)
        return whole

    def _letting_go(self, parts: Iterator[State]) -> Iterator[State]:
        """Hand back the pages of a read-only memory map now and then: they would pile up to the size of the file."""
        every = max(1, _MAPPED_BYTES // (self._size * self._record_bytes))
        for number, part in enumerate(parts, start=1):
            yield part
            if self._mapping is not None and number % every == 0:
                self._mapping.madvise(mmap.MADV_DONTNEED)

    def sample(self, most: int) -> Array:
        return records_at(self.array, slice(0, min(most, self._rows)))


class BlockSource(Source):
    """Blocks that a function hands out afresh for every pass, cut or joined to the size that suits the cache."""

    def __init__(
        self,
        manifold: Manifold | None,
        fresh: Callable[[], Iterable[Any]],
        count: int | None,
        *,
        once: bool,
        lasting: bool = False,
        allow_empty: bool = False,
        empty: Array | None = None,
    ) -> None:
        self._manifold = manifold
        self._lasting = lasting
        """Whether nobody writes to a block after it was handed out; else one buffer may be filled again and again."""
        self._allow_empty = allow_empty
        self._empty = empty
        """What stands for no records at all, where it is known; else a block of no rows does."""
        self._fresh = fresh
        self.is_single_use = once
        self.count = count
        self.longest_block = block_size(8)

    def refuse_single_use(self) -> None:
        if self.is_single_use:
            raise ArgumentError(
                "is an iterator, which can be read only once, and several passes over the records are needed "
                "here. Pass an array of numbers, a list of blocks, or a function that returns a fresh iterator.",
                argument="points",
            )

    def reduce(self, part: Part[State], merge: Merge[State]) -> State:
        seen = 0

        def counted() -> Iterator[tuple[int, int, Array]]:
            nonlocal seen
            for number, block in enumerate(self._pieces()):
                yield number, seen, block
                seen += int(block.shape[0])

        total = total_of(ordered_map(lambda item: part(*item), counted(), cores()), merge)
        if self.count not in (None, seen):
            raise ArgumentError("points gave another number of records than before: each pass must read the same ones.")
        self.count = seen
        return total

    def sample(self, most: int) -> Array:
        taken: list[Array] = []
        missing = most
        for piece in self._pieces():
            taken.append(piece[: min(missing, int(piece.shape[0])), ...])
            missing -= int(taken[-1].shape[0])
            if missing == 0:
                break
        return namespace(*taken).concat(taken, axis=0)

    def _kept(self, block: Array) -> Array:
        """What stays as it is while the source goes on: blocks are joined, and read ahead."""
        return block if self._lasting else _copied(block)

    def _pieces(self) -> Iterator[Array]:
        """Blocks of about the size that suits the cache; small ones are joined, the last may be short."""
        waiting: list[Array] = []
        held = 0
        empty = True
        for given in self._fresh():
            block = _checked_block(self._manifold, given)
            rows = int(block.shape[0])
            if rows == 0:
                self._empty = block if self._empty is None else self._empty
                continue
            empty = False
            size = _size_of_blocks([block])
            if is_numpy(block) and held + rows < size:
                waiting.append(self._kept(block))
                held += rows
                continue
            lasting = self._lasting or bool(waiting)
            if waiting:
                block = np.concatenate([*waiting, self._kept(block)])
                waiting, held = [], 0
            rows = int(block.shape[0])
            for first in range(0, rows, size):
                piece = block[first : min(first + size, rows), ...]
                yield piece if lasting else self._kept(piece)
        if waiting:
            yield np.concatenate(waiting)
        if empty:
            if not self._allow_empty:
                refuse_empty(0)
            if self._empty is None:
                raise ArgumentError(
                    "has no block, and so no shape: hand out a block of no rows at least.", argument="points"
                )
            yield self._empty


def _copied(block: Array) -> Array:
    """A block whose numbers nobody else holds; those of objects are copied one by one."""
    return deepcopy(block) if block.dtype == object else namespace(block).asarray(block, copy=True)


def _size_of_blocks(parts: list[Array]) -> int:
    size = block_size if all(map(is_numpy, parts)) else device_block_size
    return size(sum(map(bytes_per_record, parts)))


@hide_records()
def source_of(
    manifold: Manifold | None, points: Any, *, allow_empty: bool = False, shape: tuple[int, ...] | None = None
) -> Source:
    """The source that `points` is, or an error that says what can be one; without a manifold, of records of any form.

    Blocks of records that are no points may also be tuples of arrays; those come as a tuple of Dask arrays only. Points
    of a product come as a tuple of arrays. `allow_empty`: to have no records is no mistake; what is no point then needs
    the public `shape` of a record where it comes in blocks, or in a list, of which there may be none.
    """
    if manifold is not None and manifold.has_parts:
        return ArraySource(record_form(manifold, points, allow_empty))
    if is_dask(points) or is_dask_bag(points):
        from dpmanifolds.records.dask import array_source, bag_source

        make = array_source if is_dask(points) else bag_source
        return make(manifold, points, allow_empty)
    if hasattr(points, "__dask_graph__"):
        raise ArgumentError(f"points may be a Dask array or a Dask bag; got {type(points).__name__}.")
    if manifold is None and has_parts(points):
        from dpmanifolds.records.dask import joint_source

        return joint_source(points, allow_empty)
    blocks = partial(BlockSource, manifold, allow_empty=allow_empty, empty=_no_records(manifold, shape))
    if callable(points) and not hasattr(points, "shape"):
        return blocks(lambda: _blocks_of(points), None, once=False)
    if _is_list_of_blocks(manifold, points):
        listed = _as_blocks(manifold, points)
        return blocks(lambda: listed, sum(int(block.shape[0]) for block in listed), once=False, lasting=True)
    if is_sliceable_file(points):
        _checked_block(manifold, points[:1])
        return blocks(lambda: slabs_of(points), int(points.shape[0]), once=False)
    if isinstance(points, Iterator):
        first = [_copied(_checked_block(manifold, block)) for block in islice(points, 1)]
        return blocks(lambda: chain(first, points), None, once=True)
    if _is_plain_iterable(points):
        return blocks(lambda: iter(points), None, once=False)
    mapped = isinstance(points, np.memmap)
    mapping = points._mmap if mapped and points.mode == "r" else None
    return ArraySource(record_form(manifold, points, allow_empty, shape), mapped=mapped, mapping=mapping)


def _no_records(manifold: Manifold | None, shape: tuple[int, ...] | None) -> np.ndarray | None:
    if manifold is not None:
        return np.empty((0, *manifold.point_shape), dtype=np.complex128 if manifold.is_complex else np.float64)
    return None if shape is None else np.empty((0, *shape))


def _blocks_of(function: Callable[[], Any]) -> Iterator[Any]:
    blocks = function()
    if not isinstance(blocks, Iterable):
        raise ArgumentError(
            f"points, given as a function, must return blocks of records when called; got {type(blocks).__name__}."
        )
    return iter(blocks)


def is_dask(points: Any) -> bool:
    """Whether `points` is a Dask array."""
    # a delayed value seems to have every attribute
    return hasattr(points, "__dask_graph__") and isinstance(getattr(points, "chunks", None), tuple)


def is_dask_bag(points: Any) -> bool:
    """Whether `points` is a Dask bag."""
    return hasattr(points, "__dask_graph__") and type(points).__module__.startswith("dask.bag")


def _checked_block(manifold: Manifold | None, block: Any) -> Array:
    """A block as an array, or an error that says what blocks are."""
    if not hasattr(block, "shape") or len(leading_axes(manifold, block)) != 1:
        wanted = "…" if manifold is None else ", ".join(map(str, manifold.point_shape))
        raise ArgumentError(
            f"must be an array of numbers, or blocks of records of shape (b, {wanted}) each; got an iterable of "
            "something else. Stack the records of a block into one array.",
            argument="points",
        )
    if not is_numpy(block):
        return block
    # one form, that blocks of complex numbers and of landmarks can be joined in
    return manifold.take_form(block) if manifold is not None and manifold.is_complex else plain_numpy(block)


def _is_list_of_blocks(manifold: Manifold | None, points: Any) -> bool:
    """Whether most of a list are blocks: one odd element neither makes nor unmakes one."""
    if not isinstance(points, (list, tuple)) or not points:
        return False
    if manifold is None:
        return all(hasattr(block, "shape") for block in points)
    return 2 * sum(_is_block(manifold, each) for each in points) > len(points)


def _is_block(manifold: Manifold, value: Any) -> bool:
    shape = tuple(getattr(value, "shape", ()))
    return shape not in manifold.record_shapes and shape[1:] in manifold.record_shapes


def _as_blocks(manifold: Manifold | None, points: Sequence[Any]) -> list[Any]:
    """The blocks of a list, a single record as one of them; what is neither is one malformed record."""
    if manifold is None:
        return list(points)
    # as long in bytes as the others: it must not change where blocks are cut
    block = next(each for each in points if _is_block(manifold, each))
    dtype = block.dtype if is_numpy(block) and block.dtype.kind in "fc" else np.float64
    odd = np.full((1, *block.shape[1:]), math.nan, dtype=dtype)
    return [
        each
        if _is_block(manifold, each)
        else each[None, ...]
        if tuple(getattr(each, "shape", ())) in manifold.record_shapes
        else odd
        for each in points
    ]


def is_sliceable_file(points: Any) -> bool:
    """Zarr and HDF5 arrays: a shape, a dtype and slices that come as NumPy arrays."""
    needed = ("shape", "dtype", "__getitem__", "chunks")
    return all(hasattr(points, name) for name in needed) and not hasattr(points, "__array_namespace__")


def _is_plain_iterable(points: Any) -> bool:
    if isinstance(points, (str, bytes, dict, set, frozenset, list, tuple)) or hasattr(points, "shape"):
        return False
    return hasattr(points, "__iter__") and not hasattr(points, "__array__")
