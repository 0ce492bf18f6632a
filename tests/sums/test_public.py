"""What a public sample is made into: axes that are best, errors that are foretold, and samples that are off."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from dpmanifolds import ArgumentError, PlanarShapes
from dpmanifolds.domains.axes import nearest_in_ellipsoid
from dpmanifolds.noise.norms import GaussianNorm, LaplaceNorm
from dpmanifolds.sums.noise_lengths import noise_lengths
from dpmanifolds.sums.public import Spectrum, axes_for_spectrum, fit_sample


def gaussian_noise(n, mu=1.0):
    return lambda count: (2 / (n * mu)) ** 2


def laplace_noise(n, epsilon=1.0):
    return lambda count: (count + 1) * (2 / (n * epsilon)) ** 2


def drawn(scales, count, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, len(scales))) * scales


def release(fit, records, noise, rng):
    """As a release does it, in floating point."""
    whitened = nearest_in_ellipsoid(records @ fit.basis, fit.lengths)
    return fit.guess(whitened.mean(axis=0) + math.sqrt(noise) * rng.standard_normal(fit.lengths.size))


def test_axes_minimise_the_predicted_error_where_lengths_are_concentrated():
    """In many dimensions |c| hardly varies, and then w = ac/(a² + e) with one e for all records."""
    values, tau, noise = np.geomspace(1.0, 1e-3, 40), 1 / 20 + 1 / 100, (2 / 100) ** 2
    found = axes_for_spectrum(Spectrum(values, np.eye(40), 0.0, 0), tau, lambda count: noise).lengths[:-1]

    def error(squares):
        def excess(shift):
            return float(np.sum(squares * values / (squares + shift) ** 2)) - 1

        shift = optimize.brentq(excess, 1e-9, 1e3)
        return tau * np.sum(values * (shift / (squares + shift)) ** 2) + noise * np.sum(squares)

    best, rng = error(found**2), np.random.default_rng(0)
    assert 0 < np.sum(found > 0) < 40
    for _ in range(300):
        assert error((found * np.exp(0.1 * rng.standard_normal(40))) ** 2) >= best
        assert error(found**2 + 1e-4 * rng.random(40) * (found == 0)) >= best


def test_axes_become_those_of_b2_where_noise_is_small():
    values = np.array([4.0, 1.0, 0.25])
    found = axes_for_spectrum(Spectrum(values, np.eye(3), 0.0, 0), 0.1, lambda count: 1e-12).lengths[:-1]
    assert np.allclose(found**2, np.sqrt(values) * np.sum(np.sqrt(values)), rtol=1e-6)


def test_directions_that_noise_would_drown_have_no_axis():
    values = np.array([1.0, 1.0, 1e-8])
    found = axes_for_spectrum(Spectrum(values, np.eye(3), 0.0, 0), 0.05, lambda count: 1e-3).lengths[:-1]
    assert found[2] == 0
    assert np.all(found[:2] > 0)


def test_many_directions_of_one_length_are_one_entry_with_a_count():
    noise = laplace_noise(100)
    spelled = axes_for_spectrum(Spectrum(np.array([1.0] + [0.01] * 20), np.eye(21), 0.0, 0), 0.05, noise)
    counted = axes_for_spectrum(Spectrum(np.array([1.0]), np.eye(21)[:, :1], 0.01, 20), 0.05, noise)
    assert np.allclose(spelled.lengths[:2], counted.lengths)
    assert spelled.noise == counted.noise


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("law", [gaussian_noise, laplace_noise])
@pytest.mark.parametrize("count", [20, 100])
def test_the_predicted_error_is_the_error_of_fresh_samples_and_records(law, count):
    """Pairs of a sample and five times as many records: within 20 % on average, and better than the sample's mean."""
    n, scales = 5 * count, np.geomspace(2.0, 0.02, 25)
    errors, told, alone, rng = [], [], [], np.random.default_rng(1)
    for seed in range(60 if count == 20 else 20):
        sample, records = drawn(scales, count, [seed, 0]), drawn(scales, n, [seed, 1])
        center = sample.mean(axis=0)
        fit = fit_sample(sample - center, n, law(n))
        errors.append(np.sum((release(fit, records - center, fit.noise, rng) + center - records.mean(axis=0)) ** 2))
        told.append(fit.predicted**2)
        alone.append(np.sum((center - records.mean(axis=0)) ** 2))
    assert 0.8 < math.sqrt(np.mean(errors) / np.mean(told)) < 1.2
    assert np.mean(errors) < np.mean(alone)


def test_a_sample_that_is_off_is_not_believed():
    """Records around a point that lies ten standard deviations from the sample: the release goes there."""
    n, scales = 2000, np.array([1.0, 0.5, 0.25])
    sample, records = drawn(scales, 50, 0), drawn(scales, n, 1) + np.array([0.0, 0.0, 0.6])
    center = sample.mean(axis=0)
    fit = fit_sample(sample - center, n, gaussian_noise(n))
    found = release(fit, records - center, fit.noise, np.random.default_rng(2)) + center
    assert np.linalg.norm(found - records.mean(axis=0)) < 0.25 * np.linalg.norm(center - records.mean(axis=0))


def test_a_structure_is_taken_where_few_records_agree_with_it():
    """Outlines whose landmarks move smoothly: 12 of them in 96 dimensions."""
    space = PlanarShapes(50)
    circle = space.from_landmarks(np.exp(2j * np.pi * np.arange(50) / 50))
    covariance = space.neighbour_covariance(circle)
    assert np.allclose(covariance, covariance.T)
    assert np.min(np.linalg.eigvalsh(covariance)) > -1e-10
    root = np.linalg.cholesky(covariance + 1e-9 * np.eye(96))
    rows = np.random.default_rng(0).standard_normal((12, 96)) @ root.T
    with_it = fit_sample(rows - rows.mean(axis=0), 60, gaussian_noise(60), covariance)
    without = fit_sample(rows - rows.mean(axis=0), 60, gaussian_noise(60))
    assert with_it.structure == "neighbours"
    assert with_it.predicted < 0.95 * without.predicted


def test_the_fit_knows_the_sample_by_its_records_and_not_by_their_unit():
    rows = drawn(np.array([1.0, 0.3, 0.1]), 30, 5)
    one, other = fit_sample(rows, 100, gaussian_noise(100)), fit_sample(1e-20 * rows, 100, gaussian_noise(100))
    assert np.allclose(one.lengths, 1e20 * other.lengths)
    assert np.isclose(one.predicted, 1e20 * other.predicted)


def test_a_basis_is_orthonormal_and_axes_are_no_longer_than_allowed():
    for count, dim in ((5, 40), (50, 10)):
        fit = fit_sample(drawn(np.geomspace(1, 0.1, dim), count, dim), 100, gaussian_noise(100), longest=0.5)
        assert np.allclose(fit.basis.T @ fit.basis, np.eye(fit.lengths.size), atol=1e-10)
        assert np.max(fit.lengths) <= 0.5


@pytest.mark.parametrize(("rows", "words"), [(np.zeros((2, 3)), "at least 3"), (np.ones((9, 3)), "does not vary")])
def test_samples_without_a_covariance_are_refused(rows, words):
    with pytest.raises(ArgumentError, match=words):
        fit_sample(rows, 100, gaussian_noise(100))


@pytest.mark.parametrize(("law", "exact"), [("gaussian", GaussianNorm), ("laplace", LaplaceNorm)])
def test_simulated_lengths_of_noise_have_the_known_law_in_a_ball(law, exact):
    """40,000 draws with a fixed seed, Kolmogorov–Smirnov at 1e−6; 5 % more or less is rejected."""
    found = noise_lengths(np.ones(5), law)
    assert stats.kstest(found, exact(5, 1.0).cdf).pvalue > 1e-6
    for wrong in (0.95, 1.05):
        assert stats.kstest(found, exact(5, wrong).cdf).pvalue < 1e-6


def test_simulated_lengths_have_the_second_moment_of_the_axes():
    lengths = np.array([3.0, 1.0, 0.1])
    for law, variance in (("gaussian", 1.0), ("laplace", 4.0), ("coordinatewise", 2.0)):
        assert np.isclose(np.mean(noise_lengths(lengths, law) ** 2), variance * np.sum(lengths**2), rtol=0.05)
    assert np.isclose(np.mean(noise_lengths(lengths, "laplace", True) ** 2), 5.0 * np.sum(lengths**2), rtol=0.05)


def test_noise_without_end_leaves_an_axis():
    values = np.array([1.0, 0.5])
    lengths = axes_for_spectrum(Spectrum(values, np.eye(2), 0.0, 0), 1e-3, lambda count: 1e24).lengths
    assert np.all(np.isfinite(lengths)), lengths
    assert lengths[0] > 0
