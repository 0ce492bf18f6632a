"""What does not grow with the records: private_mean of a hundred of them, and exact noise in a million dimensions.

    python benchmarks/small.py [--repeats 60]

CPU time on one core, best of several; "first" is the first call of a process for such public facts. In the table of
`summary.py` the most that is wanted stands beside it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from mean import wishart
from rich.console import Console
from rich.table import Table
from timing import one_core, record

import dpmanifolds as dpm
from dpmanifolds.noise.exact import RoundedGaussian, RoundedLaplace

DIM = 10**6
# what is wanted, in seconds
MOST, MOST_NOISE = 3e-3, 5.0


def times(run: Callable[[], object], repeats: int) -> list[float]:
    """CPU seconds of every call."""
    spent = []
    for _ in range(repeats):
        started = time.process_time()
        run()
        spent.append(time.process_time() - started)
    return spent


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=60)
    repeats = parser.parse_args().repeats
    one_core()
    table = Table(title="private_mean, n = 100, SPD(3): CPU time")
    for heading in ("metric", "budget", "steps, refine", "first", "best", "median"):
        table.add_column(heading, justify="right")
    records = wishart(3, 100)
    for metric in ("affine-invariant", "log-euclidean"):
        ball = dpm.Ball(dpm.SPD(3, metric), np.eye(3), 3.0)
        for budget in (dpm.PureDP(1.0), dpm.ApproxDP(1.0, 1e-6), dpm.GaussianDP(1.0)):
            for name, options in (("auto, auto", {}), ("1, 0", {"steps": 1, "refine": 0})):
                spent = times(lambda b=ball, p=budget, o=options: dpm.private_mean(records, b, p, **o), repeats)
                case = f"private_mean, n = 100, {metric}, {budget!r}, steps and refine {name}"
                record("small", case, min(spent), "at most", MOST)
                shown = (f"{1e3 * each:.1f} ms" for each in (spent[0], min(spent), float(np.median(spent))))
                table.add_row(metric, repr(budget), name, *shown)
    Console(width=120).print(table)
    values = np.zeros(DIM, dtype=np.int64)
    for law in (RoundedGaussian(DIM, 2.0**20), RoundedLaplace(DIM, 2.0**20)):
        spent = min(times(lambda one=law: one.release(values), 3))
        record("noise", f"{type(law).__name__}, d = {DIM:,}", spent, "at most", MOST_NOISE)
        print(f"{type(law).__name__}, d = {DIM:,}: {spent:.2f} s")


if __name__ == "__main__":
    main()
