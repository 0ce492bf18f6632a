"""One and two Dask processes on the same tensors: how much of the second one arrives.

    python benchmarks/dask_scaling.py [--records 10000000] [--repeats 5] [--metrics log-euclidean affine-invariant]
    python benchmarks/dask_scaling.py --plan 1000000000 [--chunks 200]

Every worker makes its own chunks (a pure function of their number) in single precision and keeps them, 36 bytes a
tensor, once; what is timed is the private mean: clipping, logarithms, sums, the merging of states and one draw of
noise. On a machine that does other work too, wall time says little; "CPU" is the time that all workers together were
busy, and "speed-up by CPU" twice what one process needs over what two need together: that of two idle cores. It is
given for the medians and for the quickest runs, which other work disturbed least.

`--plan` measures what a chunk costs a worker (CPU time of its sum) and what it costs the driver and the scheduler (CPU
time for chunks of a single tensor), and how many bytes it moves; their ratio is where more workers stop helping. Then
it runs so many synthetic chunks, each of which sleeps as long as a real one computes, on more and more threads.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time
from functools import partial

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from rich.console import Console
from rich.table import Table
from timing import record

import dpmanifolds as dpm
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.total import sum_block

CHUNK = 250_000
METRICS = ("log-euclidean", "affine-invariant")


def tensors(block_info: dict) -> np.ndarray:
    """Covariances of six normal vectors, in single precision."""
    where = block_info[None]
    rng = np.random.default_rng(where["chunk-location"][0])
    factors = rng.standard_normal((where["chunk-shape"][0], 3, 6), dtype=np.float32)
    return factors @ factors.swapaxes(1, 2) / np.float32(6)


def busy(client: Client) -> float:
    """CPU seconds that the workers have used so far, all together."""
    return sum(client.run(time.process_time).values())


def chunk_sizes(records: int) -> tuple[int, ...]:
    """Chunks of equal size, an even number of them."""
    count = max(2, 2 * round(records / CHUNK / 2))
    return tuple(len(part) for part in np.array_split(np.empty(records, dtype=bool), count))


def timed(processes: int, records: int, metric: str, repeats: int) -> tuple[list[float], list[float], np.ndarray]:
    """Wall and CPU times of the private mean on so many processes, and its value for a fixed seed."""
    space = dpm.SPD(3, metric)
    ball = dpm.Ball(space, np.eye(3), 4.0)
    options = {"n_workers": processes, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    # the profiler of the workers takes CPU time by the second, which is no work of theirs
    quiet = dask.config.set({"distributed.worker.profile.enabled": False})
    with quiet, LocalCluster(**options) as cluster, Client(cluster) as client:
        array = da.map_blocks(
            tensors,
            chunks=(chunk_sizes(records), (3,), (3,)),
            dtype=np.float32,
            meta=np.empty((0, 3, 3), np.float32),
        ).persist()
        wait(array)
        walls, cpus = [], []
        release = dpm.private_mean(array, ball, dpm.PureDP(1.0), rng=1)
        for _ in range(repeats):
            before, started = busy(client), time.perf_counter()
            release = dpm.private_mean(array, ball, dpm.PureDP(1.0), rng=1)
            walls.append(time.perf_counter() - started)
            cpus.append(busy(client) - before)
        return walls, cpus, release.value


def synthetic(seconds: float, block_info: dict) -> np.ndarray:
    """A chunk of one tensor that takes as long as a real one computes."""
    time.sleep(seconds)
    return (1 + block_info[None]["chunk-location"][0] % 7) * np.eye(3, dtype=np.float32)[None]


def run_synthetic(chunks: int, threads: int, seconds: float) -> tuple[float, float]:
    """Wall time of the private mean of so many synthetic chunks, and CPU time of the driver and the scheduler."""
    ball = dpm.Ball(dpm.SPD(3, "log-euclidean"), np.eye(3), 4.0)
    options = {"n_workers": 1, "threads_per_worker": threads, "processes": True, "dashboard_address": None}
    quiet = dask.config.set({"distributed.worker.profile.enabled": False})
    with quiet, LocalCluster(**options) as cluster, Client(cluster) as client:
        client.wait_for_workers(1)
        array = da.map_blocks(
            partial(synthetic, seconds),
            chunks=((1,) * chunks, (3,), (3,)),
            dtype=np.float32,
            meta=np.empty((0, 3, 3), np.float32),
        )
        before, started = time.process_time(), time.perf_counter()
        dpm.private_mean(array, ball, dpm.PureDP(1.0), steps=1, refine=0)
        return time.perf_counter() - started, time.process_time() - before


def plan(records: int, chunks: int) -> None:
    """What so many records cost, by chunks of several sizes, and a run of synthetic ones."""
    space = dpm.SPD(3, "log-euclidean")
    pull = TangentContribution(space, np.eye(3), radius=4.0, exponent=29)
    block = tensors({None: {"chunk-location": (0,), "chunk-shape": (CHUNK, 3, 3)}})
    spent = []
    for _ in range(5):
        started = time.process_time()
        state = sum_block(pull, block)
        spent.append(time.process_time() - started)
    each, moved = min(spent) / CHUNK, len(pickle.dumps(state))
    idle = min(run_synthetic(chunks, 1, 0.0)[1] for _ in range(2)) / chunks
    table = Table(title=f"{records:,} tensors: {1e9 * each:.0f} ns of a worker each, {1e3 * idle:.1f} ms a chunk here")
    for heading in (
        "tensors a chunk",
        "MB",
        "chunks",
        "worker, a chunk",
        "scheduler in all",
        "moved",
        "useful workers",
    ):
        table.add_column(heading, justify="right")
    for size in (CHUNK, 4 * CHUNK, 16 * CHUNK):
        count = -(-records // size)
        table.add_row(
            f"{size:,}",
            f"{36 * size / 1e6:.0f}",
            f"{count:,}",
            f"{1e3 * each * size:.0f} ms",
            f"{idle * count:.1f} s",
            f"{moved * count / 1e6:.1f} MB",
            f"{each * size / idle:.0f}",
        )
    Console(width=140).print(table)
    table = Table(
        title=f"{chunks} synthetic chunks of {1e3 * each * CHUNK:.0f} ms: the limit is {each * CHUNK / idle:.0f}"
    )
    for heading in ("workers", "wall", "speed-up"):
        table.add_column(heading, justify="right")
    alone = each * CHUNK * chunks
    for threads in (1, 4, 16, 64):
        wall, _ = run_synthetic(chunks, threads, each * CHUNK)
        table.add_row(str(threads), f"{wall:.2f} s", f"{alone / wall:.1f}")
    Console(width=140).print(table)


HEADINGS = (
    "metric",
    "wall 1",
    "wall 2",
    "ratio",
    "CPU 1",
    "CPU 2",
    "speed-up by CPU",
    "of the quickest",
    "same value",
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=METRICS)
    parser.add_argument("--plan", type=int, metavar="RECORDS")
    parser.add_argument("--chunks", type=int, default=200)
    given = parser.parse_args()
    if given.plan:
        plan(given.plan, given.chunks)
        return
    table = Table(title=f"Dask: {given.records:,} tensors, 1 and 2 processes, medians of {given.repeats}")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for metric in given.metrics:
        (wall_1, cpu_1, one), (wall_2, cpu_2, two) = (
            timed(processes, given.records, metric, given.repeats) for processes in (1, 2)
        )
        walls = statistics.median(wall_1), statistics.median(wall_2)
        cpus = statistics.median(cpu_1), statistics.median(cpu_2)
        record("Dask", f"{metric}, n = {given.records:,}, two processes", cpus[1] / 2, "one process", cpus[0])
        table.add_row(
            metric,
            *(f"{wall:.2f} s" for wall in walls),
            f"{walls[0] / walls[1]:.2f}",
            *(f"{cpu:.2f} s" for cpu in cpus),
            f"{2 * cpus[0] / cpus[1]:.2f}",
            f"{2 * min(cpu_1) / min(cpu_2):.2f}",
            "yes" if np.array_equal(one, two) else "no",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
