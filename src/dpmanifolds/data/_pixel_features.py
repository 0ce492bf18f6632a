"""Features of the pixels of a block of images, in buffers that are used again for the next block.

For images that live on an accelerator the same stencils run on whole arrays, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from array_api_compat import is_jax_array

from dpmanifolds._arrays import Array, like, namespace
from dpmanifolds.errors import NotOnManifoldError

LUMINANCE = (0.299, 0.587, 0.114)
# a change below 2⁻²⁰ of full scale counts as none: its direction would be read off rounding errors
NO_CHANGE = 2.0**-20


class PixelFeatures:
    """Working arrays for up to `count` images of one size; fresh ones for every block would cost most of the time.

    Padded images lie one after the other in a single row, in which a step down is a shift by `step`: every stencil is
    then a sum of shifted copies of that row. What wraps around a border lands in the padding, which is cut off at the
    end; a tail of zeros, as long as what two stencils consume, makes room for the cut.
    """

    def __init__(self, count: int, height: int, width: int, channels: int) -> None:
        self._shape = count, height, width
        self._step = width + 4
        self._size = count * (height + 4) * self._step
        self._line = np.zeros(self._size + 4 * (self._step + 1))
        self._across, self._down, self._twice, self._change, self._pairs = (np.empty_like(self._line) for _ in range(5))
        self._changed = np.empty(self._line.shape, dtype=bool)
        self._features = np.empty((count, 9 + channels, height, width))
        self._first = 3 + channels
        # 1, whose products with the others are their sums, and positions from −½ to ½: no covariance sees a shift
        self._features[:, 0] = 1.0
        self._features[:, 1] = np.linspace(-0.5, 0.5, width)
        self._features[:, 2] = np.linspace(-0.5, 0.5, height)[:, None]

    def covariances(self, images: np.ndarray) -> np.ndarray:
        """(1/N) Σ φφᵀ − μμᵀ for images (n, h, w) or (n, h, w, 3) with values in [0, 1], n at most `count`.

        Features are of size about 1, so that the difference is exact to a few units of rounding of 1.
        """
        self._fill(images)
        count = len(images)
        pixels = self._shape[1] * self._shape[2]
        features = self._features[:count].reshape(count, -1, pixels)
        # two different operands: numpy would take the slower symmetric product for two equal ones
        moments = features[:, 1:] @ features.swapaxes(1, 2) / pixels
        mean = moments[:, :, 0]
        result = moments[:, :, 1:] - mean[:, :, None] * mean[:, None, :]
        symmetric: np.ndarray = (result + result.swapaxes(1, 2)) / 2
        return symmetric

    def _fill(self, images: np.ndarray) -> None:
        count, first, step = len(images), self._first, self._step
        features = self._features[:count]
        if images.ndim == 3:
            features[:, 3] = images
            grey = images
        else:
            features[:, 3:6] = np.moveaxis(images, 3, 1)
            # pixel by pixel: a product of all pixels rounds some of them by their place
            grey = LUMINANCE[0] * features[:, 3]
            for weight, row in zip(LUMINANCE[1:], (4, 5), strict=True):
                grey += weight * features[:, row]
        self._pad(grey)
        across, down = self._sobel(self._line, 1, step, self._across), self._sobel(self._line, step, 1, self._down)
        for row, part, shifts in ((first + 2, across, (1, step)), (first + 3, down, (step, 1))):
            # the row holds I/4: Sobel's kernel on it is I_x, and on that 8I_xx
            twice = self._sobel(part, *shifts, self._twice)
            np.multiply(np.abs(twice, out=twice), 1 / 8, out=twice)
            features[:, row] = self._crop(twice, 0, count)
        for row, part in ((first, across), (first + 1, down)):
            np.abs(part, out=part)
            changed = np.greater_equal(part, NO_CHANGE, out=self._changed[: part.size])
            np.multiply(part, changed, out=part)
            features[:, row] = self._crop(part, step + 1, count)
        angle = np.arctan2(across, down, out=self._twice[: across.size])
        features[:, first + 5] = self._crop(angle, step + 1, count)
        np.add(np.square(across, out=across), np.square(down, out=down), out=across)
        features[:, first + 4] = self._crop(np.sqrt(across, out=across), step + 1, count)

    def _pad(self, grey: np.ndarray) -> None:
        """A quarter of the images into the row, border pixels repeated twice outwards."""
        count, height, _ = self._shape
        padded = self._line[: self._size].reshape(count, height + 4, self._step)[: len(grey)]
        np.multiply(grey, 0.25, out=padded[:, 2:-2, 2:-2])
        padded[:, :2, 2:-2] = padded[:, 2:3, 2:-2]
        padded[:, -2:, 2:-2] = padded[:, -3:-2, 2:-2]
        padded[:, :, :2] = padded[:, :, 2:3]
        padded[:, :, -2:] = padded[:, :, -3:-2]

    def _sobel(self, line: np.ndarray, along: int, beside: int, out: np.ndarray) -> np.ndarray:
        """(1, 2, 1) at shifts `beside` of the differences at shifts `along`; entry 0 belongs to along + beside.

        Differences come first, so that equal neighbours give exactly 0.
        """
        size = line.size - 2 * along
        change = np.subtract(line[2 * along :], line[: -2 * along], out=self._change[:size])
        pairs = np.add(change[:-beside], change[beside:], out=self._pairs[: size - beside])
        total: np.ndarray = np.add(pairs[:-beside], pairs[beside:], out=out[: size - 2 * beside])
        return total

    def _crop(self, line: np.ndarray, start: int, count: int) -> np.ndarray:
        _, height, width = self._shape
        whole = line[start : start + self._size].reshape(self._shape[0], height + 4, self._step)
        return whole[:count, :height, :width]


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
