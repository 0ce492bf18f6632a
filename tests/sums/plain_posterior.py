"""The posterior mean of `sums.estimate` by brute force: no Bessel function, no mixture, no interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss

DEPTH, CELLS = 45.0, 60


def prior(dim: int, sigma: float, gaussian: bool) -> tuple[float, float]:
    """Its radius, and its tilt."""
    mean_square = dim * sigma**2 * (1 if gaussian else dim + 1)
    beyond = 2 * math.sqrt(mean_square / dim) * (1 - math.sqrt(mean_square))
    return 1 + max(beyond, 0.0), min(dim - 1, 2)


def plain_mean(length: float, dim: int, sigma: float, gaussian: bool) -> float:
    """∬ s·cos t·w / ∬ w over s = |c| and the angle t, w = prior(s)·sin^{d−2}t·density(√(s² + R² − 2sR·cos t)).

    In u = min(R, outer) − s, cut at u = 0 where Laplace noise has a kink; summed is what is missing to min(R, outer).
    """
    outer, tilt = prior(dim, sigma, gaussian)
    near, far = min(length, outer), max(length - outer, 0.0)

    def log_weight(u: np.ndarray, t: np.ndarray) -> np.ndarray:
        more = u * (2 * far + u) + 4 * (near - u) * length * np.sin(t / 2) ** 2
        fallen = more / (2 * sigma**2) if gaussian else more / (far + np.sqrt(far * far + more)) / sigma
        return ((dim - 2) * np.log(np.sin(t)) if dim > 2 else 0.0) - fallen - np.log1p(tilt * (near - u))

    def over_angles(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln ∫w dt for each u (N, 1), and the mean of what is missing."""
        angles, weights = np.array([[0.0, math.pi]]), np.ones(2)
        if dim > 1:
            low, high = zoom(lambda t: log_weight(u, t), np.zeros_like(u), np.full_like(u, math.pi))
            nodes, weights = cubed(30)
            angles, weights = low + (high - low) * nodes, (high - low) * weights
        logs = log_weight(u, angles)
        mass = weights * np.exp(logs - logs.max(axis=1, keepdims=True))
        missing = u + (near - u) * 2 * np.sin(angles / 2) ** 2
        total = mass.sum(axis=1)
        return logs.max(axis=1) + np.log(total), (mass * missing).sum(axis=1) / total

    reach = sigma * ((math.sqrt(dim) + 12) if gaussian else (dim + 12 * math.sqrt(dim) + 60))
    low, high = (np.array([[end]]) for end in (max(near - outer, -reach), min(near, reach)))
    low, high = (float(end[0, 0]) for end in zoom(lambda u: over_angles(u.T)[0][None], low, high))
    nodes, weights = cubed(40)
    panels = [(0.0, low), (0.0, high)] if low < 0 < high else [(low, high)]
    u = np.concatenate([start + (end - start) * nodes for start, end in panels])
    logs, missing = over_angles(u[:, None])
    mass = np.concatenate([abs(end - start) * weights for start, end in panels]) * np.exp(logs - logs.max())
    return near - float(np.sum(mass * missing) / np.sum(mass))


def zoom(logs: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part of each interval (N, 1) where a function with one peak is within 45 of its maximum."""
    for _ in range(30):
        cell = (high - low) / CELLS
        values = logs(low + cell * (np.arange(CELLS) + 0.5))
        kept = values >= values.max(axis=1, keepdims=True) - DEPTH
        first, last = (np.argmax(side, axis=1, keepdims=True) for side in (kept, kept[:, ::-1]))
        low, high = low + cell * np.maximum(first - 1, 0), high - cell * np.maximum(last - 1, 0)
        if np.all(first + last < CELLS // 2):
            break
    return low, high


def cubed(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Three Gauss-Legendre panels on [0, 1], after x → x³."""
    nodes, weights = leggauss(count)
    x, w = (np.arange(3)[:, None] / 3 + (nodes + 1) / 6).ravel(), np.tile(weights / 6, 3)
    return x**3, 3 * x**2 * w
