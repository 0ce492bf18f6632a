"""Where the iterations begin: extrinsic means, which no single record decides."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from dpmanifolds._arrays import Array, namespace, norm, sym, transpose
from dpmanifolds.errors import ConvergenceError, NotOnManifoldError
from dpmanifolds.manifolds import (
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    SPDAffineInvariant,
    SpecialOrthogonal,
    Sphere,
)
from dpmanifolds.manifolds._symmetric import apply_function
from dpmanifolds.statistics._linearize import spread_weights, weighted_sum
from dpmanifolds.statistics._positive import not_positive
from dpmanifolds.statistics.streaming import Records

__all__ = ["extrinsic_mean"]


def extrinsic_mean(manifold: Manifold, records: Records) -> Array:
    """A mean of the ambient arrays, brought back to the manifold (weights sum to one)."""
    moment = records.reduce(_MomentPart(manifold), operator.add)
    try:
        return _point(manifold, moment)
    except np.linalg.LinAlgError:
        raise NotOnManifoldError(
            "the records lead to numbers that are not finite; check them with dpmanifolds.validate."
        ) from None


@dataclass(frozen=True)
class _MomentPart:
    """The moment of one block."""

    manifold: Manifold

    def __call__(self, _: int, block: Array, weights: Array) -> Array:
        return _moment(self.manifold, block, weights)


@singledispatch
def _moment(manifold: Manifold, points: Array, weights: Array) -> Array:
    """What is summed over records: the arrays themselves, unless a manifold needs more."""
    return weighted_sum(points, weights)


@_moment.register
def _(manifold: PlanarShapes, points: Array, weights: Array) -> Array:
    """Σ w xx*."""
    xp = namespace(points)
    scaled = xp.conj(points) * xp.astype(spread_weights(weights, points.ndim), points.dtype)
    if points.ndim == 2:
        return transpose(points) @ scaled
    return xp.sum(points[..., :, None] * scaled[..., None, :], axis=0)


@_moment.register
def _(manifold: Grassmann, points: Array, weights: Array) -> Array:
    """Σ w xxᵀ."""
    return weighted_sum(points @ transpose(points), weights)


@_moment.register
def _(manifold: SPDAffineInvariant, points: Array, weights: Array) -> Array:
    """Σ w x and Σ w x⁻¹, stacked."""
    xp = namespace(points)
    try:
        inverses = xp.linalg.inv(points)
    except np.linalg.LinAlgError:
        raise not_positive() from None
    return xp.stack([weighted_sum(points, weights), weighted_sum(inverses, weights)])


@singledispatch
def _point(manifold: Manifold, moment: Array) -> Array:
    """The point that belongs to the summed moments."""
    return manifold.project(moment)


@_point.register
def _(manifold: Sphere, moment: Array) -> Array:
    xp = namespace(moment)
    if bool(xp.any(norm(moment) < 1e-8 * manifold.sphere_radius)):
        raise _no_center()
    return manifold.project(moment)


@_point.register
def _(manifold: Hyperbolic, moment: Array) -> Array:
    """The Lorentz centroid: the mean vector scaled back to the hyperboloid."""
    xp = namespace(moment)
    size = norm(moment[..., 1:])
    length = xp.sqrt((moment[..., 0] - size) * (moment[..., 0] + size))
    return manifold.project(manifold.scale_length * moment / length[..., None])


@_point.register
def _(manifold: PlanarShapes, moment: Array) -> Array:
    """The leading eigenvector: the full Procrustes mean."""
    return manifold.project(namespace(moment).linalg.eigh(moment)[1][..., :, -1])


@_point.register
def _(manifold: Grassmann, moment: Array) -> Array:
    """The leading eigenvectors of the mean projector."""
    return namespace(moment).linalg.eigh(sym(moment))[1][..., -manifold.p :]


@_point.register
def _(manifold: SpecialOrthogonal, moment: Array) -> Array:
    xp = namespace(moment)
    if bool(xp.any(xp.linalg.svdvals(moment)[..., -1] < 1e-8)):
        raise _no_center()
    return manifold.project(moment)


@_point.register
def _(manifold: SPDAffineInvariant, moment: Array) -> Array:
    """The geometric mean of the arithmetic and the harmonic mean; the arithmetic one if rounding spoils the other."""
    xp = namespace(moment)
    arithmetic = sym(moment[0, ...])
    try:
        harmonic = sym(xp.linalg.inv(sym(moment[1, ...])))
        lower = xp.linalg.cholesky(arithmetic)
    except np.linalg.LinAlgError:
        raise not_positive() from None
    half = xp.linalg.solve(lower, harmonic)
    relative = sym(xp.linalg.solve(lower, transpose(half)))
    if not bool(xp.all(xp.linalg.eigvalsh(relative) > 0)):
        return arithmetic
    return sym(lower @ apply_function(relative, xp.sqrt) @ transpose(lower))


def _no_center() -> ConvergenceError:
    return ConvergenceError(
        "the records have no centre: they are spread too evenly over the space for a Fréchet mean to be unique. "
        "Clip them to a ball below manifold.max_radius first."
    )
