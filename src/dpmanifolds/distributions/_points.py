"""From tangent coordinates to points."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from dpmanifolds._arrays import Array, like, namespace
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.manifolds import FlatManifold, Manifold, Power, Product

__all__ = ["move"]


def move(manifold: Manifold, base: Array, coordinates: np.ndarray) -> Array:
    """exp_base of NumPy coordinates (..., dim), as points in the library and precision of `base`.

    Raises `ScaleOutOfRangeError` where the result overflows or is no point of the manifold in that precision.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.distributions import move
    >>> move(Sphere(2), np.array([0.0, 0.0, 1.0]), np.array([[0.0, 0.0], [np.pi, 0.0]])).round(6)[:, 2].tolist()
    [1.0, -1.0]
    """
    # overflow is looked for below, in every library alike
    with np.errstate(all="ignore"):
        points = _exp(manifold, base, coordinates)
        inside = _all_belong(manifold, points)
    if not inside:
        raise ScaleOutOfRangeError(
            f"at this scale draws lie so far out that they are no points of {manifold!r} in the precision of the "
            "centre. Use a smaller sigma, or take `sample_coordinates` and shrink them into a ball first."
        )
    return points


def _all_belong(manifold: Manifold, points: Array) -> bool:
    if isinstance(manifold, Product):
        return all(_all_belong(factor, part) for factor, part in zip(manifold.factors, points, strict=True))
    xp = namespace(points)
    return bool(xp.all(xp.isfinite(points))) and bool(xp.all(manifold.belongs(points)))


@singledispatch
def _exp(manifold: Manifold, base: Array, coordinates: np.ndarray) -> Array:
    return manifold.exp(base, manifold.from_coordinates(base, like(coordinates, base)))


@_exp.register
def _(manifold: FlatManifold, base: Array, coordinates: np.ndarray) -> Array:
    # the differential of the chart and its inverse cancel; going through both loses the digits of a bad condition
    return manifold.inverse_chart(manifold.chart(base) + like(coordinates, base))


@_exp.register
def _(manifold: Product, base: Array, coordinates: np.ndarray) -> Array:
    parts = manifold.split_coordinates(coordinates)
    return tuple(_exp(*each) for each in zip(manifold.factors, base, parts, strict=True))


@_exp.register
def _(manifold: Power, base: Array, coordinates: np.ndarray) -> Array:
    copies = coordinates.reshape((*coordinates.shape[:-1], manifold.m, manifold.manifold.dim))
    return _exp(manifold.manifold, base, copies)
