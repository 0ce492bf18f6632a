"""Balls: refusals, clipping, and how to choose one without data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ArgumentError,
    Ball,
    Euclidean,
    Grassmann,
    Hyperbolic,
    NotOnManifoldError,
    PlanarShapes,
    Power,
    Product,
    RadiusTooLargeError,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
    frechet_mean,
    validate,
)
from tests.manifolds.cases import SMOOTH, tangent_of_length


def some_ball(manifold, rng=3) -> Ball:
    return Ball(manifold, manifold.random_point(rng=rng), min(0.4 * manifold.max_radius, 0.6))


@pytest.mark.grid
@pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
def test_clipping_moves_records_onto_the_ball_and_leaves_the_others_alone(manifold, backend):
    ball = some_ball(manifold)
    rng = np.random.default_rng(0)
    centers = manifold.from_coordinates(ball.center, np.zeros((6, manifold.dim)))
    base = manifold.exp(ball.center, centers)
    near = manifold.exp(base, tangent_of_length(manifold, base, rng, 0.5 * ball.radius))
    far_length = min(3 * ball.radius, 0.9 * manifold.injectivity_radius)
    far = manifold.exp(base, tangent_of_length(manifold, base, rng, far_length))
    assert np.all(np.asarray(ball.contains(near)))
    assert not np.any(np.asarray(ball.contains(far)))
    kept, moved = ball.clip(backend.array(near)), ball.clip(backend.array(far))
    assert np.all(backend.numpy(ball.contains(moved)))
    assert np.all(same(backend.numpy(kept), near))
    distances = np.asarray(manifold.dist(base, backend.numpy(moved)))
    assert np.allclose(distances, ball.radius, rtol=1e-8)
    # clipped along the geodesic to the centre: the direction of the logarithm is kept
    before = manifold.to_coordinates(base, manifold.log(base, far))
    after = manifold.to_coordinates(base, manifold.log(base, backend.numpy(moved)))
    assert np.allclose(after * far_length, before * ball.radius, atol=1e-8)


def same(a, b):
    if isinstance(a, tuple):
        return all(np.all(same(x, y)) for x, y in zip(a, b, strict=True))
    return np.asarray(a) == b


def test_clipping_handles_a_record_on_the_cut_locus_of_the_centre():
    north = np.array([0.0, 0.0, 1.0])
    ball = Ball(Sphere(2), north, 1.0)
    clipped = ball.clip(np.stack([-north, north]))
    assert np.allclose(Sphere(2).dist(north, clipped), [1.0, 0.0])
    assert np.array_equal(clipped, ball.clip(np.stack([-north, north])))


def test_clipping_takes_read_only_and_non_contiguous_records_and_keeps_float32():
    ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
    records = Sphere(2).random_point(40, rng=0).astype(np.float32)[::2]
    records.setflags(write=False)
    clipped = ball.clip(records)
    assert clipped.dtype == np.float32
    assert np.all(ball.contains(clipped))


@pytest.mark.parametrize(
    ("manifold", "limit"),
    [
        (Sphere(2), math.pi / 2),
        (Sphere(3, curvature=4.0), math.pi / 4),
        (Sphere(1), math.pi / 2),
        (PlanarShapes(5), math.pi / 4),
        (Grassmann(5, 2), math.pi / 4),
        (Grassmann(2, 1), math.pi / 4),
        (SpecialOrthogonal(3), math.pi / 2),
        (SpecialOrthogonal(2), math.pi / 2),
        (Product(Sphere(2), Euclidean(2)), math.pi / 2),
        (Power(Sphere(2), 3), math.pi / 2),
    ],
    ids=repr,
)
def test_a_mean_is_unique_up_to_the_limit_and_balls_end_at_the_cut_locus(manifold, limit):
    center = manifold.random_point(rng=0)
    assert manifold.max_radius == pytest.approx(limit)
    assert Ball(manifold, center, 0.999 * limit).has_unique_mean
    assert not Ball(manifold, center, 1.001 * limit).has_unique_mean
    with pytest.raises(RadiusTooLargeError, match="radius must be below"):
        Ball(manifold, center, manifold.injectivity_radius)


@pytest.mark.parametrize("manifold", [Euclidean(2), Hyperbolic(3), SPD(3), SPD(3, "log-euclidean")], ids=repr)
def test_hadamard_manifolds_take_any_radius(manifold):
    assert Ball(manifold, manifold.random_point(rng=0), 1e6).diameter == 2e6


def test_bad_balls_are_refused_with_what_to_do():
    north = np.array([0.0, 0.0, 1.0])
    for radius in (0.0, -1.0, math.nan, math.inf, "wide"):
        with pytest.raises(ArgumentError, match="radius must be"):
            Ball(Sphere(2), north, radius)
    with pytest.raises(NotOnManifoldError, match="center does not lie"):
        Ball(Sphere(2), 2 * north, 0.5)
    with pytest.raises(NotOnManifoldError, match="center does not lie"):
        Ball(Sphere(2), north * math.nan, 0.5)
    with pytest.raises(ArgumentError, match="shape"):
        Ball(Sphere(2), np.zeros(4), 0.5)
    with pytest.raises(ArgumentError, match="one point"):
        Ball(Sphere(2), np.stack([north, north]), 0.5)
    with pytest.raises(RadiusTooLargeError, match="optimisation only"):
        Ball(Stiefel(4, 2), Stiefel(4, 2).random_point(rng=0), 0.1)
    with pytest.raises(ArgumentError, match="Manifold"):
        Ball("sphere", north, 0.5)


@pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean", "log-cholesky"])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_the_ball_of_an_eigenvalue_range_holds_every_matrix_of_that_range(k, metric):
    manifold = SPD(k, metric)
    low, high = 1e-4, 3e-3
    ball = Ball.from_eigenvalues(manifold, low, high)
    rng = np.random.default_rng(k)
    values = np.exp(rng.uniform(math.log(low), math.log(high), size=(4000, k)))
    values[:2000] = np.where(rng.uniform(size=(2000, k)) < 0.5, low, high)
    frames = np.linalg.qr(rng.standard_normal((4000, k, k)))[0]
    matrices = (frames * values[:, None, :]) @ frames.swapaxes(1, 2)
    matrices = (matrices + matrices.swapaxes(1, 2)) / 2
    distances = manifold.dist(ball.center, matrices)
    assert np.all(ball.contains(matrices))
    if metric != "log-cholesky" or k == 1:
        assert distances.max() == pytest.approx(ball.radius, rel=1e-6)


def test_balls_from_bounds_and_orthants():
    box = Ball.from_bounds(Euclidean(3), [0, 0, 0], [2, 2, 1])
    assert np.all(box.contains(np.random.default_rng(0).uniform(size=(100, 3)) * [2, 2, 1]))
    assert box.radius == 1.5
    for d in (1, 2, 20):
        ball = Ball.positive_orthant(Sphere(d, curvature=2.0))
        corners = np.eye(d + 1) / math.sqrt(2.0)
        assert np.all(ball.contains(corners))
        assert np.allclose(Sphere(d, curvature=2.0).dist(ball.center, corners), ball.radius)
    with pytest.raises(ArgumentError, match="Euclidean"):
        Ball.from_bounds(Sphere(2), [0, 0, 0], [1, 1, 1])
    with pytest.raises(ArgumentError, match="lower below upper"):
        Ball.from_bounds(Euclidean(1), [1.0], [0.0])
    with pytest.raises(ArgumentError, match="SPD manifold"):
        Ball.from_eigenvalues(Sphere(2), 1.0, 2.0)
    with pytest.raises(ArgumentError, match="below largest"):
        Ball.from_eigenvalues(SPD(2), 2.0, 1.0)
    with pytest.raises(ArgumentError, match="sphere"):
        Ball.positive_orthant(Euclidean(2))


def test_a_ball_from_a_public_reference_sample_holds_it():
    sphere = Sphere(2)
    public = sphere.exp(
        np.array([0.0, 0.0, 1.0]),
        tangent_of_length(sphere, np.broadcast_to([0.0, 0.0, 1.0], (200, 3)), np.random.default_rng(0), 0.4),
    )
    ball = Ball.from_sample(sphere, public)
    assert np.all(ball.contains(public))
    assert ball.radius < 0.6
    assert Ball.from_sample(sphere, public, coverage=0.5, margin=0.0).radius < ball.radius
    with pytest.raises(ArgumentError, match="coverage"):
        Ball.from_sample(sphere, public, coverage=1.5)
    with pytest.raises(RadiusTooLargeError):
        Ball.from_sample(sphere, public, margin=9.0)
    with pytest.raises(ArgumentError, match="one leading axis"):
        Ball.from_sample(sphere, public[0])
    with pytest.raises(NotOnManifoldError, match="sample"):
        Ball.from_sample(sphere, 2 * public)
    with pytest.raises(RadiusTooLargeError, match="optimisation only"):
        Ball.from_sample(Stiefel(3, 2), Stiefel(3, 2).random_point(3, rng=0))


@pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
def test_the_centre_of_a_ball_from_a_sample_is_its_frechet_mean(manifold):
    near = manifold.random_point(rng=0)
    steps = np.random.default_rng(1).uniform(-0.2, 0.2, (30, manifold.dim)) / math.sqrt(manifold.dim)
    public = manifold.move(near, steps)
    ball = Ball.from_sample(manifold, public)
    assert float(manifold.dist(ball.center, frechet_mean(manifold, public).point)) < 1e-7
    assert np.all(ball.contains(public))


def test_validate_tells_the_custodian_everything():
    manifold = SPD(2)
    good = np.eye(2)
    records = np.stack([good, 100 * good, np.full((2, 2), np.nan), np.diag([1.0, -1.0]), [[1.0, 0.5], [0.0, 1.0]]])
    report = validate(records, Ball(manifold, good, 1.0))
    assert report.records == 5
    assert report.not_finite == (2,)
    assert report.off_manifold == (2, 3, 4)
    assert report.outside == (1,)
    assert report.largest_distance == pytest.approx(math.sqrt(2) * math.log(100))
    assert not report.ok
    assert "private" in str(report)
    assert validate(records[:2], Ball(manifold, good, 1.0)).ok
    with pytest.raises(ArgumentError, match="leading axis"):
        validate(good, Ball(manifold, good, 1.0))
    space = Product(Sphere(2), Euclidean(1))
    points = space.random_point(4, rng=0)
    assert validate(points, Ball(space, space.random_point(rng=1), 0.2)).ok
