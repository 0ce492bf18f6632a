"""Logarithms of nearly diagonal matrices: the stated error is never exceeded."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpmanifolds.manifolds.spd import log_near_diagonal


def nearly_diagonal(k: int, count: int, size: float, spread: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    roots = np.exp(rng.uniform(-spread / 4, spread / 4, (count, k)))
    noise = rng.standard_normal((count, k, k))
    noise = (noise + noise.swapaxes(1, 2)) * (1 - np.eye(k))
    noise *= size / np.sqrt((noise**2).sum(axis=(1, 2)))[:, None, None]
    return roots[:, :, None] * (np.eye(k) + noise) * roots[:, None, :]


def exact_log(matrix: np.ndarray) -> np.ndarray:
    with mpmath.workdps(40):
        values, vectors = mpmath.eigsy(mpmath.matrix(matrix.tolist()))
        logs = mpmath.diag([mpmath.log(value) for value in values])
        result = vectors * logs * vectors.T
        return np.array(result.tolist(), dtype=float)


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("size", [1e-8, 1e-5, 1e-3, 9e-3])
@pytest.mark.parametrize("spread", [0.0, 1e-7, 1.0, 8.0])
def test_the_error_stays_below_its_bound(size, spread):
    matrices = nearly_diagonal(5, 6, size, spread, seed=3)
    found = log_near_diagonal(matrices)
    assert found is not None
    logs, remainder, condition = found
    for matrix, log, bound, ratio in zip(matrices, logs, remainder, condition, strict=True):
        assert np.linalg.norm(log - exact_log(matrix)) <= bound + 2e-14 * ratio
        values = np.linalg.eigvalsh(matrix)
        assert values[-1] / values[0] <= ratio


def test_matrices_that_are_not_nearly_diagonal_are_declined():
    assert log_near_diagonal(nearly_diagonal(4, 3, 0.02, 1.0, seed=0)) is None
    assert log_near_diagonal(-np.stack([np.eye(3)] * 2)) is None
