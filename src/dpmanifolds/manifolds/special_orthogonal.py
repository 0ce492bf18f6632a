"""Rotations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import device as device_of

from dpmanifolds._arrays import (
    Array,
    astype_complex,
    contract,
    eye,
    gather,
    like,
    log_sinc,
    namespace,
    norm,
    root,
    sym,
    transpose,
    x_cot_x,
)
from dpmanifolds._validate import positive_integer
from dpmanifolds._words import tell_degrees
from dpmanifolds.manifolds._common import RootSystem, normal_array
from dpmanifolds.manifolds._derivatives import differentiated_by, frozen, matrix_exponential
from dpmanifolds.manifolds._orthonormal import (
    exp_skew,
    from_traceless_triangle,
    log_rotation,
    orthonormal_belongs,
    orthonormalize,
    rotation_angles,
    smooth_polar_factor,
    square_root,
    traceless_triangle,
)
from dpmanifolds.manifolds._symmetric import matrix_form
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.linearization import HessianBlock, Linearization, first_order, no_center, spread_weights


class SpecialOrthogonal(Manifold):
    """SO(n): rotation matrices (..., n, n), tangent vectors RΩ with Ω skew, ⟨u,v⟩ = ½tr(uᵀv).

    On SO(3) the distance is the angle of the rotation. Curvature in [0, ½] (¼ for n = 3, flat for n = 2),
    injectivity radius π. exp_R(RΩ) = R exp(Ω); parallel transport to Q is RΩ ↦ Q SᵀΩS, S = (RᵀQ)^½.

    >>> import numpy as np
    >>> from dpmanifolds import SpecialOrthogonal
    >>> c, s = np.cos(2.0), np.sin(2.0)
    >>> turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    >>> round(float(SpecialOrthogonal(3).dist(np.eye(3), turn)), 9)
    2.0
    """

    injectivity_radius = math.pi
    typed = "rotations:3"
    picture = "matrix"

    def __init__(self, n: int) -> None:
        self.n = positive_integer("n", n, at_least=2)
        self.dim = self.n * (self.n - 1) // 2
        self.point_shape = (self.n, self.n)
        self.is_model_space = self.dim == 1
        self.root_system = RootSystem(self.n // 2, 0.5, 2, 2 * (self.n % 2), math.pi, angle_copies=2)
        self.polar_roots = self.root_system.polar_roots
        self.ambient_dim = self.n * self.n if self.n > 2 else 2
        self.ambient_radius = math.sqrt(self.n)
        if self.n == 3:
            self.projector_shape, self.ambient_radius = (1, 4), math.sqrt(0.75)
        self.curvature_bounds = {2: (0.0, 0.0), 3: (0.25, 0.25)}.get(self.n, (0.0, 0.5))

    @property
    def average_curvature(self) -> float:
        """Ricci is (n − 2)/2 times the metric."""
        return (self.n - 2) / (2 * (self.dim - 1)) if self.dim > 1 else 0.0

    @property
    def words(self) -> str:
        return f"rotations in {self.n} dimensions"

    def describe_distance(self, point: Array, distance: float) -> str:
        return tell_degrees(distance) if self.n <= 3 else ""

    @property
    def natural_center(self) -> Array:
        return np.eye(self.n)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.n,)

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        return base @ exp_skew(_skew(transpose(base) @ vector))

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        return base @ matrix_exponential(_skew(transpose(base) @ vector))

    @differentiated_by("_smooth_log")
    def log(self, base: Array, point: Array) -> Array:
        return base @ log_rotation(transpose(base) @ point)

    def _smooth_log(self, base: Array, point: Array) -> Array:
        return base @ _smooth_log_rotation(transpose(base) @ point)

    @differentiated_by("_smooth_dist")
    def dist(self, a: Array, b: Array) -> Array:
        return norm(rotation_angles(transpose(a) @ b)) / math.sqrt(2)

    def _smooth_dist(self, a: Array, b: Array) -> Array:
        skew = _smooth_log_rotation(transpose(a) @ b)
        return root(contract(skew, skew) / 2)

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return contract(u, v) / 2

    @differentiated_by("_smooth_transport")
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        half = square_root(transpose(base) @ to)
        return to @ _skew(transpose(half) @ transpose(base) @ vector @ half)

    def _smooth_transport(self, base: Array, to: Array, vector: Array) -> Array:
        half = matrix_exponential(_smooth_log_rotation(transpose(base) @ to) / 2)
        return to @ _skew(transpose(half) @ transpose(base) @ vector @ half)

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        inner = _skew(transpose(base) @ vector)
        rows, columns = np.triu_indices(self.n, 1)
        flat = xp.reshape(inner, (*inner.shape[:-2], self.n * self.n))
        return gather(flat, rows * self.n + columns)

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(base, coordinates)
        rows, columns = np.triu_indices(self.n, 1)
        source = np.zeros((self.n, self.n), dtype=np.int64)
        sign = np.zeros((self.n, self.n))
        source[rows, columns] = source[columns, rows] = np.arange(self.dim)
        sign[rows, columns], sign[columns, rows] = 1.0, -1.0
        flat = gather(coordinates, source.ravel()) * like(sign.ravel(), coordinates)
        return base @ xp.reshape(flat, (*coordinates.shape[:-1], self.n, self.n))

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        """Twice the sum of log[sin(α/2)/(α/2)] over the positive roots α = θᵢ±θⱼ (and θᵢ for odd n)."""
        xp = namespace(base, vector)
        planes = self.n // 2
        angles = xp.linalg.svdvals(_skew(transpose(base) @ vector))[..., : 2 * planes : 2]
        total = (2 if self.n % 2 else 0) * xp.sum(log_sinc(angles / 2), axis=-1)
        for i in range(planes):
            this, rest = angles[..., i : i + 1], angles[..., i + 1 :]
            total = total + 2 * xp.sum(log_sinc((this - rest) / 2) + log_sinc((this + rest) / 2), axis=-1)
        return total

    def project_tangent(self, base: Array, vector: Array) -> Array:
        return base @ _skew(transpose(base) @ vector)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return (u @ transpose(base) @ v + v @ transpose(base) @ u) / 2

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        xp = namespace(point)
        return orthonormal_belongs(point, tolerance) & (xp.linalg.det(point) > 0)

    @differentiated_by("_smooth_project")
    def project(self, point: Array) -> Array:
        """The nearest rotation."""
        xp = namespace(point)
        nearest = orthonormalize(point)
        return xp.where((xp.linalg.det(nearest) < 0)[..., None, None], self._mirrored(point), nearest)

    def _mirrored(self, point: Array) -> Array:
        """The nearest rotation to a matrix of negative determinant."""
        left, _, right = namespace(point).linalg.svd(point)
        sign = np.ones(self.n)
        sign[-1] = -1.0
        return (left * like(sign, point)) @ right

    def _smooth_project(self, point: Array) -> Array:
        xp = namespace(point)
        negative = (xp.linalg.det(frozen(point)) < 0)[..., None, None]
        other = like(np.diag(np.arange(1.0, self.n + 1)), point)
        nearest = smooth_polar_factor(xp.where(negative, other, point))
        return xp.where(negative, self._mirrored(xp.where(negative, point, other)), nearest)

    def embed(self, points: Array) -> Array:
        """The entries of the matrix; of one of SO(2), √2 times its first column.

        On SO(3) the projector qqᵀ of the quaternion q, less its trace: a linear function of R with ‖R − S‖ =
        2‖qqᵀ − ssᵀ‖, so that the mean is the same.
        """
        xp = namespace(points)
        if self.n == 3:
            return traceless_triangle(_quaternion_square(points))
        if self.n == 2:
            return math.sqrt(2.0) * points[..., :, 0]
        return xp.reshape(points, (*points.shape[:-2], self.n * self.n))

    def projector_frame(self, points: Array) -> Array:
        """On SO(3) the quaternion: the column of qqᵀ with the largest entry on the diagonal, over the root of that."""
        xp = namespace(points)
        square = _quaternion_square(points)
        diagonal = xp.linalg.diagonal(square)
        largest = xp.max(diagonal, axis=-1, keepdims=True)
        first = xp.argmax(diagonal, axis=-1)[..., None] == xp.asarray(np.arange(4), device=device_of(square))
        column = xp.sum(xp.where(first[..., None, :], square, xp.zeros_like(square)), axis=-1)
        return (column / xp.sqrt(largest))[..., None]

    def unembed(self, coordinates: Array) -> Array:
        """The nearest rotation; the identity where the matrix is 0, a fixed one on SO(3)."""
        xp = namespace(coordinates)
        if self.n == 3:
            return _rotation_of(xp.linalg.eigh(from_traceless_triangle(coordinates, 4))[1][..., :, -1])
        if self.n == 2:
            x, y = coordinates[..., 0], coordinates[..., 1]
            coordinates = xp.stack([x, -y, y, x], axis=-1)
        matrix = xp.reshape(coordinates, (*coordinates.shape[:-1], self.n, self.n))
        nowhere = xp.all(coordinates == 0, axis=-1)[..., None, None]
        return self.project(xp.where(nowhere, xp.zeros_like(matrix) + eye(self.n, matrix), matrix))

    def chord(self, radius: float) -> float:
        """√8m·sin(r/2√m), m = ⌊n/2⌋ angles: ‖R − S‖² = 8Σ sin²(θ/2), and sin²√u is concave, as for subspaces.

        Half of it on SO(3).
        """
        angles = self.n // 2
        return math.sqrt(2 if self.n == 3 else 8 * angles) * math.sin(min(radius / math.sqrt(angles), math.pi) / 2)

    def linearize(self, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
        """Hess Ω = U (g((θ_a−θ_b)/2) ∘ U*ΩU) U* with the log's eigenvectors U and eigenvalues iθ."""
        xp = namespace(base, points)
        coordinates, result = first_order(self, base, points, weights, points.shape[-2])
        if not hessian:
            return result
        skew = transpose(base) @ self.from_coordinates(base, coordinates)
        angles, vectors = xp.linalg.eigh(-0.5j * astype_complex(skew - transpose(skew)))
        factor = x_cot_x((angles[..., :, None] - angles[..., None, :]) / 2)
        factor = astype_complex(spread_weights(weights, factor.ndim) * factor)
        adjoint = xp.conj(transpose(vectors))

        def operator(vector: Array) -> Array:
            direction = astype_complex(transpose(base) @ self.from_coordinates(base, vector))
            turned = vectors @ (factor * (adjoint @ direction @ vectors)) @ adjoint
            return self.to_coordinates(base, base @ xp.real(xp.sum(turned, axis=0)))

        result.blocks = [HessianBlock(operator, 2 * 16 * math.prod(points.shape))]
        return result

    def point_of_moment(self, moment: Array) -> Array:
        xp = namespace(moment)
        if bool(xp.any(xp.linalg.svdvals(moment)[..., -1] < 1e-8)):
            raise no_center()
        return self.project(moment)

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        return 16 * self.n * (1 + 2 * radius)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        draw = normal_array(rng, size, self.point_shape)
        orthogonal, triangle = np.linalg.qr(draw)
        signs = np.sign(np.diagonal(triangle, axis1=-2, axis2=-1))
        orthogonal = orthogonal * signs[..., None, :]
        mirror = np.ones((*orthogonal.shape[:-2], self.n))
        mirror[..., 0] = np.sign(np.linalg.det(orthogonal))
        return orthogonal * mirror[..., None, :]


def _smooth_log_rotation(rotation: Array) -> Array:
    """K·h(C) for the skew and symmetric parts K = sin Θ, C = cos Θ, with h(cos θ) = θ/sin θ."""
    return _skew(_skew(rotation) @ matrix_form("arc", sym(rotation)))


def _quaternion_square(rotation: Array) -> Array:
    """qqᵀ of the quaternion q = (cos θ/2, sin θ/2·axis) of a rotation in space: linear in its entries."""
    xp = namespace(rotation)
    r = [[rotation[..., i, j] for j in range(3)] for i in range(3)]
    one = xp.ones_like(r[0][0])
    rows = [
        [one + r[0][0] + r[1][1] + r[2][2], r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]],
        [r[2][1] - r[1][2], one + r[0][0] - r[1][1] - r[2][2], r[0][1] + r[1][0], r[0][2] + r[2][0]],
        [r[0][2] - r[2][0], r[0][1] + r[1][0], one - r[0][0] + r[1][1] - r[2][2], r[1][2] + r[2][1]],
        [r[1][0] - r[0][1], r[0][2] + r[2][0], r[1][2] + r[2][1], one - r[0][0] - r[1][1] + r[2][2]],
    ]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2) / 4


def _rotation_of(quaternion: Array) -> Array:
    """The rotation of a unit quaternion."""
    xp = namespace(quaternion)
    w, x, y, z = (quaternion[..., i] for i in range(4))
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def _skew(matrix: Array) -> Array:
    return (matrix - transpose(matrix)) / 2
