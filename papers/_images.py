"""Labelled grey images for the covariance descriptors: real ones from the data folder, else drawn ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from papers._study import Setting

__all__ = ["ImageSet", "image_sets"]

_FILES = {
    "MNIST 10k": "images/mnist10k.npz",
    "Fashion sprite": "images/fashion_mnist_sprite900.npz",
    "Breast MNIST": "images/breastmnist.npz",
    "Pneumonia MNIST (subset)": "images/pneumoniamnist.npz",
}
_MOST_CLASSES = 4


@dataclass(frozen=True)
class ImageSet:
    """Images (n, h, w) of up to four classes."""

    name: str
    images: np.ndarray
    labels: np.ndarray

    @property
    def counts(self) -> list[int]:
        """Images per class."""
        return [int(count) for count in np.unique(self.labels, return_counts=True)[1]]


def image_sets(setting: Setting) -> list[ImageSet]:
    """The four sets that are there; where none is, one of drawn stripes."""
    found = [_read(name, file) for name, path in _FILES.items() if (file := setting.file(path)) is not None]
    return found or [_stripes(setting)]


def _read(name: str, path: object) -> ImageSet:
    with np.load(str(path)) as arrays:
        given = "x" if "x" in arrays else "train_images"
        labels = arrays["y" if "y" in arrays else "train_labels"].ravel()
        images = arrays[given]
    kept = np.isin(labels, np.unique(labels)[:_MOST_CLASSES])
    return ImageSet(name, images[kept], labels[kept])


def _stripes(setting: Setting) -> ImageSet:
    """Noisy stripes of a direction that tells the class."""
    count, rng = setting.pick(30, 300, 1000), setting.rng
    labels = np.repeat(np.arange(2), count)
    y, x = np.mgrid[0:28, 0:28] / 28
    angle = (labels + rng.normal(0, 0.2, 2 * count))[:, None, None]
    waves = np.sin(12 * (np.cos(angle) * x + np.sin(angle) * y) + rng.random((2 * count, 1, 1)) * 6)
    images = np.clip(0.5 + 0.35 * waves + rng.normal(0, 0.05, waves.shape), 0, 1)
    return ImageSet("synthetic stripes", (255 * images).astype(np.uint8), labels)
