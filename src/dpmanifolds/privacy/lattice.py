"""Integer noise on a lattice, the discrete Gaussian and the discrete Laplace law: profiles and terms, in whole steps.

>>> import numpy as np
>>> from dpmanifolds.privacy.lattice import discrete_laplace_profile, mu_of_discrete_gaussian
>>> round(float(discrete_laplace_profile(4.0, 8, np.asarray(1.0))), 6)
0.393469
>>> mu_of_discrete_gaussian(1, 2.0**30, 2.0**30) - 1.0 < 1e-15
True

**Discrete Gaussian**, P(x) ∝ e^{−x²/2σ²}. A shift by k steps has the loss k(k − 2x)/2σ², an arithmetic progression, and
on the line δ(ε) = Σ P(x)(1 − e^{ε−loss})₊ is a sum of positive numbers. In any dimension the law is, up to factors
within e^{±η}, a post-processing of N(0, (σ² − τ²)I) for every τ < σ, which makes it μ-Gaussian-DP (docs/proofs/
accounts.md, A1).

**Discrete Laplace**, P(x) ∝ e^{−|x|/s}: every shift by k steps in ℓ1, in any dimension, is dominated by the shift by k
on the line, whose profile is a closed form; and that by Laplace noise on the reals with ε = k/s + 1/4s².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._validate import number_between, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy.conversions import log_delta_of_zcdp, log_delta_upper
from dpmanifolds.privacy.loss_grid import sums_ahead
from dpmanifolds.privacy.rounding import ULP, float_above, root_above, up
from dpmanifolds.privacy.terms import Term

_LARGEST_SUMMED = 4096.0
"""The largest σ for which the sum over the lattice is worked out; beyond, μ is exact to 1e−6 of itself."""
_REACH = 40
_TINY = 2.0**-1074
_LEAST_TAU, _LARGEST_TAU = 0.4, 6.0
_TAUS = 400
_LEAST_SCALE, _LARGEST_SCALE = 2.0**-12, 2.0**60
_LARGEST_SHIFT = 2.0**66
_LARGEST_LOSS = 1e6
_AS_GOOD = 1 + 1e-6


class LatticeGaussianPair:
    """The discrete Gaussian of scale σ ≤ 4096 and the same moved by k whole steps."""

    def __init__(self, sigma: float, shift: int) -> None:
        self._gap = shift / sigma / sigma
        self._half = shift / 2
        reach = math.ceil(_REACH * sigma) + 1
        steps = np.arange(reach, -reach - 1, -1.0)
        exponents = (steps / sigma) ** 2 / 2
        weights = np.exp(-exponents)
        masses = weights / float(np.sum(weights)) * (1 + ULP * (16 + 8 * exponents))
        slack = 1 + 16 * ULP * len(steps)
        # in order of growing loss; what lies beyond 40σ is below the smallest number
        self._at_nodes = sums_ahead(masses, self._gap) * slack + _TINY
        self._total = float(np.sum(masses)) * slack
        self._first = steps[0]

    def delta_upper(self, epsilon: np.ndarray) -> np.ndarray:
        """An upper bound on δ(ε): between two losses δ is linear in e^ε."""
        gap, last = self._gap, len(self._at_nodes) - 1
        lowered = epsilon - 16 * ULP * (epsilon + self._gap * self._half)
        lowered = np.where(np.isfinite(epsilon), lowered, 0.0)
        place = lowered / gap + (self._first - self._half)
        node = np.clip(np.floor(place), 0, last).astype(int)
        ahead = np.clip(lowered - gap * (node - (self._first - self._half)), 0.0, gap)
        following = np.where(node < last, self._at_nodes[np.minimum(node + 1, last)], _TINY)
        inside = self._at_nodes[node] * (np.expm1(ahead - gap) / math.expm1(-gap))
        # (e^u − 1)/(e^h − 1), 0 ≤ u ≤ h, for any h
        inside = inside + following * (np.exp(ahead - gap) * (np.expm1(-ahead) / math.expm1(-gap)))
        with np.errstate(under="ignore"):
            behind = np.minimum(place, 0.0) * gap
            below = self._total * -np.expm1(behind) + self._at_nodes[0] * np.exp(behind)
        bound = np.where(place < 0, below, inside)
        return np.asarray(np.where(np.isfinite(epsilon), np.minimum(up(bound), 1.0), 0.0))


@lru_cache(maxsize=64)
def lattice_gaussian_pair(sigma: float, shift: int) -> LatticeGaussianPair:
    """The pair, with what was computed for it."""
    return LatticeGaussianPair(sigma, shift)


@lru_cache(maxsize=1024)
def mu_of_discrete_gaussian(coordinates: int, sigma: float, shift: float) -> float | None:
    """A μ of discrete Gaussian noise for shifts up to `shift` in ℓ2 that move up to so many coordinates.

    Δ/√(σ² − τ²) + 22.5·m·e^{−2π²τ²} for the best τ from 0.4 on (theorem A1); None for σ below 0.45.
    """
    top = min(0.95 * sigma, _LARGEST_TAU)
    if top <= _LEAST_TAU:
        return None
    taus = np.linspace(_LEAST_TAU, top, _TAUS)
    excess = 22.5 * coordinates * np.exp(-2 * math.pi**2 * taus**2)
    with np.errstate(over="ignore"):
        tau = float(taus[np.argmin(shift / sigma / np.sqrt(1 - (taus / sigma) ** 2) + excess)])
    root = root_above(Fraction(shift) ** 2 / (Fraction(sigma) ** 2 - Fraction(tau) ** 2))
    return float_above(Fraction(root) + Fraction(up(22.5 * coordinates * math.exp(-2 * math.pi**2 * tau**2))))


def discrete_laplace_profile(scale: float, shift: int, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε), ε ≥ 0, of the discrete Laplace law of this scale for shifts up to `shift` in ℓ1; an upper bound.

    max over whole j ≥ 1 of (1 − e^{−j/s} + a − a·e^{j/s−g})/(1 + a), a = e^{−1/s}, g = k/s − ε; j = 1 gives 1 − e^−g.
    """
    left = np.maximum(float_above(Fraction(shift) / Fraction(scale)) - epsilon, 0.0)
    step = 1 / scale
    shrink = math.exp(-step)
    best = -np.expm1(-left)
    middle = np.floor((left / step + 1) / 2)
    for offset in (-1, 0, 1, 2):
        rise = np.maximum(middle + offset, 2.0) * step
        inside = -np.expm1(-rise) - shrink * np.expm1(np.minimum(rise - left, 700.0))
        best = np.maximum(best, inside)
    return np.asarray(np.minimum(up(np.maximum(best, 0.0) / (1 + shrink), 44), 1.0))


def _scale(name: str, value: Any) -> float:
    return number_between(name, positive_number(name, value), _LEAST_SCALE, _LARGEST_SCALE)


def _shift(name: str, value: Any) -> float:
    return number_between(name, positive_number(name, value), 1.0, _LARGEST_SHIFT)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianTerm(Term):
    """P(x) ∝ e^{−x²/2σ²} on each of `dim` integers, for whole numbers that move by at most `shift` in ℓ2.

    ρ = Δ²/2σ² (Canonne, Kamath and Steinke 2020) and a μ that exceeds Δ/σ by a relative 1/σ² or so (docs/proofs/
    accounts.md, theorem A1). On the line, and where one step is all, the profile is the sum over the lattice.
    """

    dim: int
    sigma: float
    shift: float
    kind: ClassVar[str] = "discrete-gaussian"
    checks: ClassVar = {"dim": positive_integer, "sigma": _scale, "shift": _shift}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shift / self.sigma > math.sqrt(_LARGEST_LOSS):
            raise ArgumentError(f"sigma is too small for a shift of {self.shift:g} steps; got {self.sigma:g}.")

    @property
    def _coordinates(self) -> int:
        """How many coordinates whole numbers with |v|₂ ≤ Δ can move."""
        return min(self.dim, math.floor(Fraction(self.shift) ** 2))

    @property
    def gaussian_mu(self) -> float | None:
        return mu_of_discrete_gaussian(self._coordinates, self.sigma, self.shift)

    @property
    def is_gaussian(self) -> bool:
        mu = self.gaussian_mu
        return mu is not None and mu * self.sigma <= self.shift * _AS_GOOD

    @property
    def zcdp_rho(self) -> float:
        return float_above(Fraction(self.shift) ** 2 / Fraction(self.sigma) ** 2 / 2)

    @property
    def spread(self) -> float:
        return self.shift / self.sigma

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        bound = np.asarray(np.exp(log_delta_of_zcdp(self.zcdp_rho, epsilon)))
        mu = self.gaussian_mu
        if mu is not None:
            bound = np.minimum(bound, np.exp(log_delta_upper(mu, epsilon)))
        if self._coordinates == 1 and self.sigma <= _LARGEST_SUMMED:
            # monotone likelihood ratios: the largest shift is the worst
            pair = lattice_gaussian_pair(self.sigma, math.floor(self.shift))
            bound = np.minimum(bound, pair.delta_upper(epsilon))
        return np.asarray(bound)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceTerm(Term):
    """P(x) ∝ e^{−|x|/s} on each of any number of integers, for whole numbers that move by at most `shift` in ℓ1.

    Its profile is attained by a shift of one coordinate (docs/proofs/accounts.md, theorem A2). μ, ρ and D_α are those
    of Laplace noise on the line with ε = k/s + 1/4s², which dominates it, or those of the pure ε where smaller.
    """

    scale: float
    shift: int
    kind: ClassVar[str] = "discrete-laplace"
    checks: ClassVar = {"scale": _scale, "shift": positive_integer}

    def __post_init__(self) -> None:
        super().__post_init__()
        number_between("shift", float(self.shift), 1.0, min(_LARGEST_SHIFT, _LARGEST_LOSS * self.scale))

    @property
    def pure_epsilon(self) -> float:
        return float_above(Fraction(self.shift) / Fraction(self.scale))

    @property
    def laplace_epsilon(self) -> float:
        return float_above(Fraction(self.shift) / Fraction(self.scale) + 1 / (4 * Fraction(self.scale) ** 2))

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return discrete_laplace_profile(self.scale, self.shift, epsilon)
