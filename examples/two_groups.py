"""Two groups compared: do patients and controls differ, by how much, and what does each answer cost?

Simulated diffusion tensors (mm²/s) of one region, one per person; in the patients fibres are less aligned. First one
private bit: do the groups differ? Then the difference itself, with an interval: both at μ = 1, together at μ = 1.41.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dpmanifolds as dpm
from dpmanifolds.data import simulate_tensors
from dpmanifolds.show import plots
from dpmanifolds.show.plots.difference import caption_difference
from examples._shared import save_figure, tell_usefulness


def main(folder: str | Path = "out", n: int = 400) -> None:
    """Simulate, test, estimate, tell."""
    controls, patients = simulate_tensors(n, rng=0), simulate_tensors(n, anisotropy=0.5, rng=1)
    ball = dpm.Ball.typical(dpm.SPD(3, "log-euclidean"), "diffusion-tensor", unit="mm²/s")
    budget = dpm.GaussianDP(1.0)
    decision = dpm.private_two_sample_test(controls, patients, ball, budget, unit="person")
    print(f"{n} controls, {n} patients. Do they differ, at level {decision.level:g}? {decision.answer}.")
    difference = dpm.private_difference(controls, patients, ball, budget, unit="person")
    low, high = difference.interval
    print(f"Distance of the means: {difference.length:.2f}, 95 % within [{low:.2f}, {high:.2f}]; simulated: 0.37")
    for name, release in zip(("controls", "patients"), difference.releases, strict=True):
        values = 1e4 * np.linalg.eigvalsh(release.value)[::-1]
        print(f"  {name}: eigenvalues {np.round(values, 1)} · 1e−4 mm²/s")
    tell_usefulness(difference.first, spread=0.5)
    print(f"Figure. {caption_difference(difference)}")
    save_figure(
        Path(folder) / "difference.png",
        (6.5, 4.2),
        lambda figure: plots.plot_difference(difference, ax=figure.add_subplot()),
    )


if __name__ == "__main__":
    main()
