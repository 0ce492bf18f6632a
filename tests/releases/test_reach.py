"""Every manifold, up to its cut locus and to matrices that floating point hardly holds: released, at no more noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Ball,
    Euclidean,
    GaussianDP,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    PureDP,
    SpecialOrthogonal,
    Sphere,
    private_mean,
)
from dpmanifolds._points import host

METRICS = ("affine-invariant", "log-euclidean", "log-cholesky")
RANGES = ((0.1, 10.0), (1e-4, 1e2))
MATRICES = [
    pytest.param(Ball.from_eigenvalues(SPD(k, metric), *between), id=f"SPD({k})-{metric}-{between[0]:g}-{between[1]:g}")
    for k in (2, 8, 22, 64)
    for metric in METRICS
    for between in RANGES
]
CLOSED = [
    Ball(manifold, manifold.random_point(rng=0), share * manifold.injectivity_radius)
    for manifold in (Sphere(2), Sphere(30), PlanarShapes(8), SpecialOrthogonal(3), Grassmann(6, 2))
    for share in (0.4, 0.999)
]
OPEN = [Ball(Hyperbolic(dim), Hyperbolic(dim).origin, radius) for dim in (2, 5) for radius in (1.0, 15.0)]
BALLS = [*MATRICES, *(pytest.param(ball, id=repr(ball)) for ball in (*CLOSED, *OPEN))]


def records_at(ball, distance, n=24):
    """Pairs of opposite records at this distance of the centre, which is their mean."""
    half = np.random.default_rng(1).standard_normal((n // 2, ball.manifold.dim))
    half *= distance / np.linalg.norm(half, axis=-1, keepdims=True)
    return ball.manifold.move(host(ball.center), np.concatenate([half, -half]))


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("ball", BALLS)
def test_one_step_errs_as_in_a_flat_ball_of_the_same_radius(ball):
    manifold = ball.manifold
    flat = Ball(Euclidean(manifold.dim), np.zeros(manifold.dim), ball.radius)
    points = records_at(ball, min(0.3 * ball.radius, 1.0))
    budget = GaussianDP(600.0)
    ratios = []
    for seed in range(3):
        release = private_mean(points, ball, budget, steps=1, refine=0, rng=seed)
        same = private_mean(np.zeros((len(points), manifold.dim)), flat, budget, refine=0, rng=seed)
        assert release.sensitivity.value == pytest.approx(2 * ball.radius / len(points))
        ratios.append(float(manifold.dist(host(ball.center), release.value)) / np.linalg.norm(same.value))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.03)


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("budget", [PureDP(0.5), GaussianDP(50.0)], ids=["much noise", "little noise"])
@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_wide_balls_release_by_any_number_of_steps(ball, budget):
    points = records_at(ball, min(0.95 * ball.radius, 5.0))
    for steps in ("auto", 3):
        release = private_mean(points, ball, budget, steps=steps, rng=3)
        assert np.all(np.isfinite(release.value))
        assert bool(ball.manifold.belongs(release.value))
