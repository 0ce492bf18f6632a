"""The private Fréchet variance: squared distances to a mean that was released before."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds._points import host
from dpmanifolds._validate import choice
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.privacy import Budget, compose, split
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.releases.entry import ON_INVALID, checked_guess, checked_unit, open_account
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.releases.tangent import TANGENT, TangentMean
from dpmanifolds.sums import Draw, Mechanism, calibrate, choose, mean_facts
from dpmanifolds.sums.contribution import DistanceContribution
from dpmanifolds.sums.records import read_records
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.wrapped import WrappedMechanism

__all__ = ["private_variance"]

_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5)
_SAFE = ("safe", "rounded", "lattice")


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
    if not isinstance(domain, Ball):
        raise ArgumentError(f"domain must be a Ball for the variance; got {type(domain).__name__}.")
    checked_budget(budget)
    choice("numerics", numerics, _SAFE)
    choice("mechanism", mechanism, TANGENT)
    choice("on_invalid", on_invalid, ON_INVALID)
    guess = checked_guess(adjacency, n_guess)
    unit = checked_unit(unit, group_by)
    account = open_account(ledger, dataset, rng)
    request = TangentMean(domain, budget, mechanism, numerics, "auto", adjacency, guess, on_invalid, unit, account)
    records = read_records(domain.manifold, points, group_by=group_by, guess=guess)
    records.source.refuse_single_use()
    n = request.public_number(records)
    assert n is not None
    mean, part, law = _cut(request, n)
    guarantee = compose(mean.guarantee, law.guarantee)
    # the farthest that the mean can be: what leaves the range of floating point shows before anything is spent
    _facts(request, 2 * domain.radius, n)
    first = records.total(request.look(domain, host(domain.center), mean.mechanisms[0]))
    request.check(first)
    request.spend("variance", guarantee, n, mechanism=law.name, numerics=law.numerics)
    stages, base = request.go(records, domain, mean, host(domain.center), first)
    reach = domain.radius + float(domain.manifold.dist(host(domain.center), base))
    law = calibrate(law.name, _facts(request, reach, n), part, law.numerics)
    assert isinstance(law, WrappedMechanism)
    assert law.exponent is not None
    substitute = host(domain.center) if on_invalid == "center" else None
    total = records.total(DistanceContribution(domain.manifold, base, substitute, radius=reach, exponent=law.exponent))
    drawn = law.noisy_mean(total.integers, total.rows, account.rng) + reach * reach / 2
    made = release_of(
        law,
        Draw(float(np.clip(drawn[0], 0.0, domain.radius**2)), drawn),
        statistic="variance",
        budget=budget,
        n=None if guess is not None else n,
        reason="smallest expected error from public facts, of the mean and of the squares together",
        reproducible=account.reproducible,
        domain=domain,
    )
    return replace(made, guarantee=guarantee, stages=stages)


def _facts(request: TangentMean, reach: float, n: int) -> Any:
    """ρ² in [0, b²] is b²/2 and a number in [−b²/2, b²/2]."""
    half = reach * reach / 2
    interval = Ball(Euclidean(1), np.array([half]), half)
    return mean_facts(interval, n, adjacency=request.adjacency, unit=request.unit)


def _cut(request: TangentMean, n: int) -> tuple[StepPlan, Budget, Mechanism]:
    """The plan of the mean, and the part of the budget and the mechanism of the squares, that err least together."""
    found = []
    refusal = NotAvailableError(f"no cut of {request.budget!r} leaves a part for both the mean and the squares.")
    for share in _SHARES:
        for first, second in split(request.budget, [share, 1 - share]):
            try:
                mean = request.plan(request.domain, n, first)
                law = choose(
                    _facts(request, request.domain.radius, n),
                    second,
                    mechanism=request.mechanism,
                    numerics=request.numerics,
                ).mechanism
            except NotAvailableError as reason:
                refusal = reason
                continue
            excess = math.hypot(mean.expected_error.mean, mean.bias) ** 2
            found.append((math.hypot(law.expected_error.mean, excess), (mean, second, law)))
    if not found:
        raise refusal
    return min(found, key=lambda way: way[0])[1]
