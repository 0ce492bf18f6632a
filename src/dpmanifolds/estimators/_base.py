"""What all private estimators share: the scikit-learn contract, records that are no tables, and the account."""
# ruff: noqa: N803

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import host
from dpmanifolds._validate import numeric_array
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, PrivacyLeakWarning, warn_user
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.records.blocks import check_block, record_array


class Asked(BaseEstimator):  # type: ignore[misc]
    """What every private estimator is asked under: the constructor stores, `fit` checks and works."""

    budget: Budget
    on_invalid: str
    unit: str | None
    random_state: Any
    ledger: Any
    dataset: str | None
    guarantee_: Guarantee

    def _store(self, given: dict[str, Any]) -> None:
        """Keep the arguments of a constructor, its `locals()`, as they are."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def _terms(self) -> dict[str, Any]:
        """The arguments that every release takes in the same way; no `random_state` is the secure source."""
        return {
            "on_invalid": self.on_invalid,
            "unit": self.unit,
            "ledger": self.ledger,
            "dataset": self.dataset,
            "rng": self.random_state,
        }


class PrivateEstimator(Asked):
    """An estimator for records of a domain; what was learned ends in an underscore and is private.

    Records are arrays (n, *point_shape) of points of the domain's manifold: (n, k, k) for matrices, complex (n, k) for
    planar shapes.
    """

    domain: Domain
    manifold_: Manifold
    """Where the records of the last fit live."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _points(self, X: Any) -> Array:
        """Records for a fitted estimator to look at, in double precision."""
        check_is_fitted(self)
        points = host(record_array(self.manifold_, X))
        check_block(self.manifold_, points)
        with np.errstate(all="ignore"):
            on_manifold = to_numpy(self.manifold_.belongs(points))
        if not on_manifold.all():
            raise NotOnManifoldError(f"records must lie on {self.manifold_!r}, and at least one does not.")
        return points


class UnprotectedModelWarning(PrivacyLeakWarning):
    """Records without noise were handed on by `fit_transform`, as the next step of a pipeline is trained on them.

    Fine on public records, or where the training of that step is private itself. It is said before anything is spent.

    >>> import warnings
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = dpm.SPD(2).random_point(200, rng=0), np.repeat([0, 1], 100)
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = make_pipeline(dpm.PrivateTangentSpace(ball, dpm.PureDP(1.0)), LogisticRegression()).fit(X, y)
    >>> said[0].category.__name__
    'UnprotectedModelWarning'
    """


class PrivateTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """An estimator with `transform`, and names for the columns that come out of it."""

    _n_features_out: int

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """`fit`, and `transform` of the same records, as a pipeline asks for: warns with `UnprotectedModelWarning`.

        What is learned is private; what comes out of `transform` is each record in other numbers.
        """
        warn_user(
            f"what {type(self).__name__} hands on is each record in other numbers, without noise: a model that is "
            "fitted to it is not private. Use PrivateTangentClassifier or PrivateMDM on the records themselves, fit "
            "on public records only, or ignore this warning where the training of the next step is private.",
            UnprotectedModelWarning,
        )
        return super().fit_transform(X, y, **fit_params)


class UnprotectedScoreWarning(PrivacyLeakWarning):
    """A score was computed from records without noise: fine on public records, a leak on private ones.

    >>> import warnings
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X, y = dpm.SPD(2).random_point(200, rng=0), np.repeat([0, 1], 100)
    >>> model = dpm.PrivateMDM(dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0), dpm.PureDP(1.0)).fit(X, y)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     score = model.score(X, y)
    >>> said[0].category.__name__
    'UnprotectedScoreWarning'
    """


class PrivateClassifier(ClassifierMixin, PrivateTransformer):  # type: ignore[misc]
    """A classifier that can also hand its scores to the next step of a pipeline."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of records classified correctly, without noise: warns with `UnprotectedScoreWarning`."""
        warnings.warn(
            "this score is computed from the records it was given, without noise. On public records that is fine; on "
            "private ones it leaks, and so does everything chosen by it.",
            UnprotectedScoreWarning,
            stacklevel=2,
        )
        return float(super().score(X, y, sample_weight))


def rows_of(X: Any, columns: int) -> np.ndarray:
    """A table of numbers with this many columns, or an error that says so."""
    table = np.asarray(numeric_array("X", X))
    if table.ndim != 2 or table.shape[1] != columns:
        raise ArgumentError(f"X must be a table of shape (n, {columns}), as transform returns it; got {table.shape}.")
    return table
