"""Points from files: .npy, .npz, .csv, .tsv, .mat, .tps, .nii and .nii.gz.

>>> import tempfile
>>> from pathlib import Path
>>> from dpmanifolds import SPD
>>> from dpmanifolds.data import read_points
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "tensors.csv"
...     _ = path.write_text("xx,xy,yy\\n2,1,3\\n1,0,1\\n")
...     read_points(path, manifold=SPD(2), layout="upper")[0].tolist()
[[2.0, 1.0], [1.0, 3.0]]
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer
from dpmanifolds.data._array_files import read_npy, read_npz
from dpmanifolds.data._files import DEFAULT_LIMIT, checked_path, decoding, read_all
from dpmanifolds.data._layouts import LAYOUTS, matrices_from_columns
from dpmanifolds.data._matlab import read_mat
from dpmanifolds.data.nifti import read_tensors
from dpmanifolds.data.tps import read_tps
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold, PlanarShapes

__all__ = ["as_records", "read_points"]

_KINDS = (".npy", ".npz", ".csv", ".tsv", ".mat", ".tps", ".nii", ".nii.gz")


def read_points(
    path: Any,
    *,
    manifold: Manifold | None = None,
    key: str | None = None,
    layout: str | None = None,
    header: str = "auto",
    record_axis: int = 0,
    mask: Any = None,
    missing: str = "raise",
    max_bytes: int = DEFAULT_LIMIT,
) -> np.ndarray:
    """The records of a file as an array (n, …), by the ending of its name; files are data, nothing in them is run.

    - .npy, .npz, .mat: an array of numbers; `key` names one of several, `record_axis` its axis of records (MATLAB users
      often keep them last, record_axis=-1).
    - .csv, .tsv: one record per row, numbers only; header="auto" skips a first line that is not all numbers ("yes" and
      "no" say it outright).
    - .tps: landmarks; `missing` as in `read_tps`. .nii, .nii.gz: tensors; `layout` and `mask` as in `read_tensors`.

    layout="full", "upper" or "lower" turns rows of numbers into symmetric matrices. With a `manifold` the rows of a
    table take the shape of its points (landmarks as x1, y1, x2, y2, …), and the result is checked for shape, not for
    lying on the manifold: `dpmanifolds.validate` does that. Files larger than `max_bytes`, before or after
    decompression, are refused. Every failure is one of this package's errors, and quotes no record.
    """
    limit = positive_integer("max_bytes", max_bytes)
    if not isinstance(record_axis, int | np.integer):
        raise ArgumentError(f"record_axis must be a whole number, such as 0 or -1; got {record_axis!r}.")
    if manifold is not None and not isinstance(manifold, Manifold):
        raise ArgumentError(f"manifold must be a Manifold such as SPD(3), or None; got {manifold!r}.")
    if layout is not None:
        choice("layout", layout, LAYOUTS)
    found = checked_path(path, limit)
    kind = _kind(found)
    if kind == ".tps":
        array = read_tps(found, missing=missing, max_bytes=limit).landmarks
    elif kind in (".nii", ".nii.gz"):
        if layout is None:
            raise ArgumentError(
                "tensors need layout='upper' (xx,xy,xz,yy,yz,zz), 'lower' (xx,xy,yy,xz,yz,zz) or 'full'."
            )
        array = read_tensors(found, layout=layout, mask=mask, max_bytes=limit)
    elif kind in (".csv", ".tsv"):
        array = _read_table(found, "," if kind == ".csv" else "\t", header, limit)
    else:
        array = _read_array(found, kind, key, limit)
        if array.ndim == 0 or not -array.ndim <= record_axis < array.ndim:
            raise ArgumentError(f"the array has shape {array.shape}, and no axis record_axis={record_axis}.")
        array = np.moveaxis(array, record_axis, 0)
    if layout is not None and kind not in (".tps", ".nii", ".nii.gz"):
        if array.ndim != 2:
            raise ArgumentError(f"layout is for rows of numbers; the array has shape {array.shape} already.")
        array = matrices_from_columns(array, layout)
    return array if manifold is None else as_records(array, manifold)


def _kind(path: Path) -> str:
    name = path.name.lower()
    for kind in reversed(_KINDS):
        if name.endswith(kind):
            return kind
    raise ArgumentError(f"the name of the file must end in one of {', '.join(_KINDS)}; got {path.name!r}.")


def _read_array(path: Path, kind: str, key: str | None, limit: int) -> np.ndarray:
    if kind == ".npy":
        return read_npy(path, limit)
    return read_npz(path, key, limit) if kind == ".npz" else read_mat(path, key, limit)


def _read_table(path: Path, delimiter: str, header: str, limit: int) -> np.ndarray:
    choice("header", header, ("auto", "yes", "no"))
    with decoding(path, "a table of numbers, the same number in every row and none missing"), warnings.catch_warnings():
        # a table without rows is an error here
        warnings.simplefilter("error")
        text = read_all(path, limit).decode("utf-8-sig")
        first = text.lstrip().split("\n", 1)[0]
        skip = header == "yes" or (header == "auto" and not all(map(_is_number, first.split(delimiter))))
        table: np.ndarray = np.loadtxt(
            io.StringIO(text.lstrip()), delimiter=delimiter, comments=None, ndmin=2, skiprows=int(skip)
        )
        return table


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().strip('"'))
    except ValueError:
        return False
    return True


def as_records(array: np.ndarray, manifold: Manifold) -> np.ndarray:
    """The records in the shape of the manifold's points, rows of a table reshaped to it."""
    if array.ndim == 2 and array.dtype.kind != "c":
        shape = _row_shape(manifold)
        if array.shape[1:] != shape and array.shape[1] == int(np.prod(shape)):
            array = array.reshape(-1, *shape)
    points: np.ndarray = manifold.as_points(array)
    leading = manifold.batch_shape(points)
    if len(leading) != 1:
        raise ArgumentError(f"the file must hold one axis of records of {manifold!r}; it has leading axes {leading}.")
    return points


def _row_shape(manifold: Manifold) -> tuple[int, ...]:
    return (manifold.k, 2) if isinstance(manifold, PlanarShapes) else manifold.point_shape
