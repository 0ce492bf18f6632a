"""Fréchet means: ours against pyRiemann and geomstats, same data, same gradient norm, in one run.

    python benchmarks/mean.py [--repeats 7]

pyRiemann's tolerance is on the gradient's length, as ours is; geomstats runs at the loosest setting, of its faster
method, that reaches that length. "kernel" is what one pass does at least: one LAPACK eigendecomposition of the data
(k > 3; log-Euclidean means do without one), one closed-form logarithm (k ≤ 3), one copy of the data (spheres).
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable

os.environ.setdefault("GEOMSTATS_BACKEND", "numpy")

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_times, one_core, record

from dpmanifolds import SPD, Manifold, Sphere, frechet_mean
from dpmanifolds.manifolds._symmetric import log_entries

GOAL = 1e-10


def wishart(k: int, count: int) -> np.ndarray:
    """Sample covariances of 2k standard normal vectors, as EEG and connectome covariances are made."""
    factors = np.random.default_rng(k).standard_normal((count, k, 2 * k))
    return factors @ factors.swapaxes(1, 2) / (2 * k)


def cap(d: int, count: int) -> np.ndarray:
    """Points spread over most of a hemisphere."""
    points = Sphere(d).random_point(count, rng=d)
    points[:, 0] = 1 + np.abs(points[:, 0])
    return Sphere(d).project(points)


def gradient(manifold: Manifold, point: np.ndarray, records: np.ndarray) -> float:
    """Length of the gradient at `point`."""
    return float(np.linalg.norm(manifold.to_coordinates(point, manifold.log(point, records)).mean(axis=0)))


def first_that_reaches(
    manifold: Manifold, records: np.ndarray, candidates: list[Callable[[], np.ndarray]]
) -> Callable[[], np.ndarray] | None:
    """The first candidate (loosest setting first) whose result has a small enough gradient."""
    for candidate in candidates:
        if gradient(manifold, candidate(), records) <= GOAL:
            return candidate
    return None


def pyriemann_mean(records: np.ndarray, metric: str) -> Callable[[], np.ndarray]:
    """pyRiemann's mean; its `tol` bounds the gradient's length, as ours does."""
    from pyriemann.geometry.mean import gmean

    if metric == "logeuclid":
        return lambda: gmean(records, metric=metric)
    return lambda: gmean(records, metric=metric, tol=GOAL, maxiter=300)


def geomstats_mean(manifold: Manifold, records: np.ndarray) -> Callable[[], np.ndarray] | None:
    """geomstats' faster method that reaches the goal, at its loosest setting."""
    from geomstats.geometry.hypersphere import Hypersphere
    from geomstats.geometry.spd_matrices import SPDAffineMetric, SPDMatrices
    from geomstats.learning.frechet_mean import FrechetMean

    if isinstance(manifold, Sphere):
        space = Hypersphere(manifold.dim)
    else:
        space = SPDMatrices(records.shape[-1], equip=False)
        space.equip_with_metric(SPDAffineMetric)

    def fit(method: str, epsilon: float) -> np.ndarray:
        estimator = FrechetMean(space, method=method)
        estimator.optimizer.epsilon = epsilon
        estimator.optimizer.max_iter = 300
        return np.asarray(estimator.fit(records).estimate_)

    settings = (1e-8, 1e-10, 1e-12, 1e-14, 1e-16, 1e-18, 1e-20, 1e-22)
    methods = ("default", "adaptive") if isinstance(manifold, Sphere) else ("default",)
    found = [first_that_reaches(manifold, records, [lambda m=m, e=e: fit(m, e) for e in settings]) for m in methods]
    reached = [candidate for candidate in found if candidate is not None]
    if not reached:
        return None
    times = best_times({str(i): candidate for i, candidate in enumerate(reached)}, repeats=2)
    return reached[int(min(times, key=lambda name: times[name]))]


def kernel(records: np.ndarray) -> Callable[[], object]:
    """The work of one pass, reduced to its core."""
    if records.ndim == 2:
        return records.copy
    k = records.shape[-1]
    if k > 3:
        return lambda: np.linalg.eigh(records)

    def closed_form() -> None:
        for start in range(0, len(records), 8192):
            block = records[start : start + 8192]
            log_entries({(i, j): block[:, i, j].copy() for i in range(k) for j in range(i, k)}, k)

    return closed_form


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    one_core()
    table = Table(title=f"Fréchet mean to a gradient of {GOAL:g}: CPU time on one core, best of {repeats}")
    for heading in (
        "space",
        "n",
        "ours",
        "passes",
        "gradient",
        "pyRiemann",
        "ratio",
        "geomstats",
        "ratio",
        "ours/kernel",
    ):
        table.add_column(heading, justify="right")
    cases: list[tuple[Manifold, np.ndarray]] = []
    for metric in ("affine-invariant", "log-euclidean"):
        cases += [(SPD(k, metric), wishart(k, n)) for k, n in ((2, 100_000), (3, 100_000), (10, 10_000), (30, 1_000))]
    cases += [(Sphere(d), cap(d, 100_000)) for d in (2, 50)]
    for manifold, records in cases:
        metric = getattr(manifold, "metric", None)
        candidates = {
            "ours": lambda m=manifold, r=records: frechet_mean(m, r, tolerance=GOAL),
            "kernel": kernel(records),
        }
        if metric is not None:
            name = {"affine-invariant": "riemann", "log-euclidean": "logeuclid"}[metric]
            candidates["pyriemann"] = pyriemann_mean(records, name)
        if metric != "log-euclidean":
            candidates["geomstats"] = geomstats_mean(manifold, records)
        times = best_times({name: run for name, run in candidates.items() if run is not None}, repeats)
        result = frechet_mean(manifold, records, tolerance=GOAL)
        row = [repr(manifold), f"{len(records):,}", f"{1e3 * times['ours']:.1f} ms", str(result.passes)]
        row.append(f"{gradient(manifold, result.point, records):.0e}")
        for peer in ("pyriemann", "geomstats"):
            if peer in times:
                name = {"pyriemann": "pyRiemann"}.get(peer, peer)
                record("mean", f"{manifold!r}, n = {len(records):,}", times["ours"], name, times[peer], times["kernel"])
                row += [f"{1e3 * times[peer]:.1f} ms", f"{times[peer] / times['ours']:.2f}"]
            else:
                row += ["never got there" if peer in candidates else "–", "–"]
        row.append(f"{times['ours'] / times['kernel']:.2f}")
        table.add_row(*row)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
