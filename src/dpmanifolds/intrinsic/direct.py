"""The Fréchet mean itself as a solver finds it, with everything that floating point adds: what stands on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import (
    Budget,
    sensitivity_of_flat_mean,
    sensitivity_of_mean,
    sensitivity_of_mean_at_center,
    sensitivity_of_mean_gradient,
)
from dpmanifolds.statistics.solver_error import coordinate_rounding, solver_tolerance
from dpmanifolds.sums.mechanism import Facts, Mechanism
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism


def of_frechet_mean(facts: Facts) -> Facts:
    """These facts, or those of the Fréchet mean that a mean by tangent sums stands for.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> from dpmanifolds.sums import mean_facts
    >>> facts = mean_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8), n=100)
    >>> round(float(facts.at_center), 8), round(float(of_frechet_mean(facts).at_center), 8)
    (0.00785398, 0.00828427)
    """
    if facts.shape is None:
        return facts
    if facts.precision is None:
        raise NotAvailableError(
            "mechanisms around the Fréchet mean are offered for replace-one neighbours and public classes only."
        )
    return frechet_facts(facts.domain, facts.shape.count, facts.precision, unit=facts.unit)


def frechet_facts(domain: Domain, n: int, dtype: Any = "float64", *, unit: str = "record") -> Facts:
    """How far the Fréchet mean of n records of the domain moves, as computed in `dtype`.

    A ball counts by S1, S1w and S2; any other domain of a flat space by S1d, diameter/n. The solver's tolerance and
    the rounding of coordinates are public numbers and part of the sensitivity. `NotAvailableError` where the mean need
    not be unique, or no bound on the solver's error is known.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> facts = frechet_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8), n=100)
    >>> round(float(facts.at_center), 8)
    0.00828427
    """
    if not domain.has_unique_mean:
        raise NotAvailableError(
            f"the Fréchet mean is unique for radii below {domain.manifold.max_radius:.6g} on {domain.manifold!r}; got "
            f"{domain.radius:.6g}. Leave the mechanism to 'auto', or use a smaller ball."
        )
    try:
        tolerance, rounding = solver_tolerance(domain, n, dtype), coordinate_rounding(domain, dtype)
        if not isinstance(domain, Ball):
            moved = sensitivity_of_flat_mean(domain, n, solver_tolerance=tolerance, rounding=rounding)
            return Facts(domain, moved, moved, unit=unit)
        ball = _as_contained(domain, dtype)
        gradient = sensitivity_of_mean_gradient(ball, n)
        return Facts(
            domain,
            sensitivity_of_mean_at_center(ball, n, solver_tolerance=tolerance, rounding=rounding),
            sensitivity_of_mean(ball, n, solver_tolerance=tolerance, rounding=rounding),
            replace(gradient, value=gradient.value + 2 * rounding),
            unit=unit,
        )
    except ArgumentError as reason:
        raise NotAvailableError(f"no bound on the rounding of the Fréchet mean is known here: {reason}") from None


def _as_contained(ball: Ball, dtype: Any) -> Ball:
    """The ball that `Ball.contains` means in this precision: a hair larger in single precision."""
    precision = float(np.finfo(np.dtype(dtype)).eps)
    return ball if precision < 1e-10 else replace(ball, radius=ball.radius * (1 + 64 * precision))


class _Direct(Mechanism):
    """The same noise on other facts: those of the Fréchet mean, without a lattice."""

    offered_numerics: ClassVar[tuple[str, ...]] = ("rounded",)

    @classmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        return super().calibrate(of_frechet_mean(facts), budget, numerics)


@dataclass(frozen=True, kw_only=True)
class DirectGaussianMechanism(_Direct, WrappedGaussianMechanism):
    """The Gaussian on the Fréchet mean as a solver finds it, every rounding charged (Theorem S1w); only by name.

    >>> from dpmanifolds import Ball, GaussianDP, Sphere
    >>> from dpmanifolds.sums import calibrate, mean_facts
    >>> facts = mean_facts(Ball(Sphere(2), [0.0, 0.0, 1.0], radius=1.2), n=100)
    >>> round(calibrate("direct-gaussian", facts, GaussianDP(1.0), "rounded").sigma, 4)  # 2·tan(1.2)/n, not 2.4/n
    0.0514
    """

    name: ClassVar[str] = "direct-gaussian"
    theorem: ClassVar[str] = "S1w and the Gaussian mechanism in R^d (docs/proofs/mechanisms.md, M3, and numerics.md)"


@dataclass(frozen=True, kw_only=True)
class DirectLaplaceMechanism(_Direct, WrappedLaplaceMechanism):
    """The ℓ2-Laplace on the Fréchet mean as a solver finds it, every rounding charged (Theorem S1w); only by name.

    >>> from dpmanifolds import Ball, PureDP, Sphere
    >>> from dpmanifolds.sums import calibrate, mean_facts
    >>> facts = mean_facts(Ball(Sphere(2), [0.0, 0.0, 1.0], radius=1.2), n=100)
    >>> round(calibrate("direct-laplace", facts, PureDP(1.0), "rounded").sigma, 4)
    0.0514
    """

    name: ClassVar[str] = "direct-laplace"
    theorem: ClassVar[str] = "S1w and the Laplace mechanism in R^d (docs/proofs/mechanisms.md, M3, and numerics.md)"
