"""The private mean with one step: against pyRiemann's bare mean, and against clipping and the bare logarithms.

    python benchmarks/private_mean.py [--repeats 5]

One step is one pass of per-record work: logarithms at the public centre, integers, an exact sum; the noise is drawn
once. CPU time on one core, best of several, in one run. Exits with 1 where a limit is missed: the ratios below, and
no more than clipping and the logarithms anywhere.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from mean import GOAL, cap, pyriemann_mean, wishart
from rich.console import Console
from rich.table import Table
from timing import best_times, one_core, record

from dpmanifolds import SPD, Ball, GaussianDP, Manifold, Sphere, private_mean

LIMITS = {"SPD(10, metric='affine-invariant')": 6.0, "SPD(30, metric='affine-invariant')": 5.0}


def bare(ball: Ball, records: np.ndarray) -> np.ndarray:
    """What a step cannot do without: records clipped, and their logarithms at the centre."""
    return ball.manifold.log_coordinates(ball.center, ball.clip(records)).mean(axis=0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    one_core()
    table = Table(title=f"Private mean, one step: CPU time on one core, best of {repeats}")
    for heading in ("space", "n", "private", "pyRiemann", "ratio", "limit", "clip + logs", "share of it"):
        table.add_column(heading, justify="right")
    cases: list[tuple[Manifold, np.ndarray]] = [
        (SPD(k, metric), wishart(k, n))
        for metric in ("affine-invariant", "log-euclidean")
        for k, n in ((3, 100_000), (10, 10_000), (30, 1_000), (64, 300))
    ]
    cases += [(Sphere(d), cap(d, 100_000)) for d in (2, 50)]
    missed = False
    for manifold, records in cases:
        matrices = records.ndim == 3
        center = np.eye(records.shape[-1]) if matrices else np.eye(records.shape[-1])[0]
        ball = Ball(manifold, center, 3.0 * np.sqrt(manifold.dim / 6) if matrices else 1.2)
        candidates = {
            "private": lambda b=ball, r=records: private_mean(r, b, GaussianDP(1.0), steps=1),
            "bare": lambda b=ball, r=records: bare(b, r),
        }
        if matrices:
            name = {"affine-invariant": "riemann", "log-euclidean": "logeuclid"}[manifold.metric]
            candidates["pyriemann"] = pyriemann_mean(records, name)
        times = best_times(candidates, repeats)
        ratio = times["pyriemann"] / times["private"] if matrices else None
        limit = LIMITS.get(repr(manifold))
        missed |= limit is not None and ratio is not None and ratio < limit
        missed |= times["private"] > times["bare"]
        if ratio is not None:
            what = f"private, {manifold!r}, n = {len(records):,}"
            record("private mean", what, times["private"], "pyRiemann", times["pyriemann"], times["bare"])
        table.add_row(
            repr(manifold),
            f"{len(records):,}",
            f"{1e3 * times['private']:.1f} ms",
            "–" if ratio is None else f"{1e3 * times['pyriemann']:.1f} ms",
            "–" if ratio is None else f"{ratio:.2f}",
            "–" if limit is None else f"{limit:g}",
            f"{1e3 * times['bare']:.1f} ms",
            f"{times['private'] / times['bare']:.2f}",
        )
    Console(width=150).print(table)
    print(f"pyRiemann's tolerance is {GOAL:g}")
    sys.exit(int(missed))


if __name__ == "__main__":
    main()
