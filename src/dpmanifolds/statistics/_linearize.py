"""Half the mean squared distance around a base point: value, gradient, Hessian and what certifies an error.

For a symmetric space the Hessian of ½ρ²(·, y) at x is closed: with v = log_x y it multiplies each eigenspace of the
curvature operator R(·, v)v, of eigenvalue c, by g(√c) with g(s) = s·cot(s) (s·coth(s) for negative c). Everything is
written in the orthonormal coordinates of the base point. One base, or a batch of them (a power manifold), in one go:
points (n, *batch, *point), base (*batch, *point).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import singledispatch

from dpmanifolds._arrays import (
    Array,
    astype_complex,
    curvature_factor,
    dot,
    eps,
    eye,
    namespace,
    norm,
    safe_divide,
    transpose,
    x_cot_x,
    x_coth_x,
)
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Grassmann, Hyperbolic, Manifold, PlanarShapes, SpecialOrthogonal, Sphere

__all__ = [
    "HessianBlock",
    "Linearization",
    "certificate_step",
    "linearize",
    "outer_sum",
    "spread_weights",
    "weighted_sum",
]


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


_LARGEST_DENSE = 16


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


@singledispatch
def linearize(manifold: Manifold, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
    """The sums of one block; without `hessian` the second-order terms may be left out.

    Where a manifold has no Hessian of its own, that of a space of its average curvature: exact where the curvature is
    constant, elsewhere good for steps that come closer by a factor. Minimum and certificate rest on the gradient, and
    on exp and log that round like those of this package.
    """
    if manifold.max_radius == 0:
        raise ArgumentError(f"no Fréchet mean is offered on {manifold!r}: no theorem here makes it unique.")
    xp = namespace(base, points)
    numbers = xp.abs(xp.reshape(points, (*manifold.batch_shape(points), -1)))
    coordinates, result = _first_order(manifold, base, points, weights, manifold.dim * (1 + xp.sum(numbers, axis=-1)))
    if hessian:
        distance = norm(coordinates)
        across = curvature_factor(manifold.average_curvature, distance)
        result.hessian = _around_direction(coordinates, distance, across, weights)
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


def _identity_plus(scale: Array, matrix: Array) -> Array:
    return matrix + scale[..., None, None] * eye(matrix.shape[-1], matrix)


@linearize.register
def _(manifold: Sphere, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
    """Hess = g·I + (1 − g)·uuᵀ, g = θ cot θ, without forming a single logarithm.

    With c = κ·x·base = cos θ and f = θ/sin θ the logarithms sum to Σ w f x − (Σ w f c)·base, and the projections of
    Σ w (1−g)/sin²θ · κxxᵀ are those of Σ w (1−g) uuᵀ. A tiny number added above and below keeps both quotients at
    their limits (1 and ⅓) for θ = 0.
    """
    xp = namespace(base, points)
    cosine = manifold.curvature * (points @ base if base.ndim == 1 else dot(points, base))
    squared_sine = xp.abs((1 - cosine) * (1 + cosine))
    sine = xp.sqrt(squared_sine)
    angle = xp.atan2(sine, cosine)
    tiny = float(xp.finfo(sine.dtype).smallest_normal)
    factor = (angle + tiny) / (sine + tiny)
    slowest = factor * cosine
    w = spread_weights(weights, factor.ndim)
    across = weighted_sum(slowest, weights)
    ambient = _sum_over_records(w * factor, points) - across[..., None] * base
    unit = 16 * eps(points) * math.sqrt(max(points.shape[-1], 4)) * manifold.sphere_radius
    result = Linearization(
        value=weighted_sum(angle * angle, weights) / (2 * manifold.curvature),
        pull=manifold.to_coordinates(base, ambient),
        convexity=_sphere_convexity(manifold, angle, sine, cosine, weights),
        rounding=unit * weighted_sum(1 + factor, weights),
        farthest=manifold.sphere_radius * xp.max(angle, axis=0),
        covered=float(xp.sum(weights)),
    )
    if not hessian:
        return result
    slack = math.sqrt(eps(sine)) / 100
    share = manifold.curvature * w * (1 - slowest + slack / 3) / (squared_sine + slack)
    if manifold.dim <= _LARGEST_DENSE or base.ndim > 1:
        rows = manifold.to_coordinates(base[..., None, :], outer_sum(points, share))
        matrix = manifold.to_coordinates(base[..., None, :], transpose(rows))
        result.hessian = _identity_plus(across, matrix)
    else:

        def operator(vector: Array) -> Array:
            seen = points @ manifold.from_coordinates(base, vector)
            return across * vector + manifold.to_coordinates(base, (share * seen) @ points)

        result.blocks = [HessianBlock(operator, 8 * math.prod(points.shape))]
    return result


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


@linearize.register
def _(manifold: Hyperbolic, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
    """Hess = g·I + (1 − g)·uuᵀ with g = √κρ coth(√κρ) and u the direction to the record."""
    coordinates = manifold.to_coordinates(base, manifold.log(base, points))
    distance = norm(coordinates)
    scale = manifold.scale_length
    # a Lorentz point far from the origin stretches the last place by its time-like coordinate
    stretch = base[..., 0] * points[..., 0] / (scale * scale)
    rounding = 16 * eps(distance) * math.sqrt(points.shape[-1]) * stretch * (scale + distance)
    result = taylor_sums(manifold, distance, weighted_sum(coordinates, weights), weights, rounding)
    if hessian:
        result.hessian = _around_direction(coordinates, distance, x_coth_x(distance / scale), weights)
    return result


@linearize.register
def _(manifold: PlanarShapes, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
    """As on a unit sphere, with g(2ρ) instead of g(ρ) in the complex direction iu."""
    xp = namespace(base, points)
    coordinates, result = _first_order(manifold, base, points, weights, math.sqrt(points.shape[-1]))
    if hessian:
        distance = norm(coordinates)
        half = manifold.k - 2
        turned = xp.concat([-coordinates[..., half:], coordinates[..., :half]], axis=-1)
        slow, fast = x_cot_x(distance), x_cot_x(2 * distance)
        matrix = _around_direction(coordinates, distance, slow, weights)
        share = spread_weights(weights, distance.ndim) * (fast - slow)
        result.hessian = matrix + outer_sum(safe_divide(turned, distance[..., None]), share)
    return result


def _around_direction(coordinates: Array, distance: Array, across: Array, weights: Array) -> Array:
    """Σ w (across·(I − uuᵀ) + uuᵀ), u the direction of the coordinates."""
    directions = safe_divide(coordinates, distance[..., None])
    share = spread_weights(weights, distance.ndim) * (1 - across)
    return _identity_plus(weighted_sum(across, weights), outer_sum(directions, share))


def _first_order(
    manifold: Manifold, base: Array, points: Array, weights: Array, size: Array | float
) -> tuple[Array, Linearization]:
    """Log coordinates (n, *batch, dim), and their sums without second-order terms; rounding grows with a `size`."""
    coordinates = manifold.to_coordinates(base, manifold.log(base, points))
    distance = norm(coordinates)
    rounding = 16 * eps(distance) * size * (1 + distance)
    return coordinates, taylor_sums(manifold, distance, weighted_sum(coordinates, weights), weights, rounding)


@linearize.register
def _(manifold: SpecialOrthogonal, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
    """Hess Ω = U (g((θ_a−θ_b)/2) ∘ U*ΩU) U* with the log's eigenvectors U and eigenvalues iθ."""
    xp = namespace(base, points)
    coordinates, result = _first_order(manifold, base, points, weights, points.shape[-2])
    if not hessian:
        return result
    skew = transpose(base) @ manifold.from_coordinates(base, coordinates)
    angles, vectors = xp.linalg.eigh(-0.5j * astype_complex(skew - transpose(skew)))
    factor = x_cot_x((angles[..., :, None] - angles[..., None, :]) / 2)
    factor = astype_complex(spread_weights(weights, factor.ndim) * factor)
    adjoint = xp.conj(transpose(vectors))

    def operator(vector: Array) -> Array:
        direction = astype_complex(transpose(base) @ manifold.from_coordinates(base, vector))
        turned = vectors @ (factor * (adjoint @ direction @ vectors)) @ adjoint
        return manifold.to_coordinates(base, base @ xp.real(xp.sum(turned, axis=0)))

    result.blocks = [HessianBlock(operator, 2 * 16 * math.prod(points.shape))]
    return result


@linearize.register
def _(manifold: Grassmann, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
    """In the log's singular bases: g(θᵢ−θⱼ) on symmetric, g(θᵢ+θⱼ) on skew pairs, g(θⱼ) on the rest."""
    xp = namespace(base, points)
    coordinates, result = _first_order(manifold, base, points, weights, points.shape[-2])
    if not hessian:
        return result
    inner = xp.reshape(coordinates, (*coordinates.shape[:-1], manifold.n - manifold.p, manifold.p))
    left, angles, right = xp.linalg.svd(inner, full_matrices=True)
    factors = _grassmann_factors(angles, manifold.n - manifold.p, manifold.p)
    w = spread_weights(weights, inner.ndim)

    def operator(vector: Array) -> Array:
        direction = xp.reshape(vector, (*vector.shape[:-1], manifold.n - manifold.p, manifold.p))
        seen = transpose(left) @ direction @ transpose(right)
        total = xp.sum(w * (left @ _grassmann_hessian(seen, factors, manifold.rank) @ right), axis=0)
        return xp.reshape(total, vector.shape)

    result.blocks = [HessianBlock(operator, 4 * 8 * math.prod(points.shape))]
    return result


def _grassmann_factors(angles: Array, rows: int, columns: int) -> tuple[Array, Array, Array]:
    """g(θᵢ−θⱼ), g(θᵢ+θⱼ) on the square block, and g of the row's or column's own angle on all entries."""
    xp = namespace(angles)
    rank = angles.shape[-1]
    difference = x_cot_x(angles[..., :, None] - angles[..., None, :])
    total = x_cot_x(angles[..., :, None] + angles[..., None, :])
    own = x_cot_x(angles)
    one = xp.ones_like(angles[..., :1])
    padded_rows = xp.concat([own] + [one] * (rows - rank), axis=-1)
    padded_columns = xp.concat([own] + [one] * (columns - rank), axis=-1)
    return difference, total, padded_rows[..., :, None] * padded_columns[..., None, :]


def _grassmann_hessian(seen: Array, factors: tuple[Array, Array, Array], rank: int) -> Array:
    xp = namespace(seen)
    difference, total, border = factors
    square = seen[..., :rank, :rank]
    even, odd = (square + transpose(square)) / 2, (square - transpose(square)) / 2
    core = difference * even + total * odd
    outside = border * seen
    top = xp.concat([core, outside[..., :rank, rank:]], axis=-1)
    return xp.concat([top, outside[..., rank:, :]], axis=-2)
