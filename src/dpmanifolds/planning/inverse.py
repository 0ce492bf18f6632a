"""The smallest budget, the fewest records or the largest ball that bring the expected error down to a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scipy import optimize

from dpmanifolds._validate import choice, positive_integer, positive_number
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, DPManifoldsError, NotAvailableError
from dpmanifolds.privacy import Budget, PureDP
from dpmanifolds.privacy.budget import checked_kind
from dpmanifolds.sums import TANGENT, choose, mean_facts
from dpmanifolds.sums.steps import plan_steps

_MEASURES = ("mean", "radius_90", "mean_at_edge")
_LARGEST_BUDGET, _SMALLEST_BUDGET = 700.0, 2.0**-40
_MOST_RECORDS = 2**52
_SMALLEST_SHRINKAGE = 2.0**-80
_LARGEST_GROWTH = 2.0**40
_STEP = math.log(4)
_WIDTH = 1e-9
_FAR = 50.0


def budget_for(
    domain: Domain,
    n: int,
    error: float,
    kind: type[Budget] = PureDP,
    *,
    delta: float | None = None,
    alpha: float | None = None,
    measure: str = "mean",
    mechanism: str = "auto",
    numerics: str = "safe",
    steps: int | str = 1,
    dtype: Any = "float64",
) -> Budget:
    """The smallest budget of this kind with which the mean of n records errs at most `error`, as expected.

    `delta` for `ApproxDP` and `alpha` for `RenyiDP` are kept, ε (μ, ρ) is sought, to nine digits. `measure` is a field
    of `ExpectedError`: the mean at the centre, the mean at the worst point of the domain, or what 90 % of releases
    keep.

    >>> import numpy as np
    >>> from dpmanifolds import ApproxDP, Ball, Euclidean
    >>> budget = budget_for(Ball(Euclidean(3), np.zeros(3), 1.0), 10_000, 0.001, ApproxDP, delta=1e-6)
    >>> round(budget.epsilon, 4), budget.delta
    (0.5986, 1e-06)
    """
    target = _target(domain, error)
    make = _maker(kind, delta, alpha)
    n, facts = positive_integer("n", n), mean_facts(domain, n, dtype)
    error_at = _error(mechanism, numerics, measure, steps)
    # in u = −log of the budget the error grows
    found = _largest_within(
        lambda u: error_at(facts, make(math.exp(-u))),
        target,
        0.0,
        -math.log(_LARGEST_BUDGET),
        -math.log(_SMALLEST_BUDGET),
    )
    if found is None:
        raise NotAvailableError(
            f"no {kind.__name__} budget up to {_LARGEST_BUDGET:g} brings the expected error down to {target:g} with "
            f"n = {n} in {domain!r}. Use more records, a smaller domain or a larger error."
        )
    return make(min(math.exp(-found), _LARGEST_BUDGET))


def records_for(
    domain: Domain,
    budget: Budget,
    error: float,
    *,
    measure: str = "mean",
    mechanism: str = "auto",
    numerics: str = "safe",
    steps: int | str = 1,
    dtype: Any = "float64",
) -> int:
    """The fewest records whose mean within the budget errs at most `error`, as expected.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Euclidean
    >>> records_for(Ball(Euclidean(1), np.zeros(1), 1.0), PureDP(0.5), 0.01)
    400
    """
    target = _target(domain, error)
    measured = _error(mechanism, numerics, measure, steps)

    def error_at(n: int) -> float:
        return measured(mean_facts(domain, n, dtype), budget)

    low, high = 0, 1
    while error_at(high) > target:
        if high > _MOST_RECORDS:
            raise NotAvailableError(
                f"no number of records brings the expected error within {budget!r} down to {target:g} in {domain!r}. "
                "Allow a larger error or budget."
            )
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if error_at(middle) <= target else (middle, high)
    return high


def radius_for(
    domain: Ball,
    n: int,
    budget: Budget,
    error: float,
    *,
    measure: str = "mean",
    mechanism: str = "auto",
    numerics: str = "safe",
    steps: int | str = 1,
    dtype: Any = "float64",
) -> float:
    """The largest radius, around the same centre, at which the mean of n records errs at most `error`, as expected.

    Never beyond the injectivity radius, where balls end.

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.planning import radius_for
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4)
    >>> round(radius_for(ball, n=200, budget=dpm.PureDP(1.0), error=0.01), 4)
    0.5
    """
    if not isinstance(domain, Ball):
        raise ArgumentError(f"domain must be a Ball, whose radius is sought; got {type(domain).__name__}.")
    target = positive_number("error", error)
    n = positive_integer("n", n)
    measured = _error(mechanism, numerics, measure, steps)
    reasons: list[Exception] = []

    def error_at(u: float) -> float:
        try:
            return measured(mean_facts(replace(domain, radius=math.exp(u)), n, dtype), budget)
        except (DPManifoldsError, OverflowError) as reason:
            reasons.append(reason)
            return math.inf

    limit = min(domain.manifold.injectivity_radius * (1 - 1e-9), domain.radius * _LARGEST_GROWTH)
    start = math.log(domain.radius)
    found = _largest_within(
        error_at, target, min(start, math.log(limit)), start + math.log(_SMALLEST_SHRINKAGE), math.log(limit)
    )
    if found is None:
        why = f" {reasons[-1]}" if reasons else ""
        raise NotAvailableError(
            f"no ball around this centre is so small that the mean of n = {n} records errs at most {target:g} within "
            f"{budget!r}.{why}"
        )
    return min(math.exp(found), limit)


def _largest_within(
    error_at: Callable[[float], float], target: float, start: float, lowest: float, highest: float
) -> float | None:
    """The largest u in [lowest, highest] with error_at(u) ≤ target, for an error that grows with u; None if none is.

    Errors are nearly powers of e^u: a few secant steps in logarithms find the place.
    """

    def excess(u: float) -> float:
        error = error_at(u)
        return -_FAR if error <= 0 else max(-_FAR, min(_FAR, math.log(error / target)))

    inside = outside = None
    u = start
    while inside is None or outside is None:
        over = excess(u)
        if over <= 0:
            inside = u
            if u >= highest:
                return highest
            u = min(highest, u + max(_STEP, -over) if outside is None else outside)
        else:
            outside = u
            if u <= lowest:
                return None
            u = max(lowest, u - max(_STEP, over) if inside is None else inside)
    root = float(optimize.brentq(excess, inside, outside, xtol=_WIDTH, rtol=1e-12))
    step = _WIDTH
    while excess(root) > 0:
        root = max(inside, root - step)
        step *= 2
    return root


def _target(domain: Domain, error: float) -> float:
    """An error that a release can be asked for: the public centre alone is within the radius of every statistic."""
    target = positive_number("error", error)
    if isinstance(domain, Domain) and target >= domain.radius:
        raise ArgumentError(
            f"must be below the radius {domain.radius:.4g} of the domain; got {target:g}. The public centre "
            "alone is that close to every mean: no release is needed.",
            argument="error",
        )
    return target


def _error(mechanism: str, numerics: str, measure: str, steps: int | str) -> Callable[[Any, Budget], float]:
    choice("measure", measure, _MEASURES)
    # the lattice is never better than rounded noise by more than a hair, and slower to calibrate
    kind = "rounded" if numerics == "safe" else numerics

    def error_at(facts: Any, budget: Budget) -> float:
        if mechanism in TANGENT and kind != "idealized":
            found = plan_steps(facts.domain, facts.shape.count, budget, steps=steps, mechanism=mechanism, numerics=kind)
            return float(getattr(found.expected_error, measure))
        chosen = choose(facts, budget, mechanism=mechanism, numerics=kind).mechanism
        return float(getattr(chosen.expected_error, measure))

    return error_at


def _maker(kind: type[Budget], delta: float | None, alpha: float | None) -> Callable[[float], Budget]:
    """A budget of this kind from the number that is sought."""
    kept = checked_kind("kind", kind).choose_kept("a budget of kind", delta=delta, alpha=alpha)
    return lambda number: kind(**{kind.spends: number}, **kept)
