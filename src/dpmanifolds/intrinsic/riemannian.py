"""Riemannian and wrapped Laplace and Gaussian laws around a footpoint, by the facts of their manifold.

On a homogeneous manifold the law around a footpoint looks the same from every footpoint: `laplace_law` and
`gaussian_law` find the `TangentLaw` of a manifold. Wrapped laws are those of flat space, carried to any manifold by
exp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.intrinsic.compact import compact_gaussian, compact_laplace
from dpmanifolds.intrinsic.law import (
    PointLaw,
    TangentLaw,
    log_sphere_area,
    radial_gaussian,
    radial_laplace,
)
from dpmanifolds.intrinsic.spd import SPDGaussian, SPDLaplace
from dpmanifolds.manifolds import Manifold, Power, Product, SPDAffineInvariant
from dpmanifolds.manifolds.base import check_manifold
from dpmanifolds.noise import uniform_directions
from dpmanifolds.noise.norms import GaussianNorm, LaplaceNorm


class _FlatLaw(TangentLaw):
    """A law of R^d whose length is known."""

    _norm: GaussianNorm | LaplaceNorm

    def distance_moment(self, order: float) -> float:
        return self._norm.moment(order)

    def distance_cdf(self, radius: ArrayLike) -> Any:
        return self._norm.cdf(radius)

    def distance_quantile(self, probability: ArrayLike) -> Any:
        return self._norm.quantile(probability)


class FlatLaplace(_FlatLaw):
    """Density ∝ e^{−|c|/σ} on R^d: |c| ~ σ·Gamma(d), times a uniform direction (MATH.md section 3).

    Normaliser |S^{d−1}|·Γ(d)·σ^d.

    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.intrinsic import FlatLaplace
    >>> FlatLaplace(Euclidean(3), 0.5).distance_moment(1)
    1.5
    """

    def __init__(self, manifold: Manifold, sigma: float) -> None:
        super().__init__(manifold, sigma)
        self._norm = LaplaceNorm(manifold.dim, self.sigma)

    @property
    def log_normalizer(self) -> float:
        d = self.manifold.dim
        return log_sphere_area(d) + math.lgamma(d) + d * math.log(self.sigma)

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        directions = uniform_directions(count, self.manifold.dim, rng)
        radii = self.sigma * rng.standard_gamma(self.manifold.dim, count)
        return np.asarray(radii[:, None] * directions)


class FlatGaussian(_FlatLaw):
    """N(0, σ²I) on R^d (MATH.md section 3), with the normaliser (2πσ²)^{d/2}.

    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.intrinsic import FlatGaussian
    >>> round(FlatGaussian(Euclidean(2), 1.0).distance_cdf(1.0), 9)
    0.39346934
    """

    def __init__(self, manifold: Manifold, sigma: float) -> None:
        super().__init__(manifold, sigma)
        self._norm = GaussianNorm(manifold.dim, self.sigma)

    @property
    def log_normalizer(self) -> float:
        return self.manifold.dim * (math.log(2 * math.pi) / 2 + math.log(self.sigma))

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return self.sigma * rng.standard_normal((count, self.manifold.dim))


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
    if manifold.is_flat:
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
    _law = staticmethod(laplace_law)


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
    _law = staticmethod(gaussian_law)


class WrappedLaw(PointLaw):
    """exp_footpoint of a random tangent vector whose orthonormal coordinates c have an isotropic law of R^dim.

    It exists on every manifold with an exponential map and at every scale. The norm of c is the distance to the
    footpoint on a Hadamard manifold; elsewhere exp may wrap around, and the distance is at most |c|.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.intrinsic import WrappedGaussian, WrappedLaw
    >>> law = WrappedGaussian(SPD(3), np.eye(3), 0.1)
    >>> isinstance(law, WrappedLaw), law.sample(5, rng=0).shape
    (True, (5, 3, 3))
    """

    def log_density(self, points: Array) -> Array:
        """Log-density with respect to the Riemannian volume, where exp is injective (Hadamard manifolds).

        The density of c at log_footpoint(point), divided by the Jacobian of exp there.
        """
        if not self.manifold.is_hadamard:
            raise NotAvailableError(
                f"exp is not injective on {self.manifold!r}: the density of a wrapped law there is an infinite sum. "
                "Compare draws instead, or use the Riemannian law."
            )
        density = self._log_kernel(self.manifold.dist(self.footpoint, points)) - self.tangent_law.log_normalizer
        if self.manifold.is_flat:
            return density
        return density - self.manifold.log_volume_density(self.footpoint, self.manifold.log(self.footpoint, points))


class WrappedGaussian(WrappedLaw):
    """exp_footpoint of a tangent vector with coordinates N(0, σ²I).

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.intrinsic import WrappedGaussian
    >>> law = WrappedGaussian(SPD(3), np.eye(3), sigma=0.2)
    >>> law.sample(10, rng=0).shape
    (10, 3, 3)
    >>> round(law.tangent_law.distance_moment(2), 9)
    0.24
    """

    _is_gaussian = True
    _law = staticmethod(FlatGaussian)


class WrappedLaplace(WrappedLaw):
    """exp_footpoint of a tangent vector whose coordinates have density ∝ e^{−|c|/σ}.

    >>> from dpmanifolds import Stiefel
    >>> from dpmanifolds.intrinsic import WrappedLaplace
    >>> space = Stiefel(5, 2)
    >>> law = WrappedLaplace(space, space.random_point(rng=0), sigma=0.1)
    >>> bool(space.belongs(law.sample(rng=1)))
    True
    >>> round(law.tangent_law.distance_quantile(0.5), 6)
    0.666964
    """

    _is_gaussian = False
    _law = staticmethod(FlatLaplace)
