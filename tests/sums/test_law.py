"""The law of what is released, against the exact law, for every mechanism, numerics and manifold that is offered.

Wrapped mechanisms add noise to a sum of integers, and their law is that of the noise on the sum; the others release a
point, whose law is read back from it. 1,500 releases per case here and 20,000 in the long run, for every kind of
budget; 10,000 for intrinsic laws. The false-alarm rate is 1e−6 per p-value, and 30 % more or less noise is rejected.
Large manifolds (d = 20, 24, 55), where an audit has no power, run through the same code.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import Ball, Euclidean, GaussianDP, PureDP, Sphere, ZeroConcentratedDP, frechet_mean, private_mean
from dpmanifolds._points import host
from dpmanifolds.auditing.audit import releases
from dpmanifolds.auditing.neighbours import Neighbours
from dpmanifolds.intrinsic import gaussian_law, laplace_law
from dpmanifolds.sums import calibrate, mean_facts
from tests.selection import thorough
from tests.sums.cases import ALL, BALLS, BUDGETS, INTRINSIC, LARGE, WRAPPED, is_offered, mechanism_for
from tests.sums.laws import (
    FALSE_ALARM,
    WRONG,
    check_direction,
    check_distances,
    check_noise,
    noise_at_center,
    noise_on_sum,
    statistic_in,
)

NATURAL = {
    ("wrapped-laplace", "rounded"): PureDP(1.0),
    ("wrapped-laplace", "lattice"): PureDP(1.0),
    ("wrapped-gaussian", "rounded"): GaussianDP(1.0),
    ("wrapped-gaussian", "lattice"): ZeroConcentratedDP(0.5),
    ("direct-laplace", "rounded"): PureDP(1.0),
    ("direct-gaussian", "rounded"): GaussianDP(1.0),
    ("riemannian-laplace", "idealized"): PureDP(1.0),
    ("riemannian-gaussian", "idealized"): GaussianDP(1.0),
}
DIRECT = [("direct-laplace", "rounded"), ("direct-gaussian", "rounded")]
ON_POINTS = [*DIRECT, *INTRINSIC]
NEAR = 10_000
"""Records: so many that the noise is far from the edge of the ball."""


def drawn(mechanism, statistic, count, rng):
    """Releases of one statistic; `releases` is held against Mechanism.release in tests/auditing."""
    pair = Neighbours(mechanism.facts.domain, statistic, statistic, "the same data twice")
    pair.__dict__["means"] = (host(statistic), host(statistic))
    return releases(mechanism, pair, 0, count, rng)


def check_wrapped(mechanism, count):
    check_noise(mechanism, noise_on_sum(mechanism, count, np.random.default_rng(0)))


def check_direct(mechanism, count):
    ball = mechanism.facts.domain
    statistic = statistic_in(ball)
    released = drawn(mechanism, statistic, count, np.random.default_rng(0))
    check_noise(mechanism, noise_at_center(ball, statistic, released))


def check_intrinsic(mechanism, count):
    ball = mechanism.facts.domain
    manifold, statistic = ball.manifold, host(statistic_in(ball))
    released = drawn(mechanism, statistic, count, np.random.default_rng(0))
    law = (gaussian_law if mechanism.name == "riemannian-gaussian" else laplace_law)(manifold, mechanism.sigma)
    check_distances(law, np.asarray(manifold.dist(statistic, released)))
    check_direction(manifold.log_coordinates(statistic, released))


@pytest.mark.grid
@pytest.mark.parametrize("where", BALLS)
@pytest.mark.parametrize(("name", "numerics"), WRAPPED)
def test_wrapped_noise_has_its_law(name, numerics, where):
    mechanism = calibrate(name, mean_facts(BALLS[where], NEAR), NATURAL[name, numerics], numerics)
    check_wrapped(mechanism, 1_500 if mechanism.dim == 1 else 700)


@pytest.mark.grid
@pytest.mark.parametrize("where", LARGE)
@pytest.mark.parametrize(("name", "numerics"), WRAPPED)
def test_wrapped_noise_has_its_law_in_many_dimensions(name, numerics, where):
    check_wrapped(calibrate(name, mean_facts(LARGE[where], 10 * NEAR), NATURAL[name, numerics], numerics), 250)


@pytest.mark.grid
@pytest.mark.parametrize("where", ["line", "sphere", "spd", "shapes", "product"])
@pytest.mark.parametrize(("name", "numerics"), DIRECT)
def test_noise_on_the_frechet_mean_has_its_law(name, numerics, where):
    check_direct(calibrate(name, mean_facts(BALLS[where], NEAR), NATURAL[name, numerics], numerics), 700)


@pytest.mark.parametrize(("name", "numerics"), WRAPPED)
def test_the_mean_is_the_noisy_sum_over_n(name, numerics):
    """The released coordinates are those integers, each worth r/(n·2^exponent)."""
    mechanism = calibrate(name, mean_facts(BALLS["sphere"], 50), NATURAL[name, numerics], numerics)
    total = [12_345, -67]
    noisy = mechanism.add_noise(total, np.random.default_rng(1))
    mean = mechanism.noisy_mean(total, 50, np.random.default_rng(1))
    assert mechanism.step == pytest.approx(BALLS["sphere"].radius / (50 * 2**mechanism.exponent), rel=1e-15)
    assert np.array_equal(mean, noisy * mechanism.step)


@pytest.mark.grid(at_most=7)
@pytest.mark.parametrize("where", BALLS)
@pytest.mark.parametrize(("name", "numerics"), INTRINSIC[:2])
def test_intrinsic_noise_has_its_law(name, numerics, where):
    if is_offered(name, numerics, where, "approx"):
        budget = NATURAL[name, numerics]
        check_intrinsic(calibrate(name, mean_facts(BALLS[where], NEAR), budget, numerics), 10_000)


@pytest.mark.long
@pytest.mark.parametrize("where", [*BALLS, *LARGE])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("name", "numerics"), [each for each in ALL if each[0] != "k-norm-gradient"])
def test_every_offered_release_has_its_law(name, numerics, budget, where):
    ball = {**BALLS, **LARGE}[where]
    mechanism = mechanism_for(name, numerics, ball, BUDGETS[budget], 10 * NEAR)
    if mechanism is not None:
        (check_intrinsic if numerics == "idealized" else check_wrapped)(
            mechanism, 20_000 if ball.manifold.dim < 7 else 3_000
        )


def test_the_k_norm_gradient_in_flat_space_is_a_laplace_law():
    """‖∇F(x)‖ = |x − x̄|: the distance to the mean is Gamma(d), far from the edge."""
    ball = Ball(Euclidean(3), np.zeros(3), 1.0)
    mechanism = calibrate("k-norm-gradient", mean_facts(ball, 500), PureDP(1.0), "idealized")
    records = ball.clip(Euclidean(3).random_point(500, rng=0))
    mean = frechet_mean(ball.manifold, records).point
    released = mechanism.draw_many(mean, 10_000, records=records, rng=1)
    sizes = np.linalg.norm(released - mean, axis=-1) / mechanism.sigma
    assert stats.kstest(sizes, stats.gamma(3).cdf).pvalue > FALSE_ALARM
    for factor in WRONG:
        assert stats.kstest(sizes / factor, stats.gamma(3).cdf).pvalue < FALSE_ALARM
    check_direction(released - mean)


@thorough("cells", 200, 400)
def test_the_k_norm_gradient_on_the_sphere_has_its_density(cells):
    """The norm of the gradient at the draws, and their height, against a grid of the ball."""
    radius, north, sphere = math.pi / 8, np.array([0.0, 0.0, 1.0]), Sphere(2)
    ball = Ball(sphere, north, radius)
    mechanism = calibrate("k-norm-gradient", mean_facts(ball, 10), PureDP(1.0), "idealized")
    records = ball.clip(sphere.random_point(10, rng=0))
    mean = frechet_mean(sphere, records).point
    released = mechanism.draw_many(mean, 10_000, records=records, rng=1)
    heights = (np.arange(cells) + 0.5) / cells * (1 - math.cos(radius)) + math.cos(radius)
    turns = (np.arange(cells) + 0.5) / cells * 2 * math.pi
    z, turn = (each.ravel() for each in np.meshgrid(heights, turns))
    flat = np.sqrt(1 - z * z)
    grid = np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=-1)

    def slope(points):
        """‖∇F‖/σ, minus the logarithm of the density."""
        return -mechanism.log_likelihood(points, mean, records=records)

    log_density = -slope(grid)

    def p_value(seen, factor):
        """Of a function of the draws, against its law at `factor` times the scale."""
        order = np.argsort(seen(grid))
        mass = np.cumsum(np.exp(log_density[order] / factor))
        return stats.kstest(seen(released), lambda x: np.interp(x, seen(grid)[order], mass / mass[-1])).pvalue

    for seen in (slope, lambda points: points[..., 2], lambda points: points[..., 0]):
        assert p_value(seen, 1.0) > FALSE_ALARM
    for factor in WRONG:
        assert p_value(slope, factor) < FALSE_ALARM


@pytest.mark.parametrize(("name", "numerics"), WRAPPED)
def test_two_noisy_sums_differ_and_a_seed_repeats_them(name, numerics):
    mechanism = calibrate(name, mean_facts(BALLS["sphere"], 100), NATURAL[name, numerics], numerics)
    one, other = (mechanism.add_noise([0, 0]) for _ in range(2))
    assert not np.array_equal(one, other)
    one, other = (mechanism.add_noise([0, 0], rng=7) for _ in range(2))
    assert np.array_equal(one, other)


@pytest.mark.parametrize(("name", "numerics"), ON_POINTS)
def test_two_releases_differ_and_a_seed_repeats_them(name, numerics):
    ball = BALLS["sphere"]
    budget = NATURAL.get((name, numerics), PureDP(1.0))
    mechanism = calibrate(name, mean_facts(ball, 100), budget, numerics)
    records = ball.clip(ball.manifold.random_point(100, rng=0))
    mean = frechet_mean(ball.manifold, records).point
    one, other = (mechanism.release(mean, records=records) for _ in range(2))
    assert not np.array_equal(one, other)
    one, other = (mechanism.release(mean, records=records, rng=7) for _ in range(2))
    assert np.array_equal(one, other)
    assert bool(ball.contains(one))


@pytest.mark.parametrize(("name", "numerics"), WRAPPED)
def test_released_coordinates_are_whole_steps_of_the_public_lattice(name, numerics):
    ball = BALLS["sphere"]
    records = ball.clip(ball.manifold.random_point(100, rng=0))
    budget = NATURAL[name, numerics]
    release = private_mean(records, ball, budget, mechanism=name, numerics=numerics, steps=1, rng=3)
    whole = np.rint(release.coordinates / release.step)
    assert np.array_equal(whole * release.step, release.coordinates)
    exponent = math.log2(ball.radius / (100 * release.step))
    assert exponent == pytest.approx(round(exponent), abs=1e-12)


@pytest.mark.parametrize(("name", "numerics"), ON_POINTS)
def test_a_release_lies_on_the_public_lattice(name, numerics):
    """Whole steps of coordinates at the centre, before shrinking and exp; from intrinsic laws read back through log."""
    ball = BALLS["sphere"]
    mechanism = calibrate(name, mean_facts(ball, 100), NATURAL.get((name, numerics), PureDP(1.0)), numerics)
    records = ball.clip(ball.manifold.random_point(100, rng=0))
    drawn = mechanism.draw(frechet_mean(ball.manifold, records).point, records=records, rng=3)
    read_back = ball.manifold.log_coordinates(host(ball.center), drawn.point)
    steps = (read_back if drawn.coordinates is None else drawn.coordinates) / mechanism.step
    assert math.log2(mechanism.step).is_integer()
    assert np.max(np.abs(steps - np.rint(steps))) < 1e-3
