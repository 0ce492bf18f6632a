"""Reflections that turn the orthogonal complement of a vector into coordinates."""

from __future__ import annotations

from dpmanifolds._arrays import Array, namespace, norm, safe_divide

__all__ = ["complement_to_coordinates", "coordinates_to_complement", "reflect_to_axis"]


def _reflector(x: Array) -> Array:
    """w of unit norm with (I − 2ww*)x = −phase·|x|·e₀; real or complex x."""
    xp = namespace(x)
    unit = x / xp.astype(norm(x), x.dtype)[..., None]
    first = unit[..., 0]
    size = xp.astype(xp.abs(first), x.dtype)
    phase = safe_divide(first, size, 1.0)
    w = xp.concat([(first + phase)[..., None], unit[..., 1:]], axis=-1)
    # |w|² = 2 + 2|first|, at least 2: no cancellation
    return w / xp.sqrt(2 + 2 * size)[..., None]


def _reflect(w: Array, v: Array) -> Array:
    xp = namespace(w, v)
    return v - 2 * w * xp.sum(
        xp.conj(w) * v if xp.isdtype(w.dtype, "complex floating") else w * v, axis=-1, keepdims=True
    )


def complement_to_coordinates(x: Array, v: Array) -> Array:
    """Coordinates (..., N−1) of a vector v orthogonal to x in (..., N): an isometry."""
    return _reflect(_reflector(x), v)[..., 1:]


def coordinates_to_complement(x: Array, c: Array) -> Array:
    """The vector orthogonal to x with coordinates c."""
    xp = namespace(x, c)
    w = _reflector(x)
    shape = (*xp.broadcast_arrays(w[..., 0], c[..., 0])[0].shape, c.shape[-1])
    c = xp.broadcast_to(c, shape)
    padded = xp.concat([xp.zeros_like(c[..., :1]), c], axis=-1)
    return _reflect(w, padded)


def reflect_to_axis(x: Array, v: Array) -> tuple[Array, Array]:
    """v after the reflection that makes complements of x coordinates: its part along x, and these coordinates.

    The part along x has the sign (phase) at which that of x itself is |x|. Coordinates come along the first axis, so
    that records are worked on side by side.
    """
    xp = namespace(x, v)
    columns = xp.moveaxis(v, -1, 0)
    normal = _column(_reflector(x), v.ndim)
    conjugate = xp.conj(normal) if xp.isdtype(normal.dtype, "complex floating") else normal
    turned = columns - 2 * normal * xp.sum(conjugate * columns, axis=0)
    first = _column(x, v.ndim)[0, ...]
    phase = safe_divide(first, xp.astype(xp.abs(first), x.dtype), 1.0)
    phase = xp.conj(phase) if xp.isdtype(x.dtype, "complex floating") else phase
    return -phase * turned[0, ...], turned[1:, ...]


def _column(x: Array, ndim: int) -> Array:
    """x (..., N) as (N, …), to be broadcast with columns of vectors that have `ndim` axes."""
    xp = namespace(x)
    axes = (x.shape[-1], *(1,) * (ndim - x.ndim), *x.shape[:-1])
    return xp.reshape(xp.moveaxis(x, -1, 0), axes)
