"""From Euclidean to Riemannian gradients, on every manifold by one rule.

>>> import numpy as np
>>> from dpmanifolds import SPD
>>> from dpmanifolds.optimize import riemannian_gradient
>>> w = np.diag([2.0, 1.0])
>>> riemannian_gradient(SPD(2), w, np.eye(2)).round(6).tolist()
[[4.0, 0.0], [0.0, 1.0]]

The Riemannian gradient is the tangent vector whose inner product with every tangent vector v is ⟨∂f, v⟩, the ordinary
derivative along v. In orthonormal coordinates that is ⟨∂f, E_j⟩ for the tangent vectors E_j that `from_coordinates`
makes of the unit vectors: no formula per manifold or metric is needed.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, eye, leaves, like, namespace
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean, Manifold, Power, Product

__all__ = ["gradient_coordinates", "riemannian_gradient"]


def riemannian_gradient(manifold: Manifold, w: Array, egrad: Array) -> Array:
    """The Riemannian gradients at one point w for Euclidean ones (..., *point_shape), with any leading axes.

    On `PlanarShapes` a Euclidean gradient is complex: ∂f/∂Re + i·∂f/∂Im.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.optimize import riemannian_gradient
    >>> riemannian_gradient(Sphere(2), np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 0.0])).round(6).tolist()
    [1.0, 2.0, -0.0]
    """
    return manifold.from_coordinates(w, gradient_coordinates(manifold, w, egrad))


@singledispatch
def gradient_coordinates(manifold: Manifold, w: Array, egrad: Array) -> Array:
    """The same as orthonormal coordinates (..., dim).

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.optimize import gradient_coordinates
    >>> gradient_coordinates(SPD(2), np.diag([2.0, 1.0]), np.eye(2)).round(6).tolist()
    [2.0, 1.0, 0.0]
    """
    _check(manifold, egrad)
    xp = namespace(w, egrad)
    frame = manifold.from_coordinates(w, like(np.eye(manifold.dim), w))
    flat = xp.reshape(frame, (manifold.dim, -1))
    rows = xp.reshape(egrad, (*manifold.batch_shape(egrad), flat.shape[1]))
    if xp.isdtype(flat.dtype, "complex floating"):
        return xp.real(rows @ xp.conj(xp.matrix_transpose(flat)))
    return rows @ xp.matrix_transpose(flat)


@gradient_coordinates.register
def _(manifold: Euclidean, w: Array, egrad: Array) -> Array:
    _check(manifold, egrad)
    return egrad


@gradient_coordinates.register
def _(manifold: Power, w: Array, egrad: Array) -> Array:
    """One small frame per copy."""
    _check(manifold, egrad)
    xp = namespace(w, egrad)
    one = manifold.manifold
    frame = one.from_coordinates(w[:, None, ...], eye(one.dim, xp.real(leaves(w)[0]))[None, ...])
    flat = xp.reshape(frame, (manifold.m, one.dim, -1))
    leading = manifold.batch_shape(egrad)
    rows = xp.reshape(egrad, (*leading, manifold.m, 1, flat.shape[-1]))
    product = xp.sum(rows * xp.conj(flat) if xp.isdtype(flat.dtype, "complex floating") else rows * flat, axis=-1)
    if xp.isdtype(product.dtype, "complex floating"):
        product = xp.real(product)
    return xp.reshape(product, (*leading, manifold.dim))


@gradient_coordinates.register
def _(manifold: Product, w: Array, egrad: Array) -> Array:
    if not isinstance(egrad, tuple) or len(egrad) != len(manifold.factors):
        raise ArgumentError(f"a gradient on {manifold!r} is a tuple of {len(manifold.factors)} arrays.")
    parts = [gradient_coordinates(*each) for each in zip(manifold.factors, w, egrad, strict=True)]
    return namespace(*parts).concat(parts, axis=-1)


def _check(manifold: Manifold, egrad: Any) -> None:
    shape = tuple(getattr(egrad, "shape", ()))
    expected = manifold.point_shape
    if shape[len(shape) - len(expected) :] != expected:
        raise ArgumentError(
            f"a Euclidean gradient on {manifold!r} has shape (..., {', '.join(map(str, expected))}); got {shape}."
        )
