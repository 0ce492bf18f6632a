"""What `fit` is given besides points: tables, targets, weights and the name of a metric, in scikit-learn's words."""
# ruff: noqa: N803

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import _safe_indexing

from dpmanifolds._validate import numeric_array, real_numbers
from dpmanifolds.errors import ArgumentError, warn_user
from dpmanifolds.manifolds import SPD, Manifold


def check_target(model: BaseEstimator, y: Any) -> None:
    """Refuse a missing y in scikit-learn's words."""
    if y is None:
        raise ArgumentError(
            f"{type(model).__name__} requires y to be passed, but the target y is None: it has one entry per record."
        )


def row_of_labels(model: BaseEstimator, y: Any) -> Any:
    """Labels, one for each record; a column (n, 1) is a row of n."""
    check_target(model, y)
    if hasattr(y, "__array__") and not hasattr(y, "tolist"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warn_user("A column-vector y was passed when a 1d array was expected: y.ravel().", DataConversionWarning)
        return y.ravel()
    return y


def rows_of(X: Any, columns: int) -> np.ndarray:
    """A table of real numbers with this many columns, or an error that says so."""
    table = np.asarray(real_numbers("X", numeric_array("X", X)))
    if table.ndim != 2 or table.shape[1] != columns:
        raise ArgumentError(f"X must be a table of shape (n, {columns}), as transform returns it; got {table.shape}.")
    if not np.all(np.isfinite(table)):
        raise ArgumentError("must hold finite numbers, not NaN or inf.", argument="X")
    return table


def in_words_of_tables(model: BaseEstimator, X: Any, columns: int | None = None) -> None:
    """What is wrong with the type and the shape of a table, in scikit-learn's words; `columns`: how many were fitted.

    Entries are not looked at. What is no table of numbers yet is left to those who read it: a file, a frame, a list,
    whose type and shape as a whole one odd record may decide.
    """
    if issparse(X):
        raise ArgumentError("Sparse data are not supported: noise fills every entry. Use X.toarray().", argument="X")
    if not isinstance(X, np.ndarray):
        return
    shape = X.shape
    if X.dtype.kind == "c":
        raise ArgumentError("must hold real numbers. Complex data not supported.", argument="X")
    if len(shape) != 2:
        raise ArgumentError(
            f"must be a table (n, columns); got shape {shape}. Reshape your data either using X.reshape(-1, 1) if they "
            "have one column or X.reshape(1, -1) if they are one record.",
            argument="X",
        )
    if not shape[1]:
        raise ArgumentError(f"has 0 feature(s) (shape={shape}) while a minimum of 1 is required.", argument="X")
    if columns is not None and shape[1] != columns:
        raise ArgumentError(
            f"has {shape[1]} features, but {type(model).__name__} is expecting {columns} features as input.",
            argument="X",
        )


def width_of_most(X: Any) -> tuple[int, ...] | None:
    """The shape of a row in a list of rows: that of most, so that no single record decides it; None of an array.

    >>> width_of_most([[1.0, 2.0], [3.0], [4.0, 5.0]])
    (2,)
    """
    if not isinstance(X, list | tuple):
        return None
    found = Counter(len(row) for row in X if hasattr(row, "__len__"))
    return (found.most_common(1)[0][0],) if found else None


def keep_weighted(sample_weight: Any, *aligned: Any) -> tuple[Any, ...]:
    """Records, labels and names of those records whose public weight is not 0; other weights must be equal.

    The weights are public. Records of weight 0 are dropped, so that what is left is the ordinary statistic of the
    others, with its promise; neighbours that differ in a record of weight 0 have the same law. Unequal weights would
    raise one record's share above the 1/n that the promise of a mean rests on.
    """
    if sample_weight is None:
        return aligned
    weights = np.asarray(numeric_array("sample_weight", sample_weight), dtype=np.float64)
    if weights.ndim != 1 or len(weights) != len(aligned[0]):
        raise ArgumentError(f"must be one number for each record; got shape {weights.shape}.", argument="sample_weight")
    kept = np.flatnonzero(weights)
    if not len(kept) or not np.all(weights[kept] == weights[kept[0]]) or not 0 < weights[kept[0]] < np.inf:
        raise ArgumentError(
            "must be 0, which drops a record, or one and the same number above 0 for all others: with unequal weights "
            "one record counts for more than 1/n, which no promise here covers. Weights are taken as public.",
            argument="sample_weight",
        )
    if len(kept) == len(weights):
        return aligned
    return tuple(None if each is None else _safe_indexing(each, kept) for each in aligned)


def manifold_for(role: str, manifold: Manifold, metric: Any) -> Manifold:
    """The manifold whose metric is used for the `role` ("distance" or "map"), by pyRiemann's way to ask for it.

    `metric` is None (that of the domain), a name for everything, or a dict of names for "mean" and the role. The mean
    is that of the domain; whatever is done with it afterwards is free.
    """
    if metric is None:
        return manifold
    asked = dict(metric) if isinstance(metric, Mapping) else {"mean": metric, role: metric}
    if set(asked) != {"mean", role} or not hasattr(manifold, "metric"):
        raise ArgumentError(
            f'must be None, the name of a metric of SPD matrices, or a dict of names for "mean" and "{role}"; got '
            f"{metric!r} for {manifold!r}.",
            argument="metric",
        )
    size: int = manifold.point_shape[0]
    mean = SPD(size, asked["mean"])
    if mean != manifold:
        raise ArgumentError(
            f"asks for a mean in {mean!r}, and the domain is one of {manifold!r}: say the metric there, as in "
            f'Ball(SPD({size}, "{mean.metric}"), center, radius).',
            argument="metric",
        )
    return SPD(size, asked[role])
