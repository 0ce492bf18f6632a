"""Algorithms 1 and 2 of Jiang et al. 2023, as baselines: NO error bound, and no promise rests on them.

Algorithm 1 takes the maximum of μ_ε over a grid on the circle, from the paper's Corollary 3.2.1, whose set A is wrong
for ε > 0 (δ is under-reported; MATH.md section 9). Algorithm 2 estimates the two probabilities from draws; the maximum
over ε of a noisy estimate overestimates μ, the more the smaller σ is. What carries a bound is
`dpmanifolds.privacy.riemannian_gaussian`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpmanifolds._validate import choice, positive_integer, positive_number
from dpmanifolds.intrinsic import RiemannianGaussian
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import as_generator

__all__ = ["algorithm_1", "algorithm_2", "algorithm_2_step_by_step", "gaussian_chains", "published_circle_delta"]

_BISECTIONS = 60


def published_circle_delta(sigma: float, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
    """h(σ, ε, Δ) of Corollary 3.2.1 as printed, for 0 ≤ ε ≤ πΔ/2σ²: too small for ε > 0.

    >>> import numpy as np
    >>> from papers.jiang_algorithms import published_circle_delta
    >>> round(float(published_circle_delta(1.0, np.array(1.0), 1.0)), 4)
    0.088
    """
    total = 2 * ndtr(math.pi / sigma) - 1
    step, half, end = sigma * epsilon / sensitivity, sensitivity / (2 * sigma), math.pi / sigma
    growth = np.exp(epsilon)
    near = epsilon <= sensitivity**2 / (2 * sigma**2)
    first = ndtr(half - step) - growth * ndtr(-half - step)
    second = ndtr(step + half - end) - growth * ndtr(step - half + np.where(near, end, -end))
    return np.asarray((first - second) / total - growth * near)


def _mu_of(delta: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """μ_ε with δ_μ(ε) = delta, by bisection; 0 where delta ≤ 0."""
    low, high = np.zeros_like(delta), np.full_like(delta, 1.0)

    def profile(mu: np.ndarray) -> np.ndarray:
        return np.asarray(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))

    while np.any(profile(high) < delta):
        high = np.where(profile(high) < delta, 2 * high, high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = profile(middle) > delta
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(delta > 0, high, 0.0)


def algorithm_1(sigma: float, sensitivity: float, epsilons: int = 1000) -> float:
    """μ on the circle by the published Algorithm 1: the maximum of μ_ε over ε = k, 2k, …, ε_max (ε = 0 is skipped).

    >>> from papers.jiang_algorithms import algorithm_1
    >>> round(algorithm_1(1.0, 1.0), 2)
    0.98
    """
    sigma, sensitivity = positive_number("sigma", sigma), positive_number("sensitivity", sensitivity)
    largest = math.pi * sensitivity / (2 * sigma**2)
    epsilon = largest * np.arange(1, positive_integer("epsilons", epsilons) + 1) / epsilons
    return float(np.max(_mu_of(published_circle_delta(sigma, epsilon, sensitivity), epsilon)))


def gaussian_chains(
    manifold: Manifold, footpoint: np.ndarray, sigma: float, count: int, chains: int, *, rng: Any = None
) -> np.ndarray:
    """(chains, count) states of Metropolis chains towards the Riemannian Gaussian, as in section 4.1 of the paper.

    Proposal exp_x(v), v ~ N(0, σ²I) in the tangent space at the state x, dropped beyond the injectivity radius. On a
    space of constant curvature it is symmetric. All chains start at the footpoint and move at once.
    """
    generator = as_generator(rng)
    state = np.broadcast_to(footpoint, (chains, *footpoint.shape)).copy()
    distance = np.zeros(chains)
    states = np.empty((chains, count, *footpoint.shape))
    for step in range(count):
        move = sigma * generator.standard_normal((chains, manifold.dim))
        candidate = manifold.exp(state, manifold.from_coordinates(state, move))
        reached = manifold.dist(footpoint, candidate)
        accepted = np.log(generator.random(chains)) < (distance**2 - reached**2) / (2 * sigma**2)
        accepted &= np.linalg.norm(move, axis=-1) < manifold.injectivity_radius
        state = np.where(accepted[:, None], candidate, state)
        distance = np.where(accepted, reached, distance)
        states[:, step] = state
    return states


def algorithm_2(
    manifold: Manifold,
    sigma: float,
    sensitivity: float,
    *,
    draws: int = 1000,
    repeats: int = 100,
    epsilons: int = 1000,
    largest_epsilon: float | None = None,
    sampler: str = "exact",
    rng: Any = None,
) -> float:
    """μ on a space of constant curvature by the published Algorithm 2; its defaults are the paper's settings.

    `draws`, `repeats`, `epsilons` are the paper's n, m and n_ε; ε runs over k, 2k, …, ε_max with ε_max = πΔ/2σ² unless
    given. `sampler` is "exact" (this package's exact sampler, the best case) or "chain" (`gaussian_chains`). Written
    with arrays throughout: the indicator sums of step 6 are counted from sorted losses.

    >>> from dpmanifolds import Sphere
    >>> from papers.jiang_algorithms import algorithm_2
    >>> 0.7 < algorithm_2(Sphere(2), 1.0, 1.0, draws=1000, repeats=20, rng=0) < 1.0
    True
    """
    sigma, sensitivity = positive_number("sigma", sigma), positive_number("sensitivity", sensitivity)
    choice("sampler", sampler, ("exact", "chain"))
    generator = as_generator(rng)
    first, second = _footpoints(manifold, sensitivity, generator)
    epsilon = _epsilons(sigma, sensitivity, epsilons, largest_epsilon)
    shares = []
    for footpoint in (first, second):
        if sampler == "exact":
            points = RiemannianGaussian(manifold, footpoint, sigma).sample((repeats, draws), rng=generator)
        else:
            points = gaussian_chains(manifold, footpoint, sigma, draws, repeats, rng=generator)
        loss = (manifold.dist(second, points) ** 2 - manifold.dist(first, points) ** 2) / (2 * sigma**2)
        # all repeats are averaged in step 9, so their counts may be taken together
        shares.append(1 - np.searchsorted(np.sort(loss, axis=None), epsilon, side="left") / loss.size)
    return float(np.max(_mu_of(shares[0] - np.exp(epsilon) * shares[1], epsilon)))


def algorithm_2_step_by_step(
    manifold: Manifold,
    sigma: float,
    sensitivity: float,
    *,
    draws: int = 1000,
    repeats: int = 100,
    epsilons: int = 1000,
    largest_epsilon: float | None = None,
    rng: Any = None,
) -> float:
    """Algorithm 2 in the order in which it is printed: one chain state at a time, one sum per repeat and ε.

    The estimate has the law of `algorithm_2(..., sampler="chain")`; only the time differs.

    >>> from dpmanifolds import Sphere
    >>> from papers.jiang_algorithms import algorithm_2_step_by_step
    >>> 0.6 < algorithm_2_step_by_step(Sphere(2), 1.0, 1.0, draws=500, repeats=4, epsilons=20, rng=0) < 1.2
    True
    """
    sigma, sensitivity = positive_number("sigma", sigma), positive_number("sensitivity", sensitivity)
    generator = as_generator(rng)
    first, second = _footpoints(manifold, sensitivity, generator)
    epsilon = _epsilons(sigma, sensitivity, epsilons, largest_epsilon)
    total = np.zeros(epsilons)
    for _ in range(repeats):
        losses = []
        for footpoint in (first, second):
            points = gaussian_chains(manifold, footpoint, sigma, draws, 1, rng=generator)[0]
            losses.append(manifold.dist(second, points) ** 2 - manifold.dist(first, points) ** 2)
        for index, value in enumerate(epsilon):
            threshold = 2 * sigma**2 * value
            held = np.sum(losses[0] >= threshold) / draws
            total[index] += held - math.exp(value) * np.sum(losses[1] >= threshold) / draws
    return max(float(_mu_of(total[i : i + 1] / repeats, epsilon[i : i + 1])[0]) for i in range(epsilons))


def _footpoints(manifold: Manifold, sensitivity: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random point and another at distance `sensitivity`."""
    first = manifold.random_point(rng=rng)
    unit = np.zeros(manifold.dim)
    unit[0] = sensitivity
    return first, manifold.exp(first, manifold.from_coordinates(first, unit))


def _epsilons(sigma: float, sensitivity: float, count: int, largest: float | None) -> np.ndarray:
    """k, 2k, …, ε_max: 0 is not among them."""
    end = math.pi * sensitivity / (2 * sigma**2) if largest is None else positive_number("largest_epsilon", largest)
    return end * np.arange(1, positive_integer("epsilons", count) + 1) / count
