"""A public ball that is far too large, shrunk with part of the budget before the mean is released.

Each round releases a rough mean with a share of the budget, and a histogram of the distances to it with another; both
are public from then on, and so is the ball that is made of them. The last and largest share goes to the mean of the
records clipped to that ball. The promise is the composition of all stages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, DPManifoldsError, NotAvailableError
from dpmanifolds.mechanisms import Choice, Mechanism, choose, mean_facts
from dpmanifolds.privacy import Budget, compose, split
from dpmanifolds.releases._counts import CountsNoise, counts_noise
from dpmanifolds.releases.entry import Account, computed_mean, precision_of
from dpmanifolds.releases.release import Release, release_of

__all__ = ["refined_mean"]

_ROUGH_SHARE, _HISTOGRAM_SHARE = 0.15, 0.1
_BINS = 24


def refined_mean(
    records: Array,
    domain: Domain,
    budget: Budget,
    *,
    rounds: int,
    mechanism: str,
    numerics: str,
    unit: str,
    account: Account,
) -> Release:
    """The mean of clipped records in a ball that `rounds` rounds have shrunk; called by `private_mean`."""
    if not isinstance(domain, Ball):
        raise ArgumentError(f"refine shrinks a Ball; got {type(domain).__name__}. Use refine=0.")
    if numerics == "idealized":
        raise ArgumentError("refine is offered with the numerics 'safe', 'rounded' and 'lattice'; got 'idealized'.")
    dtype = precision_of(records)
    n = domain.manifold.batch_shape(records)[0]
    shares = [_ROUGH_SHARE / rounds, _HISTOGRAM_SHARE / rounds] * rounds + [1 - _ROUGH_SHARE - _HISTOGRAM_SHARE]
    parts = _best_way(domain, n, dtype, split(budget, shares), mechanism, numerics, unit)
    planned = _chosen(domain, n, dtype, parts[-1], mechanism, numerics, unit).mechanism
    # the promise of these mechanisms is a function of their part of the budget alone, whatever the ball will be
    mechanism, numerics = planned.name, planned.numerics
    rough = _chosen(domain, n, dtype, parts[0], mechanism, numerics, unit).mechanism
    histogram = counts_noise(_BINS, parts[1], unit)
    promise = compose(rough.guarantee.k_fold(rounds), histogram.guarantee.k_fold(rounds), planned.guarantee)
    statistic = computed_mean(domain, records, dtype).point
    account.spend("refined mean", promise, n=n, rounds=rounds, domain=repr(domain))
    stages: list[Release] = []
    ball = domain
    for number in range(rounds):
        center = _released(ball, statistic, records, parts[2 * number], mechanism, numerics, unit, account)
        ball, counted = _shrunk(ball, center.value, records, histogram, planned, account)
        stages += [center, counted]
        records = ball.clip(records)
        statistic = computed_mean(ball, records, dtype).point
    last = _released(ball, statistic, records, parts[-1], mechanism, numerics, unit, account)
    return replace(last, guarantee=promise, budget=budget, stages=tuple(stages))


def _chosen(ball: Ball, n: int, dtype: str, part: Budget, mechanism: str, numerics: str, unit: str) -> Choice:
    return choose(mean_facts(ball, n, dtype, unit=unit), part, mechanism=mechanism, numerics=numerics)


def _best_way(
    ball: Ball, n: int, dtype: str, ways: Sequence[tuple[Budget, ...]], mechanism: str, numerics: str, unit: str
) -> tuple[Budget, ...]:
    """The cut of the budget whose last part errs least."""
    errors = {}
    for way in ways:
        try:
            errors[way] = _chosen(ball, n, dtype, way[-1], mechanism, numerics, unit).mechanism.expected_error.mean
        except NotAvailableError as reason:
            refusal = reason
    if not errors:
        raise refusal
    return min(errors, key=lambda way: errors[way])


def _released(
    ball: Ball,
    statistic: Array,
    records: Array,
    part: Budget,
    mechanism: str,
    numerics: str,
    unit: str,
    account: Account,
) -> Release:
    n = ball.manifold.batch_shape(records)[0]
    chosen = _chosen(ball, n, precision_of(records), part, mechanism, numerics, unit)
    return release_of(
        chosen.mechanism,
        chosen.mechanism.draw(statistic, records=records, rng=account.rng),
        statistic="mean",
        budget=part,
        n=n,
        reason=chosen.reason,
        reproducible=account.reproducible,
    )


def _shrunk(
    ball: Ball, center: Array, records: Array, histogram: CountsNoise, planned: Mechanism, account: Account
) -> tuple[Ball, Release]:
    """The ball around the rough mean that promises the smallest error, or the old one, and the histogram behind it.

    Clipping to ρ moves the mean by at most (1/n)Σ(distance − ρ)₊, here from the noisy counts and the upper edges of
    their bins; counts that noise alone would reach in about 1 % of releases count as none. The noise of the last stage
    grows with ρ like the sensitivity. Their sum in squares is weighed at every edge. All of this is post-processing of
    the histogram.
    """
    manifold = ball.manifold
    n = manifold.batch_shape(records)[0]
    reach = ball.radius + float(manifold.dist(ball.center, center))
    edges = reach * 2.0 ** (-np.arange(_BINS) / 2)
    distances = np.asarray(to_numpy(manifold.dist(center, records)), dtype=np.float64)
    bins = np.clip(np.floor(-2 * np.log2(np.maximum(distances, 1e-300) / reach)), 0, _BINS - 1).astype(int)
    counted = histogram.release(np.bincount(bins, minlength=_BINS), account, n)
    counts = np.where(counted.value > histogram.cut, counted.value, 0.0)
    error_per_move = planned.expected_error.mean / float(planned.sensitivity)
    best, smallest = ball, error_per_move * float(mean_facts(ball, n).at_center)
    for number in range(1, _BINS):
        radius = float(edges[number])
        if radius >= min(ball.radius, manifold.max_radius):
            continue
        beyond = float(np.sum(counts[:number] * (edges[:number] - radius))) / n
        try:
            candidate = Ball(manifold, center, radius)
            error = math.hypot(error_per_move * float(mean_facts(candidate, n).at_center), beyond)
        except DPManifoldsError:
            continue
        if error < smallest:
            best, smallest = candidate, error
    return best, counted
