"""The draws of a run: charged once, taken one by one, and saved after each where the run is to survive a crash.

>>> import numpy as np
>>> from dpmanifolds.privacy import Guarantee
>>> charge = Charge(None, None, Guarantee.gaussian(1.0), 3, "descent", {})
>>> with paid_draws(charge, {"point": np.zeros(1)}) as draws:
...     for position in draws:
...         draws.save({"point": draws.points["point"] + 1})
>>> draws.points["point"], draws.lost
(array([3.]), 0)

With `state` a run is known to its ledger (`ledger.runs`): each draw is taken there before it is made, so that no more
are made than were paid for, whatever happens to processes and files. The state holds iterates, which the promise covers
anyway, a fingerprint of the records and a tag; both are keyed by a secret that stands in the ledger alone. A draw that
was taken and whose state was not saved may have been seen: it is left out (docs/proofs/descent.md, D6).

The state is a file of public numbers, replaced as a whole at every write and locked while in use.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dpmanifolds._arrays import to_numpy
from dpmanifolds._points import has_parts
from dpmanifolds.descent.records import HeldRecords
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, BudgetExceededError
from dpmanifolds.ledger import Ledger, Reservation
from dpmanifolds.ledger.account import mark_domain
from dpmanifolds.ledger.records import canonical
from dpmanifolds.ledger.runs import NewRun, PaidRun, find_run
from dpmanifolds.privacy import Guarantee
from dpmanifolds.privacy.budget import note_spending

_SCHEMA = 2


class StateFile:
    """One run's file: facts, points and the tag that vouches for both."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: Any = None

    def __enter__(self) -> StateFile:
        try:
            # a device would be read without end
            if self.path.exists() and not self.path.is_file():
                raise OSError
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


def open_ledger(ledger: Any, dataset: str | None, state: Any, rng: Any) -> Any:
    """What has `spend`: a ledger, or the one at a path; None for none. With a state it must be a file."""
    if (ledger is None) is not (dataset is None):
        raise ArgumentError(
            "a ledger needs dataset=, the name under which these records are accounted for, and dataset= needs "
            "ledger=: give both or none."
        )
    ledger = Ledger(ledger) if isinstance(ledger, str | os.PathLike) else ledger
    if state is not None and rng is not None:
        raise ArgumentError("a run with state= must draw fresh noise after a crash: leave rng out.")
    if state is not None and not isinstance(ledger, Ledger | Reservation):
        raise ArgumentError(
            "state= needs ledger= and dataset=: the ledger pays for a run once, and knows which of its draws are taken."
        )
    return ledger


@dataclass(frozen=True)
class Charge:
    """What a run of `steps` draws costs, who pays, and the public settings that tell it from others."""

    ledger: Any
    dataset: str | None
    guarantee: Guarantee
    steps: int
    what: str
    settings: dict[str, Any]
    """Those that the ledger notes."""
    objects: tuple[Any, ...] = ()
    """Loss, domain, step sizes: what else must be the same."""
    reproducible: bool = False
    domain: Domain | None = None
    """Where records live."""

    def spend(self, **options: Any) -> None:
        """Enter it, before anything is drawn."""
        if self.ledger is not None:
            looked = mark_domain(self.ledger, self.dataset, self.domain)
            self.ledger.spend(
                self.dataset,
                self.guarantee,
                what=self.what,
                parameters=self.settings | looked,
                reproducible=self.reproducible,
                **options,
            )
        if not self.reproducible:
            note_spending(self.dataset, self.guarantee)

    def digest(self, start: dict[str, Any]) -> str:
        """One text for all settings and the points that the run starts from."""
        told = [self.what, self.guarantee.to_json(), self.settings, _described(self.objects), encode_points(start)]
        return hashlib.sha256(canonical(told).encode()).hexdigest()


class Draws:
    """Iterates over the positions of the draws to be made; `save` after each."""

    def __init__(self, steps: int, points: dict[str, Any]) -> None:
        self.points = points
        """What the run has come to: public points by name."""
        self.lost = 0
        """Draws that were taken by a process which did not save what came of them."""
        self.position = 0
        self._steps = steps

    @property
    def left(self) -> int:
        """How many draws can still be taken."""
        return self._steps - self.position

    @property
    def made(self) -> int:
        """How many draws `points` are made of."""
        return self.position - self.lost

    def __iter__(self) -> Iterator[int]:
        while self.position < self._steps:
            self._take()
            yield self.position

    def save(self, points: dict[str, Any]) -> None:
        """The points after the draw of this position."""
        self.points = points
        self.position += 1

    def _take(self) -> None:
        """Every draw is paid for by the charge."""


class _SavedDraws(Draws):
    def __init__(self, file: StateFile, run: PaidRun, facts: dict[str, Any], points: dict[str, Any]) -> None:
        super().__init__(run.steps, points)
        self.position, self.lost = facts["position"], facts["lost"]
        self._file, self._run, self._facts = file, run, facts
        if not run.final and self.position < run.drawn:
            self.lost += run.drawn - self.position
            self.position = run.drawn
            self._write()

    def save(self, points: dict[str, Any]) -> None:
        super().save(points)
        self._write()

    def _take(self) -> None:
        self._run.take(self.position)

    def _write(self) -> None:
        self._facts = {**self._facts, "position": self.position, "lost": self.lost}
        self._file.write(self._facts, self.points, _tag(self._run.secret, self._facts, self.points))

    def end(self) -> None:
        """Make this state the one that is told as the result."""
        if not self._run.final:
            self._run.end(_tag(self._run.secret, self._facts, self.points))


@contextlib.contextmanager
def paid_draws(
    charge: Charge,
    start: dict[str, Any],
    *,
    state: str | os.PathLike[str] | None = None,
    records: HeldRecords | None = None,
) -> Iterator[Draws]:
    """The draws of a run from these points, charged by now; or what is left of the run that `state` holds."""
    if state is None:
        charge.spend()
        yield Draws(charge.steps, start)
        return
    assert records is not None
    with StateFile(state) as file:
        draws = _resumed(file, charge, start, records) or _begun(file, charge, start, records)
        yield draws
        draws.end()


def _begun(file: StateFile, charge: Charge, start: dict[str, Any], records: HeldRecords) -> _SavedDraws:
    """A new run: its state first, so that a charge never stands without one, then the charge."""
    new = NewRun(charge.steps)
    facts = {
        "ledger": _ledger_name(charge),
        "run": new.name,
        "settings": charge.digest(start),
        "records": records.fingerprint(new.secret),
        "position": 0,
        "lost": 0,
    }
    file.write(facts, start, _tag(new.secret, facts, start))
    charge.spend(run=new)
    run = find_run(charge.ledger.path, new.name)
    assert run is not None
    return _SavedDraws(file, run, facts, start)


def _resumed(file: StateFile, charge: Charge, start: dict[str, Any], records: HeldRecords) -> _SavedDraws | None:
    """The run that the file holds, after checking that it is this one; None where nothing was charged yet."""
    found = file.read()
    if found is None:
        return None
    facts, points, tag = found
    if facts.get("ledger") != _ledger_name(charge):
        raise ArgumentError(
            f"{file.path} belongs to another ledger than {charge.ledger.path}; use that, or another path."
        )
    run = find_run(charge.ledger.path, str(facts.get("run")))
    if run is None:
        if facts.get("position") == 0:
            # the process died before the charge
            return None
        raise ArgumentError(
            f"the ledger {charge.ledger.path} knows nothing of the run in {file.path}: one of them was put back from "
            "a copy. Use another path to start anew."
        )
    if not hmac.compare_digest(_tag(run.secret, facts, points), tag):
        raise ArgumentError(f"{file.path} was altered or damaged: it is not what the run wrote. Nothing was drawn.")
    _check_same(file, charge, run, facts, charge.digest(start), records)
    if run.final:
        if tag != run.final:
            raise BudgetExceededError(
                f"the run in {file.path} has ended, and its result was told from another file. Each charge pays for "
                "one; use another path to start anew.",
                dataset=run.dataset,
            )
    elif facts["position"] not in (run.drawn, run.drawn - 1):
        raise BudgetExceededError(
            f"{file.path} was used before, or one of it and its ledger was put back from a copy: the state is of draw "
            f"{facts['position']}, and the ledger has given out {run.drawn}. Only the newest state can be resumed.",
            dataset=run.dataset,
        )
    return _SavedDraws(file, run, facts, points)


def _check_same(
    file: StateFile, charge: Charge, run: PaidRun, facts: dict[str, Any], settings: str, records: HeldRecords
) -> None:
    if run.dataset != charge.dataset:
        raise ArgumentError(
            f"{file.path} belongs to a run on data set {run.dataset!r}; got dataset = {charge.dataset!r}."
        )
    if facts["settings"] != settings:
        raise ArgumentError(
            f"{file.path} belongs to a run with other settings (manifold, budget, plan, start or step sizes). "
            "Use the same settings to resume, or another path to start anew."
        )
    if not hmac.compare_digest(facts["records"], records.fingerprint(run.secret)):
        raise ArgumentError(
            f"{file.path} belongs to a run on other records. Use the same records (and group_by) to resume, or another "
            "path to start anew."
        )


def _described(value: Any) -> Any:
    """A public value as JSON, its numbers bit for bit; what has no words of its own, a function, by its name alone."""
    if is_dataclass(value):
        return [type(value).__qualname__, *(_described(getattr(value, entry.name)) for entry in fields(value))]
    if isinstance(value, tuple | list):
        return [_described(part) for part in value]
    if hasattr(value, "dtype"):
        return encode_points({"array": to_numpy(value)})
    words = repr(value)
    return getattr(value, "__qualname__", type(value).__qualname__) if " at 0x" in words else words


def _ledger_name(charge: Charge) -> str:
    """What tells a ledger from others: the hash of its first entry. A data set that it does not know is refused."""
    ledger = Ledger(charge.ledger.path)
    ledger.entries(charge.dataset)
    return ledger.entries()[0].hash


def _tag(secret: bytes, facts: dict[str, Any], points: dict[str, Any]) -> str:
    return hmac.new(secret, b"state" + canonical([facts, encode_points(points)]).encode(), hashlib.sha256).hexdigest()
