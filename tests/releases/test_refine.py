"""A radius that is paid for: much better in balls that are too large, hardly worse in those that fit, and honest."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dpmanifolds import SPD, Ball, Euclidean, GaussianDP, PureDP, frechet_mean, private_mean
from dpmanifolds.releases.refine import best_radius

DATA = Path(__file__).parents[3] / "shared" / "data" / "spd" / "dti_dipy_small_64D.npz"


def cloud(dim, n, extent, rng):
    """Records uniform in a ball of this radius, whose middle is at .2 of it from 0."""
    rows = rng.standard_normal((n, dim))
    rows *= rng.random((n, 1)) ** (1 / dim) / np.linalg.norm(rows, axis=-1, keepdims=True)
    return extent * (0.8 * rows + 0.2 * np.eye(dim)[0])


def errors(dim, n, extent, budget, count, **options):
    rng = np.random.default_rng(5)
    ball, found = Ball(Euclidean(dim), np.zeros(dim), 1.0), []
    for seed in range(count):
        points = cloud(dim, n, extent, rng)
        release = private_mean(points, ball, budget, rng=seed, **options)
        # the draw itself: what shrinkage makes of it is the same for both
        found.append(
            np.linalg.norm(
                release.coordinates + (0.0 if release.base is None else release.base) - np.mean(points, axis=0)
            )
        )
    return float(np.mean(found))


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("budget", [PureDP(1.0), GaussianDP(1.0)], ids=repr)
@pytest.mark.parametrize(("dim", "n"), [(6, 300), (6, 3000), (45, 1000), (100, 300)])
def test_a_ball_three_times_too_large_is_1_3_times_better_with_a_paid_radius(dim, n, budget):
    assert 1.3 * errors(dim, n, 1 / 3, budget, 20, refine=1) < errors(dim, n, 1 / 3, budget, 20)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("dim", "n"), [(6, 1000), (45, 1000)])
def test_a_ball_that_fits_costs_little_more_with_a_paid_radius(dim, n):
    # the same seeds draw other noise: 60 releases each are known to ±4 % at d=6
    ratio = errors(dim, n, 1.0, GaussianDP(1.0), 60, refine=1) / errors(dim, n, 1.0, GaussianDP(1.0), 60)
    assert ratio < 1.06 + 0.15 / math.sqrt(dim)


@pytest.mark.skipif(not DATA.exists(), reason="the data set is not there")
def test_diffusion_tensors_err_by_what_is_told():
    points = np.load(DATA)["x"]
    points = points[np.all(np.linalg.eigvalsh(points) > 0, axis=-1)][:600]
    ball = Ball.from_eigenvalues(SPD(3), 1e-5, 1e-2)
    truth = frechet_mean(SPD(3), ball.clip(points)).point
    releases = [private_mean(points, ball, PureDP(1.0), refine=2, rng=seed) for seed in range(12)]
    error = np.mean([float(SPD(3).dist(truth, release.value)) for release in releases])
    told = np.mean([release.expected_error.mean for release in releases])
    assert error < 1.3 * told < 0.25


def test_empty_bins_beyond_the_records_do_not_keep_the_ball_large():
    edges = 2.0 ** (-np.arange(12)[::-1] / 2)
    counts = np.random.default_rng(0).normal(0, 6, 12)
    counts[7] += 500
    assert best_radius(counts, edges, 500.0, error=0.02)[0] == pytest.approx(edges[7])


def test_the_floor_is_kept():
    edges = 2.0 ** (-np.arange(12)[::-1] / 2)
    assert best_radius(np.eye(12)[0] * 100, edges, 100.0, error=0.1, floor=0.3) == (0.3, 0.0)
