"""Dask arrays: parts of a statistic computed where the chunks are, merged as a tree, finished by the caller.

A task is a pure function of a chunk: a worker that dies takes nothing with it, its tasks run again elsewhere and give
the same numbers, and noise is drawn by the caller alone, after the last merge. Errors travel back as values, because a
task that raises has its arguments, records among them, written to the log of its worker.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.errors import ArgumentError, DPManifoldsError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.statistics.blocks import block_size, total_of
from dpmanifolds.statistics.sources import ArraySource, Merge, Part, Source, leading_axes

__all__ = ["DaskSource"]

State = TypeVar("State")
_FAN_IN = 8


class DaskSource(Source):
    """The chunks of a Dask array along the records; every other axis is one chunk."""

    is_local = False
    memory = 1 << 24

    def __init__(self, manifold: Manifold, array: Any) -> None:
        if any(np.isnan(size) for axis in array.chunks for size in axis):
            raise ArgumentError("points is a Dask array of unknown chunk sizes; call its compute_chunk_sizes() first.")
        if array.shape[:1] == (0,):
            raise ArgumentError("points is empty: at least one record is needed.")
        # only the shape matters here, but landmarks that coincide would be refused
        template = np.arange(math.prod(array.shape[1:]), dtype=array.dtype).reshape(1, *array.shape[1:])
        if array.ndim == 0 or len(leading_axes(manifold, template)) != 1:
            raise ArgumentError(f"points must have exactly one leading axis of records; got shape {array.shape}.")
        self._array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
        self.count = int(array.shape[0])
        self.longest_block = min(self.count, block_size(1))

    def reduce(self, part: Part[State], merge: Merge[State]) -> State:
        from dask import delayed

        chunks = self._array.to_delayed().ravel().tolist()
        chunks = [chunk for chunk, size in zip(chunks, self._array.chunks[0], strict=True) if size]
        stem = f"dpmanifolds-part-{os.urandom(8).hex()}"
        # the function travels once, and no task is named after what it holds
        work = delayed(_Work(part, merge), name=f"{stem}-work", pure=False, traverse=False)
        states = [
            delayed(_part_of, pure=False)(work, number, chunk, dask_key_name=f"{stem}-{number}")
            for number, chunk in enumerate(chunks)
        ]
        depth = 0
        while len(states) > 1:
            depth += 1
            states = [
                delayed(_merged, pure=False)(
                    work, states[first : first + _FAN_IN], dask_key_name=f"{stem}-{depth}-{first}"
                )
                for first in range(0, len(states), _FAN_IN)
            ]
        total: State | _Failure = states[0].compute()
        if isinstance(total, _Failure):
            raise total.error()
        return total

    def sample(self, most: int) -> Array:
        return np.asarray(self._array[:most].compute())


@dataclass(frozen=True)
class _Work:
    """What every task of a pass does."""

    part: Callable[[int, int, Array], Any]
    merge: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class _Failure:
    """An error as a value: its kind and its message, which names no record; nothing of other kinds but their name."""

    kind: type[DPManifoldsError]
    message: str

    def error(self) -> DPManifoldsError:
        return self.kind(self.message)


def _part_of(work: _Work, number: int, chunk: Array) -> Any:
    """The state of one chunk; blocks are numbered so that the first of each chunk comes before all others."""
    try:
        source = ArraySource(np.asarray(chunk), threads=1)
        return source.reduce(
            lambda block, first, raw: work.part(number if block == 0 else _LATER, first, raw), work.merge
        )
    except DPManifoldsError as refusal:
        return _Failure(type(refusal), str(refusal))
    except Exception as error:
        return _Failure(DPManifoldsError, f"a part of the records could not be processed ({type(error).__name__}).")


_LATER = 1 << 40


def _merged(work: _Work, states: list[Any]) -> Any:
    failure = next((state for state in states if isinstance(state, _Failure)), None)
    if failure is not None:
        return failure
    try:
        return total_of(states, work.merge)
    except Exception as error:
        return _Failure(DPManifoldsError, f"parts of the statistic could not be merged ({type(error).__name__}).")
