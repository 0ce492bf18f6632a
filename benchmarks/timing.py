"""Fair clocks: CPU time on one core, linear algebra at one thread, candidates taking turns, best of several."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping

from threadpoolctl import threadpool_limits

__all__ = ["best_times", "one_core"]


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
