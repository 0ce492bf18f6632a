"""Five hospitals, one mean of covariance matrices, no trusted centre: who sees what, and what it costs.

    python -m examples.five_sites [FOLDER]

Five sites have 200 records each, matrices that vary around one that nobody is told. The same question is asked in four
ways, each under a promise of μ = 1: one place that all trust, a secure sum (t = 1: any one site may be gone, or side
with the coordinator), answers in plain, and each site alone, combined afterwards. Then a test whether two treatments
differ, with an exact level. It prints a table, and draws a figure into FOLDER (default: out) where matplotlib is
installed. A few seconds, no network.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import dpmanifolds as dpm
from examples._shared import save_figure

NAMES = ["athens", "berlin", "cairo", "delhi", "erfurt"]
SPACE = dpm.SPD(3, "log-euclidean")
BUDGET = dpm.GaussianDP(1.0)


def make_records(rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The records of each site, and who got which treatment."""
    middle = np.diag([1.6, 1.0, 0.7])
    labels = [rng.permutation(np.arange(200) % 2) for _ in NAMES]
    records = []
    for own in labels:
        along = 0.25 * rng.normal(size=(200, SPACE.dim))
        along[own == 1, 0] += 0.3
        records.append(np.asarray(SPACE.move(middle, along)))
    return records, labels


def release_each_way(ball: dpm.Ball, records: list[np.ndarray]) -> dict[str, Any]:
    """The mean by each way."""
    sites = [dpm.Site(name, own) for name, own in zip(NAMES, records, strict=True)]
    told: dict[str, Any] = {"n": 1000, "sites": NAMES}
    alone = [dpm.private_mean(own, ball, BUDGET, mechanism="wrapped-gaussian", refine=0) for own in records]
    central = dpm.private_mean(np.concatenate(records), ball, BUDGET, mechanism="wrapped-gaussian", refine=0)
    return {
        "one trusted place": central,
        "secure sum, t = 1": dpm.run_study(dpm.Study("mean", ball, BUDGET, tolerated=1, **told), sites),
        "answers in plain": dpm.run_study(dpm.Study("mean", ball, BUDGET, transport="plain", **told), sites),
        "each site alone": dpm.combine(alone),
    }


def draw_figure(path: Path, ball: dpm.Ball, ways: dict[str, Any], whole: np.ndarray) -> None:
    """Where each way ended, beside the mean of all records, in two coordinates at the centre."""

    def paint(figure: Any) -> None:
        axes = figure.add_subplot()
        for name, release in ways.items():
            x, y = np.asarray(SPACE.log_coordinates(ball.center, release.value))[:2]
            axes.scatter(x, y, label=f"{name} ({release.expected_error.mean:.3f})")
        x, y = np.asarray(SPACE.log_coordinates(ball.center, whole))[:2]
        axes.scatter(x, y, marker="+", color="black", s=120, label="mean of all records")
        axes.set_aspect("equal", adjustable="datalim")
        axes.locator_params(nbins=4)
        axes.set(xlabel="first coordinate", ylabel="second coordinate", title="Five sites, μ = 1 (expected error)")
        figure.legend(loc="outside right center")

    save_figure(path, (7.5, 4.0), paint)


def main(folder: str | Path = "out") -> None:
    """The table, the test, and the figure."""
    records, labels = make_records(np.random.default_rng(0))
    ball = dpm.Ball(SPACE, np.eye(3), 2.0)
    ways = release_each_way(ball, records)
    whole = dpm.frechet_mean(SPACE, np.concatenate(records)).point
    predicted = dpm.plan_sites(ball, [200] * 5, BUDGET, tolerated=1)
    print(predicted, end="\n\n")
    print(f"{'way':<20}{'error told':>12}{'distance to the mean of all records':>38}")
    for name, release in ways.items():
        print(f"{name:<20}{release.expected_error.mean:>12.4f}{float(SPACE.dist(whole, release.value)):>38.4f}")
    print(f"\n{ways['secure sum, t = 1'].sites}")
    test = dpm.Study("two-sample test", ball, BUDGET, n=[500, 500], classes=[0, 1], sites=NAMES, tolerated=1)
    sites = [dpm.Site(name, own, labels=who) for name, own, who in zip(NAMES, records, labels, strict=True)]
    print(f"\nDo the two treatments differ? {dpm.run_study(test, sites)!r}")
    draw_figure(Path(folder) / "five_sites.png", ball, ways, whole)


if __name__ == "__main__":
    main(*sys.argv[1:2])
