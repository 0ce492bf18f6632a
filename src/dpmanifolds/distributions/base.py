"""Riemannian Laplace and Gaussian laws: what a user holds, and what each manifold supplies.

On a homogeneous manifold the law around a footpoint looks the same from every footpoint. A `TangentLaw` is that
law in orthonormal tangent coordinates; `laplace_law` and `gaussian_law` find the one of a manifold, and every
file of this room registers its own with `laplace_law.register` and `gaussian_law.register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array
from dpmanifolds._validate import positive_number
from dpmanifolds.distributions._arguments import Size, checked_point, size_of
from dpmanifolds.errors import ArgumentError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold
from dpmanifolds.noise import as_generator

__all__ = [
    "PointLaw",
    "RiemannianGaussian",
    "RiemannianLaplace",
    "RiemannianLaw",
    "TangentLaw",
    "gaussian_law",
    "laplace_law",
]

_SMALLEST_SCALE, _LARGEST_SCALE = 1e-100, 1e100


class TangentLaw(ABC):
    """The law of log_η X in orthonormal coordinates, the same at every footpoint η.

    The distance ρ(η, X) is the Euclidean norm of the coordinates.

    >>> import numpy as np
    >>> from dpmanifolds import Hyperbolic
    >>> from dpmanifolds.distributions import TangentLaw, laplace_law
    >>> law = laplace_law(Hyperbolic(2), 0.2)
    >>> isinstance(law, TangentLaw), law.sample_coordinates(5, np.random.default_rng(0)).shape
    (True, (5, 2))
    """

    def __init__(self, manifold: Manifold, sigma: float) -> None:
        self.manifold = manifold
        self.sigma = positive_number("sigma", sigma)
        if not _SMALLEST_SCALE <= self.sigma <= _LARGEST_SCALE:
            raise ScaleOutOfRangeError(
                f"sigma must lie between {_SMALLEST_SCALE:g} and {_LARGEST_SCALE:g} for its square to be a float64; "
                f"got {self.sigma:g}."
            )

    @property
    @abstractmethod
    def log_normalizer(self) -> float:
        """log of the integral of exp(−ρ/σ), or of exp(−ρ²/2σ²), over the manifold."""

    @abstractmethod
    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` exact, independent draws as float64 coordinates (count, dim)."""

    def distance_moment(self, order: float) -> float:
        """E ρ^order, order ≥ 0."""
        self._not_available(f"the moment of order {order:g} of the distance")

    def distance_cdf(self, radius: ArrayLike) -> Any:
        """P(ρ ≤ radius): a float for a number, an array for an array."""
        self._not_available("the distribution function of the distance")

    def distance_quantile(self, probability: ArrayLike) -> Any:
        """The radius with P(ρ ≤ radius) = probability."""
        self._not_available("the quantiles of the distance")

    def _not_available(self, what: str) -> NoReturn:
        raise NotAvailableError(
            f"{what} has no one-dimensional form on {self.manifold!r}; estimate it from draws (`sample`)."
        )


@singledispatch
def laplace_law(manifold: Manifold, sigma: float) -> TangentLaw:
    """The law ∝ exp(−ρ(η,·)/σ) on `manifold`, with respect to the Riemannian volume, seen from η.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.distributions import laplace_law
    >>> law = laplace_law(Sphere(2), 0.1)
    >>> round(law.distance_moment(1), 6)
    0.19802
    """
    _no_law("Laplace", manifold)


@singledispatch
def gaussian_law(manifold: Manifold, sigma: float) -> TangentLaw:
    """The law ∝ exp(−ρ(η,·)²/2σ²) on `manifold`, with respect to the Riemannian volume, seen from η.

    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.distributions import gaussian_law
    >>> law = gaussian_law(SPD(2), 0.3)
    >>> round(law.distance_moment(2), 6)
    0.272708
    """
    _no_law("Gaussian", manifold)


def _no_law(name: str, manifold: Any) -> NoReturn:
    check_manifold(manifold)
    raise ArgumentError(
        f"no exact sampler of the Riemannian {name} law is known for {manifold!r}. Use Wrapped{name}, which adds "
        "noise in the tangent space and exists on every manifold."
    )


class PointLaw(ABC):
    """exp_footpoint of a random tangent vector whose orthonormal coordinates have an isotropic law.

    Arrays come back in the library, precision and device of the footpoint; the noise itself is drawn on the host
    in float64. Draws are exact in the sense of real numbers: no Markov chain, no tabulated distribution.
    """

    def __init__(self, manifold: Manifold, footpoint: Array, sigma: float) -> None:
        self.tangent_law = self._law(manifold, sigma)
        self.manifold = manifold
        self.sigma = self.tangent_law.sigma
        self.footpoint = checked_point(manifold, footpoint, "footpoint")

    @staticmethod
    @abstractmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        """The law of the coordinates."""

    @abstractmethod
    def _log_kernel(self, distance: Array) -> Array:
        """A log-density that depends on the distance alone, up to its constant."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.manifold!r}, sigma={self.sigma!r})"

    def sample_coordinates(self, size: Size = (), rng: Any = None) -> np.ndarray:
        """Draws of the coordinates, before exp: NumPy float64 (*size, dim)."""
        leading, count = size_of(size)
        drawn = self.tangent_law.sample_coordinates(count, as_generator(rng))
        return drawn.reshape((*leading, self.manifold.dim))

    def sample(self, size: Size = (), rng: Any = None) -> Array:
        """Independent draws (*size, *point_shape).

        `rng` is None (the secure generator), a seed or a Generator. Draws so far out that they are no points of
        the manifold in the footpoint's precision raise `ScaleOutOfRangeError`.
        """
        return self.manifold.move(self.footpoint, self.sample_coordinates(size, rng))


class RiemannianLaw(PointLaw):
    """An isotropic law around a footpoint, with respect to the Riemannian volume.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.distributions import RiemannianLaplace, RiemannianLaw
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
    >>> from dpmanifolds.distributions import RiemannianLaplace
    >>> law = RiemannianLaplace(Sphere(2), np.array([0.0, 0.0, 1.0]), sigma=0.1)
    >>> law.sample(5, rng=0).shape
    (5, 3)
    >>> round(law.mean_distance, 6), round(law.distance_quantile(0.95), 6)
    (0.19802, 0.468329)
    """

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return laplace_law(manifold, sigma)

    def _log_kernel(self, distance: Array) -> Array:
        return -distance / self.sigma


class RiemannianGaussian(RiemannianLaw):
    """Density ∝ exp(−ρ(footpoint, ·)²/2σ²) with respect to the Riemannian volume.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.distributions import RiemannianGaussian
    >>> law = RiemannianGaussian(SPD(2, "log-euclidean"), np.eye(2), sigma=0.5)
    >>> law.sample((4, 2), rng=0).shape
    (4, 2, 2, 2)
    >>> round(law.mean_squared_distance, 9)
    0.75
    """

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return gaussian_law(manifold, sigma)

    def _log_kernel(self, distance: Array) -> Array:
        scaled = distance / self.sigma
        return -scaled * scaled / 2
