"""Averages over spheres against mpmath, where scipy's Bessel functions underflow too."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpmanifolds.sums.estimate import average_over_sphere


@pytest.mark.grid
@pytest.mark.parametrize("dim", [1, 2, 3, 6, 33, 34, 35, 45, 200, 5000])
@pytest.mark.parametrize("k", [1e-12, 1e-3, 0.5, 3.0, 10.0, 40.0, 1e3, 1e6])
def test_averages_over_spheres_are_those_of_mpmath(dim, k):
    with mpmath.workdps(30):
        order = mpmath.mpf(dim) / 2 - 1
        bessel, above = (mpmath.besseli(order + shift, k) for shift in (0, 1))
        expected = mpmath.log(bessel) + mpmath.loggamma(order + 1) + order * mpmath.log(mpmath.mpf(2) / k) - k
        ratio = above / bessel
    logs, cosines = average_over_sphere(dim, np.array([k]))
    assert abs(float(logs[0] - expected)) < 1e-8
    assert abs(float(cosines[0] / ratio - 1)) < 2e-9
    # 1 − ratio is what matters where it is small against the noise
    assert abs(float(cosines[0] - ratio)) < 2e-9 * min(1.0, dim / k) + 1e-15


@pytest.mark.parametrize("dim", [1, 2, 33, 45, 1_000_000])
@pytest.mark.parametrize("k", [0.0, 1e-300, 1e15, 1e100, 1e300])
def test_the_ends_of_the_range_are_finite(dim, k):
    logs, cosines = average_over_sphere(dim, np.array([k]))
    assert np.isfinite(logs[0])
    assert 0 <= cosines[0] <= 1
