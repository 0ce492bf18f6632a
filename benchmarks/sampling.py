"""Exact draws against the published Markov chains and pyRiemann's sampler, in one run.

    PYTHONPATH=. python benchmarks/sampling.py [--plot out/sampling.png]

Chains are timed over a part of their steps and scaled up: their cost per step is constant. Draws of our laws include
building the law (its hulls and quadrature), as a release does.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_times, one_core, record

from dpmanifolds import SPD, Hyperbolic, PlanarShapes, RiemannianGaussian, RiemannianLaplace, Sphere, frechet_mean
from dpmanifolds.intrinsic import KNormGradientLaw
from papers.chains import (
    knorm_gradient_chain,
    log_euclidean_laplace_chain,
    log_euclidean_laplace_chain_in_coordinates,
)


def log_euclidean_laplace(table: Table) -> None:
    """One draw of the Riemannian Laplace on log-Euclidean SPD(30) against 50,000 steps."""
    space, mean = SPD(30, "log-euclidean"), np.eye(30)
    part, whole = 500, 50_000
    times = best_times(
        {
            "ours": lambda: RiemannianLaplace(space, mean, 0.01).sample(),
            "chain": lambda: log_euclidean_laplace_chain(mean, 0.01, part, rng=0),
            "coordinates": lambda: log_euclidean_laplace_chain_in_coordinates(mean, 0.01, part, rng=0),
        },
        repeats=5,
    )
    for name, label in (("chain", "published chain"), ("coordinates", "the same in log coordinates")):
        peer = times[name] * whole / part
        row("Laplace, log-Euclidean SPD(30), 1 draw", times["ours"], f"{label}, 50,000 steps", peer, table)


def knorm_gradient(table: Table) -> None:
    """One draw of the K-norm gradient law on S² with 100 records against 20,000 burn-in steps."""
    sphere, north = Sphere(2), np.array([0.0, 0.0, 1.0])
    rng = np.random.default_rng(0)
    radius = np.pi / 8
    angles, turns = radius * rng.random(100), 2 * np.pi * rng.random(100)
    tangents = angles[:, None] * np.stack([np.cos(turns), np.sin(turns), np.zeros(100)], axis=1)
    records = sphere.exp(north, tangents)
    sigma = 2 * 0.8062 / 100
    mean = frechet_mean(sphere, records).point
    part, whole = 1_000, 20_000
    times = best_times(
        {
            "ours": lambda: KNormGradientLaw(sphere, records, north, radius, sigma, mean).sample(),
            "chain": lambda: knorm_gradient_chain(records, north, radius, sigma, part, rng=0),
        },
        repeats=5,
    )
    peer = times["chain"] * whole / part
    row("K-norm gradient, S², n = 100, 1 draw", times["ours"], "published chain, 20,000 steps", peer, table)


def affine_invariant_gaussian(table: Table) -> None:
    """10,000 draws of the Riemannian Gaussian on SPD(10) against pyRiemann's slice sampler."""
    from pyriemann.datasets import sample_gaussian

    space, mean, sigma = SPD(10), np.eye(10), 0.5
    part, whole = 400, 10_000

    def theirs() -> np.ndarray:
        # pyRiemann divides its sigma by √k
        return sample_gaussian(part, mean, sigma * np.sqrt(10), random_state=0, sampling_method="slice")

    ours = best_times({"ours": lambda: RiemannianGaussian(space, mean, sigma).sample(whole)}, repeats=3)["ours"]
    peer = best_times({"pyriemann": theirs}, repeats=1)["pyriemann"] * whole / part
    moment = RiemannianGaussian(space, mean, sigma).mean_squared_distance
    squares = space.dist(mean, theirs()) ** 2
    error, width = squares.mean() / moment - 1, squares.std() / np.sqrt(part) / moment
    label = f"pyRiemann, slice sampling (its E ρ² is off by {error:+.1%} ± {width:.1%})"
    row("Gaussian, affine-invariant SPD(10), 10,000 draws", ours, label, peer, table)


def row(what: str, ours: float, label: str, peer: float, table: Table) -> None:
    """One line of the table."""
    record("sampler", what, ours, label.split(" (", maxsplit=1)[0], peer)
    table.add_row(what, f"{1e3 * ours:.2f} ms", label, f"{peer:.2f} s", f"{peer / ours:,.0f}")


def growth(path: Path | None) -> None:
    """Cost per draw (1,000 draws, law included) as the dimension grows."""
    families = {
        "Laplace, sphere": [RiemannianLaplace(Sphere(d), Sphere(d).random_point(rng=0), 0.1) for d in (2, 10, 50, 200)],
        "Gaussian, hyperbolic": [
            RiemannianGaussian(Hyperbolic(d), Hyperbolic(d).origin, 0.1) for d in (2, 10, 50, 200)
        ],
        "Laplace, planar shapes": [
            RiemannianLaplace(PlanarShapes(k), PlanarShapes(k).random_point(rng=0), 0.01) for k in (3, 7, 27, 102)
        ],
        "Laplace, SPD log-Euclidean": [
            RiemannianLaplace(SPD(k, "log-euclidean"), np.eye(k), 0.1) for k in (2, 4, 10, 20)
        ],
        "Gaussian, SPD affine-invariant": [RiemannianGaussian(SPD(k), np.eye(k), 0.3) for k in (2, 4, 10, 20)],
    }
    table = Table(title="Microseconds per draw (1,000 draws at a time) against the dimension")
    table.add_column("law")
    for _ in range(4):
        table.add_column("dim: µs", justify="right")
    curves = {}
    for name, laws in families.items():
        times = best_times({str(law.manifold.dim): lambda law=law: law.sample(1_000) for law in laws}, repeats=3)
        curves[name] = {int(dim): 1e3 * seconds for dim, seconds in times.items()}
        table.add_row(name, *(f"{dim}: {cost:.1f}" for dim, cost in curves[name].items()))
    Console(width=130).print(table)
    if path is not None:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6.5, 4.2))
        for name, points in curves.items():
            axes.loglog(list(points), list(points.values()), "o-", label=name)
        axes.set(xlabel="dimension of the manifold", ylabel="µs per draw (CPU, one core)")
        axes.set_title("Exact draws: cost against dimension")
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, bbox_inches="tight")


def main() -> None:
    """Print the tables, and draw the plot if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    path = parser.parse_args().plot
    warnings.simplefilter("ignore")
    one_core()
    table = Table(title="Exact draws against chains: CPU time on one core")
    for heading in ("draw", "ours", "against", "theirs", "times faster"):
        table.add_column(heading)
    log_euclidean_laplace(table)
    knorm_gradient(table)
    affine_invariant_gaussian(table)
    Console(width=150).print(table)
    growth(path)


if __name__ == "__main__":
    main()
