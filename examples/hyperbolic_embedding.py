"""A private centre of a hierarchy: where do 1,000 simulated users sit in a hyperbolic embedding?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dpmanifolds as dpm
from examples._shared import draw_release, tell_usefulness


def main(folder: str | Path = "out", n: int = 1000) -> None:
    """Simulate, release, tell."""
    space = dpm.Hyperbolic(2)
    root = np.array([1.0, 0.0, 0.0])
    truth = space.exp(root, np.array([0.0, 0.8, 0.2]))
    at = np.broadcast_to(truth, (n, 3))
    users = space.exp(at, 0.4 * space.random_tangent(at, rng=0))
    release = dpm.private_mean(users, dpm.Ball(space, root, radius=3.0), dpm.PureDP(1.0), unit="user")
    print(f"Released at {release.spent!r}: {float(space.dist(release.value, truth)):.3f} from the simulated truth")
    tell_usefulness(release, spread=0.6)
    Path(folder).mkdir(parents=True, exist_ok=True)
    draw_release(release, Path(folder) / "hyperbolic.png")


if __name__ == "__main__":
    main()
