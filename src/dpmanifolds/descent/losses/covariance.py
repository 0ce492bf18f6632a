"""The covariance of centred Gaussian records by maximum likelihood on SPD matrices.

>>> import numpy as np
>>> from dpmanifolds.descent import GaussianCovarianceLoss
>>> loss = GaussianCovarianceLoss(k=2)
>>> loss.gradients(np.eye(2), np.array([[2.0, 0.0]])).tolist()
[[-1.5, 0.5, 0.0]]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, eye, namespace, transpose
from dpmanifolds._points import has_parts
from dpmanifolds._validate import positive_integer
from dpmanifolds.descent.losses.loss import Loss, like_point, row_product
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold, SPDAffineInvariant
from dpmanifolds.manifolds._symmetric import upper_triangle

__all__ = ["GaussianCovarianceLoss"]


@dataclass(frozen=True)
class GaussianCovarianceLoss(Loss):
    """f(Σ, x) = ½(log det Σ + xᵀΣ⁻¹x), geodesically convex in the affine-invariant metric.

    grad f = ½(Σ − xxᵀ); with Σ = LLᵀ and y = L⁻¹x its coordinates are those of ½(I − yyᵀ), of squared length
    ¼(k − 2|y|² + |y|⁴). It grows with |y|²: give `clip`. At the true Σ a typical length is k/2.

    >>> import numpy as np
    >>> from dpmanifolds.descent import GaussianCovarianceLoss
    >>> loss = GaussianCovarianceLoss(k=2)
    >>> loss.value(np.eye(2), np.array([[2.0, 0.0]])), loss.manifold
    (2.0, SPD(2, metric='affine-invariant'))
    """

    k: int
    any_company = True

    def __post_init__(self) -> None:
        positive_integer("k", self.k)

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """SPD(k) with the affine-invariant metric."""
        return SPDAffineInvariant(self.k)

    @property
    def filler(self) -> np.ndarray:
        return np.zeros(self.k)

    def form(self, records: Any) -> Array:
        array = super().form(records)
        if has_parts(array) or array.ndim != 2 or array.shape[1] != self.k:
            raise ArgumentError(f"records must be vectors of shape (n, {self.k}).")
        return array

    def value(self, w: Array, records: Array) -> float:
        xp = namespace(records)
        factor, seen = _whitened(w, records)
        half_log_det = float(xp.sum(xp.log(xp.linalg.diagonal(factor))))
        return half_log_det + float(xp.sum(seen * seen) / (2 * records.shape[0]))

    def gradients(self, w: Array, records: Array) -> Array:
        _, seen = _whitened(w, records)
        return upper_triangle((eye(self.k, seen) - seen[:, :, None] * seen[:, None, :]) / 2)


def _whitened(w: Array, records: Array) -> tuple[Array, Array]:
    """L and the rows L⁻¹x, w = LLᵀ."""
    xp = namespace(records)
    factor = xp.linalg.cholesky(like_point(w, records))
    return factor, row_product(records, transpose(xp.linalg.inv(factor)))
