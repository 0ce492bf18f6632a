"""A run that survives a crash: its public state on disk, and a mark before every draw.

>>> import pathlib, tempfile
>>> import numpy as np
>>> from dpmanifolds.optimize.state import StateFile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "run.json"
>>> with StateFile(path, {"steps": 10}) as file:
...     file.write(finished=3, started=4, lost=0, points={"point": np.array([0.5])})
>>> with StateFile(path, {"steps": 10}) as file:
...     file.read()["lost"]
1

The file says which step was started last, before its noise is drawn. If the next one who reads it finds that step
unfinished, its noise may have been seen: the step counts as lost and is paid for, and its noise is drawn anew. What is
kept is what the guarantee covers anyway: iterates, no gradient, no record, no noise, no seed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError

__all__ = ["StateFile"]

_SCHEMA = 1


class StateFile:
    """One run's file, locked while it is open, replaced as a whole at every write."""

    def __init__(self, path: str | os.PathLike[str], run: dict[str, Any]) -> None:
        self.path = Path(path)
        self._run = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()
        self._lock: Any = None

    def __enter__(self) -> StateFile:
        self._lock = open(self.path.with_name(self.path.name + ".lock"), "w", encoding="utf-8")
        # without locks (not a POSIX system) it is up to the user not to run one state twice
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

    def read(self) -> dict[str, Any] | None:
        """What was written last, with an unfinished step added to `lost`; None for a new run."""
        if not self.path.exists():
            return None
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            known = data["schema"] == _SCHEMA and data["run"]
            points = {name: _decoded(value) for name, value in data["points"].items()}
            finished, started, lost = int(data["finished"]), int(data["started"]), int(data["lost"])
        except (ValueError, KeyError, TypeError):
            raise ArgumentError(f"{self.path} holds no state of a descent of this version; use another path.") from None
        if known != self._run:
            raise ArgumentError(
                f"{self.path} belongs to a run with other settings (manifold, records, plan, start or step sizes). "
                "Use the same settings to resume, or another path to start anew."
            )
        unfinished = started > finished
        return {"finished": finished, "unfinished": unfinished, "lost": lost + unfinished, "points": points}

    def write(self, *, finished: int, started: int, lost: int, points: dict[str, Any]) -> None:
        """Replace the file; when this returns the new state is on the disk."""
        data = {
            "schema": _SCHEMA,
            "run": self._run,
            "finished": finished,
            "started": started,
            "lost": lost,
            "points": {name: _encoded(value) for name, value in points.items()},
        }
        fresh = self.path.with_name(self.path.name + ".new")
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path)


def _encoded(point: Any) -> Any:
    """A point as nested lists of numbers, bit for bit."""
    if isinstance(point, tuple):
        return {"parts": [_encoded(part) for part in point]}
    array = np.asarray(point)
    if array.dtype.kind == "c":
        return {"real": array.real.tolist(), "imag": array.imag.tolist()}
    return {"real": array.tolist()}


def _decoded(value: Any) -> Any:
    if "parts" in value:
        return tuple(_decoded(part) for part in value["parts"])
    array = np.asarray(value["real"], dtype=np.float64)
    return array + 1j * np.asarray(value["imag"], dtype=np.float64) if "imag" in value else array
