"""Points as trees: an array, or a tuple of trees where the space is a product. One map serves them all.

>>> import numpy as np
>>> map_parts(lambda part: 2 * part, (np.array([1.0]), np.array([2.0, 3.0])))
(array([2.]), array([4., 6.]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import device

from dpmanifolds._arrays import Array, is_numpy, like, namespace, to_numpy

_DOUBLES = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def has_parts(point: Any) -> bool:
    """Whether a point, or a block of records, is a tuple of parts."""
    return isinstance(point, tuple)


def map_parts(function: Callable[..., Any], point: Any, *others: Any) -> Any:
    """function(array, …) of each array of a point, and of those at the same place of the others."""
    if has_parts(point):
        return tuple(map_parts(function, *parts) for parts in zip(point, *others, strict=True))
    return function(point, *others)


def leaves(point: Any) -> list[Array]:
    """The arrays inside a point, from left to right."""
    return [leaf for part in point for leaf in leaves(part)] if has_parts(point) else [point]


def count_records(block: Any) -> int:
    """How many records a block has along its first axis."""
    return int(leaves(block)[0].shape[0])


def as_block(point: Any) -> Any:
    """One point as a block of one."""
    return map_parts(lambda part: part[None, ...], point)


def records_at(block: Any, index: Any) -> Any:
    """The records at an index or slice of the first axis."""

    def at(part: Array) -> Array:
        # some libraries copy for a slice
        whole = isinstance(index, slice) and index == slice(0, part.shape[0])
        return part if whole else part[index, ...]

    return map_parts(at, block)


def cut_tile(
    block: Any,
    first: int,
    size: int,
    filler: Any = None,
    *,
    in_rows: bool = False,
    in_columns: bool = False,
    in_doubles: bool = False,
) -> Any:
    """`size` records from number `first` on, in one shape and one memory layout whatever those of the block are.

    What is missing at its end is filled up with a public point, where there is one. NumPy's vectors lie one number of
    all records after the other, so that records are worked on side by side, unless wanted `in_rows`; matrices lie one
    after the other, unless wanted `in_columns`. The order of NumPy's sums depends on it. Wanted `in_doubles`, its
    floats become such in the same go over memory.
    """

    def cut(part: Array, public: Array | None = None) -> Array:
        count = int(part.shape[0])
        # some libraries copy for a slice
        tile = part if first == 0 and count <= size else part[first : min(first + size, count), ...]
        missing = size - int(tile.shape[0])
        if public is not None and missing:
            xp, middle = namespace(part), public if is_numpy(part) else like(to_numpy(public), part)
            tile = xp.concat([tile, xp.broadcast_to(middle[None, ...], (missing, *middle.shape))], axis=0)
        if not is_numpy(tile):
            return tile
        columns = in_columns or (tile.ndim == 2 and not in_rows)
        wanted = _DOUBLES.get(tile.dtype.kind, tile.dtype) if in_doubles else tile.dtype
        return np.asarray(tile, dtype=wanted, order="F" if columns else "C")

    return map_parts(cut, block) if filler is None else map_parts(cut, block, filler)


def taken(block: Any, chosen: np.ndarray) -> Any:
    """The records of these numbers."""

    def at(part: Array) -> Array:
        if is_numpy(part):
            return part[chosen]
        xp = namespace(part)
        return xp.take(part, xp.asarray(chosen, device=device(part)), axis=0)

    return map_parts(at, block)


def on_host(point: Any) -> Any:
    """NumPy arrays: views, or copies of what lives on a device."""
    return map_parts(to_numpy, point)


def host(point: Any) -> Any:
    """A NumPy point in double precision, a copy.

    >>> host(np.eye(2, dtype=np.float32)).dtype.name
    'float64'
    """

    def copied(part: Array) -> np.ndarray:
        array = to_numpy(part)
        return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)

    return map_parts(copied, point)


def in_double(block: Any) -> Any:
    """The block in double precision, in its own library: float32 is read exactly."""

    def wide(part: Array) -> Array:
        xp = namespace(part)
        wanted = xp.complex128 if xp.isdtype(part.dtype, "complex floating") else xp.float64
        return part if part.dtype == wanted else xp.astype(part, wanted)

    return map_parts(wide, block)


def like_parts(point: Any, block: Any) -> Any:
    """A public point in the library, on the device and in the precision of the records, part by part."""
    return map_parts(lambda part, reference: like(to_numpy(part), reference), point, block)


def replace_rows(block: Any, other: Any, rows: Array) -> Any:
    """The block with a public point, or the records of another block, in place of some records."""

    def replaced(part: Array, another: Array) -> Array:
        xp = namespace(part)
        return xp.where(xp.reshape(rows, (-1,) + (1,) * (part.ndim - 1)), another, part)

    return map_parts(replaced, block, other)


def join(*blocks: Any) -> Any:
    """Blocks of records, one after the other."""
    return map_parts(lambda *parts: parts[0] if len(parts) == 1 else namespace(*parts).concat(parts, axis=0), *blocks)


def stack(*points: Any) -> Any:
    """Points along a new first axis."""
    return map_parts(lambda *parts: namespace(*parts).stack(parts), *points)


def choose_points(condition: Array, a: Any, b: Any) -> Any:
    """One or the other, point by point."""

    def chosen(one: Array, other: Array) -> Array:
        extra = (None,) * (one.ndim - condition.ndim)
        return namespace(one, other).where(condition[(..., *extra)], one, other)

    return map_parts(chosen, a, b)
