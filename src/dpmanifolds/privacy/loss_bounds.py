"""What follows from the tails of a pair's privacy loss: the smallest μ of Gaussian DP, and Rényi divergences.

**μ** is a supremum over all thresholds, bounded cell by cell. With y(t) = Φ⁻¹(P₁(L ≥ t)), z(t) = Φ⁻¹(P₂(L ≥ t)), the
pair is μ-GDP if and only if m(t) = y(t) − z(t) ≤ μ for all t ≥ 0 (docs/proofs/gaussian_dp.md). m exceeds the μ_ε of
MATH.md section 5 at each ε and has the same supremum. **D_α** is an integral over all thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr

from dpmanifolds.errors import ConvergenceError
from dpmanifolds.privacy.loss_pair import LossPair, probit_of_log, probits, shrink

_Function = Callable[[np.ndarray], np.ndarray]
_DEGREE = 20
_ANGLES = np.linspace(0.0, np.pi, _DEGREE + 1)
_TOLERANCE = 1e-11
_RESOLVED = 1e-11
_ROUNDING = 8e-15
_ROUNDS = 40
_HALVINGS = 60
_PANELS = 4000
_CHARGED = 4
"""What is added to the supremum of the relative error of tails, in units of that at the threshold 0."""
_PROBIT_SLOPE = 2.6
"""P/φ(Φ⁻¹(P)) ≤ √(π/2) for P ≤ ½: how much a relative error of P moves its probit; twice that for two probits."""
_GRID = -np.cos(_ANGLES)
_EVERY_FIFTH = np.arange(_DEGREE + 1) % 5 == 0
_COARSE = _GRID[_EVERY_FIFTH]
_TO_COEFFICIENTS = np.cos(np.outer(np.pi - _ANGLES, np.arange(_DEGREE + 1))) * 2 / _DEGREE
_TO_COEFFICIENTS[[0, -1], :] /= 2
_TO_COEFFICIENTS[:, [0, -1]] /= 2
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_RENYI_TOLERANCE = 1e-12
_RENYI_SCAN = 65
_DEPTH = 50.0
_SHRINKS = 6


def _between(y: np.ndarray, z: np.ndarray, t: np.ndarray) -> np.ndarray:
    """An upper bound of m between consecutive thresholds, from the values there alone.

    The power b of the best test is a concave function of its level a, with slope e^t where the threshold is t, and
    Φ⁻¹(b) − Φ⁻¹(a) is quasi-convex along lines. So up to any chosen power the tangent at one end bounds m, from there
    on the tangent at the other; the power is chosen at the middle of the two probits.
    """
    middle = (y[..., :-1] + y[..., 1:]) / 2
    left, right = slice(None, -1), slice(1, None)
    log_middle = log_ndtr(middle)
    with np.errstate(all="ignore"):
        # Φ(z_left) − e^{−t_left}(Φ(y_left) − Φ(middle)), Φ(z_right) + e^{−t_right}(Φ(middle) − Φ(y_right))
        lost = log_ndtr(y[..., left]) + np.log1p(-np.exp(log_middle - log_ndtr(y[..., left]))) - t[..., left]
        gained = log_middle + np.log1p(-np.exp(log_ndtr(y[..., right]) - log_middle)) - t[..., right]
        from_left = log_ndtr(z[..., left]) + np.log1p(-np.exp(lost - log_ndtr(z[..., left])))
        from_right = np.logaddexp(log_ndtr(z[..., right]), gained)
        first, second = middle - probit_of_log(from_left), middle - probit_of_log(from_right)
    ends = np.maximum(y[..., left] - z[..., left], y[..., right] - z[..., right])
    bound = np.maximum(ends, np.maximum(first, second))
    return np.where(np.isnan(bound), np.inf, bound)


def _last_threshold(pair: LossPair, level: float) -> float:
    """A threshold beyond which m ≤ level is proven."""
    last = pair.gaussian_tail(level)
    if math.isfinite(last):
        return last
    if math.isinf(pair.largest):
        raise ConvergenceError(f"no tail bound of the privacy loss was found at mu = {level:g}.")
    # L ≤ largest: the power is at most e^largest times the level, and m along that line decreases towards 0
    candidates = pair.largest * -np.expm1(-math.log(2) * np.arange(1, 26, 2))
    log_power = pair.tails(candidates).above_first
    with np.errstate(invalid="ignore"):
        bound = probit_of_log(log_power) - probit_of_log(log_power - pair.largest)
    proven = np.flatnonzero((bound <= level) | np.isneginf(log_power))
    if not proven.size:
        raise ConvergenceError(f"the privacy loss near its largest value {pair.largest:g} could not be resolved.")
    return float(candidates[proven[0]])


def _first_panels(pair: LossPair, floor: float) -> tuple[float, np.ndarray, np.ndarray]:
    """A value that m attains, or `floor`, and panels of all thresholds at which it can be exceeded.

    Their edges are 0, step, 2·step, 4·step, …, and close in on the largest loss where there is one.
    """
    best = max(pair.at_zero, floor)
    last = _last_threshold(pair, best)
    edges, step = [0.0], max(best, 1e-3 * last)
    while step < last:
        edges.append(step)
        step *= 2
        if math.isfinite(pair.largest) and step > pair.largest / 2:
            break
    if math.isfinite(pair.largest):
        closing = pair.largest * -np.expm1(-math.log(2) * np.arange(1, 60))
        edges += [float(edge) for edge in closing if edges[-1] < edge < last]
    edges = [*edges, last] if last > 0 else []
    return best, np.array(edges[:-1]), np.array(edges[1:])


def _peak(coefficients: np.ndarray, best: float) -> tuple[float, float]:
    """Lower and upper bound of the maximum of Σ c_k cos kθ over [0, π], the upper one only where it exceeds `best`.

    On a cell of width w a function is below the larger of its ends plus w²/8 times the bound Σ k²|c_k| of its second
    derivative.
    """
    orders = np.arange(coefficients.size)
    bend = float(np.sum(orders**2 * np.abs(coefficients)))
    left, width = np.linspace(0.0, np.pi, 65)[:-1], np.pi / 64
    upper = best
    for _ in range(_HALVINGS):
        ends = np.cos(np.stack([left, left + width])[..., None] * orders) @ coefficients
        best = max(best, float(np.max(ends)))
        bound = np.max(ends, axis=0) + width * width / 8 * bend
        done = bound <= best + _TOLERANCE * min(1.0, best) + 1e-14
        upper = max(upper, float(np.max(bound[done], initial=-np.inf)))
        left, width = left[~done], width / 2
        if not left.size:
            return best, max(upper, best)
        left = np.concatenate([left, left + width])
    raise ConvergenceError("the supremum of a polynomial was not found.")


def supremum(pair: LossPair, floor: float = 0.0) -> float:
    """An upper bound of m(t) over all t ≥ 0, or of `floor` where that is larger.

    A panel of thresholds is settled if the values at five of its nodes prove by `_between` that m stays below a value
    attained elsewhere, or else if its Chebyshev series of degree 20 has converged to 1e−11 (then the series is bounded
    cell by cell); other panels are halved. Beyond the last panel the bound of `_last_threshold` holds. The numerical
    error (quadrature and truncation of the series) is added to the bound.
    """
    best, left, right = _first_panels(pair, floor)
    upper = best
    truncation = 0.0
    for _ in range(_ROUNDS):
        if left.size:
            t = _thresholds(left, right, _COARSE)
            y, z = _safe_probits(pair, t)
            best = max(best, float(np.max(y - z)))
            still_open = np.max(_between(y, z, t), axis=1) > best
            left, right = left[still_open], right[still_open]
        if not left.size:
            error = _PROBIT_SLOPE * _CHARGED * pair.error + truncation
            return max(upper, best) + error
        y, z = _fill(pair, left, right, y[still_open], z[still_open])
        best = max(best, float(np.max(y - z)))
        coefficients = (y - z) @ _TO_COEFFICIENTS
        tail = np.max(np.abs(coefficients[:, -3:]), axis=1)
        resolved = tail <= _RESOLVED * max(1.0, best) + _ROUNDING * np.max(np.abs(z), axis=1)
        for row in np.flatnonzero(resolved):
            reached, bound = _peak(coefficients[row], best)
            best, upper = max(best, reached), max(upper, bound)
            truncation = max(truncation, 4 * float(tail[row]))
        left, right = left[~resolved], right[~resolved]
        if left.size > _PANELS:
            break
        middle = (left + right) / 2
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    raise ConvergenceError("the supremum over all thresholds of the privacy loss did not settle.")


def _safe_probits(pair: LossPair, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probits; where the error of the tails moves them by more than is charged, moved apart by the excess."""
    tails = pair.tails(t)
    y, z = probits(tails)
    most = _PROBIT_SLOPE / 2
    with np.errstate(divide="ignore"):
        # P/φ(Φ⁻¹(P)) ≤ 1/|Φ⁻¹(P)|, Mills' ratio
        moved = [np.minimum(most, 1 / np.abs(probit)) * tails.error for probit in (y, z)]
    allowed = most * _CHARGED * pair.error
    return y + np.maximum(moved[0] - allowed, 0.0), z - np.maximum(moved[1] - allowed, 0.0)


def _thresholds(left: np.ndarray, right: np.ndarray, grid: np.ndarray) -> np.ndarray:
    return np.asarray((left + right)[:, None] / 2 + (right - left)[:, None] / 2 * grid)


def _fill(
    pair: LossPair, left: np.ndarray, right: np.ndarray, y: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The probits at all Chebyshev nodes, given those at every fifth."""
    new = _safe_probits(pair, _thresholds(left, right, _GRID[~_EVERY_FIFTH]))
    whole = np.empty((2, left.size, _GRID.size))
    whole[:, :, _EVERY_FIFTH], whole[:, :, ~_EVERY_FIFTH] = (y, z), new
    return whole[0], whole[1]


def certified_supremum(pair: LossPair, tolerance: float, floor: float = 0.0) -> float:
    """As `supremum`, without any series: cells are halved until `_between` alone proves the bound.

    Slow (tens of thousands of thresholds): about √(μ/8·tolerance) cells per unit of the probit.
    """
    best, left, right = _first_panels(pair, floor)
    upper = best
    error = _PROBIT_SLOPE * _CHARGED * pair.error
    for _ in range(_ROUNDS):
        if not left.size:
            return max(upper, best) + error
        t = np.linspace(left, right, 9, axis=1)
        y, z = _safe_probits(pair, t)
        best = max(best, float(np.max(y - z)))
        bound = _between(y, z, t)
        done = bound <= best + tolerance
        upper = max(upper, float(np.max(bound[done], initial=-np.inf)))
        left, right = t[:, :-1][~done], t[:, 1:][~done]
    raise ConvergenceError(f"cells could not be made small enough for a tolerance of {tolerance:g}.")


def renyi_divergence(pair: LossPair, alpha: float) -> float:
    """D_α(P₁‖P₂) = D_α(P₂‖P₁) for finite α ≥ 1 (the Kullback–Leibler divergence for α = 1), to about 1e−11 relative.

    With β = α − 1 and the symmetry of the loss, E₁[e^{βL}] − 1 = β∫₀^∞ k(t) P₁(L ≥ t) dt, where
    k(t) = e^{βt}(1 − e^{−(2β+1)t}) + e^{−t}(1 − e^{−βt})/β ≥ 0: nothing cancels, however close α is to 1.

    >>> from dpmanifolds.privacy.loss_bounds import renyi_divergence
    >>> from dpmanifolds.privacy.loss_pair import FlatPair
    >>> round(renyi_divergence(FlatPair(0.5), 3.0), 12)
    0.375
    """
    beta = alpha - 1

    def log_integrand(t: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            grown = beta * t + np.log(-np.expm1(-(2 * beta + 1) * t))
            shrunk = np.log(-np.expm1(-beta * t) / beta) if beta else np.log(t)
            return np.asarray(np.logaddexp(grown, shrunk - t) + pair.above_first(t))

    low, high = _support(pair, log_integrand)
    top = float(np.max(log_integrand(np.linspace(low, high, _RENYI_SCAN))))
    # a tail of size e^{−x} carries a rounding error of about x·1e−16, and the result is divided by as much again
    tolerance = _RENYI_TOLERANCE * (1 + abs(top))
    log_mean = top + math.log(_integral(lambda t: np.exp(log_integrand(t) - top), low, high, tolerance))
    return float(np.logaddexp(0.0, math.log(beta) + log_mean) / beta) if beta else math.exp(log_mean)


def _support(pair: LossPair, log_integrand: _Function) -> tuple[float, float]:
    """An interval outside of which the integrand is below e^−50 of its largest value."""
    end = pair.largest
    if math.isinf(end):
        grid = 2.0 ** np.arange(-30, 60)
        values = log_integrand(grid)
        fallen = np.flatnonzero(values < np.max(values) - _DEPTH)
        fallen = fallen[fallen > np.argmax(values)]
        if not fallen.size:
            raise ConvergenceError("the Rényi divergence did not settle at this order.")
        end = float(grid[fallen[0]])
    low, high = np.zeros(1), np.full(1, end)
    for _ in range(_SHRINKS):
        low, high = shrink(log_integrand, low, high, _DEPTH)
    return float(low[0]), float(high[0])


def _integral(function: _Function, low: float, high: float, tolerance: float) -> float:
    """∫ from low to high by Gauss–Legendre panels that are halved until 16 nodes agree with 2 × 16."""
    edges = np.linspace(low, high, 7)
    left, right = edges[:-1], edges[1:]
    whole = _panels(function, left, right)
    total = 0.0
    for _ in range(_ROUNDS):
        middle = (left + right) / 2
        first, second = _panels(function, left, middle), _panels(function, middle, right)
        reference = total + float(np.sum(first + second))
        agrees = np.abs(first + second - whole) <= tolerance * reference
        total += float(np.sum((first + second)[agrees]))
        if np.all(agrees):
            return total
        split = ~agrees
        left, right = (
            np.concatenate([left[split], middle[split]]),
            np.concatenate([middle[split], right[split]]),
        )
        whole = np.concatenate([first[split], second[split]])
    raise ConvergenceError("the integral of a Rényi divergence did not settle.")


def _panels(function: _Function, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    half = (right - left) / 2
    return np.asarray(half * (function(left[:, None] + half[:, None] * (_NODES + 1)) @ _WEIGHTS))
