"""Exact draws of the Riemannian Gaussian on SPD(k), seen in the tangent space: density ∝ e^{−|X|²/2v}·J(X).

Two rejections, each exact at every v; the cheaper one is taken (`cost` knows from k and v alone).

*Tangents.* log J ≤ level + slope·R², R the norm of the traceless part (`_spd_envelopes`). Propose the traceless part
from N(0, v'), 1/v' = 1/v − 2·slope, the trace from N(0, v), accept with J·e^{−level − slope·R²}. Accepted with
probability f(v)·e^{−level}·(v/v')^{dim/2}, f = `log_mean_jacobian`: nearly 1 for small v.

*Merging.* The sorted eigenvalues have density ∝ e^{−|r|²/2v}·∏_{i<j} 2sinh((r_j−r_i)/2) on r_1 < … < r_k, and
∏ 2sinh((r_j−r_i)/2) = e^{Σa_i r_i}·∏(1 − e^{−(r_j−r_i)}), a_i = i − (k+1)/2. Let the first m and the other k−m be two
groups. Within a group the same formula holds with the group's own a_i, up to a constant added to them, which moves
the group by v times it: by −v(k−m)/2 and by v·m/2. So the density is the product of the laws of SPD(m) and SPD(k−m), so
moved, times ∏_{i≤m<j}(1 − e^{−(r_j−r_i)}) ≤ 1 on r_m < r_{m+1}: draw the two groups, accept with this product. Accepted
with probability P_k(v)/(P_m(v)·P_{k−m}(v)) (P = `log_no_meeting`): nearly 1 for large v. The eigenvectors are uniform.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from dpmanifolds._arrays import log_sinhc
from dpmanifolds.distributions._spd_envelopes import tangents
from dpmanifolds.distributions._spd_partition import available_below, is_available, log_mean_jacobian, log_no_meeting
from dpmanifolds.errors import ConvergenceError
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle

__all__ = ["LARGEST_COST", "cost", "draw_coordinates"]

LARGEST_COST = 2e4
"""Proposals per draw up to which drawing is practical."""

_MOST_TRIES = 64 * LARGEST_COST
_BLOCK = 1 << 21
_HALVINGS = 12

Proposal: TypeAlias = Callable[[int, np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def cost(k: int, v: np.ndarray) -> np.ndarray:
    """The expected number of proposals for one draw at variance v; infinite where it cannot be predicted."""
    if k == 1:
        return np.ones(v.shape)
    result = np.full(v.shape, math.inf)
    merging = v >= _merge_from(k)
    direct, merged = is_available(k, v) & ~merging, is_available(k, v) & merging
    with np.errstate(over="ignore"):
        result[direct] = _tries_under_tangents(k, v[direct])
        result[merged] = _cost_of_merging(k, v[merged])
    return result


def _tries_under_tangents(k: int, v: np.ndarray) -> np.ndarray:
    level, slope = tangents(k).pick(v)
    dim = k * (k + 1) // 2 - 1
    return np.asarray(np.exp(level - dim / 2 * np.log1p(-2 * slope * v) - log_mean_jacobian(k, v)))


def _tries_of_merging(k: int, v: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(log_no_meeting(k // 2, v) + log_no_meeting(k - k // 2, v) - log_no_meeting(k, v)))


def _cost_of_merging(k: int, v: np.ndarray) -> np.ndarray:
    return np.asarray((cost(k // 2, v) + cost(k - k // 2, v)) * _tries_of_merging(k, v))


@lru_cache(maxsize=64)
def _merge_from(k: int) -> float:
    """The variance from which merging is cheaper: it gets cheaper with v, and tangents dearer.

    Where f is not known below v = 1 neither is practical, and they meet there.
    """
    if available_below(k) < math.inf:
        return 1.0
    low, high = math.log(0.1), math.log(float(tangents(k).variances[-1]) / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        v = np.full(1, math.exp(middle))
        with np.errstate(over="ignore"):
            merge = bool(_cost_of_merging(k, v)[0] < _tries_under_tangents(k, v)[0])
        low, high = (low, middle) if merge else (middle, high)
    return math.exp(high)


def draw_coordinates(k: int, v: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One symmetric matrix for each variance, as orthonormal coordinates (n, k(k+1)/2)."""
    dim = k * (k + 1) // 2
    result = np.empty((v.size, dim))
    rows = _BLOCK // (k * k) + 1
    for start in range(0, v.size, rows):
        part = v[start : start + rows]
        merging = part >= _merge_from(k)
        block = result[start : start + rows]
        block[~merging] = _draw_under_tangents(k, part[~merging], rng)[:, :dim]
        spectra = _draw_spectra(k, part[merging], rng)
        frames = np.linalg.qr(rng.standard_normal((spectra.shape[0], k, k)))[0]
        block[merging] = upper_triangle((frames * spectra[:, None, :]) @ np.swapaxes(frames, -1, -2))
    return result


def _draw_spectra(k: int, v: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Eigenvalues (n, k), in ascending order."""
    if k == 1:
        return np.asarray(np.sqrt(v)[:, None] * rng.standard_normal((v.size, 1)))
    result = np.empty((v.size, k))
    merging = v >= _merge_from(k)
    result[~merging] = _draw_under_tangents(k, v[~merging], rng)[:, -k:]
    result[merging] = _first_accepted(_joined, _tries_of_merging, k, v[merging], rng, width=k)
    return result


def _draw_under_tangents(k: int, v: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Coordinates and eigenvalues side by side."""
    return _first_accepted(_under_tangents, _tries_under_tangents, k, v, rng, width=k * (k + 1) // 2 + k)


def _under_tangents(k: int, v: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Proposals, as coordinates and eigenvalues side by side, and which are accepted."""
    level, slope = tangents(k).pick(v)
    coordinates = rng.standard_normal((v.size, k * (k + 1) // 2))
    mean = np.mean(coordinates[:, :k], axis=1, keepdims=True)
    coordinates[:, :k] -= mean
    coordinates *= np.sqrt(v / (1 - 2 * slope * v))[:, None]
    spectra = np.linalg.eigvalsh(from_upper_triangle(coordinates, k))
    rows, columns = np.triu_indices(k, 1)
    log_jacobian = np.sum(log_sinhc((spectra[:, columns] - spectra[:, rows]) / 2), axis=1)
    excess = level + slope * np.sum(coordinates * coordinates, axis=1) - log_jacobian
    trace_part = np.sqrt(v)[:, None] * mean
    coordinates[:, :k] += trace_part
    both = np.concatenate([coordinates, spectra + trace_part], axis=1)
    return both, rng.standard_exponential(v.size) >= excess


def _joined(k: int, v: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two groups of eigenvalues side by side, and which pairs of groups are accepted."""
    m = k // 2
    lower = _draw_spectra(m, v, rng) - (v * (k - m) / 2)[:, None]
    upper = _draw_spectra(k - m, v, rng) + (v * m / 2)[:, None]
    gaps = np.maximum(upper[:, None, :] - lower[:, :, None], 0.0)
    with np.errstate(divide="ignore"):
        excess = -np.sum(np.log(-np.expm1(-gaps)), axis=(1, 2))
    return np.concatenate([lower, upper], axis=1), rng.standard_exponential(v.size) >= excess


def _first_accepted(
    propose: Proposal,
    expected_tries: Callable[[int, np.ndarray], np.ndarray],
    k: int,
    v: np.ndarray,
    rng: np.random.Generator,
    width: int,
) -> np.ndarray:
    """For each variance the first proposal that is accepted; several are made at once where few are expected to be."""
    result = np.empty((v.size, width))
    if not v.size:
        return result
    waiting, tries = np.arange(v.size), 0
    with np.errstate(over="ignore"):
        most = float(np.max(expected_tries(k, np.array([np.min(v), np.max(v)]))))
    copies_wanted = math.ceil(min(most, LARGEST_COST))
    while waiting.size:
        if tries > _MOST_TRIES:
            raise ConvergenceError(
                f"a draw on SPD({k}) was not accepted within {_MOST_TRIES:g} proposals, which has a probability below "
                "1e-12 where drawing is offered. Try again, or check the generator of random numbers."
            )
        copies = max(1, min(copies_wanted, _BLOCK // (k * k * waiting.size)))
        rows, accepted = propose(k, np.repeat(v[waiting], copies), rng)
        accepted = accepted.reshape((waiting.size, copies))
        found = np.any(accepted, axis=1)
        result[waiting[found]] = rows[np.flatnonzero(found) * copies + np.argmax(accepted[found], axis=1)]
        waiting, tries = waiting[~found], tries + copies
    return result
