"""The K-norm gradient law of the Fréchet mean on a ball.

For records of a ball, the gradient of F(x) = (1/2n) Σ ρ²(x, x_i) grows with the distance from the mean. Along a
geodesic from the mean x̂ of n records of a ball of radius r the Hessian of F is an average of Hessians of ½ρ²(·, x_i),
each at least √κρ·cot(√κρ) for curvature at most κ > 0 (1 for κ ≤ 0), and at most √−κρ·coth(√−κρ) for curvature at least
κ < 0 (1 for κ ≥ 0), at a distance ρ ≤ ρ(x̂, x_i) + u after a way u, and below 2r. All of it is public but the
distances; and as x̂ minimises F, their squares average to at most 2F(m₀) ≤ r².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, like, x_cot_x, x_coth_x
from dpmanifolds._points import host
from dpmanifolds._validate import positive_number
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, RadiusTooLargeError
from dpmanifolds.intrinsic.law import Size, checked_point, size_of
from dpmanifolds.intrinsic.proposals import LensProposal, ball_proposal, cap_part, cap_share, collect, log_sn
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import as_generator

_BLOCK = 1 << 21
_BATCH = 1 << 14
_POLISHING_STEPS = 50


class KNormGradientLaw:
    """Density ∝ exp(−‖∇F(x)‖/σ) on the ball B_r(m₀), F(x) = (1/2n) Σ ρ²(x, x_i) (MATH.md sections 2 and 3).

    Draws are exact for any `estimate` x̂ of the mean in the ball; a good one makes them fast. Let H(u) be a decreasing
    lower bound of the Hessian of F at the points of the ball within u of x̂, and G(s) = ∫₀^s H. The geodesic from x̂ to x
    stays in the ball, as balls of this radius are convex, and along it ⟨∇F, γ'⟩ grows by at least G(ρ), ρ = ρ(x̂,x).
    Hence ‖∇F(x)‖ ≥ G(ρ(x̂,x)) − ‖∇F(x̂)‖, and two exact rejections:
    (i) propose x in the ball with density ∝ e^{−G(ρ(x̂,x))/σ} (`LensProposal`), and accept it with
    exp(−(‖∇F(x)‖ − G(ρ(x̂,x)) + ‖∇F(x̂)‖)/σ) ≤ 1, where G > 0 at the far end of the ball;
    (ii) propose x uniformly in the ball and accept it with exp(−‖∇F(x)‖/σ).
    Both are made side by side, and what either accepts is a draw: nothing is chosen by what the records are.

    H = 1 where the curvature is at most 0. For curvature at most κ > 0, ½ρ²(·,x_i) has Hessian ≥ g(distance),
    g(s) = √κs·cot(√κs) decreasing, so H(u) = max(avg_i g(ρ(x̂,x_i) + u), avg_i g(r + ρ(m₀,x_i))).

    **The time of a draw depends on the records**: it must not be observable where they are private. A draw never fails:
    it goes on until a proposal is accepted. `acceptance_bound` says in advance, for all records of a ball, how often.

    `clipped`: records and estimate were clipped to the ball before, and are not checked again.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.intrinsic.knorm_gradient import KNormGradientLaw
    >>> sphere, north = Sphere(2), np.array([0.0, 0.0, 1.0])
    >>> records = sphere.exp(north, 0.1 * np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]))
    >>> law = KNormGradientLaw(sphere, records, center=north, radius=0.3, sigma=0.05, estimate=north)
    >>> law.sample(4, rng=0).shape
    (4, 3)
    """

    def __init__(
        self,
        manifold: Manifold,
        records: Array,
        center: Array,
        radius: float,
        sigma: float,
        estimate: Array,
        *,
        clipped: bool = False,
    ) -> None:
        self.ball = Ball(manifold, center, radius)
        if not self.ball.has_unique_mean:
            raise RadiusTooLargeError(
                f"the gradient of the mean is bounded for radii below {manifold.max_radius:.6g} on {manifold!r}; got "
                f"{self.ball.radius:.6g}. Use a smaller ball."
            )
        self.manifold, self.radius = manifold, self.ball.radius
        self.sigma = positive_number("sigma", sigma)
        self.center = self.ball.center
        self._center = host(self.center)
        if not clipped:
            self._check(records, estimate)
        self.estimate, self._records = host(estimate), host(records)
        self._reach = self.radius + float(manifold.dist(self._center, self.estimate))
        self._polish()
        self._lift = self._lift_bound()
        self._proposals = self._make_proposals()

    def _check(self, records: Array, estimate: Array) -> None:
        points = host(self.manifold.as_points(records, "records"))
        if points.ndim != len(self.manifold.point_shape) + 1 or not points.shape[0]:
            raise ArgumentError("records must have one leading axis, of length at least 1.")
        if not np.all(np.isfinite(points)) or not np.all(self.manifold.belongs(points)):
            raise NotOnManifoldError(f"records must lie on {self.manifold!r}.")
        if not np.all(self.ball.contains(points)):
            raise ArgumentError("records must lie in the ball; clip them first.")
        inside = host(checked_point(self.manifold, estimate, "estimate"))
        if float(self.manifold.dist(self._center, inside)) > self.radius * (1 + 1e-9):
            raise ArgumentError("estimate must lie in the ball; clip it first.")

    def _lift_bound(self) -> Lift:
        """G with ‖∇F(x)‖ ≥ G(ρ(x̂,x)) − ‖∇F(x̂)‖ on the ball."""
        upper = self.manifold.curvature_bounds[1]
        if upper <= 0:
            return lift_by(lambda _: 1.0, self._reach)
        root = math.sqrt(upper)
        everywhere = float(np.mean(x_cot_x(root * (self.radius + self.manifold.dist(self._center, self._records)))))
        from_estimate = root * self.manifold.dist(self.estimate, self._records)

        def hessian(way: float) -> float:
            angles = from_estimate + root * way
            along = float(np.mean(x_cot_x(angles))) if np.max(angles) < math.pi else -math.inf
            return max(along, everywhere)

        return lift_by(hessian, self._reach)

    def gradient_norm(self, points: np.ndarray) -> np.ndarray:
        """‖∇F‖ at points (m, *point_shape), in blocks of bounded memory.

        A record whose logarithm floating point does not hold counts as one at the point itself.
        """
        result = np.empty(points.shape[0])
        rows = max(1, _BLOCK // self._records.size)
        for start in range(0, points.shape[0], rows):
            base = points[start : start + rows]
            logs = self.manifold.log(base[:, None], self._records[None])
            axes = tuple(range(2, logs.ndim))
            logs = np.where(np.all(np.isfinite(logs), axis=axes, keepdims=True), logs, 0.0)
            result[start : start + rows] = self.manifold.norm(base, np.mean(logs, axis=1))
        return result

    def _polish(self) -> None:
        """Karcher steps from the estimate, as long as they stay in the ball and shrink the gradient by a tenth."""
        size = float(self.gradient_norm(self.estimate[None])[0])
        for _ in range(_POLISHING_STEPS):
            step = np.mean(self.manifold.log(self.estimate[None], self._records), axis=0)
            candidate = np.asarray(self.manifold.exp(self.estimate, step))
            smaller = float(self.gradient_norm(candidate[None])[0])
            distance = float(self.manifold.dist(self._center, candidate))
            if not (smaller < 0.9 * size and distance <= self.radius):
                break
            self.estimate, size, self._reach = candidate, smaller, self.radius + distance
        self._gradient_at_estimate = size

    def _make_proposals(self) -> list[_Proposals]:
        """(ii), and (i) where there is one."""
        uniform = _Proposals(self._center, ball_proposal(self.manifold, 0.0, self.radius).draw, np.zeros_like, 0.0)
        if self._lift.slope <= 0:
            return [uniform]
        around = ball_proposal(self.manifold, self._lift.slope / self.sigma, self._reach)
        lens = LensProposal(around, self._reach - self.radius, self.radius, partial(self._lift.bend, self.sigma))
        offset = self._gradient_at_estimate + ROUNDING * (1 + 2 * self.radius)
        return [uniform, _Proposals(self.estimate, partial(lens.draw, self._axis()), self._lift.at, offset)]

    def _axis(self) -> np.ndarray:
        """The direction from the estimate to the centre; any where they are one point."""
        manifold = self.manifold
        way = np.asarray(manifold.to_coordinates(self.estimate, manifold.log(self.estimate, self._center)))
        length = np.linalg.norm(way)
        return np.asarray(way / length) if length > 0 else np.eye(manifold.dim)[0]

    def _propose(self, kind: _Proposals, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Points, and which are accepted."""
        distance, coordinates, excess = kind.draw(size, rng)
        patience = rng.standard_exponential(size) - excess
        vectors = self.manifold.from_coordinates(kind.base, coordinates)
        points = np.asarray(self.manifold.exp(kind.base, vectors))
        open_rows = (patience >= 0) & (self.manifold.dist(self._center, points) <= self.radius)
        rows = np.flatnonzero(open_rows)
        gradient = self.gradient_norm(points[rows])
        open_rows[rows] = patience[rows] * self.sigma >= gradient - kind.lift(distance[rows]) + kind.offset
        return points, open_rows

    def _propose_all(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """`size` proposals of each kind, as rows of real numbers."""
        made = [self._propose(kind, size, rng) for kind in self._proposals]
        points = np.ascontiguousarray(np.concatenate([part[0] for part in made]))
        return points.reshape(points.shape[0], -1).view(np.float64), np.concatenate([part[1] for part in made])

    def sample(self, size: Size = (), rng: Any = None) -> Array:
        """Independent exact draws (*size, *point_shape), in the library and precision of the centre."""
        leading, count = size_of(size)
        width = self._center.size * (2 if np.iscomplexobj(self._center) else 1)
        rows = collect(count, width, self._propose_all, as_generator(rng), batch=_BATCH)
        return like(rows.view(self._center.dtype).reshape((*leading, *self.manifold.point_shape)), self.center)

    def log_density_unnormalized(self, points: Array) -> Array:
        """−‖∇F(x)‖/σ at points (..., *point_shape) of the ball, minus infinity outside."""
        given = self.manifold.as_points(points)
        flat = host(given).reshape((-1, *self.manifold.point_shape))
        value = np.where(self.ball.contains(flat), -self.gradient_norm(flat) / self.sigma, -math.inf)
        return like(value.reshape(self.manifold.batch_shape(given)), given)


class _Proposals(NamedTuple):
    """Proposals ∝ e^{−G(ρ(base,·))/σ}, accepted with exp(−(‖∇F‖ − G(ρ) + offset)/σ)."""

    base: np.ndarray
    draw: Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]
    lift: Callable[[np.ndarray], np.ndarray]
    offset: float


ROUNDING = 1e-12
_LIFT_STEPS = 64
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
    ways = reach * (np.arange(_LIFT_STEPS + 1) / _LIFT_STEPS) ** 2
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
