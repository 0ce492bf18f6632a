"""Shares of noise attacked by those who know most: the coordinator, together with as many sites as are tolerated.

>>> report = audit_sites(draws=400, rng=0)
>>> print(report.claim, report.flagged)
μ = 1 False

Of k sites one has the record that moves, from one end of the ball to the other. The coordinator sees the sum; t other
sites tell him their answers, or, gone, have sent none. What is left is the answer of the site and those of the honest
others, whose records he knows. `python -m audits.sites` prints the reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds.auditing.report import AuditReport
from dpmanifolds.descent.losses import FrechetMeanLoss
from dpmanifolds.domains import Ball
from dpmanifolds.federated import Coordinator, Descent, Round, Site, Study, sum_in_process
from dpmanifolds.federated.engines import add_residues
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import GaussianDP
from dpmanifolds.sums.shares import NoiseShares, center_residues

__all__ = ["audit_sites", "main"]

_DIM, _RECORDS = 2, 20


class _Ask(NamedTuple):
    """What is asked for, where the record is in either neighbour, and a budget whose attacked part is about 1."""

    options: Callable[[Ball, int], dict[str, Any]]
    ends: tuple[tuple[float, float], tuple[float, float]] = ((1.3, 0.0), (-1.3, 0.0))
    mu: float = 1.0


def _test(_: Ball, parties: int) -> dict[str, Any]:
    counts = [parties, (_RECORDS - 1) * parties]
    return {"n": counts, "classes": [0, 1], "blocks": (1, 3), "level": 0.3}


_ASKS = {
    "mean": _Ask(lambda *_: {}),
    "radius": _Ask(lambda *_: {"refine": 1}, ((0.0, 0.0), (1.3, 0.0)), 4.5),
    "descent": _Ask(lambda ball, _: {"descent": Descent(FrechetMeanLoss(ball), steps=1, step_size=1.0)}),
    "tangent PCA": _Ask(lambda *_: {}, ((1.3, 0.0), (0.0, 1.3)), 1.2),
    "two-sample test": _Ask(_test),
}


@contextmanager
def _weaker_shares(factor: float) -> Iterator[None]:
    """Every share drawn with so much of its scale; with 0, none is."""
    kept = NoiseShares.draw

    def draw(shares: NoiseShares, rng: Any = None) -> list[int]:
        if factor == 0:
            return [0] * shares.dim
        weak = NoiseShares(shares.parties, shares.tolerated, shares.sigma * factor, shares.dim, shares.halved)
        return kept(weak, rng)

    NoiseShares.draw = draw  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        NoiseShares.draw = kept  # type: ignore[method-assign]


def _sites(asked: Round, end: tuple[float, float], gone: int, source: Any) -> list[Site]:
    """Those who answer: the first has a record at that end, all other records are 0."""
    moved = np.zeros((_RECORDS, _DIM))
    moved[0] = end
    # the first record is the only one of its class, and so in a block that everyone knows
    labels = np.minimum(np.arange(_RECORDS), 1)
    names = asked.sites[: len(asked.sites) - gone]
    held = [moved if number == 0 else np.zeros((_RECORDS, _DIM)) for number in range(len(names))]
    return [Site(name, points, labels=labels, rng=source) for name, points in zip(names, held, strict=True)]


def _view(asked: Round, end: tuple[float, float], known: int, gone: int, source: Any) -> list[int]:
    """The sum of those who answered, less the answers that the coordinator was told."""
    answers = [site.answer(asked) for site in _sites(asked, end, gone, source)]
    told = answers[len(answers) - known :]
    whole, theirs = add_residues(asked, answers), add_residues(asked, told)
    left = [(number - other) % asked.modulus for number, other in zip(whole, theirs, strict=True)]
    return center_residues(left[: asked.shares.dim], asked.modulus)


def _attacked_round(study: Study) -> Round:
    """The first round, or that of the squares; all records were 0 before it."""
    coordinator = Coordinator(study)
    asked = coordinator.round
    while study.statistic == "tangent PCA" and asked is not None and not asked.shares.halved:
        coordinator.finish(sum_in_process(asked, _sites(asked, (0.0, 0.0), 0, 0)))
        asked = coordinator.round
    assert asked is not None
    return asked


def audit_sites(
    *,
    statistic: str = "mean",
    parties: int = 3,
    tolerated: int = 1,
    gone: int = 0,
    transport: str = "secure-sum",
    draws: int = 8000,
    noise_factor: float = 1.0,
    confidence: float = 0.95,
    rng: Any = None,
) -> AuditReport:
    """Attack one round through `Site.answer`, with `draws` of each neighbour; `gone` of the tolerated sites are gone.

    `statistic`: "mean", the paid "radius" of one, one step of a "descent", the squares of a "tangent PCA", or a
    "two-sample test". With transport "plain" the coordinator sees the answer of the site by itself: all others tell
    theirs. His score is the likelihood ratio of the two Gaussians that he takes what is left to be.
    """
    names = [f"site {number}" for number in range(parties)]
    ball = Ball(Euclidean(_DIM), np.zeros(_DIM), 1.0)
    told: dict[str, Any] = {"sites": names, "tolerated": tolerated, "transport": transport}
    told |= {"n": _RECORDS * parties, **_ASKS[statistic].options(ball, parties)}
    study = Study("mean" if statistic == "radius" else statistic, ball, GaussianDP(_ASKS[statistic].mu), **told)
    source = np.random.default_rng() if rng is None else as_generator(rng)
    known = parties - gone - 1 if transport == "plain" else tolerated - gone
    with _weaker_shares(0.0):
        asked = _attacked_round(study)
        one, other = (_view(asked, end, known, gone, 0) for end in _ASKS[statistic].ends)
    apart = np.array([float(a - b) for a, b in zip(one, other, strict=True)]) / asked.sigma
    # what is above a diagonal has half of the variance
    apart[asked.shares.dim - asked.shares.halved :] *= 2
    with _weaker_shares(noise_factor):
        first, second = (
            np.array([_view(asked, end, known, gone, source) for _ in range(draws)], dtype=np.float64) @ apart
            for end in _ASKS[statistic].ends
        )
    helpers = f"{known} of {parties} sites tell their answers, {gone} are gone"
    return AuditReport.from_scores(
        first / asked.sigma,
        second / asked.sigma,
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
    ways += [{"statistic": each} for each in _ASKS if each != "mean"]
    for way in ways:
        for factor in (1.0, 0.7):
            print(audit_sites(draws=draws, noise_factor=factor, rng=0, **way))


if __name__ == "__main__":
    main()
