"""The private Fréchet variance: squared distances to a mean that was released before."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from dpmanifolds.domains import Ball
from dpmanifolds.privacy import Budget, compose
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, check_request, domain_first
from dpmanifolds.sums.contribution import DistanceContribution
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import RecordSums
from dpmanifolds.sums.wrapped import WrappedMechanism

_SHARES = [[share, 1 - share] for share in (0.05, 0.1, 0.2, 0.35, 0.5)]


@domain_first
def private_variance(
    points: Any,
    domain: Ball,
    budget: Budget,
    *,
    mechanism: str = "auto",
    numerics: str = "safe",
    group_by: Any = None,
    adjacency: str = "replace-one",
    n_guess: int | None = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """(1/n)Σρ²(p, x_i) of records in a public ball, p a private mean that part of the budget pays for; a number.

    It exceeds the Fréchet variance min_x (1/n)Σρ²(x, x_i) by about the square of p's own error, which is of second
    order; public facts decide how much of the budget p gets. Distances count up to b = r + ρ(centre, p), so that one
    record moves the sum of their squares by at most b². The release is clipped to [0, r²], where the variance lies, and
    holds that of p among its `stages`. Arguments as in `private_mean`: `points` in every form that can be read more
    than once, block by block.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> release = dpm.private_variance(dpm.SPD(2).random_point(500, rng=0), ball, dpm.PureDP(1.0))
    >>> 0.0 <= release.value <= 4.0
    True
    """
    request = check_request(
        domain,
        budget,
        mechanism=mechanism,
        numerics=numerics,
        ball_for="the variance",
        group_by=group_by,
        adjacency=adjacency,
        n_guess=n_guess,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    return release_variance(request, request.read(points, group_by))


def release_variance(request: Request, records: RecordSums) -> Release:
    """Plan, look, charge, draw."""
    domain, n = request.domain, request.count_of(records)
    plan, part, law = best_cut(request.budget, _SHARES, partial(_plan, request, n), _error)
    promise = compose(plan.guarantee, law.guarantee)
    # the farthest that the mean can be: what leaves the range of floating point shows before anything is spent
    request.number_facts(_half_square(2 * domain.radius), n)
    walk = request.walk()
    first = walk.first_look(records, plan)
    request.spend("variance", promise, n, mechanism=law.name, numerics=law.numerics, domain=domain)
    stages = walk.take(records, plan, first=first)
    base = stages[-1].drawn.point
    reach = domain.radius + float(domain.manifold.dist(walk.center, base))
    half = _half_square(reach)
    law = type(law).calibrate(request.number_facts(half, n), part, law.numerics)
    assert law.exponent is not None
    rule = DistanceContribution(domain.manifold, base, request.substitute, radius=reach, exponent=law.exponent)
    total = records.total(rule)
    made = request.release(
        law,
        request.draw_number(law, total, half, most=domain.radius**2),
        statistic="variance",
        n=request.public_count(n),
        reason="smallest expected error from public facts, of the mean and of the squares together",
        domain=domain,
    )
    return replace(made, guarantee=promise, stages=request.release_steps(walk, plan, stages))


def _half_square(reach: float) -> float:
    """ρ² in [0, b²] is b²/2 and a number in [−b²/2, b²/2]."""
    return reach * reach / 2


def _plan(request: Request, n: int, first: Budget, second: Budget) -> tuple[StepPlan, Budget, WrappedMechanism]:
    """The plan of the mean, and the part of the budget and the mechanism of the squares."""
    facts = request.number_facts(_half_square(request.domain.radius), n)
    return request.plan(n, first), second, request.choose(facts, second)


def _error(way: tuple[StepPlan, Budget, WrappedMechanism]) -> float:
    """That of the squares, and by how much those around the released mean exceed those around the mean."""
    mean, _, law = way
    return math.hypot(law.expected_error.mean, math.hypot(mean.expected_error.mean, mean.bias) ** 2)
