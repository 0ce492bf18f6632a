"""How a mean and a spread are paid for: the plan with the smallest region that public facts predict.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=1.0)
>>> plan = plan_spread(ball, 2000, dpm.GaussianDP(1.0), "record")
>>> plan.squares is not None, law_name(plan)
(True, 'gaussian')

The region is predicted for records that a ball chosen in good faith holds. Proofs: docs/proofs/regions.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.privacy import Budget, Guarantee, compose
from dpmanifolds.releases.population import SpreadNoise, mean_part, region_law
from dpmanifolds.releases.statistic import best_cut
from dpmanifolds.sums import Mechanism, choose
from dpmanifolds.sums.lengths import length_deviation, length_facts
from dpmanifolds.sums.moments import MomentNoise, moment_noise
from dpmanifolds.sums.steps import StepPlan, plan_steps
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedMechanism

_ROUGH = (0.03, 0.06, 0.1, 0.15, 0.25)
_CONSTANTS = (0.35, 0.5, 0.7, 1.0)
# how far records lie from their mean, as a share of the radius of a ball chosen in good faith, and the narrowest axis
_SPREAD, _NARROWEST = 0.4, 0.3
_PLANNED_DIMENSION = 40
_LEVEL = 0.95
_LARGEST_SQUARES = 1000
# fourth powers of lengths, and of noise of up to 2⁶² of them, stay in floats
_LARGEST = 1e50


@dataclass(frozen=True)
class SpreadPlan:
    """What is paid for, and what it promises; made of public facts."""

    rough: StepPlan | None
    squares: MomentNoise | None
    """Of ỹỹᵀ; None: lengths alone."""
    lengths: Mechanism | None
    part: Budget
    """Of the last sum."""
    constant: float
    """κ over the radius, for squares."""
    predicted: float
    """The radius of a region, in good faith."""

    @property
    def guarantee(self) -> Guarantee:
        """Of all stages together."""
        last = self.squares or self.lengths
        assert last is not None
        return last.guarantee if self.rough is None else compose(self.rough.guarantee, last.guarantee)


@lru_cache(maxsize=32)
def plan_spread(domain: Ball, n: int, budget: Budget, unit: str) -> SpreadPlan:
    """The plan with the smallest predicted region. Worked out once for the same public facts."""
    flat = domain.manifold.is_flat
    if not 1 / _LARGEST < domain.radius < _LARGEST:
        raise ScaleOutOfRangeError(f"a spread in a ball of radius {domain.radius:g} leaves floats: rescale the data.")

    def plans(*parts: Budget) -> Iterator[SpreadPlan]:
        rough = None if flat else plan_steps(domain, n, parts[0], unit=unit, most=1)
        if domain.manifold.dim < _LARGEST_SQUARES:
            for constant in _CONSTANTS:
                squares = moment_noise(domain.manifold.dim + 1, parts[-1], unit)
                yield SpreadPlan(rough, squares, None, parts[-1], constant, 0.0)
        facts = length_facts(domain.radius, domain.manifold.dim, n, unit)
        yield SpreadPlan(rough, None, choose(facts, parts[-1]).mechanism, parts[-1], 0.0, 0.0)

    def best(*parts: Budget) -> SpreadPlan:
        made = [replace(plan, predicted=_predict(plan, domain, n)) for plan in plans(*parts)]
        return min(made, key=lambda plan: plan.predicted)

    cuts = [[1.0]] if flat else [[share, 1 - share] for share in _ROUGH]
    return best_cut(budget, cuts, best, lambda plan: plan.predicted)


def _predict(plan: SpreadPlan, domain: Ball, n: int) -> float:
    """The radius (a geometric mean of semi-axes) of a 95 % region, for records that a ball chosen in good faith holds.

    They spread by 0.4 of the radius, with deviations from 1 to 0.3 along the axes. Seen from a rough mean at distance e
    of the mean, coordinates miss third-order terms of about κe³/3. Noise counts by its deviation.
    """
    dim = min(domain.manifold.dim, _PLANNED_DIMENSION)
    sizes = np.geomspace(1.0, _NARROWEST, dim) ** 2
    # as many axes as are worked out have their share of the spread
    trace = (_SPREAD * domain.radius) ** 2 * dim / domain.manifold.dim
    mean, moment = _plan_deviations(plan, domain, n)
    if plan.squares is not None:
        noise = SpreadNoise("covariance", mean, moment, "gaussian", (dim + 1) * (dim + 2) // 2)
        part = mean_part(np.diag(trace * sizes / np.sum(sizes)), n=n, noise=noise)
    else:
        noise = SpreadNoise("variance", mean, moment, "gaussian", dim + 1)
        part = mean_part(np.array([[trace]]), n=n, noise=noise, derivative=np.eye(dim))
    law = region_law([part])
    radius = math.sqrt(float(law.threshold(_LEVEL)) / math.exp(float(np.linalg.slogdet(law.weight)[1]) / dim))
    if plan.rough is None:
        return radius
    error = min(math.hypot(plan.rough.expected_error.mean, plan.rough.bias), domain.radius)
    return radius + max(map(abs, domain.manifold.curvature_bounds)) * error**3 / 3


def law_name(plan: SpreadPlan) -> str:
    """As `SpreadNoise` calls it."""
    if plan.squares is None:
        return "gaussian" if isinstance(plan.lengths, WrappedGaussianMechanism) else "laplace"
    if plan.squares.is_gaussian:
        return "gaussian"
    return "wishart" if plan.squares.is_nuclear else "laplace"


def _plan_deviations(plan: SpreadPlan, domain: Ball, n: int) -> tuple[float, float]:
    """Of the noise on the mean and on the moment, for records seen from their mean within the domain's radius."""
    if plan.squares is not None:
        moment, mean = square_noise(plan.squares, plan.constant, domain.radius, n)
        return float(mean), float(moment)
    assert isinstance(plan.lengths, WrappedMechanism)
    mean = plan.lengths.deviation
    return mean, float(length_deviation(domain.radius, mean))


def square_noise(noise: MomentNoise, constant: float, radius: Any, n: int) -> tuple[Any, Any]:
    """Deviations of an entry of the second moment off the diagonal, and of a coordinate of the mean."""
    moment = noise.spread * (1 + constant**2) * radius**2 / n
    return moment, moment / (constant * radius)
