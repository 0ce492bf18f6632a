"""Arrays of numbers from files of NumPy, MATLAB, Zarr and MNE, never a pickle.

MATLAB's files of versions 5 to 7 are read in plain Python: scipy's reader ends the whole process on some damaged ones.
A file is a header of 128 bytes and a row of elements: a type, a size, and that many bytes. An element of type "matrix"
holds elements again (flags, dimensions, name, real part, imaginary part), one of type "compressed" holds one element,
deflated.

Zarr stores (zarr, an extra) are read slice by slice. A store names the codecs that its bytes go through, and one of
those that exist unpickles them: codecs, number types and sizes are read from the metadata, as text, and checked against
a list before the store is opened.

MNE's files (mne, an extra) give covariance matrices: -cov.fif holds one, -epo.fif one per epoch.
"""

from __future__ import annotations

import json
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import numpy as np

from dpmanifolds.data._files import check_size, chosen_name, decoding, need, read_all, read_exactly
from dpmanifolds.errors import ArgumentError

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


_MATRIX, _COMPRESSED = 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_COMPLEX = 0x800
# flags, dimensions and name come first and fit into this
_HEAD_BYTES = 4096


class _Element(NamedTuple):
    kind: int
    content: memoryview


class _Head(NamedTuple):
    """What the first three parts of a matrix element say."""

    name: str
    shape: tuple[int, ...]
    numbers: str | None
    is_complex: bool


def read_mat(path: Path, key: str | None, limit: int) -> np.ndarray:
    """One numeric variable of a MATLAB file of version 5, 6 or 7."""
    with decoding(path, "a MATLAB file of version 5 to 7"):
        content = memoryview(read_all(path, limit))
        if bytes(content[:10]) == b"MATLAB 7.3":
            raise ArgumentError(f"{path.name} is a MATLAB 7.3 file (HDF5). Save it again with the option '-v7'.")
        order = {b"IM": "<", b"MI": ">"}[bytes(content[126:128])]
        variables = {}
        for element in _elements(content[128:], order):
            head = _head(_opened(element, order, _HEAD_BYTES).content, order)
            variables[head.name] = (head, element)
        head, element = variables[chosen_name(path, list(variables), key)]
        if head.numbers is None:
            raise ArgumentError(f"{path.name}: the variable must be an ordinary array of numbers.")
        check_size(math.prod(head.shape) * 16, limit)
        return _array(head, _opened(element, order, limit).content, order)


def _elements(content: memoryview, order: str) -> Iterator[_Element]:
    """The elements in a row of bytes; the last may be cut off, as that of a head is."""
    place = 0
    while place + 8 <= len(content):
        kind, size = struct.unpack_from(order + "2I", content, place)
        if kind >> 16:
            # a small element: its size in the upper half of the type, its bytes in place of the size
            kind, size = kind & 0xFFFF, kind >> 16
            yield _Element(kind, content[place + 4 : place + 4 + min(size, 4)])
            place += 8
            continue
        yield _Element(kind, content[place + 8 : place + 8 + size])
        place += 8 + size + (0 if kind == _COMPRESSED else -size % 8)


def _opened(element: _Element, order: str, limit: int) -> _Element:
    """The matrix element inside a compressed one, at most `limit` bytes of it."""
    if element.kind == _COMPRESSED:
        plain = memoryview(zlib.decompressobj().decompress(element.content, limit + 8))
        element = next(_elements(plain, order))
    if element.kind != _MATRIX:
        raise ArgumentError("the MATLAB file holds something else than variables.")
    return element


def _head(content: memoryview, order: str) -> _Head:
    flags, dimensions, name, *_ = _elements(content[:_HEAD_BYTES], order)
    marks = struct.unpack_from(order + "I", flags.content)[0]
    shape = np.frombuffer(dimensions.content, dtype=order + "i4").tolist()
    if not 1 <= len(shape) <= 16 or min(shape) < 0:
        raise ArgumentError("the MATLAB file gives no valid shape.")
    return _Head(
        bytes(name.content).decode("latin-1"), tuple(shape), _CLASSES.get(marks & 0xFF), bool(marks & _COMPLEX)
    )


def _array(head: _Head, content: memoryview, order: str) -> np.ndarray:
    _, _, _, *parts = _elements(content, order)
    real, *imaginary = (np.frombuffer(part.content, dtype=order + _STORED[part.kind]) for part in parts)
    # small whole numbers are stored in fewer bytes than their class has
    values = real.astype(head.numbers)
    if head.is_complex:
        values = values + 1j * imaginary[0].astype(head.numbers)
    return values.reshape(head.shape, order="F")


_CODECS = {
    2: {"blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma", "shuffle", "delta"},
    3: {"bytes", "transpose", "blosc", "gzip", "zstd", "crc32c", "sharding_indexed"},
}
_NUMBERS = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)} | {
    "bool",
    "complex64",
    "complex128",
}
_LARGEST_METADATA = 1 << 20
_DEEPEST = 8


class FileRecords:
    """Records that stay in their file: `private_mean` reads slices of them, `np.asarray` all.

    `change` turns a slice into points, the same for every record alone.
    """

    def __init__(self, array: Any, axis: int, change: Callable[[np.ndarray], np.ndarray], limit: int) -> None:
        self._array, self._axis, self._change, self._limit = array, axis, change, limit
        first = self[:1]
        self.shape = (int(array.shape[axis]), *first.shape[1:])
        self.dtype = first.dtype
        self.chunks = (int(array.chunks[axis]), *first.shape[1:])

    def __getitem__(self, rows: slice) -> np.ndarray:
        with decoding(Path("the store"), "an array of numbers"):
            part = np.asarray(self._array[(*[slice(None)] * self._axis, rows)])
        return self._change(np.moveaxis(part, self._axis, 0))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        check_size(math.prod(self._array.shape) * self._array.dtype.itemsize, self._limit)
        return np.asarray(self[:], dtype=dtype)

    def changed(self, further: Callable[[np.ndarray], np.ndarray]) -> FileRecords:
        """The same records, each slice changed once more."""
        before = self._change
        return FileRecords(self._array, self._axis, lambda part: further(before(part)), self._limit)


def is_store(path: Path) -> bool:
    """Whether this is a folder or an archive that holds a Zarr store, by its name."""
    return (path.suffix.lower() == ".zarr" and path.is_dir()) or (
        path.name.lower().endswith(".zarr.zip") and path.is_file()
    )


def open_zarr(path: Path, key: str | None, limit: int) -> Any:
    """One numeric array of the store, not read yet; a chunk of it has at most `limit` bytes."""
    zarr = need("zarr", "zarr", "Zarr")
    with decoding(path, "a Zarr store"):
        found = _arrays(path)
        name = chosen_name(path, sorted(found), key)
        form = _checked(found[name], limit)
        store = (
            zarr.storage.ZipStore(path, mode="r") if path.is_file() else zarr.storage.LocalStore(path, read_only=True)
        )
        inside = "" if name == path.name else name
        return zarr.open_array(store, path=inside, mode="r", zarr_format=form)


def zarr_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the arrays of a store."""
    with decoding(path, "a Zarr store"):
        return {name: tuple(map(int, about["shape"])) for name, about in _arrays(path).items()}


def _arrays(path: Path) -> dict[str, dict[str, Any]]:
    """The metadata of each array by its name; one at the top has the name of the store."""
    walk = _in_archive(path) if path.is_file() else _in_folder(path, PurePosixPath())
    return {str(where) if where.parts else path.name: about for where, about in walk}


def _in_folder(root: Path, where: PurePosixPath) -> Iterator[tuple[PurePosixPath, dict[str, Any]]]:
    for name in ("zarr.json", ".zarray"):
        if (root / name).is_file():
            check_size((root / name).stat().st_size, _LARGEST_METADATA)
            about = json.loads((root / name).read_bytes())
            if _is_array(about):
                yield where, about
                return
    if len(where.parts) < _DEEPEST:
        for folder in sorted(root.iterdir()):
            if folder.is_dir():
                yield from _in_folder(folder, where / folder.name)


def _in_archive(path: Path) -> Iterator[tuple[PurePosixPath, dict[str, Any]]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            where = PurePosixPath(entry.filename)
            if where.name in ("zarr.json", ".zarray"):
                check_size(entry.file_size, _LARGEST_METADATA)
                with archive.open(entry) as stream:
                    about = json.loads(stream.read(_LARGEST_METADATA))
                if _is_array(about):
                    yield where.parent, about


def _is_array(about: dict[str, Any]) -> bool:
    return bool(about["zarr_format"] == 2 or about["node_type"] == "array")


def _checked(about: dict[str, Any], limit: int) -> int:
    """The version of the format, for metadata that name nothing but numbers and known codecs."""
    form = int(about["zarr_format"])
    if form == 2:
        dtype = np.dtype(about["dtype"]) if isinstance(about["dtype"], str) else np.dtype(object)
        steps = [step["id"] for step in (about.get("compressor"), *(about.get("filters") or ())) if step is not None]
        chunk = about["chunks"]
    else:
        dtype = np.dtype(about["data_type"] if about["data_type"] in _NUMBERS else object)
        steps = list(_codec_names(about["codecs"]))
        chunk = about["chunk_grid"]["configuration"]["chunk_shape"]
    if dtype.kind not in "biufc":
        raise ArgumentError("the array must hold numbers, and holds something else.")
    unknown = [step for step in steps if step not in _CODECS.get(form, ())] + list(
        about.get("storage_transformers", ())
    )
    if unknown:
        raise ArgumentError(
            f"the array is packed by {', '.join(map(repr, unknown))}, which is not opened here; known are "
            f"{', '.join(sorted(_CODECS.get(form, ())))}. Save it again with one of these."
        )
    check_size(math.prod(map(int, chunk)) * dtype.itemsize, limit)
    return form


def _codec_names(codecs: list[Any]) -> Iterator[str]:
    """All codecs, those inside of shards included."""
    for codec in codecs:
        if isinstance(codec, str):
            yield codec
            continue
        yield codec["name"]
        inside = codec.get("configuration") or {}
        for part in ("codecs", "index_codecs"):
            yield from _codec_names(inside.get(part, []))


_COVARIANCE, _EPOCHS = "cov.fif", "epo.fif"


def read_fif(path: Path, picks: str | Sequence[str] | None, limit: int) -> np.ndarray:
    """Covariances (n, k, k) in the unit of the file (V², T²): the one of a -cov.fif, or one per epoch of an -epo.fif.

    `picks`: names of channels in the order wanted; for epochs also a type such as "eeg". All channels without it, those
    marked bad included, as whom they are bad for is private. The covariance of an epoch of T samples is XXᵀ/T, the mean
    of each channel taken off.
    """
    with _open_fif(path, limit) as file:
        names = _picked(path, file, picks)
        if _is_covariance(path):
            matrix = np.asarray(file.data, dtype=np.float64)
            matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
            places = [file.ch_names.index(name) for name in names]
            return matrix[None][:, places][:, :, places]
        check_size(8 * len(file) * len(names) * len(file.times), limit)
        data = file.get_data(picks=names, verbose="error")
        data = data - data.mean(axis=2, keepdims=True)
        return np.asarray(data @ data.swapaxes(1, 2) / data.shape[2])


def fif_channels(path: Path, picks: str | Sequence[str] | None, limit: int) -> list[str]:
    """The names of the channels that `picks` stands for in this file."""
    with _open_fif(path, limit) as file:
        return _picked(path, file, picks)


def _is_covariance(path: Path) -> bool:
    return path.name.lower().endswith(_COVARIANCE)


@contextmanager
def _open_fif(path: Path, limit: int) -> Iterator[Any]:
    mne = need("mne", "mne", "FIF")
    if not path.name.lower().endswith((_COVARIANCE, _EPOCHS)):
        raise ArgumentError(
            f"the name of a .fif file must end in -cov.fif (a covariance) or -epo.fif (epochs); got {path.name!r}. "
            "Recordings must be cut into epochs first."
        )
    check_size(path.stat().st_size, limit)
    with decoding(path, "covariances or epochs of MNE"), warnings.catch_warnings():
        # names that MNE would spell otherwise, and the like
        warnings.simplefilter("ignore")
        if _is_covariance(path):
            yield mne.read_cov(path, verbose="error")
        else:
            yield mne.read_epochs(path, proj=False, preload=False, verbose="error")


def _picked(path: Path, file: Any, picks: str | Sequence[str] | None) -> list[str]:
    names = list(file.ch_names)
    if picks is None:
        return names
    if isinstance(picks, str):
        if _is_covariance(path):
            raise ArgumentError(
                f"must be a list of names, as a covariance file knows no types of channels; got {picks!r}.",
                argument="picks",
            )
        types = file.get_channel_types()
        if picks not in types:
            listed = ", ".join(map(repr, sorted(set(types))))
            raise ArgumentError(
                f"must list names of channels, or be a type, one of {listed}; got {picks!r}.", argument="picks"
            )
        return [name for name, kind in zip(names, types, strict=True) if kind == picks]
    wanted = list(picks)
    if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(names):
        raise ArgumentError(
            "must name channels that every file has, each once, and at least one is not there. Take the channels "
            "that all recordings share.",
            argument="picks",
        )
    return wanted
