"""Diffusion tensors from and to NIfTI files (.nii and .nii.gz, versions 1 and 2), without further packages."""

from __future__ import annotations

import gzip
import math
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from dpmanifolds._validate import numeric_array, positive_integer
from dpmanifolds.data._files import DEFAULT_LIMIT, check_size, checked_path, decoding, read_exactly
from dpmanifolds.data._tables import matrices_from_columns
from dpmanifolds.errors import ArgumentError

_TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8"}


def read_tensors(path: Any, *, layout: str, mask: Any = None, max_bytes: int = DEFAULT_LIMIT) -> np.ndarray:
    """Symmetric 3×3 tensors (n, 3, 3), one per voxel, in the order of the voxels (last axis fastest).

    `layout` says how the last axis of the file holds a tensor, as programs differ: "upper" for xx,xy,xz,yy,yz,zz
    (FSL), "lower" for xx,xy,yy,xz,yz,zz (the NIfTI standard, DIPY, ANTs), "full" for nine numbers. `mask`, an array
    of the voxels' shape or a NIfTI file with one, keeps the voxels where it is not zero; without it all are kept, those
    outside the body, which are not positive definite, included. A mask made from the tensors themselves makes n
    private: draw it from the anatomy of an atlas, or use n of a public region.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpmanifolds.data import read_tensors, write_nifti
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_nifti(Path(folder) / "tensors.nii", np.tile([3.0, 1.0, 0.0, 2.0, 0.0, 1.0], (2, 2, 2, 1)))
    ...     inside = np.zeros((2, 2, 2))
    ...     inside[0] = 1
    ...     tensors = read_tensors(path, layout="upper", mask=inside)
    >>> tensors.shape, tensors[0].tolist()
    ((4, 3, 3), [[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    """
    limit = positive_integer("max_bytes", max_bytes)
    image = read_nifti(path, max_bytes=limit)
    if image.ndim == 5 and image.shape[3] == 1:
        image = image[:, :, :, 0]
    if image.ndim != 4:
        raise ArgumentError(f"tensors must be stored as (x, y, z, components); the file has shape {image.shape}.")
    voxels = np.reshape(image, (-1, image.shape[3]))
    if mask is not None:
        kept = np.asarray(mask) if isinstance(mask, np.ndarray) else read_nifti(mask, max_bytes=limit)
        kept = kept.reshape(image.shape[:3]) if kept.size == voxels.shape[0] else kept
        if kept.shape != image.shape[:3]:
            raise ArgumentError(
                f"must have the shape {image.shape[:3]} of the voxels; got {kept.shape}.", argument="mask"
            )
        voxels = voxels[kept.ravel() != 0]
    return matrices_from_columns(voxels, layout, size=3)


def read_nifti(path: Any, *, max_bytes: int = DEFAULT_LIMIT) -> np.ndarray:
    """The numbers of a NIfTI file as float64, with its slope and intercept applied.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from dpmanifolds.data import read_nifti, write_nifti
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_nifti(write_nifti(Path(folder) / "map.nii.gz", np.arange(8.0).reshape(2, 2, 2)))[1].tolist()
    [[4.0, 5.0], [6.0, 7.0]]
    """
    limit = positive_integer("max_bytes", max_bytes)
    with _opened(path, limit) as stream:
        return _read_image(stream, limit)


@contextmanager
def _opened(path: Any, limit: int) -> Iterator[IO[bytes]]:
    found = checked_path(path, limit)
    opener: Any = gzip.open if found.suffix == ".gz" else open
    with decoding(found, "a NIfTI file"), opener(found, "rb") as stream:
        yield stream


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int
    slope: float
    intercept: float


def _read_image(stream: IO[bytes], limit: int) -> np.ndarray:
    head = stream.read(540)
    header = _header(head)
    count = math.prod(header.shape)
    check_size(8 * count, limit)
    check_size(header.offset, limit)
    if header.offset < 348:
        raise ArgumentError("the numbers of a NIfTI file cannot begin inside its header.")
    size = count * header.dtype.itemsize
    rest = read_exactly(stream, max(0, header.offset + size - len(head)))
    content = (head + rest)[header.offset : header.offset + size]
    values = np.frombuffer(content, dtype=header.dtype).reshape(header.shape, order="F").astype(np.float64)
    if header.slope not in (0.0, 1.0) or header.intercept != 0.0:
        values = values * (header.slope or 1.0) + header.intercept
    return np.ascontiguousarray(values)


def _header(head: bytes) -> _Header:
    for order in "<>":
        kind = struct.unpack_from(order + "i", head, 0)[0]
        if kind == 348 and head[344:348] == b"n+1\0":
            dimensions = struct.unpack_from(order + "8h", head, 40)
            code = struct.unpack_from(order + "h", head, 70)[0]
            offset, slope, intercept = struct.unpack_from(order + "3f", head, 108)
        elif kind == 540 and head[4:8] == b"n+2\0":
            dimensions = struct.unpack_from(order + "8q", head, 16)
            code = struct.unpack_from(order + "h", head, 12)[0]
            offset, slope, intercept = struct.unpack_from(order + "q2d", head, 168)
        else:
            continue
        if not (1 <= dimensions[0] <= 7 and all(size > 0 for size in dimensions[1 : 1 + dimensions[0]])):
            raise ArgumentError("the NIfTI header gives no valid shape.")
        if code not in _TYPES:
            raise ArgumentError(f"the NIfTI file holds numbers of type code {code}; real numbers are needed.")
        finite = math.isfinite(slope) and math.isfinite(intercept)
        slope, intercept = (slope, intercept) if finite else (1.0, 0.0)
        return _Header(
            tuple(dimensions[1 : 1 + dimensions[0]]), np.dtype(order + _TYPES[code]), int(offset), slope, intercept
        )
    raise ArgumentError(
        "the file has no NIfTI header (a pair of .hdr and .img files must be joined to one .nii first)."
    )


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
    with _opened(path, DEFAULT_LIMIT) as stream:
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
    content = _written_header(array.shape, matrix) + array.tobytes(order="F")
    try:
        with place.open("xb") as stream:
            # no name and no time in the compressed file
            stream.write(gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)
    except FileExistsError:
        raise ArgumentError(f"{str(place)!r} exists; name another file.") from None
    return place


def _written_header(shape: tuple[int, ...], affine: np.ndarray) -> bytes:
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
