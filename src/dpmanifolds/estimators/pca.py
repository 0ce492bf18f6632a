"""Principal components of ordinary vectors, by a noisy second moment or by private descent on subspaces.

>>> import numpy as np
>>> from dpmanifolds import ApproxDP
>>> from dpmanifolds.estimators.pca import PrivatePCA
>>> X = np.random.default_rng(0).standard_normal((5000, 6)) * [3.0, 2.0, 0.3, 0.3, 0.3, 0.3]
>>> pca = PrivatePCA(2, ApproxDP(1.0, 1e-6), radius=8.0).fit(X)
>>> pca.solver_, pca.components_.shape, pca.guarantee_.fits(ApproxDP(1.0, 1e-6))
('covariance', (2, 6), True)

Vectors are shifted by a public `center` and shortened to the public norm `radius` R. "covariance" releases (1/n)Σxxᵀ,
an exact sum of integers with the noise that suits the budget (`private_second_moment`), and takes its eigenvectors.
"descent" runs `private_descent` on the Grassmannian, whose gradients are bounded by R²/2.
"""
# ruff: noqa: N803

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import to_numpy
from dpmanifolds._validate import choice, positive_integer, positive_number, record_numbers
from dpmanifolds.descent import StepRule
from dpmanifolds.descent.losses import PCALoss
from dpmanifolds.errors import ArgumentError
from dpmanifolds.estimators._base import rows_of
from dpmanifolds.manifolds import Grassmann
from dpmanifolds.manifolds._symmetric import from_upper_triangle
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.releases import Release, private_descent
from dpmanifolds.releases.entry import ON_INVALID
from dpmanifolds.releases.second_moment import private_second_moment

__all__ = ["PrivateEigenvector", "PrivatePCA"]

_LARGEST_MATRIX = 3000
_STEPS, _PURE_STEPS = 60, 15


@dataclass(frozen=True)
class _SubspaceSteps(StepRule):
    """From 10/R², or less where noise would turn the subspace by more than half a radian per step, down to a tenth."""

    radius: float

    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        first = min(10 / self.radius**2, 0.5 / (sigma * math.sqrt(dim)))
        return np.geomspace(first, first / 10, steps)


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal subspaces of vectors (n, p) under a budget, with scikit-learn's interface.

    `radius` and `center` must come from public knowledge (pixel ranges, units), never from X; the components are those
    of the second moment around `center`. Rows that are not finite raise before anything is drawn (outside of the
    promise); with `on_invalid="center"` they count as the centre, inside of it. `solver="auto"` takes "covariance" up
    to 3000 columns: under Gaussian noise the part of the second moment that turns the subspace errs by R²/(nμ) per
    entry either way (√2·R²/(nμ) on orthonormal coordinates, R²√T/(nμ) on each of T gradients), but a descent must also
    converge; under a pure ε its steps share ε as well (docs/proofs/second_moment.md, P5; P6 on how small an ε is too
    small). With `state`, a path, a descent goes on after a crash (`private_descent`).

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = np.random.default_rng(0).standard_normal((2000, 4)) * [3.0, 0.3, 0.3, 0.3]
    >>> pca = dpm.PrivatePCA(1, dpm.ApproxDP(1.0, 1e-6), radius=8.0).fit(X)
    >>> pca.transform(X).shape, bool(abs(pca.components_[0, 0]) > 0.9)
    ((2000, 1), True)
    """

    components_: np.ndarray
    """Orthonormal rows (n_components, p)."""
    explained_variance_: np.ndarray | None
    """Their eigenvalues in the noisy second moment, none below 0; None for "descent", which does not release them."""
    mean_: np.ndarray
    """The public centre."""
    solver_: str
    release_: Release
    guarantee_: Guarantee

    def __init__(
        self,
        n_components: int,
        budget: Budget,
        radius: float,
        *,
        center: Any = None,
        solver: str = "auto",
        steps: int | None = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self.n_components = n_components
        self.budget = budget
        self.radius = radius
        self.center = center
        self.solver = solver
        self.steps = steps
        self.on_invalid = on_invalid
        self.unit = unit
        self.random_state = random_state
        self.state = state
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None) -> Self:
        """Release the principal components of X (n, p); `group_by` names a person for each row. `y` is not used.

        The second moment (or mean gradient) of a person's own rows is then one term, and n the number of persons.
        """
        checked_budget(self.budget)
        choice("solver", self.solver, ("auto", "covariance", "descent"))
        choice("on_invalid", self.on_invalid, ON_INVALID)
        radius = positive_number("radius", self.radius)
        table = np.asarray(to_numpy(record_numbers("X", X)), dtype=np.float64)
        if table.ndim != 2 or table.shape[1] < 2:
            raise ArgumentError(f"X must be a table of shape (n, p) with p ≥ 2; got {table.shape}.")
        features = table.shape[1]
        kept = positive_integer("n_components", self.n_components)
        if kept >= features:
            raise ArgumentError(
                f"must be below the number of columns, {features}; got {kept}.", argument="n_components"
            )
        center = np.zeros(features) if self.center is None else np.asarray(self.center, dtype=np.float64)
        if center.shape != (features,) or not np.all(np.isfinite(center)):
            raise ArgumentError(f"must be {features} finite numbers from public knowledge.", argument="center")
        self.solver_ = self._chosen(features)
        if self.state is not None and self.solver_ != "descent":
            raise ArgumentError("state= is for solver='descent', which works in steps; the covariance is one draw.")
        self.mean_, self.n_features_in_, self._n_features_out = center, features, kept
        if self.solver_ == "covariance":
            self._by_covariance(table, radius, kept, group_by)
        else:
            self._by_descent(table, radius, kept, group_by)
        self.guarantee_ = self.release_.guarantee
        return self

    def _chosen(self, features: int) -> str:
        if self.solver != "auto":
            return self.solver
        return "covariance" if features <= _LARGEST_MATRIX else "descent"

    def _terms(self) -> dict[str, Any]:
        rng = None if self.random_state is None else as_generator(self.random_state)
        return {
            "on_invalid": self.on_invalid,
            "unit": self.unit,
            "ledger": self.ledger,
            "dataset": self.dataset,
            "rng": rng,
        }

    def _by_covariance(self, table: np.ndarray, radius: float, kept: int, group_by: Any) -> None:
        release = private_second_moment(
            table, radius, self.budget, center=self.mean_, group_by=group_by, **self._terms()
        )
        values, frame = np.linalg.eigh(from_upper_triangle(release.value, table.shape[1]))
        self.components_ = np.ascontiguousarray(frame[:, ::-1][:, :kept].T)
        self.explained_variance_ = np.maximum(values[::-1][:kept], 0.0)
        self.release_ = release

    def _by_descent(self, table: np.ndarray, radius: float, kept: int, group_by: Any) -> None:
        space = Grassmann(table.shape[1], kept)
        default = _PURE_STEPS if self.budget.bounded_loss else _STEPS
        # any public start will do, as long as no principal direction is likely to be orthogonal to it
        start = space.project(np.random.default_rng(0).standard_normal(space.point_shape))
        self.release_ = private_descent(
            PCALoss(space, radius),
            table - self.mean_,
            space,
            self.budget,
            start=start,
            steps=default if self.steps is None else self.steps,
            step_size=_SubspaceSteps(radius),
            retraction=True,
            group_by=group_by,
            state=self.state,
            **self._terms(),
        )
        self.components_ = np.ascontiguousarray(self.release_.value.T)
        self.explained_variance_ = None

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates along the components (n, n_components), 0 at the centre. Not private: it shows the records."""
        check_is_fitted(self)
        return np.asarray((rows_of(X, self.n_features_in_) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The vectors of the principal subspace with these coordinates."""
        check_is_fitted(self)
        return np.asarray(rows_of(X, len(self.components_)) @ self.components_ + self.mean_)


class PrivateEigenvector(PrivatePCA):
    """The leading eigenvector of the second moment around a public centre.

    >>> import numpy as np
    >>> from dpmanifolds import GaussianDP
    >>> from dpmanifolds.estimators.pca import PrivateEigenvector
    >>> X = np.random.default_rng(0).standard_normal((5000, 4)) * [3.0, 0.3, 0.3, 0.3]
    >>> leading = PrivateEigenvector(GaussianDP(1.0), radius=8.0, random_state=0).fit(X).eigenvector_
    >>> abs(float(leading[0])) > 0.99
    True
    """

    def __init__(
        self,
        budget: Budget,
        radius: float,
        *,
        center: Any = None,
        solver: str = "auto",
        steps: int | None = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        super().__init__(
            1,
            budget,
            radius,
            center=center,
            solver=solver,
            steps=steps,
            on_invalid=on_invalid,
            unit=unit,
            random_state=random_state,
            state=state,
            ledger=ledger,
            dataset=dataset,
        )

    @property
    def eigenvector_(self) -> np.ndarray:
        """A unit vector (p,), its largest entry above 0."""
        check_is_fitted(self)
        vector = self.components_[0]
        return np.asarray(vector * np.sign(vector[np.argmax(np.abs(vector))]))
