"""Lengths of flat noise in R^d: those of a Gaussian (χ laws) and of the ℓ2-Laplace (gamma laws).

>>> from dpmanifolds.noise.norms import GaussianNorm, LaplaceNorm
>>> LaplaceNorm(3, 0.5).moment(1), round(GaussianNorm(2, 1.0).cdf(1.0), 9)
(1.5, 0.39346934)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpmanifolds._validate import checked_order, checked_probabilities, float_or_array, positive_number
from dpmanifolds.errors import ScaleOutOfRangeError

_SMALLEST_SCALE, _LARGEST_SCALE = 1e-100, 1e100


def checked_scale(sigma: float) -> float:
    """The scale of noise, or an error where it or its square is no float64 greater than 0."""
    sigma = positive_number("sigma", sigma)
    if not _SMALLEST_SCALE <= sigma <= _LARGEST_SCALE:
        raise ScaleOutOfRangeError(
            f"sigma must lie between {_SMALLEST_SCALE:g} and {_LARGEST_SCALE:g} for its square to be a float64; "
            f"got {sigma:g}."
        )
    return sigma


@dataclass(frozen=True)
class _Norm:
    dim: int
    sigma: float

    def __post_init__(self) -> None:
        checked_scale(self.sigma)


@dataclass(frozen=True)
class LaplaceNorm(_Norm):
    """|c| for the density ∝ e^{−|c|/σ} on R^d, which is σ·Gamma(d) (MATH.md section 3).

    E|c|^k = σ^k Γ(d+k)/Γ(d); P(|c| ≤ r) is the regularised incomplete gamma function P(d, r/σ).
    """

    def moment(self, order: float) -> float:
        """E|c|^order, order ≥ 0."""
        order = checked_order(order)
        return float(self.sigma**order * special.poch(self.dim, order))

    def cdf(self, radius: ArrayLike) -> Any:
        """P(|c| ≤ radius)."""
        scaled = np.maximum(np.asarray(radius, dtype=np.float64) / self.sigma, 0.0)
        return float_or_array(special.gammainc(self.dim, scaled))

    def quantile(self, probability: ArrayLike) -> Any:
        """The radius with P(|c| ≤ radius) = probability."""
        return float_or_array(self.sigma * special.gammaincinv(self.dim, checked_probabilities(probability)))


@dataclass(frozen=True)
class GaussianNorm(_Norm):
    """|c| for N(0, σ²I) on R^d, which is σ·χ_d (MATH.md section 3).

    E|c|^k = (√2σ)^k Γ((d+k)/2)/Γ(d/2); P(|c| ≤ r) is the regularised incomplete gamma function P(d/2, r²/2σ²).
    """

    def moment(self, order: float) -> float:
        """E|c|^order, order ≥ 0."""
        order = checked_order(order)
        return float((math.sqrt(2) * self.sigma) ** order * special.poch(self.dim / 2, order / 2))

    def cdf(self, radius: ArrayLike) -> Any:
        """P(|c| ≤ radius)."""
        scaled = np.maximum(np.asarray(radius, dtype=np.float64) / self.sigma, 0.0)
        return float_or_array(special.gammainc(self.dim / 2, scaled * scaled / 2))

    def quantile(self, probability: ArrayLike) -> Any:
        """The radius with P(|c| ≤ radius) = probability."""
        half_square = special.gammaincinv(self.dim / 2, checked_probabilities(probability))
        return float_or_array(self.sigma * np.sqrt(2 * half_square))
