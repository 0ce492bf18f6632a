"""The K-norm gradient law of the Fréchet mean on a ball."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, like, to_numpy, x_cot_x
from dpmanifolds._validate import positive_number
from dpmanifolds.distributions._arguments import Size, checked_point, size_of
from dpmanifolds.distributions._ball_proposals import BallProposal, ball_proposal
from dpmanifolds.distributions._rejection import collect
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, RadiusTooLargeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import as_generator

__all__ = ["KNormGradientLaw"]

_ROUNDING = 1e-12
_BLOCK = 1 << 21
_MOST_TRIES = 2e5
_TRIALS = 256
_BATCH = 1 << 14
_POLISHING_STEPS = 50
_INTEGRATION_STEPS = 32


class KNormGradientLaw:
    """Density ∝ exp(−‖∇F(x)‖/σ) on the ball B_r(m₀), F(x) = (1/2n) Σ ρ²(x, x_i) (MATH.md sections 2 and 3).

    Draws are exact for any `estimate` x̂ of the mean in the ball; a good one makes them fast. Let H(u) be a decreasing
    lower bound of the Hessian of F at the points of the ball within u of x̂, and c the mean of H over (0, r + ρ(m₀,x̂)).
    The geodesic from x̂ to x stays in the ball, as balls of this radius are convex, and along it ⟨∇F, γ'⟩ grows by at
    least ∫₀^ρ H ≥ c·ρ, ρ = ρ(x̂,x). Hence ‖∇F(x)‖ ≥ c·ρ(x̂,x) − ‖∇F(x̂)‖, and two exact rejections:
    (i) propose x with density ∝ e^{−c·ρ(x̂,x)/σ} up to the distance r + ρ(m₀,x̂), drop it outside of the ball,
    accept it with exp(−(‖∇F(x)‖ − c·ρ(x̂,x) + ‖∇F(x̂)‖)/σ) ≤ 1;
    (ii) propose x uniformly in the ball and accept it with exp(−‖∇F(x)‖/σ).
    The one that accepts more of (up to) 256 trial proposals is taken; (ii) where c ≤ 0.

    c = 1 where the curvature is at most 0. For curvature at most κ > 0, ½ρ²(·,x_i) has Hessian ≥ g(distance),
    g(s) = √κs·cot(√κs) decreasing, so H(u) = max(avg_i g(ρ(x̂,x_i) + u), avg_i g(r + ρ(m₀,x_i))).

    **The time of a draw depends on the records**: it must not be observable where they are private. `ConvergenceError`
    is raised when more than 200,000 proposals were made for each draw that was found, or for the first.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.distributions.knorm_gradient import KNormGradientLaw
    >>> sphere, north = Sphere(2), np.array([0.0, 0.0, 1.0])
    >>> records = sphere.exp(north, 0.1 * np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]))
    >>> law = KNormGradientLaw(sphere, records, center=north, radius=0.3, sigma=0.05, estimate=north)
    >>> law.sample(4, rng=0).shape
    (4, 3)
    """

    def __init__(
        self, manifold: Manifold, records: Array, center: Array, radius: float, sigma: float, estimate: Array
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
        self._center = _host(self.center)
        self._estimate = _host(checked_point(manifold, estimate, "estimate"))
        self._records = self._checked_records(records)
        self._reach = self.radius + float(manifold.dist(self._center, self._estimate))
        if self._reach > 2 * self.radius * (1 + 1e-9):
            raise ArgumentError("estimate must lie in the ball; clip it first.")
        self._polish()
        self._slope = self._slope_bound()
        self._proposals = self._choose()

    def _checked_records(self, records: Array) -> np.ndarray:
        points = _host(self.manifold.as_points(records, "records"))
        if points.ndim != len(self.manifold.point_shape) + 1 or not points.shape[0]:
            raise ArgumentError("records must have one leading axis, of length at least 1.")
        if not np.all(np.isfinite(points)) or not np.all(self.manifold.belongs(points)):
            raise NotOnManifoldError(f"records must lie on {self.manifold!r}.")
        if not np.all(self.ball.contains(points)):
            raise ArgumentError("records must lie in the ball; clip them first.")
        return points

    def _slope_bound(self) -> float:
        """c ≥ 0 with ‖∇F(x)‖ ≥ c·ρ(x̂,x) − ‖∇F(x̂)‖ on the ball."""
        upper = self.manifold.curvature_bounds[1]
        if upper <= 0:
            return 1.0
        root = math.sqrt(upper)
        everywhere = float(np.mean(x_cot_x(root * (self.radius + self.manifold.dist(self._center, self._records)))))
        from_estimate = root * self.manifold.dist(self._estimate, self._records)
        total = 0.0
        # a decreasing function lies above its value at the end of each step
        for step in range(1, _INTEGRATION_STEPS + 1):
            angles = from_estimate + root * self._reach * step / _INTEGRATION_STEPS
            along = float(np.mean(x_cot_x(angles))) if np.max(angles) < math.pi else -math.inf
            total += max(along, everywhere)
        bound = total / _INTEGRATION_STEPS
        return max(0.0, bound - _ROUNDING * (1 + abs(bound)))

    def _gradient_norm(self, points: np.ndarray) -> np.ndarray:
        """‖∇F‖ at points (m, *point_shape), in blocks of bounded memory."""
        result = np.empty(points.shape[0])
        rows = max(1, _BLOCK // self._records.size)
        for start in range(0, points.shape[0], rows):
            base = points[start : start + rows]
            logs = self.manifold.log(base[:, None], self._records[None])
            result[start : start + rows] = self.manifold.norm(base, np.mean(logs, axis=1))
        return result

    def _polish(self) -> None:
        """Karcher steps from the estimate, as long as they stay in the ball and shrink the gradient by a tenth."""
        size = float(self._gradient_norm(self._estimate[None])[0])
        for _ in range(_POLISHING_STEPS):
            step = np.mean(self.manifold.log(self._estimate[None], self._records), axis=0)
            candidate = np.asarray(self.manifold.exp(self._estimate, step))
            smaller = float(self._gradient_norm(candidate[None])[0])
            distance = float(self.manifold.dist(self._center, candidate))
            if not (smaller < 0.9 * size and distance <= self.radius):
                break
            self._estimate, size, self._reach = candidate, smaller, self.radius + distance
        self._gradient_at_estimate = size

    def _choices(self) -> list[_Proposals]:
        """The proposals (i), where c > 0, and (ii)."""
        uniform = _Proposals(self._center, ball_proposal(self.manifold, 0.0, self.radius), 0.0, 0.0)
        if not self._slope:
            return [uniform]
        around = ball_proposal(self.manifold, self._slope / self.sigma, self._reach)
        offset = self._gradient_at_estimate + _ROUNDING * (1 + 2 * self.radius)
        return [_Proposals(self._estimate, around, self._slope, offset), uniform]

    def _choose(self) -> _Proposals:
        """Whichever accepts more; what is chosen changes the time of a draw, not its law."""
        trials = min(max(_BLOCK // self._records.size, 16), _TRIALS)
        return max(self._choices(), key=lambda kind: self._propose(kind, trials, np.random.default_rng(0))[1].sum())

    def _propose(self, kind: _Proposals, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates at the base of the proposals, and which are accepted."""
        distance, coordinates, excess = kind.source.draw(size, rng)
        patience = rng.standard_exponential(size) - excess
        points = self._points(kind, coordinates)
        open_rows = patience >= 0
        if kind.slope:
            open_rows &= self.manifold.dist(self._center, points) <= self.radius
        rows = np.flatnonzero(open_rows)
        gradient = self._gradient_norm(points[rows])
        open_rows[rows] = patience[rows] * self.sigma >= gradient - kind.slope * distance[rows] + kind.offset
        return coordinates, open_rows

    def _points(self, kind: _Proposals, coordinates: np.ndarray) -> np.ndarray:
        vectors = self.manifold.from_coordinates(kind.base, coordinates)
        return np.asarray(self.manifold.exp(kind.base, vectors))

    def sample(self, size: Size = (), rng: Any = None) -> Array:
        """Independent exact draws (*size, *point_shape), in the library and precision of the centre."""
        leading, count = size_of(size)
        coordinates = collect(
            count,
            self.manifold.dim,
            partial(self._propose, self._proposals),
            as_generator(rng),
            batch=_BATCH,
            most=_MOST_TRIES,
            failure="a draw of the K-norm gradient law was not accepted within 200,000 proposals. Use a larger sigma "
            "or a smaller ball.",
        )
        points = self._points(self._proposals, coordinates)
        return like(points.reshape((*leading, *self.manifold.point_shape)), self.center)

    def log_density_unnormalized(self, points: Array) -> Array:
        """−‖∇F(x)‖/σ at points (..., *point_shape) of the ball, minus infinity outside."""
        given = self.manifold.as_points(points)
        flat = _host(given).reshape((-1, *self.manifold.point_shape))
        value = np.where(self.ball.contains(flat), -self._gradient_norm(flat) / self.sigma, -math.inf)
        return like(value.reshape(self.manifold.batch_shape(given)), given)


class _Proposals(NamedTuple):
    """Proposals ∝ e^{−slope·ρ(base,·)/σ}, accepted with exp(−(‖∇F‖ − slope·ρ + offset)/σ)."""

    base: np.ndarray
    source: BallProposal
    slope: float
    offset: float


def _host(points: Array) -> np.ndarray:
    """A NumPy copy in double precision."""
    array = to_numpy(points)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)
