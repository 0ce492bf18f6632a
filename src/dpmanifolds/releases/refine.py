"""A radius that is paid for: public balls that are far too large are shrunk before the mean is released.

A round releases a histogram of the distances to a public point, and takes the smallest of its edges within which the
wanted share of the records lies beyond doubt. With more than one round a rough mean comes between: the next histogram
counts distances to that. The last and largest share of the budget goes to the mean in the ball that is left. The
promise is the composition of all stages (docs/proofs/sums.md, section 6).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.mechanisms import ExpectedError, host
from dpmanifolds.privacy import Budget, compose, split
from dpmanifolds.releases.release import Release
from dpmanifolds.sums.counts import PERSON_UNIT, CountsNoise, DistanceBins, counts_noise
from dpmanifolds.sums.records import RecordSums
from dpmanifolds.sums.steps import move_plan

if TYPE_CHECKING:
    from dpmanifolds.releases.tangent import TangentMean

__all__ = ["refined_mean"]

_HISTOGRAM_SHARE, _ROUGH_SHARE = 0.05, 0.15
_EDGES = 24
_SURE = 3.0


def refined_mean(request: TangentMean, records: RecordSums, rounds: int) -> Release:
    """The mean in a ball that `rounds` rounds have shrunk; called by `private_mean`."""
    domain = request.domain
    if not isinstance(domain, Ball):
        raise ArgumentError(f"refine shrinks a Ball; got {type(domain).__name__}. Use refine=0.")
    records.source.refuse_single_use()
    n = request.public_number(records)
    assert n is not None
    unit = 1 if records.persons is None else PERSON_UNIT
    parts = _best_way(request, n, rounds)
    noise = counts_noise(_EDGES, parts[0], request.unit, unit=unit, adjacency=request.adjacency)
    rough = replace(request, steps=1)
    plans = [(request if part is parts[-1] else rough).plan(domain, n, part) for part in parts[1:]]
    promise = compose(noise.guarantee.k_fold(rounds), *(plan.guarantee for plan in plans))
    base = host(domain.center)
    request.check(records.total(request.look(domain, base, plans[0].mechanisms[0])))
    request.spend("refined mean", promise, n, rounds=rounds)
    stages: list[Release] = []
    ball: Ball = domain
    for plan in plans:
        floor = 4 * stages[-1].expected_error.mean if stages and stages[-1].expected_error else 0.0
        ball, counted = _shrunk(request, records, ball, base, noise, n, floor)
        stages.append(counted)
        # what a mechanism promises is a function of its part of the budget alone, whatever the ball is
        made, base = request.go(records, ball, move_plan(plan, ball), base, None)
        stages += made
    last = stages.pop()
    return replace(last, guarantee=promise, stages=tuple(stages))


def _best_way(request: TangentMean, n: int, rounds: int) -> tuple[Budget, ...]:
    """A part for each histogram, for each rough mean, and for the last: the cut whose last part errs least."""
    rough = [_ROUGH_SHARE / (rounds - 1)] * (rounds - 1) if rounds > 1 else []
    shares = [_HISTOGRAM_SHARE / rounds] * rounds + rough
    ways = split(request.budget, [*shares, 1 - math.fsum(shares)])
    errors = {}
    refusal = NotAvailableError(f"no cut of {request.budget!r} leaves a part for every stage.")
    for way in ways:
        try:
            errors[way] = request.plan(request.domain, n, way[-1]).expected_error.mean
        except NotAvailableError as reason:
            refusal = reason
    if not errors:
        raise refusal
    best = min(errors, key=lambda way: errors[way])
    return (best[0], *best[rounds:])


def _shrunk(
    request: TangentMean, records: RecordSums, ball: Ball, base: Array, noise: CountsNoise, n: int, floor: float
) -> tuple[Ball, Release]:
    """The ball around the public point within which the wanted share lies, and the histogram behind it.

    The share is 1 − min(0.1, 5√d/n). A cumulative count over j bins has noise of deviation σ√j; three of these are
    taken off, so that an edge is too small with probability 0.00135 each. Never below the floor, four times the noise
    with which the point itself was released. All of this is post-processing of the histogram.
    """
    manifold = ball.manifold
    reach = ball.radius + float(manifold.dist(host(ball.center), base))
    edges = reach * 2.0 ** (-np.arange(_EDGES)[::-1] / 2)
    bins = DistanceBins(
        manifold,
        base,
        host(request.domain.center) if request.on_invalid == "center" else None,
        edges=edges,
        unit=noise.unit,
    )
    counts = noise.draw(records.total(bins).integers, request.account.rng)
    count = float(n) if request.guess is None else max(1.0, float(np.sum(counts)))
    wanted = count * (1 - min(0.1, 5 * math.sqrt(manifold.dim) / n))
    sure = np.cumsum(counts) - _SURE * noise.deviation * np.sqrt(np.arange(1, _EDGES + 1))
    within = [float(edge) for edge, held in zip(edges, sure, strict=True) if held >= wanted]
    radius = max(min(within, default=ball.radius), floor)
    smaller = radius < ball.radius and radius < manifold.injectivity_radius
    counted = _counts_release(request, noise, counts, n)
    return (Ball(manifold, base, radius) if smaller else ball), counted


def _counts_release(request: TangentMean, noise: CountsNoise, counts: np.ndarray, n: int) -> Release:
    from dpmanifolds import __version__

    cells, spread = len(counts), noise.deviation * math.sqrt(len(counts))
    domain: Domain = Ball(Euclidean(cells), np.full(cells, n / cells), float(n))
    return Release(
        statistic="counts",
        value=counts,
        guarantee=noise.guarantee,
        budget=noise.part,
        mechanism="wrapped-gaussian" if noise.is_gaussian else "wrapped-laplace",
        theorem="counts are points of a simplex, and the mechanism on integers (docs/proofs/sums.md)",
        numerics="rounded" if noise.is_gaussian else "lattice",
        sensitivity=noise.sensitivity,
        scale=float(noise.law.scale) / noise.unit,
        step=1.0 / noise.unit,
        n=None if request.guess is not None else n,
        domain=domain,
        expected_error=ExpectedError(spread, 2 * spread, spread),
        reason="the smaller standard deviation of a count",
        reproducible=request.account.reproducible,
        version=__version__,
    )
