"""What several manifolds need to be written down.

Smooth functions of squared lengths, for derivatives, are a power series near 0 and the closed form elsewhere. Both
sides of every choice are finite with all their derivatives, which automatic differentiation needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifolds._arrays import Array, log_sinc, namespace, sinc
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import as_generator

if TYPE_CHECKING:
    from dpmanifolds.manifolds.base import Manifold


def number_rules(finite: Array, fulfilled: Array) -> Array:
    """1 where numbers are not finite, else 2 where the second rule is not fulfilled, else 0."""
    xp = namespace(finite)
    whole = xp.asarray(0).dtype
    return xp.astype(~finite, whole) + 2 * xp.astype(finite & ~fulfilled, whole)


def normal_array(rng: Any, size: tuple[int, ...] | int, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normal numbers of shape (*size, *shape)."""
    leading = (size,) if isinstance(size, int) else tuple(size)
    return as_generator(rng).standard_normal((*leading, *shape))


def great_circle(base: Array, vector: Array, length: Array) -> Array:
    """cos(length)·base + sin(length)·vector/|vector| on a unit sphere, for |vector| = length."""
    xp = namespace(base, vector)
    length = length[..., None]
    return xp.cos(length) * base + sinc(length) * vector


def default_tolerance(point: Array, tolerance: float | None) -> float:
    """The relative slack of `belongs`: 1e-6 in float64, 1e-3 in float32, unless told otherwise."""
    if tolerance is not None:
        return tolerance
    xp = namespace(point)
    return 1e-3 if point.dtype in (xp.float32, xp.complex64) else 1e-6


def frame_products(arrays: Array, frame: Array) -> Array:
    """Euclidean inner products (..., d) of arrays (..., *point) with the d vectors of a frame (d, *point)."""
    xp = namespace(arrays, frame)
    flat = xp.reshape(frame, (frame.shape[0], -1))
    rows = xp.reshape(arrays, (*arrays.shape[: arrays.ndim - frame.ndim + 1], flat.shape[1]))
    if xp.isdtype(flat.dtype, "complex floating"):
        return xp.real(rows @ xp.conj(xp.matrix_transpose(flat)))
    return rows @ xp.matrix_transpose(flat)


def check_gradient(manifold: Manifold, gradient: Any) -> None:
    """An error for what has another shape than points."""
    shape, expected = tuple(getattr(gradient, "shape", ())), manifold.point_shape
    if shape[len(shape) - len(expected) :] != expected:
        raise ArgumentError(
            f"a Euclidean gradient on {manifold!r} has shape (..., {', '.join(map(str, expected))}); got {shape}."
        )


@dataclass(frozen=True)
class RootSystem:
    """The roots of a space of compact type, a(θ_i ± θ_j) m-fold and aθ_i l-fold, and its cut locus θ_1 = limit.

    The angles θ of a tangent vector at the identity are its singular values, each `angle_copies` times.
    """

    rank: int
    scale: float
    pair_multiplicity: int
    single_multiplicity: int
    limit: float
    angle_copies: int

    @property
    def polar_roots(self) -> tuple[tuple[int, float], ...] | None:
        """Rank one is isotropic."""
        return ((self.count, self.scale),) if self.rank == 1 else None

    @property
    def count(self) -> int:
        """The number of positive roots with multiplicity: dimension − rank."""
        return self.rank * ((self.rank - 1) * self.pair_multiplicity + self.single_multiplicity)

    @property
    def frequency(self) -> float:
        """κ with mean of y² over the roots = κ²R²: Σ (θ_i−θ_j)² + (θ_i+θ_j)² = 2(rank−1)R² and Σ θ_i² = R²."""
        total = 2 * (self.rank - 1) * self.pair_multiplicity + self.single_multiplicity
        # a circle has no roots
        return self.scale * math.sqrt(total / self.count) if self.count else self.scale

    @property
    def reach(self) -> float:
        """The largest distance between two points."""
        return self.limit * math.sqrt(self.rank)

    def log_jacobian(self, angles: np.ndarray) -> np.ndarray:
        """log J at angles (n, rank)."""
        rows, columns = np.triu_indices(self.rank, 1)
        sums, gaps = angles[:, rows] + angles[:, columns], angles[:, rows] - angles[:, columns]
        pairs = np.sum(log_sinc(self.scale * sums) + log_sinc(self.scale * gaps), axis=1)
        singles = np.sum(log_sinc(self.scale * angles), axis=1)
        return np.asarray(self.pair_multiplicity * pairs + self.single_multiplicity * singles)


_TERMS = 12
_DIRECTIONS = 200


def _polynomial(x: Array, coefficients: list[float]) -> Array:
    total = namespace(x).full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _series_or(s: Array, coefficients: list[float], far: Callable[[Array], Array], below: float) -> Array:
    xp = namespace(s)
    near = s < below
    series = _polynomial(xp.where(near, s, xp.zeros_like(s)), coefficients)
    return xp.where(near, series, far(xp.where(near, xp.ones_like(s), s)))


def cos_root(s: Array) -> Array:
    """cos √s."""
    xp = namespace(s)
    return _series_or(s, [(-1) ** j / math.factorial(2 * j) for j in range(_TERMS)], lambda t: xp.cos(xp.sqrt(t)), 1.0)


def sinc_root(s: Array) -> Array:
    """sin √s / √s."""
    xp = namespace(s)
    coefficients = [(-1) ** j / math.factorial(2 * j + 1) for j in range(_TERMS)]
    return _series_or(s, coefficients, lambda t: xp.sin(xp.sqrt(t)) / xp.sqrt(t), 1.0)


def cosh_root(s: Array) -> Array:
    """cosh √s."""
    xp = namespace(s)
    return _series_or(s, [1 / math.factorial(2 * j) for j in range(_TERMS)], lambda t: xp.cosh(xp.sqrt(t)), 1.0)


def sinhc_root(s: Array) -> Array:
    """sinh √s / √s."""
    xp = namespace(s)
    coefficients = [1 / math.factorial(2 * j + 1) for j in range(_TERMS)]
    return _series_or(s, coefficients, lambda t: xp.sinh(xp.sqrt(t)) / xp.sqrt(t), 1.0)


def arsinh_ratio(s: Array) -> Array:
    """arsinh √s / √s."""
    xp = namespace(s)
    coefficients = [(-1) ** j * math.comb(2 * j, j) / 4**j / (2 * j + 1) for j in range(_TERMS)]
    return _series_or(s, coefficients, lambda t: xp.asinh(xp.sqrt(t)) / xp.sqrt(t), 0.05)


def arc_ratio(s: Array, c: Array) -> Array:
    """atan2(√s, c)/√s: the angle over its sine, from the sine's square and the cosine; smooth at s = 0 where c > 0."""
    xp = namespace(s, c)
    near = (c > 0) & (s < 0.05 * c * c)
    one = xp.ones_like(s)
    cosine = xp.where(near, c, one)
    tangent = xp.where(near, s, xp.zeros_like(s)) / (cosine * cosine)
    series = _polynomial(tangent, [(-1) ** j / (2 * j + 1) for j in range(_TERMS)]) / cosine
    sine = xp.sqrt(xp.where(near | (s == 0), one, s))
    return xp.where(near, series, xp.atan2(sine, c) / sine)


def capped_exp(value: float) -> float:
    """e^value, infinite where that is no float."""
    return math.exp(value) if value < 700 else math.inf


def step_around(manifold: Manifold, point: Array, distance: float) -> Array:
    """Points (200, ...) at this distance of each point, in fixed directions that are spread evenly: NumPy.

    NaN where floating point does not reach so far.
    """
    batch = np.shape(point)[: np.ndim(point) - len(manifold.point_shape)]
    steps = np.random.default_rng(0).standard_normal((_DIRECTIONS, *batch, manifold.dim))
    try:
        with np.errstate(all="ignore"):
            return manifold.exp_coordinates(point, distance * steps / np.linalg.norm(steps, axis=-1, keepdims=True))
    except np.linalg.LinAlgError:
        return np.full((_DIRECTIONS, *np.shape(point)), math.nan)
