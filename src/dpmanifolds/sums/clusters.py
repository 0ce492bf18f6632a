"""What a record adds to the sums of clusters: its tangent coordinates at the nearest of some public points, and 1.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> centers = np.array([0.0]), np.array([8.0])
>>> rule = ClusterContribution(Euclidean(1), np.zeros(1), centers=centers, radius=4.0, exponent=4)
>>> rule(np.array([[1.0], [7.0], [20.0]]))[0].tolist()  # a pair of rows for each centre: coordinates, records
[[4, 0, 0], [1, 0, 0], [0, -4, 15], [0, 1, 1]]

Which centre is nearest is a function of the record and of public points; of several nearest the first. A record is
then one of a class, and that class is its own secret: the bounds of class sums with private labels hold
(docs/proofs/sums.md, section 3; docs/proofs/regression.md, section 6). A record without coordinates adds nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifolds._arrays import Array, namespace, norm
from dpmanifolds._points import like_parts
from dpmanifolds.noise import as_generator
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.rounding import ball_integers


@dataclass(frozen=True, eq=False)
class ClusterContribution(AtPoint):
    """For the nearest centre the integers of log there, in units of the radius over 2^exponent, and 1; else 0."""

    centers: tuple[Array, ...] = ()
    """Public, or released before; NumPy."""
    radius: float = 1.0
    exponent: int = 29

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.centers) * (self.manifold.dim + 1)

    def coordinates(self, base: Array, points: Array) -> Array:
        """Those at all centres, one after the other."""
        rows = [self.manifold.log_coordinates(like_parts(center, points), points) for center in self.centers]
        return namespace(rows[0]).concat(rows, axis=-1)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        xp, size = namespace(rows), self.manifold.dim
        parts = [rows[:, size * k : size * (k + 1)] for k in range(len(self.centers))]
        with np.errstate(all="ignore"):
            lengths = xp.stack([norm(part) for part in parts], axis=0)
            known = xp.isfinite(lengths)
            nearest = xp.argmin(xp.where(known, lengths, xp.full_like(lengths, math.inf)), axis=0)
            usable = (broken == 0) & xp.all(xp.isfinite(rows), axis=-1)
            whole = []
            for k, part in enumerate(parts):
                own = usable & (nearest == k)
                whole.append(ball_integers(part, self.exponent, radius=self.radius, usable=own))
                whole.append(xp.astype(own, xp.int64)[None, :])
        return xp.concat(whole, axis=0), broken


def fixed_directions(count: int, dim: int) -> np.ndarray:
    """Unit vectors that are always the same, in no special directions: public."""
    rows = as_generator(0).normal(size=(count, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def even_ball(count: int, dim: int) -> np.ndarray:
    """Points spread evenly over the unit ball, always the same: public.

    >>> bool(np.all(np.linalg.norm(even_ball(100, 3), axis=1) <= 1))
    True
    """
    return fixed_directions(count, dim) * as_generator(1).random((count, 1)) ** (1 / dim)
