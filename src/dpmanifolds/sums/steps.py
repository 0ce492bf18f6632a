"""The mean by tangent steps: a bounded sum at the public centre, and at points that are public by then.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=1.2)
>>> plan = plan_steps(ball, 10_000, PureDP(1.0))
>>> len(plan.mechanisms), plan.guarantee.fits(PureDP(1.0))
(2, True)

x₁ = exp_p(mean of log_p x_i) is the mean itself where the metric is flat, and one step of Karcher's iteration
elsewhere: what is left of the distance to the Fréchet mean is a share q of it, of second order in the spread of the
records times the curvature. Each step is one sum with its share of the budget; the noise of an earlier step is carried
over with the factor q, so that the last step gets most of the budget (docs/proofs/sums.md, section 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from dpmanifolds._validate import positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.mechanisms import ExpectedError, Facts, Mechanism, calibrate, choose, mean_facts, offered
from dpmanifolds.privacy import Budget, Guarantee, compose, split

__all__ = ["MOST_STEPS", "StepPlan", "contraction", "damping", "is_flat", "move_plan", "plan_steps"]

MOST_STEPS = 4
# where records and their mean lie in a ball that was chosen in good faith: shares of the radius
_SPREAD, _PLACE = 0.5, 0.3
_LEAST_CONTRACTION = 0.02
# from here on a whole step may lead away from the mean, in units of 1/√|κ|
_DIVERGENCE = 1.92


@dataclass(frozen=True)
class StepPlan:
    """A calibrated mechanism for each step, and what all of them promise together; made of public facts."""

    mechanisms: tuple[Mechanism, ...]
    parts: tuple[Budget, ...]
    """What each of them may spend."""
    guarantee: Guarantee
    expected_error: ExpectedError
    """Of the last point, from noise alone: that of its own sum, and what is carried over from the steps before."""
    bias: float
    """What the steps leave of the way to the Fréchet mean, for records and a mean in typical places."""
    damping: float
    """The share of a step that is taken."""
    reason: str

    @property
    def last(self) -> Mechanism:
        """The mechanism that most of the budget goes to."""
        return self.mechanisms[-1]

    def for_count(self, n: int) -> StepPlan:
        """The same steps, parts and promise for another number of records."""
        return _recalibrated(self, self.last.facts.domain, n)


def plan_steps(
    domain: Domain,
    n: int,
    budget: Budget,
    *,
    steps: int | str = "auto",
    mechanism: str = "auto",
    numerics: str = "safe",
    most: int = MOST_STEPS,
    **facts: Any,
) -> StepPlan:
    """The number of steps, and the mechanisms, with the smallest error that public facts predict.

    `facts` go to `mean_facts`.
    """
    public = mean_facts(domain, n, **facts)
    if steps == "auto":
        counts = range(1, 2 if is_flat(domain.manifold) else most + 1)
    elif isinstance(steps, str):
        raise ArgumentError(f"steps must be 'auto' or a whole number of at least 1; got {steps!r}.")
    else:
        counts = range(positive_integer("steps", steps), positive_integer("steps", steps) + 1)
    plans = [_planned(public, budget, count, mechanism, numerics) for count in counts]
    best = min(plans, key=_predicted)
    if len(plans) == 1:
        return best
    others = ", ".join(f"{len(plan.mechanisms)}: {_predicted(plan):.3g}" for plan in plans)
    return replace(best, reason=f"{best.reason}; error that public facts predict by the number of steps: {others}")


def _predicted(plan: StepPlan) -> float:
    return math.hypot(plan.expected_error.mean, plan.bias)


def is_flat(manifold: Manifold) -> bool:
    """Whether one step is exact."""
    return manifold.curvature_bounds == (0.0, 0.0) and manifold.injectivity_radius == math.inf


def contraction(domain: Domain, distance: float) -> float:
    """The share of the way to the mean that a whole step leaves, for records at this distance: |1 − Hessian|.

    The Hessian of half the squared distance is 1 along the geodesic and √κρ·cot(√κρ) across it, or its hyperbolic
    sister, at the average curvature.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> round(contraction(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0), 0.5), 3)
    0.042
    """
    manifold = domain.manifold
    curvature = manifold.average_curvature
    angle = math.sqrt(abs(curvature)) * distance
    if angle < 1e-6:
        return 0.0
    bend = angle / math.tan(min(angle, 3.0)) if curvature > 0 else angle / math.tanh(angle)
    return (1 - 1 / manifold.dim) * abs(1 - bend)


def damping(domain: Domain) -> float:
    """What part of a step is taken when there are several: all, or 1/L where whole ones may diverge.

    The Hessian is at most L = √|κ|ρ·coth(√|κ|ρ) at the lowest curvature κ; whole steps are safe up to √|κ|ρ = 1.92.

    >>> from dpmanifolds import Ball, Hyperbolic
    >>> round(damping(Ball(Hyperbolic(2), Hyperbolic(2).origin, 3.0)), 3)
    0.332
    """
    reach = math.sqrt(max(-domain.manifold.curvature_bounds[0], 0.0)) * domain.radius
    return 1.0 if reach <= _DIVERGENCE else math.tanh(reach) / reach


def _planned(facts: Facts, budget: Budget, count: int, mechanism: str, numerics: str) -> StepPlan:
    domain = facts.domain
    left = contraction(domain, _SPREAD * domain.radius)
    bias = _PLACE * domain.radius * left**count
    if count == 1:
        chosen = choose(facts, budget, mechanism=mechanism, numerics=numerics)
        law = chosen.mechanism
        return StepPlan((law,), (budget,), law.guarantee, law.expected_error, bias, 1.0, chosen.reason)
    factor = min(max(left, _LEAST_CONTRACTION), 1.0)
    found, refusal = [], NotAvailableError(f"no mechanism keeps {count} parts of {budget!r}.")
    for power in (1.0, 2.0 / 3.0):
        weights = [factor ** (power * (count - 1 - number)) for number in range(count)]
        for parts in split(budget, [weight / math.fsum(weights) for weight in weights]):
            try:
                found.append(_composed(facts, parts, mechanism, numerics, left))
            except NotAvailableError as reason:
                refusal = reason
    if not found:
        raise refusal
    laws, parts, error = min(found, key=lambda way: way[2].mean)
    guarantee = compose(*(law.guarantee for law in laws))
    return StepPlan(laws, parts, guarantee, error, bias, damping(domain), f"{count} steps of {laws[-1].name}")


def _composed(
    facts: Facts, parts: tuple[Budget, ...], mechanism: str, numerics: str, left: float
) -> tuple[tuple[Mechanism, ...], tuple[Budget, ...], ExpectedError]:
    """One mechanism of one kind for each part, and the error of the last with what is carried over."""
    best = min(
        offered(facts, parts[-1], mechanism=mechanism, numerics=numerics), key=lambda law: law.expected_error.mean
    )
    laws = tuple(calibrate(best.name, facts, part, best.numerics) for part in parts)
    return laws, parts, _carried(laws, left)


def _carried(laws: tuple[Mechanism, ...], left: float) -> ExpectedError:
    """The error of the last step, with a share `left` of that of the step before, and so on."""
    errors = [law.expected_error for law in laws]
    mean = reduce(lambda carried, error: math.hypot(left * carried, error.mean), errors, 0.0)
    last, ratio = errors[-1], mean / errors[-1].mean
    return replace(last, mean=mean, radius_90=last.radius_90 * ratio, mean_at_edge=last.mean_at_edge * ratio)


def move_plan(plan: StepPlan, domain: Domain) -> StepPlan:
    """The same steps, with the same parts of the budget and so the same promise, in another ball."""
    return _recalibrated(plan, domain, None)


def _recalibrated(plan: StepPlan, domain: Domain, n: int | None) -> StepPlan:
    laws = tuple(_moved(law, part, domain, n) for law, part in zip(plan.mechanisms, plan.parts, strict=True))
    left = contraction(domain, _SPREAD * domain.radius)
    return replace(
        plan,
        mechanisms=laws,
        expected_error=_carried(laws, left),
        bias=_PLACE * domain.radius * left ** len(laws),
        damping=damping(domain),
    )


def _moved(law: Mechanism, part: Budget, domain: Domain, n: int | None) -> Mechanism:
    shape = law.facts.shape
    assert shape is not None
    facts = mean_facts(
        domain, n or shape.count, adjacency=shape.adjacency, unit=law.facts.unit, labelled=shape.labelled
    )
    return calibrate(law.name, facts, part, law.numerics)
