"""The mean of the Jacobian of SPD(k) over spheres, A(R) = E J(R·U) for a uniform direction U.

With f(v) = E J(X), X ~ N(0, v·I_d) (`_spd_partition`), z = 1/2v and h(R²) = π^{d/2} R^{d−2} A(R)/Γ(d/2), integrating
over spheres gives the Laplace transform (π/z)^{d/2}·f(1/2z) = ∫₀^∞ e^{−zs} h(s) ds. Its inverse is Bromwich's integral;
along the parabola z = z₀(1+iu)² it reads

A(R) = Γ(d/2)/π · R^{2−d} z₀^{1−d/2} ∫_{−∞}^{∞} (1+iu)^{1−d}·e^{z₀R²(1+iu)²}·f(v₀/(1+iu)²) du,  v₀ = 1/2z₀.

Its integrand is analytic and falls like e^{−z₀R²u²}, so that the trapezoidal rule converges geometrically; with v₀
such that the Gaussian law has its radius near R nothing cancels. One contour serves all R within a standard deviation.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import optimize

from dpmanifolds.distributions._spd_partition import (
    is_available,
    log_mean_jacobian,
    no_meeting_slope,
    squared_half_sum,
)
from dpmanifolds.errors import NotAvailableError

__all__ = ["log_mean_over_sphere"]

_STEP, _STEPS = 0.15, 45
_ROUNDS = 12
_BLOCK = 1 << 14
_LARGEST_EXPONENT = 1e8
"""Of e^{vS/2} in f, so that its rounding stays below 1e−8."""


def log_mean_over_sphere(k: int, radius: np.ndarray) -> np.ndarray:
    """log A(R) at each radius > 0, to about 1e−12·(1 + log A)."""
    flat = radius.ravel()
    result = np.empty(flat.size)
    window = np.round(_window_coordinate(k, flat)).astype(np.int64)
    order = np.argsort(window, kind="stable")
    edges = np.flatnonzero(np.diff(window[order])) + 1
    for members in np.split(order, edges):
        if members.size:
            contour = _contour(k, int(window[members[0]]))
            for start in range(0, members.size, _BLOCK):
                part = members[start : start + _BLOCK]
                result[part] = contour.log_mean(k, flat[part])
    return result.reshape(radius.shape)


def _window_coordinate(k: int, radius: np.ndarray) -> np.ndarray:
    """A coordinate in which the radius of the Gaussian law around R has a standard deviation of about ½.

    That deviation is about R/√(2d) for small R and √(R/√S) for large R.
    """
    steepest = math.sqrt(squared_half_sum(k))
    return np.asarray(math.sqrt(k * (k + 1)) / 2 * np.log(radius) + np.sqrt(steepest * radius))


class _Contour(NamedTuple):
    variance: float
    step: float
    points: np.ndarray
    logs: np.ndarray

    def log_mean(self, k: int, radius: np.ndarray) -> np.ndarray:
        dim = k * (k + 1) // 2
        half_square = radius * radius / (2 * self.variance)
        exponents = self.logs + half_square[:, None] * (self.points * self.points)
        top = exponents[:, 0].real
        terms = np.exp(exponents - top[:, None]).real
        total = self.step * (2 * np.sum(terms, axis=1) - terms[:, 0])
        powers = (2 - dim) * np.log(radius) - (1 - dim / 2) * math.log(2 * self.variance)
        return np.asarray(math.lgamma(dim / 2) - math.log(math.pi) + powers + top + np.log(total))


@lru_cache(maxsize=1 << 14)
def _contour(k: int, window: int) -> _Contour:
    """The contour through the saddle point of the middle of a window."""
    radius = _window_middle(k, window)
    variance = _variance_reaching(k, radius)
    step = _STEP * math.sqrt(2 * variance) / radius
    u = step * np.arange(_STEPS)
    points = 1 + 1j * u
    log_f = log_mean_jacobian(k, variance / (1 + u * u), -2 * np.arctan(u))
    return _Contour(variance, step, points, (1 - k * (k + 1) // 2) * np.log(points) + log_f)


def _window_middle(k: int, window: int) -> float:
    """The radius with this coordinate: a sum of an increasing concave function of log R and an exponential one."""
    slope, root = math.sqrt(k * (k + 1)) / 2, math.sqrt(math.sqrt(squared_half_sum(k)))
    found = optimize.brentq(lambda t: slope * t + root * math.exp(t / 2) - window, -1e3, 1e3)
    return math.exp(found)


def _variance_reaching(k: int, radius: float) -> float:
    """About the v with E R² = v²S + v(k + 2v·P'/P) = radius², by fixed-point steps in P'/P."""
    s, linear = squared_half_sum(k), k * (k + 1) / 2
    for _ in range(_ROUNDS):
        variance = 2 * radius * radius / (linear + math.sqrt(linear * linear + 4 * s * radius * radius))
        if variance * s > _LARGEST_EXPONENT or not is_available(k, np.array([variance]))[0]:
            raise NotAvailableError(
                f"the law of the distance on SPD({k}) is not computed where distances of about {radius:g} matter; "
                "estimate what you need from draws (`sample`)."
            )
        linear = k + 2 * variance * float(no_meeting_slope(k, np.array([variance]))[0])
    return variance
