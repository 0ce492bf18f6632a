"""Records and noise that the papers' simulations share, many data sets at once.

>>> import numpy as np
>>> from papers._draws import means_of, polar_records
>>> records = polar_records(np.pi / 8, (5, 20), np.random.default_rng(0))
>>> means_of(Sphere(2), records).shape
(5, 3)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpmanifolds.errors import ConvergenceError
from dpmanifolds.intrinsic import laplace_law
from dpmanifolds.manifolds import SPD, Manifold, Sphere

__all__ = [
    "embedded_laplace",
    "half_vectors",
    "matrix_function",
    "means_of",
    "polar_records",
    "riemannian_laplace",
    "wishart_records",
]

_STEPS = 200
_SMALL = 1e-11


def polar_records(radius: float, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Points of S² with uniform polar angle in [0, radius] and uniform longitude: denser near the pole."""
    theta, phi = rng.random(size) * radius, rng.random(size) * 2 * np.pi
    return np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=-1)


def wishart_records(radius: float, size: tuple[int, ...], rng: np.random.Generator, k: int = 2) -> np.ndarray:
    """Wishart(I/k, k) matrices, those farther than `radius` from the identity drawn again."""
    space, count = SPD(k), int(np.prod(size))
    kept = np.empty((0, k, k))
    while len(kept) < count:
        factors = rng.standard_normal((2 * count + 100, k, k)) / np.sqrt(k)
        drawn = factors @ np.swapaxes(factors, -1, -2)
        # nearly singular ones are outside anyway
        drawn = drawn[np.linalg.eigvalsh(drawn)[:, 0] > np.exp(-radius) / 2]
        kept = np.concatenate([kept, drawn[space.dist(np.eye(k), drawn) <= radius * (1 - 1e-9)]])
    return kept[:count].reshape((*size, k, k))


def means_of(manifold: Manifold, records: np.ndarray) -> np.ndarray:
    """The Fréchet means of many data sets (sets, n, *point_shape), by Karcher's iteration on all of them at once."""
    means = np.array(records[:, 0])
    for _ in range(_STEPS):
        step = np.mean(manifold.log(means[:, None], records), axis=1)
        means = manifold.exp(means, step)
        if float(np.max(manifold.norm(means, step))) < _SMALL:
            return np.asarray(manifold.project(means)) if isinstance(manifold, Sphere) else means
    raise ConvergenceError("Karcher's iteration did not converge on these simulated records.")


def riemannian_laplace(manifold: Manifold, means: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """One exact draw of the Riemannian Laplace around each mean."""
    coordinates = laplace_law(manifold, sigma).sample_coordinates(len(means), rng)
    return np.asarray(manifold.exp(means, manifold.from_coordinates(means, coordinates)))


def embedded_laplace(vectors: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """One draw of the density ∝ exp(−|x − vector|/σ) in R^D around each vector."""
    directions = rng.standard_normal(vectors.shape)
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    lengths = rng.standard_gamma(vectors.shape[-1], size=vectors.shape[:-1])
    return np.asarray(vectors + sigma * lengths[..., None] * directions)


def half_vectors(matrices: np.ndarray) -> np.ndarray:
    """vech: the entries on and above the diagonal."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns])


def matrix_function(matrices: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of symmetric matrices, by their eigenvalues."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))
