"""The privacy loss of two Riemannian Gaussians on the unit sphere or the unit hyperbolic space, by quadrature.

Notation of MATH.md section 5: footpoints at distance Δ, L = (d₂² − d₁²)/2σ², q = 2σ²t, A = {L ≥ t} = {d₂² − d₁² ≥ q}.
In polar coordinates (s, θ) around one footpoint the triangle with sides s, Δ and r has, by the half-angle formulas,
(1 + cos θ)/2 and (1 − cos θ)/2 as products without any cancellation; r = √(s² ± q) is the distance to the other
footpoint on the boundary of A, and the share of directions in A is I_{(1±c)/2}(a, a), a = (d−1)/2.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from dpmanifolds.errors import ArgumentError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.manifolds import Hyperbolic, Manifold, Sphere
from dpmanifolds.manifolds.base import check_manifold
from dpmanifolds.privacy.loss_pair import (
    CirclePair,
    FlatPair,
    LogIntegrals,
    LossPair,
    LossTails,
    log_direction_shares,
    probit_of_log,
    tail_on_spheres,
)
from dpmanifolds.privacy.radial import RadialDensity, gaussian_radius
from dpmanifolds.privacy.rounding import ULP

_RULE = LogIntegrals(136)
_ROUNDING = 2e-13
_LOG_THIRD = math.log(1 / 3)
_SMALLEST, _LARGEST = 1e-12, 1e6
_LARGEST_DRIFT = 3e3
_LARGEST_RATIO = 1e5


class _RankOnePair(LossPair):
    """What the sphere and the hyperbolic space share: polar integration of the tails of the loss."""

    _cut: float

    def __init__(self, dim: int, radius: RadialDensity, sigma: float, sensitivity: float) -> None:
        self.dim, self.sigma, self.sensitivity = dim, sigma, sensitivity
        self._radius = radius
        total, error = self._radial(np.zeros(1), self._end(np.zeros(1)))
        self._log_total, self._total_error = float(total[0]), float(error[0])

    def _end(self, low: Any) -> Any:
        """A distance beyond which the radial law has nothing that counts, next to what it has from `low` on.

        Beyond max(low, mode) its log-density falls at least like −x²/2σ²; √d·σ is how far the directions pull.
        """
        return np.minimum(np.maximum(low, self._radius.mode) + (14 + math.sqrt(self.dim)) * self.sigma, self._cut)

    @abstractmethod
    def _first_width(self, q: np.ndarray, t: np.ndarray) -> np.ndarray:
        """From |q − Δ²|/2Δ to where A ends, seen from the first footpoint."""

    @abstractmethod
    def _second_width(self, q: np.ndarray, t: np.ndarray) -> np.ndarray:
        """From (q + Δ²)/2Δ to where A begins to hold all directions, seen from the second footpoint."""

    @abstractmethod
    def _rests(self, q: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From those two ends to the antipode of the footpoint."""

    @abstractmethod
    def _log_density(self, s: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The radial law's, relative to its mode; `rest` is the distance from s to the antipode."""

    @abstractmethod
    def _shares(
        self, s: np.ndarray, r: np.ndarray, sides: tuple[Any, Any, Any], left: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(1 + cos θ)/2 and (1 − cos θ)/2; `sides` are Δ + s − r, s + r − Δ and r + Δ − s, `left`, `rest`
        the distances from s to the end and to the antipode."""

    def _radial(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log of the unnormalised radial mass of [low, high], and its relative error."""
        return self._radial_before(low, high - low, self._cut - high)

    def _radial_before(self, low: np.ndarray, length: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `_radial`, of an interval that ends `rest` before the antipode."""

        def log_density(ahead: np.ndarray, behind: np.ndarray) -> np.ndarray:
            return self._log_density(low[:, None] + ahead, rest[:, None] + behind)

        return _RULE(log_density, length)

    def _radial_beyond(self, low: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `_radial`, from `low`, `rest` before the antipode, on; nothing where `low` is infinite."""
        finite = np.isfinite(low)
        start = np.where(finite, low, 0.0)
        length = np.where(finite, np.minimum(self._end(start) - start, rest), 0.0)
        return self._radial_before(start, length, rest - length)

    @cached_property
    def _rounding(self) -> float:
        """What rounding adds: per dimension some 20 operations on logarithms, and the incomplete beta function; on H^d
        also that of s ≈ (d−1)σ² itself, where the log-density has slopes up to 9/σ."""
        drift = 0.0 if math.isfinite(self._cut) else (self.dim - 1) * self.sigma
        return ULP * (400 + 40 * self.dim + 60 * drift)

    @cached_property
    def at_zero(self) -> float:
        return -2 * float(probit_of_log(self._seen_from_second(np.zeros(1), np.zeros(1))[0])[0])

    @property
    def _turn(self) -> float:
        """The threshold at which the boundary of A passes through the first footpoint."""
        return self.sensitivity * self.sensitivity / self.sigma / self.sigma / 2

    def _tails(self, t: np.ndarray) -> LossTails:
        inside = t < self.largest
        t = np.where(inside, t, 0.0)
        q = 2 * self.sigma * self.sigma * t
        above, below, error = self._seen_from_first(q, t)
        second, other = self._seen_from_second(q, t)
        return LossTails(
            np.where(inside, above, -np.inf),
            np.where(inside, below, 0.0),
            np.where(inside, second, -np.inf),
            np.where(inside, np.maximum(error, other), 0.0) + self._total_error + self._rounding,
        )

    def _seen_from_first(self, q: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log share of A and of its complement under the first law: directions with cos θ ≤ c₁, r = √(s² + q)."""
        start = (q - self.sensitivity * self.sensitivity) / (2 * self.sensitivity)
        low, width = np.abs(start), self._first_width(q, t)
        length = np.minimum(width, self._end(low) - low)
        inner, error = self._radial(np.zeros_like(low), low)
        ends = (width - length, self._rests(q, t)[0])
        part, other = _RULE(self._first_integrand(q, start, *ends, 0), length)
        above, error = _added((part, other), (np.where(start < 0, inner, -np.inf), error))
        above = np.minimum(above - self._log_total, 0.0)
        with np.errstate(divide="ignore"):
            below = np.log1p(-np.exp(above))
        rows = np.flatnonzero(above > _LOG_THIRD)
        if rows.size:
            # the complement is the smaller side: integrate it by itself
            few = (ends[0][rows], ends[1][rows])
            pieces = (
                _RULE(self._first_integrand(q[rows], start[rows], *few, 1), length[rows]),
                self._radial_beyond((low + width)[rows], few[1]),
                self._radial(np.zeros(rows.size), np.where(start < 0, 0.0, low)[rows]),
            )
            part, other = _added(*pieces)
            below[rows] = part - self._log_total
            error[rows] = np.maximum(error[rows], other)
        return above, np.minimum(below, 0.0), error

    def _first_integrand(
        self, q: np.ndarray, start: np.ndarray, to_end: np.ndarray, to_antipode: np.ndarray, side: int
    ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """log of the radial density times the share of directions in A (side 0) or not in A (side 1)."""
        delta, q, start = self.sensitivity, q[:, None], start[:, None]
        low, more, last = np.abs(start), to_end[:, None], to_antipode[:, None]

        def log_integrand(ahead: np.ndarray, behind: np.ndarray) -> np.ndarray:
            s, twice = low + ahead, 2 * low + ahead
            r = np.sqrt(s * s + q)
            # s − start and s + start: one of them is the distance from the lower end
            less, plus = np.where(start < 0, twice, ahead), np.where(start < 0, ahead, twice)
            beyond = q / (r + s) + delta
            sides = (2 * delta * less / (s + delta + r), 2 * delta * plus / beyond, beyond)
            left = behind + more
            shares = log_direction_shares(self.dim, *self._shares(s, r, sides, left, left + last))
            return np.asarray(self._log_density(s, left + last) + shares[side])

        return log_integrand

    def _seen_from_second(self, q: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log share of A under the second law, directions with cos θ ≥ c₂, r = √(s² − q); and its relative error."""
        delta = self.sensitivity
        low, width = (q + delta * delta) / (2 * delta), self._second_width(q, t)
        length = np.minimum(width, self._end(low) - low)
        rest = self._rests(q, t)[1]
        root, more, last = np.sqrt(q)[:, None], (width - length)[:, None], rest[:, None]
        # of s + r − Δ and r + Δ − s, one vanishes at the lower end: it is found from their product
        passed = (q >= delta * delta)[:, None]
        short = (root - delta) ** 2 / (2 * delta)

        def log_integrand(ahead: np.ndarray, behind: np.ndarray) -> np.ndarray:
            s = low[:, None] + ahead
            r = np.sqrt((short + ahead) * (s + root))
            product, drop = 2 * delta * ahead, q[:, None] / (r + s)
            turned = delta - drop
            back = np.where(passed, r + s - delta, product / turned)
            beyond = np.where(passed, product / back, turned)
            left = behind + more
            shares = self._shares(s, r, (delta + drop, back, beyond), left, left + last)
            return np.asarray(self._log_density(s, left + last) + log_direction_shares(self.dim, *shares)[1])

        second, error = _added(_RULE(log_integrand, length), self._radial_beyond(low + width, rest))
        return np.minimum(second - self._log_total, 0.0), error


def _added(*parts: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of a sum of positive numbers and its relative error, from those of the numbers."""
    total = np.logaddexp.reduce([part for part, _ in parts])
    shift = np.where(np.isfinite(total), total, 0.0)
    return total, np.asarray(sum(np.exp(part - shift) * error for part, error in parts))


class SpherePair(_RankOnePair):
    """Unit sphere S^d, d ≥ 2, 0 < Δ < π. The loss is at most Δ(2π−Δ)/2σ², at the antipode of the second footpoint.

    For 0 ≤ q < Δ(2π−Δ) A lies, seen from the first footpoint, within s < ((2π−Δ)² − q)/(2(2π−Δ)), where
    √(s² + q) < π holds by itself; seen from the second, it holds all of s > ((2π−Δ)² + q)/(2(2π−Δ)).
    """

    _cut = math.pi

    def __init__(self, dim: int, sigma: float, sensitivity: float) -> None:
        self._around = 2 * math.pi - sensitivity
        self.largest = sensitivity * self._around / sigma / sigma / 2
        super().__init__(dim, gaussian_radius(Sphere(dim), sigma), sigma, sensitivity)

    def _gap(self, t: np.ndarray) -> np.ndarray:
        """1 − q/(Δ(2π−Δ)): how far the threshold is from the largest loss."""
        return (self.largest - t) / self.largest

    def _first_width(self, q: np.ndarray, t: np.ndarray) -> np.ndarray:
        near = (math.pi - self.sensitivity) * (1 + q / (self.sensitivity * self._around))
        return np.where(q < self.sensitivity * self.sensitivity, near, math.pi * self._gap(t))

    def _second_width(self, q: np.ndarray, t: np.ndarray) -> np.ndarray:
        return (math.pi - self.sensitivity) * self._gap(t)

    def _rests(self, q: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (self.sensitivity + q / self._around) / 2, self.sensitivity * self._gap(t) / 2

    def _log_density(self, s: np.ndarray, rest: np.ndarray) -> np.ndarray:
        near = np.log(np.sin(np.minimum(s, rest)) / np.abs(np.sin(s)))
        return np.asarray(self._radius.log_density(s) + (self.dim - 1) * near)

    def _shares(
        self, s: np.ndarray, r: np.ndarray, sides: tuple[Any, Any, Any], left: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        ahead, behind, beyond = sides
        scale = np.sin(np.minimum(s, rest)) * math.sin(self.sensitivity)
        way = s + r + self.sensitivity
        # sin(way/2), from whichever side has the digits: (2π−Δ−s−r)(2π−Δ−s+r) = 2(2π−Δ)·(distance from the end)
        back = 2 * self._around * left / (self._around - s + r)
        whole = np.where(way < math.pi, np.sin(way / 2), np.sin(back / 2))
        return whole * np.sin(ahead / 2) / scale, np.sin(behind / 2) * np.sin(beyond / 2) / scale

    def gaussian_tail(self, mu: float) -> float:
        return tail_on_spheres(self.sensitivity, self.sigma, mu)


class HyperbolicPair(_RankOnePair):
    """Unit hyperbolic space H^d, d ≥ 2; the loss is unbounded."""

    _cut = math.inf

    def __init__(self, dim: int, sigma: float, sensitivity: float) -> None:
        super().__init__(dim, gaussian_radius(Hyperbolic(dim), sigma), sigma, sensitivity)

    def _first_width(self, q: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.full_like(q, math.inf)

    _second_width = _first_width

    def _rests(self, q: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(q, math.inf), np.full_like(q, math.inf)

    def _log_density(self, s: np.ndarray, rest: np.ndarray) -> np.ndarray:
        return np.asarray(self._radius.log_density(s))

    def _shares(
        self, s: np.ndarray, r: np.ndarray, sides: tuple[Any, Any, Any], left: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
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
            log_bound = self._radius.log_density(s) - np.log(slope) - self._log_total
            y = candidates / mu - mu / 2
            proven = (slope > 0) & (y > 0) & (log_bound <= log_ndtr(-y))
            proven &= slope * self.sigma**2 / self.sensitivity >= (y + 1 / y) / mu
        return float(candidates[np.argmax(proven)]) if np.any(proven) else math.inf


class HyperbolicLimitPair(LossPair):
    """The limit of `HyperbolicPair` as σ → ∞: the loss is (d−1) times a Busemann function, at most (d−1)Δ.

    With τ = t/(d−1): P₁(L ≥ t) = I_x(a, a), x = (1 − e^{−(Δ−τ)})/(1 − e^{−2Δ}); P₂(L ≥ t) = I_x(a, a),
    x = e^{−τ−Δ}(1 − e^{−(Δ−τ)})/(1 − e^{−2Δ}).
    """

    def __init__(self, dim: int, sensitivity: float) -> None:
        self.dim, self.sensitivity = dim, sensitivity
        self.largest = (dim - 1) * sensitivity

    def _tails(self, t: np.ndarray) -> LossTails:
        delta, turn = self.sensitivity, t / (self.dim - 1)
        scale = -math.expm1(-2 * delta)
        near, far = -np.expm1(turn - delta) / scale, -np.expm1(-turn - delta) / scale
        first = log_direction_shares(self.dim, near, np.exp(turn - delta) * far)
        second = log_direction_shares(self.dim, np.exp(-turn - delta) * near, far)
        return LossTails(first[0], first[1], second[0], np.full_like(first[0], _ROUNDING + 40 * ULP * self.dim))


@dataclass(frozen=True)
class ModelSpace:
    """Flat space (sign 0), the sphere (1; the circle for dim 1) or hyperbolic space (−1), of curvature sign·root²."""

    manifold: Manifold
    sign: int
    dim: int
    root: float

    def pair(self, sigma: float, sensitivity: float) -> LossPair:
        """The worst pair: footpoints at distance Δ, in units in which the curvature is −1, 0 or 1."""
        if self.sign == 0:
            return FlatPair(sensitivity / sigma)
        self.check_sensitivity(sensitivity)
        scale, delta = self.root * sigma, self.root * sensitivity
        self._check_scales(sigma, scale, delta)
        if self.sign < 0:
            return HyperbolicPair(self.dim, scale, delta)
        return SpherePair(self.dim, scale, delta) if self.dim > 1 else CirclePair(scale, delta)

    def check_sensitivity(self, sensitivity: float) -> None:
        """Points of a sphere are less than π/√κ apart, but for antipodes."""
        if self.sign > 0 and not self.root * sensitivity < math.pi:
            raise ArgumentError(
                f"sensitivity = {sensitivity:g} on {self.manifold!r}: no two points are further apart than "
                f"{math.pi / self.root:g}, and the sensitivity must be below that. Use more records or a smaller ball."
            )

    def _check_scales(self, sigma: float, scale: float, delta: float) -> None:
        if min(scale, delta) < _SMALLEST or scale > _LARGEST:
            raise ScaleOutOfRangeError(
                f"sigma = {sigma:g} on {self.manifold!r}: times the square root of the curvature, sigma must lie "
                f"between {_SMALLEST:g} and {_LARGEST:g} and the sensitivity above {_SMALLEST:g} for float64 to "
                "resolve the law."
            )
        if delta > _LARGEST_RATIO * scale:
            raise ScaleOutOfRangeError(
                f"the sensitivity is {delta / scale:g} times sigma = {sigma:g}: nothing is hidden at such a scale, and "
                f"float64 does not resolve the loss. Use sigma ≥ {delta / self.root / _LARGEST_RATIO:g}."
            )
        if self.sign < 0 and scale * (self.dim - 1) > _LARGEST_DRIFT:
            raise ScaleOutOfRangeError(
                f"sigma = {sigma:g} on {self.manifold!r} is so large that float64 does not resolve the law, and mu has "
                f"long reached its floor. Use sigma ≤ {_LARGEST_DRIFT / (self.dim - 1) / self.root:g}, or "
                " WrappedGaussian, which has mu = sensitivity/sigma for every sigma."
            )


def model_space(manifold: Any) -> ModelSpace:
    """The model space that `manifold` is isometric to, or an error that names the wrapped Gaussian.

    Simply connected and flat means Euclidean; a circle is known by its length, another `is_model_space` by its
    curvature. On shape spaces of more than three landmarks, other Grassmannians and rotations, affine-invariant SPD and
    curved products the worst displacement is not known (MATH.md section 5).
    """
    check_manifold(manifold)
    if manifold.is_flat:
        return ModelSpace(manifold, 0, manifold.dim, 0.0)
    if manifold.is_model_space:
        if manifold.dim == 1:
            return ModelSpace(manifold, 1, 1, math.pi / manifold.injectivity_radius)
        curvature, _ = manifold.curvature_bounds
        length = 1 / math.sqrt(abs(curvature))
        return ModelSpace(manifold, 1 if curvature > 0 else -1, manifold.dim, 1 / length)
    raise NotAvailableError(
        f"the Gaussian-DP guarantee of the Riemannian Gaussian on {manifold!r} is not known: the worst pair of "
        "footpoints is proven for flat spaces, spheres and hyperbolic spaces only. Use WrappedGaussian, which adds "
        "noise in the tangent space at the public centre and has mu = sensitivity/sigma exactly."
    )
