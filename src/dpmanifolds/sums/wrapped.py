"""Ordinary noise in the tangent space at the public centre, carried to the manifold by exp.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> from dpmanifolds.sums import calibrate, mean_facts
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
>>> mechanism = calibrate("wrapped-laplace", mean_facts(ball, n=100), PureDP(1.0), "rounded")
>>> round(mechanism.sigma, 6), mechanism.guarantee.as_pure().epsilon <= 1.0 + 1e-12
(0.007854, True)

A mean is a sum of one integer vector per record, and integers of noise are added to it: neighbours differ by 2R steps,
and that is all there is to the promise (docs/proofs/sums.md). Another statistic, whose coordinates move by at most Δ,
is rounded to a public lattice gZ^d first, so that neighbours differ by at most Δ + √d·g (docs/proofs/numerics.md). exp
at the public point, and shrinking into the domain before it, are post-processing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds._validate import choice
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.noise import LatticeGaussian, LatticeLaplace, RoundedGaussian, RoundedLaplace, as_generator
from dpmanifolds.noise.exact import to_int64
from dpmanifolds.noise.norms import GaussianNorm, LaplaceNorm
from dpmanifolds.privacy import (
    Budget,
    Guarantee,
    Sensitivity,
    affordable_epsilon,
    affordable_mu,
    affordable_shift,
)
from dpmanifolds.privacy.l2_laplace import LEAST_SHIFT, MOST_DIMENSIONS, least_mu
from dpmanifolds.privacy.rounding import float_above
from dpmanifolds.privacy.terms import LARGEST_INTERVAL
from dpmanifolds.sums.estimate import shrink_lengths
from dpmanifolds.sums.frames import point_at
from dpmanifolds.sums.lattice import Lattice, choose_lattice, enlarge, noisy_dim
from dpmanifolds.sums.mechanism import Draw, ExpectedError, Facts, Mechanism
from dpmanifolds.sums.noise_lengths import (
    edge_factor,
    mean_of_laplaces,
    noise_lengths,
    quantile_of_laplaces,
    share_of_length,
)

# beyond what lattices and rounding may move errors and promises by
_MORE = 1.001


@dataclass(frozen=True, kw_only=True)
class WrappedMechanism(Mechanism):
    """Integer noise on a public lattice of tangent coordinates, or on a sum of integers."""

    sigma_steps: float | None = None
    """σ in whole steps, the number that the noise is drawn with; None: `sigma` over `step`."""
    exponent: int | None = None
    """Of the lattice of a sum: the radius of its ball is 2^exponent steps."""

    offered_numerics: ClassVar[tuple[str, ...]] = ("rounded", "lattice")
    is_gaussian: ClassVar[bool]
    """Whether its law is the Gaussian, and not the Laplace."""

    @cached_property
    def sensitivity(self) -> Sensitivity:
        known, shape = self.facts.at_center, self.facts.shape
        if shape is None or self.exponent is None:
            return known
        moved = shape.diameter(self.exponent, gaussian=self.is_gaussian)
        return replace(known, value=float_above(Fraction(moved) * Fraction(shape.step(self.exponent))))

    @property
    def dim(self) -> int:
        """How many coordinates get noise."""
        return noisy_dim(self.facts)

    @property
    def _told(self) -> int:
        """How many of them are coordinates, and not a count."""
        shape = self.facts.shape
        return self.facts.domain.manifold.dim if shape is None else shape.dim

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the noise in one coordinate, in units of the statistic."""

    @property
    def _steps(self) -> float:
        return self.sigma / self.step if self.sigma_steps is None else self.sigma_steps

    def add_noise(self, total: Sequence[int], rng: Any = None) -> np.ndarray:
        """An exact sum of integers, with noise, in whole steps. Each call spends the guarantee once.

        A sum beyond 64 bits is cut there first, which brings no two sums farther apart.
        """
        return self._noisy(to_int64(total), rng)

    def noisy_mean(self, total: Sequence[int], rows: int, rng: Any = None) -> np.ndarray:
        """Coordinates of the mean: an exact sum over `rows` records, over the public or the noisy number of them.

        Whitened ones where the body is an ellipsoid: its axes restore the others.
        """
        shape, exponent = self.facts.shape, self.exponent
        if shape is None or exponent is None:
            raise ArgumentError("this mechanism was made for another statistic than a sum of integers.")
        if not shape.counted:
            return self.add_noise(total, rng) * self.step
        weight = shape.weight(exponent, gaussian=self.is_gaussian)
        noisy = self.add_noise([*total, weight * rows], rng)
        count = max(1.0, float(noisy[-1]) / weight)
        return np.asarray(noisy[:-1] * (self.step * (shape.count / count)))

    def shrink(self, coordinates: np.ndarray) -> np.ndarray:
        """The best guess of coordinates in the ball of the domain: post-processing, see `sums.estimate`."""
        lengths = np.linalg.norm(coordinates, axis=-1)
        dim, radius = self._told, self.facts.domain.radius
        wanted = shrink_lengths(lengths, dim=dim, radius=radius, sigma=self.sigma, gaussian=self.is_gaussian)
        return np.asarray(coordinates * (wanted / np.maximum(lengths, 1e-300))[..., None])

    def draw(self, statistic: Array, *, records: Array | None = None, rng: Any = None) -> Draw:
        if self.facts.shape is not None:
            raise ArgumentError(
                "this mechanism adds noise to a sum of integers, one vector for each record (noisy_mean), and not to a "
                "point: that moves by more. Use private_mean, or the mechanism 'direct'."
            )
        noisy = self._noisy(np.rint(self._coordinates(statistic)).astype(np.int64), rng) * self.step
        return Draw(self.point_of(noisy), noisy)

    def point_of(self, coordinates: np.ndarray) -> Array:
        """The best guess of the statistic from noisy coordinates (..., dim): post-processing, see `sums.estimate`."""
        domain = self.facts.domain
        if not isinstance(domain, Ball) or self.is_coordinatewise:
            return point_at(domain, coordinates)
        return point_at(domain, self.shrink(coordinates))

    @classmethod
    def _on(cls, lattice: Lattice, sigma: float, facts: Facts, guarantee: Guarantee, numerics: str) -> Self:
        return cls(
            facts=facts,
            sigma=sigma * lattice.step,
            step=lattice.step,
            guarantee=guarantee,
            numerics=numerics,
            sigma_steps=sigma,
            exponent=lattice.exponent,
        )

    @property
    def is_coordinatewise(self) -> bool:
        """Whether the noise is not isotropic."""
        return False

    @cached_property
    @abstractmethod
    def noise(self) -> RoundedGaussian | RoundedLaplace | LatticeGaussian | LatticeLaplace:
        """The law of the integers that are added, in whole steps."""

    def _noisy(self, values: np.ndarray, rng: Any) -> np.ndarray:
        return self.noise.release(values, rng)

    def _coordinates(self, points: Array) -> np.ndarray:
        center = host(self.facts.domain.center)
        return np.asarray(self.facts.domain.manifold.log_coordinates(center, host(points)) / self.step)

    def draw_many(self, statistic: Array, count: int, *, records: Array | None = None, rng: Any = None) -> Array:
        values = np.rint(self._coordinates(statistic)).astype(np.int64)
        source = None if rng is None else as_generator(rng)
        return self.point_of(np.stack([self._noisy(values, source) for _ in range(count)]) * self.step)

    def log_likelihood(self, released: Array, statistic: Array, *, records: Array | None = None) -> np.ndarray:
        return self.noise.log_density(self._coordinates(released) - self._coordinates(statistic))

    def weakened(self, factor: float) -> Self:
        return replace(self, sigma=self.sigma * factor, sigma_steps=self._steps * factor)

    @property
    def _shaped(self) -> np.ndarray | None:
        """Semi-axes over the longest of them, where noise has the shape of an ellipsoid."""
        shape = self.facts.shape
        return None if shape is None or shape.axes is None else shape.axes.lengths

    @cached_property
    def _shaped_lengths(self) -> np.ndarray:
        """How long such noise of scale 1 is, in draws with a fixed seed."""
        lengths, kind = self._shaped, "gaussian" if self.is_gaussian else "laplace"
        assert lengths is not None
        return noise_lengths(lengths, "coordinatewise" if self.is_coordinatewise else kind, self.dim > lengths.size)

    @cached_property
    def expected_error(self) -> ExpectedError:
        if self._shaped is None:
            return self._plain_error()
        mean = self.sigma * float(np.mean(self._shaped_lengths))
        return self._with_edge(mean, self.error_quantile(0.9), simulated=True)

    def error_quantile(self, probability: float) -> float:
        if self._shaped is None:
            return self._plain_quantile(probability)
        return self.sigma * float(np.quantile(self._shaped_lengths, probability))

    @abstractmethod
    def _plain_error(self) -> ExpectedError:
        """That of noise without a shape."""

    @abstractmethod
    def _plain_quantile(self, probability: float) -> float:
        """A quantile of the length of such noise."""

    def _with_edge(self, mean: float, radius_90: float, *, simulated: bool = False) -> ExpectedError:
        domain = self.facts.domain
        return ExpectedError(mean, radius_90, max(mean, min(mean * edge_factor(domain), domain.diameter)), simulated)


@dataclass(frozen=True, kw_only=True)
class WrappedGaussianMechanism(WrappedMechanism):
    """N(0, σ²I) at the centre.

    Rounded: μ = Δ/σ exactly, Δ in whole steps. Lattice: the discrete Gaussian of OpenDP, ρ = Δ²/2σ² as its own privacy
    map says, and a μ that exceeds Δ/σ by a hair (docs/proofs/accounts.md, A1).

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, GaussianDP
    >>> from dpmanifolds.sums import WrappedGaussianMechanism, mean_facts
    >>> facts = mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500)
    >>> mechanism = WrappedGaussianMechanism.calibrate(facts, GaussianDP(1.0), "rounded")
    >>> round(mechanism.sigma / float(mechanism.sensitivity), 6), mechanism.error_metric
    (1.0, 'coordinates')
    """

    name: ClassVar[str] = "wrapped-gaussian"
    theorem: ClassVar[str] = "B1 and the Gaussian mechanism on integers (docs/proofs/sums.md, numerics.md)"
    is_gaussian: ClassVar[bool] = True

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        on_lattice = choice("numerics", numerics, cls.offered_numerics) == "lattice"
        mu = affordable_mu(budget)
        lattice = choose_lattice(facts, mu, gaussian=True)
        sigma = lattice.scale_for(mu)
        if not on_lattice:
            return cls._on(lattice, sigma, facts, Guarantee.gaussian(mu, **facts.labels), numerics)
        # a record that changes its class moves the integers of two
        dim = noisy_dim(facts) * (2 if facts.shape is not None and facts.shape.labelled else 1)
        sigma, guarantee = enlarge(
            sigma, budget, lambda wider: Guarantee.discrete_gaussian(lattice.moved, wider, dim, **facts.labels)
        )
        return cls._on(lattice, sigma, facts, guarantee, numerics)

    @cached_property
    def noise(self) -> RoundedGaussian | LatticeGaussian:
        return (LatticeGaussian if self.numerics == "lattice" else RoundedGaussian)(self.dim, self._steps)

    @property
    def deviation(self) -> float:
        return self.sigma

    def _plain_error(self) -> ExpectedError:
        norm = GaussianNorm(self._told, self.sigma)
        return self._with_edge(norm.moment(1), norm.quantile(0.9))

    def _plain_quantile(self, probability: float) -> float:
        return float(GaussianNorm(self._told, self.sigma).quantile(probability))


@dataclass(frozen=True, kw_only=True)
class WrappedLaplaceMechanism(WrappedMechanism):
    """Density ∝ e^{−|c|/σ} at the centre.

    Rounded: |c| is the Euclidean norm, and ε = Δ/σ exactly, Δ in whole steps; for budgets that are not pure the profile
    of this noise in its own dimension is told, which has far less loss than its largest (docs/proofs/accounts.md, A5).
    Lattice: OpenDP's discrete Laplace on each coordinate, |c| the ℓ1 norm, ε = √d·Δ/σ: more noise than rounded beyond
    one dimension. That, and noise in several parts, is no worse than Laplace noise on the line with its ε (A2 there).

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, PureDP
    >>> from dpmanifolds.sums import WrappedLaplaceMechanism, mean_facts
    >>> facts = mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500)
    >>> mechanism = WrappedLaplaceMechanism.calibrate(facts, PureDP(0.5), "rounded")
    >>> round(mechanism.sigma / float(mechanism.sensitivity), 6)
    2.0
    """

    name: ClassVar[str] = "wrapped-laplace"
    theorem: ClassVar[str] = "B1 and the Laplace mechanism on integers (docs/proofs/sums.md, numerics.md)"
    is_gaussian: ClassVar[bool] = False

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        on_lattice = choice("numerics", numerics, cls.offered_numerics) == "lattice"
        epsilon = affordable_epsilon(budget, on_the_line=True)
        if not on_lattice:
            guarantee = Guarantee.laplace(epsilon, **facts.labels)
            # a record that changes its class moves two draws, whose lengths add up
            if not budget.bounded_loss and not (facts.shape is not None and facts.shape.labelled):
                epsilon, guarantee = _with_own_profile(epsilon, guarantee, noisy_dim(facts), budget)
            lattice = choose_lattice(facts, epsilon, gaussian=False)
            return cls._on(lattice, lattice.scale_for(epsilon), facts, guarantee, numerics)
        lattice = choose_lattice(facts, epsilon, gaussian=False, coordinatewise=True)
        sigma, shift = lattice.scale_for(epsilon), math.floor(lattice.moved)
        sigma, guarantee = enlarge(
            sigma, budget, lambda wider: Guarantee.discrete_laplace(shift, wider, **facts.labels)
        )
        return cls._on(lattice, sigma, facts, guarantee, numerics)

    @classmethod
    def errs_more(cls, facts: Facts, budget: Budget, numerics: str, error: float) -> bool:
        """Under a Gaussian μ: whether noise that errs a hair more asks for a larger one at the threshold 0 already.

        So does all noise that errs less, as probabilities of the two laws move apart with the distance.
        """
        dim = noisy_dim(facts)
        if budget.spends != "mu" or numerics == "lattice" or not 2 <= dim <= MOST_DIMENSIONS:
            return False
        lattice = choose_lattice(facts, 1.0, gaussian=False)
        unit = cls._on(lattice, lattice.scale_for(1.0), facts, Guarantee.pure(1.0, **facts.labels), numerics)
        shift = unit.expected_error.mean / (_MORE * error)
        return LEAST_SHIFT < shift < LARGEST_INTERVAL and least_mu(dim, shift) > _MORE * budget.amount

    @cached_property
    def noise(self) -> RoundedLaplace | LatticeLaplace:
        return (LatticeLaplace if self.numerics == "lattice" else RoundedLaplace)(self.dim, self._steps)

    @property
    def is_coordinatewise(self) -> bool:
        return self.numerics == "lattice" and self.dim > 1

    @property
    def deviation(self) -> float:
        """E|y|² = d(d + 1)σ² for ℓ2-Laplace noise, 2dσ² for independent coordinates."""
        return self.sigma * math.sqrt(2 if self.is_coordinatewise else self.dim + 1)

    def _plain_error(self) -> ExpectedError:
        if self.is_coordinatewise:
            mean = self.sigma * mean_of_laplaces(self.dim)
            return self._with_edge(mean, self.error_quantile(0.9), simulated=True)
        norm = LaplaceNorm(self.dim, self.sigma)
        share = share_of_length(self._told, self.dim)
        return self._with_edge(share * norm.moment(1), share * norm.quantile(0.9))

    def _plain_quantile(self, probability: float) -> float:
        if self.is_coordinatewise:
            return self.sigma * quantile_of_laplaces(self.dim, probability)
        return float(LaplaceNorm(self.dim, self.sigma).quantile(probability))


def _with_own_profile(loss: float, guarantee: Guarantee, dim: int, budget: Budget) -> tuple[float, Guarantee]:
    """Δ/σ of ℓ2-Laplace noise in R^dim, and its promise; those of noise on the line where they are not worked out."""
    try:
        shift = affordable_shift(budget, dim)
    except NotAvailableError:
        return loss, guarantee
    if shift <= loss:
        return loss, guarantee
    return shift, Guarantee.l2_laplace(shift, dim, adjacency=guarantee.adjacency, unit=guarantee.unit)
