"""k-means on any manifold behind scikit-learn's interface, with differential privacy.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> space = dpm.SPD(2)
>>> X = np.concatenate([np.exp(at) * space.random_point(300, rng=0) for at in (-2.0, 2.0)])
>>> model = dpm.PrivateKMeans(2, dpm.Ball(space, np.eye(2), radius=5.0), dpm.GaussianDP(1.0)).fit(X)
>>> len(set(model.predict(np.stack([0.1 * np.eye(2), 10 * np.eye(2)])).tolist()))
2
"""
# ruff: noqa: N803, N806

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metadata_routing import UNUSED

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import records_at
from dpmanifolds.domains import Ball
from dpmanifolds.estimators._arguments import keep_weighted
from dpmanifolds.estimators._base import PrivateTransformer
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.clusters import Clusters, private_kmeans


class PrivateKMeans(PrivateTransformer):
    """Centres of `n_clusters` clusters of records in a public ball, and noisy numbers of records in them.

    A few rounds of Lloyd's algorithm, each of which releases a noisy sum and count for every cluster
    (docs/proofs/regression.md, section 6). There is no `labels_`: which cluster a record is in is that record's secret.
    `predict` and `transform` say something about the records they are given: they are for new records, or for their
    owners. Each `fit` spends the budget once.

    Parameters
    ----------
    n_clusters : int
        How many clusters.
    <domain, budget>
    centers : array (n_clusters, *point_shape), default=None
        Public points to start from; None takes ones that suit records spread evenly over the ball. There is one start,
        as every further one would cost as much.
    rounds : int or str, default="auto"
        Of Lloyd's algorithm; they share the budget.
    <mechanism, numerics, shared>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> north = np.array([0.0, 0.0, 1.0])
    >>> ways = 0.8 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    >>> spread = 0.1 * np.random.default_rng(0).normal(size=(300, 3, 2))
    >>> X = dpm.Sphere(2).exp_coordinates(north, (ways + spread).reshape(-1, 2))
    >>> model = dpm.PrivateKMeans(3, dpm.Ball(dpm.Sphere(2), north, radius=1.2), dpm.GaussianDP(1.0)).fit(X)
    >>> model.cluster_centers_.shape, model.predict(X[:3]).shape, model.guarantee_.fits(dpm.GaussianDP(1.0))
    ((3, 3), (3,), True)
    """

    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012
    n_clusters: int
    domain: Ball
    centers: Any
    rounds: int | str
    mechanism: str
    numerics: str
    cluster_centers_: Array
    """(clusters, *point_shape)."""
    counts_: np.ndarray
    """Noisy numbers of records."""
    clusters_: Clusters
    """The releases behind them."""
    n_iter_: int
    """Rounds."""

    def __init__(
        self,
        n_clusters: int,
        domain: Ball | None = None,
        budget: Budget | None = None,
        *,
        centers: Any = None,
        rounds: int | str = "auto",
        mechanism: str = "auto",
        numerics: str = "safe",
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Release the centres of X (n, *point_shape). `y` is not used; of public weights 0 drops a record."""
        self._begin(X, None, None)
        (X,) = keep_weighted(sample_weight, X)
        self.clusters_ = private_kmeans(
            X,
            self.n_clusters,
            self.domain,
            self.budget,
            centers=self.centers,
            rounds=self.rounds,
            mechanism=self.mechanism,
            numerics=self.numerics,
            **self._terms(),
        )
        self._live_on(self.domain.manifold)
        self.guarantee_ = self.clusters_.guarantee
        self.cluster_centers_, self.counts_ = self.clusters_.centers, self.clusters_.counts
        self.n_iter_ = len(self.clusters_.releases) // self.n_clusters
        self._n_features_out = self.n_clusters
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each record to each centre (n, clusters)."""
        points = self._points(X)
        centers = [records_at(self.cluster_centers_, k) for k in range(self._n_features_out)]
        return np.stack([to_numpy(self.manifold_.dist(center, points)) for center in centers], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The number of the nearest centre."""
        return np.asarray(np.argmin(self.transform(X), axis=1))
