"""Ordinary noise in the tangent space at a base point, carried to the manifold by exp."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array
from dpmanifolds.distributions._arguments import Size, checked_point, size_of
from dpmanifolds.distributions._points import move
from dpmanifolds.distributions.base import TangentLaw
from dpmanifolds.distributions.flat import FlatGaussian, FlatLaplace, is_euclidean
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import as_generator

__all__ = ["WrappedGaussian", "WrappedLaplace", "WrappedLaw"]


class WrappedLaw(ABC):
    """exp_base of a random tangent vector whose orthonormal coordinates c have an isotropic law of R^dim.

    It exists on every manifold with an exponential map and at every scale. The norm of c is the distance to the
    base on a Hadamard manifold; elsewhere exp may wrap around, and the distance is at most |c|.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.distributions import WrappedGaussian, WrappedLaw
    >>> law = WrappedGaussian(SPD(3), np.eye(3), 0.1)
    >>> isinstance(law, WrappedLaw), law.sample(5, rng=0).shape
    (True, (5, 3, 3))
    """

    def __init__(self, manifold: Manifold, base: Array, sigma: float) -> None:
        self.coordinate_law = self._law(manifold, sigma)
        self.manifold = manifold
        self.sigma = self.coordinate_law.sigma
        self.base = checked_point(manifold, base, "base")

    @staticmethod
    @abstractmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        """The law of the coordinates."""

    @abstractmethod
    def _log_kernel(self, distance: Array) -> Array:
        """The log-density of the coordinates up to its constant."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.manifold!r}, sigma={self.sigma!r})"

    def sample_coordinates(self, size: Size = (), rng: Any = None) -> np.ndarray:
        """Draws of the coordinates, before exp: NumPy float64 (*size, dim)."""
        leading, count = size_of(size)
        drawn = self.coordinate_law.sample_coordinates(count, as_generator(rng))
        return drawn.reshape((*leading, self.manifold.dim))

    def sample(self, size: Size = (), rng: Any = None) -> Array:
        """Independent draws (*size, *point_shape), in the library and precision of the base.

        `rng` is None (the secure generator), a seed or a Generator. Draws so far out that they are no points of
        the manifold in the base's precision raise `ScaleOutOfRangeError`.
        """
        return move(self.manifold, self.base, self.sample_coordinates(size, rng))

    def log_density(self, points: Array) -> Array:
        """Log-density with respect to the Riemannian volume, where exp is injective (Hadamard manifolds).

        The density of c at log_base(point), divided by the Jacobian of exp there.
        """
        if not self.manifold.is_hadamard:
            raise NotAvailableError(
                f"exp is not injective on {self.manifold!r}: the density of a wrapped law there is an infinite sum. "
                "Compare draws instead, or use the Riemannian law."
            )
        density = self._log_kernel(self.manifold.dist(self.base, points)) - self.coordinate_law.log_normalizer
        if is_euclidean(self.manifold):
            return density
        return density - self.manifold.log_volume_density(self.base, self.manifold.log(self.base, points))

    def norm_moment(self, order: float) -> float:
        """E|c|^order, order ≥ 0."""
        return self.coordinate_law.distance_moment(order)

    def norm_cdf(self, radius: ArrayLike) -> Any:
        """P(|c| ≤ radius)."""
        return self.coordinate_law.distance_cdf(radius)

    def norm_quantile(self, probability: ArrayLike) -> Any:
        """The radius with P(|c| ≤ radius) = probability."""
        return self.coordinate_law.distance_quantile(probability)


class WrappedGaussian(WrappedLaw):
    """exp_base of a tangent vector with coordinates N(0, σ²I).

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.distributions import WrappedGaussian
    >>> law = WrappedGaussian(SPD(3), np.eye(3), sigma=0.2)
    >>> law.sample(10, rng=0).shape
    (10, 3, 3)
    >>> round(law.norm_moment(2), 9)
    0.24
    """

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return FlatGaussian(manifold, sigma)

    def _log_kernel(self, distance: Array) -> Array:
        scaled = distance / self.sigma
        return -scaled * scaled / 2


class WrappedLaplace(WrappedLaw):
    """exp_base of a tangent vector whose coordinates have density ∝ e^{−|c|/σ}.

    >>> from dpmanifolds import Stiefel
    >>> from dpmanifolds.distributions import WrappedLaplace
    >>> space = Stiefel(5, 2)
    >>> law = WrappedLaplace(space, space.random_point(rng=0), sigma=0.1)
    >>> bool(space.belongs(law.sample(rng=1)))
    True
    >>> round(law.norm_quantile(0.5), 6)
    0.666964
    """

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return FlatLaplace(manifold, sigma)

    def _log_kernel(self, distance: Array) -> Array:
        return -distance / self.sigma
