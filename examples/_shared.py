"""What the examples share: the usefulness of a release in one line, and a figure in the style of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpmanifolds import Release
from dpmanifolds.show import plots

__all__ = ["draw_release", "tell_usefulness"]


def tell_usefulness(release: Any, spread: float) -> None:
    """The error that privacy adds beside the one of having n records; `spread` is public knowledge, never looked up."""
    privacy, sampling = release.expected_error.mean, spread / release.n**0.5
    print(f"n = {release.n}: error by privacy {privacy:.4f}, by having n records {sampling:.4f} (spread {spread:g})")
    verdict = "costs less than halving n" if privacy < sampling else "is the larger of the two: more records help most"
    print(f"Privacy {verdict}.")


def draw_release(release: Release, path: Path) -> None:
    """The release with the uncertainty that noise leaves, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(5.0, 4.2), layout="compressed", dpi=110)
    plots.plot_release(release, ax=figure.add_subplot())
    figure.savefig(path)
