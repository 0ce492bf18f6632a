"""The sphere of any dimension and curvature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, dot, eps, is_numpy, log_sinc, namespace, norm, row_norm, safe_divide, transpose
from dpmanifolds._validate import numeric_array, positive_integer, positive_number
from dpmanifolds._words import tell_degrees
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds._common import (
    arc_ratio,
    cos_root,
    default_tolerance,
    great_circle,
    normal_array,
    sinc_root,
)
from dpmanifolds.manifolds._derivatives import differentiated_by
from dpmanifolds.manifolds._orthonormal import (
    FEW_COLUMNS,
    complement_to_coordinates,
    coordinates_to_complement,
    reflect_rows,
    reflect_to_axis,
)
from dpmanifolds.manifolds.base import Manifold, Seen
from dpmanifolds.manifolds.linearization import (
    HessianBlock,
    Linearization,
    certificate_step,
    identity_plus,
    no_center,
    outer_sum,
    spread_weights,
    weighted_sum,
)

_LARGEST_DENSE = 16


class Sphere(Manifold):
    """S^d of curvature κ: points x in R^(d+1) with |x| = 1/√κ, tangent vectors v with x·v = 0, ⟨u,v⟩ = u·v.

    exp_x v = cos(√κ|v|) x + sin(√κ|v|)/(√κ|v|) v.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> north, east = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    >>> round(float(Sphere(2).dist(north, east)), 6)
    1.570796
    """

    log_can_fail = False
    typed = "sphere:2"
    is_model_space = True

    def __init__(self, d: int, curvature: float = 1.0) -> None:
        self.dim = positive_integer("d", d)
        self.curvature = positive_number("curvature", curvature)
        self.point_shape = (self.dim + 1,)
        upper = self.curvature if self.dim > 1 else 0.0
        self.curvature_bounds = (upper, upper)
        self.sphere_radius = 1 / math.sqrt(self.curvature)
        self.injectivity_radius = math.pi * self.sphere_radius
        self.polar_roots = ((self.dim - 1, 1 / self.sphere_radius),)
        self.ambient_dim, self.ambient_radius = self.dim + 1, self.sphere_radius

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.dim, self.curvature)

    @property
    def words(self) -> str:
        return f"directions in {self.dim + 1} dimensions"

    def describe_distance(self, point: Array, distance: float) -> str:
        return tell_degrees(distance / self.sphere_radius)

    @property
    def picture(self) -> str:  # type: ignore[override]
        return "sphere" if self.dim == 2 else "vector"

    def from_compositions(self, compositions: Any) -> Array:
        """√(parts / their sum): points for rows (..., d+1) of parts, counts or proportions, some of them zero.

        Twice the distance on the unit sphere is the Fisher–Rao distance of the proportions. All points lie in
        `Ball.positive_orthant`, which is public. Rows with a negative part, a part that is not finite, or nothing but
        zeros are refused, with an error that depends on records and is outside any guarantee.

        >>> from dpmanifolds import Sphere
        >>> Sphere(2).from_compositions([[10, 0, 30], [1, 1, 2]]).round(3).tolist()
        [[0.5, 0.0, 0.866], [0.5, 0.5, 0.707]]
        """
        parts = numeric_array("compositions", compositions)
        xp = namespace(parts)
        if xp.isdtype(parts.dtype, "complex floating") or parts.shape[-1:] != self.point_shape:
            raise ArgumentError(
                f"compositions must be real numbers of shape (..., {self.dim + 1}) for {self!r}; got dtype "
                f"{parts.dtype}, shape {tuple(parts.shape)}."
            )
        if not bool(xp.all(xp.isfinite(parts))):
            raise NotOnManifoldError("parts of a composition must be finite; repair or drop such rows first.")
        if bool(xp.any(parts < 0)):
            raise NotOnManifoldError("parts of a composition must not be negative; repair or drop such rows first.")
        if 0 in parts.shape:
            return parts
        largest = xp.max(parts, axis=-1, keepdims=True)
        if bool(xp.any(largest == 0)):
            raise NotOnManifoldError("a composition of zeros alone has no proportions; drop such rows first.")
        # divided by the largest first, so that neither sums nor squares leave the range of numbers
        return self.project(xp.sqrt(parts / largest))

    def to_compositions(self, points: Any) -> Array:
        """The squares of the coordinates, scaled to sum 1: the composition that a point stands for.

        Defined for every point: noise may lead out of the positive orthant, and x and −x stand for the same one.

        >>> from dpmanifolds import Sphere
        >>> Sphere(1).to_compositions([0.6, -0.8]).round(2).tolist()
        [0.36, 0.64]
        """
        coordinates = self.as_points(points)
        xp = namespace(coordinates)
        squares = coordinates * coordinates
        total = xp.sum(squares, axis=-1, keepdims=True)
        if not bool(xp.all(xp.isfinite(total) & (total > 0))):
            raise NotOnManifoldError("must be finite and of positive length.", argument="points")
        return squares / total

    def typed_point(self, numbers: np.ndarray) -> np.ndarray:
        """A direction, whatever its length; a point of the sphere is left as it is, bit for bit."""
        length = float(np.linalg.norm(numbers))
        if length == 0 or math.isclose(length, self.sphere_radius, rel_tol=4 * numbers.size * np.finfo(float).eps):
            return numbers
        return numbers * (self.sphere_radius / length)

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        return great_circle(base, vector, norm(vector) / self.sphere_radius)

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        square = self.curvature * dot(vector, vector)[..., None]
        return cos_root(square) * base + sinc_root(square) * vector

    @differentiated_by("_smooth_log")
    def log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        # y − x and y + x are exact to the last bit near the two ends, where y − cos θ x is not
        near = (dot(base, point) >= 0)[..., None]
        chord = xp.where(near, point - base, point + base)
        direction = chord - self.curvature * dot(base, chord)[..., None] * base
        length = norm(direction)
        # at the exact antipode every direction leads there: take the first coordinate axis
        lost = (length == 0) & ~near[..., 0]
        direction = xp.where(lost[..., None], self._first_axis(base), direction)
        length = xp.where(lost, xp.ones_like(length), length)
        return direction * safe_divide(self.dist(base, point), length)[..., None]

    def _smooth_log(self, base: Array, point: Array) -> Array:
        chord = point - base
        direction = chord - self.curvature * dot(base, chord)[..., None] * base
        sine, cosine = self.curvature * dot(direction, direction), self.curvature * dot(base, point)
        return arc_ratio(sine, cosine)[..., None] * direction

    def _first_axis(self, base: Array) -> Array:
        xp = namespace(base)
        axis = xp.zeros_like(base[..., 1:])
        return self.from_coordinates(base, xp.concat([axis[..., :1] + 1, axis[..., 1:]], axis=-1))

    @differentiated_by("_smooth_log_coordinates")
    def log_coordinates(self, base: Array, points: Array) -> Array:
        """In the frame that a reflection turns so that the base is its first axis: y = (y₀, ȳ), θ = atan2(|ȳ|, y₀)."""
        xp = namespace(base, points)
        along, across = reflect_to_axis(base, points)
        length = xp.sqrt(xp.sum(across * across, axis=0))
        angle = xp.atan2(length, along) * self.sphere_radius
        # the antipode has no direction: it gets the first axis
        lost = xp.where((length == 0) & (along < 0), angle, xp.zeros_like(angle))
        ratio = safe_divide(angle, length)
        turned = across * ratio
        if is_numpy(turned):
            turned[0] += lost
        else:
            turned = xp.concat([turned[:1, ...] + lost, turned[1:, ...]], axis=0)
        return xp.moveaxis(turned, 0, -1)

    @property
    def in_rows(self) -> bool:  # type: ignore[override]
        return self.dim >= FEW_COLUMNS

    def see(self, base: Array, points: Array) -> Seen | None:
        """As in `log_coordinates`; |y|² = y₀² + |ȳ|² tells whether y lies on the sphere, and θ how long log is."""
        if not is_numpy(points):
            return None
        along, across, squared = reflect_rows(base, points)
        length = np.sqrt(squared)
        angle = np.arctan2(length, along)
        lost = np.flatnonzero(length == 0)
        if lost.size:
            # the antipode has no direction: it gets the first axis; the layout in memory stays, as sums depend on it
            if np.may_share_memory(across, points):
                across = points.copy(order="K")[:, 1:]
            across[lost, 0], length[lost] = along[lost] < 0, 1.0
        along *= along
        squared += along
        if self.curvature != 1:
            angle *= self.sphere_radius
            squared *= self.curvature
        tolerance, broken = default_tolerance(points, None), np.zeros(len(points), dtype=np.int64)
        # |r² − 1| ≥ |r − 1|: only what is farther off needs the root
        squared -= 1
        odd = np.flatnonzero(~(np.abs(squared, out=along) <= tolerance))
        if odd.size:
            off = ~(np.abs(np.sqrt(squared[odd] + 1) - 1) <= tolerance)
            broken[odd] = np.where(off, 1 + np.isfinite(points[odd]).all(axis=1), 0)
        return Seen(across, broken, np.divide(angle, length, out=length), angle)

    def _smooth_log_coordinates(self, base: Array, points: Array) -> Array:
        return self.to_coordinates(base, self._smooth_log(base, points))

    def dist(self, a: Array, b: Array) -> Array:
        xp = namespace(a, b)
        return 2 * self.sphere_radius * xp.atan2(norm(a - b), norm(a + b))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return dot(u, v)

    def norm(self, base: Array, vector: Array) -> Array:
        return norm(vector)

    @differentiated_by("_smooth_transport")
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        xp = namespace(base, to, vector)
        # by the direction of the way, not by base + to, which has no digits left at the antipode
        velocity = self.log(base, to)
        length = norm(velocity)[..., None]
        unit, angle = safe_divide(velocity, length), length / self.sphere_radius
        turned = (xp.cos(angle) - 1) * unit - xp.sin(angle) / self.sphere_radius * base
        return vector + dot(unit, vector)[..., None] * turned

    def _smooth_transport(self, base: Array, to: Array, vector: Array) -> Array:
        factor = self.curvature * dot(to, vector) / (1 + self.curvature * dot(base, to))
        return vector - factor[..., None] * (base + to)

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        return complement_to_coordinates(base, vector)

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        return coordinates_to_complement(base, coordinates)

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        return (self.dim - 1) * log_sinc(norm(vector) / self.sphere_radius)

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return vector - self.curvature * dot(base, vector)[..., None] * base

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return -self.curvature * dot(u, v)[..., None] * base

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        xp = namespace(point)
        return xp.abs(row_norm(point) / self.sphere_radius - 1) <= default_tolerance(point, tolerance)

    def project(self, point: Array) -> Array:
        return self.sphere_radius * point / norm(point)[..., None]

    def embed(self, points: Array) -> Array:
        """The vectors themselves."""
        return points

    def unembed(self, coordinates: Array) -> Array:
        """Their direction; 0 becomes the first axis."""
        xp = namespace(coordinates)
        nowhere = (norm(coordinates) == 0)[..., None]
        first = xp.concat([xp.ones_like(coordinates[..., :1]), xp.zeros_like(coordinates[..., 1:])], axis=-1)
        return self.project(xp.where(nowhere, first, coordinates))

    def chord(self, radius: float) -> float:
        """2R·sin(r/2R)."""
        return 2 * self.sphere_radius * math.sin(min(radius / self.sphere_radius, math.pi) / 2)

    def linearize(self, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
        """Hess = g·I + (1 − g)·uuᵀ, g = θ cot θ, without forming a single logarithm.

        With c = κ·x·base = cos θ and f = θ/sin θ the logarithms sum to Σ w f x − (Σ w f c)·base, and the projections of
        Σ w (1−g)/sin²θ · κxxᵀ are those of Σ w (1−g) uuᵀ. A tiny number added above and below keeps both quotients at
        their limits (1 and ⅓) for θ = 0.
        """
        xp = namespace(base, points)
        cosine = self.curvature * (points @ base if base.ndim == 1 else dot(points, base))
        squared_sine = xp.abs((1 - cosine) * (1 + cosine))
        sine = xp.sqrt(squared_sine)
        angle = xp.atan2(sine, cosine)
        tiny = float(xp.finfo(sine.dtype).smallest_normal)
        factor = (angle + tiny) / (sine + tiny)
        slowest = factor * cosine
        w = spread_weights(weights, factor.ndim)
        across = weighted_sum(slowest, weights)
        ambient = _sum_over_records(w * factor, points) - across[..., None] * base
        unit = 16 * eps(points) * math.sqrt(max(points.shape[-1], 4)) * self.sphere_radius
        result = Linearization(
            value=weighted_sum(angle * angle, weights) / (2 * self.curvature),
            pull=self.to_coordinates(base, ambient),
            convexity=_sphere_convexity(self, angle, sine, cosine, weights),
            rounding=unit * weighted_sum(1 + factor, weights),
            farthest=self.sphere_radius * xp.max(angle, axis=0),
            covered=float(xp.sum(weights)),
        )
        if not hessian:
            return result
        slack = math.sqrt(eps(sine)) / 100
        share = self.curvature * w * (1 - slowest + slack / 3) / (squared_sine + slack)
        if self.dim <= _LARGEST_DENSE or base.ndim > 1:
            rows = self.to_coordinates(base[..., None, :], outer_sum(points, share))
            matrix = self.to_coordinates(base[..., None, :], transpose(rows))
            result.hessian = identity_plus(across, matrix)
        else:

            def operator(vector: Array) -> Array:
                seen = points @ self.from_coordinates(base, vector)
                return across * vector + self.to_coordinates(base, (share * seen) @ points)

            result.blocks = [HessianBlock(operator, 8 * math.prod(points.shape))]
        return result

    def point_of_moment(self, moment: Array) -> Array:
        xp = namespace(moment)
        if bool(xp.any(norm(moment) < 1e-8 * self.sphere_radius)):
            raise no_center()
        return self.project(moment)

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        """At the mean avg(θ/sin θ) ≤ 1/cos(√κr) (Theorem S1, step ii); twice that near it."""
        reach = radius / self.sphere_radius
        factor = 2 / math.cos(reach)
        if self.dim == 1:
            factor = 2 * reach / math.sin(2 * reach) if reach > 1e-8 else 1.0 + reach
        return 16 * math.sqrt(max(self.dim + 1, 4)) * self.sphere_radius * (1 + factor)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return self.project(normal_array(rng, size, self.point_shape))


def _sphere_convexity(manifold: Sphere, angle: Array, sine: Array, cosine: Array, weights: Array) -> Array:
    """Σ w g(θ + δ₀) by the addition theorem, minus infinity beyond π; 1 on the flat circle."""
    xp = namespace(angle)
    if manifold.dim == 1:
        return weighted_sum(xp.ones_like(angle), weights)
    step = certificate_step(manifold, angle) / manifold.sphere_radius
    shift = math.tan(step)
    denominator = sine + shift * cosine
    inside = denominator > 0
    values = (angle + step) * (cosine - shift * sine) / xp.where(inside, denominator, xp.ones_like(sine))
    if not bool(xp.all(inside)):
        values = xp.where(inside, values, xp.full_like(values, -math.inf))
    return weighted_sum(values, weights)


def _sum_over_records(weights: Array, points: Array) -> Array:
    """Σ_i w_i x_i for weights (n, *batch) and vectors (n, *batch, d)."""
    if weights.ndim == 1:
        return weights @ points
    return namespace(points).sum(weights[..., None] * points, axis=0)
