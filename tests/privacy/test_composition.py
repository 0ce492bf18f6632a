"""Composition: exact where a formula is exact, never below the truth elsewhere, and close to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from dpmanifolds import Hyperbolic
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import (
    Guarantee,
    PureDP,
    compose,
    delta_of_mu,
    epsilon_of_mu,
    fixed_size_descent,
    poisson_descent,
    riemannian_gaussian,
)
from dpmanifolds.privacy.accounts import composed_grid
from dpmanifolds.privacy.loss_grid import compose_grids, convolve, from_profile, power
from dpmanifolds.privacy.terms import GaussianTerm, PureTerm
from dpmanifolds.privacy.tilted_grid import TailLaw

AMOUNTS = st.floats(0.05, 2.0)
SIMPLE = st.one_of(
    AMOUNTS.map(Guarantee.pure),
    AMOUNTS.map(Guarantee.gaussian),
    AMOUNTS.map(Guarantee.zcdp),
    AMOUNTS.map(Guarantee.laplace),
    AMOUNTS.map(lambda epsilon: Guarantee.approx(epsilon, 1e-7)),
)


@settings(max_examples=20, deadline=None)
@given(SIMPLE, st.integers(1, 5))
def test_k_copies_equal_k_fold(promise, k):
    assert compose(*[promise] * k) == promise.k_fold(k)


@settings(max_examples=15, deadline=None)
@given(SIMPLE, SIMPLE, SIMPLE)
def test_order_and_grouping_do_not_matter(a, b, c):
    together = compose(a, b, c)
    assert together == compose(c, a, b) == compose(compose(b, a), c)
    assert together.delta(1.0) == compose(c, b, a).delta(1.0)


@settings(max_examples=15, deadline=None)
@given(SIMPLE, SIMPLE)
def test_composing_never_helps_privacy(a, b):
    epsilon = np.array([0.0, 0.5, 2.0])
    assert np.all(compose(a, b).delta(epsilon) >= a.delta(epsilon) * (1 - 1e-9))


@pytest.mark.parametrize(("mu", "k"), [(0.1, 100), (0.5, 10), (0.02, 2500), (1.0, 4), (3.0, 9)])
def test_gaussians_through_the_grid_match_the_formula_to_1e_4_from_above(mu, k):
    term = GaussianTerm(mu=mu)
    grid = power(term.grid(0.01 * mu, 1e-14 / k), k, tail=1e-14)
    for delta in (1e-2, 1e-4, 1e-6, 1e-8):
        exact = epsilon_of_mu(mu * math.sqrt(k), delta)
        assert 0 <= grid.epsilon(delta) / exact - 1 < 1e-4
    epsilon = np.linspace(0, 3 * mu * math.sqrt(k), 50)
    excess = grid.delta(epsilon) - delta_of_mu(mu * math.sqrt(k), epsilon)
    assert np.min(excess) >= 0
    assert np.max(excess) < 1e-4


def test_gaussian_and_zcdp_compose_by_formula():
    assert compose(Guarantee.gaussian(3.0), Guarantee.gaussian(4.0)).as_gaussian().mu == 5.0
    assert Guarantee.gaussian(0.1).k_fold(100).epsilon(1e-5) == pytest.approx(epsilon_of_mu(1.0, 1e-5), rel=1e-12)
    assert Guarantee.zcdp(0.125).k_fold(4).as_zcdp().rho == 0.5
    assert Guarantee.pure(0.25).k_fold(4).as_pure().epsilon == 1.0


def optimal_composition(epsilon: float, k: int, at: float) -> float:
    """Kairouz, Oh and Viswanath (2015): k copies of randomised response."""
    total = 0.0
    for flips in range(k + 1):
        loss = (k - 2 * flips) * epsilon
        mass = math.comb(k, flips) * math.exp((k - flips) * epsilon) / (1 + math.exp(epsilon)) ** k
        total += mass * max(-math.expm1(at - loss), 0.0)
    return total


@pytest.mark.parametrize("epsilon", [0.1, 0.37, 1.0, 2.5])
@pytest.mark.parametrize("k", [2, 3, 8, 30])
def test_pure_k_fold_is_the_optimal_composition_theorem(epsilon, k):
    promise = Guarantee.pure(epsilon).k_fold(k)
    for share in (0.0, 0.2, 0.55, 0.9):
        at = share * k * epsilon
        exact = optimal_composition(epsilon, k, at)
        assert exact * (1 - 1e-13) <= promise.delta(at) <= exact * (1 + 1e-8) + 1e-12
    assert promise.delta(k * epsilon * (1 + 1e-12)) == 0.0
    assert promise.epsilon(1e-6) <= k * epsilon


@pytest.mark.long
def test_a_million_pure_terms_are_above_the_binomial_truth_and_close():
    epsilon, k = 1e-3, 10**6
    promise = Guarantee.pure(epsilon).k_fold(k)
    for at in (0.0, 1.0, 3.0):
        flips = math.floor((k - at / epsilon) / 2)
        p = special.expit(epsilon)
        # losses (k − 2j)ε above `at`, j flips: under P each copy flips with 1 − p, under Q with p
        exact = special.bdtr(flips, k, 1 - p) - math.exp(at) * special.bdtr(flips, k, p)
        assert exact * (1 - 1e-9) <= promise.delta(at) <= exact * (1 + 1e-4) + 1e-8


def test_unequal_pure_terms_are_composed_tightly_on_a_common_grid():
    first, second = 0.7, 0.31
    promise = compose(Guarantee.pure(first), Guarantee.pure(second))
    p, q = special.expit(first), special.expit(second)
    masses = np.array([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
    losses = np.array([first + second, first - second, second - first, -first - second])
    for at in (0.0, 0.2, 0.5, 0.9):
        exact = float(masses @ np.maximum(-np.expm1(at - losses), 0))
        assert exact <= promise.delta(at) <= exact + 1e-5


def laplace_gaussian_truth(epsilon: float, mu: float, at: float) -> float:
    """δ of Laplace(ε) followed by Gaussian(μ): ∫ over the Laplace loss l of δ_μ(at − l)."""

    def gaussian(level: float) -> float:
        if level >= 0:
            return float(delta_of_mu(mu, level))
        return -math.expm1(level) + math.exp(level) * float(delta_of_mu(mu, -level))

    inner = integrate.quad(
        lambda loss: math.exp((loss - epsilon) / 2) / 4 * gaussian(at - loss), -epsilon, epsilon, epsabs=1e-13
    )
    return gaussian(at - epsilon) / 2 + math.exp(-epsilon) / 2 * gaussian(at + epsilon) + inner[0]


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 0.5), (0.3, 1.0), (2.0, 0.2)])
def test_laplace_with_gaussian_matches_numerical_convolution(epsilon, mu):
    promise = compose(Guarantee.laplace(epsilon), Guarantee.gaussian(mu))
    for at in (0.0, 0.5, 1.5, 3.0):
        exact = laplace_gaussian_truth(epsilon, mu, at)
        assert exact - 1e-12 <= promise.delta(at) <= exact * (1 + 2e-3) + 1e-11


@pytest.mark.parametrize("delta", [1e-4, 1e-9, 1e-14, 1e-25, 1e-60])
def test_a_tilted_law_resolves_any_delta(delta):
    """A hundred Gaussians through the tail's law alone, against the formula."""
    step = GaussianTerm(mu=0.1).grid(1e-3, 1e-82)
    law = TailLaw([(step, 50), (step, 50)])
    exact = epsilon_of_mu(1.0, delta)
    assert 0 <= law.epsilon(delta) / exact - 1 < 1e-5
    bound = law.delta(np.array([exact, 0.5 * exact]))
    truth = delta_of_mu(1.0, np.array([exact, 0.5 * exact]))
    assert np.all((bound >= truth) & (bound <= truth * (1 + 5e-3)))


def test_mixed_terms_in_the_far_tail_are_above_the_formula_for_gaussians_and_below_every_other():
    promise = compose(Guarantee.gaussian(0.5), Guarantee.laplace(0.4), Guarantee.pure(0.1))
    for delta in (1e-13, 1e-18, 1e-30):
        assert promise.loss_grid.epsilon(delta) == math.inf or delta > 1e-15
        epsilon = promise.epsilon(delta)
        assert epsilon_of_mu(0.5, delta) < epsilon <= epsilon_of_mu(0.5, delta) + 0.5
        assert epsilon < promise.as_gaussian().as_approx(delta).epsilon


def test_a_mixed_account_is_tighter_than_every_formula():
    promise = compose(
        Guarantee.gaussian(0.5),
        Guarantee.pure(0.2),
        Guarantee.laplace(0.4),
        poisson_descent(n=1000, rate=0.05, steps=50, clip=1.0, sigma=0.05),
    )
    epsilon = promise.epsilon(1e-6)
    assert epsilon < promise.as_gaussian().as_approx(1e-6).epsilon
    assert epsilon < promise.as_zcdp().as_approx(1e-6).epsilon
    alone = [Guarantee((term,)).epsilon(1e-6) for term in promise.terms]
    assert max(alone) < epsilon < sum(alone)


def test_tiny_deltas_fall_back_on_a_formula():
    promise = compose(Guarantee.gaussian(0.5), Guarantee.pure(0.2))
    assert math.isfinite(promise.epsilon(1e-100))
    assert promise.loss_grid.epsilon(1e-100) == math.inf


def test_approximate_terms_add_their_deltas():
    promise = Guarantee.approx(0.1, 1e-6).k_fold(10)
    floor = -math.expm1(10 * math.log1p(-1e-6))
    assert floor <= promise.delta(1.5) <= floor + 1e-11
    # Kairouz, Oh and Viswanath: 1 − (1 − δ)^k (1 − δ_pure)
    exact = floor + (1 - floor) * optimal_composition(0.1, 10, 0.4)
    assert exact * (1 - 1e-12) <= promise.delta(0.4) <= exact * (1 + 1e-6)


def test_guarantees_that_differ_in_adjacency_or_unit_do_not_compose():
    with pytest.raises(ArgumentError, match="adjacency and unit agree"):
        compose(Guarantee.pure(1.0), Guarantee.pure(1.0, unit="within-class"))
    with pytest.raises(ArgumentError, match="adjacency and unit agree"):
        compose(Guarantee.pure(1.0), Guarantee.pure(1.0, adjacency="add-remove-one"))
    with pytest.raises(ArgumentError, match="one or more guarantees"):
        compose()
    with pytest.raises(ArgumentError, match="one or more guarantees"):
        compose(Guarantee.pure(1.0), PureDP(1.0))


@pytest.mark.parametrize("sharp", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("size", [500, 4000])
def test_what_the_fft_loses_is_less_than_what_is_charged(size, sharp):
    """Masses are whole numbers times 2⁻⁴⁰, so that the plain convolution is exact."""
    rng = np.random.default_rng(0)
    first, second = (np.rint(2.0**20 * np.exp(-sharp * rng.random(size))) for _ in range(2))
    exact = np.convolve(first, second)
    assert exact.max() < 2.0**53
    first, second, exact = first * 2.0**-40, second * 2.0**-40, exact * 2.0**-80
    result, error = convolve(first, second)
    lost = np.sum(np.maximum(exact - result, 0.0))
    assert lost <= error
    assert np.sum(np.abs(result - exact)) <= error + 2e-15 * np.sum(exact)
    assert np.array_equal(convolve(first, first)[0], convolve(first, first.copy())[0])


def test_the_charge_covers_long_flat_masses():
    """Σ of n equal masses with themselves is a triangle; ‖f‖₂‖g‖₂ alone would be too little to charge here."""
    size = 300_000
    result, error = convolve(np.full(size, 2.0**-19), np.full(size, 2.0**-19))
    rising = np.arange(1, size + 1) * 2.0**-38
    assert np.sum(np.maximum(np.concatenate([rising, rising[-2::-1]]) - result, 0.0)) <= error < 1e-13


def test_truncation_and_mass_at_infinity_only_add_loss():
    grid = from_profile(lambda at: delta_of_mu(0.5, at), interval=0.01, nodes=np.arange(151))
    assert grid.infinity == pytest.approx(delta_of_mu(0.5, 1.5), rel=1e-12)
    exact = [delta_of_mu(0.5 * math.sqrt(2), at) for at in (0.0, 1.0, 2.0)]
    for tail in (1e-14, 1e-6, 1e-3):
        composed = compose_grids(grid, grid, tail=tail).delta(np.array([0.0, 1.0, 2.0]))
        assert np.all(composed >= exact)
    with pytest.raises(ValueError, match="different intervals"):
        compose_grids(grid, PureTerm(epsilon=1.0).grid(0.1, 1e-9), tail=0.0)


def test_a_grid_handed_to_dp_accounting_says_the_same():
    promise = compose(Guarantee.gaussian(0.5), Guarantee.laplace(0.4))
    pld = promise.to_dp_accounting()
    assert pld.get_delta_for_epsilon(1.0) == pytest.approx(promise.loss_grid.delta(np.asarray(1.0)), rel=1e-9)
    twice = pld.compose(pld)
    assert twice.get_epsilon_for_delta(1e-6) == pytest.approx(promise.k_fold(2).epsilon(1e-6), rel=1e-3)


def test_grids_agree_with_dp_accountings_own():
    from dp_accounting.pld import privacy_loss_distribution as pld

    theirs = pld.from_laplace_mechanism(2.0).self_compose(10).compose(pld.from_gaussian_mechanism(1.5))
    ours = compose(Guarantee.laplace(0.5).k_fold(10), Guarantee.gaussian(1 / 1.5))
    for delta in (1e-3, 1e-6):
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-4)


def test_large_and_small_parameters_stay_within_the_grid():
    for promise in (
        compose(Guarantee.pure(60.0), Guarantee.gaussian(1e-3)),
        compose(Guarantee.gaussian(30.0), Guarantee.laplace(1e-4)),
        Guarantee.laplace(1e-4).k_fold(10000),
    ):
        assert len(promise.loss_grid.masses) < 2**21
        assert 0 <= promise.delta(1.0) <= 1


class FlatProfile:
    """What `RiemannianGaussianProfile` returns, for a space so flat that the answer is known."""

    def __init__(self, manifold, sigma, sensitivity):
        self.mu, self.largest_loss = sensitivity / sigma, math.inf

    def delta_upper(self, epsilons):
        return delta_of_mu(self.mu, epsilons)


def test_intrinsic_gaussians_compose_through_their_profile(monkeypatch):
    monkeypatch.setattr(riemannian_gaussian, "RiemannianGaussianProfile", FlatProfile)
    # a curvature that no other test asks for: bounds are kept by their parameters
    promise = Guarantee.riemannian_gaussian(Hyperbolic(3, curvature=-0.5137), sigma=1.0, sensitivity=0.1).k_fold(100)
    assert promise.as_gaussian().mu == pytest.approx(1.0, rel=1e-12)
    for delta in (1e-3, 1e-6):
        # the grid alone, without the account by √Σμ²
        assert 0 <= promise.loss_grid.epsilon(delta) / epsilon_of_mu(1.0, delta) - 1 < 1e-4


def test_an_intrinsic_gaussian_a_laplace_and_a_descent_make_one_account():
    from dpmanifolds import Sphere

    sphere = Guarantee.riemannian_gaussian(Sphere(2), sigma=0.5, sensitivity=0.2)
    descent = fixed_size_descent(n=1000, batch=20, steps=100, clip=1.0, sigma=0.2)
    promise = compose(sphere, Guarantee.pure(0.3), descent)
    assert Guarantee.from_json(promise.to_json()).epsilon(1e-6) == promise.epsilon(1e-6)
    assert promise.epsilon(1e-6) < promise.as_gaussian().as_approx(1e-6).epsilon
    # on a sphere the loss is below that of the Euclidean Gaussian with the same Δ/σ
    flat = compose(Guarantee.gaussian(0.4), Guarantee.pure(0.3), descent)
    assert promise.epsilon(1e-6) < flat.epsilon(1e-6) * (1 + 1e-4)


@pytest.mark.long
def test_mixed_composition_against_simulation():
    """4e6 draws of the true losses; 6 standard errors (false alarm below 1e−8); an ε too small by 10 % is rejected."""
    rng = np.random.default_rng(11)
    size = 4_000_000
    loss = np.zeros(size)
    for _ in range(2):
        x = rng.laplace(size=size)
        loss += np.abs(x + 0.6) - np.abs(x)
    loss += rng.normal(0.5**2 / 2, 0.5, size)
    noise, rate = 1.0, 0.2
    x = np.where(rng.random(size) < rate, 1.0, 0.0) + noise * rng.normal(size=size)
    ratio = rate / (1 - rate) * math.exp(-1 / (2 * noise**2))
    loss += np.log1p(ratio * np.exp(x / noise**2)) - np.log1p(ratio * np.exp(-x / noise**2))
    promise = compose(
        Guarantee.laplace(0.6).k_fold(2),
        Guarantee.gaussian(0.5),
        poisson_descent(n=5, rate=rate, steps=1, clip=1.0, sigma=1.0),
    )
    for at in (0.0, 0.5, 1.0, 2.0):
        values = np.maximum(-np.expm1(at - loss), 0)
        estimate, error = float(np.mean(values)), 6 * float(np.std(values)) / math.sqrt(size)
        assert estimate - error <= promise.delta(at) <= (estimate + error) * 1.002
        assert promise.delta(at + 0.1 * max(at, 0.5)) < estimate - error


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=4))
def test_the_grid_is_never_below_the_gaussian_truth(amounts):
    grid = composed_grid(tuple(GaussianTerm(mu=mu) for mu in amounts))
    exact = math.sqrt(math.fsum(mu * mu for mu in amounts))
    epsilon = np.linspace(0, 4 * exact, 20)
    assert np.all(grid.delta(epsilon) >= delta_of_mu(exact * (1 - 1e-15), epsilon))
