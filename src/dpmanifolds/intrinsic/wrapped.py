"""Laws on flat spaces, and the same noise in the tangent space at a footpoint, carried to any manifold by exp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.intrinsic.law import (
    PointLaw,
    TangentLaw,
    is_euclidean,
    log_sphere_area,
)
from dpmanifolds.manifolds import Manifold
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
        if is_euclidean(self.manifold):
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

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return FlatGaussian(manifold, sigma)


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

    @staticmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        return FlatLaplace(manifold, sigma)
