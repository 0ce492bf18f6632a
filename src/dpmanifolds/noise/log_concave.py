"""Exact draws from a one-dimensional log-concave density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from dpmanifolds.errors import ConvergenceError

Function: TypeAlias = Callable[[np.ndarray], np.ndarray]

_SLACK = 1e-9
_EFFICIENCY = 0.95
_REFINEMENTS = 60
_ROUNDS = 64
_DOUBLINGS = 100
_HALVINGS = 8


class LogConcaveSampler:
    """Rejection from a piecewise exponential hull of tangents (Devroye 1986, VII.2; Gilks and Wild 1992).

    Let h be concave on (lower, upper) with derivative h'. Every tangent lies above h, so for points x₁ < … < x_n
    the hull H(x) = h(x_i) + h'(x_i)(x − x_i) on [z_{i−1}, z_i], with any z_i in [x_i, x_{i+1}], has h ≤ H. A draw
    from the density ∝ e^H is accepted with probability e^{h−H}; accepted draws have density ∝ e^h exactly.
    Tangents are added until the area under the chords (a lower bound of ∫e^h) is 0.95 of the area under the hull.

    `log_density` and `derivative` take and return float64 arrays, may be off by rounding and must be finite
    inside the interval; `mode` need only be near the maximum, `scale` within 2^±100 of the spread. The hull is
    raised by 1e−9 so that it stays above h although both carry rounding errors (of about 1e−12 or less); a draw
    that finds h above the hull all the same raises `ConvergenceError`: then h is not concave or h' is wrong.

    >>> import numpy as np
    >>> from dpmanifolds.noise import LogConcaveSampler
    >>> normal = LogConcaveSampler(lambda x: -x * x / 2, lambda x: -x, mode=0.0, scale=1.0, lower=-np.inf)
    >>> bool(abs(normal.sample(10_000, np.random.default_rng(0)).std() - 1) < 0.03)
    True
    """

    def __init__(
        self,
        log_density: Function,
        derivative: Function,
        *,
        mode: float,
        scale: float,
        lower: float = 0.0,
        upper: float = math.inf,
    ) -> None:
        self._log_density = log_density
        self._derivative = derivative
        self.lower, self.upper = lower, upper
        start = [np.array([mode])]
        start += [falls(log_density, mode, end, scale, np.array([0.5, 2.0])) for end in (lower, upper)]
        with np.errstate(all="ignore"):
            self.hull = self._refine(self._tangents(np.concatenate(start)))

    @property
    def acceptance(self) -> float:
        """A lower bound of the probability that a proposal is accepted."""
        return self.hull.efficiency

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` independent draws (float64)."""
        draws = np.empty(count)
        open_slots = np.arange(count)
        for _ in range(_ROUNDS):
            if not open_slots.size:
                return draws
            with np.errstate(all="ignore"):
                proposals, heights = self.hull.propose(open_slots.size, rng)
                excess = heights + _SLACK - self._log_density(proposals)
            if not np.all(excess >= 0):
                raise ConvergenceError(
                    "a log-density rises above its tangents: it is not concave, or its derivative is not accurate."
                )
            accepted = rng.standard_exponential(open_slots.size) >= excess
            draws[open_slots[accepted]] = proposals[accepted]
            open_slots = open_slots[~accepted]
        if not open_slots.size:
            return draws
        raise ConvergenceError(f"a log-concave sampler did not finish within {_ROUNDS} rounds of rejection.")

    def _tangents(self, points: np.ndarray) -> _Tangents:
        points = np.unique(points)
        values, slopes = self._log_density(points), self._derivative(points)
        usable = np.isfinite(values) & np.isfinite(slopes)
        if not np.any(usable):
            raise ConvergenceError("a log-density or its derivative is not finite around its mode.")
        return _Tangents(points[usable], values[usable], slopes[usable])

    def _refine(self, tangents: _Tangents) -> _Hull:
        for _ in range(_REFINEMENTS):
            hull = _Hull(tangents, self.lower, self.upper)
            if hull.efficiency >= _EFFICIENCY:
                return hull
            tangents = self._tangents(np.concatenate([tangents.points, hull.suggestions()]))
        raise ConvergenceError("no tight hull of a log-density was found: it is not concave, or nearly improper.")


class _Tangents(NamedTuple):
    points: np.ndarray
    values: np.ndarray
    slopes: np.ndarray


class _Hull:
    """The piecewise linear hull of tangents: piece i carries tangent i between edges i and i+1."""

    def __init__(self, tangents: _Tangents, lower: float, upper: float) -> None:
        points, values, slopes = self.tangents = tangents
        self.edges = np.concatenate([[lower], _meeting_points(tangents), [upper]])
        self.falling = slopes <= 0
        before, after = points - self.edges[:-1], self.edges[1:] - points
        self.width = before + after
        self.drop = np.where(np.isinf(self.width), np.inf, np.abs(slopes) * self.width)
        heights = values - np.max(values)
        left, right = _area(heights, -slopes, before), _area(heights, slopes, after)
        self.cumulative = np.cumsum(left + right)
        self.total = float(self.cumulative[-1])
        # what the hull has above the chords of h, between tangent points and towards both ends
        chords = _area(heights[:-1], np.diff(heights) / np.diff(points), np.diff(points))
        self.gap = np.append(left, 0.0) + np.append(0.0, right) - np.concatenate([[0.0], chords, [0.0]])
        self.efficiency = 1 - float(np.sum(self.gap)) / self.total if math.isfinite(self.total) else -math.inf

    def suggestions(self) -> np.ndarray:
        """Where further tangents help most: where neighbours meet, and one mean step into each end."""
        points, _, slopes = self.tangents
        first = points[0] - min(1 / abs(slopes[0]), (points[0] - self.edges[0]) / 2)
        last = points[-1] + min(1 / abs(slopes[-1]), (self.edges[-1] - points[-1]) / 2)
        candidates = np.concatenate([[first], self.edges[1:-1], [last]])
        share = (1 - _EFFICIENCY) / (2 * self.gap.size)
        return np.asarray(candidates[~(self.gap <= share * self.total)])

    def propose(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draws from the density ∝ e^H, and H there."""
        points, values, slopes = self.tangents
        piece = np.searchsorted(self.cumulative, rng.random(count) * self.total, side="right")
        piece = np.minimum(piece, points.size - 1)
        drop = self.drop[piece]
        # from the high end of the piece, an exponential cut at `drop`
        depth = -np.log1p(rng.random(count) * np.expm1(-drop))
        endless = np.isinf(drop)
        depth[endless] = rng.standard_exponential(int(np.count_nonzero(endless)))
        flat = drop == 0
        depth[flat] = rng.random(int(np.count_nonzero(flat)))
        step = np.where(endless, depth / np.abs(slopes[piece]), depth / np.where(flat, 1.0, drop) * self.width[piece])
        low, high = self.edges[piece], self.edges[piece + 1]
        drawn = np.clip(np.where(self.falling[piece], low + step, high - step), low, high)
        return drawn, values[piece] + slopes[piece] * (drawn - points[piece])


def _meeting_points(tangents: _Tangents) -> np.ndarray:
    """Where neighbouring tangents cross; the middle where they are parallel."""
    points, values, slopes = tangents
    gap = np.diff(points)
    along = (np.diff(values) - slopes[1:] * gap) / (slopes[:-1] - slopes[1:])
    along = np.where(np.isfinite(along), along, gap / 2)
    return np.asarray(points[:-1] + np.clip(along, 0, gap))


def _area(height: np.ndarray, slope: np.ndarray, width: np.ndarray) -> np.ndarray:
    """∫₀^width exp(height + slope·t) dt; `width` may be infinite where the slope is negative."""
    rise = np.where(np.isinf(width), -np.inf, slope * width)
    drop = np.abs(rise)
    finite = width * np.where(drop == 0, 1.0, -np.expm1(-drop) / np.where(drop == 0, 1.0, drop))
    endless = np.where(slope < 0, -1 / slope, np.inf)
    return np.asarray(np.exp(height + np.maximum(rise, 0.0)) * np.where(np.isinf(width), endless, finite))


def falls(log_density: Function, mode: float, end: float, scale: float, levels: np.ndarray) -> np.ndarray:
    """Points between `mode` and `end` where a concave log-density has fallen by about each of `levels`.

    `end` itself where it never falls that far.
    """
    span = abs(end - mode)
    sign = 1.0 if end > mode else -1.0
    if span == 0:
        return np.full(levels.shape, end)
    offsets = np.minimum(scale * 2.0 ** np.arange(-_DOUBLINGS, _DOUBLINGS + 1), span)
    with np.errstate(all="ignore"):
        top = log_density(np.array([mode]))
        fallen = top - log_density(mode + sign * offsets)
        first = np.argmax(fallen[:, None] >= levels, axis=0)
        reached = fallen[first] >= levels
        outer, inner = offsets[first], np.where(first > 0, offsets[first - 1], 0.0)
        for _ in range(_HALVINGS):
            middle = (inner + outer) / 2
            far = top - log_density(mode + sign * middle) >= levels
            inner, outer = np.where(far, inner, middle), np.where(far, middle, outer)
    return np.asarray(np.where(reached, mode + sign * outer, end))
