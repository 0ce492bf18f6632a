"""Symmetric positive definite matrices: what the metrics share, and the door to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, sym, transpose
from dpmanifolds._validate import choice, positive_integer
from dpmanifolds.manifolds._derivatives import differentiated_by, frozen
from dpmanifolds.manifolds._symmetric import apply_function, from_upper_triangle
from dpmanifolds.manifolds.base import Manifold, default_tolerance, normal_array

__all__ = ["SPD", "SPDBase"]

METRICS = ("affine-invariant", "log-euclidean", "log-cholesky")


class SPDBase(Manifold):
    """k×k symmetric positive definite matrices; tangent vectors are symmetric matrices."""

    metric: str
    rules = ("all numbers must be finite", "matrices must be symmetric", "matrices must be positive definite")

    def __init__(self, k: int) -> None:
        self.k = positive_integer("k", k)
        self.dim = self.k * (self.k + 1) // 2
        self.point_shape = (self.k, self.k)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.k,)

    def __repr__(self) -> str:
        return f"SPD({self.k}, metric={self.metric!r})"

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        """Symmetric up to the tolerance and with all eigenvalues above rounding error."""
        xp = namespace(point)
        finite = xp.all(xp.isfinite(point), axis=(-2, -1))
        safe = xp.where(finite[..., None, None], point, xp.zeros_like(point))
        size = xp.max(xp.abs(safe), axis=(-2, -1))
        skew = xp.max(xp.abs(safe - transpose(safe)), axis=(-2, -1))
        smallest = xp.linalg.eigvalsh(sym(safe))[..., 0]
        floor = self.k * float(xp.finfo(point.dtype).eps) * size
        return finite & (skew <= default_tolerance(point, tolerance) * size) & (smallest > floor)

    def broken_rule(self, points: Array) -> Array:
        """Finite and symmetric; that it is positive shows in the decomposition that the statistic needs anyway."""
        xp = namespace(points)
        size = xp.max(xp.abs(points), axis=(-2, -1))
        skew = xp.max(xp.abs(points - transpose(points)), axis=(-2, -1))
        symmetric = skew <= default_tolerance(points, None) * size
        finite = xp.all(xp.isfinite(points), axis=(-2, -1))
        return xp.where(finite, xp.where(symmetric, 0, 2), 1)

    @differentiated_by("_smooth_project")
    def project(self, point: Array) -> Array:
        """The symmetric part with eigenvalues raised to at least 16·k·eps times the largest."""
        return apply_function(sym(point), self._raised)

    def _raised(self, values: Array) -> Array:
        xp = namespace(values)
        largest = xp.max(xp.abs(values), axis=-1, keepdims=True)
        floor = xp.broadcast_to(16 * self.k * float(xp.finfo(values.dtype).eps) * largest, values.shape)
        return xp.where(values < floor, floor, values)

    def _smooth_project(self, point: Array) -> Array:
        """The symmetric part itself where nothing is raised."""
        xp = namespace(point)
        values = xp.linalg.eigvalsh(frozen(sym(point)))
        low = xp.any(self._raised(values) > values, axis=-1)[..., None, None]
        other = like(np.diag(np.arange(1.0, self.k + 1)), point)
        return xp.where(low, apply_function(xp.where(low, sym(point), other), self._raised), sym(point))

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return sym(vector)

    def _random_symmetric(self, size: tuple[int, ...] | int, rng: Any) -> Array:
        return from_upper_triangle(normal_array(rng, size, (self.dim,)), self.k)


def SPD(k: int, metric: str = "affine-invariant") -> SPDBase:
    """The manifold of k×k symmetric positive definite matrices with one of three metrics.

    "affine-invariant" (Fisher–Rao, curved, unchanged by any change of basis), "log-euclidean" (flat, through the
    matrix logarithm, unchanged by rotations and scaling) or "log-cholesky" (flat, through the Cholesky factor).

    >>> from dpmanifolds import SPD
    >>> SPD(3, metric="log-euclidean").dim
    6
    """
    choice("metric", metric, METRICS)
    if metric == "affine-invariant":
        from dpmanifolds.manifolds.spd_affine_invariant import SPDAffineInvariant

        return SPDAffineInvariant(k)
    if metric == "log-euclidean":
        from dpmanifolds.manifolds.spd_log_euclidean import SPDLogEuclidean

        return SPDLogEuclidean(k)
    from dpmanifolds.manifolds.spd_log_cholesky import SPDLogCholesky

    return SPDLogCholesky(k)
