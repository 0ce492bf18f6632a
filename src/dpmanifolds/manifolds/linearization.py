"""Half the mean squared distance around a base point: value, gradient, Hessian and what certifies an error.

For a symmetric space the Hessian of ½ρ²(·, y) at x is closed: with v = log_x y it multiplies each eigenspace of the
curvature operator R(·, v)v, of eigenvalue c, by g(√c) with g(s) = s·cot(s) (s·coth(s) for negative c). Everything is
written in the orthonormal coordinates of the base point. One base, or a batch of them (a power manifold), in one go:
points (n, *batch, *point), base (*batch, *point). Each manifold's own is its method `linearize`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from dpmanifolds._arrays import (
    Array,
    curvature_factor,
    eps,
    eye,
    namespace,
    norm,
    safe_divide,
    transpose,
    x_cot_x,
)
from dpmanifolds.errors import ArgumentError, ConvergenceError

if TYPE_CHECKING:
    from dpmanifolds.manifolds.base import Manifold


class HessianBlock:
    """What one block keeps of its pass: the Hessian as an operator."""

    number: int = 0
    """Which block of the pass."""

    def __init__(self, apply: Callable[[Array], Array], memory: int) -> None:
        self.apply = apply
        self.memory = memory

    def nearby(self, base: Array, points: Array, weights: Array, allowance: float) -> Linearization | None:
        """First-order sums of the same block at a base close by, cheaper than from scratch, or None.

        `allowance`: how much error per record the short cut may add to the rounding.
        """
        return None


@dataclass
class Linearization:
    """Weighted sums over records of the Taylor terms of ½ρ² at the base; `batch` below is () for one base."""

    value: Array
    """Σ w ½ρ², shape batch."""
    pull: Array
    """Σ w log_base(x) in coordinates (*batch, dim): minus the gradient."""
    convexity: Array
    """Σ w g(ρ + δ₀), a lower bound of the Hessian within δ₀ of the base; shape batch."""
    rounding: Array
    """Σ w times a bound on the floating-point error of one logarithm; shape batch."""
    farthest: Array
    """max ρ; shape batch."""
    hessian: Array | None = None
    """Σ w Hess, dense (*batch, dim, dim), for manifolds where that is cheap."""
    blocks: list[HessianBlock] = field(default_factory=list)
    """Σ w Hess block by block, elsewhere; of some blocks only where there are many."""
    covered: float = 0.0
    """The weight that `hessian` or `blocks` stand for."""

    @property
    def has_second_order(self) -> bool:
        """Whether the Hessian was computed."""
        return self.hessian is not None or bool(self.blocks)

    def plus(self, other: Linearization) -> Linearization:
        """The sums of both."""
        xp = namespace(self.value)
        both = Linearization(
            value=self.value + other.value,
            pull=self.pull + other.pull,
            convexity=self.convexity + other.convexity,
            rounding=self.rounding + other.rounding,
            farthest=xp.maximum(self.farthest, other.farthest),
            hessian=self.hessian,
            blocks=self.blocks,
            covered=self.covered,
        )
        if self.hessian is not None and other.hessian is not None:
            both.hessian = self.hessian + other.hessian
            both.covered += other.covered
        elif other.blocks:
            both.blocks = self.blocks + other.blocks
            both.covered += other.covered
        return both

    def without_blocks(self) -> Linearization:
        """The same sums, without a Hessian that is kept block by block."""
        return replace(self, blocks=[], covered=0.0) if self.blocks else self

    def apply(self, vector: Array) -> Array:
        """The mean Hessian times a vector of coordinates."""
        if self.hessian is not None:
            total = (self.hessian @ vector[..., None])[..., 0]
        else:
            total = sum(block.apply(vector) for block in self.blocks)
        return total / self.covered


def certificate_step(manifold: Manifold, reference: Array) -> float:
    """δ₀: within this distance of the base the convexity bound holds."""
    curvature = max(map(abs, manifold.curvature_bounds))
    return (1e-6 if eps(reference) < 1e-10 else 2e-3) / math.sqrt(curvature or 1.0)


def linearize_by_average(
    manifold: Manifold, base: Array, points: Array, weights: Array, hessian: bool
) -> Linearization:
    """The sums with the Hessian of a space of the same average curvature: exact where the curvature is constant,
    elsewhere good for steps that come closer by a factor. Minimum and certificate rest on the gradient, and
    on exp and log that round like those of this package.
    """
    if manifold.max_radius == 0:
        raise ArgumentError(f"no Fréchet mean is offered on {manifold!r}: no theorem here makes it unique.")
    xp = namespace(base, points)
    numbers = xp.abs(xp.reshape(points, (*manifold.batch_shape(points), -1)))
    coordinates, result = first_order(manifold, base, points, weights, manifold.dim * (1 + xp.sum(numbers, axis=-1)))
    if hessian:
        distance = norm(coordinates)
        across = curvature_factor(manifold.average_curvature, distance)
        result.hessian = around_direction(coordinates, distance, across, weights)
    return result


def weighted_sum(values: Array, weights: Array) -> Array:
    """Σ_i w_i values_i over the first axis."""
    xp = namespace(values, weights)
    if values.ndim < 3:
        return xp.asarray(weights @ values)
    return xp.tensordot(weights, values, axes=([0], [0]))


def taylor_sums(manifold: Manifold, distance: Array, pull: Array, weights: Array, rounding: Array) -> Linearization:
    """The sums without second-order terms, from distances and error bounds (n, *batch)."""
    xp = namespace(distance)
    upper = manifold.curvature_bounds[1]
    if upper > 0:
        scaled = math.sqrt(upper) * (distance + certificate_step(manifold, distance))
        inside = scaled < math.pi
        convexity = xp.where(inside, x_cot_x(xp.where(inside, scaled, xp.ones_like(scaled))), -math.inf)
    else:
        convexity = xp.ones_like(distance)
    return Linearization(
        value=weighted_sum(distance * distance, weights) / 2,
        pull=pull,
        convexity=weighted_sum(convexity, weights),
        rounding=weighted_sum(rounding, weights),
        farthest=xp.max(distance, axis=0),
        covered=float(xp.sum(weights)),
    )


def spread_weights(weights: Array, ndim: int) -> Array:
    """Weights (n,) shaped to multiply arrays of `ndim` axes."""
    return namespace(weights).reshape(weights, (-1,) + (1,) * (ndim - 1))


def outer_sum(vectors: Array, weights: Array) -> Array:
    """Σ_i w_i v_i v_iᵀ for vectors (n, *batch, d) and weights (n, *batch): (*batch, d, d)."""
    xp = namespace(vectors, weights)
    scaled = weights[..., None] * vectors
    if vectors.ndim == 2:
        return transpose(vectors) @ scaled
    order = (*range(1, vectors.ndim), 0)
    return xp.permute_dims(vectors, order) @ transpose(xp.permute_dims(scaled, order))


def identity_plus(scale: Array, matrix: Array) -> Array:
    """scale·I + matrix."""
    return matrix + scale[..., None, None] * eye(matrix.shape[-1], matrix)


def around_direction(coordinates: Array, distance: Array, across: Array, weights: Array) -> Array:
    """Σ w (across·(I − uuᵀ) + uuᵀ), u the direction of the coordinates."""
    directions = safe_divide(coordinates, distance[..., None])
    share = spread_weights(weights, distance.ndim) * (1 - across)
    return identity_plus(weighted_sum(across, weights), outer_sum(directions, share))


def first_order(
    manifold: Manifold, base: Array, points: Array, weights: Array, size: Array | float
) -> tuple[Array, Linearization]:
    """Log coordinates (n, *batch, dim), and their sums without second-order terms; rounding grows with a `size`."""
    coordinates = manifold.to_coordinates(base, manifold.log(base, points))
    distance = norm(coordinates)
    rounding = 16 * eps(distance) * size * (1 + distance)
    return coordinates, taylor_sums(manifold, distance, weighted_sum(coordinates, weights), weights, rounding)


def no_center() -> ConvergenceError:
    """The error for records that balance each other everywhere."""
    return ConvergenceError(
        "the records have no centre: they are spread too evenly over the space for a Fréchet mean to be unique. "
        "Clip them to a ball below manifold.max_radius first."
    )


class FlatSums(NamedTuple):
    """Σ w chart(x), Σ w‖chart(x)‖ and Σ w times the error of chart(x) in units of rounding."""

    total: Array
    size: Array
    rounding: Array

    def plus(self, other: FlatSums) -> FlatSums:
        """The sums of both."""
        return FlatSums(self.total + other.total, self.size + other.size, self.rounding + other.rounding)
