"""Baselines of private descent find what they look for, with the noise they are given."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import SPD, Ball, GaussianDP, PureDP, Sphere, frechet_mean
from papers.descent_baselines import perturbed_mean, projected_descent


def test_projected_descent_finds_the_leading_eigenvector():
    records = np.random.default_rng(0).standard_normal((2000, 5)) * [2.0, 1.0, 0.5, 0.5, 0.5] / 5
    start = Sphere(4).project(np.ones(5))
    w = projected_descent(records, start, steps=60, step_size=2.0, noise=1e-4, clip=2.0, rng=0)
    leading = np.linalg.eigh(records.T @ records)[1][:, -1]
    assert abs(w @ leading) > 0.999
    assert np.linalg.norm(w) == pytest.approx(1.0)


@pytest.mark.long
@pytest.mark.parametrize(("budget", "spread"), [(GaussianDP(1.0), np.sqrt(3)), (PureDP(1.0), np.sqrt(3 * 4))])
def test_the_perturbed_mean_has_the_noise_of_its_budget(budget, spread):
    """√E|noise|² = √d·Δ/μ, or √(d(d+1))·Δ/ε; Δ = 2r/n; 300 draws, within 25 % (about 5 sd)."""
    ball = Ball(SPD(2, "log-euclidean"), np.eye(2), 2.0)
    records = ball.clip(0.3 * SPD(2).random_point(400, rng=0))
    mean = frechet_mean(ball.manifold, records).point
    rng = np.random.default_rng(1)
    errors = [ball.manifold.dist(perturbed_mean(records, ball, budget, rng=rng), mean) for _ in range(300)]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(spread * 4.0 / 400, rel=0.25)
