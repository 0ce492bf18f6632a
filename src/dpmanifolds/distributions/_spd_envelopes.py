"""Upper bounds of the Jacobian of SPD(k) that depend on the radius alone.

J = ∏_{i<j} sinh(y_ij)/y_ij, y_ij = (r_i − r_j)/2, N = k(k−1)/2 pairs. J does not see the mean of the eigenvalues, so
let Σr_i = 0 and R² = Σr_i², hence Σ_{i<j} y_ij² = kR²/4. Three bounds (MATH.md section 3):

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
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpmanifolds._arrays import log_sinhc
from dpmanifolds.distributions._spd_partition import squared_half_sum

__all__ = ["Envelope", "Tangents", "envelope", "tangents"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
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
    frequency = bend[..., None] * (_NODES + 1) / 2
    decay = np.expm1(2 * math.pi * frequency)
    angle = frequency * z[..., None]
    low = bend / 2 * ((np.sin(angle) ** 2 / (frequency * decay)) @ _WEIGHTS)
    slope = bend / 2 * ((np.sin(2 * angle) / decay) @ _WEIGHTS)
    # beyond the bend, in log ω; nothing is left where the bend lies at the last frequency
    span = np.log(_LAST_FREQUENCY / bend)
    beyond = bend[..., None] * np.exp(span[..., None] * (_NODES + 1) / 2)
    high = span / 2 * ((1 / np.expm1(2 * math.pi * beyond)) @ _WEIGHTS)
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
