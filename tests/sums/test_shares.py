"""Shares of noise: their sum against an exact convolution, the bound where aliasing shows, and where it is false."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmanifolds.errors import ArgumentError, ScaleOutOfRangeError
from dpmanifolds.sums.shares import NoiseShares, calibrate_shares, center_residues
from tests.selection import thorough

REACH = 14
"""Masses are worked out up to so many deviations of a share, in 60 digits."""


@cache
def rounded_masses(sigma: float) -> dict[int, mpmath.mpf]:
    """P(round(N(0, σ²)) = j), by an independent library, in 60 digits."""
    with mpmath.workdps(60):
        last = math.ceil(REACH * sigma) + 1
        below = [mpmath.ncdf((mpmath.mpf(j) - mpmath.mpf("0.5")) / mpmath.mpf(sigma)) for j in range(-last, last + 2)]
        return {j: below[j + last + 1] - below[j + last] for j in range(-last, last + 1)}


@cache
def sum_of_shares(sigma: float, parties: int) -> dict[int, mpmath.mpf]:
    """The law of the sum of so many shares, by convolution."""
    one = rounded_masses(sigma)
    if parties == 1:
        return one
    before = sum_of_shares(sigma, parties - 1)
    with mpmath.workdps(60):
        ends = max(one) + max(before)
        return {
            z: mpmath.fsum(mass * before[z - j] for j, mass in one.items() if z - j in before)
            for z in range(-ends, ends + 1)
        }


def pooled_mass(sigma: float, parties: int, z: int) -> mpmath.mpf:
    """The mass at z of round(N(0, kσ²) + k − 1 uniforms): the density of N + k uniforms there, as a k-th difference.

    The k-th central difference of the k-fold integral of the Gaussian density.
    """
    scale = mpmath.mpf(sigma) * mpmath.sqrt(parties)

    def integrated(x: mpmath.mpf) -> mpmath.mpf:
        # E (x − N)₊^{k−1} / (k − 1)!, by the recursion of truncated moments
        y = x / scale
        moments = [mpmath.ncdf(y), mpmath.npdf(y) + y * mpmath.ncdf(y)]
        for i in range(2, parties):
            moments.append(y * moments[-1] + (i - 1) * moments[-2])
        return scale ** (parties - 1) * moments[parties - 1] / mpmath.factorial(parties - 1)

    half = mpmath.mpf(parties) / 2
    return mpmath.fsum((-1) ** j * mpmath.binomial(parties, j) * integrated(z + half - j) for j in range(parties + 1))


@pytest.mark.parametrize("sigma", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("parties", [2, 3, 5])
def test_the_sum_is_the_pooled_gaussian_up_to_the_factors_of_the_theorem(sigma, parties):
    """Where the aliasing can be seen: the relative error is there, and within the bound at every integer."""
    law, bound = sum_of_shares(sigma, parties), (1 - 3 * math.exp(-(math.pi**2) * sigma**2)) ** (1 - parties)
    with mpmath.workdps(60):
        ratios = [law[z] / pooled_mass(sigma, parties, z) for z in range(-math.ceil(5 * sigma * parties**0.5), 1)]
        assert max(ratios) <= bound
        assert min(ratios) >= 1 / bound
        # it shows: of two shares, where fewest uniforms smooth it, a twentieth or more of what is charged
        assert parties > 2 or max(max(ratios) - 1, 1 - min(ratios)) > 0.15 * math.exp(-(math.pi**2) * sigma**2)


def exact_delta(law: dict[int, mpmath.mpf], moved: int, epsilon: float) -> float:
    with mpmath.workdps(60):
        factor = mpmath.exp(epsilon)
        gains = (mass - factor * law.get(z - moved, mpmath.mpf(0)) for z, mass in law.items())
        return float(mpmath.fsum(gain for gain in gains if gain > 0))


def gaussian_delta(mu: float, epsilon: float) -> float:
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2))


@pytest.mark.parametrize("sigma", [0.5, 1.0])
@pytest.mark.parametrize("parties", [2, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5, 3.0])
def test_the_promise_of_the_sum_holds_for_its_exact_law(sigma, parties, epsilon):
    """δ(ε) of the convolution against that of the claimed μ, and against e^η·δ_μ(ε − 2η)."""
    shares, law = NoiseShares(parties, 0, sigma, dim=1), sum_of_shares(sigma, parties)
    for moved in (1, 2, 3):
        found = exact_delta(law, moved, epsilon)
        assert found <= gaussian_delta(shares.mu(moved), epsilon)
        plain, eta = moved / (sigma * math.sqrt(parties)), shares.eta()
        assert found <= math.exp(eta) * gaussian_delta(plain, epsilon - 2 * eta)


def test_tiny_shares_do_not_add_up_to_a_gaussian_and_are_refused():
    """Eight shares of a quarter step: moved by one step, δ is a million times what a Gaussian would have."""
    law, mu = sum_of_shares(0.25, 8), 1 / (0.25 * math.sqrt(8))
    assert exact_delta(law, 1, 12.0) > 100 * gaussian_delta(mu, 12.0)
    assert exact_delta(law, 1, 14.0) > 1e6 * gaussian_delta(mu, 14.0)
    with pytest.raises(ScaleOutOfRangeError, match="finer lattice"):
        NoiseShares(8, 0, 0.25, dim=1)
    with pytest.raises(ScaleOutOfRangeError):
        NoiseShares(8, 0, 0.6, dim=3, halved=1)


@pytest.mark.parametrize(("parties", "tolerated"), [(1, 0), (2, 0), (5, 1), (64, 0), (64, 20)])
@pytest.mark.parametrize("mu", [1e-4, 0.5, 3.0])
def test_calibrated_shares_keep_the_budget_and_are_no_larger_than_needed(parties, tolerated, mu):
    shares = calibrate_shares(moved=2**30, mu=mu, parties=parties, tolerated=tolerated, dim=100)
    assert shares.mu(2**30) <= mu
    whole = Fraction(shares.sigma) ** 2 * (parties - tolerated)
    assert whole >= Fraction(2**60) / Fraction(mu) ** 2
    assert whole <= Fraction(2**60) / Fraction(mu) ** 2 * (1 + Fraction(1, 2**40))


def test_fewer_shares_than_needed_promise_less_and_more_promise_no_less():
    shares = calibrate_shares(moved=2**20, mu=1.0, parties=8, tolerated=2, dim=3)
    assert shares.mu(2**20, 5) > 1.05
    assert shares.mu(2**20, 8) < shares.mu(2**20, 7) < shares.mu(2**20, 6) <= 1.0
    coarse = NoiseShares(40, 39, 0.5, dim=50)
    assert coarse.mu(1, 40) <= coarse.mu(1, 1)  # aliases of many small shares never make more noise worse


@thorough("draws", 4000, 40000)
def test_what_is_drawn_has_the_law_of_the_convolution(draws):
    """Sums of three shares of 1 and 1/√2 steps: chi-square, false alarms 1e−7; 30 % less noise fails."""
    shares, rng = NoiseShares(3, 0, 1.0, dim=2, halved=1), np.random.default_rng(5)
    drawn = np.array([np.sum([shares.draw(rng) for _ in range(3)], axis=0) for _ in range(draws)])
    for column, sigma in ((0, 1.0), (1, float(1 / np.sqrt(2)))):
        assert fits(drawn[:, column], sum_of_shares(sigma, 3)) > 1e-7
        assert fits(drawn[:, column], sum_of_shares(0.7 * sigma, 3)) < 1e-7
        assert fits(drawn[:, column], sum_of_shares(1.3 * sigma, 3)) < 1e-7


def fits(numbers: np.ndarray, law: dict[int, mpmath.mpf]) -> float:
    cells = np.array([z for z, mass in law.items() if mass * len(numbers) > 8])
    masses = np.array([float(law[int(z)]) for z in cells])
    counts = np.array([np.sum(numbers == z) for z in cells])
    expected, seen = np.append(masses, 1 - masses.sum()), np.append(counts, len(numbers) - counts.sum())
    return float(stats.chi2.sf(np.sum((seen - expected * len(numbers)) ** 2 / (expected * len(numbers))), len(cells)))


def test_residues_are_read_as_the_numbers_they_stand_for():
    numbers = [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63)]
    assert center_residues([number % 2**64 for number in numbers], 2**64) == numbers


@pytest.mark.parametrize("bits", [5, 6, 7])
def test_the_chance_of_a_misread_sum_is_within_its_bound(bits):
    """Against the exact law of three shares of 4 steps on a sum of up to 3; at most thirty times too cautious."""
    shares, law = NoiseShares(3, 0, 4.0, dim=1), sum_of_shares(4.0, 3)
    half = 2 ** (bits - 1)
    missed = float(mpmath.fsum(mass for z, mass in law.items() if not -half <= z + 3 < half))
    bound = shares.overflow_probability(bits, 3)
    assert missed <= bound <= 30 * missed + 1e-300


def test_a_sum_that_has_no_room_is_told():
    shares = NoiseShares(3, 0, 4.0, dim=1)
    assert shares.overflow_probability(8, 200) == 1.0
    assert 0 < shares.overflow_probability(64, 2**40) < 1e-300


def test_wrong_shares_are_refused():
    for wrong in ({"parties": 0}, {"tolerated": 3}, {"tolerated": -1}, {"dim": 0}, {"sigma": math.nan}):
        with pytest.raises(ArgumentError):
            NoiseShares(**({"parties": 3, "tolerated": 1, "sigma": 4.0, "dim": 2} | wrong))
