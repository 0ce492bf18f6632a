"""The mean by tangent steps: a bounded sum at the public centre, and at points that are public by then.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=1.2)
>>> plan = plan_steps(ball, 1_000, PureDP(1.0))
>>> len(plan.mechanisms), plan.guarantee.fits(PureDP(1.0))
(2, True)

x₁ = exp_p(mean of log_p x_i) is the mean itself where the metric is flat, and one step of Karcher's iteration
elsewhere: what is left of the distance to the Fréchet mean is a share |1 − h| of it, h the average second derivative of
half the squared distance. So the first step is taken 1/h times, with the h of records that fill the ball as usual: what
is left then is what h is off by. Later steps look from the point that was reached. Such a step sees h·e + noise,
where e is what is still missing, and goes a share g of what it sees, so that (1 − gh)e + g·noise is missing then; the g
that makes it least is the Kalman gain hP/(h²P + E²), P = E|e|², E the noise of this step. So the noise of earlier steps
is averaged with that of later ones rather than thrown away, and the last step gets most of the budget, not all of it
(docs/proofs/sums.md, section 5). What h, P and the bias are is worked out for records that a ball chosen in good faith
holds, from its radius alone (`_SPREAD`, `_PLACES`); the promise does not depend on them. P depends most on how far from
the centre the mean lies, where bias begins: the point that is looked from tells, so that gains are kept for each place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._validate import auto_or_integer, positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.privacy import Budget, Guarantee, compose, split
from dpmanifolds.sums.choose import Choice, calibrate, choose
from dpmanifolds.sums.mechanism import ExpectedError, Facts, Mechanism, mean_facts
from dpmanifolds.sums.wrapped import WrappedMechanism

MOST_STEPS = 4
# the root mean square distance of records to their mean, and where that mean lies, as shares of the radius
# (of the part of them that counts, where the curvature is negative: clipping to the ball takes the rest off)
_SPREAD, _PLACES = 0.4, (0.0, 0.25, 0.5, 0.75)
# how much each of these places counts: centres chosen in good faith are closer to the mean than to the edge
_WEIGHTS = (0.5, 0.3, 0.15, 0.05)
_SPREADS = {False: _SPREAD, True: 0.36}
# how far off h may be, as a share of its distance from 1; more where the curvature is negative
_UNSURE = {False: 0.1, True: 0.5}
# the same for the bias of the first step, which is 1/h times the whole one
_DOUBT = 0.6
_MOST_NOISE, _LARGEST = 0.8, 1e150
_NARROW = 0.5
# what a further step, and a third one, must gain
_TIE, _THIRD = 1.0025, 1.03
# each step's part of the budget over that of the step after it
_RATIOS = (0.02, 0.04, 0.07, 0.1, 0.13, 0.17, 0.22, 0.3, 0.45, 0.7, 1.0)


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
    predicted: float
    """Both of them, in the ball, on average over such places: what numbers of steps are compared by."""
    gains: tuple[tuple[float, ...], ...]
    """The share of each step that is taken, for each place of the mean (`_PLACES`)."""
    noises: tuple[float, ...]
    """The error from noise alone after each step."""
    choice: Choice | None = None
    """How the mechanism of a single step was chosen."""
    compared: str = ""
    """What other numbers of steps come to."""
    whole: bool = False
    """Whether the one step that there is is taken once, as the tangent mean that it is."""

    @property
    def reason(self) -> str:
        """Why these steps and mechanisms were taken."""
        plain = f"{len(self.mechanisms)} steps of {self.last.name}"
        return (plain if self.choice is None else self.choice.reason) + self.compared

    def gain(self, number: int, distance: float) -> float:
        """The share of a step that is taken from a point at this distance from the centre of the domain."""
        places = [place * self.last.facts.domain.radius for place in _PLACES]
        return float(np.interp(distance, places, self.gains[number]))

    def shrink(self, number: int, coordinates: np.ndarray) -> np.ndarray:
        """The best guess from coordinates at the centre with the noise that is left after a step: post-processing."""
        law = self.laws[number]
        if law.is_coordinatewise:
            return coordinates
        ratio = self.noises[number] / law.expected_error.mean
        return (law if ratio == 1 else replace(law, sigma=law.sigma * ratio)).shrink(coordinates)

    @property
    def laws(self) -> tuple[WrappedMechanism, ...]:
        """The mechanisms, each for a sum of integers."""
        return tuple(law for law in self.mechanisms if isinstance(law, WrappedMechanism))

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

    `steps=1` is the tangent mean at the centre; where "auto" takes one step, it is the first of those towards the
    Fréchet mean (`whole_step`). `facts` go to `mean_facts`.
    """
    steps = auto_or_integer("steps", steps)
    if domain.body is not None and steps not in ("auto", 1):
        raise ArgumentError(
            f"must be 'auto' or 1 in an ellipsoid, which is looked at from its centre; got {steps!r}.", argument="steps"
        )
    if isinstance(steps, str):
        counts = range(1, 2 if domain.manifold.is_flat or domain.body is not None else most + 1)
    else:
        counts = range(steps, steps + 1)
    n = positive_integer("n", n)
    whole = steps == 1
    return _best_plan(domain, n, budget, counts, whole, mechanism, numerics, tuple(sorted(facts.items())))


@lru_cache(maxsize=32)
def _best_plan(
    domain: Domain,
    n: int,
    budget: Budget,
    counts: range,
    whole: bool,
    mechanism: str,
    numerics: str,
    told: tuple[tuple[str, Any], ...],
) -> StepPlan:
    """Worked out once for the same public facts; domains are told apart by being the same object."""
    facts = mean_facts(domain, n, **dict(told))
    plans = [_planned(facts, budget, count, whole, mechanism, numerics) for count in counts]
    best = _fewest(plans)
    if len(plans) == 1:
        return best
    others = ", ".join(f"{len(plan.mechanisms)}: {plan.predicted / best.predicted:.3g}" for plan in plans)
    return replace(best, compared=f"; predicted error by the number of steps, the chosen as 1: {others}")


def _fewest(plans: Sequence[StepPlan]) -> StepPlan:
    """The fewest steps that are predicted to err least, but for a hair; more than two only for more than that."""
    least = min(plan.predicted for plan in plans)
    few = [plan for plan in plans[:2] if plan.predicted <= _THIRD * least] or plans
    bound = _TIE * min(plan.predicted for plan in few)
    return next(plan for plan in few if plan.predicted <= bound)


def is_wide(domain: Domain) -> bool:
    """Whether an embedded ball may be narrower than its radius: those of half the largest radius are hardly so."""
    return bool(domain.manifold.ambient_dim) and domain.radius > _NARROW * domain.manifold.max_radius


def average_hessian(domain: Domain, spread: float, distance: float = 0.0) -> float:
    """h: the mean of log_p x over n records moves h times as far as p, for records around a point at this distance.

    The second derivative of half the squared distance ρ is 1 along the geodesic, and b = √κρ·cot(√κρ) or its hyperbolic
    sister across it, at the average curvature κ. Records spread by s in all directions around a mean that p sees at
    distance e lie across the way to it for a share (1 − 1/d)·s²/ρ² of their ρ² = s² + e²/3, averaged over the way.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> round(average_hessian(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0), 0.5), 3)
    0.958
    """
    manifold = domain.manifold
    curvature = manifold.average_curvature
    rho = math.hypot(spread, distance / math.sqrt(3))
    angle = math.sqrt(abs(curvature)) * rho
    if angle < 1e-6:
        return 1.0
    bend = angle / math.tan(min(angle, 3.0)) if curvature > 0 else angle / math.tanh(angle)
    return 1 - (1 - 1 / manifold.dim) * (spread / rho) ** 2 * (1 - bend)


def damping(domain: Domain) -> float:
    """The most of a step that is taken when there are several: all, or less where whole ones overshoot.

    Where the curvature is negative the second derivatives of half the squared distance at ρ lie between 1 and L =
    √|κ|ρ·coth(√|κ|ρ). A share 2/(1 + L) of a step leaves at most (L − 1)/(L + 1) of any direction for records as far as
    ρ. Here ρ is the typical spread, and κ a quarter of the lowest curvature and three of the average one: at the lowest
    steps are too short for records that spread in all directions, and only records at opposite ends of a wide ball are
    then overshot, no farther than by one whole step.

    >>> from dpmanifolds import Ball, Hyperbolic
    >>> round(damping(Ball(Hyperbolic(2), Hyperbolic(2).origin, 3.0)), 3)
    0.82
    """
    manifold = domain.manifold
    curvature = 0.25 * manifold.curvature_bounds[0] + 0.75 * manifold.average_curvature
    reach = math.sqrt(max(-curvature, 0.0)) * _SPREAD * domain.radius
    return 1.0 if reach < 1e-6 else 2 / (1 + reach / math.tanh(reach))


def usual_spread(domain: Domain) -> float:
    """Of records that fill the ball as usual; one too wide for means to be unique is wider than its records need."""
    return _SPREADS[domain.manifold.is_hadamard] * min(domain.radius, domain.manifold.max_radius)


def whole_step(domain: Domain, count: int) -> float:
    """The share of the first of `count` steps that is taken: 1/h, or less to be safe.

    Later steps, which may begin far from the mean, where h is closer to 1, are never taken more than once. Less than 1
    where the curvature is negative, and then no more than `damping` where another step follows. In an ellipsoid, whose
    records are clipped in most directions, it is 1.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> round(whole_step(Ball(Sphere(10), np.eye(11)[0], 1.3), 1), 3)
    1.09
    """
    if domain.body is not None:
        return 1.0
    inverse = 1 / average_hessian(domain, usual_spread(domain))
    return inverse if count == 1 or inverse >= 1 else min(inverse, damping(domain))


def safe_share(domain: Domain) -> float:
    """1/L over all distances in the ball, at the lowest curvature: such a share of a step overshoots for no records.

    >>> from dpmanifolds import Ball, Hyperbolic
    >>> round(safe_share(Ball(Hyperbolic(2), Hyperbolic(2).origin, 3.0)), 3)
    0.167
    """
    reach = math.sqrt(max(-domain.manifold.curvature_bounds[0], 0.0)) * 2 * domain.radius
    return 1.0 if reach < 1e-6 else math.tanh(reach) / reach


class _Course(NamedTuple):
    """What a number of steps with these errors comes to."""

    gains: tuple[tuple[float, ...], ...]
    noises: tuple[float, ...]
    """After each step."""
    bias: float
    predicted: float


def _course(domain: Domain, errors: Sequence[float], *, once: bool = False) -> _Course:
    """Gains, and the error of the last point, for steps whose noise errs by `errors`; `once`: see `StepPlan.whole`.

    Worked out at several places of the mean, each with the gains that fit it best. Where negative curvature spreads
    what is seen from the centre, the noise of the first step counts for more than its size there.
    """
    radius, spread = domain.radius, usual_spread(domain)
    if not max(errors) < _LARGEST:
        raise ScaleOutOfRangeError(f"noise that errs by {max(errors):g} has no square in floats: rescale the data.")
    near = average_hessian(domain, spread)
    whole = 1.0 if once else whole_step(domain, len(errors))
    unsure = _UNSURE[domain.manifold.is_hadamard] * abs(1 - near)
    # no weights make more of independent noises than this
    least = 1 / math.hypot(*(1 / max(error, 1e-150) for error in errors)) / max(near, 1.0)
    least = min(least, _MOST_NOISE * radius)
    ways = []
    for place in (share * radius for share in _PLACES):
        bias = max(abs(1 - whole * average_hessian(domain, spread, place)), _DOUBT * abs(1 - near)) * place
        noises, gains = [whole * errors[0]], [whole]
        # what is shrunk into the ball errs by no more than about its radius
        held = min(_stretch(domain, place) * noises[0], _MOST_NOISE * radius)
        for error in errors[1:]:
            power = held * held + bias * bias
            gain = min(near * power / max(near * near * power + error * error, 1e-300), whole, 1.0)
            left = abs(1 - gain * average_hessian(domain, spread, math.hypot(held, bias))) + unsure
            carried = (abs(1 - gain * near) + unsure) * min(noises[-1], _MOST_NOISE * radius)
            noises.append(math.hypot(carried, gain * error))
            held, bias = math.hypot(left * held, gain * error), left * bias
            gains.append(gain)
        ways.append((gains, noises, bias, math.hypot(_shrunk(domain, max(held, least), place), bias)))
    return _Course(
        tuple(zip(*(way[0] for way in ways), strict=True)),
        tuple(map(float, _average(np.square([way[1] for way in ways]).T) ** 0.5)),
        float(_average(np.square([way[2] for way in ways])) ** 0.5),
        float(_average(np.array([way[3] for way in ways]))),
    )


def _average(values: np.ndarray) -> Any:
    """Over the places."""
    return values @ np.array(_WEIGHTS)


def average_over_places(domain: Domain, noise: float, bias: float) -> float:
    """What noise comes to after shrinking, with a bias, on average over the usual places of the mean."""
    held = [_shrunk(domain, min(noise, _MOST_NOISE * domain.radius), place * domain.radius) for place in _PLACES]
    return float(_average(np.hypot(held, bias)))


def _shrunk(domain: Domain, noise: float, place: float) -> float:
    """About what is left of the noise after shrinking towards the public centre, for a mean at this distance from it.

    1/√d of it at the centre, and nowhere more than the way there and a tenth of the radius.
    """
    if (whole := math.hypot(place, noise)) == 0:
        return noise
    kept = math.hypot(place / whole, noise / whole / math.sqrt(domain.manifold.dim))
    return min(noise * kept, 0.8 * place + 0.1 * domain.radius)


def _stretch(domain: Domain, distance: float) -> float:
    """How much exp at the centre stretches small vectors at this distance, on average over directions."""
    curvature, dim = domain.manifold.average_curvature, domain.manifold.dim
    reach = math.sqrt(max(-curvature, 0.0)) * distance
    return 1.0 if reach < 1e-6 else (1 + (dim - 1) * min(math.sinh(min(reach, 30.0)) / reach, 1e3)) / dim


def _planned(facts: Facts, budget: Budget, count: int, once: bool, mechanism: str, numerics: str) -> StepPlan:
    domain = facts.domain
    if count == 1:
        chosen = choose(facts, budget, mechanism=mechanism, numerics=numerics)
        law = chosen.mechanism
        return replace(_assembled((law,), (budget,), law.guarantee, once), choice=chosen)
    found, refusal = [], NotAvailableError(f"no mechanism keeps {count} parts of {budget!r}.")
    for number, (whole,) in enumerate(split(budget, [1.0])):
        try:
            best = choose(facts, whole, mechanism=mechanism, numerics=numerics).mechanism
            shares = _best_shares(domain, best.expected_error.mean, count, whole.bounded_loss)
            parts = split(budget, shares)[number]
            laws = tuple(calibrate(best.name, facts, part, best.numerics) for part in parts)
            found.append((laws, parts))
        except NotAvailableError as reason:
            refusal = reason
    if not found:
        raise refusal
    plans = [_assembled(laws, parts, compose(*(law.guarantee for law in laws)), False) for laws, parts in found]
    return min(plans, key=lambda plan: plan.predicted)


def _best_shares(domain: Domain, error: float, count: int, pure: bool) -> tuple[float, ...]:
    """Shares of the budget in geometric progression: a part w of it has noise of 1/w for pure ε, else of 1/√w."""
    ways = []
    for ratio in _RATIOS:
        weights = [ratio ** (count - 1 - number) for number in range(count)]
        shares = tuple(weight / math.fsum(weights) for weight in weights)
        errors = [error / (share if pure else math.sqrt(share)) for share in shares]
        ways.append((_course(domain, errors).predicted, shares))
    return min(ways)[1]


def _assembled(laws: tuple[Mechanism, ...], parts: tuple[Budget, ...], promise: Guarantee, once: bool) -> StepPlan:
    """Calibrated steps with what they come to."""
    course = _course(laws[-1].facts.domain, [law.expected_error.mean for law in laws], once=once)
    error = _scaled(laws[-1].expected_error, course.noises[-1])
    return StepPlan(laws, parts, promise, error, course.bias, course.predicted, *course[:2], whole=once)


def _scaled(error: ExpectedError, mean: float) -> ExpectedError:
    """The same law with another mean."""
    ratio = mean / error.mean
    if ratio == 1:
        return error
    return replace(error, mean=mean, radius_90=error.radius_90 * ratio, mean_at_edge=error.mean_at_edge * ratio)


def move_plan(plan: StepPlan, domain: Domain) -> StepPlan:
    """The same steps, with the same parts of the budget and so the same promise, in another ball."""
    return _recalibrated(plan, domain, None)


def _recalibrated(plan: StepPlan, domain: Domain, n: int | None) -> StepPlan:
    laws = tuple(_moved(law, part, domain, n) for law, part in zip(plan.mechanisms, plan.parts, strict=True))
    moved = _assembled(laws, plan.parts, plan.guarantee, plan.whole)
    return replace(moved, choice=plan.choice, compared=plan.compared)


def _moved(law: Mechanism, part: Budget, domain: Domain, n: int | None) -> Mechanism:
    shape = law.facts.shape
    assert shape is not None
    facts = mean_facts(
        domain, n or shape.count, adjacency=shape.adjacency, unit=law.facts.unit, labelled=shape.labelled
    )
    return type(law).calibrate(facts, part, law.numerics)
