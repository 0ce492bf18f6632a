"""Geodesic regression: a response on a manifold that moves along a geodesic with a covariate in [0, 1].

>>> import numpy as np
>>> from dpmanifolds import Sphere
>>> from dpmanifolds.descent import GeodesicRegressionLoss
>>> loss = GeodesicRegressionLoss(Sphere(2))
>>> ends = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
>>> halfway = np.array([[np.sqrt(0.5), 0.0, np.sqrt(0.5)]])
>>> bool(np.allclose(loss.gradients(ends, (np.array([0.5]), halfway)), 0.0))
True

The parameter is the pair of end points (a, b) of γ, a point of M × M (`Power(M, 2)`): unlike a point and a velocity it
needs no metric on the tangent bundle. f((a,b), (t,y)) = ½ρ²(γ(t), y), γ the geodesic with γ(0) = a, γ(1) = b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, dot, namespace, norm, safe_divide, sinc, sinhc
from dpmanifolds._points import in_double, like_parts, replace_rows
from dpmanifolds.descent.losses.loss import Loss, like_point
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Manifold, Power
from dpmanifolds.sums.contribution import TangentContribution

__all__ = ["GeodesicRegressionLoss"]


@dataclass(frozen=True)
class GeodesicRegressionLoss(Loss):
    """½ρ²(γ(t), y) for records (t, y); spheres, hyperbolic spaces and flat spaces, where Jacobi fields are closed.

    Moving a by u moves γ(t) by the Jacobi field with J(0) = u, J(1) = 0: parallel along γ, times 1 − t in the direction
    of γ and s((1−t)ℓ)/s(ℓ) across it, ℓ the length of γ and s = sin(√κ·), sinh(√−κ·) or the identity; so b with t.
    The gradient is that map's transpose applied to −log_γ(t) y. Its length has no public bound unless responses and
    iterates stay in a ball: give `clip`. Covariates are clipped to [0, 1]: scale them by a public range.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.descent import GeodesicRegressionLoss
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
