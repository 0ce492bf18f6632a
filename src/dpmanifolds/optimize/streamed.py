"""Records by their numbers."""

from __future__ import annotations

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, namespace

__all__ = ["taken"]


def taken(records: Array, chosen: np.ndarray) -> Array:
    """The records of these numbers, in every part of a tuple."""
    if isinstance(records, tuple):
        return tuple(taken(part, chosen) for part in records)
    if is_numpy(records):
        return records[chosen]
    xp = namespace(records)
    return xp.take(records, xp.asarray(chosen), axis=0)
