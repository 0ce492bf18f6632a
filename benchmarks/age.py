"""Does shape change with age? The skulls of growing rats: `PYTHONPATH=. python benchmarks/age.py DATA [--repeats 200]`.

Eight landmarks on X-rays of 18 rats at 7 to 150 days (`shapes/rats_calvaria.npz`, from the R package shapes; read from
DATA, never copied). A public fifth of the rats gives centre and radius (1.5 times the median distance to it, of all
their X-rays); shape is regressed on the logarithm of the age. Prints how often the 95 % region of the slope rules out
"no change", for neighbours that differ in one X-ray and in one rat, with ages as they are and with shuffled ones; draws
the skulls at three ages.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context

import dpmanifolds as dpm

STYLE = Path(__file__).resolve().parents[1] / "docs" / "figures.mplstyle"
BOUNDS = (math.log(7), math.log(150))
PUBLIC = 4


def read_rats(data: Path) -> tuple[dpm.Ball, Any, np.ndarray, np.ndarray]:
    """The public ball, and shapes, log ages and names of the private rats."""
    file = np.load(data / "shapes" / "rats_calvaria.npz", allow_pickle=False)
    space = dpm.PlanarShapes(file["x"].shape[1])
    shapes, ages, names = np.asarray(space.as_points(file["x"])), np.log(file["time"]), file["rat"]
    public = np.isin(names, np.unique(names)[:PUBLIC])
    center = dpm.frechet_mean(space, shapes[public]).point
    radius = 1.5 * float(np.median(space.dist(np.asarray(center), shapes[public])))
    return dpm.Ball(space, center, radius), shapes[~public], ages[~public], names[~public]


def fit(ball: dpm.Ball, shapes: Any, ages: np.ndarray, names: Any, mu: float, rng: np.random.Generator) -> Any:
    """One private regression."""
    budget = dpm.GaussianDP(mu)
    return dpm.private_geodesic_regression(shapes, ages, ball, budget, covariate_bounds=BOUNDS, group_by=names, rng=rng)


def print_shares(data: Path, repeats: int) -> None:
    """How often the region of the slope excludes zero."""
    ball, shapes, ages, names = read_rats(data)
    rng = np.random.default_rng(0)
    print(f"{len(shapes)} X-rays of {len(np.unique(names))} rats, radius {ball.radius:.3f}")
    print("| one unit is | μ | a change is found | with shuffled ages |\n|---|---|---|---|")
    for unit, group in (("an X-ray", None), ("a rat", names)):
        for mu in (0.5, 1.0, 3.0):
            found = np.zeros(2)
            for _ in range(repeats):
                for number, given in enumerate((ages, rng.permutation(ages))):
                    made = fit(ball, shapes, given, group, mu, rng)
                    found[number] += bool(made.slope_region(0.95).excludes_zero[0])
            real, shuffled = found / repeats
            print(f"| {unit} | {mu:g} | {real:.2f} | {shuffled:.2f} |", flush=True)


def draw_skulls(data: Path, path: Path) -> None:
    """Fits at three ages, with noise of μ = 1 for one X-ray and without."""
    from matplotlib.figure import Figure

    ball, shapes, ages, _ = read_rats(data)
    rng = np.random.default_rng(1)
    fits = {
        "private, μ = 1": fit(ball, shapes, ages, None, 1.0, rng),
        "no noise": fit(ball, shapes, ages, None, 700.0, rng),
    }
    figure = Figure(figsize=(9.0, 2.8), layout="constrained")
    axes = figure.subplots(1, 3)
    first = np.asarray(ball.center)
    axis = np.exp(-0.5j * np.angle(np.sum(first**2)))
    for ax, days in zip(axes, (7, 30, 150), strict=True):
        for (name, made), style in zip(fits.items(), ("C1o-", "k:"), strict=True):
            points = np.asarray(made.predict([math.log(days)]))[0]
            turned = points * np.exp(1j * np.angle(np.vdot(points, first))) * axis
            ax.plot(*np.append(turned, turned[0]).view(float).reshape(-1, 2).T, style, label=name)
        ax.set_title(f"{days} days")
        ax.set_aspect("equal")
        ax.set_axis_off()
    axes[0].legend(loc="center")
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> None:
    """Print the table; draw where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder of real data")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args(arguments)
    if options.figure is not None:
        with rc_context(fname=STYLE):
            draw_skulls(options.data, options.figure)
    if options.repeats:
        print_shares(options.data, options.repeats)


if __name__ == "__main__":
    main()
