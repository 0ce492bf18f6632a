"""Covariance descriptors: an image of any size becomes one small positive definite matrix.

Images in Dask are described lazily, a task per chunk, nothing computed until a release asks for it. A task gives each
image its descriptor, whatever the others are; what is no image becomes a descriptor of NaN, because a task that raises
may have its arguments, images among them, written to the log of its worker.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import device as device_of

from dpmanifolds._arrays import Array, has_doubles, is_numpy, namespace, on_accelerator, to_numpy
from dpmanifolds._validate import positive_number
from dpmanifolds.data._pixel_features import PixelFeatures, device_descriptors
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.records.blocks import cores
from dpmanifolds.records.source import is_dask, is_dask_bag

# the features of one block: small enough for the cache, large enough for threads to pay
BLOCK_BYTES = 1 << 22


def feature_names(channels: int = 1) -> tuple[str, ...]:
    """What the rows of a descriptor stand for: nine features of grey images (1 channel), eleven of RGB (3).

    >>> feature_names(1)
    ('x', 'y', 'I', '|I_x|', '|I_y|', '|I_xx|', '|I_yy|', '|∇I|', 'angle')
    """
    if not isinstance(channels, int | np.integer) or channels not in (1, 3):
        raise ArgumentError(f"channels must be 1 (grey) or 3 (red, green, blue); got {channels!r}.")
    colours = ("I",) if channels == 1 else ("R", "G", "B")
    return ("x", "y", *colours, "|I_x|", "|I_y|", "|I_xx|", "|I_yy|", "|∇I|", "angle")


def image_descriptors(images: Any, *, eta: float = 1e-6, full_scale: float | None = None) -> Array:
    """The covariance matrix, over the pixels of each image, of nine (grey) or eleven (RGB) features, plus ηI.

    R_η = (1/N) Σ_p (φ(p) − μ)(φ(p) − μ)ᵀ + ηI with φ = (x, y, I, |I_x|, |I_y|, |I_xx|, |I_yy|, √(I_x² + I_y²),
    arctan(|I_x|/|I_y|)); for RGB images R, G, B stand in place of I, and derivatives are those of the luminance
    I = 0.299R + 0.587G + 0.114B. Positions run from 0 to 1; I_x, I_y are Sobel's kernels divided by 4, I_xx, I_yy
    Sobel's kernels applied twice, divided by 32, with border pixels repeated outwards. |I_x| and |I_y| below 2⁻²⁰ count
    as 0, and the angle is 0 where both are. Then λ_min ≥ η and tr(R_η − ηI) ≤ 7/4 + 5/16 + π²/16 (9/4 + … for RGB): the
    domain `DescriptorDomain` (docs/proofs/descriptors.md).

    `images` has shape (n, h, w), (n, h, w, 1) or (n, h, w, 3), h and w at least 3. An intensity of `full_scale` counts
    as 1: by default the largest number of an unsigned integer type (255 for uint8), and 1 for floating-point and
    boolean images. What lies outside [0, 1] after that is clipped to it, pixel by pixel. NaN is refused, with an error
    that depends on records and is outside any guarantee. The result is float64 whatever the images are, as η would be
    lost in single precision.

    A Dask array of images, or a Dask bag whose elements are images or blocks of them, gives a lazy Dask array of
    descriptors, in chunks of images, that releases take as it is. There an image with NaN, or an element of a bag that
    is no image of the channels that most of the first three have, becomes a descriptor of NaN, which releases refuse
    or, with on_invalid="center", replace: a task that raises would have its images written to a log. In a bag, where
    sizes may differ, an element with three axes is one image if the last has length 1 or 3, else a block of grey ones;
    where most of the first three elements are images a block is none of them, as it would count as many.

    >>> import numpy as np
    >>> from dpmanifolds.data import image_descriptors
    >>> colours = np.random.default_rng(0).random((4, 16, 16, 3))
    >>> image_descriptors(colours).shape
    (4, 11, 11)
    """
    eta = positive_number("eta", eta)
    if hasattr(images, "__dask_graph__"):
        return lazy_descriptors(images, eta, full_scale)
    images, channels = image_array(images)
    scale = scale_of(images, full_scale)
    if on_accelerator(images) and has_doubles(images):
        return device_descriptors(images, scale, eta)
    result = covariance_descriptors(images, channels, scale, eta, threads=cores())
    return result if is_numpy(images) else namespace(images).asarray(result, device=device_of(images))


def covariance_descriptors(images: Array, channels: int, scale: float, eta: float, *, threads: int) -> np.ndarray:
    """R_η of images that `image_array` has checked, with intensities divided by `scale`."""
    count, height, width = images.shape[:3]
    k = len(feature_names(channels))
    size = min(count, max(1, BLOCK_BYTES // (8 * k * (height + 4) * (width + 4))))
    result = np.empty((count, k, k))

    def run(starts: range) -> None:
        """The blocks that begin at `starts`, one after the other in the same working arrays."""
        if not starts:
            return
        features = PixelFeatures(size, height, width, channels)
        for start in starts:
            block = _intensities(to_numpy(images[start : start + size, ...]), scale)
            result[start : start + size] = features.covariances(block)

    starts = range(0, count, max(size, 1))
    threads = min(len(starts), threads)
    if threads <= 1:
        run(starts)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, (starts[part::threads] for part in range(threads))))
    diagonal = np.arange(k)
    result[:, diagonal, diagonal] += eta
    return result


def image_array(images: Any) -> tuple[Array, int]:
    """The images as an array (n, h, w) or (n, h, w, 3), and their number of channels."""
    try:
        xp = namespace(images)
    except TypeError:
        try:
            images = np.asarray(images)
        except ValueError:
            raise ArgumentError(
                "images must form one array; got a list of images of different sizes. Call image_descriptors once "
                "per size: descriptors of different sizes lie in the same space."
            ) from None
        xp = namespace(images)
    if is_numpy(images):
        images = np.asarray(images)
        numeric = images.dtype.kind in "biuf"
    else:
        numeric = xp.isdtype(images.dtype, ("bool", "integral", "real floating"))
    if not numeric:
        raise ArgumentError(f"images must be real numbers; got dtype {images.dtype}.")
    shape = tuple(images.shape)
    if len(shape) == 4 and shape[3] == 1:
        images = images[..., 0]
    elif not (len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)):
        raise ArgumentError(
            f"images must have shape (n, height, width) or (n, height, width, 3); got {shape}. Give a single image as "
            "images[None], move the channels last, and drop an alpha channel."
        )
    if min(shape[1], shape[2]) < 3:
        raise ArgumentError(f"images must be at least 3 pixels high and wide; got {shape[1]} × {shape[2]}.")
    return images, 3 if images.ndim == 4 else 1


def scale_of(images: Array, full_scale: float | None) -> float:
    """The intensity that counts as 1: as told, or by the dtype alone, never by what the images hold."""
    if full_scale is not None:
        return positive_number("full_scale", full_scale)
    xp = namespace(images)
    if xp.isdtype(images.dtype, "unsigned integer"):
        return float(xp.iinfo(images.dtype).max)
    if xp.isdtype(images.dtype, "signed integer"):
        raise ArgumentError(
            f"images of dtype {images.dtype} do not say which intensity is white. Pass full_scale (255 for 8-bit "
            "images), or convert them to uint8."
        )
    return 1.0


def _intensities(images: np.ndarray, scale: float) -> np.ndarray:
    """float64 values in [0, 1]."""
    values: np.ndarray = images / np.float64(scale)
    if images.dtype.kind == "f" and bool(np.any(np.isnan(values))):
        raise NotOnManifoldError("images must not hold NaN; repair or drop such images first.")
    if images.dtype.kind == "u" and scale == np.iinfo(images.dtype).max:
        return values
    return np.clip(values, 0.0, 1.0, out=values)


def lazy_descriptors(images: Any, eta: float, full_scale: float | None) -> Any:
    """A Dask array (n, k, k) of the descriptors of a Dask array or bag of images."""
    if is_dask(images):
        return _of_array(images, eta, full_scale)
    if is_dask_bag(images):
        return _of_bag(images, eta, full_scale)
    raise ArgumentError(f"images must be an array, a Dask array or a Dask bag; got {type(images).__name__}.")


def _of_array(images: Any, eta: float, full_scale: float | None) -> Any:
    if any(map(math.isnan, images.shape[1:])):
        raise ArgumentError("images is a Dask array of unknown size; only the number of images may be unknown.")
    # stands for the images: everything but their pixels is known
    shape = tuple(0 if math.isnan(size) else size for size in images.shape)
    blank = np.broadcast_to(np.zeros((), images.dtype), shape)
    describe = _Describe.like(blank, eta, full_scale)
    whole = images.rechunk(dict.fromkeys(range(1, images.ndim), -1))
    return whole.map_blocks(
        describe,
        dtype=np.float64,
        chunks=(whole.chunks[0], (describe.k,), (describe.k,)),
        drop_axis=list(range(3, images.ndim)),
        meta=np.empty((0, describe.k, describe.k)),
        name=_stem(),
    )


def _of_bag(bag: Any, eta: float, full_scale: float | None) -> Any:
    import dask.array as da
    from dask import delayed

    stem, partitions = _stem(), bag.to_delayed()
    first = _first_images(partitions, stem)
    in_blocks = 2 * sum(kind.is_block for kind in first) > len(first)
    most = Counter((kind.channels, kind.dtype) for kind in first).most_common(1)[0][0]
    usual = next(kind for kind in first if (kind.channels, kind.dtype) == most)
    describe = _Describe.like(np.zeros((1, *usual.size), usual.dtype), eta, full_scale)
    task = delayed(_OfPartition(describe, in_blocks), name=f"{stem}-work", pure=False, traverse=False)
    shape = (math.nan, describe.k, describe.k)
    blocks = [
        da.from_delayed(
            task(partition, dask_key_name=f"{stem}-task-{number}"),
            shape,
            meta=np.empty((0, *shape[1:])),
            name=f"{stem}-{number}",
        )
        for number, partition in enumerate(partitions)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _stem() -> str:
    """The beginning of the names of tasks, which are not named after what they hold."""
    return f"image-descriptors-{os.urandom(8).hex()}"


@dataclass(frozen=True)
class _Describe:
    """Descriptors (b, k, k) of a block of images, NaN for those that are none."""

    channels: int
    eta: float
    full_scale: float | None

    @classmethod
    def like(cls, images: Any, eta: float, full_scale: float | None) -> _Describe:
        """For images of the shape and type of these, which are checked here."""
        array, channels = image_array(images)
        scale_of(array, full_scale)
        return cls(channels, eta, full_scale)

    @property
    def k(self) -> int:
        return len(feature_names(self.channels))

    def __call__(self, block: Any) -> np.ndarray:
        result = np.full((len(block), self.k, self.k), np.nan)
        try:
            images, channels = image_array(np.asarray(block))
            if channels == self.channels:
                good = ~np.isnan(images).any(axis=tuple(range(1, images.ndim)))
                scale = scale_of(images, self.full_scale)
                images = images if good.all() else images[good]
                result[good] = covariance_descriptors(images, channels, scale, self.eta, threads=1)
        except Exception:
            result[:] = np.nan
        return result


@dataclass(frozen=True)
class _OfPartition:
    """The same of a partition of a bag; neighbours of one size and type go together."""

    describe: Callable[[Any], np.ndarray]
    in_blocks: bool
    """Whether elements may be blocks of images."""

    def __call__(self, partition: Any) -> np.ndarray:
        try:
            elements = list(partition)
        except Exception:
            # the bag itself could not be read: one descriptor that every release refuses
            return self.describe(_NO_IMAGE)
        alike = groupby(map(self._block_of, elements), key=lambda block: (block.shape[1:], block.dtype))
        found = [self.describe(np.concatenate(list(together))) for _, together in alike]
        return np.concatenate([self.describe(np.empty((0, 3, 3))), *found])

    def _block_of(self, element: Any) -> np.ndarray:
        """An element as images along one axis."""
        array = _array_of(element)
        if not _is_block(array):
            return array[None]
        return array if self.in_blocks else _NO_IMAGE


_NO_IMAGE = np.empty((1, 0, 0))
_LOOKED_AT = 3


def _array_of(element: Any) -> np.ndarray:
    """What cannot be an array is one image that is none, and takes no other along."""
    try:
        return np.asarray(element)
    except Exception:
        return np.empty((0, 0))


def _is_block(array: np.ndarray) -> bool:
    return array.ndim == 4 or (array.ndim == 3 and array.shape[2] not in (1, 3))


class _Kind(NamedTuple):
    """What an element of a bag is; its pixels stay where they are."""

    is_block: bool
    size: tuple[int, ...]
    dtype: np.dtype

    @property
    def channels(self) -> int:
        return 3 if len(self.size) == 3 and self.size[2] == 3 else 1


def _first_images(partitions: list[Any], stem: str) -> list[_Kind]:
    """Of the first three elements: so few that looking is cheap, so many that no single one decides for all."""
    from dask import delayed

    look, found = delayed(_look, pure=False), list[_Kind]()
    for number, partition in enumerate(partitions):
        seen = look(partition, dask_key_name=f"{stem}-look-{number}").compute()
        if isinstance(seen, str):
            raise ArgumentError(f"the images of the bag could not be read ({seen}).")
        found += seen
        if len(found) >= _LOOKED_AT:
            break
    if not found:
        raise ArgumentError("images is an empty bag: at least one image is needed to know their channels.")
    return found[:_LOOKED_AT]


def _look(partition: Any) -> list[_Kind] | str:
    """What the first elements are; the kind of an error as a value."""
    try:
        arrays = [_array_of(element) for element in islice(partition, _LOOKED_AT)]
    except Exception as error:
        return type(error).__name__
    return [_Kind(_is_block(each), each.shape[1:] if _is_block(each) else each.shape, each.dtype) for each in arrays]
