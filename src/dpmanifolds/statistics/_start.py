"""Where the iterations begin: extrinsic means, which no single record decides."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from dpmanifolds._arrays import Array, namespace, norm, sym, transpose
from dpmanifolds.errors import ConvergenceError
from dpmanifolds.manifolds import (
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    SpecialOrthogonal,
    Sphere,
    SPDAffineInvariant,
)
from dpmanifolds.manifolds._symmetric import apply_function
from dpmanifolds.statistics._linearize import weighted_sum

__all__ = ["extrinsic_mean"]


def _no_center() -> ConvergenceError:
    return ConvergenceError(
        "the records have no centre: they are spread too evenly over the space for a Fréchet mean to be unique. "
        "Clip them to a ball below manifold.max_radius first."
    )


@singledispatch
def extrinsic_mean(manifold: Manifold, points: Array, weights: Array) -> Array:
    """The mean of the ambient arrays, brought back to the manifold (weights sum to one)."""
    return manifold.project(weighted_sum(points, weights))


@extrinsic_mean.register
def _(manifold: Sphere, points: Array, weights: Array) -> Array:
    mean = weighted_sum(points, weights)
    xp = namespace(mean)
    if bool(xp.any(norm(mean) < 1e-8 * manifold.sphere_radius)):
        raise _no_center()
    return manifold.project(mean)


@extrinsic_mean.register
def _(manifold: Hyperbolic, points: Array, weights: Array) -> Array:
    """The Lorentz centroid: the mean vector scaled back to the hyperboloid."""
    xp = namespace(points)
    mean = weighted_sum(points, weights)
    size = norm(mean[..., 1:])
    length = xp.sqrt((mean[..., 0] - size) * (mean[..., 0] + size))
    return manifold.project(manifold.scale_length * mean / length[..., None])


@extrinsic_mean.register
def _(manifold: PlanarShapes, points: Array, weights: Array) -> Array:
    """The leading eigenvector of Σ w xx* (the full Procrustes mean)."""
    xp = namespace(points)
    scaled = points * xp.astype(_spread(weights, points.ndim), points.dtype)
    if points.ndim == 2:
        second = transpose(points) @ xp.conj(scaled)
    else:
        second = xp.sum(points[..., :, None] * xp.conj(scaled)[..., None, :], axis=0)
    return manifold.project(xp.linalg.eigh(second)[1][..., :, -1])


@extrinsic_mean.register
def _(manifold: Grassmann, points: Array, weights: Array) -> Array:
    """The leading eigenvectors of the mean projector."""
    xp = namespace(points)
    projector = weighted_sum(points @ transpose(points), weights)
    return xp.linalg.eigh(sym(projector))[1][..., -manifold.p :]


@extrinsic_mean.register
def _(manifold: SpecialOrthogonal, points: Array, weights: Array) -> Array:
    mean = weighted_sum(points, weights)
    xp = namespace(mean)
    if bool(xp.any(xp.linalg.svdvals(mean)[..., -1] < 1e-8)):
        raise _no_center()
    return manifold.project(mean)


@extrinsic_mean.register
def _(manifold: SPDAffineInvariant, points: Array, weights: Array) -> Array:
    """The geometric mean of the arithmetic and the harmonic mean."""
    xp = namespace(points)
    arithmetic = sym(weighted_sum(points, weights))
    try:
        harmonic = xp.linalg.inv(sym(weighted_sum(xp.linalg.inv(points), weights)))
        lower = xp.linalg.cholesky(arithmetic)
        half = xp.linalg.solve(lower, sym(harmonic))
        inner = apply_function(sym(xp.linalg.solve(lower, transpose(half))), xp.sqrt)
    except np.linalg.LinAlgError:
        return arithmetic
    start = sym(lower @ inner @ transpose(lower))
    return start if bool(xp.all(xp.isfinite(start))) else arithmetic


def _spread(weights: Array, ndim: int) -> Array:
    return namespace(weights).reshape(weights, (-1,) + (1,) * (ndim - 1))
