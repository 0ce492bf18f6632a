"""Ellipsoids in the tangent space of a public centre: the promise that knows which directions matter.

>>> import numpy as np
>>> from dpmanifolds import Ellipsoid, Euclidean
>>> body = Ellipsoid(Euclidean(2), [0.0, 0.0], axes=[2.0, 0.5])
>>> body.clip(np.array([[3.0, 0.0], [0.0, -3.0], [0.1, 0.1]])).round(6).tolist()
[[2.0, 0.0], [0.0, -0.5], [0.1, 0.1]]

Noise takes the shape of the body. For records whose coordinates have the standard deviations √λ in some orthonormal
basis, the body with semi-axes a² = √λ·Σ√λ needs noise of (Σ√λ)² where the best ball needs d·Σλ (docs/proofs/sums.md,
section 8): on real data 1.3 to 6 times less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._arrays import Array, eps, namespace, to_numpy
from dpmanifolds._points import choose_points, like_parts
from dpmanifolds._validate import number_between, shown
from dpmanifolds.domains.axes import Axes
from dpmanifolds.domains.domain import Domain, check_center, check_reach, check_sample, mean_of_sample
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold

_LONGEST_RATIO = 1e9
_NOT_ORTHONORMAL = 1e-8
_LEAST_RECORDS, _MOST_FOLDS = 3, 10
# beyond it a basis of all directions would not fit memory: the coordinates themselves are taken
_MOST_DIRECTIONS = 2048
_SMALLEST_AXIS = 1e-6


@dataclass(frozen=True, eq=False)
class Ellipsoid(Domain):
    """All exp(U·diag(axes)·w), |w| ≤ 1, at a public `center`: U the orthonormal `basis` of tangent coordinates.

    `axes` (k,) are semi-axes in the directions of the columns of `basis` (dim, k), or of the coordinates themselves
    where there is none; with k < dim the other directions stay at the centre. A record is clipped to the point of the
    body that is nearest in tangent coordinates. Centre, axes and basis must come from public knowledge, never from the
    records; `source` says from where, and a release repeats it.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> body = dpm.Ellipsoid(dpm.Sphere(2), [0.0, 0.0, 1.0], axes=[0.5, 0.1], source="last year's survey")
    >>> points = dpm.Sphere(2).random_point(500, rng=0)
    >>> bool(np.all(body.contains(body.clip(points))))
    True
    >>> dpm.private_mean(points, body, dpm.GaussianDP(1.0)).value.shape
    (3,)
    """

    manifold: Manifold
    center: Array
    axes: np.ndarray
    """Semi-axes (k,)."""
    basis: np.ndarray | None = None
    source: str | None = None
    radius: float = field(init=False)
    """The longest semi-axis."""
    body: Axes = field(init=False, repr=False)
    kind: ClassVar[str] = "ellipsoid"
    written: ClassVar[tuple[str, ...]] = ("center", "source", "axes", "basis", "manifold")

    def __post_init__(self) -> None:
        center = check_center(self.manifold, self.center)
        lengths = self._checked_lengths()
        basis = self._checked_basis(lengths.size)
        radius = check_reach(self.manifold, float(np.max(lengths)), "axes")
        if self.source is not None and not isinstance(self.source, str):
            raise ArgumentError(
                f"must be words that say where the body is from; got {shown(self.source)}.", argument="source"
            )
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "axes", lengths)
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "body", Axes(lengths / radius, basis))

    def _checked_lengths(self) -> np.ndarray:
        given = self.axes
        try:
            lengths = np.array(to_numpy(given) if hasattr(given, "dtype") else given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"must be numbers, one for each direction; got {shown(given)}.", argument="axes"
            ) from None
        if lengths.ndim != 1 or not 0 < lengths.size <= self.manifold.dim:
            raise ArgumentError(
                f"must be one semi-axis for each of at most {self.manifold.dim} directions; got shape {lengths.shape}.",
                argument="axes",
            )
        if not (np.all(np.isfinite(lengths)) and np.all(lengths > 0)):
            raise ArgumentError("must be finite and greater than 0. Leave out directions without one.", argument="axes")
        if np.max(lengths) > _LONGEST_RATIO * np.min(lengths):
            raise ArgumentError(
                f"must lie within a factor of {_LONGEST_RATIO:g} of each other. Leave out directions that hardly vary: "
                "they stay at the centre.",
                argument="axes",
            )
        return lengths

    def _checked_basis(self, count: int) -> np.ndarray | None:
        dim = self.manifold.dim
        if self.basis is None:
            if count != dim:
                raise ArgumentError(
                    f"must say which {count} directions the axes stand for, as columns of shape ({dim}, {count}).",
                    argument="basis",
                )
            return None
        try:
            basis = np.array(to_numpy(self.basis) if hasattr(self.basis, "dtype") else self.basis, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(f"must be an array of numbers; got {shown(self.basis)}.", argument="basis") from None
        if basis.shape != (dim, count):
            raise ArgumentError(
                f"must have shape ({dim}, {count}), a column of tangent coordinates for each axis; got {basis.shape}.",
                argument="basis",
            )
        if not np.all(np.isfinite(basis)) or np.max(np.abs(basis.T @ basis - np.eye(count))) > _NOT_ORTHONORMAL:
            raise ArgumentError("must have orthonormal columns; numpy.linalg.qr makes them so.", argument="basis")
        return basis

    def __repr__(self) -> str:
        count, dim = self.axes.size, self.manifold.dim
        directions = f"{count} axes" if count == dim else f"{count} axes in {dim} dimensions"
        source = "" if self.source is None else f", from {self.source}"
        shortest = float(np.min(self.axes))
        return f"Ellipsoid({self.manifold!r}, {directions} from {shortest:.6g} to {self.radius:.6g}{source})"

    def clip(self, points: Array) -> Array:
        """Records outside move to the nearest point of the body, as tangent coordinates at the centre measure it."""
        points = self.manifold.as_points(points)
        center = like_parts(self.center, points)
        coordinates = self.manifold.log_coordinates(center, points)
        nearest, outside = self._nearest(coordinates)
        # a hair inside, so that rounding does not put the record out again
        inside = (1 - math.sqrt(eps(coordinates)) / 16) * nearest
        return choose_points(outside, self.manifold.exp_coordinates(center, inside), points)

    def contains(self, points: Array) -> Array:
        points = self.manifold.as_points(points)
        return ~self._nearest(self.manifold.log_coordinates(like_parts(self.center, points), points))[1]

    def _nearest(self, coordinates: Array) -> tuple[np.ndarray, Array]:
        """Coordinates of the nearest point of the body, and whether that is another one, up to rounding."""
        xp = namespace(coordinates)
        batch, dim = coordinates.shape[:-1], self.manifold.dim
        rows = to_numpy(xp.reshape(coordinates, (-1, dim)))
        nearest = self.body.restore(self.radius * np.asarray(self.body.whiten(rows / self.radius)))
        slack = 64 * eps(coordinates) * (self.radius + np.linalg.norm(rows, axis=-1)) * math.sqrt(dim)
        outside = ~(np.linalg.norm(rows - nearest, axis=-1) <= slack)
        return nearest.reshape(*batch, dim), xp.asarray(outside.reshape(batch))

    @classmethod
    def from_scales(
        cls,
        manifold: Manifold,
        center: Any,
        scales: Any,
        basis: Any = None,
        *,
        margin: float = 0.5,
        source: str | None = None,
    ) -> Ellipsoid:
        """The best body for records whose coordinates have these public standard deviations, widened by `margin`.

        a² = √λ·Σ√λ for the deviations √λ in the directions of `basis`: then E|diag(a)⁻¹c|² = 1, and no other body with
        that has less noise. A direction with deviation 0 stays at the centre.

        >>> import numpy as np
        >>> from dpmanifolds import Euclidean
        >>> Ellipsoid.from_scales(Euclidean(3), np.zeros(3), [4.0, 1.0, 0.0], margin=0.0, basis=np.eye(3)).axes
        array([4.47213595, 2.23606798])
        """
        deviations = np.asarray(scales, dtype=np.float64)
        if deviations.ndim != 1 or not np.all(np.isfinite(deviations) & (deviations >= 0)) or not np.any(deviations):
            raise ArgumentError("must be finite numbers that are not negative, and not all 0.", argument="scales")
        factor = 1 + number_between("margin", margin, 0.0, 10.0)
        used = deviations > 0
        if basis is None and not np.all(used):
            basis = np.eye(deviations.size)
        directions = None if basis is None else np.asarray(basis, dtype=np.float64)[..., used]
        return cls(manifold, center, factor * _best_lengths(deviations[used]), directions, source)

    @classmethod
    def from_sample(
        cls,
        manifold: Manifold,
        sample: Any,
        *,
        coverage: float = 0.95,
        margin: float = 0.1,
        source: str = "a public sample",
    ) -> Ellipsoid:
        """The best body for records like those of a PUBLIC sample: around its mean, holding the share `coverage` of it.

        The covariance is that of the sample, shrunk towards its average where records are few (Chen et al. 2010, OAS);
        its size is such that bodies made of other records of the sample hold that share, widened by `margin`. The
        sample must be public: an atlas, a published study, people who are not in the private records; `source` says
        which, and a release repeats it. A body computed from the private records themselves leaks them. For a mean with
        a public sample at hand, `private_mean(..., public_sample=sample)` does more with it.

        >>> import numpy as np
        >>> from dpmanifolds import Euclidean
        >>> public = np.random.default_rng(0).normal(size=(50, 3)) * [5.0, 1.0, 0.2]
        >>> Ellipsoid.from_sample(Euclidean(3), public, source="the pilot study")
        Ellipsoid(Euclidean(3), 3 axes from 4.2578 to 12.037, from the pilot study)
        """
        coverage = number_between("coverage", coverage, 0.0, 1.0)
        margin = number_between("margin", margin, 0.0, 10.0)
        points = check_sample(manifold, sample, at_least=_LEAST_RECORDS)
        center = mean_of_sample(manifold, points)
        rows = to_numpy(manifold.log_coordinates(center, points))
        lengths, basis = _body_of(rows)
        folds = min(len(rows), _MOST_FOLDS)
        found = []
        for fold in range(folds):
            left = np.arange(len(rows)) % folds == fold
            other, directions = _body_of(rows[~left])
            held = rows[left] - rows[~left].mean(axis=0)
            found.append(np.linalg.norm((held if directions is None else held @ directions) / other, axis=1))
        lengths_of_records = np.sort(np.concatenate(found))
        reach = lengths_of_records[max(math.ceil(coverage * lengths_of_records.size), 1) - 1]
        return cls(manifold, center, float(reach) * (1 + margin) * lengths, basis, source)


def _best_lengths(deviations: np.ndarray) -> np.ndarray:
    """a² = √λ·Σ√λ."""
    return np.asarray(np.sqrt(deviations * np.sum(deviations)))


def _body_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Semi-axes and directions for the shrunk covariance of rows (m, dim)."""
    count, dim = rows.shape
    spread = rows - rows.mean(axis=0)
    average = float(np.sum(spread**2)) / count / dim
    if not average > 0:
        raise ArgumentError("does not vary: all its records are the same point.", argument="sample")
    if dim > _MOST_DIRECTIONS:
        values, vectors = np.mean(spread**2, axis=0), None
        squares = float(np.sum(values**2))
    else:
        values, vectors = np.linalg.eigh(spread.T @ spread / count)
        squares = float(np.sum(values**2))
    # the weight of the average in the oracle approximating shrinkage
    whole = (average * dim) ** 2
    top, bottom = (1 - 2 / dim) * squares + whole, (count + 1 - 2 / dim) * (squares - whole / dim)
    weight = 1.0 if bottom <= 0 else min(1.0, top / bottom)
    deviations = np.sqrt(np.maximum((1 - weight) * values + weight * average, 0.0))
    return _best_lengths(np.maximum(deviations, _SMALLEST_AXIS * float(np.max(deviations)))), vectors
