"""Laws on flat spaces, where everything has a closed form."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmanifolds import SPD, ArgumentError, Euclidean, Hyperbolic, Power, Product, Sphere
from dpmanifolds.intrinsic import (
    FlatGaussian,
    FlatLaplace,
    RiemannianGaussian,
    RiemannianLaplace,
    gaussian_law,
    laplace_law,
)
from tests.intrinsic.checks import (
    FALSE_ALARM,
    check_direction,
    check_distance_law,
    check_equivariance,
    distance_p_value,
)

METRICS = ("log-euclidean", "log-cholesky")
FLAT = [Euclidean(1), Euclidean(2), Euclidean(7), *(SPD(k, metric) for k in (2, 3, 5, 10, 20) for metric in METRICS)]
LAWS = pytest.mark.parametrize("make", [laplace_law, gaussian_law], ids=["laplace", "gaussian"])
RIEMANNIAN = pytest.mark.parametrize("riemannian", [RiemannianLaplace, RiemannianGaussian])


@pytest.mark.grid
@LAWS
@pytest.mark.parametrize("manifold", FLAT, ids=repr)
def test_distance_follows_its_law_and_wrong_scales_are_seen(make, manifold):
    check_distance_law(lambda sigma: make(manifold, sigma), 0.3)


@LAWS
@pytest.mark.parametrize("manifold", [Euclidean(1), Euclidean(2), SPD(3, "log-euclidean")], ids=repr)
def test_direction_is_uniform(make, manifold):
    check_direction(make(manifold, 2.0))


def test_laplace_radius_is_gamma_and_gaussian_coordinates_are_normal():
    rng = np.random.default_rng(0)
    radius = np.linalg.norm(laplace_law(Euclidean(4), 0.5).sample_coordinates(20_000, rng), axis=1)
    assert stats.kstest(radius, stats.gamma(4, scale=0.5).cdf).pvalue > FALSE_ALARM
    drawn = gaussian_law(Euclidean(4), 0.5).sample_coordinates(20_000, rng)
    for column in drawn.T:
        assert stats.kstest(column, stats.norm(scale=0.5).cdf).pvalue > FALSE_ALARM


@pytest.mark.grid(at_most=3)
@RIEMANNIAN
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [2, 5])
def test_distance_of_points_on_spd_follows_the_law(riemannian, metric, k):
    space = SPD(k, metric)
    law = riemannian(space, space.random_point(rng=7), 0.2)
    distance = space.dist(law.footpoint, law.sample(20_000, rng=8))
    assert distance_p_value(distance, law.tangent_law) > FALSE_ALARM
    assert distance_p_value(distance / 1.3, law.tangent_law) < FALSE_ALARM
    assert distance_p_value(distance / 0.7, law.tangent_law) < FALSE_ALARM


@RIEMANNIAN
def test_log_euclidean_law_moves_with_rotations(riemannian):
    space = SPD(3, "log-euclidean")
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    law = riemannian(space, space.random_point(rng=1), 0.2)
    check_equivariance(law, lambda p: turn @ p @ turn.T)


@RIEMANNIAN
def test_log_cholesky_law_moves_with_translations_of_the_chart(riemannian):
    space = SPD(3, "log-cholesky")
    shift = np.random.default_rng(0).standard_normal(6)
    law = riemannian(space, space.random_point(rng=1), 0.2)
    check_equivariance(law, lambda p: space.inverse_chart(space.chart(p) + shift))


@pytest.mark.parametrize("d", [1, 2, 6, 55, 210])
@pytest.mark.parametrize("sigma", [1e-12, 0.3, 1e6])
def test_normalizer_moments_and_quantiles_match_high_precision(d, sigma):
    space = Euclidean(d)
    with mpmath.workdps(40):
        scale = mpmath.mpf(sigma)
        area = 2 * mpmath.pi ** (mpmath.mpf(d) / 2) / mpmath.gamma(mpmath.mpf(d) / 2)
        laplace = mpmath.log(area * mpmath.gamma(d) * scale**d)
        gaussian = mpmath.mpf(d) / 2 * mpmath.log(2 * mpmath.pi * scale**2)
        mean = mpmath.sqrt(2) * scale * mpmath.gamma(mpmath.mpf(d + 1) / 2) / mpmath.gamma(mpmath.mpf(d) / 2)
        third = scale**3 * d * (d + 1) * (d + 2)
        below = mpmath.gammainc(d, 0, d, regularized=True)
    assert abs(FlatLaplace(space, sigma).log_normalizer - laplace) < 1e-11
    assert abs(FlatGaussian(space, sigma).log_normalizer - gaussian) < 1e-11
    assert abs(FlatGaussian(space, sigma).distance_moment(1) / mean - 1) < 1e-12
    assert abs(FlatLaplace(space, sigma).distance_moment(3) / third - 1) < 1e-12
    assert FlatLaplace(space, sigma).distance_cdf(d * sigma) == pytest.approx(float(below), rel=1e-12)
    for law in (FlatLaplace(space, sigma), FlatGaussian(space, sigma)):
        assert law.distance_cdf(law.distance_quantile([0.01, 0.5, 0.99])) == pytest.approx([0.01, 0.5, 0.99], rel=1e-10)
        assert law.distance_quantile(0.0) == 0
        assert law.distance_quantile(1.0) == math.inf


@RIEMANNIAN
@pytest.mark.parametrize("metric", METRICS)
def test_a_badly_conditioned_footpoint_keeps_its_law(riemannian, metric):
    space = SPD(3, metric)
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    footpoint = turn @ np.diag([1.0, 1e-4, 1e-8]) @ turn.T
    law = riemannian(space, (footpoint + footpoint.T) / 2, 0.01)
    coordinates, points = law.sample_coordinates(500, rng=1), law.sample(500, rng=1)
    expected = np.linalg.norm(coordinates, axis=1)
    # the smallest eigenvalue of the footpoint itself is known to 1e-8 only
    assert np.max(np.abs(space.dist(law.footpoint, points) - expected)) < 1e-6


@pytest.mark.parametrize(
    "manifold",
    [
        Product(Euclidean(2), SPD(2, "log-euclidean")),
        Power(SPD(2, "log-cholesky"), 3),
        Product(Hyperbolic(1), Product(Euclidean(1), Euclidean(2))),
    ],
    ids=repr,
)
def test_flat_products_have_the_flat_laws(manifold):
    check_distance_law(lambda sigma: laplace_law(manifold, sigma), 0.5)
    assert laplace_law(manifold, 0.5).log_normalizer == laplace_law(Euclidean(manifold.dim), 0.5).log_normalizer
    assert gaussian_law(manifold, 0.5).distance_moment(2) == pytest.approx(manifold.dim * 0.25)


def test_a_product_with_a_circle_is_not_taken_for_flat():
    with pytest.raises(ArgumentError, match="WrappedLaplace"):
        laplace_law(Product(Sphere(1), Euclidean(2)), 0.5)
