"""Public spatial filters: W·X·Wᵀ for matrices X, a map of each record on its own.

>>> import numpy as np
>>> from dpmanifolds.estimators import Congruence
>>> Congruence(np.array([[1.0, 1.0]])).transform(np.eye(2)[None]).tolist()
[[[2.0]]]
"""
# ruff: noqa: N803

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin

from dpmanifolds._arrays import to_numpy
from dpmanifolds._validate import hide_records, numeric_array, positive_integer, real_numbers, record_numbers
from dpmanifolds.errors import ArgumentError


class Congruence(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fewer channels by filters from public knowledge: X ↦ W·X·Wᵀ, SPD(c) to SPD(k).

    Nothing is learned from the records that pass through, so it spends nothing; the filters must not come from them.
    `from_public` makes common spatial patterns of public subjects.

    Parameters
    ----------
    filters : array (k, channels)
        W, from public knowledge.

    Examples
    --------

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X, y = dpm.SPD(6).random_point(60, rng=0), np.repeat([0, 1], 30)
    >>> dpm.Congruence.from_public([(X, y)], count=4).transform(X).shape
    (60, 4, 4)
    """

    protects_training = True
    """Nothing is learned."""

    def __init__(self, filters: Any) -> None:
        self.filters = filters

    @classmethod
    def from_public(cls, subjects: Sequence[tuple[Any, Any]], count: int) -> Congruence:
        """Common spatial patterns of public `subjects`, pairs of matrices (n, c, c) and labels (n,) of two classes.

        Each subject's matrices count in units of its own mean power. Of the generalised eigenvectors of the two class
        sums those at both ends are taken, `count` in all: they differ most between classes.
        """
        sums = np.sum([_class_means(points, labels) for points, labels in subjects], axis=0)
        channels = sums.shape[-1]
        count = positive_integer("count", count)
        if count > channels:
            raise ArgumentError(f"must be at most the number of channels, {channels}; got {count}.", argument="count")
        _, patterns = linalg.eigh(sums[1], sums[0] + sums[1])
        low = count // 2
        chosen = [*range(low), *range(channels - (count - low), channels)]
        return cls(patterns[:, chosen].T)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing to learn."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """W·X·Wᵀ for each matrix of X (n, c, c), each on its own: symmetric to the last bit, NaN for what is none."""
        filters = np.asarray(numeric_array("filters", self.filters), dtype=np.float64)
        if filters.ndim != 2 or not np.all(np.isfinite(filters)):
            raise ArgumentError(
                f"must be a finite matrix (k, channels); got shape {filters.shape}.", argument="filters"
            )
        channels = filters.shape[1]
        with hide_records():
            table = record_numbers("X", X, (channels, channels))
            points = np.asarray(to_numpy(real_numbers("X", table)), dtype=np.float64)
            if points.ndim != 3 or points.shape[1:] != (channels, channels):
                raise ArgumentError(f"X must be matrices of shape (n, {channels}, {channels}); got {points.shape}.")
            made = filters @ points @ filters.T
            return np.asarray((made + np.swapaxes(made, 1, 2)) / 2)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.requires_fit = False
        return tags


def _class_means(points: Any, labels: Any) -> np.ndarray:
    """The mean matrix of either class of one public subject, over the mean trace."""
    array, tags = np.asarray(points, dtype=np.float64), np.asarray(labels)
    names = np.unique(tags)
    if array.ndim != 3 or len(names) != 2 or tags.shape != array.shape[:1]:
        raise ArgumentError("each public subject must be matrices (n, c, c) and n labels of two classes.")
    scale = float(np.trace(array.mean(axis=0)))
    return np.stack([array[tags == name].mean(axis=0) / scale for name in names])
