"""The second moment and the mean of vectors in one exact sum: squares of vectors with one constant coordinate more.

>>> import numpy as np
>>> from dpmanifolds.records.source import source_of
>>> from dpmanifolds.sums.outer import sum_outer
>>> rule = JointContribution(dimension=2, radius=5.0, constant=0.5, exponent=20)
>>> total = sum_outer(source_of(None, np.array([[3.0, 4.0], [30.0, -40.0]])), rule)
>>> seen = rule.read(np.array(total.integers, dtype=object).reshape(3, 3))
>>> np.round(seen.squares, 3).tolist(), np.round(seen.sums, 3).tolist(), round(seen.number, 3)
([[18.0, 0.0], [0.0, 32.0]], [6.0, 0.0], 2.0)

**Theorem.** Let y ∈ R^d with |y| ≤ r, and ỹ = (y, κ). Then ỹỹᵀ holds yyᵀ, κy and the constant κ², and for two of them

    ‖ỹỹᵀ − z̃z̃ᵀ‖²_F = ‖yyᵀ − zzᵀ‖²_F + 2κ²|y − z|² ≤ 2(r² + κ²)²,   ‖ỹỹᵀ − z̃z̃ᵀ‖_* ≤ 2(r² + κ²),

as ỹ is a vector of length at most √(r² + κ²) (docs/proofs/second_moment.md, P1). Both are attained where d ≥ 2 and κ ≤
r, by y, z of length r with y·z = −κ²: the mean costs 1 + κ²/r² times the noise, and no second release. A record that is
added or removed moves the sum by at most r² + κ² in either norm, and κ² counts it (docs/proofs/covariance.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, norm
from dpmanifolds._points import in_double
from dpmanifolds._validate import real_numbers, record_numbers
from dpmanifolds.errors import ArgumentError
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.outer import OuterContribution


class JointMoment(NamedTuple):
    """Sums over records in the units of the records, or what noise left of them."""

    squares: np.ndarray
    """Σ yyᵀ."""
    sums: np.ndarray
    """Σ y; zeros where there is no constant coordinate."""
    number: float
    """How many records; NaN where there is no constant coordinate."""


@dataclass(frozen=True, eq=False)
class JointSquares(OuterContribution):
    """ỹỹᵀ for a vector y of a record shortened to the radius r, ỹ = (y, κ), κ = constant·r; without a constant yyᵀ."""

    dimension: int
    radius: float
    constant: float
    exponent: int

    @property
    def width(self) -> int:
        """Of ỹ."""
        return self.dimension + (self.constant > 0)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.width, self.width

    @property
    def exponents(self) -> tuple[int, int]:  # type: ignore[override]
        return self.exponent, self.exponent

    @property
    def reach(self) -> float:
        """What 2^exponent steps are in the units of the records: the longest ỹ, and a hair more for rounding."""
        spare = 2 * ((self.width + 8) * 2.0**-52 + math.sqrt(self.width) * 2.0**-self.exponent)
        return self.radius * math.hypot(1.0, self.constant) / (1 - spare)

    def _join(self, rows: Array) -> Array:
        """ỹ over the reach, of vectors (n, dimension): each from its own row; those that are not finite count as 0."""
        xp = namespace(rows)
        with np.errstate(all="ignore"):
            rows = rows / self.radius
            # what overflows has no direction left, and counts as the centre
            rows = xp.where(xp.all(xp.isfinite(rows), axis=-1)[:, None], rows, xp.zeros_like(rows))
            longest = xp.max(xp.abs(rows), axis=-1)
            rows = rows / xp.where(longest > 1, longest, xp.ones_like(longest))[:, None]
            length = norm(rows)
            rows = rows / xp.where(length > 1, length, xp.ones_like(length))[:, None] * (self.radius / self.reach)
        if self.constant:
            last = xp.full_like(rows[:, :1], self.constant * self.radius / self.reach)
            rows = xp.concat([rows, last], axis=1)
        return rows

    def read(self, total: np.ndarray) -> JointMoment:
        """What a sum of integers (width, width), with noise or without, says in the units of the records."""
        scaled = total.astype(np.float64) * (self.reach / 2.0**self.exponent) ** 2
        squares = scaled[: self.dimension, : self.dimension]
        if not self.constant:
            return JointMoment(squares, np.zeros(self.dimension), math.nan)
        last = scaled[self.dimension] / (self.constant * self.radius)
        return JointMoment(squares, last[: self.dimension], float(last[-1]) / (self.constant * self.radius))


@dataclass(frozen=True, eq=False)
class JointContribution(JointSquares):
    """Of vectors: y = x − center."""

    center: np.ndarray | None = None
    """Public, or released before."""
    substitute: np.ndarray | None = None
    """A public point that takes the place of vectors that are not finite; None: they are told as malformed."""

    @property
    def filler(self) -> Array | None:
        return np.zeros(self.dimension)

    def form(self, block: Array) -> Array:
        array = record_numbers("vectors", block, (self.dimension,))
        if array.ndim != 2 or array.shape[1] != self.dimension:
            raise ArgumentError(f"records must have shape (n, {self.dimension}); got {tuple(array.shape)}.")
        return in_double(real_numbers("vectors", array))

    def __call__(self, block: Array) -> tuple[Array, Array, Array]:
        xp = namespace(block)
        with np.errstate(all="ignore"):
            broken = ~xp.all(xp.isfinite(block), axis=-1)
            if self.substitute is not None:
                block = xp.where(broken[:, None], like(self.substitute, block)[None, :], block)
                broken = xp.zeros_like(broken)
            rows = self._join(block if self.center is None else block - like(self.center, block))
        return rows, rows, xp.astype(broken, xp.int64)


@dataclass(frozen=True, eq=False)
class TangentJointContribution(JointSquares):
    """Of points: y = log at a public point, less a public offset.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.records.source import source_of
    >>> from dpmanifolds.sums.contribution import TangentContribution
    >>> from dpmanifolds.sums.outer import sum_outer
    >>> line = Euclidean(1)
    >>> rule = TangentJointContribution(1, 5.0, 1.0, 20, TangentContribution(line, np.ones(1)))
    >>> total = sum_outer(source_of(line, np.array([[3.0], [4.0]])), rule)
    >>> seen = rule.read(np.array(total.integers, dtype=object).reshape(2, 2))
    >>> seen.squares.round(3).tolist(), seen.sums.round(3).tolist()
    ([[13.0]], [5.0])
    """

    view: AtPoint
    offset: np.ndarray | None = None

    @property
    def filler(self) -> Array | None:
        return self.view.filler

    def form(self, block: Array) -> Array:
        return in_double(self.view.form(block))

    def __call__(self, block: Array) -> tuple[Array, Array, Array]:
        rows, broken = self.view.seen(block)
        with np.errstate(all="ignore"):
            joined = self._join(rows if self.offset is None else rows - like(self.offset, rows))
        return joined, joined, broken
