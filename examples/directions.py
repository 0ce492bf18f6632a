"""A private mean direction: where do 500 simulated paths point?

The cap of 60 degrees around north is public knowledge, and so is a spread of about 20 degrees.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dpmanifolds as dpm
from examples._shared import draw_release, tell_usefulness


def main(folder: str | Path = "out", n: int = 500) -> None:
    """Simulate, release, tell."""
    sphere, north = dpm.Sphere(2), np.array([0.0, 0.0, 1.0])
    truth = sphere.exp(north, np.array([0.3, 0.1, 0.0]))
    at = np.broadcast_to(truth, (n, 3))
    records = sphere.exp(at, 0.25 * sphere.random_tangent(at, rng=0))
    release = dpm.private_mean(records, dpm.Ball(sphere, north, radius=np.pi / 3), dpm.PureDP(1.0), unit="person")
    off = np.degrees(float(sphere.dist(release.value, truth)))
    print(f"Released at {release.spent!r}: {np.round(release.value, 3)}, {off:.1f} degrees from the simulated truth")
    tell_usefulness(release, spread=0.35)
    Path(folder).mkdir(parents=True, exist_ok=True)
    draw_release(release, Path(folder) / "direction.png")


if __name__ == "__main__":
    main()
