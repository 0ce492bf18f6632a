"""Arrays of numbers in Zarr stores (zarr, an extra), opened and read slice by slice.

A store names the codecs that its bytes go through, and one of those that exist unpickles them: codecs, number types and
sizes are read from the metadata, as text, and checked against a list before the store is opened.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from dpmanifolds.data._files import check_size, chosen_name, decoding, need
from dpmanifolds.errors import ArgumentError

__all__ = ["FileRecords", "is_store", "open_zarr", "zarr_shapes"]

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
