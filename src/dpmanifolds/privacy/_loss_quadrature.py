"""Batches of one-dimensional integrals in logarithms, and the share of directions within an angle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betainc, betaln

__all__ = ["LogIntegrals", "log_direction_shares", "shrink"]

Integrand = Callable[[np.ndarray, np.ndarray], np.ndarray]

_DEPTH = 38.0
"""What lies this far below the logarithm of the largest value is left out: e^−38 = 3e−17 per unit of width."""
_SCAN = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, 22))
_ROUNDS = 20
_SETTLED = 0.75
_SEEN = 8
_SERIES_TERMS = 400


class LogIntegrals:
    """log ∫ e^h over an interval per row, for h with one bump, at most a root-type zero of e^h at either end.

    Scans shrink each interval to where h is within 38 of its maximum. There the substitution
    s = low + (high − low)(1 − cos πu)/2 turns powers (s − low)^{k/2} into analytic functions of u, and Gauss–Legendre
    nodes in u converge geometrically. Places are told by their distances from both ends, so that an integrand that
    vanishes there keeps its digits.

    The rule of n nodes is exact up to degree 2n − 1: its error is at most twice the sum of the integrand's Legendre
    coefficients from degree 2n on. The last eight that n nodes can see, of degrees n − 8 to n − 1, are charged in full,
    times eight: more than the sum, unless coefficients that have decayed by degree n grow again before 2n.

    >>> import numpy as np
    >>> from dpmanifolds.privacy._loss_quadrature import LogIntegrals
    >>> value, error = LogIntegrals(136)(lambda s, _: -(s - 40) ** 2 / 2, np.array([90.0]))
    >>> bool(abs(value[0] - np.log(2 * np.pi) / 2) < error[0] < 2e-12)
    True
    """

    def __init__(self, nodes: int) -> None:
        points, weights = np.polynomial.legendre.leggauss(nodes)
        angle = np.pi * (points + 1) / 2
        self._places, self._places_from_end = np.sin(angle / 2) ** 2, np.cos(angle / 2) ** 2
        self._log_weights = np.log(weights * np.pi / 4 * np.sin(angle))
        degrees = np.arange(nodes - _SEEN, nodes)
        self._last = np.polynomial.legendre.legvander(points, nodes - 1)[:, degrees] * (2 * degrees + 1) / 2

    def __call__(self, log_integrand: Integrand, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A value and a bound of its relative error per row; −inf and 0 where length ≤ 0.

        `log_integrand` maps the distances from the lower and from the upper end, (rows, points) each, to values.
        """
        empty = length <= 0
        whole = np.where(empty, 0.0, length)

        def at(places: np.ndarray) -> np.ndarray:
            return log_integrand(places, whole[:, None] - places)

        with np.errstate(all="ignore"):
            left, right = np.zeros_like(whole), whole
            width = whole
            for _ in range(_ROUNDS):
                left, right = shrink(at, left, right, _DEPTH)
                wider, width = width, right - left
                if np.all(width > _SETTLED * wider):
                    break
            ahead = left[:, None] + width[:, None] * self._places
            behind = (whole - right)[:, None] + width[:, None] * self._places_from_end
            values = log_integrand(ahead, behind) + self._log_weights
            values = np.where(np.isnan(values), -np.inf, values)
            top = np.max(values, axis=1)
            parts = np.exp(values - np.where(np.isfinite(top), top, 0.0)[:, None])
            total = np.sum(parts, axis=1)
            result = np.where(np.isfinite(top), top, 0.0) + np.log(total) + np.log(width)
            error = 8 * np.max(np.abs(parts @ self._last), axis=1) / total
        empty |= ~np.isfinite(top)
        return np.where(empty, -np.inf, result), np.where(empty, 0.0, error)


def shrink(
    log_integrand: Callable[[np.ndarray], np.ndarray], left: np.ndarray, right: np.ndarray, depth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Per row, the part of [left, right] outside of which a scan finds h more than `depth` below its maximum."""
    points = left[:, None] + (right - left)[:, None] * _SCAN
    values = log_integrand(points)
    values = np.where(np.isnan(values), -np.inf, values)
    kept = values > np.max(values, axis=1, keepdims=True) - depth
    last = points.shape[1] - 1
    first = np.maximum(np.argmax(kept, axis=1) - 1, 0)
    final = np.minimum(last - np.argmax(kept[:, ::-1], axis=1) + 1, last)
    rows = np.arange(len(points))
    found = np.any(kept, axis=1)
    return np.where(found, points[rows, first], left), np.where(found, points[rows, final], right)


def log_direction_shares(dim: int, share: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log I_x(a, a) and log I_{1−x}(a, a), a = (dim−1)/2, from x = `share` and 1 − x = `rest`.

    For a uniform direction in R^dim with angle θ to an axis, (1 + cos θ)/2 is Beta(a, a). Both x and 1 − x are given,
    so that the smaller keeps its digits; they are clipped to [0, 1].
    """
    lower = share <= rest
    small = np.clip(np.where(lower, share, rest), 0.0, 0.5)
    a = (dim - 1) / 2
    with np.errstate(divide="ignore"):
        if dim == 2:
            value = 2 / math.pi * np.arctan2(np.sqrt(small), np.sqrt(1 - small))
        elif dim == 3:
            value = small
        else:
            value = betainc(a, a, small)
        log_small, log_large = np.log(value), np.log1p(-value)
    lost = (value < 1e-290) & (small > 0)
    if np.any(lost):
        log_small[lost] = _log_betainc_series(a, small[lost])
    return np.where(lower, log_small, log_large), np.where(lower, log_large, log_small)


def _log_betainc_series(a: float, x: np.ndarray) -> np.ndarray:
    """log of I_x(a,a) = x^a (1−x)^a/(a B(a,a))·Σ_k x^k ∏_{j<k} (2a+j)/(a+1+j), all terms positive."""
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(_SERIES_TERMS):
        term = term * x * (2 * a + k) / (a + 1 + k)
        total = total + term
        if np.all(term <= 1e-17 * total):
            break
    return np.asarray(a * np.log(x) + a * np.log1p(-x) - math.log(a) - betaln(a, a) + np.log(total))
