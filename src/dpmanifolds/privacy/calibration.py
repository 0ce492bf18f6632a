"""How much noise a budget asks for: Gaussian and Laplace.

>>> from dpmanifolds.privacy import gaussian_sigma
>>> round(gaussian_sigma(sensitivity=1.0, epsilon=1.0, delta=1e-5), 6)
3.730632

Every number here is rounded to the safe side: a scale or an ε or a δ up, a μ down, by at most 1e−12 of itself (for δ up
to 0.9; an ε close to 0 by 1e−12 of μ). The Gaussian pair is solved in log space, so δ = 1e−300 and ε = 500 are ordinary
arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpmanifolds._validate import positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy._normal import log_delta_upper
from dpmanifolds.privacy.rounding import up

__all__ = [
    "delta_of_mu",
    "epsilon_of_mu",
    "gaussian_sigma",
    "laplace_scale",
    "mu_for",
    "mu_of_pure",
]

_BINOMIAL_RANGE = 640.0
_ROOT_TOLERANCE = 4 * 2.0**-52
_BITS = 48
_SLACK = 2.0**-_BITS


def probability(name: str, value: Any) -> float:
    """`value` as a float strictly between 0 and 1, or an error that names the argument."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"must be a number strictly between 0 and 1; got {value!r}.", argument=name) from None
    if not 0 < number < 1:
        raise ArgumentError(
            f"must lie strictly between 0 and 1; got {number}. Choose {name} far below 1/n, for instance 1e-6.",
            argument=name,
        )
    return number


def non_negative_epsilons(epsilon: ArrayLike) -> np.ndarray:
    """`epsilon` as an array of numbers of at least 0 (infinity allowed), or an error."""
    try:
        values = np.asarray(epsilon, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"must be a number or an array of numbers; got {epsilon!r}.", argument="epsilon") from None
    if not np.all(values >= 0):
        raise ArgumentError(f"must be at least 0; got {epsilon!r}.", argument="epsilon")
    return values


def like_input(values: np.ndarray) -> Any:
    """A Python float for a single number, the array otherwise."""
    return float(values) if values.ndim == 0 else values


def delta_of_mu(mu: float, epsilon: ArrayLike) -> Any:
    """δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), the whole profile of μ-Gaussian-DP (Dong et al. 2022, Corollary 1).

    >>> from dpmanifolds.privacy import delta_of_mu
    >>> round(delta_of_mu(1.0, 1.0), 12)
    0.126936737507
    >>> f"{delta_of_mu(1.0, 30.0):.6e}"
    '4.709326e-193'
    """
    mu = positive_number("mu", mu)
    return like_input(np.exp(log_delta_upper(mu, non_negative_epsilons(epsilon))))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 such that μ-Gaussian-DP is (ε, δ)-DP.

    >>> from dpmanifolds.privacy import epsilon_of_mu
    >>> round(epsilon_of_mu(1.0, 1e-5), 6)
    4.377178
    """
    mu, delta = positive_number("mu", mu), probability("delta", delta)
    log_delta = math.log(delta)

    def excess(epsilon: float) -> float:
        return float(log_delta_upper(mu, np.asarray(epsilon))) - log_delta

    if excess(0.0) <= 0:
        return 0.0
    high = mu * mu / 2 + mu
    while excess(high) > 0:
        high *= 2
    root = float(optimize.brentq(excess, 0.0, high, xtol=mu * _ROOT_TOLERANCE, rtol=_ROOT_TOLERANCE))
    return _outward(root, lambda epsilon: excess(epsilon) <= 0, floor=mu * _SLACK, outwards=1)


def mu_for(epsilon: float, delta: float) -> float:
    """μ*(ε, δ): the largest μ such that μ-Gaussian-DP is (ε, δ)-DP.

    >>> from dpmanifolds.privacy import mu_for
    >>> round(mu_for(0.1, 1e-3), 6)
    0.057457
    """
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    log_delta = math.log(delta)

    def excess(mu: float) -> float:
        return max(float(log_delta_upper(mu, np.asarray(epsilon))) - log_delta, -1e300)

    low = high = 1.0
    while excess(low) > 0:
        low /= 2
    while excess(high) <= 0:
        high *= 2
    root = float(optimize.brentq(excess, low, high, xtol=low * _ROOT_TOLERANCE, rtol=_ROOT_TOLERANCE))
    return _outward(root, lambda mu: excess(mu) <= 0, floor=0.0, outwards=-1)


def _outward(root: float, safe: Callable[[float], bool], *, floor: float, outwards: int) -> float:
    """`root`, moved to the safe side by 16 ulp and then, doubling, until `safe` says yes."""
    step = max(abs(root) * _SLACK, floor)
    moved = root + outwards * step
    while not safe(moved):
        step *= 2
        moved = root + outwards * step
    return moved


def gaussian_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """The analytic Gaussian (Balle and Wang 2018): the smallest σ with N(0, σ²I) noise (ε, δ)-DP at ℓ2-sensitivity Δ.

    Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ, so σ = Δ/μ*(ε, δ); rounded up.

    >>> from dpmanifolds.privacy import gaussian_sigma
    >>> round(gaussian_sigma(0.5, 0.1, 1e-3), 6)
    8.702198
    """
    return _above(positive_number("sensitivity", sensitivity) / mu_for(epsilon, delta))


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    """σ = Δ/ε, rounded up: for Laplace noise on R, for ℓ2-Laplace noise ∝ exp(−‖y‖/σ) on R^d at ℓ2-sensitivity Δ, and
    for the Riemannian Laplace on a homogeneous space with unrestricted support (MATH.md section 4).

    >>> from dpmanifolds.privacy import laplace_scale
    >>> laplace_scale(1.0, 0.5) >= 2.0
    True
    """
    return _above(positive_number("sensitivity", sensitivity) / positive_number("epsilon", epsilon))


def mu_of_pure(epsilon: float) -> float:
    """The smallest μ such that every ε-DP mechanism is μ-Gaussian-DP: −2Φ⁻¹(1/(1 + e^ε)).

    Attained by randomised response. Computed as 2√2·erf⁻¹(tanh(ε/2)) for ε ≤ 1 and from log(1/(1 + e^ε)) beyond:
    neither end loses digits.

    >>> from dpmanifolds.privacy import mu_of_pure
    >>> round(mu_of_pure(1.0), 6)
    1.232035
    """
    epsilon = positive_number("epsilon", epsilon)
    if epsilon <= 1:
        mu = 2 * math.sqrt(2) * float(special.erfinv(math.tanh(epsilon / 2)))
    else:
        mu = -2 * float(special.ndtri_exp(-float(np.logaddexp(0.0, epsilon))))
    return float(up(mu, _BITS))


def mu_of_laplace(epsilon: float) -> float:
    """The smallest μ such that Laplace noise on the line with Δ/σ = ε is μ-Gaussian-DP: −2Φ⁻¹(e^{−ε/2}/2).

    At the threshold t of the loss, 0 ≤ t ≤ ε, power and level are 1 − e^{(t−ε)/2}/2 and e^{−(t+ε)/2}/2, so that
    m(t) = h((ε − t)/2) + h((ε + t)/2) with h(u) = −Φ⁻¹(e^{−u}/2). h' is Mills' ratio at h(u), which falls: h is
    concave and m largest at t = 0. Below the level of t = ε the best tests lie on a line through the origin, along
    which the difference of probits is quasi-convex and tends to 0.

    >>> from dpmanifolds.privacy.calibration import mu_of_laplace, mu_of_pure
    >>> round(mu_of_laplace(1.0), 6), round(mu_of_pure(1.0), 6)
    (1.030064, 1.232035)
    """
    epsilon = positive_number("epsilon", epsilon)
    if epsilon <= 1:
        # ½ − e^{−u}/2 = (1 − e^{−u})/2, u = ε/2
        mu = 2 * math.sqrt(2) * float(special.erfinv(-math.expm1(-epsilon / 2)))
    else:
        mu = -2 * float(special.ndtri_exp(-epsilon / 2 - math.log(2)))
    return float(up(mu, _BITS))


def mu_of_pure_copies(epsilon: float, count: int) -> float:
    """The smallest μ for `count` ε-DP releases together, where that can be computed; else √count times one's.

    Together they are no easier to test than `count` randomised responses (Kairouz, Oh and Viswanath 2015). The best
    tests accept up to j flips; between those the power is linear in the level, and the difference of probits along a
    line is largest at an end.
    """
    single = float(up(math.sqrt(count) * mu_of_pure(epsilon), 50))
    if count == 1 or count * float(np.logaddexp(0.0, epsilon)) > _BINOMIAL_RANGE:
        return single if count > 1 else mu_of_pure(epsilon)
    flips = np.arange(count)
    truth, lie = special.expit(epsilon), special.expit(-epsilon)
    level = special.bdtr(flips, count, truth)
    # those with a level above ½ are the mirror images of others
    flips, level = flips[level <= 0.5], level[level <= 0.5]
    power, missed = special.bdtr(flips, count, lie), special.bdtrc(flips, count, lie)
    mu = float(np.max(np.where(power < missed, special.ndtri(power), -special.ndtri(missed)) - special.ndtri(level)))
    return min(float(up(mu, 36)) + 2.0**-40, single)


def _above(value: float) -> float:
    """A float above a value that a few correctly rounded operations have produced."""
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"the noise scale leaves the range of floating-point numbers ({value}).")
    return float(up(value, _BITS))
