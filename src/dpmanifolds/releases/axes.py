"""Axes that are paid for: the noise of a mean takes the shape of the records, in directions that are public.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> scales = 1 / np.arange(1.0, 51.0)
>>> points = np.random.default_rng(0).normal(size=(2000, 50)) * scales
>>> ball = dpm.Ball(dpm.Euclidean(50), np.zeros(50), radius=20.0)
>>> release = dpm.private_mean(points, ball, dpm.GaussianDP(1.0), refine="axes", rng=0)
>>> [stage.statistic for stage in release.stages], release.domain.source
(['counts', 'squares', 'counts'], 'axes that were paid for')

Four stages share the budget. A histogram of the distances to the public centre gives a radius. Records shortened to it
are squared, coordinate by coordinate in the public basis, and the noisy sums of squares say how long each axis should
be (`sums.squares`). A second histogram, of how large that ellipsoid must be to hold each record, says how large it is
taken. Then the mean is released in it, or in the ball of the first histogram where that promises less error. The
promise is the composition of all four (docs/proofs/sums.md, section 9); whatever is chosen after a stage is chosen by
what that stage released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.domains import Ball, Domain, Ellipsoid
from dpmanifolds.domains.axes import Axes
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget, Guarantee, compose
from dpmanifolds.releases.refine import (
    Moved,
    add_clipping,
    distance_bins,
    release_counts,
    shrink_ball,
    weighed_at_most,
)
from dpmanifolds.releases.refine_plan import EDGES, HISTOGRAM_SHARE, NO_ACCOUNT, better_last_plan, unit_of
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, warn_of_noise
from dpmanifolds.sums.counts import CountsNoise, DistanceBins
from dpmanifolds.sums.shrink_spectrum import fit_total
from dpmanifolds.sums.squares import SQUARES_UNIT, SquaresContribution, axes_for_squares
from dpmanifolds.sums.steps import StepPlan, move_plan
from dpmanifolds.sums.total import RecordSums

SOURCE = "axes that were paid for"
_SQUARES_SHARE, _SIZES_SHARE = 0.1, 0.03
_SIZES = 2.0 ** (np.arange(-1, 7) / 2)
"""By how much the ellipsoid with E|c/a|² = 1 may be enlarged; the last bin of their histogram holds all beyond."""
_NEARLY_ALL = 0.99
# of each of the two bounds on what clipping moved
_MISS = 0.025


@dataclass(frozen=True)
class AxesPlan:
    """What each stage spends and promises: all of it public."""

    lengths: CountsNoise
    squares: CountsNoise
    sizes: CountsNoise
    mean: StepPlan
    promise: Guarantee


class _Body(NamedTuple):
    """A body for the mean, what clipping to it moves, and what both are expected to err by together."""

    domain: Domain
    moved: Moved
    error: float


def check_basis(request: Request, basis: Any) -> np.ndarray | None:
    """Orthonormal directions (dim, dim) in the tangent coordinates at the centre, or an error that says what is wrong.

    None stands for the coordinates themselves.
    """
    ball = request.domain
    if not isinstance(ball, Ball):
        raise ArgumentError(f"must be a Ball for refine='axes'; got {type(ball).__name__}.", argument="domain")
    if request.steps not in ("auto", 1):
        raise ArgumentError("must be 'auto' or 1 with refine='axes', which looks from the centre.", argument="steps")
    if basis is None:
        return None
    # what is wrong with a basis is wrong with it in any ellipsoid
    return Ellipsoid(ball.manifold, ball.center, np.full(ball.manifold.dim, ball.radius), basis).basis


def plan_axes(request: Request, n: int, unit: int = 1) -> AxesPlan:
    """The cut of the budget whose mean errs least: worked out once for the same public facts."""
    return _best_axes(replace(request, account=NO_ACCOUNT, steps=1), n, unit)


@lru_cache(maxsize=32)
def _best_axes(request: Request, n: int, unit: int) -> AxesPlan:
    shares = [HISTOGRAM_SHARE[request.budget.bounded_loss], _SQUARES_SHARE, _SIZES_SHARE]

    def plan(*parts: Budget) -> AxesPlan:
        lengths = request.counts(EDGES, parts[0], unit)
        squares = request.counts(request.domain.manifold.dim, parts[1], SQUARES_UNIT)
        sizes = request.counts(len(_SIZES), parts[2], unit)
        mean = request.plan(n, parts[3])
        promise = compose(lengths.guarantee, squares.guarantee, sizes.guarantee, mean.guarantee)
        return AxesPlan(lengths, squares, sizes, mean, promise)

    def error(found: AxesPlan) -> float:
        return found.mean.expected_error.mean

    best = best_cut(request.budget, [[*shares, 1 - math.fsum(shares)]], plan, error)
    spent = compose(best.lengths.guarantee, best.squares.guarantee, best.sizes.guarantee)
    mean = better_last_plan(request, n, spent, error(best))
    return best if mean is None else replace(best, mean=mean, promise=compose(spent, mean.guarantee))


def mean_by_axes(request: Request, records: RecordSums, basis: np.ndarray | None) -> Release:
    """The mean in an ellipsoid that was paid for, around the centre of the public ball; called by `private_mean`."""
    domain, base = request.domain, host(request.domain.center)
    n = request.count_of(records)
    planned = plan_axes(request, n, unit_of(records))
    # what a centre too close to the edge of the manifold makes fail, fails before anything is spent
    request.walk().look(base, planned.mean.laws[0])
    bins = distance_bins(request, base, planned.lengths.unit)
    looked = request.refuse_malformed(records.total(bins))
    warn_of_noise(domain, planned.mean.expected_error)
    request.spend("refined mean", planned.promise, n, refine="axes", domain=domain)
    rng, error = request.account.rng, planned.mean.expected_error.mean
    counts = planned.lengths.draw(looked.integers, rng)
    ball, moved = shrink_ball(request, bins, counts, planned.lengths, n, 0.0, error, _MISS)
    number = float(n) if request.guess is None else max(1.0, float(np.sum(counts)))
    rule = SquaresContribution(domain.manifold, base, request.substitute, radius=ball.radius, basis=basis)
    squares = planned.squares.draw(records.total(rule).integers, rng)
    axes = _axes(squares / number, planned.squares.deviation / number, ball.radius, basis)
    held = DistanceBins(domain.manifold, base, request.substitute, edges=_SIZES, unit=planned.sizes.unit, axes=axes)
    sizes = planned.sizes.draw(records.total(held).integers, rng)
    # noise and ball shrink together
    noise = error * ball.radius / domain.radius
    inner = _Body(ball, moved, math.hypot(noise, moved.likely))
    body = min(_shaped(inner, noise, axes, sizes, planned.sizes, number), inner, key=lambda found: found.error)
    # what a mechanism promises is a function of its part of the budget alone, whatever the body is
    settled, walk = move_plan(planned.mean, body.domain), request.walk(body.domain)
    *_, last = request.release_steps(walk, settled, walk.take(records, settled, base))
    assert last.expected_error is not None
    stages = (
        release_counts(request, planned.lengths, counts, n),
        release_counts(request, planned.squares, squares, n, "squares"),
        release_counts(request, planned.sizes, sizes, n),
    )
    told = add_clipping(last.expected_error, settled.last, body.moved)
    return replace(last, guarantee=planned.promise, expected_error=told, stages=stages)


def _axes(squares: np.ndarray, deviation: float, radius: float, basis: np.ndarray | None) -> Axes:
    """For mean squares in units of radius²; none longer than the radius."""
    return Axes(radius * np.minimum(axes_for_squares(squares, deviation), 1.0), basis)


def _shaped(inner: _Body, noise: float, axes: Axes, counts: np.ndarray, law: CountsNoise, total: float) -> _Body:
    """The best size of the ellipsoid, by noisy counts of how large it must be to hold each record: post-processing.

    Noise that errs by `noise` in the ball of radius ϱ errs by |a|/(√d·ϱ) times that in the ellipsoid (root mean
    square). A record of the size t is about t·|a²|/|a| long, and moves by what is beyond the body. Beyond a size where
    all counts together are within one standard deviation of none, nobody is: noise on a few of them would weigh more
    than all that is there.
    """
    manifold, center, radius = inner.domain.manifold, inner.domain.center, inner.domain.radius
    longest, length = float(np.max(axes.lengths)), float(np.linalg.norm(axes.lengths))
    usual = float(np.linalg.norm(axes.lengths**2)) / length
    beyond = np.append(np.cumsum(counts[::-1])[::-1][1:], 0.0)
    top = int(np.flatnonzero(beyond <= law.deviation * np.sqrt(np.arange(len(counts))[::-1]))[0])
    likely = fit_total(counts[: top + 1], total) / total
    middles = np.append(_SIZES[0], np.sqrt(_SIZES[1:] * _SIZES[:-1]))[: top + 1]
    found = []
    for edge in _SIZES[: top + 1].tolist():
        size = min(edge, _NEARLY_ALL * manifold.injectivity_radius / longest)
        moved = usual * float(likely @ np.maximum(middles - size, 0.0))
        found.append((math.hypot(noise * size * length / (math.sqrt(manifold.dim) * radius), moved), size, moved))
    error, size, moved = min(found)
    most = inner.moved.most + _moved_at_most(size, longest, radius, counts, total, law)
    domain = Ellipsoid(manifold, center, size * axes.lengths, axes.basis, SOURCE)
    return _Body(domain, Moved(moved, max(most, moved)), error)


def _moved_at_most(
    size: float, longest: float, radius: float, counts: np.ndarray, total: float, noise: CountsNoise
) -> float:
    """How far clipping to the ellipsoid moves the mean of records of this ball at most, but for one release in forty.

    A record c of the size t has size/t·c in the body, and a length of at most `longest`·t, so that it moves by at most
    min(radius, longest·t)·(1 − size/t)⁺, which grows with t; by at most the radius in the last bin.
    """
    weights = np.minimum(radius, longest * _SIZES) * np.maximum(1 - size / _SIZES, 0.0)
    weights[-1] = radius
    return weighed_at_most(counts, weights, total, noise, _MISS)
