"""A radius that is paid for: public balls that are far too large are shrunk before the mean is released.

A round releases a histogram of the distances to a public point, and takes the edge at which the noise of the mean to
come and what clipping there would move it by are least together. With more than one round a rough mean comes between:
the next histogram counts distances to that. The last and largest share of the budget goes to the mean in the ball that
is left. The promise is the composition of all stages (docs/proofs/sums.md, section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.privacy import ApproxDP, Budget, Guarantee, compose, split
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Account, Request, best_cut, warn_of_noise
from dpmanifolds.sums import ExpectedError, Mechanism
from dpmanifolds.sums.counts import PERSON_UNIT, CountsNoise, DistanceBins, counts_noise
from dpmanifolds.sums.shrink_spectrum import fit_total
from dpmanifolds.sums.steps import StepPlan, move_plan
from dpmanifolds.sums.total import ExactSum, RecordSums, check_rules

__all__ = [
    "EDGES",
    "HISTOGRAM_SHARE",
    "NO_ACCOUNT",
    "Moved",
    "add_clipping",
    "best_radius",
    "better_last_plan",
    "decide_rounds",
    "distance_bins",
    "plan_rounds",
    "refined_mean",
    "release_counts",
    "rounds_for",
    "shrink_ball",
    "unit_of",
    "weighed_at_most",
]

# by whether ε adds up: at most, and at least this part of it
HISTOGRAM_SHARE, _ROUGH_SHARE = {False: 0.05, True: 0.04}, 0.15
_LEAST_PART = 0.3
EDGES, _SOME_EDGES, _FEW_EDGES = 24, 5, 3
# how often a bound on what clipping moved may fail
_MISS = 0.05
# standard deviations of a noisy count that make a histogram of so many bins clear
_CLEAR = {EDGES: 25.0, _SOME_EDGES: 8.0, _FEW_EDGES: 4.0}
# by whether ε adds up
_FINE = {False: 5.0, True: 7.0}
# how much less a smaller ball must promise to err than the public one
_GAIN = 1.1
# how much worse than one shot in the same ball a cut of (ε, δ) must be for a better one to be searched for
_WORTH = 1.05
_TRIES, _CLOSE = 7, 0.05
# times the deviation that is needed
_NEARLY = 1.15
# of a deviation of counts, and one in so many records: a tail that is not more than both is noise
_UNSEEN, _FEW_UNSEEN = 0.5, 200
# of a mean with what a histogram leaves of the budget, over one shot in the same ball
_MOST_PRICE = 1.06
NO_ACCOUNT = Account(None, None, None)


class Look(NamedTuple):
    """How many edges a histogram of distances has, and which share of the budget it costs: decided by public facts.

    Many edges, √2 apart, where n is 25 standard deviations of a noisy count; five where it is 8; else the public
    radius, half and a quarter of it, which 4 standard deviations do for. More records let the share shrink, down to
    three tenths.
    """

    edges: int
    share: float
    deviation: float
    """Of a noisy count, at most: what the histogram needs to be of use."""

    @staticmethod
    def all_of(request: Request, n: int, rounds: int) -> Iterator[Look]:
        """Those that n records make clear, for so many rounds, finest first; one at least."""
        share, least = HISTOGRAM_SHARE[request.budget.bounded_loss], _least_deviation(request.budget, request.adjacency)
        as_far = n * request.plan(n).expected_error.mean / request.domain.radius
        for edges, clear in _CLEAR.items():
            if rounds > 1 or edges == _FEW_EDGES or n >= clear * least:
                needed = min(n / clear, _FINE[request.budget.bounded_loss] * as_far)
                # a deviation grows as one over the share where ε adds up, else as one over its root
                part = (least / min(needed, n / _CLEAR[_SOME_EDGES])) ** (1 if request.budget.bounded_loss else 2)
                if rounds > 1:
                    yield Look(edges, share, needed)
                    return
                # few digits, so that what is left of a round budget is one
                few = math.floor(share * min(max(part, _LEAST_PART), 1.0) * 2**12) / 2**12
                yield Look(edges, few, needed)


@dataclass(frozen=True)
class _Rounds:
    """What each round spends and promises: all of it public."""

    noise: CountsNoise
    plans: tuple[StepPlan, ...]
    """A rough mean for every round but the last, and the mean itself."""
    promise: Guarantee
    look: Look
    """What its histograms are."""

    @property
    def is_clear(self) -> bool:
        """Whether noise on a count is as small as it has to be."""
        return self.noise.deviation <= _NEARLY * self.look.deviation

    def price(self, once: float) -> float:
        """What the noise of the last mean is, over `once`, that of one shot in the same ball."""
        return self.plans[-1].expected_error.mean / once if self.is_clear else math.inf


def decide_rounds(request: Request, records: RecordSums) -> int:
    """What refine="auto" means: 1 where a paid radius costs at most 6 % whatever the records are, else 0.

    Decided by public facts alone: the kind of domain, the noise on a count, which the budget sets, and the number of
    records. From n = 4 standard deviations of a noisy count on (`_CLEAR`) the histogram shows where the records are,
    and what is left to lose is its share of the budget; below, it may mistake noise for records. Nor may a count be
    uncertain by more than `_FINE` times the records that, all at the edge of the ball and on one side, move the mean as
    far as its noise does: in few dimensions a pure budget leaves a histogram too coarse for noise so small. Records
    that can be read only once, or whose number nobody knows before reading them, are released in one shot; so are those
    of other domains than balls.
    """
    n = request.guess or records.known_count
    return 0 if n is None or records.source.is_single_use else rounds_for(request, n, unit_of(records))


def rounds_for(request: Request, n: int, unit: int = 1) -> int:
    """The same for n records that can be read again; `unit` as of `plan_rounds`."""
    if not isinstance(request.domain, Ball) or request.numerics == "lattice":
        return 0
    if _CLEAR[_FEW_EDGES] * _least_deviation(request.budget, request.adjacency) > n:
        return 0
    try:
        planned = plan_rounds(request, n, 1, unit)
    except NotAvailableError:
        return 0
    return int(planned.price(request.plan(n).expected_error.mean) <= _MOST_PRICE)


def refined_mean(request: Request, records: RecordSums, rounds: int) -> Release:
    """The mean in a ball that `rounds` rounds have shrunk; called by `private_mean`."""
    domain = request.domain
    if not isinstance(domain, Ball):
        raise ArgumentError(f"refine shrinks a Ball; got {type(domain).__name__}. Use refine=0.")
    n = request.guess or records.count
    if n == 0:
        raise ArgumentError("is empty: at least one record is needed.", argument="points")
    planned = plan_rounds(request, n, rounds, unit_of(records))
    noise, base = planned.noise, host(domain.center)
    # what a centre too close to the edge of the manifold makes fail, fails before anything is spent
    request.walk().look(base, planned.plans[0].laws[0])
    bins = distance_bins(request, base, noise.unit, planned.look.edges)
    looked = records.total(bins)
    if request.substitute is None:
        check_rules(looked, domain.manifold.rules, domain.manifold)
    # noise and ball shrink together
    warn_of_noise(domain, planned.plans[-1].expected_error)
    request.spend("refined mean", planned.promise, n, rounds=rounds, domain=domain)
    stages, floor, moved = list[Release](), 0.0, Moved(0.0, 0.0)
    seen: ExactSum | None = looked
    for plan in planned.plans:
        bins = distance_bins(request, base, noise.unit, planned.look.edges)
        counts = noise.draw((seen or records.total(bins)).integers, request.account.rng)
        # each ball is chosen for the noise of its own mean, from the whole of the public one
        ball, moved = shrink_ball(request, bins, counts, noise, n, floor, plan.expected_error.mean)
        # what a mechanism promises is a function of its part of the budget alone, whatever the ball is
        settled, walk = move_plan(plan, ball), request.walk(ball)
        taken = walk.take(records, settled, base)
        stages += [release_counts(request, noise, counts, n), *request.release_steps(walk, settled, taken)]
        base, seen = taken[-1].drawn.point, None
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


def _shares(histogram: float, rounds: int) -> list[float]:
    """Of each histogram, of each rough mean, and of the last mean. Where ε adds up, a share costs twice as much."""
    rough = [_ROUGH_SHARE / (rounds - 1)] * (rounds - 1) if rounds > 1 else []
    shares = [histogram] * rounds + rough
    return [*shares, 1 - math.fsum(shares)]


@lru_cache(maxsize=256)
def _least_deviation(budget: Budget, adjacency: str) -> float:
    """Of a noisy count, over all ways to cut the budget."""
    ways = split(budget, _shares(HISTOGRAM_SHARE[budget.bounded_loss], 1))
    return min(counts_noise(EDGES, way[0], "record", adjacency=adjacency).deviation for way in ways)


def unit_of(records: RecordSums) -> int:
    """Of counts: 1 for records, more for persons, whose records may lie in several bins."""
    return 1 if records.persons is None else PERSON_UNIT


def plan_rounds(request: Request, n: int, rounds: int, unit: int) -> _Rounds:
    """Worked out once for the same public facts."""
    return _best_rounds(replace(request, account=NO_ACCOUNT), n, rounds, unit)


@lru_cache(maxsize=32)
def _best_rounds(request: Request, n: int, rounds: int, unit: int) -> _Rounds:
    """The cut of the budget whose last mean errs least.

    A point (ε, δ) is also cut so that the histogram gets its share of the Gaussian μ, and the means what is left of the
    point itself, searched for so that the whole composition keeps it.
    """
    once, tried = request.plan(n).expected_error.mean, list[_Rounds]()
    for look in Look.all_of(request, n, rounds):
        tried.append(_cut_for(request, n, rounds, unit, look))
        if rounds > 1 or tried[-1].price(once) <= _MOST_PRICE:
            return tried[-1]
    return min(tried, key=lambda found: found.price(once))


def _cut_for(request: Request, n: int, rounds: int, unit: int, look: Look) -> _Rounds:
    shares = _shares(look.share, rounds)

    def plan(*way: Budget) -> _Rounds:
        noise = request.counts(look.edges, way[0], unit)
        rough = replace(request, steps=1)
        last = len(way) - 1
        plans = tuple((request if number == last else rough).plan(n, way[number]) for number in range(rounds, len(way)))
        promise = compose(noise.guarantee.k_fold(rounds), *(each.guarantee for each in plans))
        return _Rounds(noise, plans, promise, look)

    enough = _NEARLY * max(
        min(look.deviation, n / _CLEAR[_SOME_EDGES]), _least_deviation(request.budget, request.adjacency)
    )

    def error(found: _Rounds) -> float:
        return found.plans[-1].expected_error.mean if found.noise.deviation <= enough else math.inf

    best = best_cut(request.budget, [shares], plan, error)
    last = better_last_plan(request, n, best.noise.guarantee, error(best)) if rounds == 1 else None
    return best if last is None else replace(best, plans=(last,), promise=compose(best.noise.guarantee, last.guarantee))


def better_last_plan(request: Request, n: int, spent: Guarantee, error: float) -> StepPlan | None:
    """A mean with all that stages which promise `spent` leave of a point (ε, δ), where it errs less than `error`."""
    if not isinstance(request.budget, ApproxDP) or error <= _WORTH * request.plan(n).expected_error.mean:
        return None
    rest = _rest(request.budget, spent, lambda part: request.plan(n, part).guarantee)
    last = None if rest is None else request.plan(n, rest)
    return last if last is not None and last.expected_error.mean < error else None


def _rest(budget: ApproxDP, spent: Guarantee, promise: Callable[[Budget], Guarantee]) -> ApproxDP | None:
    """About the largest part (xε, .95δ) whose promise keeps the budget together with what is spent: by secants."""
    tried: list[tuple[float, float]] = []
    found, share = None, 0.95
    for _ in range(_TRIES):
        part = ApproxDP(share * budget.epsilon, 0.95 * budget.delta)
        together = compose(spent, promise(part))
        excess = math.log(max(float(together.delta(budget.epsilon)), 1e-300) / budget.delta)
        if together.fits(budget, strict=True) and (found is None or part.epsilon > found.epsilon):
            found = part
            if excess > -_CLOSE:
                break
        tried.append((share, excess + _CLOSE / 2))
        if len(tried) == 1:
            share += 0.02 if excess < 0 else -0.05
            continue
        (one, first), (two, second) = tried[-2:]
        slope = (second - first) / (two - one) if two != one else 0.0
        if slope <= 0:
            break
        share = min(max(two - second / slope, 0.3), 0.9999)
    return found


def distance_bins(request: Request, base: Array, unit: int, cells: int = EDGES) -> DistanceBins:
    """Edges go down from the largest distance in the public ball by factors of √2; few are a factor of 2 apart.

    Where there are many, one more lies beyond the ball: its bin holds what clipping to the ball moves, too.
    """
    ball = request.domain
    reach = _reach(ball, base)
    steps = np.arange(cells)[::-1] - (cells == EDGES)
    edges = reach * 2.0 ** (-steps / (1 if cells == _FEW_EDGES else 2))
    return DistanceBins(ball.manifold, base, request.substitute, edges=edges, unit=unit)


def _reach(ball: Domain, base: Array) -> float:
    """The largest distance in the ball."""
    return ball.radius + float(ball.manifold.dist(host(ball.center), base))


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
    seen = _seen_bins(counts, total, deviation) if len(counts) == EDGES else len(counts)
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
