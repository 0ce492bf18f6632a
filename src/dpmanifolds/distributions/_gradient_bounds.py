"""How the gradient of F(x) = (1/2n) Σ ρ²(x, x_i) grows with the distance from the mean, for records of a ball.

Along a geodesic from the mean x̂ of n records of a ball of radius r the Hessian of F is an average of Hessians of
½ρ²(·, x_i), each at least √κρ·cot(√κρ) for curvature at most κ > 0 (1 for κ ≤ 0), and at most √−κρ·coth(√−κρ) for
curvature at least κ < 0 (1 for κ ≥ 0), at a distance ρ ≤ ρ(x̂, x_i) + u after a way u, and below 2r. All of it is public
but the distances; and as x̂ minimises F, their squares average to at most 2F(m₀) ≤ r².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmanifolds._arrays import x_cot_x, x_coth_x
from dpmanifolds.distributions._ball_proposals import ball_proposal
from dpmanifolds.distributions._lens_proposals import LensProposal, cap_part, cap_share, log_sn
from dpmanifolds.domains import Ball

__all__ = ["ROUNDING", "Lift", "acceptance_bound", "lift_by"]

ROUNDING = 1e-12
_STEPS = 64
_STANDS = 5
_PAIRS = 40
_LEAST = -1e9


class Lift(NamedTuple):
    """A concave, piecewise linear function G of the way from the mean, G(0) = 0."""

    ways: np.ndarray
    values: np.ndarray

    def at(self, way: np.ndarray) -> np.ndarray:
        """G."""
        return np.asarray(np.interp(way, self.ways, self.values))

    @property
    def slope(self) -> float:
        """Of the line from 0 to the end, below G."""
        return float(self.values[-1] / self.ways[-1])

    def bend(self, sigma: float, way: np.ndarray) -> np.ndarray:
        """The logarithm of what e^{−G/σ} is, over that of the line: convex."""
        return np.asarray((self.slope * way - self.at(way)) / sigma)


def lift_by(hessian: Callable[[float], float], reach: float) -> Lift:
    """A lower bound of ∫₀^s of a decreasing function, which lies above its value at the end of each step."""
    ways = reach * (np.arange(_STEPS + 1) / _STEPS) ** 2
    slopes = np.array([hessian(way) for way in ways[1:].tolist()])
    slopes = np.minimum.accumulate(slopes - ROUNDING * (1 + np.abs(slopes)))
    return Lift(ways, np.concatenate([[0.0], np.cumsum(slopes * np.diff(ways))]))


def acceptance_bound(ball: Ball, sigma: float) -> float:
    """A lower bound of how often a proposal of the K-norm gradient law is accepted, for all records of the ball.

    exp(−‖∇F‖/σ) is at least e^{−Ḡ(ρ(x̂,·))/σ}, Ḡ the integral of the largest Hessian; its integral is at least that
    over the caps of the lower curvature and the volume of the upper one (Günther). It is compared with what is
    proposed, for means at five distances from the centre, by sums over cells: a bound up to that, on which time hangs
    and no promise. Public: no record is looked at.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Euclidean
    >>> wide = Ball(Euclidean(60), np.zeros(60), 1.0)
    >>> [round(acceptance_bound(wide, sigma), 2) for sigma in (1.0, 0.18, 0.001)]
    [0.92, 0.93, 0.98]
    """
    manifold, radius = ball.manifold, ball.radius
    lower, upper = manifold.curvature_bounds
    everywhere = LensProposal(ball_proposal(manifold, 0.0, radius), 0.0, radius).log_total
    worst = math.inf
    for distance in np.linspace(0.0, radius, _STANDS).tolist():
        reach = radius + distance
        lift = lift_by(lambda way: _least_hessian(upper, radius, way), reach)
        source = ball_proposal(manifold, max(lift.slope, 0.0) / sigma, reach)
        lens = LensProposal(source, distance, radius, partial(lift.bend, sigma))
        s, width = lens.midpoints
        with np.errstate(all="ignore"):
            share = np.log(cap_share(manifold.dim, cap_part(lower, distance, radius, s)))
            area = (manifold.dim - 1) * log_sn(upper, s) + share
            logs = np.log(width) + area - _largest_growth(lower, radius, s) / sigma
            top = float(np.max(logs))
            least = top + math.log(float(np.sum(np.exp(logs - top)))) if top > -math.inf else -math.inf
        around = least - lens.log_total - ROUNDING * (1 + 2 * radius) / sigma if lift.slope > 0 else -math.inf
        worst = min(worst, max(around, least - everywhere))
    return math.exp(min(worst, 0.0))


def _least_hessian(upper: float, radius: float, way: float) -> float:
    """The least average of √κρ·cot(√κρ) at ρ = ρ_i + way, over distances ρ_i ≤ 2r with ρ_i² at most r² on average.

    A least average over laws of ρ_i² with a given mean is one over two points: the lower convex hull.
    """
    if upper <= 0:
        return 1.0
    root = math.sqrt(upper)
    low = radius**2 * np.arange(_PAIRS + 1) / _PAIRS
    high = radius**2 * (1 + 3 * np.arange(_PAIRS + 1) / _PAIRS)

    def values(squares: np.ndarray) -> np.ndarray:
        angle = root * (np.sqrt(squares) + way)
        return np.where(angle < math.pi, x_cot_x(np.minimum(angle, 3.0)), _LEAST)

    share = (radius**2 - low[:, None]) / np.maximum(high - low[:, None], 1e-300)
    mixed = (1 - share) * values(low)[:, None] + share * values(high)
    return max(float(np.min(mixed)), float(x_cot_x(np.array(2 * root * radius))))


def _largest_growth(lower: float, radius: float, way: np.ndarray) -> np.ndarray:
    """An upper bound of ‖∇F‖ after a way from the mean: √y·coth√y is concave in y, and ρ_i + u is r + u on average."""
    if lower >= 0:
        return way
    root = math.sqrt(-lower)
    return np.asarray(way * x_coth_x(root * np.minimum(radius + way, 2 * radius)))
