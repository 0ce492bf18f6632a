"""Radii of isotropic laws: one-dimensional log-concave densities, their integrals, quantiles and exact draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._validate import checked_probabilities, float_or_array, positive_number
from dpmanifolds.errors import ConvergenceError, ScaleOutOfRangeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import LogConcaveSampler
from dpmanifolds.noise.log_concave import Function, falls

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# the small ones find a bend of h close to the mode that is much narrower than the whole
_LEVELS = np.concatenate([2.0 ** -np.arange(45, 0, -4), np.arange(2, 14) ** 2 / 2])
_TOLERANCE = 1e-14
_SPLITS = 60
_BLOCK = 1 << 14
_NEWTON_STEPS = 100
_SECTIONS = 65
_MODE_ROUNDS = 14
_LARGEST_DRIFT = 1e9
"""How many σ the hyperbolic Gaussian's typical distance may lie from 0 and still be resolved in float64."""


class LogConcaveIntegral:
    """∫ e^h for a concave h on (lower, upper), by Gauss–Legendre panels around the mode.

    The panels end where h has fallen by 2^−45, 2^−41, …, ½ and k²/2, k = 2, …, 13, from its maximum and are halved
    until 20 nodes agree with 2 × 20 to 1e−14 of the total. What lies beyond a fall of 84.5 towards an infinite end
    is left out: by concavity it is below e^−84.5 of the total.

    >>> import math
    >>> from dpmanifolds.privacy.radial import LogConcaveIntegral
    >>> normal = LogConcaveIntegral(lambda x: -x * x / 2, mode=0.0, scale=1.0, lower=-math.inf, upper=math.inf)
    >>> abs(normal.log_total - math.log(2 * math.pi) / 2) < 1e-13
    True
    >>> round(normal.quantile(0.975), 9)
    1.959963985
    """

    def __init__(self, log_density: Function, *, mode: float, scale: float, lower: float, upper: float) -> None:
        self._log_density = log_density
        self.lower, self.upper = lower, upper
        with np.errstate(all="ignore"):
            self._top = float(log_density(np.array([mode]))[0])
            self._edges, masses = self._panels(mode, scale)
        self._below = np.append(0.0, np.cumsum(masses))
        self.log_total = self._top + math.log(self._below[-1])

    def _panels(self, mode: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
        ends = [end for end in (self.lower, self.upper) if math.isfinite(end)]
        falling = [falls(self._log_density, mode, end, scale, _LEVELS) for end in (self.lower, self.upper)]
        if any(math.isinf(end) and math.isinf(falling[i][-1]) for i, end in enumerate((self.lower, self.upper))):
            raise ConvergenceError("a one-dimensional density does not fall off towards its infinite end.")
        edges = np.unique(np.concatenate([[mode], *falling, ends]))
        edges = edges[np.isfinite(edges)]
        left, right = edges[:-1], edges[1:]
        whole = self._integrate(left, right)
        done: list[tuple[np.ndarray, np.ndarray]] = []
        total = float(np.sum(whole))
        for _ in range(_SPLITS):
            middle = (left + right) / 2
            first, second = self._integrate(left, middle), self._integrate(middle, right)
            agrees = np.abs(first + second - whole) <= _TOLERANCE * total
            agrees |= (middle <= left) | (middle >= right)
            done.append((left[agrees], whole[agrees]))
            if np.all(agrees):
                starts = np.concatenate([start for start, _ in done])
                order = np.argsort(starts)
                masses = np.concatenate([mass for _, mass in done])
                return np.append(starts[order], edges[-1]), masses[order]
            left, middle, right = left[~agrees], middle[~agrees], right[~agrees]
            whole = np.concatenate([first[~agrees], second[~agrees]])
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        raise ConvergenceError("a one-dimensional integral did not settle; its integrand is not log-concave.")

    def _integrate(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """∫ e^{h − h(mode)} over each [left, right]."""
        half = (right - left) / 2
        points = left[:, None] + half[:, None] * (_NODES + 1)
        return np.asarray(half * (np.exp(self._log_density(points) - self._top) @ _WEIGHTS))

    def _mass_below(self, points: np.ndarray) -> np.ndarray:
        """∫ e^{h − h(mode)} below each point, for points between the outermost edges."""
        panel = np.clip(np.searchsorted(self._edges, points, side="right") - 1, 0, self._edges.size - 2)
        return np.asarray(self._below[panel] + self._integrate(self._edges[panel], points))

    def cdf(self, points: ArrayLike) -> Any:
        """The share of the integral below each point."""
        given = np.asarray(points, dtype=np.float64)
        flat = np.clip(given.ravel(), self._edges[0], self._edges[-1])
        with np.errstate(all="ignore"):
            blocks = [self._mass_below(flat[start : start + _BLOCK]) for start in range(0, flat.size, _BLOCK)]
        shares = np.minimum(np.concatenate([*blocks, np.empty(0)]) / self._below[-1], 1.0)
        return float_or_array(shares.reshape(given.shape))

    def quantile(self, probability: ArrayLike) -> Any:
        """The point with this share of the integral below it."""
        given = checked_probabilities(probability)
        wanted = given.ravel() * self._below[-1]
        panel = np.clip(np.searchsorted(self._below, wanted, side="right") - 1, 0, self._edges.size - 2)
        low, high = self._edges[panel], self._edges[panel + 1]
        point = (low + high) / 2
        with np.errstate(all="ignore"):
            for _ in range(_NEWTON_STEPS):
                excess = self._below[panel] + self._integrate(self._edges[panel], point) - wanted
                low, high = np.where(excess <= 0, point, low), np.where(excess >= 0, point, high)
                step = point - excess / np.exp(self._log_density(point) - self._top)
                inside = (step > low) & (step < high)
                following = np.where(inside, step, (low + high) / 2)
                if np.all(np.abs(following - point) <= 4 * np.finfo(float).eps * np.abs(point)):
                    break
                point = following
        point = np.where(given.ravel() == 0, self.lower, np.where(given.ravel() == 1, self.upper, point))
        return float_or_array(point.reshape(given.shape))


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
    """k(s) = −rate·s; on a bounded interval the rate may be 0 or negative."""

    rate: float

    def difference(self, s: np.ndarray, t: float) -> np.ndarray:
        return np.asarray(-self.rate * (s - t))

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.full(np.shape(s), -self.rate)

    def level(self, t: float) -> float:
        return -self.rate * t

    def largest_mode(self, power: float) -> float:
        return power / self.rate if self.rate > 0 else math.inf


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

    @property
    def growth(self) -> float:
        """The rate of the exponential that is left out here."""
        return self.multiplicity * self.frequency if self.hyperbolic else 0.0

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
    >>> from dpmanifolds.privacy.radial import ExponentialKernel, RadialDensity, Root
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

    def tilted(self, power: float) -> RadialDensity:
        """This density times s^power."""
        return RadialDensity(self._kernel, self._roots, self.upper, self._power + power)

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

    @cached_property
    def mode(self) -> float:
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


def polar_roots(manifold: Manifold) -> tuple[Root, ...]:
    """The factors of the area of geodesic spheres, on an isotropic space."""
    hyperbolic = manifold.curvature_bounds[0] < 0
    return tuple(Root(multiplicity, frequency, hyperbolic) for multiplicity, frequency in manifold.polar_roots or ())


def gaussian_radius(manifold: Manifold, sigma: float) -> RadialDensity:
    """The radius of the Riemannian Gaussian on an isotropic space: density e^{−s²/2σ²}·∏ roots up to the cut locus.

    In negative curvature the growth e^{γs} of the roots moves the kernel to e^{−(s−μ)²/2σ²}, μ = γσ².

    >>> from dpmanifolds import Sphere
    >>> round(gaussian_radius(Sphere(2), 0.1).integral.quantile(0.5), 6)
    0.117545
    """
    sigma = positive_number("sigma", sigma)
    roots = polar_roots(manifold)
    growth = sum(root.growth for root in roots)
    if sigma * growth > _LARGEST_DRIFT:
        raise ScaleOutOfRangeError(
            f"sigma = {sigma:g} on {manifold!r}: draws lie about (d−1)√κσ² away, with a spread of sigma that float64 "
            f"no longer resolves. Use sigma ≤ {_LARGEST_DRIFT / growth:g}, or WrappedGaussian."
        )
    return RadialDensity(QuadraticKernel(growth * sigma * sigma, sigma), roots, manifold.injectivity_radius)
