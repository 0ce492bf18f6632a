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
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, namespace, norm, safe_divide, to_numpy
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.optimize.loss import Loss, like_point
from dpmanifolds.statistics.records import check_block, record_array

__all__ = ["FrechetMeanLoss", "FrechetMedianLoss"]


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
        return np.asarray(-to_numpy(self.manifold.log_coordinates(w, _one(self.ball.center)))[0])

    def value(self, w: Array, records: Array) -> float:
        distance = self.manifold.dist(like_point(w, records), records)
        return float(namespace(distance).mean(distance * distance)) / 2

    def gradients(self, w: Array, records: Array) -> Array:
        return -self.manifold.log_coordinates(like_point(w, records), records)


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
        logs = self.manifold.log_coordinates(like_point(w, records), records)
        return -safe_divide(logs, norm(logs)[..., None])


def _one(point: Any) -> Any:
    return tuple(_one(part) for part in point) if isinstance(point, tuple) else to_numpy(point)[None]


