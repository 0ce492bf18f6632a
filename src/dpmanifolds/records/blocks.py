"""Records as they come in, and one pass over them.

Shape, weights and the rules that arrays must obey; a map over blocks, with threads where they help, and a sum in a
fixed order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, like, plain_numpy, to_numpy
from dpmanifolds._points import leaves
from dpmanifolds._validate import numeric_array, record_numbers, refuse_empty
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold

Item = TypeVar("Item")
Partial = TypeVar("Partial")

_BLOCK_BYTES = 1 << 21
LARGEST_BLOCK = 32768
"""No block of NumPy records is longer; public bounds on rounding rest on it."""
_SLAB_BYTES = 1 << 25
_TINY, _TINY_RECORD = 1 << 15, 1 << 13
# elsewhere a block must fill the device, and leave room for the workspace of batched decompositions, which in PyTorch
# is some 300 times the data
_DEVICE_BLOCK_BYTES = 1 << 25
_LARGEST_DEVICE_BLOCK = 1 << 17


def ordered_map(
    function: Callable[[Item], Partial], items: Iterable[Item], threads: int, *, tiny: bool = False
) -> Iterator[Partial]:
    """function(item) on a thread pool, in the order of the items, never more than a few of them ahead.

    The items are drawn by the caller's thread while the pool works on those before: reading overlaps computing.
    `tiny`: so little work that limiting the threads of the linear algebra would cost more than it gains.
    """
    _keep_freed_pages()

    def run(item: Item) -> Partial:
        # each thread has its own settings: what a hard record does to floating point is told by none
        with np.errstate(all="ignore"):
            return function(item)

    if threads <= 1:
        with nullcontext() if tiny else _one_inner_thread():
            yield from map(run, items)
        return
    with _one_inner_thread(), ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[Partial]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(run, item))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for waiting in ahead:
                waiting.cancel()


def total_of(parts: Iterable[Partial], merge: Callable[[Partial, Partial], Partial]) -> Partial:
    """All parts merged as a balanced tree, in their order: a number passes through about log₂ of their count sums."""
    waiting: list[tuple[int, Partial]] = []
    for part in parts:
        depth, total = 0, part
        while waiting and waiting[-1][0] == depth:
            total = merge(waiting.pop()[1], total)
            depth += 1
        waiting.append((depth, total))
    total = waiting.pop()[1]
    while waiting:
        total = merge(waiting.pop()[1], total)
    return total


def is_tiny(rows: int, record_bytes: int) -> bool:
    """Whether there is so little to do that limiting the threads of the linear algebra would cost more than it gains.

    Records are then so small that it would use one thread anyway: its bits do not depend on how many records there are.
    """
    return record_bytes <= _TINY_RECORD and rows * record_bytes <= _TINY


def block_size(record_bytes: int) -> int:
    """How many NumPy records of so many bytes make a block that stays in the cache."""
    return max(1, min(LARGEST_BLOCK, _BLOCK_BYTES // record_bytes))


def evenly(count: int, most: int) -> int:
    """The size of the fewest pieces of one size, and of at most so many, that hold them all.

    >>> evenly(100_000, 32_768), evenly(5, 10)
    (25000, 5)
    """
    return -(-count // -(-count // most)) if count else most


def device_block_size(record_bytes: int) -> int:
    """How many records of so many bytes make a block that fills a device."""
    return max(1, min(_LARGEST_DEVICE_BLOCK, _DEVICE_BLOCK_BYTES // record_bytes))


def slabs_of(file: Any) -> Iterator[np.ndarray]:
    """Slices of whole chunks of the file, of some 32 MB each, so that no chunk is decoded twice."""
    rows = max(1, _SLAB_BYTES // max(1, int(np.dtype(file.dtype).itemsize) * int(np.prod(file.shape[1:]))))
    chunk = int(file.chunks[0]) if file.chunks else 1
    step = max(1, rows // chunk) * chunk
    for first in range(0, int(file.shape[0]), step):
        yield np.asarray(file[first : first + step])


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@cache
def _keep_freed_pages() -> None:
    """Let the C library keep what the temporaries of a block give back, instead of mapping fresh pages for the next.

    glibc maps arrays from 128 kB on one by one, until it has seen a larger one come back; page faults then cost as much
    as the arithmetic. One untouched array, freed at once, shows it 16 MB. Elsewhere this does nothing.
    """
    np.empty(1 << 21)


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _one_inner_thread() -> AbstractContextManager[Any]:
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


def record_array(manifold: Manifold, points: Any) -> Array:
    """`points` as an array (n, *point_shape) with at least one record."""
    check_manifold(manifold)
    array = manifold.as_points(points)
    _check_leading(manifold.batch_shape(array))
    return array


def _check_leading(leading: tuple[int, ...], allow_empty: bool = False) -> None:
    if len(leading) != 1:
        raise ArgumentError(
            f"must have exactly one leading axis of records; got leading axes {leading}.", argument="points"
        )
    if not allow_empty:
        refuse_empty(leading[0])


def record_form(
    manifold: Manifold | None, points: Any, allow_empty: bool = False, shape: tuple[int, ...] | None = None
) -> Array:
    """`points` as one array with records along its first axis, or a tuple of them; no number is looked at.

    Of records in a list that are no points, those of another than the public `shape` become NaN.
    """
    if not hasattr(points, "shape") or not hasattr(points, "dtype"):
        points = record_numbers("points", points, shape) if manifold is None else manifold.take_form(points)
    if is_numpy(points):
        # a memory map and other subclasses as what they are below
        points = plain_numpy(points)
    _check_leading(leading_axes(manifold, points), allow_empty)
    return points


def leading_axes(manifold: Manifold | None, array: Any) -> tuple[int, ...]:
    """The axes before those of a point; an error if the array holds no points. Without a manifold, the first axis."""
    if manifold is None:
        return tuple(array.shape[:1])
    if manifold.has_parts:
        return manifold.batch_shape(array)
    try:
        leading = manifold.batch_shape(manifold.take_form(array[:1, ...]))
    except (ArgumentError, IndexError, TypeError):
        # one point, or something that is wrong as a whole
        return manifold.batch_shape(manifold.take_form(array))
    return (int(array.shape[0]), *leading[1:]) if leading else ()


def record_weights(sample_weight: Any, points: Array, count: int) -> Array:
    """Weights that sum to one, in the library and precision of the points."""
    reference = leaves(points)[0]
    if sample_weight is None:
        return like(np.full(count, 1 / count), reference)
    weights = to_numpy(numeric_array("sample_weight", sample_weight))
    if weights.dtype.kind == "c":
        raise ArgumentError("sample_weight must hold real numbers; got complex ones.")
    weights = weights.astype(np.float64)
    if weights.shape != (count,):
        raise ArgumentError(f"sample_weight must have shape ({count},), one per record; got {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ArgumentError("sample_weight must be finite, not negative, and positive somewhere.")
    return like(weights / weights.sum(), reference)


def check_block(manifold: Manifold, block: Array) -> None:
    """Raise `NotOnManifoldError` if a record breaks a rule; the message names the rule and no record."""
    rule = manifold.first_broken_rule(block)
    if rule is not None:
        raise NotOnManifoldError(
            f"records must lie on {manifold!r}, and at least one does not: {rule}. Check them with "
            "dpmanifolds.validate; repair, project or drop such records."
        )
