"""Terms that are a promise and nothing else: pure, approximate, Gaussian, zero-concentrated, a grid of δ."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmanifolds._validate import number_between
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy._normal import log_delta_upper
from dpmanifolds.privacy._renyi import log_delta_of_zcdp, pure_renyi
from dpmanifolds.privacy.calibration import probability
from dpmanifolds.privacy.loss_grid import from_profile, nodes_around
from dpmanifolds.privacy.rounding import up
from dpmanifolds.privacy.terms.base import Term, within_floats

__all__ = ["ApproxTerm", "GaussianTerm", "ProfileTerm", "PureTerm", "ZcdpTerm"]


def _randomised_response(epsilon: float, at: np.ndarray) -> np.ndarray:
    """(e^ε − e^ε')₊/(1 + e^ε) = (1 − e^{ε' − ε})₊/(1 + e^−ε)."""
    return np.asarray(up(np.maximum(-np.expm1(np.minimum(at - epsilon, 0.0)), 0.0) / (1 + math.exp(-epsilon))))


@dataclass(frozen=True, kw_only=True)
class PureTerm(Term):
    """ε-DP, and nothing else known: the profile of randomised response."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", within_floats("epsilon", self.epsilon))

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    def renyi(self, alpha: float) -> float:
        return pure_renyi(self.epsilon, alpha)

    @property
    def spread(self) -> float:
        return self.epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return _randomised_response(self.epsilon, epsilon)

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        return nodes_around(self.epsilon / interval)


@dataclass(frozen=True, kw_only=True)
class ApproxTerm(Term):
    """(ε, δ)-DP at one point and nothing else known: δ + (1 − δ)·randomised response (Kairouz et al. 2015)."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approx"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", within_floats("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    @property
    def spread(self) -> float:
        return self.epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        inside = self.delta + (1 - self.delta) * _randomised_response(self.epsilon, epsilon)
        return np.where(epsilon >= self.epsilon, self.delta, inside)

    def reach(self, tail: float) -> float:
        return self.epsilon

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        return nodes_around(self.epsilon / interval)


@dataclass(frozen=True, kw_only=True)
class GaussianTerm(Term):
    """μ-Gaussian-DP."""

    mu: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", within_floats("mu", self.mu))

    @property
    def gaussian_mu(self) -> float:
        return self.mu

    @property
    def is_gaussian(self) -> bool:
        return True

    @property
    def spread(self) -> float:
        return self.mu

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_delta_upper(self.mu, epsilon)))


@dataclass(frozen=True, kw_only=True)
class ZcdpTerm(Term):
    """ρ-zCDP."""

    rho: float
    kind: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", within_floats("rho", self.rho))

    @property
    def zcdp_rho(self) -> float:
        return self.rho

    @property
    def spread(self) -> float:
        return math.sqrt(2 * self.rho)

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_delta_of_zcdp(self.rho, epsilon)))


@dataclass(frozen=True, kw_only=True)
class ProfileTerm(Term):
    """A privacy-loss grid: upper bounds on δ at ε = 0, interval, 2·interval, …, in both directions."""

    interval: float
    deltas: tuple[float, ...]
    kind: ClassVar[str] = "profile"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "interval", within_floats("interval", self.interval))
        values = tuple(number_between("deltas", value, 0, 1) for value in self.deltas)
        if len(values) < 2 or any(later > earlier for earlier, later in itertools.pairwise(values)):
            raise ArgumentError("deltas must be at least two numbers that do not increase; take running minima first.")
        object.__setattr__(self, "deltas", values)

    @property
    def spread(self) -> float:
        return max(self.interval, 2 * self.deltas[0])

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        right = from_profile(
            lambda _: np.asarray(self.deltas), interval=self.interval, nodes=np.arange(len(self.deltas))
        )
        return right.delta(epsilon)

    def reach(self, tail: float) -> float:
        return self.interval * (len(self.deltas) - 1)
