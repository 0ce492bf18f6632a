"""Which manifolds carry a Gaussian-DP promise of the Riemannian Gaussian, and the pair of laws that decides it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpmanifolds.errors import ArgumentError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold
from dpmanifolds.privacy._loss_rank_one import HyperbolicPair, SpherePair
from dpmanifolds.privacy._loss_tails import CirclePair, FlatPair, LossPair

__all__ = ["ModelSpace", "model_space"]

_SMALLEST, _LARGEST = 1e-12, 1e6
_LARGEST_DRIFT = 3e3
_LARGEST_RATIO = 1e5


@dataclass(frozen=True)
class ModelSpace:
    """Flat space (sign 0), the sphere (1; the circle for dim 1) or hyperbolic space (−1), of curvature sign·root²."""

    manifold: Manifold
    sign: int
    dim: int
    root: float

    def pair(self, sigma: float, sensitivity: float) -> LossPair:
        """The worst pair: footpoints at distance Δ, in units in which the curvature is −1, 0 or 1."""
        if self.sign == 0:
            return FlatPair(sensitivity / sigma)
        self.check_sensitivity(sensitivity)
        scale, delta = self.root * sigma, self.root * sensitivity
        self._check_scales(sigma, scale, delta)
        if self.sign < 0:
            return HyperbolicPair(self.dim, scale, delta)
        return SpherePair(self.dim, scale, delta) if self.dim > 1 else CirclePair(scale, delta)

    def check_sensitivity(self, sensitivity: float) -> None:
        """Points of a sphere are less than π/√κ apart, but for antipodes."""
        if self.sign > 0 and not self.root * sensitivity < math.pi:
            raise ArgumentError(
                f"sensitivity = {sensitivity:g} on {self.manifold!r}: no two points are further apart than "
                f"{math.pi / self.root:g}, and the sensitivity must be below that. Use more records or a smaller ball."
            )

    def _check_scales(self, sigma: float, scale: float, delta: float) -> None:
        if min(scale, delta) < _SMALLEST or scale > _LARGEST:
            raise ScaleOutOfRangeError(
                f"sigma = {sigma:g} on {self.manifold!r}: times the square root of the curvature, sigma must lie "
                f"between {_SMALLEST:g} and {_LARGEST:g} and the sensitivity above {_SMALLEST:g} for float64 to "
                "resolve the law."
            )
        if delta > _LARGEST_RATIO * scale:
            raise ScaleOutOfRangeError(
                f"the sensitivity is {delta / scale:g} times sigma = {sigma:g}: nothing is hidden at such a scale, and "
                f"float64 does not resolve the loss. Use sigma ≥ {delta / self.root / _LARGEST_RATIO:g}."
            )
        if self.sign < 0 and scale * (self.dim - 1) > _LARGEST_DRIFT:
            raise ScaleOutOfRangeError(
                f"sigma = {sigma:g} on {self.manifold!r} is so large that float64 does not resolve the law, and mu has "
                f"long reached its floor. Use sigma ≤ {_LARGEST_DRIFT / (self.dim - 1) / self.root:g}, or "
                " WrappedGaussian, which has mu = sensitivity/sigma for every sigma."
            )


def model_space(manifold: Any) -> ModelSpace:
    """The model space that `manifold` is isometric to, or an error that names the wrapped Gaussian.

    Simply connected and flat means Euclidean; a circle is known by its length, another `is_model_space` by its
    curvature. On shape spaces of more than three landmarks, other Grassmannians and rotations, affine-invariant SPD and
    curved products the worst displacement is not known (MATH.md section 5).
    """
    check_manifold(manifold)
    if manifold.is_hadamard and manifold.curvature_bounds == (0.0, 0.0):
        return ModelSpace(manifold, 0, manifold.dim, 0.0)
    if manifold.is_model_space:
        if manifold.dim == 1:
            return ModelSpace(manifold, 1, 1, math.pi / manifold.injectivity_radius)
        curvature, _ = manifold.curvature_bounds
        length = 1 / math.sqrt(abs(curvature))
        return ModelSpace(manifold, 1 if curvature > 0 else -1, manifold.dim, 1 / length)
    raise NotAvailableError(
        f"the Gaussian-DP guarantee of the Riemannian Gaussian on {manifold!r} is not known: the worst pair of "
        "footpoints is proven for flat spaces, spheres and hyperbolic spaces only. Use WrappedGaussian, which adds "
        "noise in the tangent space at the public centre and has mu = sensitivity/sigma exactly."
    )
