"""Exact draws from log-concave densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmanifolds.errors import ConvergenceError
from dpmanifolds.noise import LogConcaveSampler, uniform_directions

FALSE_ALARM = 1e-6
COUNT = 20_000
CASES = {
    "normal": (lambda x: -x * x / 2, lambda x: -x, {"mode": 0.1, "scale": 1.0, "lower": -math.inf}, stats.norm()),
    "far normal": (
        lambda x: -((x - 1e9) ** 2) / 2,
        lambda x: 1e9 - x,
        {"mode": 1e9, "scale": 1e9, "lower": -math.inf},
        stats.norm(1e9),
    ),
    "gamma": (lambda x: np.log(x) - x, lambda x: 1 / x - 1, {"mode": 1.0, "scale": 1e-20}, stats.gamma(2)),
    "gamma of 500": (
        lambda x: 499 * np.log(x / 499) - x,
        lambda x: 499 / x - 1,
        {"mode": 499.0, "scale": 1.0},
        stats.gamma(500),
    ),
    "exponential": (lambda x: -x, lambda x: -np.ones_like(x), {"mode": 0.0, "scale": 1e12}, stats.expon()),
    "uniform": (lambda x: 0 * x, lambda x: 0 * x, {"mode": 0.0, "scale": 1.0, "upper": 3.0}, stats.uniform(0, 3)),
    "beta": (
        lambda x: 2 * np.log(x) + 30 * np.log1p(-x),
        lambda x: 2 / x - 30 / (1 - x),
        {"mode": 1 / 16, "scale": 1.0, "upper": 1.0},
        stats.beta(3, 31),
    ),
    "rising": (
        lambda x: 1000 + 5 * x,
        lambda x: 0 * x + 5,
        {"mode": 1.0, "scale": 1.0, "upper": 1.0},
        stats.truncexpon(5, loc=0, scale=0.2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_draws_follow_the_density(name):
    log_density, derivative, options, law = CASES[name]
    sampler = LogConcaveSampler(log_density, derivative, **options)
    assert sampler.acceptance >= 0.95
    drawn = sampler.sample(COUNT, np.random.default_rng(1))
    if name == "rising":
        drawn = 1 - drawn
    assert stats.kstest(drawn, law.cdf).pvalue > FALSE_ALARM
    for factor in (0.7, 1.3):
        if name != "uniform" or factor > 1:
            centre = law.mean()
            assert stats.kstest(centre + factor * (drawn - centre), law.cdf).pvalue < FALSE_ALARM


def cells_p_value(drawn, cdf) -> float:
    """χ² over 200 cells of equal probability."""
    cells = np.minimum((cdf(drawn) * 200).astype(int), 199)
    return float(stats.chisquare(np.bincount(cells, minlength=200)).pvalue)


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("name", ["normal", "far normal", "gamma of 500", "beta"])
def test_draws_follow_the_density_so_finely_that_the_bare_hull_is_seen(name):
    """n = 500,000: proposals without the rejection step, 1.5 % off in total variation, fail the same test."""
    log_density, derivative, options, law = CASES[name]
    sampler = LogConcaveSampler(log_density, derivative, **options)
    assert cells_p_value(sampler.sample(500_000, np.random.default_rng(1)), law.cdf) > FALSE_ALARM
    with np.errstate(all="ignore"):
        proposals, _ = sampler.hull.propose(500_000, np.random.default_rng(1))
    assert cells_p_value(proposals, law.cdf) < FALSE_ALARM


def test_the_true_acceptance_is_at_least_the_stated_one():
    log_density, derivative, options, _ = CASES["normal"]
    calls = []

    def counted(x):
        calls.append(x.size)
        return log_density(x)

    sampler = LogConcaveSampler(counted, derivative, **options)
    calls.clear()
    sampler.sample(COUNT, np.random.default_rng(0))
    assert COUNT / sum(calls) >= sampler.acceptance - 5 / math.sqrt(COUNT)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(power=st.floats(0, 800), rate=st.floats(1e-8, 1e8), kink=st.floats(0, 50), seed=st.integers(0, 10**6))
def test_the_hull_lies_above_the_density_everywhere(power, rate, kink, seed):
    """For h = power·log x − rate·x − kink·x²: no draw and no point of a dense grid finds h above the raised hull."""
    bend = kink * rate * rate
    mode = power / rate if not bend else (math.sqrt(rate**2 + 8 * bend * power) - rate) / (4 * bend)

    def log_density(x):
        relative = power * np.log(x / mode) if power else 0.0
        return relative - (x - mode) * (rate + bend * (x + mode))

    def derivative(x):
        return (power / x if power else 0.0) - rate - 2 * bend * x

    if power and mode == 0:
        return
    sampler = LogConcaveSampler(log_density, derivative, mode=mode, scale=1 / rate)
    sampler.sample(2000, np.random.default_rng(seed))
    hull = sampler.hull
    grid = np.concatenate([mode * np.linspace(0.01, 10, 2000), np.linspace(0.01, 50, 500) / rate])
    points, values, slopes = hull.tangents
    piece = np.clip(np.searchsorted(hull.edges, grid, side="right") - 1, 0, points.size - 1)
    with np.errstate(divide="ignore"):
        above = values[piece] + slopes[piece] * (grid - points[piece]) + 1e-9 - log_density(grid)
    assert np.all(above >= 0)


def test_a_density_that_is_not_concave_is_refused():
    """(1 + x²)^−2 has heavier tails than any log-concave density; a wrong derivative is found as well."""
    heavy = {"mode": 0.0, "scale": 1.0, "lower": -math.inf}
    with pytest.raises(ConvergenceError):
        LogConcaveSampler(lambda x: -2 * np.log1p(x * x), lambda x: -4 * x / (1 + x * x), **heavy).sample(
            1000, np.random.default_rng(0)
        )
    with pytest.raises(ConvergenceError, match="derivative"):
        LogConcaveSampler(lambda x: -x * x / 2, lambda x: -1.1 * x, **heavy).sample(1000, np.random.default_rng(0))


def test_an_improper_density_is_refused():
    with pytest.raises(ConvergenceError):
        LogConcaveSampler(lambda x: 0 * x, lambda x: 0 * x, mode=1.0, scale=1.0)


def test_a_density_that_is_nowhere_finite_is_refused():
    with pytest.raises(ConvergenceError, match="not finite"):
        LogConcaveSampler(lambda x: x * math.nan, lambda x: x, mode=1.0, scale=1.0)


def test_no_draws_are_no_draws():
    log_density, derivative, options, _ = CASES["gamma"]
    assert LogConcaveSampler(log_density, derivative, **options).sample(0, np.random.default_rng(0)).shape == (0,)


def test_directions_are_unit_vectors_even_for_a_draw_of_zeros():
    class Zeros(np.random.Generator):
        def standard_normal(self, size=None):
            return np.zeros(size)

    assert np.array_equal(uniform_directions(2, 3, Zeros(np.random.PCG64(0))), [[1, 0, 0], [1, 0, 0]])
    ones = uniform_directions(1000, 1, np.random.default_rng(0))
    assert set(np.unique(ones)) == {-1.0, 1.0}
