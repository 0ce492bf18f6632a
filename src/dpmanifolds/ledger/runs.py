"""One entry that pays for several draws of a run, or for several parts of a plan: each is taken from the file first.

>>> import os, tempfile
>>> from dpmanifolds.ledger import Ledger
>>> from dpmanifolds.ledger.runs import NewRun, find_run
>>> from dpmanifolds.privacy import GaussianDP, Guarantee
>>> ledger = Ledger(os.path.join(tempfile.mkdtemp(), "privacy.ledger"))
>>> _ = ledger.open_dataset("survey", GaussianDP(1.0))
>>> new = NewRun(steps=2)
>>> _ = ledger.spend("survey", Guarantee.gaussian(0.5), what="descent", run=new)
>>> run = find_run(ledger.path, new.name)
>>> run.take(0)
>>> run.take(0)
Traceback (most recent call last):
...
dpmanifolds.errors.BudgetExceededError: draw 1 of the 2 that entry 2 pays for is taken already: another process, or a
copy of this state, went on from here. This one stops; nothing was drawn.
>>> find_run(ledger.path, new.name).drawn
1

Taking a draw compares and sets a counter in one durable transaction, so an entry pays for no more draws than its
promise is about, however many copies of a state, processes or forks want them (docs/proofs/descent.md, D6). The secret
of a run stands in its row of the file and nowhere else: `entries` and `export` do not show it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpmanifolds._validate import text
from dpmanifolds.errors import ArgumentError, BudgetExceededError, LedgerError
from dpmanifolds.ledger import _store
from dpmanifolds.ledger.records import Entry, Receipt, canonical, public_parameters, refuse_reproducible
from dpmanifolds.privacy import Guarantee


@dataclass(frozen=True)
class NewRun:
    """A run of so many draws, before it is charged: `Ledger.spend` enters it together with the charge."""

    steps: int
    name: str = field(default_factory=lambda: secrets.token_hex(16))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """What the log shows of it."""
        return {"name": self.name, "steps": self.steps, "key": hashlib.sha256(self.secret).hexdigest()}


@dataclass(frozen=True)
class PaidRun:
    """A charged run, and how far it had come when the file was read."""

    path: str
    name: str
    dataset: str
    entry: int
    steps: int
    secret: bytes = field(repr=False)
    drawn: int
    """How many draws may have been made."""
    final: str
    """The tag of the state that was told as the result; empty before."""

    def take(self, position: int) -> None:
        """Take draw `position` (from 0), durably, before its noise is drawn; refuse where it is not the next."""
        with _store.transaction(self.path, write=True) as connection:
            drawn, final = self._row(connection)
            if final or drawn != position or not drawn < self.steps:
                raise BudgetExceededError(
                    f"draw {position + 1} of the {self.steps} that entry {self.entry} pays for is taken already: "
                    "another process, or a copy of this state, went on from here. This one stops; nothing was drawn.",
                    dataset=self.dataset,
                )
            self._set(connection, drawn + 1, "")

    def end(self, tag: str) -> None:
        """Note the state that is told as the result; no other ever is."""
        with _store.transaction(self.path, write=True) as connection:
            drawn, final = self._row(connection)
            if final:
                raise BudgetExceededError(
                    f"the run of entry {self.entry} has ended already: another process, or a copy of this state, "
                    "told its result. Each charge pays for one.",
                    dataset=self.dataset,
                )
            self._set(connection, drawn, tag)

    def _row(self, connection: sqlite3.Connection) -> tuple[int, str]:
        """How many draws are taken, and the final state."""
        found = connection.execute("SELECT drawn, final, seal FROM runs WHERE name = ?", (self.name,)).fetchone()
        if found is None or found[2] != _seal(self.secret, self.name, self.entry, self.steps, *found[:2]):
            raise LedgerError(
                f"the run of entry {self.entry} in the ledger {self.path} was altered or damaged: nothing can be drawn "
                "from it. Restore the file from a copy, or start anew."
            )
        return found[0], found[1]

    def _set(self, connection: sqlite3.Connection, drawn: int, final: str) -> None:
        seal = _seal(self.secret, self.name, self.entry, self.steps, drawn, final)
        connection.execute(
            "UPDATE runs SET drawn = ?, final = ?, seal = ? WHERE name = ?", (drawn, final, seal, self.name)
        )


def enter_release(
    connection: sqlite3.Connection,
    log: list[Entry],
    kind: str,
    dataset: str,
    details: dict[str, Any],
    run: NewRun | None,
) -> Entry:
    """Write the next entry, with the version that made it and, if it pays for a run, the row of the run."""
    from dpmanifolds import __version__

    details = {**details, "version": __version__}
    if run is None:
        return _store.append(connection, log, kind, dataset, details)
    entry = _store.append(connection, log, kind, dataset, {**details, "run": run.to_dict()})
    seal = _seal(run.secret, run.name, entry.number, run.steps, 0, "")
    row = (run.name, entry.number, run.steps, run.secret.hex(), 0, "", seal)
    connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return entry


def find_run(path: str, name: str) -> PaidRun | None:
    """The run of this name, after checking the chain and the row; None where no entry tells of it."""
    with _store.transaction(path, write=True) as connection:
        log = _store.read_log(connection, path)
        entry = next((entry for entry in log if entry.details.get("run", {}).get("name") == name), None)
        return None if entry is None else read_run(connection, path, entry)


def read_run(connection: sqlite3.Connection, path: str, entry: Entry) -> PaidRun:
    """The run that an entry pays for; an error where its row is missing or not what was written."""
    told = entry.details["run"]
    row = connection.execute("SELECT secret FROM runs WHERE name = ?", (told["name"],)).fetchone()
    try:
        secret = bytes.fromhex(row[0])
    except (TypeError, ValueError):
        secret = b""
    if hashlib.sha256(secret).hexdigest() != told["key"]:
        raise LedgerError(f"the run of entry {entry.number} in the ledger {path} was altered or damaged.")
    run = PaidRun(path, told["name"], entry.dataset, entry.number, told["steps"], secret, 0, "")
    drawn, final = run._row(connection)
    return replace(run, drawn=drawn, final=final)


def _seal(secret: bytes, *facts: Any) -> str:
    return hmac.new(secret, b"run" + canonical(facts).encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Reservation:
    """A plan fixed in advance and entered as one release, entry `number` of a ledger; each part is used up once.

    A value like `Ledger`; the file knows what is used.

    >>> import tempfile, os
    >>> from dpmanifolds.ledger import Ledger
    >>> from dpmanifolds.privacy import ApproxDP, Guarantee
    >>> ledger = Ledger(os.path.join(tempfile.mkdtemp(), "privacy.ledger"))
    >>> _ = ledger.open_dataset("survey", ApproxDP(1.0, 1e-6))
    >>> plan = ledger.reserve("survey", [Guarantee.laplace(0.2)] * 3, what="three means")
    >>> plan.use(0).what
    'three means'
    >>> plan.unused()
    (1, 2)
    >>> plan.use(0)
    Traceback (most recent call last):
    ...
    dpmanifolds.errors.BudgetExceededError: part 0 of entry 2 is used up; unused parts: 1, 2. Each part pays for one
    release.
    """

    path: str
    dataset: str
    number: int
    parts: tuple[Guarantee, ...]

    def __post_init__(self) -> None:
        text("path", self.path)
        text("dataset", self.dataset)
        _whole_number("number", self.number, 1, "up, as entries are counted")
        if not isinstance(self.parts, tuple) or not all(isinstance(part, Guarantee) for part in self.parts):
            raise ArgumentError("parts must be a tuple of guarantees: take the plan that Ledger.reserve returned.")

    def unused(self) -> tuple[int, ...]:
        """The parts that can still be used."""
        with _store.transaction(self.path) as connection:
            return self._unused(_store.read_log(connection, self.path))

    def use(
        self,
        part: int,
        *,
        what: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        reproducible: bool = False,
    ) -> Receipt:
        """Mark a part as used, durably, before its noise is drawn; a second time is refused."""
        return self._use(part, None, what, parameters, reproducible)

    def spend(
        self,
        dataset: str,
        guarantee: Guarantee,
        *,
        what: str,
        parameters: Mapping[str, Any] | None = None,
        reproducible: bool = False,
        run: NewRun | None = None,
    ) -> Receipt:
        """Use the first unused part with exactly this promise: a reservation stands wherever a ledger does."""
        if dataset != self.dataset:
            raise ArgumentError(f"this plan was reserved on {self.dataset!r}; got dataset = {dataset!r}.")
        return self._use(None, guarantee, what, parameters, reproducible, run)

    def _use(
        self,
        part: int | None,
        guarantee: Guarantee | None,
        what: str | None,
        parameters: Mapping[str, Any] | None,
        reproducible: bool,
        run: NewRun | None = None,
    ) -> Receipt:
        refuse_reproducible(reproducible)
        details = {"parameters": public_parameters(parameters), "reservation": self.number}
        if part is not None:
            _whole_number("part", part, 0, f"to {len(self.parts) - 1}", len(self.parts) - 1)
        with _store.transaction(self.path, write=True) as connection:
            log = _store.read_log(connection, self.path)
            unused = self._unused(log)
            fitting = [i for i in unused if i == part or self.parts[i] == guarantee]
            if not fitting:
                wanted = f"part {part} of entry {self.number} is used up"
                if part is None:
                    wanted = f"no unused part of entry {self.number} has the promise {guarantee}"
                listed = ", ".join(map(str, unused)) or "none"
                raise BudgetExceededError(
                    f"{wanted}; unused parts: {listed}. Each part pays for one release.", dataset=self.dataset
                )
            name = text("what", self._plan(log).what if what is None else what)
            details = {**details, "part": fitting[0], "what": name}
            entry = enter_release(connection, log, "use", self.dataset, details, run)
        return Receipt(self.dataset, name, entry.number, entry.when, entry.hash)

    def _plan(self, log: list[Entry]) -> Entry:
        plan = next((entry for entry in log if entry.number == self.number), None)
        if plan is None or (plan.kind, plan.dataset, plan.parts) != ("reserve", self.dataset, self.parts):
            raise LedgerError(f"entry {self.number} of the ledger {self.path} is not this plan: it is another file.")
        return plan

    def _unused(self, log: list[Entry]) -> tuple[int, ...]:
        number = self._plan(log).number
        used = {
            entry.details["part"]
            for entry in log[number:]
            if entry.kind == "use" and entry.details["reservation"] == number
        }
        return tuple(i for i in range(len(self.parts)) if i not in used)


def _whole_number(name: str, value: Any, least: int, allowed: str, most: int | None = None) -> None:
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ArgumentError(f"must be a whole number from {least} {allowed}; got {value!r}.", argument=name)
