"""Rényi divergences of a pair of laws, from the tails of its privacy loss."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpmanifolds.errors import ConvergenceError
from dpmanifolds.privacy._loss_quadrature import shrink
from dpmanifolds.privacy._loss_tails import LossPair

__all__ = ["renyi_divergence"]

_Function = Callable[[np.ndarray], np.ndarray]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_TOLERANCE = 1e-12
_DEPTH = 50.0
_ROUNDS = 40
_SHRINKS = 6
_SCAN = 65


def renyi_divergence(pair: LossPair, alpha: float) -> float:
    """D_α(P₁‖P₂) = D_α(P₂‖P₁) for finite α ≥ 1 (the Kullback–Leibler divergence for α = 1), to about 1e−11 relative.

    With β = α − 1 and the symmetry of the loss, E₁[e^{βL}] − 1 = β∫₀^∞ k(t) P₁(L ≥ t) dt, where
    k(t) = e^{βt}(1 − e^{−(2β+1)t}) + e^{−t}(1 − e^{−βt})/β ≥ 0: nothing cancels, however close α is to 1.

    >>> from dpmanifolds.privacy._loss_renyi import renyi_divergence
    >>> from dpmanifolds.privacy._loss_tails import FlatPair
    >>> round(renyi_divergence(FlatPair(0.5), 3.0), 12)
    0.375
    """
    beta = alpha - 1

    def log_integrand(t: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            grown = beta * t + np.log(-np.expm1(-(2 * beta + 1) * t))
            shrunk = np.log(-np.expm1(-beta * t) / beta) if beta else np.log(t)
            return np.asarray(np.logaddexp(grown, shrunk - t) + pair.tails(t).above_first)

    low, high = _support(pair, log_integrand)
    top = float(np.max(log_integrand(np.linspace(low, high, _SCAN))))
    # a tail of size e^{−x} carries a rounding error of about x·1e−16, and the result is divided by as much again
    tolerance = _TOLERANCE * (1 + abs(top))
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
