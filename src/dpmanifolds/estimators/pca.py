"""Principal components of vectors, by a noisy second moment or by private descent; and of curved records.

>>> import numpy as np
>>> from dpmanifolds import ApproxDP
>>> from dpmanifolds.estimators.pca import PrivatePCA
>>> X = np.random.default_rng(0).standard_normal((5000, 6)) * [3.0, 2.0, 0.3, 0.3, 0.3, 0.3]
>>> pca = PrivatePCA(2, ApproxDP(1.0, 1e-6), radius=8.0).fit(X)
>>> pca.solver_, pca.components_.shape, pca.guarantee_.fits(ApproxDP(1.0, 1e-6))
('covariance', (2, 6), True)

Vectors lie within the public `radius` R of a public `center`. "covariance" releases their second moment around it, or
their covariance (`private_covariance`), and takes its eigenvectors. "descent" runs `private_descent` on the
Grassmannian, whose gradients are bounded by R²/2.
"""
# ruff: noqa: N803

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._validate import choice, hide_records, positive_integer, positive_number, real_numbers, record_numbers
from dpmanifolds.descent import StepRule
from dpmanifolds.descent.losses import PCALoss
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.estimators._arguments import in_words_of_tables, rows_of, width_of_most
from dpmanifolds.estimators._base import Asked, HandingOn, PrivateTransformer
from dpmanifolds.manifolds import Euclidean, Grassmann
from dpmanifolds.privacy import Budget
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.releases import Release, private_descent
from dpmanifolds.releases.covariance import private_covariance, released_mean
from dpmanifolds.releases.second_moment import private_tangent_moment
from dpmanifolds.releases.statistic import ON_INVALID, check_domain

_LARGEST_MATRIX = 3000
_STEPS, _PURE_STEPS = 60, 15


@dataclass(frozen=True)
class _SubspaceSteps(StepRule):
    """From 10/R², or less where noise would turn the subspace by more than half a radian per step, down to a tenth."""

    radius: float

    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        first = min(10 / self.radius**2, 0.5 / (sigma * math.sqrt(dim)))
        return np.geomspace(first, first / 10, steps)


class PrivatePCA(HandingOn, Asked):
    """Principal subspaces of vectors (n, p) under a budget, with scikit-learn's interface.

    The components are those of the second moment around the centre. Rows that are not finite are malformed. Under
    Gaussian noise the part of the second moment that turns the subspace errs by R²/(nμ) per entry either way
    (√2·R²/(nμ) on orthonormal coordinates, R²√T/(nμ) on each of T gradients), but a descent must also converge; under a
    pure ε its steps share ε as well (docs/proofs/second_moment.md, P5; P6 on how small an ε is too small).

    Parameters
    ----------
    n_components : int
        Below the number of columns.
    <budget>
    radius : float
        R, the public length within which vectors lie around the centre (pixel ranges, units), never taken from X.
    center : array (p,), "mean" or None
        Public; None is the origin. With "mean" it is the covariance that is released, and the mean along with it:
        vectors lie within the radius of the origin then.
    solver : str, default="auto"
        "covariance" (up to 3000 columns, by default) or "descent".
    steps : int, default=None
        Of a descent: 60, or 15 under a pure budget.
    <on_invalid, unit, random_state, state, ledger, dataset>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = np.random.default_rng(0).standard_normal((2000, 4)) * [3.0, 0.3, 0.3, 0.3]
    >>> pca = dpm.PrivatePCA(1, dpm.ApproxDP(1.0, 1e-6), radius=8.0).fit(X)
    >>> pca.transform(X).shape, bool(abs(pca.components_[0, 0]) > 0.9)
    ((2000, 1), True)
    """

    n_components: int
    radius: float
    center: Any
    solver: str
    steps: int | None
    state: str | os.PathLike[str] | None
    components_: np.ndarray
    """Orthonormal rows (n_components, p)."""
    explained_variance_: np.ndarray | None
    """Their eigenvalues in the noisy second moment, none below 0; None for "descent", which does not release them."""
    mean_: np.ndarray
    """The public centre, or with `center="mean"` the released mean."""
    solver_: str
    """The one that was used."""
    release_: Release
    """The release behind the fit."""

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
        self._store(locals())

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None, groups: Any = None) -> Self:
        """Release the principal components of X (n, p); `group_by`, or `groups`, names a person for each row.

        The second moment (or mean gradient) of a person's own rows is then one term, and n the number of persons.
        """
        group_by = self._begin(X, group_by, groups)
        checked_budget(self.budget)
        choice("solver", self.solver, ("auto", "covariance", "descent"))
        choice("on_invalid", self.on_invalid, ON_INVALID)
        radius = positive_number("radius", self.radius)
        wanted = np.shape(self.center) or width_of_most(X)
        with hide_records():
            table = np.asarray(to_numpy(real_numbers("X", record_numbers("X", X, wanted))), dtype=np.float64)
        if table.ndim != 2 or table.shape[1] < 2:
            raise ArgumentError(
                f"X must be a table of shape (n, p) with p ≥ 2; got {table.shape}: {table.shape[-1]} feature(s)."
            )
        features = table.shape[1]
        kept = positive_integer("n_components", self.n_components)
        if kept >= features:
            raise ArgumentError(
                f"must be below the number of columns, {features}; got {kept}.", argument="n_components"
            )
        around_mean = isinstance(self.center, str) and choice("center", self.center, ("mean",)) == "mean"
        public = None if around_mean else self.center
        center = np.zeros(features) if public is None else np.asarray(public, dtype=np.float64)
        if center.shape != (features,) or not np.all(np.isfinite(center)):
            raise ArgumentError(f"must be {features} finite numbers from public knowledge.", argument="center")
        self.solver_ = self._chosen(features)
        if self.state is not None and self.solver_ != "descent":
            raise ArgumentError("state= is for solver='descent', which works in steps; the covariance is one draw.")
        if around_mean and self.solver_ == "descent":
            raise ArgumentError("center='mean' is for solver='covariance'; a descent needs a public centre.")
        self.mean_, self.n_features_in_, self._n_features_out = center, features, kept
        if self.solver_ == "covariance":
            self._by_covariance(table, Ball(Euclidean(features), center, radius), kept, group_by)
        else:
            self._by_descent(table, radius, kept, group_by)
        self.guarantee_ = self.release_.guarantee
        return self

    def _chosen(self, features: int) -> str:
        if self.solver != "auto":
            return self.solver
        return "covariance" if features <= _LARGEST_MATRIX else "descent"

    def _by_covariance(self, table: np.ndarray, ball: Ball, kept: int, group_by: Any) -> None:
        around_mean = isinstance(self.center, str)
        release = private_covariance(
            table, ball, self.budget, about="mean" if around_mean else "origin", group_by=group_by, **self._terms()
        )
        if around_mean:
            self.mean_ = released_mean(release)
        values, vectors = _principal(release)
        self.components_ = np.ascontiguousarray(vectors[:kept])
        self.explained_variance_ = values[:kept]
        self.release_ = release

    def _by_descent(self, table: np.ndarray, radius: float, kept: int, group_by: Any) -> None:
        space = Grassmann(table.shape[1], kept)
        default = _PURE_STEPS if self.budget.bounded_loss else _STEPS
        # any public start will do, as long as no principal direction is likely to be orthogonal to it
        start = space.project(np.random.default_rng(0).standard_normal(space.point_shape))
        with hide_records():
            shifted = table - self.mean_
        self.release_ = private_descent(
            PCALoss(space, radius),
            shifted,
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
        _check_feature_names(self, X, reset=False)
        in_words_of_tables(self, X, self.n_features_in_)
        return np.asarray((rows_of(X, self.n_features_in_) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The vectors of the principal subspace with these coordinates."""
        check_is_fitted(self)
        return np.asarray(rows_of(X, len(self.components_)) @ self.components_ + self.mean_)


class PrivateTangentPCA(PrivateTransformer):
    """Principal components of log at a private mean: `mean_share` of the budget goes to the mean, the rest to them.

    As in `PrivateTangentSpace`, `transform` shows the records that it is given.

    Two releases share the budget (`releases.second_moment`). First the mean m. Then the second moment M = (1/n)Σ v_i
    v_iᵀ of the tangent coordinates v_i = log_m x_i, each shortened to |v_i| ≤ C, made integers and squared exactly. One
    record moves M by at most √2·C²/n in Frobenius norm and 2C²/n in nuclear norm, whatever m is. Eigenvectors of the
    noisy matrix are post-processing. A person with several records has one term in m and one in M: the bounds are the
    same.

    Parameters
    ----------
    <domain, budget>
    n_components : int, default=None
        At most the dimension; None keeps all.
    mean_share : float, default=0.3
        Of the budget.
    clip_norm : float, default=None
        C, the public length to which tangent coordinates are clipped, by default the domain's radius: the noise grows
        with C², while clipping turns no direction.
    <numerics, shared>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = dpm.SPD(2).random_point(2000, rng=0)
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> pca = dpm.PrivateTangentPCA(ball, dpm.GaussianDP(1.0), n_components=2).fit(X)
    >>> pca.components_.shape, pca.inverse_transform(pca.transform(X)).shape
    ((2, 3), (2000, 2, 2))
    """

    n_components: int | None
    mean_share: float
    clip_norm: float | None
    numerics: str
    mean_: Array
    """The private mean."""
    components_: np.ndarray
    """The principal directions (n_components, dim), by falling variance, as coordinates at the mean."""
    explained_variance_: np.ndarray
    """Their eigenvalues, none below 0."""
    explained_variance_ratio_: np.ndarray
    """These over the sum of all of them that are above 0."""
    releases_: tuple[Release, Release]
    """The mean, and the second moment as coordinates; `guarantee_` is of both together."""

    def __init__(
        self,
        domain: Domain | None = None,
        budget: Budget | None = None,
        n_components: int | None = None,
        *,
        mean_share: float = 0.3,
        clip_norm: float | None = None,
        numerics: str = "safe",
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None, groups: Any = None) -> Self:
        """Release the mean and the second moment of X (n, *point_shape); `y` is not used.

        X may come in every form that can be read more than once, as in `private_mean`. `group_by`, or `groups`, names a
        person for each record; n is then the number of persons.
        """
        group_by = self._begin(X, group_by, groups)
        domain = check_domain(self.domain)
        manifold = domain.manifold
        kept = manifold.dim if self.n_components is None else positive_integer("n_components", self.n_components)
        if kept > manifold.dim:
            raise ArgumentError(f"must be at most {manifold.dim}, the dimension; got {kept}.", argument="n_components")
        found = private_tangent_moment(
            X,
            domain,
            self.budget,
            mean_share=self.mean_share,
            clip_norm=self.clip_norm,
            numerics=self.numerics,
            group_by=group_by,
            **self._terms(),
        )
        self._live_on(manifold)
        self.releases_ = (found.mean, found.moment)
        self.mean_ = found.base
        self.guarantee_ = found.guarantee
        self._keep(found.moment, kept)
        return self

    def _keep(self, moment: Release, count: int) -> None:
        """Eigenvalues and eigenvectors of the noisy second moment, the largest entry of each vector above 0."""
        values, vectors = _principal(moment)
        largest = np.take_along_axis(vectors, np.argmax(np.abs(vectors), axis=1)[:, None], axis=1)
        self.components_ = (vectors * np.where(largest < 0, -1.0, 1.0))[:count]
        self.explained_variance_ = values[:count]
        total = float(values.sum())
        self.explained_variance_ratio_ = self.explained_variance_ / total if total > 0 else np.zeros(count)
        self._n_features_out = count

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates of each record along the components (n, n_components), 0 at the private mean."""
        points = self._points(X)
        return np.asarray(self.manifold_.log_coordinates(self.mean_, points) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Array:
        """The points of the principal geodesic subspace with these coordinates."""
        check_is_fitted(self)
        return self.manifold_.move(self.mean_, rows_of(X, len(self.components_)) @ self.components_)


def _principal(moment: Release) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a released second moment, none below 0 and the largest first, and its eigenvectors as rows."""
    values, frame = np.linalg.eigh(moment.value)
    return np.maximum(values[::-1], 0.0), frame.T[::-1]
