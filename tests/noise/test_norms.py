"""Lengths of flat noise, against SciPy's laws and against the noise itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmanifolds.errors import ArgumentError, ScaleOutOfRangeError
from dpmanifolds.noise.norms import GaussianNorm, LaplaceNorm

LEVELS = np.array([0.0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-9])


@pytest.mark.parametrize("dim", [1, 2, 7, 400])
@pytest.mark.parametrize("sigma", [1e-30, 0.3, 1e40])
def test_lengths_are_those_of_chi_and_gamma_laws(dim, sigma):
    laws = ((GaussianNorm(dim, sigma), stats.chi(dim)), (LaplaceNorm(dim, sigma), stats.gamma(dim)))
    for norm, law in laws:
        assert norm.quantile(LEVELS) == pytest.approx(sigma * law.ppf(LEVELS), rel=1e-9)
        assert norm.cdf(norm.quantile(LEVELS)) == pytest.approx(LEVELS, rel=1e-9)
        assert [norm.moment(order) / sigma**order for order in (0, 1, 2)] == pytest.approx(
            [1.0, law.mean(), law.var() + law.mean() ** 2], rel=1e-9
        )


def test_the_mean_length_of_draws_is_the_first_moment_and_not_30_percent_more():
    # 20,000 draws in R³: 6 standard deviations are below 2 % of the mean, false alarms below 1e−6
    draws = 0.7 * np.linalg.norm(np.random.default_rng(0).standard_normal((20_000, 3)), axis=1)
    assert draws.mean() == pytest.approx(GaussianNorm(3, 0.7).moment(1), rel=0.02)
    assert draws.mean() != pytest.approx(GaussianNorm(3, 0.91).moment(1), rel=0.02)


@pytest.mark.parametrize("kind", [GaussianNorm, LaplaceNorm])
def test_scales_orders_and_probabilities_out_of_range_are_refused(kind):
    for sigma in (1e-120, 1e120):
        with pytest.raises(ScaleOutOfRangeError, match="sigma"):
            kind(2, sigma)
    for sigma in (0.0, -1.0, np.nan):
        with pytest.raises(ArgumentError, match="sigma"):
            kind(2, sigma)
    with pytest.raises(ArgumentError, match="order"):
        kind(2, 1.0).moment(-1)
    with pytest.raises(ArgumentError, match="probability"):
        kind(2, 1.0).quantile(1.5)
