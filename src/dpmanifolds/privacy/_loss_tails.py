"""What a pair of laws must tell about its privacy loss, and the two pairs with closed forms: flat space and the circle.

The loss is L = log(dP₁/dP₂), and −L has under P₂ the law that L has under P₁ (an isometry swaps the two footpoints).
Everything is kept as logarithms, so that neither a tail of 10^−1000 nor a probability of 1 − 10^−30 loses its digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import erf, log_ndtr, ndtri_exp

__all__ = [
    "CirclePair",
    "FlatPair",
    "LossPair",
    "LossTails",
    "log_normal_interval",
    "probit_of_log",
    "probits",
    "tail_on_spheres",
]


class LossTails(NamedTuple):
    """log P₁(L ≥ t), log P₁(L < t) and log P₂(L ≥ t) at an array of thresholds t ≥ 0.

    `error` bounds the relative numerical error of the three, up to 4e−15 times the logarithm of tiny ones.
    """

    above_first: np.ndarray
    below_first: np.ndarray
    above_second: np.ndarray
    error: np.ndarray


class LossPair(Protocol):
    """Two laws that an isometry swaps, known by the tails of their privacy loss."""

    largest: float
    """The supremum of the loss; infinite where the loss is unbounded."""

    @property
    def error(self) -> float:
        """The `error` of the tails at the threshold 0."""

    @property
    def at_zero(self) -> float:
        """−2Φ⁻¹(P₂(L ≥ 0)): the smallest μ that the threshold 0 allows, nearly always μ itself."""

    def tails(self, thresholds: np.ndarray) -> LossTails:
        """The tails at thresholds in [0, largest)."""

    def gaussian_tail(self, mu: float) -> float:
        """A T with P₁(L ≥ t) ≤ Φ(μ/2 − t/μ) for all t ≥ T, hence m ≤ μ there; infinite where none is proven."""


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


class FlatPair:
    """N(0, σ²I) and N(Δe, σ²I): the loss is N(μ²/2, μ²) under the first law, μ = Δ/σ."""

    largest = math.inf
    error = 1e-13

    def __init__(self, ratio: float) -> None:
        self.ratio = self.at_zero = ratio

    def tails(self, thresholds: np.ndarray) -> LossTails:
        first, second = self.ratio / 2 - thresholds / self.ratio, -self.ratio / 2 - thresholds / self.ratio
        return LossTails(log_ndtr(first), log_ndtr(-first), log_ndtr(second), np.full_like(first, self.error))

    def gaussian_tail(self, mu: float) -> float:
        return 0.0 if mu >= self.ratio else math.inf


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


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


class CirclePair:
    """Riemannian Gaussians at −Δ/2 and Δ/2 on the circle of circumference 2π, 0 < Δ < π (MATH.md section 5).

    {L ≥ t} = [−π + σ²t/(2π−Δ), −σ²t/Δ] for 0 ≤ t ≤ Δ(2π−Δ)/2σ²: every probability is a sum of at most two normal
    intervals, divided by 2Φ(π/σ) − 1.

    >>> import numpy as np
    >>> from dpmanifolds.privacy._loss_tails import CirclePair
    >>> tails = CirclePair(1.0, 1.0).tails(np.array([1.0]))
    >>> round(float(np.exp(tails.above_first[0]) - np.e * np.exp(tails.above_second[0])), 4)
    0.1183
    """

    error = 1e-13

    def __init__(self, sigma: float, sensitivity: float) -> None:
        self.sigma, self.sensitivity = sigma, sensitivity
        self.around = 2 * math.pi - sensitivity
        self.largest = sensitivity * self.around / sigma / sigma / 2
        self._log_total = float(log_normal_interval(np.array(-math.pi / sigma), np.array(math.pi / sigma)))

    def tails(self, thresholds: np.ndarray) -> LossTails:
        half, end = self.sensitivity / self.sigma / 2, math.pi / self.sigma
        near = self.sigma * thresholds / self.sensitivity
        far = self.sigma * thresholds / self.around
        edge = np.full_like(near, end)
        gap = self.largest - thresholds
        # seen from the first footpoint, A is [half − end + far, half − near]; the rest has a piece on either side
        rest = self._sum((half - near, edge), (-edge, half - end + far))
        # seen from the second, A reaches over the cut point
        second = self._sum(
            (-edge, -half - near, self.sigma * gap / self.sensitivity),
            (end - half + far, edge, self.sigma * gap / self.around),
        )
        first = log_normal_interval(half - end + far, half - near, end * gap / self.largest)
        return LossTails(first - self._log_total, rest, second, np.full_like(near, self.error))

    @property
    def at_zero(self) -> float:
        return -2 * float(probit_of_log(self.tails(np.zeros(1)).above_second)[0])

    def _sum(self, first: tuple[np.ndarray, ...], second: tuple[np.ndarray, ...]) -> np.ndarray:
        total = np.logaddexp(log_normal_interval(*first), log_normal_interval(*second))
        return np.asarray(total - self._log_total)

    def gaussian_tail(self, mu: float) -> float:
        return tail_on_spheres(self.sensitivity, self.sigma, mu)
