"""The private mean with one step: against means without privacy, and against clipping and the bare logarithms.

    python benchmarks/private_mean.py [--repeats 5]

"one pass" is private_mean(steps=1, refine=0): every record becomes integers on its own, once. "default" is steps=1 as
it comes, which looks at distances first where it pays for a radius: two passes. The peer is the mean of pyRiemann, or
of geomstats on spheres, at a gradient of 1e-10. CPU time on one core, best of several, candidates taking turns.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from mean import GOAL, cap, geomstats_mean, pyriemann_mean, wishart
from rich.console import Console
from rich.table import Table
from timing import best_times, one_core, record

from dpmanifolds import SPD, Ball, GaussianDP, Manifold, Sphere, private_mean

# how many times as fast as the peer one pass is meant to be
WANTED = {
    ("affine-invariant", 3): 20.0,
    ("affine-invariant", 10): 6.0,
    ("affine-invariant", 30): 5.0,
    ("affine-invariant", 64): 4.0,
    ("log-euclidean", 3): 7.0,
    ("log-euclidean", 10): 2.5,
    ("log-euclidean", 30): 2.0,
    ("log-euclidean", 64): 2.0,
    ("sphere", 2): 15.0,
    ("sphere", 50): 20.0,
}
SIZES = {3: 100_000, 10: 10_000, 30: 1_000, 64: 300}
HEADINGS = ("space", "n", "one pass", "default", "peer", "its mean", "ratio", "wanted", "of default", "clip + logs")


def bare(ball: Ball, records: np.ndarray) -> np.ndarray:
    """What a step cannot do without: records clipped, and their logarithms at the centre."""
    return ball.manifold.log_coordinates(ball.center, ball.clip(records)).mean(axis=0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    one_core()
    table = Table(title=f"Private mean, one step: CPU time on one core, best of {repeats}")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for (kind, size), wanted in WANTED.items():
        on_sphere = kind == "sphere"
        manifold: Manifold = Sphere(size) if on_sphere else SPD(size, kind)
        records = cap(size, 100_000) if on_sphere else wishart(size, SIZES[size])
        center = np.eye(size + 1)[0] if on_sphere else np.eye(size)
        ball = Ball(manifold, center, 1.2 if on_sphere else 3.0 * np.sqrt(manifold.dim / 6))
        if on_sphere:
            peer, theirs = "geomstats", geomstats_mean(manifold, records)
            assert theirs is not None
        else:
            name = {"affine-invariant": "riemann", "log-euclidean": "logeuclid"}[kind]
            peer, theirs = "pyRiemann", pyriemann_mean(records, name)
        times = best_times(
            {
                "one pass": lambda b=ball, r=records: private_mean(r, b, GaussianDP(1.0), steps=1, refine=0),
                "default": lambda b=ball, r=records: private_mean(r, b, GaussianDP(1.0), steps=1),
                "bare": lambda b=ball, r=records: bare(b, r),
                "peer": theirs,
            },
            repeats,
        )
        case = f"{manifold!r}, n = {len(records):,}"
        record("private mean, one pass", case, times["one pass"], peer, times["peer"], times["bare"])
        record("private mean, one step", case, times["default"], peer, times["peer"], times["bare"])
        table.add_row(
            repr(manifold),
            f"{len(records):,}",
            f"{1e3 * times['one pass']:.1f} ms",
            f"{1e3 * times['default']:.1f} ms",
            peer,
            f"{1e3 * times['peer']:.1f} ms",
            f"{times['peer'] / times['one pass']:.2f}",
            f"{wanted:g}",
            f"{times['peer'] / times['default']:.2f}",
            f"{1e3 * times['bare']:.1f} ms",
        )
    Console(width=150).print(table)
    print(f"the tolerance of the peers is {GOAL:g}")


if __name__ == "__main__":
    main()
