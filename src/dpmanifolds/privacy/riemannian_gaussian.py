"""Gaussian DP of the Riemannian Gaussian: the exact privacy profile, μ and its inverse, with a stated error.

A statistic that moves by at most Δ between neighbours is released as a draw from the density ∝ exp(−ρ(η, ·)²/2σ²).
On flat spaces that is μ-Gaussian-DP with μ = Δ/σ. On spheres μ is smaller, on hyperbolic spaces larger, with a floor
that no σ goes below: the rule σ = Δ/μ would be a breach there.

>>> from dpmanifolds import Hyperbolic, Sphere
>>> from dpmanifolds.privacy import gaussian_dp_mu, sigma_for_mu
>>> round(gaussian_dp_mu(Sphere(2), sigma=0.5, sensitivity=1.0), 6)
1.911353
>>> round(gaussian_dp_mu(Hyperbolic(2), sigma=0.5, sensitivity=1.0), 6)
2.079367
>>> round(sigma_for_mu(Sphere(2), mu=1.0, sensitivity=0.1), 6)
0.099834

The formulas, the proof that the worst pair is at distance exactly Δ, and the error analysis are in
docs/proofs/gaussian_dp.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from dpmanifolds._validate import (
    choice,
    float_or_array,
    non_negative_epsilons,
    positive_integer,
    positive_number,
    probability,
)
from dpmanifolds.errors import ArgumentError, ConvergenceError, ScaleOutOfRangeError
from dpmanifolds.manifolds import Hyperbolic, Manifold, Sphere
from dpmanifolds.privacy.conversions import log_delta_upper, log_gaussian_delta
from dpmanifolds.privacy.curved_pairs import HyperbolicLimitPair, ModelSpace, model_space
from dpmanifolds.privacy.loss_bounds import certified_supremum, renyi_divergence, supremum
from dpmanifolds.privacy.loss_grid import where_below
from dpmanifolds.privacy.loss_pair import FlatPair, LossPair, LossTails
from dpmanifolds.privacy.rounding import float_above, up
from dpmanifolds.privacy.terms import Term

_LOG_ROUNDING = 4e-15
_LEAST = 2.0**-1074
_SMALLEST_MU = 1e-8
_NEARLY_FLAT = 1e-8
_SAFE = 1e-10
_AT_FLOOR = 1e-7
_CORRECTIONS = 8
_SECTIONS = 33


@dataclass(frozen=True)
class RiemannianGaussianProfile:
    """What a release from the Riemannian Gaussian of scale σ promises, for a statistic that moves by at most Δ.

    Flat spaces, spheres and hyperbolic spaces (and what is isometric to one of them: triangles, `PlanarShapes(3)`, are
    the sphere of curvature 4). Elsewhere the worst displacement is not known and the profile is refused: there the
    wrapped Gaussian has μ = Δ/σ exactly.

    δ(ε) = P₁(A) − e^ε P₂(A), A = {d₂² − d₁² ≥ 2σ²ε}, for footpoints at distance Δ, the worst pair. Flat spaces and the
    circle have a closed form; spheres and hyperbolic spaces of dimension d ≥ 2 a deterministic quadrature. The two
    orders of the pair agree, because an isometry swaps the footpoints.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.privacy import RiemannianGaussianProfile
    >>> profile = RiemannianGaussianProfile(Sphere(1), sigma=1.0, sensitivity=1.0)
    >>> round(profile.delta(1.0), 4), round(profile.mu, 6)
    (0.1183, 0.983169)
    """

    manifold: Manifold
    sigma: float
    sensitivity: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive_number("sigma", self.sigma))
        object.__setattr__(self, "sensitivity", positive_number("sensitivity", self.sensitivity))
        _ = self.pair

    @cached_property
    def _space(self) -> ModelSpace:
        return model_space(self.manifold)

    @cached_property
    def pair(self) -> LossPair:
        """The two laws, in units of their model space."""
        return self._space.pair(self.sigma, self.sensitivity)

    @property
    def largest_loss(self) -> float:
        """The supremum of the privacy loss: Δ(2π/√κ − Δ)/2σ² on spheres, infinite elsewhere."""
        return self.pair.largest

    @property
    def error(self) -> float:
        """The bound e of the numerical error at ε = 0: |δ̂ − δ| ≤ e·(P₁(A) + e^ε P₂(A)) ≤ 2e.

        `delta_upper` has its own e at every ε: the quadrature's, by the Legendre coefficients of each integrand, and
        that of rounding (docs/proofs/gaussian_dp.md, section 7); in the far tail 4e−15·|log P₁(A)| is added.
        """
        return self.pair.error

    def tails(self, epsilon: np.ndarray) -> LossTails:
        """P₁ and P₂ of a loss above ε, with their error; those at 0 from the largest loss on."""
        inside = np.where(epsilon < self.pair.largest, epsilon, 0.0)
        return self.pair.tails(np.where(np.isfinite(inside), inside, 0.0))

    def _delta(self, epsilon: np.ndarray, *, upper: bool) -> np.ndarray:
        if isinstance(self.pair, FlatPair):
            return np.asarray(np.exp((log_delta_upper if upper else log_gaussian_delta)(self.mu, epsilon)))
        tails = self.tails(epsilon)
        with np.errstate(invalid="ignore"):
            gap = np.minimum(epsilon + tails.above_second - tails.above_first, 0.0)
            power = np.exp(tails.above_first)
            values = power * -np.expm1(gap)
            if upper:
                error = tails.error + _LOG_ROUNDING * np.abs(tails.above_first)
                values = np.clip(values + error * power * (1 + np.exp(gap)), _LEAST, 1.0)
        return np.where((epsilon >= self.pair.largest) | np.isinf(epsilon), 0.0, values)

    def delta(self, epsilon: ArrayLike) -> Any:
        """δ(ε), the smallest δ for which the release is (ε, δ)-DP: a float for a number, an array for an array."""
        return float_or_array(self._delta(non_negative_epsilons(epsilon), upper=False))

    def delta_upper(self, epsilon: ArrayLike) -> Any:
        """δ(ε) plus the bound of its numerical error: never below the truth."""
        # the largest loss is itself rounded: a slightly smaller ε has a larger δ
        lower = non_negative_epsilons(epsilon) * (1 - 1e-14)
        return float_or_array(self._delta(lower, upper=True))

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0, to 1e−12 relative and rounded up, for which the release is (ε, δ)-DP."""
        delta = probability("delta", delta)
        if self.delta_upper(0.0) <= delta:
            return 0.0
        low, high = 0.0, min(max(1.0, self.sensitivity / self.sigma), self.pair.largest)
        while self.delta_upper(high) > delta:
            low, high = high, min(2 * high, self.pair.largest * (1 + 1e-12))
        while high - low > 1e-12 * high:
            grid = np.linspace(low, high, _SECTIONS)
            first = int(np.argmax(self.delta_upper(grid) <= delta))
            low, high = float(grid[first - 1]), float(grid[first])
        return high

    def renyi(self, alpha: float) -> float:
        """D_α of the worst pair, α ≥ 1, the same in both orders; the largest loss for α = ∞."""
        try:
            order = float(alpha)
        except (TypeError, ValueError):
            raise ArgumentError(f"alpha must be a number of at least 1; got {alpha!r}.") from None
        if not order >= 1:
            raise ArgumentError(f"alpha must be at least 1; got {order}.")
        if isinstance(self.pair, FlatPair) or math.isinf(order):
            return order * (self.sensitivity / self.sigma) ** 2 / 2 if math.isfinite(order) else self.pair.largest
        return renyi_divergence(self.pair, order)

    @cached_property
    def mu(self) -> float:
        """The smallest μ of Gaussian DP, rounded up: δ(ε) ≤ δ_μ(ε) for all ε ≥ 0.

        Above the supremum over all ε by about 1e−11·max(μ, 1) plus the numerical error, and by up to 1e−8·μ
        where curvature matters less than that (then a proven bound of nearly flat spaces is returned).
        """
        if isinstance(self.pair, FlatPair):
            return float_above(Fraction(self.sensitivity) / Fraction(self.sigma))
        return supremum(self.pair, self._floor())

    def certified_mu(self, tolerance: float = 1e-6) -> float:
        """As `mu`, proven from values of the profile alone, cell by cell, within `tolerance` of the supremum.

        Nothing is assumed of the profile between the values but what holds for any pair of laws (the power of the best
        test is a concave function of its level). Takes seconds where `mu` takes milliseconds.
        """
        tolerance = positive_number("tolerance", tolerance)
        if isinstance(self.pair, FlatPair):
            return self.mu
        return certified_supremum(self.pair, tolerance, self._floor())

    def _floor(self) -> float:
        """A value at most 1e−8 relative above the supremum, at which the tail bound of nearly flat spaces holds."""
        ratio, start = self.sensitivity / self.sigma, self.pair.at_zero
        if start < _SMALLEST_MU:
            raise ScaleOutOfRangeError(
                f"sigma = {self.sigma:g} on {self.manifold!r} gives mu below {_SMALLEST_MU:g}, less than float64 "
                "resolves here. Use a smaller sigma: no budget needs as much noise."
            )
        if self._space.sign > 0:
            # a few units above Δ/σ, so that it is not below in units of the curvature either
            return ratio * (1 + 1e-15) if start >= ratio * (1 - _NEARLY_FLAT) else 0.0
        return ratio * (1 + _NEARLY_FLAT / 10)


def gaussian_dp_mu(manifold: Manifold, sigma: float, sensitivity: float) -> float:
    """The smallest μ for which the Riemannian Gaussian of scale `sigma` is μ-Gaussian-DP, rounded up.

    μ = Δ/σ on flat spaces; sup over ε of the μ_ε that solves δ_{μ_ε}(ε) = δ(ε) elsewhere (MATH.md section 5), never
    below the truth; see `RiemannianGaussianProfile.mu` for how little it is above.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.privacy import gaussian_dp_mu
    >>> round(gaussian_dp_mu(Sphere(3), sigma=1.0, sensitivity=1.0), 6)
    0.721734
    """
    return RiemannianGaussianProfile(manifold, sigma, sensitivity).mu


def sigma_for_mu(manifold: Manifold, mu: float, sensitivity: float) -> float:
    """The scale at which the Riemannian Gaussian is μ-Gaussian-DP.

    `gaussian_dp_mu` of it is at most μ, and at least μ − 1e−9·max(μ, 1).

    On hyperbolic spaces of dimension d ≥ 2, μ tends to a floor as σ grows; a μ that no σ reaches is refused by an error
    that names the floor.

    >>> from dpmanifolds import Hyperbolic
    >>> from dpmanifolds.privacy import sigma_for_mu
    >>> round(sigma_for_mu(Hyperbolic(2), mu=1.161224, sensitivity=1.0), 5)
    1.0
    """
    mu, sensitivity = positive_number("mu", mu), positive_number("sensitivity", sensitivity)
    space = model_space(manifold)
    if space.sign == 0:
        return float_above(Fraction(sensitivity) / Fraction(mu))
    space.check_sensitivity(sensitivity)
    if mu < 2 * _SMALLEST_MU:
        raise ScaleOutOfRangeError(f"must be at least {2 * _SMALLEST_MU:g} on {manifold!r}; got {mu:g}.", argument="mu")
    if space.sign < 0:
        _check_floor(space, mu, sensitivity)
    size = max(mu, 1.0)
    target, sigma = mu - _SAFE * size, sensitivity / mu
    if space.sign > 0:
        # where the law is nearly uniform, μ falls like 1/σ²
        sigma = min(sigma, math.sqrt(sigma / space.root))
    for _ in range(_CORRECTIONS):
        sigma = _scale_with_mu_at_zero(space, target, sensitivity, sigma)
        reached = gaussian_dp_mu(manifold, sigma, sensitivity)
        if mu - 1e-9 * size <= reached <= mu:
            return sigma
        # where the supremum is not at ε = 0, or the tail bound of nearly flat spaces decides
        target += mu - reached - _SAFE * size
    raise ConvergenceError(f"no sigma was found at which the Riemannian Gaussian on {manifold!r} has mu = {mu:g}.")


def _check_floor(space: ModelSpace, mu: float, sensitivity: float) -> None:
    floor = supremum(HyperbolicLimitPair(space.dim, space.root * sensitivity))
    if mu <= floor * (1 + _AT_FLOOR):
        raise ScaleOutOfRangeError(
            f"= {mu:g} cannot be reached on {space.manifold!r} with sensitivity {sensitivity:g}: as sigma grows, mu "
            f"of the Riemannian Gaussian tends to the floor {floor:.6g} and not to 0. Use a larger mu, a smaller "
            "sensitivity (more records, a smaller ball), or WrappedGaussian, which has mu = sensitivity/sigma and no "
            "floor.",
            argument="mu",
        )


def _scale_with_mu_at_zero(space: ModelSpace, target: float, sensitivity: float, guess: float) -> float:
    """The σ at which −2Φ⁻¹(P₂(A)) at ε = 0 is `target`, by bracketing and Brent's method in log σ."""

    def excess(log_sigma: float) -> float:
        return math.log(space.pair(math.exp(log_sigma), sensitivity).at_zero / target)

    start = math.log(guess)
    value, step = excess(start), 1e-3
    # μ falls with σ at about the rate of 1/σ
    while value != 0:
        other = start + math.copysign(abs(value) + step, value)
        beyond = excess(other)
        if value * beyond <= 0:
            return math.exp(float(brentq(excess, min(start, other), max(start, other), xtol=1e-14, rtol=1e-14)))
        start, value, step = other, beyond, 2 * step
    return math.exp(start)


@lru_cache(maxsize=64)
def _riemannian_bound(
    kind: str, dim: int, curvature: float, sigma: float, sensitivity: float
) -> RiemannianGaussianProfile:
    family = Sphere if kind == "sphere" else Hyperbolic
    return RiemannianGaussianProfile(family(dim, curvature=curvature), sigma, sensitivity)


@dataclass(frozen=True, kw_only=True)
class RiemannianGaussianTerm(Term):
    """The intrinsic Gaussian of scale σ on S^d or H^d, for a statistic that moves by at most Δ (MATH.md section 5)."""

    manifold: str
    dim: int
    curvature: float
    sigma: float
    sensitivity: float
    kind: ClassVar[str] = "riemannian-gaussian"
    checks: ClassVar = {"dim": positive_integer, "sigma": positive_number, "sensitivity": positive_number}
    is_dear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        choice("manifold", self.manifold, ("sphere", "hyperbolic"))
        super().__post_init__()
        sign = 1 if self.manifold == "sphere" else -1
        object.__setattr__(self, "curvature", sign * positive_number("|curvature|", sign * self.curvature))

    def _bound(self) -> RiemannianGaussianProfile:
        return _riemannian_bound(self.manifold, self.dim, self.curvature, self.sigma, self.sensitivity)

    @property
    def pure_epsilon(self) -> float | None:
        """The largest loss Δ(2π/√κ − Δ)/2σ² on spheres."""
        largest = self._bound().largest_loss
        return float(up(largest)) if math.isfinite(largest) else None

    @property
    def gaussian_mu(self) -> float:
        return self._bound().mu

    def renyi(self, alpha: float) -> float | None:
        """That of the worst pair, rounded up by 1e−9 of itself; ρα where its integral does not settle."""
        most = super().renyi(alpha)
        try:
            found = self._bound().renyi(alpha) * (1 + 1e-9 + 4 * self._bound().error)
        except ConvergenceError:
            return most
        return found if most is None else min(found, most)

    @property
    def spread(self) -> float:
        return self.sensitivity / self.sigma

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        bound = np.asarray(self._bound().delta_upper(np.atleast_1d(epsilon)), dtype=np.float64)
        return np.reshape(bound, np.shape(epsilon))

    def reach(self, tail: float) -> float:
        mu = self.gaussian_mu
        return where_below(lambda at: np.exp(log_delta_upper(mu, at)), tail, start=mu)
