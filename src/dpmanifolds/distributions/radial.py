"""Laws with a uniform direction and a radius of one-dimensional log-concave density."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds.distributions._arguments import checked_order
from dpmanifolds.distributions.base import TangentLaw
from dpmanifolds.distributions.flat import log_sphere_area
from dpmanifolds.distributions.quadrature import LogConcaveIntegral
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import LogConcaveSampler, uniform_directions

__all__ = ["ExponentialKernel", "Kernel", "QuadraticKernel", "RadialDensity", "RadialLaw", "Root"]

_SECTIONS = 65
_MODE_ROUNDS = 14


class Kernel(Protocol):
    """A concave function k of the radius, up to the constant that `level` restores."""

    def difference(self, s: np.ndarray, t: float) -> np.ndarray:
        """k(s) − k(t)."""

    def slope(self, s: np.ndarray) -> np.ndarray:
        """k'(s)."""

    def level(self, t: float) -> float:
        """k(t)."""

    def largest_mode(self, power: float) -> float:
        """An upper bound of the mode of k(s) + power·log s."""


@dataclass(frozen=True)
class ExponentialKernel:
    """k(s) = −rate·s."""

    rate: float

    def difference(self, s: np.ndarray, t: float) -> np.ndarray:
        return -self.rate * (s - t)

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.full(np.shape(s), -self.rate)

    def level(self, t: float) -> float:
        return -self.rate * t

    def largest_mode(self, power: float) -> float:
        return power / self.rate


@dataclass(frozen=True)
class QuadraticKernel:
    """k(s) = −s²/2σ² + s·center/σ² = −(s − center)²/2σ² + center²/2σ²; center ≥ 0."""

    center: float
    sigma: float

    def difference(self, s: np.ndarray, t: float) -> np.ndarray:
        # k(s) − k(t) without the large constant: −(s−t)(s+t−2·center)/2σ²
        total = ((s - self.center) + (t - self.center)) / self.sigma
        return np.asarray(-(s - t) / self.sigma * total / 2)

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.asarray(-(s - self.center) / self.sigma / self.sigma)

    def level(self, t: float) -> float:
        return -(t / self.sigma) * ((t - 2 * self.center) / self.sigma) / 2

    def largest_mode(self, power: float) -> float:
        return self.center + self.sigma * math.sqrt(power)


@dataclass(frozen=True)
class Root:
    """A factor (sin(a s)/a)^m of the area of geodesic spheres; (sinh(a s)/a)^m where `hyperbolic`.

    The exponential growth of sinh, e^{a s m}, belongs in the kernel, so that nothing overflows or cancels: what
    stays here is ((1 − e^{−2as})/2a)^m. Both are log-concave in s.
    """

    multiplicity: int
    frequency: float
    hyperbolic: bool = False

    def _profile(self, s: Any) -> Any:
        angle = self.frequency * s
        return -np.expm1(-2 * angle) / 2 if self.hyperbolic else np.abs(np.sin(angle))

    def difference(self, s: np.ndarray, t: float) -> np.ndarray:
        return np.asarray(self.multiplicity * np.log(self._profile(s) / self._profile(t)))

    def slope(self, s: np.ndarray) -> np.ndarray:
        angle = self.frequency * s
        ratio = 2 / np.expm1(2 * angle) if self.hyperbolic else np.cos(angle) / np.sin(angle)
        return np.asarray(self.multiplicity * self.frequency * ratio)

    def level(self, t: float) -> float:
        return self.multiplicity * math.log(self._profile(t) / self.frequency)


class RadialDensity:
    """e^{h(s)} = e^{k(s)}·s^power·∏ roots on (0, upper): log-concave as a product of log-concave functions.

    All values are differences to the mode, computed as such: near it they are small and carry no rounding of the
    large terms that cancel in high dimension or at extreme scales.

    >>> import math
    >>> from dpmanifolds.distributions.radial import ExponentialKernel, RadialDensity, Root
    >>> density = RadialDensity(ExponentialKernel(1.0), (Root(1, 1.0),), math.pi)
    >>> round(density.mode / math.pi, 9)
    0.25
    >>> abs(density.log_integral - math.log((1 + math.exp(-math.pi)) / 2)) < 1e-14
    True
    """

    def __init__(self, kernel: Kernel, roots: tuple[Root, ...], upper: float, power: float = 0.0) -> None:
        self._kernel = kernel
        self._roots = tuple(root for root in roots if root.multiplicity)
        self._power = power
        self.upper = upper
        self.mode = self._find_mode()

    @property
    def _total_power(self) -> float:
        return self._power + sum(root.multiplicity for root in self._roots)

    def log_density(self, s: np.ndarray) -> np.ndarray:
        """h(s) − h(mode)."""
        total = self._kernel.difference(s, self.mode)
        for root in self._roots:
            total = total + root.difference(s, self.mode)
        return total + self._power * np.log(s / self.mode) if self._power else total

    def derivative(self, s: np.ndarray) -> np.ndarray:
        """h'(s)."""
        total = self._kernel.slope(s)
        for root in self._roots:
            total = total + root.slope(s)
        return total + self._power / s if self._power else total

    @property
    def level(self) -> float:
        """h(mode)."""
        roots = sum(root.level(self.mode) for root in self._roots)
        return self._kernel.level(self.mode) + roots + (self._power * math.log(self.mode) if self._power else 0.0)

    def _find_mode(self) -> float:
        """Where h' changes sign, closely enough for a centre of hulls and panels."""
        low, high = 0.0, min(self._kernel.largest_mode(self._total_power), self.upper)
        if not self._total_power:
            return high
        with np.errstate(all="ignore"):
            for _ in range(_MODE_ROUNDS):
                inner = np.linspace(low, high, _SECTIONS + 1)[1:-1]
                rising = int(np.count_nonzero(self.derivative(inner) > 0))
                low, high = (inner[rising - 1] if rising else low), (inner[rising] if rising < inner.size else high)
        return float((low + high) / 2)

    @cached_property
    def sampler(self) -> LogConcaveSampler:
        """Exact draws of the radius."""
        return LogConcaveSampler(
            self.log_density, self.derivative, mode=self.mode, scale=self.scale, lower=0.0, upper=self.upper
        )

    @cached_property
    def integral(self) -> LogConcaveIntegral:
        """∫ e^{h − h(mode)} and its distribution function."""
        return LogConcaveIntegral(self.log_density, mode=self.mode, scale=self.scale, lower=0.0, upper=self.upper)

    @property
    def log_integral(self) -> float:
        """log ∫ e^h."""
        return self.level + self.integral.log_total

    @property
    def scale(self) -> float:
        """A length of the order of the mode."""
        return self.mode or min(self._kernel.largest_mode(1.0), self.upper)


class RadialLaw(TangentLaw):
    """A law whose density at distance s is e^{k(s)}, on a manifold where geodesic spheres have area ∝ ∏ roots.

    The direction is uniform and the radius has the density e^{k(s)}·∏ roots on (0, upper) (MATH.md section 3,
    rank one). `upper` is the distance of the cut locus.

    >>> import math
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.distributions.radial import ExponentialKernel, RadialLaw, Root
    >>> law = RadialLaw(Sphere(3), 0.1, ExponentialKernel(1 / 0.1), (Root(2, 1.0),), math.pi)
    >>> round(law.distance_moment(1), 6)
    0.292308
    """

    def __init__(self, manifold: Manifold, sigma: float, kernel: Kernel, roots: tuple[Root, ...], upper: float) -> None:
        super().__init__(manifold, sigma)
        self._kernel, self._roots, self._upper = kernel, roots, upper

    @cached_property
    def radius(self) -> RadialDensity:
        """The density of the distance, up to a constant."""
        return RadialDensity(self._kernel, self._roots, self._upper)

    @property
    def log_normalizer(self) -> float:
        return log_sphere_area(self.manifold.dim) + self.radius.log_integral

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        directions = uniform_directions(count, self.manifold.dim, rng)
        return np.asarray(self.radius.sampler.sample(count, rng)[:, None] * directions)

    def distance_moment(self, order: float) -> float:
        order = checked_order(order)
        tilted = RadialDensity(self._kernel, self._roots, self._upper, order)
        with np.errstate(over="ignore"):
            return float(np.exp(tilted.log_integral - self.radius.log_integral))

    def distance_cdf(self, radius: ArrayLike) -> Any:
        return self.radius.integral.cdf(radius)

    def distance_quantile(self, probability: ArrayLike) -> Any:
        return self.radius.integral.quantile(probability)
