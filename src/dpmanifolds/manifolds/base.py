"""The contract that every manifold fulfils: its maps, and what follows from them. Its facts: `facts.py`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, root, to_numpy
from dpmanifolds._points import leaves
from dpmanifolds._validate import numeric_array, record_numbers, shown
from dpmanifolds.errors import ArgumentError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.manifolds._common import check_gradient, frame_products, number_rules
from dpmanifolds.manifolds._derivatives import guard_methods
from dpmanifolds.manifolds.facts import ManifoldFacts
from dpmanifolds.manifolds.linearization import Linearization, linearize_by_average, weighted_sum
from dpmanifolds.manifolds.names import register
from dpmanifolds.noise import as_generator


class Seen(NamedTuple):
    """Records as seen from a public point, each by itself."""

    rows: Array
    """Coordinates of log (n, dim), or what makes them times `shares`; any numbers for records that break a rule."""
    broken: Array
    """The number of the rule that each breaks, 0 for none."""
    shares: Array | None = None
    """What a row is to be multiplied by."""
    lengths: Array | None = None
    """The lengths of the coordinates, where they are known."""

    @property
    def coordinates(self) -> Array:
        """The rows, multiplied."""
        return self.rows if self.shares is None else self.rows * self.shares[:, None]


class Manifold(ManifoldFacts):
    """A Riemannian manifold whose points are arrays; every method broadcasts over leading axes.

    Subclasses are immutable values: two manifolds with the same `parameters` are equal. Arrays come back in
    the caller's library, dtype and device. Methods do not check that points lie on the manifold (`belongs` does); those
    of real spaces refuse complex numbers. Derivatives in PyTorch and JAX, of first and second order, forward and
    reverse, are right wherever the map has them, along the manifold: use `squared_dist` where points may coincide.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> sphere = dpm.Sphere(2)
    >>> a, b = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    >>> bool(np.allclose(sphere.exp(a, sphere.log(a, b)), b)), round(float(sphere.dist(a, b)), 6)
    (True, 1.570796)
    >>> sphere.dim, sphere.point_shape, sphere.curvature_bounds
    (2, (3,), (1.0, 1.0))
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        guard_methods(cls)
        register(cls)

    @classmethod
    def from_sizes(cls, *sizes: float, metric: str | None = None) -> Manifold:
        """The manifold that `typed` means with these sizes."""
        if metric is not None:
            raise ArgumentError(f"--metric is for spd; {cls.typed.split(':')[0]} has one metric only. Leave it out.")
        return cls(*sizes)

    @property
    def single(self) -> Manifold:
        """The one manifold of which it has `copies`."""
        return self

    def factors_of(self, point: Array) -> list[tuple[Manifold, Array]]:
        """The manifolds that it is the product of, each with its part of a point: itself where it is none.

        >>> import numpy as np
        >>> from dpmanifolds import Euclidean, Power, Product
        >>> space = Product(Power(Euclidean(1), 2), Euclidean(2))
        >>> [(factor.dim, part.shape) for factor, part in space.factors_of((np.zeros((2, 1)), np.zeros(2)))]
        [(1, (1,)), (1, (1,)), (2, (2,))]
        """
        return [(self, point)]

    @abstractmethod
    def exp(self, base: Array, vector: Array) -> Array:
        """The point reached from `base` by the geodesic with initial velocity `vector`, after time 1."""

    @abstractmethod
    def log(self, base: Array, point: Array) -> Array:
        """The shortest tangent vector at `base` with exp(base, vector) = point (a fixed one where several are)."""

    def log_coordinates(self, base: Array, points: Array) -> Array:
        """Orthonormal coordinates (..., dim) of log at one `base`, by the cheapest way; NaN where there are none.

        Each record's numbers are a function of that record and the base alone, bit for bit (docs/proofs/sums.md): no
        decision looks at several records, and none makes it raise.
        """
        return self.to_coordinates(base, self.log(base, points))

    def see(self, base: Array, points: Array) -> Seen | None:
        """`log_coordinates` and `broken_rule` of NumPy's records in double precision in one go; None where there is no
        such way. Records are not written to.
        """
        return None

    def exp_coordinates(self, base: Array, coordinates: np.ndarray) -> Array:
        """exp of the tangent vectors with these coordinates (..., dim): NumPy, as noise is; points are like `base`."""
        return self.exp(base, self.from_coordinates(base, like(coordinates, base)))

    def move(self, base: Array, coordinates: np.ndarray) -> Array:
        """The same; `ScaleOutOfRangeError` where a number overflows, or is no point in the precision of `base`.

        >>> import numpy as np
        >>> from dpmanifolds import Sphere
        >>> steps = np.array([[0.0, 0.0], [np.pi, 0.0]])
        >>> Sphere(2).move(np.array([0.0, 0.0, 1.0]), steps).round(6)[:, 2].tolist()
        [1.0, -1.0]
        """
        # overflow is looked for below, in every library alike
        with np.errstate(all="ignore"):
            points = self.exp_coordinates(base, coordinates)
            parts = leaves(points) if self.has_parts else [points]
            finite = all(bool(namespace(leaf).all(namespace(leaf).isfinite(leaf))) for leaf in parts)
            if finite and bool(np.all(to_numpy(self.belongs(points)))):
                return points
        raise ScaleOutOfRangeError(
            f"at this scale draws lie so far out that they are no points of {self!r} in the precision of the "
            "centre. Use a smaller sigma, or take `sample_coordinates` and shrink them into a ball first."
        )

    @abstractmethod
    def inner(self, base: Array, u: Array, v: Array) -> Array:
        """The Riemannian inner product of tangent vectors u, v at `base`."""

    @abstractmethod
    def transport(self, base: Array, to: Array, vector: Array) -> Array:
        """Parallel transport of `vector` from `base` to `to` along the shortest geodesic."""

    @abstractmethod
    def to_coordinates(self, base: Array, vector: Array) -> Array:
        """Orthonormal coordinates (..., dim) of a tangent vector: an isometry onto R^dim."""

    @abstractmethod
    def from_coordinates(self, base: Array, coordinates: Array) -> Array:
        """The tangent vector at `base` with these orthonormal coordinates."""

    @abstractmethod
    def log_volume_density(self, base: Array, vector: Array) -> Array:
        """log of the Jacobian determinant of exp at `base`, seen at `vector`."""

    @abstractmethod
    def belongs(self, point: Array, tolerance: float | None = None) -> Array:
        """Whether each point lies on the manifold, up to rounding (relative `tolerance`): none of another shape."""

    def broken_rule(self, points: Array) -> Array:
        """For each point the number of the first of `rules` that it breaks, as far as a cheap look tells; 0 for none.

        What passes and turns out to have no coordinates is for `belongs` to judge.
        """
        xp = namespace(points)
        finite = xp.all(xp.isfinite(points), axis=tuple(range(-len(self.point_shape), 0)))
        return number_rules(finite, self.belongs(points))

    def first_broken_rule(self, block: Array) -> str | None:
        """The first of `rules` that some point of a block breaks, by the same cheap look; None for none."""
        with np.errstate(all="ignore"):
            broken = to_numpy(self.broken_rule(block))
        return self.rules[int(broken[broken > 0].min()) - 1] if broken.any() else None

    def place(self, points: Array) -> Array:
        """Points that nearly lie here, on it to the last bit of rounding, each by itself."""
        return self.project(points)

    @abstractmethod
    def project(self, point: Array) -> Array:
        """A nearby point on the manifold, for arrays that are almost on it."""

    @abstractmethod
    def random_point(self, size: tuple[int, ...] | int = (), *, rng: Any = None) -> Array:
        """Points (NumPy, float64) that cover the manifold: uniform where it is compact."""

    def as_points(self, points: Any, name: str = "points") -> Array:
        """`points` as an array (..., *point_shape) of numbers, or an error that says which shape is needed."""
        # most often they are such an array already
        array = points if type(points) is np.ndarray and points.dtype.char in "fdFD" else numeric_array(name, points)
        if not self.is_complex and namespace(array).isdtype(array.dtype, "complex floating"):
            raise ArgumentError(
                f"{name} of {self!r} must be real numbers; got complex ones. Take their real part first."
            )
        expected = self.point_shape
        if array.ndim < len(expected) or tuple(array.shape[array.ndim - len(expected) :]) != expected:
            wanted = ", ".join(map(str, expected))
            raise ArgumentError(
                f"must have shape (..., {wanted}) for {self!r}; got {tuple(array.shape)}. "
                "Check the axis order, or the size given to the manifold.",
                argument=name,
            )
        return array

    def side_by_side(self, points: Array) -> Array:
        """The same points, in the memory layout in which a manifold works on many of them fastest."""
        return points

    @property
    def record_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes in which one record may come."""
        return (self.point_shape,)

    def take_form(self, points: Any) -> Array:
        """`as_points` for records of a release: the form is checked, no number is; what is no point becomes NaN.

        In a list, or an array of objects, each record is looked at on its own (`record_numbers`).
        """
        return self.as_points(record_numbers("points", points, self.point_shape, of_complex=self.is_complex))

    def norm(self, base: Array, vector: Array) -> Array:
        """Riemannian length of a tangent vector."""
        return root(self.inner(base, vector, vector))

    def dist(self, a: Array, b: Array) -> Array:
        """Geodesic distance."""
        return self.norm(a, self.log(a, b))

    def squared_dist(self, a: Array, b: Array) -> Array:
        """The square of the geodesic distance, whose derivatives of first and second order are right at a = b too."""
        vector = self.log(a, b)
        return self.inner(a, vector, vector)

    @abstractmethod
    def project_tangent(self, base: Array, vector: Array) -> Array:
        """The tangent vector at `base` that is nearest to an array of the surrounding space."""

    @abstractmethod
    def acceleration(self, base: Array, u: Array, v: Array) -> Array:
        """Second derivatives of geodesics, as arrays: d²/dt² exp(base, tv) at t = 0 is acceleration(base, v, v).

        Bilinear and symmetric in u and v.
        """

    def embed(self, points: Array) -> Array:
        """Orthonormal coordinates (..., ambient_dim) in a flat space around, less those of the middle of all points.

        Each record's are a function of that record alone, bit for bit, and none makes it raise.

        >>> import numpy as np
        >>> from dpmanifolds import Grassmann
        >>> lines = Grassmann(2, 1)
        >>> lines.embed(np.eye(2)[:, :1]).round(6).tolist(), round(lines.ambient_radius, 6)
        ([-0.707107, 0.0], 0.707107)
        """
        raise NotAvailableError(f"no embedding of {self!r} is known.")

    def projector_frame(self, points: Array) -> Array:
        """Orthonormal columns (..., size, rank) that span what the projector projects to."""
        raise NotAvailableError(f"points of {self!r} are no projectors.")

    def unembed(self, coordinates: Array) -> Array:
        """The point whose `embed` is nearest to these coordinates; a fixed one of them where there are several."""
        raise NotAvailableError(f"no embedding of {self!r} is known.")

    def chord(self, radius: float) -> float:
        """The farthest that `embed` puts two points whose distance is at most `radius`."""
        raise NotAvailableError(f"no embedding of {self!r} is known.")

    def retract(self, base: Array, vector: Array) -> Array:
        """A first-order stand-in for exp: base + vector in the surrounding space, put back on the manifold.

        >>> import numpy as np
        >>> from dpmanifolds import Sphere
        >>> Sphere(2).retract(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])).round(6).tolist()
        [0.707107, 0.0, 0.707107]
        """
        return self.project(base + vector)

    def riemannian_gradient(self, base: Array, gradient: Array) -> Array:
        """The tangent vectors whose inner products with v are ⟨∂f, v⟩, for Euclidean gradients ∂f (..., *point_shape).

        At one base. On `PlanarShapes` a Euclidean gradient is complex: ∂f/∂Re + i·∂f/∂Im.

        >>> import numpy as np
        >>> from dpmanifolds import SPD
        >>> SPD(2).riemannian_gradient(np.diag([2.0, 1.0]), np.eye(2)).round(6).tolist()
        [[4.0, 0.0], [0.0, 1.0]]
        """
        return self.from_coordinates(base, self.gradient_coordinates(base, gradient))

    def gradient_coordinates(self, base: Array, gradient: Array) -> Array:
        """The same as orthonormal coordinates (..., dim): ⟨∂f, E_j⟩ for the vectors E_j of an orthonormal basis.

        >>> import numpy as np
        >>> from dpmanifolds import SPD
        >>> SPD(2).gradient_coordinates(np.diag([2.0, 1.0]), np.eye(2)).round(6).tolist()
        [2.0, 1.0, 0.0]
        """
        check_gradient(self, gradient)
        return frame_products(gradient, self.from_coordinates(base, like(np.eye(self.dim), base)))

    def riemannian_hessian(self, base: Array, gradient: Array, hessian: Array, vector: Array) -> Array:
        """Hess f(v) at one base from the Euclidean ∂f and ∂²f·v: ⟨Hess f(v), w⟩ = ⟨∂²f·v, w⟩ + ⟨∂f, a(v, w)⟩.

        a is the `acceleration` of geodesics, since f(exp(tv)) has the second derivative ⟨∂²f·v, v⟩ + ⟨∂f, a(v, v)⟩.

        >>> import numpy as np
        >>> from dpmanifolds import Sphere
        >>> north, east, zero = np.eye(3)[2], np.eye(3)[0], np.zeros(3)
        >>> Sphere(2).riemannian_hessian(north, north, zero, east).round(6).tolist()  # of the height, at its top
        [-1.0, 0.0, 0.0]
        """
        check_gradient(self, gradient)
        frame = self.from_coordinates(base, like(np.eye(self.dim), base))
        bent = self.acceleration(base, vector, frame)
        return self.from_coordinates(base, frame_products(hessian, frame) + frame_products(gradient, bent))

    def linearize(self, base: Array, points: Array, weights: Array, hessian: bool) -> Linearization:
        """The sums of Taylor terms of ½ρ² that lead to a mean; without `hessian` second order may be left out.

        Unless a manifold knows its own Hessian, that of its average curvature leads the steps (`linearization`).
        """
        return linearize_by_average(self, base, points, weights, hessian)

    def neighbour_covariance(self, base: Array) -> np.ndarray | None:
        """A covariance (dim, dim) of coordinates at a base, up to scale, that geometry makes likely; None for no guess.

        For public samples that are too small to tell (`sums.public`).
        """
        return None

    def ambient_moment(self, points: Array, weights: Array) -> Array:
        """What is summed over records for a start of the steps to a mean: the arrays, unless more is needed."""
        return weighted_sum(points, weights)

    def point_of_moment(self, moment: Array) -> Array:
        """That start: the point which belongs to the moment of all records, weights summing to one."""
        return self.project(moment)

    def mean_rounding(self, center: Array, radius: float, condition: float) -> float:
        """The largest rounding bound, in units of eps, that `linearize` reports for records and base within `radius`
        of the centre and of at most this `condition`; `NotAvailableError` where none is proven."""
        raise NotAvailableError(f"no public bound of the rounding of means is known on {self!r}.")

    @property
    def rounding_in_double(self) -> float:
        """What the routines of double precision may add to it."""
        return 0.0

    def geodesic(self, a: Array, b: Array, t: Array | float) -> Array:
        """The point at time t on the shortest geodesic from a (t=0) to b (t=1); `t` broadcasts with leading axes."""
        return self.exp(a, self.scale(t, self.log(a, b)))

    def scale(self, factor: Array | float, vector: Array) -> Array:
        """factor·vector, the factor broadcasting over the leading axes."""
        if isinstance(factor, (int, float)):
            return factor * vector
        return factor[(...,) + (None,) * len(self.point_shape)] * vector

    def random_tangent(self, base: Array, *, rng: Any = None) -> Array:
        """A standard Gaussian tangent vector at each base point."""
        leading = self.batch_shape(base)
        draw = as_generator(rng).standard_normal((*leading, self.dim))
        return self.from_coordinates(base, like(draw, leaves(base)[0]))

    def batch_shape(self, point: Array) -> tuple[int, ...]:
        """The leading axes of `point`."""
        return tuple(point.shape[: point.ndim - len(self.point_shape)])


def check_manifold(manifold: Any) -> None:
    """An error for anything else."""
    if not isinstance(manifold, Manifold):
        raise ArgumentError(f"must be a Manifold such as SPD(3); got {shown(manifold)}.", argument="manifold")
