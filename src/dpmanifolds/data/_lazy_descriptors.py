"""Covariance descriptors as a Dask pipeline: a task per chunk of images, nothing computed until a release asks for it.

A task gives each image its descriptor, whatever the others are; what is no image becomes a descriptor of NaN, because a
task that raises may have its arguments, images among them, written to the log of its worker.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.data.descriptors import covariance_descriptors, feature_names, image_array, scale_of
from dpmanifolds.errors import ArgumentError
from dpmanifolds.records.source import is_dask, is_dask_bag

__all__ = ["lazy_descriptors"]


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
    describe = _Describe.like(_first_image(partitions, stem), eta, full_scale)
    task = delayed(_OfPartition(describe), name=f"{stem}-work", pure=False, traverse=False)
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

    def __call__(self, partition: Any) -> np.ndarray:
        try:
            blocks = [_as_block(element) for element in partition]
        except Exception:
            # the bag itself could not be read: one descriptor that every release refuses
            return self.describe(np.empty((1, 0, 0)))
        alike = groupby(blocks, key=lambda block: (block.shape[1:], block.dtype))
        found = [self.describe(np.concatenate(list(together))) for _, together in alike]
        return np.concatenate([self.describe(np.empty((0, 3, 3))), *found])


def _as_block(element: Any) -> np.ndarray:
    """An element of a bag as images along one axis."""
    array = np.asarray(element)
    if array.ndim == 4 or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        return array
    return array[None]


def _first_image(partitions: list[Any], stem: str) -> Array:
    """A blank image of the size and type of the first one; its pixels stay where they are."""
    from dask import delayed

    look = delayed(_look, pure=False)
    for number, partition in enumerate(partitions):
        seen = look(partition, dask_key_name=f"{stem}-look-{number}").compute()
        if isinstance(seen, str):
            raise ArgumentError(f"the images of the bag could not be read ({seen}).")
        if seen is not None:
            return np.zeros((1, *seen[0]), seen[1])
    raise ArgumentError("images is an empty bag: at least one image is needed to know their channels.")


def _look(partition: Any) -> tuple[tuple[int, ...], np.dtype] | str | None:
    """Size and type of the first image; None without one; the kind of an error as a value."""
    try:
        for element in partition:
            block = _as_block(element)
            return block.shape[1:], block.dtype
    except Exception as error:
        return type(error).__name__
    return None
