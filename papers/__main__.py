"""`python -m papers NAME [--quick] [--out DIR] [--data DIR] [--jobs N]`; NAME may be `all`.

Ends with status 1 and names the rows where a number is not what it must be.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from rich.console import Console

from papers import Result, names, reproduce
from papers._study import show

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run one study or all of them, and check their key numbers."""
    parser = argparse.ArgumentParser(prog="python -m papers", description="The papers, reproduced.")
    parser.add_argument("name", choices=[*names(), "all"], metavar="NAME", help=f"all, {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: all of them within 15 minutes")
    parser.add_argument("--out", default="out", help="the folder for figures and tables")
    parser.add_argument("--data", default=None, help="the folder of real data (else DPMANIFOLDS_DATA, else synthetic)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="studies that run at the same time, each in one process")
    given = parser.parse_args(arguments)
    console = Console()
    chosen = names() if given.name == "all" else [given.name]
    options = {"quick": given.quick, "out": given.out, "data": given.data, "seed": given.seed}
    found = _beside(chosen, options, given.jobs, console) if given.jobs > 1 else _in_turn(chosen, options, console)
    results = list(found)
    wrong = [line for result in results for line in result.failures]
    checked = sum(len(one.checks) for result in results for one in result.claims)
    for line in wrong:
        console.print(f"WRONG NUMBER in {line}", style="red", markup=False, highlight=False)
    console.print(f"{checked - len(wrong)} of {checked} checked numbers are what they must be.")
    if wrong:
        raise SystemExit(1)


def _in_turn(chosen: list[str], options: dict[str, Any], console: Console) -> Iterator[Result]:
    for name in chosen:
        yield reproduce(name, console=console, **options)


def _beside(chosen: list[str], options: dict[str, Any], jobs: int, console: Console) -> Iterator[Result]:
    """Each study in a process of its own with one thread: the numbers are those of a run in turn."""
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        # the slowest stand last in the list: they start first
        for done in as_completed([pool.submit(reproduce, name, **options) for name in reversed(chosen)]):
            show(done.result(), console)
            yield done.result()


if __name__ == "__main__":
    main()
