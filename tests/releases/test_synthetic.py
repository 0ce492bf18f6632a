"""Synthetic records: the law of the release, inside of its domain, and refused where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import GaussianDP
from dpmanifolds.releases.population import fit_covariance
from dpmanifolds.releases.spread import read_spread

SPACE = dpm.SPD(2)
BALL = dpm.Ball(SPACE, np.eye(2), 3.0)
RECORDS = SPACE.move(np.diag([2.0, 1.0]), np.random.default_rng(0).standard_normal((600, 3)) * [0.5, 0.2, 0.2])


def test_points_have_the_mean_and_the_covariance_of_the_release():
    release = dpm.private_mean_and_spread(RECORDS, BALL, GaussianDP(2.0), rng=0)
    made = dpm.synthesize(release, 20_000, rng=1)
    assert made.is_synthetic
    assert made.release is release
    assert "no record is among them" in repr(made)
    rows = SPACE.log_coordinates(release.value, made.points)
    assert np.allclose(rows.mean(axis=0), 0, atol=0.02)
    truth = fit_covariance(read_spread(release)[1], release.spread.moment)[0]
    values = [np.linalg.eigvalsh(each) for each in (np.cov(rows.T), truth)]
    assert np.allclose(*values, rtol=0.06, atol=1e-3)
    assert BALL.contains(made.points).all()
    assert np.array_equal(dpm.synthesize(release, 5, rng=3).points, dpm.synthesize(release, 5, rng=3).points)


def test_variances_and_covariances_will_do_too():
    variance = dpm.private_variance(RECORDS, BALL, GaussianDP(2.0), rng=0)
    rows = SPACE.log_coordinates(variance.stages[-1].value, dpm.synthesize(variance, 20_000, rng=0).points)
    assert np.mean(np.sum(rows**2, axis=1)) == pytest.approx(variance.value, rel=0.05)
    vectors = np.random.default_rng(0).standard_normal((2000, 2)) * [2.0, 1.0] + 3.0
    covariance = dpm.private_covariance(vectors, 20.0, GaussianDP(2.0), rng=0)
    points = dpm.synthesize(covariance, 20_000, rng=0).points
    assert np.allclose(np.cov(points.T), covariance.value, atol=0.15)
    assert np.allclose(points.mean(axis=0), 3.0, atol=0.2)


def test_without_a_spread_it_is_refused_with_words():
    with pytest.raises(dpm.NotAvailableError, match="private_mean_and_spread"):
        dpm.synthesize(dpm.private_mean(RECORDS, BALL, GaussianDP(1.0)), 10)
    moment = dpm.private_covariance(np.zeros((10, 2)), 1.0, GaussianDP(1.0), about="origin", method="one-shot")
    with pytest.raises(dpm.DPManifoldsError):
        dpm.synthesize(moment, 10)
    for size in (0, -1, 2.5, "many"):
        with pytest.raises(dpm.ArgumentError, match="size"):
            dpm.synthesize(dpm.private_variance(RECORDS, BALL, GaussianDP(1.0)), size)
    with pytest.raises(dpm.ArgumentError, match="Release"):
        dpm.synthesize("release", 10)
