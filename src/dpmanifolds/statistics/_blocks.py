"""One pass over the records: a map over blocks, with threads where they help, and a sum in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

import numpy as np

from dpmanifolds._arrays import Array, is_numpy

__all__ = ["map_blocks"]

Partial = TypeVar("Partial")

_BLOCK_BYTES = 1 << 19
_LARGEST_BLOCK = 8192


def map_blocks(function: Callable[[int, Array, Array], Partial], points: Array, weights: Array) -> Iterator[Partial]:
    """function(number, block, its weights) for consecutive blocks of records, results in the order of the blocks.

    Blocks depend on the shape of the data alone, so that the sum does not depend on the number of threads. NumPy
    blocks run on a thread pool, with the linear algebra inside each at one thread; other libraries, which run
    their own threads or a device, get the data whole.
    """
    if not is_numpy(points):
        yield function(0, points, weights)
        return
    count = points.shape[0]
    record_bytes = max(1, points.itemsize * int(np.prod(points.shape[1:], dtype=np.int64)))
    size = max(1, min(_LARGEST_BLOCK, _BLOCK_BYTES // record_bytes))
    starts = range(0, count, size)

    def run(start: int) -> Partial:
        return function(start // size, points[start : start + size], weights[start : start + size])

    threads = min(len(starts), _cores())
    with _one_inner_thread(points):
        if threads == 1:
            yield from map(run, starts)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(run, starts)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _one_inner_thread(points: Array) -> AbstractContextManager[Any]:
    return _controller().limit(limits=1) if points.size > 1 << 12 else nullcontext()
