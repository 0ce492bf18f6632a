"""What a public fifth of real data is worth: private means with and without it, beside the public mean alone.

    python benchmarks/public_sample.py [--data ../shared/data] [--splits 6] [--draws 3] [--jobs 2] [--only hiv]

Twenty cases. In each of the splits a random fifth of the records is public, the others are private, μ = 1. Errors are
distances to the Fréchet mean of the private records, unclipped, over their sampling error (the root mean square
distance to it over √n), averaged over splits and draws of the noise. One default, `private_mean(...,
public_sample=...)`; nothing is tuned on the private part.

- `ours`: with the public sample.
- `ball`: isotropic noise in the ball that holds 95 % of the public sample around its mean (98 %, all: the last lines),
  one step, no shrinkage.
- `public`: the mean of the public sample, without any private record.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from dpmanifolds import SPD, Ball, GaussianDP, Manifold, PlanarShapes, Sphere, frechet_mean, private_mean
from dpmanifolds.data import image_descriptors

SHAPES = (
    "apes",
    "cortical_outline",
    "drosophila_cactophilic_wings",
    "honeybee_wings_lineages",
    "mice_vertebrae",
    "mice_vertebrae outlines",
    "mosquito_wing_outlines",
    "mosquito_wings",
    "osteosarcoma_cells_64pt",
    "rats_calvaria",
    "tyrannus_tails",
)
MATRICES = {"connectomes_fnc28": 1.0, "eeg_erp_cov32": 1e26, "dti_dipy_small_64D": 1.0}
METRICS = ("affine-invariant", "log-euclidean")
COMPOSITIONS = ("crohn", "hiv")
COVERAGES = (0.95, 0.98, 1.0)
MU = 1.0


class Row(NamedTuple):
    """Errors over the sampling error of one split."""

    ours: float
    public: float
    balls: tuple[float, ...]
    """For each of the coverages."""
    predicted: float
    """What the release said of itself before."""
    axes: int
    seconds: float


def load(case: str, folder: Path) -> tuple[Manifold, np.ndarray]:
    """The manifold and the records of a case."""
    name, *rest = case.split()
    if name in {shape.split()[0] for shape in SHAPES}:
        landmarks = np.load(folder / "shapes" / f"{name}.npz")[rest[0] if rest else "x"].astype(np.float64)
        space = PlanarShapes(landmarks.shape[1])
        return space, space.from_landmarks(landmarks)
    if name in MATRICES:
        raw = np.load(folder / "spd" / f"{name}.npz")["x"] * MATRICES[name]
        return SPD(raw.shape[-1], rest[0]), (raw + np.swapaxes(raw, 1, 2)) / 2
    if name == "mnist":
        images = np.load(folder / "images" / "mnist10k.npz")
        return SPD(9, "log-euclidean"), image_descriptors(images["x"][images["y"] == 3])
    counts = np.load(folder / "sphere" / f"compositional_{name}_microbiome.npz")["counts"]
    sphere = Sphere(counts.shape[1] - 1)
    return sphere, sphere.from_compositions(counts)


def cases() -> list[str]:
    """All twenty."""
    matrices = [f"{name} {metric}" for name in MATRICES for metric in METRICS]
    return [*SHAPES, *matrices, "mnist 3s", *COMPOSITIONS]


def run_split(case: str, folder: Path, split: int, draws: int) -> Row:
    """One split of one case."""
    manifold, records = load(case, folder)
    rng = np.random.default_rng([split, 2026])
    order = rng.permutation(len(records))
    count = len(records) // 5
    public, private = records[order[:count]], records[order[count:]]
    truth = frechet_mean(manifold, private).point
    center = frechet_mean(manifold, public).point
    sampling = float(np.sqrt(np.mean(manifold.dist(truth, private) ** 2) / len(private)))

    def error(point: Any) -> float:
        return float(np.mean(manifold.dist(truth, point))) / sampling

    ball = Ball.from_sample(manifold, public, margin=0.5)
    started = time.perf_counter()
    releases = [
        private_mean(private, ball, GaussianDP(MU), public_sample=public, rng=seed) for seed in range(1, draws + 1)
    ]
    seconds = (time.perf_counter() - started) / draws
    part = releases[0].public
    return Row(
        ours=float(np.mean([error(release.value) for release in releases])),
        public=error(center),
        balls=tuple(
            isotropic_error(manifold, private, public, center, coverage, draws, rng, error) for coverage in COVERAGES
        ),
        predicted=np.nan if part is None else part.predicted / sampling,
        axes=0 if part is None else part.axes,
        seconds=seconds,
    )


def isotropic_error(
    manifold: Manifold,
    private: np.ndarray,
    public: np.ndarray,
    center: Any,
    coverage: float,
    draws: int,
    rng: np.random.Generator,
    error: Callable[[Any], float],
) -> float:
    """Of the clipped tangent mean with isotropic noise, in floating point."""
    radius = float(np.quantile(manifold.dist(center, public), coverage))
    rows = manifold.log_coordinates(center, private)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    mean = np.mean(rows * np.minimum(1.0, radius / np.maximum(lengths, 1e-300)), axis=0)
    noise = rng.standard_normal((4 * draws, manifold.dim)) * 2 * radius / (len(private) * MU)
    return error(manifold.exp_coordinates(center, mean + noise))


def summarize(rows: dict[str, list[Row]], console: Console) -> None:
    """The table, and what it must show."""
    table = Table("case", "ours", "ball", "gain", "public", "ours/public", "predicted", "axes", "s")
    ours, public, balls = [], [], []
    for case, found in rows.items():
        mean, alone = float(np.mean([row.ours for row in found])), float(np.mean([row.public for row in found]))
        isotropic = np.mean([row.balls for row in found], axis=0)
        ours.append(mean)
        public.append(alone)
        balls.append(isotropic)
        told = float(np.mean([row.predicted for row in found]))
        axes = round(float(np.mean([row.axes for row in found])))
        seconds = float(np.mean([row.seconds for row in found]))
        cells = (mean, isotropic[0], isotropic[0] / mean, alone, mean / alone, told)
        table.add_row(case, *(f"{cell:.2f}" for cell in cells), str(axes), f"{seconds:.1f}")
    console.print(table)
    found, alone, isotropic = np.array(ours), np.array(public), np.array(balls)
    console.print(f"ours: at most 1 on {np.sum(found <= 1)}, at most 2 on {np.sum(found <= 2)} of {found.size} cases")
    console.print(f"largest ours/public: {np.max(found / alone):.2f}")
    for coverage, column in zip(COVERAGES, isotropic.T, strict=True):
        gain = np.exp(np.mean(np.log(column / found)))
        console.print(
            f"ball that holds {coverage:.0%} of the sample: at most 1 on {np.sum(column <= 1)}, at most 2 on "
            f"{np.sum(column <= 2)}; geometric mean of the gain {gain:.2f}"
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wanted = [case for case in cases() if options.only in case]
    console = Console(width=120)
    with ProcessPoolExecutor(options.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        tasks = {
            (case, split): pool.submit(run_split, case, options.data, split, options.draws)
            for case in wanted
            for split in range(options.splits)
        }
        rows = {case: [tasks[case, split].result() for split in range(options.splits)] for case in wanted}
    summarize(rows, console)


if __name__ == "__main__":
    main()
