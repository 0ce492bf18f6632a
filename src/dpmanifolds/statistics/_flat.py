"""Means in spaces that are flat after a change of variables: one pass, no iteration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple, cast

import numpy as np

from dpmanifolds._arrays import Array, contract, dot, eps, like, namespace, norm, stack_last
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import FlatManifold, SPDLogCholesky, SPDLogEuclidean
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.statistics._linearize import weighted_sum
from dpmanifolds.statistics._positive import log_summary, not_positive, positive_log_entries, positive_matrix_logs
from dpmanifolds.statistics.kernels.device import fits_device, log_sums, longest_device_sum
from dpmanifolds.statistics.streaming import Records

__all__ = ["flat_mean"]


def flat_mean(records: Records) -> tuple[Array, float]:
    """chart⁻¹(Σ w chart(x)), and a bound on its rounding error (ℓ2 over the copies of a power)."""
    manifold = cast(FlatManifold, records.manifold.single)
    known = records.source.count is not None
    fused = _device_sums(manifold, records)
    total, size, rounding = fused or records.reduce(_FlatPart(manifold), _added)
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


def _device_sums(manifold: FlatManifold, records: Records) -> FlatSums | None:
    """The sums by a fused kernel, where there is one; None sends malformed records on to the checks elsewhere."""
    array = getattr(records.source, "array", None)
    if not isinstance(manifold, SPDLogEuclidean) or not fits_device(array, manifold.k):
        return None
    sums = log_sums(array, records.weights)
    return None if sums is None else FlatSums(sums.total, sums.size, 4 * manifold.k**2 * sums.spread)


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

    def __call__(self, _: int, block: Array, weights: Array) -> FlatSums:
        return _chart_sums(self.manifold, block, weights)


@singledispatch
def _chart_sums(manifold: FlatManifold, block: Array, weights: Array) -> FlatSums:
    """The sums of a block, shapes (*batch, dim), batch and batch."""
    chart = manifold.chart(block)
    size = weighted_sum(norm(chart), weights)
    return FlatSums(weighted_sum(chart, weights), size, 0 * size)


@_chart_sums.register
def _(manifold: SPDLogEuclidean, block: Array, weights: Array) -> FlatSums:
    """The closed forms for small k move x by less than the 4k²·λ_max units of an eigensolver, of which the logarithm
    makes at most 1/λ_min.
    """
    k = manifold.k
    total, size, spread = (_small_sums if k <= LARGEST_SMALL else _large_sums)(k, block, weights)
    return FlatSums(total, size, 4 * k * k * weighted_sum(spread, weights))


def _small_sums(k: int, block: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Sums, and what bounds the rounding of each record's logarithm in units of 4k²."""
    xp = namespace(block)
    entries = {(i, j): xp.asarray(block[..., i, j], copy=True) for i in range(k) for j in range(i, k)}
    small = positive_log_entries(entries, k)
    coordinates, squared, spread = log_summary(small, k)
    total = stack_last(*(weighted_sum(entry, weights) for entry in coordinates))
    return total, weighted_sum(xp.sqrt(squared), weights), spread


def _large_sums(k: int, block: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The same for larger matrices."""
    xp = namespace(block)
    logs, spread = positive_matrix_logs(block)
    flat = xp.reshape(logs, (*logs.shape[:-2], k * k))
    # no less than Σ w‖log x‖, by Cauchy and Schwarz
    size = xp.sqrt(xp.sum(weights) * weighted_sum(dot(flat, flat), weights))
    return upper_triangle(weighted_sum(logs, weights)), size, spread


@_chart_sums.register
def _(manifold: SPDLogCholesky, block: Array, weights: Array) -> FlatSums:
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
    return FlatSums(weighted_sum(chart, weights), weighted_sum(norm(chart), weights), weighted_sum(error, weights))
