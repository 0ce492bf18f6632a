"""The compiled sum of clipped gradients on JAX: that of NumPy, every record bounded, none looking at another."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import SPD, Ball, GaussianDP
from dpmanifolds.optimize import FrechetMeanLoss, private_descent
from dpmanifolds.optimize.loss import clipped_total

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
def test_the_compiled_sum_is_that_of_numpy(k, clip):
    ball, points = records(k)
    loss, w = FrechetMeanLoss(ball), W[:k, :k]
    expected = clipped_total(loss, w, points, clip)
    found = clipped_total(loss, w, jax.numpy.asarray(points), clip)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_no_record_adds_more_than_the_clip_even_where_the_kernel_gives_up():
    ball, points = records(3, 50)
    hard = np.diag([1e-14, 1.0, 1e14]) + 1e-7 * np.ones((3, 3))
    for one in (*points, hard, -np.eye(3)):
        row = FrechetMeanLoss(ball).clipped_sum(W, jax.numpy.asarray(one[None]), 0.7)
        assert np.linalg.norm(np.asarray(row)) <= 0.7 * (1 + 1e-12)


def test_a_hard_record_changes_no_other_row():
    ball, points = records(3, 200)
    loss = FrechetMeanLoss(ball)
    hard = -np.eye(3)[None]
    alone = np.asarray(loss.clipped_sum(W, jax.numpy.asarray(hard), 3.0))
    without, together = (
        np.asarray(loss.clipped_sum(W, jax.numpy.asarray(part), 3.0))
        for part in (points, np.concatenate([points, hard]))
    )
    np.testing.assert_allclose(together - without, alone, atol=1e-11)


def test_a_run_on_jax_is_the_run_on_numpy():
    ball, points = records(3)
    given = {"start": np.eye(3), "steps": 5, "budget": GaussianDP(5.0), "step_size": 0.3, "rng": 0}
    host = private_descent(FrechetMeanLoss(ball), points, SPD(3), **given)
    device = private_descent(FrechetMeanLoss(ball), jax.numpy.asarray(points), SPD(3), **given)
    np.testing.assert_allclose(np.asarray(device.point), host.point, rtol=1e-6)
    assert isinstance(device.point, jax.Array)
