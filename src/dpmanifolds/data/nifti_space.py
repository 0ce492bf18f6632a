"""Where the voxels of a NIfTI file lie in space, and writing such files.

>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> from dpmanifolds.data import read_affine, read_nifti, write_nifti
>>> with tempfile.TemporaryDirectory() as folder:
...     path = write_nifti(Path(folder) / "map.nii.gz", np.ones((2, 3, 4)), affine=np.diag([2.0, 2.0, 2.0, 1.0]))
...     read_nifti(path).shape, read_affine(path).diagonal().tolist()
((2, 3, 4), [2.0, 2.0, 2.0, 1.0])
"""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import numeric_array
from dpmanifolds.data._files import DEFAULT_LIMIT, checked_path, decoding
from dpmanifolds.data._layouts import LAYOUTS
from dpmanifolds.errors import ArgumentError

__all__ = ["columns_from_matrices", "read_affine", "write_nifti"]

_OFFSET = 352
_MM_AND_SECONDS = 10


def read_affine(path: Any) -> np.ndarray:
    """The 4×4 matrix from voxel numbers to millimetres: the sform, else the qform, else the size of the voxels.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpmanifolds.data import read_affine, write_nifti
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_nifti(Path(folder) / "map.nii", np.ones((2, 2, 2)), affine=np.diag([1.5, 1.5, 3.0, 1.0]))
    ...     read_affine(path).diagonal().tolist()
    [1.5, 1.5, 3.0, 1.0]
    """
    found = checked_path(path, DEFAULT_LIMIT)
    opener: Any = gzip.open if found.suffix == ".gz" else open
    with decoding(found, "a NIfTI file"), opener(found, "rb") as stream:
        return _affine(stream.read(540))


def _affine(head: bytes) -> np.ndarray:
    for order in "<>":
        kind = struct.unpack_from(order + "i", head, 0)[0]
        if kind == 348:
            sizes = struct.unpack_from(order + "8f", head, 76)
            codes = struct.unpack_from(order + "2h", head, 252)
            turn = struct.unpack_from(order + "6f", head, 256)
            rows = struct.unpack_from(order + "12f", head, 280)
        elif kind == 540:
            sizes = struct.unpack_from(order + "8d", head, 104)
            codes = struct.unpack_from(order + "2i", head, 344)
            turn = struct.unpack_from(order + "6d", head, 352)
            rows = struct.unpack_from(order + "12d", head, 400)
        else:
            continue
        affine = np.eye(4)
        if codes[1] > 0:
            affine[:3] = np.reshape(rows, (3, 4))
        elif codes[0] > 0:
            # the sign of pixdim[0] says whether the third axis is mirrored
            mirror = np.array([1.0, 1.0, -1.0 if sizes[0] < 0 else 1.0])
            affine[:3, :3] = _rotation(*turn[:3]) * (np.asarray(sizes[1:4]) * mirror)
            affine[:3, 3] = turn[3:]
        else:
            affine[:3, :3] = np.diag([size if size > 0 else 1.0 for size in sizes[1:4]])
        return affine
    raise ArgumentError("the file has no NIfTI header.")


def _rotation(b: float, c: float, d: float) -> np.ndarray:
    """Of the unit quaternion (a, b, c, d) with a ≥ 0."""
    a = np.sqrt(max(0.0, 1.0 - b * b - c * c - d * d))
    return np.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c],
        ]
    )


def write_nifti(path: Any, values: Any, *, affine: Any = None) -> Path:
    """Write an array (x, y, z) or (x, y, z, components) as NIfTI-1 in double precision; a file that exists is kept.

    `affine` is a 4×4 matrix from voxel numbers to millimetres, such as `read_affine` gives. Names end in .nii or
    .nii.gz.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpmanifolds.data import write_nifti
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_nifti(Path(folder) / "mean.nii.gz", np.zeros((4, 4, 2, 6))).name
    'mean.nii.gz'
    """
    array = np.asarray(numeric_array("values", values), dtype="<f8")
    if not 1 <= array.ndim <= 7 or max(array.shape, default=0) > 32767:
        raise ArgumentError(f"values must have 1 to 7 axes of at most 32767 entries; got shape {array.shape}.")
    matrix = np.eye(4) if affine is None else np.asarray(affine, dtype=float)
    if matrix.shape != (4, 4) or not np.all(np.isfinite(matrix)):
        raise ArgumentError("affine must be a 4×4 matrix of finite numbers.")
    place = Path(os.fspath(path))
    if not place.name.lower().endswith((".nii", ".nii.gz")):
        raise ArgumentError(f"the name of the file must end in .nii or .nii.gz; got {place.name!r}.")
    content = _header(array.shape, matrix) + array.tobytes(order="F")
    try:
        with place.open("xb") as stream:
            # no name and no time in the compressed file
            stream.write(gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)
    except FileExistsError:
        raise ArgumentError(f"{str(place)!r} exists; name another file.") from None
    return place


def _header(shape: tuple[int, ...], affine: np.ndarray) -> bytes:
    head = bytearray(_OFFSET)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, len(shape), *shape, *(1,) * (7 - len(shape)))
    struct.pack_into("<hh", head, 70, 64, 64)
    sizes = np.linalg.norm(affine[:3, :3], axis=0)
    struct.pack_into("<8f", head, 76, 1.0, *sizes, 1.0, 1.0, 1.0, 1.0)
    struct.pack_into("<3f", head, 108, _OFFSET, 1.0, 0.0)
    struct.pack_into("<b", head, 123, _MM_AND_SECONDS)
    struct.pack_into("<2h", head, 252, 0, 2)
    struct.pack_into("<12f", head, 280, *affine[:3].ravel())
    head[344:348] = b"n+1\0"
    return bytes(head)


def columns_from_matrices(matrices: np.ndarray, layout: str) -> np.ndarray:
    """Rows of k² or k(k+1)/2 numbers from symmetric matrices (n, k, k): the way back of the readers' `layout`.

    >>> columns_from_matrices(np.array([[[1.0, 2.0], [2.0, 3.0]]]), "upper").tolist()
    [[1.0, 2.0, 3.0]]
    """
    if layout not in LAYOUTS:
        raise ArgumentError(f"must be one of {', '.join(map(repr, LAYOUTS))}; got {layout!r}.", argument="layout")
    k = matrices.shape[-1]
    if layout == "full":
        return matrices.reshape(*matrices.shape[:-2], k * k)
    rows, places = np.triu_indices(k) if layout == "upper" else np.tril_indices(k)
    columns: np.ndarray = matrices[..., rows, places]
    return columns
