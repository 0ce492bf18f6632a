"""Integrals, distribution functions and quantiles of one-dimensional log-concave densities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds.distributions._arguments import checked_probabilities, float_or_array
from dpmanifolds.errors import ConvergenceError
from dpmanifolds.noise.log_concave import Function, falls

__all__ = ["LogConcaveIntegral"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# the small ones find a bend of h close to the mode that is much narrower than the whole
_LEVELS = np.concatenate([2.0 ** -np.arange(45, 0, -4), np.arange(2, 14) ** 2 / 2])
_TOLERANCE = 1e-14
_SPLITS = 60
_BLOCK = 1 << 14
_NEWTON_STEPS = 100


class LogConcaveIntegral:
    """∫ e^h for a concave h on (lower, upper), by Gauss–Legendre panels around the mode.

    The panels end where h has fallen by 2^−45, 2^−41, …, ½ and k²/2, k = 2, …, 13, from its maximum and are halved
    until 20 nodes agree with 2 × 20 to 1e−14 of the total. What lies beyond a fall of 84.5 towards an infinite end
    is left out: by concavity it is below e^−84.5 of the total.

    >>> import math
    >>> from dpmanifolds.distributions.quadrature import LogConcaveIntegral
    >>> normal = LogConcaveIntegral(lambda x: -x * x / 2, mode=0.0, scale=1.0, lower=-math.inf, upper=math.inf)
    >>> abs(normal.log_total - math.log(2 * math.pi) / 2) < 1e-13
    True
    >>> round(normal.quantile(0.975), 9)
    1.959963985
    """

    def __init__(self, log_density: Function, *, mode: float, scale: float, lower: float, upper: float) -> None:
        self._log_density = log_density
        self.lower, self.upper = lower, upper
        with np.errstate(all="ignore"):
            self._top = float(log_density(np.array([mode]))[0])
            self._edges, masses = self._panels(mode, scale)
        self._below = np.append(0.0, np.cumsum(masses))
        self.log_total = self._top + math.log(self._below[-1])

    def _panels(self, mode: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
        ends = [end for end in (self.lower, self.upper) if math.isfinite(end)]
        falling = [falls(self._log_density, mode, end, scale, _LEVELS) for end in (self.lower, self.upper)]
        if any(math.isinf(end) and math.isinf(falling[i][-1]) for i, end in enumerate((self.lower, self.upper))):
            raise ConvergenceError("a one-dimensional density does not fall off towards its infinite end.")
        edges = np.unique(np.concatenate([[mode], *falling, ends]))
        edges = edges[np.isfinite(edges)]
        left, right = edges[:-1], edges[1:]
        whole = self._integrate(left, right)
        done: list[tuple[np.ndarray, np.ndarray]] = []
        total = float(np.sum(whole))
        for _ in range(_SPLITS):
            middle = (left + right) / 2
            first, second = self._integrate(left, middle), self._integrate(middle, right)
            agrees = np.abs(first + second - whole) <= _TOLERANCE * total
            agrees |= (middle <= left) | (middle >= right)
            done.append((left[agrees], whole[agrees]))
            if np.all(agrees):
                starts = np.concatenate([start for start, _ in done])
                order = np.argsort(starts)
                masses = np.concatenate([mass for _, mass in done])
                return np.append(starts[order], edges[-1]), masses[order]
            left, middle, right = left[~agrees], middle[~agrees], right[~agrees]
            whole = np.concatenate([first[~agrees], second[~agrees]])
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        raise ConvergenceError("a one-dimensional integral did not settle; its integrand is not log-concave.")

    def _integrate(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """∫ e^{h − h(mode)} over each [left, right]."""
        half = (right - left) / 2
        points = left[:, None] + half[:, None] * (_NODES + 1)
        return np.asarray(half * (np.exp(self._log_density(points) - self._top) @ _WEIGHTS))

    def _mass_below(self, points: np.ndarray) -> np.ndarray:
        """∫ e^{h − h(mode)} below each point, for points between the outermost edges."""
        panel = np.clip(np.searchsorted(self._edges, points, side="right") - 1, 0, self._edges.size - 2)
        return np.asarray(self._below[panel] + self._integrate(self._edges[panel], points))

    def cdf(self, points: ArrayLike) -> Any:
        """The share of the integral below each point."""
        given = np.asarray(points, dtype=np.float64)
        flat = np.clip(given.ravel(), self._edges[0], self._edges[-1])
        with np.errstate(all="ignore"):
            blocks = [self._mass_below(flat[start : start + _BLOCK]) for start in range(0, flat.size, _BLOCK)]
        shares = np.minimum(np.concatenate([*blocks, np.empty(0)]) / self._below[-1], 1.0)
        return float_or_array(shares.reshape(given.shape))

    def quantile(self, probability: ArrayLike) -> Any:
        """The point with this share of the integral below it."""
        given = checked_probabilities(probability)
        wanted = given.ravel() * self._below[-1]
        panel = np.clip(np.searchsorted(self._below, wanted, side="right") - 1, 0, self._edges.size - 2)
        low, high = self._edges[panel], self._edges[panel + 1]
        point = (low + high) / 2
        with np.errstate(all="ignore"):
            for _ in range(_NEWTON_STEPS):
                excess = self._below[panel] + self._integrate(self._edges[panel], point) - wanted
                low, high = np.where(excess <= 0, point, low), np.where(excess >= 0, point, high)
                step = point - excess / np.exp(self._log_density(point) - self._top)
                inside = (step > low) & (step < high)
                following = np.where(inside, step, (low + high) / 2)
                if np.all(np.abs(following - point) <= 4 * np.finfo(float).eps * np.abs(point)):
                    break
                point = following
        point = np.where(given.ravel() == 0, self.lower, np.where(given.ravel() == 1, self.upper, point))
        return float_or_array(point.reshape(given.shape))
