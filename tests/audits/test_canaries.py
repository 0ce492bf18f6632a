"""Descent audited in one run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from audits.canaries import audit_descent, one_run_bound
from dpmanifolds import ApproxDP, ArgumentError, PureDP

BUDGET = ApproxDP(4.0, 1e-5)


def test_one_run_shows_a_good_part_of_a_large_budget():
    report = audit_descent(BUDGET, steps=10, canaries=1000, rng=0)
    assert not report.flagged
    assert report.lower_bound > 0.25 * BUDGET.epsilon
    assert "promised" in str(report)


def test_a_fifth_of_the_noise_is_flagged():
    """400 guesses, all right, contradict up to ε = 4.9; a tenth of the canaries would not be enough to show 4."""
    kind = {"steps": 10, "canaries": 1000, "guesses": 400, "rng": 0}
    assert not audit_descent(BUDGET, **kind).flagged
    assert audit_descent(BUDGET, noise_factor=0.2, **kind).flagged


def test_without_delta_the_bound_is_that_of_a_coin():
    """The largest ε at which `correct` or more right guesses still have a probability of 5 %."""
    for correct, guesses in ((60, 80), (80, 80), (500, 700)):
        bound = one_run_bound(correct, guesses, guesses, 0.0)
        coin = 1 / (1 + math.exp(-bound))
        assert stats.binom.sf(correct - 1, guesses, coin) == pytest.approx(0.05, rel=1e-4)


def test_guesses_no_better_than_chance_show_nothing():
    assert one_run_bound(50, 100, 100, 0.0) == 0.0
    assert one_run_bound(0, 100, 1000, 1e-5) == 0.0
    assert one_run_bound(99, 100, 1000, 0.1) == 0.0


def test_randomised_response_is_contradicted_no_more_often_than_allowed():
    """Coins kept with probability e/(1 + e), exactly 1-DP: 2,000 runs at 95 %; over 160 in 1e−6 of cases."""
    rng = np.random.default_rng(0)
    counts, times = np.unique(rng.binomial(300, math.e / (1 + math.e), size=2000), return_counts=True)
    bounds = np.array([one_run_bound(int(each), 300, 300, 0.0) for each in counts])
    assert times[bounds > 1.0].sum() <= 160
    assert times @ bounds / 2000 > 0.7


def test_bad_arguments_are_told():
    with pytest.raises(ArgumentError, match="ApproxDP"):
        audit_descent(PureDP(1.0))
    with pytest.raises(ArgumentError, match="correct"):
        one_run_bound(11, 10, 100, 0.0)
