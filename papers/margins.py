"""How far checked numbers stay from the edges of their intervals: `python -m papers.margins`.

Runs studies with several seeds at quick size and prints, for each check whose number changes with the seed and whose
edges do not, its mean, its standard deviation and the distance to the nearer edge in standard deviations. An edge
nearer than seven of them is too near, and the command ends with status 1. (Edges that follow the standard error of a
run are as far as its false-alarm rate asks for.)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from papers._study import Result, Setting, names, run_study

__all__ = ["ENOUGH", "Margin", "main", "margins"]

ENOUGH = 7.0


@dataclass(frozen=True)
class Margin:
    """One check over several runs."""

    study: str
    row: str
    number: str
    mean: float
    deviation: float
    distance: float
    """From the mean to the nearer edge that is not proven, in standard deviations."""


def margins(results: list[Result]) -> Iterator[Margin]:
    """Of the same study, run with several seeds: numbers that the seed changes, between edges that it does not."""
    for claims in zip(*(result.claims for result in results), strict=True):
        for checks in zip(*(one.checks for one in claims), strict=True):
            values = np.array([check.value for check in checks])
            mean, deviation = float(values.mean()), float(values.std(ddof=1))
            low, high = checks[0].low, checks[0].high
            if deviation <= 1e-9 * max(1.0, abs(mean)) or {(check.low, check.high) for check in checks} != {
                (low, high)
            }:
                continue
            sides = [gap for side, gap in (("low", mean - low), ("high", high - mean)) if side != checks[0].proven]
            if checks[0].proven != "both":
                yield Margin(
                    results[0].name, claims[0].where, checks[0].number, mean, deviation, min(sides) / deviation
                )


def main(arguments: list[str] | None = None) -> None:
    """Print the margins of some studies."""
    parser = argparse.ArgumentParser(prog="python -m papers.margins", description=__doc__)
    parser.add_argument("names", nargs="*", default=names(), help="studies; all of them if none is named")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", type=Path, default=None)
    given = parser.parse_args(arguments)
    near = 0
    for name in given.names:
        runs = [
            run_study(name, Setting("quick", np.random.default_rng(1_000 + seed), given.data))
            for seed in range(given.seeds)
        ]
        for one in margins(runs):
            near += one.distance < ENOUGH
            print(
                f"{one.distance:8.1f} sd  {one.study}: {one.row}: {one.number} = {one.mean:.5g} ± {one.deviation:.2g}",
                flush=True,
            )
        for run in runs:
            print(*(f"  outside: {line}" for line in run.failures), sep="\n", end="\n" if run.failures else "")
    print(f"{near} numbers have an edge nearer than {ENOUGH:g} standard deviations.")
    if near:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
