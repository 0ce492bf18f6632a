"""Ordinary noise in the tangent space at a footpoint, carried to the manifold by exp."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array
from dpmanifolds.distributions.base import PointLaw, TangentLaw
from dpmanifolds.distributions.flat import FlatGaussian, FlatLaplace, is_euclidean
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.manifolds import Manifold

__all__ = ["WrappedGaussian", "WrappedLaplace", "WrappedLaw"]


class WrappedLaw(PointLaw):
    """exp_footpoint of a random tangent vector whose orthonormal coordinates c have an isotropic law of R^dim.

    It exists on every manifold with an exponential map and at every scale. The norm of c is the distance to the
    footpoint on a Hadamard manifold; elsewhere exp may wrap around, and the distance is at most |c|.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.distributions import WrappedGaussian, WrappedLaw
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
        if is_euclidean(self.manifold):
            return density
        return density - self.manifold.log_volume_density(self.footpoint, self.manifold.log(self.footpoint, points))

    def norm_moment(self, order: float) -> float:
        """E|c|^order, order ≥ 0."""
        return self.tangent_law.distance_moment(order)

    def norm_cdf(self, radius: ArrayLike) -> Any:
        """P(|c| ≤ radius)."""
        return self.tangent_law.distance_cdf(radius)

    def norm_quantile(self, probability: ArrayLike) -> Any:
        """The radius with P(|c| ≤ radius) = probability."""
        return self.tangent_law.distance_quantile(probability)


class WrappedGaussian(WrappedLaw):
    """exp_footpoint of a tangent vector with coordinates N(0, σ²I).

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
    """exp_footpoint of a tangent vector whose coordinates have density ∝ e^{−|c|/σ}.

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
