"""What all private estimators share: the scikit-learn contract, records that are no tables, and the account."""
# ruff: noqa: N803

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import host
from dpmanifolds._validate import numeric_array
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.records.prepare import check_block, record_array

__all__ = ["Asked", "PrivateClassifier", "PrivateEstimator", "PrivateTransformer", "rows_of"]


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


class PrivateTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """An estimator with `transform`, and names for the columns that come out of it."""

    _n_features_out: int


class PrivateClassifier(ClassifierMixin, PrivateTransformer):  # type: ignore[misc]
    """A classifier that can also hand its distances to the next step of a pipeline."""


def rows_of(X: Any, columns: int) -> np.ndarray:
    """A table of numbers with this many columns, or an error that says so."""
    table = np.asarray(numeric_array("X", X))
    if table.ndim != 2 or table.shape[1] != columns:
        raise ArgumentError(f"X must be a table of shape (n, {columns}), as transform returns it; got {table.shape}.")
    return table
