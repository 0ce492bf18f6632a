"""Means in spaces that are flat after a change of variables: one pass, no iteration."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from dpmanifolds._arrays import Array, contract, eps, namespace, norm, stack_last
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import FlatManifold, SPDLogCholesky, SPDLogEuclidean
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL, log_entries
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.statistics.blocks import longest_sum, map_blocks
from dpmanifolds.statistics._linearize import spectral_sum, spread_weights, weighted_sum
from dpmanifolds.statistics._positive import log_summary, not_positive, positive_eigen
from dpmanifolds.statistics.records import check_block

__all__ = ["flat_mean"]


def flat_mean(manifold: FlatManifold, points: Array, weights: Array) -> tuple[Array, float]:
    """chart⁻¹(Σ w chart(x)), and a bound on its rounding error (ℓ2 over the copies of a power)."""

    terms = longest_sum(points)

    def block_sums(_: int, block: Array, block_weights: Array) -> tuple[Array, Array]:
        check_block(manifold, block)
        return _chart_sums(manifold, block, block_weights, terms)

    total: Array = 0.0
    rounding: Array = 0.0
    for part, part_rounding in map_blocks(block_sums, points, weights):
        total = total + part
        rounding = rounding + part_rounding
    xp = namespace(total)
    if not bool(xp.all(xp.isfinite(total))):
        raise NotOnManifoldError(
            "the records lead to numbers that are not finite; check them with dpmanifolds.validate."
        )
    return manifold.inverse_chart(total), eps(total) * float(xp.sqrt(xp.sum(rounding * rounding)))


@singledispatch
def _chart_sums(manifold: FlatManifold, block: Array, weights: Array, terms: int) -> tuple[Array, Array]:
    """Σ w chart(x) and Σ w·(error of chart(x) and of the sum, in units of rounding), shapes (*batch, dim) and batch.

    A sum of `terms` numbers in any order is off by at most that many units of their mean size.
    """
    chart = manifold.chart(block)
    return weighted_sum(chart, weights), terms * weighted_sum(norm(chart), weights)


@_chart_sums.register
def _(manifold: SPDLogEuclidean, block: Array, weights: Array, terms: int) -> tuple[Array, Array]:
    """The eigensolver moves x by 4k²·λ_max units, the logarithm multiplies that by at most 1/λ_min."""
    xp = namespace(block)
    k = manifold.k
    if k <= LARGEST_SMALL:
        entries = {(i, j): xp.asarray(block[..., i, j], copy=True) for i in range(k) for j in range(i, k)}
        small = log_entries(entries, k)
        if small is None:
            raise not_positive()
        coordinates, squared, spread = log_summary(small, k)
        total = stack_last(*(weighted_sum(entry, weights) for entry in coordinates))
        size = xp.sqrt(squared)
    else:
        values, vectors = positive_eigen(block)
        logs = xp.log(values)
        weighted_logs = spread_weights(weights, logs.ndim) * logs
        total = upper_triangle(spectral_sum(vectors, weighted_logs))
        spread = values[..., -1] / values[..., 0]
        size = norm(logs)
    return total, weighted_sum(4 * k * k * spread + terms * size, weights)


@_chart_sums.register
def _(manifold: SPDLogCholesky, block: Array, weights: Array, terms: int) -> tuple[Array, Array]:
    """The factorisation moves x by k·tr(x) units, which moves L by at most ‖L‖·‖x⁻¹‖ times that."""
    xp = namespace(block)
    try:
        factor = xp.linalg.cholesky(block)
        inverse = xp.linalg.inv(factor)
    except np.linalg.LinAlgError:
        raise not_positive() from None
    chart = manifold.chart_of_factor(factor)
    condition = contract(factor, factor) * contract(inverse, inverse)
    error = manifold.k * condition * (1 + xp.sqrt(contract(factor, factor))) + terms * norm(chart)
    return weighted_sum(chart, weights), weighted_sum(error, weights)
