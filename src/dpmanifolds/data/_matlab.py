"""Arrays of numbers from MATLAB's files of versions 5 to 7, in plain Python.

scipy's reader for these files ends the whole process on some damaged ones; nothing here can.

A file is a header of 128 bytes and a row of elements: a type, a size, and that many bytes. An element of type
"matrix" holds elements again (flags, dimensions, name, real part, imaginary part), one of type "compressed" holds one
element, deflated.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpmanifolds.data._files import check_size, chosen_name, decoding, read_all
from dpmanifolds.errors import ArgumentError

__all__ = ["read_mat"]

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
