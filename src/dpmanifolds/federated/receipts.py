"""The books of a release of several sites: what each site's ledger says of its rounds, beside what the release says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmanifolds.errors import ArgumentError
from dpmanifolds.federated.coordinator import Outcome
from dpmanifolds.ledger import Ledger
from dpmanifolds.releases import ClassMeans
from dpmanifolds.releases.sites import SitesPart


@dataclass(frozen=True)
class Reconciliation:
    """What the ledger of a site and a release say of the same rounds.

    >>> print(Reconciliation("a", ("9f",), ("3c",), ()))
    site 'a': 1 round(s) paid for and in the release; in the release, and NOT paid for: 3c
    """

    site: str
    paid: tuple[str, ...]
    """Rounds that the ledger paid for and that the release lists with this site."""
    unpaid: tuple[str, ...]
    """Rounds that the release lists with this site, and that its ledger does not know: something is wrong."""
    unused: tuple[str, ...]
    """Rounds of the same studies that the ledger paid for, and that the release does not list with this site."""

    @property
    def agrees(self) -> bool:
        """Whether the site paid for all that it is in; what it paid for in vain is no disagreement."""
        return not self.unpaid

    def __str__(self) -> str:
        words = f"site {self.site!r}: {len(self.paid)} round(s) paid for and in the release"
        if self.unpaid:
            words += f"; in the release, and NOT paid for: {', '.join(self.unpaid)}"
        if self.unused:
            words += f"; paid for, and not in the release: {', '.join(self.unused)}"
        return words


def reconcile(release: Outcome, site: str, ledger: Ledger) -> Reconciliation:
    """Compare the rounds of a release with the entries of a site's ledger, after checking the chain of the ledger.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.federated import reconcile
    >>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
    >>> study = dpm.Study("mean", ball, dpm.GaussianDP(0.5), n=60, sites=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = dpm.Ledger(Path(folder) / "a.ledger")
    ...     _ = ledger.open_dataset("patients", dpm.GaussianDP(1.0))
    ...     one = dpm.Site("a", np.zeros((30, 2)), ledger=ledger, dataset="patients")
    ...     release = dpm.run_study(study, [one, dpm.Site("b", np.zeros((30, 2)))])
    ...     reconcile(release, "a", ledger).agrees
    True
    """
    part = _part(release)
    ledger.verify()
    told = [entry.parameters for entry in ledger.entries() if entry.parameters.get("site") == site]
    known: dict[str, Any] = {each["round"]: each.get("study") for each in told if "round" in each}
    mine = [asked for asked, names in zip(part.rounds, part.answered, strict=True) if site in names]
    studies = {known[asked] for asked in part.rounds if asked in known}
    return Reconciliation(
        site,
        tuple(asked for asked in mine if asked in known),
        tuple(asked for asked in mine if asked not in known),
        tuple(asked for asked, study in known.items() if study in studies and asked not in mine),
    )


def _part(release: Outcome) -> SitesPart:
    one = release.releases[0] if isinstance(release, ClassMeans) else release
    if one.sites is None:
        raise ArgumentError("must be a release of several sites.", argument="release")
    return one.sites
