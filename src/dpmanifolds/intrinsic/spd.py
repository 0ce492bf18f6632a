"""Laws on positive definite matrices with the affine-invariant metric.

Seen from its footpoint, the law of X = log_η(draw) has density ∝ e^{−|X|/σ}·J(X) or e^{−|X|²/2σ²}·J(X) on the symmetric
matrices, J = ∏_{i<j} sinh(y_ij)/y_ij. The Gaussian is drawn by `spd_eigenvalues`; the Laplace law is a mixture of
Gaussians, as e^{−R/σ} = ∫₀^∞ e^{−R²/2v}·e^{−v/2σ²}/(σ√(2πv)) dv.

>>> import numpy as np
>>> from dpmanifolds import SPD
>>> from dpmanifolds.intrinsic import RiemannianGaussian
>>> law = RiemannianGaussian(SPD(3), np.eye(3), sigma=0.5)
>>> law.sample(4, rng=0).shape
(4, 3, 3)
>>> round(law.mean_distance, 6), round(law.distance_quantile(0.95), 6)
(1.205808, 1.820236)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from dpmanifolds._validate import checked_order, checked_probabilities, float_or_array
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.intrinsic.law import TangentLaw, log_sphere_area
from dpmanifolds.intrinsic.spd_eigenvalues import LARGEST_COST, cost, draw_coordinates
from dpmanifolds.intrinsic.spd_partition import (
    available_below,
    log_mean_jacobian,
    log_mean_over_sphere,
    log_no_meeting,
    no_meeting_slope,
    squared_half_sum,
)
from dpmanifolds.manifolds import SPDAffineInvariant
from dpmanifolds.noise import LogConcaveSampler
from dpmanifolds.privacy.radial import ExponentialKernel, Kernel, LogConcaveIntegral, QuadraticKernel

_NEGLIGIBLE = 90.0
_HALVINGS = 30
_LARGEST_DRIFT = 1e9
_RELEVANT = 45.0
_COST_NODES = 97


def largest_laplace_scale(k: int) -> float:
    """σ_c = √(12/(k(k²−1))): the Laplace law on SPD(k) exists for smaller σ only; infinite for k = 1.

    J grows like e^{R/σ_c} in the direction of equally spaced eigenvalues, and no faster (E3 of `spd_eigenvalues`).

    >>> from dpmanifolds.intrinsic.spd import largest_laplace_scale
    >>> [round(largest_laplace_scale(k), 4) for k in (2, 3, 4, 5)]
    [1.4142, 0.7071, 0.4472, 0.3162]
    """
    return 1 / math.sqrt(squared_half_sum(k)) if k > 1 else math.inf


class _SPDLaw(TangentLaw):
    """What both laws share: the distribution of the distance R, of density ∝ kernel(R)·R^{d−1}·A(R).

    A is the mean of J over the sphere of radius R (`spd_partition`), so that everything about the distance is a
    one-dimensional integral for every k. `NotAvailableError` where float64 does not resolve A: for Laplace laws within
    about 1e−5 of the critical scale, and for k > 47 at some of the scales that cannot be drawn either.
    """

    manifold: SPDAffineInvariant

    _kernel: Kernel
    """The exponent of the law plus √S·R: the growth of A, moved here so that nothing large cancels."""

    @property
    def _drift(self) -> float:
        return math.sqrt(squared_half_sum(self.manifold.k))

    def _log_density(self, radius: np.ndarray, power: float) -> np.ndarray:
        """The kernel + log A + power·log R."""
        growth = log_mean_over_sphere(self.manifold.k, radius) - self._drift * radius
        return np.asarray(self._kernel.difference(radius, 0.0) + growth + power * np.log(radius))

    def _integral(self, order: float) -> LogConcaveIntegral:
        """∫ kernel(R)·R^{d−1+order}·A(R) dR, between radii outside of which less than 1e−35 of it lies."""
        power = self.manifold.dim - 1 + order
        log_density = partial(self._log_density, power=power)
        low, high = math.log(self._smallest_mode(power)), math.log(self._kernel.largest_mode(power))
        peak = optimize.minimize_scalar(
            lambda t: -log_density(np.exp(np.array([t])))[0], bounds=(low, high), method="bounded"
        )
        mode = math.exp(peak.x)
        # A grows: below the mode A ≤ A(mode), and the exponent of the law is at most 0
        exponent = float(self._kernel.difference(np.array(mode), 0.0)) - self._drift * mode
        lower = mode * max(math.exp((exponent - _NEGLIGIBLE) / power), 1e-14)
        # A ≤ e^{√S·R} beyond it
        upper = 2 * mode
        while self._kernel.difference(np.array(upper), 0.0) + power * math.log(upper) > -peak.fun - _NEGLIGIBLE:
            upper *= 1.25
        return LogConcaveIntegral(log_density, mode=mode, scale=mode, lower=lower, upper=upper)

    @abstractmethod
    def _smallest_mode(self, power: float) -> float:
        """The mode of the law's exponent + power·log R: the growth of A only moves it outwards."""

    @cached_property
    def _distance(self) -> LogConcaveIntegral:
        return self._integral(0.0)

    def distance_moment(self, order: float) -> float:
        order = checked_order(order)
        with np.errstate(over="ignore"):
            return float(np.exp(self._integral(order).log_total - self._distance.log_total))

    def distance_cdf(self, radius: ArrayLike) -> Any:
        return self._distance.cdf(radius)

    def distance_quantile(self, probability: ArrayLike) -> Any:
        given = checked_probabilities(probability)
        inside = np.asarray(self._distance.quantile(given))
        return float_or_array(np.where(given == 0, 0.0, np.where(given == 1, math.inf, inside)))


class SPDGaussian(_SPDLaw):
    """Density ∝ e^{−|X|²/2σ²}·J(X) on symmetric matrices, for every σ at which drawing is practical.

    Normaliser (2πσ²)^{d/2}·f(σ²), f as in `spd_partition`. Practical means at most 20,000 expected proposals for
    a draw, known from k and σ: every σ for k ≤ 25; for k = 30 all but about (0.64, 0.79), for k = 50 all but (0.37, 1).

    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.intrinsic.spd import SPDGaussian
    >>> round(SPDGaussian(SPD(20), 1.0).distance_moment(2), 4)
    738.4449
    """

    def __init__(self, manifold: SPDAffineInvariant, sigma: float) -> None:
        super().__init__(manifold, sigma)
        self.manifold = manifold
        variance = self.sigma * self.sigma
        self._kernel = QuadraticKernel(self._drift * variance, self.sigma)
        if self.sigma * self._drift > _LARGEST_DRIFT:
            raise ScaleOutOfRangeError(
                f"sigma = {self.sigma:g} on {manifold!r}: draws lie about √(k(k²−1)/12)·σ² away, with a spread of "
                f"sigma that float64 no longer resolves. Use sigma ≤ {_LARGEST_DRIFT / self._drift:g}, or "
                "WrappedGaussian."
            )
        if not cost(manifold.k, np.array([variance]))[0] <= LARGEST_COST:
            _refuse(self, "Gaussian")

    @property
    def log_normalizer(self) -> float:
        variance = self.sigma * self.sigma
        flat = self.manifold.dim * (math.log(2 * math.pi) / 2 + math.log(self.sigma))
        return flat + float(log_mean_jacobian(self.manifold.k, np.array([variance]))[0])

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return draw_coordinates(self.manifold.k, np.full(count, self.sigma * self.sigma), rng)

    def _smallest_mode(self, power: float) -> float:
        return self.sigma * math.sqrt(power)


class SPDLaplace(_SPDLaw):
    """Density ∝ e^{−|X|/σ}·J(X) on symmetric matrices, for σ < σ_c = √(12/(k(k²−1))).

    As a mixture of Gaussians of variance v it gives v the density ∝ v^{(d−1)/2}·e^{−v/2σ²}·f(v), which by the formula
    of `spd_partition` is ∝ v^{(k−1)/2}·e^{−v(1/σ²−1/σ_c²)/2}·P(v). As log P is concave it is log-concave, so that v
    is drawn exactly by `LogConcaveSampler`; then X is Gaussian of variance v. Practical (as for the Gaussian) for
    every σ < σ_c up to k = 25, and up to 0.75·σ_c for k = 30, 0.7·σ_c for k = 50.

    >>> from dpmanifolds import SPD
    >>> from dpmanifolds.intrinsic.spd import SPDLaplace
    >>> law = SPDLaplace(SPD(2), 0.5)
    >>> round(law.log_normalizer, 6), round(law.distance_moment(1), 6)
    (1.323556, 1.692144)
    """

    def __init__(self, manifold: SPDAffineInvariant, sigma: float) -> None:
        super().__init__(manifold, sigma)
        self.manifold = manifold
        k = manifold.k
        # 1 − σ²S in exact arithmetic: near the limit a rounded difference would be all rounding
        margin = 1 - Fraction(self.sigma) ** 2 * Fraction(k * (k * k - 1), 12)
        if margin <= 0:
            raise ScaleOutOfRangeError(
                f"sigma = {self.sigma:g} on {manifold!r}: balls grow so fast that the Riemannian Laplace law exists "
                f"only for sigma < √(12/(k(k²−1))) = {largest_laplace_scale(k):g}. Use a smaller sigma, or "
                "WrappedLaplace, which exists for every scale."
            )
        self._kernel = ExponentialKernel(float(margin) / (1 + self.sigma * self._drift) / self.sigma)
        self._rate = float(margin) / self.sigma / self.sigma / 2
        self._typical_variance = self._mode_of_variance()
        self._check_practical()

    def _mode_of_variance(self) -> float:
        """Where (k−1)/2v − rate + P'/P = 0, between the values for P'/P = 0 and for its bound N/2v."""
        k = self.manifold.k
        low, high = (k - 1) / (2 * self._rate), (self.manifold.dim - 1) / (2 * self._rate)
        if low >= available_below(k):
            _refuse(self, "Laplace")
        high = min(high, available_below(k))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            rising = self._variance_slope(np.array([middle]))[0] > 0
            low, high = (middle, high) if rising else (low, middle)
        return low

    def _variance_slope(self, v: np.ndarray) -> np.ndarray:
        k = self.manifold.k
        return np.asarray((k - 1) / (2 * v) - self._rate + no_meeting_slope(k, v))

    def _log_variance_density(self, v: np.ndarray) -> np.ndarray:
        """log of the density of v, up to a constant."""
        k, mode = self.manifold.k, self._typical_variance
        at_mode = log_no_meeting(k, np.array([mode]))
        known = v < available_below(k)
        change = log_no_meeting(k, np.where(known, v, mode).ravel()).reshape(v.shape) - at_mode
        value = (k - 1) / 2 * np.log(v / mode) - self._rate * (v - mode) + change
        return np.where(known, value, -math.inf)

    def _check_practical(self) -> None:
        """Refuse unless every v with a density of at least e^{−45} times the largest has a practical cost."""
        nodes = self._typical_variance * np.geomspace(1e-3, 1e3, _COST_NODES)
        matters = np.flatnonzero(self._log_variance_density(nodes) > -_RELEVANT)
        if not matters.size:
            _refuse(self, "Laplace")
        # with the neighbours on both sides, so that nothing in between is overlooked
        nodes = nodes[max(matters[0] - 1, 0) : matters[-1] + 2]
        if not np.all(cost(self.manifold.k, nodes) <= LARGEST_COST):
            _refuse(self, "Laplace")

    @cached_property
    def _variance_sampler(self) -> LogConcaveSampler:
        mode = self._typical_variance
        return LogConcaveSampler(
            self._log_variance_density,
            self._variance_slope,
            mode=mode,
            scale=mode,
            upper=available_below(self.manifold.k),
        )

    @property
    def log_normalizer(self) -> float:
        return log_sphere_area(self.manifold.dim) + self._distance.log_total

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return draw_coordinates(self.manifold.k, self._variance_sampler.sample(count, rng), rng)

    def _smallest_mode(self, power: float) -> float:
        return self.sigma * power


def _refuse(law: _SPDLaw, name: str) -> NoReturn:
    raise ScaleOutOfRangeError(
        f"sigma = {law.sigma:g} on {law.manifold!r}: an exact draw of the Riemannian {name} law would take more than "
        f"{LARGEST_COST:g} proposals. Use a smaller (or much larger) sigma, or Wrapped{name}, which is drawn at any "
        "scale."
    )
