"""Means and descriptors on a GPU: against the copy bandwidth of the device, and against two cores of the same machine.

    python benchmarks/gpu.py [--records 100000000] [--part jax|torch|cpu]

Each library runs in a process of its own, under a time limit, and prints its figures as it gets them. "sums" are the
exact sums of integers alone, "private" is `private_mean` of one step: sums on the device, noise on the host. "read" is
the time that reading the records once takes at the bandwidth of a device-to-device copy, as measured here. With a
folder in the environment variable OUT, the figures are written there as JSON too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

LIMITS = {"cpu": 60, "jax": 150, "torch": 90}
PIECE = 1 << 22
RECORDS = 100_000_000
CASES = (
    ("log-euclidean", 3, 100_000_000, False, None),
    ("log-euclidean", 3, 100_000_000, True, None),
    ("log-euclidean", 3, 1_000_000, False, None),
    ("affine-invariant", 3, 100_000_000, False, 20.0),
    ("affine-invariant", 10, 1_000_000, False, 80.0),
    ("affine-invariant", 30, 100_000, False, 30.0),
    ("affine-invariant", 64, 20_000, False, 40.0),
    ("affine-invariant", 100, 10_000, False, 60.0),
)
"""Metric, size, records, whether in single precision, limit in milliseconds; None: four reads of the records."""


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
    from dpmanifolds.statistics.kernels.device import _unavailable
    from dpmanifolds.sums.contribution import TangentContribution
    from dpmanifolds.sums.total import sum_block

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

    def one_pass(metric: str, k: int, count: int, single: bool, bound: float | None) -> Callable[[], None]:
        def run() -> None:
            points = make.single(make(k, count)) if single else make(k, count)
            read = 1e3 * points.nbytes / rate
            ball = dpm.Ball(dpm.SPD(k, metric), np.eye(k), 4.0)
            pull = TangentContribution(ball.manifold, ball.center, radius=4.0, exponent=28)
            kernel = best(lambda: sum_block(pull, points, fixed_rows=True), wait)
            private = best(lambda: dpm.private_mean(points, ball, dpm.PureDP(1.0), steps=1, refine=0), wait)
            tell(
                library=library,
                case=f"{metric} {k}×{k}{' float32' * single}",
                n=count,
                sums_ms=kernel,
                private_ms=private,
                read_ms=read,
                limit_ms=bound or 4 * read,
                over_limit=private / (bound or 4 * read),
            )

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
    for metric, k, count, single, bound in CASES:
        attempt(f"{metric} {k}×{k}", one_pass(metric, k, count * records // RECORDS, single, bound))
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

            size = max(1, PIECE * 9 // (k * k))
            parts = [piece(first, min(size, count - first)) for first in range(0, count, size)]
            return jax.block_until_ready(jnp.concatenate(parts))

        put = staticmethod(jnp.asarray)
        get = staticmethod(np.asarray)

        @staticmethod
        def single(points: Any) -> Any:
            return jax.block_until_ready(points.astype(jnp.float32))

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
            size = max(1, PIECE * 9 // (k * k))
            for first in range(0, count, size):
                rows = min(size, count - first)
                factors = torch.randn((rows, k, 2 * k), dtype=torch.float64, device=device)
                result[first : first + rows] = factors @ factors.transpose(1, 2) / (2 * k)
            return result

        @staticmethod
        def put(array: np.ndarray) -> Any:
            return torch.asarray(array, device=device)

        @staticmethod
        def single(points: Any) -> Any:
            return points.float()

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

    for metric, k in (("log-euclidean", 3), ("affine-invariant", 10)):
        points = wishart(k, 1_000_000)
        ball = dpm.Ball(dpm.SPD(k, metric), np.eye(k), 4.0)
        run = partial(dpm.private_mean, points, ball, dpm.PureDP(1.0), steps=1, refine=0)
        spent = best(run, nothing, 2)
        tell(library="cpu", case=f"{metric} {k}×{k}", n=len(points), private_ms=spent)
    from dpmanifolds.data import image_descriptors

    images = pictures(100_000)
    spent = best(lambda: image_descriptors(images), nothing, 2)
    tell(library="cpu", case="descriptors 28×28", n=len(images), mean_ms=spent)


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
    for part in ("torch", "cpu", "jax"):
        figures += collect(part, given.records)
        if os.environ.get("OUT"):
            Path(os.environ["OUT"], "gpu.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    host = {
        (row["case"], row["n"]): row.get("private_ms", row.get("mean_ms"))
        for row in figures
        if row.get("library") == "cpu" and "n" in row
    }
    headings = ("sums", "private", "read", "limit", "private/limit", "2 cores/here")
    widths = (10, 10, 9, 9, 15, 14)
    print(f"{'library':8}{'case':30}{'n':>12}" + "".join(f"{h:>{w}}" for h, w in zip(headings, widths, strict=True)))
    for row in figures:
        if "n" not in row:
            print("  ".join(f"{key}={value}" for key, value in row.items()))
            continue
        shown = [row.get(key) for key in ("sums_ms", "private_ms", "read_ms", "limit_ms", "over_limit")]
        cells = [f"{value:.2f}" if value is not None else "–" for value in shown]
        compared = host.get((row["case"], row["n"]))
        cells.append(f"{compared / row.get('private_ms', row.get('mean_ms')):.1f}" if compared else "–")
        print(
            f"{row['library']:8}{row['case']:30}{row['n']:>12,}"
            + "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True))
        )


if __name__ == "__main__":
    main()
