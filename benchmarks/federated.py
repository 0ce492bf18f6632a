"""Several sites against one trusted place: errors of the three ways, predicted and measured, and the time of a round.

    python benchmarks/federated.py [--draws 400] [--sites 64] [--columns 100] [--people 100]

The first table has, for n records at k sites of the same size, the mean error (length of the noise on the mean in R^d)
of one place, of a secure sum without and with a quarter of the sites tolerated, of answers in plain, and of the
combination of what each site releases alone; measured through the public functions, over that of one place, beside what
`plan_sites` predicts. The second table is the time of one round of a mean of covariance matrices, log-Euclidean: all
sites answer one after the other in this process, and the sum is read.
"""

from __future__ import annotations

import argparse
import time

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

_DIM = 10
_CASES = ((400, 4), (4000, 4), (4000, 16), (16000, 64))
_BUDGETS = (GaussianDP(1.0), ApproxDP(1.0, 1e-6))


def _length(release) -> float:  # type: ignore[no-untyped-def]
    return float(np.linalg.norm(release.coordinates))


def _measured(n: int, sites: int, budget, draws: int) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Mean lengths of noise on a mean that is 0, through the public functions."""
    ball, names = Ball(Euclidean(_DIM), np.zeros(_DIM), 1.0), [f"site {number}" for number in range(sites)]
    points = np.zeros((n // sites, _DIM))
    one = {"mechanism": "wrapped-gaussian", "refine": 0}

    def asked(seed: int, **options) -> float:  # type: ignore[no-untyped-def]
        study = Study("mean", ball, budget, n=n, sites=names, **options)
        parties = [Site(name, points, rng=1_000_003 * seed + number) for number, name in enumerate(names)]
        return _length(run_study(study, parties))

    def alone(seed: int) -> float:
        released = [private_mean(points, ball, budget, rng=7919 * seed + number, **one) for number in range(sites)]
        return _length(combine(released))

    whole = np.zeros((n, _DIM))
    ways = {
        "central": lambda seed: _length(private_mean(whole, ball, budget, rng=104_729 * seed, **one)),
        "t = 0": asked,
        "t = k/4": lambda seed: asked(seed, tolerated=sites // 4),
        "plain": lambda seed: asked(seed, transport="plain"),
        "alone": alone,
    }
    return {name: float(np.mean([way(seed) for seed in range(draws)])) for name, way in ways.items()}


def compare_ways(draws: int) -> None:
    """The first table."""
    print(f"mean error in R^{_DIM}, radius 1, {draws} releases of each; measured / predicted")
    print("budget | n | sites | central | secure, t = 0 | secure, t = k/4 | plain | each alone")
    for budget in _BUDGETS:
        for n, sites in _CASES:
            found = _measured(n, sites, budget, draws)
            ball = Ball(Euclidean(_DIM), np.zeros(_DIM), 1.0)
            told = plan_sites(ball, [n // sites] * sites, budget, tolerated=sites // 4)
            predicted = {"central": told.central, "t = 0": told.central, "t = k/4": told.secure}
            predicted |= {"plain": told.plain, "alone": told.alone}
            cells = " | ".join(f"{found[name]:.4g} / {predicted[name]:.4g}" for name in found)
            print(f"{budget!r} | {n} | {sites} | {cells}")


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
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--sites", type=int, default=64)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--people", type=int, default=100)
    given = parser.parse_args()
    one_core()
    compare_ways(given.draws)
    time_round(given.sites, given.people, given.columns)
