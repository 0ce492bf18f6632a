"""How all figures look: one colour for each kind of mechanism, dashes for what keeps no promise.

Sizes of letters, grid and frame are those of `docs/figures.mplstyle`, which all figures of the pages share.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from papers._study import Result

__all__ = ["STYLE", "colour", "curves", "dashed", "legend_below", "power"]

STYLE = Path(__file__).resolve().parents[1] / "docs" / "figures.mplstyle"

_KINDS = (
    ("neighbours", "#7F9FBF"),
    ("worst", "#000000"),
    (r"\bours\b", "#0072B2"),
    ("projected descent", "#56B4E9"),
    ("published noise", "#009E73"),
    ("honest noise, 20", "#CC79A7"),
    ("honest noise", "#D55E00"),
    ("no information", "#BBBBBB"),
    ("exact", "#000000"),
    ("published bound", "#D55E00"),
    ("Metropolis", "#D55E00"),
    ("K-norm", "#CC79A7"),
    ("projected", "#56B4E9"),
    ("Euclid", "#888888"),
    ("line", "#888888"),
    ("Tangent", "#009E73"),
    ("Gauss", "#009E73"),
    ("Laplace", "#E69F00"),
)
_OTHERS = ("#009E73", "#D55E00", "#56B4E9", "#7B4FA3", "#CC79A7", "#888888")


def colour(series: str, index: int = 0) -> str:
    """The colour of the first kind that the name of the series mentions."""
    return next(
        (code for word, code in _KINDS if re.search(word, series, re.IGNORECASE)), _OTHERS[index % len(_OTHERS)]
    )


def power(value: float) -> str:
    """1e−6 for 1e-06."""
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


def dashed(series: str) -> bool:
    """Whether the series keeps no promise."""
    return "not private" in series


def curves(
    axis: Any,
    result: Result,
    panel: str,
    *,
    x: str,
    y: str,
    log: str = "xy",
    legend: bool = True,
    times_x: bool = False,
) -> None:
    """Every series of a panel as a line with its band, and a legend below.

    `times_x` multiplies values by x: errors that fall like 1/n become level, and small differences visible.
    """
    used: dict[str, int] = {}
    for index, (name, found) in enumerate(result.series(panel).items()):
        code = colour(name, index)
        points = found * np.stack([np.ones(len(found)), *[found[:, 0]] * 3], axis=1) if times_x else found
        repeat = used.get(code, 0)
        used[code] = repeat + 1
        style = "--" if dashed(name) else ("-", "-.", ":")[min(repeat, 2)]
        look = (
            {"linestyle": "", "marker": "x", "markersize": 6, "zorder": 5} if "worst" in name else {"linestyle": style}
        )
        axis.plot(points[:, 0], points[:, 1], **{"marker": "osv^D"[repeat % 5], **look}, color=code, label=name)
        if np.isfinite(points[:, 2]).any():
            axis.fill_between(points[:, 0], points[:, 2], points[:, 3], color=code, alpha=0.18, linewidth=0)
    axis.set(title=panel, xlabel=x, ylabel=y)
    for letter, scaled, set_scale in (("x", axis.xaxis, axis.set_xscale), ("y", axis.yaxis, axis.set_yscale)):
        if letter in log:
            set_scale("log")
            if letter == "y":
                values = np.concatenate([points[:, 1] for points in result.series(panel).values()])
                axis.set_ylim(0.6 * values[values > 0].min(), 1.7 * values.max())
            _plain_ticks(scaled)
    if legend:
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17))


def legend_below(axes: Any, columns: int) -> None:
    """One legend below all panels, for the names of each."""
    shown = {name: one for axis in axes for one, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    axes[0].figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns)


def _plain_ticks(axis: Any) -> None:
    """1, 2, 5, 10, … in place of powers, and no labels between them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    wide = high > 2e3 * max(low, 1e-300)
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
