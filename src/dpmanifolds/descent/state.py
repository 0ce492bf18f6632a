"""The file of a run that survives a crash: public numbers, replaced as a whole at every write, locked while in use.

>>> import pathlib, tempfile
>>> import numpy as np
>>> from dpmanifolds.descent.state import StateFile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "run.json"
>>> with StateFile(path) as file:
...     file.write({"position": 3}, {"point": np.array([0.5])}, "tag")
...     facts, points, tag = file.read()
>>> facts, points, tag
({'position': 3}, {'point': array([0.5])}, 'tag')
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dpmanifolds._points import has_parts
from dpmanifolds.errors import ArgumentError

_SCHEMA = 2


class StateFile:
    """One run's file: facts, points and the tag that vouches for both."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: Any = None

    def __enter__(self) -> StateFile:
        try:
            self._lock = open(self.path.with_name(self.path.name + ".lock"), "w", encoding="utf-8")
        except (OSError, ValueError):
            raise ArgumentError(
                f"must be a file in a folder that can be written; got {str(self.path)!r}.", argument="state"
            ) from None
        # without locks (not a POSIX system) the ledger alone stops a second process, at its first draw
        with contextlib.suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                raise ArgumentError(f"another process runs from {self.path}; wait, or use another path.") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.close()

    def read(self) -> tuple[dict[str, Any], dict[str, Any], str] | None:
        """What was written last; None where there is no file."""
        if not self.path.exists():
            return None
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if data["schema"] != _SCHEMA:
                raise KeyError("schema")
            facts, tag = dict(data["facts"]), str(data["tag"])
            return facts, {name: _decode(value) for name, value in data["points"].items()}, tag
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ArgumentError(
                f"{self.path} holds no state of a run of this version (those of version 0.1 belong to no ledger, and "
                "cannot be resumed); use another path."
            ) from None

    def write(self, facts: dict[str, Any], points: dict[str, Any], tag: str) -> None:
        """Replace the file; when this returns the new state is on the disk."""
        data = {"schema": _SCHEMA, "facts": facts, "points": encode_points(points), "tag": tag}
        fresh = self.path.with_name(self.path.name + ".new")
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path)
        # the new name must outlive a power failure, too; where folders cannot be opened there is no way to ask for it
        with contextlib.suppress(PermissionError):
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def encode_points(points: dict[str, Any]) -> dict[str, Any]:
    """Points as nested lists of numbers, bit for bit."""
    return {name: _encode(value) for name, value in points.items()}


def _encode(point: Any) -> Any:
    if has_parts(point):
        return {"parts": [_encode(part) for part in point]}
    array = np.asarray(point)
    if array.dtype.kind == "c":
        return {"real": array.real.tolist(), "imag": array.imag.tolist()}
    return {"real": array.tolist()}


def _decode(value: Any) -> Any:
    if "parts" in value:
        return tuple(_decode(part) for part in value["parts"])
    array = np.asarray(value["real"], dtype=np.float64)
    return array + 1j * np.asarray(value["imag"], dtype=np.float64) if "imag" in value else array
