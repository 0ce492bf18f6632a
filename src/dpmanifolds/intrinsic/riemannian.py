"""Riemannian Laplace and Gaussian laws around a footpoint, by the facts of their manifold.

On a homogeneous manifold the law around a footpoint looks the same from every footpoint: `laplace_law` and
`gaussian_law` find the `TangentLaw` of a manifold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array
from dpmanifolds.errors import ArgumentError
from dpmanifolds.intrinsic.compact import compact_gaussian, compact_laplace
from dpmanifolds.intrinsic.law import PointLaw, TangentLaw, is_euclidean
from dpmanifolds.intrinsic.rank_one import radial_gaussian, radial_laplace
from dpmanifolds.intrinsic.spd import SPDGaussian, SPDLaplace
from dpmanifolds.intrinsic.wrapped import FlatGaussian, FlatLaplace
from dpmanifolds.manifolds import Manifold, Power, Product, SPDAffineInvariant
from dpmanifolds.manifolds.base import check_manifold


def laplace_law(manifold: Manifold, sigma: float) -> TangentLaw:
    """The law ∝ exp(−ρ(η,·)/σ) on `manifold`, with respect to the Riemannian volume, seen from η.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.intrinsic import laplace_law
    >>> law = laplace_law(Sphere(2), 0.1)
    >>> round(law.distance_moment(1), 6)
    0.19802
    """
    return _find(_LAPLACE, manifold, sigma)


def gaussian_law(manifold: Manifold, sigma: float) -> TangentLaw:
    """The law ∝ exp(−ρ(η,·)²/2σ²) on `manifold`, with respect to the Riemannian volume, seen from η.

    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.intrinsic import gaussian_law
    >>> law = gaussian_law(SPD(2), 0.3)
    >>> round(law.distance_moment(2), 6)
    0.272708
    """
    return _find(_GAUSSIAN, manifold, sigma)


class _Laws(NamedTuple):
    """One law on every kind of space where it can be drawn exactly."""

    name: str
    flat: Callable[[Any, float], TangentLaw]
    isotropic: Callable[[Any, float], TangentLaw]
    compact: Callable[[Any, float], TangentLaw]
    positive: Callable[[Any, float], TangentLaw]
    product: Callable[[Any, float], TangentLaw]


def _find(laws: _Laws, manifold: Manifold, sigma: float) -> TangentLaw:
    check_manifold(manifold)
    if is_euclidean(manifold):
        return laws.flat(manifold, sigma)
    if manifold.is_product:
        alone = _only_factor(manifold)
        return laws.product(manifold, sigma) if alone is None else _find(laws, alone, sigma)
    if manifold.polar_roots is not None:
        return laws.isotropic(manifold, sigma)
    if manifold.root_system is not None:
        return laws.compact(manifold, sigma)
    if isinstance(manifold, SPDAffineInvariant):
        return laws.positive(manifold, sigma)
    raise ArgumentError(
        f"no exact sampler of the Riemannian {laws.name} law is known for {manifold!r}. Use Wrapped{laws.name}, which "
        "adds noise in the tangent space and exists on every manifold."
    )


class ProductGaussian(TangentLaw):
    """The Gaussian on M₁ × … × M_m: squared distances add, so it is the product of the factors' Gaussians.

    E ρ² is the sum of the factors'; the distance itself has no one-dimensional form.

    >>> from dpmanifolds import Euclidean, Product, Sphere
    >>> from dpmanifolds.intrinsic import gaussian_law
    >>> law = gaussian_law(Product(Sphere(2), Euclidean(3)), 0.1)
    >>> round(law.distance_moment(2), 6)
    0.049933
    """

    def __init__(self, manifold: Product | Power, sigma: float) -> None:
        super().__init__(manifold, sigma)
        self._factors = [(gaussian_law(factor, sigma), copies) for factor, copies in _factors(manifold)]

    @property
    def log_normalizer(self) -> float:
        return sum(copies * law.log_normalizer for law, copies in self._factors)

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        blocks = [
            law.sample_coordinates(count * copies, rng).reshape((count, copies * law.manifold.dim))
            for law, copies in self._factors
        ]
        return np.concatenate(blocks, axis=1)

    def distance_moment(self, order: float) -> float:
        if order != 2:
            return super().distance_moment(order)
        return sum(copies * law.distance_moment(2) for law, copies in self._factors)


def _factors(manifold: Manifold) -> list[tuple[Manifold, int]]:
    """The factors, and how many copies of each stand side by side."""
    return [(factor, 1) for factor in manifold.factors] or [(manifold.single, manifold.copies)]


def _only_factor(manifold: Manifold) -> Manifold | None:
    """The factor of a product that has just one."""
    (first, copies), *others = _factors(manifold)
    return first if copies == 1 and not others else None


def _no_product_laplace(manifold: Manifold, sigma: float) -> TangentLaw:
    raise ArgumentError(
        f"the Riemannian Laplace law on {manifold!r} is not a product of laws on the factors, and no exact sampler of "
        "it is offered. Use WrappedLaplace or RiemannianGaussian."
    )


_LAPLACE = _Laws("Laplace", FlatLaplace, radial_laplace, compact_laplace, SPDLaplace, _no_product_laplace)
_GAUSSIAN = _Laws("Gaussian", FlatGaussian, radial_gaussian, compact_gaussian, SPDGaussian, ProductGaussian)


class RiemannianLaw(PointLaw):
    """An isotropic law around a footpoint, with respect to the Riemannian volume.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.intrinsic import RiemannianLaplace, RiemannianLaw
    >>> law = RiemannianLaplace(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.2)
    >>> isinstance(law, RiemannianLaw), round(law.mean_distance, 4)
    (True, 0.3846)
    >>> law.sample(5, rng=0).shape
    (5, 3)
    """

    def log_density(self, points: Array) -> Array:
        """Log-density of points (..., *point_shape) of the manifold with respect to the Riemannian volume."""
        return self._log_kernel(self.manifold.dist(self.footpoint, points)) - self.log_normalizer

    @property
    def log_normalizer(self) -> float:
        """log of the integral of the unnormalised density over the manifold."""
        return self.tangent_law.log_normalizer

    @property
    def mean_distance(self) -> float:
        """E ρ(footpoint, X)."""
        return self.tangent_law.distance_moment(1)

    @property
    def mean_squared_distance(self) -> float:
        """E ρ(footpoint, X)²."""
        return self.tangent_law.distance_moment(2)

    def distance_cdf(self, radius: ArrayLike) -> Any:
        """P(ρ(footpoint, X) ≤ radius)."""
        return self.tangent_law.distance_cdf(radius)

    def distance_quantile(self, probability: ArrayLike) -> Any:
        """The radius with P(ρ(footpoint, X) ≤ radius) = probability."""
        return self.tangent_law.distance_quantile(probability)


class RiemannianLaplace(RiemannianLaw):
    """Density ∝ exp(−ρ(footpoint, ·)/σ) with respect to the Riemannian volume.

    On negatively curved spaces the volume of balls grows exponentially and the law exists only below a critical
    scale: σ < 1/((d−1)√κ) on Hyperbolic(d, −κ), σ < √(12/(k(k²−1))) on affine-invariant SPD(k).

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.intrinsic import RiemannianLaplace
    >>> law = RiemannianLaplace(Sphere(2), np.array([0.0, 0.0, 1.0]), sigma=0.1)
    >>> law.sample(5, rng=0).shape
    (5, 3)
    >>> round(law.mean_distance, 6), round(law.distance_quantile(0.95), 6)
    (0.19802, 0.468329)
    """

    _is_gaussian = False

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return laplace_law(manifold, sigma)


class RiemannianGaussian(RiemannianLaw):
    """Density ∝ exp(−ρ(footpoint, ·)²/2σ²) with respect to the Riemannian volume.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.intrinsic import RiemannianGaussian
    >>> law = RiemannianGaussian(SPD(2, "log-euclidean"), np.eye(2), sigma=0.5)
    >>> law.sample((4, 2), rng=0).shape
    (4, 2, 2, 2)
    >>> round(law.mean_squared_distance, 9)
    0.75
    """

    _is_gaussian = True

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return gaussian_law(manifold, sigma)
