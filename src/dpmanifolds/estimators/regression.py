"""Geodesic regression behind scikit-learn's interface: covariates in, points of a manifold out.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> age = np.linspace(20, 80, 1000)[:, None]
>>> y = dpm.SPD(2).exp_coordinates(np.eye(2), 0.01 * (age - 50) * np.array([1.0, 0.0, -1.0]))
>>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0)
>>> model = dpm.PrivateGeodesicRegression(ball, dpm.GaussianDP(1.0), covariate_bounds=(20, 80)).fit(age, y)
>>> model.predict([[20.0], [80.0]]).shape, model.n_features_in_
((2, 2, 2), 1)
"""
# ruff: noqa: N803

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.estimators._arguments import check_target, in_words_of_tables, rows_of
from dpmanifolds.estimators._base import PrivateEstimator, UnprotectedScoreWarning
from dpmanifolds.privacy import Budget
from dpmanifolds.releases import GeodesicRegression, private_geodesic_regression
from dpmanifolds.statistics import frechet_mean


class PrivateGeodesicRegression(PrivateEstimator):
    """y ≈ exp_p(Σ v_j·x_j) for points y of a manifold: `private_geodesic_regression`.

    Covariates X (n, q) and points y (n, *point_shape) are protected together. Each `fit` is one release and spends the
    budget once. `score` warns with `UnprotectedScoreWarning`.

    Parameters
    ----------
    <domain, budget>
    covariate_bounds : pair, or list of pairs
        Public bounds of the covariates: a pair, or one for each column of X.
    steps : int or str, default="auto"
        How often the base is moved; steps share the budget.
    <mechanism, numerics, shared>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> dose = np.random.default_rng(0).uniform(0, 10, (500, 1))
    >>> y = dpm.Sphere(2).exp_coordinates(np.array([0.0, 0.0, 1.0]), 0.04 * (dose - 5) * np.array([1.0, 0.0]))
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5)
    >>> model = dpm.PrivateGeodesicRegression(ball, dpm.PureDP(2.0), covariate_bounds=(0, 10)).fit(dose, y)
    >>> model.base_.shape, model.coef_.shape, model.regression_.slope_region().radii.shape
    ((3,), (1, 2), (1,))
    """

    domain: Ball
    covariate_bounds: Any
    steps: int | str
    mechanism: str
    numerics: str
    regression_: GeodesicRegression
    """The release."""
    base_: Array
    """The point of the fit at the middle of the bounds."""
    coef_: np.ndarray
    """(covariates, dim): tangent coordinates at the base for one unit of each covariate."""

    def __init__(
        self,
        domain: Ball | None = None,
        budget: Budget | None = None,
        *,
        covariate_bounds: Any,
        steps: int | str = "auto",
        mechanism: str = "auto",
        numerics: str = "safe",
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.three_d_array = False
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, *, group_by: Any = None, groups: Any = None) -> Self:
        """Release the fit of points y (n, *point_shape) to covariates X (n, q) or (n,), by person with `group_by`."""
        group_by = self._begin(X, group_by, groups)
        check_target(self, y)
        self.regression_ = private_geodesic_regression(
            y,
            X,
            self.domain,
            self.budget,
            covariate_bounds=self.covariate_bounds,
            steps=self.steps,
            mechanism=self.mechanism,
            numerics=self.numerics,
            group_by=group_by,
            **self._terms(),
        )
        self.manifold_ = self.domain.manifold
        self.guarantee_ = self.regression_.guarantee
        self.base_, self.coef_ = self.regression_.base, self.regression_.slopes
        self.n_features_in_ = len(self.coef_)
        return self

    def predict(self, X: Any) -> Array:
        """The points of the fit at covariates X (m, q)."""
        check_is_fitted(self)
        in_words_of_tables(self, X, self.n_features_in_)
        return self.regression_.predict(rows_of(X, self.n_features_in_))

    def score(self, X: Any, y: Any) -> float:
        """1 − Σρ²(prediction, y)/Σρ²(mean, y), without noise: warns with `UnprotectedScoreWarning`."""
        points, expected = self._points(y), self.predict(X)
        warnings.warn(
            "this score is computed from the records it was given, without noise. On public records that is fine; on "
            "private ones it leaks, and so does everything chosen by it. r_squared of the release is paid for.",
            UnprotectedScoreWarning,
            stacklevel=2,
        )
        left = to_numpy(self.manifold_.squared_dist(expected, points))
        if left.shape != (int(self.manifold_.batch_shape(points)[0]),):
            raise ArgumentError("X and y must have as many rows.")
        whole = to_numpy(self.manifold_.squared_dist(frechet_mean(self.manifold_, points).point, points))
        return float(1 - np.sum(left) / max(float(np.sum(whole)), 1e-300))
