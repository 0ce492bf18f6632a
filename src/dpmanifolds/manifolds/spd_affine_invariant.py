"""Positive definite matrices with the affine-invariant metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, contract, log_sinhc, namespace, norm, root, sym, transpose
from dpmanifolds.manifolds._derivatives import differentiated_by
from dpmanifolds.manifolds._matrix_log import log_triangle
from dpmanifolds.manifolds._spectral import matrix_form
from dpmanifolds.manifolds._symmetric import apply_function, from_upper_triangle, upper_triangle
from dpmanifolds.manifolds.spd import SPDBase

__all__ = ["SPDAffineInvariant"]


class SPDAffineInvariant(SPDBase):
    """SPD(k) with ⟨u,v⟩_p = tr(p⁻¹u p⁻¹v), invariant under p ↦ a p aᵀ; curvature in [−½, 0].

    With p = LLᵀ and the singular values of L_p⁻¹L_q = U Σ Vᵀ (not the eigenvalues of their product: half the
    digits of a badly conditioned pair survive that way): ρ(p,q) = 2‖log Σ‖, log_p q = L U (2 log Σ) Uᵀ Lᵀ.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> round(float(SPD(2).dist(np.eye(2), np.exp(1) * np.eye(2))), 9)
    1.414213562
    """

    metric = "affine-invariant"
    injectivity_radius = math.inf

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self.curvature_bounds = (-0.5, 0.0) if self.k > 1 else (0.0, 0.0)

    @property
    def average_curvature(self) -> float:
        """Ricci is −k/4 times the metric across the multiples of the base, and 0 along them."""
        return -self.k / (4 * self.dim) if self.k > 1 else 0.0

    def eigenvalue_radius(self, low: float, high: float) -> float:
        """½√k·ln(high/low), attained."""
        return math.sqrt(self.k) * math.log(high / low) / 2

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        lower = xp.linalg.cholesky(base)
        values, vectors = xp.linalg.eigh(_whiten(lower, vector))
        root = lower @ (vectors * xp.exp(values / 2)[..., None, :])
        return sym(root @ transpose(root))

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        lower = namespace(base, vector).linalg.cholesky(base)
        return sym(lower @ matrix_form("exp", _whiten(lower, vector)) @ transpose(lower))

    @differentiated_by("_smooth_log")
    def log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        lower = xp.linalg.cholesky(base)
        vectors, values, _ = xp.linalg.svd(_relative_root(lower, point), full_matrices=False)
        moved = lower @ vectors
        return sym((moved * (2 * xp.log(values))[..., None, :]) @ transpose(moved))

    def _smooth_log(self, base: Array, point: Array) -> Array:
        lower = namespace(base, point).linalg.cholesky(base)
        return sym(lower @ matrix_form("log", _whiten(lower, point)) @ transpose(lower))

    def log_coordinates(self, base: Array, points: Array) -> Array:
        """Those of log(L⁻¹xL⁻ᵀ), base = LLᵀ: one logarithm of a symmetric matrix per record."""
        xp = namespace(base, points)
        whitener = xp.linalg.inv(xp.linalg.cholesky(base))
        return log_triangle(points, self.k, whitener)

    @differentiated_by("_smooth_dist")
    def dist(self, a: Array, b: Array) -> Array:
        xp = namespace(a, b)
        return 2 * norm(xp.log(xp.linalg.svdvals(_relative_root(xp.linalg.cholesky(a), b))))

    def _smooth_dist(self, a: Array, b: Array) -> Array:
        return root(self._smooth_squared_dist(a, b))

    @differentiated_by("_smooth_squared_dist")
    def squared_dist(self, a: Array, b: Array) -> Array:
        distance = self.dist(a, b)
        return distance * distance

    def _smooth_squared_dist(self, a: Array, b: Array) -> Array:
        whitened = matrix_form("log", _whiten(namespace(a, b).linalg.cholesky(a), b))
        return contract(whitened, whitened)

    @differentiated_by("_smooth_geodesic", 2, 2, 0)
    def geodesic(self, a: Array, b: Array, t: Array | float) -> Array:
        """L U Σ^2t Uᵀ Lᵀ: never through a tangent matrix, which could not hold a badly conditioned pair."""
        xp = namespace(a, b)
        lower = xp.linalg.cholesky(a)
        vectors, values, _ = xp.linalg.svd(_relative_root(lower, b), full_matrices=False)
        time = t if isinstance(t, (int, float)) else t[..., None]
        root = lower @ (vectors * xp.exp(time * xp.log(values))[..., None, :])
        return sym(root @ transpose(root))

    def _smooth_geodesic(self, a: Array, b: Array, t: Array | float) -> Array:
        lower = namespace(a, b).linalg.cholesky(a)
        time = t if isinstance(t, (int, float)) else t[..., None, None]
        return sym(lower @ matrix_form("exp", time * matrix_form("log", _whiten(lower, b))) @ transpose(lower))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        xp = namespace(base, u, v)
        lower = xp.linalg.cholesky(base)
        return contract(_whiten(lower, u), _whiten(lower, v))

    @differentiated_by("_smooth_transport")
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        xp = namespace(base, to, vector)
        lower = xp.linalg.cholesky(base)
        vectors, values, _ = xp.linalg.svd(_relative_root(lower, to), full_matrices=False)
        inner = transpose(vectors) @ _whiten(lower, vector) @ vectors
        moved = lower @ (vectors * values[..., None, :])
        return sym(moved @ inner @ transpose(moved))

    def _smooth_transport(self, base: Array, to: Array, vector: Array) -> Array:
        lower = namespace(base, to, vector).linalg.cholesky(base)
        half = lower @ matrix_form("exp", matrix_form("log", _whiten(lower, to)) / 2)
        return sym(half @ _whiten(lower, vector) @ transpose(half))

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        return upper_triangle(_whiten(xp.linalg.cholesky(base), vector))

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(base, coordinates)
        lower = xp.linalg.cholesky(base)
        return sym(lower @ from_upper_triangle(coordinates, self.k) @ transpose(lower))

    def retract(self, base: Array, vector: Array) -> Array:
        """p + v + ½v p⁻¹v = ½p + ½(p + v)p⁻¹(p + v): positive definite for every v, of second order."""
        xp = namespace(base, vector)
        half = xp.linalg.solve(xp.linalg.cholesky(base), base + vector)
        return sym(base + transpose(half) @ half) / 2

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return sym(u @ namespace(base, u, v).linalg.solve(base, v))

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        values = xp.linalg.eigvalsh(_whiten(xp.linalg.cholesky(base), vector))
        gaps = (values[..., :, None] - values[..., None, :]) / 2
        return xp.sum(log_sinhc(gaps), axis=(-2, -1)) / 2

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return apply_function(self._random_symmetric(size, rng), np.exp)


def _whiten(lower: Array, matrix: Array) -> Array:
    """L⁻¹ m L⁻ᵀ for symmetric m, symmetric to the last bit."""
    xp = namespace(lower, matrix)
    half = xp.linalg.solve(lower, matrix)
    return sym(xp.linalg.solve(lower, transpose(half)))


def _relative_root(lower: Array, point: Array) -> Array:
    """L⁻¹K with point = KKᵀ."""
    xp = namespace(lower, point)
    return xp.linalg.solve(lower, xp.linalg.cholesky(point))
