"""Points from files: .npy, .npz, .csv, .tsv, .mat, .tps, .nii, .nii.gz; with extras .parquet, .zarr and .fif."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer, shown
from dpmanifolds.data._array_files import FileRecords, is_store, open_zarr, read_fif, read_mat, read_npy, read_npz
from dpmanifolds.data._files import DEFAULT_LIMIT, checked_path
from dpmanifolds.data._tables import (
    LAYOUTS,
    matrices_from_columns,
    parquet_columns,
    read_parquet,
    read_parquet_labels,
    read_text_labels,
    read_text_table,
    text_columns,
)
from dpmanifolds.data.nifti import read_tensors
from dpmanifolds.data.tps import read_tps
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold

KINDS = (
    *(".npy", ".npz", ".mat", ".csv", ".tsv", ".tps", ".nii", ".nii.gz"),
    *(".parquet", ".zarr", ".zarr.zip", ".fif"),
)
"""Endings of the names of files that are read."""
_TABLES = (".csv", ".tsv", ".parquet")


def read_points(
    path: Any,
    *,
    manifold: Manifold | None = None,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    layout: str | None = None,
    header: str = "auto",
    record_axis: int = 0,
    mask: Any = None,
    picks: str | Sequence[str] | None = None,
    missing: str = "raise",
    max_bytes: int = DEFAULT_LIMIT,
) -> np.ndarray:
    """The records of a file as an array (n, …), by the ending of its name; files are data, nothing in them is run.

    - .npy, .npz, .mat, .zarr, .zarr.zip: an array of numbers; `key` names one of several, `record_axis` its axis of
      records (MATLAB users often keep them last, record_axis=-1).
    - .csv, .tsv, .parquet: one record per row, numbers only (Parquet: lists of one length, too); `columns` names those
      to take, in this order. In text, header="auto" takes a first line without a number for names, and refuses one of
      both: it may be a record ("yes" and "no" say it outright).
    - .tps: landmarks; `missing` as in `read_tps`. .nii, .nii.gz: tensors; `layout` and `mask` as in `read_tensors`.
    - -cov.fif, -epo.fif: one covariance, or one per epoch, in V² or T²; `picks` names channels, or their type.

    layout="full", "upper" or "lower" turns rows of numbers into symmetric matrices. With a `manifold` the rows of a
    table take the shape of its points (landmarks as x1, y1, x2, y2, …), and the result is checked for shape, not for
    lying on the manifold: `dpmanifolds.validate` does that. Files larger than `max_bytes`, before or after
    decompression, are refused (Zarr: by what the store says of itself). Every failure is one of this package's errors,
    and quotes no record. .parquet, .zarr and .fif need the extras parquet, zarr and mne of this package.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "covariances.npz"
    ...     np.savez(path, rest=dpm.SPD(4).random_point(10, rng=0), move=dpm.SPD(4).random_point(20, rng=1))
    ...     dpm.read_points(path, key="move", manifold=dpm.SPD(4)).shape
    (20, 4, 4)
    """
    limit = positive_integer("max_bytes", max_bytes)
    if not isinstance(record_axis, int | np.integer):
        raise ArgumentError(
            f"must be a whole number, such as 0 or -1; got {shown(record_axis)}.", argument="record_axis"
        )
    if manifold is not None:
        check_manifold(manifold)
    if layout is not None:
        choice("layout", layout, LAYOUTS)
    found = _found(path, limit)
    kind = _kind(found)
    if columns is not None and kind not in _TABLES:
        raise ArgumentError(f"is for tables ({', '.join(_TABLES)}); got {found.name!r}.", argument="columns")
    if kind in (".zarr", ".zarr.zip"):
        return np.asarray(open_store(found, key, record_axis, layout, manifold, limit))
    if kind == ".tps":
        points = read_tps(found, missing=missing, max_bytes=limit).landmarks
    elif kind in (".nii", ".nii.gz"):
        if layout is None:
            raise ArgumentError(
                "tensors need layout='upper' (xx,xy,xz,yy,yz,zz), 'lower' (xx,xy,yy,xz,yz,zz) or 'full'."
            )
        points = read_tensors(found, layout=layout, mask=mask, max_bytes=limit)
    elif kind == ".fif":
        points = read_fif(found, picks, limit)
    elif kind == ".parquet":
        points = read_parquet(found, columns, limit)
    elif kind in _TABLES:
        points = read_text_table(found, header, columns, limit)
    else:
        points = _read_array(found, kind, key, limit)
        points = np.moveaxis(points, _checked_axis(points, record_axis), 0)
    return _as_points(points, None if kind in (".tps", ".nii", ".nii.gz") else layout, manifold)


def open_store(
    path: Path,
    key: str | None,
    record_axis: int,
    layout: str | None,
    manifold: Manifold | None = None,
    limit: int = DEFAULT_LIMIT,
) -> FileRecords:
    """The records of a Zarr store, left there, to be read in slices."""
    array = open_zarr(path, key, limit)
    axis = _checked_axis(array, record_axis)
    return FileRecords(array, axis, lambda part: _as_points(part, layout, manifold), limit)


def read_labels(path: Any, column: str, *, header: str = "auto", max_bytes: int = DEFAULT_LIMIT) -> np.ndarray:
    """One column of a table (.csv, .tsv, .parquet) as text: names of persons or classes, one for each record.

    `header` as in `read_points`.

    >>> import tempfile
    >>> from dpmanifolds.data import read_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "visits.csv"
    ...     _ = path.write_text("person,x\\nann,1\\nbob,2\\nann,3\\n")
    ...     read_labels(path, "person").tolist(), read_points(path, columns=["x"]).shape
    (['ann', 'bob', 'ann'], (3, 1))
    """
    limit = positive_integer("max_bytes", max_bytes)
    found = _found(path, limit)
    kind = _kind(found)
    if kind not in _TABLES:
        raise ArgumentError(f"are read from tables ({', '.join(_TABLES)}); got {found.name!r}.", argument="columns")
    if kind == ".parquet":
        return read_parquet_labels(found, column, limit)
    return read_text_labels(found, column, header, limit)


def table_columns(path: Any, *, header: str = "auto", max_bytes: int = DEFAULT_LIMIT) -> list[str]:
    """The names of the columns of a table; none for other kinds of files, and where a text has no line of names."""
    limit = positive_integer("max_bytes", max_bytes)
    found = _found(path, limit)
    kind = _kind(found)
    if kind not in _TABLES:
        return []
    return parquet_columns(found) if kind == ".parquet" else text_columns(found, header, limit)


def _found(path: Any, limit: int) -> Path:
    """An existing file of at most so many bytes, or a Zarr store."""
    if isinstance(path, str | Path) and "\0" not in str(path) and is_store(Path(path)) and Path(path).is_dir():
        return Path(path)
    return checked_path(path, limit)


def _checked_axis(array: Any, axis: int) -> int:
    if array.ndim == 0 or not -array.ndim <= axis < array.ndim:
        raise ArgumentError(f"the array has shape {array.shape}, and no axis record_axis={axis}.")
    return int(axis) % int(array.ndim)


def _as_points(array: np.ndarray, layout: str | None, manifold: Manifold | None) -> np.ndarray:
    if layout is not None:
        if array.ndim != 2:
            raise ArgumentError(
                f"is for rows of numbers; the array has shape {array.shape} already.", argument="layout"
            )
        array = matrices_from_columns(array, layout)
    return array if manifold is None else as_records(array, manifold)


def _kind(path: Path) -> str:
    name = path.name.lower()
    for kind in reversed(KINDS):
        if name.endswith(kind):
            return kind
    raise ArgumentError(f"the name of the file must end in one of {', '.join(KINDS)}; got {path.name!r}.")


def _read_array(path: Path, kind: str, key: str | None, limit: int) -> np.ndarray:
    if kind == ".npy":
        return read_npy(path, limit)
    return read_npz(path, key, limit) if kind == ".npz" else read_mat(path, key, limit)


def as_records(array: np.ndarray, manifold: Manifold) -> np.ndarray:
    """The records in the shape of the manifold's points, rows of a table reshaped to it."""
    if array.ndim == 2 and array.dtype.kind != "c":
        shape = manifold.record_shapes[-1]
        if array.shape[1:] != shape and array.shape[1] == int(np.prod(shape)):
            array = array.reshape(-1, *shape)
    points: np.ndarray = manifold.as_points(array)
    leading = manifold.batch_shape(points)
    if len(leading) != 1:
        raise ArgumentError(f"the file must hold one axis of records of {manifold!r}; it has leading axes {leading}.")
    return points
