"""What is known of a manifold besides its maps: sizes, curvature, what it is made of, its names, words and JSON."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds._common import RootSystem

if TYPE_CHECKING:
    from dpmanifolds.manifolds.base import Manifold


class ManifoldFacts(ABC):
    """The facts of a `Manifold`, each with a default where most manifolds share it."""

    point_shape: tuple[int, ...]
    """Shape of one point, without leading axes."""

    dim: int
    """Dimension of the manifold."""

    curvature_bounds: tuple[float, float]
    """Lower and upper bound of the sectional curvature, both attained unless the class says otherwise."""

    injectivity_radius: float
    """Largest radius at which exp is a diffeomorphism around every point."""

    is_homogeneous: bool = True
    """Whether isometries move every point to every other."""

    is_complex: bool = False
    """Whether points are arrays of complex numbers."""

    log_can_fail: bool = True
    """Whether `log_coordinates` calls routines that can fail where numbers are no point; plain formulas cannot."""

    in_rows: bool = False
    """Whether `see` wants one record after the other in memory, rather than one number of all records."""

    in_columns: bool = False
    """Whether it wants one number of all records after the other where they are matrices too."""

    has_symmetric_coordinates: bool = False
    """Whether coordinates are those of symmetric matrices: the diagonal, then √2 times what is above it."""

    is_model_space: bool = False
    """Whether it is, up to isometry, flat, a sphere, a circle (of exact injectivity radius) or hyperbolic space."""

    polar_roots: tuple[tuple[int, float], ...] | None = None
    """Where distance says everything, as directions are alike: the (m, a) for which spheres of radius s below
    `injectivity_radius`, the cut locus, have an area ∝ ∏ (sin(as)/a)^m, or sinh in negative curvature."""

    root_system: RootSystem | None = None
    """That of a compact symmetric space whose distances depend on angles: rotations, subspaces."""

    has_chart: bool = False
    """Whether it is a `FlatManifold`: one chart maps all of it isometrically onto R^dim."""

    has_units: bool = False
    """Whether a multiple of a point is that point in another unit."""

    flat_metric: str = ""
    """The name of a metric on the same points that is flat, where this one is not."""

    factors: tuple[Manifold, ...] = ()
    """The manifolds of which each has a part of a point, where points are tuples of parts."""

    is_product: bool = False
    """Whether it is made of other manifolds: a product, or a power."""

    copies: int = 1
    """Of how many copies of one manifold it consists."""

    typed: str = ""
    """What the command line calls it, with sizes as an example ("sphere:2"; 2.0 where a size may be broken)."""

    picture: str = "coordinates"
    """How a point is drawn: see `dpmanifolds.show.plots`."""

    ambient_dim: int = 0
    """Of the flat space that `embed` maps to; 0 where there is no such map."""

    ambient_radius: float = 0.0
    """The length of all `embed(x)`."""

    projector_shape: tuple[int, int] = (0, 0)
    """Rank and size of the projector that `embed` gives the coordinates of, less its trace; zeros where it is none."""

    rules: tuple[str, ...] = ("all numbers must be finite, not NaN or inf", "it must satisfy the manifold's equations")
    """What a point must keep; `broken_rule` counts them from 1."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[Any, ...]:
        """What tells this manifold from others of its class."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters == getattr(other, "parameters", None)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.parameters))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parameters))})"

    @property
    def words(self) -> str:
        """What its points are called where they are used, in the plural.

        >>> from dpmanifolds import SPD, Power
        >>> Power(SPD(3), 10).words
        'maps of 10 positive definite 3×3 matrices (affine-invariant metric)'
        """
        return f"points of {self!r}"

    def describe_distance(self, point: Array, distance: float) -> str:
        """What a step of this length from a point comes to in the units of those who use it; empty where none is known.

        >>> import numpy as np
        >>> from dpmanifolds import SPD, Sphere
        >>> Sphere(2).describe_distance(np.array([0.0, 0.0, 1.0]), 0.05)
        '2.86 degrees'
        >>> SPD(3).describe_distance(np.diag([1.2e-3, 5e-4, 4e-4]), 0.1)
        '2.2 % in mean diffusivity and 0.018 in fractional anisotropy, if these are diffusion tensors'
        """
        return ""

    def to_json(self) -> dict[str, Any]:
        """The name of the class and the `parameters`: what `manifold_from_json` reads."""
        return {"name": type(self).__name__, "parameters": list(self.parameters)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The manifold of this class that `to_json` wrote."""
        return cls(*data["parameters"])

    def typed_point(self, numbers: np.ndarray) -> np.ndarray:
        """The point that numbers typed one after the other mean."""
        return numbers

    @property
    def natural_center(self) -> Array | None:
        """The identity matrix, or the origin, where a space has one: NumPy."""
        return None

    def eigenvalue_radius(self, low: float, high: float) -> float:
        """Of the ball around √(low·high)·I that holds all points with eigenvalues in [low, high]."""
        raise ArgumentError(f"from_eigenvalues needs an SPD manifold; got {self!r}.")

    @property
    def has_parts(self) -> bool:
        """Whether points are tuples of arrays, one for each factor."""
        return bool(self.factors)

    @property
    def average_curvature(self) -> float:
        """Of all planes at a point: the scalar curvature over d(d−1), or the middle of the bounds."""
        return sum(self.curvature_bounds) / 2

    @property
    def is_hadamard(self) -> bool:
        """Simply connected and nowhere positively curved: the Fréchet mean is unique without any radius."""
        return self.injectivity_radius == math.inf and self.curvature_bounds[1] <= 0

    @property
    def is_flat(self) -> bool:
        """Whether it is isometric to R^dim: complete, simply connected and without curvature (Killing–Hopf)."""
        return self.is_hadamard and self.curvature_bounds == (0.0, 0.0)

    @property
    def max_radius(self) -> float:
        """Balls of smaller radius have a unique Fréchet mean, inside the ball: ½·min(inj, π/√κ), or infinity."""
        upper = self.curvature_bounds[1]
        conjugate = math.pi / math.sqrt(upper) if upper > 0 else math.inf
        return min(self.injectivity_radius, conjugate) / 2

    @property
    def typical_dist(self) -> float:
        """A length that is neither small nor large here: the injectivity radius, or √dim where it is infinite."""
        return min(self.injectivity_radius, math.sqrt(self.dim))
