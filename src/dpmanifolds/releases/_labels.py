"""Names of persons and classes, one for each record.

>>> from dpmanifolds.releases._labels import label_array
>>> label_array("labels", ["left", "right", "left"]).shape
(3,)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError

__all__ = ["class_names", "label_array"]

_KINDS = "biufSUOmM"


def label_array(name: str, labels: Any) -> np.ndarray:
    """Labels as an array that can be sorted; the error names no label."""
    try:
        array = np.asarray(labels)
        if array.dtype.kind in _KINDS:
            np.unique(array)
            return array
    except (TypeError, ValueError):
        pass
    raise ArgumentError(f"{name} must be a list or an array of numbers or of strings that can be sorted.") from None


def class_names(classes: Sequence[Any]) -> tuple[Any, ...]:
    """The listed classes, each once."""
    try:
        names = tuple(classes)
        once = 0 < len(set(names)) == len(names)
    except TypeError:
        raise ArgumentError(f"classes must list the labels; got {type(classes).__name__}.") from None
    if not once:
        raise ArgumentError(f"classes must list each label once; got {list(names)!r}.")
    return names
