"""The pictures of the pages, each drawn by the code that users call, in the style of `figures.mplstyle`.

python docs/pictures.py     draws docs/figures/readme.png and when-useful.png (from its table)
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpmanifolds as dpm
from dpmanifolds.show import plots

__all__ = ["PICTURES", "STYLE"]

DOCS = Path(__file__).resolve().parent
STYLE = DOCS / "figures.mplstyle"


def _mechanisms(ax: Any) -> None:
    ball = dpm.Ball(dpm.SPD(3, "log-euclidean"), np.eye(3), radius=2.0)
    plots.plot_error_vs_epsilon(ball, 1000, delta=1e-6, ax=ax)


def _tradeoff(ax: Any) -> None:
    plots.plot_tradeoff(dpm.Guarantee.pure(1.0), label="ε = 1", ax=ax)
    plots.plot_tradeoff(dpm.Guarantee.gaussian(1.0), label="μ = 1", ax=ax)
    ax.legend()


def _sphere(ax: Any) -> None:
    ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)
    records = ball.clip(dpm.Sphere(2).random_point(300, rng=0))
    plots.plot_release(dpm.private_mean(records, ball, dpm.PureDP(0.1), rng=0), ax=ax)


def _shape(ax: Any) -> None:
    outline = np.array([[0.0, 0.0], [2.0, 0.2], [3.1, 1.0], [2.1, 1.9], [0.3, 1.6]])
    drawing = outline + np.array([[0.0, 0.1], [0.2, 0.0], [-0.3, 0.0], [0.1, 0.1], [0.0, -0.1]])
    space = dpm.PlanarShapes(5)
    specimens = outline + 0.08 * np.random.default_rng(0).standard_normal((300, 5, 2))
    ball = dpm.Ball(space, space.from_landmarks(drawing), radius=0.25)
    plots.plot_release(dpm.private_mean(space.from_landmarks(specimens), ball, dpm.PureDP(0.3), rng=0), ax=ax)


def _ellipse(ax: Any) -> None:
    space = dpm.SPD(2)
    typical = np.broadcast_to([[1.8, 0.5], [0.5, 0.7]], (400, 2, 2))
    records = space.exp(typical, 0.3 * space.random_tangent(typical, rng=0))
    ball = dpm.Ball(space, np.eye(2), radius=2.0)
    plots.plot_release(dpm.private_mean(records, ball, dpm.PureDP(0.5), rng=1), ax=ax)
    ax.set_axis_off()


def _readme(path: Path) -> None:
    """A covariance matrix, a direction and a shape, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.0), layout="compressed")
    panels = (("covariance matrices", _ellipse), ("directions", _sphere), ("landmark shapes", _shape))
    for ax, (name, draw) in zip(figure.subplots(1, 3), panels, strict=True):
        draw(ax)
        ax.set_title(name)
    figure.savefig(path)


def _when_useful(path: Path) -> None:
    """Error over that of the public centre against n: a panel for each ε, a line for each number of channels."""
    from matplotlib.figure import Figure

    with (DOCS / "tables" / "when_useful.csv").open(encoding="utf-8", newline="") as file:
        cells = [row for row in csv.DictReader(file) if float(row["off"]) == 0.25]
    panels = [name for name in cells[0] if name.startswith("epsilon")]
    channels = sorted({int(row["channels"]) for row in cells})
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    for ax, name in zip(axes, panels, strict=True):
        for index, k in enumerate(channels):
            rows = [row for row in cells if int(row["channels"]) == k]
            n = [int(row["n"]) for row in rows]
            ax.plot(n, [float(row[name]) for row in rows], marker="osv^D"[index], label=f"{k} channels")
        ax.plot(
            n, [float(row["no privacy"]) for row in rows], "--", color="black", label=f"without privacy, {k} channels"
        )
        ax.axhline(1.0, color="0.5", linewidth=2.5, label="the public centre")
        ax.set(title=name.replace("epsilon ", "ε = "), xlabel="records n", xscale="log", yscale="log")
        ax.set_xticks(n, [f"{each:,}" for each in n], rotation=30)
        ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05", "0.1", "0.2", "0.5", "1", "2"])
        ax.minorticks_off()
    axes[0].set_ylabel("error over that of the public centre")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path)


PICTURES: dict[str, tuple[Callable[[Any], None], tuple[float, float], str]] = {
    "mechanisms": (
        _mechanisms,
        (6.4, 4.2),
        "Expected error of the private mean of 1000 log-Euclidean 3×3 matrices in a ball of radius 2, against ε, with "
        "δ = 10⁻⁶.",
    ),
    "tradeoff": (
        _tradeoff,
        (4.8, 4.4),
        "What an attacker can reach: the shaded corner is out of reach, whatever they know.",
    ),
    "sphere": (
        _sphere,
        (4.4, 4.4),
        "A private mean direction of 300 records, ε = 0.1: the public cap in grey, and in orange where the answer "
        "without privacy lies with 90 % confidence.",
    ),
    "shape": (
        _shape,
        (5.2, 4.0),
        "The private mean of 300 outlines of five landmarks, ε = 0.3: in orange the uncertainty that the noise leaves, "
        "dashed the public drawing around which records were clipped.",
    ),
}


if __name__ == "__main__":
    from matplotlib import rc_context

    with rc_context(fname=STYLE):
        for _name, _draw in (("readme", _readme), ("when-useful", _when_useful)):
            _draw(DOCS / "figures" / f"{_name}.png")
