"""The figure of a report as SVG text that takes on the colours of the page."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from dpmanifolds.errors import NotAvailableError
from dpmanifolds.releases import Release
from dpmanifolds.show.plots._axes import NOISE, VALUE

__all__ = ["figure_svg"]

# stands for "the colour of the text around" while matplotlib draws
_INK = "#010203"
_PAGE_COLORS = {_INK: "currentColor", VALUE: "var(--value)", NOISE: "var(--noise)"}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dpmanifolds",
    "font.family": "sans-serif",
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def figure_svg(release: Release) -> str | None:
    """The picture of a release, or None without matplotlib; nothing in it refers to anything outside of the page."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        return None
    from dpmanifolds.show.plots import plot_release

    out = io.StringIO()
    with mpl.rc_context(_STYLE):
        height = 1.4 if isinstance(release.value, float) else 4.2
        figure = Figure(figsize=(5.2, height), layout="compressed")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_facecolor("none")
        try:
            plot_release(release, ax=axes)
        except (NotAvailableError, np.linalg.LinAlgError):
            return None
        figure.savefig(
            out, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
        )
    return _inline(out.getvalue())


def _inline(svg: str) -> str:
    """Only the drawing: no prologue, no metadata, sized by the page."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'^<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", body)
    body = re.sub(r'^<svg ([^>]*?)height="[^"]*"([^>]*?)width="[^"]*"', r"<svg \1\2", body)
    for drawn, shown in _PAGE_COLORS.items():
        body = body.replace(drawn, shown)
    return body.strip()
