"""Curved records as ordinary vectors: tangent coordinates at a private mean.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.estimators import PrivateTangentSpace
>>> X = dpm.SPD(3).random_point(500, rng=0)
>>> space = PrivateTangentSpace(dpm.Ball(dpm.SPD(3), np.eye(3), radius=2.0), dpm.PureDP(1.0)).fit(X)
>>> space.transform(X).shape, bool(np.allclose(space.inverse_transform(space.transform(X)), X))
((500, 6), True)
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array
from dpmanifolds.estimators._base import PrivateTransformer, rows_of
from dpmanifolds.estimators.mean import PrivateFrechetMean

__all__ = ["PrivateTangentSpace"]


class PrivateTangentSpace(PrivateTransformer, PrivateFrechetMean):
    """log at a private mean, in orthonormal coordinates: lengths and angles there are those of the metric.

    The promise covers the reference point alone. The coordinates of a record are that record in other numbers: a
    model fitted to the coordinates of private records is not private unless its own training is. For records that
    are public, or whose owners gave consent, any model of scikit-learn can follow in a pipeline.

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
