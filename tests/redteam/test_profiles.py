"""A few of the red team's comparisons in the default suite, and the red team itself put to the test."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from dpmanifolds.privacy import Guarantee, poisson_descent
from tests.redteam import truths
from tests.redteam.profiles import ADVERSARIAL, DIGITS, KINDS, Report, run
from tests.selection import thorough

B6 = [
    (2, 1.7, 0.3, "0.37864357138896"),
    (3, 2.0, 0.5, "0.30621162566"),
    (6, 2.0, 0.5, "0.170310587"),
    (6, 1.0, 0.2, "0.09417215361"),
    (21, 3.0, 0.5, "0.105169002822"),
    (21, 3.0, 1.0, "0.0262247909425"),
    (50, 4.0, 1.0, "0.0131569651312"),
]


@thorough("comparisons", 30, 120)
def test_no_promise_is_below_the_truth(comparisons):
    report = run(comparisons, seed=1)
    assert report.below == []
    assert sum(report.counts.values()) == comparisons + len(ADVERSARIAL)


@thorough("comparisons", 1, 3)
@pytest.mark.parametrize("name", KINDS)
def test_no_promise_of_any_kind_is_below_the_truth(name, comparisons):
    report = Report()
    for number in range(comparisons):
        with mp.workdps(DIGITS):
            report.add(name, number, KINDS[name][0](np.random.default_rng([2, number])), 0.0)
    assert report.below == []


def test_a_promise_that_is_a_little_too_small_is_found(monkeypatch):
    honest = Guarantee.delta
    monkeypatch.setattr(Guarantee, "delta", lambda self, epsilon: honest(self, epsilon) * (1 - 1e-6))
    assert len(run(60, seed=3).below) > 10


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize(("dim", "shift", "epsilon", "delta"), B6)
def test_the_truth_of_l2_laplace_noise_is_the_table_of_the_design(dim, shift, epsilon, delta):
    with mp.workdps(DIGITS):
        truth = truths.l2_laplace_delta(dim, shift, epsilon)
        assert mp.nstr(truth, len(delta.lstrip("0."))) == delta
        assert Guarantee.l2_laplace(shift, dim).delta(epsilon) >= truth


def test_truths_of_two_releases_agree_with_what_is_known():
    with mp.workdps(DIGITS):
        for noise, epsilon in ((1.3, 0.7), (3.0, 0.1)):
            both = truths.gaussian_delta(2 * math.sqrt(2) / noise, epsilon)
            twice = truths.sampled_gaussian_twice_delta("fixed-size", 1.0, noise, epsilon)
            assert abs(twice / both - 1) < mp.mpf("1e-13")
        fine = truths.composed_loss_delta([truths.discrete_laplace_losses(40.0, 40)[0]] * 2, mp.mpf(1) / 40, 0.8)
        assert abs(truths.laplace_twice_delta(1.0, 0.8) / fine - 1) < mp.mpf("1e-3")
        one = truths.sampled_gaussian_delta("poisson", 0.2, 1.0, 0.3)
        assert one < truths.sampled_gaussian_twice_delta("poisson", 0.2, 1.0, 0.3) < 2 * one + mp.mpf("0.1")


@pytest.mark.long
def test_which_side_is_right_where_dp_accounting_and_we_disagree():
    """Rate 1e−4, noise 0.7, 10,000 steps, δ = 1e−12: dp-accounting 0.6.0 says ε = 1.591 on its default grid, we 1.706.

    Telling of every step only in which of a few cells its outcome lies, and of those no more than two, already has
    δ ≥ 1.6e−12 at ε = 1.591, in mpmath: that ε is too low. Ours allows 2.01e−12 there. On other processors
    dp-accounting says 1.709 (its δ is at the level of its rounding), so that its number is written out here.
    """
    theirs = 1.591
    ours = poisson_descent(n=10_000, rate=1e-4, steps=10_000, clip=1.0, sigma=0.7)
    with mp.workdps(DIGITS):
        least = truths.rare_events_delta(1e-4, 0.7, 10_000, theirs, np.arange(3.5, 7.5, 0.25), most=2)
        assert 1.6e-12 < least <= ours.delta(theirs) < 2.02e-12
    assert round(ours.epsilon(1e-12), 3) == 1.706
