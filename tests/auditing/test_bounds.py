"""Bounds from attacks: valid whatever the scores, and sharp where the law is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from dpmanifolds import ArgumentError
from dpmanifolds.auditing import Claim, lower_bound, profile_bands
from dpmanifolds.auditing.bounds import upper_rate
from dpmanifolds.privacy import Guarantee


def test_clopper_pearson_is_scipys():
    for events, trials in ((0, 10), (3, 50), (49, 50), (50, 50)):
        interval = stats.binomtest(events, trials).proportion_ci(0.95, "exact")
        assert upper_rate(events, trials, 0.025) == pytest.approx(interval.high, rel=1e-12)


def test_implied_numbers_are_those_of_the_tradeoff_curves():
    """A test on the boundary of what a promise allows implies exactly that promise."""
    alpha = np.array([0.001, 0.05, 0.2])
    mu = Claim("μ", 1.0)
    assert mu.implied(alpha, special.ndtr(-special.ndtri(alpha) - 1.3)) == pytest.approx(1.3, rel=1e-10)
    pure = Claim("ε", 1.0)
    assert pure.implied(alpha, 1 - math.exp(0.8) * alpha) == pytest.approx(0.8, rel=1e-10)
    approx = Claim("ε", 1.0, delta=0.01)
    assert approx.implied(alpha, 1 - 0.01 - math.exp(0.8) * alpha) == pytest.approx(0.8, rel=1e-10)


def test_concentrated_claims_are_implied_by_no_more_than_the_gaussian_keeps():
    """N(μ,1) against N(0,1) is exactly μ²/2-zCDP: every threshold implies at most that, and the best a good part."""
    claim = Claim("√2ρ", 1.0)
    for mu in (0.2, 1.0, 2.0):
        thresholds = np.linspace(-4, 6, 400)
        implied = claim.implied(special.ndtr(-thresholds), special.ndtr(thresholds - mu))
        assert implied.max() <= mu * (1 + 1e-12)
        assert implied.max() > 0.78 * mu


def test_a_useless_attack_shows_nothing():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((2, 5000))
    for claim in (Claim("ε", 1.0), Claim("μ", 1.0), Claim("√2ρ", 1.0)):
        assert lower_bound(*scores, claim).value < 0.2


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", ["ε", "μ", "√2ρ"])
def test_the_bound_holds_in_95_of_100_repetitions(name):
    """300 audits of scores at the claim itself; more than 30 false alarms have a probability below 1e−4."""
    rng = np.random.default_rng(1)
    claim = Claim(name, 1.0)
    wrong = 0
    for _ in range(300):
        draw = rng.laplace if name == "ε" else rng.normal
        wrong += lower_bound(draw(1.0, size=1000), draw(0.0, size=1000), claim).value > 1.0
    assert wrong <= 30


def test_the_bound_is_the_same_from_both_sides():
    rng = np.random.default_rng(2)
    first, second = rng.exponential(size=20_000) + 1.0, rng.exponential(size=20_000)
    forward, backward = (lower_bound(*pair, Claim("ε", 1.0)).value for pair in ((first, second), (-second, -first)))
    assert forward == pytest.approx(backward, rel=1e-2)
    assert forward > 5


def test_the_bands_hold_the_true_profile():
    """Gaussian scores: the true δ(ε) lies between the bands at every ε, and the lower band is near it."""
    rng = np.random.default_rng(3)
    guarantee = Guarantee.gaussian(1.0)
    table = profile_bands(
        rng.normal(0.5, size=200_000), rng.normal(-0.5, size=200_000), guarantee, [0.0, 0.5, 1.0, 2.0]
    )
    assert np.all(table[:, 2] <= table[:, 4])
    assert np.all(table[:, 3] >= table[:, 4] - 2e-3)
    assert np.all(table[:3, 2] > 0.9 * table[:3, 4])


def test_the_bands_show_a_promise_that_is_30_percent_too_good():
    rng = np.random.default_rng(4)
    table = profile_bands(
        rng.normal(1.0, size=20_000), rng.normal(0.0, size=20_000), Guarantee.gaussian(0.7), np.linspace(0, 2, 9)
    )
    assert np.any(table[:, 2] > table[:, 4])


def test_low_order_bits_of_scores_decide_nothing():
    scores = np.zeros(2000), np.full(2000, 1e-9)
    assert lower_bound(*scores, Claim("ε", 1.0)).value == 0.0


@pytest.mark.parametrize("scores", [np.zeros(10), np.full(500, np.nan), np.zeros((500, 2))])
def test_scores_must_be_many_finite_numbers(scores):
    with pytest.raises(ArgumentError, match="at least 100 finite numbers"):
        lower_bound(scores, np.zeros(500), Claim("ε", 1.0))


def test_claims_are_read_off_the_guarantee():
    assert Claim.of(Guarantee.pure(0.5)) == Claim("ε", 0.5)
    assert Claim.of(Guarantee.gaussian(0.5)) == Claim("μ", 0.5)
    assert Claim.of(Guarantee.zcdp(0.5)).name == "√2ρ"
    mixed = Claim.of(Guarantee.approx(0.5, 1e-6))
    assert (mixed.name, mixed.delta) == ("ε", 1e-5)
    assert str(Claim.of(Guarantee.gaussian(1.0), delta=1e-3)).endswith("at δ = 0.001")
