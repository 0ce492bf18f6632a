"""The published Metropolis chains, written correctly, as baselines: NOT exact, and no promise rests on them.

Utpala et al. 2022 (A.4) draw the Riemannian Laplace on log-Euclidean SPD(k) after 50,000 steps; Soto et al. 2022
(B.4.2) draw the K-norm gradient law on S² after 20,000. Both texts have slips (an acceptance ratio without the current
point, a chain that drops its rejections); here a rejected step repeats the current point, as the method demands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds.manifolds import SPD, Sphere
from dpmanifolds.noise import as_generator
from papers._draws import matrix_function

__all__ = [
    "knorm_gradient_chain",
    "log_euclidean_laplace_chain",
    "log_euclidean_laplace_chain_in_coordinates",
]


def log_euclidean_laplace_chain(mean: np.ndarray, sigma: float, steps: int = 50_000, *, rng: Any = None) -> np.ndarray:
    """The last of `steps` Metropolis steps towards the density ∝ exp(−ρ(mean, ·)/σ) on log-Euclidean SPD(k).

    As published: candidates exp(log x + noise) as matrices, with the step size that accepts about half of them, each
    distance from a matrix logarithm.
    """
    generator = as_generator(rng)
    k = mean.shape[-1]
    space, unit = SPD(k, "log-euclidean"), np.eye(k)
    center = matrix_function(mean, np.log)
    current, distance = mean, 0.0
    # near radius (d − 1)σ a random step of length s changes the distance by about s²/2r: acceptance near one half
    size = sigma * 1.2
    for _ in range(steps):
        noise = space.from_coordinates(unit, generator.standard_normal(space.dim) * size)
        candidate = matrix_function(matrix_function(current, np.log) + noise, np.exp)
        reached = float(np.linalg.norm(matrix_function(candidate, np.log) - center))
        if np.log(generator.random()) < (distance - reached) / sigma:
            current, distance = candidate, reached
    return np.asarray(current)


def log_euclidean_laplace_chain_in_coordinates(
    mean: np.ndarray, sigma: float, steps: int = 50_000, *, rng: Any = None
) -> np.ndarray:
    """The same chain in log coordinates, where no step needs an eigendecomposition: the best case for a chain."""
    generator = as_generator(rng)
    space, unit = SPD(mean.shape[-1], "log-euclidean"), np.eye(mean.shape[-1])
    center = space.to_coordinates(unit, space.log(unit, mean))
    current, distance = center, 0.0
    for _ in range(steps):
        candidate = current + 1.2 * sigma * generator.standard_normal(center.size)
        reached = float(np.linalg.norm(candidate - center))
        if np.log(generator.random()) < (distance - reached) / sigma:
            current, distance = candidate, reached
    return np.asarray(space.exp(unit, space.from_coordinates(unit, current)))


def knorm_gradient_chain(
    records: np.ndarray, center: np.ndarray, radius: float, sigma: float, steps: int = 20_000, *, rng: Any = None
) -> np.ndarray:
    """The last of `steps` Metropolis steps towards ∝ exp(−‖∇F‖/σ) on a ball of S², F = (1/2n) Σ ρ².

    Proposals as published: a Gaussian vector scaled to length σ, projected to the tangent space, half of it walked.
    """
    generator = as_generator(rng)
    sphere = Sphere(2)

    def gradient(point: np.ndarray) -> float:
        return float(np.linalg.norm(sphere.log(point, records).mean(axis=0)))

    current = center
    level = gradient(current)
    for _ in range(steps):
        vector = generator.standard_normal(3)
        vector *= 0.5 * sigma / np.linalg.norm(vector)
        candidate = sphere.exp(current, vector - (vector @ current) * current)
        candidate = candidate / np.linalg.norm(candidate)
        if float(sphere.dist(center, candidate)) > radius:
            continue
        reached = gradient(candidate)
        if np.log(generator.random()) < (level - reached) / sigma:
            current, level = candidate, reached
    return np.asarray(current)
