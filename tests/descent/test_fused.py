"""Sums of clipped gradients of JAX arrays: those of NumPy, every record bounded, none looking at another."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import SPD, Ball, GaussianDP
from dpmanifolds.descent.losses import FrechetMeanLoss
from dpmanifolds.releases import private_descent
from tests.descent.totals import total_of

jax = pytest.importorskip("jax")

W = np.array([[1.2, 0.2, 0.0], [0.2, 1.0, 0.1], [0.0, 0.1, 0.8]])


@pytest.fixture(autouse=True)
def doubles():
    with jax.experimental.enable_x64() if hasattr(jax.experimental, "enable_x64") else jax.enable_x64(True):
        yield


def records(k, n=1500):
    ball = Ball(SPD(k), np.eye(k), 3.0)
    return ball, ball.clip(SPD(k).random_point(n, rng=k))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("clip", [3.0, 0.7])
def test_the_sum_is_that_of_numpy(k, clip):
    """On a processor to the last integer: arrays of every library are read as NumPy's."""
    ball, points = records(k)
    loss, w = FrechetMeanLoss(ball), W[:k, :k]
    assert np.array_equal(total_of(loss, w, points, clip), total_of(loss, w, jax.numpy.asarray(points), clip))


def test_no_record_adds_more_than_the_clip_and_none_changes_another():
    ball, points = records(3, 50)
    hard = np.diag([1e-14, 1.0, 1e14]) + 1e-7 * np.ones((3, 3))
    loss = FrechetMeanLoss(ball)
    for one in (points[0], hard, -np.eye(3)):
        row = total_of(loss, W, jax.numpy.asarray(one[None]), 0.7)
        assert np.linalg.norm(row) <= 0.7
        together = total_of(loss, W, jax.numpy.asarray(np.concatenate([points, one[None]])), 0.7)
        assert np.allclose(together - total_of(loss, W, points, 0.7), row, rtol=0, atol=1e-12)


def test_a_run_on_jax_is_the_run_on_numpy():
    ball, points = records(3)
    given = {"start": np.eye(3), "steps": 5, "budget": GaussianDP(5.0), "step_size": 0.3, "rng": 0}
    host = private_descent(FrechetMeanLoss(ball), points, SPD(3), **given)
    device = private_descent(FrechetMeanLoss(ball), jax.numpy.asarray(points), SPD(3), **given)
    np.testing.assert_allclose(np.asarray(device.value), host.value, rtol=1e-6)
    assert isinstance(device.value, jax.Array)
