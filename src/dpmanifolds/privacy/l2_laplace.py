"""The privacy loss of ℓ2-Laplace noise in R^d, density ∝ e^{−|y|/σ}, for a shift of length aσ (MATH.md, B6).

>>> import numpy as np
>>> from dpmanifolds.privacy.l2_laplace import L2LaplacePair
>>> round(float(L2LaplacePair(21, 3.0).delta_upper(np.array([1.0]))[0]), 10)
0.0262247909

In prolate coordinates u = (|y| + |y−v|)/aσ, w = (|y−v| − |y|)/aσ the loss is a·w, and the integral over u is a Bessel
function: with z = a/2, ν = (d−2)/2 and ∫₁^∞ (u²−1)^{ν−½} e^{−zu} du = Γ(ν+½)/√π·(2/z)^ν K_ν(z), w = sin φ has the law

    ∝ e^{a·sin φ/2}·cos^{d−2}φ·(b + cos²φ),   b = (2ν+1)/z · K_{ν+1}(z)/K_ν(z),   −π/2 ≤ φ ≤ π/2,

so every probability is an integral of one smooth function of φ, and δ(ε) = E[(1 − e^{ε−a·sin φ})₊] subtracts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy import special

from dpmanifolds._validate import number_between, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError, ConvergenceError
from dpmanifolds.privacy.conversions import mu_of_pure
from dpmanifolds.privacy.loss_bounds import renyi_divergence, supremum
from dpmanifolds.privacy.loss_pair import BATCH, LogIntegrals, LossPair, LossTails
from dpmanifolds.privacy.rounding import ULP
from dpmanifolds.privacy.terms import LARGEST_INTERVAL, Term

_RULE = LogIntegrals(136)
_LEAST = 2.0**-1074
_Factor = Callable[[np.ndarray], np.ndarray]
MOST_DIMENSIONS = 10**6
LEAST_SHIFT = 1e-6


class L2LaplacePair(LossPair):
    """The two laws at distance aσ in R^d, d ≥ 2: a reflection swaps them."""

    def __init__(self, dim: int, shift: float) -> None:
        self.dim, self.shift = dim, shift
        self.largest = shift
        self._ratio = _bessel_part(dim, shift)
        # the mass of both signs of w, on w ≥ 0
        total, error = self._integral(np.zeros(1), lambda sine: np.log1p(np.exp(-shift * sine)))
        self._log_total = float(total[0])
        self._behind = self._integral(np.zeros(1), lambda sine: -shift * sine)[0]
        self._rounding = float(error[0]) + ULP * (400 + 40 * dim + 16 * shift)

    def _integral(
        self, thresholds: np.ndarray, factor: _Factor | None = None, of_rise: _Factor | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """log ∫ of the density over a·sin φ ≥ t, unnormalised; times e^factor(sin φ), or e^of_rise(a·sin φ − t)."""
        turn = np.arcsin(np.minimum(thresholds / self.shift, 1.0))[:, None]
        # π/2 − φ at the threshold, with its digits where t is close to a
        length = 2 * np.arcsin(np.sqrt(np.maximum(self.shift - thresholds, 0.0) / (2 * self.shift)))

        def log_integrand(ahead: np.ndarray, rest: np.ndarray) -> np.ndarray:
            sine, cosine = np.cos(rest), np.sin(rest)
            value = self._log_density(sine, cosine)
            if factor is not None:
                value = value + factor(sine)
            if of_rise is not None:
                value = value + of_rise(2 * self.shift * np.cos(turn + ahead / 2) * np.sin(ahead / 2))
            return value

        return _RULE(log_integrand, length)

    def _log_density(self, sine: np.ndarray, cosine: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            power = (self.dim - 2) * np.log(cosine) if self.dim > 2 else 0.0
        return np.asarray(self.shift * (sine - 1) / 2 + power + np.log(self._ratio + cosine * cosine))

    def _tails(self, t: np.ndarray) -> LossTails:
        first, one = self._integral(t)
        second, two = self._integral(t, lambda sine: -self.shift * sine)
        first, second, behind = (np.minimum(v - self._log_total, 0.0) for v in (first, second, self._behind))
        # P₁(L < t) = P₁(L < 0) + P₁(0 ≤ L < t), and P₁(L < 0) = P₂(L ≥ 0)
        middle, three = _RULE(
            lambda ahead, _: self._log_density(np.sin(ahead), np.cos(ahead)), np.arcsin(np.minimum(t / self.shift, 1.0))
        )
        below = np.minimum(np.logaddexp(behind, middle - self._log_total), 0.0)
        return LossTails(first, below, second, np.maximum(np.maximum(one, two), three) + self._rounding)

    def _above_first(self, t: np.ndarray) -> np.ndarray:
        return np.minimum(self._integral(t)[0] - self._log_total, 0.0)

    def delta_upper(self, epsilon: np.ndarray) -> np.ndarray:
        """An upper bound on δ(ε): a positive integrand, so that its error is relative to δ."""
        flat = np.asarray(epsilon, dtype=np.float64).ravel() * (1 - 2.0**-50)
        bounds = np.zeros(flat.shape)
        for i in range(0, flat.size, BATCH):
            part = flat[i : i + BATCH]
            inside = np.where(part < self.shift, part, 0.0)
            with np.errstate(divide="ignore"):
                value, error = self._integral(inside, of_rise=lambda rise: np.log(-np.expm1(-rise)))
            log_delta = value - self._log_total
            slack = 1 + error + self._rounding + 4e-15 * np.abs(log_delta)
            bound = np.clip(np.exp(log_delta) * slack, _LEAST, 1.0)
            bounds[i : i + BATCH] = np.where(part < self.shift, bound, 0.0)
        return bounds.reshape(np.shape(epsilon))

    @cached_property
    def mu(self) -> float:
        """The smallest μ of Gaussian DP, rounded up."""
        return supremum(self)

    def renyi(self, alpha: float) -> float:
        """D_α, rounded up by 1e−9 of itself: (α−1)D_α = log E e^{(α−1)L}, both signs of w taken together on w ≥ 0."""
        rise, fall = (alpha - 1) * self.shift, alpha * self.shift
        value, error = self._integral(np.zeros(1), lambda sine: np.logaddexp(rise * sine, -fall * sine))
        slack = float(error[0]) + self._rounding + ULP * 8 * fall
        bound = float(value[0]) - self._log_total + slack
        if slack > 1e-9 * bound:
            return renyi_divergence(self, alpha) * (1 + 1e-9 + 4 * self.error)
        return bound / (alpha - 1) * (1 + 1e-9)


def _bessel_part(dim: int, shift: float) -> float:
    """b = (2ν+1)/z·K_{ν+1}(z)/K_ν(z), z = a/2, by K_{ν+1}/K_ν = 2ν/z + K_{ν−1}/K_ν upwards: sums of positive terms."""
    z = shift / 2
    if dim % 2:
        order, ratio = 0.5, 1 + 1 / z
    else:
        order, ratio = 0.0, float(special.k1e(z) / special.k0e(z))
    while order < (dim - 2) / 2:
        order += 1
        ratio = 2 * order / z + 1 / ratio
    return (dim - 1) / z * ratio


@lru_cache(maxsize=256)
def _l2_laplace_pair(dim: int, shift: float) -> L2LaplacePair:
    """The pair, with what was computed for it."""
    return L2LaplacePair(dim, shift)


def least_mu(dim: int, shift: float) -> float:
    """What the threshold 0 alone asks of μ: a lower bound, by far cheaper than μ itself, and nearly always as large.

    >>> round(least_mu(21, 3.0), 6), round(L2LaplacePair(21, 3.0).mu, 6)
    (0.661538, 0.661538)
    """
    return _l2_laplace_pair(dim, shift).at_zero


def _shift(name: str, value: Any) -> float:
    return number_between(name, positive_number(name, value), LEAST_SHIFT, LARGEST_INTERVAL)


@dataclass(frozen=True, kw_only=True)
class L2LaplaceTerm(Term):
    """ℓ2-Laplace noise ∝ e^{−|y|/σ} in R^d, d ≥ 2, for a statistic that moves by at most `shift`·σ (MATH.md, B6).

    Its loss is at most `shift`, but hardly ever near it: k releases lose far less than k pure ε.
    """

    dim: int
    shift: float
    kind: ClassVar[str] = "l2-laplace"
    checks: ClassVar = {"dim": positive_integer, "shift": _shift}
    is_dear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.dim <= MOST_DIMENSIONS:
            raise ArgumentError(f"dim must be from 2 to {MOST_DIMENSIONS}; got {self.dim}. On the line use laplace.")

    def _pair(self) -> L2LaplacePair:
        return _l2_laplace_pair(self.dim, self.shift)

    @property
    def pure_epsilon(self) -> float:
        return self.shift

    @property
    def laplace_epsilon(self) -> float:
        """Noise on the line dominates it (docs/proofs/accounts.md, A2)."""
        return self.shift

    @property
    def gaussian_mu(self) -> float:
        """The supremum over all thresholds; that of the pure ε where it does not settle."""
        try:
            return min(self._pair().mu, mu_of_pure(self.shift))
        except ConvergenceError:
            return mu_of_pure(self.shift)

    def renyi(self, alpha: float) -> float | None:
        """That of the pair; of what is known without it where its integral does not settle."""
        most = super().renyi(alpha)
        try:
            found = self._pair().renyi(alpha)
        except ConvergenceError:
            return most
        return found if most is None else min(found, most)

    @property
    def spread(self) -> float:
        return self.shift / math.sqrt(self.dim)

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        bound = self._pair().delta_upper(np.atleast_1d(np.asarray(epsilon, dtype=np.float64)))
        return np.reshape(bound, np.shape(epsilon))
