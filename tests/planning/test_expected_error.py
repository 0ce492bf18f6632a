"""The error that is promised before a release is the one that draws have; releases err less near the centre."""

from __future__ import annotations

from typing import Any

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
    Power,
    Product,
    PureDP,
    SpecialOrthogonal,
    Sphere,
    ZeroConcentratedDP,
)
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.sums import Mechanism, calibrate, mean_facts
from tests.sums.cases import drawn_point

MANIFOLDS = {
    "euclidean": (Euclidean(3), 1.0),
    "sphere": (Sphere(2), 0.8),
    "circle": (Sphere(1), 0.8),
    "hyperbolic": (Hyperbolic(2), 1.0),
    "spd": (SPD(2), 1.0),
    "log-euclidean": (SPD(3, "log-euclidean"), 1.0),
    "log-cholesky": (SPD(2, "log-cholesky"), 1.0),
    "shapes": (PlanarShapes(4), 0.5),
    "rotations": (SpecialOrthogonal(3), 0.8),
    "subspaces": (Grassmann(4, 2), 0.5),
    "product": (Product(Sphere(2), Euclidean(2)), 0.7),
    "power": (Power(Hyperbolic(2), 2), 1.0),
}
BUDGETS = {
    ("wrapped-gaussian", "rounded"): GaussianDP(1.0),
    ("wrapped-gaussian", "lattice"): ZeroConcentratedDP(0.5),
    ("wrapped-laplace", "rounded"): PureDP(1.0),
    ("wrapped-laplace", "lattice"): PureDP(1.0),
    ("riemannian-gaussian", "idealized"): GaussianDP(1.0),
    ("riemannian-laplace", "idealized"): PureDP(1.0),
    ("k-norm-gradient", "idealized"): PureDP(1.0),
}
# small balls: the noise is a tenth of the radius or less, so that projection to the ball plays no part
N = 200
QUICK = [("wrapped-gaussian", "rounded", place) for place in MANIFOLDS] + [
    ("wrapped-gaussian", "lattice", "log-euclidean"),
    ("wrapped-laplace", "rounded", "sphere"),
    ("wrapped-laplace", "lattice", "spd"),
    ("riemannian-gaussian", "idealized", "hyperbolic"),
    ("riemannian-laplace", "idealized", "sphere"),
    ("k-norm-gradient", "idealized", "euclidean"),
]


def ball_of(place: str) -> Ball:
    manifold, radius = MANIFOLDS[place]
    return Ball(manifold, manifold.random_point(rng=3), radius)


def realised(mechanism: Mechanism, statistic: Any, draws: int, *, together: bool = False) -> np.ndarray:
    """Distances of that many draws to the statistic, as they are: shrinking would bring them closer to the centre.

    `together`: of one law, which a release builds anew.
    """
    rng = np.random.default_rng(7)
    domain = mechanism.facts.domain
    records = None if isinstance(statistic, tuple) else np.asarray(statistic)[None]
    if together:
        drawn = mechanism.draw_many(statistic, draws, records=records, rng=rng)
        return np.asarray(domain.manifold.dist(statistic, drawn))
    return np.array(
        [domain.manifold.dist(statistic, drawn_point(mechanism, statistic, records, rng)) for _ in range(draws)]
    )


def agrees(claimed: float, distances: np.ndarray) -> bool:
    """Within 2 % and 5 standard errors: a false alarm has a probability below 1e−6."""
    spread = 5 * distances.std() / np.sqrt(len(distances))
    return bool(abs(distances.mean() - claimed) <= 0.02 * claimed + spread)


def check(mechanism: Mechanism, draws: int, *, together: bool = False) -> None:
    error = mechanism.expected_error
    distances = realised(mechanism, mechanism.facts.domain.center, draws, together=together)
    assert agrees(error.mean, distances)
    assert not agrees(1.3 * error.mean, distances)
    assert not agrees(0.7 * error.mean, distances)
    assert abs(np.mean(distances <= error.radius_90) - 0.9) <= 0.004 + 5 * np.sqrt(0.09 / draws)
    assert error.mean_at_edge >= error.mean


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("name", "numerics", "place"), QUICK)
def test_releases_err_as_expected(name: str, numerics: str, place: str) -> None:
    mechanism = calibrate(name, mean_facts(ball_of(place), N), BUDGETS[name, numerics], numerics)
    check(mechanism, draws=400)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("name", "budget"), [("wrapped-gaussian", GaussianDP(1.0)), ("wrapped-laplace", PureDP(1.0))])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_what_is_made_of_a_draw_errs_no_more_than_expected(name: str, budget: Any, share: float) -> None:
    """Five standard errors, and 4 %: the most that shrinking can cost (tests/sums)."""
    for dim, n in ((1, 20), (3, 20), (20, 100)):
        mechanism = calibrate(name, mean_facts(Ball(Euclidean(dim), np.zeros(dim), 1.0), n), budget, "rounded")
        statistic = np.full(dim, share / np.sqrt(dim)) * (1 - 1e-9)
        rng = np.random.default_rng(8)
        total = np.rint(statistic / mechanism.step).astype(int).tolist()
        points = [mechanism.point_of(mechanism.noisy_mean(total, n, rng)) for _ in range(300)]
        distances = np.linalg.norm(np.array(points) - statistic, axis=1)
        spread = 5 * distances.std() / np.sqrt(300)
        assert distances.mean() <= 1.04 * mechanism.expected_error.mean + spread


@pytest.mark.long
@pytest.mark.parametrize("place", MANIFOLDS)
@pytest.mark.parametrize(("name", "numerics"), BUDGETS)
def test_five_thousand_releases_err_as_expected(name: str, numerics: str, place: str) -> None:
    ball = ball_of(place)
    try:
        mechanism = calibrate(name, mean_facts(ball, N), BUDGETS[name, numerics], numerics)
    except NotAvailableError:
        pytest.skip("not available on this manifold")
    check(mechanism, draws=5000, together=name == "k-norm-gradient")


@pytest.mark.long
@pytest.mark.parametrize(("name", "budget"), [("wrapped-gaussian", GaussianDP(1.0)), ("wrapped-laplace", PureDP(1.0))])
def test_noise_reaches_2_33_times_as_far_at_the_edge_of_a_hyperbolic_ball(name: str, budget: Any) -> None:
    plane = Hyperbolic(2)
    ball = Ball(plane, plane.origin, 3.0)
    mechanism = calibrate(name, mean_facts(ball, 10_000_000), budget, "rounded")
    # a hair inside, so that no draw is projected back
    statistic = plane.exp(plane.origin, plane.from_coordinates(plane.origin, np.array([2.9999, 0.0])))
    distances = realised(mechanism, statistic, 600)
    error = mechanism.expected_error
    assert agrees(error.mean_at_edge, distances)
    assert error.mean_at_edge / error.mean == pytest.approx(2.3304, abs=1e-3)


def test_no_direction_on_spd_errs_more_than_the_edge_says() -> None:
    ball = Ball(SPD(2), np.eye(2), 2.0)
    mechanism = calibrate("wrapped-gaussian", mean_facts(ball, 10_000_000), GaussianDP(1.0), "rounded")
    for direction in np.eye(3):
        statistic = SPD(2).exp(np.eye(2), SPD(2).from_coordinates(np.eye(2), 1.9999 * direction))
        distances = realised(mechanism, statistic, 200)
        spread = 5 * distances.std() / np.sqrt(200)
        assert distances.mean() <= 1.02 * mechanism.expected_error.mean_at_edge + spread
