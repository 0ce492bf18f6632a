"""Opening files that other people made: size limits first, then bytes, and every failure as one of our errors."""

from __future__ import annotations

import gzip
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dpmanifolds._validate import shown
from dpmanifolds.errors import ArgumentError, DPManifoldsError, NotAvailableError

DEFAULT_LIMIT = 1 << 32
_PIECE = 1 << 20


def checked_path(path: Any, limit: int) -> Path:
    """`path` as an existing file of at most `limit` bytes."""
    try:
        found = Path(os.fspath(path))
        size = found.stat().st_size if found.is_file() else None
    except (TypeError, ValueError, OSError):
        size = None
    if size is None:
        raise ArgumentError(f"must be a file that can be read; got {shown(path)}.", argument="path")
    check_size(size, limit)
    return found


def need(module: str, extra: str, kind: str) -> Any:
    """A module of an optional package, or an error with the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise NotAvailableError(f'{kind} files need {package}: pip install "dpmanifolds[{extra}]".') from None


def check_size(size: int, limit: int) -> None:
    """Refuse what would take more than `limit` bytes, before it is read."""
    if size > limit:
        raise ArgumentError(
            f"the file holds (or says it holds) {size} bytes, above max_bytes={limit}. Pass a larger max_bytes if that "
            "is right, or split the file."
        )


@contextmanager
def decoding(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a decoder raises on bytes that are not what they claim to be into one error.

    Decoders of foreign formats raise almost anything on damaged files. Their messages may quote the contents, which
    are records: the error says which file, and no more.
    """
    try:
        yield
    except DPManifoldsError:
        raise
    except Exception:
        raise ArgumentError(
            f"{path.name} cannot be read as {kind}: the file is damaged, cut short or of another kind."
        ) from None


def chosen_name(path: Path, names: list[str], key: str | None) -> str:
    """`key`, or the only name there is."""
    listed = ", ".join(map(repr, names)) or "none"
    if key is None:
        if len(names) == 1:
            return names[0]
        raise ArgumentError(f"{path.name} holds several arrays (or none): pass key, one of {listed}.")
    if key not in names:
        raise ArgumentError(f"{path.name} holds no array {key!r}; it has {listed}.")
    return key


def read_exactly(stream: IO[bytes], size: int) -> bytearray:
    """The next `size` bytes, in pieces, so that a header which promises too many costs no memory."""
    content = bytearray()
    while len(content) < size:
        piece = stream.read(min(_PIECE, size - len(content)))
        if not piece:
            raise ArgumentError("the file is cut short: its header promises more numbers than follow.")
        content += piece
    return content


def read_all(path: Path, limit: int) -> bytes:
    """The bytes of a file, decompressed if its name ends in .gz; at most `limit` of them."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    stream: IO[bytes]
    with opener(path, "rb") as stream:
        content = stream.read(limit + 1)
    check_size(len(content), limit)
    return content
