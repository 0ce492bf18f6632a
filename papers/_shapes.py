"""Planar landmark data for the shape figures, and what the paper does to them: point-wise noise and smoothing.

>>> import numpy as np
>>> from papers._shapes import crossings
>>> crossings(np.array([0, 1, 1 + 1j, 1j])), crossings(np.array([0, 1, 1j, 1 + 1j]))
(0, 1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifolds.manifolds import PlanarShapes
from papers._study import Setting

__all__ = ["ShapeSet", "crossings", "point_wise_laplace", "shape_sets", "smoothed"]

_FILES = (
    ("MR landmarks", "people", "shapes/schizophrenia_mr_landmarks.npz", 13, False),
    ("Cortical outlines", "people", "shapes/cortical_outline.npz", 25, True),
    ("Fly wings", "wings", "shapes/drosophila_cactophilic_wings.npz", 9, False),
    ("Cell outlines", "cells", "shapes/osteosarcoma_cells_64pt.npz", 16, True),
)


@dataclass(frozen=True)
class ShapeSet:
    """Shapes (n, k) as complex points, split into a public reference and the private rest."""

    name: str
    records: np.ndarray
    outline: bool
    """Whether the points follow a closed curve, so that smoothing along it means something."""
    unit: str

    @property
    def space(self) -> PlanarShapes:
        """Where they live."""
        return PlanarShapes(self.records.shape[1])

    @property
    def public(self) -> np.ndarray:
        """Every fifth shape, taken as published before."""
        return self.records[::5]

    @property
    def private(self) -> np.ndarray:
        """The others."""
        return np.delete(self.records, np.s_[::5], axis=0)


def shape_sets(setting: Setting) -> list[ShapeSet]:
    """The four sets that are there; where none is, drawn bent ovals."""
    found = []
    for name, unit, path, points, outline in _FILES:
        file = setting.file(path)
        if file is not None:
            with np.load(file) as arrays:
                landmarks = arrays["x"].astype(np.float64)
            rows = np.linspace(0, landmarks.shape[1], points, endpoint=False).astype(int)
            found.append(ShapeSet(name, PlanarShapes(points).from_landmarks(landmarks[:, rows]), outline, unit))
    return found or [_ovals(setting)]


def _ovals(setting: Setting) -> ShapeSet:
    """Bent ovals with smooth random deformations."""
    count, points, rng = setting.pick(40, 200, 400), 20, setting.rng
    t = 2 * np.pi * np.arange(points) / points
    template = 2 * np.cos(t) + 1j * (0.6 * np.sin(t) - 0.5 * np.cos(t) ** 2)
    waves = np.exp(1j * np.outer(np.arange(-3, 4), t))
    size = rng.standard_normal((count, 7)) + 1j * rng.standard_normal((count, 7))
    shapes = PlanarShapes(points).from_landmarks(template + 0.04 * size @ waves)
    return ShapeSet("synthetic ovals", shapes, True, "ovals")


def point_wise_laplace(
    mean: np.ndarray, records: np.ndarray, epsilon: float, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Laplace noise on each coordinate of each landmark, σ = 4rk/(nε), r the largest deviation in the records.

    As published (B.5.2): the radii are read off the records, so that nothing is promised.
    """
    n, k = records.shape
    scales = 4 * k / (n * epsilon)
    away = records - mean
    noise = rng.laplace(size=(count, k)) * np.abs(away.real).max(axis=0) * scales
    noise = noise + 1j * rng.laplace(size=(count, k)) * np.abs(away.imag).max(axis=0) * scales
    return np.asarray(mean + noise)


def smoothed(curves: np.ndarray, bandwidth: float = 1.0) -> np.ndarray:
    """Closed curves (..., k) after local linear regression along the curve, a Gaussian kernel in units of points.

    On equally spaced points of a closed curve the kernel is symmetric, and the local line's value is the local mean.
    """
    k = curves.shape[-1]
    offsets = np.minimum(np.arange(k), k - np.arange(k))
    weights = np.exp(-((offsets / bandwidth) ** 2) / 2)
    kernel = np.stack([np.roll(weights, shift) for shift in range(k)]) / weights.sum()
    return np.asarray(curves @ kernel.T)


def crossings(curve: np.ndarray) -> int:
    """How many pairs of sides of a closed polygon cross."""
    start, end = curve, np.roll(curve, -1)

    def side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(((b - a) * np.conj(c - a)).imag))

    a, b, c, d = start[:, None], end[:, None], start[None], end[None]
    crossed = (side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)
    return int(np.triu(crossed, 1).sum())
