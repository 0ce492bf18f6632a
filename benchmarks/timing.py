"""Fair clocks: CPU time on one core, linear algebra at one thread, candidates taking turns, best of several."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from threadpoolctl import threadpool_limits

__all__ = ["best_times", "one_core", "record", "record_growth"]


def one_core() -> None:
    """Pin this process to one core and every BLAS to one thread, so that CPU time compares like with like."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    threadpool_limits(1)


def best_times(candidates: Mapping[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """Best CPU time of each candidate in seconds; they take turns, so that a noisy spell hits all of them."""
    best = dict.fromkeys(candidates, float("inf"))
    for candidate in candidates.values():
        candidate()
    for _ in range(repeats):
        for name, candidate in candidates.items():
            gc.collect()
            started = time.process_time()
            candidate()
            best[name] = min(best[name], time.process_time() - started)
    return best


def record(area: str, case: str, ours: float, peer: str, theirs: float, limit: float | None = None) -> None:
    """Keep a comparison, in seconds, for the table of `summary.py`; `limit` is what the work cannot do without."""
    _keep({"area": area, "case": case, "ours": ours, "peer": peer, "theirs": theirs, "limit": limit})


def record_growth(case: str, variable: str, sizes: list[int], times: list[float], slope: float) -> None:
    """Keep a curve of times, in seconds, for the figure of `summary.py`."""
    _keep({"growth": case, "variable": variable, "sizes": sizes, "times": times, "slope": slope})


def _keep(row: dict[str, object]) -> None:
    """As a line of the file that `summary.py` names; nowhere when a benchmark is run by hand."""
    path = os.environ.get("DPMANIFOLDS_BENCH")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
