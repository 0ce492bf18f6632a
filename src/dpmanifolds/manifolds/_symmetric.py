"""Symmetric matrices: coordinates, functions of matrices and their differentials."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, gather, like, namespace, sinhc, sym, transpose

__all__ = [
    "apply_function",
    "differential",
    "from_upper_triangle",
    "log_difference_quotient",
    "sinhc_quotient",
    "upper_triangle",
]


@cache
def _triangle_positions(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the diagonal and the part above it stand in the flattened matrix, and their √2 weights."""
    rows, columns = np.triu_indices(k, 1)
    positions = np.concatenate([np.arange(k) * (k + 1), rows * k + columns])
    return positions, np.concatenate([np.ones(k), np.full(rows.size, math.sqrt(2.0))])


@cache
def _square_positions(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each entry of the flattened matrix stands among the coordinates, and its weight."""
    rows, columns = np.triu_indices(k, 1)
    source = np.diag(np.arange(k))
    source[rows, columns] = source[columns, rows] = k + np.arange(rows.size)
    weight = np.full((k, k), math.sqrt(0.5))
    np.fill_diagonal(weight, 1.0)
    return source.ravel(), weight.ravel()


def upper_triangle(matrix: Array) -> Array:
    """Orthonormal coordinates of a symmetric matrix: the diagonal, then √2 times what is above it."""
    xp = namespace(matrix)
    k = matrix.shape[-1]
    positions, weight = _triangle_positions(k)
    return gather(xp.reshape(matrix, (*matrix.shape[:-2], k * k)), positions) * like(weight, matrix)


def from_upper_triangle(coordinates: Array, k: int) -> Array:
    """The symmetric matrix with these orthonormal coordinates."""
    xp = namespace(coordinates)
    source, weight = _square_positions(k)
    flat = gather(coordinates, source) * like(weight, coordinates)
    return xp.reshape(flat, (*coordinates.shape[:-1], k, k))


def apply_function(matrix: Array, function: Any) -> Array:
    """U f(λ) Uᵀ for a symmetric matrix U λ Uᵀ, symmetric to the last bit."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    return sym((vectors * function(values)[..., None, :]) @ transpose(vectors))


def differential(vectors: Array, quotients: Array, direction: Array) -> Array:
    """Derivative of a matrix function: U (f[λᵢ,λⱼ] ∘ UᵀVU) Uᵀ (Daleckii–Krein)."""
    inner = transpose(vectors) @ direction @ vectors
    return sym(vectors @ (quotients * inner) @ transpose(vectors))


def sinhc_quotient(values: Array) -> Array:
    """Divided differences of exp: (e^a − e^b)/(a − b) = e^((a+b)/2)·sinh(h)/h with h = (a−b)/2."""
    xp = namespace(values)
    half = values / 2
    return xp.exp(half[..., :, None] + half[..., None, :]) * sinhc(half[..., :, None] - half[..., None, :])


def log_difference_quotient(log_values: Array) -> Array:
    """Divided differences of log at e^a, e^b, given a, b: the reciprocal of those of exp."""
    return 1 / sinhc_quotient(log_values)
