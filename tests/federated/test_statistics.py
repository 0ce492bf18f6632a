"""Descents, medians, tangent PCA and tests of two groups at several sites: those of one place, and their level."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import (
    ArgumentError,
    Coordinator,
    Descent,
    Ellipsoid,
    Euclidean,
    GaussianDP,
    Grassmann,
    Release,
    Round,
    RoundRefusedError,
    Site,
    Study,
    WholeSpace,
    losses,
    private_descent,
    private_median,
    run_study,
)
from dpmanifolds.descent import plan_descent
from dpmanifolds.federated.block_test import rank_blocks
from dpmanifolds.federated.gradients import GradientRule, read_loss, write_loss
from dpmanifolds.federated.rules import body_of, read_rule, write_rule
from dpmanifolds.releases.second_moment import private_tangent_moment
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.counts import DistanceBins
from dpmanifolds.sums.shares import NoiseShares
from tests.federated.parties import FLAT, MATRICES, NAMES, ROUND, records, split_sites, study

HUGE = GaussianDP(300.0)
PLANE = Grassmann(3, 1)
VECTORS = losses.PCALoss(PLANE, radius=2.0)
LABELS = np.arange(200) % 2
LOSSES = [
    (losses.FrechetMeanLoss(MATRICES), records(MATRICES, 40)),
    (losses.FrechetMedianLoss(ROUND), records(ROUND, 40)),
    (VECTORS, records(FLAT, 40)),
    (losses.EigenvectorLoss(3, 2.0), records(FLAT, 40)),
    (losses.GaussianCovarianceLoss(3), records(FLAT, 40)),
    (losses.LogisticLoss(3, 2, 2.0, penalty=0.1, start=np.ones(4)), (records(FLAT, 40), np.arange(40.0) % 2)),
    (losses.GeodesicRegressionLoss(Euclidean(3)), (np.linspace(0, 1, 40), records(FLAT, 40))),
]


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr(NoiseShares, "draw", lambda shares, rng=None: [0] * shares.dim)


def descent_study(loss=VECTORS, way=None, **options):
    at = np.asarray(loss.manifold.random_point(rng=3))
    way = way or Descent(loss, steps=4, step_size=0.1, clip_norm=2.0)
    return study(WholeSpace(loss.manifold, at), "descent", descent=way, **options)


@pytest.mark.parametrize(("loss", "points"), LOSSES, ids=lambda each: getattr(each, "name", ""))
def test_a_step_is_that_of_one_place_without_noise(loss, points, silent):
    """One step from the same point over the same records: the exact sums of four sites are those of one."""
    domain = WholeSpace(loss.manifold, loss.manifold.random_point(rng=3))
    way = Descent(loss, steps=1, step_size=0.2, clip_norm=1.5)
    cuts = np.array_split(np.arange(40), 4)
    parts = [tuple(part[rows] for part in points) if isinstance(points, tuple) else points[rows] for rows in cuts]
    sites = [Site(name, part, rng=0) for name, part in zip(NAMES, parts, strict=True)]
    found = run_study(Study("descent", domain, HUGE, n=40, sites=NAMES, descent=way), sites)
    central = private_descent(
        loss, points, domain, GaussianDP(700.0), steps=1, step_size=0.2, clip_norm=1.5, start=domain.center, rng=0
    )
    assert float(loss.manifold.dist(found.value, central.value)) < 1e-3
    assert read_loss(write_loss(loss)).name == loss.name


def test_the_sum_of_gradients_is_exact(silent):
    """Against sums of integers that are worked out record by record, in this test."""
    asked = Coordinator(descent_study()).round
    rule, points = asked.parts[0].rule, records(FLAT)
    frame = np.asarray(rule.at)
    sites = split_sites(points)
    residues = np.array([site.answer(asked).residues for site in sites], dtype=object).sum(axis=0) % asked.modulus
    half = asked.modulus // 2
    found = np.array([int((each + half) % asked.modulus - half) for each in residues[:3]], dtype=float)
    shortened = points * np.minimum(1, 2.0 / np.linalg.norm(points, axis=1))[:, None]
    rows = -(shortened - shortened @ frame @ frame.T) * (shortened @ frame)
    np.testing.assert_allclose(found / 2.0**rule.exponent * rule.clip_norm, rows.sum(axis=0), atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"tolerated": 1}, {"transport": "plain"}, {"n_guess": 200}], ids=str)
def test_a_descent_keeps_its_budget_round_by_round(options):
    if "n_guess" in options:
        options = {**options, "adjacency": "add-remove-one"}
    wanted = descent_study(**options)
    assert Study.from_json(wanted.to_json()) == wanted
    release = run_study(wanted, split_sites(records(FLAT)))
    assert release.guarantee.fits(GaussianDP(1.0))
    assert len(release.sites.rounds) == release.descent.steps == 4
    assert (release.n is None) == ("n_guess" in options)
    assert Release.from_json(release.to_json()) == release
    if not options:
        plan = plan_descent(n=200, clip_norm=2.0, budget=GaussianDP(1.0), steps=4)
        assert release.sigma == pytest.approx(plan.sigma, rel=1e-6)


@pytest.mark.parametrize("draws", [100, pytest.param(6000, marks=pytest.mark.long)])
def test_the_noise_of_a_step_is_the_one_that_is_promised(draws):
    """Records that pull nowhere: what is left is noise of σ on each coordinate. Chi-square, false alarms 1e−6."""
    wanted = descent_study(way=Descent(VECTORS, steps=1, step_size=1e-4, clip_norm=2.0), tolerated=1)
    asked = Coordinator(wanted).round
    parties = (split_sites(np.zeros((200, 3)), seed=9 * number) for number in range(draws))
    drawn = np.array([[site.answer(asked).residues[:3] for site in sites] for sites in parties], dtype=object)
    half = asked.modulus // 2
    sums = ((drawn.sum(axis=1) + half) % asked.modulus - half).astype(float)
    # three of four shares keep μ = 1 where a record moves the sum by 2·2^e
    sigma = 2 * 2.0 ** asked.parts[0].rule.exponent * np.sqrt(4 / 3)
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], sums.size)
    power = np.sum(sums**2) / sigma**2
    assert low < power < high
    assert not low < power * 0.7**2 < high


def test_a_median_of_sites_keeps_its_budget():
    release = run_study(study(ROUND, "median", GaussianDP(0.3), n=40), split_sites(records(ROUND, 40)))
    assert release.statistic == "median"
    assert release.guarantee.fits(GaussianDP(0.3))
    assert len(release.sites.rounds) == release.descent.steps


@pytest.mark.long
def test_a_median_of_sites_is_that_of_one_place(silent):
    points = records(MATRICES, 1000)
    found = run_study(study(MATRICES, "median", GaussianDP(30.0), n=1000), split_sites(points))
    central = private_median(points, MATRICES, GaussianDP(30.0), rng=0)
    assert float(MATRICES.manifold.dist(found.value, central.value)) < 0.02


def test_tangent_components_are_those_of_one_place(silent):
    points = records(MATRICES, 2000)
    found = run_study(study(MATRICES, "tangent PCA", GaussianDP(20.0), n=2000), split_sites(points))
    central = private_tangent_moment(points, MATRICES, GaussianDP(20.0), rng=0)
    np.testing.assert_allclose(found.value, central.moment.value, atol=0.02)
    assert float(MATRICES.manifold.dist(found.stages[-1].value, central.base)) < 0.02
    assert found.guarantee.fits(GaussianDP(20.0))
    assert Release.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"descent": None}, "needs one"),
        ({"descent": "steps"}, "must be a Descent"),
        ({"statistic": "mean"}, "is for the statistic"),
        ({"domain": FLAT}, "lies on"),
    ],
    ids=str,
)
def test_wrong_descents_are_told(options, said):
    given = {"statistic": "descent", "domain": WholeSpace(PLANE, PLANE.random_point(rng=0))}
    given |= {"descent": Descent(VECTORS, 2, 0.1), **options}
    with pytest.raises(ArgumentError, match=said):
        Study(given.pop("statistic"), given.pop("domain"), HUGE, n=10, sites=NAMES, **given)
    with pytest.raises(ArgumentError, match="output"):
        Descent(VECTORS, 2, 0.1, output="random")
    with pytest.raises(ArgumentError, match="by name"):
        Descent(losses.AutogradLoss(lambda w, x: 0.0, Euclidean(2)), 2, 0.1, clip_norm=1.0)
    with pytest.raises(ArgumentError, match="replace-one"):
        study(MATRICES, "tangent PCA", n_guess=100, adjacency="add-remove-one")


@pytest.mark.parametrize(
    "spoil",
    [
        {"exponent": 60},
        {"exponent": 3},
        {"clip_norm": -1.0},
        {"at": {"dtype": "float64", "values": [[5.0], [0.0], [0.0]]}},
        {"loss": {"name": "PCALoss", "manifold": "Sphere", "radius": 1.0}},
        {"loss": {"name": "HyperbolicEmbeddingLoss"}},
        {"loss": {**write_loss(LOSSES[5][0]), "penalty": "1"}},
        {"loss": {**write_loss(VECTORS), "radius": True}},
    ],
    ids=str,
)
def test_rules_of_gradients_that_a_site_cannot_keep_are_refused(spoil):
    rule = GradientRule(VECTORS, PLANE.random_point(rng=0), 1.0, 30)
    again = read_rule(write_rule(rule))
    assert body_of(again) == body_of(rule)
    with pytest.raises((RoundRefusedError, ArgumentError)):
        read_rule({**write_rule(rule), **spoil})


def test_gradients_travel_alone_with_no_count_beside_them():
    """A site would fail after it has paid."""
    asked = Coordinator(descent_study()).round
    with pytest.raises(RoundRefusedError, match="no count beside"):
        replace(asked, weight=4, claim=2.0)


def test_under_the_name_of_a_median_its_own_gradients_are_asked_for_alone():
    """Policies go by the name."""
    with pytest.raises(RoundRefusedError, match="another loss"):
        replace(Coordinator(descent_study()).round, statistic="median")
    assert Coordinator(study(ROUND, "median")).round.statistic == "median"


def test_axes_of_distance_bins_travel():
    body = Ellipsoid(Euclidean(2), [0.0, 0.0], axes=[2.0, 0.5]).body
    bins = DistanceBins(Euclidean(2), np.zeros(2), np.zeros(2), edges=np.array([0.5, 1.0, 4.0]), unit=4, axes=body)
    points = np.array([[1.5, 0.0], [0.0, 0.6], [0.1, 0.1]])
    again = read_rule(write_rule(bins))
    assert again(points)[0].tolist() == bins(points)[0].tolist()
    assert again(points)[0].tolist() != replace(bins, axes=None)(points)[0].tolist()


def test_wrong_tests_are_told():
    options = {"n": [100, 100], "classes": [0, 1]}
    for spoilt, said in (
        ({"classes": [0, 1, 2], "n": [9, 9, 9]}, "two"),
        ({"secret_labels": True, "n": 200}, "public"),
        ({"blocks": 2}, "too few"),
        ({"blocks": 20}, "too many"),
        ({"blocks": (1, 2, 3)}, "one for each"),
        ({"n": [3, 100]}, "fewer records"),
        ({"level": 2.0}, "level"),
    ):
        with pytest.raises(ArgumentError, match=said):
            study(FLAT, "two-sample test", **{**options, **spoilt})
    asked = Coordinator(study(FLAT, "two-sample test", **options)).round
    assert Round.from_json(asked.to_json()) == asked
    for parts in ((*asked.parts[:-1], asked.parts[0]), tuple(part._replace(block=None) for part in asked.parts[::5])):
        with pytest.raises(RoundRefusedError, match=r"different classes|numbered from 0"):
            replace(asked, parts=parts)


def test_a_record_is_in_one_block_and_blocks_of_a_site_are_of_one_size(monkeypatch):
    """So that it moves one sum; whoever is left over is in none."""
    seen = []
    kept = TangentContribution.__call__
    monkeypatch.setattr(TangentContribution, "__call__", lambda rule, block: seen.append(block) or kept(rule, block))
    asked = Coordinator(study(FLAT, "two-sample test", n=[100, 100], classes=[0, 1])).round
    points = np.random.default_rng(0).normal(size=(57, 3))
    answer = Site("north", points, labels=np.arange(57) % 2, rng=4).answer(asked)
    rows = [tuple(row) for block in seen for row in np.unique(block, axis=0) if np.any(row)]
    assert len(rows) == len(set(rows)) == 50
    assert answer.residues[-10:] == (5,) * 10


@pytest.mark.parametrize("count", [4000, pytest.param(100_000, marks=pytest.mark.long)])
def test_the_level_is_exact_where_blocks_are_exchangeable(count):
    """Skewed sums, two of seven blocks first: P(p ≤ j/21) = j/21. Binomial, false alarms 1e−6."""
    rng = np.random.default_rng(5)
    found = np.array([rank_blocks(rng.exponential(size=(7, 2)) ** 3, 2) for _ in range(count)])
    for j in (1, 5, 10):
        hits = int(np.sum(found <= j / 21 + 1e-9))
        low, high = stats.binom.ppf([2e-7, 1 - 2e-7], count, j / 21)
        assert low <= hits <= high


def test_ties_are_ties_however_far_from_zero_the_blocks_lie():
    sums = np.random.default_rng(5).standard_normal((20, 10, 3)) + 1e9
    # a choice of half of the blocks and its complement are as far apart: counts are even
    assert all(round(252 * rank_blocks(each, 5)) % 2 == 0 for each in sums)


def test_ranks_are_those_of_all_choices():
    sums = np.random.default_rng(1).normal(size=(6, 3))
    others = [
        sums[list(each)].mean(axis=0) - np.delete(sums, each, axis=0).mean(axis=0)
        for each in itertools.combinations(range(6), 2)
    ]
    lengths = [np.linalg.norm(each) for each in others]
    assert rank_blocks(sums, 2) == np.mean([length >= lengths[0] for length in lengths])


def test_ranks_are_the_same_in_pieces():
    """So many coordinates that the ways are not looked at all at once."""
    sums = np.random.default_rng(1).normal(size=(10, 40)) + np.arange(10)[:, None] // 5
    assert rank_blocks(np.tile(sums, 300), 5) == rank_blocks(sums, 5) == 2 / 252


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_two_groups_at_sites(shift):
    """Groups that differ are told apart, with the promise of one round; sites of different laws are no difference."""
    rng = np.random.default_rng(2)
    sites, labels = [], np.arange(500) % 2
    for number, name in enumerate(NAMES):
        points = rng.normal(size=(500, 3)) * 0.5 + number * np.array([0.2, 0.0, 0.0])
        points[labels == 1, 1] += shift
        sites.append(Site(name, points, labels=labels, rng=number))
    wanted = study(FLAT, "two-sample test", n=[1000, 1000], classes=[0, 1], tolerated=1)
    decision = run_study(wanted, sites)
    assert decision.rejected is (shift > 0)
    assert decision.guarantee.fits(GaussianDP(1.0))
    assert decision.guarantee.unit == "record within class"
    assert decision.difference[1] == pytest.approx(-shift, abs=6 * decision.sigma + 0.15)
    assert len(decision.sites.rounds) == 1


def test_the_noise_of_a_test_is_the_one_that_is_told():
    """Records at the centre: blocks hold noise alone. Chi-square, false alarms 1e−6."""
    wanted = study(FLAT, "two-sample test", n=[100, 100], classes=[0, 1])
    labels = np.arange(50) % 2
    rng = np.random.default_rng(3)
    sites = ([Site(name, np.zeros((50, 3)), labels=labels, rng=rng) for name in NAMES] for _ in range(80))
    found = [run_study(wanted, each) for each in sites]
    power = sum(np.sum(np.square(each.difference)) for each in found) / found[0].sigma ** 2
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 240)
    assert low < power < high
    assert not low < power * 0.7**2 < high
    # of a block: a record moves a mean of 20 by 2r/20; five blocks a side
    assert found[0].sigma == pytest.approx(2 * 2.0 / 20 * np.sqrt(2 / 5), rel=1e-5)
