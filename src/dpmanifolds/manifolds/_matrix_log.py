"""Logarithms of positive definite records as coordinates, by whatever way their size and place ask for."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds._arrays import Array, eye, is_numpy, namespace, stack_last, transpose
from dpmanifolds.manifolds._logarithms import matrix_logs
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL, log_entries
from dpmanifolds.manifolds._symmetric import upper_triangle

__all__ = ["log_triangle"]

Entries = dict[tuple[int, int], Array]


def log_triangle(points: Array, k: int, whitener: Array | None = None) -> Array:
    """Coordinates (..., dim) of log(MxMᵀ) for records x (..., k, k) and one M; NaN where x is not positive.

    Row by row: closed forms for k ≤ 3, products or LAPACK on the host, eigh of the whole block elsewhere.

    >>> import numpy as np
    >>> log_triangle(np.stack([np.eye(2), -np.eye(2)]), 2).tolist()
    [[0.0, 0.0, 0.0], [nan, nan, nan]]
    """
    with np.errstate(all="ignore"):
        if k <= LARGEST_SMALL:
            return _small(points, k, whitener)
        if whitener is not None:
            points = whitener @ points @ transpose(whitener)
        if is_numpy(points) and points.dtype == np.float64:
            logs = matrix_logs(points.reshape(-1, k, k))[0].reshape(points.shape)
        else:
            logs = _by_eigen(points)
        return upper_triangle(logs)


def _small(points: Array, k: int, whitener: Array | None) -> Array:
    """One array per entry, so that all records are worked on side by side."""
    if is_numpy(points):
        columns = np.ascontiguousarray(np.moveaxis(points.reshape(*points.shape[:-2], k * k), -1, 0))
        x: Entries = {(i, j): columns[k * i + j] for i in range(k) for j in range(i, k)}
    else:
        x = {(i, j): points[..., i, j] for i in range(k) for j in range(i, k)}
    logs = log_entries(x if whitener is None else _whitened(x, whitener, k), k)
    root = math.sqrt(2)
    entries = [logs[(i, i)] for i in range(k)] + [root * logs[(i, j)] for i in range(k) for j in range(i + 1, k)]
    return np.moveaxis(np.stack(entries), 0, -1) if is_numpy(points) else stack_last(*entries)


def _whitened(x: Entries, matrix: Array, k: int) -> Entries:
    """Entries (i, j), i ≤ j, of MxMᵀ for a lower triangular M, which is what Cholesky factors have."""
    full = {(i, j): x[min(i, j), max(i, j)] for i in range(k) for j in range(k)}
    half = {(i, j): sum(matrix[..., i, a] * full[(a, j)] for a in range(i + 1)) for i in range(k) for j in range(k)}
    return {(i, j): sum(half[(i, a)] * matrix[..., j, a] for a in range(j + 1)) for i in range(k) for j in range(i, k)}


def _by_eigen(points: Array) -> Array:
    """eigh of every record, of those that are not finite of the identity instead."""
    xp = namespace(points)
    finite = xp.all(xp.isfinite(points), axis=(-2, -1))
    values, vectors = xp.linalg.eigh(xp.where(finite[..., None, None], points, eye(points.shape[-1], points)))
    usable = finite[..., None] & (values > 0)
    logs = xp.log(xp.where(usable, values, xp.full_like(values, math.nan)))
    return (vectors * logs[..., None, :]) @ transpose(vectors)
