"""The nearest private class mean: pyRiemann's MDM, with differential privacy.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.estimators import PrivateMDM
>>> space = dpm.SPD(2)
>>> X = np.concatenate([space.random_point(300, rng=0), 3 * space.random_point(300, rng=1)])
>>> y = np.repeat(["small", "large"], 300)
>>> model = PrivateMDM(dpm.Ball(space, 2 * np.eye(2), radius=2.0), dpm.PureDP(1.0)).fit(X, y)
>>> model.predict(np.stack([np.eye(2), 4 * np.eye(2)])).tolist()
['small', 'large']
"""
# ruff: noqa: N803, N806

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import special
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Domain
from dpmanifolds.estimators._arguments import keep_weighted, manifold_for, row_of_labels
from dpmanifolds.estimators._base import PrivateClassifier
from dpmanifolds.privacy import Budget
from dpmanifolds.releases import ClassMeans, private_class_means
from dpmanifolds.releases.statistic import check_domain


class PrivateMDM(PrivateClassifier):
    """Minimum distance to the private mean of each class: `private_class_means` behind scikit-learn's interface.

    Whatever is computed from the fitted means is free, but `predict`, `predict_proba` and `transform` say something
    about the records they are given: they are for new records, or for their owners. Every fit spends the budget again,
    so that `cross_val_score` with k folds makes k releases (`RefitSpendsWarning`), and the scores themselves have no
    noise and no promise (`UnprotectedScoreWarning`): choose parameters on public or simulated records.

    Parameters
    ----------
    <domain, budget>
    private_labels : bool, default=False
        By default labels are public, each class spends the whole budget, and neighbours differ in one "record within
        class". True protects labels too, and needs `classes`.
    classes : list, default=None
        The labels; None takes those that occur, where they are public.
    classes_per_person : int, default=1
        A public number of classes that one person may have records of, where there are names of persons.
    <mechanism, numerics>
    public_sample : pair (points, labels), default=None
        Public records like those of each class: noise gets their shape. Public subjects who differ as a whole from the
        private one are no such records (`PrivateTangentClassifier` allows for that).
    metric : str or dict, default=None
        pyRiemann's way to name metrics: {"mean": …, "distance": …}. Means have that of the domain; None measures by it.
    n_jobs : int, default=None
        Threads for the distances of `transform`.
    <shared>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = np.concatenate([dpm.SPD(2).random_point(300, rng=0), 5 * dpm.SPD(2).random_point(300, rng=1)])
    >>> ball = dpm.Ball(dpm.SPD(2), 2 * np.eye(2), radius=2.0)
    >>> model = dpm.PrivateMDM(ball, dpm.PureDP(1.0)).fit(X, np.repeat([0, 1], 300))
    >>> model.covmeans_.shape, model.predict(np.stack([np.eye(2), 5 * np.eye(2)])).tolist()
    ((2, 2, 2), [0, 1])
    """

    private_labels: bool
    classes_per_person: int
    classes: Sequence[Any] | None
    mechanism: str
    numerics: str
    public_sample: tuple[Any, Any] | None
    metric: Any
    n_jobs: int | None
    means_: Array
    """The private means (classes, *point_shape)."""
    class_means_: ClassMeans
    """The releases behind them."""

    def __init__(
        self,
        domain: Domain | None = None,
        budget: Budget | None = None,
        *,
        private_labels: bool = False,
        classes: Sequence[Any] | None = None,
        classes_per_person: int = 1,
        mechanism: str = "auto",
        numerics: str = "safe",
        public_sample: tuple[Any, Any] | None = None,
        metric: Any = None,
        n_jobs: int | None = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, *, group_by: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the mean of each class of X (n, *point_shape) with labels y (n,).

        Parameters
        ----------
        group_by : list or array (n,), default=None
            A name of a person for each record, whose labels are of at most `classes_per_person` classes; `groups` is
            the same under the name that splitters have.
        sample_weight : array (n,), default=None
            Public weights: 0 drops a record, all others must be equal.
        """
        group_by = self._begin(X, group_by, groups)
        seen_by = manifold_for("distance", check_domain(self.domain).manifold, self.metric)
        X, y, group_by = keep_weighted(sample_weight, X, row_of_labels(self, y), group_by)
        self.class_means_ = private_class_means(
            X,
            y,
            self.domain,
            self.budget,
            # scorers of scikit-learn count on sorted classes
            classes=None if self.classes is None else np.sort(np.asarray(self.classes)).tolist(),
            private_labels=self.private_labels,
            classes_per_person=self.classes_per_person,
            mechanism=self.mechanism,
            numerics=self.numerics,
            public_sample=self.public_sample,
            group_by=group_by,
            **self._terms(),
        )
        self._live_on(self.domain.manifold)
        self._seen_by = seen_by
        self.classes_ = np.asarray(self.class_means_.classes)
        self.means_ = self.class_means_.means
        self.guarantee_ = self.class_means_.guarantee
        self._n_features_out = len(self.classes_)
        return self

    @property
    def covmeans_(self) -> Array:
        """`means_` under the name that pyRiemann gives them."""
        return self.means_

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each record to each class mean (n, classes)."""
        points = self._points(X)
        means = [release.value for release in self.class_means_.releases]
        measure = delayed(self._seen_by.dist)
        return np.stack(Parallel(self.n_jobs, prefer="threads")(measure(mean, points) for mean in means), axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the nearest mean."""
        check_is_fitted(self)
        nearest: np.ndarray = self.classes_[np.argmin(self.transform(X), axis=1)]
        return nearest

    def predict_proba(self, X: Any) -> np.ndarray:
        """softmax(−distance²), as pyRiemann has it."""
        return np.asarray(special.softmax(-(self.transform(X) ** 2), axis=1))
