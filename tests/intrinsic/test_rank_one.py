"""Laws on spheres, hyperbolic spaces and planar shapes."""

from __future__ import annotations

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmanifolds import Euclidean, Hyperbolic, Manifold, PlanarShapes, Sphere
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.intrinsic import (
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
    distances,
)

pytestmark = pytest.mark.grid

SPHERES = [Sphere(1), Sphere(2), Sphere(10), Sphere(50), Sphere(3, curvature=4.0)]
SHAPES = [PlanarShapes(3), PlanarShapes(6), PlanarShapes(50)]
COMPACT = [*SPHERES, *SHAPES]
HYPERBOLIC = [Hyperbolic(2), Hyperbolic(3), Hyperbolic(10), Hyperbolic(3, curvature=-4.0)]
LAWS = pytest.mark.parametrize("make", [laplace_law, gaussian_law], ids=["laplace", "gaussian"])
RIEMANNIAN = pytest.mark.parametrize("riemannian", [RiemannianLaplace, RiemannianGaussian])


def critical_scale(manifold: Hyperbolic) -> float:
    """1/((d−1)√κ): the Laplace law on Hyperbolic(d, −κ) exists for smaller σ only."""
    return manifold.scale_length / (manifold.dim - 1)


def broad_scale(manifold: Manifold, make) -> float:
    """A scale at which the law feels the curvature and still depends on the scale."""
    return manifold.injectivity_radius / (4 * manifold.dim if make is laplace_law else 4 * math.sqrt(manifold.dim))


@pytest.mark.grid
@LAWS
@pytest.mark.parametrize("concentration", [1, 1e-2, 1e-9])
@pytest.mark.parametrize("manifold", COMPACT, ids=repr)
def test_distance_follows_its_law_on_compact_spaces(make, manifold, concentration):
    check_distance_law(lambda sigma: make(manifold, sigma), concentration * broad_scale(manifold, make))


@pytest.mark.grid
@LAWS
@pytest.mark.parametrize("manifold", COMPACT, ids=repr)
def test_distance_follows_its_law_when_nearly_uniform(make, manifold):
    law = make(manifold, 1e6)
    assert distance_p_value(distances(law), law) > FALSE_ALARM


@pytest.mark.grid
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5, 0.75])
@pytest.mark.parametrize("manifold", HYPERBOLIC, ids=repr)
def test_hyperbolic_laplace_distance_follows_its_law(manifold, share):
    check_distance_law(lambda sigma: laplace_law(manifold, sigma), share * critical_scale(manifold))


@pytest.mark.parametrize("share", [0.99, 0.9999, 1 - 1e-9])
@pytest.mark.parametrize("manifold", HYPERBOLIC, ids=repr)
def test_hyperbolic_laplace_distance_follows_its_law_at_the_edge(manifold, share):
    check_distance_law(lambda sigma: laplace_law(manifold, sigma), share * critical_scale(manifold), wrong=(0.7,))


@pytest.mark.grid
@pytest.mark.parametrize("sigma", [1e-9, 0.05, 0.5, 2.0, 100.0])
@pytest.mark.parametrize("manifold", [Hyperbolic(1), *HYPERBOLIC], ids=repr)
def test_hyperbolic_gaussian_distance_follows_its_law(manifold, sigma):
    check_distance_law(lambda scale: gaussian_law(manifold, scale), sigma)


@LAWS
@pytest.mark.parametrize("manifold", [Sphere(2), Sphere(50), PlanarShapes(6), Hyperbolic(3)], ids=repr)
def test_distance_follows_its_law_at_fine_resolution(make, manifold):
    """χ² over 200 cells of equal probability, n = 300,000."""
    law = make(manifold, 0.1)
    cells = law.distance_cdf(law.radius.sampler.sample(300_000, np.random.default_rng(1))) * 200
    counts = np.bincount(np.minimum(cells.astype(int), 199), minlength=200)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@LAWS
@pytest.mark.parametrize("manifold", [Sphere(1), Sphere(2), PlanarShapes(6), Hyperbolic(3)], ids=repr)
def test_direction_is_uniform(make, manifold):
    check_direction(make(manifold, 0.2))


@pytest.mark.grid
@RIEMANNIAN
@pytest.mark.parametrize("manifold", [*COMPACT, *HYPERBOLIC], ids=repr)
def test_points_are_exp_of_the_coordinates(riemannian, manifold):
    law = riemannian(manifold, manifold.random_point(rng=5), 0.02)
    points, coordinates = law.sample((20, 10), rng=6), law.sample_coordinates((20, 10), rng=6)
    back = manifold.to_coordinates(law.footpoint, manifold.log(law.footpoint, points))
    assert np.allclose(back, coordinates, rtol=1e-8, atol=1e-9)
    assert np.allclose(manifold.dist(law.footpoint, points), np.linalg.norm(coordinates, axis=-1), rtol=1e-8)


@RIEMANNIAN
def test_sphere_law_moves_with_rotations(riemannian):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    check_equivariance(riemannian(Sphere(3), Sphere(3).random_point(rng=1), 0.4), lambda x: x @ turn.T)


@RIEMANNIAN
def test_hyperbolic_law_moves_with_boosts(riemannian):
    a = 0.8
    boost = np.array([[math.cosh(a), math.sinh(a), 0.0], [math.sinh(a), math.cosh(a), 0.0], [0.0, 0.0, 1.0]])
    check_equivariance(riemannian(Hyperbolic(2), Hyperbolic(2).random_point(rng=1), 0.4), lambda x: x @ boost.T)


@RIEMANNIAN
def test_shape_law_moves_with_unitary_maps(riemannian):
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(np.column_stack([np.ones(5), rng.standard_normal((5, 4))]))[0][:, 1:]
    inner = np.linalg.qr(rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)))[0]
    move = frame @ inner @ frame.T
    check_equivariance(riemannian(PlanarShapes(5), PlanarShapes(5).random_point(rng=1), 0.2), lambda x: x @ move.T)


@cache
def laurent_terms(manifold: Manifold) -> tuple[tuple[int, float], ...]:
    """The area element as a sum of coefficient·e^{j·unit·s}: binomials of sin, sinh, and sin·cos for shapes."""
    imaginary = not isinstance(manifold, Hyperbolic)
    power = manifold.dim - 1
    terms: dict[int, mpmath.mpf] = {}
    for j in range(power + 1):
        terms[power - 2 * j] = mpmath.binomial(power, j) * (-1) ** j / (2j if imaginary else 2) ** power
    if isinstance(manifold, PlanarShapes):
        shifted: dict[int, mpmath.mpf] = {}
        for j, value in terms.items():
            for step in (1, -1):
                shifted[j + step] = shifted.get(j + step, 0) + value / 2
        terms = shifted
    return tuple(terms.items())


def reference_integral(manifold: Manifold, sigma: float, gaussian: bool, radius: float | None = None):
    """∫₀^radius kernel·area element, term by term in closed form (high precision absorbs the cancellation)."""
    scale, total = mpmath.mpf(sigma), mpmath.mpf(0)
    if isinstance(manifold, PlanarShapes):
        unit, root = mpmath.mpc(0, 1), mpmath.mpf(1)
    else:
        root = mpmath.sqrt(abs(mpmath.mpf(manifold.curvature)))
        unit = root if isinstance(manifold, Hyperbolic) else mpmath.mpc(0, root)
    if radius is None:
        end = {Sphere: mpmath.pi / root, PlanarShapes: mpmath.pi / 2}.get(type(manifold), mpmath.inf)
    else:
        end = mpmath.mpf(radius)
    for j, coefficient in laurent_terms(manifold):
        beta = j * unit
        if gaussian:
            shift = beta * scale / mpmath.sqrt(2)
            upper = mpmath.mpf(1) if end == mpmath.inf else mpmath.erf(end / scale / mpmath.sqrt(2) - shift)
            value = scale * mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(shift**2) * (upper + mpmath.erf(shift))
        else:
            rate = beta - 1 / scale
            value = ((0 if end == mpmath.inf else mpmath.exp(rate * end)) - 1) / rate
        total += coefficient * value
    return mpmath.re(total) / root ** (manifold.dim - 1)


def scales_of(manifold: Manifold, make) -> list[float]:
    if isinstance(manifold, Hyperbolic) and make is laplace_law:
        return [share * critical_scale(manifold) for share in (0.02, 0.5, 0.9, 0.999, 1 - 1e-6, 1 - 1e-12)]
    return [0.02, 0.1, 0.7, 3.0, *([1e6] if not isinstance(manifold, Hyperbolic) else [])]


MATCHED = [
    *(Sphere(1), Sphere(2), Sphere(10, 0.5), Sphere(50)),
    *(PlanarShapes(3), PlanarShapes(6), PlanarShapes(20)),
    *HYPERBOLIC,
    Hyperbolic(40),
]
PAIRS = [(make, manifold) for make in (laplace_law, gaussian_law) for manifold in MATCHED]


@pytest.mark.grid
@pytest.mark.parametrize(("make", "manifold"), [*PAIRS, (laplace_law, PlanarShapes(50))])
@mpmath.workdps(150)
def test_normalizer_and_cdf_match_high_precision(make, manifold):
    gaussian = make is gaussian_law
    half = mpmath.mpf(manifold.dim) / 2
    area = 2 * mpmath.pi**half / mpmath.gamma(half)
    for sigma in scales_of(manifold, make):
        law = make(manifold, sigma)
        whole = reference_integral(manifold, sigma, gaussian)
        assert abs(law.log_normalizer - mpmath.log(area * whole)) < 1e-11
        below = reference_integral(manifold, sigma, gaussian, law.distance_quantile(0.3))
        assert abs(below / whole - 0.3) < 1e-11


@pytest.mark.grid
@pytest.mark.parametrize("d", [2, 3, 10, 100, 500])
@pytest.mark.parametrize("share", [1e-6, 0.1, 0.9, 0.999, 1 - 1e-6, 1 - 1e-9])
def test_hyperbolic_laplace_matches_the_beta_function(d, share):
    """∫₀^∞ e^{−s/σ} sinh^{m} s ds = 2^{−m−1} B(rate/2, m+1), and E ρ = (ψ(rate/2 + m + 1) − ψ(rate/2))/2."""
    sigma = share / (d - 1)
    law = laplace_law(Hyperbolic(d), sigma)
    with mpmath.workdps(50):
        half_rate = (1 / mpmath.mpf(sigma) - (d - 1)) / 2
        half = mpmath.mpf(d) / 2
        area = 2 * mpmath.pi**half / mpmath.gamma(half)
        normalizer = mpmath.log(area * mpmath.beta(half_rate, d) / mpmath.mpf(2) ** d)
        mean = (mpmath.digamma(half_rate + d) - mpmath.digamma(half_rate)) / 2
    assert abs(law.log_normalizer - normalizer) < 1e-11
    assert abs(law.distance_moment(1) / mean - 1) < 1e-11


@pytest.mark.grid(at_most=1)
@mpmath.workdps(30)
@pytest.mark.parametrize(
    ("manifold", "sigma", "weight"),
    [
        (Sphere(2), 0.3, mpmath.sin),
        (Sphere(10), 0.05, lambda s: mpmath.sin(s) ** 9),
        (PlanarShapes(6), 0.1, lambda s: mpmath.sin(s) ** 7 * mpmath.cos(s)),
    ],
)
def test_moments_match_high_precision_quadrature(manifold, sigma, weight):
    scale = mpmath.mpf(sigma)
    pieces = [mpmath.mpf(manifold.injectivity_radius) * j / 32 for j in range(33)]
    kernels = {
        laplace_law: lambda s: mpmath.exp(-s / scale),
        gaussian_law: lambda s: mpmath.exp(-((s / scale) ** 2) / 2),
    }
    for make, kernel in kernels.items():
        total, first, second = (
            mpmath.quad(lambda s, k=k, kernel=kernel: s**k * kernel(s) * weight(s), pieces) for k in range(3)
        )
        law = make(manifold, sigma)
        assert abs(law.distance_moment(1) / (first / total) - 1) < 1e-11
        assert abs(law.distance_moment(2) / (second / total) - 1) < 1e-11


@pytest.mark.parametrize("d", [1, 2, 10, 50, 300])
def test_concentrated_laws_are_flat(d):
    """At σ = 1e−12 curvature changes the normaliser by less than 1e−20."""
    for curved in (Sphere(d), Hyperbolic(d)):
        for make in (laplace_law, gaussian_law):
            law, flat = make(curved, 1e-12), make(Euclidean(d), 1e-12)
            assert abs(law.log_normalizer - flat.log_normalizer) < 1e-11
            assert law.distance_quantile(0.9) == pytest.approx(flat.distance_quantile(0.9), rel=1e-11)


def test_volumes_are_those_of_the_spaces():
    """At σ = 1e12 the normaliser is the volume."""
    for manifold, volume in [
        (Sphere(1), 2 * math.pi),
        (Sphere(2, 0.25), 16 * math.pi),
        (PlanarShapes(3), math.pi),
        (PlanarShapes(6), math.pi**4 / 24),
    ]:
        for make in (laplace_law, gaussian_law):
            assert make(manifold, 1e12).log_normalizer == pytest.approx(math.log(volume), abs=1e-11)


@pytest.mark.grid
@LAWS
@pytest.mark.parametrize("manifold", [Sphere(1), Sphere(2), Sphere(400), PlanarShapes(3), PlanarShapes(200)], ids=repr)
@pytest.mark.parametrize("sigma", [1e-12, 1e-6, 1.0, 1e3, 1e6])
def test_acceptance_is_at_least_095_at_every_scale_of_compact_spaces(make, manifold, sigma):
    law = make(manifold, sigma)
    assert law.radius.sampler.acceptance >= 0.95
    drawn = law.sample_coordinates(100, np.random.default_rng(0))
    assert np.all(np.linalg.norm(drawn, axis=1) <= manifold.injectivity_radius * (1 + 1e-15))


@pytest.mark.parametrize("d", [2, 10, 400])
def test_acceptance_is_at_least_095_at_every_scale_of_hyperbolic_space(d):
    limit = critical_scale(Hyperbolic(d))
    laws = [laplace_law(Hyperbolic(d), s) for s in (1e-12, limit / 2, 0.999 * limit, math.nextafter(limit, 0))]
    laws += [gaussian_law(Hyperbolic(d), s) for s in (1e-12, 0.1, 1.0, 30.0, 1e6)]
    for law in laws:
        assert law.radius.sampler.acceptance >= 0.95
        assert np.all(np.isfinite(law.sample_coordinates(100, np.random.default_rng(0))))
        assert math.isfinite(law.log_normalizer)


@pytest.mark.parametrize("manifold", HYPERBOLIC, ids=repr)
def test_laplace_refuses_the_critical_scale_and_names_it(manifold):
    limit = critical_scale(manifold)
    for sigma in (limit * (1 + 1e-15), 2 * limit):
        with pytest.raises(ScaleOutOfRangeError, match=f"{limit:g}.*WrappedLaplace"):
            RiemannianLaplace(manifold, manifold.origin, sigma)
    assert laplace_law(manifold, limit * (1 - 1e-12)).log_normalizer < math.inf


def test_the_critical_scale_itself_is_refused():
    """On H³ of curvature −1 the limit ½ is a float: equality is refused, the next float below is not."""
    with pytest.raises(ScaleOutOfRangeError):
        laplace_law(Hyperbolic(3), 0.5)
    assert laplace_law(Hyperbolic(3), math.nextafter(0.5, 0)).distance_moment(1) > 1e14


def test_hyperbolic_points_too_far_out_are_refused_without_nan():
    space = Hyperbolic(3)
    for law in (RiemannianGaussian(space, space.origin, 40.0), RiemannianLaplace(space, space.origin, 0.4999999)):
        with pytest.raises(ScaleOutOfRangeError, match="sample_coordinates"):
            law.sample(100, rng=0)
        assert np.all(np.isfinite(law.sample_coordinates(100, rng=0)))


def test_hyperbolic_gaussian_refuses_what_float64_cannot_resolve():
    with pytest.raises(ScaleOutOfRangeError, match="WrappedGaussian"):
        gaussian_law(Hyperbolic(2), 1e10)


def test_circle_gaussian_is_the_truncated_normal():
    law = gaussian_law(Sphere(1), 1.3)
    share = math.erf(1.0 / 1.3 / math.sqrt(2)) / math.erf(math.pi / 1.3 / math.sqrt(2))
    assert law.distance_cdf(1.0) == pytest.approx(share, rel=1e-13)
    assert law.distance_quantile(1.0) == math.pi
    assert law.distance_cdf([0.0, 4.0]) == pytest.approx([0.0, 1.0])
