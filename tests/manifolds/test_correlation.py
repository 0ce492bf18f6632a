"""Correlation matrices: the off-log metric against other formulas, its inverse at the bad spots, and what uses it."""

from __future__ import annotations

import json
from itertools import permutations

import mpmath as mp
import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.manifolds import manifold_from_json, manifold_from_name
from tests.command_line import type_line

BUDGET = dpm.ApproxDP(1.0, 1e-6)


def exact_log(matrix: np.ndarray):
    """log C with 50 digits, by its eigenvalues."""
    values, vectors = mp.eigsy(mp.matrix(matrix.tolist()))
    return vectors * mp.diag([mp.log(value) for value in values]) * vectors.T


def exact_exp(matrix):
    values, vectors = mp.eigsy(matrix)
    return vectors * mp.diag([mp.exp(value) for value in values]) * vectors.T


@pytest.mark.parametrize("k", [2, 3, 5])
def test_distance_is_that_of_logarithms_off_their_diagonal_in_50_digits(k):
    space = dpm.Correlation(k)
    a, b = space.random_point(2, rng=k)
    with mp.workdps(50):
        gap = exact_log(a) - exact_log(b)
        expected = mp.sqrt(mp.fsum(gap[i, j] ** 2 for i in range(k) for j in range(k) if i != j))
        assert float(space.dist(a, b)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("k", "size"), [(3, 1.0), (4, 3.0), (5, 0.1)])
def test_the_matrix_of_coordinates_is_that_of_the_plain_fixed_point_in_50_digits(k, size):
    space = dpm.Correlation(k)
    coordinates = size * np.random.default_rng(k).standard_normal(space.dim) / np.sqrt(k)
    with mp.workdps(50):
        matrix = mp.zeros(k)
        above = [(i, j) for i in range(k) for j in range(i + 1, k)]
        for (i, j), value in zip(above, coordinates.tolist(), strict=True):
            matrix[i, j] = matrix[j, i] = mp.mpf(value) / mp.sqrt(2)
        for _ in range(2000):
            surplus = [mp.log(each) for each in np.diag(exact_exp(matrix).tolist())]
            for i in range(k):
                matrix[i, i] -= surplus[i]
            if max(map(abs, surplus)) < mp.mpf(10) ** -25:
                break
        expected = np.array(exact_exp(matrix).tolist(), dtype=float)
    assert np.allclose(space.inverse_chart(coordinates), expected, rtol=0, atol=1e-13)


def test_for_two_variables_it_is_fishers_z():
    space = dpm.Correlation(2)
    correlations = np.array([-0.999999, -0.3, 0.0, 1e-12, 0.5, 0.99999999])
    matrices = np.eye(2) + correlations[:, None, None] * (1 - np.eye(2))
    assert np.allclose(space.chart(matrices)[:, 0], np.sqrt(2) * np.arctanh(correlations), rtol=1e-7, atol=1e-25)
    assert np.allclose(space.inverse_chart(space.chart(matrices)), matrices, rtol=0, atol=1e-15)


def test_it_treats_all_variables_alike():
    space = dpm.Correlation(4)
    a, b = space.random_point(2, rng=0)
    for order in permutations(range(4)):
        there = np.ix_(order, order)
        assert float(space.dist(a[there], b[there])) == pytest.approx(float(space.dist(a, b)), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 10, 28])
def test_the_inverse_holds_as_far_as_double_precision_has_matrices(k):
    space = dpm.Correlation(k)
    rng = np.random.default_rng(k)
    for size in (1e-9, 1.0, 5.0, 9.0):
        coordinates = size * rng.standard_normal((40, space.dim)) / np.sqrt(k)
        points = space.inverse_chart(coordinates)
        assert np.all(np.diagonal(points, axis1=1, axis2=2) == 1.0)
        smallest = np.linalg.eigvalsh(points)[:, 0]
        usable = smallest > 1e-13
        assert size > 5 or usable.all()
        back = space.chart(points[usable])
        assert np.max(np.abs(back - coordinates[usable]) * smallest[usable, None], initial=0.0) < 1e-13 * k
    # beyond, there is still a matrix of ones and correlations
    far = space.inverse_chart(60.0 * rng.standard_normal((5, space.dim)))
    assert np.all(np.abs(far) <= 1 + 1e-12)
    assert np.all(np.diagonal(far, axis1=1, axis2=2) == 1.0)


def test_each_matrix_of_coordinates_depends_on_its_own_alone():
    space = dpm.Correlation(5)
    coordinates = np.random.default_rng(0).standard_normal((30, space.dim)) * np.geomspace(1e-3, 20.0, 30)[:, None]
    together = space.inverse_chart(coordinates)
    alone = np.stack([space.inverse_chart(row) for row in coordinates])
    assert np.array_equal(together, alone)


def test_coordinates_that_are_not_finite_are_no_point():
    found = dpm.Correlation(3).inverse_chart(np.array([[0.1, np.nan, 0.0], [0.1, 0.2, 0.0]]))
    assert np.isnan(found[0]).any()
    assert np.isfinite(found[1]).all()


def test_a_covariance_is_put_on_it_by_its_scales():
    rng = np.random.default_rng(1)
    samples = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 4))
    space = dpm.Correlation(4)
    for put in (space.place, space.project):
        assert np.allclose(put(np.cov(samples, rowvar=False)), np.corrcoef(samples, rowvar=False), atol=1e-14)
    assert bool(space.belongs(space.project(rng.standard_normal((4, 4)))))


def spoil(matrix: np.ndarray, rule: str) -> np.ndarray:
    spoilt = matrix.copy()
    if rule == "finite":
        spoilt[0, 1] = np.nan
    elif rule == "symmetric":
        spoilt[0, 1] += 0.1
    elif rule == "diagonal":
        spoilt[1, 1] = 1.01
    else:
        spoilt = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    return spoilt


@pytest.mark.parametrize("rule", ["finite", "symmetric", "diagonal", "positive"])
def test_malformed_records_are_told_by_their_rule(rule):
    space = dpm.Correlation(3)
    ball = dpm.Ball(space, np.eye(3), 1.0)
    records = space.random_point(50, rng=0)
    records[7] = spoil(records[7], rule)
    assert not bool(space.belongs(records[7]))
    with pytest.raises(dpm.NotOnManifoldError, match=rule):
        dpm.private_mean(records, ball, BUDGET)
    assert bool(space.belongs(dpm.private_mean(records, ball, BUDGET, on_invalid="center").value))


@pytest.mark.parametrize("k", [1, 0, 2.5, "three"])
def test_two_variables_are_the_least(k):
    with pytest.raises(dpm.ArgumentError, match="k"):
        dpm.Correlation(k)


def test_a_release_says_what_it_is_and_returns_from_json():
    space = dpm.Correlation(3)
    ball = dpm.Ball(space, space.natural_center, 1.5)
    release = dpm.private_mean(ball.clip(space.random_point(500, rng=0)), ball, BUDGET, rng=1)
    assert bool(ball.contains(release.value))
    assert dpm.Release.from_json(release.to_json()).manifold == space
    assert "Correlation(3)" in str(dpm.plan(ball, 500, BUDGET))
    assert space.words == "correlation matrices of 3 variables (off-log metric)"
    for other in (space, dpm.Power(space, 2), dpm.Product(space, dpm.Sphere(2))):
        assert manifold_from_json(json.loads(json.dumps(other.to_json()))) == other


def test_the_mean_is_the_mean_of_coordinates():
    space = dpm.Correlation(4)
    records = space.random_point(200, rng=2)
    result = dpm.frechet_mean(space, records)
    assert np.allclose(space.chart(result.point), space.chart(records).mean(axis=0), atol=1e-12)
    assert result.error_bound < 1e-9


def test_the_command_line_knows_it(tmp_path):
    assert manifold_from_name("correlation:4") == dpm.Correlation(4)
    np.save(tmp_path / "matrices.npy", dpm.Correlation(4).random_point(300, rng=0))
    place = ["--manifold", "correlation:4", "--center", "identity", "--radius", "2", "--epsilon", "1"]
    line = ["mean", str(tmp_path / "matrices.npy"), *place, "--yes", "--out", str(tmp_path / "out")]
    released = type_line(line)
    assert released.exit_code == 0, released.output
    assert "correlation matrices of 4 variables" in released.output
