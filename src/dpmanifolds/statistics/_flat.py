"""Means in spaces that are flat after a change of variables: one pass, no iteration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple, cast

import numpy as np

from dpmanifolds._arrays import Array, contract, dot, eps, like, namespace, norm, stack_last, to_numpy
from dpmanifolds.domains import Ball
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import FlatManifold, Power, SPDLogCholesky, SPDLogEuclidean
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.statistics._device import fits_device, log_sums, longest_device_sum
from dpmanifolds.statistics._linearize import weighted_sum
from dpmanifolds.statistics._positive import log_summary, not_positive, positive_log_entries, positive_matrix_logs
from dpmanifolds.statistics.streaming import Records

__all__ = ["flat_mean"]


def flat_mean(records: Records) -> tuple[Array, float]:
    """chart⁻¹(Σ w chart(x)), and a bound on its rounding error (ℓ2 over the copies of a power).

    Records of a ball are clipped in the chart, where that scales chart(x) − chart(centre): the decomposition that gives
    the chart is the only one.
    """
    manifold = cast(
        FlatManifold, records.manifold.manifold if isinstance(records.manifold, Power) else records.manifold
    )
    ball = records.domain if records.preparation.in_chart else None
    chart_ball = _chart_ball(manifold, ball)
    known = records.source.count is not None
    fused = _device_sums(manifold, records, chart_ball)
    total, size, rounding = fused or records.reduce(_FlatPart(manifold, chart_ball), _added)
    if not known:
        scale = 1 / records.source.counted()
        total, size, rounding = total * scale, size * scale, rounding * scale
    xp = namespace(total)
    if not bool(xp.all(xp.isfinite(total))):
        raise NotOnManifoldError(
            "the records lead to numbers that are not finite; check them with dpmanifolds.validate."
        )
    terms = longest_device_sum(records.source.counted()) if fused else records.longest_sum
    rounding = rounding + terms * size
    point = manifold.inverse_chart(total)
    error = eps(total) * float(xp.sqrt(xp.sum(rounding * rounding)))
    return like(point, records.reference) if fused else point, error


def _device_sums(manifold: FlatManifold, records: Records, ball: ChartBall | None) -> FlatSums | None:
    """The sums by a fused kernel, where there is one; None sends malformed records on to the checks elsewhere."""
    array = getattr(records.source, "array", None)
    plain = records.preparation.place is None and records.preparation.mend is None
    if not isinstance(manifold, SPDLogEuclidean) or not plain or not fits_device(array, manifold.k):
        return None
    around = ball or ChartBall(np.zeros(manifold.dim), math.inf)
    sums = log_sums(array, records.weights, center=around.center, radius=around.radius)
    if sums is None:
        return None
    return FlatSums(sums.total + like(around.center, sums.total), sums.size, 4 * manifold.k**2 * sums.spread)


class Clipped(NamedTuple):
    """Sums over clipped records, and which of them were inside."""

    total: Array
    size: Array
    inside: Array


class ChartBall(NamedTuple):
    """A ball in the chart: a Euclidean one."""

    center: np.ndarray
    radius: float

    def clip(self, distance: Array, weights: Array) -> tuple[Array, Array]:
        """Which records are inside, and w·f: what c + f(y − c), clipped to a hair below the radius, is summed with."""
        xp = namespace(distance)
        target = self.radius * (1 - math.sqrt(eps(distance)) / 16)
        inside = distance <= self.radius
        return inside, weights * xp.where(inside, 1.0, target / xp.where(inside, xp.ones_like(distance), distance))


def _chart_ball(manifold: FlatManifold, ball: object) -> ChartBall | None:
    if not isinstance(ball, Ball):
        return None
    center = to_numpy(ball.center)
    return ChartBall(manifold.chart(center.astype(np.float64)), ball.radius)


class FlatSums(NamedTuple):
    """Σ w chart(x), Σ w‖chart(x)‖ and Σ w times the error of chart(x) in units of rounding."""

    total: Array
    size: Array
    rounding: Array


def _added(a: FlatSums, b: FlatSums) -> FlatSums:
    return FlatSums(a.total + b.total, a.size + b.size, a.rounding + b.rounding)


@dataclass(frozen=True)
class _FlatPart:
    """The sums of one block."""

    manifold: FlatManifold
    ball: ChartBall | None

    def __call__(self, _: int, block: Array, weights: Array) -> FlatSums:
        return _chart_sums(self.manifold, block, weights, self.ball)


def _clipped_entries(entries: Sequence[Array], weights: Array, ball: ChartBall) -> Clipped:
    """Σ w clip(y) and Σ w‖clip(y) − c‖ for the coordinates y of records, one array each."""
    xp = namespace(entries[0])
    moved = [entry - float(middle) for entry, middle in zip(entries, ball.center, strict=True)]
    distance = xp.sqrt(sum(entry * entry for entry in moved))
    inside, shares = ball.clip(distance, weights)
    return _around(
        ball, stack_last(*(weighted_sum(entry, shares) for entry in moved)), distance, inside, shares, weights
    )


def _clipped_rows(chart: Array, weights: Array, ball: ChartBall) -> Clipped:
    """The same for coordinates (n, dim) in one array."""
    moved = chart - like(ball.center, chart)
    distance = norm(moved)
    inside, shares = ball.clip(distance, weights)
    return _around(ball, weighted_sum(moved, shares), distance, inside, shares, weights)


def _around(ball: ChartBall, total: Array, distance: Array, inside: Array, shares: Array, weights: Array) -> Clipped:
    """Back from differences to the centre, whose rounding is in units of the radius, not of |c|."""
    center = like(ball.center, total)
    everything = namespace(weights).sum(weights)
    return Clipped(total + everything * center, weighted_sum(distance, shares), inside)


@singledispatch
def _chart_sums(manifold: FlatManifold, block: Array, weights: Array, ball: ChartBall | None) -> FlatSums:
    """The sums of a block, shapes (*batch, dim), batch and batch.

    A record outside of the ball is what was computed for it: any rule will do that puts each record alone into the
    ball, so that the rounding of its chart, unbounded far outside, is no error of the mean.
    """
    chart = manifold.chart(block)
    if ball is not None:
        total, size, _ = _clipped_rows(chart, weights, ball)
        return FlatSums(total, size, 0 * size)
    size = weighted_sum(norm(chart), weights)
    return FlatSums(weighted_sum(chart, weights), size, 0 * size)


@_chart_sums.register
def _(manifold: SPDLogEuclidean, block: Array, weights: Array, ball: ChartBall | None) -> FlatSums:
    """The closed forms for small k move x by less than the 4k²·λ_max units of an eigensolver, of which the logarithm
    makes at most 1/λ_min.
    """
    k = manifold.k
    total, size, spread = (_small_sums if k <= LARGEST_SMALL else _large_sums)(k, block, weights, ball)
    return FlatSums(total, size, 4 * k * k * weighted_sum(spread, weights))


def _small_sums(k: int, block: Array, weights: Array, ball: ChartBall | None) -> tuple[Array, Array, Array]:
    """Sums, and what bounds the rounding of each record's logarithm in units of 4k², 0 for those outside."""
    xp = namespace(block)
    entries = {(i, j): xp.asarray(block[..., i, j], copy=True) for i in range(k) for j in range(i, k)}
    small = positive_log_entries(entries, k)
    coordinates, squared, spread = log_summary(small, k)
    if ball is None:
        total = stack_last(*(weighted_sum(entry, weights) for entry in coordinates))
        return total, weighted_sum(xp.sqrt(squared), weights), spread
    clipped = _clipped_entries(coordinates, weights, ball)
    return clipped.total, clipped.size, xp.where(clipped.inside, spread, 0.0)


def _large_sums(k: int, block: Array, weights: Array, ball: ChartBall | None) -> tuple[Array, Array, Array]:
    """The same for larger matrices."""
    xp = namespace(block)
    logs, spread = positive_matrix_logs(block)
    if ball is None:
        flat = xp.reshape(logs, (*logs.shape[:-2], k * k))
        # no less than Σ w‖log x‖, by Cauchy and Schwarz
        size = xp.sqrt(xp.sum(weights) * weighted_sum(dot(flat, flat), weights))
        return upper_triangle(weighted_sum(logs, weights)), size, spread
    clipped = _clipped_rows(upper_triangle(logs), weights, ball)
    return clipped.total, clipped.size, xp.where(clipped.inside, spread, 0.0)


@_chart_sums.register
def _(manifold: SPDLogCholesky, block: Array, weights: Array, ball: ChartBall | None) -> FlatSums:
    """The factorisation moves x by k·tr(x) units, which moves L by at most ‖L‖·‖x⁻¹‖ times that."""
    xp = namespace(block)
    try:
        factor = xp.linalg.cholesky(block)
        inverse = xp.linalg.inv(factor)
    except np.linalg.LinAlgError:
        raise not_positive() from None
    chart = manifold.chart_of_factor(factor)
    condition = contract(factor, factor) * contract(inverse, inverse)
    error = manifold.k * condition * (1 + xp.sqrt(contract(factor, factor)))
    if ball is None:
        return FlatSums(weighted_sum(chart, weights), weighted_sum(norm(chart), weights), weighted_sum(error, weights))
    total, size, inside = _clipped_rows(chart, weights, ball)
    return FlatSums(total, size, weighted_sum(xp.where(inside, error, 0.0), weights))
