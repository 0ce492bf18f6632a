"""Points of a domain as orthonormal coordinates at its public centre, and back."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds.distributions import move
from dpmanifolds.domains import Domain
from dpmanifolds.manifolds import FlatManifold, Manifold, Power, Product

__all__ = ["coordinates_at", "host", "point_at"]


def host(point: Array) -> Array:
    """A NumPy point in double precision.

    >>> import numpy as np
    >>> from dpmanifolds.mechanisms import host
    >>> host(np.eye(2, dtype=np.float32)).dtype.name
    'float64'
    """
    if isinstance(point, tuple):
        return tuple(host(part) for part in point)
    array = to_numpy(point)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


@singledispatch
def coordinates_at(manifold: Manifold, base: Array, point: Array) -> np.ndarray:
    """log_base(point) in orthonormal coordinates (..., dim); NumPy in, NumPy out.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.mechanisms import coordinates_at
    >>> coordinates_at(Euclidean(2), np.array([1.0, 1.0]), np.array([3.0, 0.0])).tolist()
    [2.0, -1.0]
    """
    return np.asarray(manifold.to_coordinates(base, manifold.log(base, point)))


@coordinates_at.register
def _(manifold: FlatManifold, base: Array, point: Array) -> np.ndarray:
    return np.asarray(manifold.chart(point) - manifold.chart(base))


@coordinates_at.register
def _(manifold: Product, base: Array, point: Array) -> np.ndarray:
    parts = zip(manifold.factors, base, point, strict=True)
    return np.concatenate([coordinates_at(*part) for part in parts], axis=-1)


@coordinates_at.register
def _(manifold: Power, base: Array, point: Array) -> np.ndarray:
    copies = coordinates_at(manifold.manifold, base, point)
    return copies.reshape((*copies.shape[:-2], manifold.dim))


def point_at(domain: Domain, coordinates: np.ndarray) -> Array:
    """exp at the centre, after shrinking the coordinates into the domain's radius, then clipped onto the domain.

    Post-processing. Balls are convex here and hold the statistic, so that shrinking brings the draw no farther from
    it in the tangent space.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Euclidean
    >>> from dpmanifolds.mechanisms import point_at
    >>> point_at(Ball(Euclidean(2), [1.0, 1.0], radius=5.0), np.array([6.0, 8.0])).round(6).tolist()
    [4.0, 5.0]
    """
    length = np.linalg.norm(coordinates, axis=-1, keepdims=True)
    inside = coordinates * np.minimum(1.0, domain.radius / np.maximum(length, 1e-300))
    return domain.clip(move(domain.manifold, host(domain.center), inside))
