"""Records as they come in: shape, weights and the rules that the arrays must obey."""

from __future__ import annotations

from functools import cache, singledispatch
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, eps, is_numpy, like, namespace, to_numpy, transpose
from dpmanifolds._points import leaves
from dpmanifolds._validate import numeric_array, shown
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold, Power, Product
from dpmanifolds.manifolds.base import default_tolerance
from dpmanifolds.manifolds.spd import SPDBase

__all__ = ["check_block", "record_array", "record_weights"]


def record_array(manifold: Manifold, points: Any) -> Array:
    """`points` as an array (n, *point_shape) with at least one record."""
    if not isinstance(manifold, Manifold):
        raise ArgumentError(f"manifold must be a Manifold such as SPD(3); got {shown(manifold)}.")
    array = manifold.as_points(points)
    shape = manifold.batch_shape(array)
    if len(shape) != 1:
        raise ArgumentError(f"points must have exactly one leading axis of records; got leading axes {shape}.")
    if shape[0] == 0:
        raise ArgumentError("points is empty: at least one record is needed.")
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
    rule = _broken_rule(manifold, block)
    if rule is not None:
        raise NotOnManifoldError(
            f"records must lie on {manifold!r}, and at least one does not: {rule}. Check them with "
            "dpmanifolds.validate; repair, project or drop such records."
        )


@singledispatch
def _broken_rule(manifold: Manifold, block: Array) -> str | None:
    xp = namespace(block)
    if not bool(xp.all(xp.isfinite(block))):
        return "all numbers must be finite"
    return None if bool(xp.all(manifold.belongs(block))) else "it must satisfy the manifold's equations"


@_broken_rule.register
def _(manifold: Product, block: Array) -> str | None:
    rules = (_broken_rule(factor, part) for factor, part in zip(manifold.factors, block, strict=True))
    return next((rule for rule in rules if rule is not None), None)


@_broken_rule.register
def _(manifold: Power, block: Array) -> str | None:
    return _broken_rule(manifold.manifold, block)


@_broken_rule.register
def _(manifold: SPDBase, block: Array) -> str | None:
    """Symmetry here; positivity shows in the decomposition that the statistic needs anyway."""
    if is_numpy(block) and block.flags.c_contiguous and _seems_symmetric(block):
        return None
    xp = namespace(block)
    flipped = transpose(block)
    if not bool(xp.isfinite(xp.sum(block))):
        return "all numbers must be finite"
    if bool(xp.all(block == flipped)):
        return None
    size = xp.max(xp.abs(block), axis=(-2, -1))
    skew = xp.max(xp.abs(block - flipped), axis=(-2, -1))
    if not bool(xp.all(skew <= default_tolerance(block, None) * size)):
        return "matrices must be symmetric"
    return None


def _seems_symmetric(block: np.ndarray) -> bool:
    """Whether one product per record finds them all finite and symmetric up to rounding; False settles nothing.

    It weighs the differences a_ij − a_ji with fixed numbers of no simple ratio. Differences that cancel all the same
    cost nothing but the error message: each record is read in one way only, or made symmetric first.
    """
    k = block.shape[-1]
    with np.errstate(all="ignore"):
        rows = block.reshape(-1, k * k)
        seen = np.vecdot(rows, _skew_weights(k).astype(block.dtype))
        return bool(np.all(np.abs(seen) <= 16 * k * k * eps(block) * rows[:, 0]))


@cache
def _skew_weights(k: int) -> np.ndarray:
    """A skew matrix, flattened."""
    weights = np.triu(np.random.default_rng(0).uniform(0.5, 1.0, (k, k)), 1)
    return (weights - weights.T).ravel()
