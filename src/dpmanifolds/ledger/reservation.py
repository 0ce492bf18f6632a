"""A plan fixed in advance and entered as one release; each of its parts is used up once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmanifolds.errors import ArgumentError, BudgetExceededError, LedgerError
from dpmanifolds.ledger import _store
from dpmanifolds.ledger.records import Entry, Receipt, public_parameters, refuse_reproducible, text
from dpmanifolds.ledger.runs import NewRun, enter_release
from dpmanifolds.privacy import Guarantee

__all__ = ["Reservation"]


@dataclass(frozen=True)
class Reservation:
    """Entry `number` of a ledger: promises paid for together. A value like `Ledger`; the file knows what is used.

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
                wanted = (
                    f"part {part} of entry {self.number} is used up"
                    if part is not None
                    else (f"no unused part of entry {self.number} has the promise {guarantee}")
                )
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
