"""Means and medians of real data by other people, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpmanifolds import SPD, PlanarShapes, Sphere, frechet_mean, frechet_median

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not here")


def arrays(name: str) -> list[np.ndarray]:
    with np.load(DATA / name, allow_pickle=False) as stored:
        return [stored[key] for key in stored.files]


def matrices(name: str) -> np.ndarray:
    records = next(a for a in arrays(name) if a.ndim == 3 and a.shape[1] == a.shape[2]).astype(np.float64)
    records = records / np.mean(np.trace(records, axis1=1, axis2=2)) * records.shape[1]
    return (records + records.swapaxes(1, 2)) / 2


@pytest.mark.grid
@pytest.mark.parametrize(
    "name",
    ["spd/connectomes_fnc28.npz", "spd/eeg_erp_cov32.npz", "spd/dti_dipy_small_101D.npz", "spd/dti_dipy_small_25.npz"],
)
@pytest.mark.parametrize(
    ("metric", "theirs"), [("affine-invariant", "riemann"), ("log-euclidean", "logeuclid"), ("log-cholesky", "logchol")]
)
def test_means_of_real_matrices_agree_with_pyriemann(name, metric, theirs):
    gmean = pytest.importorskip("pyriemann.geometry.mean").gmean
    records = matrices(name)[:300]
    manifold = SPD(records.shape[-1], metric)
    options = {"tol": 1e-11, "maxiter": 300} if theirs == "riemann" else {}
    result = frechet_mean(manifold, records)
    assert float(manifold.dist(result.point, gmean(records, metric=theirs, **options))) < 1e-8
    assert result.passes <= 6
    assert result.error_bound < 1e-5


@pytest.mark.parametrize(
    "name",
    ["shapes/drosophila_cactophilic_wings.npz", "shapes/schizophrenia_mr_landmarks.npz", "shapes/mosquito_wings.npz"],
)
def test_means_of_real_shapes_are_stationary_and_robust(name):
    landmarks = next(a for a in arrays(name) if a.ndim == 3 and a.shape[2] == 2).astype(np.float64)
    manifold = PlanarShapes(landmarks.shape[1])
    records = manifold.from_landmarks(landmarks)
    mean, median = frechet_mean(manifold, records), frechet_median(manifold, records)
    assert mean.passes <= 5
    assert mean.is_global
    logs = manifold.to_coordinates(mean.point, manifold.log(mean.point, records))
    assert np.linalg.norm(logs.mean(axis=0)) < 1e-10
    assert float(manifold.dist(mean.point, median.point)) < 0.1


def test_corrupt_calvaria_shapes_pull_the_mean_but_not_the_median():
    """Four documented corrupt rows among 168 pre-shapes."""
    records = next(a for a in arrays("shapes/calvaria_geodregr.npz") if a.ndim == 2 and np.iscomplexobj(a))
    manifold = PlanarShapes(records.shape[1])
    records = manifold.project(records.astype(np.complex128))
    corrupt = np.array([22, 100, 103, 159])
    clean = np.delete(records, corrupt, axis=0)
    pulled = float(manifold.dist(frechet_mean(manifold, records).point, frechet_mean(manifold, clean).point))
    stayed = float(manifold.dist(frechet_median(manifold, records).point, frechet_median(manifold, clean).point))
    assert stayed < 0.3 * pulled


def test_directions_over_more_than_a_hemisphere_are_flagged():
    normals = next(a for a in arrays("sphere/comet_orbit_normals.npz") if a.ndim == 2 and a.shape[1] == 3)
    sphere = Sphere(2)
    result = frechet_mean(sphere, sphere.project(normals.astype(np.float64)))
    assert not result.is_global
