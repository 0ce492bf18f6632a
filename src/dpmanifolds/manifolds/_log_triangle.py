"""Coordinates of logarithms of positive definite records, by whatever way their size and place ask for."""

from __future__ import annotations

import math
from functools import lru_cache, partial, reduce
from itertools import combinations

import numpy as np

from dpmanifolds._arrays import Array, call_compiled, eye, is_numpy, namespace, on_accelerator, stack_last, transpose
from dpmanifolds.manifolds._derivatives import call_smoothly
from dpmanifolds.manifolds._device_logs import device_logs
from dpmanifolds.manifolds._logarithms import matrix_logs
from dpmanifolds.manifolds._near_logs import near_logs
from dpmanifolds.manifolds._near_small import entry_rows, log_hard, near_triples
from dpmanifolds.manifolds._symmetric import LARGEST_SMALL, log_entries, matrix_form, summed, upper_triangle

Entries = dict[tuple[int, int], Array]
# what `belongs` allows in double precision
_SKEW = 1e-6
_LEAST = 1e-3


def log_triangle(points: Array, k: int, whitener: Array | None = None) -> Array:
    """Coordinates (..., dim) of log(MxMᵀ) for records x (..., k, k) and one M; NaN where x is not positive.

    Row by row: closed forms for k ≤ 3, products or LAPACK on the host, products on an accelerator; elsewhere eigh of
    the whole block.

    >>> import numpy as np
    >>> log_triangle(np.stack([np.eye(2), -np.eye(2)]), 2).tolist()
    [[0.0, 0.0, 0.0], [nan, nan, nan]]
    """
    arrays = (points,) if whitener is None else (points, whitener)
    return call_smoothly(partial(_triangle, k), _smooth_triangle, (2,) * len(arrays), *arrays)


def _smooth_triangle(points: Array, whitener: Array | None = None) -> Array:
    if whitener is not None:
        points = whitener @ points @ transpose(whitener)
    return upper_triangle(matrix_form("log", points))


def _triangle(k: int, points: Array, whitener: Array | None = None) -> Array:
    with np.errstate(all="ignore"):
        if k <= LARGEST_SMALL:
            return _small(points, k, whitener)
        if on_accelerator(points) and points.dtype == namespace(points).float64:
            logs = device_logs(namespace(points).reshape(points, (-1, k, k)), whitener)
            return call_compiled(upper_triangle, namespace(points).reshape(logs, points.shape))
        if whitener is not None:
            points = whitener @ points @ transpose(whitener)
        if is_numpy(points) and points.dtype == np.float64:
            return upper_triangle(matrix_logs(points.reshape(-1, k, k))[0].reshape(points.shape))
        return upper_triangle(_by_eigen_elsewhere(points))


def _small(points: Array, k: int, whitener: Array | None) -> Array:
    """One array per entry, so that all records are worked on side by side."""
    if is_numpy(points):
        if points.ndim == 2:
            return _small(points[None], k, whitener)[0]
        columns = np.ascontiguousarray(np.moveaxis(points.reshape(*points.shape[:-2], k * k), -1, 0))
        x: Entries = {(i, j): columns[k * i + j] for i in range(k) for j in range(i, k)}
    else:
        x = {(i, j): points[..., i, j] for i in range(k) for j in range(i, k)}
    logs = log_entries(x if whitener is None else _whitened(x, whitener, k), k)
    root = math.sqrt(2)
    entries = [logs[(i, i)] for i in range(k)] + [root * logs[(i, j)] for i in range(k) for j in range(i + 1, k)]
    return np.moveaxis(np.stack(entries), 0, -1) if is_numpy(points) else stack_last(*entries)


def see_small(
    points: np.ndarray, whitener: np.ndarray | None = None, center: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`log_triangle` of NumPy's records (n, k, k), k ≤ 3, less public numbers: rows, their lengths, and who is sound.

    Errors are below 10⁻⁹ up to λ_max = 10⁶·λ_min. Sound is what has a length and is symmetric: to the last bit or, for
    those that are not, up to what `belongs` allows of the largest number on the diagonal.
    """
    k = points.shape[-1]
    points = np.asfortranarray(points)
    x = {(i, j): points[:, i, j] for i in range(k) for j in range(k)}
    upper = {(i, j): x[i, j] for i in range(k) for j in range(i, k)}
    rows = _near_rows(upper if whitener is None else _whitened(upper, whitener, k), k)
    if center is not None:
        rows -= center[:, None]
    lengths, held = rows[0] * rows[0], np.empty(len(points))
    for row in rows[1:]:
        lengths += np.multiply(row, row, out=held)
    np.sqrt(lengths, out=lengths)
    sound = lengths < math.inf
    pairs = list(combinations(range(k), 2))
    for i, j in pairs:
        sound &= x[i, j] == x[j, i]
    odd = np.flatnonzero(~sound)
    if odd.size:
        slack = _SKEW * reduce(np.maximum, (x[i, i][odd] for i in range(k)))
        skew = reduce(np.maximum, (np.abs(x[i, j][odd] - x[j, i][odd]) for i, j in pairs), np.zeros(odd.size))
        sound[odd] = (skew <= slack) & (lengths[odd] < math.inf)
    return rows.T, lengths, sound


def _near_rows(x: Entries, k: int) -> np.ndarray:
    """Coordinates (dim, n) of logarithms, hard records apart."""
    if k < LARGEST_SMALL:
        return entry_rows(log_entries(x, k, _LEAST), k)
    rows, near = near_triples(x)
    hard = np.flatnonzero(~near)
    if hard.size:
        rows[:, hard] = log_hard({at: entry[hard] for at, entry in x.items()})
    return rows


def see_large(
    points: np.ndarray, whitener: np.ndarray | None = None, center: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The same for k > 3, with errors up to 10⁻⁸ of the logarithm; whoever is sound is not told."""
    if whitener is not None:
        points = whitener @ points @ whitener.T
    rows = upper_triangle(near_logs(points))
    if center is not None:
        rows -= center
    return rows, np.sqrt(np.einsum("ij,ij->i", rows, rows))


@lru_cache(maxsize=64)
def whitener_of(numbers: bytes, k: int) -> np.ndarray | None:
    """The inverse of the Cholesky factor of a public point; None for the identity."""
    whitener = np.linalg.inv(np.linalg.cholesky(np.frombuffer(numbers).reshape(k, k)))
    return None if np.array_equal(whitener, np.eye(k)) else whitener


def whitened_entries(whitener: Array, points: Array) -> Entries:
    """Entries of MxMᵀ, for one M by a single matrix product with its symmetrised Kronecker square."""
    xp = namespace(whitener, points)
    k = points.shape[-1]
    positions = [(i, j) for i in range(k) for j in range(i, k)]
    if whitener.ndim > 2:
        whitened = whitener @ points @ transpose(whitener)
        return {(i, j): whitened[..., i, j] for i, j in positions}
    kernel = xp.stack([xp.reshape(whitener[i, :][:, None] * whitener[j, :][None, :], (k * k,)) for i, j in positions])
    flat = kernel @ transpose(xp.reshape(points, (-1, k * k)))
    return {at: flat[row, :] for row, at in enumerate(positions)}


def _whitened(x: Entries, matrix: Array, k: int) -> Entries:
    """The same for a lower triangular M, which is what Cholesky factors have, each record worked on by itself."""
    full = {(i, j): x[min(i, j), max(i, j)] for i in range(k) for j in range(k)}
    half = {(i, j): summed(matrix[..., i, a] * full[(a, j)] for a in range(i + 1)) for i in range(k) for j in range(k)}
    return {
        (i, j): summed(half[(i, a)] * matrix[..., j, a] for a in range(j + 1)) for i in range(k) for j in range(i, k)
    }


def _by_eigen_elsewhere(points: Array) -> Array:
    """eigh of every record, of those that are not finite of the identity instead."""
    xp = namespace(points)
    finite = xp.all(xp.isfinite(points), axis=(-2, -1))
    values, vectors = xp.linalg.eigh(xp.where(finite[..., None, None], points, eye(points.shape[-1], points)))
    usable = finite[..., None] & (values > 0)
    logs = xp.log(xp.where(usable, values, xp.full_like(values, math.nan)))
    return (vectors * logs[..., None, :]) @ transpose(vectors)
