"""Records as they come in: shape, weights and the rules that the arrays must obey."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, to_numpy
from dpmanifolds._points import leaves
from dpmanifolds._validate import numeric_array, refuse_empty
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold


def record_array(manifold: Manifold, points: Any) -> Array:
    """`points` as an array (n, *point_shape) with at least one record."""
    check_manifold(manifold)
    array = manifold.as_points(points)
    shape = manifold.batch_shape(array)
    if len(shape) != 1:
        raise ArgumentError(
            f"must have exactly one leading axis of records; got leading axes {shape}.", argument="points"
        )
    refuse_empty(shape[0])
    return array


def record_weights(sample_weight: Any, points: Array, count: int) -> Array:
    """Weights that sum to one, in the library and precision of the points."""
    reference = leaves(points)[0]
    if sample_weight is None:
        return like(np.full(count, 1 / count), reference)
    weights = to_numpy(numeric_array("sample_weight", sample_weight))
    if weights.dtype.kind == "c":
        raise ArgumentError("sample_weight must hold real numbers; got complex ones.")
    weights = weights.astype(np.float64)
    if weights.shape != (count,):
        raise ArgumentError(f"sample_weight must have shape ({count},), one per record; got {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ArgumentError("sample_weight must be finite, not negative, and positive somewhere.")
    return like(weights / weights.sum(), reference)


def check_block(manifold: Manifold, block: Array) -> None:
    """Raise `NotOnManifoldError` if a record breaks a rule; the message names the rule and no record."""
    rule = manifold.first_broken_rule(block)
    if rule is not None:
        raise NotOnManifoldError(
            f"records must lie on {manifold!r}, and at least one does not: {rule}. Check them with "
            "dpmanifolds.validate; repair, project or drop such records."
        )
