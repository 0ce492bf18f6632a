"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpmanifolds.auditing.bounds import Claim, LowerBound, lower_bound, profile_bands, quantised
from dpmanifolds.privacy import Guarantee

_PROFILE_POINTS = 25
_BINS = 60


def _score_histogram(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges, and the shares of both neighbours' scores between them."""
    pooled = np.concatenate([quantised(first), quantised(second)])
    edges = np.linspace(pooled.min(), max(pooled.max(), pooled.min() + 1e-9), _BINS + 1)
    one, other = (np.histogram(each, edges)[0] / each.size for each in (first, second))
    return edges, one, other


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditReport:
    """An attack on a mechanism, held against its promise.

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.auditing import audit
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4)
    >>> weak = audit("wrapped-laplace", ball, 100, dpm.PureDP(1.0), draws=3000, noise_factor=0.4, rng=0)
    >>> weak.flagged, weak.verdict
    (True, 'broken: the attack shows more than is promised')
    """

    mechanism: str
    numerics: str
    domain: str
    n: int | None
    """None where the number of records is protected."""
    claim: Claim
    """What is promised."""
    bound: LowerBound
    """What the attack showed, at `confidence`."""
    confidence: float
    draws: int
    """Releases of each neighbour; half of them chose the event, half were counted."""
    noise_factor: float
    """1 for the mechanism as it is; 0.7 for one with 30 % too little noise."""
    pair: str
    """The neighbours that were told apart."""
    profile: np.ndarray
    """Columns ε, estimated δ, lower band, upper band, claimed δ (see `profile_bands`)."""
    histogram: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Edges of the scores, and the shares of both neighbours between them."""

    @classmethod
    def from_scores(
        cls,
        first: np.ndarray,
        second: np.ndarray,
        guarantee: Guarantee,
        confidence: float,
        delta: float | None = None,
        **about: Any,
    ) -> Self:
        """What the scores of draws of two neighbours show against a guarantee, or against its ε at `delta`."""
        claim = Claim.of(guarantee, delta)
        points = np.linspace(0.0, max(1.5 * min(guarantee.epsilon(1e-3), 20.0), 0.1), _PROFILE_POINTS)
        return cls(
            claim=claim,
            bound=lower_bound(first, second, claim, confidence),
            confidence=confidence,
            profile=profile_bands(first, second, guarantee, points, confidence),
            histogram=_score_histogram(first, second),
            **about,
        )

    @property
    def claimed(self) -> float:
        return self.claim.value

    @property
    def lower_bound(self) -> float:
        """With `confidence`, the mechanism keeps no smaller number than this."""
        return self.bound.value

    @property
    def flagged(self) -> bool:
        """Whether the promise is broken: happens to a promise that is kept with probability 1 − confidence at most."""
        return self.lower_bound > self.claimed

    @property
    def verdict(self) -> str:
        if self.flagged:
            return "broken: the attack shows more than is promised"
        share = self.lower_bound / self.claimed
        return f"not broken: the attack reaches {share:.0%} of what is promised"

    def __str__(self) -> str:
        noise = "" if self.noise_factor == 1 else f", noise × {self.noise_factor:g}"
        count = "" if self.n is None else f", n = {self.n}"
        return (
            f"{self.mechanism} ({self.numerics}{noise}) on {self.domain}{count}\n"
            f"  promised: {self.claim}\n"
            f"  attacked: {self.claim.name} ≥ {self.lower_bound:.4g} with confidence {self.confidence:.0%}, "
            f"{self.draws} releases of each neighbour\n"
            f"  neighbours: {self.pair}\n"
            f"  {self.verdict}"
        )

    def plot(self, ax: Any = None) -> Any:
        """The estimated profile with its bands, and the promised one; returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        epsilon, estimate, low, high, claimed = self.profile.T
        ax.fill_between(epsilon, low, high, alpha=0.3, label=f"attack, {self.confidence:.0%} band")
        ax.plot(epsilon, estimate, label="attack")
        ax.plot(epsilon, claimed, color="black", linestyle="--", label="promised")
        ax.set_xlabel("ε")
        ax.set_ylabel("δ")
        ax.set_title(f"{self.mechanism} ({self.numerics}) on {self.domain}")
        ax.legend()
        return ax
