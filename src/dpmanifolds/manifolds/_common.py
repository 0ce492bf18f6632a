"""What several manifolds need to be written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifolds._arrays import Array, namespace, sinc
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import as_generator

if TYPE_CHECKING:
    from dpmanifolds.manifolds.base import Manifold

__all__ = [
    "check_gradient",
    "default_tolerance",
    "frame_products",
    "great_circle",
    "normal_array",
    "number_rules",
]


def number_rules(finite: Array, fulfilled: Array) -> Array:
    """1 where numbers are not finite, else 2 where the second rule is not fulfilled, else 0."""
    xp = namespace(finite)
    whole = xp.asarray(0).dtype
    return xp.astype(~finite, whole) + 2 * xp.astype(finite & ~fulfilled, whole)


def normal_array(rng: Any, size: tuple[int, ...] | int, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normal numbers of shape (*size, *shape)."""
    leading = (size,) if isinstance(size, int) else tuple(size)
    return as_generator(rng).standard_normal((*leading, *shape))


def great_circle(base: Array, vector: Array, length: Array) -> Array:
    """cos(length)·base + sin(length)·vector/|vector| on a unit sphere, for |vector| = length."""
    xp = namespace(base, vector)
    length = length[..., None]
    return xp.cos(length) * base + sinc(length) * vector


def default_tolerance(point: Array, tolerance: float | None) -> float:
    """The relative slack of `belongs`: 1e-6 in float64, 1e-3 in float32, unless told otherwise."""
    if tolerance is not None:
        return tolerance
    xp = namespace(point)
    return 1e-3 if point.dtype in (xp.float32, xp.complex64) else 1e-6


def frame_products(arrays: Array, frame: Array) -> Array:
    """Euclidean inner products (..., d) of arrays (..., *point) with the d vectors of a frame (d, *point)."""
    xp = namespace(arrays, frame)
    flat = xp.reshape(frame, (frame.shape[0], -1))
    rows = xp.reshape(arrays, (*arrays.shape[: arrays.ndim - frame.ndim + 1], flat.shape[1]))
    if xp.isdtype(flat.dtype, "complex floating"):
        return xp.real(rows @ xp.conj(xp.matrix_transpose(flat)))
    return rows @ xp.matrix_transpose(flat)


def check_gradient(manifold: Manifold, gradient: Any) -> None:
    """An error for what has another shape than points."""
    shape, expected = tuple(getattr(gradient, "shape", ())), manifold.point_shape
    if shape[len(shape) - len(expected) :] != expected:
        raise ArgumentError(
            f"a Euclidean gradient on {manifold!r} has shape (..., {', '.join(map(str, expected))}); got {shape}."
        )
