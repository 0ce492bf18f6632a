"""Symmetric positive definite matrices as ellipses, ellipsoids, fields of them, or tables of colour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.show.plots._axes import AXIS_COLORS, DOMAIN, NOISE, VALUE, axes, bare, need_matplotlib

__all__ = ["plot_matrix", "plot_spd"]

_MOST_GLYPHS = 400
_NUMBERS_UP_TO = 6


def plot_spd(matrices: Any, *, spread: Any = None, reference: Any = None, ax: Any = None) -> Any:
    """One k×k matrix, or a field of 2×2 or 3×3 ones (m, k, k), each drawn as {x : xᵀM⁻¹x = 1}.

    k = 2: the ellipse of the matrix. k = 3: the ellipsoid, seen from above the x-y plane at an angle. Larger: a table
    of colours. `spread` (m, k, k) are drawn faintly behind a single matrix, such as the edge of a confidence region;
    `reference` is drawn dashed, such as the public centre. Fields of 3×3 matrices are coloured by the direction of
    their longest axis (x red, y green, z blue), as tensor maps are, and grey where they are round.

    >>> import numpy as np
    >>> from dpmanifolds.show.plots import plot_spd
    >>> ax = plot_spd(np.array([[2.0, 0.5], [0.5, 1.0]]))
    >>> len(ax.lines) > 0
    True
    """
    stack = np.asarray(matrices, dtype=float)
    if stack.ndim not in (2, 3) or stack.shape[-1] != stack.shape[-2] or stack.shape[-1] < 1:
        raise ArgumentError(f"matrices must have the shape (k, k), or (m, k, k) for a field; got {stack.shape}.")
    k = stack.shape[-1]
    if stack.ndim == 3 and stack.shape[0] == 1:
        stack = stack[0]
    if stack.ndim == 3:
        if k not in (2, 3):
            raise ArgumentError(f"a field is drawn for 2×2 and 3×3 matrices; got {k}×{k}. Draw one matrix at a time.")
        return _field(stack, axes(ax, (5.0, 5.0)))
    if k not in (2, 3):
        return plot_matrix(stack, ax=ax)
    ax = axes(ax, (4.6, 4.6))
    faint = np.empty((0, k, k)) if spread is None else np.asarray(spread, dtype=float).reshape(-1, k, k)
    for outline in _outlines(faint):
        ax.plot(*outline, color=NOISE, linewidth=0.7, alpha=min(0.5, 12 / (len(faint) + 1)), zorder=1)
    if reference is not None:
        ax.plot(*_outlines(np.asarray(reference, dtype=float)[None])[0], color=DOMAIN, linestyle="--", linewidth=1)
    ax.plot(*_outlines(stack[None])[0], color=VALUE, linewidth=2.2, zorder=3)
    _principal_axes(stack, ax)
    if k == 3:
        _wires(stack, ax)
        _compass(ax)
        bare(ax)
    else:
        ax.set_aspect("equal")
        ax.set(xlabel="first coordinate", ylabel="second coordinate")
        ax.grid(alpha=0.25)
    return ax


def plot_matrix(matrix: Any, *, ax: Any = None) -> Any:
    """A table of colours, white at 0; the numbers are written in where they fit."""
    table = np.asarray(matrix, dtype=float)
    ax = axes(ax, (5.0, 4.2))
    top = float(np.max(np.abs(table))) or 1.0
    image = ax.imshow(table, cmap="RdBu_r", vmin=-top, vmax=top)
    ax.figure.colorbar(image, ax=ax, shrink=0.85)
    rows, columns = table.shape
    ax.set_xticks(range(columns) if columns <= 12 else range(0, columns, math.ceil(columns / 10)))
    ax.set_yticks(range(rows) if rows <= 12 else range(0, rows, math.ceil(rows / 10)))
    ax.tick_params(length=0)
    if max(rows, columns) <= _NUMBERS_UP_TO:
        # two digits of the largest number
        decimals = max(0, 2 - round(math.log10(top)))
        for (row, column), number in np.ndenumerate(table):
            shade = "white" if abs(number) > 0.6 * top else "black"
            ax.text(
                column,
                row,
                f"{round(number, decimals) + 0.0:.{decimals}f}",
                ha="center",
                va="center",
                color=shade,
                fontsize="small",
            )
    return ax


def _view() -> np.ndarray:
    """The two rows of the projection: from 30° above, turned by 30°."""
    turn, height = math.radians(-30), math.radians(30)
    right = [math.cos(turn), math.sin(turn), 0.0]
    up = [-math.sin(height) * math.sin(turn), math.sin(height) * math.cos(turn), math.cos(height)]
    return np.array([right, up])


def _projected(vectors: np.ndarray) -> np.ndarray:
    return vectors @ _view().T if vectors.shape[-1] == 3 else vectors


def _outlines(matrices: np.ndarray) -> np.ndarray:
    """The outline (m, 2, points) of each: an ellipsoid's shadow is the ellipse of PMPᵀ."""
    flat = matrices if matrices.shape[-1] == 2 else _view() @ matrices @ _view().T
    angles = np.linspace(0.0, 2 * np.pi, 73)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    outlines: np.ndarray = _roots(flat) @ circle
    return outlines


def _roots(matrices: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrices)
    scaled: np.ndarray = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return scaled


def _principal_axes(matrix: np.ndarray, ax: Any) -> None:
    for end in _projected(_roots(matrix).T):
        ax.plot([-end[0], end[0]], [-end[1], end[1]], color=VALUE, linewidth=0.9, alpha=0.6, zorder=2)


def _wires(matrix: np.ndarray, ax: Any) -> None:
    """The three great ellipses through pairs of principal axes, and circles between them."""
    roots = _roots(matrix)
    angles = np.linspace(0.0, 2 * np.pi, 61)
    ring = np.stack([np.cos(angles), np.sin(angles)])
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        for height in (-0.75, -0.4, 0.0, 0.4, 0.75):
            sphere = np.zeros((3, angles.size))
            sphere[others] = math.sqrt(1 - height * height) * ring
            sphere[axis] = height
            x, y = _projected((roots @ sphere).T).T
            ax.plot(x, y, color=VALUE, linewidth=0.6, alpha=0.55 if height == 0 else 0.22, zorder=2)


def _compass(ax: Any) -> None:
    """Where x, y and z point, in the lower left corner."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    size = 0.11 * max(right - left, top - bottom)
    start = np.array([left + 0.3 * size, bottom + 0.3 * size])
    for name, color, step in zip("xyz", AXIS_COLORS, _projected(np.eye(3)), strict=True):
        end = start + size * step
        ax.plot([start[0], end[0]], [start[1], end[1]], color=color, linewidth=1.4)
        ax.text(*(start + 1.25 * size * step), name, color=color, ha="center", va="center", fontsize="small")


def _anisotropy(matrices: np.ndarray) -> np.ndarray:
    """Fractional anisotropy, from 0 (a ball) to 1 (a needle)."""
    values = np.linalg.eigvalsh(matrices)
    off = values - values.mean(axis=-1, keepdims=True)
    share: np.ndarray = np.minimum(np.sqrt(1.5 * np.sum(off**2, axis=-1) / np.sum(values**2, axis=-1)), 1.0)
    return share


def _field(stack: np.ndarray, ax: Any) -> Any:
    """Glyphs in rows, an even selection where there are very many."""
    collections = need_matplotlib("matplotlib.collections")
    shown = stack
    if len(stack) > _MOST_GLYPHS:
        shown = stack[np.linspace(0, len(stack) - 1, _MOST_GLYPHS).round().astype(int)]
        ax.set_title(f"{_MOST_GLYPHS} of {len(stack)} matrices", fontsize="medium")
    columns = math.ceil(math.sqrt(len(shown)))
    places = np.array([divmod(i, columns) for i in range(len(shown))], dtype=float)[:, ::-1] * [1.0, -1.0]
    sizes = np.sqrt(np.linalg.eigvalsh(shown)[:, -1])
    outlines = _outlines(shown) * (0.47 / sizes.max()) + places[:, :, None]
    colors: Any = VALUE
    if stack.shape[-1] == 3:
        longest = np.linalg.eigh(shown)[1][:, :, -1]
        # round tensors point nowhere: the less anisotropic, the greyer
        share = _anisotropy(shown)[:, None]
        colors = 0.85 * share * np.clip(np.abs(longest), 0, 1) + 0.6 * (1 - share)
    polygons = collections.PolyCollection(
        np.moveaxis(outlines, 1, 2), facecolors=colors, edgecolors=colors, alpha=0.75, linewidths=0.6
    )
    ax.add_collection(polygons)
    ax.set_xlim(-0.7, columns - 0.3)
    ax.set_ylim(float(places[:, 1].min()) - 0.7, 0.7)
    bare(ax)
    return ax
