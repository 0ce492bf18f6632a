"""Play the league and write its page.

    python -m benchmarks.league --data FOLDER [--jobs 2] [--quick] [--write docs/league.md]

Every cell has the same promise and the same public knowledge for all. Errors are root mean squares of geodesic
distances to the Fréchet mean of the unclipped private records, over splits (or simulated data sets) and releases. Ours
are simulated: the library's plans and estimates on exact sums, with noise in floating point (`simulate`). Long tables
go to tables/ beside the page.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.league.cases import Case, Task, real_cases, simulated_cases
from benchmarks.league.page import write_page, write_tables
from benchmarks.league.rivals import RIVALS, WITH_SAMPLE, Rival
from benchmarks.league.simulate import check, releases_for, simulate_auto, simulate_sample
from dpmanifolds import ApproxDP, Budget, GaussianDP, PureDP
from dpmanifolds.errors import DPManifoldsError

BUDGETS: Mapping[str, Budget] = {
    "ε=1": PureDP(1.0),
    "ε=1, δ=1e−6": ApproxDP(1.0, 1e-6),
    "ε=3, δ=1e−6": ApproxDP(3.0, 1e-6),
    "μ=1": GaussianDP(1.0),
}
BALL, SAMPLE = "ball", "ball and sample"
RUNS = 8
"""Of ours in every cell: what they differ by tells the standard error."""
CHECK, CHECKED = "private_mean itself", 8


def play(case: Case, split: int, releases: int) -> dict[str, Any]:
    """Every competitor on one split, for all budgets: sums of squares, and of their squares."""
    rng = np.random.default_rng([split, zlib.crc32(case.name.encode())])
    task = case.make(rng)
    spread = float(np.sqrt(np.mean(np.asarray(task.manifold.dist(task.truth, task.records)) ** 2)))
    theirs = releases_for(task.dim, releases // 2, one=True)
    found: dict[str, Any] = {}
    for label, budget in BUDGETS.items():
        blocks = [(BALL, RIVALS)] + ([(SAMPLE, WITH_SAMPLE)] if task.public is not None else [])
        for block, rivals in blocks:
            cell = found[f"{label}|{block}"] = _rivals(task, rivals, budget, theirs, rng)
            if block == BALL:
                runs = [simulate_auto(task, budget, releases // RUNS, rng) for _ in range(RUNS)]
                cell["how"], cell["auto"] = runs[0].how, _between([run.squares for run in runs])
                if split == 0:
                    cell[CHECK] = _moments(_checked(task, budget, rng))
            else:
                # one fit of the sample for all
                run = simulate_sample(task, budget, releases, rng)
                cell["how"], cell["auto"] = run.how, {**_moments(run.squares), "count": len(run.squares)}
            cell["public centre"] = _moments(np.atleast_1d(task.squares(task.center)))
    facts = {"n": task.n, "d": task.dim, "radius": task.ball.radius, "spread": spread}
    return {"case": case.name, "kind": case.kind, "split": split, "facts": facts, "cells": found}


def _checked(task: Task, budget: Budget, rng: np.random.Generator) -> np.ndarray:
    """A few squared errors of `private_mean` itself."""
    with warnings.catch_warnings():
        # that noise exceeds the ball is what the column of the public centre shows
        warnings.simplefilter("ignore", UserWarning)
        return check(task, budget, CHECKED, rng)


def _between(runs: list[np.ndarray]) -> dict[str, float]:
    """The mean of squared errors, and its variance by that of independent runs, each with a table of its own."""
    means = np.array([np.mean(squares) for squares in runs])
    return {
        "mean": float(np.mean(means)),
        "variance": float(np.var(means, ddof=1)) / len(means),
        "count": sum(map(len, runs)),
    }


def _rivals(
    task: Task, rivals: Mapping[str, Rival], budget: Budget, count: int, rng: np.random.Generator
) -> dict[str, Any]:
    found = {}
    for name, rival in rivals.items():
        try:
            found[name] = _moments(task.squares(rival(task, budget, count, rng)))
        except DPManifoldsError:
            continue
    return found


def _moments(squares: np.ndarray) -> dict[str, float]:
    """The mean of squared errors, and the variance of that mean."""
    count = len(squares)
    return {"mean": float(np.mean(squares)), "variance": float(np.var(squares, ddof=1)) / count if count > 1 else 0.0}


def _play_all(job: tuple[str, int, int, str | None]) -> list[dict[str, Any]]:
    """All splits of a case in one process, where calibrations are kept."""
    name, splits, releases, data = job
    threadpool_limits(1)
    (case,) = [case for case in _cases(data) if case.name == name]
    return [play(case, split, releases) for split in range(splits)]


def _cases(data: str | None) -> list[Case]:
    return real_cases(None if data is None else Path(data)) + simulated_cases()


def main() -> None:
    """Run, keep the numbers as JSON, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("DPMANIFOLDS_DATA"), help="the folder of real data")
    parser.add_argument("--splits", type=int, default=2, help="random splits, or simulated data sets, per case")
    parser.add_argument(
        "--releases",
        type=int,
        default=960,
        help="of ours per split where one step is taken; a quarter elsewhere, a fifth beyond 80 dimensions",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="160 releases")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--out", type=Path, default=Path("out/league"), help="where the numbers go")
    parser.add_argument("--write", type=Path, help="the page")
    parser.add_argument("--again", type=Path, help="write the page from the numbers of an earlier run, results.json")
    arguments = parser.parse_args()
    if arguments.again is not None:
        _write_all(arguments.write, json.loads(arguments.again.read_text(encoding="utf-8")))
        return
    splits, releases = arguments.splits, 160 if arguments.quick else arguments.releases
    names = [case.name for case in _cases(arguments.data) if arguments.only in case.name]
    jobs = [(name, splits, releases, arguments.data) for name in names]
    started, results = time.monotonic(), list[dict[str, Any]]()
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        for played in pool.imap_unordered(_play_all, jobs):
            results += played
            results.sort(key=lambda result: (names.index(result["case"]), result["split"]))
            spent = time.monotonic() - started
            print(f"{len(results) // splits}/{len(jobs)} {played[0]['case']} ({spent:.0f} s)", flush=True)
            told = {
                "splits": splits,
                "releases": releases,
                "minutes": spent / 60,
                "jobs": arguments.jobs,
                "results": results,
            }
            # after every case, so that a run that is stopped leaves what it has
            _write(arguments.out / "results.json", json.dumps(told, ensure_ascii=False, indent=1) + "\n")
            _write_all(arguments.out / "league.md", told)
    if arguments.write is not None:
        _write_all(arguments.write, told)


def _write_all(page: Path, told: dict[str, Any]) -> None:
    """The page, and tables beside it."""
    tables = page.parent / "tables"
    write_tables(told, tables)
    _write(page, write_page(told, tables / "league_classifiers.csv"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
