"""Hyperbolic space in the Lorentz model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import (
    Array,
    dot,
    eps,
    is_traced,
    log_sinhc,
    namespace,
    norm,
    root,
    row_dot,
    row_norm,
    safe_divide,
    sinhc,
    x_coth_x,
)
from dpmanifolds._validate import negative_number, positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds._common import (
    arsinh_ratio,
    capped_exp,
    cosh_root,
    default_tolerance,
    normal_array,
    sinhc_root,
)
from dpmanifolds.manifolds._derivatives import differentiated_by
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.linearization import Linearization, around_direction, taylor_sums, weighted_sum


class Hyperbolic(Manifold):
    """H^d of curvature −κ: points (x₀, x̄) in R^(1+d) with x₀ = √(1/κ + |x̄|²), the time-like coordinate first.

    ⟨u,v⟩ = −u₀v₀ + ū·v̄ on tangent vectors (−x₀v₀ + x̄·v̄ = 0). Distances are computed from radii a, b and unit
    directions p, q of the spatial parts: sinh²(√κρ/2) = sinh²((a−b)/2) + sinh a sinh b |p−q|²/4, a sum of
    positive terms. The spatial part is taken as the truth; the time-like one is derived from it.

    >>> import numpy as np
    >>> from dpmanifolds import Hyperbolic
    >>> plane = Hyperbolic(2)
    >>> point = plane.exp(plane.origin, np.array([0.0, 3.0, 4.0]))
    >>> round(float(plane.dist(plane.origin, point)), 9)
    5.0
    """

    injectivity_radius = math.inf
    typed = "hyperbolic:2"
    is_model_space = True

    def __init__(self, d: int, curvature: float = -1.0) -> None:
        self.dim = positive_integer("d", d)
        self.curvature = negative_number("curvature", curvature)
        self.point_shape = (self.dim + 1,)
        value = self.curvature if self.dim > 1 else 0.0
        self.curvature_bounds = (value, value)
        self.scale_length = 1 / math.sqrt(-self.curvature)
        self.polar_roots = ((self.dim - 1, 1 / self.scale_length),)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.dim, self.curvature)

    @property
    def words(self) -> str:
        return f"points of {self.dim}-dimensional hyperbolic space"

    @property
    def picture(self) -> str:  # type: ignore[override]
        return "disc" if self.dim == 2 else "vector"

    @property
    def natural_center(self) -> Array:
        return self.origin

    @property
    def origin(self) -> Array:
        """The point (1/√κ, 0, …, 0), as NumPy float64."""
        return np.concatenate([[self.scale_length], np.zeros(self.dim)])

    @differentiated_by("_smooth_lift")
    def _lift(self, spatial: Array) -> Array:
        """The point with this spatial part."""
        xp = namespace(spatial)
        time = xp.hypot(row_norm(spatial), xp.full_like(spatial[..., 0], self.scale_length))
        return xp.concat([time[..., None], spatial], axis=-1)

    def _smooth_lift(self, spatial: Array) -> Array:
        xp = namespace(spatial)
        time = xp.sqrt(dot(spatial, spatial) + self.scale_length * self.scale_length)
        return xp.concat([time[..., None], spatial], axis=-1)

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        # exp at the origin, then the boost to `base`: cosh|v| x + sinh|v| v/|v| would lose e^a times more at radius a
        unit = base / self.scale_length
        step = self.to_coordinates(base, vector) / self.scale_length
        length = norm(step)[..., None]
        seen = sinhc(length) * step
        along = xp.cosh(length) + dot(unit[..., 1:], seen)[..., None] / (1 + unit[..., :1])
        return self._lift(self.scale_length * (seen + along * unit[..., 1:]))

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        unit = base / self.scale_length
        step = self.to_coordinates(base, vector) / self.scale_length
        square = dot(step, step)[..., None]
        seen = sinhc_root(square) * step
        along = cosh_root(square) + dot(unit[..., 1:], seen)[..., None] / (1 + unit[..., :1])
        return self._smooth_lift(self.scale_length * (seen + along * unit[..., 1:]))

    def log(self, base: Array, point: Array) -> Array:
        return self.from_coordinates(base, self.log_coordinates(base, point))

    @differentiated_by("_smooth_log_coordinates")
    def log_coordinates(self, base: Array, points: Array) -> Array:
        frame = _PolarPair(base / self.scale_length, points / self.scale_length)
        seen = frame.second_seen_from_first()
        return seen * safe_divide(frame.angle() * self.scale_length, row_norm(seen))[..., None]

    def _smooth_log_coordinates(self, base: Array, points: Array) -> Array:
        seen = _seen_smoothly(base / self.scale_length, points / self.scale_length)
        return self.scale_length * arsinh_ratio(dot(seen, seen))[..., None] * seen

    @differentiated_by("_smooth_dist")
    def dist(self, a: Array, b: Array) -> Array:
        return self.scale_length * _PolarPair(a / self.scale_length, b / self.scale_length).angle()

    def _smooth_dist(self, a: Array, b: Array) -> Array:
        coordinates = self._smooth_log_coordinates(a, b)
        return root(dot(coordinates, coordinates))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return dot(self.to_coordinates(base, u), self.to_coordinates(base, v))

    def norm(self, base: Array, vector: Array) -> Array:
        return norm(self.to_coordinates(base, vector))

    @differentiated_by("_smooth_transport")
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        seen = _PolarPair(to / self.scale_length, base / self.scale_length).second_seen_from_first()
        # in the frame at `to`, base + to has time part 1 + cosh θ and space part `seen`
        step = dot(to[..., 1:] - base[..., 1:], vector[..., 1:]) - (to[..., 0] - base[..., 0]) * vector[..., 0]
        xp = namespace(base, to)
        cosh = xp.sqrt(1 + dot(seen, seen))
        factor = step / (self.scale_length * self.scale_length * (1 + cosh))
        spatial = vector[..., 1:] + factor[..., None] * (base + to)[..., 1:]
        return self._tangent(to, spatial)

    def _smooth_transport(self, base: Array, to: Array, vector: Array) -> Array:
        x, y = base / self.scale_length, to / self.scale_length
        step = dot(y[..., 1:], vector[..., 1:]) - y[..., 0] * vector[..., 0]
        cosh = x[..., 0] * y[..., 0] - dot(x[..., 1:], y[..., 1:])
        return vector + (step / (1 + cosh))[..., None] * (x + y)

    def _tangent(self, base: Array, spatial: Array) -> Array:
        """The tangent vector at `base` with this spatial part."""
        xp = namespace(base, spatial)
        time = dot(base[..., 1:], spatial) / base[..., 0]
        return xp.concat([time[..., None], spatial], axis=-1)

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        unit = base / self.scale_length
        spatial = vector[..., 1:]
        along = dot(unit[..., 1:], spatial) / (unit[..., 0] * (1 + unit[..., 0]))
        return spatial - along[..., None] * unit[..., 1:]

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(base, coordinates)
        unit = base / self.scale_length
        time = dot(unit[..., 1:], coordinates)
        spatial = coordinates + (time / (1 + unit[..., 0]))[..., None] * unit[..., 1:]
        return xp.concat([time[..., None], spatial], axis=-1)

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        return (self.dim - 1) * log_sinhc(self.norm(base, vector) / self.scale_length)

    def to_poincare(self, point: Array) -> Array:
        """The point in the unit ball: √κ x̄/(1 + √κ x₀)."""
        return point[..., 1:] / (self.scale_length + point[..., :1])

    def from_poincare(self, ball_point: Array) -> Array:
        """The point with these Poincaré coordinates, of norm below 1.

        Others raise `ArgumentError`; inside of a transformation of PyTorch or JAX, where nothing can be raised, NaN.
        """
        xp = namespace(ball_point)
        size = norm(ball_point)
        outside = ~(size < 1)
        if is_traced(ball_point):
            size = xp.where(outside, xp.full_like(size, math.nan), size)
        elif bool(xp.any(outside)):
            raise ArgumentError("Poincaré coordinates are those of the open unit ball: their norm must be below 1.")
        factor = 2 * self.scale_length / ((1 - size) * (1 + size))
        return self._lift(factor[..., None] * ball_point)

    def project_tangent(self, base: Array, vector: Array) -> Array:
        """Nearest in the sense of −u₀v₀ + ū·v̄."""
        along = dot(base[..., 1:], vector[..., 1:]) - base[..., 0] * vector[..., 0]
        return vector - self.curvature * along[..., None] * base

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return -self.curvature * self.inner(base, u, v)[..., None] * base

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        xp = namespace(point)
        expected = self._lift(point[..., 1:])[..., 0]
        return xp.isfinite(expected) & (xp.abs(point[..., 0] / expected - 1) <= default_tolerance(point, tolerance))

    def project(self, point: Array) -> Array:
        return self._lift(point[..., 1:])

    def linearize(self, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
        """Hess = g·I + (1 − g)·uuᵀ with g = √κρ coth(√κρ) and u the direction to the record."""
        coordinates = self.to_coordinates(base, self.log(base, points))
        distance = norm(coordinates)
        scale = self.scale_length
        # a Lorentz point far from the origin stretches the last place by its time-like coordinate
        stretch = base[..., 0] * points[..., 0] / (scale * scale)
        rounding = 16 * eps(distance) * math.sqrt(points.shape[-1]) * stretch * (scale + distance)
        result = taylor_sums(self, distance, weighted_sum(coordinates, weights), weights, rounding)
        if hessian:
            result.hessian = around_direction(coordinates, distance, x_coth_x(distance / scale), weights)
        return result

    def point_of_moment(self, moment: Array) -> Array:
        """The Lorentz centroid: the mean vector scaled back to the hyperboloid."""
        xp = namespace(moment)
        size = norm(moment[..., 1:])
        length = xp.sqrt((moment[..., 0] - size) * (moment[..., 0] + size))
        return self.project(self.scale_length * moment / length[..., None])

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        """A Lorentz point stretches the last place by its time-like coordinate."""
        scale = self.scale_length
        farthest = math.acosh(max(float(center[0]) / scale, 1.0)) + radius / scale
        stretch = capped_exp(2 * farthest)
        return 16 * math.sqrt(self.dim + 1) * stretch * (scale + 2 * radius)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        tangent = normal_array(rng, size, (self.dim,)) * self.scale_length
        return self.exp(self.origin, self.from_coordinates(self.origin, tangent))


class _PolarPair:
    """Two points of the unit hyperboloid by radius and direction, arranged so that nothing cancels."""

    def __init__(self, x: Array, y: Array) -> None:
        xp = self.xp = namespace(x, y)
        first, second = x[..., 1:], y[..., 1:]
        self.sinh_x, self.sinh_y = row_norm(first), row_norm(second)
        self.cosh_x, self.cosh_y = x[..., 0], y[..., 0]
        difference, total = second - first, second + first
        gap = row_dot(difference, total)
        # sinh(b − a) = (sinh²b − sinh²a)/(sinh b cosh a + cosh b sinh a)
        self.sinh_gap = safe_divide(gap, self.sinh_y * self.cosh_x + self.cosh_y * self.sinh_x)
        unit_x = safe_divide(first, self.sinh_x[..., None])
        unit_y = safe_divide(second, self.sinh_y[..., None])
        # a point at the origin has no direction: borrow the other's
        unit_x, unit_y = (
            xp.where((self.sinh_x == 0)[..., None], unit_y, unit_x),
            xp.where((self.sinh_y == 0)[..., None], unit_x, unit_y),
        )
        self.unit_x = unit_x
        size = self.sinh_x + self.sinh_y
        radial = safe_divide(gap, size) / 2
        turned = 2 * safe_divide(difference - radial[..., None] * (unit_x + unit_y), size[..., None])
        both = ((self.sinh_x > 0) & (self.sinh_y > 0))[..., None]
        self.turn = xp.where(both, turned, xp.zeros_like(turned))
        self.turn_squared = row_dot(self.turn, self.turn)

    def angle(self) -> Array:
        """The distance."""
        xp = self.xp
        half_gap = xp.sinh(xp.asinh(self.sinh_gap) / 2)
        return 2 * xp.asinh(xp.sqrt(half_gap * half_gap + self.sinh_x * self.sinh_y * self.turn_squared / 4))

    def second_seen_from_first(self) -> Array:
        """Spatial part of the second point after the boost that takes the first to the origin."""
        along = self.sinh_gap - self.sinh_y * self.turn_squared * (self.cosh_x - 1) / 2
        return along[..., None] * self.unit_x + self.sinh_y[..., None] * self.turn


def _seen_smoothly(x: Array, y: Array) -> Array:
    """The same, smooth for all points: by the boost itself where one is close to the origin, which has no direction."""
    xp = namespace(x, y)
    central = (xp.minimum(x[..., 0], y[..., 0]) < 2)[..., None]
    difference = y[..., 1:] - x[..., 1:]
    time = dot(difference, y[..., 1:] + x[..., 1:]) / (x[..., 0] + y[..., 0])
    boosted = difference - (time - dot(x[..., 1:], difference) / (1 + x[..., 0]))[..., None] * x[..., 1:]
    aside = xp.concat([2 + 0 * x[..., :1], math.sqrt(3) + 0 * x[..., :1], 0 * x[..., 2:]], axis=-1)
    polar = _PolarPair(xp.where(central, aside, x), xp.where(central, aside, y)).second_seen_from_first()
    return xp.where(central, boosted, polar)
