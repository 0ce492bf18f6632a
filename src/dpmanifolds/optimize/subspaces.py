"""Leading eigenvectors and subspaces of the second moment (1/n)Σxxᵀ, as losses on the sphere, Grassmann and Stiefel.

>>> import numpy as np
>>> from dpmanifolds.optimize import EigenvectorLoss
>>> loss = EigenvectorLoss(dimension=3, radius=1.0)
>>> loss.manifold, loss.bound
(Sphere(2, 1.0), 1.0)
>>> loss.value(np.array([1.0, 0.0, 0.0]), np.array([[0.6, 0.8, 0.0]]))
-0.36

Records are vectors, shortened to a public norm `radius` R. Centre them by a public (or privately released) mean first
if the covariance is wanted. Gradients are summed in matrix products; no gradient of a single record is ever formed.
At a clip norm C no smaller than the proven bound there is nothing to clip, and their lengths are not computed either:
prepared records have norm ≤ R up to rounding, which the slack in the sensitivity covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, dot, eps, namespace, norm, transpose
from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Grassmann, Manifold, Sphere, Stiefel
from dpmanifolds.optimize.loss import Loss, clip_factors, in_double, like_point

__all__ = ["EigenvectorLoss", "PCALoss", "bounded_vectors"]


def bounded_vectors(records: Array, dimension: int, radius: float) -> Array:
    """Records (n, dimension), each shortened to the norm `radius`, or an error that names no record."""
    if records.ndim != 2 or records.shape[1] != dimension:
        raise ArgumentError(f"records must have shape (n, {dimension}); got {tuple(records.shape)}.")
    if records.shape[0] == 0:
        raise ArgumentError("records is empty: at least one record is needed.")
    xp = namespace(records)
    if not bool(xp.all(xp.isfinite(records))):
        raise NotOnManifoldError("records must be finite numbers; clean or drop the affected ones first.")
    return records * clip_factors(norm(records), radius)[:, None]


def _distance_above(records: Array, captured: Array) -> Array:
    """√(|x|² − captured), an upper bound: what cancels is added back, so that no gradient escapes the clip."""
    xp = namespace(records)
    square = dot(records, records)
    slack = 8 * records.shape[1] * eps(records) * square
    return xp.sqrt(xp.maximum(square - captured, xp.zeros_like(square)) + slack)


@dataclass(frozen=True)
class EigenvectorLoss(Loss):
    """f(w, x) = −(xᵀw)² on the unit sphere: its minimum is the leading eigenvector of the second moment.

    grad f = −2(xᵀw)(x − (xᵀw)w), of length 2ab with a² + b² = |x|², so at most R².

    >>> import numpy as np
    >>> from dpmanifolds.optimize import EigenvectorLoss
    >>> loss = EigenvectorLoss(dimension=2, radius=1.0)
    >>> loss.gradients(np.array([1.0, 0.0]), np.array([[0.6, 0.8]])).round(6).tolist()
    [[-0.96]]
    """

    dimension: int
    radius: float

    def __post_init__(self) -> None:
        positive_integer("dimension", self.dimension, at_least=2)
        positive_number("radius", self.radius)

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """The unit sphere of R^dimension."""
        return Sphere(self.dimension - 1)

    @property
    def bound(self) -> float:
        return self.radius**2

    def magnitude(self, clip: float) -> float:
        """2|xᵀw|·|x| for the two products that are summed, before they cancel."""
        return 4 * self.radius**2

    def prepare(self, records: Any) -> Array:
        return bounded_vectors(super().prepare(records), self.dimension, self.radius)

    def value(self, w: Array, records: Array) -> float:
        along = records @ like_point(w, records)
        return -float(namespace(along).mean(along * along))

    def gradients(self, w: Array, records: Array) -> Array:
        point = like_point(w, records)
        along = (records @ point)[:, None]
        return self.manifold.to_coordinates(point, -2 * along * (records - along * point))

    def clipped_sum(self, w: Array, records: Array, clip: float) -> Array:
        return self.manifold.to_coordinates(like_point(w, in_double(records)), self.block_sum(w, records, clip))

    def finished(self, w: Array, total: np.ndarray) -> np.ndarray:
        return np.asarray(self.manifold.to_coordinates(w, total))

    def block_sum(self, w: Array, records: Array, clip: float) -> Array:
        """Ambient: coordinates once per step, not once per block."""
        records = in_double(records)
        point = like_point(w, records)
        along = shares = records @ point
        if clip < self.bound:
            lengths = 2 * namespace(along).abs(along) * _distance_above(records, along * along)
            shares = clip_factors(lengths, clip) * along
        return -2 * (shares @ records - (shares @ along) * point)


@dataclass(frozen=True)
class PCALoss(Loss):
    """f(W, x) = −½|Wᵀx|² on p-dimensional subspaces (Grassmann) or frames (Stiefel): principal subspaces.

    grad f = −(I − WWᵀ)x(Wᵀx)ᵀ in both metrics, of length |Wᵀx|·|x − WWᵀx| ≤ R²/2.

    >>> from dpmanifolds import Grassmann
    >>> PCALoss(Grassmann(10, 2), radius=1.0).bound
    0.5
    """

    manifold: Grassmann | Stiefel
    radius: float

    def __post_init__(self) -> None:
        if not isinstance(self.manifold, (Grassmann, Stiefel)):
            raise ArgumentError(f"PCALoss needs Grassmann(n, p) or Stiefel(n, p); got {self.manifold!r}.")
        positive_number("radius", self.radius)

    @property
    def bound(self) -> float:
        return self.radius**2 / 2

    def magnitude(self, clip: float) -> float:
        return 2 * self.radius**2

    def prepare(self, records: Any) -> Array:
        return bounded_vectors(super().prepare(records), self.manifold.n, self.radius)

    def value(self, w: Array, records: Array) -> float:
        inside = records @ like_point(w, records)
        return -float(namespace(inside).sum(inside * inside) / (2 * records.shape[0]))

    def gradients(self, w: Array, records: Array) -> Array:
        frame = like_point(w, records)
        inside = records @ frame
        outside = records - inside @ transpose(frame)
        return self.manifold.to_coordinates(frame, -outside[:, :, None] * inside[:, None, :])

    def clipped_sum(self, w: Array, records: Array, clip: float) -> Array:
        return self.manifold.to_coordinates(like_point(w, in_double(records)), self.block_sum(w, records, clip))

    def finished(self, w: Array, total: np.ndarray) -> np.ndarray:
        return np.asarray(self.manifold.to_coordinates(w, total))

    def block_sum(self, w: Array, records: Array, clip: float) -> Array:
        """Ambient: coordinates once per step, not once per block."""
        records = in_double(records)
        frame = like_point(w, records)
        inside = shares = records @ frame
        if clip < self.bound:
            lengths = norm(inside) * _distance_above(records, dot(inside, inside))
            shares = clip_factors(lengths, clip)[:, None] * inside
        total = transpose(records) @ shares
        return frame @ (transpose(frame) @ total) - total
