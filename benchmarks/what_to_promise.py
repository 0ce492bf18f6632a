"""How many records a private mean needs in the public ball of each kind of data, at ε = 1.

    python benchmarks/what_to_promise.py [--out docs/tables/what_to_promise.csv]

For every entry of `dpmanifolds.domains.typical`, in common sizes: the radius of `Ball.typical`, and the smallest n at
which the planned mean error is no more than a tenth in ratio (matrices: 0.1 in the metric of the space) or 0.02 of the
size (shapes) or of a radian (compositions), for pure ε = 1 and for (1, 1e−6). Nothing is drawn, no record is read.
"""

from __future__ import annotations

import argparse
import csv
import sys

import numpy as np

import dpmanifolds as dpm
from dpmanifolds.domains.typical import TYPICAL, Typical
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.planning import records_for

SIZES: dict[str, tuple[tuple[Manifold, str], ...]] = {
    "diffusion-tensor": ((dpm.SPD(3), "one tensor"),),
    "eeg": tuple((dpm.SPD(k, "log-euclidean"), f"{k} channels") for k in (4, 8, 22)),
    "correlation": tuple((dpm.SPD(k, "log-euclidean"), f"{k} regions") for k in (5, 10, 28)),
    "landmark-shape": tuple((dpm.PlanarShapes(k), f"{k} landmarks") for k in (5, 20, 100)),
    "composition": tuple((dpm.Sphere(d), f"{d + 1} parts") for d in (3, 20, 100)),
}
BUDGETS = (dpm.PureDP(1.0), dpm.ApproxDP(1.0, 1e-6))


def make_ball(one: Typical, manifold: Manifold) -> dpm.Ball:
    """The ball of an entry; a regular polygon stands in for the public template of shapes."""
    if one.radius is None:
        return dpm.Ball.typical(manifold, one.kind, unit=one.unit or None)
    corners = np.exp(2j * np.pi * np.arange(manifold.point_shape[0]) / manifold.point_shape[0])
    return dpm.Ball.typical(manifold, one.kind, center=manifold.project(corners))


def tell_range(kind: str) -> str:
    """Eigenvalues in each unit, the radius around a template, or all."""
    found = [one for one in TYPICAL if one.kind == kind]
    if found[0].eigenvalues is None:
        return "all compositions" if found[0].radius is None else f"within {found[0].radius:g} of the template"
    told = []
    for one in found:
        low, high = one.eigenvalues or (0.0, 0.0)
        told.append(
            f"{low:g} to {high:g} {one.unit}".replace("e-0", "e−").replace("e-", "e−")
            if np.isfinite(high)
            else f"{low:g} to 0.1 + 0.9·k"
        )
    return " or ".join(told)


def count_records(ball: dpm.Ball, budget: dpm.Budget, error: float) -> str:
    """The smallest n, in thousands separators; a dash where none is found."""
    try:
        return f"{records_for(ball, budget, error=error):,}"
    except ArgumentError:
        return "–"


def main() -> None:
    """Write one row for each kind, unit and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=None, help="a CSV file; without it rows are printed")
    options = parser.parse_args()
    with open(options.out or sys.stdout.fileno(), "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        heading = [
            "kind",
            "eigenvalues, or records",
            "size",
            "dimension",
            "radius",
            "error",
            "n, ε = 1",
            "n, (1, 1e−6)",
        ]
        rows.writerow(heading)
        for kind, sizes in SIZES.items():
            one = next(each for each in TYPICAL if each.kind == kind)
            for manifold, size in sizes:
                ball, error = make_ball(one, manifold), 0.02 if kind in ("landmark-shape", "composition") else 0.1
                counts = [count_records(ball, budget, error) for budget in BUDGETS]
                rows.writerow([kind, tell_range(kind), size, manifold.dim, f"{ball.radius:.3g}", error, *counts])


if __name__ == "__main__":
    main()
