"""Laws on spheres, hyperbolic spaces and planar shapes: the isotropic spaces, where distance says everything."""

from __future__ import annotations

import math
from fractions import Fraction

from dpmanifolds._validate import positive_number
from dpmanifolds.distributions.base import TangentLaw, gaussian_law, laplace_law
from dpmanifolds.distributions.radial import ExponentialKernel, QuadraticKernel, RadialLaw, Root
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.manifolds import Hyperbolic, PlanarShapes, Sphere

__all__ = ["critical_scale"]

_LARGEST_DRIFT = 1e9
"""How many σ the hyperbolic Gaussian's typical distance may lie from 0 and still be resolved in float64."""


def _sphere_roots(manifold: Sphere) -> tuple[Root, ...]:
    return (Root(manifold.dim - 1, 1 / manifold.sphere_radius),)


def _shape_roots(manifold: PlanarShapes) -> tuple[Root, ...]:
    """CP^m: (sin s)^{2m−2}·sin(2s)/2, m = k − 2."""
    return Root(manifold.dim - 2, 1.0), Root(1, 2.0)


@laplace_law.register
def _(manifold: Sphere, sigma: float) -> TangentLaw:
    """Radius density e^{−s/σ}·(sin(√κ s)/√κ)^{d−1} on (0, π/√κ), for every σ."""
    kernel = ExponentialKernel(1 / positive_number("sigma", sigma))
    return RadialLaw(manifold, sigma, kernel, _sphere_roots(manifold), manifold.injectivity_radius)


@gaussian_law.register
def _(manifold: Sphere, sigma: float) -> TangentLaw:
    """Radius density e^{−s²/2σ²}·(sin(√κ s)/√κ)^{d−1} on (0, π/√κ), for every σ."""
    kernel = QuadraticKernel(0.0, positive_number("sigma", sigma))
    return RadialLaw(manifold, sigma, kernel, _sphere_roots(manifold), manifold.injectivity_radius)


@laplace_law.register
def _(manifold: PlanarShapes, sigma: float) -> TangentLaw:
    """Radius density e^{−s/σ}·(sin s)^{2m−2}·sin(2s)/2 on (0, π/2), for every σ."""
    kernel = ExponentialKernel(1 / positive_number("sigma", sigma))
    return RadialLaw(manifold, sigma, kernel, _shape_roots(manifold), manifold.injectivity_radius)


@gaussian_law.register
def _(manifold: PlanarShapes, sigma: float) -> TangentLaw:
    """Radius density e^{−s²/2σ²}·(sin s)^{2m−2}·sin(2s)/2 on (0, π/2), for every σ."""
    kernel = QuadraticKernel(0.0, positive_number("sigma", sigma))
    return RadialLaw(manifold, sigma, kernel, _shape_roots(manifold), manifold.injectivity_radius)


def critical_scale(manifold: Hyperbolic) -> float:
    """1/((d−1)√κ): the Laplace law on Hyperbolic(d, −κ) exists for smaller σ only.

    >>> from dpmanifolds import Hyperbolic
    >>> from dpmanifolds.distributions.rank_one import critical_scale
    >>> critical_scale(Hyperbolic(3))
    0.5
    """
    return manifold.scale_length / (manifold.dim - 1) if manifold.dim > 1 else math.inf


def _hyperbolic_roots(manifold: Hyperbolic) -> tuple[Root, ...]:
    return (Root(manifold.dim - 1, 1 / manifold.scale_length, hyperbolic=True),)


@laplace_law.register
def _(manifold: Hyperbolic, sigma: float) -> TangentLaw:
    """Radius density e^{−s/σ}·(sinh(√κ s)/√κ)^{d−1} = e^{−rate·s}·((1 − e^{−2√κ s})/2√κ)^{d−1} on (0, ∞)."""
    sigma = positive_number("sigma", sigma)
    # 1 − σ²(d−1)²κ in exact arithmetic: near the limit a rounded difference would be all rounding
    margin = 1 - Fraction(sigma) ** 2 * (manifold.dim - 1) ** 2 * Fraction(-manifold.curvature)
    if margin <= 0:
        raise ScaleOutOfRangeError(
            f"sigma = {sigma:g} on {manifold!r}: balls grow so fast that the Riemannian Laplace law exists only for "
            f"sigma < 1/((d−1)√κ) = {critical_scale(manifold):g}. Use a smaller sigma, or WrappedLaplace, which "
            "exists for every scale."
        )
    growth = (manifold.dim - 1) / manifold.scale_length
    kernel = ExponentialKernel(float(margin) / (1 + sigma * growth) / sigma)
    return RadialLaw(manifold, sigma, kernel, _hyperbolic_roots(manifold), math.inf)


@gaussian_law.register
def _(manifold: Hyperbolic, sigma: float) -> TangentLaw:
    """Radius density ∝ e^{−(s−μ)²/2σ²}·(1 − e^{−2√κ s})^{d−1} on (0, ∞), μ = (d−1)√κσ²."""
    sigma = positive_number("sigma", sigma)
    growth = (manifold.dim - 1) / manifold.scale_length
    if sigma * growth > _LARGEST_DRIFT:
        raise ScaleOutOfRangeError(
            f"sigma = {sigma:g} on {manifold!r}: draws lie about (d−1)√κσ² away, with a spread of sigma that float64 "
            f"no longer resolves. Use sigma ≤ {_LARGEST_DRIFT / growth:g}, or WrappedGaussian."
        )
    kernel = QuadraticKernel(growth * sigma * sigma, sigma)
    return RadialLaw(manifold, sigma, kernel, _hyperbolic_roots(manifold), math.inf)
