"""How a budget is cut between histograms of distances and the means after them, and when that is worth it.

All of it is decided by public facts: the domain, the number of records and the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from dpmanifolds.domains import Ball
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.privacy import ApproxDP, Budget, Guarantee, compose, split
from dpmanifolds.releases.statistic import Account, Request, best_cut
from dpmanifolds.sums.counts import PERSON_UNIT, CountsNoise, counts_noise
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import RecordSums

# by whether ε adds up: at most, and at least this part of it
HISTOGRAM_SHARE, _ROUGH_SHARE = {False: 0.05, True: 0.04}, 0.15
_LEAST_PART = 0.3
EDGES, _SOME_EDGES, FEW_EDGES = 24, 5, 3
# standard deviations of a noisy count that make a histogram of so many bins clear
CLEAR = {EDGES: 25.0, _SOME_EDGES: 8.0, FEW_EDGES: 4.0}
# by whether ε adds up
_FINE = {False: 5.0, True: 7.0}
# how much worse than one shot in the same ball a cut of (ε, δ) must be for a better one to be searched for
_WORTH = 1.05
_TRIES, _CLOSE = 7, 0.05
# times the deviation that is needed
NEARLY = 1.15
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
        for edges, clear in CLEAR.items():
            if rounds > 1 or edges == FEW_EDGES or n >= clear * least:
                needed = min(n / clear, _FINE[request.budget.bounded_loss] * as_far)
                # a deviation grows as one over the share where ε adds up, else as one over its root
                part = (least / min(needed, n / CLEAR[_SOME_EDGES])) ** (1 if request.budget.bounded_loss else 2)
                if rounds > 1:
                    yield Look(edges, share, needed)
                    return
                # few digits, so that what is left of a round budget is one
                few = math.floor(share * min(max(part, _LEAST_PART), 1.0) * 2**12) / 2**12
                yield Look(edges, few, needed)


@dataclass(frozen=True)
class Rounds:
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
        return self.noise.deviation <= NEARLY * self.look.deviation

    def price(self, once: float) -> float:
        """What the noise of the last mean is, over `once`, that of one shot in the same ball."""
        return self.plans[-1].expected_error.mean / once if self.is_clear else math.inf


def decide_rounds(request: Request, records: RecordSums) -> int:
    """What refine="auto" means: 1 where what a paid radius leaves of the budget errs at most 6 % more, else 0.

    Decided by public facts alone: the kind of domain, the noise on a count, which the budget sets, and the number of
    records. From n = 4 standard deviations of a noisy count on (`CLEAR`) the histogram shows where the records are,
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
    if CLEAR[FEW_EDGES] * _least_deviation(request.budget, request.adjacency) > n:
        return 0
    try:
        planned = plan_rounds(request, n, 1, unit)
    except NotAvailableError:
        return 0
    return int(planned.price(request.plan(n).expected_error.mean) <= _MOST_PRICE)


def unit_of(records: RecordSums) -> int:
    """Of counts: 1 for records, more for persons, whose records may lie in several bins."""
    return 1 if records.persons is None else PERSON_UNIT


def plan_rounds(request: Request, n: int, rounds: int, unit: int) -> Rounds:
    """Worked out once for the same public facts."""
    return _best_rounds(replace(request, account=NO_ACCOUNT), n, rounds, unit)


@lru_cache(maxsize=32)
def _best_rounds(request: Request, n: int, rounds: int, unit: int) -> Rounds:
    """The cut of the budget whose last mean errs least.

    A point (ε, δ) is also cut so that the histogram gets its share of the Gaussian μ, and the means what is left of the
    point itself, searched for so that the whole composition keeps it.
    """
    once, tried = request.plan(n).expected_error.mean, list[Rounds]()
    for look in Look.all_of(request, n, rounds):
        tried.append(_cut_for(request, n, rounds, unit, look))
        if rounds > 1 or tried[-1].price(once) <= _MOST_PRICE:
            return tried[-1]
    return min(tried, key=lambda found: found.price(once))


def _cut_for(request: Request, n: int, rounds: int, unit: int, look: Look) -> Rounds:
    shares = _shares(look.share, rounds)

    def plan(*way: Budget) -> Rounds:
        noise = request.counts(look.edges, way[0], unit)
        rough = replace(request, steps=1)
        last = len(way) - 1
        plans = tuple((request if number == last else rough).plan(n, way[number]) for number in range(rounds, len(way)))
        promise = compose(noise.guarantee.k_fold(rounds), *(each.guarantee for each in plans))
        return Rounds(noise, plans, promise, look)

    enough = NEARLY * max(
        min(look.deviation, n / CLEAR[_SOME_EDGES]), _least_deviation(request.budget, request.adjacency)
    )

    def error(found: Rounds) -> float:
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
