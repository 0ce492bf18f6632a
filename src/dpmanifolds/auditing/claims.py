"""What a promise lets an attacker do, and what an attack's error rates say against it.

>>> from dpmanifolds.auditing import Claim
>>> from dpmanifolds.privacy import Guarantee
>>> claim = Claim.of(Guarantee.pure(1.0))
>>> claim.name, claim.value
('ε', 1.0)
>>> round(float(claim.implied(false_alarms=0.1, misses=0.6)), 6)
1.386294

A test that tells two neighbours apart with false alarms α and misses β contradicts every promise that is stronger than
what `implied` says: ε ≥ ln((1 − δ − β)/α) for (ε, δ)-DP, μ ≥ Φ⁻¹(1 − α) − Φ⁻¹(β) for Gaussian DP, and
ρ ≥ sup_a D_a(1 − β ‖ α)/a over orders a ≥ 1 for zCDP, D_a the Rényi divergence of the test's two coins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpmanifolds.privacy import Guarantee

__all__ = ["Claim"]

_ORDERS = np.concatenate([[1.0], 1 + np.geomspace(1e-2, 63.0, 24)])


@dataclass(frozen=True)
class Claim:
    """One number that a guarantee promises, in the form that an attack can contradict.

    >>> from dpmanifolds.auditing import Claim
    >>> claim = Claim("ε", 1.0)
    >>> float(claim.implied(false_alarms=0.1, misses=0.1)) > claim.value  # such a test would break the promise
    True
    """

    name: str
    """"ε" (pure, or at `delta`), "μ" (Gaussian DP) or "√2ρ" (zCDP, on the scale of μ)."""
    value: float
    delta: float = 0.0
    """For the name "ε"."""

    @classmethod
    def of(cls, guarantee: Guarantee, delta: float | None = None) -> Self:
        """The parameter of the guarantee where all its terms are of one kind; else, or given `delta`, ε at δ (1e−5)."""
        kinds = {term.kind for term in guarantee.terms}
        if delta is None and kinds <= {"gaussian", "riemannian-gaussian"}:
            return cls("μ", guarantee.as_gaussian().mu)
        if delta is None and kinds <= {"zcdp", "discrete-gaussian"}:
            return cls("√2ρ", math.sqrt(2 * guarantee.as_zcdp().rho))
        if delta is None and kinds <= {"pure", "laplace", "discrete-laplace"}:
            return cls("ε", guarantee.as_pure().epsilon)
        delta = 1e-5 if delta is None else delta
        return cls("ε", guarantee.epsilon(delta), delta)

    def implied(self, false_alarms: ArrayLike, misses: ArrayLike) -> np.ndarray:
        """The smallest value of the claimed number that allows a test with these error rates; at least 0."""
        alpha, beta = np.asarray(false_alarms, dtype=np.float64), np.asarray(misses, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.name == "μ":
                value = -special.ndtri(alpha) - special.ndtri(beta)
            elif self.name == "√2ρ":
                value = np.sqrt(2 * _rho(alpha, 1 - beta))
            else:
                value = np.log((1 - self.delta - beta) / alpha)
        return np.where(np.isnan(value) | (1 - beta <= alpha), 0.0, np.maximum(value, 0.0))

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.4g}" + (f" at δ = {self.delta:g}" if self.delta else "")


def _rho(alpha: np.ndarray, power: np.ndarray) -> np.ndarray:
    """sup over orders a of D_a(Bernoulli(power) ‖ Bernoulli(alpha))/a; a finite set of orders only lowers it."""
    logs = np.log(power), np.log(alpha), np.log1p(-power), np.log1p(-alpha)
    best = special.xlogy(power, power / alpha) + special.xlogy(1 - power, (1 - power) / (1 - alpha))
    for order in _ORDERS[1:]:
        hit, miss = order * logs[0] + (1 - order) * logs[1], order * logs[2] + (1 - order) * logs[3]
        best = np.fmax(best, np.logaddexp(hit, miss) / ((order - 1) * order))
    return np.asarray(best)
