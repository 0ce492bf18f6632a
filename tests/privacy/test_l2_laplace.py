"""ℓ2-Laplace noise in R^d as a term: MATH.md's values, mpmath, draws, readings, calibration and composition."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import (
    ApproxDP,
    GaussianDP,
    Guarantee,
    PureDP,
    affordable_mu,
    affordable_shift,
    compose,
    delta_of_mu,
    mu_of_pure,
)

VALUES = [
    (2, 1.7, 0.3, 0.37864357138896, 1e-13),
    (3, 2.0, 0.5, 0.30621162566, 1e-11),
    (6, 2.0, 0.5, 0.170310587, 1e-8),
    (6, 1.0, 0.2, 0.09417215361, 1e-10),
    (21, 3.0, 0.5, 0.105169002822, 1e-11),
    (21, 3.0, 1.0, 0.0262247909425, 1e-11),
    (50, 4.0, 1.0, 0.0131569651312, 1e-11),
]


@pytest.mark.parametrize(("dim", "shift", "epsilon", "delta", "digits"), VALUES)
def test_values_of_the_design(dim, shift, epsilon, delta, digits):
    assert Guarantee.l2_laplace(shift, dim).delta(epsilon) == pytest.approx(delta, rel=digits)


def bessel(order: mp.mpf, z: mp.mpf) -> mp.mpf:
    """The inner integral of MATH.md B6: Γ(ν + ½)/√π·(2/z)^ν·K_ν(z)."""
    return mp.gamma(order + mp.mpf(1) / 2) / mp.sqrt(mp.pi) * (2 / z) ** order * mp.besselk(order, z)


def exact_delta(dim: int, shift: float, epsilon: float) -> mp.mpf:
    """MATH.md B6 with the inner integral by Bessel functions of 40 digits, the outer by mpmath in w = sin φ."""
    a, e, z, nu = mp.mpf(shift), mp.mpf(epsilon), mp.mpf(shift) / 2, mp.mpf(dim - 2) / 2
    near, far = bessel(nu, z), bessel(nu + 1, z)
    c = z**dim * mp.gamma(mp.mpf(dim) / 2) / (mp.sqrt(mp.pi) * mp.gamma(dim) * mp.gamma(mp.mpf(dim - 1) / 2))

    def density(phi: mp.mpf) -> mp.mpf:
        loss = a * mp.sin(phi)
        return mp.cos(phi) ** (dim - 2) * (far + near * mp.cos(phi) ** 2) * mp.exp(loss / 2) * (1 - mp.exp(e - loss))

    low = mp.asin(e / a)
    return c * mp.quad(density, [low + (mp.pi / 2 - low) * mp.mpf(k) / 12 for k in range(13)])


@pytest.mark.long
@pytest.mark.parametrize("seed", [4, *(pytest.param(seed, marks=pytest.mark.long) for seed in (5, 6, 7, 8))])
def test_delta_is_above_mpmath_by_little(seed):
    rng = np.random.default_rng(seed)
    with mp.workdps(40):
        for _ in range(2):
            dim, shift = int(np.exp(rng.uniform(math.log(2), math.log(200)))), float(np.exp(rng.uniform(-4, 3.5)))
            epsilon = shift * (1 - 10 ** rng.uniform(-4, 0))
            exact, bound = exact_delta(dim, shift, epsilon), Guarantee.l2_laplace(shift, dim).delta(epsilon)
            assert exact <= bound
            assert bound <= exact * (1 + mp.mpf("1e-9")) or bound < 1e-250


def test_the_two_dimensional_integral_of_the_design_gives_the_same():
    dim, shift, epsilon = 6, 2.0, 0.5
    x, weights = np.polynomial.legendre.leggauss(300)
    w = epsilon / shift + (1 - epsilon / shift) * np.sin((x + 1) * math.pi / 4) ** 2
    dw = weights * (1 - epsilon / shift) * np.sin((x + 1) * math.pi / 2) * math.pi / 4
    y = (x + 1) / 2 * 9
    u, du = (1 + y * y)[:, None], (9 * y * weights)[:, None]
    inner = (u * u - w * w) * ((u * u - 1) * (1 - w * w)) ** ((dim - 3) / 2) * np.exp(-shift * (u - w) / 2)
    scale = (
        (shift / 2) ** dim * math.gamma(dim / 2) / (math.sqrt(math.pi) * math.gamma(dim) * math.gamma((dim - 1) / 2))
    )
    value = scale * float(np.sum(inner * -np.expm1(epsilon - shift * w) * dw * du))
    assert Guarantee.l2_laplace(shift, dim).delta(epsilon) == pytest.approx(value, rel=1e-9)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("dim", "shift"), [(2, 0.5), (3, 2.0), (21, 3.0), (100, 5.0)])
def test_delta_agrees_with_draws(dim, shift):
    # 200,000 terms in [0, 1]: Hoeffding at level 1e−7; a shift larger by 30 % is rejected
    rng, count = np.random.default_rng(8), 200_000
    direction = rng.normal(size=(count, dim))
    y = rng.gamma(dim, size=(count, 1)) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    other = y.copy()
    other[:, 0] -= shift
    loss = np.linalg.norm(other, axis=1) - np.linalg.norm(y, axis=1)
    radius = math.sqrt(math.log(2e7) / (2 * count))
    estimate = float(np.mean(np.maximum(-np.expm1(-loss), 0)))
    assert abs(Guarantee.l2_laplace(shift, dim).delta(0.0) - estimate) < radius
    assert abs(Guarantee.l2_laplace(1.3 * shift, dim).delta(0.0) - estimate) > radius


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize(("dim", "shift"), [(2, 0.3), (3, 2.0), (6, 1.0), (21, 3.0), (100, 6.0), (1000, 2.0)])
def test_readings_are_bounds_and_better_than_those_of_the_pure_epsilon(dim, shift):
    promise = Guarantee.l2_laplace(shift, dim)
    mu = promise.as_gaussian().mu
    at = np.linspace(0, 0.999 * shift, 60)
    assert promise.as_pure() == PureDP(shift)
    assert np.all(promise.delta(at) <= delta_of_mu(mu, at) * (1 + 1e-9))
    assert np.any(promise.delta(at) > delta_of_mu(0.999 * mu, at))
    assert mu < 0.97 * mu_of_pure(shift)
    assert promise.as_zcdp().rho <= mu * mu / 2 * (1 + 1e-12)
    for alpha in (1.5, 4.0, 30.0):
        renyi = promise.as_renyi(alpha).epsilon
        assert renyi <= min(PureDP(shift).as_renyi(alpha).epsilon, promise.as_zcdp().rho * alpha) * (1 + 1e-12)


def test_renyi_agrees_with_the_density_of_the_loss():
    dim, shift, alpha = 6, 2.0, 5.0
    phi = np.linspace(-math.pi / 2, math.pi / 2, 200_001)
    weights = np.exp(shift * np.sin(phi) / 2) * np.cos(phi) ** (dim - 2)
    near, far = (float(bessel(mp.mpf(dim - 2) / 2 + more, mp.mpf(shift) / 2)) for more in (0, 1))
    weights *= far + near * np.cos(phi) ** 2
    exact = math.log(float(np.sum(weights * np.exp((alpha - 1) * shift * np.sin(phi))) / np.sum(weights))) / (alpha - 1)
    renyi = Guarantee.l2_laplace(shift, dim).as_renyi(alpha).epsilon
    assert exact * (1 - 1e-9) <= renyi <= exact * (1 + 1e-7)


@pytest.mark.parametrize(
    ("epsilon", "dim", "shift"),
    [
        (1.0, 2, 1.000181),
        (1.0, 3, 1.001634),
        (1.0, 6, 1.024947),
        (1.0, 10, 1.091191),
        (1.0, 21, 1.314028),
        (1.0, 36, 1.592108),
        (3.0, 21, 3.734780),
    ],
)
def test_calibration_of_the_design(epsilon, dim, shift):
    budget = ApproxDP(epsilon, 1e-6)
    afforded = affordable_shift(budget, dim)
    assert afforded == pytest.approx(shift, abs=1e-6)
    assert Guarantee.l2_laplace(afforded, dim).fits(budget, strict=True)
    assert not Guarantee.l2_laplace(afforded * (1 + 1e-9), dim).fits(budget)


def test_calibration_to_other_kinds_of_budget():
    assert affordable_shift(PureDP(0.7), 5) == 0.7
    shift = affordable_shift(GaussianDP(0.5), 21)
    assert Guarantee.l2_laplace(shift, 21).as_gaussian().mu <= 0.5
    assert Guarantee.l2_laplace(shift * 1.0001, 21).as_gaussian().mu > 0.5
    # noise of mean length dσ against √d·σ of the Gaussian, at (1, 1e−6) and d = 21: 1.20 times less error
    gaussian = math.sqrt(21) / affordable_mu(ApproxDP(1.0, 1e-6))
    laplace = min(21.0, 21 / affordable_shift(ApproxDP(1.0, 1e-6), 21))
    assert min(gaussian, 21.0) / laplace == pytest.approx(1.20, abs=0.02)


def test_delta_grows_with_the_shift():
    at = np.array([0.0, 0.2, 0.5])
    rows = [Guarantee.l2_laplace(shift, 7).delta(at) for shift in (0.6, 0.8, 1.1, 2.0, 5.0)]
    assert np.all(np.diff(rows, axis=0) > 0)


def test_many_releases_lose_far_less_than_their_pure_epsilons():
    many = Guarantee.l2_laplace(0.5, 21).k_fold(20)
    pure = Guarantee.pure(0.5).k_fold(20)
    assert many.epsilon(1e-6) < 0.5 * pure.epsilon(1e-6)
    # and nearly what their μ says, from below
    assert many.epsilon(1e-6) <= many.as_gaussian().as_approx(1e-6).epsilon
    mixed = compose(Guarantee.l2_laplace(0.5, 21), Guarantee.gaussian(0.3))
    assert mixed.epsilon(1e-6) < compose(Guarantee.pure(0.5), Guarantee.gaussian(0.3)).epsilon(1e-6)


def test_composition_agrees_with_simulated_losses():
    """400,000 sums of five losses; Hoeffding at level 1e−7."""
    rng, count, dim, shift = np.random.default_rng(9), 400_000, 6, 0.8
    total = np.zeros(count)
    for _ in range(5):
        direction = rng.normal(size=(count, dim))
        y = rng.gamma(dim, size=(count, 1)) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        other = y.copy()
        other[:, 0] -= shift
        total += np.linalg.norm(other, axis=1) - np.linalg.norm(y, axis=1)
    radius = math.sqrt(math.log(2e7) / (2 * count))
    promise = Guarantee.l2_laplace(shift, dim).k_fold(5)
    for at in (0.0, 0.5, 1.0):
        assert abs(promise.delta(at) - float(np.mean(np.maximum(-np.expm1(at - total), 0)))) < radius


def test_the_term_comes_back_from_json_and_the_line_is_the_ordinary_laplace():
    promise = Guarantee.l2_laplace(0.7, 9).k_fold(3)
    assert Guarantee.from_json(promise.to_json()) == promise
    assert Guarantee.l2_laplace(0.7, 1) == Guarantee.laplace(0.7)
    for bad in ((0.0, 3), (-1.0, 3), (math.nan, 3), (1.0, 0), (1.0, 1.5), (1e4, 3)):
        with pytest.raises(ArgumentError):
            Guarantee.l2_laplace(*bad)
