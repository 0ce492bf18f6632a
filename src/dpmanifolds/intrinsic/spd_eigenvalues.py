"""Exact draws of the Riemannian Gaussian on SPD(k), seen in the tangent space: density ∝ e^{−|X|²/2v}·J(X).

Two rejections, each exact at every v; the cheaper one is taken (`cost` knows from k and v alone).

*Tangents.* log J ≤ level + slope·R², R the norm of the traceless part (see below). Propose the traceless part
from N(0, v'), 1/v' = 1/v − 2·slope, the trace from N(0, v), accept with J·e^{−level − slope·R²}. Accepted with
probability f(v)·e^{−level}·(v/v')^{dim/2}, f = `log_mean_jacobian`: nearly 1 for small v.

*Merging.* The sorted eigenvalues have density ∝ e^{−|r|²/2v}·∏_{i<j} 2sinh((r_j−r_i)/2) on r_1 < … < r_k, and
∏ 2sinh((r_j−r_i)/2) = e^{Σa_i r_i}·∏(1 − e^{−(r_j−r_i)}), a_i = i − (k+1)/2. Let the first m and the other k−m be two
groups. Within a group the same formula holds with the group's own a_i, up to a constant added to them, which moves
the group by v times it: by −v(k−m)/2 and by v·m/2. So the density is the product of the laws of SPD(m) and SPD(k−m), so
moved, times ∏_{i≤m<j}(1 − e^{−(r_j−r_i)}) ≤ 1 on r_m < r_{m+1}: draw the two groups, accept with this product. Accepted
with probability P_k(v)/(P_m(v)·P_{k−m}(v)) (P = `log_no_meeting`): nearly 1 for large v. The eigenvectors are uniform.

*Envelopes*: upper bounds of the Jacobian of SPD(k) that depend on the radius alone. J = ∏_{i<j} sinh(y_ij)/y_ij, y_ij =
(r_i − r_j)/2, N = k(k−1)/2 pairs. J does not see the mean of the eigenvalues, so let Σr_i = 0 and R² = Σr_i², hence
Σ_{i<j} y_ij² = kR²/4. Three bounds (MATH.md section 3):

C:  log J ≤ N·log(sinh u/u), u = R/√(2(k−1)). *Proof.* log(sinh√q/√q) = Σ_n log(1 + q/π²n²) is concave in q; Jensen over
    the N pairs, whose mean q is kR²/4N = u². For k = 2 this is an equality.
E2: log J ≤ k²∫₀^∞ m(ωR/√k)/(ω(e^{2πω}−1)) dω, m(z) = sin²z up to π/2 and 1 beyond. *Proof.* log(1 + y²/π²n²) =
    ∫₀^∞ (1 − cos ty)·2e^{−πnt}/t dt; summed over n, with t = 2ω, log(sinh y/y) = ∫ 2(1 − cos 2ωy)/(ω(e^{2πω}−1)) dω.
    And Σ_{i<j} 2(1 − cos ω(r_i−r_j)) = k² − |Σ_j e^{iωr_j}|². For z = ωR/√k ≤ π/2 the tangent of cos√q at q = z² lies
    below cos√q for every q ≥ 0 (cos√q is convex up to q = 20.1, where the tangent has fallen below −1 already), so
    |Σ e^{iωr_j}| ≥ Σ cos ωr_j ≥ k cos z, and k² − |·|² ≤ k² sin²z; beyond π/2 it is at most k².
E3: log J ≤ √S·R = R/σ_c, S = k(k²−1)/12. *Proof.* sinh y ≤ y e^y for y ≥ 0, Σ_{i<j}|y_ij| = Σ a_i r_(i) for the sorted
    eigenvalues and a_i = i − (k+1)/2, Cauchy–Schwarz, Σa_i² = S.

All three increase in R, so R may be replaced by the norm of the whole matrix. Their minimum E is used in two ways.

*Tangents.* Each bound is concave in s = R²: C as shown, E2 because sin²√q has the decreasing derivative sin(2√q)/2√q up
to π²/4, where it reaches 0, E3 because √s is. So log J ≤ E(s₀) + E'(s₀)(s − s₀) for every s₀: Gaussian noise with a
larger variance lies above Gaussian noise times J.

*Radii.* R^{d−1}·e^E, d = k(k+1)/2, is log-concave: for C it is R^{k−1}·sinh(u)^N up to a constant; for E2,
with x = R/√k and φ(ω) = ω/(e^{2πω}−1), whose slope lies in [−½, 0], one integration by parts gives
E2'' = (k/x)∫₀^{π/2x} sin(2ωx)(−φ'(ω)) dω ≤ k/2x² = k²/2R² ≤ (d−1)/R²; for E3 it is plain. A minimum of concave
functions is concave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from dpmanifolds._arrays import log_sinhc
from dpmanifolds.errors import ConvergenceError
from dpmanifolds.intrinsic.spd_partition import (
    available_below,
    is_available,
    log_mean_jacobian,
    log_no_meeting,
    squared_half_sum,
)
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle

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


_FREQUENCY_NODES, _FREQUENCY_WEIGHTS = np.polynomial.legendre.leggauss(64)
_LAST_FREQUENCY = 7.0
"""∫ from 7 on of dω/(ω(e^{2πω}−1)) is below 1e−20."""

_ROUNDING = 1e-12
_RATIO, _LINES = 1.1, 250


class Envelope(NamedTuple):
    """E(R) = min(C, E2, E3), rounded up, and its derivative."""

    value: np.ndarray
    slope: np.ndarray


def envelope(k: int, radius: np.ndarray) -> Envelope:
    """The smallest of the three bounds of log J at each radius, raised by 1e−12 of itself and 1e−12."""
    bounds = [_by_jensen(k, radius), _by_frequencies(k, radius), _by_ordering(k, radius)]
    values, slopes = np.stack([bound.value for bound in bounds]), np.stack([bound.slope for bound in bounds])
    least = np.argmin(values, axis=0)[None]
    value, slope = np.take_along_axis(values, least, axis=0)[0], np.take_along_axis(slopes, least, axis=0)[0]
    return Envelope(value * (1 + _ROUNDING) + _ROUNDING, slope * (1 + _ROUNDING))


def _by_jensen(k: int, radius: np.ndarray) -> Envelope:
    """C."""
    unit = 1 / math.sqrt(2 * (k - 1))
    u, pairs = radius * unit, k * (k - 1) / 2
    small = u < 0.01
    safe = np.where(small, 1.0, u)
    langevin = np.where(small, u / 3 * (1 - u * u / 15), 1 / np.tanh(safe) - 1 / safe)
    return Envelope(pairs * log_sinhc(u), pairs * unit * langevin)


def _by_frequencies(k: int, radius: np.ndarray) -> Envelope:
    """E2."""
    z = np.maximum(radius / math.sqrt(k), 1e-300)
    bend = np.minimum(math.pi / 2 / z, _LAST_FREQUENCY)
    frequency = bend[..., None] * (_FREQUENCY_NODES + 1) / 2
    decay = np.expm1(2 * math.pi * frequency)
    angle = frequency * z[..., None]
    low = bend / 2 * ((np.sin(angle) ** 2 / (frequency * decay)) @ _FREQUENCY_WEIGHTS)
    slope = bend / 2 * ((np.sin(2 * angle) / decay) @ _FREQUENCY_WEIGHTS)
    # beyond the bend, in log ω; nothing is left where the bend lies at the last frequency
    span = np.log(_LAST_FREQUENCY / bend)
    beyond = bend[..., None] * np.exp(span[..., None] * (_FREQUENCY_NODES + 1) / 2)
    high = span / 2 * ((1 / np.expm1(2 * math.pi * beyond)) @ _FREQUENCY_WEIGHTS)
    return Envelope(k * k * (low + high), k**1.5 * slope)


def _by_ordering(k: int, radius: np.ndarray) -> Envelope:
    """E3."""
    steepest = math.sqrt(squared_half_sum(k))
    return Envelope(steepest * radius, np.full(np.shape(radius), steepest))


class Tangents(NamedTuple):
    """Lines with log J ≤ level + slope·R², and the variance up to which each is to be used."""

    levels: np.ndarray
    slopes: np.ndarray
    variances: np.ndarray

    def pick(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Level and slope of the line for Gaussian noise of variance v; always 2·slope·v < 1."""
        line = np.searchsorted(self.variances, v)
        return self.levels[line], self.slopes[line]


@lru_cache(maxsize=64)
def tangents(k: int) -> Tangents:
    """Tangents of E in s = R² at s₀ = 0 (log J ≤ kR²/24) and on a geometric grid, raised against rounding.

    The line at s₀ makes noise of variance v into noise of variance v' = v/(1 − 2v·slope); it is best where the mean
    squared radius (d−1)v' of the latter is s₀, which is at v = s₀/(d − 1 + 2s₀·slope). That grows with s₀, so that
    a line is taken for the variances below its own, where 2v·slope < 1.
    """
    dim = k * (k + 1) // 2 - 1
    steepest = k / 24 * (1 + _ROUNDING)
    squared = 1e-2 / steepest * _RATIO ** np.arange(_LINES)
    value, slope = envelope(k, np.sqrt(squared))
    slopes = slope / (2 * np.sqrt(squared))
    # a slope that is off by δ moves the line by at most δ·max(s, s₀)
    slack = _ROUNDING * (1 + value)
    levels = value - slopes * squared + slack
    slopes = slopes + slack / squared
    variances = squared / (dim + 2 * slopes * squared)
    return Tangents(np.append(_ROUNDING, levels), np.append(steepest, slopes), np.append(variances[0] / 2, variances))
