"""Gaussian and Laplace noise on symmetric matrices: the right variances on and off the diagonal, exact integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import ArgumentError
from dpmanifolds.noise.exact import BitStream, draw_rounded
from dpmanifolds.noise.generators import as_generator
from dpmanifolds.noise.symmetric import SymmetricGaussian, SymmetricLaplace

SCALE = 2**30
ABOVE, DIAGONAL = np.triu_indices(3, 1), np.diag_indices(3)


def drawn(noise, count, seed):
    rng = np.random.default_rng(seed)
    zero = np.zeros((3, 3), dtype=object)
    found = np.stack([noise.release(zero, rng=rng) for _ in range(count)]).astype(float) / SCALE
    assert np.array_equal(found, found.swapaxes(1, 2))
    return found


def test_gaussian_noise_has_variance_one_on_the_diagonal_and_a_half_off_it():
    """χ² of 1200 numbers each: a false alarm has probability 1e−6, and 30 % less or more noise is rejected."""
    found = drawn(SymmetricGaussian(3, SCALE), 400, seed=1)
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 1200)
    for total in (np.sum(found[:, *DIAGONAL] ** 2), 2 * np.sum(found[:, *ABOVE] ** 2)):
        assert low < total < high
        assert total * 0.7**2 < low
        assert total * 1.3**2 > high


def test_laplace_noise_has_a_gamma_size_in_frobenius_norm_and_no_direction():
    """‖Y‖_F ~ Gamma(6): 600 of them add up to Gamma(3600). Given the size, each coordinate has a square of mean 1/6.

    Both at a false-alarm rate of 1e−6; squares over sizes have a variance below 1/36·2, so 5 errors are below 0.05.
    """
    found = drawn(SymmetricLaplace(3, SCALE), 600, seed=2)
    sizes = np.linalg.norm(found, axis=(1, 2))
    low, high = stats.gamma.ppf([5e-7, 1 - 5e-7], 3600)
    assert low < sizes.sum() < high
    assert sizes.sum() * 0.7 < low
    assert sizes.sum() * 1.3 > high
    directions = found / sizes[:, None, None]
    assert np.allclose(np.mean(directions[:, *DIAGONAL] ** 2, axis=0), 1 / 6, atol=0.05)
    assert np.allclose(np.mean(2 * directions[:, *ABOVE] ** 2, axis=0), 1 / 6, atol=0.05)


@pytest.mark.parametrize("radial", [False, True])
def test_halved_numbers_are_those_of_half_the_variance(radial):
    """The same bits: what is halved is round(y/√2) where the others are round(y), whatever precision it starts at."""
    for seed in range(5):
        plain = draw_rounded(7, Fraction(SCALE), BitStream(as_generator(seed)), radial=radial)
        for bits in (8, 128):
            halved = draw_rounded(7, Fraction(SCALE), BitStream(as_generator(seed)), radial=radial, bits=bits, halved=4)
            assert bits == 8 or halved[:3] == plain[:3]
            if bits == 128:
                assert np.allclose(halved[3:], np.array(plain[3:]) / math.sqrt(2), rtol=0, atol=1)


@pytest.mark.parametrize("law", [SymmetricGaussian, SymmetricLaplace])
def test_integers_of_any_size_keep_every_step(law):
    far = np.full((2, 2), 2**100, dtype=object)
    one, other = (law(2, 2.0**80).release(values, rng=3) for values in (far, far + 1))
    assert (other - one == 1).all()
    for values in (np.zeros((2, 2)), np.zeros(3, dtype=np.int64), np.array([[0, 1], [2, 0]])):
        with pytest.raises(ArgumentError, match="whole numbers"):
            law(2, 2.0**20).release(values)
    with pytest.raises(ArgumentError, match="sigma"):
        law(2, 0.0)


def test_the_spread_is_that_of_an_entry_off_the_diagonal():
    assert SymmetricGaussian(3, 2.0).spread == pytest.approx(math.sqrt(2))
    # one of six coordinates of the ℓ2-Laplace has the variance σ²·(6·7)/6
    assert SymmetricLaplace(3, 2.0).spread == pytest.approx(2 * math.sqrt(7 / 2))
