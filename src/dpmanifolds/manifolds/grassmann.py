"""Subspaces of R^n."""

from __future__ import annotations

import math

from dpmanifolds._arrays import (
    Array,
    contract,
    eye,
    log_sinc,
    namespace,
    norm,
    root,
    safe_divide,
    sym,
    transpose,
    x_cot_x,
)
from dpmanifolds._words import tell_degrees
from dpmanifolds.manifolds._common import RootSystem
from dpmanifolds.manifolds._derivatives import differentiated_by, matrix_exponential
from dpmanifolds.manifolds._orthonormal import (
    OrthonormalFrames,
    blocks,
    complete_basis,
    from_traceless_triangle,
    traceless_triangle,
)
from dpmanifolds.manifolds._symmetric import matrix_form
from dpmanifolds.manifolds.linearization import HessianBlock, Linearization, first_order, spread_weights, weighted_sum


class Grassmann(OrthonormalFrames):
    """p-dimensional subspaces of R^n, each given by an orthonormal basis (..., n, p).

    ⟨u,v⟩ = tr(uᵀv) on horizontal vectors (xᵀv = 0), so that the distance is the ℓ2 norm of the principal angles;
    curvature in [0, 2] (1 for lines and hyperplanes). With xᵀy = R C Qᵀ (singular values C) and D = yQ − xRC:
    θ = atan2(|D_i|, C_i), log_x y = D diag(θ_i/|D_i|) Rᵀ.

    >>> import numpy as np
    >>> from dpmanifolds import Grassmann
    >>> x, y = np.eye(4)[:, :2], np.eye(4)[:, [0, 2]]
    >>> round(float(Grassmann(4, 2).dist(x, y)), 9)
    1.570796327
    """

    injectivity_radius = math.pi / 2
    typed = "grassmann:5,2"
    picture = "projector"

    def __init__(self, n: int, p: int) -> None:
        super().__init__(n, p)
        self.rank = min(self.p, self.n - self.p)
        self.dim = self.p * (self.n - self.p)
        self.is_model_space = self.dim == 1
        self.root_system = RootSystem(self.rank, 1.0, 1, abs(self.n - 2 * self.p), math.pi / 2, angle_copies=1)
        self.polar_roots = self.root_system.polar_roots
        self.ambient_dim = self.n * (self.n + 1) // 2 - 1
        self.projector_shape = (self.p, self.n)
        self.ambient_radius = math.sqrt(self.p * (self.n - self.p) / self.n)
        if self.dim == 1:
            self.curvature_bounds = (0.0, 0.0)
        else:
            self.curvature_bounds = (1.0, 1.0) if self.rank == 1 else (0.0, 2.0)

    @property
    def average_curvature(self) -> float:
        """Ricci is n − 2 times the metric."""
        return (self.n - 2) / (self.dim - 1) if self.dim > 1 else 0.0

    @property
    def words(self) -> str:
        return f"{self.p}-dimensional subspaces of {self.n}-dimensional space"

    def describe_distance(self, point: Array, distance: float) -> str:
        return tell_degrees(distance) + (" (principal angles, root of their squares' sum)" if self.p > 1 else "")

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        left, angles, right = xp.linalg.svd(vector, full_matrices=False)
        angles = angles[..., None, :]
        return (base @ transpose(right) * xp.cos(angles) + left * xp.sin(angles)) @ right

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        return xp.concat(xp.broadcast_arrays(base, vector), axis=-1) @ self._turn(vector)[..., : self.p]

    def _turn(self, vector: Array) -> Array:
        """exp of the turn vxᵀ − xvᵀ, as it acts on (x, v) from the right."""
        zero = 0 * (transpose(vector) @ vector)
        return matrix_exponential(blocks(zero, -(transpose(vector) @ vector), zero + eye(self.p, vector), zero))

    def _principal(self, base: Array, point: Array) -> tuple[Array, Array, Array, Array]:
        """R, Q, the sine part D of the aligned point and the principal angles."""
        xp = namespace(base, point)
        left, cosines, right = xp.linalg.svd(transpose(base) @ point, full_matrices=False)
        turned = point @ transpose(right)
        sine_part = turned - base @ (transpose(base) @ turned)
        angles = xp.atan2(norm(transpose(sine_part)), cosines)
        return left, right, sine_part, angles

    @differentiated_by("_smooth_log")
    def log(self, base: Array, point: Array) -> Array:
        left, _, sine_part, angles = self._principal(base, point)
        factors = safe_divide(angles, norm(transpose(sine_part)))
        return (sine_part * factors[..., None, :]) @ transpose(left)

    def _smooth_log(self, base: Array, point: Array) -> Array:
        """(I − xxᵀ)yyᵀx·h(2xᵀyyᵀx − I), h(cos 2θ) = 2θ/sin 2θ."""
        seen = point @ (transpose(point) @ base)
        inner = transpose(base) @ seen
        return (seen - base @ inner) @ matrix_form("arc", 2 * inner - eye(self.p, base))

    @differentiated_by("_smooth_dist")
    def dist(self, a: Array, b: Array) -> Array:
        return norm(self._principal(a, b)[3])

    def _smooth_dist(self, a: Array, b: Array) -> Array:
        vector = self._smooth_log(a, b)
        return root(contract(vector, vector))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return contract(u, v)

    @differentiated_by("_smooth_transport")
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        xp = namespace(base, to, vector)
        rotation, alignment, sine_part, angles = self._principal(base, to)
        unit = safe_divide(sine_part, norm(transpose(sine_part))[..., None, :])
        component = transpose(unit) @ vector
        angles = angles[..., None, :]
        moved = (unit * (xp.cos(angles) - 1) - base @ rotation * xp.sin(angles)) @ component
        return (vector + moved) @ rotation @ alignment

    def _smooth_transport(self, base: Array, to: Array, vector: Array) -> Array:
        """v + (x, w)·∫exp(tK)dt·(−wᵀv, 0) with w = log_x y, in the frame that leads to y."""
        xp = namespace(base, to, vector)
        way = self._smooth_log(base, to)
        square = transpose(way) @ way
        zero, one = 0 * square, 0 * square + eye(self.p, way)
        start = zero - transpose(way) @ vector
        rows = [[zero, -square, start], [one, zero, zero], [zero, zero, zero]]
        rows = [xp.concat(xp.broadcast_arrays(*row), axis=-1) for row in rows]
        turn = matrix_exponential(xp.concat(xp.broadcast_arrays(*rows), axis=-2))
        both = xp.concat(xp.broadcast_arrays(base, way), axis=-1)
        p = self.p
        reached = both @ turn[..., : 2 * p, :p]
        moved = vector + both @ turn[..., : 2 * p, 2 * p :]
        return moved @ (transpose(reached) @ to)

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        inner = transpose(complete_basis(base)) @ vector
        return xp.reshape(inner, (*inner.shape[:-2], self.dim))

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(base, coordinates)
        inner = xp.reshape(coordinates, (*coordinates.shape[:-1], self.n - self.p, self.p))
        return complete_basis(base) @ inner

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        """Σ_{i<j} log[sin(θᵢ−θⱼ)/(θᵢ−θⱼ) · sin(θᵢ+θⱼ)/(θᵢ+θⱼ)] + |n−2p| Σ log[sin θᵢ/θᵢ]."""
        xp = namespace(base, vector)
        angles = xp.linalg.svdvals(vector)[..., : self.rank]
        total = abs(self.n - 2 * self.p) * xp.sum(log_sinc(angles), axis=-1)
        for i in range(self.rank):
            rest, this = angles[..., i + 1 :], angles[..., i : i + 1]
            total = total + xp.sum(log_sinc(this - rest) + log_sinc(this + rest), axis=-1)
        return total

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return vector - base @ (transpose(base) @ vector)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return -base @ sym(transpose(u) @ v)

    def embed(self, points: Array) -> Array:
        """The projector XXᵀ less its trace: ‖XXᵀ − YYᵀ‖² = 2Σ sin²θ of the principal angles."""
        return traceless_triangle(points @ transpose(points))

    def projector_frame(self, points: Array) -> Array:
        return points

    def unembed(self, coordinates: Array) -> Array:
        """The leading eigenvectors."""
        xp = namespace(coordinates)
        return xp.linalg.eigh(from_traceless_triangle(coordinates, self.n))[1][..., -self.p :]

    def chord(self, radius: float) -> float:
        """√2q·sin(r/√q), q = min(p, n − p) angles: sin²√u is concave below (π/2)², so that equal ones are farthest."""
        return math.sqrt(2 * self.rank) * math.sin(min(radius / math.sqrt(self.rank), math.pi / 2))

    def linearize(self, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
        """In the log's singular bases: g(θᵢ−θⱼ) on symmetric, g(θᵢ+θⱼ) on skew pairs, g(θⱼ) on the rest."""
        xp = namespace(base, points)
        coordinates, result = first_order(self, base, points, weights, points.shape[-2])
        if not hessian:
            return result
        inner = xp.reshape(coordinates, (*coordinates.shape[:-1], self.n - self.p, self.p))
        left, angles, right = xp.linalg.svd(inner, full_matrices=True)
        factors = _grassmann_factors(angles, self.n - self.p, self.p)
        w = spread_weights(weights, inner.ndim)

        def operator(vector: Array) -> Array:
            direction = xp.reshape(vector, (*vector.shape[:-1], self.n - self.p, self.p))
            seen = transpose(left) @ direction @ transpose(right)
            total = xp.sum(w * (left @ _grassmann_hessian(seen, factors, self.rank) @ right), axis=0)
            return xp.reshape(total, vector.shape)

        result.blocks = [HessianBlock(operator, 4 * 8 * math.prod(points.shape))]
        return result

    def ambient_moment(self, points: Array, weights: Array) -> Array:
        """Σ w xxᵀ."""
        return weighted_sum(points @ transpose(points), weights)

    def point_of_moment(self, moment: Array) -> Array:
        """The leading eigenvectors of the mean projector."""
        return namespace(moment).linalg.eigh(sym(moment))[1][..., -self.p :]

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        return 16 * self.n * (1 + 2 * radius)


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
