"""The private Fréchet mean and median as scikit-learn estimators, and tangent coordinates at a private mean."""
# ruff: noqa: N803, N806

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.estimators._arguments import keep_weighted, manifold_for, rows_of
from dpmanifolds.estimators._base import PrivateEstimator, PrivateTransformer
from dpmanifolds.privacy import Budget
from dpmanifolds.releases import Release, private_mean, private_median
from dpmanifolds.releases.statistic import check_domain


class _OneRelease(PrivateEstimator):
    """An estimator whose fit is one release."""

    release_: Release
    """The release behind the fit."""

    def _learn(self, release: Release) -> Any:
        """Keep a release, and hand back its value."""
        self.release_ = release
        self._live_on(release.manifold)
        self.guarantee_ = release.guarantee
        return release.value


class PrivateFrechetMean(_OneRelease):
    """The Fréchet mean of the records, clipped to a public domain, within a budget: `private_mean`.

    Each `fit` is one release and spends the budget once.

    Parameters
    ----------
    <domain, budget, mechanism, numerics, refine, public_sample>
    <shared>

    Examples
    --------
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
    """The private mean."""

    def __init__(
        self,
        domain: Domain | None = None,
        budget: Budget | None = None,
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

    def fit(
        self, X: Any, y: Any = None, *, group_by: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Release the mean of X (n, *point_shape). `y` is not used.

        Parameters
        ----------
        group_by : list or array (n,), default=None
            A name of a person for each record; `groups` is the same under the name that splitters have.
        sample_weight : array (n,), default=None
            Public weights: 0 drops a record, all others must be equal.
        """
        group_by = self._begin(X, group_by, groups)
        X, group_by = keep_weighted(sample_weight, X, group_by)
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
    others.

    Parameters
    ----------
    <domain, budget>
    steps : int, default=None
        Of the descent: a public number; None chooses it from public facts.
    <on_invalid, unit, random_state, state, ledger, dataset>

    Examples
    --------
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
    """The private median."""

    def __init__(
        self,
        domain: Ball | None = None,
        budget: Budget | None = None,
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

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None, groups: Any = None) -> Self:
        """Release the median of X (n, *point_shape); `group_by`, or `groups`, names a person for each record."""
        group_by = self._begin(X, group_by, groups)
        release = private_median(
            X, self.domain, self.budget, steps=self.steps, group_by=group_by, state=self.state, **self._terms()
        )
        self.median_ = self._learn(release)
        return self


class PrivateTangentSpace(PrivateTransformer, PrivateFrechetMean):
    """log at a private mean, in orthonormal coordinates: lengths and angles there are those of the metric.

    The promise covers the reference point alone. The coordinates of a record are that record in other numbers: a
    model fitted to the coordinates of private records is not private unless its own training is, and `fit_transform`,
    which a pipeline calls, says so (`UnprotectedModelWarning`). `PrivateLogisticRegression` on `Euclidean(dim)` may
    follow: its training is private. `PrivateTangentClassifier` and `PrivateMDM` take the records themselves.

    Parameters
    ----------
    <domain, budget, mechanism, numerics, refine, public_sample>
    metric : str or dict, default=None
        pyRiemann's way to name metrics: {"mean": …, "map": …}. The mean has that of the domain; None maps by it, too.
    <shared>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = dpm.SPD(3).random_point(500, rng=0)
    >>> ball = dpm.Ball(dpm.SPD(3), np.eye(3), radius=2.0)
    >>> tangent = dpm.PrivateTangentSpace(ball, dpm.PureDP(1.0)).fit(X)
    >>> tangent.reference_.shape, tangent.transform(X).shape
    ((3, 3), (500, 6))
    """

    metric: Any

    def __init__(
        self,
        domain: Domain | None = None,
        budget: Budget | None = None,
        *,
        mechanism: str = "auto",
        numerics: str = "safe",
        refine: int | str = "auto",
        public_sample: Any = None,
        metric: Any = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def fit(
        self, X: Any, y: Any = None, *, group_by: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Release the mean of X (n, *point_shape); see `PrivateFrechetMean.fit`."""
        seen_by = manifold_for("map", check_domain(self.domain).manifold, self.metric)
        super().fit(X, group_by=group_by, groups=groups, sample_weight=sample_weight)
        self._seen_by, self._n_features_out = seen_by, seen_by.dim
        return self

    @property
    def reference_(self) -> Array:
        """The private mean, under the name that pyRiemann gives the base of a tangent space."""
        return self.mean_

    def transform(self, X: Any) -> np.ndarray:
        """log of each record at the reference, in orthonormal coordinates (n, dim)."""
        points = self._points(X)
        return np.asarray(self._seen_by.log_coordinates(self.mean_, points))

    def inverse_transform(self, X: Any) -> Array:
        """The points with these coordinates: exp at the reference."""
        check_is_fitted(self)
        return self._seen_by.move(self.mean_, rows_of(X, self._seen_by.dim))
