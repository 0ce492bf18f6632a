"""Axes that are paid for: a private sum of squares, an ellipsoid made of it, and a mean that says what it cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, Ball, Ellipsoid, Euclidean, GaussianDP, PureDP, RenyiDP, Sphere, ZeroConcentratedDP
from dpmanifolds.auditing import find_difference
from dpmanifolds.auditing.front_door import overheard_noise
from dpmanifolds.releases.axes import plan_axes
from dpmanifolds.releases.statistic import check_request
from dpmanifolds.sums.counts import counts_noise
from dpmanifolds.sums.squares import SQUARES_UNIT, SquaresContribution, axes_for_squares
from dpmanifolds.sums.steps import move_plan
from dpmanifolds.sums.total import read_records
from tests.selection import thorough

BUDGETS = [PureDP(2.0), GaussianDP(1.0), ZeroConcentratedDP(0.5), RenyiDP(8.0, 1.0), ApproxDP(1.0, 1e-6)]
SPACE = Euclidean(30)
SCALES = 1 / np.arange(1.0, 31.0)
POINTS = np.random.default_rng(0).normal(size=(1500, 30)) * SCALES
BALL = Ball(SPACE, np.zeros(30), 12.0)
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))[0]


def release(budget=BUDGETS[1], points=POINTS, domain=BALL, **options):
    return dpm.private_mean(points, domain, budget, refine="axes", **{"rng": 0, **options})


def errors(points, domain, count=10, **options):
    truth = np.mean(points, axis=0)
    made = [dpm.private_mean(points, domain, GaussianDP(1.0), rng=seed, **options) for seed in range(count)]
    return np.mean([np.linalg.norm(each.value - truth) for each in made])


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_all_stages_together_are_within_the_budget(budget):
    made = release(budget)
    assert [stage.statistic for stage in made.stages] == ["counts", "squares", "counts"]
    assert made.guarantee.fits(budget)
    assert dpm.Release.from_json(made.to_json()) == made
    assert "paid for" in made.clipping_statement or isinstance(made.domain, Ball)
    assert "Stages before it: 3" in made.summary()


def test_it_is_much_better_where_the_public_basis_is_the_true_one_and_loses_little_elsewhere():
    assert errors(POINTS, BALL, refine="axes") < errors(POINTS, BALL, refine=1) / 1.4
    same = np.random.default_rng(2).normal(size=(1500, 30)) / math.sqrt(30)
    # 10 releases in 30 dimensions: a ratio of ±6 %
    assert errors(same, BALL, refine="axes") < 1.25 * errors(same, BALL, refine=1)


def test_a_basis_of_the_user_is_taken():
    turned = POINTS @ TURN.T
    assert errors(turned, BALL, refine="axes", basis=TURN) < errors(turned, BALL, refine="axes") / 1.2
    made = release(points=turned, basis=TURN)
    assert np.array_equal(made.domain.basis, TURN)
    assert np.linalg.norm(made.value - np.mean(turned, axis=0)) < 0.2


@pytest.mark.parametrize(
    "options", [{"adjacency": "add-remove-one", "n_guess": 1000}, {"group_by": np.arange(1500) // 2}], ids=str
)
def test_secret_numbers_and_persons_get_axes_too(options):
    made = release(**options)
    assert made.n == (None if "n_guess" in options else 750)
    assert isinstance(made.domain, Ellipsoid)
    assert np.linalg.norm(made.value - np.mean(POINTS, axis=0)) < 0.2


def test_a_curved_space_has_axes_in_the_tangent_space_of_its_centre():
    sphere = Sphere(8)
    center = np.eye(9)[-1]
    ball = Ball(sphere, center, 1.4)
    rows = np.random.default_rng(3).normal(size=(3000, 8)) * 0.2 / np.arange(1.0, 9.0)
    made = release(points=sphere.exp_coordinates(center, rows), domain=ball)
    assert isinstance(made.domain, Ellipsoid)
    assert float(sphere.dist(made.value, center)) < 0.1


def test_squares_of_integers_are_exact_and_lie_in_the_simplex():
    """Python integers, and the largest that a record can add: all of one square, in any basis."""
    rule = SquaresContribution(SPACE, np.zeros(30), radius=1.0, basis=TURN)
    hard = np.vstack([POINTS[:20], 1e100 * np.eye(30)[:3], np.full((1, 30), np.inf), TURN.T[:4], np.zeros((1, 30))])
    whole, broken = rule(hard)
    for column, row, code in zip(whole.T.tolist(), hard, broken.tolist(), strict=True):
        assert all(math.isqrt(number) ** 2 == number for number in column)
        assert sum(column) <= SQUARES_UNIT
        if code == 0:
            assert sum(column) == pytest.approx(
                min(1.0, np.linalg.norm(row)) ** 2 * SQUARES_UNIT, rel=2e-3, abs=SQUARES_UNIT * 1e-4
            )
    assert np.max(whole[:, 24:28]) > 0.998 * SQUARES_UNIT


def test_two_records_move_the_squares_by_root_two_in_l2_and_two_in_l1_and_the_noise_is_made_for_that():
    rule = SquaresContribution(Euclidean(2), np.zeros(2), radius=1.0)
    one, other = (read_records(Euclidean(2), row[None]).total(rule).integers for row in 3 * np.eye(2))
    moved = np.subtract(one, other) / SQUARES_UNIT
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(2), rel=1e-3)
    assert np.sum(np.abs(moved)) == pytest.approx(2.0, rel=1e-3)
    gaussian = counts_noise(2, GaussianDP(1.0), "record", unit=SQUARES_UNIT)
    assert float(gaussian.law.sigma) >= math.sqrt(2) * SQUARES_UNIT
    pure = counts_noise(2, PureDP(1.0), "record", unit=SQUARES_UNIT)
    assert float(pure.law.sigma) >= 2 * SQUARES_UNIT


@pytest.mark.parametrize("budget", [PureDP(2.0), GaussianDP(1.0)], ids=repr)
def test_noise_on_each_stage_has_the_scale_of_its_part(budget):
    """The integers that are drawn for, against the shares written down here: 4 or 5 %, 10 %, 3 % and the rest."""
    pure = isinstance(budget, PureDP)
    shares = np.array([0.04 if pure else 0.05, 0.1, 0.03])
    with overheard_noise() as tap:
        release(budget)
    unit = np.array([1, 4**14, 1])
    expected = 2 * unit / (2.0 * shares) if pure else math.sqrt(2) * unit / np.sqrt(shares)
    assert [float(each.law.sigma) for each in tap.said[:3]] == pytest.approx(expected.tolist(), rel=1e-9)
    rest = 2.0 * (1 - shares.sum()) if pure else math.sqrt(1 - shares.sum())
    law = tap.said[3].law
    assert float(law.sigma) == pytest.approx(2 * 2**28 / rest, rel=1e-9)


def test_a_plan_keeps_its_promise_in_any_ellipsoid():
    request = check_request(BALL, ApproxDP(1.0, 1e-6))
    planned = plan_axes(request, 1500)
    body = Ellipsoid(SPACE, np.zeros(30), np.linspace(0.1, 3.0, 30))
    moved = move_plan(planned.mean, body)
    assert moved.laws[0].guarantee == planned.mean.laws[0].guarantee
    assert moved.laws[0].sigma_steps == planned.mean.laws[0].sigma_steps


def test_squares_that_noise_hides_share_one_axis():
    axes = axes_for_squares(np.array([1.0, 0.01, -0.02, 0.005, 0.0]), 0.02)
    assert np.ptp(axes[1:]) == 0
    assert axes[0] > 1.5 * axes[1]
    assert np.all(axes_for_squares(np.full(4, -1.0), 0.1) > 0)
    whole = axes_for_squares(SCALES**2, 1e-9)
    assert np.sum(SCALES**2 / whole**2) == pytest.approx(1.0)


@thorough("releases", 20, 200)
@pytest.mark.parametrize("heavy", [False, True], ids=["normal", "heavy tails"])
def test_told_90_percent_hold_the_unclipped_mean(heavy, releases):
    points = POINTS[:800].copy()
    if heavy:
        points /= np.sqrt(np.random.default_rng(4).chisquare(3, size=(800, 1)) / 3)
    ball = Ball(SPACE, np.zeros(30), 1.01 * float(np.max(np.linalg.norm(points, axis=1))))
    made = [release(points=points, domain=ball, rng=seed) for seed in range(releases)]
    truth = np.mean(points, axis=0)
    held = [np.linalg.norm(each.coordinates - truth) <= each.expected_error.radius_90 for each in made]
    assert np.mean(held) >= 0.9


def test_neighbours_differ_in_noisy_sums_alone():
    rest = np.tile([[0.3, 0.1]], (29, 1))
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    for place in ([0.5, 0.5], [1e300, -1e300], [2.0, 0.0], [0.0, 0.0]):
        pair = (np.vstack([rest, [end]]) for end in ([-1.0, 0.0], place))
        assert find_difference(lambda x, rng: release(GaussianDP(4.0), x, ball, rng=rng), *pair, rng=0) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": np.eye(29)}, "shape"),
        ({"basis": 2 * np.eye(30)}, "orthonormal"),
        ({"basis": np.full((30, 30), np.nan)}, "orthonormal"),
        ({"basis": "fourier"}, "numbers"),
        ({"steps": 2}, "steps"),
        ({"domain": Ellipsoid(SPACE, np.zeros(30), np.ones(30))}, "Ball"),
        ({"public_sample": POINTS[:50]}, "public_sample"),
        ({"mechanism": "direct"}, "refine"),
        ({"points": np.zeros((0, 30))}, "empty|at least one"),
        ({"points": np.full((5, 30), np.nan)}, "finite"),
        ({"points": iter([POINTS])}, "once"),
    ],
    ids=lambda each: ", ".join(each) if isinstance(each, dict) else each,
)
def test_what_it_cannot_do_is_refused_before_anything_is_drawn(options, message):
    with overheard_noise() as tap, pytest.raises(dpm.DPManifoldsError, match=message):
        release(**options)
    assert tap.said == []


def test_a_basis_is_for_paid_axes_alone():
    with pytest.raises(dpm.ArgumentError, match="refine='axes'"):
        dpm.private_mean(POINTS, BALL, GaussianDP(1.0), basis=TURN)


def test_odd_forms_of_records_are_read():
    small = np.asfortranarray(POINTS.astype(np.float32))
    small.setflags(write=False)
    assert np.linalg.norm(release(points=small).value - release().value) < 0.1
    assert release(points=[POINTS[:700], POINTS[700:]]).value.tolist() == release().value.tolist()
    with pytest.warns(dpm.NoiseExceedsDomainWarning):
        assert release(points=POINTS[:1], on_invalid="center").value.shape == (30,)
