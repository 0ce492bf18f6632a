"""The private Fréchet mean and median as scikit-learn estimators, and tangent coordinates at a private mean."""
# ruff: noqa: N803

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.estimators._base import PrivateEstimator, PrivateTransformer, rows_of
from dpmanifolds.privacy import Budget
from dpmanifolds.releases import Release, private_mean, private_median

__all__ = ["PrivateFrechetMean", "PrivateFrechetMedian", "PrivateTangentSpace"]


class _OneRelease(PrivateEstimator):
    """An estimator whose fit is one release."""

    release_: Release

    def _learn(self, release: Release) -> Any:
        """Keep a release, and hand back its value."""
        self.release_ = release
        self.manifold_ = release.manifold
        self.guarantee_ = release.guarantee
        return release.value


class PrivateFrechetMean(_OneRelease):
    """The Fréchet mean of the records, clipped to a public domain, within a budget: `private_mean`.

    Each `fit` is one release and spends the budget once. `random_state` is for tests and teaching: None draws from
    the secure source, and only such fits are taken by a `ledger` (a path, or a `Ledger`, which can be cloned too).
    `public_sample`, points (m, *point_shape) that are public and like the records, gives noise the shape of their
    spread and a mean to fall back on, as in `private_mean`; it must not be taken from the records.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> model = dpm.PrivateFrechetMean(ball, dpm.PureDP(1.0)).fit(dpm.SPD(2).random_point(500, rng=0))
    >>> model.mean_.shape, model.guarantee_.fits(dpm.PureDP(1.0))
    ((2, 2), True)
    """

    mechanism: str
    numerics: str
    refine: int | str
    public_sample: Any
    mean_: Array

    def __init__(
        self,
        domain: Domain,
        budget: Budget,
        *,
        mechanism: str = "auto",
        numerics: str = "safe",
        refine: int | str = "auto",
        public_sample: Any = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None) -> Self:
        """Release the mean of X (n, *point_shape); `group_by` names a person for each record. `y` is not used."""
        release = private_mean(
            X,
            self.domain,
            self.budget,
            mechanism=self.mechanism,
            numerics=self.numerics,
            refine=self.refine,
            public_sample=self.public_sample,
            group_by=group_by,
            **self._terms(),
        )
        self.mean_ = self._learn(release)
        return self


class PrivateFrechetMedian(_OneRelease):
    """The Fréchet median of the records, clipped to a public ball, within a budget: `private_median`.

    It costs more noise than the mean on well-behaved records and less trust in them: outliers pull no harder than
    others. `steps` of the descent is a public number, by default chosen from public facts; with `state`, a path, it
    goes on after a crash (`private_descent`). Parameters and attributes are otherwise those of `PrivateFrechetMean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> model = dpm.PrivateFrechetMedian(ball, dpm.ApproxDP(1.0, 1e-6)).fit(dpm.SPD(2).random_point(500, rng=0))
    >>> model.median_.shape, model.guarantee_.fits(dpm.ApproxDP(1.0, 1e-6))
    ((2, 2), True)
    """

    domain: Ball
    steps: int | None
    state: str | os.PathLike[str] | None
    median_: Array

    def __init__(
        self,
        domain: Ball,
        budget: Budget,
        *,
        steps: int | None = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None) -> Self:
        """Release the median of X (n, *point_shape); `group_by` names a person for each record. `y` is not used."""
        release = private_median(
            X, self.domain, self.budget, steps=self.steps, group_by=group_by, state=self.state, **self._terms()
        )
        self.median_ = self._learn(release)
        return self


class PrivateTangentSpace(PrivateTransformer, PrivateFrechetMean):
    """log at a private mean, in orthonormal coordinates: lengths and angles there are those of the metric.

    The promise covers the reference point alone. The coordinates of a record are that record in other numbers: a
    model fitted to the coordinates of private records is not private unless its own training is, and `fit_transform`,
    which a pipeline calls, says so (`UnprotectedModelWarning`): `PrivateTangentClassifier` and `PrivateMDM` protect the
    training too. For records that are public, or whose owners gave consent, any model of scikit-learn can follow;
    `PrivateLogisticRegression` on `Euclidean(dim)` protects its own training. `public_sample` as in
    `PrivateFrechetMean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = dpm.SPD(3).random_point(500, rng=0)
    >>> ball = dpm.Ball(dpm.SPD(3), np.eye(3), radius=2.0)
    >>> tangent = dpm.PrivateTangentSpace(ball, dpm.PureDP(1.0)).fit(X)
    >>> tangent.reference_.shape, tangent.transform(X).shape
    ((3, 3), (500, 6))
    """

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None) -> Self:
        """Release the mean of X (n, *point_shape); `group_by` names a person for each record. `y` is not used."""
        super().fit(X, group_by=group_by)
        self._n_features_out = self.manifold_.dim
        return self

    @property
    def reference_(self) -> Array:
        """The private mean, under the name that pyRiemann gives the base of a tangent space."""
        return self.mean_

    def transform(self, X: Any) -> np.ndarray:
        """log of each record at the reference, in orthonormal coordinates (n, dim)."""
        points = self._points(X)
        return np.asarray(self.manifold_.log_coordinates(self.mean_, points))

    def inverse_transform(self, X: Any) -> Array:
        """The points with these coordinates: exp at the reference."""
        check_is_fitted(self)
        return self.manifold_.move(self.mean_, rows_of(X, self.manifold_.dim))
