"""Clipping a block to a domain: a cheap look tells which records are certainly inside, the domain moves the others.

The result is that of `domain.clip`, bit for bit: only the question "inside?" is answered faster, and only where the
answer is beyond rounding.
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from dpmanifolds._arrays import Array, eps, like, namespace, to_numpy, transpose
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import Manifold, SPDAffineInvariant, Sphere
from dpmanifolds.manifolds._small_eigen import LARGEST_SMALL
from dpmanifolds.statistics._linearize_spd import whitened_entries
from dpmanifolds.statistics._positive import log_summary, not_positive, positive_log_entries

__all__ = ["clip_block"]


def clip_block(domain: Domain, block: Array) -> Array:
    """`domain.clip(block)`; the block itself where nothing lies outside."""
    try:
        # numbers that are no points show up as not finite, and are found by the statistic
        with np.errstate(all="ignore"):
            inside = _certainly_inside(domain.manifold, domain, block) if isinstance(domain, Ball) else None
            if inside is None:
                return domain.clip(block)
            if bool(namespace(inside).all(inside)):
                return block
            rows = block[~inside]
            clipped = domain.clip(rows)
    except np.linalg.LinAlgError:
        raise NotOnManifoldError(
            f"records must lie on {domain.manifold!r}, and at least one does not. Check them with "
            "dpmanifolds.validate, or pass on_invalid='center'."
        ) from None
    return block if clipped is rows else assigned(block, ~inside, clipped)


def assigned(array: Array, rows: Array, values: Array) -> Array:
    """A copy of the array with other values in the rows of a mask."""
    if hasattr(array, "at"):
        return array.at[rows].set(values)
    xp = namespace(array)
    result = xp.asarray(array, copy=True)
    result[rows] = values
    return result


@singledispatch
def _certainly_inside(manifold: Manifold, ball: Ball, block: Array) -> Array | None:
    """Which records are inside the ball beyond doubt; None where no look is cheaper than the distances."""
    return None


@_certainly_inside.register
def _(manifold: Sphere, ball: Ball, block: Array) -> Array | None:
    """κ⟨x,c⟩ = |√κx|·cos θ, and records are on the sphere up to the slack that `belongs` allows."""
    slack = 1e-5 if eps(block) < 1e-10 else 1e-2
    cosine = manifold.curvature * (block @ like(to_numpy(ball.center), block))
    return cosine > math.cos(ball.radius / manifold.sphere_radius) + slack


@_certainly_inside.register
def _(manifold: SPDAffineInvariant, ball: Ball, block: Array) -> Array | None:
    """‖log L⁻¹xL⁻ᵀ‖ with centre LLᵀ; its error is at most 4k²·eps·cond(centre)·λ_max/λ_min of the whitened record."""
    k, xp = manifold.k, namespace(block)
    center = like(to_numpy(ball.center), block)
    spectrum = xp.linalg.eigvalsh(center)
    whitener = xp.linalg.inv(xp.linalg.cholesky(center))
    if k <= LARGEST_SMALL:
        logs = positive_log_entries(whitened_entries(whitener, block), k)
        _, squared, spread = log_summary(logs, k)
    else:
        values = xp.linalg.eigvalsh(whitener @ block @ transpose(whitener))
        if not bool(xp.all(values[:, 0] > 0)):
            raise not_positive()
        squared, spread = xp.sum(xp.log(values) ** 2, axis=-1), values[:, -1] / values[:, 0]
    error = 16 * k * k * eps(block) * spectrum[-1] / spectrum[0] * spread
    return xp.sqrt(squared) + error < ball.radius * (1 - 1e-9)
