"""What a pair of laws must tell about its privacy loss: its tails, in logarithms, and how they are integrated.

The loss is L = log(dP₁/dP₂), and −L has under P₂ the law that L has under P₁ (an isometry swaps the two footpoints).
Everything is kept as logarithms, so that neither a tail of 10^−1000 nor a probability of 1 − 10^−30 loses its digits.
Two pairs have closed forms: flat space and the circle.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaln, erf, log_ndtr, ndtri_exp

BATCH = 481
"""How many thresholds are integrated at once."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_CLOSED_FORM = 1e-13
Integrand = Callable[[np.ndarray, np.ndarray], np.ndarray]
_DEPTH = 38.0
"""What lies this far below the logarithm of the largest value is left out: e^−38 = 3e−17 per unit of width."""
_SCAN = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, 22))
_ROUNDS = 20
_SETTLED = 0.75
_SEEN = 8
_SERIES_TERMS = 400


class LossTails(NamedTuple):
    """log P₁(L ≥ t), log P₁(L < t) and log P₂(L ≥ t) at an array of thresholds t ≥ 0.

    `error` bounds the relative numerical error of the three, up to 4e−15 times the logarithm of tiny ones.
    """

    above_first: np.ndarray
    below_first: np.ndarray
    above_second: np.ndarray
    error: np.ndarray


class LossPair(ABC):
    """Two laws that an isometry swaps, known by the tails of their privacy loss."""

    largest: float = math.inf
    """The supremum of the loss; infinite where the loss is unbounded."""

    def tails(self, thresholds: np.ndarray) -> LossTails:
        """The tails at thresholds in [0, largest), a batch at a time."""
        rows = zip(*self._in_batches(self._tails, thresholds), strict=True)
        return LossTails(*(np.concatenate(row).reshape(np.shape(thresholds)) for row in rows))

    def above_first(self, thresholds: np.ndarray) -> np.ndarray:
        """The first of the tails alone."""
        rows = self._in_batches(self._above_first, thresholds)
        return np.concatenate(rows).reshape(np.shape(thresholds))

    @staticmethod
    def _in_batches(act: Callable[[np.ndarray], Any], thresholds: np.ndarray) -> list[Any]:
        flat = np.asarray(thresholds, dtype=np.float64).ravel()
        return [act(flat[i : i + BATCH]) for i in range(0, max(flat.size, 1), BATCH)]

    def _above_first(self, t: np.ndarray) -> np.ndarray:
        return self._tails(t).above_first

    @abstractmethod
    def _tails(self, t: np.ndarray) -> LossTails:
        """The same for a row of thresholds."""

    @cached_property
    def _tails_at_zero(self) -> LossTails:
        return self.tails(np.zeros(1))

    @cached_property
    def error(self) -> float:
        """The `error` of the tails at the threshold 0."""
        return float(self._tails_at_zero.error[0])

    @cached_property
    def at_zero(self) -> float:
        """−2Φ⁻¹(P₂(L ≥ 0)): the smallest μ that the threshold 0 allows, nearly always μ itself."""
        return -2 * float(probit_of_log(self._tails_at_zero.above_second)[0])

    def gaussian_tail(self, mu: float) -> float:
        """A T with P₁(L ≥ t) ≤ Φ(μ/2 − t/μ) for all t ≥ T, hence m ≤ μ there; infinite where none is proven."""
        return math.inf


def probit_of_log(log_probability: np.ndarray) -> np.ndarray:
    """Φ⁻¹(e^x) for x ≤ 0, to rounding: SciPy's value, with one Newton step where it loses digits (x < −1000)."""
    start = ndtri_exp(log_probability)
    with np.errstate(invalid="ignore", divide="ignore"):
        # the slope φ/Φ at y is |y| + 1/|y| up to 2/|y|³
        step = (log_ndtr(start) - log_probability) / (np.abs(start) + 1 / np.abs(start))
    return np.asarray(np.where((log_probability < -1000) & np.isfinite(step), start - step, start))


def probits(tails: LossTails) -> tuple[np.ndarray, np.ndarray]:
    """Φ⁻¹(P₁(L ≥ t)) and Φ⁻¹(P₂(L ≥ t)), the first from whichever side of ½ has the digits."""
    upper = tails.above_first > tails.below_first
    smaller = probit_of_log(np.where(upper, tails.below_first, tails.above_first))
    return np.where(upper, -smaller, smaller), probit_of_log(tails.above_second)


def tail_on_spheres(sensitivity: float, sigma: float, mu: float) -> float:
    """Δ²/2σ² if μ ≥ Δ/σ: from there on P₁(L ≥ t) ≤ Φ(Δ/2σ − σt/Δ) on S^d, d ≥ 1.

    By the hinge comparison d₂² ≤ s² + Δ² − 2sΔ cos θ, the share of directions in A is at most that of flat space, which
    for t ≥ Δ²/2σ² grows with s; and the radial law is stochastically smaller than the flat one.
    """
    return sensitivity / sigma * (sensitivity / sigma) / 2 if mu >= sensitivity / sigma else math.inf


class FlatPair(LossPair):
    """N(0, σ²I) and N(Δe, σ²I): the loss is N(μ²/2, μ²) under the first law, μ = Δ/σ."""

    def __init__(self, ratio: float) -> None:
        self.ratio = self.at_zero = ratio

    def _tails(self, t: np.ndarray) -> LossTails:
        first, second = self.ratio / 2 - t / self.ratio, -self.ratio / 2 - t / self.ratio
        return LossTails(log_ndtr(first), log_ndtr(-first), log_ndtr(second), np.full_like(first, _CLOSED_FORM))

    def gaussian_tail(self, mu: float) -> float:
        return 0.0 if mu >= self.ratio else math.inf


def log_normal_interval(low: np.ndarray, high: np.ndarray, length: np.ndarray | None = None) -> np.ndarray:
    """log(Φ(high) − Φ(low)) for low ≤ high, to full relative precision on short intervals and in either tail.

    `length` is high − low, where it is known better than by subtraction.
    """
    flip = low + high > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    half = (high - low if length is None else length) / 2
    with np.errstate(all="ignore"):
        center = (high + low) / 2
        # φ(x)/φ(center) = e^{−(x−center)(x+center)/2}: smooth where the interval is short in units of its own decay
        offset = half[..., None] * _NODES
        inside = np.exp(-offset * (2 * center[..., None] + offset) / 2) @ _WEIGHTS
        short = np.log(half * inside) - center * center / 2 - math.log(2 * math.pi) / 2
        both = np.log((erf(high / math.sqrt(2)) - erf(low / math.sqrt(2))) / 2)
        top = log_ndtr(high)
        long = top + np.log1p(-np.exp(log_ndtr(low) - top))
    result = np.where(high > -1, both, long)
    return np.asarray(np.where(half * np.maximum(1, np.abs(low)) < 1, short, result))


class CirclePair(LossPair):
    """Riemannian Gaussians at −Δ/2 and Δ/2 on the circle of circumference 2π, 0 < Δ < π (MATH.md section 5).

    {L ≥ t} = [−π + σ²t/(2π−Δ), −σ²t/Δ] for 0 ≤ t ≤ Δ(2π−Δ)/2σ²: every probability is a sum of at most two normal
    intervals, divided by 2Φ(π/σ) − 1.

    >>> import numpy as np
    >>> from dpmanifolds.privacy.loss_pair import CirclePair
    >>> tails = CirclePair(1.0, 1.0).tails(np.array([1.0]))
    >>> round(float(np.exp(tails.above_first[0]) - np.e * np.exp(tails.above_second[0])), 4)
    0.1183
    """

    def __init__(self, sigma: float, sensitivity: float) -> None:
        self.sigma, self.sensitivity = sigma, sensitivity
        self.around = 2 * math.pi - sensitivity
        self.largest = sensitivity * self.around / sigma / sigma / 2
        self._log_total = float(log_normal_interval(np.array(-math.pi / sigma), np.array(math.pi / sigma)))

    def _tails(self, t: np.ndarray) -> LossTails:
        half, end = self.sensitivity / self.sigma / 2, math.pi / self.sigma
        near = self.sigma * t / self.sensitivity
        far = self.sigma * t / self.around
        edge = np.full_like(near, end)
        gap = self.largest - t
        # seen from the first footpoint, A is [half − end + far, half − near]; the rest has a piece on either side
        rest = self._sum((half - near, edge), (-edge, half - end + far))
        # seen from the second, A reaches over the cut point
        second = self._sum(
            (-edge, -half - near, self.sigma * gap / self.sensitivity),
            (end - half + far, edge, self.sigma * gap / self.around),
        )
        first = log_normal_interval(half - end + far, half - near, end * gap / self.largest)
        return LossTails(first - self._log_total, rest, second, np.full_like(near, _CLOSED_FORM))

    def _sum(self, first: tuple[np.ndarray, ...], second: tuple[np.ndarray, ...]) -> np.ndarray:
        total = np.logaddexp(log_normal_interval(*first), log_normal_interval(*second))
        return np.asarray(total - self._log_total)

    def gaussian_tail(self, mu: float) -> float:
        return tail_on_spheres(self.sensitivity, self.sigma, mu)


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
    >>> from dpmanifolds.privacy.loss_pair import LogIntegrals
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
            values = np.fmax(log_integrand(ahead, behind) + self._log_weights, -np.inf)
            top = values.max(axis=1)
            lost = ~np.isfinite(top)
            highest = np.where(lost, 0.0, top)
            parts = np.exp(values - highest[:, None])
            total = parts.sum(axis=1)
            result = highest + np.log(total) + np.log(width)
            error = 8 * np.abs(parts @ self._last).max(axis=1) / total
        empty |= lost
        return np.where(empty, -np.inf, result), np.where(empty, 0.0, error)


def shrink(
    log_integrand: Callable[[np.ndarray], np.ndarray], left: np.ndarray, right: np.ndarray, depth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Per row, the part of [left, right] outside of which a scan finds h more than `depth` below its maximum."""
    points = left[:, None] + (right - left)[:, None] * _SCAN
    # NaN counts as −inf
    values = np.fmax(log_integrand(points), -np.inf)
    kept = values > values.max(axis=1, keepdims=True) - depth
    last = points.shape[1] - 1
    first = np.maximum(kept.argmax(axis=1) - 1, 0)
    final = np.minimum(last - kept[:, ::-1].argmax(axis=1) + 1, last)
    rows = np.arange(len(points))
    found = kept.any(axis=1)
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
