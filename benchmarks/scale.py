"""Many diffusion tensors: streamed from disk, growth with their number, and what privacy adds.

    python benchmarks/scale.py [--records 10000000] [--folder FOLDER] [--stream-only] [--quick]

The private mean of a file is one of one step and a public radius, which is one pass: `steps=1, refine=0`.
"bare" reads the same file block by block and does nothing but the closed-form logarithm of each tensor and its sum, on
the same threads: what no mean can do without. Peak memory is that of a process of its own. The exponents are slopes of
log time over log n, through CPU times.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_times, record, record_growth

import dpmanifolds as dpm
from dpmanifolds.manifolds._symmetric import log_entries
from dpmanifolds.records.blocks import block_size, cores, ordered_map

STREAM = """
import json, sys, time
import numpy as np
import dpmanifolds as dpm
space = dpm.SPD(3, sys.argv[2])
ball = dpm.Ball.from_eigenvalues(space, 0.05, 20.0)
points = np.load(sys.argv[1], mmap_mode="r")
one_pass = {"steps": 1, "refine": 0}
dpm.private_mean(points[:20000], ball, dpm.ApproxDP(1.0, 1e-9), **one_pass)
wall, cpu = time.perf_counter(), time.process_time()
release = dpm.private_mean(points, ball, dpm.ApproxDP(1.0, 1e-9), **one_pass)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
# not ru_maxrss, which starts from that of the process that started this one
peak, anonymous = (int(status[name].split()[0]) for name in ("VmHWM", "RssAnon"))
print(json.dumps({"n": release.n, "wall": wall, "cpu": cpu, "peak": peak, "anonymous": anonymous}))
"""


def write_tensors(path: Path, count: int) -> None:
    """float32 covariances of six normal vectors, in a .npy file, piece by piece."""
    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(count, 3, 3))
    piece = rng.standard_normal((200_000, 3, 6))
    piece = (piece @ piece.swapaxes(1, 2) / 6).astype(np.float32)
    for first in range(0, count, len(piece)):
        rows = min(len(piece), count - first)
        # another order and scale for every piece, at the speed of the disk
        file[first : first + rows] = np.roll(piece, first // len(piece), axis=0)[:rows] * np.float32(
            1 + first / count / 2
        )
    file.flush()


def bare(path: Path, limit: int | None = None) -> np.ndarray:
    """Read, take logarithms, add up: nothing checked, nothing clipped."""
    points = np.load(path, mmap_mode="r")[:limit]
    size = block_size(9 * 8)

    def block_sum(first: int) -> np.ndarray:
        block = points[first : first + size].astype(np.float64)
        entries = {(i, j): block[:, i, j].copy() for i in range(3) for j in range(i, 3)}
        logs = log_entries(entries, 3)
        assert logs is not None
        return np.array([entry.sum() for entry in logs.values()])

    total = np.zeros(6)
    for part in ordered_map(block_sum, range(0, len(points), size), cores()):
        total += part
    return total / len(points)


def streamed(path: Path, metric: str) -> dict[str, float]:
    """One private mean of the whole file in a process of its own."""
    done = subprocess.run([sys.executable, "-c", STREAM, str(path), metric], capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def slope(sizes: list[int], times: list[float]) -> float:
    """Of log time over log n."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def cpu_time(run: Callable[[], object], repeats: int = 7) -> float:
    """Best CPU time in seconds, all threads together."""
    run()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return min(times)


def overhead(sizes: list[int]) -> Table:
    """private_mean against clipping and averaging without privacy."""
    table = Table(
        title="What privacy adds: CPU time of private_mean over that of clip and mean, both of them in memory"
    )
    for heading in ("space", "n", "clip", "mean", "private_mean", "ratio"):
        table.add_column(heading, justify="right")
    rng = np.random.default_rng(1)
    for n in sizes:
        factors = rng.standard_normal((n, 3, 6))
        tensors = factors @ factors.swapaxes(1, 2) / 6
        sphere = dpm.Sphere(2)
        directions = sphere.project(np.array([1.5, 0.0, 0.0]) + rng.standard_normal((n, 3)) / 2)
        cases = [
            (dpm.Ball(dpm.SPD(3, "log-euclidean"), np.eye(3), 3.5), tensors),
            (dpm.Ball(dpm.SPD(3), np.eye(3), 3.5), tensors),
            (dpm.Ball(sphere, np.array([1.0, 0.0, 0.0]), 1.2), directions),
        ]
        for ball, points in cases:
            clipped = ball.clip(points)
            times = best_times(
                {
                    "clip": lambda b=ball, p=points: b.clip(p),
                    "mean": lambda b=ball, c=clipped: dpm.frechet_mean(b.manifold, c),
                    "private": lambda b=ball, p=points: dpm.private_mean(p, b, dpm.GaussianDP(1.0)),
                },
                repeats=9,
            )
            shown = [f"{1e3 * times[name]:.1f} ms" for name in ("clip", "mean", "private")]
            both = times["clip"] + times["mean"]
            ratio = times["private"] / both
            record("privacy", f"{ball.manifold!r}, n = {n:,}", times["private"], "clip and mean, not private", both)
            table.add_row(repr(ball.manifold), f"{n:,}", *shown, f"{ratio:.2f}")
    return table


def growth(sizes: list[int]) -> Table:
    """Exponents of CPU time in n; four times as many directions as tensors, so that no size fits into the cache."""
    table = Table(title="Growth with n: CPU time per record, and the slope of log time over log n")
    for heading in ("space", *(f"at {n // sizes[0]}n" for n in sizes), "n", "exponent"):
        table.add_column(heading, justify="right")
    rng = np.random.default_rng(2)
    factors = rng.standard_normal((sizes[-1], 3, 6))
    tensors = factors @ factors.swapaxes(1, 2) / 6
    directions = dpm.Sphere(2).project(np.array([1.5, 0.0, 0.0]) + rng.standard_normal((4 * sizes[-1], 3)) / 2)
    for space, points, counts in (
        (dpm.SPD(3, "log-euclidean"), tensors, sizes),
        (dpm.SPD(3), tensors, sizes),
        (dpm.Sphere(2), directions, [4 * n for n in sizes]),
    ):
        runs = {str(n): lambda s=space, p=points[:n]: dpm.frechet_mean(s, p) for n in counts}
        times = list(best_times(runs, repeats=9).values())
        shown = [f"{1e9 * spent / n:.0f} ns" for spent, n in zip(times, counts, strict=True)]
        record_growth(repr(space), "n", counts, times, slope(counts, times))
        table.add_row(repr(space), *shown, f"{counts[0]:,}", f"{slope(counts, times):.3f}")
    return table


def growth_with_dimension(count: int) -> Table:
    """Exponents of CPU time in the size of matrices and in the dimension of spheres."""
    table = Table(title="Growth with the dimension: CPU time per record, and the slope over the larger half")
    for heading in ("space", "sizes", "time per record", "exponent"):
        table.add_column(heading, justify="right")
    rng = np.random.default_rng(3)
    families = {
        "SPD(k), log-Euclidean": ("k", [4, 8, 16, 32, 64], lambda k: dpm.SPD(k, "log-euclidean"), count // 10),
        "SPD(k), affine-invariant": ("k", [4, 8, 16, 32, 64], dpm.SPD, count // 10),
        "Sphere(d)": ("d", [16, 64, 256, 1024], dpm.Sphere, count),
    }
    for name, (variable, sizes, family, n) in families.items():
        times = []
        for size in sizes:
            space = family(size)
            if variable == "k":
                factors = rng.standard_normal((n, size, 2 * size))
                points = factors @ factors.swapaxes(1, 2) / (2 * size)
            else:
                points = space.project(3 * np.eye(size + 1)[0] + rng.standard_normal((n, size + 1)) / np.sqrt(size))
            times.append(cpu_time(lambda s=space, p=points: dpm.frechet_mean(s, p), 3))
        last = slope(sizes[-3:], times[-3:])
        record_growth(name, variable, sizes, [spent / n for spent in times], last)
        shown = ", ".join(f"{1e6 * spent / n:.3g} µs" for spent in times)
        table.add_row(name, ", ".join(map(str, sizes)), shown, f"{last:.2f}")
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--metrics", nargs="+", default=["log-euclidean", "affine-invariant"])
    parser.add_argument("--stream-only", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes of the tables in memory")
    given = parser.parse_args()
    console = Console(width=140)
    scale = 10 if given.quick else 1
    if not given.stream_only:
        console.print(overhead([100_000 // scale, 1_000_000 // scale]))
        console.print(growth([n // scale for n in (250_000, 500_000, 1_000_000, 2_000_000)]))
        console.print(growth_with_dimension(20_000 // scale))
    table = Table(title=f"Streamed from disk: {36 * given.records / 1e9:.2f} GB of float32 tensors")
    for heading in ("metric", "n", "wall", "CPU", "bare CPU", "speed of bare", "peak memory", "of it anonymous"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder, "tensors.npy")
        write_tensors(path, given.records)
        for metric in given.metrics:
            runs, kernels = [], []
            for _ in range(given.repeats):
                started = time.process_time()
                bare(path)
                kernels.append(time.process_time() - started)
                runs.append(streamed(path, metric))
            result, kernel = min(runs, key=lambda run: run["cpu"]), min(kernels)
            record("stream", f"{metric}, n = {given.records:,}, float32 file", result["cpu"], "read, log, add", kernel)
            table.add_row(
                metric,
                f"{result['n']:,}",
                f"{result['wall']:.1f} s",
                f"{result['cpu']:.1f} s",
                f"{kernel:.1f} s",
                f"{kernel / result['cpu']:.0%}",
                f"{result['peak'] / 2**20:.2f} GB",
                f"{result['anonymous'] / 2**20:.2f} GB",
            )
    console.print(table)


if __name__ == "__main__":
    main()
