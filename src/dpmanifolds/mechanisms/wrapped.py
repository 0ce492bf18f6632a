"""Ordinary noise in the tangent space at the public centre, carried to the manifold by exp.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> from dpmanifolds.mechanisms import calibrate, mean_facts
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
>>> mechanism = calibrate("wrapped-laplace", mean_facts(ball, n=100), PureDP(1.0), "rounded")
>>> round(mechanism.scale, 6), mechanism.guarantee.as_pure().epsilon <= 1.0 + 1e-12
(0.008284, True)

The statistic's coordinates c at the centre move by at most Δ between neighbours (Theorem S1w). They are rounded to a
public lattice gZ^d, g a power of two, so that neighbours differ by at most Δ + √d·g there, and integers of noise are
added. exp at the centre, and shrinking into the domain before it, are post-processing. So the promise is that of the
Euclidean mechanism, on every manifold (docs/proofs/numerics.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy import integrate, special

from dpmanifolds._arrays import Array
from dpmanifolds._validate import choice
from dpmanifolds.distributions import FlatGaussian, FlatLaplace
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.mechanisms._frames import coordinates_at, host, point_at
from dpmanifolds.mechanisms.base import Draw, ExpectedError, Facts, Mechanism, edge_factor
from dpmanifolds.noise import LatticeGaussian, LatticeLaplace, RoundedGaussian, RoundedLaplace
from dpmanifolds.privacy import (
    Budget,
    Guarantee,
    Sensitivity,
    affordable_epsilon,
    affordable_mu,
    affordable_rho,
)
from dpmanifolds.sums.estimate import shrink_lengths

__all__ = ["WrappedGaussianMechanism", "WrappedLaplaceMechanism"]

_UP = 1 + 2.0**-49
_FINENESS = 30
_LARGEST_STEPS = 2.0**58
_SIMULATED_NUMBERS = 4_000_000
_MOST_ENLARGEMENTS = 64
_MOST_INTEGRATED = 1000


@dataclass(frozen=True, kw_only=True)
class _WrappedMechanism(Mechanism):
    """Integer noise on a public lattice of tangent coordinates."""

    offered_numerics: ClassVar[tuple[str, ...]] = ("rounded", "lattice")

    @property
    def sensitivity(self) -> Sensitivity:
        return self.facts.at_center

    @property
    def dim(self) -> int:
        """How many coordinates get noise."""
        return self.facts.domain.manifold.dim

    def draw(self, statistic: Array, *, records: Array | None = None, rng: Any = None) -> Draw:
        domain = self.facts.domain
        coordinates = coordinates_at(domain.manifold, host(domain.center), host(statistic))
        values = np.rint(coordinates / self.step).astype(np.int64)
        noisy = self._noisy(values, rng) * self.step
        return Draw(self.point_of(noisy), noisy)

    def point_of(self, coordinates: np.ndarray) -> Array:
        """The best guess of the statistic from noisy coordinates (..., dim): post-processing, see `sums.estimate`."""
        domain = self.facts.domain
        if not isinstance(domain, Ball) or self._is_coordinatewise:
            return point_at(domain, coordinates)
        lengths = np.linalg.norm(coordinates, axis=-1)
        gaussian = isinstance(self, WrappedGaussianMechanism)
        wanted = shrink_lengths(lengths, dim=self.dim, radius=domain.radius, sigma=self.scale, gaussian=gaussian)
        factors = wanted / np.maximum(lengths, 1e-300)
        return point_at(domain, coordinates * factors[..., None])

    @property
    def _is_coordinatewise(self) -> bool:
        """Whether the noise is not isotropic."""
        return False

    @abstractmethod
    def _noisy(self, values: np.ndarray, rng: Any) -> np.ndarray:
        """Integers plus integer noise."""

    def _with_edge(self, mean: float, radius_90: float, *, simulated: bool = False) -> ExpectedError:
        domain = self.facts.domain
        return ExpectedError(mean, radius_90, max(mean, min(mean * edge_factor(domain), domain.diameter)), simulated)


def _lattice_step(facts: Facts, parameter: float) -> float:
    """A power of two about 2⁻³⁰ of the noise scale, coarser only where the domain would leave 64-bit integers."""
    scale = float(facts.at_center) / parameter
    if not 1e-90 < scale < 1e90:
        raise ScaleOutOfRangeError(f"the noise scale {scale:g} leaves the range of the lattice. Rescale the data.")
    fine = 2.0 ** (math.frexp(scale)[1] - 1 - _FINENESS)
    coarse = 2.0 ** math.frexp(facts.domain.radius / _LARGEST_STEPS)[1]
    return max(fine, coarse)


def _moved(facts: Facts, step: float, *, coordinatewise: bool = False) -> float:
    """The sensitivity on the lattice: Δ + √d·g in ℓ2, √d·Δ + d·g in ℓ1."""
    root = math.sqrt(facts.domain.manifold.dim)
    moved = (float(facts.at_center) + root * step) * _UP
    return moved * root * _UP if coordinatewise else moved


def _enlarged(scale: float, kept: Callable[[float], bool]) -> float:
    """The scale, grown by hairs until OpenDP's own privacy map says that the promise is kept."""
    for _ in range(_MOST_ENLARGEMENTS):
        if kept(scale):
            return scale
        scale *= 1 + 2.0**-40
    raise ScaleOutOfRangeError(f"OpenDP's privacy map promises nothing at the lattice scale {scale:g}.")


@dataclass(frozen=True, kw_only=True)
class WrappedGaussianMechanism(_WrappedMechanism):
    """N(0, σ²I) at the centre.

    Rounded: μ = (Δ + √d·g)/σ exactly. Lattice: the discrete Gaussian of OpenDP, ρ = (Δ + √d·g)²/2σ² zCDP by its own
    privacy map, which read as (ε, δ) costs more noise than rounded; it is no μ-Gaussian-DP promise.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, GaussianDP
    >>> from dpmanifolds.mechanisms import WrappedGaussianMechanism, mean_facts
    >>> facts = mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500)
    >>> mechanism = WrappedGaussianMechanism.calibrate(facts, GaussianDP(1.0), "rounded")
    >>> round(mechanism.scale / float(mechanism.sensitivity), 6), mechanism.error_metric
    (1.0, 'coordinates')
    """

    name: ClassVar[str] = "wrapped-gaussian"
    theorem: ClassVar[str] = "S1w and the Gaussian mechanism in R^d (docs/proofs/mechanisms.md, M3, and numerics.md)"

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        on_lattice = choice("numerics", numerics, cls.offered_numerics) == "lattice"
        rho = affordable_rho(budget) if on_lattice else 0.0
        mu = math.sqrt(2 * rho) if on_lattice else affordable_mu(budget)
        step = _lattice_step(facts, mu)
        moved, dim = _moved(facts, step), facts.domain.manifold.dim
        sigma = moved / mu * _UP
        guarantee = Guarantee.gaussian(mu, **facts.labels)
        if on_lattice:
            sigma = _enlarged(sigma, lambda s: LatticeGaussian(dim, s / step).rho(moved / step) <= rho)
            guarantee = Guarantee.zcdp(rho, **facts.labels)
        return cls(facts=facts, scale=sigma, guarantee=guarantee, numerics=numerics, step=step)

    def _noisy(self, values: np.ndarray, rng: Any) -> np.ndarray:
        if self.numerics == "lattice":
            return LatticeGaussian(self.dim, self.scale / self.step).release(values, rng)
        return RoundedGaussian(self.dim, self.scale / self.step).release(values, rng)

    @cached_property
    def expected_error(self) -> ExpectedError:
        law = FlatGaussian(Euclidean(self.dim), self.scale)
        return self._with_edge(law.distance_moment(1), law.distance_quantile(0.9))

    def error_quantile(self, probability: float) -> float:
        return float(FlatGaussian(Euclidean(self.dim), self.scale).distance_quantile(probability))


@dataclass(frozen=True, kw_only=True)
class WrappedLaplaceMechanism(_WrappedMechanism):
    """Density ∝ e^{−|c|/σ} at the centre.

    Rounded: ε = (Δ + √d·g)/σ exactly, with |c| the Euclidean norm. Lattice: OpenDP's discrete Laplace on each
    coordinate, |c| the ℓ1 norm, ε = √d·(Δ + √d·g)/σ by its own privacy map: more noise than rounded beyond one
    dimension.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, PureDP
    >>> from dpmanifolds.mechanisms import WrappedLaplaceMechanism, mean_facts
    >>> facts = mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500)
    >>> mechanism = WrappedLaplaceMechanism.calibrate(facts, PureDP(0.5), "rounded")
    >>> round(mechanism.scale / float(mechanism.sensitivity), 6)
    2.0
    """

    name: ClassVar[str] = "wrapped-laplace"
    theorem: ClassVar[str] = "S1w and the Laplace mechanism in R^d (docs/proofs/mechanisms.md, M3, and numerics.md)"

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        on_lattice = choice("numerics", numerics, cls.offered_numerics) == "lattice"
        dim = facts.domain.manifold.dim
        promise = Guarantee.laplace if dim == 1 else Guarantee.pure
        epsilon = affordable_epsilon(budget, on_the_line=dim == 1 and not on_lattice)
        step = _lattice_step(facts, epsilon)
        moved = _moved(facts, step, coordinatewise=on_lattice)
        scale = moved / epsilon * _UP
        if on_lattice:
            scale = _enlarged(scale, lambda s: LatticeLaplace(dim, s / step).epsilon(moved / step) <= epsilon)
            promise = Guarantee.pure
        guarantee = promise(epsilon, **facts.labels)
        return cls(facts=facts, scale=scale, guarantee=guarantee, numerics=numerics, step=step)

    def _noisy(self, values: np.ndarray, rng: Any) -> np.ndarray:
        if self.numerics == "lattice":
            return LatticeLaplace(self.dim, self.scale / self.step).release(values, rng)
        return RoundedLaplace(self.dim, self.scale / self.step).release(values, rng)

    @property
    def _is_coordinatewise(self) -> bool:
        return self.numerics == "lattice" and self.dim > 1

    @cached_property
    def expected_error(self) -> ExpectedError:
        if self._is_coordinatewise:
            mean = self.scale * _mean_norm_of_laplaces(self.dim)
            return self._with_edge(mean, self.error_quantile(0.9), simulated=True)
        law = FlatLaplace(Euclidean(self.dim), self.scale)
        return self._with_edge(law.distance_moment(1), law.distance_quantile(0.9))

    def error_quantile(self, probability: float) -> float:
        if self._is_coordinatewise:
            return self.scale * _quantile_of_laplaces(self.dim, probability)
        return float(FlatLaplace(Euclidean(self.dim), self.scale).distance_quantile(probability))


@lru_cache(maxsize=256)
def _quantile_of_laplaces(dim: int, probability: float) -> float:
    return float(np.quantile(_norms_of_laplaces(dim), probability))


@lru_cache(maxsize=64)
def _norms_of_laplaces(dim: int) -> np.ndarray:
    """√(y₁² + … + y_d²) of draws with a fixed seed, y_i independent with density ½e^{−|y|}."""
    count = max(1000, min(40_000, _SIMULATED_NUMBERS // dim))
    rng = np.random.default_rng(0)
    if count * dim <= _SIMULATED_NUMBERS:
        return np.asarray(np.linalg.norm(rng.laplace(size=(count, dim)), axis=-1))
    return np.sqrt([np.sum(np.square(rng.laplace(size=dim))) for _ in range(count)])


@lru_cache(maxsize=64)
def _mean_norm_of_laplaces(dim: int) -> float:
    """E√(y₁² + … + y_d²) for independent y_i with density ½e^{−|y|}.

    E√S = (2√π)⁻¹∫(1 − E e^{−tS})t^{−3/2}dt, and with t = 1/4u² one coordinate has E e^{−ty²} = √π·u·erfcx(u). Beyond
    1,000 dimensions √(2d)·(1 − 5/8d), from E S = 2d and Var S = 20d.

    >>> round(_mean_norm_of_laplaces(1), 9)
    1.0
    """
    if dim > _MOST_INTEGRATED:
        return math.sqrt(2 * dim) * (1 - 5 / (8 * dim))

    def integrand(u: float) -> float:
        one = min(math.sqrt(math.pi) * u * float(special.erfcx(u)), 1.0)
        return -math.expm1(dim * math.log(one)) if one > 0 else 1.0

    knee = math.sqrt(dim)
    near, _ = integrate.quad(integrand, 0.0, knee, limit=400, epsabs=1e-12, epsrel=1e-11)
    far, _ = integrate.quad(lambda v: integrand(knee / v) * knee / (v * v), 0.0, 1.0, limit=400, epsabs=1e-10)
    return float(2 / math.sqrt(math.pi) * (near + far))
