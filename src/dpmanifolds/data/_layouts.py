"""How tables write a symmetric matrix in one row."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds._validate import choice
from dpmanifolds.errors import ArgumentError

__all__ = ["LAYOUTS", "matrices_from_columns"]

LAYOUTS = ("full", "upper", "lower")


def matrices_from_columns(columns: np.ndarray, layout: str, size: int | None = None) -> np.ndarray:
    """Matrices (n, k, k) from rows of k² numbers ("full") or k(k+1)/2 of them, a triangle row by row.

    "upper" is xx, xy, xz, yy, yz, zz; "lower" is xx, yx, yy, zx, zy, zz. A full matrix is taken as it is.
    """
    choice("layout", layout, LAYOUTS)
    count, width = columns.shape
    k = math.isqrt(width) if layout == "full" else (math.isqrt(8 * width + 1) - 1) // 2
    needed = k * k if layout == "full" else k * (k + 1) // 2
    if k == 0 or needed != width or size not in (None, k):
        wanted = "a square number" if layout == "full" else "k(k+1)/2"
        given = f"{width} columns"
        raise ArgumentError(
            f"layout={layout!r} needs {wanted} of columns"
            + (f" for matrices of size {size}" if size is not None else "")
            + f"; the file has {given}."
        )
    if layout == "full":
        return columns.reshape(count, k, k)
    rows, places = np.triu_indices(k) if layout == "upper" else np.tril_indices(k)
    matrices = np.empty((count, k, k), dtype=columns.dtype)
    matrices[:, rows, places] = columns
    matrices[:, places, rows] = columns
    return matrices
