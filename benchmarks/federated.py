"""Several sites against one trusted place: errors of the ways, predicted and measured, and the time of a round.

    python benchmarks/federated.py [--draws 300] [--epsilons 0.25 1 4] [--table docs/tables/sites.csv]

For n records at k sites of the same size and (epsilon, 1e-6): the mean error (length of the noise on the mean in R^d)
of one place, of a secure sum without and with a quarter of the sites tolerated, of answers in plain, and of the
combination of what each site releases alone; measured through the public functions, beside what `plan_sites` predicts.
Rows are added to the table. Then the time of one round of a mean of covariance matrices, log-Euclidean: all sites
answer one after the other in this process, and the sum is read (`--sites 0`: left out).
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from pathlib import Path

import numpy as np
from timing import one_core

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Coordinator,
    Euclidean,
    GaussianDP,
    Site,
    Study,
    combine,
    plan_sites,
    private_mean,
    run_study,
)
from dpmanifolds.federated import sum_in_process

_DIM = 50
_COUNTS, _SITES = (1280, 12800), (4, 16, 64)
_DELTA = 1e-6


def _length(release) -> float:  # type: ignore[no-untyped-def]
    return float(np.linalg.norm(release.coordinates))


def _measured(n: int, sites: int, budget, draws: int) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Mean lengths of noise on a mean that is 0, through the public functions; each cell has draws of its own."""
    ball, names = Ball(Euclidean(_DIM), np.zeros(_DIM), 1.0), [f"site {number}" for number in range(sites)]
    points, whole = np.zeros((n // sites, _DIM)), np.zeros((n, _DIM))
    one = {"mechanism": "wrapped-gaussian", "refine": 0}

    def asked(source, **options) -> float:  # type: ignore[no-untyped-def]
        study = Study("mean", ball, budget, n=n, sites=names, **options)
        return _length(run_study(study, [Site(name, points, rng=source) for name in names]))

    ways = {
        "central": lambda source: _length(private_mean(whole, ball, budget, rng=source, **one)),
        "secure, t = 0": asked,
        "secure, t = k/4": lambda source: asked(source, tolerated=sites // 4),
        "plain": lambda source: asked(source, transport="plain"),
        "each alone": lambda source: _length(
            combine([private_mean(points, ball, budget, rng=source, **one) for _ in range(sites)])
        ),
    }
    found = {}
    for name, way in ways.items():
        source = np.random.default_rng(zlib.crc32(repr((name, n, sites, budget)).encode()))
        found[name] = float(np.mean([way(source) for _ in range(draws)]))
    return found


def compare_ways(draws: int, epsilons: list[float], table: Path) -> None:
    """The table of ways."""
    new = not table.exists()
    ball = Ball(Euclidean(_DIM), np.zeros(_DIM), 1.0)
    with table.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(["epsilon", "n", "sites", "way", "measured", "predicted", "measured / predicted"])
        for epsilon in epsilons:
            for n in _COUNTS:
                for sites in _SITES:
                    budget = ApproxDP(epsilon, _DELTA)
                    told = plan_sites(ball, [n // sites] * sites, budget, tolerated=sites // 4)
                    predicted = [told.central, told.central, told.secure, told.plain, told.alone]
                    found = _measured(n, sites, budget, draws)
                    for (way, length), wanted in zip(found.items(), predicted, strict=True):
                        numbers = [f"{length:.4g}", f"{wanted:.4g}", f"{length / wanted:.4f}"]
                        writer.writerow([epsilon, n, sites, way, *numbers])
                    file.flush()


def time_round(sites: int, people: int, columns: int) -> None:
    """The second table."""
    manifold = SPD(columns, "log-euclidean")
    ball = Ball(manifold, np.eye(columns), 5.0)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(people, columns, 2 * columns)) / np.sqrt(2 * columns)
    points = noise @ np.swapaxes(noise, 1, 2)
    names = [f"site {number}" for number in range(sites)]
    study = Study("mean", ball, GaussianDP(1.0), n=sites * people, sites=names)
    coordinator = Coordinator(study)
    assert coordinator.round is not None
    start, busy = time.perf_counter(), time.process_time()
    summed = sum_in_process(coordinator.round, [Site(name, points) for name in names])
    answered = time.perf_counter()
    coordinator.finish(summed)
    ended, used = time.perf_counter(), time.process_time() - busy
    print(
        f"SPD({columns}) log-Euclidean, {sites} sites x {people} people, {coordinator.finished[0].asked.length} numbers"
    )
    print(f"answers of all sites {answered - start:.1f} s, release {ended - answered:.1f} s; CPU {used:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.25, 1.0, 4.0])
    parser.add_argument("--table", type=Path, default=Path("docs/tables/sites.csv"))
    parser.add_argument("--sites", type=int, default=64)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--people", type=int, default=100)
    given = parser.parse_args()
    one_core()
    given.table.parent.mkdir(parents=True, exist_ok=True)
    compare_ways(given.draws, given.epsilons, given.table)
    if given.sites:
        time_round(given.sites, given.people, given.columns)
