"""Laws on flat spaces: ordinary noise in orthonormal coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpmanifolds.distributions._arguments import checked_order, checked_probabilities, float_or_array
from dpmanifolds.distributions.base import TangentLaw, gaussian_law, laplace_law
from dpmanifolds.manifolds import FlatManifold, Manifold
from dpmanifolds.noise import uniform_directions

__all__ = ["FlatGaussian", "FlatLaplace", "is_euclidean", "log_sphere_area"]


def log_sphere_area(dim: int) -> float:
    """log of 2π^{dim/2}/Γ(dim/2), the area of the unit sphere in R^dim."""
    return math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2)


class FlatLaplace(TangentLaw):
    """Density ∝ e^{−|c|/σ} on R^d: |c| ~ σ·Gamma(d), times a uniform direction (MATH.md section 3).

    Normaliser |S^{d−1}|·Γ(d)·σ^d; E|c|^k = σ^k Γ(d+k)/Γ(d); P(|c| ≤ r) is the regularised incomplete gamma
    function P(d, r/σ).

    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.distributions.flat import FlatLaplace
    >>> law = FlatLaplace(Euclidean(3), 0.5)
    >>> law.distance_moment(1)
    1.5
    """

    @property
    def log_normalizer(self) -> float:
        d = self.manifold.dim
        return log_sphere_area(d) + math.lgamma(d) + d * math.log(self.sigma)

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        directions = uniform_directions(count, self.manifold.dim, rng)
        radii = self.sigma * rng.standard_gamma(self.manifold.dim, count)
        return np.asarray(radii[:, None] * directions)

    def distance_moment(self, order: float) -> float:
        order = checked_order(order)
        return float(self.sigma**order * special.poch(self.manifold.dim, order))

    def distance_cdf(self, radius: ArrayLike) -> Any:
        scaled = np.maximum(np.asarray(radius, dtype=np.float64) / self.sigma, 0.0)
        return float_or_array(special.gammainc(self.manifold.dim, scaled))

    def distance_quantile(self, probability: ArrayLike) -> Any:
        return float_or_array(self.sigma * special.gammaincinv(self.manifold.dim, checked_probabilities(probability)))


class FlatGaussian(TangentLaw):
    """N(0, σ²I) on R^d (MATH.md section 3).

    Normaliser (2πσ²)^{d/2}; E|c|^k = (√2σ)^k Γ((d+k)/2)/Γ(d/2); P(|c| ≤ r) is the regularised incomplete gamma
    function P(d/2, r²/2σ²).

    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.distributions.flat import FlatGaussian
    >>> round(FlatGaussian(Euclidean(2), 1.0).distance_cdf(1.0), 9)
    0.39346934
    """

    @property
    def log_normalizer(self) -> float:
        return self.manifold.dim * (math.log(2 * math.pi) / 2 + math.log(self.sigma))

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return self.sigma * rng.standard_normal((count, self.manifold.dim))

    def distance_moment(self, order: float) -> float:
        order = checked_order(order)
        return float((math.sqrt(2) * self.sigma) ** order * special.poch(self.manifold.dim / 2, order / 2))

    def distance_cdf(self, radius: ArrayLike) -> Any:
        scaled = np.maximum(np.asarray(radius, dtype=np.float64) / self.sigma, 0.0)
        return float_or_array(special.gammainc(self.manifold.dim / 2, scaled * scaled / 2))

    def distance_quantile(self, probability: ArrayLike) -> Any:
        half_square = special.gammaincinv(self.manifold.dim / 2, checked_probabilities(probability))
        return float_or_array(self.sigma * np.sqrt(2 * half_square))


@laplace_law.register
def _(manifold: FlatManifold, sigma: float) -> TangentLaw:
    return FlatLaplace(manifold, sigma)


@gaussian_law.register
def _(manifold: FlatManifold, sigma: float) -> TangentLaw:
    return FlatGaussian(manifold, sigma)


def is_euclidean(manifold: Manifold) -> bool:
    """Whether `manifold` is isometric to R^dim: complete, simply connected and flat (Killing–Hopf)."""
    return manifold.is_hadamard and manifold.curvature_bounds == (0.0, 0.0)
