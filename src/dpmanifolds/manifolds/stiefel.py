"""Orthonormal frames, for optimisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import (
    Array,
    astype_complex,
    contract,
    eye,
    gather,
    is_traced,
    like,
    namespace,
    sinc,
    transpose,
)
from dpmanifolds.errors import ArgumentError, ConvergenceError
from dpmanifolds.manifolds._derivatives import differentiated_by, frozen, matrix_exponential
from dpmanifolds.manifolds._orthonormal import (
    OrthonormalFrames,
    blocks,
    complete_basis,
    exp_skew,
    log_rotation,
)

_LOG_ITERATIONS = 200


class Stiefel(OrthonormalFrames):
    """Orthonormal p-frames in R^n (..., n, p), 1 ≤ p < n, with the canonical metric tr(uᵀ(I − ½xxᵀ)v).

    For optimisation: no ball, mean or sensitivity is offered here (`max_radius` is 0). The logarithm is an
    iteration that converges near the base (Zimmermann 2017) and raises `ConvergenceError` elsewhere (NaN inside of a
    transformation of JAX, where nothing can be raised). For p = n the frames are O(n), two spaces in one: refused.
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
    picture = "projector"
    _instead = " For p = n, where frames of either orientation cannot reach each other, use SpecialOrthogonal(n)."

    def __init__(self, n: int, p: int) -> None:
        super().__init__(n, p)
        self.dim = self.n * self.p - self.p * (self.p + 1) // 2
        self.curvature_bounds = (0.0, 1.25)

    @property
    def words(self) -> str:
        return f"{self.p}-dimensional frames of {self.n}-dimensional space"

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        normal, lower = _across(base, vector)
        inner = transpose(base) @ vector
        inner = (inner - transpose(inner)) / 2
        corner = xp.zeros_like(lower @ transpose(lower))
        rotation = exp_skew(blocks(inner, -transpose(lower), lower, corner))
        return base @ rotation[..., : self.p, : self.p] + normal @ rotation[..., self.p :, : self.p]

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        """(x, n)·exp(K), first p columns, for the part n of v normal to x: the turn xaxᵀ + nxᵀ − xnᵀ takes (x, n) to
        (x, n)K.
        """
        xp = namespace(base, vector)
        inner = transpose(base) @ vector
        normal = vector - base @ inner
        square = transpose(normal) @ normal
        turn = matrix_exponential(
            blocks((inner - transpose(inner)) / 2, -square, 0 * square + eye(self.p, square), 0 * square)
        )
        return xp.concat(xp.broadcast_arrays(base, normal), axis=-1) @ turn[..., : self.p]

    @differentiated_by("_smooth_log")
    def log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        normal, lower = _across(base, point)
        column = xp.concat([transpose(base) @ point, lower], axis=-2)
        p = self.p
        rotation, converged = _iterate_log(_complete_rotation(column), p)
        if is_traced(converged):
            rotation = xp.where(converged, rotation, xp.full_like(rotation, math.nan))
        elif not bool(converged):
            raise ConvergenceError(
                "the Stiefel logarithm did not converge: the points are too far apart. It is meant for points closer "
                f"than the injectivity radius (at least {self.injectivity_radius:.3f})."
            )
        skew = log_rotation(rotation)
        return base @ skew[..., :p, :p] + normal @ skew[..., p:, :p]

    def _smooth_log(self, base: Array, point: Array) -> Array:
        """Two steps of Newton's method for exp_x v = y from the solution, one for each derivative that is right."""
        xp = namespace(base, point)
        start = self.log(frozen(base), frozen(point))
        slope = self._slope_of_exp(frozen(base), start)
        found = start
        for _ in range(2):
            missing = point - self._smooth_exp(base, self.project_tangent(base, found))
            flat = xp.reshape(missing, (*missing.shape[:-2], self.n * self.p, 1))
            found = found + xp.reshape(slope @ flat, missing.shape)
        return self.project_tangent(base, found)

    def _slope_of_exp(self, base: Array, vector: Array) -> Array:
        """The inverse of the differential of exp_x at v, (..., np, np), 0 across the manifold.

        exp_x v = exp(Ω)x, Ω = (I − ½xxᵀ)vxᵀ − xvᵀ(I − ½xxᵀ), and with the eigenvectors U of Ω = U iΘ U*
        D exp(Ω)[H] = U (φ ∘ U*HU) U*, φ_jk = (e^{iθ_j} − e^{iθ_k})/(i(θ_j − θ_k)).
        """
        xp = namespace(base, vector)
        values, vectors = xp.linalg.eigh(-1j * astype_complex(_turn(base, vector)))
        middle = (values[..., :, None] + values[..., None, :]) / 2
        half = (values[..., :, None] - values[..., None, :]) / 2
        weights = xp.exp(1j * astype_complex(middle)) * sinc(half)
        size = self.n * self.p
        units = like(np.eye(size).reshape(size, self.n, self.p), base)
        base, vectors, weights = base[..., None, :, :], vectors[..., None, :, :], weights[..., None, :, :]
        tangents = self.project_tangent(base, units)
        back = xp.conj(transpose(vectors))
        inner = weights * (back @ astype_complex(_turn(base, tangents)) @ vectors)
        moved = xp.real(vectors @ inner @ back) @ base
        slope = transpose(xp.reshape(moved, (*moved.shape[:-2], size)))
        across = eye(size, base) - xp.reshape(tangents, (*tangents.shape[:-2], size))
        return xp.linalg.solve(transpose(slope) @ slope + across, transpose(slope))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return contract(u, v) - contract(transpose(base) @ u, transpose(base) @ v) / 2

    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        """NOT parallel: the tangent projection of `vector` at `to`, a vector transport for optimisation."""
        return self.project_tangent(to, vector)

    def project_tangent(self, base: Array, vector: Array) -> Array:
        inner = transpose(base) @ vector
        return vector - base @ (inner + transpose(inner)) / 2

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        """½(Ω_uv + Ω_vu) with the turns of exp_x(tv) = exp(tΩ_v)x."""
        return (_turn(base, u) @ v + _turn(base, v) @ u) / 2

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


def _turn(base: Array, vector: Array) -> Array:
    """The skew matrix Ω with exp_x v = exp(Ω)x."""
    half = (vector - base @ (transpose(base) @ vector) / 2) @ transpose(base)
    return half - transpose(half)


def _across(base: Array, columns: Array) -> tuple[Array, Array]:
    """Orthonormal vectors across the base, and the coefficients that make of them what of the columns lies there."""
    frame = complete_basis(base)
    left, values, right = namespace(base, columns).linalg.svd(transpose(frame) @ columns, full_matrices=False)
    return frame @ left, values[..., :, None] * right


def _iterate_log(rotation: Array, p: int) -> tuple[Array, Array]:
    """Turn the last columns until the logarithm's lower corner vanishes; whether it does for all."""
    xp = namespace(rotation)
    slack = 64 * float(xp.finfo(rotation.dtype).eps)

    def corner(rotation: Array) -> Array:
        return log_rotation(rotation)[..., p:, p:]

    def turn(rotation: Array, skew: Array) -> Array:
        return xp.concat([rotation[..., :, :p], rotation[..., :, p:] @ exp_skew(-skew)], axis=-1)

    if is_traced(rotation):
        import jax

        def step(state: Any) -> Any:
            turned = turn(state[1], state[2])
            return state[0] + 1, turned, corner(turned)

        def unfinished(state: Any) -> Any:
            return (state[0] < _LOG_ITERATIONS) & ~xp.all(xp.abs(state[2]) <= slack)

        _, rotation, skew = jax.lax.while_loop(unfinished, step, (0, rotation, corner(rotation)))
        return rotation, xp.all(xp.abs(skew) <= slack)
    for _ in range(_LOG_ITERATIONS):
        skew = corner(rotation)
        if bool(xp.all(xp.abs(skew) <= slack)):
            return rotation, xp.asarray(True)
        rotation = turn(rotation, skew)
    return rotation, xp.asarray(False)
