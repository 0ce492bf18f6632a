"""The account: what each data set may spend, and every release entered before its noise is drawn.

>>> import tempfile, os
>>> from dpmanifolds.ledger import Ledger
>>> from dpmanifolds.privacy import GaussianDP, Guarantee
>>> ledger = Ledger(os.path.join(tempfile.mkdtemp(), "privacy.ledger"))
>>> dataset = ledger.open_dataset("survey", GaussianDP(1.25))
>>> receipt = ledger.spend("survey", Guarantee.gaussian(0.75), what="mean")
>>> ledger.remaining("survey")
GaussianDP(mu=1.0)
>>> ledger.spend("survey", Guarantee.gaussian(1.125), what="median")
Traceback (most recent call last):
...
dpmanifolds.errors.BudgetExceededError: data set 'survey': spent GaussianDP(mu=0.75), asked GaussianDP(mu=1.125),
remaining GaussianDP(mu=1.0), of a total of GaussianDP(mu=1.25). Nothing was recorded; ask for a smaller budget.
"""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dpmanifolds._validate import choice, shown, text
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, LedgerError, PrivacyLeakWarning, SharedRecordsWarning, warn_user
from dpmanifolds.ledger import _store
from dpmanifolds.ledger.filters import Standing, limit_of, pure_epsilon
from dpmanifolds.ledger.records import (
    WHOLE,
    Dataset,
    Entry,
    Receipt,
    canonical,
    guarantee_to_dict,
    public_parameters,
    refuse_reproducible,
)
from dpmanifolds.ledger.runs import NewRun, Reservation, enter_release, read_run
from dpmanifolds.privacy import Budget, Guarantee, compose
from dpmanifolds.privacy.guarantee import ADJACENCIES


@dataclass(frozen=True, init=False)
class Ledger:
    """The account in the file at `path`: a value that holds the path and nothing else.

    It can be copied, pickled, cloned and carried over fork; every method is one transaction of its own on the file,
    safe between threads and processes. The file is made by the first `open_dataset`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = dpm.Ledger(Path(folder) / "privacy.ledger")
    ...     _ = ledger.open_dataset("survey", dpm.PureDP(2.0))
    ...     records = dpm.SPD(2).random_point(500, rng=0)
    ...     _ = dpm.private_mean(records, ball, dpm.PureDP(0.5), ledger=ledger, dataset="survey")
    ...     ledger.remaining("survey")
    PureDP(epsilon=1.5)
    """

    path: str

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if not isinstance(name, str) or name in ("", ":memory:"):
            raise ArgumentError(
                f"must name a file, as only a file outlives a crash; got {shown(path)}.", argument="path"
            )
        object.__setattr__(self, "path", os.path.abspath(name))

    def open_dataset(
        self,
        name: str,
        budget: Budget,
        *,
        filter: str = "auto",
        alpha: float | None = None,
        fingerprint: str | None = None,
        adjacency: str = "replace-one",
        unit: str = "record",
    ) -> Dataset:
        """Give the data set `name` its total budget, once; later calls with the same arguments change nothing.

        `filter` fixes how adaptively chosen releases add up (`filters`, docs/ledger.md); it matters for a total of
        `ApproxDP` only. `alpha` is the order of filter="renyi". `fingerprint` is what `keyed_fingerprint` returned;
        where it stands under another name, too, opening and every charge warn (`SharedRecordsWarning`).
        """
        text("name", name)
        text("unit", unit)
        choice("adjacency", adjacency, ADJACENCIES)
        if fingerprint is not None:
            text("fingerprint", fingerprint)
        wanted = Dataset(name, budget, limit_of(budget, filter, alpha), adjacency, unit, fingerprint)
        with _store.transaction(self.path, write=True, create=True) as connection:
            log = _store.read_log(connection, self.path)
            known = next((entry.as_dataset() for entry in log if (entry.kind, entry.dataset) == ("open", name)), None)
            _warn_of_twins(log, wanted)
            if known is None:
                _store.append(connection, log, "open", name, wanted.to_dict())
                return wanted
        # the limit itself is not compared: another version of the package may compute it to other last digits
        same = known.filter == wanted.filter and (alpha is None or known.limit == wanted.limit)
        if not same or replace(known, limit=wanted.limit) != wanted:
            raise ArgumentError(
                f"data set {name!r} is open already, as {known!r}; asked was {wanted!r}. What was promised once stays: "
                "use the same arguments, or another name for other records."
            )
        return known

    def spend(
        self,
        dataset: str,
        guarantee: Guarantee,
        *,
        what: str,
        parameters: Mapping[str, Any] | None = None,
        reproducible: bool = False,
        delta: float | None = None,
        run: NewRun | None = None,
    ) -> Receipt:
        """Enter a release, durably, before its noise is drawn; refuse it, and write nothing, where it does not fit.

        `what` and `parameters` are public. `reproducible` releases (made with a seed) are refused. `delta` is for
        filter="basic" alone: the δ at which a release without an (ε, δ) of its own is read. A first release that
        exceeds the filter but fits the total budget is taken as the only one. `run`: the draws that it pays for, which
        are then taken one by one (`runs`).
        """
        refuse_reproducible(reproducible)
        details = {"what": text("what", what), "parameters": public_parameters(parameters)}
        entry = self._charge("spend", dataset, (guarantee,), details, delta, run)
        return Receipt(dataset, what, entry.number, entry.when, entry.hash)

    def note_look(self, dataset: str, domain: Any) -> None:
        """Enter, before records are looked at, the public domain that they are looked at with (`validate`).

        Nothing is charged, as nothing is released. A release in another domain after that is marked
        (`domain_after_look`): whoever looked may have chosen it by the records.
        """
        told = {"domain": repr(domain), "domain_hash": domain.fingerprint}
        with _store.transaction(self.path, write=True) as connection:
            log = _store.read_log(connection, self.path)
            self._standing(log, dataset)
            if told["domain_hash"] not in _looked_at(log, dataset):
                details = {"what": "look at the records, not private", "parameters": told}
                _store.append(connection, log, "look", dataset, details)

    def chose_after_look(self, dataset: str, domain: Any) -> bool:
        """Whether records were looked at with other domains than this one, and never with this one first."""
        looked = _looked_at(self._log(), dataset)
        return bool(looked) and domain.fingerprint != looked[0]

    def reserve(
        self,
        dataset: str,
        guarantees: Sequence[Guarantee],
        *,
        what: str,
        parameters: Mapping[str, Any] | None = None,
        delta: float | None = None,
    ) -> Reservation:
        """Enter a plan fixed in advance as one release with the composed promise; each part is then used once.

        On an untouched data set a plan whose privacy-loss distribution fits the total budget may take the whole of
        it, also where the filter could not read it.
        """
        parts = tuple(guarantees)
        details = {"what": text("what", what), "parameters": public_parameters(parameters)}
        entry = self._charge("reserve", dataset, parts, details, delta)
        return Reservation(self.path, dataset, entry.number, parts)

    def remaining(self, dataset: str, *, pure: bool = False) -> Budget | None:
        """What can still be spent in one release, in the kind of the filter; None is nothing.

        With a total of (ε, δ) and pure releases only, Σε ≤ ε is enough (`filters`): `pure=True` tells what that
        leaves, and so does `pure=False` once the filter has nothing left.
        """
        standing = self._standing(self._log(), dataset)
        return standing.remaining_pure if pure else standing.remaining

    def spent(self, dataset: str) -> Budget | None:
        """What has been spent, in the kind of the filter; as pure ε beyond it; the total where one release took all."""
        return self._standing(self._log(), dataset).spent

    def entries(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """The log, oldest first, of one data set or of all."""
        log = self._log()
        if dataset is not None:
            self._standing(log, dataset)
        return tuple(entry for entry in log if dataset is None or entry.dataset == dataset)

    def datasets(self) -> tuple[Dataset, ...]:
        """The data sets, in the order they were opened."""
        return tuple(entry.as_dataset() for entry in self._log() if entry.kind == "open")

    def verify(self, receipts: Iterable[Receipt] = ()) -> int:
        """Check pages, hash chain, runs and sums, and that these receipts stand in it; the number of entries.

        The chain shows accidents and edits. Whoever rewrites it from some entry on is shown by a receipt after it.
        """
        with _store.transaction(self.path) as connection:
            _store.check_pages(connection, self.path)
            log = _store.read_log(connection, self.path)
            for entry in log:
                if "run" in entry.details:
                    read_run(connection, self.path, entry)
        for dataset in {entry.dataset for entry in log}:
            standing = self._standing(log, dataset)
            if not standing.sound:
                raise LedgerError(f"the ledger {self.path} shows more spent on {dataset!r} than its total budget.")
        for receipt in receipts:
            if not 0 < receipt.number <= len(log) or log[receipt.number - 1].hash != receipt.hash:
                raise LedgerError(
                    f"the ledger {self.path} does not hold the receipt of entry {receipt.number}: it was rewritten, or "
                    "replaced by an older copy."
                )
        return len(log)

    def export(self, format: str = "json") -> str:
        """The whole log as text, "json" or "csv"."""
        choice("format", format, ("json", "csv"))
        rows = [asdict(entry) for entry in self._log()]
        if format == "json":
            return json.dumps({"ledger": rows}, indent=2, allow_nan=False)
        table = io.StringIO()
        writer = csv.writer(table)
        writer.writerow(["number", "when", "kind", "dataset", "what", "details", "hash"])
        for row in rows:
            details = row["details"]
            values = [row["number"], row["when"], row["kind"], row["dataset"], details.get("what", "")]
            writer.writerow([*values, canonical(details), row["hash"]])
        return table.getvalue()

    def _log(self) -> list[Entry]:
        with _store.transaction(self.path) as connection:
            return _store.read_log(connection, self.path)

    def _standing(self, log: list[Entry], dataset: str) -> Standing:
        standing: Standing | None = None
        for entry in log:
            if isinstance(dataset, str) and entry.dataset == dataset:
                standing = Standing(entry.as_dataset()) if standing is None else standing.after(entry)
        if standing is None:
            known = ", ".join(repr(entry.dataset) for entry in log if entry.kind == "open") or "none"
            raise ArgumentError(
                f"the ledger {self.path} has no data set {dataset!r}; it has {known}. Call open_dataset first."
            )
        return standing

    def _charge(
        self,
        kind: str,
        dataset: str,
        parts: tuple[Guarantee, ...],
        details: dict[str, Any],
        delta: float | None,
        run: NewRun | None = None,
    ) -> Entry:
        together = compose(*parts)
        details["pure"] = pure_epsilon(together)
        details["guarantees"] = [guarantee_to_dict(part) for part in parts]
        with _store.transaction(self.path, write=True) as connection:
            log = _store.read_log(connection, self.path)
            standing = self._standing(log, dataset)
            _warn_of_twins(log, standing.dataset)
            charged = standing.priced(together, delta, plan=kind == "reserve")
            details["charged"] = WHOLE if charged is None else charged.to_dict()
            return enter_release(connection, log, kind, dataset, details, run)


def mark_domain(ledger: Any, dataset: str | None, domain: Any) -> dict[str, Any]:
    """What the entry of a release must tell of its domain: that it may have been chosen by a look, with a warning.

    Every entry point asks, before it charges a `Ledger` or a `Reservation`; nothing is told where nobody looked.
    """
    if not isinstance(ledger, Ledger | Reservation) or not isinstance(domain, Domain) or dataset is None:
        return {}
    if not Ledger(ledger.path).chose_after_look(dataset, domain):
        return {}
    warn_user(
        f"the records of {dataset!r} were looked at with another domain before this one was chosen: what the choice "
        "tells about them is not in the promise. The ledger marks the release.",
        PrivacyLeakWarning,
    )
    return {"domain_after_look": True}


def _looked_at(log: list[Entry], dataset: str) -> list[str]:
    """The domains of the looks at a data set, oldest first."""
    return [entry.parameters["domain_hash"] for entry in log if (entry.kind, entry.dataset) == ("look", dataset)]


def _warn_of_twins(log: list[Entry], dataset: Dataset) -> None:
    """A warning where the fingerprint stands under another name; made an error, it leaves nothing in the file."""
    opened = (entry for entry in log if entry.kind == "open" and entry.dataset != dataset.name)
    twins = [entry.dataset for entry in opened if entry.details["fingerprint"] == dataset.fingerprint]
    if dataset.fingerprint is not None and twins:
        warnings.warn(
            f"data set {dataset.name!r} has the fingerprint of {', '.join(map(repr, twins))}: these are the same "
            "records under several names, and each name has a budget of its own. What is spent on all of them adds up "
            "for the people in them; charge one name only.",
            SharedRecordsWarning,
            stacklevel=4,
        )


def as_ledger(ledger: Ledger | Reservation | str | os.PathLike[str]) -> Ledger | Reservation:
    """A path as a `Ledger`; a `Ledger` or a `Reservation` as it is: either has `spend`.

    >>> from dpmanifolds.ledger import Ledger, as_ledger
    >>> as_ledger("privacy.ledger") == Ledger("privacy.ledger")
    True
    """
    if isinstance(ledger, Ledger | Reservation):
        return ledger
    if isinstance(ledger, str | os.PathLike):
        return Ledger(ledger)
    raise ArgumentError(
        f"must be a Ledger, a Reservation or the path of a file; got {shown(ledger)}.", argument="ledger"
    )
