"""Riemannian laws around the statistic itself: idealized numerics, used only when asked for.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> from dpmanifolds.sums import calibrate, mean_facts
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
>>> mechanism = calibrate("riemannian-laplace", mean_facts(ball, n=100), PureDP(1.0), "idealized")
>>> round(mechanism.expected_error.mean, 6)
0.016567

The noise depends on the statistic, so no lattice makes its floating-point law exact: the promise holds for real
numbers, and the draw is put on a public grid before it is shown.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host, leaves
from dpmanifolds._validate import choice
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.intrinsic.direct import of_frechet_mean
from dpmanifolds.intrinsic.knorm_gradient import KNormGradientLaw, acceptance_bound
from dpmanifolds.intrinsic.law import TangentLaw
from dpmanifolds.intrinsic.riemannian import gaussian_law, laplace_law
from dpmanifolds.manifolds import Hyperbolic, Sphere
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import (
    Budget,
    GaussianDP,
    Guarantee,
    Sensitivity,
    affordable_epsilon,
    affordable_mu,
    laplace_scale,
    largest_affordable,
    sigma_for_mu,
)
from dpmanifolds.sums.frames import horizon, point_at
from dpmanifolds.sums.mechanism import Draw, ExpectedError, Facts, Mechanism, simulated_error

_UP = 1 + 2.0**-49
# some laws take half a second to set up, and calibration, planning and the draw all need the same one
_laplace = lru_cache(maxsize=32)(laplace_law)
_gaussian = lru_cache(maxsize=32)(gaussian_law)
_FINENESS = 20
_SIMULATED_DRAWS = 20_000
_LEAST_ACCEPTED = 1e-6


@dataclass(frozen=True, kw_only=True)
class _IdealizedMechanism(Mechanism):
    """What the intrinsic mechanisms share: a draw in real numbers, shown on a public grid."""

    offered_numerics: ClassVar[tuple[str, ...]] = ("idealized",)
    error_metric: ClassVar[str] = "distance"

    @classmethod
    def _at_scale(cls, facts: Facts, sigma: float, guarantee: Guarantee) -> Self:
        """Shown on a grid about 2⁻²⁰ of the scale."""
        if not horizon(facts.domain):
            raise NotAvailableError(f"floating point does not hold all points of {facts.domain!r}. Use a smaller ball.")
        step = 2.0 ** (math.frexp(sigma)[1] - 1 - _FINENESS)
        return cls(facts=facts, sigma=sigma, step=step, guarantee=guarantee, numerics="idealized")

    def _shown(self, point: Array) -> Array:
        domain = self.facts.domain
        inside = domain.clip(point)
        coordinates = domain.manifold.log_coordinates(host(domain.center), inside)
        return point_at(domain, np.rint(coordinates / self.step) * self.step)

    @cached_property
    def _horizon(self) -> float:
        """How far from the centre draws are told apart; public."""
        return horizon(self.facts.domain)


@dataclass(frozen=True, kw_only=True)
class _AroundTheStatistic(_IdealizedMechanism):
    """An isotropic law at the statistic, with support on the whole space.

    A draw may lie farther out than floating point has points. The mechanism shows a function of the draw x: its
    projection into the domain, after, beyond a public distance from the centre (`horizon`), the centre itself took its
    place, or in flat spaces the projection to that distance. Post-processing, and a release never fails.
    """

    @property
    def sensitivity(self) -> Sensitivity:
        return _distance(self.facts)

    def draw(self, statistic: Array, *, records: Array | None = None, rng: Any = None) -> Draw:
        noise = self._law.sample_coordinates(1, as_generator(rng))[0]
        return Draw(self._shown(self._moved(host(statistic), noise)), None)

    def draw_many(self, statistic: Array, count: int, *, records: Array | None = None, rng: Any = None) -> Array:
        noise = self._law.sample_coordinates(count, as_generator(rng))
        return self._shown(self.facts.domain.manifold.move(host(statistic), noise))

    def log_likelihood(self, released: Array, statistic: Array, *, records: Array | None = None) -> np.ndarray:
        away = np.asarray(self.facts.domain.manifold.dist(host(statistic), released)) / self.sigma
        return -(away**self._power) / self._power

    _power: ClassVar[int] = 1
    """The density is exp(−(distance/σ)^power/power)."""

    def _moved(self, point: Array, noise: np.ndarray) -> Array:
        """exp of the noise at the point, and what takes its place beyond the horizon."""
        manifold, center = self.facts.domain.manifold, host(self.facts.domain.center)
        if manifold.is_flat:
            seen = manifold.log_coordinates(center, point) + noise
            return manifold.move(center, seen * min(1.0, self._horizon / max(float(np.linalg.norm(seen)), 1e-300)))
        # the triangle inequality: no need to compute a point that lies beyond for certain
        if not np.linalg.norm(noise) <= self._horizon + self.facts.domain.radius:
            return center
        try:
            moved = manifold.move(point, noise)
            near = np.linalg.norm(manifold.log_coordinates(center, moved)) <= self._horizon
        except (ScaleOutOfRangeError, np.linalg.LinAlgError):
            return center
        return moved if near else center

    @cached_property
    @abstractmethod
    def _law(self) -> TangentLaw:
        """The law around the statistic."""

    @cached_property
    def expected_error(self) -> ExpectedError:
        try:
            mean = self._law.distance_moment(1)
            return ExpectedError(mean, float(self._law.distance_quantile(0.9)), mean)
        except NotAvailableError:
            return simulated_error(self._simulated)

    @cached_property
    def _simulated(self) -> np.ndarray:
        draws = self._law.sample_coordinates(_SIMULATED_DRAWS, np.random.default_rng(0))
        return np.asarray(np.linalg.norm(draws, axis=-1))

    def error_quantile(self, probability: float) -> float:
        try:
            return float(self._law.distance_quantile(probability))
        except NotAvailableError:
            return float(np.quantile(self._simulated, probability))


def _distance(facts: Facts) -> Sensitivity:
    if facts.in_distance is None:
        raise NotAvailableError("laws around the Fréchet mean are offered for replace-one neighbours only.")
    return facts.in_distance


def _needs_homogeneous(facts: Facts) -> None:
    if not facts.domain.manifold.is_homogeneous:
        raise NotAvailableError(
            f"the normaliser of an intrinsic law on {facts.domain.manifold!r} depends on where it stands. Use a "
            "wrapped mechanism, or the K-norm gradient."
        )


@dataclass(frozen=True, kw_only=True)
class RiemannianLaplaceMechanism(_AroundTheStatistic):
    """Density ∝ exp(−ρ(x̄, ·)/σ) on the whole manifold: ε = Δ/σ on homogeneous spaces (Reimherr et al. 2021).

    Conditioned on the ball it would need 2Δ/ε: the draw is unrestricted, and projected into the ball afterwards.

    >>> from dpmanifolds import Ball, PureDP, Sphere
    >>> from dpmanifolds.intrinsic import RiemannianLaplaceMechanism
    >>> from dpmanifolds.sums import mean_facts
    >>> facts = mean_facts(Ball(Sphere(2), [0.0, 0.0, 1.0], radius=0.4), n=100)
    >>> mechanism = RiemannianLaplaceMechanism.calibrate(facts, PureDP(1.0), "idealized")
    >>> round(mechanism.sigma / float(mechanism.sensitivity), 6), mechanism.error_metric
    (1.0, 'distance')
    """

    name: ClassVar[str] = "riemannian-laplace"
    theorem: ClassVar[str] = "S1 and the Riemannian Laplace on a homogeneous space (docs/proofs/mechanisms.md, M1)"

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        choice("numerics", numerics, cls.offered_numerics)
        facts = of_frechet_mean(facts)
        _needs_homogeneous(facts)
        epsilon = affordable_epsilon(budget, on_the_line=True)
        sigma = laplace_scale(float(_distance(facts)), epsilon)
        try:
            _laplace(facts.domain.manifold, sigma)
        except (ArgumentError, ScaleOutOfRangeError) as reason:
            raise NotAvailableError(f"no Riemannian Laplace at the scale {sigma:.4g}: {reason}") from None
        guarantee = Guarantee.laplace(epsilon, **facts.labels)
        return cls._at_scale(facts, sigma, guarantee)

    @cached_property
    def _law(self) -> TangentLaw:
        return _laplace(self.facts.domain.manifold, self.sigma)


@dataclass(frozen=True, kw_only=True)
class RiemannianGaussianMechanism(_AroundTheStatistic):
    """Density ∝ exp(−ρ(x̄, ·)²/2σ²): Gaussian DP on spheres, hyperbolic and flat spaces (Jiang et al. 2023).

    The promise is the law's own privacy profile (docs/proofs/gaussian_dp.md); in flat spaces μ = Δ/σ.

    >>> from dpmanifolds import Ball, GaussianDP, Sphere
    >>> from dpmanifolds.intrinsic import RiemannianGaussianMechanism
    >>> from dpmanifolds.sums import mean_facts
    >>> facts = mean_facts(Ball(Sphere(2), [0.0, 0.0, 1.0], radius=0.4), n=100)
    >>> mechanism = RiemannianGaussianMechanism.calibrate(facts, GaussianDP(1.0), "idealized")
    >>> mechanism.error_metric, mechanism.guarantee.fits(GaussianDP(1.0))
    ('distance', True)
    """

    name: ClassVar[str] = "riemannian-gaussian"
    _power: ClassVar[int] = 2
    theorem: ClassVar[str] = "S1 and the profile of the Riemannian Gaussian (docs/proofs/gaussian_dp.md)"

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        choice("numerics", numerics, cls.offered_numerics)
        facts = of_frechet_mean(facts)
        manifold, moved = facts.domain.manifold, float(_distance(facts))
        mu = affordable_mu(budget)
        if manifold.is_flat:
            sigma = moved / mu * _UP
            guarantee = Guarantee.gaussian(mu, **facts.labels)
            return cls._at_scale(facts, sigma, guarantee)
        if not isinstance(manifold, Sphere | Hyperbolic):
            raise NotAvailableError(
                f"no Gaussian-DP bound is known for the intrinsic Gaussian on {manifold!r}. Use the wrapped Gaussian."
            )

        def promise(precision: float) -> Guarantee:
            return Guarantee.riemannian_gaussian(manifold, 1 / precision, moved, **facts.labels)

        try:
            sigma = sigma_for_mu(manifold, mu, moved)
            precision = 1 / sigma
            if budget != GaussianDP(mu):
                # the profile at one ε is below that of its μ: start from there and give the rest back
                precision = largest_affordable(lambda x: promise(x / sigma), budget) / sigma
            _gaussian(manifold, 1 / precision)
        except (ArgumentError, ScaleOutOfRangeError) as reason:
            raise NotAvailableError(f"no Riemannian Gaussian keeps {budget!r} here: {reason}") from None
        # the very promise that was found to fit: its last digits depend on those of the scale
        return cls._at_scale(facts, 1 / precision, promise(precision))

    @cached_property
    def _law(self) -> TangentLaw:
        return _gaussian(self.facts.domain.manifold, self.sigma)


@dataclass(frozen=True, kw_only=True)
class KNormGradientMechanism(_IdealizedMechanism):
    """Density ∝ exp(−‖∇F‖/σ) on the ball, F half the mean squared distance: ε = 2Δ/σ with Δ from S2 (Soto et al. 2022).

    Needs no homogeneous space, but twice the scale: with σ = Δ/ε, as published, it is not ε-DP. **The time of a draw
    depends on the records**, and nothing else does: it is refused in advance where, for some records of the ball, fewer
    than one in a million proposals would be accepted (`acceptance_bound`), and goes on until one is. The expected error
    is for records that all lie at the centre.

    >>> from dpmanifolds import Ball, PureDP, Sphere
    >>> from dpmanifolds.intrinsic import KNormGradientMechanism
    >>> from dpmanifolds.sums import mean_facts
    >>> facts = mean_facts(Ball(Sphere(2), [0.0, 0.0, 1.0], radius=0.4), n=100)
    >>> mechanism = KNormGradientMechanism.calibrate(facts, PureDP(1.0), "idealized")
    >>> mechanism.name, round(mechanism.sigma / float(mechanism.sensitivity), 6)
    ('k-norm-gradient', 2.0)
    """

    name: ClassVar[str] = "k-norm-gradient"
    stays_inside: ClassVar[bool] = True
    theorem: ClassVar[str] = "S2 and the exponential mechanism (docs/proofs/mechanisms.md, M4)"

    @property
    def sensitivity(self) -> Sensitivity:
        if self.facts.of_gradient is None:
            raise NotAvailableError("the K-norm gradient mechanism is offered for Fréchet means only.")
        return self.facts.of_gradient

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        choice("numerics", numerics, cls.offered_numerics)
        facts = of_frechet_mean(facts)
        if facts.of_gradient is None or not isinstance(facts.domain, Ball):
            raise NotAvailableError("the K-norm gradient mechanism is offered for Fréchet means in a Ball only.")
        if facts.domain.manifold.is_product:
            raise NotAvailableError(f"no exact K-norm gradient draws are known on {facts.domain.manifold!r}.")
        moved = 2 * float(facts.of_gradient)
        epsilon = affordable_epsilon(budget)
        sigma = laplace_scale(moved, epsilon)
        accepted = acceptance_bound(facts.domain, sigma)
        if accepted < _LEAST_ACCEPTED:
            raise NotAvailableError(
                f"no K-norm gradient draws at the scale {sigma:.4g} in {facts.domain!r}: there are records for which "
                f"only {accepted:.1g} of all proposals would be accepted. Use a smaller ball, or a wrapped mechanism."
            )
        guarantee = Guarantee.pure(epsilon, **facts.labels)
        return cls._at_scale(facts, sigma, guarantee)

    def draw(self, statistic: Array, *, records: Array | None = None, rng: Any = None) -> Draw:
        return Draw(self._shown(host(self._law(records, statistic).sample(rng=rng))), None)

    def draw_many(self, statistic: Array, count: int, *, records: Array | None = None, rng: Any = None) -> Array:
        return self._shown(host(self._law(records, statistic).sample(count, as_generator(rng))))

    def log_likelihood(self, released: Array, statistic: Array, *, records: Array | None = None) -> np.ndarray:
        inside = self.facts.domain.clip(released)
        return -np.asarray(self._law(records, statistic).gradient_norm(inside)) / self.sigma

    def _law(self, records: Array | None, estimate: Array) -> KNormGradientLaw:
        """The estimate centres the proposals only, and any point of the ball will do."""
        if records is None:
            raise ArgumentError("the K-norm gradient mechanism needs the clipped records, not the mean alone.")
        ball, near = self.facts.domain, self.facts.domain.clip(estimate)
        return KNormGradientLaw(
            ball.manifold, host(records), host(ball.center), ball.radius, self.sigma, host(near), clipped=True
        )

    @cached_property
    def _simulated(self) -> np.ndarray:
        center = host(self.facts.domain.center)
        draws = self._law(leaves(center)[0][None], center).sample(_SIMULATED_DRAWS, np.random.default_rng(0))
        return np.asarray(self.facts.domain.manifold.dist(center, draws))

    @cached_property
    def expected_error(self) -> ExpectedError:
        return simulated_error(self._simulated)

    def error_quantile(self, probability: float) -> float:
        raise NotAvailableError("the error of the K-norm gradient depends on the records: no region is known.")
