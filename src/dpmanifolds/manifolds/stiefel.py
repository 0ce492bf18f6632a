"""Orthonormal frames, for optimisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, contract, eye, gather, namespace, transpose
from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError, ConvergenceError
from dpmanifolds.manifolds._orthonormal import (
    complete_basis,
    exp_skew,
    log_rotation,
    orthonormal_belongs,
    orthonormalize,
)
from dpmanifolds.manifolds.base import Manifold, normal_array

__all__ = ["Stiefel"]

_LOG_ITERATIONS = 200


class Stiefel(Manifold):
    """Orthonormal p-frames in R^n (..., n, p), 1 ≤ p < n, with the canonical metric tr(uᵀ(I − ½xxᵀ)v).

    For optimisation: no ball, mean or sensitivity is offered here (`max_radius` is 0). The logarithm is an
    iteration that converges near the base (Zimmermann 2017) and raises `ConvergenceError` elsewhere.
    `injectivity_radius` is the proven lower bound √(4/5)·π; the curvature lies in [0, 5/4].

    >>> import numpy as np
    >>> from dpmanifolds import Stiefel
    >>> space = Stiefel(5, 2)
    >>> x = space.random_point(rng=0)
    >>> v = 0.3 * space.random_tangent(x, rng=1)
    >>> bool(np.allclose(space.log(x, space.exp(x, v)), v))
    True
    """

    injectivity_radius = math.sqrt(0.8) * math.pi
    max_radius = 0.0

    def __init__(self, n: int, p: int) -> None:
        self.n = positive_integer("n", n, at_least=2)
        self.p = positive_integer("p", p)
        if self.p >= self.n:
            raise ArgumentError(
                f"Stiefel(n, p) needs 1 ≤ p < n; got n={self.n}, p={self.p}. For p = n use SpecialOrthogonal(n)."
            )
        self.dim = self.n * self.p - self.p * (self.p + 1) // 2
        self.point_shape = (self.n, self.p)
        self.curvature_bounds = (0.0, 1.25)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.n, self.p)

    def exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        frame = complete_basis(base)
        left, values, right = xp.linalg.svd(transpose(frame) @ vector, full_matrices=False)
        normal = frame @ left
        lower = values[..., :, None] * right
        inner = transpose(base) @ vector
        inner = (inner - transpose(inner)) / 2
        corner = xp.zeros_like(lower @ transpose(lower))
        rotation = exp_skew(_blocks(inner, -transpose(lower), lower, corner))
        return base @ rotation[..., : self.p, : self.p] + normal @ rotation[..., self.p :, : self.p]

    def log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        frame = complete_basis(base)
        left, values, right = xp.linalg.svd(transpose(frame) @ point, full_matrices=False)
        normal = frame @ left
        column = xp.concat([transpose(base) @ point, values[..., :, None] * right], axis=-2)
        p = self.p
        rotation = _complete_rotation(column)
        slack = 64 * float(xp.finfo(base.dtype).eps)
        for _ in range(_LOG_ITERATIONS):
            skew = log_rotation(rotation)
            corner = skew[..., p:, p:]
            if bool(xp.all(xp.abs(corner) <= slack)):
                return base @ skew[..., :p, :p] + normal @ skew[..., p:, :p]
            turned = rotation[..., :, p:] @ exp_skew(-corner)
            rotation = xp.concat([rotation[..., :, :p], turned], axis=-1)
        raise ConvergenceError(
            "the Stiefel logarithm did not converge: the points are too far apart. It is meant for points closer "
            f"than the injectivity radius (at least {self.injectivity_radius:.3f})."
        )

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return contract(u, v) - contract(transpose(base) @ u, transpose(base) @ v) / 2

    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        """NOT parallel: the tangent projection of `vector` at `to`, a vector transport for optimisation."""
        inner = transpose(to) @ vector
        return vector - to @ (inner + transpose(inner)) / 2

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        """The strictly lower triangle of xᵀv, row by row, then the components normal to the frame."""
        xp = namespace(base, vector)
        inner = transpose(base) @ vector
        normal = transpose(complete_basis(base)) @ vector
        rows, columns = np.tril_indices(self.p, -1)
        inside = gather(xp.reshape(inner, (*inner.shape[:-2], self.p * self.p)), rows * self.p + columns)
        flat = xp.reshape(normal, (*normal.shape[:-2], (self.n - self.p) * self.p))
        return xp.concat([inside, flat], axis=-1)

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(base, coordinates)
        p, split = self.p, self.p * (self.p - 1) // 2
        source = np.full((p, p), split)
        source[np.tril_indices(p, -1)] = np.arange(split)
        padded = xp.concat([coordinates[..., :split], xp.zeros_like(coordinates[..., :1])], axis=-1)
        lower = xp.reshape(gather(padded, source.ravel()), (*coordinates.shape[:-1], p, p))
        normal = xp.reshape(coordinates[..., split:], (*coordinates.shape[:-1], self.n - p, p))
        return base @ (lower - transpose(lower)) + complete_basis(base) @ normal

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        raise ArgumentError("Stiefel is for optimisation only: the density of its exponential map has no closed form.")

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        return orthonormal_belongs(point, tolerance)

    def project(self, point: Array) -> Array:
        return orthonormalize(point)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return self.project(normal_array(rng, size, self.point_shape))


def _blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    xp = namespace(a, b, c, d)
    return xp.concat([xp.concat([a, b], axis=-1), xp.concat([c, d], axis=-1)], axis=-2)


def _complete_rotation(column: Array) -> Array:
    """A rotation whose first columns are `column`, close to the identity where `column` is."""
    xp = namespace(column)
    size, p = column.shape[-2], column.shape[-1]
    rest = complete_basis(column)
    # turn the free columns towards the identity: the polar factor of their lower block
    left, _, right = xp.linalg.svd(rest[..., p:, :])
    rest = rest @ transpose(left @ right)
    rotation = xp.concat([column, rest], axis=-1)
    mirror = eye(size, column)
    mirror = xp.concat([mirror[..., :-1], -mirror[..., -1:]], axis=-1)
    return xp.where((xp.linalg.det(rotation) < 0)[..., None, None], rotation @ mirror, rotation)
