"""Logistic regression: weights that tell classes of vectors apart, with a bound on what one record can do to them.

>>> import numpy as np
>>> from dpmanifolds.descent.losses import LogisticLoss
>>> loss = LogisticLoss(features=2, classes=2, radius=2.0)
>>> loss.manifold, round(loss.bound, 6)  # two weights and an intercept; √(2² + 1²)
(Euclidean(3), 2.236068)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, norm
from dpmanifolds._points import has_parts
from dpmanifolds._validate import number_between, positive_integer, positive_number, real_numbers
from dpmanifolds.descent.losses.loss import Loss, clip_factors, like_point, row_product
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean, Manifold

_LEAST, _MOST = 1e-50, 1e50  # of the radius, whose square is in the curvature of the loss


@dataclass(frozen=True, eq=False)
class LogisticLoss(Loss):
    """f(w, (x, y)) = −log P(y | x) + (λ/2)|w − w₀|², P logistic for two classes, softmax for more.

    Records are pairs of vectors (n, features) and numbers (n,) of classes, 0 to `classes` − 1; −1 is of no class and
    pulls nowhere. Vectors x are shortened to a public norm `radius` R, and carry a constant c = R/2 for the intercept:
    z = (x, c). Two classes have one vector w of weights, and grad f = (σ(w·z) − y)z + λ(w − w₀), |σ − y| ≤ 1; more have
    one each, and grad f = (π − e_y)zᵀ + λ(w − w₀), |π − e_y| ≤ √2. The penalty is public, so that a record's part of
    the gradient has a length of at most √(R² + c²), or √2 times that. The Hessian of a record is at most half the
    squared length of z, a quarter for two classes.

    >>> import numpy as np
    >>> from dpmanifolds.descent.losses import LogisticLoss
    >>> loss = LogisticLoss(features=1, classes=2, radius=2.0)
    >>> loss.gradients(np.zeros(2), (np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]))).tolist()
    [[-0.5, -0.5], [0.0, 0.0]]
    """

    features: int
    classes: int
    radius: float
    penalty: float = 0.0
    """λ."""
    start: np.ndarray | None = None
    """w₀, public: 0 if not given."""
    ball: Domain | None = None
    """Where the records live whose coordinates the vectors are."""

    any_company = True
    statistic = "logistic regression"
    rules = ("all numbers must be finite, not NaN or inf", "classes must be numbered from 0 on, with −1 for none")

    def __post_init__(self) -> None:
        positive_integer("features", self.features)
        positive_integer("classes", self.classes, at_least=2)
        number_between("radius", positive_number("radius", self.radius), _LEAST, _MOST)
        if self.penalty != 0:
            positive_number("penalty", self.penalty)
        if self.start is not None and (
            np.shape(self.start) != (self.manifold.dim,) or not np.all(np.isfinite(self.start))
        ):
            raise ArgumentError(f"must be {self.manifold.dim} finite numbers.", argument="start")

    @property
    def domain(self) -> Domain | None:
        return self.ball

    @property
    def rows(self) -> int:
        """How many vectors of weights there are."""
        return 1 if self.classes == 2 else self.classes

    @property
    def constant(self) -> float:
        """c, what an intercept is multiplied by."""
        return self.radius / 2

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """All weights in one vector, class by class, each with its intercept last."""
        return Euclidean(self.rows * (self.features + 1))

    @property
    def bound(self) -> float:
        return math.hypot(self.radius, self.constant) * (1.0 if self.rows == 1 else math.sqrt(2.0))

    @property
    def smoothness(self) -> float:
        """A bound on the Hessian: public."""
        return (self.radius**2 + self.constant**2) / (4 if self.rows == 1 else 2) + self.penalty

    @property
    def filler(self) -> Any:
        """The origin, of no class."""
        return np.zeros(self.features), np.asarray(-1.0)

    def form(self, records: Any) -> Array:
        """(x, y): vectors (n, features) and numbers of classes (n,)."""
        if not isinstance(records, (tuple, list)) or len(records) != 2:
            raise ArgumentError("records must be a pair (vectors, numbers of classes).")
        formed = super().form(tuple(records))
        assert has_parts(formed)
        vectors, numbers = formed
        if vectors.ndim != 2 or vectors.shape[1] != self.features or numbers.ndim != 1:
            raise ArgumentError(f"records must be vectors of shape (n, {self.features}) and n numbers of classes.")
        return real_numbers("records", vectors), real_numbers("records", numbers)

    def bring(self, block: Array) -> tuple[Array, Array]:
        """Vectors shortened to the radius; a class that is none of them makes a record malformed."""
        (vectors, numbers), broken = super().bring(block)
        xp = namespace(vectors)
        known = xp.zeros_like(numbers, dtype=xp.bool)
        for number in range(-1, self.classes):
            known = known | (numbers == number)
        broken = xp.where((broken == 0) & ~known, xp.full_like(broken, 2), broken)
        numbers = xp.where(known, numbers, xp.full_like(numbers, -1.0))
        vectors = xp.where(known[:, None], vectors, xp.zeros_like(vectors))
        return (vectors * clip_factors(norm(vectors), self.radius)[:, None], numbers), broken

    def anchor(self, w: Array) -> np.ndarray:
        return self.penalty * (np.asarray(w) - (0.0 if self.start is None else self.start))

    def scores(self, w: Array, vectors: Array) -> tuple[Array, Array]:
        """w·z of each record (n, rows), and z (n, features + 1)."""
        xp = namespace(vectors)
        weights = xp.reshape(like_point(w, vectors), (self.rows, self.features + 1))
        z = xp.concat([vectors, xp.full_like(vectors[:, :1], self.constant)], axis=-1)
        return row_product(z, xp.permute_dims(weights, (1, 0))), z

    def probabilities(self, w: Array, vectors: Array) -> Array:
        """P(y | x) for each class (n, classes)."""
        scores, _ = self.scores(w, vectors)
        xp = namespace(scores)
        if self.rows == 1:
            scores = xp.concat([-scores / 2, scores / 2], axis=-1)
        grown = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        return grown / xp.sum(grown, axis=-1, keepdims=True)

    def value(self, w: Array, records: Array) -> float:
        vectors, numbers = records
        found = self.probabilities(w, vectors)
        xp = namespace(found)
        chosen = xp.sum(xp.where(self._is_class(numbers, found), xp.log(found), xp.zeros_like(found)), axis=-1)
        away = np.asarray(w) - (0.0 if self.start is None else self.start)
        return -float(xp.mean(chosen)) + self.penalty * float(np.sum(away**2)) / 2

    def gradients(self, w: Array, records: Array) -> Array:
        vectors, numbers = records
        found = self.probabilities(w, vectors)
        xp = namespace(found)
        is_class = self._is_class(numbers, found)
        excess = found - xp.astype(is_class, found.dtype)
        excess = xp.where((numbers >= 0)[:, None], excess, xp.zeros_like(excess))
        if self.rows == 1:
            excess = excess[:, 1:]
        z = self.scores(w, vectors)[1]
        pulls = xp.reshape(excess[:, :, None] * z[:, None, :], (z.shape[0], self.manifold.dim))
        return pulls + like(self.anchor(w), pulls)

    def _is_class(self, numbers: Array, reference: Array) -> Array:
        return numbers[:, None] == like(np.arange(self.classes, dtype=np.float64), reference)
