"""From one iterate to the next: exponential map or retraction, kept on the manifold against rounding.

>>> import numpy as np
>>> from dpmanifolds import Sphere
>>> from dpmanifolds.optimize.moves import retract
>>> north, step = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
>>> retract(Sphere(2), north, step).round(6).tolist()
[0.707107, 0.0, 0.707107]
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, leaves, namespace, norm, sym, transpose
from dpmanifolds.manifolds import (
    FlatManifold,
    Manifold,
    Power,
    Product,
    SPDAffineInvariant,
)
from dpmanifolds.manifolds.spd import SPDBase
from dpmanifolds.optimize.loss import clip_factors

__all__ = ["LONGEST_STEP", "is_finite", "move", "retract", "shortened"]

LONGEST_STEP = 1024.0
"""Where a step leaves the range of floating-point numbers, it is shortened from here on."""


def is_finite(point: Any) -> bool:
    """Whether all numbers of a point, or of a tangent vector, are finite."""
    return all(bool(np.all(np.isfinite(leaf))) for leaf in leaves(point))


def move(manifold: Manifold, w: Array, coordinates: Array, retraction: bool) -> Array:
    """exp_w(v), or the retraction of v, for the tangent vector v with these coordinates."""
    vector = manifold.from_coordinates(w, coordinates)
    if retraction:
        return retract(manifold, w, vector)
    return _settled(manifold, manifold.exp(w, vector))


def shortened(manifold: Manifold, coordinates: np.ndarray, longest: float) -> np.ndarray:
    """A step cut to the length `longest`, on a `Power` each copy on its own."""
    copies = manifold.m if isinstance(manifold, Power) else 1
    parts = coordinates.reshape(copies, -1)
    return np.asarray(parts * clip_factors(norm(parts), longest)[:, None]).ravel()


@singledispatch
def _settled(manifold: Manifold, point: Array) -> Array:
    """`point` without the rounding that many steps would pile up."""
    return manifold.project(point)


@_settled.register(SPDBase)
@_settled.register(FlatManifold)
def _(manifold: Manifold, point: Array) -> Array:
    return point


@_settled.register
def _(manifold: Power, point: Array) -> Array:
    return _settled(manifold.manifold, point)


@_settled.register
def _(manifold: Product, point: Array) -> Array:
    return tuple(_settled(factor, part) for factor, part in zip(manifold.factors, point, strict=True))


@singledispatch
def retract(manifold: Manifold, w: Array, vector: Array) -> Array:
    """A first-order stand-in for exp_w(v): w + v in the ambient space, put back on the manifold."""
    return manifold.project(w + vector)


@retract.register
def _(manifold: FlatManifold, w: Array, vector: Array) -> Array:
    """exp itself: there is nothing cheaper."""
    return manifold.exp(w, vector)


@retract.register
def _(manifold: SPDAffineInvariant, w: Array, vector: Array) -> Array:
    """w + v + ½v w⁻¹v = ½w + ½(w + v)w⁻¹(w + v): positive definite for every v, of second order."""
    xp = namespace(w, vector)
    lower = xp.linalg.cholesky(w)
    half = xp.linalg.solve(lower, w + vector)
    return sym(w + transpose(half) @ half) / 2


@retract.register
def _(manifold: Power, w: Array, vector: Array) -> Array:
    return retract(manifold.manifold, w, vector)


@retract.register
def _(manifold: Product, w: Array, vector: Array) -> Array:
    return tuple(retract(*each) for each in zip(manifold.factors, w, vector, strict=True))
