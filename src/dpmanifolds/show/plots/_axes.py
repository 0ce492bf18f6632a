"""Axes to draw on, and the few colours that all pictures share."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError, NotAvailableError

VALUE = "#0b6e99"
"""What was released."""
NOISE = "#e07a1f"
"""How far it may be off."""
DOMAIN = "#8a8f98"
"""What was public before: the centre and the edge of the domain."""
AXIS_COLORS = ("#c0392b", "#2e8b57", "#2c6fbb")
"""x, y and z, as people who look at tensors know them."""


def need_matplotlib(module: str = "matplotlib") -> Any:
    """A module of matplotlib, or an error that names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise NotAvailableError('plotting needs matplotlib: pip install "dpmanifolds[plot]".') from None


def axes(ax: Any, size: tuple[float, float] = (5.0, 4.0)) -> Any:
    """`ax`, or the axes of a new figure of this size in inches."""
    if ax is None:
        _, ax = need_matplotlib("matplotlib.pyplot").subplots(figsize=size, layout="compressed")
    if not hasattr(ax, "plot"):
        raise ArgumentError(f"ax must be matplotlib axes, or None for new ones; got {type(ax).__name__}.")
    return ax


def bare(ax: Any) -> None:
    """A picture, not a diagram: one unit is as long in both directions, and there is no frame."""
    ax.set_aspect("equal")
    ax.set_axis_off()


def directions(dim: int, count: int) -> np.ndarray:
    """Unit vectors (count, dim) that cover a sphere evenly: a circle in the plane, the same random ones above."""
    if dim == 2:
        angles = np.linspace(0.0, 2 * np.pi, count)
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    draws = np.random.default_rng(0).standard_normal((count, dim))
    unit: np.ndarray = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    return unit
