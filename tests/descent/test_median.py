"""The private median: it fits its budget, shrugs off outliers, and its error falls as 1/n."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import SPD, ApproxDP, ArgumentError, Ball, GaussianDP, PureDP, Sphere, frechet_mean, frechet_median
from dpmanifolds.descent.losses import FrechetMedianLoss
from dpmanifolds.descent.step_sizes import median_schedule
from dpmanifolds.releases import private_median

BUDGET = ApproxDP(1.0, 1e-6)
BALLS = [
    Ball(SPD(3), np.eye(3), 2.0),
    Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0),
    Ball(SPD(3, "log-euclidean"), np.eye(3), 4.0),
]


def contaminated(ball, n, seed):
    """80 % of the records around a point at 0.3 r, 20 % near the far side of the ball."""
    space, rng = ball.manifold, np.random.default_rng(seed)
    away = rng.standard_normal(space.dim)
    away *= ball.radius / np.linalg.norm(away)
    coordinates = 0.3 * away + 0.2 * ball.radius / np.sqrt(space.dim) * rng.standard_normal((n, space.dim))
    coordinates[: n // 5] = -0.95 * away + 0.05 * ball.radius * rng.standard_normal((n // 5, space.dim))
    return ball.clip(space.exp(ball.center, space.from_coordinates(ball.center, coordinates)))


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("budget", [BUDGET, PureDP(1.0), GaussianDP(0.25)], ids=repr)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_with_a_fifth_of_outliers_it_beats_even_the_mean_without_noise(ball, budget):
    """Excess of the mean distance over its minimum, average of 5 runs at n = 1000."""
    records = contaminated(ball, 1000, 0)
    loss = FrechetMedianLoss(ball)
    least = loss.value(frechet_median(ball.manifold, records).point, records)
    excess = np.mean(
        [loss.value(private_median(records, ball, budget, rng=seed).value, records) - least for seed in range(5)]
    )
    of_mean = loss.value(frechet_mean(ball.manifold, records).point, records) - least
    assert excess < 0.1 * of_mean


@pytest.mark.long
def test_ten_times_the_records_bring_a_tenth_of_the_error():
    ball = BALLS[1]
    errors = []
    for n in (500, 5000):
        records = contaminated(ball, n, 1)
        median = frechet_median(ball.manifold, records).point
        runs = [private_median(records, ball, BUDGET, rng=seed).value for seed in range(12)]
        errors.append(np.mean([ball.manifold.dist(point, median) for point in runs]))
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("budget", [BUDGET, PureDP(0.5), GaussianDP(0.3)], ids=repr)
def test_it_keeps_its_budget_and_stays_in_the_ball(budget):
    ball = BALLS[0]
    result = private_median(contaminated(ball, 50, 2), ball, budget)
    assert result.guarantee.fits(budget)
    assert bool(ball.contains(result.value))
    assert result.sensitivity.value == pytest.approx(2 / 50, rel=1e-6)


def test_the_schedule_is_public():
    ball = BALLS[0]
    steps, sizes = median_schedule(ball, 1000, BUDGET)
    for seed in (0, 1):
        result = private_median(contaminated(ball, 1000, seed), ball, BUDGET)
        assert (result.descent.steps, result.descent.output) == (steps, "weighted-average")
    assert sizes.first == ball.radius / 2 > sizes.last
    assert median_schedule(ball, 1000, PureDP(1.0))[0] < steps
    assert median_schedule(ball, 1000, BUDGET, steps=7)[0] == 7


def test_bad_arguments_are_refused():
    with pytest.raises(ArgumentError, match="Ball"):
        private_median(np.eye(3)[None], SPD(3), BUDGET)
    with pytest.raises(ArgumentError, match="empty"):
        private_median(np.zeros((0, 3, 3)), BALLS[0], BUDGET)
