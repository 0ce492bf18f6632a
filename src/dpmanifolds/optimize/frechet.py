"""Fréchet mean and median as losses: the gradients are logarithms and unit vectors.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> from dpmanifolds.optimize import FrechetMedianLoss
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
>>> loss = FrechetMedianLoss(ball)
>>> rows = loss.gradients(ball.center, ball.clip(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])))
>>> np.linalg.norm(rows, axis=1).round(12).tolist()
[1.0, 0.0]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, cast

import numpy as np
from array_api_compat import is_jax_array

from dpmanifolds._arrays import Array, namespace, norm, safe_divide, stack_last, to_numpy, transpose
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import FlatManifold, Manifold, Power, Product, SPDAffineInvariant
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL, log_entries
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.optimize.loss import Loss, clip_factors, in_double, like_point
from dpmanifolds.statistics._device import LogSums, fits_device, log_sums
from dpmanifolds.statistics._positive import log_summary, not_positive, positive_eigen
from dpmanifolds.statistics.records import check_block, record_array

__all__ = ["FrechetMeanLoss", "FrechetMedianLoss", "log_coordinates"]

_MANY = 16


@dataclass(frozen=True)
class _DistanceLoss(Loss):
    """A function of the distance to records that live in a public ball."""

    ball: Ball

    def __post_init__(self) -> None:
        if not isinstance(self.ball, Ball):
            raise ArgumentError(f"ball must be a Ball, the public promise about where records live; got {self.ball!r}.")

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """The manifold of the ball: the parameter lives where the records do."""
        return self.ball.manifold

    def prepare(self, records: Any) -> Array:
        """Each record clipped to the ball."""
        array = record_array(self.manifold, records)
        check_block(self.manifold, array)
        return self.ball.clip(array)


@dataclass(frozen=True)
class FrechetMeanLoss(_DistanceLoss):
    """f(w, x) = ½ρ²(w, x), grad f = −log_w(x), for records clipped to a public ball.

    On a Hadamard manifold log_w is 1-Lipschitz, so every gradient lies within the radius r of a(w) = −log_w(centre), at
    every w and also where a record is left out of a batch: sensitivity 2r/n without bias (Theorem S4, anchored).
    Elsewhere gradients are clipped to 2r around zero, which changes nothing as long as w stays in the ball.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball
    >>> FrechetMeanLoss(Ball(SPD(2), np.eye(2), 1.5)).bound
    1.5
    """

    @property
    def bound(self) -> float:
        return self.ball.radius if self.manifold.is_hadamard else self.ball.diameter

    def anchor(self, w: Array) -> np.ndarray | None:
        if not self.manifold.is_hadamard:
            return None
        return np.asarray(-to_numpy(log_coordinates(self.manifold, w, _one(self.ball.center)))[0])

    def value(self, w: Array, records: Array) -> float:
        distance = self.manifold.dist(like_point(w, records), records)
        return float(namespace(distance).mean(distance * distance)) / 2

    def gradients(self, w: Array, records: Array) -> Array:
        return -log_coordinates(self.manifold, like_point(w, records), records)

    def clipped_sum(self, w: Array, records: Array, clip: float) -> Array:
        if isinstance(self.manifold, SPDAffineInvariant) and self.manifold.k <= LARGEST_SMALL:
            if is_jax_array(records) or fits_device(records, self.manifold.k):
                return self._fused_sum(w, records, clip)
            columns = _small_logs(self.manifold, like_point(w, records), records)
            anchor = np.zeros(len(columns)) if (found := self.anchor(w)) is None else found
            columns = [in_double(column) + float(shift) for column, shift in zip(columns, anchor, strict=True)]
            xp = namespace(columns[0])
            length = xp.sqrt(sum(column * column for column in columns))
            factors = clip_factors(length, clip)
            return -stack_last(*(factors @ column for column in columns))
        return super().clipped_sum(w, records, clip)

    def _fused_sum(self, w: Array, records: Array, clip: float) -> Array:
        """The same by one compiled kernel, in the precision of the records.

        It makes no decision that depends on more than one record: a matrix that it gives up on (its flag is not read)
        gets another row, clipped like any other, and the promise does not notice.
        """
        sums = log_sums(
            records,
            share=1.0,
            whitener=np.linalg.inv(np.linalg.cholesky(w)),
            center=None if (anchor := self.anchor(w)) is None else -anchor,
            radius=clip,
            careful=False,
        )
        return -cast(LogSums, sums).total


@dataclass(frozen=True)
class FrechetMedianLoss(_DistanceLoss):
    """f(w, x) = ρ(w, x), grad f = −log_w(x)/ρ, of length 1 (0 at w = x): C = 1 whatever the radius (Theorem S3).

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.optimize import FrechetMedianLoss
    >>> FrechetMedianLoss(dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5)).bound
    1.0
    """

    @property
    def bound(self) -> float:
        return 1.0

    def value(self, w: Array, records: Array) -> float:
        distance = self.manifold.dist(like_point(w, records), records)
        return float(namespace(distance).mean(distance))

    def gradients(self, w: Array, records: Array) -> Array:
        logs = log_coordinates(self.manifold, like_point(w, records), records)
        return -safe_divide(logs, norm(logs)[..., None])


def _one(point: Any) -> Any:
    return tuple(_one(part) for part in point) if isinstance(point, tuple) else to_numpy(point)[None]


@singledispatch
def log_coordinates(manifold: Manifold, base: Array, points: Array) -> Array:
    """Orthonormal coordinates (n, dim) of log_base(x), by the cheapest way the manifold has."""
    return manifold.to_coordinates(base, manifold.log(base, points))


@log_coordinates.register
def _(manifold: FlatManifold, base: Array, points: Array) -> Array:
    return manifold.chart(points) - manifold.chart(base)


@log_coordinates.register
def _(manifold: SPDAffineInvariant, base: Array, points: Array) -> Array:
    """The logarithm of L⁻¹xL⁻ᵀ, base = LLᵀ: one decomposition per record."""
    xp = namespace(base, points)
    if manifold.k <= LARGEST_SMALL and base.ndim == 2 and points.shape[0] >= _MANY:
        return stack_last(*_small_logs(manifold, base, points))
    whitener = xp.linalg.inv(xp.linalg.cholesky(base))
    values, vectors = positive_eigen(whitener @ points @ transpose(whitener))
    return upper_triangle((vectors * xp.log(values)[..., None, :]) @ transpose(vectors))


@log_coordinates.register
def _(manifold: Power, base: Array, points: Array) -> Array:
    parts = log_coordinates(manifold.manifold, base, points)
    return namespace(parts).reshape(parts, (*parts.shape[:-2], manifold.dim))


@log_coordinates.register
def _(manifold: Product, base: Array, points: Array) -> Array:
    parts = [log_coordinates(*each) for each in zip(manifold.factors, base, points, strict=True)]
    return namespace(*parts).concat(parts, axis=-1)


def _small_logs(manifold: SPDAffineInvariant, base: Array, points: Array) -> list[Array]:
    """The coordinates, one array per coordinate, by closed-form logarithms of k ≤ 3 matrices."""
    xp = namespace(base, points)
    k = manifold.k
    whitener = xp.linalg.inv(xp.linalg.cholesky(base))
    places = [(i, j) for i in range(k) for j in range(i, k)]
    # the entries of MxMᵀ for all records in one product with rows of the Kronecker square of M
    kernel = xp.stack([xp.reshape(whitener[i, :][:, None] * whitener[j, :][None, :], (k * k,)) for i, j in places])
    entries = kernel @ transpose(xp.reshape(points, (-1, k * k)))
    logs = log_entries({place: entries[row, :] for row, place in enumerate(places)}, k)
    if logs is None:
        raise not_positive()
    return log_summary(logs, manifold.k)[0]
