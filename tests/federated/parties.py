"""Small studies that the tests of this room share."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from dpmanifolds import SPD, Ball, Euclidean, GaussianDP, Site, Sphere, Study

NAMES = ("north", "east", "south", "west")
FLAT = Ball(Euclidean(3), np.zeros(3), 2.0)
ROUND = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0)
MATRICES = Ball(SPD(2), np.eye(2), 1.5)


def records(ball, count=200, seed=0):
    """Records in a ball, some of them outside."""
    rng = np.random.default_rng(seed)
    along = rng.normal(size=(count, ball.manifold.dim)) * 0.4 * ball.radius
    return np.asarray(ball.manifold.move(ball.center, along))


def study(ball=FLAT, statistic="mean", budget=None, **options):
    options = {"n": 200, "sites": NAMES, **options}
    if "n_guess" in options:
        options["n"] = None
    return Study(statistic, ball, budget or GaussianDP(1.0), **options)


def split_sites(points, names=NAMES, seed=0, **options):
    """A site for each name, with its part of the records and a seed of its own."""
    parts = np.array_split(points, len(names))
    return [
        Site(name, part, rng=seed + number, **options)
        for number, (name, part) in enumerate(zip(names, parts, strict=True))
    ]


def simulate(module, folder, *arguments):
    """What a study of this module printed, in a folder of its own; FLARE's simulator gets three attempts.

    It looks for a free port and lets go of it before its client listens there: now and then another one gets it, and
    the simulator says that the thread of that client failed.
    """
    for attempt in "123":
        (folder / attempt).mkdir()
        command = [sys.executable, "-m", f"tests.federated.{module}", str(folder / attempt), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        if "run_client_thread error" not in done.stdout + done.stderr:
            break
    return done
