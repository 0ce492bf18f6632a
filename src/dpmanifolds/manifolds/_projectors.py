"""Projectors as vectors: symmetric or Hermitian matrices without their trace.

>>> import numpy as np
>>> traceless_triangle(np.array([[0.5, 0.5], [0.5, 0.5]])).round(6).tolist()
[0.0, 0.707107]
"""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds._arrays import Array, astype_complex, gather, like, namespace
from dpmanifolds.manifolds._orthonormal import complement_to_coordinates, coordinates_to_complement
from dpmanifolds.manifolds._symmetric import from_upper_triangle


def traceless_triangle(matrix: Array) -> Array:
    """Orthonormal coordinates of a symmetric or Hermitian matrix less its trace: k(k+1)/2 − 1, or k² − 1 of them.

    Those of the diagonal across (1, …, 1), then √2 times what is above it: real parts, and imaginary ones if there are.
    """
    xp = namespace(matrix)
    k = matrix.shape[-1]
    rows, columns = np.triu_indices(k, 1)
    flat = xp.reshape(matrix, (*matrix.shape[:-2], k * k))
    diagonal, above = gather(flat, np.arange(k) * (k + 1)), math.sqrt(2.0) * gather(flat, rows * k + columns)
    if not xp.isdtype(matrix.dtype, "complex floating"):
        return xp.concat([across_ones(diagonal), above], axis=-1)
    return xp.concat([across_ones(xp.real(diagonal)), xp.real(above), xp.imag(above)], axis=-1)


def across_ones(diagonal: Array) -> Array:
    """Coordinates (..., k − 1) of a vector across (1, …, 1)."""
    xp = namespace(diagonal)
    middle = xp.mean(diagonal, axis=-1, keepdims=True)
    return complement_to_coordinates(xp.ones_like(diagonal), diagonal - middle)


def from_traceless_triangle(coordinates: Array, k: int) -> Array:
    """The symmetric k×k matrix of trace 0 with these coordinates; Hermitian for k² − 1 of them."""
    xp = namespace(coordinates)
    diagonal = coordinates_to_complement(like(np.ones(k), coordinates), coordinates[..., : k - 1])
    pairs = k * (k - 1) // 2
    above = coordinates[..., k - 1 : k - 1 + pairs]
    real = from_upper_triangle(xp.concat([diagonal, above], axis=-1), k)
    if coordinates.shape[-1] == k - 1 + pairs:
        return real
    imaginary = from_upper_triangle(xp.concat([0 * diagonal, coordinates[..., k - 1 + pairs :]], axis=-1), k)
    signs = like(np.triu(np.ones((k, k)), 1) - np.tril(np.ones((k, k)), -1), coordinates)
    return astype_complex(real) + 1j * astype_complex(signs * imaginary)
