"""The Fréchet mean: the point with the smallest mean squared distance to the records. Not private."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpmanifolds._arrays import Array, dot, eps, namespace, norm
from dpmanifolds._validate import positive_number
from dpmanifolds.errors import ConvergenceError, NotOnManifoldError
from dpmanifolds.manifolds import FlatManifold, Manifold, Power, Product, SPDAffineInvariant
from dpmanifolds.statistics import _linearize_spd  # noqa: F401  (registers the affine-invariant metric)
from dpmanifolds.statistics.blocks import longest_sum, map_blocks
from dpmanifolds.statistics._flat import flat_mean
from dpmanifolds.statistics._linearize import Linearization, certificate_step, linearize
from dpmanifolds.statistics.records import check_block, record_array, record_weights
from dpmanifolds.statistics._start import extrinsic_mean

__all__ = ["MeanResult", "frechet_mean"]

_MOST_PASSES = 50
_MOST_SHORTENINGS = 8


@dataclass(frozen=True)
class MeanResult:
    """A point, and how far it can be from the true one. NOT private."""

    point: Array
    """The computed mean (or median)."""
    gradient_norm: float
    """Length of the gradient of half the mean squared distance at `point`."""
    error_bound: float
    """Certified distance from `point` to the stationary point it approximates, rounding included; infinite where
    the certificate does not hold."""
    passes: int
    """How often the records were read."""
    converged: bool
    """Whether the tolerance was met; False means that the floating-point floor of the data came first."""
    is_global: bool
    """Whether the stationary point is known to be the unique minimum (all records within `max_radius` of it)."""


def frechet_mean(
    manifold: Manifold, points: Any, *, sample_weight: Any = None, tolerance: float | None = None
) -> MeanResult:
    """argmin_x Σ w_i ρ²(x, x_i), by Newton's method with the closed-form Hessian. Not private: this is the bare mean.

    Stops when the gradient's length is at most `tolerance` (default 1e−10 in float64, 1e−5 in float32), or at the
    floating-point floor of badly conditioned data, which `converged=False` tells. Flat metrics need one pass and no
    iteration. `error_bound`: F is strongly convex with modulus λ = Σ w g(ρ_i + δ₀) within δ₀ of the result (g = 1 on
    Hadamard manifolds, s·cot s scaled by the upper curvature otherwise), so a gradient of length G ≤ λδ₀ puts a
    stationary point within G/λ.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, frechet_mean
    >>> result = frechet_mean(SPD(2), np.stack([np.diag([1.0, 4.0]), np.diag([4.0, 1.0])]))
    >>> np.round(result.point, 9) + 0.0
    array([[2., 0.],
           [0., 2.]])
    """
    array = record_array(manifold, points)
    if tolerance is not None:
        positive_number("tolerance", tolerance)
    if isinstance(manifold, Product):
        parts = [
            frechet_mean(factor, part, sample_weight=sample_weight, tolerance=tolerance)
            for factor, part in zip(manifold.factors, array, strict=True)
        ]
        return _joined(parts)
    weights = record_weights(sample_weight, array, array.shape[0])
    if tolerance is None:
        tolerance = 1e-10 if eps(weights) < 1e-10 else 1e-5
    inner = manifold.manifold if isinstance(manifold, Power) else manifold
    if isinstance(inner, Product | Power):
        raise NotOnManifoldError(f"no mean is offered on powers of {inner!r}; use a product of powers.")
    if isinstance(inner, FlatManifold):
        point, error = flat_mean(inner, array, weights)
        return MeanResult(point, error, error, 1, error <= tolerance, True)
    return _newton(inner, array, weights, tolerance)


def _joined(parts: list[MeanResult]) -> MeanResult:
    """The mean on a product is the tuple of the means."""
    return MeanResult(
        point=tuple(part.point for part in parts),
        gradient_norm=math.hypot(*(part.gradient_norm for part in parts)),
        error_bound=math.hypot(*(part.error_bound for part in parts)),
        passes=max(part.passes for part in parts),
        converged=all(part.converged for part in parts),
        is_global=all(part.is_global for part in parts),
    )


def _newton(manifold: Manifold, points: Array, weights: Array, tolerance: float) -> MeanResult:
    """Newton steps, shortened while the objective grows; one pass over the records per step."""
    base, passes, checked = _start(manifold, points, weights)
    here = _linearized(manifold, base, points, weights, check=not checked)
    passes += 1
    gradient, contraction, stalled = _total(norm(here.pull)), 1.0, 0
    while gradient > tolerance and stalled < 2:
        if not here.has_second_order:
            here = _linearized(manifold, base, points, weights)
            passes += 1
        look = partial(_linearized, manifold, points=points, weights=weights)
        if contraction * gradient * gradient < tolerance / 4:
            # the next gradient will do: that pass needs no Hessian
            look = partial(_verified, manifold, points=points, weights=weights, nearby=here, allowance=tolerance / 100)
        candidate, there, used = _step(manifold, base, here, gradient, tolerance, look)
        passes += used
        reached = _total(norm(there.pull))
        contraction = reached / (gradient * gradient)
        stalled = stalled + 1 if reached > gradient / 2 else 0
        if reached < gradient:
            base, here, gradient = candidate, there, reached
        elif gradient <= _total(here.rounding):
            break
        if passes >= _MOST_PASSES:
            raise ConvergenceError(
                f"the mean did not converge in {passes} passes: the records may be spread too far apart for it to be "
                "unique. Clip them to a ball below manifold.max_radius first."
            )
    bound, is_global = _certificate(manifold, here, longest_sum(points))
    return MeanResult(base, gradient, bound, passes, gradient <= tolerance, is_global)


def _step(
    manifold: Manifold,
    base: Array,
    here: Linearization,
    gradient: float,
    tolerance: float,
    look: Callable[..., Linearization],
) -> tuple[Array, Linearization, int]:
    """The point after one Newton step, what is seen there, and how many looks that took.

    The step is shortened while the objective grows.
    """
    xp = namespace(here.pull)
    step = _newton_direction(here, min(1e-3, max(gradient * gradient, tolerance / (8 * gradient))))
    size = norm(step)
    limit = min(manifold.injectivity_radius / 2, 4.0)
    step = step * (limit / xp.where(size > limit, size, xp.full_like(size, limit)))[..., None]
    looks = 0
    while True:
        candidate = manifold.exp(base, manifold.from_coordinates(base, step))
        there = look(base=candidate)
        looks += 1
        worse = there.value > here.value * (1 + 1e-9) + here.rounding
        if looks == _MOST_SHORTENINGS or not bool(xp.any(worse)):
            return candidate, there, looks
        step = xp.where(worse[..., None], step / 4, step)


def _start(manifold: Manifold, points: Array, weights: Array) -> tuple[Array, int, bool]:
    """A base, the passes it took, and whether all records were checked on the way.

    The extrinsic mean of all records, or for many SPD matrices the mean of every s-th one: less than a pass.
    """
    stride = min(16, points.shape[0] // (8 * manifold.dim + 64))
    if isinstance(manifold, SPDAffineInvariant) and stride >= 4:
        part, part_weights = points[::stride], weights[::stride]
        total = namespace(weights).sum(part_weights)
        if bool(total > 0):
            return _newton(manifold, part, part_weights / total, 1e-2).point, 0, False
    return extrinsic_mean(manifold, points, weights), 1, True


def _linearized(
    manifold: Manifold, base: Array, points: Array, weights: Array, *, check: bool = False
) -> Linearization:
    """One pass with Hessian: the sums of all blocks."""

    def block_sums(_: int, block: Array, block_weights: Array) -> Linearization:
        if check:
            check_block(manifold, block)
        return linearize(manifold, base, block, block_weights, True)

    return _collected(block_sums, points, weights)


def _verified(
    manifold: Manifold, base: Array, points: Array, weights: Array, nearby: Linearization, allowance: float
) -> Linearization:
    """One pass for the gradient alone, with what was kept of a pass at a base nearby."""

    def block_sums(number: int, block: Array, block_weights: Array) -> Linearization:
        known = nearby.blocks[number] if number < len(nearby.blocks) else None
        short_cut = known.nearby(base, block, block_weights, allowance) if known else None
        return short_cut or linearize(manifold, base, block, block_weights, False)

    return _collected(block_sums, points, weights)


def _collected(
    block_sums: Callable[[int, Array, Array], Linearization], points: Array, weights: Array
) -> Linearization:
    parts = map_blocks(block_sums, points, weights)
    total = next(parts)
    for part in parts:
        total.add(part)
    xp = namespace(total.pull)
    if not bool(xp.all(xp.isfinite(total.pull))):
        raise NotOnManifoldError(
            "the records lead to numbers that are not finite; check them with dpmanifolds.validate."
        )
    return total


def _newton_direction(here: Linearization, accuracy: float) -> Array:
    """Solve Hess·step = pull by conjugate gradients, to a residual of `accuracy` times the right-hand side."""
    xp = namespace(here.pull)
    residual, step = here.pull, xp.zeros_like(here.pull)
    direction = residual
    squared = dot(residual, residual)
    goal = accuracy * accuracy * squared
    for _ in range(4 * here.pull.shape[-1] + 8):
        active = squared > goal
        if not bool(xp.any(active)):
            break
        image = here.apply(direction)
        bend = dot(direction, image)
        # a direction of no curvature, or a finished copy: keep what there is
        active = active & (bend > 0)
        length = xp.where(active, squared / xp.where(active, bend, xp.ones_like(bend)), xp.zeros_like(bend))
        step = step + length[..., None] * direction
        residual = residual - length[..., None] * image
        following = xp.where(active, dot(residual, residual), xp.zeros_like(squared))
        direction = residual + (following / xp.where(active, squared, xp.ones_like(squared)))[..., None] * direction
        squared = following
    nothing = (dot(step, step) == 0)[..., None]
    return xp.where(nothing, here.pull, step)


def _certificate(manifold: Manifold, here: Linearization, terms: int) -> tuple[float, bool]:
    """The error bound, and whether the minimum is known to be global.

    A sum of `terms` numbers in any order is off by at most terms·eps times the sum of their sizes, here
    Σ w ρ ≤ √(Σ w ρ²).
    """
    xp = namespace(here.pull)
    reach = certificate_step(manifold, here.pull)
    certain = here.convexity > 0
    summation = terms * eps(here.pull) * xp.sqrt(2 * here.value)
    measured = norm(here.pull) + here.rounding + summation
    bounds = measured / xp.where(certain, here.convexity, xp.ones_like(here.convexity))
    bound = _total(bounds) if bool(xp.all(certain)) else math.inf
    if not manifold.is_hadamard and bound > reach:
        bound = math.inf
    is_global = manifold.is_hadamard or float(xp.max(here.farthest)) + reach < manifold.max_radius
    return bound, is_global


def _total(values: Array) -> float:
    """Euclidean norm over the copies of a power manifold."""
    xp = namespace(values)
    return float(xp.sqrt(xp.sum(values * values)))
