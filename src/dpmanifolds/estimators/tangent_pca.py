"""Principal directions of curved records, around a private mean.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.estimators import PrivateTangentPCA
>>> X = dpm.SPD(2).random_point(5000, rng=0)
>>> pca = PrivateTangentPCA(dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0), dpm.GaussianDP(1.0), n_components=1).fit(X)
>>> pca.transform(X).shape, pca.components_.shape, pca.guarantee_.fits(dpm.GaussianDP(1.0))
((5000, 1), (1, 3), True)

Two releases share the budget (`releases.second_moment`). First the mean m. Then the second moment M = (1/n)Σ v_i v_iᵀ
of the tangent coordinates v_i = log_m x_i, each shortened to |v_i| ≤ C, made integers and squared exactly. One record
moves M by at most √2·C²/n in Frobenius norm and 2C²/n in nuclear norm, whatever m is. Eigenvectors of the noisy matrix
are post-processing. A person with several records has one term in m and one in M: the bounds are the same.
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array
from dpmanifolds._validate import positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.estimators._base import PrivateTransformer, rows_of
from dpmanifolds.manifolds._symmetric import from_upper_triangle
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases import Release
from dpmanifolds.releases.entry import checked_domain
from dpmanifolds.releases.second_moment import private_tangent_moment

__all__ = ["PrivateTangentPCA"]


class PrivateTangentPCA(PrivateTransformer):
    """Principal components of log at a private mean: `mean_share` of the budget goes to the mean, the rest to them.

    `clip_norm` C is the public length to which tangent coordinates are clipped, by default the domain's radius: the
    noise grows with C², while clipping turns no direction. As in `PrivateTangentSpace`, `transform` shows the records
    that it is given.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = dpm.SPD(2).random_point(2000, rng=0)
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> pca = dpm.PrivateTangentPCA(ball, dpm.GaussianDP(1.0), n_components=2).fit(X)
    >>> pca.components_.shape, pca.inverse_transform(pca.transform(X)).shape
    ((2, 3), (2000, 2, 2))
    """

    mean_: Array
    components_: np.ndarray
    """The principal directions (n_components, dim), by falling variance, as coordinates at the mean."""
    explained_variance_: np.ndarray
    """Their eigenvalues, none below 0."""
    explained_variance_ratio_: np.ndarray
    """These over the sum of all of them that are above 0."""
    releases_: tuple[Release, Release]
    """The mean, and the second moment as coordinates."""
    guarantee_: Guarantee
    """What both together promise."""

    def __init__(
        self,
        domain: Domain,
        budget: Budget,
        n_components: int,
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
        self.domain = domain
        self.budget = budget
        self.n_components = n_components
        self.mean_share = mean_share
        self.clip_norm = clip_norm
        self.numerics = numerics
        self.on_invalid = on_invalid
        self.unit = unit
        self.random_state = random_state
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None) -> Self:
        """Release the mean and the second moment of X (n, *point_shape); `y` is not used.

        X may come in every form that can be read more than once, as in `private_mean`. `group_by` names a person for
        each record; n is then the number of persons.
        """
        domain = checked_domain(self.domain)
        manifold = domain.manifold
        kept = positive_integer("n_components", self.n_components)
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
        self.manifold_ = manifold
        self.releases_ = (found.mean, found.moment)
        self.mean_ = found.base
        self.guarantee_ = found.guarantee
        self._keep(from_upper_triangle(found.moment.value, manifold.dim), kept)
        return self

    def _keep(self, matrix: np.ndarray, count: int) -> None:
        """Eigenvalues and eigenvectors of the noisy second moment, the largest entry of each vector above 0."""
        values, vectors = np.linalg.eigh(matrix)
        values, vectors = np.maximum(values[::-1], 0.0), vectors.T[::-1]
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
