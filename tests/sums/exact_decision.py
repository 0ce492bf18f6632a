"""The law of a permutation test's answer, worked out from the law of its statistic; independent of the code it tests.

T_0 is the statistic of the records as they are, `null` its values over all permutations, each as likely. Permutations
are drawn independently, noise is the discrete Laplace law: given M_0 = m the others are independent of each other.
"""

from __future__ import annotations

import numpy as np
from scipy import stats


def _noise(sigma: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(-reach, reach + 1)
    masses = np.exp(-np.abs(steps) / sigma)
    return steps, masses / masses.sum()


def _above_and_at(null: np.ndarray, levels: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """P(T_π + noise > m) and P(T_π + noise = m), from the closed form of the discrete Laplace law."""
    shrink = np.exp(-1 / sigma)
    found, counts = np.unique(null, return_counts=True)
    shares = counts / counts.sum()
    gaps = levels[:, None] - found[None, :]
    at = (1 - shrink) / (1 + shrink) * np.exp(-np.abs(gaps) / sigma)
    tail = np.exp(-np.abs(gaps) / sigma) / (1 + shrink)
    above = np.where(gaps >= 0, tail * shrink, 1 - tail)
    return above @ shares, at @ shares


def rejection_probability(first: int, null: np.ndarray, sigma: float, permutations: int, rank: int) -> float:
    """P(fewer than `rank` of the others are at least M_0)."""
    steps, masses = _noise(sigma, int(45 * sigma) + 10)
    above, at = _above_and_at(null, first + steps, sigma)
    return float(np.sum(masses * stats.binom.cdf(rank - 1, permutations, np.minimum(above + at, 1.0))))


def rank_law(first: int, null: np.ndarray, sigma: float, permutations: int) -> np.ndarray:
    """P(place = 1), …, P(place = B + 1), where each place among equals is as likely."""
    steps, masses = _noise(sigma, int(45 * sigma) + 10)
    above, at = _above_and_at(null, first + steps, sigma)
    law = np.zeros(permutations + 1)
    for higher in range(permutations + 1):
        more = stats.binom.pmf(higher, permutations, above)
        rest = permutations - higher
        share = at / np.maximum(1 - above, 1e-300)
        for equal in range(rest + 1):
            both = masses * more * stats.binom.pmf(equal, rest, np.minimum(share, 1.0))
            law[higher : higher + equal + 1] += np.sum(both) / (equal + 1)
    return law


def loss(first: float, second: float) -> float:
    """The privacy loss of one bit, in both directions and for both answers."""
    pairs = ((first, second), (1 - first, 1 - second))
    return max(abs(float(np.log(a / b))) for a, b in pairs)
