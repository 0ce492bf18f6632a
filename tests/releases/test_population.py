"""What a noisy mean and spread say about a population, against computations of another kind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dpmanifolds as dpm
from dpmanifolds.releases.population import (
    SpreadNoise,
    average_hessian_at,
    center_moment,
    fit_covariance,
    mean_part,
    region_law,
)

QUIET = SpreadNoise("covariance", 1e-9, 1e-9, "gaussian", 6)


def test_a_region_without_noise_is_hotelling_s():
    n, dim = 40, 3
    covariance = np.diag([1.0, 0.5, 0.25])
    law = region_law([mean_part(covariance, n=n, noise=QUIET)])
    hotelling = dim * (n - 1) / (n - dim) * stats.f.ppf(0.95, dim, n - dim)
    assert float(law.threshold(0.95)) == pytest.approx(hotelling, rel=1e-6)
    assert np.allclose(np.linalg.inv(law.weight), covariance / n)


def test_a_region_of_noise_alone_is_a_ball_of_chi():
    loud = SpreadNoise("covariance", 1.0, 1e-12, "gaussian", 6)
    law = region_law([mean_part(1e-12 * np.eye(3), n=10**6, noise=loud)])
    assert float(law.threshold(0.95)) == pytest.approx(stats.chi2.ppf(0.95, 3), rel=1e-3)


@pytest.mark.parametrize(("law", "numbers"), [("laplace", 4), ("wishart", 10)])
def test_noise_with_longer_tails_has_its_own_quantile(law, numbers):
    noise = SpreadNoise("covariance", 1.0, 1e-12, law, numbers)
    found = float(region_law([mean_part(1e-12 * np.eye(3), n=10**6, noise=noise)]).threshold(0.95))
    rng = np.random.default_rng(5)
    if law == "laplace":
        # three of four coordinates of a vector of density e^{−|y|}, each of variance D + 1 = 5
        normal = rng.standard_normal((400_000, 4))
        drawn = normal / np.linalg.norm(normal, axis=1, keepdims=True) * rng.gamma(4, size=(400_000, 1))
        drawn = drawn[:, :3] / np.sqrt(5)
    else:
        left, right = rng.standard_normal((2, 100_000, 4, 5))
        drawn = (left @ np.swapaxes(left, 1, 2) - right @ np.swapaxes(right, 1, 2))[:, :3, 3] / np.sqrt(10)
    assert np.allclose(np.std(drawn, axis=0), 1, rtol=0.02)
    assert found == pytest.approx(np.quantile(np.sum(drawn**2, axis=1), 0.95), rel=0.03)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_the_quantile_beside_sampling_is_that_of_draws(level, parts):
    facts = SpreadNoise("covariance", 0.1, 0.02, "laplace", 10)
    part = mean_part(np.diag([1.0, 0.3, 0.1]), n=100, noise=facts)
    law = region_law([part] * parts)
    errors = law.draw_errors(200_000)
    gaussian = law._replace(parts=tuple(each._replace(facts=QUIET) for each in law.parts))
    drawn = np.mean(np.sum(errors @ law.weight * errors, axis=1) <= law.threshold(level))
    plain = np.random.default_rng(1).multivariate_normal(np.zeros(3), law.covariance, size=200_000)
    # both thresholds also allow for an uncertain covariance, alike
    alike = np.mean(np.sum(plain @ law.weight * plain, axis=1) <= gaussian.threshold(level))
    assert drawn == pytest.approx(alike, abs=0.004)


def test_the_centred_moment_is_unbiased():
    rng, n, count = np.random.default_rng(0), 8, 40_000
    records = rng.standard_normal((count, n, 2)) * [1.0, 0.5] + [0.3, -0.2]
    noise = 0.4 * rng.standard_normal((count, 2))
    mean = records.mean(axis=1)
    moment = np.swapaxes(records, 1, 2) @ records / n
    found = center_moment(moment, mean + noise, 0.4, n).mean(axis=0)
    assert np.allclose(found, np.diag([1.0, 0.25]), atol=0.02)


def test_a_clear_covariance_is_kept_and_a_drowned_one_becomes_even():
    truth = np.diag([4.0, 1.0, 0.25])
    kept, left = fit_covariance(truth, 1e-6)
    assert np.allclose(kept, truth)
    assert float(left) == pytest.approx(1e-6, rel=1e-6)
    even, left = fit_covariance(truth, 100.0)
    assert np.allclose(even, 5.25 / 3 * np.eye(3))
    assert float(left) == 0.0
    assert np.allclose(fit_covariance(-truth, 0.1)[0], 0.0)


@pytest.mark.parametrize("curvature", [1.0, -1.0])
def test_the_hessian_is_that_of_records_with_the_same_spread(curvature):
    space = dpm.Sphere(2) if curvature > 0 else dpm.Hyperbolic(2)
    base = np.array([0.0, 0.0, 1.0]) if curvature > 0 else space.origin
    vectors = np.random.default_rng(0).standard_normal((4000, 2)) * [0.3, 0.15]
    weights = np.full(4000, 1 / 4000)
    truth = space.linearize(base, space.exp_coordinates(base, vectors), weights, True).hessian
    found = average_hessian_at(space, base, vectors.T @ vectors / 4000, 2.0)
    assert np.allclose(found, truth, atol=0.002)
    # 1 − κ(tr M − M)/3 to second order
    moment = np.diag([0.09, 0.0225])
    assert np.allclose(found, np.eye(2) - curvature * (np.trace(moment) * np.eye(2) - moment) / 3, atol=0.003)


def test_many_data_sets_at_once_are_each_as_alone():
    rng = np.random.default_rng(3)
    noisy = rng.standard_normal((4, 3, 3)) * 0.1 + np.eye(3)
    noisy = (noisy + np.swapaxes(noisy, 1, 2)) / 2
    noise = SpreadNoise("covariance", 0.05, 0.1, "gaussian", 10)
    many = region_law([mean_part(noisy, n=50, noise=noise)])
    for row in range(4):
        one = region_law([mean_part(noisy[row], n=50, noise=noise)])
        assert np.allclose(many.weight[row], one.weight)
        assert many.threshold(0.9)[row] == pytest.approx(float(one.threshold(0.9)))


def test_the_facts_of_noise_are_checked():
    with pytest.raises(dpm.ArgumentError, match="law"):
        SpreadNoise("covariance", 1.0, 1.0, "cauchy", 3)
    with pytest.raises(dpm.ArgumentError, match="kind"):
        SpreadNoise("tails", 1.0, 1.0, "gaussian", 3)
    with pytest.raises(dpm.ArgumentError, match="mean"):
        SpreadNoise("variance", -1.0, 1.0, "gaussian", 3)
