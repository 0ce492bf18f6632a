"""Shrunk eigenvalues: those that fit the eigenvectors which noise left, for every kind of noise that releases use."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmanifolds.sums.shrink_spectrum import BulkNoise, best_moment_radius, fit_total, lift_spectrum, shrink_spectrum

SPECTRA = {
    "flat": np.ones,
    "one over i": lambda d: 1 / np.arange(1.0, d + 1),
    "square roots": lambda d: np.arange(1.0, d + 1) ** -0.5,
    "one spike": lambda d: np.append(np.ones(d - 1), d),
    "low rank": lambda d: np.append(np.ones(d // 5), np.zeros(d - d // 5)),
}


def gaussian(dim, spread, rng):
    entries = rng.standard_normal((dim, dim)) * spread
    return (entries + entries.T) / math.sqrt(2)


def wishart(dim, spread, rng):
    a, b = (rng.standard_normal((dim, dim + 1)) for _ in range(2))
    return (a @ a.T - b @ b.T) * spread / math.sqrt(2 * (dim + 1))


NOISE = {"gaussian": (gaussian, False), "wishart": (wishart, True)}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("size", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_eigenvalues_are_nearly_those_that_knowing_the_truth_would_give(spectrum, size, kind):
    """At 200 columns the error is at most 12 % above the best for these eigenvectors, or a tenth of the noise."""
    make, is_wishart = NOISE[kind]
    values = SPECTRA[spectrum](200)
    truth = np.diag(values / np.linalg.norm(values))
    spread = size / 200
    noisy = truth + make(200, spread, np.random.default_rng(7))
    frame = np.linalg.eigh(noisy)[1]
    oracle = (frame * np.einsum("ij,jk,ki->i", frame.T, truth, frame)) @ frame.T
    best = np.linalg.norm(oracle - truth)
    shrunk = shrink_spectrum(noisy, BulkNoise(spread, wishart=is_wishart))
    assert np.linalg.norm(shrunk - truth) <= max(1.12 * best, best + 0.1 * size)


def test_one_eigenvalue_far_out_is_shrunk_as_donoho_and_gavish_do():
    """√(λ² − 4s²d): 40 eigenvalues' worth of noise, one of them at 30."""
    dim, spread = 400, 0.5
    noisy = gaussian(dim, spread, np.random.default_rng(1))
    noisy[0, 0] += 30
    largest = np.linalg.eigvalsh(noisy)[-1]
    found = BulkNoise(spread).oracle(np.linalg.eigvalsh(noisy))[-1]
    assert found == pytest.approx(math.sqrt(largest**2 - 4 * spread**2 * dim), rel=0.01)


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 60])
@pytest.mark.parametrize("wishart", [False, True])
def test_it_is_positive_keeps_the_trace_and_turns_with_its_argument(dim, wishart):
    rng = np.random.default_rng(dim)
    noisy = np.diag(np.arange(dim) / dim) + gaussian(dim, 0.2, rng)
    noise = BulkNoise(0.2, wishart=wishart)
    shrunk = shrink_spectrum(noisy, noise)
    assert np.linalg.eigvalsh(shrunk)[0] >= -1e-12
    assert np.trace(shrunk) == pytest.approx(max(np.trace(noisy), 0), abs=1e-12)
    assert np.trace(shrink_spectrum(noisy, noise, most=0.01)) <= 0.01 + 1e-12
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    assert np.allclose(shrink_spectrum(turn @ noisy @ turn.T, noise), turn @ shrunk @ turn.T, atol=1e-9)
    assert np.allclose(shrink_spectrum(-np.eye(dim), noise), 0.0)
    assert np.all(np.isfinite(shrink_spectrum(np.zeros((dim, dim)), noise)))


@pytest.mark.grid(at_most=5)
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("dim", [2, 5, 20, 80])
def test_it_errs_less_than_cutting_eigenvalues_at_zero(dim, spectrum):
    """Root mean square over 40 draws and four sizes of noise: at most 20 % more in any, 5 % less on average."""
    rng = np.random.default_rng(11)
    values = SPECTRA[spectrum](dim) if dim >= 5 or spectrum != "low rank" else np.array([1.0, 0.0])
    truth = np.diag(values / np.linalg.norm(values))
    ratios = []
    for size in (0.1, 0.5, 1.5, 5.0):
        errors = np.zeros(2)
        for _ in range(40):
            noisy = truth + gaussian(dim, size / dim, rng)
            cut = lift_spectrum(noisy, 0.0, np.inf)
            shrunk = shrink_spectrum(noisy, BulkNoise(size / dim))
            errors += [np.sum((shrunk - truth) ** 2), np.sum((cut - truth) ** 2)]
        ratios.append(math.sqrt(errors[0] / errors[1]))
    assert max(ratios) < 1.2
    assert np.exp(np.mean(np.log(ratios))) < 0.95


def test_numbers_are_fitted_to_their_total():
    rng = np.random.default_rng(0)
    for total in (0.0, 1e-300, 3.0, 1e6):
        numbers = rng.standard_normal(30) * 5
        fitted = fit_total(numbers, total)
        assert np.all(fitted >= 0)
        assert np.sum(fitted) == pytest.approx(total, rel=1e-9, abs=1e-12)


EDGES = 2.0 ** (np.arange(-20, 13) / 4)


def counts_of(lengths):
    return np.histogram(lengths, np.concatenate([[0.0], EDGES[:-1], [np.inf]]))[0].astype(float)


def test_without_noise_in_the_moment_the_radius_holds_everybody():
    lengths = np.random.default_rng(0).gamma(3, size=5000) / 3
    found = best_moment_radius(counts_of(lengths), 0.0, EDGES, 5000.0, noise=1e-9, dim=10)
    assert lengths.max() <= found.radius <= 1.2 * lengths.max()
    assert found.growth == pytest.approx(1.0)


def test_more_noise_makes_the_radius_smaller_and_the_trace_is_put_back():
    lengths = np.random.default_rng(0).gamma(3, size=5000) / 3
    found = [best_moment_radius(counts_of(lengths), 0.0, EDGES, 5000.0, noise=v, dim=10) for v in (1e-6, 0.01, 0.1, 1)]
    radii = [each.radius for each in found]
    assert radii == sorted(radii, reverse=True)
    assert len(set(radii)) >= 3
    for radius, growth in found:
        kept = np.mean(np.minimum(lengths, radius) ** 2)
        assert growth == pytest.approx(np.mean(lengths**2) / kept, rel=0.1)


def test_noise_on_empty_counts_far_out_does_not_widen_the_radius():
    """200 draws with a deviation of 1 % of the records: the median radius is at most one edge off."""
    rng = np.random.default_rng(4)
    lengths = rng.gamma(20, size=2000) / 20 / 16
    exact = best_moment_radius(counts_of(lengths), 0.0, EDGES, 2000.0, noise=0.1, dim=10)
    found = [
        best_moment_radius(counts_of(lengths) + 20 * rng.standard_normal(33), 20.0, EDGES, 2000.0, noise=0.1, dim=10)
        for _ in range(200)
    ]
    assert np.median([each.radius for each in found]) == pytest.approx(exact.radius, rel=0.2)
    assert all(1 <= each.growth < math.inf for each in found)


@pytest.mark.parametrize("counts", [np.zeros(33), np.full(33, -5.0), np.full(33, 1e9)])
def test_any_counts_give_a_radius(counts):
    found = best_moment_radius(counts, 3.0, EDGES, 100.0, noise=0.1, dim=3)
    assert found.radius in EDGES
    assert 1 <= found.growth < math.inf


@pytest.mark.parametrize("wishart", [False, True])
@pytest.mark.parametrize("size", [1e-150, 2.0**-300, 2.0**300, 1e200])
def test_what_is_shrunk_after_it_was_paid_for_has_no_square_that_leaves_floats(size, wishart):
    noisy = np.diag([3.0, 1.0, -0.5])
    plain = shrink_spectrum(noisy, BulkNoise(0.5, wishart))
    assert np.allclose(shrink_spectrum(size * noisy, BulkNoise(size * 0.5, wishart)) / size, plain, rtol=1e-12)
