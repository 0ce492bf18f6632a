"""Noise, steps and promise: any one from the other two, equal to the exact composition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpmanifolds import ApproxDP, ArgumentError, GaussianDP, NotAvailableError, PureDP, RenyiDP, ZeroConcentratedDP
from dpmanifolds.descent import plan_descent
from dpmanifolds.privacy import fixed_size_descent, poisson_descent

BUDGETS = [
    ApproxDP(1.0, 1e-6),
    ApproxDP(0.1, 1e-3),
    GaussianDP(0.5),
    ZeroConcentratedDP(0.1),
    RenyiDP(8.0, 0.5),
    PureDP(1.0),
]


@pytest.mark.parametrize(
    ("n", "steps", "clip", "sigma"), [(1000, 100, 1.0, 0.1), (50, 7, 3.0, 0.4), (10**6, 500, 0.2, 1e-5)]
)
def test_full_batch_promises_the_exact_gaussian_composition(n, steps, clip, sigma):
    guarantee = plan_descent(n=n, clip_norm=clip, steps=steps, sigma=sigma).guarantee
    mu = 2 * clip * math.sqrt(steps) / (n * sigma)
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert guarantee.delta(epsilon) == pytest.approx(exact, rel=1e-6, abs=1e-12)
        if exact > 1e-12:
            assert guarantee.epsilon(exact) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_noise_and_steps_solve_each_other_at_full_batch(budget):
    plan = plan_descent(n=5000, clip_norm=1.5, budget=budget, steps=60)
    assert plan.guarantee.fits(budget)
    assert not plan_descent(n=5000, clip_norm=1.5, steps=60, sigma=plan.sigma * (1 - 1e-9)).guarantee.fits(budget)
    assert plan_descent(n=5000, clip_norm=1.5, budget=budget, sigma=plan.sigma).steps == 60


@pytest.mark.grid
@pytest.mark.parametrize("sampling", ["poisson", "without-replacement"])
@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), RenyiDP(8.0, 0.5), GaussianDP(0.5)], ids=repr)
def test_random_batches_fit_the_budget_with_hardly_more_noise_than_needed(budget, sampling):
    settings = {"n": 500, "clip_norm": 1.0, "batch_size": 50, "sampling": sampling}
    plan = plan_descent(budget=budget, steps=10, **settings)
    assert plan.guarantee.fits(budget)
    assert not plan_descent(steps=10, sigma=plan.sigma * 0.999, **settings).guarantee.fits(budget)
    assert plan_descent(budget=budget, sigma=plan.sigma, **settings).steps in (10, 11)


def test_random_batches_promise_what_the_accountants_say():
    common = {"n": 5000, "steps": 40, "sigma": 0.1}
    plan = plan_descent(clip_norm=2.0, batch_size=100, **common)
    assert plan.guarantee == poisson_descent(rate=plan.rate, clip=2.0, **common)
    assert plan.rate <= 0.02
    assert plan.divisor == plan.rate * 5000
    fixed = plan_descent(clip_norm=2.0, batch_size=100, sampling="without-replacement", **common)
    assert fixed.guarantee == fixed_size_descent(batch=100, clip=2.0, **common)
    assert fixed.divisor == 100


def test_a_batch_of_everything_is_the_full_batch():
    full = plan_descent(n=100, clip_norm=1.0, steps=3, sigma=0.1)
    assert plan_descent(n=100, clip_norm=1.0, steps=3, sigma=0.1, batch_size=100).guarantee == full.guarantee


def test_the_rate_is_a_number_that_a_uniform_draw_can_hit():
    for size, n in ((1, 3), (7, 10**6), (999, 1000)):
        rate = plan_descent(n=n, clip_norm=1.0, steps=1, sigma=1.0, batch_size=size).rate
        assert rate * 2**53 == int(rate * 2**53)
        assert 0 < size / n - rate + 1e-300 <= 2.0**-52


def test_a_record_that_is_added_costs_half_of_one_that_is_replaced():
    for budget in (GaussianDP(1.0), PureDP(1.0), ApproxDP(1.0, 1e-6)):
        replaced, added = (
            plan_descent(n=100, clip_norm=1.0, steps=3, budget=budget, adjacency=adjacency)
            for adjacency in ("replace-one", "add-remove-one")
        )
        assert added.sigma == pytest.approx(replaced.sigma / 2)
        assert added.guarantee.adjacency == "add-remove-one"
        assert added.guarantee.fits(budget)
        assert float(added.sensitivity) == 0.01
    options = {"n": 100, "clip_norm": 1.0, "steps": 3, "sigma": 1.0, "batch_size": 10, "adjacency": "add-remove-one"}
    with pytest.raises(NotAvailableError, match="batch_size"):
        plan_descent(**options, sampling="without-replacement")


def test_a_step_on_a_poisson_batch_where_records_are_added_has_the_profile_of_a_mixture():
    """One step: δ(ε) of (1 − q)N(0, s²) + qN(1, s²) against N(0, s²), the worse direction, by quadrature."""
    n, size, noise, clip = 200, 40, 0.03, 2.0
    plan = plan_descent(n=n, clip_norm=clip, steps=1, sigma=noise, batch_size=size, adjacency="add-remove-one")
    assert plan.guarantee.adjacency == "add-remove-one"
    assert float(plan.sensitivity) == pytest.approx(clip / size)
    q, s = size / n, noise * size / clip

    def plain(y):
        return norm.pdf(y, 0, s)

    def mixed(y):
        return (1 - q) * plain(y) + q * norm.pdf(y, 1, s)

    y = np.linspace(-12 * s, 1 + 12 * s, 400_001)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        gaps = (mixed(y) - np.exp(epsilon) * plain(y), plain(y) - np.exp(epsilon) * mixed(y))
        truth = max(float(np.trapezoid(np.maximum(gap, 0.0), y)) for gap in gaps)
        assert truth <= plan.guarantee.delta(epsilon) * (1 + 1e-6)
        assert plan.guarantee.delta(epsilon) <= truth * (1 + 1e-3) + 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly two"),
        ({"steps": 3}, "exactly two"),
        ({"steps": 3, "sigma": 1.0, "budget": PureDP(1.0)}, "exactly two"),
        ({"steps": 0, "sigma": 1.0}, "steps must be at least 1"),
        ({"steps": 3, "sigma": 0.0}, "sigma must be finite and above 0"),
        ({"steps": 3, "sigma": 1.0, "clip_norm": 0.0}, "clip_norm must be finite and above 0"),
        ({"steps": 3, "sigma": 1.0, "batch_size": 101}, "at most the number of records"),
        ({"steps": 3, "budget": PureDP(1.0), "batch_size": 10}, "full batch"),
        ({"steps": 3, "budget": 1.0}, "budget must be"),
        ({"steps": 3, "sigma": 1.0, "sampling": "shuffle"}, "sampling must be one of"),
        ({"sigma": 1e-9, "budget": ApproxDP(1.0, 1e-6)}, "not even one step"),
        ({"sigma": 1e9, "budget": ApproxDP(1.0, 1e-6)}, "give steps instead"),
    ],
)
def test_what_makes_no_plan_is_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        plan_descent(**({"n": 100, "clip_norm": 1.0} | arguments))
