"""When a private mean is worth more than the public centre of its ball: over dimension, number of records and budget.

    python benchmarks/when_useful.py [--draws 8] [--out docs/tables/when_useful.csv]

It writes a row for each cell, and beside it (`…_smallest.csv`) the smallest n at which a release beats the centre by
5 % and at which it halves its error, for a centre a quarter of the radius away.

Symmetric matrices of k channels (affine-invariant) in a ball of radius 1 around the public centre I. The mean lies
`off` (an eighth, a quarter or half of the radius) from the centre in a random direction; records lie around it with a
root mean square distance of half the radius. The error is the distance to that mean: of a default `private_mean`, of
the centre itself (`off`), and of the mean of the same records without privacy. Lengths scale with the radius as long as
it is small against curvature, so that ratios are what counts.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import dpmanifolds as dpm

SIZES = (2, 3, 8, 16, 32)
COUNTS = (30, 100, 300, 1000, 3000)
EPSILONS = (0.3, 1.0, 3.0)
OFFSETS = (0.125, 0.25, 0.5)
SPREAD = 0.5
SHOWN = 0.25


def errors(k: int, n: int, off: float, draws: int) -> dict[str, float]:
    """Mean errors over draws of records and noise."""
    space = dpm.SPD(k)
    ball = dpm.Ball(space, np.eye(k), radius=1.0)
    found: dict[str, list[float]] = {}
    for draw in range(draws):
        rng = np.random.default_rng([k, n, draw, round(1000 * off)])
        way = rng.standard_normal(space.dim)
        mean = space.exp_coordinates(np.eye(k), off * way / np.linalg.norm(way))
        records = space.exp_coordinates(mean, SPREAD * rng.standard_normal((n, space.dim)) / np.sqrt(space.dim))
        plain = dpm.frechet_mean(space, records).point
        found.setdefault("no privacy", []).append(float(space.dist(mean, plain)))
        for epsilon in EPSILONS:
            release = dpm.private_mean(records, ball, dpm.ApproxDP(epsilon, 1e-6), rng=draw)
            found.setdefault(f"{epsilon:g}", []).append(float(space.dist(mean, release.value)))
    return {name: float(np.mean(each)) for name, each in found.items()}


def smallest_counts(path: Path) -> list[list[str]]:
    """For each number of channels the smallest n at which a release beats the centre by 5 %, and halves its error."""
    with path.open(encoding="utf-8", newline="") as file:
        cells = [row for row in csv.DictReader(file) if float(row["off"]) == SHOWN]
    found = [["channels", "dimension", *(f"ε = {each:g}" for each in EPSILONS)]]
    for k in SIZES:
        rows = [row for row in cells if int(row["channels"]) == k]
        found.append([str(k), str(k * (k + 1) // 2)])
        for epsilon in EPSILONS:
            ratios = {int(row["n"]): float(row[f"epsilon {epsilon:g}"]) for row in rows}
            firsts = (next((f"{n:,}" for n, each in ratios.items() if each < limit), "–") for limit in (0.95, 0.5))
            found[-1].append(" / ".join(firsts))
    return found


def main() -> None:
    """Write a row for each cell, and beside it the smallest n."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("out/when_useful.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1), options.out.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["channels", "dimension", "off", "n", "no privacy", *(f"epsilon {each:g}" for each in EPSILONS)])
        for off in OFFSETS:
            for k in SIZES:
                for n in COUNTS:
                    found = {name: value / off for name, value in errors(k, n, off, options.draws).items()}
                    rows.writerow([k, k * (k + 1) // 2, off, n, *(f"{value:.3f}" for value in found.values())])
                    file.flush()
    with options.out.with_stem(f"{options.out.stem}_smallest").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(smallest_counts(options.out))


if __name__ == "__main__":
    main()
