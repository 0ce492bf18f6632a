"""Ordinary noise at a base point, carried by exp."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import SPD, Euclidean, Grassmann, Hyperbolic, Power, Product, SpecialOrthogonal, Sphere, Stiefel
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.intrinsic import RiemannianGaussian, WrappedGaussian, WrappedLaplace
from tests.intrinsic.checks import FALSE_ALARM, check_direction, check_distance_law

pytestmark = pytest.mark.grid

WRAPPED = pytest.mark.parametrize("wrapped", [WrappedLaplace, WrappedGaussian])
HADAMARD = [Euclidean(2), Hyperbolic(3), Hyperbolic(2, -4.0), SPD(3), SPD(2, "log-cholesky")]
OTHERS = [
    Sphere(2),
    Stiefel(5, 2),
    Grassmann(5, 2),
    SpecialOrthogonal(3),
    Product(Sphere(2), SPD(2), Euclidean(3)),
    Power(Sphere(2), 3),
]


@WRAPPED
@pytest.mark.parametrize("manifold", [*HADAMARD, *OTHERS], ids=repr)
def test_draws_are_points_of_every_manifold(wrapped, manifold):
    law = wrapped(manifold, manifold.random_point(rng=1), 0.1)
    points = law.sample((50, 2), rng=2)
    assert np.all(manifold.belongs(points))
    assert law.sample_coordinates((50, 2), rng=2).shape == (50, 2, manifold.dim)


@WRAPPED
@pytest.mark.parametrize("manifold", HADAMARD, ids=repr)
def test_on_hadamard_manifolds_the_distance_is_the_norm_of_the_coordinates(wrapped, manifold):
    law = wrapped(manifold, manifold.random_point(rng=1), 0.2)
    distance = manifold.dist(law.footpoint, law.sample(20_000, rng=2))
    assert stats.kstest(distance, law.tangent_law.distance_cdf).pvalue > FALSE_ALARM
    assert stats.kstest(1.3 * distance, law.tangent_law.distance_cdf).pvalue < FALSE_ALARM
    assert stats.kstest(0.7 * distance, law.tangent_law.distance_cdf).pvalue < FALSE_ALARM
    assert law.tangent_law.distance_moment(1) == pytest.approx(float(np.mean(distance)), rel=0.02)


@WRAPPED
def test_coordinates_follow_their_law(wrapped):
    check_distance_law(lambda sigma: wrapped(Stiefel(5, 2), np.eye(5, 2), sigma).tangent_law, 0.2)
    check_direction(wrapped(Stiefel(5, 2), np.eye(5, 2), 0.2).tangent_law)


@WRAPPED
def test_density_integrates_to_one_on_the_hyperbolic_plane(wrapped):
    plane = Hyperbolic(2)
    law = wrapped(plane, plane.origin, 0.3)
    radius = (np.arange(20_000) + 0.5) * 15 / 20_000
    points = np.stack([np.cosh(radius), np.sinh(radius), np.zeros_like(radius)], axis=-1)
    mass = np.sum(np.exp(law.log_density(points)) * 2 * math.pi * np.sinh(radius)) * 15 / 20_000
    assert mass == pytest.approx(1, abs=1e-5)


def test_density_of_a_wrapped_gaussian_differs_from_the_riemannian_one_by_the_jacobian():
    plane = Hyperbolic(3)
    points = plane.random_point(10, rng=0)
    wrapped = WrappedGaussian(plane, plane.origin, 0.5).log_density(points)
    riemannian = RiemannianGaussian(plane, plane.origin, 0.5).log_density(points)
    distance = plane.dist(plane.origin, points)
    difference = riemannian - wrapped - 2 * np.log(np.sinh(distance) / distance)
    assert np.allclose(difference, difference[0])


@WRAPPED
def test_flat_wrapped_law_is_the_riemannian_one(wrapped):
    law = wrapped(SPD(2, "log-euclidean"), np.diag([1.0, 1e-8]), 0.3)
    points = law.sample(20, rng=0)
    norm = np.linalg.norm(law.sample_coordinates(20, rng=0), axis=-1)
    kernel = -norm / 0.3 if wrapped is WrappedLaplace else -(norm**2) / (2 * 0.3**2)
    assert np.allclose(law.log_density(points), kernel - law.tangent_law.log_normalizer, atol=1e-6)


@WRAPPED
@pytest.mark.parametrize("manifold", OTHERS[:4], ids=repr)
def test_density_is_refused_where_exp_wraps_around(wrapped, manifold):
    with pytest.raises(NotAvailableError, match="not injective"):
        wrapped(manifold, manifold.random_point(rng=0), 0.1).log_density(manifold.random_point(rng=1))


@WRAPPED
@pytest.mark.parametrize("sigma", [1e-12, 1.0, 1e6])
def test_every_scale_works_on_compact_manifolds(wrapped, sigma):
    law = wrapped(Sphere(3), Sphere(3).random_point(rng=0), sigma)
    assert np.all(Sphere(3).belongs(law.sample(100, rng=1)))
    unit = wrapped(Sphere(3), law.footpoint, 1.0).tangent_law
    assert law.tangent_law.distance_quantile(0.5) == pytest.approx(sigma * unit.distance_quantile(0.5))
    assert repr(law).startswith(wrapped.__name__)
