"""Private k-means: rounds of class sums around points that are public by then (docs/proofs/regression.md, section 6).

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> X = np.concatenate([np.random.default_rng(0).normal(at, 0.3, size=(400, 2)) for at in (-2.0, 2.0)])
>>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=4.0)
>>> found = private_kmeans(X, 2, ball, dpm.GaussianDP(1.0), rng=0)
>>> np.sort(found.centers[:, 0]).round().tolist(), found.guarantee.fits(dpm.GaussianDP(1.0))
([-2.0, 2.0], True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import host, records_at, stack
from dpmanifolds._validate import auto_or_integer, positive_integer
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.privacy import Budget, Guarantee, compose
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, check_request, warn_of_noise
from dpmanifolds.sums import Draw, Facts, calibrate, mean_facts
from dpmanifolds.sums.clusters import ClusterContribution, even_ball, fixed_directions
from dpmanifolds.sums.walk import Walk
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedMechanism

_CANDIDATES = 4096
_MOST_ROUNDS, _FEWEST_ROUNDS = 6, 2
# the error of a centre after one round, over the radius, up to which one round more is taken
_GOOD = 0.06
_HELD = 0.95
_EMPTY = 3.0
_NEAR = 0.75


@dataclass(frozen=True, eq=False)
class Clusters:
    """Released centres, noisy numbers of records, and what all of it promises."""

    centers: Array
    """(clusters, *point_shape)."""
    counts: np.ndarray
    """Noisy numbers of records that were nearest to the centres before the last round."""
    releases: tuple[Release, ...]
    """Of every cluster in every round."""
    guarantee: Guarantee
    budget: Budget


def private_kmeans(
    points: Any,
    clusters: int,
    domain: Ball,
    budget: Budget,
    *,
    centers: Any = None,
    rounds: int | str = "auto",
    mechanism: str = "auto",
    numerics: str = "safe",
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Clusters:
    """k-means of records in a public ball: `rounds` of Lloyd's algorithm, each a noisy sum and count for each cluster.

    It starts from public `centers` (clusters, *point_shape), by default from centres for records spread evenly over the
    ball, and reads nothing else off the records. Which cluster a record is in is protected too, and n is public.
    """
    request = check_request(
        domain,
        budget,
        mechanism=mechanism,
        numerics=numerics,
        ball_for="k-means",
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    count = positive_integer("n_clusters", clusters)
    start, radius = _started(domain, count, centers)
    records = request.read(points)
    n = records.count
    plan = _planned(request, n, count, radius, rounds)
    promise = compose(*(law.guarantee for law in plan.laws))
    walk = request.walk()
    law = plan.laws[0]
    rule = _rule(request, walk, start, radius, law)
    total = request.refuse_malformed(records.total(rule))
    warn_of_noise(domain, law.expected_error)
    request.spend("k-means", promise, n, clusters=count, rounds=len(plan.laws), domain=domain)
    made, counts = list[Release](), np.zeros(count)
    for number, part in enumerate(plan.parts):
        if number:
            radius = _next_radius(domain, start, radius)
            law = _recalibrated(request, plan.laws[number], part, n, count, radius)
            total = records.total(_rule(request, walk, start, radius, law))
        start, counts, own = _round(request, walk, start, total.integers, law, last=number == len(plan.laws) - 1)
        made += own
    return Clusters(stack(*start), counts, tuple(made), promise, budget)


class _Plan(NamedTuple):
    laws: tuple[WrappedMechanism, ...]
    parts: tuple[Budget, ...]


def _planned(request: Request, n: int, count: int, radius: float, rounds: int | str) -> _Plan:
    """As many rounds as public facts suggest: one more while a centre errs little in each."""
    asked = auto_or_integer("rounds", rounds)
    if not isinstance(asked, str):
        return best_cut(request.budget, [[1 / asked] * asked], partial(_laws, request, n, count, radius), _error)
    best = None
    for wanted in range(_FEWEST_ROUNDS, _MOST_ROUNDS + 1):
        plan = best_cut(request.budget, [[1 / wanted] * wanted], partial(_laws, request, n, count, radius), _error)
        if best is not None and _error(plan) > _GOOD * request.domain.radius:
            break
        best = plan
    assert best is not None
    return best


def _laws(request: Request, n: int, count: int, radius: float, *parts: Budget) -> _Plan:
    return _Plan(tuple(_law(request, part, n, count, radius) for part in parts), parts)


def _law(request: Request, part: Budget, n: int, count: int, radius: float) -> WrappedMechanism:
    """Noise for the sum and the count of each cluster; which one a record is in is its own secret."""
    return request.choose(_facts(request, n, count, radius), part)


def _facts(request: Request, n: int, count: int, radius: float) -> Facts:
    dim = request.domain.manifold.dim
    ball = Ball(Euclidean(dim), np.zeros(dim), radius)
    return mean_facts(ball, max(1, n // count), unit=request.unit, labelled=True)


def _error(plan: _Plan) -> float:
    return plan.laws[0].expected_error.mean


def _recalibrated(
    request: Request, law: WrappedMechanism, part: Budget, n: int, count: int, radius: float
) -> WrappedMechanism:
    """The same law and promise for a smaller ball."""
    found = calibrate(law.name, _facts(request, n, count, radius), part, law.numerics)
    assert isinstance(found, WrappedMechanism)
    return found


def _rule(
    request: Request, walk: Walk, centers: list[Array], radius: float, law: WrappedMechanism
) -> ClusterContribution:
    assert law.exponent is not None
    return ClusterContribution(
        request.domain.manifold,
        walk.center,
        request.substitute,
        centers=tuple(centers),
        radius=radius,
        exponent=law.exponent,
    )


def _round(
    request: Request, walk: Walk, centers: list[Array], total: list[int], law: WrappedMechanism, *, last: bool
) -> tuple[list[Array], np.ndarray, list[Release]]:
    """Noise on the sum and the count of each cluster, and the centres that they lead to."""
    shape, size = law.facts.shape, request.domain.manifold.dim + 1
    assert shape is not None
    assert law.exponent is not None
    weight = shape.weight(law.exponent, gaussian=isinstance(law, WrappedGaussianMechanism))
    unit, deviation = shape.radius * 2.0**-law.exponent, law.deviation / law.step
    moved, counts, made = list[Array](), list[float](), list[Release]()
    for k, center in enumerate(centers):
        own = total[size * k : size * (k + 1)]
        noisy = law.add_noise([*own[:-1], weight * own[-1]], request.account.rng).astype(np.float64)
        count = max(float(noisy[-1]) / weight, 1.0)
        mean = noisy[:-1] * (unit / count)
        # a step that noise alone could have made is not taken whole
        noise = deviation * unit / count * math.sqrt(size - 1)
        share = max(0.0, 1 - (noise / max(float(np.linalg.norm(mean)), 1e-300)) ** 2)
        point = walk.reach(center, share * mean * min(1.0, shape.radius / max(float(np.linalg.norm(mean)), 1e-300)))
        moved.append(point)
        counts.append(count)
        made.append(
            request.release(
                law,
                Draw(point, noisy),
                statistic="cluster mean",
                n=None,
                reason="a round",
                domain=walk.domain,
                base=center,
            )
        )
    if not last:
        _refill(walk, moved, counts, _EMPTY * deviation / weight, shape.radius)
    return moved, np.array(counts), made


def _refill(walk: Walk, centers: list[Array], counts: list[float], least: float, radius: float) -> None:
    """Centres with hardly a record move next to that of the largest cluster, in a public direction: post-processing."""
    directions = fixed_directions(len(centers), walk.domain.manifold.dim)
    left = list(counts)
    for k in range(len(centers)):
        if counts[k] <= least and max(left) > 2 * least:
            largest = int(np.argmax(left))
            centers[k] = walk.reach(centers[largest], 0.5 * radius * directions[k])
            left[largest] = left[k] = left[largest] / 2


def _next_radius(domain: Ball, centers: list[Array], radius: float) -> float:
    """Three quarters of how far released centres are from the nearest other one, on average: public by now."""
    if len(centers) == 1:
        return radius
    block = stack(*centers)
    apart = np.stack([to_numpy(domain.manifold.dist(center, block)) for center in centers])
    np.fill_diagonal(apart, math.inf)
    found = _NEAR * float(np.mean(np.min(apart, axis=1)))
    return min(radius, max(found, 0.1 * radius)) if math.isfinite(found) else radius


def _started(domain: Ball, count: int, centers: Any) -> tuple[list[Array], float]:
    """Public centres to start from, and the radius that holds what is nearest to one of them."""
    if centers is None:
        return spread_centers(domain, count)
    manifold = domain.manifold
    given = host(manifold.as_points(centers, "centers"))
    if manifold.batch_shape(given) != (count,):
        raise ArgumentError(f"must be {count} points of {manifold!r}.", argument="centers")
    if not np.all(to_numpy(manifold.belongs(given))):
        raise NotOnManifoldError(f"must be points of {manifold!r}.", argument="centers")
    return [records_at(given, k) for k in range(count)], domain.radius


def spread_centers(domain: Ball, count: int) -> tuple[list[Array], float]:
    """Centres of k-means for fixed points spread evenly over the ball of tangent coordinates: public.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> centers, radius = spread_centers(Ball(Sphere(2), [0.0, 0.0, 1.0], radius=1.0), 4)
    >>> len(centers), 0.5 < radius < 0.8
    (4, True)
    """
    dim = domain.manifold.dim
    rows = even_ball(_CANDIDATES, dim)
    middles = rows[:count].copy() if count <= _CANDIDATES else np.resize(rows, (count, dim))
    for _ in range(20):
        nearest = np.argmin(_squares(rows, middles), axis=1)
        for k in range(count):
            if np.any(nearest == k):
                middles[k] = rows[nearest == k].mean(axis=0)
    distances = np.sqrt(np.min(_squares(rows, middles), axis=1))
    center = host(domain.center)
    points = [domain.manifold.move(center, domain.radius * row) for row in middles]
    return points, domain.radius * float(np.quantile(distances, _HELD))


def _squares(rows: np.ndarray, middles: np.ndarray) -> np.ndarray:
    gaps = np.sum(rows**2, axis=1)[:, None] - 2 * rows @ middles.T + np.sum(middles**2, axis=1)
    return np.asarray(np.maximum(gaps, 0.0))
