"""One guarantee: its profile, its readings, its trade-off function, its JSON."""

from __future__ import annotations

import json
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from dpmanifolds import SPD, Sphere
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import (
    ApproxDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    RiemannianGaussianProfile,
    ZeroConcentratedDP,
    compose,
    delta_of_mu,
    fixed_size_descent,
    mu_for,
    poisson_descent,
)

PROFILE = [0.3, 0.2, 0.12, 0.05, 0.01, 1e-6]
SINGLE = {
    "pure": Guarantee.pure(0.8),
    "approx": Guarantee.approx(0.8, 1e-6),
    "gaussian": Guarantee.gaussian(0.7),
    "zcdp": Guarantee.zcdp(0.2),
    "laplace": Guarantee.laplace(0.8),
    "poisson": poisson_descent(n=1000, rate=0.05, steps=1, clip=1.0, sigma=0.03),
    "fixed size": fixed_size_descent(n=1000, batch=50, steps=1, clip=1.0, sigma=0.06),
    "discrete gaussian": Guarantee.discrete_gaussian(5.0, 8.0, 1),
    "discrete gaussian in space": Guarantee.discrete_gaussian(50.0, 80.0, 3),
    "discrete laplace": Guarantee.discrete_laplace(5, 7.0),
    "laplace on batches": poisson_descent(n=1000, rate=0.2, steps=1, clip=1.0, sigma=0.01, law="laplace"),
    "cut batches": poisson_descent(n=100, rate=0.2, steps=1, clip=1.0, sigma=0.1, largest_batch=25),
    "profile": Guarantee.profile(0.25, PROFILE),
}
MIXED = {
    "gaussian and pure": compose(Guarantee.gaussian(0.4), Guarantee.pure(0.3)),
    "pure 5-fold": Guarantee.pure(0.3).k_fold(5),
    "all": compose(*SINGLE.values()),
}
ALL = SINGLE | MIXED


@pytest.mark.parametrize("name", ALL)
def test_a_profile_does_not_increase_and_is_convex_in_exp_epsilon(name):
    x = np.linspace(1.0, math.exp(3.0), 4001)
    delta = ALL[name].delta(np.log(x))
    assert np.all((delta >= 0) & (delta <= 1))
    assert np.max(np.diff(delta)) <= 1e-12
    assert np.min(np.diff(delta, 2)) >= -1e-9


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("delta", [0.05, 1e-4, 2e-6])
def test_epsilon_inverts_delta_to_the_safe_side(name, delta):
    promise = ALL[name]
    epsilon = promise.epsilon(delta)
    if math.isinf(epsilon):
        assert promise.delta(50.0) > delta
        return
    assert promise.delta(epsilon) <= delta * (1 + 1e-9)
    if epsilon > 1e-3:
        assert promise.delta(epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)


@pytest.mark.grid(at_most=8)
@pytest.mark.parametrize("name", ALL)
def test_the_trade_off_function_is_convex_falls_and_is_its_own_inverse(name):
    alpha = np.linspace(0, 1, 201)
    f = ALL[name].tradeoff(alpha)
    assert np.all(f <= 1 - alpha + 1e-12)
    assert np.max(np.diff(f)) <= 1e-12
    assert np.min(np.diff(f, 2)) >= -1e-9
    inside = (f > 1e-4) & (alpha > 1e-4)
    assert np.max(np.abs(ALL[name].tradeoff(f[inside]) - alpha[inside])) < 2e-3


def test_trade_off_functions_of_the_classics():
    alpha = np.linspace(0, 1, 21)
    exact = special.ndtr(special.ndtri(1 - alpha) - 0.7)
    assert np.allclose(Guarantee.gaussian(0.7).tradeoff(alpha), exact, atol=1e-12)
    grow = math.exp(0.8)
    randomised = np.maximum(np.maximum(1 - grow * alpha, (1 - alpha) / grow), 0)
    assert np.allclose(Guarantee.pure(0.8).tradeoff(alpha), randomised, atol=1e-12)


def test_profiles_of_the_classics():
    epsilon = np.array([0.0, 0.3, 0.8, 2.0])
    assert np.allclose(Guarantee.gaussian(0.7).delta(epsilon), delta_of_mu(0.7, epsilon), rtol=1e-12)
    grow = math.exp(0.8)
    assert np.allclose(
        Guarantee.pure(0.8).delta(epsilon), np.maximum(grow - np.exp(epsilon), 0) / (1 + grow), atol=1e-15
    )
    assert np.allclose(
        Guarantee.laplace(0.8).delta(epsilon), np.maximum(1 - np.exp((epsilon - 0.8) / 2), 0), atol=1e-15
    )
    assert Guarantee.approx(0.8, 1e-6).delta(0.8) == 1e-6
    # on a grid point the profile is what was given, between them its chord
    assert Guarantee.profile(0.25, PROFILE).delta(0.5) == pytest.approx(0.12, rel=1e-12)


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 4.0, 60.0])
def test_the_zcdp_profile_is_above_every_mechanism_that_keeps_it(rho):
    promise = Guarantee.zcdp(rho)
    epsilon = np.linspace(0, 3 * rho + 8 * math.sqrt(rho), 60)
    assert np.all(promise.delta(epsilon) >= delta_of_mu(math.sqrt(2 * rho) * (1 - 1e-12), epsilon) * (1 - 1e-9))
    # randomised response with ε·tanh(ε/2) ≤ ρ
    randomised = Guarantee.pure(max(math.sqrt(2 * rho), rho)) if rho < 0.1 else Guarantee.pure(rho)
    assert randomised.as_zcdp().rho <= rho * (1 + 1e-12)
    assert np.all(promise.delta(epsilon) >= randomised.delta(epsilon) * (1 - 1e-9))
    x = np.exp(np.minimum(epsilon, 40))
    slopes = np.diff(promise.delta(epsilon)) / np.diff(x) if epsilon[-1] < 40 else np.zeros(2)
    assert np.min(np.diff(slopes)) >= -1e-6 * np.max(np.abs(slopes))


def test_laplace_renyi_agrees_with_dp_accounting():
    from dp_accounting.rdp.rdp_privacy_accountant import _laplace_rdp

    for epsilon in (1e-3, 0.5, 4.0):
        for alpha in (1.05, 2.0, 17.0):
            assert Guarantee.laplace(epsilon).as_renyi(alpha).epsilon >= _laplace_rdp(epsilon, alpha) * (1 - 1e-12)
    assert Guarantee.laplace(1.0).as_renyi(3.0).epsilon == pytest.approx(_laplace_rdp(1.0, 3.0), rel=1e-12)


def exact_laplace_renyi(epsilon: float, alpha: float) -> mp.mpf:
    epsilon, alpha = mp.mpf(epsilon), mp.mpf(alpha)
    first, second = alpha * mp.exp((alpha - 1) * epsilon), (alpha - 1) * mp.exp(-alpha * epsilon)
    return mp.log((first + second) / (2 * alpha - 1)) / (alpha - 1)


def test_laplace_renyi_is_never_below_the_exact_one():
    """At ε = 3.73e−6, α = 293 it was low by 4.9e−13 of itself."""
    rng = np.random.default_rng(3)
    cases = [(10 ** rng.uniform(-9, 2.5), 1 + 10 ** rng.uniform(-6, 5)) for _ in range(500)]
    with mp.workdps(60):
        for epsilon, alpha in [(3.73e-6, 293.0), *cases]:
            ours, exact = Guarantee.laplace(epsilon).as_renyi(alpha).epsilon, exact_laplace_renyi(epsilon, alpha)
            assert exact <= ours <= exact * (1 + mp.mpf("1e-12"))


def test_readings_of_single_terms_are_the_budgets_conversions():
    assert Guarantee.pure(0.8).as_pure() == PureDP(0.8)
    assert Guarantee.pure(0.8).as_gaussian() == PureDP(0.8).as_gaussian()
    assert Guarantee.pure(0.8).as_zcdp() == PureDP(0.8).as_zcdp()
    assert Guarantee.pure(0.8).as_renyi(3.0) == PureDP(0.8).as_renyi(3.0)
    assert Guarantee.pure(0.8).as_approx(1e-3) == PureDP(0.8).as_approx(1e-3)
    assert Guarantee.gaussian(0.7).as_approx(1e-6) == GaussianDP(0.7).as_approx(1e-6)
    assert Guarantee.zcdp(0.2).as_approx(1e-6) == ZeroConcentratedDP(0.2).as_approx(1e-6)
    assert Guarantee.approx(0.8, 1e-6).as_approx(1e-6).epsilon == pytest.approx(0.8, rel=1e-12)


@pytest.mark.parametrize(
    ("promise", "reading"),
    [
        (Guarantee.gaussian(1.0), "as_pure"),
        (Guarantee.zcdp(1.0), "as_pure"),
        (Guarantee.zcdp(1.0), "as_gaussian"),
        (Guarantee.approx(1.0, 1e-6), "as_zcdp"),
        (Guarantee.profile(0.25, PROFILE), "as_gaussian"),
        (compose(Guarantee.pure(1.0), Guarantee.gaussian(1.0)), "as_pure"),
    ],
)
def test_readings_that_do_not_follow_are_refused(promise, reading):
    with pytest.raises(NotAvailableError, match="implies no"):
        getattr(promise, reading)()


def test_a_delta_below_what_is_known_has_no_epsilon():
    assert Guarantee.approx(1.0, 1e-6).epsilon(1e-7) == math.inf
    with pytest.raises(NotAvailableError, match="no finite ε"):
        Guarantee.approx(1.0, 1e-6).as_approx(1e-7)


def test_fits_answers_for_every_kind_of_budget():
    promise = Guarantee.gaussian(1.0)
    assert promise.fits(GaussianDP(1.0))
    assert not promise.fits(GaussianDP(0.999))
    assert promise.fits(ZeroConcentratedDP(0.5))
    assert promise.fits(RenyiDP(4.0, 2.0))
    assert not promise.fits(RenyiDP(4.0, 1.99))
    assert not promise.fits(PureDP(100.0))
    assert Guarantee.gaussian(mu_for(1.0, 1e-6)).fits(ApproxDP(1.0, 1e-6))
    assert not Guarantee.gaussian(mu_for(1.0, 1e-6) * 1.000001).fits(ApproxDP(1.0, 1e-6))
    assert Guarantee.pure(0.1).k_fold(10).fits(PureDP(1.0))
    assert Guarantee.gaussian(1 / math.sqrt(7)).k_fold(7).fits(GaussianDP(1.0))
    with pytest.raises(ArgumentError, match="budget must be"):
        promise.fits(1.0)


@pytest.mark.parametrize("name", ALL)
def test_json_comes_back_bit_for_bit(name):
    promise = ALL[name]
    text = promise.to_json()
    again = Guarantee.from_json(text)
    assert again == promise
    assert again.to_json() == text
    assert again.delta(0.37) == promise.delta(0.37)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "not json",
        None,
        '{"schema": 2, "adjacency": "replace-one", "unit": "person", "terms": []}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "person", "terms": []}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "person", "terms": {}}',
        '{"schema": 1, "adjacency": "other", "unit": "person", "terms": [{"kind": "pure", "epsilon": 1.0}]}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "", "terms": [{"kind": "pure", "epsilon": 1.0}]}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "person", "terms": [{"kind": "pure", "epsilon": -1.0}]}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "person", "terms": [{"kind": "pure", "epsilon": NaN}]}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "person", "terms": [{"kind": "pure", "mu": 1.0}]}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "person", "terms": [{"kind": "os.system", "epsilon": 1.0}]}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "a", "terms": [{"kind": "zcdp", "rho": 1, "count": 2.5}]}',
        '{"schema": 1, "adjacency": "replace-one", "unit": "person", "terms": ["pure"]}',
    ],
)
def test_malformed_json_is_refused(text):
    with pytest.raises(ArgumentError):
        Guarantee.from_json(text)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "x"])
def test_bad_parameters_are_refused(bad):
    for make in (
        Guarantee.pure,
        Guarantee.gaussian,
        Guarantee.zcdp,
        Guarantee.laplace,
        lambda v: Guarantee.approx(v, 1e-6),
    ):
        with pytest.raises(ArgumentError):
            make(bad)


def test_bad_questions_are_refused():
    promise = Guarantee.gaussian(1.0)
    for bad in (-1.0, math.nan, "x"):
        with pytest.raises(ArgumentError):
            promise.delta(bad)
    for bad in (0.0, 1.0, math.nan):
        with pytest.raises(ArgumentError):
            promise.epsilon(bad)
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(ArgumentError):
            promise.tradeoff(bad)
    for bad in (0, -1, 1.5):
        with pytest.raises(ArgumentError):
            promise.k_fold(bad)
    with pytest.raises(ArgumentError, match="do not increase"):
        Guarantee.profile(0.1, [0.1, 0.2])


def test_the_intrinsic_gaussian_is_kept_by_its_parameters_and_refused_where_no_bound_is_known():
    promise = Guarantee.riemannian_gaussian(Sphere(2, curvature=2.0), sigma=0.5, sensitivity=0.1)
    assert Guarantee.from_json(promise.to_json()) == promise
    with pytest.raises(NotAvailableError, match="wrapped"):
        Guarantee.riemannian_gaussian(SPD(3), sigma=0.5, sensitivity=0.1)


def test_an_intrinsic_gaussian_reads_through_its_profile():
    manifold = Sphere(2)
    promise = Guarantee.riemannian_gaussian(manifold, sigma=0.5, sensitivity=1.0)
    bound = RiemannianGaussianProfile(manifold, 0.5, 1.0)
    epsilon = np.array([0.0, 0.5, 3.0])
    assert np.array_equal(promise.delta(epsilon), bound.delta_upper(epsilon))
    assert round(promise.as_gaussian().mu, 5) == 1.91135
    assert promise.delta(1.0) <= delta_of_mu(promise.as_gaussian().mu, 1.0) * (1 + 1e-9)
