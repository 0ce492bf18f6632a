"""A radius that is paid for: public balls that are far too large are shrunk before the mean is released.

A round releases a histogram of the distances to a public point, and takes the edge at which the noise of the mean to
come and what clipping there would move it by are least together. With more than one round a rough mean comes between:
the next histogram counts distances to that. The last and largest share of the budget goes to the mean in the ball that
is left. The promise is the composition of all stages (docs/proofs/sums.md, section 6).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from dpmanifolds._arrays import Array
from dpmanifolds._points import host, leaves
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.releases.refine_plan import CLEAR, EDGES, FEW_EDGES, NEARLY, plan_rounds, unit_of
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, warn_of_noise
from dpmanifolds.sums import ExpectedError, Mechanism
from dpmanifolds.sums.counts import CountsNoise, DistanceBins
from dpmanifolds.sums.shrink_spectrum import fit_total
from dpmanifolds.sums.steps import move_plan
from dpmanifolds.sums.total import RecordSums

# how often a bound on what clipping moved may fail
_MISS = 0.05
# of a deviation of counts, and one in so many records: a tail that is not more than both is noise
_UNSEEN, _FEW_UNSEEN = 0.5, 200
# how much less a smaller ball must promise to err than the public one
_GAIN = 1.1


def refined_mean(request: Request, records: RecordSums, rounds: int) -> Release:
    """The mean in a ball that `rounds` rounds have shrunk; called by `private_mean`."""
    domain = request.domain
    if not isinstance(domain, Ball):
        raise ArgumentError(f"refine shrinks a Ball; got {type(domain).__name__}. Use refine=0.")
    n = request.count_of(records)
    planned = plan_rounds(request, n, rounds, unit_of(records))
    noise, base = planned.noise, host(domain.center)
    # what a centre too close to the edge of the manifold makes fail, fails before anything is spent
    request.walk().look(base, planned.plans[0].laws[0])
    bins = distance_bins(request, base, noise.unit, planned.look.edges)
    looked = request.refuse_malformed(records.total(bins))
    # noise and ball shrink together
    warn_of_noise(domain, planned.plans[-1].expected_error)
    request.spend("refined mean", planned.promise, n, rounds=rounds, domain=domain)
    stages, floor, moved = list[Release](), 0.0, Moved(0.0, 0.0)
    for number, plan in enumerate(planned.plans):
        if number:
            bins = distance_bins(request, base, noise.unit, planned.look.edges)
            looked = records.total(bins)
        counts = noise.draw(looked.integers, request.account.rng)
        # each ball is chosen for the noise of its own mean, from the whole of the public one
        ball, moved = shrink_ball(request, bins, counts, noise, n, floor, plan.expected_error.mean)
        # what a mechanism promises is a function of its part of the budget alone, whatever the ball is
        settled, walk = move_plan(plan, ball), request.walk(ball)
        taken = walk.take(records, settled, base)
        stages += [release_counts(request, noise, counts, n), *request.release_steps(walk, settled, taken)]
        base = taken[-1].drawn.point
        floor = 4 * math.hypot(settled.expected_error.mean, moved.likely)
    last = stages.pop()
    assert last.expected_error is not None
    error = add_clipping(last.expected_error, settled.last, moved)
    return replace(last, guarantee=planned.promise, expected_error=error, stages=tuple(stages))


def add_clipping(error: ExpectedError, law: Mechanism, moved: Moved) -> ExpectedError:
    """The noise's error and what clipping may have moved the mean by, together.

    The 90 % are 95 % for the noise and 95 % for the bound on clipping.
    """
    if moved.most == 0:
        return error
    factor = math.hypot(1.0, moved.likely / error.mean)
    wider = law.error_quantile(0.95) / law.error_quantile(0.9)
    return replace(
        error,
        mean=factor * error.mean,
        radius_90=wider * error.radius_90 + moved.most,
        mean_at_edge=factor * error.mean_at_edge,
        clipping=moved.most,
    )


def distance_bins(request: Request, base: Array, unit: int, cells: int = EDGES) -> DistanceBins:
    """Edges go down from the largest distance in the public ball by factors of √2; few are a factor of 2 apart.

    Where there are many, one more lies beyond the ball: its bin holds what clipping to the ball moves, too.
    """
    ball = request.domain
    reach = _reach(ball, base)
    steps = np.arange(cells)[::-1] - (cells == EDGES)
    edges = reach * 2.0 ** (-steps / (1 if cells == FEW_EDGES else 2))
    return DistanceBins(ball.manifold, base, request.substitute, edges=edges, unit=unit)


def _reach(ball: Domain, base: Array) -> float:
    """The largest distance in the ball."""
    center = host(ball.center)
    if all(map(np.array_equal, leaves(base), leaves(center))):
        return ball.radius
    return ball.radius + float(ball.manifold.dist(center, base))


class Moved(NamedTuple):
    """What clipping to a ball moves the mean of the records of the public ball by."""

    likely: float
    """By the counts as they were released: the length is at most this, but for their noise."""
    most: float
    """But for one release in twenty (`miss`)."""


def shrink_ball(
    request: Request,
    bins: DistanceBins,
    counts: np.ndarray,
    noise: CountsNoise,
    n: int,
    floor: float,
    error: float,
    miss: float = _MISS,
) -> tuple[Ball, Moved]:
    """The ball around the public point that suits the mean best, and what clipping to it moves.

    All of this is post-processing of the histogram, whose counts are first projected onto those that are possible: none
    below 0, and n together. At edge e the noise of the mean errs by `error`·e/r, r the radius of the public ball, and
    clipping moves it by at most Σ count·(middle of the bin − e)/n over the bins beyond: the edge with the least
    √(noise² + moved²) is taken, if that is a tenth better than the public ball. Never below the floor, four times the
    error with which the point itself was released.
    """
    ball, edges = request.domain, bins.edges
    assert isinstance(ball, Ball)
    assert edges is not None
    reach = _reach(ball, bins.base)
    total = float(n) if request.guess is None else max(1.0, float(np.sum(counts)))
    radius, likely = best_radius(counts, edges, total, error / ball.radius, floor, reach, noise.deviation)
    if radius >= min(ball.radius, ball.manifold.injectivity_radius):
        return ball, Moved(0.0, 0.0)
    most = moved_at_most(counts, np.minimum(edges, reach), total, radius, noise, miss)
    return Ball(ball.manifold, bins.base, radius), Moved(likely, max(most, likely))


def best_radius(
    counts: np.ndarray,
    edges: np.ndarray,
    total: float,
    error: float,
    floor: float = 0.0,
    reach: float = math.inf,
    deviation: float = 0.0,
) -> tuple[float, float]:
    """Where noise and clipping cost least together, and what clipping moves the mean by at most; see `shrink_ball`.

    `reach` is the public radius, if bins go on beyond it; `deviation` is that of a noisy count.

    >>> best_radius(np.array([2.0, 98.0, 1.0, -3.0]), np.array([1.0, 2.0, 4.0, 8.0]), 100.0, error=0.1)
    (2.0, 0.009090571073432387)
    """
    likely = np.zeros(len(counts))
    clear = len(counts) == EDGES and CLEAR[EDGES] * deviation <= NEARLY * total
    seen = _seen_bins(counts, total, deviation) if clear else len(counts)
    likely[:seen] = fit_total(counts[:seen], total)
    # of bins that reach from one edge to √2 of it; nearer to the upper edge of wider ones; the last holds all beyond,
    # which clipping to the public ball brings to its edge
    middles = np.append(edges[1:-1] * 2.0**-0.25, min(edges[-1], reach))
    found = []
    for number, edge in enumerate(np.minimum(edges, reach).tolist()):
        radius = max(edge, floor)
        moved = float(np.sum(likely[number + 1 :] * np.maximum(middles[number:] - radius, 0.0))) / total
        found.append((math.hypot(error * radius, moved), radius, moved))
    best = min(found)
    return (best if best[0] * _GAIN < found[-1][0] else found[-1])[1:]


def _seen_bins(counts: np.ndarray, total: float, deviation: float) -> int:
    """How many bins, from the nearest on, hold anybody: those beyond have together no more than noise may have.

    What is beyond weighs most, and a few records that are noise would keep the ball large. Noise may have half of a
    deviation, or less where records are so few that a tail of some of them looks like it.
    """
    taken = min(_UNSEEN * deviation, total / _FEW_UNSEEN)
    beyond = np.append(np.cumsum(counts[::-1])[::-1][1:], 0.0)
    return int(np.flatnonzero(beyond <= taken * np.sqrt(np.arange(len(counts))[::-1]))[0]) + 1


def moved_at_most(
    counts: np.ndarray, edges: np.ndarray, total: float, radius: float, noise: CountsNoise, miss: float = _MISS
) -> float:
    """A bound on Σ(distance − radius)⁺/n for distances cut at the last edge; fails with probability `miss` at most.

    No record of a bin is farther than its upper edge, so Σ count·(edge − radius)⁺ over the bins is a bound.
    """
    return weighed_at_most(counts, np.maximum(edges - radius, 0.0), total, noise, miss)


def weighed_at_most(
    counts: np.ndarray, weights: np.ndarray, total: float, noise: CountsNoise, miss: float = _MISS
) -> float:
    """A bound on Σ weight·count/n, for true counts that n records have; fails with probability `miss` at most.

    The noise of the sum over noisy counts is one of independent parts with these weights w: σ|w|·Φ⁻¹(1 − p) bounds a
    Gaussian one but for p, and (log(1/p) − Σlog(1 − t²b²w²))/t, for any t < 1/(b·max w), discrete Laplace noise of
    scale b, whose moments grow no faster (Chernoff). p is `miss` over the number of bins: the weights are those of one
    of so many edges, which was chosen by the same counts.
    """
    if not np.any(weights > 0):
        return 0.0
    each = miss / len(counts)
    if noise.is_gaussian:
        slack = noise.deviation * float(np.linalg.norm(weights) * special.ndtri(1 - each))
    else:
        sizes = noise.deviation / math.sqrt(2) * weights
        t = np.linspace(0.01, 0.99, 99)[:, None] / np.max(sizes)
        slack = float(np.min((math.log(1 / each) - np.sum(np.log1p(-((t * sizes) ** 2)), axis=1)) / t[:, 0]))
    return min(max(float(counts @ weights) + slack, 0.0) / total, float(np.max(weights)))


def release_counts(
    request: Request, noise: CountsNoise, counts: np.ndarray, n: int, statistic: str = "counts"
) -> Release:
    """Noisy counts, or other sums of points of a simplex, with everything that is promised about them."""
    cells, spread = len(counts), noise.deviation * math.sqrt(len(counts))
    domain: Domain = Ball(Euclidean(cells), np.full(cells, n / cells), float(n))
    return Release(
        statistic=statistic,
        value=counts,
        guarantee=noise.guarantee,
        budget=noise.part,
        mechanism="wrapped-gaussian" if noise.is_gaussian else "wrapped-laplace",
        theorem=f"{statistic} are points of a simplex, and the mechanism on integers (docs/proofs/sums.md)",
        numerics="rounded" if noise.is_gaussian else "lattice",
        sensitivity=noise.sensitivity,
        sigma=float(noise.law.sigma) / noise.unit,
        step=1.0 / noise.unit,
        n=request.public_count(n),
        domain=domain,
        expected_error=ExpectedError(spread, 2 * spread, spread),
        reason="the smaller standard deviation of a count",
        reproducible=request.account.reproducible,
    )
