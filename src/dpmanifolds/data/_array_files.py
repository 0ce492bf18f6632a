"""Arrays of numbers from NumPy's files, never a pickle."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from dpmanifolds.data._files import check_size, chosen_name, decoding, read_exactly
from dpmanifolds.errors import ArgumentError

__all__ = ["read_npy", "read_npz"]

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(path: Path, limit: int) -> np.ndarray:
    """The array of a .npy file."""
    with decoding(path, "a .npy file of numbers"), path.open("rb") as stream:
        return _read_array(stream, limit)


def read_npz(path: Path, key: str | None, limit: int) -> np.ndarray:
    """One array of a .npz file, chosen by its name."""
    with decoding(path, "a .npz file of numbers"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        chosen = chosen_name(path, names, key)
        with archive.open(f"{chosen}.npy") as stream:
            return _read_array(stream, limit)


def _read_array(stream: IO[bytes], limit: int) -> np.ndarray:
    """One array in NumPy's own format; its header is believed only as far as the bytes that follow."""
    shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    if dtype.kind not in "biufc":
        raise ArgumentError(f"the array must hold numbers; its dtype is {dtype}.")
    size = math.prod(shape) * dtype.itemsize
    check_size(size, limit)
    content = read_exactly(stream, size)
    return np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if fortran else "C")
