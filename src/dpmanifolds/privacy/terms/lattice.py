"""Terms of integer noise on a lattice; all lengths in whole steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpmanifolds._validate import number_between, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy._normal import log_delta_upper
from dpmanifolds.privacy._renyi import laplace_renyi, laplace_rho, log_delta_of_zcdp, pure_renyi
from dpmanifolds.privacy.calibration import mu_of_laplace, mu_of_pure
from dpmanifolds.privacy.lattice_profiles import (
    LARGEST_SUMMED,
    discrete_laplace_profile,
    lattice_gaussian_pair,
    mu_of_discrete_gaussian,
)
from dpmanifolds.privacy.rounding import float_above, up
from dpmanifolds.privacy.terms.base import Term

__all__ = ["DiscreteGaussianTerm", "DiscreteLaplaceTerm"]

_LEAST_SCALE, _LARGEST_SCALE = 2.0**-12, 2.0**60
_LARGEST_SHIFT = 2.0**66
_LARGEST_LOSS = 1e6
_AS_GOOD = 1 + 1e-6


def _scale(name: str, value: float) -> float:
    return number_between(name, positive_number(name, value), _LEAST_SCALE, _LARGEST_SCALE)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "dim", positive_integer("dim", self.dim))
        object.__setattr__(self, "sigma", _scale("sigma", self.sigma))
        shift = number_between("shift", positive_number("shift", self.shift), 1.0, _LARGEST_SHIFT)
        object.__setattr__(self, "shift", shift)
        if shift / self.sigma > math.sqrt(_LARGEST_LOSS):
            raise ArgumentError(f"sigma is too small for a shift of {shift:g} steps; got {self.sigma:g}.")

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
        if self._coordinates == 1 and self.sigma <= LARGEST_SUMMED:
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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", _scale("scale", self.scale))
        object.__setattr__(self, "shift", positive_integer("shift", self.shift))
        number_between("shift", float(self.shift), 1.0, min(_LARGEST_SHIFT, _LARGEST_LOSS * self.scale))

    @property
    def pure_epsilon(self) -> float:
        return float_above(Fraction(self.shift) / Fraction(self.scale))

    @property
    def _on_the_line(self) -> float:
        return float_above(Fraction(self.shift) / Fraction(self.scale) + 1 / (4 * Fraction(self.scale) ** 2))

    @property
    def gaussian_mu(self) -> float:
        return min(mu_of_laplace(self._on_the_line), mu_of_pure(self.pure_epsilon))

    @property
    def zcdp_rho(self) -> float:
        epsilon = self.pure_epsilon
        return min(laplace_rho(self._on_the_line), float(up(epsilon * math.tanh(epsilon / 2))))

    def renyi(self, alpha: float) -> float:
        return min(laplace_renyi(self._on_the_line, alpha), pure_renyi(self.pure_epsilon, alpha))

    @property
    def spread(self) -> float:
        return self.pure_epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return discrete_laplace_profile(self.scale, self.shift, epsilon)
