"""Discrete noise through OpenDP and through the reference samplers."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import LatticeGaussian, LatticeLaplace
from dpmanifolds.noise.exact import BitStream
from dpmanifolds.noise.lattice import bernoulli_exp
from dpmanifolds.privacy import ApproxDP, Guarantee, affordable_rho, gaussian_sigma, largest_affordable
from tests.noise.exact_laws import CERTAIN, FALSE_ALARM, discrete_cells, fit

COUNT = 12_000
NUMERICS = Path(__file__).parents[2] / "docs" / "proofs" / "numerics.md"
BUDGETS = [(0.1, 1e-5), (1.0, 1e-5), (1.0, 1e-6), (4.0, 1e-6), (10.0, 1e-9)]


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("rng", [None, 5], ids=["OpenDP", "reference"])
@pytest.mark.parametrize(("kind", "power"), [(LatticeGaussian, 2), (LatticeLaplace, 1)])
@pytest.mark.parametrize("scale", [0.7, 1.3, 3.7])
def test_draws_have_the_discrete_law(kind, power, scale, rng):
    """12,000 coordinates, chi-square against the exact mass; scales off by 30 % have p < 1e−12.

    OpenDP takes no seed. With cells of 20 expected draws, p < 1e−8 is likelier than it says: at most 4e−7 over its six
    cases together.
    """
    draws = kind(COUNT, scale).release(np.zeros(COUNT, dtype=int), rng)
    assert fit(draws, *discrete_cells(200, scale, power)) > 1e-8
    for wrong in (0.7, 1.3):
        assert fit(draws, *discrete_cells(200, wrong * scale, power)) < CERTAIN


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("rng", [None, 5], ids=["OpenDP", "reference"])
@pytest.mark.parametrize(("kind", "law"), [(LatticeGaussian, stats.norm), (LatticeLaplace, stats.laplace)])
def test_on_a_fine_lattice_draws_look_continuous(kind, law, rng):
    """20,000 coordinates at scale 2^30, Kolmogorov–Smirnov, false alarm 1e−7."""
    draws = kind(20_000, 2.0**30).release(np.zeros(20_000, dtype=int), rng) / 2**30
    assert stats.kstest(draws, law.cdf).pvalue > FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert stats.kstest(wrong * draws, law.cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_coins_of_exponential_probability_fall_as_often_as_they_should(exponent):
    """20,000 tosses, exact binomial test, false alarm 1e−7."""
    source = BitStream(np.random.default_rng(2))
    heads = sum(bernoulli_exp(exponent.numerator, exponent.denominator, source) for _ in range(20_000))
    assert stats.binomtest(heads, 20_000, math.exp(-exponent)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [0.3, 3.7, 2.0**30, 2.0**30 + 0.5])
@pytest.mark.parametrize("steps", [0.0, 1.0, 2.5, 1e6])
def test_the_privacy_maps_are_the_formulas_rounded_up(scale, steps):
    rho, epsilon = Fraction(steps) ** 2 / (2 * Fraction(scale) ** 2), Fraction(steps) / Fraction(scale)
    for promise, exact in [
        (LatticeGaussian(4, scale).rho(steps), rho),
        (LatticeLaplace(4, scale).epsilon(steps), epsilon),
    ]:
        assert exact <= promise <= exact * (1 + Fraction(1, 2**48))


def test_a_sensitivity_between_two_floats_is_rounded_up():
    assert LatticeLaplace(1, 1.0).epsilon(2**53 + 1) >= 2**53 + 2


@pytest.mark.parametrize("kind", [LatticeGaussian, LatticeLaplace])
@pytest.mark.parametrize("rng", [None, 5], ids=["OpenDP", "reference"])
def test_sums_beyond_int64_stop_at_its_ends(kind, rng):
    for end in (2**63 - 1, -(2**63)):
        released = kind(200, 2.0**40).release(np.full(200, end), rng)
        assert np.count_nonzero(released == end) > 50
        assert np.all(np.abs(released.astype(float)) > 2.0**62)


@pytest.mark.parametrize("kind", [LatticeGaussian, LatticeLaplace])
def test_values_are_kept_and_only_a_seed_repeats_a_draw(kind):
    noise, values = kind(3, 2.0**20), np.array([5, -7, 2**40])
    assert np.array_equal(noise.release(values, 1), values + noise.release([0, 0, 0], 1))
    assert np.max(np.abs(noise.release(values) - values)) < 2**28
    assert not np.array_equal(noise.release(values), noise.release(values))


def test_the_opt_in_of_opendp_is_left_as_it_was():
    from opendp.mod import GLOBAL_FEATURES

    before = set(GLOBAL_FEATURES)
    LatticeGaussian(np.int64(2), np.float64(1.25)).rho(1.0)
    LatticeLaplace(2, 1.25).epsilon(1.0)
    assert before == GLOBAL_FEATURES


@pytest.mark.parametrize("kind", [LatticeGaussian, LatticeLaplace])
@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), 2.0**53, Fraction(1, 3), None])
def test_a_scale_that_opendp_cannot_take_exactly_is_refused(kind, scale):
    with pytest.raises(ArgumentError, match="sigma must be"):
        kind(3, scale)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1, 2, 3], [2**63, 0]])
def test_values_that_are_not_int64_of_the_right_length_are_refused(values):
    with pytest.raises(ArgumentError, match="values must"):
        LatticeGaussian(2, 1.0).release(values)


@pytest.mark.parametrize("steps", [-1.0, float("inf"), float("nan")])
def test_a_sensitivity_that_is_negative_or_infinite_is_refused(steps):
    with pytest.raises(ArgumentError, match="l2_steps must"):
        LatticeGaussian(2, 1.0).rho(steps)
    with pytest.raises(ArgumentError, match="l1_steps must"):
        LatticeLaplace(2, 1.0).epsilon(steps)


def test_the_discrete_gaussian_is_not_gaussian_dp():
    _, masses = discrete_cells(30, 0.5, 2)
    variation = np.sum(np.abs(np.diff(masses))) / 2
    allowed = 2 * stats.norm.cdf(1 / (2 * 0.5)) - 1
    assert round(variation, 4) == 0.7866
    assert round(allowed, 4) == 0.6827


@pytest.mark.long
def test_the_price_of_the_lattice_is_the_table_of_the_proof_page():
    """Prints the table of docs/proofs/numerics.md (pytest -s): σ of the lattice, and what zCDP alone would ask for."""
    lines = []
    for epsilon, delta in BUDGETS:
        budget = ApproxDP(epsilon, delta)
        rounded, by_zcdp = gaussian_sigma(1.0, epsilon, delta), 1 / math.sqrt(2 * affordable_rho(budget))
        ratio = largest_affordable(lambda mu: Guarantee.discrete_gaussian(2.0**30 * mu, 2.0**30, 3), budget)
        assert 1 / ratio == pytest.approx(rounded, rel=1e-12)
        assert 1.0 <= by_zcdp / rounded <= 1.25
        lines.append(
            f"| {epsilon:g} | {delta:g} | {rounded:.4f} | {1 / ratio:.4f} | {by_zcdp:.4f} | {by_zcdp / rounded:.3f} |"
        )
    print("\n".join(["", *lines]))
    page = NUMERICS.read_text(encoding="utf-8")
    assert all(line in page for line in lines)
