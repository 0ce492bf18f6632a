"""Diffusion tensors from NIfTI files (.nii and .nii.gz, versions 1 and 2), without further packages.

>>> import struct, tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> from dpmanifolds.data import read_tensors
>>> header = bytearray(352)
>>> struct.pack_into("<i", header, 0, 348)
>>> struct.pack_into("<8h", header, 40, 4, 2, 1, 1, 6, 1, 1, 1)
>>> struct.pack_into("<hh", header, 70, 16, 32)
>>> struct.pack_into("<f", header, 108, 352)
>>> header[344:348] = b"n+1\\0"
>>> voxels = np.array([[1, 0, 0, 1, 0, 1], [3, 1, 0, 2, 0, 1]], dtype="<f4")
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "tensors.nii"
...     _ = path.write_bytes(bytes(header) + voxels.tobytes(order="F"))
...     read_tensors(path, layout="upper")[1].tolist()
[[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
"""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from dpmanifolds._validate import positive_integer
from dpmanifolds.data._files import DEFAULT_LIMIT, check_size, checked_path, decoding, read_exactly
from dpmanifolds.data._layouts import matrices_from_columns
from dpmanifolds.errors import ArgumentError

__all__ = ["read_nifti", "read_tensors"]

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
    found = checked_path(path, limit)
    opener: Any = gzip.open if found.suffix == ".gz" else open
    with decoding(found, "a NIfTI file"), opener(found, "rb") as stream:
        return _read_image(stream, limit, found)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int
    slope: float
    intercept: float


def _read_image(stream: IO[bytes], limit: int, path: Path) -> np.ndarray:
    head = stream.read(540)
    header = _header(head)
    count = math.prod(header.shape)
    check_size(8 * count, limit)
    check_size(header.offset, limit)
    if header.offset < 348:
        raise ArgumentError(f"{path.name}: the numbers cannot begin inside the header.")
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
