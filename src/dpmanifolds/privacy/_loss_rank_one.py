"""The privacy loss of two Riemannian Gaussians on the unit sphere or the unit hyperbolic space, by quadrature.

Notation of MATH.md section 5: footpoints at distance Δ, L = (d₂² − d₁²)/2σ², q = 2σ²t, A = {L ≥ t} = {d₂² − d₁² ≥ q}.
In polar coordinates (s, θ) around one footpoint the triangle with sides s, Δ and r has, by the half-angle formulas,
(1 + cos θ)/2 and (1 − cos θ)/2 as products without any cancellation; r = √(s² ± q) is the distance to the other
footpoint on the boundary of A, and the share of directions in A is I_{(1±c)/2}(a, a), a = (d−1)/2.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from dpmanifolds.distributions import gaussian_law
from dpmanifolds.distributions.radial import RadialLaw
from dpmanifolds.manifolds import Hyperbolic, Sphere
from dpmanifolds.privacy._loss_quadrature import LogIntegrals, log_direction_shares
from dpmanifolds.privacy._loss_tails import LossTails, probit_of_log, tail_on_spheres

__all__ = ["HyperbolicLimitPair", "HyperbolicPair", "SpherePair"]

_FINE, _COARSE = LogIntegrals(72), LogIntegrals(60)
_ROUNDING = 2e-13
_LOG_THIRD = math.log(1 / 3)
_PROBES = np.array([0.0, 0.3, 1.0, 2.0, 4.0, 6.0])
_BATCH = 1 << 16


class _RankOnePair(ABC):
    """What the sphere and the hyperbolic space share: polar integration of the tails of the loss."""

    largest: float
    _cut: float

    def __init__(self, law: Any, sigma: float, sensitivity: float) -> None:
        assert isinstance(law, RadialLaw)
        self.dim, self.sigma, self.sensitivity = law.manifold.dim, sigma, sensitivity
        self._radius = law.radius
        self._log_total = {rule: float(self._radial(rule, 0.0, self._end(0.0))[0]) for rule in (_FINE, _COARSE)}

    def _end(self, low: Any) -> Any:
        """A distance beyond which the radial law has nothing that counts, next to what it has from `low` on.

        Beyond max(low, mode) its log-density falls at least like −x²/2σ²; √d·σ is how far the directions pull.
        """
        return np.minimum(np.maximum(low, self._radius.mode) + (14 + math.sqrt(self.dim)) * self.sigma, self._cut)

    @abstractmethod
    def _first_end(self, q: np.ndarray) -> np.ndarray:
        """Where A ends, seen from the first footpoint."""

    @abstractmethod
    def _second_end(self, q: np.ndarray) -> np.ndarray:
        """Where A begins to hold all directions, seen from the second footpoint."""

    @abstractmethod
    def _shares(self, s: np.ndarray, r: np.ndarray, sides: tuple[Any, Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """(1 + cos θ)/2 and (1 − cos θ)/2; `sides` are Δ + s − r, s + r − Δ and r + Δ − s."""

    def _radial(self, rule: LogIntegrals, low: Any, high: Any) -> np.ndarray:
        """log of the unnormalised radial mass of [low, high]."""
        low, high = np.broadcast_arrays(np.atleast_1d(np.asarray(low, float)), np.asarray(high, float))
        return rule(self._radius.log_density, low, high)

    @cached_property
    def error(self) -> float:
        """Twice the largest relative difference of the 72-point and the 60-point rule over a range of thresholds, plus
        2e−13 for rounding (incomplete beta function, weights)."""
        scale = self.sensitivity / self.sigma
        probes = np.unique(np.append(_PROBES, self._turn / scale)) * scale
        probes = probes[probes < self.largest]
        fine, coarse = self._tails(probes, _FINE), self._tails(probes, _COARSE)
        with np.errstate(invalid="ignore"):
            difference = np.abs(np.array(fine) - np.array(coarse))
        return 2 * float(np.nanmax(difference)) + _ROUNDING

    @cached_property
    def at_zero(self) -> float:
        return -2 * float(probit_of_log(self._seen_from_second(np.zeros(1), _FINE))[0])

    @property
    def _turn(self) -> float:
        """The threshold at which the boundary of A passes through the first footpoint."""
        return self.sensitivity * self.sensitivity / self.sigma / self.sigma / 2

    def tails(self, thresholds: np.ndarray) -> LossTails:
        flat = np.asarray(thresholds, dtype=np.float64).ravel()
        step = _BATCH // 72
        parts = [self._tails(flat[i : i + step], _FINE) for i in range(0, max(flat.size, 1), step)]
        return LossTails(*(np.concatenate(rows).reshape(np.shape(thresholds)) for rows in zip(*parts, strict=True)))

    def _tails(self, thresholds: np.ndarray, rule: LogIntegrals) -> LossTails:
        inside = thresholds < self.largest
        q = 2 * self.sigma * self.sigma * np.where(inside, thresholds, 0.0)
        above, below = self._seen_from_first(q, rule)
        second = self._seen_from_second(q, rule)
        return LossTails(
            np.where(inside, above, -np.inf), np.where(inside, below, 0.0), np.where(inside, second, -np.inf)
        )

    def _seen_from_first(self, q: np.ndarray, rule: LogIntegrals) -> tuple[np.ndarray, np.ndarray]:
        """log share of A and of its complement under the first law: directions with cos θ ≤ c₁, r = √(s² + q)."""
        start = (q - self.sensitivity * self.sensitivity) / (2 * self.sensitivity)
        low = np.abs(start)
        end = np.maximum(self._first_end(q), low)
        high = np.minimum(end, self._end(low))
        inner = self._radial(rule, np.zeros_like(low), low)
        above = rule(self._first_integrand(q, start, 0), low, high)
        above = np.logaddexp(above, np.where(start < 0, inner, -np.inf)) - self._log_total[rule]
        above = np.minimum(above, 0.0)
        with np.errstate(divide="ignore"):
            below = np.log1p(-np.exp(above))
        rows = np.flatnonzero(above > _LOG_THIRD)
        if rows.size:
            # the complement is the smaller side: integrate it by itself
            inner = np.where(start < 0, -np.inf, inner)[rows]
            outer = self._radial(rule, end[rows], self._end(end[rows]))
            part = rule(self._first_integrand(q[rows], start[rows], 1), low[rows], high[rows])
            below[rows] = np.logaddexp(np.logaddexp(part, outer), inner) - self._log_total[rule]
        return above, np.minimum(below, 0.0)

    def _first_integrand(self, q: np.ndarray, start: np.ndarray, side: int) -> Callable[[np.ndarray], np.ndarray]:
        """log of the radial density times the share of directions in A (side 0) or not in A (side 1)."""
        delta, q, start = self.sensitivity, q[:, None], start[:, None]

        def log_integrand(s: np.ndarray) -> np.ndarray:
            r = np.sqrt(s * s + q)
            beyond = r - s + delta
            sides = (2 * delta * (s - start) / (s + delta + r), 2 * delta * (s + start) / beyond, beyond)
            shares = log_direction_shares(self.dim, *self._shares(s, r, sides))
            return np.asarray(self._radius.log_density(s) + shares[side])

        return log_integrand

    def _seen_from_second(self, q: np.ndarray, rule: LogIntegrals) -> np.ndarray:
        """log share of A under the second law: directions with cos θ ≥ c₂, r = √(s² − q)."""
        delta = self.sensitivity
        low = (q + delta * delta) / (2 * delta)
        end = np.maximum(self._second_end(q), low)
        high = np.minimum(end, self._end(low))
        root = np.sqrt(q)[:, None]
        # of s + r − Δ and r + Δ − s, one vanishes at the lower end: it is found from their product
        passed = (q >= delta * delta)[:, None]

        def log_share(s: np.ndarray) -> np.ndarray:
            r = np.sqrt(np.maximum((s - root) * (s + root), 0.0))
            product = 2 * delta * np.maximum(s - low[:, None], 0.0)
            turned = delta - q[:, None] / (r + s)
            behind = np.where(passed, r + s - delta, product / turned)
            beyond = np.where(passed, product / behind, turned)
            _, near = log_direction_shares(self.dim, *self._shares(s, r, (s + delta - r, behind, beyond)))
            return near

        outer = self._radial(rule, end, self._end(end))
        part = rule(lambda s: self._radius.log_density(s) + log_share(s), low, high)
        return np.asarray(np.minimum(np.logaddexp(part, outer) - self._log_total[rule], 0.0))


class SpherePair(_RankOnePair):
    """Unit sphere S^d, d ≥ 2, 0 < Δ < π. The loss is at most Δ(2π−Δ)/2σ², at the antipode of the second footpoint.

    For 0 ≤ q < Δ(2π−Δ) A lies, seen from the first footpoint, within s < ((2π−Δ)² − q)/(2(2π−Δ)), where
    √(s² + q) < π holds by itself; seen from the second, it holds all of s > ((2π−Δ)² + q)/(2(2π−Δ)).
    """

    _cut = math.pi

    def __init__(self, dim: int, sigma: float, sensitivity: float) -> None:
        self._around = 2 * math.pi - sensitivity
        self.largest = sensitivity * self._around / sigma / sigma / 2
        super().__init__(gaussian_law(Sphere(dim), sigma), sigma, sensitivity)

    def _first_end(self, q: np.ndarray) -> np.ndarray:
        return (self._around - q / self._around) / 2

    def _second_end(self, q: np.ndarray) -> np.ndarray:
        return (self._around + q / self._around) / 2

    def _shares(self, s: np.ndarray, r: np.ndarray, sides: tuple[Any, Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        ahead, behind, beyond = sides
        scale = np.sin(s) * math.sin(self.sensitivity)
        way = s + r + self.sensitivity
        # sin(way/2), from whichever side has the digits
        whole = np.where(way < math.pi, np.sin(way / 2), np.sin(np.maximum(self._around - s - r, 0.0) / 2))
        return whole * np.sin(ahead / 2) / scale, np.sin(behind / 2) * np.sin(beyond / 2) / scale

    def gaussian_tail(self, mu: float) -> float:
        return tail_on_spheres(self.sensitivity, self.sigma, mu)


class HyperbolicPair(_RankOnePair):
    """Unit hyperbolic space H^d, d ≥ 2; the loss is unbounded."""

    largest = math.inf
    _cut = math.inf

    def __init__(self, dim: int, sigma: float, sensitivity: float) -> None:
        super().__init__(gaussian_law(Hyperbolic(dim), sigma), sigma, sensitivity)

    def _first_end(self, q: np.ndarray) -> np.ndarray:
        return np.full_like(q, math.inf)

    def _second_end(self, q: np.ndarray) -> np.ndarray:
        return np.full_like(q, math.inf)

    def _shares(self, s: np.ndarray, r: np.ndarray, sides: tuple[Any, Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        ahead, behind, beyond = sides
        delta = self.sensitivity
        scale = np.expm1(-2 * s) * math.expm1(-2 * delta)
        far = np.expm1(-(s + delta + r)) * np.expm1(-ahead) / scale
        return far, np.exp(-ahead) * np.expm1(-behind) * np.expm1(-beyond) / scale

    def gaussian_tail(self, mu: float) -> float:
        """For μ > Δ/σ, by A ⊂ {d₁ ≥ s₀}, s₀ = σ²t/Δ − Δ/2, and the log-concavity of the radial law.

        With v = (log w)'(s₀) < 0: P₁(A) ≤ w(s₀)/|v|. From where this is below Φ(−y), y = t/μ − μ/2, and |v|σ²/Δ exceeds
        (y + 1/y)/μ ≥ −d log Φ(−y)/dt, both stay so, because the difference of the two slopes grows with t.
        """
        if mu <= self.sensitivity / self.sigma:
            return math.inf
        candidates = max(mu * mu, self._turn) * 2.0 ** (np.arange(400) / 4)
        s = self.sigma**2 * candidates / self.sensitivity - self.sensitivity / 2
        with np.errstate(all="ignore"):
            slope = -self._radius.derivative(s)
            log_bound = self._radius.log_density(s) - np.log(slope) - self._log_total[_FINE]
            y = candidates / mu - mu / 2
            proven = (slope > 0) & (y > 0) & (log_bound <= log_ndtr(-y))
            proven &= slope * self.sigma**2 / self.sensitivity >= (y + 1 / y) / mu
        return float(candidates[np.argmax(proven)]) if np.any(proven) else math.inf


class HyperbolicLimitPair:
    """The limit of `HyperbolicPair` as σ → ∞: the loss is (d−1) times a Busemann function, at most (d−1)Δ.

    With τ = t/(d−1): P₁(L ≥ t) = I_x(a, a), x = (1 − e^{−(Δ−τ)})/(1 − e^{−2Δ}); P₂(L ≥ t) = I_x(a, a),
    x = e^{−τ−Δ}(1 − e^{−(Δ−τ)})/(1 − e^{−2Δ}).
    """

    error = _ROUNDING

    def __init__(self, dim: int, sensitivity: float) -> None:
        self.dim, self.sensitivity = dim, sensitivity
        self.largest = (dim - 1) * sensitivity

    def tails(self, thresholds: np.ndarray) -> LossTails:
        delta, turn = self.sensitivity, thresholds / (self.dim - 1)
        scale = -math.expm1(-2 * delta)
        near, far = -np.expm1(turn - delta) / scale, -np.expm1(-turn - delta) / scale
        first = log_direction_shares(self.dim, near, np.exp(turn - delta) * far)
        second = log_direction_shares(self.dim, np.exp(-turn - delta) * near, far)
        return LossTails(first[0], first[1], second[0])

    @property
    def at_zero(self) -> float:
        return -2 * float(probit_of_log(self.tails(np.zeros(1)).above_second)[0])

    def gaussian_tail(self, mu: float) -> float:
        return math.inf
