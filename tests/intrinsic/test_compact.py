"""Laws on rotations and subspaces.

n = 20,000 draws and a false-alarm rate of 1e−6 per p-value unless said otherwise; all seeds are fixed.
"""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from dpmanifolds import ArgumentError, Grassmann, SpecialOrthogonal, Sphere
from dpmanifolds._arrays import log_sinc
from dpmanifolds.errors import NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.intrinsic import RiemannianGaussian, RiemannianLaplace, gaussian_law, laplace_law
from dpmanifolds.intrinsic.compact import RootSystemLaw, compact_laplace
from dpmanifolds.intrinsic.law import log_sphere_area
from tests.intrinsic.checks import COUNT, FALSE_ALARM, check_direction, check_equivariance
from tests.intrinsic.grid_checks import check_distance_law

RANK_ONE = [SpecialOrthogonal(2), SpecialOrthogonal(3), Grassmann(2, 1), Grassmann(5, 1), Grassmann(5, 4)]
RANK_TWO = [SpecialOrthogonal(4), SpecialOrthogonal(5), Grassmann(4, 2), Grassmann(5, 2), Grassmann(7, 5)]
HIGHER = [SpecialOrthogonal(6), SpecialOrthogonal(7), Grassmann(6, 3), Grassmann(9, 3)]
LAWS = pytest.mark.parametrize("make", [laplace_law, gaussian_law], ids=["laplace", "gaussian"])


def log_volume(manifold) -> float:
    """SO(n) is a tower of unit spheres; Gr(n, p) = O(n)/(O(p)×O(n−p)), all in the same normalisation."""

    def log_rotations(n: int) -> float:
        return sum(log_sphere_area(k) for k in range(2, n + 1))

    if isinstance(manifold, SpecialOrthogonal):
        return log_rotations(manifold.n)
    rest = log_rotations(manifold.p) + log_rotations(manifold.n - manifold.p)
    return log_rotations(manifold.n) - rest - math.log(2)


def angles_of(law: RootSystemLaw, seed: int = 0, count: int = COUNT) -> np.ndarray:
    return law._angles(law.sample_coordinates(count, np.random.default_rng(seed)))


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("manifold", [*RANK_ONE, *RANK_TWO, *HIGHER], ids=repr)
def test_roots_give_the_jacobian_of_the_manifold_and_its_radial_bound(manifold):
    roots = manifold.root_system
    assert roots.count == manifold.dim - roots.rank
    base = np.eye(*manifold.point_shape)
    coordinates = np.random.default_rng(0).standard_normal((2000, manifold.dim))
    vectors = manifold.from_coordinates(base, coordinates)
    angles = np.linalg.svd(vectors, compute_uv=False)
    step = 2 if isinstance(manifold, SpecialOrthogonal) else 1
    angles = angles[:, : step * roots.rank : step]
    # to all sizes up to the cut locus
    sizes = np.random.default_rng(1).uniform(0, roots.limit, 2000) / angles[:, 0]
    angles, vectors, coordinates = angles * sizes[:, None], vectors * sizes[:, None, None], coordinates * sizes[:, None]
    log_jacobian = roots.log_jacobian(angles)
    assert log_jacobian == pytest.approx(manifold.log_volume_density(base, vectors), rel=1e-9, abs=1e-12)
    if roots.count:
        radius = np.linalg.norm(coordinates, axis=1)
        assert roots.frequency * roots.reach < math.pi
        assert np.all(log_jacobian <= roots.count * log_sinc(roots.frequency * radius) + 1e-12)


def test_only_rotations_and_subspaces_have_roots_here():
    with pytest.raises(ArgumentError, match="neither"):
        compact_laplace(Sphere(2), 0.1)


@pytest.mark.grid(at_most=4)
@LAWS
@pytest.mark.parametrize("manifold", RANK_ONE, ids=repr)
def test_rank_one_distance_and_direction(make, manifold):
    check_distance_law(lambda sigma: make(manifold, sigma), 0.15)
    check_direction(make(manifold, 0.4))


def test_rotations_in_space_match_the_density_of_their_angle():
    """(sin(s/2))²·e^{−s/σ} on (0, π)."""
    law = laplace_law(SpecialOrthogonal(3), 0.7)
    total = integrate.quad(lambda s: math.sin(s / 2) ** 2 * math.exp(-s / 0.7), 0, math.pi)[0]
    first = integrate.quad(lambda s: s * math.sin(s / 2) ** 2 * math.exp(-s / 0.7), 0, math.pi)[0]
    assert law.log_normalizer == pytest.approx(math.log(16 * math.pi * total), rel=1e-12)
    assert law.distance_moment(1) == pytest.approx(first / total, rel=1e-12)


CASES = [
    (laplace_law, SpecialOrthogonal(4), 0.15),
    (gaussian_law, SpecialOrthogonal(5), 0.3),
    (laplace_law, Grassmann(4, 2), 0.1),
    (gaussian_law, Grassmann(7, 5), 0.2),
    (laplace_law, SpecialOrthogonal(5), 1.0),
    (gaussian_law, SpecialOrthogonal(4), 1.5),
    (laplace_law, Grassmann(5, 2), 0.6),
]
ALL_CASES = [
    (make, manifold, share * manifold.injectivity_radius)
    for make in (laplace_law, gaussian_law)
    for manifold in RANK_TWO
    for share in (0.02, 0.1, 0.35)
]


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(
    ("make", "manifold", "sigma"),
    [
        *CASES,
        *(pytest.param(*case, marks=pytest.mark.long) for case in ALL_CASES),
    ],
)
def test_rank_two_distance_follows_its_law_and_wrong_scales_are_seen(make, manifold, sigma):
    """From concentrated to up to the cut locus."""
    check_distance_law(lambda scale: make(manifold, scale), sigma)


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("manifold", [*RANK_ONE, *RANK_TWO], ids=repr)
def test_wide_laws_have_the_volume_as_normalizer(manifold):
    for make in (laplace_law, gaussian_law):
        assert make(manifold, 1e9).log_normalizer == pytest.approx(log_volume(manifold), rel=1e-8, abs=1e-8)


@pytest.mark.grid
@pytest.mark.parametrize("manifold", RANK_TWO, ids=repr)
def test_rank_two_normalizer_matches_uniform_points(manifold):
    """Z = vol·E e^{−ρ/σ} over uniform points, within five errors."""
    base = np.eye(*manifold.point_shape)
    distance = manifold.dist(base, manifold.random_point(COUNT, rng=1))
    for make, kernel in (
        (laplace_law, np.exp(-distance / 0.8)),
        (gaussian_law, np.exp(-(distance**2) / (2 * 0.8**2))),
    ):
        estimate, error = np.mean(kernel), np.std(kernel) / math.sqrt(COUNT)
        exact = math.exp(make(manifold, 0.8).log_normalizer - log_volume(manifold))
        assert abs(exact - estimate) < 5 * error
        assert error < 0.03 * estimate


@pytest.mark.grid(at_most=1)
@LAWS
def test_largest_angle_matches_quadrature_on_so_5(make):
    """Angles a > b: density ∝ sin²((a−b)/2) sin²((a+b)/2) sin²(a/2) sin²(b/2)·e^k."""
    sigma, nodes = 0.8, 1500
    grid = (np.arange(nodes) + 0.5) * math.pi / nodes
    a, b = grid[:, None], grid[None, :]
    radius = np.hypot(a, b)
    kernel = np.exp(-radius / sigma) if make is laplace_law else np.exp(-(radius**2) / (2 * sigma**2))
    weight = (np.sin((a - b) / 2) * np.sin((a + b) / 2) * np.sin(a / 2) * np.sin(b / 2)) ** 2
    mass = np.cumsum(np.sum(np.where(b < a, weight * kernel, 0.0), axis=1))
    edges, cdf = np.append(0.0, grid + math.pi / (2 * nodes)), np.append(0.0, mass / mass[-1])
    largest = angles_of(make(SpecialOrthogonal(5), sigma))[:, 0]
    assert stats.kstest(largest, lambda x: np.interp(x, edges, cdf)).pvalue > FALSE_ALARM
    assert stats.kstest(np.minimum(1.1 * largest, math.pi), lambda x: np.interp(x, edges, cdf)).pvalue < FALSE_ALARM


@pytest.mark.grid(at_most=1)
@LAWS
@pytest.mark.parametrize("manifold", [SpecialOrthogonal(5), SpecialOrthogonal(6), Grassmann(6, 3)], ids=repr)
def test_near_and_uniform_proposals_give_the_same_law(make, manifold):
    """2,000 draws by each."""
    law = make(manifold, 1.6)
    seen = []
    for proposals in (law._near, law._uniform):
        law._proposals = proposals
        seen.append(angles_of(law, count=2000))
    for column in range(seen[0].shape[1]):
        assert stats.ks_2samp(seen[0][:, column], seen[1][:, column]).pvalue > FALSE_ALARM
    assert stats.ks_2samp(*(np.linalg.norm(each, axis=1) for each in seen)).pvalue > FALSE_ALARM


@pytest.mark.grid(at_most=1)
@LAWS
@pytest.mark.parametrize("manifold", HIGHER, ids=repr)
def test_higher_rank_matches_weighted_uniform_points(make, manifold):
    """Means of ρ, ρ² and the largest angle against 8,000 uniform points weighted by e^k, within five errors."""
    sigma = 1.5 if isinstance(manifold, SpecialOrthogonal) else 0.9
    law = make(manifold, sigma)

    def statistics(angles):
        radius = np.linalg.norm(angles, axis=1)
        return np.stack([radius, radius**2, angles[:, 0]])

    drawn = statistics(angles_of(law, count=5000))
    plain = statistics(law._angles(law._uniform(8000, np.random.default_rng(1))[0]))
    weights = np.exp(law._kernel.difference(plain[0], 0.0))
    expected = plain @ weights / np.sum(weights)
    weighted_error = np.sqrt(((plain - expected[:, None]) ** 2) @ weights**2) / np.sum(weights)
    error = np.hypot(weighted_error, np.std(drawn, axis=1) / math.sqrt(drawn.shape[1]))
    assert np.all(np.abs(np.mean(drawn, axis=1) - expected) < 5 * error)
    assert np.all(np.abs(np.mean(drawn, axis=1) - np.mean(plain, axis=1)) > 10 * error)


@pytest.mark.grid
@LAWS
@pytest.mark.parametrize("manifold", [*RANK_TWO, *HIGHER], ids=repr)
def test_draws_lie_inside_the_cut_locus_and_coordinates_are_alike(make, manifold):
    law = make(manifold, 0.8)
    coordinates = law.sample_coordinates(5000, np.random.default_rng(2))
    assert np.max(law._angles(coordinates)) < law._roots.limit
    centred = np.mean(coordinates, axis=0) / np.std(coordinates, axis=0) * math.sqrt(5000)
    assert np.max(np.abs(centred)) < 5.5
    assert stats.ks_2samp(coordinates[:, 0], coordinates[:, -1]).pvalue > FALSE_ALARM


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("kind", [RiemannianLaplace, RiemannianGaussian])
def test_law_moves_with_isometries(kind):
    """Two-sided rotations of SO(4), rotations of subspaces; 4,000 draws."""
    left, right = SpecialOrthogonal(4).random_point(2, rng=3)
    law = kind(SpecialOrthogonal(4), SpecialOrthogonal(4).random_point(rng=4), 0.5)
    check_equivariance(law, lambda r: left @ r @ right, count=4000)
    turn = SpecialOrthogonal(5).random_point(rng=5)
    law = kind(Grassmann(5, 2), Grassmann(5, 2).random_point(rng=6), 0.3)
    check_equivariance(law, lambda basis: turn @ basis, count=4000)


@pytest.mark.long
def test_acceptance_where_it_is_measured():
    """Near the footpoint and for wide laws nearly 1; at least .02 in between for SO(10)."""
    assert laplace_law(SpecialOrthogonal(10), 0.01).acceptance > 0.99
    assert gaussian_law(SpecialOrthogonal(10), 0.3).acceptance > 0.9
    assert laplace_law(SpecialOrthogonal(10), 100.0).acceptance > 0.9
    for sigma in (0.3, 1.0, 2.0):
        assert laplace_law(SpecialOrthogonal(10), sigma).acceptance > 0.02
        law = gaussian_law(Grassmann(10, 5), sigma)
        assert law.acceptance > 0.05
    rate = np.mean(np.exp(-law._proposals(COUNT, np.random.default_rng(7))[1]))
    assert rate == pytest.approx(law.acceptance, rel=0.1)


def test_what_cannot_be_drawn_in_reasonable_time_is_refused():
    with pytest.raises(ScaleOutOfRangeError, match="WrappedLaplace"):
        laplace_law(SpecialOrthogonal(24), 0.5)
    with pytest.raises(ScaleOutOfRangeError, match="WrappedGaussian"):
        gaussian_law(Grassmann(40, 10), 0.5)


def test_rank_three_says_what_it_does_not_compute():
    law = laplace_law(SpecialOrthogonal(6), 0.2)
    for missing in (
        lambda: law.log_normalizer,
        lambda: law.distance_moment(1),
        lambda: law.distance_cdf(1.0),
        lambda: law.distance_quantile(0.5),
    ):
        with pytest.raises(NotAvailableError, match="from draws"):
            missing()


@LAWS
@pytest.mark.parametrize(
    "manifold", [SpecialOrthogonal(2), SpecialOrthogonal(3), SpecialOrthogonal(5), Grassmann(6, 3)], ids=repr
)
def test_extreme_scales(make, manifold):
    rng = np.random.default_rng(8)
    tiny, wide = (make(manifold, sigma).sample_coordinates(500, rng) for sigma in (1e-12, 1e9))
    expected = 1e-12 * (manifold.dim if make is laplace_law else math.sqrt(manifold.dim))
    assert np.mean(np.linalg.norm(tiny, axis=1)) == pytest.approx(expected, rel=0.25)
    assert np.all(np.isfinite(wide))
    assert np.mean(np.linalg.norm(wide, axis=1)) > 0.5


def test_rank_two_quantiles_and_moments():
    law = gaussian_law(Grassmann(5, 2), 0.7)
    radius = np.linalg.norm(law.sample_coordinates(COUNT, np.random.default_rng(9)), axis=1)
    for order in (1, 2):
        assert abs(law.distance_moment(order) - np.mean(radius**order)) < 5 * np.std(radius**order) / math.sqrt(COUNT)
    probability = np.array([0.001, 0.5, 0.999])
    assert law.distance_cdf(law.distance_quantile(probability)) == pytest.approx(probability, rel=1e-8)
    assert law.distance_cdf(math.pi) == 1


def test_laws_survive_pickling_and_empty_requests():
    law = laplace_law(Grassmann(5, 2), 0.3)
    law.distance_cdf(1.0)
    again = pickle.loads(pickle.dumps(law))
    first, second = (each.sample_coordinates(5, np.random.default_rng(1)) for each in (law, again))
    assert np.array_equal(first, second)
    assert law.sample_coordinates(0, np.random.default_rng(0)).shape == (0, 6)
