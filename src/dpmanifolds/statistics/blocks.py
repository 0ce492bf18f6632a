"""One pass over the records: a map over blocks, with threads where they help, and a sum in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

from dpmanifolds._arrays import Array, is_numpy, leaves

__all__ = ["longest_sum", "map_blocks", "records_at"]

Partial = TypeVar("Partial")

_BLOCK_BYTES = 1 << 20
_LARGEST_BLOCK = 32768


def map_blocks(function: Callable[[int, Array, Array], Partial], points: Array, weights: Array) -> Iterator[Partial]:
    """function(number, block, its weights) for consecutive blocks of records, results in the order of the blocks.

    Blocks depend on the shape of the data alone, so that the sum does not depend on the number of threads. NumPy
    blocks run on a thread pool, with the linear algebra inside each at one thread; other libraries, which run
    their own threads or a device, get the data whole.
    """
    if not all(map(is_numpy, leaves(points))):
        yield function(0, points, weights)
        return
    count, record_bytes = _extent(points)
    size = _block_size(record_bytes)
    starts = range(0, count, size)

    def run(start: int) -> Partial:
        part = slice(start, start + size)
        return function(start // size, records_at(points, part), weights[part])

    threads = min(len(starts), _cores())
    with _one_inner_thread(count * record_bytes):
        if threads == 1:
            yield from map(run, starts)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(run, starts)


def longest_sum(points: Array) -> int:
    """How many numbers one total of a pass adds up, at most: those of a block, and the blocks."""
    parts = leaves(points)
    if not all(map(is_numpy, parts)):
        return int(parts[0].shape[0])
    count, record_bytes = _extent(points)
    size = min(count, _block_size(record_bytes))
    return size + -(-count // size)


def _extent(points: Array) -> tuple[int, int]:
    """Number of records, and bytes of one."""
    parts = leaves(points)
    count = parts[0].shape[0]
    return count, max(1, sum(part.nbytes for part in parts) // count)


def _block_size(record_bytes: int) -> int:
    return max(1, min(_LARGEST_BLOCK, _BLOCK_BYTES // record_bytes))


def records_at(points: Array, index: Any) -> Array:
    """The records at an index or slice of the leading axis, in every part of a product."""
    if isinstance(points, tuple):
        return tuple(records_at(part, index) for part in points)
    return points[index, ...]


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _one_inner_thread(total_bytes: int) -> AbstractContextManager[Any]:
    return _controller().limit(limits=1) if total_bytes > 1 << 15 else nullcontext()
