"""Every statistic's rounds, worked out again by hand: how far one record moves them, σ of a share, and what is spent.

Nothing of the package's own bounds is used but the kinds and exponents of rules; neighbours are made here, and their
exact sums are compared.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Ball,
    BudgetExceededError,
    Coordinator,
    Descent,
    Euclidean,
    GaussianDP,
    Ledger,
    Site,
    SitePolicy,
    Sphere,
    WholeSpace,
    losses,
)
from dpmanifolds.federated import sum_in_process
from dpmanifolds.sums.shares import NoiseShares, center_residues
from tests.federated.parties import FLAT, MATRICES, NAMES, ROUND, split_sites, study
from tests.selection import thorough

MU = 0.8
LINE = Ball(Euclidean(1), np.zeros(1), 1.0)
SECRET = {"n_guess": 200, "adjacency": "add-remove-one"}
TWO = {"classes": ["x", "y"]}
VECTORS = Descent(losses.EigenvectorLoss(3, 2.0), steps=2, step_size=0.1)
SPREAD = Descent(losses.GaussianCovarianceLoss(3), steps=2, step_size=0.1, clip_norm=1.0)
EAST = WholeSpace(Sphere(2), np.array([0.6, 0.8, 0.0]))
CASES = {
    "mean": (FLAT, "mean", {}),
    "mean, secret n": (FLAT, "mean", SECRET),
    "mean, paid radius": (MATRICES, "mean", {"refine": 1}),
    "mean, paid radius, secret n": (FLAT, "mean", {"refine": 1, **SECRET}),
    "median": (ROUND, "median", {}),
    "median, secret n": (ROUND, "median", SECRET),
    "variance": (MATRICES, "variance", {}),
    "variance, secret n": (FLAT, "variance", SECRET),
    "covariance": (FLAT, "covariance", {}),
    "covariance on the line": (LINE, "covariance", {}),
    "second moment, secret n": (FLAT, "second moment", SECRET),
    "tangent PCA": (ROUND, "tangent PCA", {}),
    "descent, outer products": (EAST, "descent", {"descent": VECTORS}),
    "descent, outer products, secret n": (EAST, "descent", {"descent": VECTORS, **SECRET}),
    "descent": (WholeSpace(SPD(3), np.eye(3)), "descent", {"descent": SPREAD}),
    "class means": (FLAT, "class means", {**TWO, "n": [100, 100]}),
    "class means, secret labels": (FLAT, "class means", {**TWO, "secret_labels": True}),
    "class means, secret n": (FLAT, "class means", {**TWO, "secret_labels": True, **SECRET}),
    "test": (FLAT, "two-sample test", {**TWO, "n": [100, 100]}),
}
SLOW = ("median", "median, secret n", "second moment, secret n")


def squared_move(asked):
    """How far one record moves the sum, squared: docs/proofs/federated.md, theorem 1."""
    alone, apart = 0, 0
    for rule in (part.rule for part in asked.parts):
        kind = type(rule).__name__
        if kind == "DistanceBins":
            one, two = rule.unit**2, 2 * rule.unit**2
        elif kind in ("JointContribution", "TangentSquareContribution"):
            trace, width = 4**rule.exponent, rule.shape[0]
            one, two = trace**2, (2 if width > 1 else 1) * trace**2
        else:
            one, two = 4**rule.exponent, 4 * 4**rule.exponent
        alone, apart = max(alone, one), max(apart, two)
    alone += asked.weight**2
    if asked.adjacency == "add-remove-one":
        return alone
    return max(apart, 2 * alone) if asked.secret_labels else apart


def draw_records(wanted, count, rng):
    """Records in, at the edge of and outside of the domain."""
    manifold, center = wanted.domain.manifold, wanted.domain.center
    if wanted.statistic == "descent":
        manifold, center = Euclidean(3), np.zeros(3)
    along = rng.normal(size=(count, manifold.dim))
    lengths = rng.choice([0.3, 1.0, 2.0], size=(count, 1))
    return np.asarray(manifold.move(center, along * lengths / np.linalg.norm(along, axis=1, keepdims=True)))


def silent_sum(asked, points, labels, monkeypatch):
    """The integers of one site without noise, and what it tells besides."""
    with monkeypatch.context() as patch:
        patch.setattr(NoiseShares, "draw", lambda shares, rng=None: [0] * shares.dim)
        answer = Site("north", points, SitePolicy(unit=asked.unit), labels=labels, rng=5).answer(asked)
    return center_residues(list(answer.residues[: asked.shares.dim]), asked.modulus), answer.residues[
        asked.shares.dim :
    ]


def neighbour(asked, points, labels, wanted, rng):
    """One record gone, or another one in its place: anywhere, malformed, or of another class where that is secret."""
    one = int(rng.integers(len(points)))
    if asked.adjacency == "add-remove-one":
        return np.delete(points, one, axis=0), None if labels is None else np.delete(labels, one)
    points, labels = points.copy(), None if labels is None else labels.copy()
    points[one] = np.nan if rng.random() < 0.2 else draw_records(wanted, 1, rng)[0]
    if asked.secret_labels:
        labels[one] = rng.choice(["x", "y", "z"])
    return points, labels


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.long] * (case in SLOW)) for case in CASES])
@pytest.mark.parametrize(
    "options", [{"tolerated": 1}, pytest.param({"transport": "plain"}, marks=pytest.mark.long)], ids=str
)
@thorough("pairs", 2, 30)
def test_rounds_are_what_they_are_by_hand(case, options, pairs, monkeypatch):
    """Σμ² over the rounds is the budget, and no neighbours of ours are farther apart than Δ."""
    domain, statistic, more = CASES[case]
    wanted = study(domain, statistic, GaussianDP(MU), **more, **options)
    rng = np.random.default_rng(1)
    points, labels = draw_records(wanted, 200, rng), np.array(["x", "y"] * 100)
    sites = split_sites(points, labels=labels[:50]) if wanted.classes else split_sites(points)
    coordinator, shares, spent = Coordinator(wanted), 1 if options.get("transport") else 3, 0.0
    while coordinator.round is not None:
        asked = coordinator.round
        assert (asked.moved - 1) ** 2 < squared_move(asked) <= asked.moved**2
        mu = float(Fraction(asked.moved) / Fraction(asked.sigma)) / math.sqrt(shares)
        assert mu <= asked.mu <= mu * (1 + 1e-9)
        spent += mu**2
        own = labels[:50] if wanted.classes else None
        whole, told = silent_sum(asked, points[:50], own, monkeypatch)
        for _ in range(pairs):
            found, also = silent_sum(asked, *neighbour(asked, points[:50], own, wanted, rng), monkeypatch)
            apart = [one - other for one, other in zip(whole, found, strict=True)]
            above = apart[len(apart) - asked.shares.halved :]
            assert sum(number**2 for number in apart + above) <= asked.moved**2
            assert also == told
        if wanted.transport == "plain":
            coordinator.finish([site.answer(asked) for site in sites])
        else:
            coordinator.finish(sum_in_process(asked, sites))
    assert MU * (1 - 1e-6) < math.sqrt(spent) <= MU
    made = coordinator.release
    part = made.releases[0].sites if wanted.classes and statistic == "class means" else made.sites
    assert part.outside == pytest.approx(MU * math.sqrt(shares / len(NAMES)), rel=1e-6)
    assert part.coalition == pytest.approx(MU, rel=1e-6)


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.long] * (case in SLOW)) for case in CASES])
def test_a_site_pays_for_each_round_of_each_statistic_before_it_draws(case, tmp_path, monkeypatch):
    """Its account has room for one study: when that is done nothing is left for another one."""
    domain, statistic, more = CASES[case]
    wanted = study(domain, statistic, GaussianDP(MU), **more)
    coordinator, ledger = Coordinator(wanted), Ledger(tmp_path / "north.ledger")
    options = {"unit": coordinator.round.unit, "adjacency": wanted.adjacency}
    ledger.open_dataset("patients", GaussianDP(MU), **options)
    points, labels = draw_records(wanted, 200, np.random.default_rng(1)), np.array(["x", "y"] * 100)
    others = split_sites(points, labels=labels[:50]) if wanted.classes else split_sites(points)
    own = Site("north", points[:50], labels=others[0].labels, ledger=ledger, dataset="patients")
    drawn, draw = [], NoiseShares.draw

    def note_and_draw(shares, rng=None):
        if rng is None:
            drawn.append(len(ledger.entries()) - 1)
        return draw(shares, rng)

    monkeypatch.setattr(NoiseShares, "draw", note_and_draw)
    rounds = []
    while coordinator.round is not None:
        rounds.append(coordinator.round)
        coordinator.finish(sum_in_process(coordinator.round, [own, *others[1:]]))
    entries = ledger.entries()[1:]
    assert drawn == list(range(1, len(rounds) + 1))
    assert [entry.parameters["round"] for entry in entries] == [asked.hash for asked in rounds]
    assert [entry.guarantee for entry in entries] == [asked.guarantee for asked in rounds]
    with pytest.raises(BudgetExceededError):
        own.answer(Coordinator(study(domain, statistic, GaussianDP(MU), **more)).round)
    assert len(drawn) == len(rounds)
