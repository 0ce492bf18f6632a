"""Laws on isotropic spaces, where distance says everything: spheres, hyperbolic spaces, shapes, SO(3), lines."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._validate import checked_order, positive_number
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.intrinsic.law import TangentLaw, log_sphere_area
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import uniform_directions
from dpmanifolds.privacy.radial import ExponentialKernel, RadialDensity, gaussian_radius, polar_roots


class RadialLaw(TangentLaw):
    """A law whose density depends on the distance alone, on a manifold where the area of geodesic spheres does.

    The direction is uniform and the radius has the density `radius` up to the cut locus (MATH.md section 3, rank one);
    `radius.tilted(k)` is that density times s^k.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.intrinsic.rank_one import radial_laplace
    >>> round(radial_laplace(Sphere(3), 0.1).distance_moment(1), 6)
    0.292308
    """

    def __init__(self, manifold: Manifold, sigma: float, radius: RadialDensity) -> None:
        super().__init__(manifold, sigma)
        self.radius = radius

    @property
    def log_normalizer(self) -> float:
        return log_sphere_area(self.manifold.dim) + self.radius.log_integral

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        directions = uniform_directions(count, self.manifold.dim, rng)
        return np.asarray(self.radius.sampler.sample(count, rng)[:, None] * directions)

    def distance_moment(self, order: float) -> float:
        tilted = self.radius.tilted(checked_order(order))
        with np.errstate(over="ignore"):
            return float(np.exp(tilted.log_integral - self.radius.log_integral))

    def distance_cdf(self, radius: ArrayLike) -> Any:
        return self.radius.integral.cdf(radius)

    def distance_quantile(self, probability: ArrayLike) -> Any:
        return self.radius.integral.quantile(probability)


def radial_laplace(manifold: Manifold, sigma: float) -> RadialLaw:
    """Radius density e^{−s/σ}·∏ (sin(as)/a)^m up to the cut locus, for every σ.

    In negative curvature −κ, e^{−s/σ}·(sinh(√κ s)/√κ)^{d−1} = e^{−rate·s}·((1 − e^{−2√κ s})/2√κ)^{d−1}, below the
    critical scale.
    """
    sigma = positive_number("sigma", sigma)
    roots = polar_roots(manifold)
    growth = sum(root.growth for root in roots)
    # 1 − σ²(d−1)²κ in exact arithmetic: near the limit a rounded difference would be all rounding
    steepness = (manifold.dim - 1) ** 2 * Fraction(-manifold.curvature_bounds[0]) if growth else 0
    margin = 1 - Fraction(sigma) ** 2 * steepness
    if margin <= 0:
        raise ScaleOutOfRangeError(
            f"sigma = {sigma:g} on {manifold!r}: balls grow so fast that the Riemannian Laplace law exists only for "
            f"sigma < 1/((d−1)√κ) = {1 / growth:g}. Use a smaller sigma, or WrappedLaplace, which exists for every "
            "scale."
        )
    kernel = ExponentialKernel(float(margin) / (1 + sigma * growth) / sigma)
    return RadialLaw(manifold, sigma, RadialDensity(kernel, roots, manifold.injectivity_radius))


def radial_gaussian(manifold: Manifold, sigma: float) -> RadialLaw:
    """Radius density e^{−s²/2σ²}·∏ (sin(as)/a)^m up to the cut locus, see `gaussian_radius`."""
    return RadialLaw(manifold, sigma, gaussian_radius(manifold, sigma))
