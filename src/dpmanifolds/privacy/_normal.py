"""The privacy profile of a pair of unit normals at distance μ, accurate in relative terms down to e^−10000.

δ_μ(ε) = Φ(−t) − e^ε Φ(−t − μ), t = ε/μ − μ/2. Because φ(t) = e^ε φ(t + μ), this is φ(t)·(R(t) − R(t + μ)) with
Mills' ratio R(x) = Φ(−x)/φ(x): no e^ε, no underflow, and no cancellation but that of the two ratios, which for
small μ is avoided by R(t) − R(t + μ) = ∫_t^{t+μ} G with G = −R' = 1 − xR(x) > 0.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dpmanifolds.privacy.rounding import ULP

__all__ = ["log_delta_upper", "log_gaussian_delta"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_SMALL_MU = 0.25
_FRACTION_FROM = 3.0
_FRACTION_TERMS = 60
_SATURATED = -5.0
_LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2


def _mills(x: np.ndarray) -> np.ndarray:
    """R(x) = Φ(−x)/φ(x)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)))


def _mills_slope(x: np.ndarray) -> np.ndarray:
    """G(x) = 1 − xR(x); from x = 3 on as K/(x + K), K = 1/(x + 2/(x + 3/(x + …))), which subtracts nothing."""
    far = np.maximum(x, _FRACTION_FROM)
    tail = np.zeros_like(far)
    for term in range(_FRACTION_TERMS, 0, -1):
        tail = term / (far + tail)
    near = 1 - x * _mills(np.minimum(x, _FRACTION_FROM))
    return np.asarray(np.where(x < _FRACTION_FROM, near, tail / (far + tail)))


def _mills_drop(t: np.ndarray, mu: float) -> np.ndarray:
    """R(t) − R(t + μ)."""
    if mu >= _SMALL_MU:
        return np.asarray(_mills(t) - _mills(t + mu))
    nodes = t[..., None] + mu / 2 * (1 + _NODES)
    return np.asarray(mu / 2 * (_mills_slope(nodes) @ _WEIGHTS))


def log_gaussian_delta(mu: float, epsilon: np.ndarray) -> np.ndarray:
    """log δ_μ(ε) for ε ≥ 0, to a relative error in δ of at most `_relative_error`."""
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        t = epsilon / mu - mu / 2
        log_density = -t * t / 2 - _LOG_ROOT_TWO_PI
        tail = log_density + np.log(_mills_drop(np.maximum(t, _SATURATED), mu))
        near_one = np.log(special.ndtr(-t) - np.exp(log_density) * _mills(t + mu))
    result = np.where(t < _SATURATED, near_one, tail)
    return np.asarray(np.where(np.isposinf(t), -np.inf, result))


def _relative_error(mu: float, epsilon: np.ndarray) -> np.ndarray:
    """A bound on the relative error of δ: the rounding of t enters t²/2 multiplied by |t|."""
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = epsilon / mu
        error = ULP * (128 + 4 * np.abs(ratio - mu / 2) * (ratio + mu))
    return np.asarray(np.nan_to_num(error, nan=np.inf))


def log_delta_upper(mu: float, epsilon: np.ndarray) -> np.ndarray:
    """An upper bound on log δ_μ(ε), at most 0: the computed value plus its rounding error."""
    return np.asarray(np.minimum(log_gaussian_delta(mu, epsilon) + _relative_error(mu, epsilon), 0.0))
