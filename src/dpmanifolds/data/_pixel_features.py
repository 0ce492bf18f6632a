"""Features of the pixels of a block of images, in buffers that are used again for the next block.

>>> import numpy as np
>>> from dpmanifolds.data._pixel_features import PixelFeatures
>>> PixelFeatures(count=2, height=4, width=5, channels=1).covariances(np.full((2, 4, 5), 0.5)).shape
(2, 9, 9)
"""

from __future__ import annotations

import numpy as np

__all__ = ["LUMINANCE", "NO_CHANGE", "PixelFeatures"]

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
            grey = np.tensordot(features[:, 3:6], LUMINANCE, axes=(1, 0))
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
