"""Maps of diffusion tensors: what is left of 200 people and 10,000 voxels, by what is known in public.

    python benchmarks/maps.py [--people 200] [--side 22] [--releases 4]

A template of log-Euclidean tensors, smooth with details of its own, is public. People differ from it by a common
smooth shift (.3 in every voxel, root mean square), a smooth field of their own whose cosines fall like 1/(1 + f²)
with the frequency f (.5), and noise in every voxel (.2). Released is their mean, at μ = 1, in a ball that holds nine
tenths of them. For each way: the root mean square error in a voxel of what was released, against the mean of all
records; that of its smooth part; told: the expected error, of the smooth part of clipped records, per voxel; then
what clipping moves the smooth part of their mean by in the ball, and with public axes; the error of the template
alone, and that of having only so many people (sampling). Time and memory are those of one release.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import one_core

from dpmanifolds import SPD, Ball, Ellipsoid, GaussianDP, Power, Release, SmoothMaps, private_mean

_TENSORS = SPD(3, "log-euclidean")
_BUDGET = GaussianDP(1.0)
_KEPT = 4


def smooth_fields(space: SmoothMaps, count: int, size: float, rng: np.random.Generator) -> np.ndarray:
    """Coordinates of smooth fields with this root mean square in a voxel."""
    scales = smooth_scales(space)
    voxels = math.prod(space.shape)
    return rng.standard_normal((count, space.dim)) * scales * (size * math.sqrt(voxels) / np.linalg.norm(scales))


def smooth_scales(space: SmoothMaps) -> np.ndarray:
    """1/(1 + f²) for every cosine, f² the sum of its squared numbers of half-waves: public knowledge of smoothness."""
    grids = np.meshgrid(*(np.arange(kept) for kept in space.kept), indexing="ij")
    squared = np.sum([grid**2 for grid in grids], axis=0).ravel()
    return np.repeat(1 / (1.0 + squared), space.manifold.dim)


def made_up(space: SmoothMaps, people: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The template, and the maps of so many people."""
    details = 0.3 * rng.standard_normal((*space.shape, _TENSORS.dim))
    template = _TENSORS.inverse_chart(space._map_of(smooth_fields(space, 1, 1.0, rng)[0]) + details)
    shift = smooth_fields(space, 1, 0.3, rng)
    own = shift + smooth_fields(space, people, 0.5, rng)
    charts = _TENSORS.chart(template) + np.stack([space._map_of(each) for each in own])
    charts += 0.2 * rng.standard_normal(charts.shape)
    return template, np.asarray(_TENSORS.inverse_chart(charts))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--side", type=int, default=22, help="voxels along each axis of the grid")
    parser.add_argument("--releases", type=int, default=4)
    options = parser.parse_args()
    one_core()
    rng = np.random.default_rng(5)
    smooth = SmoothMaps(_TENSORS, (options.side,) * 3, _KEPT)
    voxels = options.side**3
    template, people = made_up(smooth, options.people, rng)
    flat = Power(_TENSORS, voxels)
    at = template.reshape(voxels, 3, 3)
    charts = np.asarray(_TENSORS.chart(people))
    truth = np.mean(charts, axis=0)
    whole = _TENSORS.inverse_chart(truth)
    radius = float(np.quantile(smooth.dist(template, people), 0.9))
    wide = float(np.quantile(np.sqrt(np.sum((charts - _TENSORS.chart(template)) ** 2, axis=(1, 2, 3, 4))), 0.9))
    body = Ellipsoid.from_scales(smooth, template, smooth_scales(smooth), margin=0.0)
    body = Ellipsoid(smooth, template, body.axes * radius / float(np.linalg.norm(smooth_scales(smooth))))
    ways: dict[str, Callable[[Any], Release]] = {
        "every voxel: Power, a ball": lambda seed: private_mean(
            people.reshape(-1, voxels, 3, 3), Ball(flat, at, wide), _BUDGET, rng=seed
        ),
        "SmoothMaps, a ball": lambda seed: private_mean(people, Ball(smooth, template, radius), _BUDGET, rng=seed),
        "SmoothMaps, public axes 1/(1 + f²)": lambda seed: private_mean(people, body, _BUDGET, rng=seed),
        "SmoothMaps, a ball 3× too large, refine='axes'": lambda seed: private_mean(
            people, Ball(smooth, template, 3 * radius), _BUDGET, refine="axes", rng=seed
        ),
    }
    sampling = float(np.sqrt(np.mean(np.sum(np.var(charts, axis=0), axis=-1)) / options.people))
    alone = float(np.sqrt(np.mean(np.sum((truth - _TENSORS.chart(template)) ** 2, axis=-1))))
    print(f"{options.people} people, {voxels} voxels; root mean square error in a voxel, {options.releases} releases")
    for name, release in ways.items():
        started, errors, smooth_errors = time.perf_counter(), [], []
        for seed in range(options.releases):
            made = release(seed)
            value = np.asarray(made.value).reshape((*truth.shape[:-1], 3, 3))
            errors.append(np.sqrt(np.mean(np.sum((_TENSORS.chart(value) - truth) ** 2, axis=-1))))
            smooth_errors.append(float(smooth.dist(whole, value)) / math.sqrt(voxels))
        each = (time.perf_counter() - started) / options.releases
        assert made.expected_error is not None
        told = made.expected_error.mean / math.sqrt(voxels)
        parts = f"{np.mean(errors):.3f}, smooth part {np.mean(smooth_errors):.3f}"
        print(f"  {name:<48} {parts}, told {told:.3f}, {each:.1f} s")
    for name, domain in {"a ball": Ball(smooth, template, radius), "public axes": body}.items():
        inside = np.mean(smooth.log_coordinates(template, domain.clip(people)), axis=0)
        moved = np.linalg.norm(inside - np.mean(smooth.log_coordinates(template, people), axis=0))
        print(f"  clipping to {name:<36} {moved / math.sqrt(voxels):.3f}")
    print(f"  {'the template alone':<48} {alone:.3f}\n  {'sampling error':<48} {sampling:.3f}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  records {people.nbytes / 2**30:.2f} GiB, all of this at most {memory:.2f} GiB")


if __name__ == "__main__":
    main()
