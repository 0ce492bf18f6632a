"""Checks of what a law is given, before anything random happens."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array, as_array, namespace
from dpmanifolds._points import has_parts
from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold

__all__ = ["Size", "checked_order", "checked_point", "checked_probabilities", "float_or_array", "size_of"]

Size: TypeAlias = int | tuple[int, ...]
"""How many draws: a number, or the shape of leading axes."""


def size_of(size: Size) -> tuple[tuple[int, ...], int]:
    """`size` as leading axes and their product."""
    leading = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    checked = tuple(positive_integer("size", axis, at_least=0) for axis in leading)
    return checked, math.prod(checked)


def checked_point(manifold: Manifold, point: Any, name: str) -> Array:
    """`point` as one point of `manifold`, or an error that names the argument."""
    point = _shaped(manifold, point, name)
    if not bool(manifold.belongs(point)):
        raise NotOnManifoldError(f"{name} does not lie on {manifold!r}; `project` brings a nearby array onto it.")
    return point


def _shaped(manifold: Manifold, point: Any, name: str) -> Array:
    if manifold.has_parts:
        if not has_parts(point) or len(point) != len(manifold.factors):
            raise ArgumentError(
                f"must be a tuple of {len(manifold.factors)} arrays, one point per factor.", argument=name
            )
        return tuple(_shaped(factor, part, name) for factor, part in zip(manifold.factors, point, strict=True))
    try:
        point = as_array(point)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"must be an array of numbers of shape {manifold.point_shape}.", argument=name) from None
    if not manifold.is_complex and namespace(point).isdtype(point.dtype, "complex floating"):
        raise ArgumentError(f"must be real numbers on {manifold!r}; got complex ones.", argument=name)
    if tuple(point.shape) != manifold.point_shape:
        raise ArgumentError(f"must have shape {manifold.point_shape}; got {tuple(point.shape)}.", argument=name)
    xp = namespace(point)
    if not bool(xp.all(xp.isfinite(point))):
        raise NotOnManifoldError("must hold finite numbers.", argument=name)
    return point


def checked_order(order: float) -> float:
    """The order of a moment, or an error if it is negative or not finite."""
    if not (math.isfinite(order) and order >= 0):
        raise ArgumentError(f"the order of a moment must be finite and at least 0; got {order}.")
    return float(order)


def checked_probabilities(probability: ArrayLike) -> np.ndarray:
    """`probability` as float64, or an error if one is outside [0, 1]."""
    given = np.asarray(probability, dtype=np.float64)
    if not np.all((given >= 0) & (given <= 1)):
        raise ArgumentError("a probability must lie between 0 and 1.")
    return given


def float_or_array(values: Any) -> Any:
    """A float where a number was asked for, else the array."""
    return float(values) if np.ndim(values) == 0 else values
