"""The K-norm gradient law of the mean against numerical integration and a Markov chain.

n = 20,000 draws and a false-alarm rate of 1e−6 per p-value unless said otherwise; all seeds are fixed.
"""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import (
    SPD,
    ArgumentError,
    Ball,
    Euclidean,
    Grassmann,
    Hyperbolic,
    NotOnManifoldError,
    PlanarShapes,
    Product,
    RadiusTooLargeError,
    SpecialOrthogonal,
    Sphere,
)
from dpmanifolds.intrinsic.knorm_gradient import KNormGradientLaw, acceptance_bound
from dpmanifolds.intrinsic.proposals import ball_proposal, collect
from tests.intrinsic.checks import COUNT, FALSE_ALARM

NORTH = np.array([0.0, 0.0, 1.0])


def records_in_ball(manifold, center, radius, count, seed=0):
    """Off centre: the mean lies well away from the centre of the ball."""
    rng = np.random.default_rng(seed)
    coordinates = rng.standard_normal((count, manifold.dim))
    coordinates /= np.linalg.norm(coordinates, axis=1, keepdims=True)
    coordinates *= radius * rng.uniform(0.2, 1.0, (count, 1))
    coordinates[:, 0] += 0.3 * radius
    coordinates *= np.minimum(1.0, 0.99 * radius / np.linalg.norm(coordinates, axis=1, keepdims=True))
    return manifold.exp(center, manifold.from_coordinates(center, coordinates))


def make_law(manifold, center, radius, sigma, count=10, estimate=None, seed=0):
    records = records_in_ball(manifold, center, radius, count, seed)
    return KNormGradientLaw(manifold, records, center, radius, sigma, center if estimate is None else estimate)


CASES = {
    "circle": (Sphere(1), np.array([0.0, 1.0]), 1.2),
    "sphere": (Sphere(2), NORTH, math.pi / 8),
    "wide sphere": (Sphere(2), NORTH, 1.4),
    "small sphere": (Sphere(3, curvature=4.0), 0.5 * np.eye(4)[0], 0.4),
    "hyperbolic": (Hyperbolic(3), Hyperbolic(3).origin, 2.0),
    "shapes": (PlanarShapes(5), PlanarShapes(5).random_point(rng=0), 0.35),
    "flat": (Euclidean(3), np.zeros(3), 1.0),
    "log-euclidean": (SPD(2, "log-euclidean"), np.eye(2), 1.0),
    "positive numbers": (SPD(1), np.eye(1), 1.0),
    "spd 2": (SPD(2), np.eye(2), 1.5),
    "spd 4": (SPD(4), np.eye(4), 1.0),
    "rotations": (SpecialOrthogonal(3), np.eye(3), 1.0),
    "rotations 4": (SpecialOrthogonal(4), np.eye(4), 0.7),
    "subspaces": (Grassmann(5, 2), np.eye(5, 2), 0.5),
}


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sigma", [0.05, 1.0])
def test_the_envelope_holds_and_draws_lie_in_the_ball(name, sigma):
    """‖∇F(x)‖ ≥ G(ρ(x̂,x)) − ‖∇F(x̂)‖ for uniform points of the ball, and for an estimate that is far off."""
    manifold, center, radius = CASES[name]
    law = make_law(manifold, center, radius, sigma)
    drawn = law.sample(200, rng=1)
    assert np.all(law.ball.contains(drawn))
    assert np.all(np.isfinite(law.log_density_unnormalized(drawn)))
    _, coordinates, _ = ball_proposal(manifold, 0.0, radius).draw(2000, np.random.default_rng(2))
    points = manifold.exp(center, manifold.from_coordinates(center, coordinates))
    gradient = law.gradient_norm(points)
    distance = manifold.dist(law.estimate, points)
    assert np.all(gradient - law._lift.at(distance) + law._gradient_at_estimate >= -1e-9)
    assert np.all(np.diff(law._lift.values) <= np.diff(law._lift.ways))


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("radius", "sigma"), [(0.6, 0.1), (1.4, 0.5), (1.4, 0.02)])
def test_circle_draws_match_the_density_on_a_grid(radius, sigma):
    circle, center = Sphere(1), np.array([0.0, 1.0])
    law = make_law(circle, center, radius, sigma)
    grid = np.linspace(-radius, radius, 4001)
    points = np.stack([np.sin(grid), np.cos(grid)], axis=-1)
    density = np.exp(law.log_density_unnormalized(points * (1 - 1e-16)))
    density[[0, -1]] = density[[1, -2]]
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    drawn = law.sample(COUNT, rng=1)
    angle = np.arctan2(drawn[:, 0], drawn[:, 1])

    def cdf(x):
        return np.interp(x, grid, mass / mass[-1])

    assert stats.kstest(angle, cdf).pvalue > FALSE_ALARM
    for factor in (0.7, 1.3):
        wrong = make_law(circle, center, radius, factor * sigma).sample(COUNT, rng=1)
        assert stats.kstest(np.arctan2(wrong[:, 0], wrong[:, 1]), cdf).pvalue < FALSE_ALARM


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("radius", "sigma"), [(math.pi / 8, 0.05), (math.pi / 8, 0.4), (1.1, 0.15)])
def test_sphere_draws_match_the_density_on_a_grid(radius, sigma):
    """Marginals of the two tangent coordinates at the centre, from a polar grid; scale×0.7 and ×1.3 are seen."""
    sphere = Sphere(2)
    law = make_law(sphere, NORTH, radius, sigma)
    radii = (np.arange(300) + 0.5) * radius / 300
    turns = (np.arange(400) + 0.5) * 2 * math.pi / 400
    polar = np.stack(np.meshgrid(radii, turns, indexing="ij"), axis=-1)
    vectors = polar[..., :1] * np.stack([np.cos(polar[..., 1]), np.sin(polar[..., 1]), 0 * polar[..., 1]], axis=-1)
    weight = np.exp(law.log_density_unnormalized(sphere.exp(NORTH, vectors))) * np.sin(polar[..., 0])

    def p_values(draws):
        seen = sphere.log(NORTH, draws)
        for axis in (0, 1):
            order = np.argsort(vectors[..., axis].ravel())
            positions = vectors[..., axis].ravel()[order]
            mass = np.cumsum(weight.ravel()[order])
            yield stats.kstest(seen[:, axis], lambda x, p=positions, m=mass: np.interp(x, p, m / m[-1])).pvalue

    assert min(p_values(law.sample(COUNT, rng=1))) > FALSE_ALARM
    wrong = [make_law(sphere, NORTH, radius, factor * sigma).sample(COUNT, rng=1) for factor in (0.7, 1.3)]
    for draws in wrong:
        assert min(p_values(draws)) < (FALSE_ALARM if sigma < 0.4 else 1e-2)


@pytest.mark.long
@pytest.mark.parametrize("name", ["sphere", "spd 2", "hyperbolic", "shapes", "subspaces"])
def test_neither_the_estimate_nor_the_kind_of_proposal_changes_the_law(name):
    """5,000 draws from the mean, from a point at the edge, and from uniform proposals: distances to witnesses agree."""
    manifold, center, radius = CASES[name]
    sigma = radius / 3
    good, off, uniform = (make_law(manifold, center, radius, sigma, count=8) for _ in range(3))
    way = manifold.log(center, off._records[0])
    off.estimate = manifold.exp(center, 0.999 * radius / manifold.norm(center, way) * way)
    off._reach = radius + float(manifold.dist(center, off.estimate))
    off._gradient_at_estimate = float(off.gradient_norm(off.estimate[None])[0])
    off._lift = off._lift_bound()
    assert off._gradient_at_estimate > 0.1 * sigma
    good._proposals, off._proposals, uniform._proposals = (
        good._proposals[1:],
        off._make_proposals()[1:],
        uniform._proposals[:1],
    )
    samples = [law.sample(5000, rng=seed) for seed, law in enumerate((good, off, uniform))]
    for witness in (center, good._records[1]):
        seen = [manifold.dist(witness, sample) for sample in samples]
        for other in seen[1:]:
            assert stats.ks_2samp(seen[0], other).pvalue > FALSE_ALARM


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sigma", [0.05, 1.0])
def test_the_public_bound_holds_for_records_at_the_edge(name, sigma):
    """Of 4,000 proposals of either kind at least as many are accepted, less five standard deviations."""
    manifold, center, radius = CASES[name]
    bound = acceptance_bound(Ball(manifold, center, radius), sigma)
    ends = 0.999 * radius * np.concatenate([np.eye(manifold.dim)[:1], -np.eye(manifold.dim)[:1]])
    ends = manifold.exp(center, manifold.from_coordinates(center, ends))
    rng = np.random.default_rng(3)
    for records in (ends[:1], ends, ends[[0] * 5 + [1]]):
        law = KNormGradientLaw(manifold, records, center, radius, sigma, center)
        shares = [float(np.mean(law._propose(kind, 4000, rng)[1])) for kind in law._proposals]
        assert max(shares) >= bound - 5 * math.sqrt(bound / 4000)


def test_draws_from_records_at_the_edge_of_a_ball_in_60_dimensions():
    """All records at one point of the edge, or one of them across: each proposal is accepted in nine cases of ten."""
    space, edge = Euclidean(60), np.eye(60)[0]
    records = np.tile(edge, (20, 1))
    neighbour = np.concatenate([records[1:], -records[:1]])
    for given in (records, neighbour):
        law = KNormGradientLaw(space, given, np.zeros(60), 1.0, 0.18, given.mean(axis=0))
        _, accepted = law._propose(law._proposals[1], 2000, np.random.default_rng(0))
        assert np.mean(accepted) > 0.9


@pytest.mark.long
@pytest.mark.parametrize(("walkers", "steps"), [(1200, 120), pytest.param(10_000, 1000, marks=pytest.mark.long)])
def test_spd_draws_match_a_metropolis_chain(walkers, steps):
    """SPD(2), against independent random walks that are symmetric with respect to the volume.

    Proposals exp_x(v), v isotropic Gaussian at x, are symmetric with respect to the volume, as SPD is homogeneous and
    point reflections exchange the ends: accept with min(1, density ratio).
    """
    manifold, center, radius, sigma = SPD(2), np.eye(2), 1.0, 0.25
    law = make_law(manifold, center, radius, sigma, count=5)
    rng = np.random.default_rng(4)
    state = np.broadcast_to(law.estimate, (walkers, 2, 2)).copy()
    density = law.log_density_unnormalized(state)
    for _ in range(steps):
        proposal = manifold.exp(state, 0.35 * manifold.random_tangent(state, rng=rng))
        proposed = law.log_density_unnormalized(proposal)
        taken = -rng.standard_exponential(walkers) < proposed - density
        state = np.where(taken[:, None, None], proposal, state)
        density = np.where(taken, proposed, density)
    drawn = law.sample(COUNT, rng=5)
    wrong = make_law(manifold, center, radius, 1.5 * sigma, count=5).sample(COUNT, rng=5)
    for witness in (center, law._records[0], law.estimate):
        chain = manifold.dist(witness, state)
        assert stats.ks_2samp(chain, manifold.dist(witness, drawn)).pvalue > FALSE_ALARM
    assert stats.ks_2samp(chain, manifold.dist(witness, wrong)).pvalue < FALSE_ALARM


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", ["flat", "log-euclidean", "positive numbers"])
def test_on_flat_spaces_the_law_is_laplace_around_the_mean(name):
    """‖∇F(x)‖ = ρ(x̄,x): for σ ≪ r the distance to the mean is σ·Gamma(d)."""
    manifold, center, radius = CASES[name]
    law = make_law(manifold, center, radius, 0.01)
    distance = manifold.dist(law.estimate, law.sample(COUNT, rng=1))
    assert stats.kstest(distance, stats.gamma(manifold.dim, scale=0.01).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(distance, stats.gamma(manifold.dim, scale=0.013).cdf).pvalue < FALSE_ALARM


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rate", [0.0, 3.0])
def test_ball_proposals_follow_the_volume(name, rate):
    """P(s ≤ t) ∝ ∫₀^t e^{−rate·s} s^{d−1} E J ds, the mean of J over directions by 2,000 uniform ones."""
    manifold, center, radius = CASES[name]
    proposal = ball_proposal(manifold, rate, radius)

    def propose(size, rng):
        distance, _, excess = proposal.draw(size, rng)
        assert np.all(excess >= -1e-9)
        return distance[:, None], rng.standard_exponential(size) >= excess

    drawn = collect(COUNT, 1, propose, np.random.default_rng(6), batch=1 << 14)[:, 0]
    directions = np.random.default_rng(7).standard_normal((2000, manifold.dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    grid = np.linspace(0, radius, 61)
    mean_jacobian = [
        np.mean(np.exp(manifold.log_volume_density(center, manifold.from_coordinates(center, s * directions))))
        for s in grid
    ]
    fine = np.linspace(0, radius, 4001)
    density = np.exp(-rate * fine) * fine ** (manifold.dim - 1) * np.interp(fine, grid, mean_jacobian)
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    assert stats.kstest(drawn, lambda s: np.interp(s, fine, mass / mass[-1])).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["sphere", "hyperbolic", "spd 2", "flat", "circle"])
@pytest.mark.parametrize("sigma", [1e-12, 1e6])
def test_extreme_scales(name, sigma):
    manifold, center, radius = CASES[name]
    law = make_law(manifold, center, radius, sigma)
    drawn = law.sample(20, rng=0)
    assert np.all(law.ball.contains(drawn))
    if sigma < 1:
        assert np.max(manifold.dist(law.estimate, drawn)) < 1e-10


def test_the_law_exists_on_a_ball_where_it_does_not_on_the_space():
    """σ = 5 is beyond the critical scale of SPD(3) (0.707) and of H³ (0.5)."""
    for name in ("hyperbolic", "spd 4"):
        law = make_law(*CASES[name], 5.0)
        assert np.all(law.ball.contains(law.sample(100, rng=0)))


def test_a_badly_conditioned_centre():
    manifold, center = SPD(3), np.diag([1.0, 1e-4, 1e-8])
    law = make_law(manifold, center, 0.5, 0.02)
    distance = manifold.dist(center, law.sample(200, rng=0))
    assert np.all(np.isfinite(distance))
    assert np.max(distance) <= 0.5 * (1 + 1e-6)


def test_hopeless_cases_are_known_in_advance():
    """On a wide ball of the sphere no bound of the gradient is known, and uniform proposals are hardly accepted."""
    assert acceptance_bound(Ball(Sphere(2), NORTH, 1.5), 1e-9) < 1e-12
    assert acceptance_bound(Ball(Sphere(2), NORTH, 0.7), 1e-9) > 0.01


def test_arguments_are_checked_and_records_are_not_shown():
    sphere = Sphere(2)
    records = records_in_ball(sphere, NORTH, 0.3, 5)
    with pytest.raises(RadiusTooLargeError):
        KNormGradientLaw(sphere, records, NORTH, 1.6, 0.1, NORTH)
    with pytest.raises(ArgumentError, match="sigma"):
        KNormGradientLaw(sphere, records, NORTH, 0.3, 0.0, NORTH)
    with pytest.raises(ArgumentError, match=r"^estimate must lie in the ball; clip it first\.$"):
        KNormGradientLaw(sphere, records, NORTH, 0.3, 0.1, np.array([0.0, 1.0, 0.0]))
    with pytest.raises(ArgumentError, match=r"^records must lie in the ball; clip them first\.$"):
        KNormGradientLaw(sphere, records, NORTH, 0.1, 0.1, NORTH)
    with pytest.raises(NotOnManifoldError, match=r"^records must lie on Sphere\(2, 1.0\)\.$"):
        KNormGradientLaw(sphere, 2 * records, NORTH, 0.3, 0.1, NORTH)
    with pytest.raises(ArgumentError, match="leading axis"):
        KNormGradientLaw(sphere, records[0], NORTH, 0.3, 0.1, NORTH)
    with pytest.raises(ArgumentError, match="no exact proposals"):
        ball_proposal(Product(Sphere(2), Sphere(2)), 0.0, 0.1)


def test_shapes_dtypes_densities_and_pickling():
    law = make_law(Sphere(2), NORTH.astype(np.float32), 0.3, 0.1)
    assert law.sample(rng=0).shape == (3,)
    assert law.sample((2, 4), rng=0).shape == (2, 4, 3)
    assert law.sample(0, rng=0).shape == (0, 3)
    assert law.sample(rng=0).dtype == np.float32
    outside = law.log_density_unnormalized(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    assert outside[0] == -math.inf
    assert outside[1] == pytest.approx(-law.gradient_norm(NORTH[None])[0] / 0.1)
    again = pickle.loads(pickle.dumps(law))
    assert np.array_equal(again.sample(3, rng=2), law.sample(3, rng=2))
    assert not np.array_equal(law.sample(3), law.sample(3))
