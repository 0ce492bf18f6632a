"""Means and descriptors on a GPU: against the copy bandwidth of the device, and against two cores of the same machine.

    python benchmarks/gpu.py [--records 100000000] [--part jax|torch|cpu]

Each library runs in a process of its own, under a time limit, and prints its figures as it gets them. "kernel" is the
statistic alone, "end to end" is `private_mean`: statistic on the device, noise on the host. The limit is the time that
reading the records once takes at the bandwidth of a device-to-device copy, as measured here. With a folder in the
environment variable OUT, the figures are written there as JSON too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LIMITS = {"cpu": 100, "jax": 110, "torch": 150}
PIECE = 1 << 22


def tell(**figures: Any) -> None:
    """One line of JSON."""
    print(json.dumps(figures), flush=True)


def best(run: Callable[[], Any], wait: Callable[[], Any], repeats: int = 5) -> float:
    """Best wall time in milliseconds, the device idle before and after, the first call left out."""
    run()
    wait()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - started)
    return 1e3 * min(times)


def wishart(k: int, count: int, seed: int = 0) -> np.ndarray:
    """Sample covariances of 2k standard normal vectors."""
    rng = np.random.default_rng(seed)
    result = np.empty((count, k, k))
    for first in range(0, count, 50_000):
        factors = rng.standard_normal((min(50_000, count - first), k, 2 * k))
        result[first : first + 50_000] = factors @ factors.swapaxes(1, 2) / (2 * k)
    return result


def pictures(count: int) -> np.ndarray:
    """Grey images of 8 bits, 28×28, of a few overlapping discs each."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:28, :28]
    result = np.empty((count, 28, 28), dtype=np.uint8)
    for first in range(0, count, 10_000):
        part = result[first : first + 10_000]
        centres = rng.uniform(6, 22, size=(len(part), 4, 2, 1, 1))
        squared = (rows - centres[:, :, 0]) ** 2 + (columns - centres[:, :, 1]) ** 2
        part[...] = 255 * np.exp(-squared / 8).max(axis=1) * (squared.min(axis=1) < 16)
    return result


def attempt(name: str, run: Callable[[], None]) -> None:
    """A section that may fail without taking the others with it."""
    try:
        run()
    except Exception as problem:
        tell(case=name, error=f"{type(problem).__name__}: {problem}"[:300])


def measure(library: str, records: int, make: Any, wait: Callable[[], Any], bandwidth: Callable[[], float]) -> None:
    """All sections for one library; make(k, count): random matrices on the device, make.put: a host array there."""
    import dpmanifolds as dpm
    from dpmanifolds.statistics.kernels.device import _unavailable, log_sums

    rate = bandwidth()
    tell(library=library, case="copy", gigabytes_per_second=round(rate / 1e9))

    def right() -> None:
        sample = wishart(3, 100_000)
        for metric in ("log-euclidean", "affine-invariant"):
            host = dpm.frechet_mean(dpm.SPD(3, metric), sample)
            device = dpm.frechet_mean(dpm.SPD(3, metric), make.put(sample))
            found = make.get(device.point)
            tell(
                library=library, case=f"difference to the host, {metric}", value=float(np.abs(found - host.point).max())
            )

    def log_euclidean() -> None:
        space = dpm.SPD(3, "log-euclidean")
        ball = dpm.Ball(space, np.eye(3), 4.0)
        for count in sorted({min(records, 1_000_000), records}):
            points = make(3, count)
            limit = 1e3 * points.nbytes / rate
            kernel = best(lambda points=points: log_sums(points), wait)
            mean = best(lambda points=points: dpm.frechet_mean(space, points), wait)
            private = best(
                lambda points=points: dpm.private_mean(points, ball, dpm.PureDP(1.0), numerics="rounded", rng=0),
                wait,
                3,
            )
            tell(
                library=library,
                case="log-Euclidean 3×3",
                n=count,
                kernel_ms=kernel,
                mean_ms=mean,
                end_to_end_ms=private,
                limit_ms=limit,
                kernel_over_limit=kernel / limit,
                end_to_end_over_limit=private / limit,
            )
            del points

    def affine_invariant(k: int) -> Callable[[], None]:
        def run() -> None:
            space = dpm.SPD(k)
            small = make(k, 50_000)
            once = best(lambda: dpm.frechet_mean(space, small), wait, 1)
            tell(library=library, case=f"affine-invariant {k}×{k}", n=50_000, mean_ms=once)
            if 20 * once > 30_000:
                return
            points = make(k, 1_000_000)
            result = dpm.frechet_mean(space, points)
            mean = best(lambda: dpm.frechet_mean(space, points), wait, 3)
            tell(library=library, case=f"affine-invariant {k}×{k}", n=1_000_000, mean_ms=mean, passes=result.passes)

        return run

    def descriptors() -> None:
        images = pictures(100_000)
        there = make.put(images)
        from dpmanifolds.data import image_descriptors

        apart = np.abs(make.get(image_descriptors(there[:2000])) - image_descriptors(images[:2000])).max()
        tell(library=library, case="difference to the host, descriptors", value=float(apart))
        tell(
            library=library,
            case="descriptors 28×28",
            n=len(images),
            mean_ms=best(lambda: image_descriptors(there), wait),
        )

    attempt("right", right)
    attempt("descriptors", descriptors)
    attempt("log-Euclidean 3×3", log_euclidean)
    attempt("affine-invariant 3×3", affine_invariant(3))
    attempt("affine-invariant 10×10", affine_invariant(10))
    tell(library=library, case="fused kernel", value=library not in _unavailable)


def part_jax(records: int) -> None:
    """JAX on its first GPU."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    tell(library="jax", case="device", name=str(jax.devices()[0]), version=jax.__version__)

    class Make:
        def __call__(self, k: int, count: int) -> Any:
            def piece(seed: int, rows: int) -> Any:
                factors = jax.random.normal(jax.random.key(seed), (rows, k, 2 * k), dtype=jnp.float64)
                return factors @ jnp.swapaxes(factors, 1, 2) / (2 * k)

            parts = [piece(first, min(PIECE, count - first)) for first in range(0, count, PIECE)]
            return jax.block_until_ready(jnp.concatenate(parts))

        put = staticmethod(jnp.asarray)
        get = staticmethod(np.asarray)

    def wait() -> None:
        jax.block_until_ready(jnp.zeros(()) + 0)

    def bandwidth() -> float:
        source = jnp.ones(1 << 29)
        copy = jax.jit(lambda x: x + 1)
        return 2 * source.nbytes / (best(lambda: jax.block_until_ready(copy(source)), wait) / 1e3)

    measure("jax", records, Make(), wait, bandwidth)


def part_torch(records: int) -> None:
    """PyTorch on its first GPU."""
    import torch

    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    name = torch.cuda.get_device_name() if cuda else "cpu"
    tell(library="torch", case="device", name=name, version=torch.__version__)

    class Make:
        def __call__(self, k: int, count: int) -> Any:
            result = torch.empty((count, k, k), dtype=torch.float64, device=device)
            for first in range(0, count, PIECE):
                rows = min(PIECE, count - first)
                factors = torch.randn((rows, k, 2 * k), dtype=torch.float64, device=device)
                result[first : first + rows] = factors @ factors.transpose(1, 2) / (2 * k)
            return result

        @staticmethod
        def put(array: np.ndarray) -> Any:
            return torch.asarray(array, device=device)

        @staticmethod
        def get(array: Any) -> np.ndarray:
            return np.asarray(array.cpu())

    def wait() -> None:
        if cuda:
            torch.cuda.synchronize()

    def bandwidth() -> float:
        source = torch.ones(1 << 29, dtype=torch.float64, device=device)
        target = torch.empty_like(source)
        return 2 * source.nbytes / (best(lambda: target.copy_(source), wait) / 1e3)

    measure("torch", records, Make(), wait, bandwidth)


def part_cpu(records: int) -> None:
    """NumPy on two cores of this machine."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))
    import dpmanifolds as dpm

    def nothing() -> None:
        return None

    space = dpm.SPD(3, "log-euclidean")
    points = wishart(3, 1_000_000)
    tell(
        library="cpu",
        case="log-Euclidean 3×3",
        n=1_000_000,
        mean_ms=best(lambda: dpm.frechet_mean(space, points), nothing, 3),
    )
    from dpmanifolds.data import image_descriptors

    images = pictures(100_000)
    spent = best(lambda: image_descriptors(images), nothing, 2)
    tell(library="cpu", case="descriptors 28×28", n=len(images), mean_ms=spent)
    for k in (3, 10):
        points = wishart(k, 1_000_000)
        result = dpm.frechet_mean(dpm.SPD(k), points[:50_000])
        started = time.perf_counter()
        result = dpm.frechet_mean(dpm.SPD(k), points)
        spent = 1e3 * (time.perf_counter() - started)
        tell(library="cpu", case=f"affine-invariant {k}×{k}", n=1_000_000, mean_ms=spent, passes=result.passes)


def collect(part: str, records: int) -> list[dict[str, Any]]:
    """The figures of one part, run in a process of its own."""
    command = [sys.executable, __file__, "--part", part, "--records", str(records)]
    figures: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            printed, errors = process.communicate(timeout=LIMITS[part])
        except subprocess.TimeoutExpired:
            process.kill()
            printed, errors = process.communicate()
            figures.append({"library": part, "case": "stopped", "error": f"over {LIMITS[part]} s"})
    for line in printed.splitlines():
        if line.startswith("{"):
            figures.append(json.loads(line))
    if process.returncode not in (0, -9):
        figures.append({"library": part, "case": "failed", "error": errors[-600:]})
    return figures


def main() -> None:
    """Run the parts, print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--part", choices=("jax", "torch", "cpu"))
    given = parser.parse_args()
    if given.part:
        {"jax": part_jax, "torch": part_torch, "cpu": part_cpu}[given.part](given.records)
        return
    figures: list[dict[str, Any]] = []
    for part in ("jax", "cpu", "torch"):
        figures += collect(part, given.records)
        if os.environ.get("OUT"):
            Path(os.environ["OUT"], "gpu.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    host = {(row["case"], row["n"]): row["mean_ms"] for row in figures if row.get("library") == "cpu" and "n" in row}
    headings = ("kernel", "mean", "private", "limit", "kernel/limit", "2 cores/mean")
    widths = (10, 10, 10, 9, 14, 14)
    print(f"{'library':8}{'case':28}{'n':>12}" + "".join(f"{h:>{w}}" for h, w in zip(headings, widths, strict=True)))
    for row in figures:
        if "mean_ms" not in row:
            print("  ".join(f"{key}={value}" for key, value in row.items()))
            continue
        shown = [row.get(key) for key in ("kernel_ms", "mean_ms", "end_to_end_ms", "limit_ms", "kernel_over_limit")]
        cells = [f"{value:.2f}" if value is not None else "–" for value in shown]
        compared = host.get((row["case"], row["n"]))
        cells.append(f"{compared / row['mean_ms']:.1f}" if compared else "–")
        print(
            f"{row['library']:8}{row['case']:28}{row['n']:>12,}"
            + "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True))
        )


if __name__ == "__main__":
    main()
