"""What the rivals are made of: noise in floating point, and a radius that is paid for."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds import Budget
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.privacy import GaussianDP, PureDP, affordable_epsilon, affordable_mu, affordable_shift

__all__ = ["best_noise", "gaussian_noise", "laplace_noise", "paid_radii", "symmetric"]

_MOST_DIMENSIONS = 300
"""Above, ℓ2-Laplace noise loses to the Gaussian whenever there is a δ.

Under Gaussian DP, μ = 1, its deviation √(d+1)/a is 1.286, 1.110, 1.032, 1.003 times the Gaussian's at d = 2, 6, 21,
253.
"""


def unit_vectors(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Uniform directions."""
    draws = rng.standard_normal(shape)
    return np.asarray(draws / np.linalg.norm(draws, axis=-1, keepdims=True))


def gaussian_noise(moved: float, budget: Budget, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """N(0, (Δ/μ)²I); the analytic calibration of Balle and Wang (2018) where there is a δ."""
    return moved / affordable_mu(budget) * rng.standard_normal((count, dim))


def laplace_noise(moved: float, budget: Budget, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Density ∝ e^{−|y|/σ}, σ = Δ/a, a by the exact profile: ε where that is all there is."""
    scale = moved / _shift(budget, dim)
    return np.asarray(scale * rng.gamma(dim, size=(count, 1)) * unit_vectors((count, dim), rng))


def _shift(budget: Budget, dim: int) -> float:
    if dim < 2:
        return affordable_epsilon(budget, on_the_line=True)
    if isinstance(budget, GaussianDP) or (dim > _MOST_DIMENSIONS and not isinstance(budget, PureDP)):
        raise NotAvailableError("Gaussian noise is better.")
    return affordable_shift(budget, dim)


def best_noise(
    moved: float, budget: Budget, dim: int, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """The better of the two, and the standard deviation of one coordinate."""
    found = []
    for draw, deviation in ((gaussian_noise, _gaussian_deviation), (laplace_noise, _laplace_deviation)):
        try:
            found.append((moved * deviation(budget, dim), draw))
        except NotAvailableError:
            continue
    least, draw = min(found, key=lambda pair: pair[0])
    return draw(moved, budget, dim, count, rng), least


def _gaussian_deviation(budget: Budget, dim: int) -> float:
    if isinstance(budget, PureDP):
        raise NotAvailableError("no Gaussian keeps a pure ε.")
    return 1 / affordable_mu(budget)


def _laplace_deviation(budget: Budget, dim: int) -> float:
    return math.sqrt(dim + 1) / _shift(budget, dim)


def symmetric(vectors: np.ndarray, k: int) -> np.ndarray:
    """Symmetric matrices with the Frobenius norms of the vectors."""
    matrices = np.zeros((*vectors.shape[:-1], k, k))
    rows, columns = np.triu_indices(k)
    matrices[..., rows, columns] = vectors * np.where(rows == columns, 1.0, math.sqrt(0.5))
    upper = np.triu(matrices, 1)
    return np.asarray(matrices + np.swapaxes(upper, -1, -2))


def paid_radii(
    lengths: np.ndarray, largest: float, share: float, mu: float, count: int, rng: np.random.Generator
) -> np.ndarray:
    """A radius that holds this share, from a histogram in bins of √2 with Gaussian noise (Karwa and Vadhan 2018).

    The smallest edge below which the noisy count, less two of its deviations, reaches that share.
    """
    edges = largest * 2.0 ** (-0.5 * np.arange(23, -1, -1))
    below = np.searchsorted(np.sort(lengths), edges, side="right")
    counts = np.diff(below, prepend=0).astype(float)
    noisy = counts + math.sqrt(2) / mu * rng.standard_normal((count, edges.size))
    sums = np.cumsum(noisy, axis=-1) - 2 * math.sqrt(2) / mu * np.sqrt(np.arange(1, edges.size + 1))
    reached = sums >= share * lengths.size
    reached[:, -1] = True
    return np.asarray(edges[np.argmax(reached, axis=-1)])
