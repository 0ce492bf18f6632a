"""Losses of vectors: leading eigenvectors and subspaces of the second moment (1/n)Σxxᵀ, covariances of Gaussians.

>>> import numpy as np
>>> from dpmanifolds.descent.losses import EigenvectorLoss
>>> loss = EigenvectorLoss(dimension=3, radius=1.0)
>>> loss.manifold, loss.bound
(Sphere(2, 1.0), 1.0)
>>> loss.value(np.array([1.0, 0.0, 0.0]), np.array([[0.6, 0.8, 0.0]]))
-0.36

Centre records by a public (or privately released) mean first if the covariance is wanted. For eigenvectors and
subspaces they are shortened to a public norm `radius` R. The gradient of a record is an outer product, so its integers
are two short vectors and no row is ever formed (`sums.outer`). Noise is added to the ambient matrix and projected with
it: isotropic noise stays so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, eye, namespace, norm, transpose
from dpmanifolds._points import has_parts
from dpmanifolds._validate import positive_integer, positive_number, real_numbers
from dpmanifolds.descent.losses.loss import Loss, OuterLoss, clip_factors, like_point, row_product
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Grassmann, Manifold, SPDAffineInvariant, Sphere, Stiefel
from dpmanifolds.manifolds._symmetric import upper_triangle


class _VectorLoss(Loss):
    """Records are vectors."""

    any_company = True

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers a record has."""

    @property
    def filler(self) -> np.ndarray:
        return np.zeros(self.width)

    def form(self, records: Any) -> Array:
        array = super().form(records)
        if has_parts(array) or array.ndim != 2 or array.shape[1] != self.width:
            raise ArgumentError(f"records must have shape (n, {self.width}).")
        return real_numbers("records", array)


class _SecondMomentLoss(_VectorLoss, OuterLoss):
    """They are shortened to a public norm."""

    radius: float

    @property
    def width(self) -> int:
        return self.shape[0]

    def bring(self, block: Array) -> tuple[Array, Array]:
        block, broken = super().bring(block)
        return block * clip_factors(norm(block), self.radius)[:, None], broken

    def coordinates(self, w: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        frame = w.reshape(self.shape)
        across = matrix - frame @ (frame.T @ matrix)
        return np.asarray(self.manifold.to_coordinates(w, across.reshape(w.shape)))


@dataclass(frozen=True)
class EigenvectorLoss(_SecondMomentLoss):
    """f(w, x) = −(xᵀw)² on the unit sphere: its minimum is the leading eigenvector of the second moment.

    grad f = −2(xᵀw)(x − (xᵀw)w), of length 2ab with a² + b² = |x|², so at most R².

    >>> import numpy as np
    >>> from dpmanifolds.descent.losses import EigenvectorLoss
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

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.dimension, 1

    def value(self, w: Array, records: Array) -> float:
        along = records @ like_point(w, records)
        return -float(namespace(along).mean(along * along))

    def gradients(self, w: Array, records: Array) -> Array:
        point = like_point(w, records)
        along = row_product(records, point)[:, None]
        return self.manifold.to_coordinates(point, -2 * along * (records - along * point))

    def factors(self, w: np.ndarray, records: Array, product: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
        """x − (xᵀw)w and −2xᵀw."""
        point = like_point(w, records)
        along = product(records, point)[:, None]
        return records - along * point, -2 * along


@dataclass(frozen=True)
class PCALoss(_SecondMomentLoss):
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

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.manifold.n, self.manifold.p

    def value(self, w: Array, records: Array) -> float:
        inside = records @ like_point(w, records)
        return -float(namespace(inside).sum(inside * inside) / (2 * records.shape[0]))

    def gradients(self, w: Array, records: Array) -> Array:
        frame = like_point(w, records)
        inside = row_product(records, frame)
        outside = records - row_product(inside, transpose(frame))
        return self.manifold.to_coordinates(frame, -outside[:, :, None] * inside[:, None, :])

    def factors(self, w: np.ndarray, records: Array, product: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
        """x − WWᵀx and −Wᵀx."""
        frame = like_point(w, records)
        inside = product(records, frame)
        return records - product(inside, transpose(frame)), -inside


@dataclass(frozen=True)
class GaussianCovarianceLoss(_VectorLoss):
    """f(Σ, x) = ½(log det Σ + xᵀΣ⁻¹x), geodesically convex in the affine-invariant metric.

    grad f = ½(Σ − xxᵀ); with Σ = LLᵀ and y = L⁻¹x its coordinates are those of ½(I − yyᵀ), of squared length
    ¼(k − 2|y|² + |y|⁴). It grows with |y|²: give `clip_norm`. At the true Σ a typical length is k/2.

    >>> import numpy as np
    >>> from dpmanifolds.descent.losses import GaussianCovarianceLoss
    >>> loss = GaussianCovarianceLoss(k=2)
    >>> loss.value(np.eye(2), np.array([[2.0, 0.0]])), loss.manifold
    (2.0, SPD(2, metric='affine-invariant'))
    """

    k: int

    def __post_init__(self) -> None:
        positive_integer("k", self.k)

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """SPD(k) with the affine-invariant metric."""
        return SPDAffineInvariant(self.k)

    @property
    def width(self) -> int:
        return self.k

    def value(self, w: Array, records: Array) -> float:
        xp = namespace(records)
        factor, seen = _whiten(w, records)
        half_log_det = float(xp.sum(xp.log(xp.linalg.diagonal(factor))))
        return half_log_det + float(xp.sum(seen * seen) / (2 * records.shape[0]))

    def gradients(self, w: Array, records: Array) -> Array:
        _, seen = _whiten(w, records)
        return upper_triangle((eye(self.k, seen) - seen[:, :, None] * seen[:, None, :]) / 2)


def _whiten(w: Array, records: Array) -> tuple[Array, Array]:
    """L and the rows L⁻¹x, w = LLᵀ."""
    xp = namespace(records)
    factor = xp.linalg.cholesky(like_point(w, records))
    return factor, row_product(records, transpose(xp.linalg.inv(factor)))
