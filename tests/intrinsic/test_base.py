"""What holds for laws on every manifold: arguments, shapes, array libraries, products."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ArgumentError,
    Euclidean,
    Hyperbolic,
    NotOnManifoldError,
    PlanarShapes,
    Power,
    Product,
    Sphere,
    Stiefel,
)
from dpmanifolds.errors import ConvergenceError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.intrinsic import (
    RiemannianGaussian,
    RiemannianLaplace,
    WrappedGaussian,
    WrappedLaplace,
    gaussian_law,
    laplace_law,
)
from dpmanifolds.privacy.radial import LogConcaveIntegral
from tests.intrinsic.checks import FALSE_ALARM, distance_p_value

pytestmark = pytest.mark.grid

NORTH = np.array([0.0, 0.0, 1.0])
EVERY_LAW = pytest.mark.parametrize("law", [RiemannianLaplace, RiemannianGaussian, WrappedLaplace, WrappedGaussian])
MANIFOLDS = [
    Euclidean(3),
    Sphere(2),
    Hyperbolic(3),
    PlanarShapes(5),
    SPD(3, "log-euclidean"),
    SPD(3, "log-cholesky"),
    Power(SPD(2, "log-euclidean"), 3),
    Product(Euclidean(2), SPD(2, "log-cholesky")),
]


def leaves(value):
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


@EVERY_LAW
@pytest.mark.parametrize("sigma", [0, -1.0, math.nan, math.inf, -math.inf, "a", None, 1j])
def test_bad_scales_are_refused(law, sigma):
    with pytest.raises(ArgumentError, match="sigma"):
        law(Sphere(2), NORTH, sigma)


@EVERY_LAW
@pytest.mark.parametrize("sigma", [1e-200, 1e200])
def test_scales_whose_square_is_no_float_are_refused(law, sigma):
    with pytest.raises(ScaleOutOfRangeError, match="sigma"):
        law(Sphere(2), NORTH, sigma)


@EVERY_LAW
def test_bad_footpoints_are_refused(law):
    with pytest.raises(ArgumentError, match=r"shape \(3,\)"):
        law(Sphere(2), np.ones(4) / 2, 0.1)
    with pytest.raises(ArgumentError, match=r"shape \(3,\)"):
        law(Sphere(2), np.stack([NORTH, NORTH]), 0.1)
    with pytest.raises(ArgumentError, match="array of numbers"):
        law(Sphere(2), ["a", "b", "c"], 0.1)
    with pytest.raises(NotOnManifoldError, match="does not lie"):
        law(Sphere(2), 1.1 * NORTH, 0.1)
    with pytest.raises(NotOnManifoldError, match="finite"):
        law(Sphere(2), np.array([math.nan, 0.0, 1.0]), 0.1)
    with pytest.raises(NotOnManifoldError, match="does not lie"):
        law(SPD(2, "log-euclidean"), np.diag([1.0, -1.0]), 0.1)
    with pytest.raises(ArgumentError, match="tuple of 2 arrays"):
        law(Product(Euclidean(1), Euclidean(2)), np.zeros(3), 0.1)


@EVERY_LAW
def test_bad_sizes_and_generators_are_refused(law):
    made = law(Sphere(2), NORTH, 0.1)
    for size in (-1, 1.5, (2, -3)):
        with pytest.raises(ArgumentError, match="size"):
            made.sample(size, rng=0)
    with pytest.raises(ArgumentError, match="rng"):
        made.sample(rng=np.random.RandomState(0))


@pytest.mark.grid
@EVERY_LAW
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_draws_come_in_the_footpoints_library_and_precision(law, manifold, backend):
    footpoint = manifold.random_point(rng=0)
    made = law(manifold, backend.array(footpoint), 0.05)
    for size, leading in (((), ()), (4, (4,)), ((2, 3), (2, 3)), (0, (0,))):
        points = made.sample(size, rng=1)
        assert [p.shape for p in leaves(points)] == [(*leading, *np.shape(f)) for f in leaves(footpoint)]
        assert all(type(a) is type(b) for a, b in zip(leaves(points), leaves(made.sample(rng=0)), strict=True))
        expected = leaves(law(manifold, footpoint, 0.05).sample(size, rng=1))
        for got, wanted in zip(leaves(points), expected, strict=True):
            assert np.allclose(backend.numpy(got), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("law", [RiemannianLaplace, RiemannianGaussian])
def test_single_precision_stays_single(law):
    point = law(SPD(2, "log-euclidean"), np.eye(2, dtype=np.float32), 0.1).sample(5, rng=0)
    assert point.dtype == np.float32
    shape = law(PlanarShapes(4), PlanarShapes(4).random_point(rng=0).astype(np.complex64), 0.1).sample(5, rng=0)
    assert shape.dtype == np.complex64


@EVERY_LAW
def test_seeds_repeat_draws_and_the_secure_default_does_not(law):
    made = law(Sphere(2), NORTH, 0.1)
    assert np.array_equal(made.sample(3, rng=5), made.sample(3, rng=5))
    assert np.array_equal(made.sample(3, rng=np.random.default_rng(5)), made.sample(3, rng=5))
    assert not np.array_equal(made.sample(3), made.sample(3))


@EVERY_LAW
def test_draws_too_wide_for_the_precision_are_refused(law):
    for space in (SPD(3, "log-euclidean"), SPD(3, "log-cholesky")):
        made = law(space, np.eye(3), 1e6)
        with pytest.raises(ScaleOutOfRangeError, match="sample_coordinates"):
            made.sample(10, rng=0)
        assert np.all(np.isfinite(made.sample_coordinates(10, rng=0)))


def test_log_density_integrates_to_one():
    """Over S², by the area of spherical caps; over the log-Euclidean plane of SPD(1) = R."""
    angle = (np.arange(4000) + 0.5) * math.pi / 4000
    points = np.stack([np.sin(angle), np.zeros_like(angle), np.cos(angle)], axis=-1)
    for law in (RiemannianLaplace, RiemannianGaussian):
        density = np.exp(law(Sphere(2), NORTH, 0.4).log_density(points))
        assert np.sum(density * 2 * math.pi * np.sin(angle)) * math.pi / 4000 == pytest.approx(1, abs=1e-5)
        grid = np.linspace(-8, 8, 8001)
        line = law(SPD(1, "log-euclidean"), np.eye(1), 0.4).log_density(np.exp(grid)[:, None, None])
        assert np.sum(np.exp(line)) * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-5)


def test_product_gaussian_is_the_product_of_gaussians():
    space = Product(Sphere(2), Hyperbolic(3))
    law = RiemannianGaussian(space, space.random_point(rng=0), 0.3)
    parts = [gaussian_law(factor, 0.3) for factor in space.factors]
    assert law.log_normalizer == pytest.approx(sum(part.log_normalizer for part in parts))
    assert law.mean_squared_distance == pytest.approx(sum(part.distance_moment(2) for part in parts))
    points = law.sample(20_000, rng=1)
    for factor, centre, drawn, part in zip(space.factors, law.footpoint, points, parts, strict=True):
        assert distance_p_value(factor.dist(centre, drawn), part) > FALSE_ALARM
    for missing in (lambda: law.mean_distance, lambda: law.distance_cdf(1.0), lambda: law.distance_quantile(0.5)):
        with pytest.raises(NotAvailableError, match="estimate it from draws"):
            missing()


def test_power_gaussian_has_independent_copies():
    space = Power(Sphere(2), 3)
    law = RiemannianGaussian(space, space.random_point(rng=0), 0.5)
    points = law.sample(20_000, rng=1)
    separate = Sphere(2).dist(law.footpoint, points)
    for copy in range(3):
        assert distance_p_value(separate[:, copy], gaussian_law(Sphere(2), 0.5)) > FALSE_ALARM
    assert np.max(np.abs(np.corrcoef(separate.T) - np.eye(3))) < 5 / math.sqrt(20_000)
    assert law.mean_squared_distance == pytest.approx(np.mean(space.dist(law.footpoint, points) ** 2), rel=0.02)


def test_laplace_on_a_curved_product_names_the_alternative():
    for space in (Product(Sphere(2), Euclidean(1)), Power(Hyperbolic(2), 2)):
        with pytest.raises(ArgumentError, match="WrappedLaplace"):
            laplace_law(space, 0.1)


def test_a_product_of_one_has_the_law_of_its_factor():
    for space in (Product(Sphere(2)), Power(Sphere(2), 1)):
        for make in (laplace_law, gaussian_law):
            assert make(space, 0.2).distance_moment(1) == make(Sphere(2), 0.2).distance_moment(1)


def test_unknown_manifolds_name_the_alternative():
    for make, name in ((laplace_law, "WrappedLaplace"), (gaussian_law, "WrappedGaussian")):
        with pytest.raises(ArgumentError, match=name):
            make(Stiefel(4, 2), 0.1)
        with pytest.raises(ArgumentError, match="must be a Manifold"):
            make("sphere", 0.1)


def test_laws_say_what_they_are_and_survive_pickling():
    law = RiemannianLaplace(Sphere(2), NORTH, 0.1)
    assert repr(law) == "RiemannianLaplace(Sphere(2, 1.0), sigma=0.1)"
    law.sample(rng=0)
    again = pickle.loads(pickle.dumps(law))
    assert np.array_equal(again.sample(4, rng=3), law.sample(4, rng=3))


def test_bad_probabilities_and_orders_are_refused():
    for law in (laplace_law(Sphere(2), 0.1), gaussian_law(Euclidean(2), 0.1)):
        for probability in (-0.1, 1.1, math.nan):
            with pytest.raises(ArgumentError, match="between 0 and 1"):
                law.distance_quantile(probability)
        for order in (-1, math.nan, math.inf):
            with pytest.raises(ArgumentError, match="order"):
                law.distance_moment(order)


def test_an_improper_density_is_refused_by_the_quadrature():
    with pytest.raises(ConvergenceError, match="fall off"):
        LogConcaveIntegral(lambda x: 0 * x, mode=0.0, scale=1.0, lower=0.0, upper=math.inf)
