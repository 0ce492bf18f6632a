"""What engines may show: the residue of the sum, and nothing that is not a function of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats


def joint_law(shift, sigma, sites, reach):
    """P(sum = s, so many answers negative) for answers round(N(0, σ²)), the first of which is moved by `shift`."""
    values = np.arange(-reach, reach + 1)

    def one(center):
        mass = stats.norm.cdf(values + 0.5, center, sigma) - stats.norm.cdf(values - 0.5, center, sigma)
        return [np.where(values >= 0, mass, 0.0), np.where(values < 0, mass, 0.0)]

    law = one(shift)
    for _ in range(sites - 1):
        other, longer = one(0.0), [0.0] * (len(law) + 1)
        for negative, part in enumerate(law):
            for more, factor in enumerate(other):
                longer[negative + more] = longer[negative + more] + np.convolve(part, factor)
        law = longer
    return np.array(law)


def profile(first, second, epsilon):
    return float(np.sum(np.maximum(first - np.exp(epsilon) * second, 0.0)))


def gaussian_delta(mu, epsilon):
    return stats.norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)


def test_sums_of_residues_as_whole_numbers_show_more_than_their_sum():
    """The figures of docs/proofs/federated.md, section 4: three sites, t = 0, μ = 1 for the sum; rounding aside."""
    sigma, sites = 40.0, 3
    first, second = (joint_law(shift, sigma, sites, 500) for shift in (0.0, -sigma * np.sqrt(sites)))
    assert profile(first.sum(axis=0), second.sum(axis=0), 2.0) == pytest.approx(gaussian_delta(1.0, 2.0), rel=0.01)
    assert max(profile(first, second, 2.0), profile(second, first, 2.0)) == pytest.approx(0.0496, abs=1e-4)
    assert gaussian_delta(1.0, 2.0) == pytest.approx(0.0209, abs=1e-4)
    assert gaussian_delta(1.17, 2.0) == pytest.approx(0.0496, abs=5e-4)
