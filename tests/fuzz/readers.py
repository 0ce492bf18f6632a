"""Files of every format that is read, whole and damaged."""

from __future__ import annotations

import gzip
import io
import struct
from functools import cache
from pathlib import Path

import numpy as np

from tests.fuzz.values import Values

__all__ = ["damaged_file", "whole_files"]

_TOKENS = (b"nan", b"inf", b"1e999", b"-1", b"0", b"LM=", b"\xff\xfe", b"'descr': '|O'", b"{", b"\x00" * 8, b",", b"\n")


@cache
def whole_files() -> dict[str, bytes]:
    """One good file of each kind, by the ending of its name."""
    rng = np.random.default_rng(0)
    matrices = np.stack([np.eye(3) + 0.1 * np.ones((3, 3))] * 4)
    table = rng.normal(size=(4, 6))
    tensors = np.tile(np.array([2.0, 0.1, 0.0, 1.5, 0.2, 1.0]), (2, 2, 2, 1))
    nifti = _nifti(tensors)
    return {
        ".npy": _saved(lambda stream: np.save(stream, matrices)),
        ".npz": _saved(lambda stream: np.savez_compressed(stream, x=matrices, other=np.arange(3))),
        ".csv": b"a,b,c,d,e,f\n" + b"\n".join(",".join(map(str, row)).encode() for row in table),
        ".tsv": b"\n".join("\t".join(map(str, row)).encode() for row in table),
        ".mat": _matlab(matrices),
        ".tps": b"LM=3\n0 0\n1 0\n0.3 0.8\nIMAGE=a.jpg\nID=1\nSCALE=0.5\nLM=3\n0 0\n1 0\n0.4 0.9\nID=2\n",
        ".nii": nifti,
        ".nii.gz": gzip.compress(nifti),
    }


def damaged_file(values: Values, folder: Path) -> Path:
    """A file whose bytes were changed, or not, under a name whose ending may lie."""
    files = whole_files()
    kinds = sorted(files)
    content = bytearray(files[values.pick(*kinds)] if values.chance(0.9) else values.rng.bytes(200))
    for _ in range(int(values.rng.integers(0, 6))):
        place = int(values.rng.integers(0, len(content) + 1))
        kind = int(values.rng.integers(6))
        if kind == 0 and place < len(content):
            content[place] ^= 1 << int(values.rng.integers(8))
        elif kind == 1:
            del content[place:]
        elif kind == 2:
            content[place:place] = values.pick(*_TOKENS)
        elif kind == 3:
            content[place : place + 4] = values.rng.bytes(4)
        elif kind == 4:
            content[place:place] = content[:place]
        else:
            del content[place : place + int(values.rng.integers(1, 9))]
    ending = values.pick(*kinds)
    match = [kind for kind in kinds if files[kind][:4] == bytes(content[:4])]
    path = folder / f"damaged{values.pick(*match) if match and values.chance(0.9) else ending}"
    path.write_bytes(bytes(content[: 1 << 20]))
    return path


def _saved(write: object) -> bytes:
    stream = io.BytesIO()
    write(stream)  # type: ignore[operator]
    return stream.getvalue()


def _matlab(matrices: np.ndarray) -> bytes:
    from scipy.io import savemat

    return _saved(lambda stream: savemat(stream, {"x": matrices, "n": 3.0}))


def _nifti(array: np.ndarray) -> bytes:
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, array.ndim, *array.shape, *[1] * (7 - array.ndim))
    struct.pack_into("<2h", header, 70, 64, 64)
    struct.pack_into("<3f", header, 108, 352, 1.0, 0.0)
    header[344:348] = b"n+1\0"
    return bytes(header) + array.astype("<f8").tobytes(order="F")
