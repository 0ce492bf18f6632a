"""What one kind of promise says in another's terms: ε, δ, μ, ρ and D_α of the laws that decide it.

Every number is rounded to the safe side: an ε, a δ, a ρ and a D_α up, a μ that is afforded down, by at most 1e−12 of
itself (for δ up to 0.9; an ε close to 0 by 1e−12 of μ).

**Two unit normals at distance μ.** δ_μ(ε) = Φ(−t) − e^ε Φ(−t − μ), t = ε/μ − μ/2. Because φ(t) = e^ε φ(t + μ), this is
φ(t)·(R(t) − R(t + μ)) with Mills' ratio R(x) = Φ(−x)/φ(x): no e^ε, no underflow, and no cancellation but that of the
two ratios, which for small μ is avoided by R(t) − R(t + μ) = ∫_t^{t+μ} G with G = −R' = 1 − xR(x) > 0: δ = 1e−300
and ε = 500 are ordinary arguments.

**Rényi divergences** (Canonne, Kamath and Steinke 2020, Proposition 12): D_α ≤ r implies (ε, δ)-DP with
log δ = (α − 1)(r − ε) + (α − 1) log(1 − 1/α) − log α. Every order gives a true statement, so how well the best one is
found decides only how tight the result is. At ε = 0, δ ≤ √(1 − e^{−KL}) (Bretagnolle–Huber) and δ ≤ √(KL/2) (Pinsker)
with KL ≤ D_α.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpmanifolds._validate import float_or_array, non_negative_epsilons, positive_number, probability
from dpmanifolds.privacy.rounding import ULP, down, float_above, up

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_SMALL_MU = 0.25
_FRACTION_FROM, _FRACTION_TERMS = 3.0, 60
_SATURATED = -5.0
_LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2
_BINOMIAL_RANGE = 640.0
_ROOT_TOLERANCE = 4 * ULP
# a log δ that falls like −(ε/μ)² takes up to 350
_MOST_ROOT_STEPS = 2000
_BITS = 48
_SLACK = 2.0**-_BITS
_MOMENT_ROUNDING = 2.0**-46
_ORDERS, _SCAN = (-18.0, 12.0), 61


def _mills(x: np.ndarray) -> np.ndarray:
    """R(x) = Φ(−x)/φ(x)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)))


def _mills_slope(x: np.ndarray) -> np.ndarray:
    """G(x) = 1 − xR(x); from x = 3 on as K/(x + K), K = 1/(x + 2/(x + 3/(x + …))), which subtracts nothing."""
    far = np.maximum(x, _FRACTION_FROM)
    tail = np.zeros_like(far)
    for term in range(_FRACTION_TERMS, 0, -1):
        tail = term / (far + tail)
    near = 1 - x * _mills(np.minimum(x, _FRACTION_FROM))
    return np.asarray(np.where(x < _FRACTION_FROM, near, tail / (far + tail)))


def _mills_drop(t: np.ndarray, mu: float) -> np.ndarray:
    """R(t) − R(t + μ)."""
    if mu >= _SMALL_MU:
        return np.asarray(_mills(t) - _mills(t + mu))
    nodes = t[..., None] + mu / 2 * (1 + _NODES)
    return np.asarray(mu / 2 * (_mills_slope(nodes) @ _WEIGHTS))


def log_gaussian_delta(mu: float, epsilon: np.ndarray) -> np.ndarray:
    """log δ_μ(ε) for ε ≥ 0, to a relative error in δ of at most `relative_error`."""
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        t = epsilon / mu - mu / 2
        log_density = -t * t / 2 - _LOG_ROOT_TWO_PI
        tail = log_density + np.log(_mills_drop(np.maximum(t, _SATURATED), mu))
        near_one = np.log(special.ndtr(-t) - np.exp(log_density) * _mills(t + mu))
    result = np.where(t < _SATURATED, near_one, tail)
    return np.asarray(np.where(np.isposinf(t), -np.inf, result))


def relative_error(mu: float, epsilon: np.ndarray) -> np.ndarray:
    """A bound on the relative error of δ: the rounding of t enters t²/2 multiplied by |t|."""
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = epsilon / mu
        error = ULP * (128 + 4 * np.abs(ratio - mu / 2) * (ratio + mu))
    return np.asarray(np.nan_to_num(error, nan=np.inf))


def log_delta_upper(mu: float, epsilon: np.ndarray) -> np.ndarray:
    """An upper bound on log δ_μ(ε), at most 0: the computed value plus its rounding error."""
    return np.asarray(np.minimum(log_gaussian_delta(mu, epsilon) + relative_error(mu, epsilon), 0.0))


def delta_of_mu(mu: float, epsilon: ArrayLike) -> Any:
    """δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), the whole profile of μ-Gaussian-DP (Dong et al. 2022, Corollary 1).

    >>> from dpmanifolds.privacy import delta_of_mu
    >>> round(delta_of_mu(1.0, 1.0), 12)
    0.126936737507
    """
    mu = positive_number("mu", mu)
    return float_or_array(np.exp(log_delta_upper(mu, non_negative_epsilons(epsilon))))


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
    return _safe_root(excess, 0.0, high, size=mu, outwards=1)


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
    return _safe_root(excess, low, high, size=low, outwards=-1)


def _safe_root(excess: Callable[[float], float], low: float, high: float, *, size: float, outwards: int) -> float:
    """The root, moved to the safe side by 16 ulp (of `size` for an ε near 0), doubled until nothing is in excess."""
    tolerance = {"xtol": size * _ROOT_TOLERANCE, "rtol": _ROOT_TOLERANCE, "maxiter": _MOST_ROOT_STEPS}
    root = float(optimize.brentq(excess, low, high, **tolerance))
    step = max(abs(root), size if outwards > 0 else 0.0) * _SLACK
    while not excess(root + outwards * step) <= 0:
        step *= 2
    return root + outwards * step


def mu_of_pure(epsilon: float) -> float:
    """The smallest μ such that every ε-DP mechanism is μ-Gaussian-DP: −2Φ⁻¹(1/(1 + e^ε)).

    Attained by randomised response.

    >>> from dpmanifolds.privacy import mu_of_pure
    >>> round(mu_of_pure(1.0), 6)
    1.232035
    """
    epsilon = positive_number("epsilon", epsilon)
    return _twice_probit(epsilon, math.tanh(epsilon / 2), -float(np.logaddexp(0.0, epsilon)))


def mu_of_laplace(epsilon: float) -> float:
    """The smallest μ such that Laplace noise on the line with Δ/σ = ε is μ-Gaussian-DP: −2Φ⁻¹(e^{−ε/2}/2).

    At the threshold t of the loss, 0 ≤ t ≤ ε, power and level are 1 − e^{(t−ε)/2}/2 and e^{−(t+ε)/2}/2, so that
    m(t) = h((ε − t)/2) + h((ε + t)/2) with h(u) = −Φ⁻¹(e^{−u}/2). h' is Mills' ratio at h(u), which falls: h is
    concave and m largest at t = 0. Below the level of t = ε the best tests lie on a line through the origin, along
    which the difference of probits is quasi-convex and tends to 0.

    >>> from dpmanifolds.privacy.conversions import mu_of_laplace, mu_of_pure
    >>> round(mu_of_laplace(1.0), 6), round(mu_of_pure(1.0), 6)
    (1.030064, 1.232035)
    """
    epsilon = positive_number("epsilon", epsilon)
    return _twice_probit(epsilon, -math.expm1(-epsilon / 2), -epsilon / 2 - math.log(2))


def _twice_probit(epsilon: float, gap: float, log_level: float) -> float:
    """−2Φ⁻¹(level), up: from 1 − 2·level for ε ≤ 1 and from log(level) beyond, so that neither end loses digits."""
    if epsilon <= 1:
        return float(up(2 * math.sqrt(2) * float(special.erfinv(gap)), _BITS))
    return float(up(-2 * float(special.ndtri_exp(log_level)), _BITS))


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


def total_variation_bound(divergence: float) -> float:
    """The total variation of two laws with KL divergence at most `divergence`."""
    return float(up(min(math.sqrt(-math.expm1(-divergence)), math.sqrt(divergence / 2))))


def epsilon_of_renyi(alpha: float, divergence: float, delta: float) -> float:
    """An ε ≥ 0 with (ε, δ)-DP from D_α ≤ divergence."""
    if delta >= total_variation_bound(divergence):
        return 0.0
    correction = math.log1p(-1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)
    size = divergence + abs(math.log1p(-1 / alpha)) + abs(math.log(delta) + math.log(alpha)) / (alpha - 1)
    return max(divergence + correction + size * _MOMENT_ROUNDING, 0.0)


def best_order(epsilon: float, delta: float) -> float:
    """The order at which the largest divergence within (ε, δ) affords Gaussian noise (D_α = ρα) the most ρ."""
    orders = 1 + np.exp(np.linspace(-5.0, 40.0, 4501))
    affords = epsilon - np.log1p(-1 / orders) + np.log(delta * orders) / (orders - 1)
    return float(f"{orders[np.argmax(affords / orders)]:.4g}")


def renyi_within(alpha: float, epsilon: float, delta: float) -> float | None:
    """The largest D_α ≤ 700 that implies (ε, δ)-DP: ε − log(1 − 1/α) + log(δα)/(α − 1); None where none does."""
    afforded = epsilon - math.log1p(-1 / alpha) + (math.log(delta) + math.log(alpha)) / (alpha - 1)
    divergence = min(afforded, 700.0)
    step = max(2.0**-50 * epsilon, 2.0**-1074)
    while divergence > 0 and epsilon_of_renyi(alpha, divergence, delta) > epsilon:
        divergence, step = divergence - step, 2 * step
    return divergence if divergence > 0 else None


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """min over α of the bound above with r = ρα, by a scan of log(α − 1), or the chord's ε where that is smaller."""

    def cost(log_order: float) -> float:
        alpha = 1 + math.exp(log_order)
        return epsilon_of_renyi(alpha, rho * alpha, delta)

    best = _lowest(cost, np.linspace(*_ORDERS, _SCAN))[1]
    start, rise, slope = _chord(rho)
    if delta >= start:
        return 0.0
    if up(start - delta) > slope * rise:
        return best
    return min(best, math.log1p(up((start - delta) / slope)))


def log_delta_of_zcdp(rho: float, epsilon: np.ndarray) -> np.ndarray:
    """log δ(ε) of ρ-zCDP, an upper bound, for an array of ε ≥ 0: convex in e^ε.

    δ is convex in e^ε, so the chord from the bound at ε = 0 to any other bound holds; the steepest one is taken.
    """
    start, rise, slope = _chord(rho)
    with np.errstate(over="ignore"):
        growth = np.expm1(np.minimum(epsilon, 700.0))
    chord = np.log(np.maximum(start - down(slope * growth), 1e-300))
    return np.where(growth < rise, np.minimum(chord, 0.0), _log_delta_by_moments(rho, epsilon))


@lru_cache(maxsize=256)
def _chord(rho: float) -> tuple[float, float, float]:
    """δ at ε = 0, and e^ε − 1 and the slope at the end of the steepest chord from there."""
    start = min(total_variation_bound(rho), 1.0)

    def slope(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        end = math.exp(float(_log_delta_by_moments(rho, np.asarray(epsilon))))
        return -(start - end) / math.expm1(epsilon)

    low, high = math.sqrt(rho), 4 * rho + 10 * math.sqrt(rho)
    grid = np.linspace(math.log(min(low, 690.0)) - 9, math.log(min(high, 690.0)), 200)
    best, value = _lowest(slope, grid, xatol=1e-10)
    return start, math.expm1(math.exp(best)), -value


def _lowest(cost: Callable[[float], float], grid: np.ndarray, xatol: float = 1e-5) -> tuple[float, float]:
    """Where a cost is lowest, and the cost: by a scan of the grid and a refinement around its best point."""
    values = [cost(point) for point in grid]
    best = int(np.argmin(values))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = optimize.minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": xatol})
    return (float(found.x), float(found.fun)) if found.fun < values[best] else (float(grid[best]), values[best])


def _log_delta_by_moments(rho: float, epsilon: np.ndarray) -> np.ndarray:
    """The bound above at a good order, capped at its value for ε = 0.

    The exponent's minimiser solves (2α − 1)ρ − ε + log(1 − 1/α) = 0; a few Newton steps from (ε + ρ)/2ρ reach it
    where it matters, and any α gives a true bound.
    """
    finite = np.where(np.isfinite(epsilon), epsilon, 0.0)
    alpha = np.maximum((finite + rho) / (2 * rho), 1 + 1e-6)
    for _ in range(12):
        slope = (2 * alpha - 1) * rho - finite + np.log1p(-1 / alpha)
        floor = 1 + np.maximum(1e-3 * (alpha - 1), 1e-9)
        alpha = np.maximum(alpha - slope / (2 * rho + 1 / (alpha * (alpha - 1))), floor)
    parts = ((alpha - 1) * (alpha * rho - finite), (alpha - 1) * np.log1p(-1 / alpha), -np.log(alpha))
    size = (alpha - 1) * (alpha * rho + finite) + abs(parts[1]) + abs(parts[2])
    bound = np.minimum(sum(parts) + size * _MOMENT_ROUNDING, math.log(min(total_variation_bound(rho), 1.0)))
    return np.where(np.isfinite(epsilon), np.minimum(bound, 0.0), -np.inf)


def pure_renyi(epsilon: float, alpha: float) -> float:
    """The largest D_α of two laws within e^±ε: log(cosh((α − ½)ε)/cosh(ε/2))/(α − 1), that of randomised response.

    As log(cosh a/cosh b) = log1p(2 sinh((a+b)/2) sinh((a−b)/2)/cosh b), here with a − b = (α − 1)ε, a + b = αε.
    """
    if (2 * alpha - 1) * epsilon < 600:
        growth = 2 * math.sinh(alpha * epsilon / 2) * math.sinh((alpha - 1) * epsilon / 2) / math.cosh(epsilon / 2)
        value = math.log1p(growth) / (alpha - 1)
    else:
        value = epsilon - down(math.log1p(math.exp(-epsilon)) / (alpha - 1))
    return min(float(up(value)), epsilon)


def laplace_renyi(epsilon: float, alpha: float) -> float:
    """D_α of Laplace noise on the line: (α − 1)D_α = log(α/(2α − 1)·e^{(α−1)ε} + (α − 1)/(2α − 1)·e^{−αε}).

    Mironov 2017, Proposition 6. Below (α − 1)ε = 1 as log1p((αf((α − 1)ε) + (α − 1)f(−αε))/(2α − 1)) with
    f(x) = e^x − 1 − x ≥ 0: the linear parts cancel, and nothing else does.
    """
    low, high = (alpha - 1) * epsilon, alpha * epsilon
    if low < 1:
        growth = (alpha * _exp_beyond_line(low) + (alpha - 1) * _exp_beyond_line(-high)) / (2 * alpha - 1)
        value = math.log1p(growth) / (alpha - 1)
    else:
        value = epsilon + math.log1p((alpha - 1) * math.expm1(-low - high) / (2 * alpha - 1)) / (alpha - 1)
    return min(float(up(value)), pure_renyi(epsilon, alpha))


def laplace_rho(epsilon: float) -> float:
    """ε + e^−ε − 1, the smallest ρ with D_α ≤ ρα for Laplace noise on the line; attained as α → 1.

    With s = α − ½, (α − 1)D_α = log(cosh x + (ε/2)·sinh(x)/x) − ε/2, x = sε. As a function of x² the argument has the
    zeros −y², y·cot y = −ε/2: eigenvalues of u'' = −y²u, u(0) = 0, u'(1) + (ε/2)·u(1) = 0, hence all real and negative,
    and it is of order ½. So its logarithm is a sum of log(1 + x²/y²) and concave in s², and as α(α − 1) = s² − ¼,
    (α − 1)D_α lies below its tangent at s = ½, α(α − 1) times the Kullback–Leibler divergence.
    """
    return float(up(_exp_beyond_line(-epsilon)))


def _exp_beyond_line(x: float) -> float:
    """e^x − 1 − x, by its series x²/2·(1 + x/3·(1 + x/4·(…))) near 0."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    total = 1.0
    for k in range(18, 2, -1):
        total = 1 + x / k * total
    return x * x / 2 * total


def rho_of_pure(epsilon: float) -> float:
    """ρ = ε·tanh(ε/2), the smallest that follows from ε-DP: below the usual ε²/2 and attained as α → 1.

    For randomised response (α − 1)D_α = log cosh(sε) − log cosh(ε/2) with s = α − ½, and α(α − 1) = s² − ¼.
    u ↦ log cosh(√u·ε) is concave (tanh x/x falls), so it lies below its tangent at u = ¼, whose slope is
    ε·tanh(ε/2): D_α ≤ α·ε·tanh(ε/2).
    """
    return float(up(epsilon * math.tanh(epsilon / 2)))


def rho_of_mu(mu: float) -> float:
    """ρ = μ²/2, attained by the Gaussian pair."""
    return float_above(Fraction(mu) ** 2 / 2)


def renyi_of_rho(rho: float, alpha: float) -> float:
    """D_α = ρα."""
    return float_above(Fraction(rho) * Fraction(alpha))
