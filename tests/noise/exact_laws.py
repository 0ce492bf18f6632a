"""Cell probabilities of rounded and discrete laws, and the one test that compares draws with them."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

FALSE_ALARM = 1e-7
CERTAIN = 1e-12
FEWEST = 20


def fit(draws: np.ndarray, cells: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value of Pearson's chi-square; `cells` are distinct rows, what they leave out is one more cell."""
    draws = draws.reshape(len(draws), -1)
    cells = cells.reshape(len(cells), -1)
    common = probabilities * len(draws) >= FEWEST
    cells, probabilities = cells[common], probabilities[common]
    place = {tuple(cell): index for index, cell in enumerate(cells.tolist())}
    seen = np.bincount([place.get(tuple(draw), len(cells)) for draw in draws.tolist()], minlength=len(cells) + 1)
    expected = np.append(probabilities, 1 - probabilities.sum()) * len(draws)
    if expected[-1] < FEWEST:
        seen, expected = np.append(seen[:-2], seen[-2:].sum()), np.append(expected[:-2], expected[-2:].sum())
    return float(stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), seen.size - 1))


def grid(reach: int, dim: int) -> np.ndarray:
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * dim, indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, dim)


def gaussian_cells(cells: np.ndarray, scale: float) -> np.ndarray:
    law = stats.norm(scale=scale)
    return np.prod(law.cdf(cells + 0.5) - law.cdf(cells - 0.5), axis=-1)


def laplace_marginal(cells: np.ndarray, scale: float, dim: int) -> np.ndarray:
    """One coordinate of the density ∝ exp(−|y|₂) in 1 and 3 dimensions: e^−|x|/2 and (1 + |x|)·e^−|x|/4."""

    def upper(x: np.ndarray) -> np.ndarray:
        size = np.abs(x)
        tail = np.exp(-size) * (0.5 if dim == 1 else (2 + size) / 4)
        return np.where(x > 0, tail, 1 - tail)

    return (upper((cells - 0.5) / scale) - upper((cells + 0.5) / scale)).reshape(-1)


def laplace_plane(cells: np.ndarray, scale: float) -> np.ndarray:
    """∫ exp(−|y|/scale)/(2π·scale²) over unit squares, by Gauss–Legendre on their four quarters."""
    nodes, weights = special.roots_legendre(40)
    nodes, weights = (nodes + 1) / 4, weights / 4
    offsets, weights = np.concatenate([nodes, nodes - 0.5]), np.concatenate([weights, weights])
    x = cells[:, 0, None, None] + offsets[None, :, None]
    y = cells[:, 1, None, None] + offsets[None, None, :]
    density = np.exp(-np.hypot(x, y) / scale) / (2 * np.pi * scale**2)
    return np.einsum("nij,i,j->n", density, weights, weights)


def discrete_cells(reach: int, scale: float, power: int) -> tuple[np.ndarray, np.ndarray]:
    """The integers and P ∝ exp(−|k|/scale) (power 1) or exp(−k²/(2·scale²)) (power 2)."""
    cells = np.arange(-reach, reach + 1)
    weights = np.exp(-((np.abs(cells) / scale) ** power) / power)
    return cells, weights / weights.sum()
