"""Products and powers of manifolds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Self

import numpy as np

from dpmanifolds._arrays import Array, eye, namespace, root
from dpmanifolds._points import has_parts, leaves
from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds._common import check_gradient
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.names import manifold_from_json


def _product_curvature(bounds: list[tuple[float, float]]) -> tuple[float, float]:
    """Planes across two factors are flat."""
    if len(bounds) == 1:
        return bounds[0]
    return min(0.0, *(low for low, _ in bounds)), max(0.0, *(high for _, high in bounds))


_SOME = 20


class Product(Manifold):
    """M₁ × … × M_m with the sum of the metrics; points and tangent vectors are tuples.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean, Product, Sphere
    >>> space = Product(Sphere(2), Euclidean(1))
    >>> a = (np.array([0.0, 0.0, 1.0]), np.array([0.0]))
    >>> b = (np.array([1.0, 0.0, 0.0]), np.array([2.0]))
    >>> round(float(space.dist(a, b)), 6)
    2.543109
    """

    is_product = True

    def __init__(self, *factors: Manifold) -> None:
        if not factors or not all(isinstance(factor, Manifold) for factor in factors):
            raise ArgumentError(f"Product needs one or more manifolds; got {factors!r}.")
        self.factors = factors
        self.dim = sum(factor.dim for factor in factors)
        self.point_shape = ()
        self.curvature_bounds = _product_curvature([factor.curvature_bounds for factor in factors])
        self.injectivity_radius = min(factor.injectivity_radius for factor in factors)
        self.is_homogeneous = all(factor.is_homogeneous for factor in factors)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return self.factors

    @property
    def words(self) -> str:
        return "combinations of " + " and ".join(factor.words for factor in self.factors)

    def to_json(self) -> dict[str, Any]:
        return {"name": type(self).__name__, "factors": [factor.to_json() for factor in self.factors]}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(*map(manifold_from_json, data["factors"]))

    @property
    def natural_center(self) -> Array | None:
        centers = tuple(factor.natural_center for factor in self.factors)
        return None if any(center is None for center in centers) else centers

    def factors_of(self, point: Array) -> list[tuple[Manifold, Array]]:
        parts = zip(self.factors, point, strict=True)
        return [each for factor, part in parts for each in factor.factors_of(part)]

    @property
    def max_radius(self) -> float:
        """The smallest of the factors' (never more than ½·min(inj, π/√κ) of the whole)."""
        return min(super().max_radius, *(factor.max_radius for factor in self.factors))

    @property
    def average_curvature(self) -> float:
        """Planes across factors are flat."""
        pairs = sum(factor.average_curvature * factor.dim * (factor.dim - 1) for factor in self.factors)
        return pairs / (self.dim * max(self.dim - 1, 1))

    def _each(self, name: str, *points: Array, **options: Any) -> tuple[Array, ...]:
        for point in points:
            if not has_parts(point) or len(point) != len(self.factors):
                raise ArgumentError(f"a point of {self!r} is a tuple of {len(self.factors)} arrays.")
        return tuple(
            getattr(factor, name)(*parts, **options) for factor, *parts in zip(self.factors, *points, strict=True)
        )

    def as_points(self, points: Any, name: str = "points") -> Array:
        """A tuple with the points of each factor, all with the same leading axes."""
        return self._formed(points, name, "as_points")

    def _formed(self, points: Any, name: str, how: str) -> Array:
        if not isinstance(points, (tuple, list)) or len(points) != len(self.factors):
            raise ArgumentError(f"{name} of {self!r} must be a tuple of {len(self.factors)} arrays, one per factor.")
        parts = tuple(
            factor.take_form(part) if how == "take_form" else factor.as_points(part, f"{name}[{i}]")
            for i, (factor, part) in enumerate(zip(self.factors, points, strict=True))
        )
        shapes = {factor.batch_shape(part) for factor, part in zip(self.factors, parts, strict=True)}
        if len(shapes) > 1:
            raise ArgumentError(f"the parts of {name} must have the same leading axes; got {sorted(shapes)}.")
        return parts

    def exp(self, base: Array, vector: Array) -> Array:
        return self._each("exp", base, vector)

    def log(self, base: Array, point: Array) -> Array:
        return self._each("log", base, point)

    def log_coordinates(self, base: Array, points: Array) -> Array:
        parts = self._each("log_coordinates", base, points)
        return namespace(*parts).concat(parts, axis=-1)

    def exp_coordinates(self, base: Array, coordinates: np.ndarray) -> Array:
        return self._each("exp_coordinates", base, self.split_coordinates(coordinates))

    def first_broken_rule(self, block: Array) -> str | None:
        return next((rule for rule in self._each("first_broken_rule", block) if rule is not None), None)

    def place(self, points: Array) -> Array:
        return self._each("place", points)

    def broken_rule(self, points: Array) -> Array:
        return reduce(namespace(*leaves(points)).maximum, self._each("broken_rule", points))

    @property
    def rules(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the factor that has most."""
        return max((factor.rules for factor in self.factors), key=len)

    def take_form(self, points: Any) -> Array:
        return self._formed(points, "points", "take_form")

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return _total(self._each("inner", base, u, v))

    def dist(self, a: Array, b: Array) -> Array:
        return root(_total(tuple(distance * distance for distance in self._each("dist", a, b))))

    def squared_dist(self, a: Array, b: Array) -> Array:
        return _total(self._each("squared_dist", a, b))

    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        return self._each("transport", base, to, vector)

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return self._each("project_tangent", base, vector)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return self._each("acceleration", base, u, v)

    def retract(self, base: Array, vector: Array) -> Array:
        return self._each("retract", base, vector)

    def gradient_coordinates(self, base: Array, gradient: Array) -> Array:
        parts = self._each("gradient_coordinates", base, gradient)
        return namespace(*parts).concat(parts, axis=-1)

    def riemannian_hessian(self, base: Array, gradient: Array, hessian: Array, vector: Array) -> Array:
        return self._each("riemannian_hessian", base, gradient, hessian, vector)

    @property
    def typical_dist(self) -> float:
        """The root of the sum of the factors' squares."""
        return math.hypot(*(factor.typical_dist for factor in self.factors))

    def scale(self, factor: Array | float, vector: Array) -> Array:
        return tuple(part.scale(factor, piece) for part, piece in zip(self.factors, vector, strict=True))

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        parts = self._each("to_coordinates", base, vector)
        return namespace(*parts).concat(parts, axis=-1)

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        return self._each("from_coordinates", base, self.split_coordinates(coordinates))

    def split_coordinates(self, coordinates: Array) -> tuple[Array, ...]:
        """The coordinates of each factor."""
        parts, start = [], 0
        for factor in self.factors:
            parts.append(coordinates[..., start : start + factor.dim])
            start += factor.dim
        return tuple(parts)

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        return _total(self._each("log_volume_density", base, vector))

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        """A tuple of another length does not; the parts of one may be of any shape."""
        if not has_parts(point) or len(point) != len(self.factors):
            return np.asarray(False)
        return reduce(lambda a, b: a & b, self._each("belongs", point, tolerance=tolerance))

    def project(self, point: Array) -> Array:
        return self._each("project", point)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        from dpmanifolds.noise import as_generator

        generator = as_generator(rng)
        return tuple(factor.random_point(size, rng=generator) for factor in self.factors)

    def batch_shape(self, point: Array) -> tuple[int, ...]:
        return self.factors[0].batch_shape(point[0])


def _total(parts: tuple[Array, ...]) -> Array:
    return reduce(lambda a, b: a + b, parts)


class Power(Manifold):
    """m copies of one manifold on one array axis: points (..., m, *point), such as a map of tensors per person.

    The metric is the sum over the copies.

    >>> from dpmanifolds import SPD, Power
    >>> Power(SPD(3), 100).point_shape
    (100, 3, 3)
    """

    is_product = True

    def __init__(self, manifold: Manifold, m: int) -> None:
        if not isinstance(manifold, Manifold) or manifold.has_parts:
            raise ArgumentError(f"Power needs a manifold whose points are arrays; got {manifold!r}.")
        self.manifold = manifold
        self.copies = self.m = positive_integer("m", m)
        self.dim = self.m * manifold.dim
        self.point_shape = (self.m, *manifold.point_shape)
        self.curvature_bounds = _product_curvature([manifold.curvature_bounds] * min(self.m, 2))
        self.injectivity_radius = manifold.injectivity_radius
        self.is_homogeneous = manifold.is_homogeneous
        self.is_complex = manifold.is_complex
        self.has_units = manifold.has_units
        self.rules = manifold.rules

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.manifold, self.m)

    @property
    def words(self) -> str:
        return f"maps of {self.m} {self.manifold.words}"

    def describe_distance(self, point: Array, distance: float) -> str:
        """In one copy, at some of them."""
        some = point[:: max(1, self.m // _SOME)]
        told = self.manifold.describe_distance(some, distance / math.sqrt(self.m))
        return told and f"in one of {self.m} copies {told}"

    def to_json(self) -> dict[str, Any]:
        return {"name": type(self).__name__, "manifold": self.manifold.to_json(), "m": self.m}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        return cls(manifold_from_json(data["manifold"]), data["m"])

    @property
    def natural_center(self) -> Array | None:
        center = self.manifold.natural_center
        return None if center is None else np.broadcast_to(center, self.point_shape).copy()

    @property
    def picture(self) -> str:  # type: ignore[override]
        return "field" if self.manifold.picture == "ellipsoids" and self.point_shape[-1] > 1 else "coordinates"

    @property
    def single(self) -> Manifold:
        return self.manifold

    def factors_of(self, point: Array) -> list[tuple[Manifold, Array]]:
        return [(self.manifold, each) for each in point]

    @property
    def average_curvature(self) -> float:
        """That of one copy, where a step of each copy looks at its own records alone."""
        return self.manifold.average_curvature

    @property
    def max_radius(self) -> float:
        """That of the one manifold."""
        return min(super().max_radius, self.manifold.max_radius)

    def exp(self, base: Array, vector: Array) -> Array:
        return self.manifold.exp(base, vector)

    def log(self, base: Array, point: Array) -> Array:
        return self.manifold.log(base, point)

    def log_coordinates(self, base: Array, points: Array) -> Array:
        parts = self.manifold.log_coordinates(base, points)
        return namespace(parts).reshape(parts, (*parts.shape[:-2], self.dim))

    def exp_coordinates(self, base: Array, coordinates: np.ndarray) -> Array:
        copies = coordinates.reshape((*coordinates.shape[:-1], self.m, self.manifold.dim))
        return self.manifold.exp_coordinates(base, copies)

    def first_broken_rule(self, block: Array) -> str | None:
        return self.manifold.first_broken_rule(block)

    def place(self, points: Array) -> Array:
        return self.manifold.place(points)

    def broken_rule(self, points: Array) -> Array:
        broken = self.manifold.broken_rule(points)
        return namespace(broken).max(broken, axis=-1)

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return self._summed(self.manifold.inner, base, u, v)

    def dist(self, a: Array, b: Array) -> Array:
        distances = self.manifold.dist(a, b)
        return root(namespace(distances).sum(distances * distances, axis=-1))

    def squared_dist(self, a: Array, b: Array) -> Array:
        return self._summed(self.manifold.squared_dist, a, b)

    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        return self.manifold.transport(base, to, vector)

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return self.manifold.project_tangent(base, vector)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return self.manifold.acceleration(base, u, v)

    def retract(self, base: Array, vector: Array) -> Array:
        return self.manifold.retract(base, vector)

    def gradient_coordinates(self, base: Array, gradient: Array) -> Array:
        """One small frame per copy."""
        check_gradient(self, gradient)
        xp = namespace(base, gradient)
        one = self.manifold
        frame = one.from_coordinates(base[:, None, ...], eye(one.dim, xp.real(base))[None, ...])
        flat = xp.reshape(frame, (self.m, one.dim, -1))
        leading = self.batch_shape(gradient)
        rows = xp.reshape(gradient, (*leading, self.m, 1, flat.shape[-1]))
        product = xp.sum(rows * xp.conj(flat) if self.is_complex else rows * flat, axis=-1)
        return xp.reshape(xp.real(product) if self.is_complex else product, (*leading, self.dim))

    @property
    def typical_dist(self) -> float:
        """√m times that of one copy."""
        return math.sqrt(self.m) * self.manifold.typical_dist

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        parts = self.manifold.to_coordinates(base, vector)
        return namespace(parts).reshape(parts, (*parts.shape[:-2], self.dim))

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(coordinates)
        parts = xp.reshape(coordinates, (*coordinates.shape[:-1], self.m, self.manifold.dim))
        return self.manifold.from_coordinates(base, parts)

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        return self._summed(self.manifold.log_volume_density, base, vector)

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        xp = namespace(point)
        return xp.all(self.manifold.belongs(point, tolerance), axis=-1)

    def project(self, point: Array) -> Array:
        return self.manifold.project(point)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        leading = (size,) if isinstance(size, int) else tuple(size)
        return self.manifold.random_point((*leading, self.m), rng=rng)

    def _summed(self, method: Callable[..., Array], *arguments: Array) -> Array:
        values = method(*arguments)
        return namespace(values).sum(values, axis=-1)
