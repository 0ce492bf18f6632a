"""Compositions (proportions, relative abundances) as points of a sphere.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> from dpmanifolds.data import square_root_map
>>> points = square_root_map([[10, 0, 30], [1, 1, 2]])
>>> points.round(3).tolist()
[[0.5, 0.0, 0.866], [0.5, 0.5, 0.707]]
>>> Ball.positive_orthant(Sphere(2)).contains(points).tolist()
[True, True]
"""

from __future__ import annotations

from typing import Any

from dpmanifolds._arrays import Array, namespace, norm
from dpmanifolds._validate import numeric_array
from dpmanifolds.errors import ArgumentError, NotOnManifoldError

__all__ = ["inverse_square_root_map", "square_root_map"]


def square_root_map(compositions: Any) -> Array:
    """√(parts / their sum): points of Sphere(d) for rows of d+1 parts, counts or proportions, some of them zero.

    Twice the distance on the sphere is the Fisher–Rao distance of the distributions. All points lie in
    `Ball.positive_orthant(Sphere(d))`, which is public. Rows with a negative part, a part that is not finite, or
    nothing but zeros are refused, with an error that depends on records and is outside any guarantee.

    >>> from dpmanifolds.data import square_root_map
    >>> square_root_map([[1, 0, 3]]).round(3).tolist()
    [[0.5, 0.0, 0.866]]
    """
    parts = numeric_array("compositions", compositions)
    xp = namespace(parts)
    if xp.isdtype(parts.dtype, "complex floating") or parts.ndim == 0 or parts.shape[-1] < 2:
        raise ArgumentError(
            "compositions must be real numbers of shape (..., d + 1) with at least two parts; got dtype "
            f"{parts.dtype}, shape {tuple(parts.shape)}."
        )
    if not bool(xp.all(xp.isfinite(parts))):
        raise NotOnManifoldError("parts of a composition must be finite; repair or drop such rows first.")
    if bool(xp.any(parts < 0)):
        raise NotOnManifoldError("parts of a composition must not be negative; repair or drop such rows first.")
    if parts.shape[0] == 0:
        return parts
    largest = xp.max(parts, axis=-1, keepdims=True)
    if bool(xp.any(largest == 0)):
        raise NotOnManifoldError("a composition of zeros alone has no proportions; drop such rows first.")
    # divided by the largest first, so that neither sums nor squares leave the range of numbers
    roots = xp.sqrt(parts / largest)
    return roots / norm(roots)[..., None]


def inverse_square_root_map(points: Any) -> Array:
    """The squares of the coordinates, scaled to sum 1: the composition that a point of the sphere stands for.

    Defined for every point: noise may lead out of the positive orthant, and x and −x stand for the same proportions.

    >>> inverse_square_root_map([0.6, -0.8]).round(2).tolist()
    [0.36, 0.64]
    """
    coordinates = numeric_array("points", points)
    xp = namespace(coordinates)
    squares = coordinates * coordinates
    total = xp.sum(squares, axis=-1, keepdims=True)
    if not bool(xp.all(xp.isfinite(total) & (total > 0))):
        raise NotOnManifoldError("must be finite and of positive length; use points of a sphere.", argument="points")
    return squares / total
