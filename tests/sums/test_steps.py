"""Plans of tangent steps: public facts in, parts of the budget out; the error that comes is the one that is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Euclidean,
    GaussianDP,
    Hyperbolic,
    PureDP,
    RenyiDP,
    Sphere,
    ZeroConcentratedDP,
    frechet_mean,
    private_mean,
)
from dpmanifolds._points import host
from dpmanifolds.sums.steps import plan_steps, whole_step

BUDGETS = [PureDP(1.0), GaussianDP(1.0), ApproxDP(1.0, 1e-6), ZeroConcentratedDP(0.5), RenyiDP(8.0, 1.0)]
SPHERE = Ball(Sphere(10), np.eye(11)[0], 1.3)


def records_in(ball, n, position=0.4, spread=0.4, seed=0):
    """A wrapped Gaussian around a point at `position` radii from the centre, clipped, and its Fréchet mean."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(ball.manifold.dim)
    middle = ball.manifold.move(host(ball.center), position * ball.radius * direction / np.linalg.norm(direction))
    around = rng.standard_normal((n, ball.manifold.dim)) * spread * ball.radius / math.sqrt(ball.manifold.dim)
    points = ball.clip(ball.manifold.move(middle, around))
    return points, frechet_mean(ball.manifold, points).point


def mean_error(points, truth, ball, budget, count, **options):
    releases = [private_mean(points, ball, budget, refine=0, rng=seed, **options) for seed in range(count)]
    return float(np.mean([float(ball.manifold.dist(truth, release.value)) for release in releases])), releases[0]


@pytest.mark.parametrize("manifold", [Euclidean(4), SPD(3, "log-euclidean"), SPD(3, "log-cholesky")], ids=repr)
def test_one_step_is_exact_on_flat_metrics(manifold):
    center = np.zeros(4) if isinstance(manifold, Euclidean) else np.eye(3)
    plan = plan_steps(Ball(manifold, center, 5.0), 100_000, GaussianDP(1.0))
    assert len(plan.mechanisms) == 1
    assert plan.bias == 0


@pytest.mark.grid
@pytest.mark.parametrize("steps", [1, 2, 3, 4, "auto"])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_all_steps_together_stay_within_the_budget(budget, steps):
    plan = plan_steps(SPHERE, 2000, budget, steps=steps)
    assert plan.guarantee.fits(budget)
    assert len(plan.gains) == len(plan.noises) == len(plan.mechanisms)
    assert all(0 < gain <= 1 / 0.8 for gain in plan.gains[0])
    assert all(0 < gain <= 1 for step in plan.gains[1:] for gain in step)


@pytest.mark.parametrize("budget", BUDGETS[:3], ids=repr)
def test_the_last_step_gets_most_of_the_budget(budget):
    scales = [law.sigma for law in plan_steps(SPHERE, 2000, budget, steps=3).mechanisms]
    assert scales == sorted(scales, reverse=True)


def test_more_records_ask_for_more_steps_and_small_balls_for_one():
    counts = [len(plan_steps(SPHERE, n, GaussianDP(1.0)).mechanisms) for n in (5, 300, 100_000)]
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[-1] >= 2
    assert len(plan_steps(Ball(Sphere(10), np.eye(11)[0], 0.1), 300, PureDP(1.0)).mechanisms) == 1


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(
    ("ball", "n", "budget"),
    [
        (SPHERE, 2000, GaussianDP(1.0)),
        (Ball(SPD(3), np.eye(3), 3.0), 2000, GaussianDP(1.0)),
        (Ball(Hyperbolic(3), Hyperbolic(3).origin, 2.0), 2000, GaussianDP(1.0)),
    ],
    ids=["sphere", "SPD", "hyperbolic"],
)
def test_the_told_error_is_the_one_that_comes(ball, n, budget):
    # 150 releases: the mean of a length in 3 or more dimensions is known to ±3.5 %
    points, truth = records_in(ball, n, position=0.3)
    error, release = mean_error(points, truth, ball, budget, 150)
    assert len(release.stages) >= 1
    assert error == pytest.approx(release.expected_error.mean, rel=0.1)


def test_two_steps_more_than_halve_the_error_of_one_on_a_wide_sphere():
    points, truth = records_in(SPHERE, 3000, position=0.5)
    one, _ = mean_error(points, truth, SPHERE, PureDP(1.0), 12, steps=1)
    two, _ = mean_error(points, truth, SPHERE, PureDP(1.0), 12, steps=2)
    assert two < 0.5 * one


def test_a_first_step_that_is_not_the_last_word_aims_at_the_frechet_mean():
    plans = [plan_steps(SPHERE, 100, PureDP(0.1), steps=steps) for steps in (1, "auto")]
    assert [len(plan.mechanisms) for plan in plans] == [1, 1]
    assert plans[0].gain(0, 0.0) == 1
    assert plans[1].gain(0, 0.0) == whole_step(SPHERE, 1) > 1
    # told as it is taken
    ratio = plans[1].expected_error.mean / plans[0].expected_error.mean
    assert ratio == pytest.approx(whole_step(SPHERE, 1))


def test_what_was_reached_is_shrunk_once():
    # near the centre of a high-dimensional ball two halves of a Gaussian budget are worth the whole
    ball = Ball(Sphere(40), np.eye(41)[0], 0.4)
    points, truth = records_in(ball, 400, position=0.05)
    errors = [mean_error(points, truth, ball, GaussianDP(1.0), 60, steps=steps)[0] for steps in (1, 2)]
    assert errors[1] < 1.05 * errors[0]


def test_damped_steps_do_not_run_away_from_records_at_opposite_ends():
    space = Hyperbolic(2)
    ball = Ball(space, space.origin, 4.0)
    points = space.move(space.origin, np.array([[3.6, 1.0], [-3.6, 1.0]] * 500))
    truth = frechet_mean(space, points).point
    one, _ = mean_error(points, truth, ball, GaussianDP(5.0), 5, steps=1)
    several, _ = mean_error(points, truth, ball, GaussianDP(5.0), 5, steps=4)
    assert several < one
