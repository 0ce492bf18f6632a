"""Noise scales against 80-digit arithmetic, at ordinary and at extreme arguments."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpmanifolds import Hyperbolic, Sphere
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import (
    ApproxDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    RiemannianGaussianProfile,
    ZeroConcentratedDP,
    affordable_epsilon,
    affordable_rho,
    compose,
    delta_of_mu,
    epsilon_of_mu,
    gaussian_sigma,
    laplace_scale,
    mu_for,
    mu_of_pure,
    split,
)
from dpmanifolds.privacy.conversions import log_gaussian_delta, relative_error
from dpmanifolds.privacy.rounding import float_above, float_below, root_above, root_below
from tests.selection import thorough


def exact_log_delta(mu: float, epsilon: float) -> mp.mpf:
    digits = 60 + int(epsilon / 2) + int((epsilon / mu) ** 2 / 4.6) + int(mu * mu / 2)
    with mp.workdps(digits):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        return mp.log(mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2))


# μ on both sides of the switch at 0.25, t = ε/μ − μ/2 on both sides of 3 and of −5, δ down to e^−700
PROFILE_CASES = [
    (mu, mu * z + mu * mu / 2 * half)
    for mu in (1e-9, 1e-3, 0.1, 0.2499, 0.2501, 1.0, 5.0, 12.0, 20.0)
    for z in (0.0, 1e-6, 0.3, 2.9, 3.1, 8.0, 37.0)
    for half in (0, 1)
]


@pytest.mark.grid(at_most=30)
@pytest.mark.parametrize(("mu", "epsilon"), PROFILE_CASES)
def test_profile_is_accurate_in_relative_terms_and_its_error_bound_holds(mu, epsilon):
    error = abs(float(mp.mpf(float(log_gaussian_delta(mu, np.asarray(epsilon)))) - exact_log_delta(mu, epsilon)))
    bound = float(relative_error(mu, np.asarray(epsilon)))
    assert error <= bound / 2
    assert bound < 1e-11


@thorough("examples", 20, 40)
def test_mu_for_is_below_the_truth_by_less_than_1e_12(examples):
    @settings(max_examples=examples)
    @given(st.floats(-6, 2.4), st.floats(-300, -0.01))
    def holds(log_epsilon, log_delta):
        epsilon, delta = 10**log_epsilon, 10**log_delta
        mu = mu_for(epsilon, delta)
        assert exact_log_delta(mu, epsilon) <= mp.log(mp.mpf(delta))
        assert exact_log_delta(mu * (1 + 1e-12), epsilon) > mp.log(mp.mpf(delta))

    holds()


@thorough("examples", 20, 40)
def test_epsilon_of_mu_is_above_the_truth_by_less_than_1e_12(examples):
    @settings(max_examples=examples)
    @given(st.floats(-4, 1), st.floats(-300, -0.5))
    def holds(log_mu, log_delta):
        mu, delta = 10**log_mu, 10**log_delta
        epsilon = epsilon_of_mu(mu, delta)
        assert exact_log_delta(mu, epsilon) <= mp.log(mp.mpf(delta))
        lower = epsilon * (1 - 1e-12) - 1e-12 * mu
        if lower > 0:
            assert exact_log_delta(mu, lower) > mp.log(mp.mpf(delta))

    holds()


def test_values_of_the_design():
    assert round(mu_for(0.1, 1e-3), 6) == 0.057457
    # Han et al. with c = 1 at (ε, δ) = (.1, 1e−3): σ = Δ√(ln(1/δ))/ε is really .142
    mu = 2 * 0.1 / (2 * math.sqrt(math.log(1e3)))
    assert round(epsilon_of_mu(2 * mu, 1e-3), 3) == 0.142


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(500.0, 1e-10), (1e-6, 1e-300), (20.0, 1e-300), (1e-12, 0.5), (0.1, 0.9), (1e-100, 1e-300)]
)
def test_extreme_arguments_satisfy_the_analytic_condition(epsilon, delta):
    sigma = gaussian_sigma(1.0, epsilon, delta)
    assert exact_log_delta(1 / sigma, epsilon) <= mp.log(mp.mpf(delta))
    assert exact_log_delta(1 / (sigma * (1 - 1e-12)), epsilon) > mp.log(mp.mpf(delta))


def test_analytic_sigma_agrees_with_dp_accounting():
    from dp_accounting import gaussian_mechanism

    for epsilon, delta in ((0.1, 1e-3), (1.0, 1e-5), (10.0, 1e-8)):
        assert gaussian_sigma(1.0, epsilon, delta) == pytest.approx(
            gaussian_mechanism.get_sigma_gaussian(epsilon, delta), rel=1e-6
        )


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.5, 0.999, 1.0, 1.001, 5.0, 40.0, 650.0])
def test_mu_of_pure_is_the_smallest_up_to_1e_13(epsilon):
    with mp.workdps(400):
        error = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        mu = mp.mpf(mu_of_pure(epsilon))
        assert mp.ncdf(-mu / 2) <= error < mp.ncdf(-mu * (1 - mp.mpf("1e-13")) / 2)


def test_laplace_scale_rounds_up():
    for sensitivity, epsilon in ((1.0, 3.0), (0.1, 0.7), (1e-8, 123.0)):
        scale = laplace_scale(sensitivity, epsilon)
        assert mp.mpf(sensitivity) / mp.mpf(epsilon) <= scale <= sensitivity / epsilon * (1 + 1e-14)


def test_profile_takes_arrays():
    values = delta_of_mu(1.0, np.array([0.0, 1.0, math.inf]))
    assert values.shape == (3,)
    assert values[2] == 0.0
    assert isinstance(delta_of_mu(1.0, 0.5), float)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "x", None])
def test_bad_numbers_are_named(bad):
    for call in (
        lambda: gaussian_sigma(bad, 1.0, 1e-5),
        lambda: gaussian_sigma(1.0, bad, 1e-5),
        lambda: mu_for(bad, 1e-5),
        lambda: epsilon_of_mu(bad, 1e-5),
        lambda: laplace_scale(1.0, bad),
        lambda: mu_of_pure(bad),
        lambda: delta_of_mu(bad, 1.0),
    ):
        with pytest.raises(ArgumentError, match="must be"):
            call()


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-9, 1.5, math.nan, math.inf, "x", None])
def test_delta_must_be_a_probability(bad):
    with pytest.raises(ArgumentError, match="strictly between 0 and 1"):
        mu_for(1.0, bad)
    with pytest.raises(ArgumentError, match="strictly between 0 and 1"):
        epsilon_of_mu(1.0, bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, "x", [0.0, -1e-9]])
def test_epsilon_of_a_profile_must_not_be_negative(bad):
    with pytest.raises(ArgumentError, match="epsilon"):
        delta_of_mu(1.0, bad)


def pure_delta(epsilon: mp.mpf, at: mp.mpf) -> mp.mpf:
    return (1 - mp.exp(at - epsilon)) / (1 + mp.exp(-epsilon))


def laplace_delta(epsilon: mp.mpf, at: mp.mpf) -> mp.mpf:
    return 1 - mp.exp((at - epsilon) / 2)


@pytest.mark.parametrize(("epsilon", "delta"), [(8.0, 1e-12), (40.0, 1e-13), (1.0, 1e-15), (0.1, 1e-6)])
@pytest.mark.parametrize(("on_the_line", "profile"), [(False, pure_delta), (True, laplace_delta)])
def test_what_is_afforded_uses_no_slack(epsilon, delta, on_the_line, profile):
    """With a relative 1e−12 of slack in ε the true δ was 4.8 to 367 times the budget."""
    afforded = affordable_epsilon(ApproxDP(epsilon, delta), on_the_line=on_the_line)
    assert afforded >= epsilon
    with mp.workdps(50):
        truth = profile(mp.mpf(afforded), mp.mpf(epsilon))
        beyond = profile(mp.mpf(math.nextafter(math.nextafter(afforded, math.inf), math.inf)), mp.mpf(epsilon))
        assert truth <= mp.mpf(delta) < beyond * (1 + mp.mpf(2) ** -40)


@pytest.mark.parametrize("budget", [PureDP(0.3), GaussianDP(0.7), ZeroConcentratedDP(0.3), RenyiDP(3.0, 0.7)], ids=repr)
@pytest.mark.parametrize("shares", [[0.1] * 10, [1 / 3] * 3, [0.36, 0.64], [0.7, 0.1, 0.2], [1 / 7] * 7])
def test_a_split_composes_back_strictly(budget, shares):
    make = {
        PureDP: lambda part: Guarantee.pure(part.epsilon),
        GaussianDP: lambda part: Guarantee.gaussian(part.mu),
        ZeroConcentratedDP: lambda part: Guarantee.zcdp(part.rho),
        RenyiDP: lambda part: Guarantee.zcdp(affordable_rho(part)),
    }[type(budget)]
    whole = compose(*(make(part) for part in split(budget, shares)[0]))
    assert whole.fits(budget, strict=True)
    assert split(budget, [1.0]) == [(budget,)]


def test_slack_is_for_sums_of_parts_and_never_for_a_point():
    assert compose(Guarantee.pure(0.1), Guarantee.pure(0.2)).fits(PureDP(0.3))
    assert not compose(Guarantee.pure(0.1), Guarantee.pure(0.2)).fits(PureDP(0.3), strict=True)
    assert not Guarantee.pure(math.nextafter(0.3, 1)).fits(PureDP(0.3))
    assert not Guarantee.pure(8 * (1 + 1e-12)).fits(ApproxDP(8.0, 1e-12))
    assert Guarantee.pure(8.0).fits(ApproxDP(8.0, 1e-12))


@settings(max_examples=60, deadline=None)
@given(st.fractions(1e-30, 1e30))
def test_exact_values_are_rounded_to_the_named_side(exact):
    assert float_below(exact) <= exact <= float_above(exact)
    assert float_above(exact) <= math.nextafter(float_below(exact), math.inf)
    assert Fraction(root_below(exact)) ** 2 <= exact <= Fraction(root_above(exact)) ** 2
    assert root_above(exact) <= math.nextafter(math.nextafter(root_below(exact), math.inf), math.inf)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.999, 1.001, 2.0, 20.0, 300.0])
def test_mu_of_laplace_noise_is_the_smallest_up_to_1e_12(epsilon):
    """1.20 to 1.44 times as much was told, that of randomised response."""
    mu = Guarantee.laplace(epsilon).as_gaussian().mu
    with mp.workdps(200):
        e, exact = mp.mpf(epsilon), mp.mpf(mu)
        assert mp.ncdf(-exact / 2) <= mp.exp(-e / 2) / 2 < mp.ncdf(-exact * (1 - mp.mpf("1e-12")) / 2)
    at = np.linspace(0, epsilon, 50)
    assert np.all(Guarantee.laplace(epsilon).delta(at) <= delta_of_mu(mu, at) * (1 + 1e-12))


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 2.0, 20.0])
def test_rho_of_laplace_noise_is_its_kullback_leibler_divergence(epsilon):
    """1.34 times as much was told at ε = 2."""
    rho = Guarantee.laplace(epsilon).as_zcdp().rho
    with mp.workdps(60):
        exact = mp.mpf(epsilon) + mp.exp(-mp.mpf(epsilon)) - 1
        assert exact <= rho <= exact * (1 + mp.mpf("1e-12"))
    for alpha in 1 + 10 ** np.linspace(-4, 4, 60):
        assert Guarantee.laplace(epsilon).as_renyi(float(alpha)).epsilon <= rho * alpha * (1 + 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "count", "gain"), [(0.1, 10, 1.22), (0.1, 100, 1.24), (1.0, 5, 1.19), (0.5, 3, 1.15)]
)
def test_mu_of_pure_copies_is_that_of_randomised_responses(epsilon, count, gain):
    promise = Guarantee.pure(epsilon).k_fold(count)
    mu = promise.as_gaussian().mu
    assert math.sqrt(count) * mu_of_pure(epsilon) > gain * mu
    with mp.workdps(80):
        truth, lie = (1 / (1 + mp.exp(sign * mp.mpf(epsilon))) for sign in (-1, 1))
        largest, power, level = mp.mpf(0), mp.mpf(0), mp.mpf(0)
        for flips in range(count // 2 + 1):
            ways = mp.binomial(count, flips)
            power += ways * lie**flips * truth ** (count - flips)
            level += ways * truth**flips * lie ** (count - flips)
            z = mp.findroot(lambda x, level=level: mp.ncdf(x) / level - 1, float(special.ndtri(float(level))))
            assert power <= mp.ncdf(z + mp.mpf(mu))
            largest = max(largest, power / mp.ncdf(z + mp.mpf(mu) * (1 - mp.mpf("1e-9"))))
    assert largest > 1
    at = np.linspace(0, count * epsilon, 40)
    assert np.all(promise.delta(at) <= delta_of_mu(mu, at) * (1 + 1e-9))


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("space", "sigma"), [(Sphere(2), 1.0), (Sphere(5), 0.3), (Hyperbolic(3), 0.7)], ids=repr)
def test_renyi_of_the_intrinsic_gaussian_is_that_of_its_pair(space, sigma):
    promise = Guarantee.riemannian_gaussian(space, sigma, 0.5)
    profile = RiemannianGaussianProfile(space, sigma, 0.5)
    for alpha in (1.5, 10.0, 60.0):
        exact = profile.renyi(alpha)
        assert (
            exact
            <= promise.as_renyi(alpha).epsilon
            <= min(exact * (1 + 1e-8), promise.as_zcdp().rho * alpha * (1 + 1e-15))
        )
    if isinstance(space, Sphere):
        assert promise.as_pure().epsilon == pytest.approx(0.5 * (2 * math.pi - 0.5) / 2 / sigma**2, rel=1e-12)
        assert promise.delta(promise.as_pure().epsilon * (1 + 1e-12)) == 0
    else:
        with pytest.raises(NotAvailableError):
            promise.as_pure()
