"""Arrays of numbers from NumPy's and MATLAB's files, never a pickle."""

from __future__ import annotations

import math
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from dpmanifolds.data._files import check_size, decoding
from dpmanifolds.errors import ArgumentError

__all__ = ["read_mat", "read_npy", "read_npz"]

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npy(path: Path, limit: int) -> np.ndarray:
    """The array of a .npy file."""
    with decoding(path, "a .npy file of numbers"), path.open("rb") as stream:
        return _read_array(stream, limit)


def read_npz(path: Path, key: str | None, limit: int) -> np.ndarray:
    """One array of a .npz file, chosen by its name."""
    with decoding(path, "a .npz file of numbers"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        chosen = _chosen(path, names, key)
        with archive.open(f"{chosen}.npy") as stream:
            return _read_array(stream, limit)


def read_mat(path: Path, key: str | None, limit: int) -> np.ndarray:
    """One numeric variable of a MATLAB file up to version 7."""
    with path.open("rb") as stream:
        if stream.read(10) == b"MATLAB 7.3":
            raise ArgumentError(f"{path.name} is a MATLAB 7.3 file (HDF5). Save it again with the option '-v7'.")
    import scipy.io

    with decoding(path, "a MATLAB file of version 4 to 7"), warnings.catch_warnings():
        warnings.simplefilter("error")
        shapes = {name: shape for name, shape, _ in scipy.io.whosmat(path, appendmat=False)}
        chosen = _chosen(path, list(shapes), key)
        check_size(16 * math.prod(shapes[chosen]), limit)
        array = scipy.io.loadmat(path, variable_names=[chosen], appendmat=False)[chosen]
    return _numbers(array, path)


def _chosen(path: Path, names: list[str], key: str | None) -> str:
    listed = ", ".join(map(repr, names)) or "none"
    if key is None:
        if len(names) == 1:
            return names[0]
        raise ArgumentError(f"{path.name} holds several arrays (or none): pass key, one of {listed}.")
    if key not in names:
        raise ArgumentError(f"{path.name} holds no array {key!r}; it has {listed}.")
    return key


def _read_array(stream: IO[bytes], limit: int) -> np.ndarray:
    """One array in NumPy's own format; its header is believed only as far as the bytes that follow."""
    shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    if dtype.kind not in "biufc":
        raise ArgumentError(f"the array must hold numbers; its dtype is {dtype}.")
    size = math.prod(shape) * dtype.itemsize
    check_size(size, limit)
    content = stream.read(size)
    if len(content) != size:
        raise ArgumentError("the array is cut short: its header promises more numbers than follow.")
    return np.frombuffer(bytearray(content), dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _numbers(array: Any, path: Path) -> np.ndarray:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc":
        raise ArgumentError(f"{path.name}: the variable must be an ordinary array of numbers.")
    return array
