"""A radius that is paid for: public balls that are far too large are shrunk before the mean is released.

A round releases a histogram of the distances to a public point, and takes the edge at which the noise of the mean to
come and what clipping there would move it by are least together. With more than one round a rough mean comes between:
the next histogram counts distances to that. The last and largest share of the budget goes to the mean in the ball that
is left. The promise is the composition of all stages (docs/proofs/sums.md, section 6).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.privacy import Budget, compose
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, warn_of_noise
from dpmanifolds.sums import ExpectedError
from dpmanifolds.sums.counts import PERSON_UNIT, CountsNoise, DistanceBins, counts_noise
from dpmanifolds.sums.shrink_spectrum import fit_total
from dpmanifolds.sums.steps import move_plan
from dpmanifolds.sums.total import RecordSums

__all__ = ["refined_mean", "release_counts"]

_HISTOGRAM_SHARE, _ROUGH_SHARE = 0.05, 0.15
_EDGES = 24


def refined_mean(request: Request, records: RecordSums, rounds: int) -> Release:
    """The mean in a ball that `rounds` rounds have shrunk; called by `private_mean`."""
    domain = request.domain
    if not isinstance(domain, Ball):
        raise ArgumentError(f"refine shrinks a Ball; got {type(domain).__name__}. Use refine=0.")
    n = request.guess or records.count
    unit = 1 if records.persons is None else PERSON_UNIT
    parts = _best_parts(request, n, rounds)
    noise = counts_noise(_EDGES, parts[0], request.unit, unit=unit, adjacency=request.adjacency)
    rough = replace(request, steps=1)
    plans = [(request if part is parts[-1] else rough).plan(n, part) for part in parts[1:]]
    promise = compose(noise.guarantee.k_fold(rounds), *(plan.guarantee for plan in plans))
    request.walk().first_look(records, plans[0])
    # noise and ball shrink together
    warn_of_noise(domain, plans[-1].expected_error)
    request.spend("refined mean", promise, n, rounds=rounds, domain=domain)
    base, stages = host(domain.center), list[Release]()
    moved = floor = 0.0
    for plan in plans:
        # each ball is chosen for the noise of its own mean, from the whole of the public one
        ball, moved, counted = _shrunk(request, records, base, noise, n, floor, plan.expected_error.mean)
        # what a mechanism promises is a function of its part of the budget alone, whatever the ball is
        settled, walk = move_plan(plan, ball), request.walk(ball)
        taken = walk.take(records, settled, base)
        stages += [counted, *request.release_steps(walk, settled, taken)]
        base = taken[-1].drawn.point
        floor = 4 * math.hypot(settled.expected_error.mean, moved)
    last = stages.pop()
    assert last.expected_error is not None
    error = _with_clipping(last.expected_error, moved)
    return replace(last, guarantee=promise, expected_error=error, stages=tuple(stages))


def _with_clipping(error: ExpectedError, moved: float) -> ExpectedError:
    """The noise's error and what clipping may have moved the mean by, together."""
    factor = math.hypot(1.0, moved / error.mean)
    return replace(
        error, mean=factor * error.mean, radius_90=factor * error.radius_90, mean_at_edge=factor * error.mean_at_edge
    )


def _best_parts(request: Request, n: int, rounds: int) -> tuple[Budget, ...]:
    """A part for each histogram, for each rough mean, and for the last: the cut whose last part errs least."""
    rough = [_ROUGH_SHARE / (rounds - 1)] * (rounds - 1) if rounds > 1 else []
    shares = [_HISTOGRAM_SHARE] * rounds + rough

    def plan(*way: Budget) -> tuple[tuple[Budget, ...], float]:
        return (way[0], *way[rounds:]), request.plan(n, way[-1]).expected_error.mean

    return best_cut(request.budget, [[*shares, 1 - math.fsum(shares)]], plan, lambda found: found[1])[0]


def _shrunk(
    request: Request,
    records: RecordSums,
    base: Array,
    noise: CountsNoise,
    n: int,
    floor: float,
    error: float,
) -> tuple[Ball, float, Release]:
    """The ball around the public point that suits the mean best, what clipping to it moves, and the histogram behind.

    All of this is post-processing of the histogram, whose counts are first projected onto those that are possible: none
    below 0, and n together. Edges e go down from the largest distance by factors of √2. At edge e the noise of the mean
    errs by `error`·e/r, r the radius of the public ball, and clipping moves it by at most Σ count·(middle of the bin −
    e)/n over the bins beyond: the edge with the least √(noise² + moved²) is taken. Never below the floor, four times
    the error with which the point itself was released.
    """
    ball = request.domain
    assert isinstance(ball, Ball)
    manifold = ball.manifold
    reach = ball.radius + float(manifold.dist(host(ball.center), base))
    edges = reach * 2.0 ** (-np.arange(_EDGES)[::-1] / 2)
    bins = DistanceBins(
        manifold,
        base,
        request.substitute,
        edges=edges,
        unit=noise.unit,
    )
    counts = noise.draw(records.total(bins).integers, request.account.rng)
    counted = release_counts(request, noise, counts, n)
    total = float(n) if request.guess is None else max(1.0, float(np.sum(counts)))
    radius, moved = best_radius(counts, edges, total, error / ball.radius, floor)
    if radius < ball.radius and radius < manifold.injectivity_radius:
        return Ball(manifold, base, radius), moved, counted
    return ball, 0.0, counted


def best_radius(
    counts: np.ndarray, edges: np.ndarray, total: float, error: float, floor: float = 0.0
) -> tuple[float, float]:
    """Where noise and clipping cost least together, and what clipping moves the mean by at most; see `_shrunk`.

    >>> best_radius(np.array([2.0, 98.0, 1.0, -3.0]), np.array([1.0, 2.0, 4.0, 8.0]), 100.0, error=0.1)
    (2.0, 0.005522847498307936)
    """
    likely = fit_total(counts, total)
    middles = np.sqrt(edges[1:] * edges[:-1])
    found = []
    for number, edge in enumerate(edges.tolist()):
        radius = max(edge, floor)
        moved = float(np.sum(likely[number + 1 :] * np.maximum(middles[number:] - radius, 0.0))) / total
        found.append((math.hypot(error * radius, moved), radius, moved))
    return min(found)[1:]


def release_counts(request: Request, noise: CountsNoise, counts: np.ndarray, n: int) -> Release:
    """Noisy counts, with everything that is promised about them."""
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
        n=request.public_count(n),
        domain=domain,
        expected_error=ExpectedError(spread, 2 * spread, spread),
        reason="the smaller standard deviation of a count",
        reproducible=request.account.reproducible,
    )
