"""A private mean shape: five landmarks on the wings of 400 simulated insects.

The centre is a published drawing of the species, and the radius what is known of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dpmanifolds as dpm
from examples._shared import draw_release, tell_usefulness

DRAWING = np.array([[0.0, 0.1], [2.2, 0.2], [2.8, 1.0], [2.2, 2.0], [0.3, 1.5]])
WING = np.array([[0.0, 0.0], [2.0, 0.2], [3.1, 1.0], [2.1, 1.9], [0.3, 1.6]])


def main(folder: str | Path = "out", n: int = 400) -> None:
    """Simulate, release, tell."""
    space = dpm.PlanarShapes(5)
    wings = space.from_landmarks(WING + 0.08 * np.random.default_rng(0).standard_normal((n, 5, 2)))
    ball = dpm.Ball(space, space.from_landmarks(DRAWING), radius=0.25)
    release = dpm.private_mean(wings, ball, dpm.PureDP(1.0), unit="insect")
    off = float(space.dist(release.value, space.from_landmarks(WING)))
    print(f"Released at {release.spent!r}: {100 * off:.2f} % of the size from the simulated truth")
    tell_usefulness(release, spread=0.07)
    Path(folder).mkdir(parents=True, exist_ok=True)
    draw_release(release, Path(folder) / "shape.png")


if __name__ == "__main__":
    main()
