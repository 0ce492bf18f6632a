"""Principal directions of curved records, around a private mean.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.estimators import PrivateTangentPCA
>>> X = dpm.SPD(2).random_point(5000, rng=0)
>>> pca = PrivateTangentPCA(dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0), dpm.GaussianDP(1.0), n_components=1).fit(X)
>>> pca.transform(X).shape, pca.components_.shape, pca.guarantee_.fits(dpm.GaussianDP(1.0))
((5000, 1), (1, 3), True)

Two releases share the budget. First the mean m. Then the second moment M = (1/n)Σ v_i v_iᵀ of the tangent coordinates
v_i = log_m x_i, each clipped to |v_i| ≤ C. Replacing a record replaces one of its terms vvᵀ by wwᵀ, and

    ‖vvᵀ − wwᵀ‖² = |v|⁴ + |w|⁴ − 2(v·w)² ≤ 2C⁴   (Frobenius norm; C⁴ in one dimension, where (v·w)² = v²w²),

so M moves by at most √2·C²/n whatever m is, attained by orthogonal v and w of length C. M lies in the ball of radius C²
around 0 of the symmetric matrices, which are R^{d(d+1)/2} in orthonormal coordinates; noise goes there. Eigenvectors of
the noisy matrix are post-processing. A person with several records has one point in m, the mean of their records, and
one term in M, the second moment of their own coordinates: the bound is the same (`second_moment.py`).
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array
from dpmanifolds._validate import number_between, positive_integer, positive_number
from dpmanifolds.distributions import move
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.estimators._base import PrivateTransformer, rows_of
from dpmanifolds.estimators.second_moment import second_moment, sensitivity_of_second_moment
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle
from dpmanifolds.mechanisms import Mechanism, choose, coordinates_at, host, mean_facts, value_facts
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity, compose, split
from dpmanifolds.privacy.solver import coordinate_rounding
from dpmanifolds.releases import Release, private_mean, privatize
from dpmanifolds.releases.entry import checked_budget, checked_domain, clipped_records, grouped, open_account
from dpmanifolds.statistics.persons import persons_of

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
        unit: str = "person",
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

        `group_by` names a person for each record; n is then the number of persons.
        """
        domain = checked_domain(self.domain)
        manifold = domain.manifold
        kept = positive_integer("n_components", self.n_components)
        if kept > manifold.dim:
            raise ArgumentError(f"n_components must be at most {manifold.dim}, the dimension; got {kept}.")
        clip_norm = domain.radius if self.clip_norm is None else positive_number("clip_norm", self.clip_norm)
        account = open_account(self.ledger, self.dataset, self._generator())
        records = clipped_records(host(manifold.as_points(X)), domain, self.on_invalid)
        n = manifold.batch_shape(records)[0]
        persons = None if group_by is None else persons_of(group_by, n)
        points = records if persons is None else grouped(domain, records, persons)
        n = n if persons is None else persons.count
        moved = sensitivity_of_second_moment(clip_norm, n, manifold.dim, rounding=2 * coordinate_rounding(domain))
        plane = Euclidean(manifold.dim * (manifold.dim + 1) // 2)
        ball = Ball(plane, np.zeros(plane.dim), clip_norm**2)
        parts, mean_law, moment_law = self._planned(n, ball, moved)
        promise = compose(mean_law.guarantee, moment_law.guarantee)
        account.spend("tangent PCA", promise, n=n, clip_norm=clip_norm, domain=repr(domain))
        mean = private_mean(
            points,
            domain,
            parts[0],
            mechanism=mean_law.name,
            numerics=mean_law.numerics,
            unit=self.unit,
            rng=account.rng,
        )
        moment = privatize(
            upper_triangle(second_moment(coordinates_at(manifold, mean.value, records), clip_norm, persons)),
            ball,
            moved,
            parts[1],
            mechanism=moment_law.name,
            numerics=moment_law.numerics,
            unit=self.unit,
            statistic="second moment",
            rng=account.rng,
        )
        self.manifold_ = manifold
        self.releases_ = (mean, moment)
        self.mean_ = mean.value
        self.guarantee_ = promise
        self._keep(from_upper_triangle(moment.value, manifold.dim), kept)
        return self

    def _planned(self, n: int, ball: Ball, moved: Sensitivity) -> tuple[tuple[Budget, ...], Mechanism, Mechanism]:
        """The cut of the budget whose second moment errs least, and the mechanisms of its parts: all public."""
        share = number_between("mean_share", self.mean_share, 0.0, 1.0)
        if share in (0.0, 1.0):
            raise ArgumentError(f"mean_share must leave something for either part: above 0 and below 1; got {share:g}.")
        found = []
        for parts in split(checked_budget(self.budget), [share, 1 - share]):
            try:
                mean = choose(mean_facts(self.domain, n, unit=self.unit), parts[0], numerics=self.numerics)
                moment = choose(value_facts(ball, moved, unit=self.unit), parts[1], numerics=self.numerics)
            except NotAvailableError as reason:
                refusal = reason
                continue
            found.append((parts, mean.mechanism, moment.mechanism))
        if not found:
            raise refusal
        return min(found, key=lambda way: way[2].expected_error.mean)

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
        return np.asarray(coordinates_at(self.manifold_, self.mean_, points) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Array:
        """The points of the principal geodesic subspace with these coordinates."""
        check_is_fitted(self)
        return move(self.manifold_, self.mean_, rows_of(X, len(self.components_)) @ self.components_)
