"""Kernel features: integers of one record alone, in a body that is checked exactly."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.domains import WholeSpace
from dpmanifolds.sums.features import kernel_of, part_fits
from dpmanifolds.sums.total import integers_of

EXPONENT = 18


def ball(manifold: dpm.Manifold, radius: float) -> dpm.Ball:
    center = manifold.natural_center
    return dpm.Ball(manifold, manifold.random_point(rng=3) if center is None else center, radius)


BALLS = [
    ball(dpm.Euclidean(3), 2.0),
    ball(dpm.SPD(2), 2.0),
    ball(dpm.SPD(3, "log-euclidean"), 2.0),
    ball(dpm.SPD(2, "log-cholesky"), 2.0),
    ball(dpm.Sphere(2), 1.0),
    ball(dpm.Hyperbolic(2), 1.5),
    ball(dpm.PlanarShapes(5), 0.6),
    ball(dpm.Grassmann(4, 2), 0.6),
    ball(dpm.SpecialOrthogonal(3), 1.2),
    ball(dpm.Product(dpm.Sphere(2), dpm.SPD(2)), 0.8),
    dpm.Ellipsoid(dpm.Sphere(2), [0.0, 0.0, 1.0], axes=[0.8, 0.2]),
]
EMBEDDED = [dpm.Sphere(2), dpm.PlanarShapes(5), dpm.Grassmann(4, 2), dpm.SpecialOrthogonal(3)]
CASES = [(domain, kernel) for domain in BALLS for kernel in ("directions", "gaussian", "linear")]
CASES += [(WholeSpace(each, each.random_point(rng=3)), "exponential") for each in EMBEDDED]
CASES += [(domain, "exponential") for domain in BALLS[4:9:2]]


def lengths(whole: np.ndarray, kernel: str) -> bool:
    """The body, in Python's integers."""
    for column in whole.T.tolist():
        square = max(z * z for z in column) if kernel == "directions" else sum(z * z for z in column)
        signed = kernel in ("directions", "linear")
        if (2 * square > 4**EXPONENT) if signed else (square > 4**EXPONENT or min(column) < 0):
            return False
    return True


def name(case: object) -> str:
    return repr(case)[:40]


@pytest.mark.parametrize(("domain", "kernel"), CASES, ids=name)
def test_integers_of_a_record_lie_in_the_body_and_depend_on_that_record_alone(domain, kernel):
    manifold = domain.manifold
    rule = kernel_of(domain, kernel).contribution(EXPONENT)
    points = manifold.random_point(9, rng=1)
    whole, broken = integers_of(rule, points, 9)
    assert not broken.any()
    assert whole.shape == (rule.dim, 9)
    assert lengths(whole, kernel)
    if isinstance(points, tuple):
        other, alone = (tuple(part[order] for part in points) for order in (np.roll(np.arange(9), 4), [2]))
    else:
        other, alone = points[np.roll(np.arange(9), 4)], points[[2]]
    np.testing.assert_array_equal(np.roll(integers_of(rule, other, 9)[0], -4, axis=1), whole)
    np.testing.assert_array_equal(integers_of(rule, alone, 9)[0][:, 0], whole[:, 2])


@pytest.mark.parametrize("kernel", ["directions", "gaussian", "linear"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, 1e-320, 0.0])
def test_hard_records_stay_in_the_body_and_move_no_other(kernel, bad):
    domain = dpm.Ball(dpm.Euclidean(3), np.zeros(3), radius=2.0)
    rule = kernel_of(domain, kernel).contribution(EXPONENT)
    points = np.random.default_rng(0).normal(size=(7, 3))
    whole, _ = integers_of(rule, points, 7)
    points[3] = bad
    hard, broken = integers_of(rule, points, 7)
    assert lengths(hard, kernel)
    assert bool(broken[3]) == (not np.isfinite(bad))
    assert np.isfinite(bad) or not hard[:, 3].any()
    np.testing.assert_array_equal(np.delete(hard, 3, axis=1), np.delete(whole, 3, axis=1))


def test_a_column_outside_of_its_body_does_not_fit():
    edge = 1 << EXPONENT
    assert part_fits(np.array([[edge], [0]]), EXPONENT, signed=False).all()
    assert not part_fits(np.array([[edge], [1]]), EXPONENT, signed=False).any()
    assert not part_fits(np.array([[-1], [0]]), EXPONENT, signed=False).any()
    assert not part_fits(np.array([[edge // 2 + edge // 4], [0]]), EXPONENT, signed=True).any()


def test_any_two_vectors_of_the_body_are_at_most_root_two_apart():
    rng = np.random.default_rng(1)
    vectors = np.abs(rng.normal(size=(200, 4))) ** 3
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.concatenate([vectors, np.eye(4), np.zeros((1, 4))])
    gaps = np.linalg.norm(vectors[:, None] - vectors, axis=-1)
    assert np.max(gaps) <= np.sqrt(2) * (1 + 1e-12)


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_features_stand_for_the_gaussian_kernel(dim):
    domain = dpm.Ball(dpm.Euclidean(dim), np.zeros(dim), radius=1.0)
    points = np.random.default_rng(2).normal(size=(40, dim)) / np.sqrt(dim) / 2
    whole, _ = integers_of(kernel_of(domain, "gaussian", 0.8, pairs=6000).contribution(EXPONENT), points)
    gram = (whole.T @ whole) / 4.0**EXPONENT
    chart = points / np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True))
    expected = np.exp(-np.sum((chart[:, None] - chart) ** 2, axis=-1) / (2 * 0.8**2))
    np.testing.assert_allclose(gram, expected, atol=0.05)


def test_directions_are_cut_projections_each_of_its_own():
    """Against the formula: axes first; a = c·u/h cut to [−1, 1], and 1 − 2|a| for the first half."""
    domain = dpm.Ball(dpm.Euclidean(3), np.zeros(3), radius=2.0)
    points = np.array([[0.1, -0.3, 0.0], [5.0, 0.0, 0.0]])
    kernel = kernel_of(domain, "directions", 0.5, pairs=8)
    whole, _ = integers_of(kernel.contribution(EXPONENT), points)
    found = np.sqrt(2) * whole.T / 2.0**EXPONENT
    chart = np.array([[0.1, -0.3, 0.0], [2.0, 0.0, 0.0]])
    np.testing.assert_allclose(found[:, :3], np.clip(chart / 0.5, -1, 1), atol=1e-4)
    np.testing.assert_allclose(found[:, 16:], 1 - 2 * np.abs(found[:, :8]), atol=1e-4)
    assert found.shape == (2, 24)
    assert kernel.sizes == (1,) * 24
    directions = kernel.parts[0]
    np.testing.assert_allclose(np.linalg.norm(directions, axis=0) * 0.5 / 2.0, 1.0)


def test_features_on_a_whole_sphere_stand_for_the_exponential_kernel():
    points = dpm.Sphere(2).random_point(40, rng=4)
    whole, _ = integers_of(
        kernel_of(WholeSpace(dpm.Sphere(2), points[0]), bandwidth=1.0, pairs=6000).contribution(EXPONENT), points
    )
    np.testing.assert_allclose(whole.T @ whole / 4.0**EXPONENT, np.exp(points @ points.T - 1), atol=0.06)


def test_kernels_without_proof_are_refused():
    domain = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=1.0)
    for wrong in ("geodesic", "laplace", 3, None, lambda x, y: 1.0):
        with pytest.raises(dpm.ArgumentError, match="kernel must be one of auto, directions"):
            kernel_of(domain, wrong)
    with pytest.raises(dpm.NotAvailableError, match="no embedding"):
        kernel_of(dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0), "exponential")
    with pytest.raises(dpm.NotAvailableError, match="bounded domain"):
        kernel_of(WholeSpace(dpm.Sphere(2), [0.0, 0.0, 1.0]), "gaussian")


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, "wide", [], [0.1] * 9, [0.1, -0.1]])
def test_wrong_bandwidths_are_refused(wrong):
    with pytest.raises(dpm.ArgumentError, match="bandwidth"):
        kernel_of(dpm.Ball(dpm.Euclidean(1), [0.0], radius=1.0), "gaussian", wrong)
    with pytest.raises(dpm.ArgumentError, match="bandwidth"):
        kernel_of(dpm.Ball(dpm.Euclidean(1), [0.0], radius=1.0), "linear", 1.0)
