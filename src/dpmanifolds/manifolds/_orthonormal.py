"""Orthonormal frames and rotations: bases, and exponentials and logarithms that keep their digits.

And reflections that turn the orthogonal complement of a vector into coordinates, and projectors as vectors: symmetric
or Hermitian matrices without their trace.

>>> traceless_triangle(np.array([[0.5, 0.5], [0.5, 0.5]])).round(6).tolist()
[0.0, 0.707107]
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from dpmanifolds._arrays import (
    Array,
    astype_complex,
    eps,
    eye,
    gather,
    holds_complex,
    is_numpy,
    like,
    namespace,
    norm,
    safe_divide,
    transpose,
)
from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds._common import default_tolerance, normal_array
from dpmanifolds.manifolds._derivatives import call_smoothly
from dpmanifolds.manifolds._symmetric import from_upper_triangle, matrix_form
from dpmanifolds.manifolds.base import Manifold

FEW_COLUMNS = 16
"""Records of no more numbers are worked on in columns, longer ones in rows."""


def blocks(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The matrix with these four parts."""
    xp = namespace(a, b, c, d)
    return xp.concat([xp.concat([a, b], axis=-1), xp.concat([c, d], axis=-1)], axis=-2)


def complete_basis(frame: Array) -> Array:
    """An orthonormal basis (..., n, n−p) of the complement of an orthonormal frame (..., n, p)."""
    xp = namespace(frame)
    return xp.linalg.qr(frame, mode="complete")[0][..., frame.shape[-1] :]


def orthonormalize(matrix: Array) -> Array:
    """The nearest matrix with orthonormal columns (the polar factor)."""
    return call_smoothly(_polar_factor, smooth_polar_factor, (2,), matrix)


def _polar_factor(matrix: Array) -> Array:
    xp = namespace(matrix)
    left, _, right = xp.linalg.svd(matrix, full_matrices=False)
    return left @ right


def smooth_polar_factor(matrix: Array) -> Array:
    """The same as M(MᵀM)^−½, for derivatives."""
    return matrix @ matrix_form("exp", -matrix_form("log", transpose(matrix) @ matrix) / 2)


def orthonormal_belongs(point: Array, tolerance: float | None) -> Array:
    """Whether the columns are orthonormal up to rounding."""
    xp = namespace(point)
    gap = transpose(point) @ point - eye(point.shape[-1], point)
    return xp.max(xp.abs(gap), axis=(-2, -1)) <= default_tolerance(point, tolerance)


def exp_skew(matrix: Array) -> Array:
    """The rotation exp(A) of a skew matrix, by the eigenvectors of the Hermitian matrix iA."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(1j * astype_complex(matrix))
    phases = xp.exp(-1j * astype_complex(values))
    return xp.real((vectors * phases[..., None, :]) @ xp.conj(transpose(vectors)))


def square_root(rotation: Array) -> Array:
    """The rotation by half the angles: the polar factor of I + R = R^½ · 2cos(Θ/2).

    Where an angle is π (I + R loses rank) a quarter turn in a fixed plane of that eigenspace is taken: one of the
    shortest ways, chosen by a rule.
    """
    xp = namespace(rotation)
    n = rotation.shape[-1]
    left, values, right = xp.linalg.svd(rotation + eye(n, rotation))
    # null vectors come last, in pairs (an even number of angles π): turn each pair into itself
    partner = np.arange(n)
    sign = np.ones(n)
    for last in range(n - 1, 0, -2):
        partner[last], partner[last - 1] = last - 1, last
        sign[last] = -1.0
    quarter_turn = gather(transpose(right), partner) * like(sign, rotation)
    larger_of_pair = xp.maximum(values, gather(values, partner))
    lost = (larger_of_pair <= 64 * n * eps(rotation))[..., None, :]
    half = xp.where(lost, quarter_turn, left) @ right
    # the polar factor has error eps/cos(θ/2); one step of H ← polar(H + H⁻¹R) removes it
    return orthonormalize(half + transpose(half) @ rotation)


def log_rotation(rotation: Array) -> Array:
    """The skew matrix of smallest norm with exp(A) = R.

    A = 2 log √R, and the Cayley transform of √R has eigenvalues i·tan(θ/4) of modulus at most 1.
    """
    xp = namespace(rotation)
    half = square_root(rotation)
    identity = eye(rotation.shape[-1], rotation)
    cayley = transpose(xp.linalg.solve(transpose(half + identity), transpose(half - identity)))
    hermitian = -0.5j * astype_complex(cayley - transpose(cayley))
    values, vectors = xp.linalg.eigh(hermitian)
    angles = 4 * xp.atan(values)
    result = xp.real((vectors * (1j * astype_complex(angles))[..., None, :]) @ xp.conj(transpose(vectors)))
    return (result - transpose(result)) / 2


def rotation_angles(rotation: Array) -> Array:
    """The n angles of the eigenvalues of R, in descending order of size, each plane counted twice."""
    xp = namespace(rotation)
    identity = eye(rotation.shape[-1], rotation)
    sines = xp.linalg.svdvals(rotation - identity)
    cosines = xp.flip(xp.linalg.svdvals(rotation + identity), axis=-1)
    return 2 * xp.atan2(sines, cosines)


def _reflector(x: Array) -> Array:
    """w of unit norm with (I − 2ww*)x = −phase·|x|·e₀; real or complex x."""
    if is_numpy(x) and x.ndim == 1 and x.dtype == np.float64:
        return _reflector_of_one(x)
    xp = namespace(x)
    unit = x / xp.astype(norm(x), x.dtype)[..., None]
    first = unit[..., 0]
    size = xp.astype(xp.abs(first), x.dtype)
    phase = safe_divide(first, size, 1.0)
    w = xp.concat([(first + phase)[..., None], unit[..., 1:]], axis=-1)
    # |w|² = 2 + 2|first|, at least 2: no cancellation
    return w / xp.sqrt(2 + 2 * size)[..., None]


def _reflector_of_one(x: np.ndarray) -> np.ndarray:
    """The same bits, for one real vector of NumPy."""
    w = x / np.sqrt(np.vecdot(x, x))
    size = abs(w[0])
    w[0] += -1.0 if w[0] < 0 else 1.0
    return np.asarray(w / np.sqrt(2 + 2 * size))


def _reflect(w: Array, v: Array) -> Array:
    xp = namespace(w, v)
    return v - 2 * w * xp.sum(xp.conj(w) * v if holds_complex(w) else w * v, axis=-1, keepdims=True)


def complement_to_coordinates(x: Array, v: Array) -> Array:
    """Coordinates (..., N−1) of a vector v orthogonal to x in (..., N): an isometry."""
    return _reflect(_reflector(x), v)[..., 1:]


def coordinates_to_complement(x: Array, c: Array) -> Array:
    """The vector orthogonal to x with coordinates c."""
    xp = namespace(x, c)
    w = _reflector(x)
    if w.ndim > 1:
        c = xp.broadcast_to(c, (*xp.broadcast_arrays(w[..., 0], c[..., 0])[0].shape, c.shape[-1]))
    padded = xp.concat([xp.zeros_like(c[..., :1]), c], axis=-1)
    return _reflect(w, padded)


def reflect_to_axis(x: Array, v: Array) -> tuple[Array, Array]:
    """v after the reflection that makes complements of x coordinates: its part along x, and these coordinates.

    The part along x has the sign (phase) at which that of x itself is |x|. Coordinates come along the first axis, so
    that records are worked on side by side.
    """
    xp = namespace(x, v)
    columns = xp.moveaxis(v, -1, 0) if v.ndim > 1 else v
    normal = _column(_reflector(x), v.ndim)
    conjugate = xp.conj(normal) if holds_complex(normal) else normal
    turned = columns - (2 * normal) * xp.sum(conjugate * columns, axis=0)
    first = _column(x, v.ndim)[0, ...]
    if holds_complex(x):
        phase = xp.conj(safe_divide(first, xp.astype(xp.abs(first), x.dtype), 1.0))
    else:
        phase = xp.where(first < 0, -xp.ones_like(first), xp.ones_like(first))
    return -phase * turned[0, ...], turned[1:, ...]


def reflect_rows(x: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`reflect_to_axis` of real NumPy rows (n, N): parts along x, coordinates (n, N−1), and squares of their lengths.

    In columns, by element-wise functions, up to `FEW_COLUMNS` numbers; row by row from there on. Of x on the first axis
    coordinates are those of the rows: a view.
    """
    normal, phase, on_axis = _real_reflector(x.tobytes())
    if on_axis:
        along, across = rows[:, 0] * phase, rows[:, 1:]
    elif rows.shape[1] > FEW_COLUMNS:
        turned = np.einsum("i,j->ij", np.einsum("ij,j->i", rows, 2 * normal), normal)
        np.subtract(rows, turned, out=turned)
        along, across = -phase * turned[:, 0], turned[:, 1:]
    else:
        twice = rows[:, 0] * (2 * normal[0])
        held = np.empty_like(twice)
        for column, number in zip(rows.T[1:], normal[1:], strict=True):
            twice += np.multiply(column, 2 * number, out=held)
        turned = np.empty(rows.shape, order="F")
        for column, number, place in zip(rows.T, normal, turned.T, strict=True):
            np.subtract(column, np.multiply(twice, number, out=place), out=place)
        along, across = np.multiply(turned[:, 0], -phase, out=held), turned[:, 1:]
    if rows.shape[1] > FEW_COLUMNS:
        return along, across, np.einsum("ij,ij->i", across, across)
    squared = across[:, 0] * across[:, 0]
    for column in across.T[1:]:
        squared += column * column
    return along, across, squared


@lru_cache(maxsize=64)
def _real_reflector(numbers: bytes) -> tuple[np.ndarray, float, bool]:
    x = np.frombuffer(numbers)
    return _reflector(x), -1.0 if x[0] < 0 else 1.0, not np.any(x[1:])


def _column(x: Array, ndim: int) -> Array:
    """x (..., N) as (N, …), to be broadcast with columns of vectors that have `ndim` axes."""
    if x.ndim == ndim == 1:
        return x
    xp = namespace(x)
    axes = (x.shape[-1], *(1,) * (ndim - x.ndim), *x.shape[:-1])
    return xp.reshape(xp.moveaxis(x, -1, 0), axes)


def traceless_triangle(matrix: Array) -> Array:
    """Orthonormal coordinates of a symmetric or Hermitian matrix less its trace: k(k+1)/2 − 1, or k² − 1 of them.

    Those of the diagonal across (1, …, 1), then √2 times what is above it: real parts, and imaginary ones if there are.
    """
    xp = namespace(matrix)
    k = matrix.shape[-1]
    rows, columns = np.triu_indices(k, 1)
    flat = xp.reshape(matrix, (*matrix.shape[:-2], k * k))
    diagonal, above = gather(flat, np.arange(k) * (k + 1)), math.sqrt(2.0) * gather(flat, rows * k + columns)
    if not xp.isdtype(matrix.dtype, "complex floating"):
        return xp.concat([across_ones(diagonal), above], axis=-1)
    return xp.concat([across_ones(xp.real(diagonal)), xp.real(above), xp.imag(above)], axis=-1)


def across_ones(diagonal: Array) -> Array:
    """Coordinates (..., k − 1) of a vector across (1, …, 1)."""
    xp = namespace(diagonal)
    middle = xp.mean(diagonal, axis=-1, keepdims=True)
    return complement_to_coordinates(xp.ones_like(diagonal), diagonal - middle)


def from_traceless_triangle(coordinates: Array, k: int) -> Array:
    """The symmetric k×k matrix of trace 0 with these coordinates; Hermitian for k² − 1 of them."""
    xp = namespace(coordinates)
    diagonal = coordinates_to_complement(like(np.ones(k), coordinates), coordinates[..., : k - 1])
    pairs = k * (k - 1) // 2
    above = coordinates[..., k - 1 : k - 1 + pairs]
    real = from_upper_triangle(xp.concat([diagonal, above], axis=-1), k)
    if coordinates.shape[-1] == k - 1 + pairs:
        return real
    imaginary = from_upper_triangle(xp.concat([0 * diagonal, coordinates[..., k - 1 + pairs :]], axis=-1), k)
    signs = like(np.triu(np.ones((k, k)), 1) - np.tril(np.ones((k, k)), -1), coordinates)
    return astype_complex(real) + 1j * astype_complex(signs * imaginary)


class OrthonormalFrames(Manifold):
    """What manifolds share whose points are orthonormal columns (..., n, p), 1 ≤ p < n."""

    _instead = ""
    """What to take where p = n."""

    def __init__(self, n: int, p: int) -> None:
        self.n = positive_integer("n", n, at_least=2)
        self.p = positive_integer("p", p)
        if self.p >= self.n:
            name = type(self).__name__
            raise ArgumentError(f"{name}(n, p) needs 1 ≤ p < n; got n={self.n}, p={self.p}.{self._instead}")
        self.point_shape = (self.n, self.p)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.n, self.p)

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        return orthonormal_belongs(point, tolerance)

    def project(self, point: Array) -> Array:
        return orthonormalize(point)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        return self.project(normal_array(rng, size, self.point_shape))
