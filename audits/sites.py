"""Shares of noise attacked by those who know most: the coordinator, together with as many sites as are tolerated.

>>> report = audit_sites(draws=400, rng=0)
>>> print(report.claim, report.flagged)
μ = 1 False

Of k sites one has the record that moves, from one end of the ball to the other. The coordinator sees the sum; t other
sites tell him their answers, or, gone, have sent none. What is left is the answer of the site and those of the honest
others, whose records he knows. `python -m audits.sites` prints the reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpmanifolds.auditing.report import AuditReport
from dpmanifolds.descent.losses import FrechetMeanLoss
from dpmanifolds.domains import Ball
from dpmanifolds.federated import Coordinator, Descent, Round, Site, Study
from dpmanifolds.federated.engines import add_residues
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import GaussianDP
from dpmanifolds.sums.shares import NoiseShares, center_residues

__all__ = ["audit_sites", "main"]

_DIM, _RECORDS = 2, 20


@contextmanager
def _weaker_shares(factor: float) -> Iterator[None]:
    """Every share drawn with so much of its scale."""
    kept = NoiseShares.draw

    def draw(shares: NoiseShares, rng: Any = None) -> list[int]:
        weak = NoiseShares(shares.parties, shares.tolerated, shares.sigma * factor, shares.dim, shares.halved)
        return kept(weak, rng)

    NoiseShares.draw = draw  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        NoiseShares.draw = kept  # type: ignore[method-assign]


def _view(asked: Round, end: float, known: int, gone: int, source: np.random.Generator) -> list[int]:
    """The sum of those who answered, less the answers that the coordinator was told."""
    moved = np.zeros((_RECORDS, _DIM))
    moved[0, 0] = end
    # the first record is the only one of its class, and so in a block that everyone knows
    labels = np.minimum(np.arange(_RECORDS), 1)
    names = asked.sites[: len(asked.sites) - gone]
    held = [moved if number == 0 else np.zeros((_RECORDS, _DIM)) for number in range(len(names))]
    sites = [Site(name, points, labels=labels, rng=source) for name, points in zip(names, held, strict=True)]
    answers = [site.answer(asked) for site in sites]
    told = answers[len(answers) - known :]
    whole, theirs = add_residues(asked, answers), add_residues(asked, told)
    left = [(number - other) % asked.modulus for number, other in zip(whole, theirs, strict=True)]
    return center_residues(left[: asked.shares.dim], asked.modulus)


def audit_sites(
    *,
    statistic: str = "mean",
    parties: int = 3,
    tolerated: int = 1,
    gone: int = 0,
    transport: str = "secure-sum",
    mu: float = 1.0,
    draws: int = 8000,
    noise_factor: float = 1.0,
    confidence: float = 0.95,
    rng: Any = None,
) -> AuditReport:
    """Attack one round through `Site.answer`, with `draws` of each neighbour; `gone` of the tolerated sites are gone.

    `statistic`: "mean", one step of a "descent", or a "two-sample test". With transport "plain" the coordinator sees
    the answer of the site by itself: all others tell theirs.
    """
    names = [f"site {number}" for number in range(parties)]
    ball = Ball(Euclidean(_DIM), np.zeros(_DIM), 1.0)
    whole = _RECORDS * parties
    asks: dict[str, dict[str, Any]] = {
        "mean": {"n": whole},
        "descent": {"n": whole, "descent": Descent(FrechetMeanLoss(ball), steps=1, step_size=1.0)},
        "two-sample test": {"n": [parties, whole - parties], "classes": [0, 1], "blocks": (1, 3), "level": 0.3},
    }
    common: dict[str, Any] = {"sites": names, "tolerated": tolerated, "transport": transport}
    study = Study(statistic, ball, GaussianDP(mu), **common, **asks[statistic])
    asked = Coordinator(study).round
    assert asked is not None
    source = np.random.default_rng() if rng is None else as_generator(rng)
    known = parties - gone - 1 if transport == "plain" else tolerated - gone
    with _weaker_shares(noise_factor):
        first, second = (
            np.array([_view(asked, end, known, gone, source)[0] for _ in range(draws)], dtype=np.float64)
            for end in (1.3, -1.3)
        )
    helpers = f"{known} of {parties} sites tell their answers, {gone} are gone"
    return AuditReport.from_scores(
        # the likelihood ratio of two Gaussians that differ in their mean rises with the number itself
        first / asked.sigma * (-1.0 if statistic == "descent" else 1.0),
        second / asked.sigma * (-1.0 if statistic == "descent" else 1.0),
        asked.guarantee,
        confidence,
        mechanism="Gaussian shares",
        numerics="rounded",
        domain=repr(ball.manifold),
        n=study.counts[0],
        draws=draws,
        noise_factor=noise_factor,
        pair=f"{statistic}: one record of one site, from end to end; {transport}, {helpers}",
    )


def main(draws: int = 8000) -> None:
    """Print the attack on sums and on single answers, as they are and with 30 % too little noise."""
    ways: list[dict[str, Any]] = [{}, {"gone": 1}, {"tolerated": 0}, {"transport": "plain", "tolerated": 0}]
    ways += [{"statistic": "descent"}, {"statistic": "two-sample test"}]
    for way in ways:
        for factor in (1.0, 0.7):
            print(audit_sites(draws=draws, noise_factor=factor, rng=0, **way))


if __name__ == "__main__":
    main()
