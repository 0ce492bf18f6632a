"""Image descriptors: ours against a loop over the images with scipy's convolutions, same numbers out, in one run.

    python benchmarks/descriptors.py [--images 10000] [--repeats 3]

Both see 28×28 grey images of 8 bits. CPU time is on one core; wall time is ours on all cores against the loop on one.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.ndimage import correlate
from timing import best_times, one_core, record

from dpmanifolds.data import image_descriptors

SOBEL = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]]) / 4
TWICE = np.outer([1, 4, 6, 4, 1], [1, 0, -2, 0, 1]) / 32


def loop(images: np.ndarray, eta: float = 1e-6) -> np.ndarray:
    """One image after the other, as one writes it from the formulas."""
    height, width = images.shape[1:]
    rows, columns = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")
    results = []
    for each in images:
        image = each / 255
        across, down = (np.abs(correlate(image, kernel, mode="nearest")) for kernel in (SOBEL, SOBEL.T))
        second = [np.abs(correlate(image, kernel, mode="nearest")) for kernel in (TWICE, TWICE.T)]
        across[across < 2.0**-20] = 0
        down[down < 2.0**-20] = 0
        slope, angle = np.sqrt(across**2 + down**2), np.arctan2(across, down)
        features = np.stack([columns, rows, image, across, down, *second, slope, angle])
        results.append(np.cov(features.reshape(9, -1), bias=True) + eta * np.eye(9))
    return np.stack(results)


def blobs(count: int) -> np.ndarray:
    """Bright strokes on black: a few overlapping discs per image."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:28, :28]
    centres = rng.uniform(6, 22, size=(count, 4, 2, 1, 1))
    squared = (rows - centres[:, :, 0]) ** 2 + (columns - centres[:, :, 1]) ** 2
    return (255 * np.exp(-squared / 8).max(axis=1) * (squared.min(axis=1) < 16)).astype(np.uint8)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    images = blobs(arguments.images)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wall = float("inf")
    for _ in range(arguments.repeats + 1):
        started = time.perf_counter()
        ours = image_descriptors(images)
        wall = min(wall, time.perf_counter() - started)
    difference = float(np.max(np.abs(ours - loop(images))))
    assert difference < 1e-13, difference
    one_core()
    times = best_times({"ours": lambda: image_descriptors(images), "loop": lambda: loop(images)}, arguments.repeats)
    table = Table(title=f"Descriptors of {len(images):,} images, best of {arguments.repeats}")
    for heading in ("", "per image", "ratio"):
        table.add_column(heading, justify="right")
    scale = 1e6 / len(images)
    record("descriptors", f"{len(images):,} images, one core", times["ours"], "loop over images", times["loop"])
    record("descriptors", f"{len(images):,} images, {cores} cores", wall, "loop over images, one core", times["loop"])
    table.add_row("loop over images, one core", f"{times['loop'] * scale:.1f} µs", "1.0")
    table.add_row("ours, one core", f"{times['ours'] * scale:.1f} µs", f"{times['loop'] / times['ours']:.1f}")
    table.add_row(f"ours, {cores} cores (wall)", f"{wall * scale:.1f} µs", f"{times['loop'] / wall:.1f}")
    console = Console(width=120)
    console.print(table)
    console.print(f"Largest difference of an entry: {difference:.1e}.")


if __name__ == "__main__":
    main()
