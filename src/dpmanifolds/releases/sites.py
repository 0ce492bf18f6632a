"""What several sites contributed to a release, and who may learn what from it: the field `sites` of a release."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SitesPart:
    """Sites, rounds and views of a release that no single place had the records for (docs/proofs/federated.md).

    >>> part = SitesPart(("a", "b", "c"), 1, "secure-sum", "mpyc", ("9f…",), (("a", "b", "c"),), 0.8165, 0.8165, 1.0, 1)
    >>> SitesPart.from_dict(part.to_dict()) == part
    True
    """

    names: tuple[str, ...]
    """All that were asked."""
    tolerated: int
    """t: how many may be gone or tell their shares to whoever looks, together."""
    transport: str
    """How answers travelled: "plain" shows each of them to the coordinator."""
    engine: str
    """What added them up: "one process" is a simulation, "none" the coordinator himself."""
    rounds: tuple[str, ...]
    """The hashes of the rounds, in order: each stands in the ledgers of the sites that answered it."""
    answered: tuple[tuple[str, ...], ...]
    """Who answered each round."""
    outside: float
    """μ for whoever sees the release and took no part."""
    coordinator: float
    """μ for the coordinator, who sees what the transport shows."""
    coalition: float
    """μ for the coordinator together with up to `colluding` sites, about the records of any other site: the claim."""
    colluding: int
    """t less the sites that were gone where most were; all other sites where each drew the whole noise."""
    overflow: float = 0.0
    """A bound on the chance that some sum was misread modulo the modulus: accuracy, not privacy."""
    log10_eta: float | None = None
    """log10 of what shares add to the promise of pooled noise, which the claim holds; None for nothing."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SitesPart:
        """What `to_dict` wrote, also after JSON has made lists of tuples."""
        lists = {"names", "rounds", "answered"}
        plain = {key: value for key, value in data.items() if key not in lists}
        answered = tuple(tuple(names) for names in data["answered"])
        return cls(names=tuple(data["names"]), rounds=tuple(data["rounds"]), answered=answered, **plain)

    def __str__(self) -> str:
        fewest = min(len(names) for names in self.answered)
        told = f"{len(self.names)} sites, {len(self.rounds)} round(s), {fewest} or more answered"
        seen = "each answer" if self.transport == "plain" else f"the sum alone (engine: {self.engine})"
        return (
            f"{told}: the coordinator sees {seen}. For records of one site the promise is μ = {self.outside:.4g} to "
            f"everyone outside, {self.coordinator:.4g} to the coordinator, and {self.coalition:.4g} to the coordinator "
            f"with up to {self.colluding} other site(s)."
        )
