"""Correlation matrices of full rank with the off-log metric."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, eps, eye, is_numpy, is_traced, like, namespace, sym, transpose
from dpmanifolds._validate import positive_integer
from dpmanifolds.manifolds._common import default_tolerance, normal_array, step_around
from dpmanifolds.manifolds._derivatives import call_smoothly, differentiated_by, frozen
from dpmanifolds.manifolds._log_triangle import log_triangle
from dpmanifolds.manifolds._symmetric import differential, from_upper_triangle, matrix_form, sinhc_quotient
from dpmanifolds.manifolds.euclidean import FlatManifold
from dpmanifolds.manifolds.linearization import FlatSums
from dpmanifolds.manifolds.spd_log_euclidean import SPDLogEuclidean

_MOST_ROUNDS = 60
_FEW_ROUNDS = 24


class Correlation(FlatManifold):
    """Positive definite k×k matrices with ones on the diagonal, through the part of log C off its diagonal.

    ρ(C,K) = ‖off(log C − log K)‖, off(·) without its diagonal: every symmetric matrix S with an empty diagonal is
    off(log C) of one correlation matrix alone, C = exp(S + diag x) (Archakov and Hansen 2021), so that off∘log is an
    isometry onto R^{k(k−1)/2}; the density of exp is 1. It treats all variables alike, ρ(PCPᵀ, PKPᵀ) = ρ(C, K) for
    permutations P (Thanwerdas 2024), where flat metrics through Cholesky factors depend on the order of variables. For
    k = 2 it is √2 times the distance of Fisher's z = artanh(correlation).

    >>> import numpy as np
    >>> from dpmanifolds import Correlation
    >>> space = Correlation(2)
    >>> distance = float(space.dist(np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]])))
    >>> round(distance, 9), round(float(np.sqrt(2) * np.arctanh(0.5)), 9)
    (0.776836199, 0.776836199)
    >>> space.project(np.array([[4.0, 1.0], [1.0, 1.0]])).round(9).tolist()  # a covariance matrix
    [[1.0, 0.5], [0.5, 1.0]]
    """

    metric = "off-log"
    typed = "correlation:5"
    picture = "matrix"
    rules = (
        "all numbers must be finite, not NaN or inf",
        "matrices must be symmetric",
        "the diagonal must be 1",
        "matrices must be positive definite",
    )

    def __init__(self, k: int) -> None:
        self.k = positive_integer("k", k, at_least=2)
        self.dim = self.k * (self.k - 1) // 2
        self.point_shape = (self.k, self.k)
        self._covariances = SPDLogEuclidean(self.k)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.k,)

    @property
    def words(self) -> str:
        return f"correlation matrices of {self.k} variables ({self.metric} metric)"

    def describe_distance(self, point: Array, distance: float) -> str:
        """On average over directions and pairs of variables."""
        changed = np.abs(step_around(self, point, distance) - point)
        return f"{float(np.sum(changed)) / (len(changed) * self.k * (self.k - 1)):.2g} in a correlation"

    @property
    def natural_center(self) -> Array:
        """The identity: no two variables are correlated."""
        return np.eye(self.k)

    def chart(self, point: Array) -> Array:
        """√2 times the logarithm above its diagonal; NaN where a matrix is not positive."""
        return log_triangle(point, self.k)[..., self.k :]

    def log_coordinates(self, base: Array, points: Array) -> Array:
        return self.chart(points) - self.chart(base[None, ...])[0, ...]

    def inverse_chart(self, coordinates: Array) -> Array:
        """exp(S + diag x) for the x that makes its diagonal 1: see `_find_diagonal`."""
        return call_smoothly(_exponential, _smooth_exponential, (2,), self._hollow(coordinates))

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        return self._covariances.to_coordinates(base, vector)[..., self.k :]

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        step = self._hollow(coordinates)
        return call_smoothly(_exp_differential, _smooth_exp_differential, (2, 2), base, step)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        """D²exp at log C of the velocities of log C, and what a bend of its diagonal does that keeps the ones."""
        start = matrix_form("log", base)
        steps = (matrix_form("log", base, vector) for vector in (u, v))
        return _keep_diagonal(start, matrix_form("exp", start, *steps))

    def chart_sums(self, block: Array, weights: Array) -> FlatSums:
        """A part of the sums of whole logarithms, whose size and rounding bound its own."""
        sums = self._covariances.chart_sums(block, weights)
        return FlatSums(sums.total[..., self.k :], sums.size, sums.rounding)

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        """Positive definite, with a diagonal of ones up to the tolerance."""
        return self._covariances.belongs(point, tolerance) & self._has_ones(point, tolerance)

    def broken_rule(self, points: Array) -> Array:
        """Finite, symmetric, with ones; that it is positive shows in the logarithm."""
        xp = namespace(points)
        broken = self._covariances.broken_rule(points)
        return xp.where((broken == 0) & ~self._has_ones(points, None), xp.full_like(broken, 3), broken)

    def place(self, points: Array) -> Array:
        """Symmetric, and rescaled to ones on the diagonal: how a covariance becomes a correlation."""
        return _rescale(sym(points))

    @differentiated_by("_smooth_project")
    def project(self, point: Array) -> Array:
        """The correlations of the nearest covariance matrix."""
        return _rescale(self._covariances.project(point))

    def _smooth_project(self, point: Array) -> Array:
        return _rescale(self._covariances._smooth_project(point))

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return sym(vector) * (1 - eye(self.k, vector))

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return self.inverse_chart(normal_array(rng, size, (self.dim,)))

    def _hollow(self, coordinates: Array) -> Array:
        """The symmetric matrix with these coordinates above an empty diagonal."""
        xp = namespace(coordinates)
        empty = xp.zeros_like(coordinates[..., :1])
        return from_upper_triangle(xp.concat([*[empty] * self.k, coordinates], axis=-1), self.k)

    def _has_ones(self, point: Array, tolerance: float | None) -> Array:
        xp = namespace(point)
        return xp.all(xp.abs(xp.linalg.diagonal(point) - 1) <= default_tolerance(point, tolerance), axis=-1)


def _rescale(matrix: Array) -> Array:
    """D^{−½}MD^{−½}, D the diagonal of M, with ones to the last bit."""
    xp = namespace(matrix)
    scale = xp.sqrt(xp.linalg.diagonal(matrix))
    identity = eye(matrix.shape[-1], matrix)
    return matrix / (scale[..., :, None] * scale[..., None, :]) * (1 - identity) + identity


def _exponential(hollow: Array) -> Array:
    """exp(S + diag x), scaled to ones; NaN where S is not finite."""
    xp = namespace(hollow)
    finite = xp.all(xp.isfinite(hollow), axis=(-2, -1))[..., None, None]
    usable = xp.where(finite, hollow, xp.zeros_like(hollow))
    values, vectors = xp.linalg.eigh(usable + _diagonal_matrix(_find_diagonal(usable)))
    found = _rescale(sym((vectors * xp.exp(values - values[..., -1:])[..., None, :]) @ transpose(vectors)))
    return xp.where(finite, found, xp.full_like(found, math.nan))


def _find_diagonal(hollow: Array) -> Array:
    """The x with ones on the diagonal of exp(S + diag x), for each S by itself.

    It minimises the strictly convex tr exp(S + diag x) − Σx. With g = ln diag exp(S + diag x), the step x − g is a
    contraction (Archakov and Hansen 2021, theorem 1), and Newton's x − J⁻¹g, J = ∂g/∂x, is taken where it halves the
    largest |g|: where exp has its eigenvalues above 1e−14, within ten rounds of both. Beyond, matrices are singular to
    double precision; the rounds end in any case, and what is left of g is divided out.
    """
    xp = namespace(hollow)
    x = xp.zeros_like(hollow[..., 0])
    if not is_numpy(hollow):
        for _ in range(_FEW_ROUNDS):
            x, done = _improve(hollow, x)
            if not is_traced(hollow) and bool(xp.all(done)):
                break
        return x
    rows, found = hollow.reshape(-1, *hollow.shape[-2:]), x.reshape(-1, x.shape[-1])
    left = np.arange(len(rows))
    for _ in range(_MOST_ROUNDS):
        found[left], done = _improve(rows[left], found[left])
        left = left[~done]
        if not left.size:
            break
    return found.reshape(x.shape)


def _improve(hollow: Array, x: Array) -> tuple[Array, Array]:
    """One round, and which rows have nothing left to improve."""
    xp = namespace(hollow)
    values, vectors, surplus = _log_diagonal(hollow, x)
    size = xp.max(xp.abs(surplus), axis=-1)
    newton = x - xp.linalg.solve(_slopes(values, vectors, surplus), surplus[..., None])[..., 0]
    usable = xp.all(xp.isfinite(newton), axis=-1)
    newton = xp.where(usable[..., None], newton, x)
    reached = xp.max(xp.abs(_log_diagonal(hollow, newton)[2]), axis=-1)
    following = xp.where((reached < size / 2)[..., None], newton, x - surplus)
    done = size <= hollow.shape[-1] * eps(hollow) * (1 + xp.max(xp.abs(values), axis=-1))
    return xp.where(done[..., None], x, following), done


def _log_diagonal(hollow: Array, x: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues and eigenvectors of A = S + diag x, and ln diag exp A, which cannot overflow."""
    xp = namespace(hollow)
    values, vectors = xp.linalg.eigh(hollow + _diagonal_matrix(x))
    top = values[..., -1:]
    diagonal = xp.sum(vectors * vectors * xp.exp(values - top)[..., None, :], axis=-1)
    # no less than what the rounding of the largest leaves
    least = float(xp.finfo(values.dtype).smallest_normal)
    return values, vectors, xp.log(xp.clip(diagonal, min=least)) + top


def _slopes(values: Array, vectors: Array, surplus: Array) -> Array:
    """J_ij = e^{−gᵢ}·(Dexp(A)[eⱼeⱼᵀ])_ii = e^{−gᵢ}·Σ_ab U_ia U_ja exp[λ_a,λ_b] U_ib U_jb, with a hair on its diagonal.

    The hair keeps it regular where exp A is singular to rounding; it moves Newton's step, not where that ends.
    """
    xp = namespace(values)
    quotients = sinhc_quotient(values - values[..., -1:])
    rows = []
    for i in range(vectors.shape[-1]):
        both = vectors[..., i, None, :] * vectors
        rows.append(xp.sum((both @ quotients) * both, axis=-1))
    slopes = xp.stack(rows, axis=-2) * xp.exp(values[..., -1:] - surplus)[..., None]
    return slopes + eps(values) * eye(vectors.shape[-1], values)


def _exp_differential(base: Array, step: Array) -> Array:
    """The velocity of exp(S + diag x) at C = exp A, where S has the velocity `step` and x what keeps the ones."""
    xp = namespace(base, step)
    values, vectors = xp.linalg.eigh(base)
    logs = xp.log(values)
    push = partial(differential, vectors, sinhc_quotient(logs))
    moved = push(step)
    slopes = _slopes(logs, vectors, xp.zeros_like(logs))
    bend = xp.linalg.solve(slopes, xp.linalg.diagonal(moved)[..., None])[..., 0]
    velocity = moved - push(_diagonal_matrix(bend))
    return velocity * (1 - eye(base.shape[-1], velocity))


def _smooth_exp_differential(base: Array, step: Array) -> Array:
    start = matrix_form("log", base)
    return _keep_diagonal(start, matrix_form("exp", start, step))


def _keep_diagonal(start: Array, moved: Array) -> Array:
    """`moved` less the Dexp(A)[diag b] that has the same diagonal."""
    xp = namespace(start, moved)
    bend = xp.linalg.solve(_smooth_slopes(start), xp.linalg.diagonal(moved)[..., None])[..., 0]
    velocity = moved - matrix_form("exp", start, _diagonal_matrix(bend))
    return velocity * (1 - eye(start.shape[-1], velocity))


def _smooth_slopes(matrix: Array) -> Array:
    """H_ij = (Dexp(A)[eⱼeⱼᵀ])_ii."""
    xp = namespace(matrix)
    k = matrix.shape[-1]
    units = like(np.einsum("ij,jl->jil", np.eye(k), np.eye(k)), matrix)
    pushed = matrix_form("exp", matrix[..., None, :, :], xp.broadcast_to(units, (*matrix.shape[:-2], k, k, k)))
    return xp.linalg.diagonal(pushed)


def _smooth_exponential(hollow: Array) -> Array:
    """exp(S + diag x) by two of Newton's steps for x from its value: right in S to the third order."""
    xp = namespace(hollow)
    x = _find_diagonal(frozen(hollow))
    for _ in range(2):
        matrix = hollow + _diagonal_matrix(x)
        surplus = xp.linalg.diagonal(matrix_form("exp", matrix)) - 1
        x = x - xp.linalg.solve(_smooth_slopes(matrix), surplus[..., None])[..., 0]
    return matrix_form("exp", hollow + _diagonal_matrix(x))


def _diagonal_matrix(diagonal: Array) -> Array:
    return diagonal[..., None, :] * eye(diagonal.shape[-1], diagonal)
