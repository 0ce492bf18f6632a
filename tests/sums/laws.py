"""What released coordinates must look like; p-values of exact tests.

A check passes where every p-value is above 1e−6. Power is shown on the same draws: they must fail the test against
the law at 0.7 and at 1.3 times the scale.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special, stats

from dpmanifolds._points import host

FALSE_ALARM = 1e-6
WRONG = (0.7, 1.3)


def statistic_in(ball, share=0.5):
    """A point of the ball, away from its centre."""
    direction = np.random.default_rng(5).standard_normal(ball.manifold.dim)
    return ball.manifold.move(host(ball.center), share * ball.radius * direction / np.linalg.norm(direction))


def noise_on_sum(mechanism, count, rng):
    """What was added to an exact sum of integers, in coordinates of the mean; the sum is any that records can have."""
    total = [int(value) for value in np.random.default_rng(5).integers(-(2**34), 2**34, size=mechanism.dim)]
    noisy = np.stack([mechanism.add_noise(total, rng) for _ in range(count)])
    return (noisy - np.array(total)) * mechanism.step


def noise_at_center(ball, statistic, released):
    """What was added to the coordinates of the statistic at the centre."""
    center = host(ball.center)
    return ball.manifold.log_coordinates(center, released) - ball.manifold.log_coordinates(center, statistic)


def norm_cdf(mechanism, dim):
    """The exact law of the norm of the noise at scale 1; the ℓ1 norm for noise drawn coordinate by coordinate."""
    return stats.chi(dim).cdf if mechanism.name.endswith("gaussian") else stats.gamma(dim).cdf


def norm_of(mechanism, noise):
    coordinatewise = mechanism.name == "wrapped-laplace" and mechanism.numerics == "lattice"
    return np.linalg.norm(noise, 1 if coordinatewise else 2, axis=-1)


@lru_cache(maxsize=32)
def laplace_marginal(dim):
    """One coordinate of density ∝ e^{−|y|} on R^dim: |h|·x with h ~ N(0, I) on R^(dim+1), x ~ N(0, 1).

    P(y ≤ t) = E Φ(t/|h|), by the midpoint rule over quantiles of |h|.
    """
    sizes = stats.chi(dim + 1).ppf((np.arange(2000) + 0.5) / 2000)
    grid = np.linspace(0.0, 12 * math.sqrt(dim) + 30.0, 800)
    values = special.ndtr(grid[:, None] / sizes).mean(axis=1)

    def cdf(y):
        upper = np.interp(np.abs(y), grid, values)
        return np.where(np.asarray(y) < 0, 1 - upper, upper)

    return cdf


def marginal_cdf(mechanism, dim):
    if mechanism.name.endswith("gaussian"):
        return special.ndtr
    if mechanism.numerics == "lattice" or dim == 1:
        return stats.laplace.cdf
    return laplace_marginal(dim)


def check_noise(mechanism, noise):
    """Norm, one marginal, mean, covariance and direction of the noise, and the power of the test of the norm."""
    count, dim = noise.shape
    scaled = noise / mechanism.sigma
    sizes, cdf = norm_of(mechanism, scaled), norm_cdf(mechanism, dim)
    assert stats.kstest(sizes, cdf).pvalue > FALSE_ALARM
    for factor in WRONG:
        assert stats.kstest(sizes / factor, cdf).pvalue < FALSE_ALARM
    coordinatewise = mechanism.name == "wrapped-laplace" and mechanism.numerics == "lattice"
    axis = np.eye(dim)[-1] if coordinatewise else np.ones(dim) / math.sqrt(dim)
    assert stats.kstest(scaled @ axis, marginal_cdf(mechanism, dim)).pvalue > FALSE_ALARM
    spread = scaled.std(axis=0)
    assert np.all(np.abs(scaled.mean(axis=0)) < 6 * spread / math.sqrt(count))
    check_uncorrelated(scaled)
    if not coordinatewise:
        check_direction(noise)


def check_uncorrelated(noise):
    """Fisher's z of every pair of coordinates, by ranks."""
    count, dim = noise.shape
    if dim > 1:
        ranks = np.argsort(np.argsort(noise, axis=0), axis=0)
        correlation = np.corrcoef(ranks.T)[np.triu_indices(dim, 1)]
        assert np.max(np.abs(np.arctanh(correlation))) < 6.5 / math.sqrt(count - 3)


def check_direction(noise):
    """Rayleigh's and Bingham's tests that the direction is uniform."""
    count, dim = noise.shape
    units = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    assert stats.chi2.sf(count * dim * np.sum(np.mean(units, axis=0) ** 2), dim) > FALSE_ALARM
    if dim > 1:
        scatter = units.T @ units / count
        bingham = count * dim * (dim + 2) / 2 * (np.sum(scatter**2) - 1 / dim)
        assert stats.chi2.sf(bingham, (dim - 1) * (dim + 2) // 2) > FALSE_ALARM


def check_distances(law, distances):
    """Distances against the law's own distribution function, which `tests/distributions` holds against quadrature."""
    assert stats.kstest(distances, law.distance_cdf).pvalue > FALSE_ALARM
    for factor in WRONG:
        assert stats.kstest(distances / factor, law.distance_cdf).pvalue < FALSE_ALARM
