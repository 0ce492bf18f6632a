"""The mean, the median, and the tangent space at the mean."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm
from dpmanifolds.estimators import (
    PrivateFrechetMean,
    PrivateFrechetMedian,
    PrivateLogisticRegression,
    PrivateTangentSpace,
)

SPHERE = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.6)
CASES = {
    "affine-invariant": dpm.Ball(dpm.SPD(3), np.eye(3), 1.5),
    "log-euclidean": dpm.Ball(dpm.SPD(3, "log-euclidean"), np.diag([1.0, 2.0, 0.5]), 1.5),
    "sphere": SPHERE,
    "hyperbolic": dpm.Ball(dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 1.5),
    "shapes": dpm.Ball(dpm.PlanarShapes(5), dpm.PlanarShapes(5).random_point(rng=9), 0.5),
    "power": dpm.Ball(dpm.Power(dpm.Sphere(2), 2), np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), 0.6),
}
every_space = pytest.mark.parametrize("ball", CASES.values(), ids=CASES)


def test_it_is_private_mean():
    records = SPHERE.clip(dpm.Sphere(2).random_point(300, rng=0))
    people = np.repeat(np.arange(100), 3)
    for given in ({}, {"refine": 1}, {"mechanism": "wrapped-gaussian"}, {"unit": "household"}):
        budget = dpm.ApproxDP(1.0, 1e-6)
        model = PrivateFrechetMean(SPHERE, budget, random_state=4, **given).fit(records, group_by=people)
        assert model.release_ == dpm.private_mean(records, SPHERE, budget, group_by=people, rng=4, **given)
        assert np.array_equal(model.mean_, model.release_.value)
        assert model.release_.n == 100


def test_the_median_is_private_median():
    records = SPHERE.clip(dpm.Sphere(2).random_point(300, rng=0))
    people = np.repeat(np.arange(100), 3)
    for steps in (None, 4):
        budget = dpm.GaussianDP(1.0)
        model = PrivateFrechetMedian(SPHERE, budget, steps=steps, random_state=4).fit(records, group_by=people)
        assert model.release_ == dpm.private_median(records, SPHERE, budget, steps=steps, group_by=people, rng=4)
        assert np.array_equal(model.median_, model.release_.value)
        assert model.release_.n == 100


@every_space
def test_the_tangent_map_keeps_distances_to_the_reference_and_can_be_undone(ball):
    records = ball.clip(ball.manifold.random_point(200, rng=0))
    model = PrivateTangentSpace(ball, dpm.PureDP(2.0), random_state=0).fit(records)
    features = model.transform(records)
    assert features.shape == (200, ball.manifold.dim)
    assert features.dtype == np.float64
    distances = ball.manifold.dist(model.reference_, records)
    assert np.allclose(np.linalg.norm(features, axis=1), distances, atol=1e-9)
    # shapes come back up to a rotation
    assert np.max(ball.manifold.dist(model.inverse_transform(features), records)) < 1e-7


def test_inverse_transform_takes_tables_of_the_right_width_only():
    model = PrivateTangentSpace(SPHERE, dpm.PureDP(2.0)).fit(SPHERE.clip(dpm.Sphere(2).random_point(50, rng=0)))
    for wrong in (np.zeros(2), np.zeros((4, 3))):
        with pytest.raises(dpm.ArgumentError, match=r"table of shape \(n, 2\)"):
            model.inverse_transform(wrong)


def test_single_precision_and_landmarks_are_taken():
    shapes = CASES["shapes"]
    points = shapes.clip(shapes.manifold.random_point(80, rng=1))
    landmarks = np.stack([points.real, points.imag], axis=-1)
    model = PrivateTangentSpace(shapes, dpm.PureDP(5.0), random_state=0).fit(landmarks)
    assert np.allclose(model.transform(landmarks), model.transform(points))
    single = SPHERE.clip(dpm.Sphere(2).random_point(80, rng=1)).astype(np.float32)
    assert PrivateTangentSpace(SPHERE, dpm.PureDP(1.0)).fit(single).transform(single).dtype == np.float64


@pytest.mark.parametrize("kind", [PrivateFrechetMean, PrivateTangentSpace])
def test_a_public_sample_is_that_of_private_mean_and_survives_a_clone(kind):
    scales = np.array([2.0, 0.5, 0.1, 0.1])
    points = np.random.default_rng(0).normal(size=(400, 4)) * scales
    ball = dpm.Ball(dpm.Euclidean(4), np.zeros(4), radius=10.0)
    model = clone(kind(ball, dpm.GaussianDP(1.0), public_sample=points[:80], random_state=0))
    assert np.array_equal(model.get_params()["public_sample"], points[:80])
    model.fit(points[80:])
    wanted = dpm.private_mean(points[80:], ball, dpm.GaussianDP(1.0), public_sample=points[:80], rng=0)
    assert np.array_equal(model.mean_, wanted.value)
    assert model.release_.public is not None
    with pytest.raises(dpm.ArgumentError, match="public_sample"):
        kind(ball, dpm.GaussianDP(1.0), public_sample=points[:80], refine=1).fit(points[80:])


def test_a_tangent_space_with_a_public_sample_stands_in_a_pipeline():
    space = dpm.SPD(2)
    points, ball = space.random_point(200, rng=0), dpm.Ball(space, np.eye(2), radius=3.0)
    first = PrivateTangentSpace(ball, dpm.GaussianDP(1.0), public_sample=space.random_point(40, rng=1), random_state=0)
    second = PrivateLogisticRegression(
        dpm.Ball(dpm.Euclidean(3), np.zeros(3), 2.0), dpm.GaussianDP(1.0), classes=[0, 1], random_state=0
    )
    chain = make_pipeline(first, second).fit(points, np.arange(200) % 2)
    assert chain.predict(points).shape == (200,)
