"""Terms of continuous noise with a profile of its own: Laplace, ℓ2-Laplace, the intrinsic Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._validate import choice, number_between, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError, ConvergenceError
from dpmanifolds.privacy._normal import log_delta_upper
from dpmanifolds.privacy._renyi import laplace_renyi, laplace_rho, pure_renyi
from dpmanifolds.privacy.calibration import mu_of_laplace, mu_of_pure
from dpmanifolds.privacy.l2_laplace import L2LaplacePair, l2_laplace_pair
from dpmanifolds.privacy.loss_grid import where_below
from dpmanifolds.privacy.rounding import float_above, up
from dpmanifolds.privacy.terms.base import LARGEST_INTERVAL, Term, thinned, within_floats

__all__ = ["L2LaplaceTerm", "LaplaceTerm", "RiemannianGaussianTerm"]

_MOST_DIMENSIONS = 10**6
_LEAST_SHIFT = 1e-6


@dataclass(frozen=True, kw_only=True)
class LaplaceTerm(Term):
    """Laplace noise on the real line with Δ/σ = ε: δ(ε') = 1 − e^{(ε' − ε)/2} for ε' ≤ ε.

    It dominates every law ∝ e^{−dist/σ}, in any space, moved along a path of length Δ (docs/proofs/accounts.md, A2).
    """

    epsilon: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", within_floats("epsilon", self.epsilon))

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    @property
    def gaussian_mu(self) -> float:
        return mu_of_laplace(self.epsilon)

    @property
    def zcdp_rho(self) -> float:
        """The Kullback–Leibler divergence ε + e^−ε − 1 (docs/accounting.md): below ε·tanh(ε/2)."""
        return laplace_rho(self.epsilon)

    def renyi(self, alpha: float) -> float:
        """(α − 1)D_α = log(α/(2α − 1)·e^{(α−1)ε} + (α − 1)/(2α − 1)·e^{−αε}) (Mironov 2017, Proposition 6)."""
        return laplace_renyi(self.epsilon, alpha)

    @property
    def spread(self) -> float:
        return self.epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(up(-np.expm1(np.minimum((epsilon - self.epsilon) / 2, 0.0))))


@dataclass(frozen=True, kw_only=True)
class L2LaplaceTerm(Term):
    """ℓ2-Laplace noise ∝ e^{−|y|/σ} in R^d, d ≥ 2, for a statistic that moves by at most `shift`·σ (MATH.md, B6).

    Its loss is at most `shift`, but hardly ever near it: k releases lose far less than k pure ε.
    """

    dim: int
    shift: float
    kind: ClassVar[str] = "l2-laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "dim", positive_integer("dim", self.dim))
        if not 2 <= self.dim <= _MOST_DIMENSIONS:
            raise ArgumentError(f"dim must be from 2 to {_MOST_DIMENSIONS}; got {self.dim}. On the line use laplace.")
        shift = number_between("shift", positive_number("shift", self.shift), _LEAST_SHIFT, LARGEST_INTERVAL)
        object.__setattr__(self, "shift", shift)

    def _pair(self) -> L2LaplacePair:
        return l2_laplace_pair(self.dim, self.shift)

    @property
    def pure_epsilon(self) -> float:
        return self.shift

    @property
    def gaussian_mu(self) -> float:
        """The supremum over all thresholds; that of the pure ε where it does not settle."""
        try:
            return min(self._pair().mu, mu_of_pure(self.shift))
        except ConvergenceError:
            return mu_of_pure(self.shift)

    @property
    def zcdp_rho(self) -> float:
        """The smaller of μ²/2 and ε·tanh(ε/2)."""
        return min(float_above(Fraction(self.gaussian_mu) ** 2 / 2), float(up(self.shift * math.tanh(self.shift / 2))))

    def renyi(self, alpha: float) -> float:
        most = min(pure_renyi(self.shift, alpha), float_above(Fraction(self.zcdp_rho) * Fraction(alpha)))
        try:
            return min(self._pair().renyi(alpha), most)
        except ConvergenceError:
            return most

    @property
    def spread(self) -> float:
        return self.shift / math.sqrt(self.dim)

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        bound = self._pair().delta_upper(np.atleast_1d(np.asarray(epsilon, dtype=np.float64)))
        return np.reshape(bound, np.shape(epsilon))

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        return thinned(super()._nodes(interval, tail))


@lru_cache(maxsize=64)
def _riemannian_bound(kind: str, dim: int, curvature: float, sigma: float, sensitivity: float) -> Any:
    from dpmanifolds.manifolds import Hyperbolic, Sphere
    from dpmanifolds.privacy.gaussian_dp import riemannian_gaussian_profile

    family = Sphere if kind == "sphere" else Hyperbolic
    return riemannian_gaussian_profile(family(dim, curvature=curvature), sigma, sensitivity)


@dataclass(frozen=True, kw_only=True)
class RiemannianGaussianTerm(Term):
    """The intrinsic Gaussian of scale σ on S^d or H^d, for a statistic that moves by at most Δ (MATH.md section 5)."""

    manifold: str
    dim: int
    curvature: float
    sigma: float
    sensitivity: float
    kind: ClassVar[str] = "riemannian-gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("manifold", self.manifold, ("sphere", "hyperbolic"))
        object.__setattr__(self, "dim", positive_integer("dim", self.dim))
        object.__setattr__(self, "sigma", positive_number("sigma", self.sigma))
        object.__setattr__(self, "sensitivity", positive_number("sensitivity", self.sensitivity))
        sign = 1 if self.manifold == "sphere" else -1
        object.__setattr__(self, "curvature", sign * positive_number("|curvature|", sign * self.curvature))

    def _bound(self) -> Any:
        return _riemannian_bound(self.manifold, self.dim, self.curvature, self.sigma, self.sensitivity)

    @property
    def pure_epsilon(self) -> float | None:
        """The largest loss Δ(2π/√κ − Δ)/2σ² on spheres."""
        largest = float(self._bound().largest_loss)
        return float(up(largest)) if math.isfinite(largest) else None

    @property
    def gaussian_mu(self) -> float:
        return float(self._bound().mu)

    @property
    def zcdp_rho(self) -> float:
        rho = float_above(Fraction(self.gaussian_mu) ** 2 / 2)
        epsilon = self.pure_epsilon
        return rho if epsilon is None else min(rho, float(up(epsilon * math.tanh(epsilon / 2))))

    def renyi(self, alpha: float) -> float:
        """That of the worst pair, rounded up by 1e−9 of itself; ρα where its integral does not settle."""
        most = float_above(Fraction(self.zcdp_rho) * Fraction(alpha))
        try:
            return min(float(self._bound().renyi(alpha)) * (1 + 1e-9 + 4 * float(self._bound().error)), most)
        except ConvergenceError:
            return most

    @property
    def spread(self) -> float:
        return self.sensitivity / self.sigma

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        bound = np.asarray(self._bound().delta_upper(np.atleast_1d(epsilon)), dtype=np.float64)
        return np.reshape(bound, np.shape(epsilon))

    def reach(self, tail: float) -> float:
        mu = self.gaussian_mu
        return where_below(lambda at: np.exp(log_delta_upper(mu, at)), tail, start=mu)

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        return thinned(super()._nodes(interval, tail))
