"""Descriptors of images that live on an accelerator: the same stencils on whole arrays, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from array_api_compat import is_jax_array

from dpmanifolds._arrays import Array, like, namespace
from dpmanifolds.data._pixel_features import LUMINANCE, NO_CHANGE
from dpmanifolds.errors import NotOnManifoldError

__all__ = ["device_descriptors"]

# what the features of a block may take: enough to fill a device, little beside its memory
_BLOCK_BYTES = 1 << 29


def device_descriptors(images: Array, scale: float, eta: float) -> Array:
    """R_η of images (n, h, w) or (n, h, w, 3), with intensities divided by `scale`, in float64 on their device."""
    xp = namespace(images)
    count = int(images.shape[0])
    floating = bool(xp.isdtype(images.dtype, "real floating"))
    if floating and bool(xp.any(xp.isnan(images))):
        raise NotOnManifoldError("images must not hold NaN; repair or drop such images first.")
    size = max(1, _BLOCK_BYTES // (8 * 12 * math.prod(images.shape[1:3])))
    run = _jax_covariances() if is_jax_array(images) else partial(_covariances, xp)
    parts = [run(images[first : min(first + size, count), ...], scale, eta) for first in range(0, count, size)]
    if not parts:
        k = 9 if images.ndim == 3 else 11
        return like(np.empty((0, k, k)), xp.astype(images, xp.float64))
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


@cache
def _jax_covariances() -> Callable[[Array, float, float], Array]:
    import jax

    compiled: Callable[[Array, float, float], Array] = jax.jit(partial(_covariances, jax.numpy))
    return compiled


def _covariances(xp: Any, images: Array, scale: float, eta: float) -> Array:
    """(1/N) Σ φφᵀ − μμᵀ + ηI, formula by formula as on the host."""
    values = xp.clip(xp.astype(images, xp.float64) / scale, 0.0, 1.0)
    count, height, width = values.shape[:3]
    colours = [values] if values.ndim == 3 else [values[..., at] for at in range(3)]
    grey = values if values.ndim == 3 else sum(w * part for w, part in zip(LUMINANCE, colours, strict=True))
    quarter = _padded(xp, grey / 4)
    across, down = _sobel(quarter, 2), _sobel(quarter, 1)
    second = [xp.abs(_sobel(across, 2)) / 8, xp.abs(_sobel(down, 1)) / 8]
    across, down = (xp.abs(part[:, 1:-1, 1:-1]) for part in (across, down))
    across, down = (xp.where(part >= NO_CHANGE, part, xp.zeros_like(part)) for part in (across, down))
    x = like(np.linspace(-0.5, 0.5, width)[None, None, :], values) + xp.zeros_like(grey)
    y = like(np.linspace(-0.5, 0.5, height)[None, :, None], values) + xp.zeros_like(grey)
    slope, angle = xp.sqrt(across * across + down * down), xp.atan2(across, down)
    rows = xp.stack([xp.ones_like(grey), x, y, *colours, across, down, *second, slope, angle], axis=1)
    features = xp.reshape(rows, (count, rows.shape[1], height * width))
    moments = features[:, 1:, :] @ xp.matrix_transpose(features) / (height * width)
    mean = moments[:, :, 0]
    result = moments[:, :, 1:] - mean[:, :, None] * mean[:, None, :]
    identity = like(np.eye(rows.shape[1] - 1), values)
    return (result + xp.matrix_transpose(result)) / 2 + eta * identity


def _padded(xp: Any, images: Array) -> Array:
    """Border pixels repeated twice outwards."""
    tall = xp.concat([images[:, :1, :]] * 2 + [images] + [images[:, -1:, :]] * 2, axis=1)
    return xp.concat([tall[:, :, :1]] * 2 + [tall] + [tall[:, :, -1:]] * 2, axis=2)


def _sobel(values: Array, along: int) -> Array:
    """(1, 2, 1) of differences along an axis; differences come first, so that equal neighbours give exactly 0."""
    if along == 2:
        change = values[:, :, 2:] - values[:, :, :-2]
        pairs = change[:, :-1, :] + change[:, 1:, :]
        return pairs[:, :-1, :] + pairs[:, 1:, :]
    change = values[:, 2:, :] - values[:, :-2, :]
    pairs = change[:, :, :-1] + change[:, :, 1:]
    return pairs[:, :, :-1] + pairs[:, :, 1:]
