"""The geometry on real covariances, tensors and landmarks; skipped where ../shared/data is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import logm

from dpmanifolds.manifolds import SPD, Correlation, PlanarShapes

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PYRIEMANN_NAMES = {"affine-invariant": "riemann", "log-euclidean": "logeuclid", "log-cholesky": "logchol"}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not on this machine")


@pytest.fixture(params=["connectomes_fnc28", "eeg_erp_cov32", "dti_dipy_small_101D", "dti_dipy_small_64D"])
def matrices(request: pytest.FixtureRequest) -> np.ndarray:
    """Symmetric matrices with a mean eigenvalue of about 1 (the EEG comes in V², some 1e−26)."""
    raw = np.load(DATA / "spd" / f"{request.param}.npz")["x"][:100]
    scale = np.median(np.trace(raw, axis1=-2, axis2=-1)) / raw.shape[-1]
    return (raw + np.swapaxes(raw, -1, -2)) / (2 * scale)


@pytest.fixture(params=["drosophila_cactophilic_wings", "schizophrenia_mr_landmarks"])
def landmarks(request: pytest.FixtureRequest) -> np.ndarray:
    return np.load(DATA / "shapes" / f"{request.param}.npz")["x"]


@pytest.mark.parametrize("metric", PYRIEMANN_NAMES)
def test_distances_of_real_covariances_agree_with_pyriemann(matrices, metric):
    distance = pytest.importorskip("pyriemann.geometry.distance").distance
    space = SPD(matrices.shape[-1], metric)
    assert np.all(space.belongs(matrices))
    a, b = matrices[:-1], matrices[1:]
    assert np.allclose(space.dist(a, b), distance(a, b, metric=PYRIEMANN_NAMES[metric]), rtol=1e-9, atol=0)


@pytest.mark.parametrize("metric", PYRIEMANN_NAMES)
def test_exp_of_log_returns_real_covariances(matrices, metric):
    space = SPD(matrices.shape[-1], metric)
    a, b = matrices[:-1], matrices[1:]
    v = space.log(a, b)
    assert np.allclose(space.norm(a, v), space.dist(a, b), rtol=1e-9, atol=0)
    assert np.max(space.dist(space.exp(a, v), b)) < 1e-9


@pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean"])
def test_eeg_distances_do_not_depend_on_the_unit(metric):
    volts = np.load(DATA / "spd" / "eeg_erp_cov32.npz")["x"][:40]
    space = SPD(32, metric)
    microvolts = volts * 1e12
    assert np.all(space.belongs(volts))
    assert np.all(space.belongs(microvolts))
    a, b = slice(None, -1), slice(1, None)
    assert np.allclose(space.dist(volts[a], volts[b]), space.dist(microvolts[a], microvolts[b]), rtol=1e-9, atol=0)


def test_shape_distances_of_real_landmarks_are_the_naive_arc_cosine(landmarks):
    space = PlanarShapes(landmarks.shape[-2])
    shapes = space.from_landmarks(landmarks)
    assert np.all(space.belongs(shapes, 1e-13))
    a, b = shapes[:-1], shapes[1:]
    naive = np.arccos(np.minimum(np.abs(np.sum(np.conj(a) * b, axis=-1)), 1.0))
    assert np.max(np.abs(space.dist(a, b) - naive)) < 1e-7


def test_exp_of_log_returns_real_shapes(landmarks):
    space = PlanarShapes(landmarks.shape[-2])
    shapes = space.from_landmarks(landmarks)
    a, b = shapes[:-1], shapes[1:]
    assert np.max(space.dist(space.exp(a, space.log(a, b)), b)) < 1e-13


def test_moving_turning_and_scaling_real_landmarks_changes_nothing(landmarks):
    space = PlanarShapes(landmarks.shape[-2])
    size = np.std(landmarks)
    cosine, sine = np.cos(2.0), np.sin(2.0)
    moved = 3.0 * landmarks @ np.array([[cosine, -sine], [sine, cosine]]) + [10 * size, -4 * size]
    assert np.max(space.dist(space.from_landmarks(landmarks), space.from_landmarks(moved))) < 1e-12


def test_three_dimensional_brain_landmarks_are_refused():
    brains = np.load(DATA / "shapes" / "brains_3d.npz")["x"]
    with pytest.raises(ValueError, match="three dimensions"):
        PlanarShapes(brains.shape[-2]).from_landmarks(brains)


def test_connectomes_are_correlations_and_return_from_their_coordinates():
    matrices = np.load(DATA / "spd" / "connectomes_fnc28.npz")["x"]
    space = Correlation(28)
    correlations = space.project(matrices)
    assert np.max(np.abs(correlations - matrices)) < 1e-6
    assert np.all(space.belongs(correlations))
    coordinates = space.chart(correlations)
    assert np.max(np.abs(space.inverse_chart(coordinates) - correlations)) < 1e-10
    logs = np.stack([logm(each) for each in correlations[:10]])
    gaps = (logs[1:] - logs[:-1]) * (1 - np.eye(28))
    assert np.allclose(space.dist(correlations[:9], correlations[1:10]), np.linalg.norm(gaps, axis=(1, 2)), rtol=1e-9)
