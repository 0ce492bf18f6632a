"""What every law here is: one of tangent coordinates, the same at every footpoint, and one of points around one.

And the laws of isotropic spaces, where distance says everything: spheres, hyperbolic spaces, shapes, SO(3), lines.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array, as_array, namespace
from dpmanifolds._points import has_parts
from dpmanifolds._validate import checked_order, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError, NotAvailableError, NotOnManifoldError, ScaleOutOfRangeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import as_generator, uniform_directions
from dpmanifolds.noise.norms import checked_scale
from dpmanifolds.privacy.radial import ExponentialKernel, RadialDensity, gaussian_radius, polar_roots

Size: TypeAlias = int | tuple[int, ...]
"""How many draws: a number, or the shape of leading axes."""


def size_of(size: Size) -> tuple[tuple[int, ...], int]:
    """`size` as leading axes and their product."""
    leading = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    checked = tuple(positive_integer("size", axis, at_least=0) for axis in leading)
    return checked, math.prod(checked)


def checked_point(manifold: Manifold, point: Any, name: str) -> Array:
    """`point` as one point of `manifold`, or an error that names the argument."""
    point = _shaped(manifold, point, name)
    if not bool(manifold.belongs(point)):
        raise NotOnManifoldError(f"{name} does not lie on {manifold!r}; `project` brings a nearby array onto it.")
    return point


def _shaped(manifold: Manifold, point: Any, name: str) -> Array:
    if manifold.has_parts:
        if not has_parts(point) or len(point) != len(manifold.factors):
            raise ArgumentError(
                f"must be a tuple of {len(manifold.factors)} arrays, one point per factor.", argument=name
            )
        return tuple(_shaped(factor, part, name) for factor, part in zip(manifold.factors, point, strict=True))
    try:
        point = as_array(point)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"must be an array of numbers of shape {manifold.point_shape}.", argument=name) from None
    if not manifold.is_complex and namespace(point).isdtype(point.dtype, "complex floating"):
        raise ArgumentError(f"must be real numbers on {manifold!r}; got complex ones.", argument=name)
    if tuple(point.shape) != manifold.point_shape:
        raise ArgumentError(f"must have shape {manifold.point_shape}; got {tuple(point.shape)}.", argument=name)
    xp = namespace(point)
    if not bool(xp.all(xp.isfinite(point))):
        raise NotOnManifoldError("must hold finite numbers.", argument=name)
    return point


class TangentLaw(ABC):
    """The law of log_η X in orthonormal coordinates, the same at every footpoint η.

    The distance ρ(η, X) is the Euclidean norm of the coordinates.

    >>> import numpy as np
    >>> from dpmanifolds import Hyperbolic
    >>> from dpmanifolds.intrinsic import TangentLaw, laplace_law
    >>> law = laplace_law(Hyperbolic(2), 0.2)
    >>> isinstance(law, TangentLaw), law.sample_coordinates(5, np.random.default_rng(0)).shape
    (True, (5, 2))
    """

    def __init__(self, manifold: Manifold, sigma: float) -> None:
        self.manifold = manifold
        self.sigma = checked_scale(sigma)

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

    _is_gaussian: ClassVar[bool]

    @staticmethod
    @abstractmethod
    def _law(manifold: Manifold, sigma: float) -> TangentLaw:
        """The law of the coordinates."""

    def _log_kernel(self, distance: Array) -> Array:
        """The log-density, up to its constant: −(ρ/σ)²/2 or −ρ/σ."""
        scaled = distance / self.sigma
        return -scaled * scaled / 2 if self._is_gaussian else -scaled

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


def log_sphere_area(dim: int) -> float:
    """log of 2π^{dim/2}/Γ(dim/2), the area of the unit sphere in R^dim."""
    return math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2)


def identity_of(manifold: Manifold) -> np.ndarray:
    """The identity matrix, or its first columns: where tangent vectors of a space of matrices are looked at."""
    rows, columns = manifold.point_shape
    return np.eye(rows, columns)


class RadialLaw(TangentLaw):
    """A law whose density depends on the distance alone, on a manifold where the area of geodesic spheres does.

    The direction is uniform and the radius has the density `radius` up to the cut locus (MATH.md section 3, rank one);
    `radius.tilted(k)` is that density times s^k.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.intrinsic.law import radial_laplace
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
