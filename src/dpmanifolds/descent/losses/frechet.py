"""Fréchet mean and median as losses: the gradients are logarithms and unit vectors.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> from dpmanifolds.descent import FrechetMedianLoss
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
>>> loss = FrechetMedianLoss(ball)
>>> rows = loss.gradients(ball.center, ball.clip(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])))
>>> np.linalg.norm(rows, axis=1).round(12).tolist()
[1.0, 0.0]
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, namespace, norm, safe_divide, to_numpy
from dpmanifolds._points import as_block, in_double, leaves, like_parts, map_parts, on_host, replace_rows
from dpmanifolds._validate import shown
from dpmanifolds.descent.losses.loss import Loss, like_point
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.sums.contribution import TangentContribution

__all__ = ["FrechetMeanLoss", "FrechetMedianLoss"]

_INSIDE = 1 - 2.0**-30
"""A clipped record ends up a hair inside, so that rounding (of badly conditioned points too) leaves it there."""


@dataclass(frozen=True)
class _DistanceLoss(Loss):
    """A function of the distance to records that live in a public ball."""

    ball: Ball
    any_company = True

    def __post_init__(self) -> None:
        if not isinstance(self.ball, Ball):
            raise ArgumentError(
                f"ball must be a Ball, the public promise about where records live; got {shown(self.ball)}."
            )

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """The manifold of the ball: the parameter lives where the records do."""
        return self.ball.manifold

    @property
    def record_manifold(self) -> Manifold:  # type: ignore[override]
        """The same."""
        return self.manifold

    @property
    def rules(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the manifold."""
        return self.manifold.rules

    @property
    def filler(self) -> Any:
        """The centre of the ball."""
        return on_host(self.ball.center)

    def form(self, records: Any) -> Array:
        block = in_double(self.manifold.take_form(records))
        axes = self.manifold.batch_shape(block)
        if len(axes) != 1:
            raise ArgumentError(
                f"must have exactly one leading axis of records; got leading axes {axes}.", argument="points"
            )
        return block

    def bring(self, block: Array) -> tuple[Array, Array]:
        """Each record clipped to the ball: coordinates at the centre longer than the radius are shortened to it.

        A record that has none although it keeps all rules stays as it is.
        """
        manifold, center = self.manifold, like_parts(self.filler, block)
        seen, broken = TangentContribution(manifold, self.filler).seen(block)
        xp = namespace(seen)
        length = norm(seen)
        outside = (broken == 0) & (length > self.ball.radius) & (length < math.inf)
        factor = xp.where(outside, self.ball.radius * _INSIDE / length, xp.zeros_like(length))
        inward = xp.where(outside[:, None], factor[:, None] * seen, xp.zeros_like(seen))
        moved = manifold.exp(center, manifold.from_coordinates(center, inward))
        block = replace_rows(replace_rows(block, center, broken > 0), moved, outside)
        return block, broken


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
        return np.asarray(-to_numpy(self.manifold.log_coordinates(w, as_block(self.filler)))[0])

    def value(self, w: Array, records: Array) -> float:
        distance = self.manifold.dist(like_point(w, records), records)
        return float(namespace(distance).mean(distance * distance)) / 2

    def gradients(self, w: Array, records: Array) -> Array:
        return -self.manifold.log_coordinates(like_point(w, records), records)


@dataclass(frozen=True)
class FrechetMedianLoss(_DistanceLoss):
    """f(w, x) = ρ(w, x), grad f = −log_w(x)/ρ, of length 1 (0 at w = x): C = 1 whatever the radius (Theorem S3).

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.descent import FrechetMedianLoss
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
        point = like_point(w, records)
        logs = self.manifold.log_coordinates(point, records)
        pulls = -safe_divide(logs, norm(logs)[..., None])
        # rounding gives a record at w itself some direction
        return namespace(pulls).where(_equal(records, point)[:, None], 0.0, pulls)


def _equal(records: Any, point: Any) -> Array:
    """Which records are the point, bit for bit."""
    equal = map_parts(operator.eq, records, point)
    rows = (namespace(part).reshape(part, (part.shape[0], -1)) for part in leaves(equal))
    return reduce(operator.and_, (namespace(part).all(part, axis=-1) for part in rows))
