"""From Rényi divergences to (ε, δ), and the Rényi divergence of randomised response.

The bound of Canonne, Kamath and Steinke (2020, Proposition 12): D_α ≤ r implies (ε, δ)-DP with
log δ = (α − 1)(r − ε) + (α − 1) log(1 − 1/α) − log α. Every order gives a true statement, so how well the best one
is found decides only how tight the result is. At ε = 0, δ ≤ √(1 − e^{−KL}) (Bretagnolle–Huber) and δ ≤ √(KL/2)
(Pinsker) with KL ≤ D_α.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import optimize

from dpmanifolds.privacy.rounding import down, up

__all__ = [
    "best_order",
    "best_over_orders",
    "epsilon_of_renyi",
    "epsilon_of_zcdp",
    "laplace_renyi",
    "laplace_rho",
    "log_delta_of_zcdp",
    "pure_renyi",
    "renyi_within",
    "total_variation_bound",
]

_ROUNDING = 2.0**-46
_SEARCH = (-18.0, 12.0)
_SCAN = 61


def total_variation_bound(divergence: float) -> float:
    """The total variation of two laws with KL divergence at most `divergence`."""
    return float(up(min(math.sqrt(-math.expm1(-divergence)), math.sqrt(divergence / 2))))


def epsilon_of_renyi(alpha: float, divergence: float, delta: float) -> float:
    """An ε ≥ 0 with (ε, δ)-DP from D_α ≤ divergence."""
    if delta >= total_variation_bound(divergence):
        return 0.0
    correction = math.log1p(-1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)
    size = divergence + abs(math.log1p(-1 / alpha)) + abs(math.log(delta) + math.log(alpha)) / (alpha - 1)
    return max(divergence + correction + size * _ROUNDING, 0.0)


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


def best_over_orders(cost: Callable[[float], float]) -> float:
    """min over α of cost(α), by a scan of log(α − 1) and a refinement: any α gives a true bound."""
    grid = np.linspace(*_SEARCH, _SCAN)
    values = [cost(1 + math.exp(u)) for u in grid]
    best = int(np.argmin(values))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, _SCAN - 1)])
    refined = optimize.minimize_scalar(lambda u: cost(1 + math.exp(u)), bounds=bounds, method="bounded")
    return min(values[best], float(refined.fun))


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """min over α of the bound above with r = ρα, or the chord's ε where that is smaller."""
    best = best_over_orders(lambda alpha: epsilon_of_renyi(alpha, rho * alpha, delta))
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
    values = [slope(point) for point in grid]
    best = int(np.argmin(values))
    bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    found = optimize.minimize_scalar(slope, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return start, math.expm1(math.exp(float(found.x))), -float(found.fun)


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
    bound = np.minimum(sum(parts) + size * _ROUNDING, math.log(min(total_variation_bound(rho), 1.0)))
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
