"""Losses of distances on a manifold: the Fréchet mean, the Fréchet median and geodesic regression.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> from dpmanifolds.descent.losses import FrechetMedianLoss
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

from dpmanifolds._arrays import Array, dot, namespace, norm, safe_divide, sinc, sinhc, to_numpy
from dpmanifolds._points import as_block, in_double, leaves, like_parts, map_parts, on_host, replace_rows
from dpmanifolds._validate import shown
from dpmanifolds.descent.losses.loss import Loss, like_point
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Manifold, Power
from dpmanifolds.sums.contribution import TangentContribution

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
    def domain(self) -> Domain:
        return self.ball

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

    statistic = "mean"

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
    >>> from dpmanifolds.descent.losses import FrechetMedianLoss
    >>> FrechetMedianLoss(dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5)).bound
    1.0
    """

    statistic = "median"

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


@dataclass(frozen=True)
class GeodesicRegressionLoss(Loss):
    """f((a, b), (t, y)) = ½ρ²(γ(t), y) for records (t, y), t in [0, 1], γ the geodesic from a to b.

    The parameter is the pair of end points, a point of M × M (`Power(M, 2)`): unlike a point and a velocity it needs no
    metric on the tangent bundle. Spheres, hyperbolic spaces and flat spaces, where Jacobi fields are closed.

    Moving a by u moves γ(t) by the Jacobi field with J(0) = u, J(1) = 0: parallel along γ, times 1 − t in the direction
    of γ and s((1−t)ℓ)/s(ℓ) across it, ℓ the length of γ and s = sin(√κ·), sinh(√−κ·) or the identity; so b with t.
    The gradient is that map's transpose applied to −log_γ(t) y. Its length has no public bound unless responses and
    iterates stay in a ball: give `clip_norm`. Covariates are clipped to [0, 1]: scale them by a public range.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.descent.losses import GeodesicRegressionLoss
    >>> loss = GeodesicRegressionLoss(Euclidean(1))
    >>> loss.value(np.array([[0.0], [2.0]]), (np.array([0.5]), np.array([[3.0]])))  # ½(3 − 1)²
    2.0
    """

    response: Manifold
    any_company = True

    def __post_init__(self) -> None:
        if not self.response.is_model_space:
            raise NotAvailableError(
                f"geodesic regression is offered on spheres, hyperbolic and flat spaces; got {self.response!r}, whose "
                "Jacobi fields are not of one factor. Use SPD(k, metric='log-euclidean') for matrices."
            )

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """Pairs of end points."""
        return Power(self.response, 2)

    @property
    def rules(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the responses, and of covariates."""
        return (*self.response.rules, "covariates must be finite")

    @property
    def filler(self) -> Any:
        """A public response, in the middle of the time."""
        return np.asarray(0.5), self.response.random_point(rng=0)

    def form(self, records: Any) -> Array:
        """(t, y): covariates (n,) and responses (n, *point)."""
        if not isinstance(records, (tuple, list)) or len(records) != 2:
            raise ArgumentError("records must be a pair (covariates, responses).")
        responses = in_double(self.response.take_form(records[1]))
        (covariates,) = super().form((records[0],))
        if self.response.batch_shape(responses) != tuple(covariates.shape) or covariates.ndim != 1:
            raise ArgumentError(
                f"covariates must have shape ({responses.shape[0]},), one per response; got {tuple(covariates.shape)}."
            )
        return covariates, responses

    def bring(self, block: Array) -> tuple[Array, Array]:
        """Covariates cut to [0, 1]; `filler` also in place of responses that are out of reach of floating point."""
        covariates, responses = block
        seen, broken = TangentContribution(self.response, self.filler[1]).seen(responses)
        xp = namespace(covariates)
        broken = xp.where((broken == 0) & ~xp.isfinite(covariates), len(self.rules), broken)
        lost = (broken > 0) | ~xp.all(xp.isfinite(seen), axis=-1)
        covariates, responses = replace_rows(block, like_parts(self.filler, block), lost)
        return (xp.clip(covariates, 0.0, 1.0), responses), broken

    def value(self, w: Array, records: Array) -> float:
        times, responses = records
        a, b = _ends(w, responses)
        distance = self.response.dist(self.response.geodesic(a, b, times), responses)
        return float(namespace(distance).mean(distance * distance)) / 2

    def gradients(self, w: Array, records: Array) -> Array:
        times, responses = records
        a, b = _ends(w, responses)
        xp = namespace(responses)
        fitted = self.response.geodesic(a, b, times)
        pull = self.response.log(fitted, responses)
        parts = []
        for end, share in ((a, 1 - times), (b, times)):
            other = b if end is a else a
            towards = self.response.to_coordinates(end, self.response.log(end, other))
            length = norm(towards)
            seen = self.response.to_coordinates(end, self.response.transport(fitted, end, pull))
            unit = safe_divide(towards, length)
            along = dot(seen, unit)[:, None] * unit
            parts.append(-(share[:, None] * along + self._across(share, length)[:, None] * (seen - along)))
        return xp.concat(parts, axis=-1)

    def _across(self, share: Array, length: Array) -> Array:
        """s(share·ℓ)/s(ℓ)."""
        curvature, _ = self.response.curvature_bounds
        if curvature == 0:
            return share
        angle = length / (1 / math.sqrt(abs(curvature)))
        ratio = sinc if curvature > 0 else sinhc
        return share * ratio(share * angle) / ratio(angle)


def _ends(w: Array, responses: Array) -> tuple[Array, Array]:
    ends = like_point(w, responses)
    return ends[0, ...], ends[1, ...]
