"""Means, class means, variance and values: what they promise, what they cost, and that they are near the truth."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, ApproxDP, Ball, Euclidean, GaussianDP, PureDP, RenyiDP, Sphere, ZeroConcentratedDP
from dpmanifolds.ledger import Ledger

BUDGETS = [PureDP(1.0), ApproxDP(1.0, 1e-6), GaussianDP(0.7), ZeroConcentratedDP(0.3), RenyiDP(4.0, 0.5)]


def tight_cloud(space, center, count, spread, seed=0):
    """Records around a centre, within 4·spread·√dim of it nearly always."""
    rng = np.random.default_rng(seed)
    vectors = space.from_coordinates(center, spread * rng.standard_normal((count, space.dim)))
    return space.exp(center, vectors)


@pytest.mark.grid
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("refine", [0, 1, 3])
def test_the_promise_is_within_the_budget(budget, refine):
    ball = Ball(SPD(2), np.eye(2), 1.0)
    release = dpm.private_mean(SPD(2).random_point(100, rng=0), ball, budget, refine=refine)
    assert release.guarantee.fits(budget)
    assert type(release.spent) is type(budget)
    counts = [stage for stage in release.stages if stage.statistic == "counts"]
    assert len(counts) == refine


def test_the_scale_is_the_sensitivity_over_the_budget():
    ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8)
    records = ball.clip(Sphere(2).random_point(100, rng=0))
    release = dpm.private_mean(records, ball, PureDP(0.5), steps=1)
    assert release.sigma == pytest.approx(2 * np.pi / 8 / 100 / 0.5, rel=1e-6)
    assert release.sensitivity.theorem == "B1"
    direct = dpm.private_mean(records, ball, PureDP(0.5), mechanism="direct")
    assert direct.sigma == pytest.approx(2 * np.tan(np.pi / 8) / 100 / 0.5, rel=1e-6)
    assert (direct.mechanism, direct.sensitivity.theorem) == ("direct-laplace", "S1w")


def test_releases_are_near_the_mean():
    """P(error > 20·scale) < 1e−6 for the ℓ2-Laplace in three dimensions."""
    space = SPD(2)
    ball = Ball(space, np.eye(2), 2.0)
    records = ball.clip(space.random_point(5000, rng=0))
    release = dpm.private_mean(records, ball, PureDP(1.0))
    truth = dpm.frechet_mean(space, records).point
    assert float(space.dist(truth, release.value)) < 20 * release.sigma * 3


def test_a_person_with_many_records_counts_once():
    space = Euclidean(2)
    ball = Ball(space, np.zeros(2), 1.0)
    records = np.array([[0.5, 0.0]] * 90 + [[-0.5, 0.0]] * 10)
    persons = np.array(["a"] * 90 + [f"p{i}" for i in range(10)])
    release = dpm.private_mean(records, ball, PureDP(600.0), group_by=persons)
    assert release.n == 11
    assert release.value[0] == pytest.approx((0.5 - 10 * 0.5) / 11, abs=0.05)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6)], ids=repr)
def test_refining_a_loose_ball_more_than_halves_the_error(budget):
    """Ten times too large: averages over 25 releases of fixed seeds; the ratio is about 0.12."""
    space = SPD(3, "log-euclidean")
    truth = 1.5 * np.eye(3)
    records = tight_cloud(space, truth, 5000, 0.3)
    loose = Ball(space, np.eye(3), 15.0)
    mean = dpm.frechet_mean(space, records).point
    errors = {
        refine: np.mean(
            [
                space.dist(mean, dpm.private_mean(records, loose, budget, refine=refine, rng=seed).value)
                for seed in range(25)
            ]
        )
        for refine in (0, 1)
    }
    assert errors[1] < 0.5 * errors[0]


def test_a_refined_release_shows_the_ball_it_used():
    space = Euclidean(3)
    release = dpm.private_mean(
        tight_cloud(space, np.ones(3), 4000, 0.1), Ball(space, np.zeros(3), 50.0), PureDP(1.0), refine=1, rng=0
    )
    assert release.domain.radius < 10
    assert release.stages[0].statistic == "counts"
    assert dpm.Release.from_json(release.to_json()) == release


def test_class_means_spend_the_whole_budget_in_each_class_and_say_so():
    space = SPD(2)
    ball = Ball(space, np.eye(2), 2.0)
    X, y = space.random_point(300, rng=0), np.repeat([2, 5, 9], [50, 100, 150])
    means = dpm.private_class_means(X, y, ball, PureDP(1.0))
    assert means.classes == (2, 5, 9)
    assert [release.n for release in means.releases] == [50, 100, 150]
    assert means.guarantee.unit == "record within class"
    assert all(release.guarantee.fits(PureDP(1.0)) for release in means.releases)
    assert means.guarantee.fits(PureDP(1.0))


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_private_labels_are_paid_for_within_the_budget(budget):
    space = SPD(2)
    ball = Ball(space, np.eye(2), 2.0)
    X, y = space.random_point(9000, rng=0), np.repeat(["a", "b", "c"], 3000)
    means = dpm.private_class_means(X, y, ball, budget, classes=["a", "b", "c"], private_labels=True)
    assert means.guarantee.unit == "record"
    assert means.guarantee.fits(budget)
    assert [release.n for release in means.releases] == [None] * 3
    for name, release in zip("abc", means.releases, strict=True):
        truth = dpm.frechet_mean(space, ball.clip(X[y == name])).point
        # P(error > 20·scale) < 1e−6 for the ℓ2-Laplace in four dimensions, and the bias of the steps
        assert float(space.dist(truth, release.value)) < 20 * release.sigma * 3 + 0.02


def test_gaussian_class_means_do_not_notice_that_labels_are_private():
    space = SPD(2)
    ball = Ball(space, np.eye(2), 2.0)
    X, y = space.random_point(1000, rng=0), np.repeat(["a", "b"], 500)
    options = {"classes": ["a", "b"], "steps": 1}
    public = dpm.private_class_means(X, y, ball, GaussianDP(1.0), **options)
    private = dpm.private_class_means(X, y, ball, GaussianDP(1.0), private_labels=True, **options)
    assert private.releases[0].sigma == pytest.approx(public.releases[0].sigma, rel=1e-6)


@pytest.mark.parametrize("odd", ["?", None, np.nan, np.inf, 2.5, (1, 2), [3]])
def test_one_odd_label_changes_no_other_one(odd):
    """Version 0.1 made strings of all labels: counts (183, 195) became (2, 14)."""
    from dpmanifolds.releases.classes import read_classes

    labels = np.repeat([0, 1], 200).tolist()
    expected, _ = read_classes(labels, 400, [0, 1], private=True, lenient=True)
    labels[7] = odd
    found, _ = read_classes(labels, 400, [0, 1], private=True, lenient=True)
    assert found[7] == -1
    assert np.array_equal(np.delete(found, 7), np.delete(expected, 7))


def test_the_variance_is_near_the_truth_and_in_its_range():
    space = SPD(2)
    ball = Ball(space, np.eye(2), 2.0)
    records = ball.clip(space.random_point(4000, rng=0))
    truth = np.mean(space.dist(dpm.frechet_mean(space, records).point, records) ** 2)
    release = dpm.private_variance(records, ball, PureDP(2.0), rng=0)
    # of a fixed seed; the mean that it is taken around adds the square of its own error
    assert abs(release.value - truth) < 14.5 * release.sigma + 0.01
    assert release.sensitivity.theorem == "B1"
    assert release.stages[-1].statistic == "mean"
    assert 0 <= dpm.private_variance(records[:2], ball, PureDP(0.01)).value <= 4.0
    assert dpm.Release.from_json(release.to_json()) == release


def test_a_users_own_statistic_is_stretched_at_the_edge_of_a_positively_curved_ball():
    cap = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.2)
    release = dpm.privatize(np.array([0.0, 0.0, 1.0]), cap, 0.1, PureDP(1.0))
    assert float(release.sensitivity) == pytest.approx(0.1 * 1.2 / np.sin(1.2), rel=1e-6)
    flat = dpm.privatize(np.eye(2), Ball(SPD(2), np.eye(2), 1.2), 0.1, PureDP(1.0))
    assert float(flat.sensitivity) == pytest.approx(0.1, rel=1e-6)


def test_every_release_is_charged_once_before_it_is_drawn(tmp_path):
    ledger = Ledger(tmp_path / "account.sqlite")
    ledger.open_dataset("people", PureDP(10.0))
    ball = Ball(SPD(2), np.eye(2), 2.0)
    X, y = SPD(2).random_point(200, rng=0), np.repeat([0, 1], 100)
    account = {"ledger": ledger, "dataset": "people"}
    dpm.private_mean(X, ball, PureDP(1.0), **account)
    dpm.private_mean(X, ball, PureDP(1.0), refine=2, **account)
    dpm.private_variance(X, ball, PureDP(1.0), **account)
    dpm.privatize(np.eye(2), ball, 0.1, PureDP(1.0), **account)
    dpm.private_class_means(X, y, ball, PureDP(1.0), classes=[0, 1], private_labels=True, **account)
    assert [entry.kind for entry in ledger.entries("people")] == ["open"] + ["spend"] * 5
    assert ledger.remaining("people").epsilon == pytest.approx(5.0, rel=1e-9)
    with pytest.raises(dpm.DPManifoldsError, match="remain"):
        dpm.private_mean(X, ball, PureDP(6.0), **account)
    with pytest.raises(dpm.ArgumentError, match="within class"):
        dpm.private_class_means(X, y, ball, PureDP(1.0), **account)
    assert len(ledger.entries("people")) == 6


def test_a_seeded_release_is_marked_and_agrees_with_itself():
    ball = Ball(SPD(2), np.eye(2), 2.0)
    X = SPD(2).random_point(50, rng=0)
    for extra in ({}, {"numerics": "lattice"}, {"refine": 1}):
        once, again = (dpm.private_mean(X, ball, PureDP(1.0), rng=11, **extra) for _ in range(2))
        assert once == again
        assert once.reproducible
        assert "reproducible" in repr(once)
        assert "seed" in once.summary()
    free, other = (dpm.private_mean(X, ball, PureDP(1.0)) for _ in range(2))
    assert not free.reproducible
    assert not np.array_equal(free.value, other.value)


def test_a_summary_tells_the_odds_of_a_guess():
    ball = Ball(SPD(2), np.eye(2), 2.0)
    text = dpm.private_mean(SPD(2).random_point(50, rng=0), ball, PureDP(1.0), steps=1).summary()
    assert "69.7%" in text
    assert "Someone who knows everyone else's record" in text
    assert "clipped" in text


def test_the_median_withstands_outliers_that_move_the_mean():
    """A fifth of the records far away: the median stays within 0.25 of the bulk, the mean is dragged beyond 0.4.

    Of a fixed seed.
    """
    space = SPD(2)
    bulk, far = np.eye(2), 20.0 * np.eye(2)
    records = np.concatenate([tight_cloud(space, bulk, 1600, 0.1), tight_cloud(space, far, 400, 0.1)])
    ball = Ball(space, 2 * np.eye(2), 4.0)
    budget = ApproxDP(1.0, 1e-6)
    release = dpm.private_median(records, ball, budget, rng=0)
    assert release.guarantee.fits(budget)
    assert float(space.dist(bulk, release.value)) < 0.25
    assert float(space.dist(bulk, dpm.private_mean(records, ball, budget, rng=0).value)) > 0.4
    assert dpm.Release.from_json(release.to_json()) == release
    assert "depends on the records" in release.summary()
    with pytest.raises(dpm.NotAvailableError, match="median"):
        dpm.confidence_region(release)


def test_the_median_is_charged_and_grouped_like_the_mean(tmp_path):
    ledger = Ledger(tmp_path / "account.sqlite")
    ledger.open_dataset("people", GaussianDP(1.0), unit="person")
    ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
    records = ball.clip(Sphere(2).random_point(90, rng=0))
    account = {"ledger": ledger, "dataset": "people"}
    release = dpm.private_median(records, ball, GaussianDP(0.6), group_by=np.arange(90) // 3, **account)
    assert release.n == 30
    assert ledger.remaining("people").mu == pytest.approx(0.8, rel=1e-6)
    with pytest.raises(dpm.BudgetExceededError):
        dpm.private_median(records, ball, GaussianDP(0.9), unit="person", **account)
