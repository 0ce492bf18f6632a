"""The Fréchet median: right, robust, and safe where it meets a record."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ArgumentError,
    Euclidean,
    Hyperbolic,
    NotOnManifoldError,
    Power,
    Product,
    Sphere,
    frechet_median,
)
from tests.manifolds.cases import SMOOTH
from tests.statistics.test_mean import cloud, usual_radius


def subgradient(manifold, point, records) -> float:
    """Length of the smallest subgradient of the mean distance."""
    logs = manifold.to_coordinates(point, manifold.log(point, records))
    lengths = np.linalg.norm(logs, axis=-1)
    away = lengths > 1e-9
    pull = (logs[away] / lengths[away, None]).sum(axis=0) / len(logs)
    return max(0.0, float(np.linalg.norm(pull)) - float(np.mean(~away)))


@pytest.mark.grid(at_most=7)
@pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
def test_the_subgradient_vanishes_at_the_median(manifold, backend):
    records = cloud(manifold, 41, usual_radius(manifold))
    result = frechet_median(manifold, backend.array(records))
    assert result.converged
    assert subgradient(manifold, backend.numpy(result.point), records) <= 2e-10
    assert result.passes < 60


def test_on_the_line_it_is_the_middle_record():
    values = np.array([[3.0], [-1.0], [7.0], [100.0], [2.0]])
    result = frechet_median(Euclidean(1), values)
    assert result.point[0] == 3.0
    assert result.error_bound == 0.0


def test_a_heavy_record_is_the_median_itself():
    for manifold in (Euclidean(3), SPD(3), Hyperbolic(2), Sphere(2)):
        records = cloud(manifold, 9, 0.6, seed=2)
        weights = np.ones(9)
        weights[4] = 20.0
        result = frechet_median(manifold, records, sample_weight=weights)
        assert np.array_equal(result.point, records[4])
        assert result.gradient_norm == 0.0


def test_identical_records_are_their_own_median():
    record = SPD(3).random_point(rng=1)
    result = frechet_median(SPD(3), np.stack([record] * 5))
    assert float(SPD(3).dist(result.point, record)) < 1e-12


def test_a_minority_of_outliers_cannot_carry_it_away():
    manifold = SPD(3)
    records = cloud(manifold, 40, 0.5)
    clean = frechet_median(manifold, records).point
    spoiled = records.copy()
    spoiled[:15] = np.exp(8.0) * np.eye(3)
    assert float(manifold.dist(frechet_median(manifold, spoiled).point, clean)) < 2.0


@pytest.mark.parametrize("manifold", [Euclidean(3), SPD(2), SPD(4), Hyperbolic(3), SPD(3, "log-euclidean")], ids=repr)
def test_the_error_bound_covers_the_true_error(manifold):
    records = cloud(manifold, 30, 1.0, seed=6)
    exact = frechet_median(manifold, records, tolerance=1e-13)
    for tolerance in (1e-8, 1e-7):
        loose = frechet_median(manifold, records, tolerance=tolerance)
        assert float(manifold.dist(loose.point, exact.point)) <= loose.error_bound < 1e-5


def test_a_product_has_its_own_median_not_the_medians_of_its_factors():
    space = Product(Euclidean(2), Hyperbolic(2))
    records = cloud(space, 21, 1.0)
    joint = frechet_median(space, records)
    assert subgradient(space, joint.point, records) < 1e-9
    power = Power(SPD(2), 2)
    assert subgradient(power, frechet_median(power, cloud(power, 21, 1.0)).point, cloud(power, 21, 1.0)) < 1e-9


def test_weights_act_like_repeated_records():
    records = cloud(SPD(2), 7, 1.0)
    counts = np.array([1, 2, 1, 3, 1, 1, 2])
    weighted = frechet_median(SPD(2), records, sample_weight=counts).point
    repeated = frechet_median(SPD(2), np.repeat(records, counts, axis=0)).point
    assert float(SPD(2).dist(weighted, repeated)) < 1e-8


def test_bad_input_is_refused():
    with pytest.raises(NotOnManifoldError):
        frechet_median(SPD(2), np.full((3, 2, 2), np.nan))
    with pytest.raises(ArgumentError, match="empty"):
        frechet_median(Sphere(2), np.zeros((0, 3)))
    with pytest.raises(ArgumentError, match="tolerance"):
        frechet_median(Euclidean(1), np.ones((2, 1)), tolerance=-1.0)
