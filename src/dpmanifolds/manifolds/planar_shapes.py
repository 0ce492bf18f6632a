"""Kendall's space of planar landmark shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds._arrays import (
    Array,
    astype_complex,
    dot,
    is_numpy,
    is_traced,
    like,
    log_sinc,
    namespace,
    norm,
    row_norm,
    safe_divide,
    to_numpy,
    transpose,
    x_cot_x,
)
from dpmanifolds._validate import each_record, fill_masked, has_one_type, numeric_array, positive_integer
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds._common import arc_ratio, cos_root, default_tolerance, great_circle, normal_array, sinc_root
from dpmanifolds.manifolds._derivatives import differentiated_by
from dpmanifolds.manifolds._orthonormal import (
    complement_to_coordinates,
    coordinates_to_complement,
    from_traceless_triangle,
    reflect_to_axis,
    traceless_triangle,
)
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.linearization import Linearization, around_direction, first_order, outer_sum, spread_weights


class PlanarShapes(Manifold):
    """Shapes of k landmarks in the plane: what is left after removing position, size and rotation.

    A point is a complex vector (..., k), centred and of unit norm, up to a common phase; the space is CP^(k−2) as a
    quotient of the unit sphere: ρ(x,y) = arccos|x*y|, curvature in [1, 4] (4 for triangles), injectivity radius
    π/2. Tangent vectors satisfy Σv = 0 and x*v = 0 (complex). With ỹ = y·conj(x*y)/|x*y|:
    log_x y = (θ/sin θ)(ỹ − cos θ x). Landmarks as real (..., k, 2) become points through `from_landmarks`.

    >>> import numpy as np
    >>> from dpmanifolds import PlanarShapes
    >>> space = PlanarShapes(3)
    >>> triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])
    >>> a = space.from_landmarks(triangle)
    >>> b = space.from_landmarks(5.0 + 2.0 * triangle[:, ::-1] * [-1.0, 1.0])
    >>> bool(space.dist(a, b) < 1e-12)
    True
    """

    is_complex = True
    typed = "shapes:12"
    picture = "shape"

    def __init__(self, k: int, dimension: int = 2) -> None:
        if not isinstance(dimension, int | np.integer) or dimension != 2:
            raise ArgumentError(
                f"PlanarShapes holds landmarks in the plane; got dimension={dimension}. Shapes in three dimensions "
                "are not a smooth homogeneous space and carry no proven sensitivity: project to a plane, or use "
                "distances or covariances of the landmarks on another manifold."
            )
        self.k = positive_integer("k", k, at_least=3)
        self.dim = 2 * self.k - 4
        self.point_shape = (self.k,)
        self.curvature_bounds = (4.0, 4.0) if self.k == 3 else (1.0, 4.0)
        self.injectivity_radius = math.pi / 2
        self.is_model_space = self.k == 3
        # CP^m, m = k − 2: (sin s)^{2m−2}·sin(2s)/2
        self.polar_roots = ((self.dim - 2, 1.0), (1, 2.0))
        self.ambient_dim = (self.k - 1) ** 2 - 1
        self.projector_shape = (1, self.k - 1)
        self.ambient_radius = math.sqrt(1 - 1 / (self.k - 1))

    @property
    def average_curvature(self) -> float:
        """One plane in 2k − 5 has curvature 4, the others 1."""
        return 1 + 3 / (self.dim - 1)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.k,)

    @property
    def words(self) -> str:
        return f"planar shapes of {self.k} landmarks"

    def describe_distance(self, point: Array, distance: float) -> str:
        """The chord between aligned shapes of unit size."""
        return f"{200 * math.sin(min(distance, math.pi / 2) / 2):.2g} % of the size (Procrustes distance)"

    def from_landmarks(self, landmarks: Array) -> Array:
        """Centre and scale landmarks, real (..., k, 2) or complex (..., k), to points of this space.

        Landmarks without a shape raise; inside of a transformation of PyTorch or JAX they become NaN.
        """
        landmarks = numeric_array("landmarks", landmarks)
        if is_traced(landmarks):
            return self._shapes_or_nan(self._planar(landmarks))
        xp = namespace(landmarks)
        if not bool(xp.all(xp.isfinite(landmarks))):
            raise NotOnManifoldError("landmarks must be finite numbers; clean or drop the affected records first.")
        planar = self._planar(landmarks)
        centred = planar - xp.mean(planar, axis=-1, keepdims=True)
        size = norm(centred)
        spread = norm(planar) * 16 * float(xp.finfo(size.dtype).eps)
        if not bool(xp.all(xp.isfinite(size))):
            raise NotOnManifoldError("landmarks are too large to be squared; choose a larger unit of length first.")
        if bool(xp.any(size <= spread)):
            raise NotOnManifoldError("landmarks that all coincide have no shape; drop or repair such records first.")
        return centred / xp.astype(size, planar.dtype)[..., None]

    def _planar(self, landmarks: Array) -> Array:
        """Landmarks as complex numbers."""
        xp = namespace(landmarks)
        if xp.isdtype(landmarks.dtype, "complex floating"):
            if landmarks.shape[-1:] != (self.k,):
                raise ArgumentError(f"complex landmarks need shape (..., {self.k}); got {tuple(landmarks.shape)}.")
            return landmarks
        if landmarks.shape[-2:] == (self.k, 3):
            raise ArgumentError(
                f"landmarks of shape {tuple(landmarks.shape)} lie in three dimensions; this space holds planar "
                "ones. Project them to a plane first."
            )
        if landmarks.shape[-2:] != (self.k, 2):
            raise ArgumentError(f"real landmarks need shape (..., {self.k}, 2); got {tuple(landmarks.shape)}.")
        return astype_complex(landmarks[..., 0]) + 1j * astype_complex(landmarks[..., 1])

    @property
    def record_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.point_shape, (self.k, 2))

    def take_form(self, points: Any) -> Array:
        """Complex points as they are; real landmarks centred and scaled, NaN where they have no shape."""
        points = fill_masked(points)
        if not has_one_type(points, of_complex=hasattr(points, "dtype")):
            # each record by itself: a row of complex numbers, or landmarks
            planar = each_record(points, self.point_shape, of_complex=True)
            landmarks = self.take_form(each_record(points, (self.k, 2)))
            return np.where(np.isnan(landmarks), planar, landmarks)
        array = numeric_array("points", points)
        xp = namespace(array)
        if xp.isdtype(array.dtype, "complex floating"):
            return super().as_points(array)
        # in double precision and one layout, whatever the others brought along: sums depend on both
        array = np.ascontiguousarray(array, dtype=np.float64) if is_numpy(array) else xp.astype(array, xp.float64)
        return self._shapes_or_nan(self._planar(array))

    @staticmethod
    def _shapes_or_nan(planar: Array) -> Array:
        xp = namespace(planar)
        with np.errstate(all="ignore"):
            centred = planar - xp.mean(planar, axis=-1, keepdims=True)
            size, spread = row_norm(centred), row_norm(planar) * 16 * float(xp.finfo(planar.dtype).eps)
            usable = xp.isfinite(size) & (size > spread)
            size = xp.where(usable, size, xp.full_like(size, math.nan))
            return centred / xp.astype(size, planar.dtype)[..., None]

    def as_points(self, points: Any, name: str = "points") -> Array:
        """Complex points as they are; real landmarks (..., k, 2) through `from_landmarks`."""
        array = numeric_array(name, points)
        if namespace(array).isdtype(array.dtype, "complex floating"):
            return super().as_points(array, name)
        return self.from_landmarks(array)

    def to_landmarks(self, point: Array) -> Array:
        """Real landmarks (..., k, 2) of a point (or tangent vector)."""
        xp = namespace(point)
        return xp.stack([xp.real(point), xp.imag(point)], axis=-1)

    def align(self, base: Array, point: Array) -> Array:
        """`point` rotated to lie as close to `base` as it can (its phase-aligned representative)."""
        return point * self._phase(base, point)[..., None]

    def _phase(self, base: Array, point: Array) -> Array:
        """e^{iφ} with x*(y e^{iφ}) real and positive."""
        xp = namespace(base, point)
        product = xp.sum(base * xp.conj(point), axis=-1)
        return safe_divide(product, xp.astype(xp.abs(product), product.dtype), 1.0)

    @differentiated_by("_smooth_exp")
    def exp(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        return great_circle(base, vector, xp.astype(norm(vector), base.dtype))

    def _smooth_exp(self, base: Array, vector: Array) -> Array:
        square = dot(vector, vector)[..., None]
        return cos_root(square) * base + sinc_root(square) * vector

    @differentiated_by("_smooth_log")
    def log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        aligned = self.align(base, point)
        chord = aligned - base
        direction = chord - base * xp.sum(xp.conj(base) * chord, axis=-1, keepdims=True)
        size = safe_divide(_angle(base, aligned), norm(direction))
        return direction * xp.astype(size, direction.dtype)[..., None]

    def _smooth_log(self, base: Array, point: Array) -> Array:
        xp = namespace(base, point)
        chord = self.align(base, point) - base
        direction = chord - base * xp.sum(xp.conj(base) * chord, axis=-1, keepdims=True)
        return arc_ratio(dot(direction, direction), 1 + dot(base, chord))[..., None] * direction

    @differentiated_by("_smooth_log_coordinates")
    def log_coordinates(self, base: Array, points: Array) -> Array:
        """As on the sphere: in the frame where the base is the first axis, turned by the phase of y₀."""
        xp = namespace(base, points)
        ones = xp.ones_like(base)
        first, across = reflect_to_axis(complement_to_coordinates(ones, base), complement_to_coordinates(ones, points))
        size = xp.abs(first)
        real, imaginary = xp.real(across), xp.imag(across)
        length = xp.sqrt(xp.sum(real * real + imaginary * imaginary, axis=0))
        phase = safe_divide(xp.conj(first), xp.astype(size, first.dtype), 1.0)
        factor = safe_divide(xp.atan2(length, size), length)
        aligned = across * (phase * xp.astype(factor, phase.dtype))
        return xp.moveaxis(xp.concat([xp.real(aligned), xp.imag(aligned)], axis=0), 0, -1)

    def _smooth_log_coordinates(self, base: Array, points: Array) -> Array:
        return self.to_coordinates(base, self._smooth_log(base, points))

    def dist(self, a: Array, b: Array) -> Array:
        return _angle(a, self.align(a, b))

    def inner(self, base: Array, u: Array, v: Array) -> Array:
        return dot(u, v)

    def norm(self, base: Array, vector: Array) -> Array:
        return norm(vector)

    @differentiated_by("_smooth_transport")
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        xp = namespace(base, to, vector)
        velocity = self.log(base, to)
        length = xp.astype(norm(velocity), vector.dtype)[..., None]
        unit = safe_divide(velocity, length)
        component = xp.sum(xp.conj(unit) * vector, axis=-1, keepdims=True)
        turned = component * (-xp.sin(length) * base + (xp.cos(length) - 1) * unit)
        return (vector + turned) * xp.conj(self._phase(base, to))[..., None]

    def _smooth_transport(self, base: Array, to: Array, vector: Array) -> Array:
        xp = namespace(base, to, vector)
        aligned = self.align(base, to)
        factor = xp.sum(xp.conj(aligned) * vector, axis=-1) / (1 + dot(base, aligned))
        return (vector - factor[..., None] * (base + aligned)) * xp.conj(self._phase(base, to))[..., None]

    def to_coordinates(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        ones = xp.ones_like(base)
        reduced = complement_to_coordinates(
            complement_to_coordinates(ones, base), complement_to_coordinates(ones, vector)
        )
        return xp.concat([xp.real(reduced), xp.imag(reduced)], axis=-1)

    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        xp = namespace(base, coordinates)
        half = self.k - 2
        reduced = astype_complex(coordinates[..., :half]) + 1j * astype_complex(coordinates[..., half:])
        ones = xp.ones_like(base)
        inner = coordinates_to_complement(complement_to_coordinates(ones, base), reduced)
        return coordinates_to_complement(ones, inner)

    def log_volume_density(self, base: Array, vector: Array) -> Array:
        length = norm(vector)
        return (2 * self.k - 6) * log_sinc(length) + log_sinc(2 * length)

    def project_tangent(self, base: Array, vector: Array) -> Array:
        xp = namespace(base, vector)
        centred = vector - xp.mean(vector, axis=-1, keepdims=True)
        return centred - base * xp.sum(xp.conj(base) * centred, axis=-1, keepdims=True)

    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        return -dot(u, v)[..., None] * base

    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        xp = namespace(point)
        if not xp.isdtype(point.dtype, "complex floating"):
            return xp.zeros(point.shape[:-1], dtype=xp.bool)
        slack = default_tolerance(point, tolerance)
        return (xp.abs(row_norm(point) - 1) <= slack) & (xp.abs(xp.sum(point, axis=-1)) <= slack * math.sqrt(self.k))

    def project(self, point: Array) -> Array:
        return self.from_landmarks(point)

    def embed(self, points: Array) -> Array:
        """xx* less its trace, x in the k − 1 dimensions that centred landmarks have: ‖xx* − yy*‖² = 2 sin²ρ."""
        frame = self.projector_frame(points)
        return traceless_triangle(frame * transpose(namespace(points).conj(frame)))

    def projector_frame(self, points: Array) -> Array:
        return complement_to_coordinates(namespace(points).ones_like(points), points)[..., None]

    def unembed(self, coordinates: Array) -> Array:
        """The leading eigenvector: of a mean of embedded shapes, the full Procrustes mean."""
        xp = namespace(coordinates)
        inner = xp.linalg.eigh(from_traceless_triangle(coordinates, self.k - 1))[1][..., :, -1]
        ones = astype_complex(like(np.ones(self.k), coordinates))
        return self.project(coordinates_to_complement(ones, inner))

    def chord(self, radius: float) -> float:
        """√2·sin r."""
        return math.sqrt(2.0) * math.sin(min(radius, math.pi / 2))

    def linearize(self, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
        """As on a unit sphere, with g(2ρ) instead of g(ρ) in the complex direction iu."""
        xp = namespace(base, points)
        coordinates, result = first_order(self, base, points, weights, math.sqrt(points.shape[-1]))
        if hessian:
            distance = norm(coordinates)
            half = self.k - 2
            turned = xp.concat([-coordinates[..., half:], coordinates[..., :half]], axis=-1)
            slow, fast = x_cot_x(distance), x_cot_x(2 * distance)
            matrix = around_direction(coordinates, distance, slow, weights)
            share = spread_weights(weights, distance.ndim) * (fast - slow)
            result.hessian = matrix + outer_sum(safe_divide(turned, distance[..., None]), share)
        return result

    def neighbour_covariance(self, base: Array) -> np.ndarray:
        """Landmarks that are close to each other on the base move alike: Matérn's kernel (1 + s)e^{−s}.

        s = √3·distance over 0.4 times the median distance, the same for both coordinates of the plane.

        >>> import numpy as np
        >>> square = PlanarShapes(4).from_landmarks(np.array([1, 1j, -1, -1j]))
        >>> PlanarShapes(4).neighbour_covariance(square).shape
        (4, 4)
        """
        place = to_numpy(base)
        distance = np.abs(place[:, None] - place[None, :])
        scaled = math.sqrt(3) * distance / (0.4 * float(np.median(distance)))
        kernel = (1 + scaled) * np.exp(-scaled)
        frame = self.from_coordinates(place, np.eye(self.dim))
        return np.asarray(frame.real @ kernel @ frame.real.T + frame.imag @ kernel @ frame.imag.T)

    def ambient_moment(self, points: Array, weights: Array) -> Array:
        """Σ w xx*."""
        xp = namespace(points)
        scaled = xp.conj(points) * xp.astype(spread_weights(weights, points.ndim), points.dtype)
        if points.ndim == 2:
            return transpose(points) @ scaled
        return xp.sum(points[..., :, None] * scaled[..., None, :], axis=0)

    def point_of_moment(self, moment: Array) -> Array:
        """The leading eigenvector: the full Procrustes mean."""
        return self.project(namespace(moment).linalg.eigh(moment)[1][..., :, -1])

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        return 16 * math.sqrt(self.k) * (1 + 2 * radius)

    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        parts = normal_array(rng, size, (2, self.k))
        return self.project(np.ascontiguousarray(parts[..., 0, :] + 1j * parts[..., 1, :]))


def _angle(x: Array, aligned: Array) -> Array:
    xp = namespace(x, aligned)
    return 2 * xp.atan2(norm(x - aligned), norm(x + aligned))
