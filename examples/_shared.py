"""What the examples share: the usefulness of a release in one line, and figures in the style of the pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmanifolds import Release
from dpmanifolds.show import plots
from dpmanifolds.show.plots.release import caption_of

__all__ = ["draw_release", "save_figure", "tell_usefulness"]

STYLE = Path(__file__).resolve().parents[1] / "docs" / "figures.mplstyle"


def tell_usefulness(release: Any, spread: float) -> None:
    """The error that privacy adds beside the one of having n records; `spread` is public knowledge, never looked up."""
    privacy, sampling = release.expected_error.mean, spread / release.n**0.5
    print(f"n = {release.n}: error by privacy {privacy:.4f}, by having n records {sampling:.4f} (spread {spread:g})")
    verdict = "costs less than halving n" if privacy < sampling else "is the larger of the two: more records help most"
    print(f"Privacy {verdict}.")


def save_figure(path: Path, size: tuple[float, float], paint: Callable[[Any], object]) -> bool:
    """What `paint` draws into a new figure, as a PNG; False where matplotlib is not installed."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(fname=STYLE):
        figure = Figure(figsize=size, layout="compressed")
        paint(figure)
        figure.savefig(path)
    return True


def draw_release(release: Release, path: Path) -> None:
    """The release with the uncertainty that noise leaves, and what the picture shows."""
    print(f"Figure. {caption_of(release)}")
    save_figure(path, (5.0, 4.2), lambda figure: plots.plot_release(release, ax=figure.add_subplot()))
