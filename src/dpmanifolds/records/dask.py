"""Dask arrays and bags: parts of a statistic computed where the chunks are, merged as a tree, finished by the caller.

A task is a pure function of a chunk: a worker that dies takes nothing with it, its tasks run again elsewhere and give
the same numbers, and noise is drawn by the caller alone, after the last merge. Errors travel back as values, because a
task that raises may have its arguments, records among them, written to the log of its worker.
"""

from __future__ import annotations

import math
import operator
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from dpmanifolds._arrays import Array, bytes_per_record, plain_numpy
from dpmanifolds._points import count_records, join, leaves, records_at
from dpmanifolds._validate import refuse_empty
from dpmanifolds.errors import ArgumentError, DPManifoldsError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.records.bags import Elements, Readings
from dpmanifolds.records.blocks import block_size, is_tiny, leading_axes, ordered_map, total_of
from dpmanifolds.records.source import Merge, Part, Source, is_dask

State = TypeVar("State")
_FAN_IN = 8
_LATER = 1 << 40


Form = Callable[[Any], Array | Readings]


class DaskSource(Source):
    """Chunks that tasks make; `form` makes records of what such a task returns."""

    is_local = False
    memory = 1 << 24

    def __init__(
        self,
        chunks: list[Any],
        sizes: Sequence[int] | None,
        form: Form,
        template: Array | None,
        empty: Array | None = None,
    ) -> None:
        self._chunks = chunks
        self._empty = empty
        """What stands for no records at all, where there may be none."""
        self._sizes = sizes
        """Records in each chunk; None where only a pass can tell."""
        self._form = form
        self._template = template
        self.count = None
        self.longest_block = block_size(1)
        if sizes is not None:
            self._settle(sum(sizes))

    def reduce(self, part: Part[State], merge: Merge[State]) -> State:
        """`part` is told where its block begins only after `locate`; before, where it begins in its chunk."""
        stem, work = _posted(_Work(self._form, part, merge))
        firsts = [0] * len(self._chunks) if self._sizes is None else [0, *accumulate(self._sizes)]
        states = [
            _task(_part_of, f"{stem}-{number}", work, number, first, chunk)
            for number, (first, chunk) in enumerate(zip(firsts, self._chunks, strict=False))
            if self._sizes is None or self._sizes[number]
        ]
        depth = 0
        while len(states) > 1:
            depth += 1
            states = [
                _task(_merged, f"{stem}-{depth}-{first}", work, states[first : first + _FAN_IN])
                for first in range(0, len(states), _FAN_IN)
            ]
        (total,) = self._decide(_computed(states[:1]) or [_State(0)])
        self._settle(total.rows)
        result: State = total.value if total.rows else part(0, 0, self._empty)
        return result

    def sample(self, most: int) -> Array:
        taken: list[Array] = []
        for chunks in self._leading(most):
            missing = most - sum(count_records(block) for block in taken)
            if missing <= 0:
                break
            stem, work = _posted(_Work(self._form))
            taken += _computed(
                [_task(_head, f"{stem}-{number}", work, chunk, missing) for number, chunk in enumerate(chunks)]
            )
        if not any(count_records(block) for block in taken) and self._empty is not None:
            return self._empty
        return records_at(_joined(taken), slice(0, most))

    def template(self) -> Array:
        return self.sample(1) if self._template is None else self._template

    def counted(self) -> int:
        if self.count is None:
            self.locate()
        assert self.count is not None
        return self.count

    def locate(self) -> None:
        if self._sizes is None:
            stem, work = _posted(_Work(self._form))
            tasks = [_task(_rows, f"{stem}-{number}", work, chunk) for number, chunk in enumerate(self._chunks)]
            self._sizes = [counted.rows for counted in self._decide(_computed(tasks))]
            self._settle(sum(self._sizes))

    def _decide(self, states: list[_State]) -> list[_State]:
        """The reading that most elements of all partitions ask for: one of them decides nothing but what it is."""
        in_blocks = sum(state.votes for state in states) > 0
        if isinstance(self._form, Elements) and self._form.in_blocks is None:
            self._form = replace(self._form, in_blocks=in_blocks)
        return states if in_blocks else [state.other or state for state in states]

    def resident(self, prepare: Callable[[Array], Array]) -> Source:
        """The records after `prepare`: kept by the workers of a cluster, else worked out in every pass.

        A chunk that dies with its worker is made again from the tasks that made it.
        """
        from dask import persist

        if isinstance(self._form, Elements):
            self.locate()
        stem, work = _posted(_Work(self._form, prepare))
        chunks = [_task(_prepared, f"{stem}-{number}", work, chunk) for number, chunk in enumerate(self._chunks)]
        if _has_workers():
            chunks = list(persist(*chunks))
        empty = None if self._empty is None else prepare(self._empty)
        return DaskSource(chunks, self._sizes, _as_it_is, None, empty)

    def _settle(self, count: int) -> None:
        """Note the number of records, the same in every pass."""
        if self._empty is None:
            refuse_empty(count)
        if self.count not in (None, count):
            raise ArgumentError("points gave another number of records than before: each pass must read the same ones.")
        self.count = count
        self.longest_block = min(count, block_size(1))

    def _leading(self, most: int) -> Iterator[list[Any]]:
        """The chunks that hold the first records: all of them at once where sizes are known, else one by one."""
        if self._sizes is None:
            yield from ([chunk] for chunk in self._chunks)
        else:
            ends = list(accumulate(self._sizes))
            yield self._chunks[: 1 + bisect_left(ends, min(most, ends[-1]))]


def array_source(manifold: Manifold | None, array: Any, allow_empty: bool = False) -> DaskSource:
    """The chunks of a Dask array along the records; every other axis becomes one chunk."""
    if array.ndim == 0 or any(map(math.isnan, array.shape[1:])):
        raise ArgumentError(f"must have one leading axis of records; got shape {array.shape}.", argument="points")
    # only the shape matters here, but landmarks that coincide would be refused
    template = np.arange(math.prod(array.shape[1:])).astype(array.dtype).reshape(1, *array.shape[1:])
    if len(leading_axes(manifold, template)) != 1:
        raise ArgumentError(
            f"must have exactly one leading axis of records; got shape {array.shape}.", argument="points"
        )
    array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    sizes = None if any(map(math.isnan, array.chunks[0])) else array.chunks[0]
    empty = template[:0] if allow_empty else None
    return DaskSource(array.to_delayed().ravel().tolist(), sizes, plain_numpy, template, empty)


def bag_source(manifold: Manifold | None, bag: Any, allow_empty: bool = False) -> DaskSource:
    """The partitions of a Dask bag whose elements are records, or blocks of records."""
    if manifold is None:
        raise ArgumentError(
            "records of a loss come as an array or a Dask array, not as a Dask bag: stack the elements of each "
            "partition (dask.array.from_delayed)."
        )
    empty = Elements(manifold, in_blocks=False)([]) if allow_empty else None
    return DaskSource(bag.to_delayed(), None, Elements(manifold), None, empty)


def joint_source(arrays: tuple[Any, ...], allow_empty: bool = False) -> DaskSource:
    """Dask arrays with one leading axis of records in common: records are tuples, cut like those of the first array."""
    if not all(map(is_dask, arrays)) or len({array.shape[:1] for array in arrays}) != 1:
        raise ArgumentError("records given as a tuple must be arrays, or Dask arrays, with the same leading axis.")
    if any(math.isnan(size) for array in arrays for size in array.shape):
        raise ArgumentError("records given as a tuple of Dask arrays need known sizes: call compute_chunk_sizes().")
    cuts = [
        array.rechunk({0: arrays[0].chunks[0]} | dict.fromkeys(range(1, array.ndim), -1)).to_delayed().ravel()
        for array in arrays
    ]
    empty = tuple(np.empty((0, *array.shape[1:]), dtype=array.dtype) for array in arrays) if allow_empty else None
    return DaskSource(list(map(list, zip(*cuts, strict=True))), arrays[0].chunks[0], _tuple_of_arrays, None, empty)


def _as_it_is(chunk: Array) -> Array:
    return chunk


def _tuple_of_arrays(parts: list[Any]) -> Array:
    return tuple(map(plain_numpy, parts))


@dataclass(frozen=True)
class _Work:
    """What every task of a pass does."""

    form: Form
    part: Callable[..., Any] = _as_it_is
    merge: Callable[[Any, Any], Any] = operator.add


@dataclass(frozen=True)
class _State:
    """The part of some records, and how many they are; none, no part."""

    rows: int
    value: Any = None
    other: _State | None = None
    """In the other reading, where there are two (`Readings`)."""
    votes: int = 0


@dataclass(frozen=True)
class _Failure:
    """An error as a value: its kind and its message, which names no record; nothing of other kinds but their name."""

    kind: type[DPManifoldsError]
    message: str

    @classmethod
    def of(cls, error: Exception) -> _Failure:
        if isinstance(error, DPManifoldsError):
            return cls(type(error), str(error))
        return cls(DPManifoldsError, f"a part of the records could not be processed ({type(error).__name__}).")

    def error(self) -> DPManifoldsError:
        return self.kind(self.message)


def _posted(work: _Work) -> tuple[str, Any]:
    """A fresh stem for the names of tasks, none of which is named after what it holds, and a task that brings `work`.

    So it travels once to each worker, not with every task.
    """
    from dask import delayed

    stem = f"dpmanifolds-part-{os.urandom(8).hex()}"
    return stem, delayed(work, name=f"{stem}-work", pure=False, traverse=False)


def _task(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    from dask import delayed

    return delayed(function, pure=False)(*arguments, dask_key_name=name)


def _computed(tasks: list[Any]) -> list[Any]:
    """What the tasks return; the first failure among it is raised here."""
    from dask import compute

    values = list(compute(*tasks))
    failure = next((value for value in values if isinstance(value, _Failure)), None)
    if failure is not None:
        raise failure.error()
    return values


def _has_workers() -> bool:
    """Whether tasks run on a cluster rather than in threads or processes of the moment."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return type(owner).__module__.startswith("distributed.")


def _careful(task: Callable[..., Any]) -> Callable[..., Any]:
    """The task with its errors as values."""

    @wraps(task)
    def run(*arguments: Any) -> Any:
        try:
            return task(*arguments)
        except Exception as error:
            return _Failure.of(error)

    return run


@_careful
def _part_of(work: _Work, number: int, start: int, chunk: Any) -> _State:
    """The state of one chunk; blocks are numbered so that the first of each chunk comes before all others."""

    def part(records: Array) -> _State:
        parts = leaves(records)
        rows, record_bytes = int(parts[0].shape[0]), sum(map(bytes_per_record, parts))
        size = block_size(record_bytes)
        if rows == 0:
            return _State(0)

        def run(first: int) -> Any:
            return work.part(
                number if first == 0 else _LATER, start + first, records_at(records, slice(first, first + size))
            )

        states = ordered_map(run, range(0, rows, size), threads=1, tiny=is_tiny(rows, record_bytes))
        return _State(rows, total_of(states, work.merge))

    return _read_by(part, work, chunk)


def _read_by(part: Callable[[Array], _State], work: _Work, chunk: Any) -> _State:
    """The state of a chunk in each of its readings."""
    if isinstance(chunk, _Failure):
        raise chunk.error()
    found = work.form(chunk)
    if not isinstance(found, Readings):
        return part(found)
    other = None if found.records is None else part(found.records)
    return replace(part(found.blocks), other=other, votes=found.votes)


@_careful
def _merged(work: _Work, states: list[Any]) -> Any:
    failure = next((state for state in states if isinstance(state, _Failure)), None)
    if failure is not None:
        return failure
    votes, total = sum(state.votes for state in states), _merge(work, states)
    if all(state.other is None for state in states):
        return replace(total, votes=votes)
    return replace(total, other=_merge(work, [state.other or state for state in states]), votes=votes)


def _merge(work: _Work, states: list[_State]) -> _State:
    filled = [state for state in states if state.rows]
    if not filled:
        return _State(0)
    return _State(sum(state.rows for state in filled), total_of([state.value for state in filled], work.merge))


@_careful
def _prepared(work: _Work, chunk: Any) -> Array:
    return work.part(_records(work, chunk))


@_careful
def _head(work: _Work, chunk: Any, most: int) -> Array:
    return records_at(_records(work, chunk), slice(0, most))


@_careful
def _rows(work: _Work, chunk: Any) -> _State:
    return _read_by(lambda records: _State(count_records(records)), work, chunk)


def _records(work: _Work, chunk: Any) -> Array:
    if isinstance(chunk, _Failure):
        raise chunk.error()
    found = work.form(chunk)
    return found.blocks if isinstance(found, Readings) else found


def _joined(blocks: list[Array]) -> Array:
    return join(*([block for block in blocks if count_records(block)] or blocks[:1]))
