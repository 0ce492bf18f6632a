"""A plan fixed in advance and entered as one release; each of its parts is used up once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmanifolds.errors import ArgumentError, BudgetExceededError, LedgerError
from dpmanifolds.ledger import _store
from dpmanifolds.ledger.records import Entry, Receipt, public_parameters, refuse_reproducible, text
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
    ) -> Receipt:
        """Use the first unused part with exactly this promise: a reservation stands wherever a ledger does."""
        if dataset != self.dataset:
            raise ArgumentError(f"this plan was reserved on {self.dataset!r}; got dataset = {dataset!r}.")
        return self._use(None, guarantee, what, parameters, reproducible)

    def _use(
        self,
        part: int | None,
        guarantee: Guarantee | None,
        what: str | None,
        parameters: Mapping[str, Any] | None,
        reproducible: bool,
    ) -> Receipt:
        refuse_reproducible(reproducible)
        details = {"parameters": public_parameters(parameters), "reservation": self.number}
        if part is not None and part not in range(len(self.parts)):
            raise ArgumentError(f"part must be from 0 to {len(self.parts) - 1}; got {part!r}.")
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
            name = text("what", log[self.number - 1].what if what is None else what)
            details = {**details, "part": fitting[0], "what": name}
            entry = _store.append(connection, log, "use", self.dataset, details)
        return Receipt(self.dataset, name, entry.number, entry.when, entry.hash)

    def _unused(self, log: list[Entry]) -> tuple[int, ...]:
        plan = log[self.number - 1] if self.number <= len(log) else None
        if plan is None or (plan.kind, plan.dataset, plan.parts) != ("reserve", self.dataset, self.parts):
            raise LedgerError(f"entry {self.number} of the ledger {self.path} is not this plan: it is another file.")
        used = {
            entry.details["part"]
            for entry in log[self.number :]
            if entry.kind == "use" and entry.details["reservation"] == self.number
        }
        return tuple(i for i in range(len(self.parts)) if i not in used)
