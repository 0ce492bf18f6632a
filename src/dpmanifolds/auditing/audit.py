"""The audit of a mechanism: attack it on the worst known neighbours, and hold the result against its promise.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> from dpmanifolds.auditing import audit
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
>>> report = audit("wrapped-laplace", ball, 100, PureDP(1.0), draws=2000, rng=0)
>>> report.claimed, report.flagged
(1.0, False)
>>> report.lower_bound > 0.4
True
"""

from __future__ import annotations

from typing import Any

from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.auditing.bounds import lower_bound, profile_bands
from dpmanifolds.auditing.claims import Claim
from dpmanifolds.auditing.draws import attack, worst_of
from dpmanifolds.auditing.neighbours import Neighbours, worst_neighbours
from dpmanifolds.auditing.report import AuditReport, profile_points, score_histogram
from dpmanifolds.domains import Ball
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Budget
from dpmanifolds.sums import choose, mean_facts

__all__ = ["audit"]


def audit(
    mechanism: str,
    domain: Ball,
    n: int,
    budget: Budget,
    *,
    numerics: str = "safe",
    draws: int = 100_000,
    confidence: float = 0.95,
    noise_factor: float = 1.0,
    pair: Neighbours | None = None,
    rng: Any = None,
) -> AuditReport:
    """Attack the named mechanism for the private mean of n records in a ball.

    `draws` releases of each of two neighbours are scored by their exact log-likelihood ratio: of the noisy sum of
    integers for a wrapped mechanism, in one step, of the released point for the others. Up to about six dimensions such
    an attack has the power to see 30 % too little noise (`noise_factor=0.7` shows that it does); above, compare laws
    instead. Several steps, classes, persons and other releases are attacked by `audit_release`. The claim that is
    attacked is the mechanism's own guarantee, which may be stronger than the budget. `pair` are neighbours of your own,
    the worst known ones otherwise. `rng=None` draws from the secure source, as a release does.

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.auditing import audit
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4)
    >>> report = audit("wrapped-gaussian", ball, 100, dpm.GaussianDP(1.0), draws=2000, rng=0)
    >>> report.claim.name, report.claimed, report.flagged
    ('μ', 1.0, False)
    """
    draws = positive_integer("draws", draws, at_least=200)
    factor = positive_number("noise_factor", noise_factor)
    chosen = choose(mean_facts(domain, n), budget, mechanism=mechanism, numerics=numerics).mechanism
    claim = Claim.of(chosen.guarantee)
    if pair is None:
        pair = worst_of(worst_neighbours(domain, n, rng=0), chosen)
    source = None if rng is None else as_generator(rng)
    first, second = attack(chosen, pair, draws, source, factor)
    return AuditReport(
        mechanism=chosen.name,
        numerics=chosen.numerics,
        domain=repr(domain.manifold),
        n=n,
        claim=claim,
        bound=lower_bound(first, second, claim, confidence),
        confidence=confidence,
        draws=draws,
        noise_factor=factor,
        pair=pair.description,
        profile=profile_bands(first, second, chosen.guarantee, profile_points(chosen.guarantee), confidence),
        histogram=score_histogram(first, second),
    )
