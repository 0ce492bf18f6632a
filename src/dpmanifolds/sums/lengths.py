"""A tangent vector and its squared length in one exact sum: the length costs nothing.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> pull = LengthContribution(Euclidean(2), np.zeros(2), radius=5.0, exponent=8)
>>> whole, _ = pull(np.array([[3.0, 0.0], [0.0, 30.0]]))
>>> whole.tolist()  # 3/5 and 1 of 256 less a hair; and 13/8 of the squares, from −416 to 0
[[154, 0], [0, 255], [-266, -4]]

**Theorem** (docs/proofs/regions.md, R1). Let z be integers with |z|² ≤ R², R = 2^m ≥ 2⁸, and t an integer from
⌊(13/8)·|z|²/R⌋ to (13/8)·R. Any two such vectors (z, t) are at most 2R apart in ℓ2: as far as z alone. So noise that
protects the mean protects the mean squared length beside it. A record has the least t; the mean over the records of a
person, rounded towards zero, has another, and never leaves that body, as t less its largest value is not positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, namespace
from dpmanifolds.domains import Ball
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.mechanism import Facts, mean_facts
from dpmanifolds.sums.rounding import ball_integers, length_fits

# 13/8 of the squared length: (2 − D)²(1 + c²D²) ≤ 4 for D in [0, 1] holds up to c² = 2.772
_TIMES, _SHIFT = 13, 3


@dataclass(frozen=True, eq=False)
class LengthContribution(AtPoint):
    """y = log at the base less a public offset, shortened to the radius r, and |y|²: integers (dim + 1,)."""

    radius: float = 1.0
    offset: np.ndarray | None = None
    exponent: int = 29

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.manifold.dim + 1

    @property
    def bound(self) -> int:
        return 2 << self.exponent

    def fits(self, whole: Array) -> Array:
        xp = namespace(whole)
        vectors, lengths = whole[:-1, :], whole[-1, :]
        # squares of numbers in range, so that nothing leaves 64 bits
        inside = xp.all(xp.abs(vectors) <= 1 << self.exponent, axis=0) & length_fits(vectors, self.exponent)
        return inside & (self._lengths(vectors) <= lengths) & (lengths <= 0)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        with np.errstate(all="ignore"):
            if self.offset is not None:
                rows = rows - like(self.offset, rows)
        vectors = ball_integers(rows, self.exponent, radius=self.radius, usable=broken == 0)
        return namespace(vectors).concat([vectors, self._lengths(vectors)[None, :]], axis=0), broken

    def _lengths(self, vectors: Array) -> Array:
        """The least t less the largest, from integers alone."""
        squares = namespace(vectors).sum(vectors * vectors, axis=0)
        return ((_TIMES * squares) >> (self.exponent + _SHIFT)) - (_TIMES << self.exponent >> _SHIFT)

    def read(self, noisy_mean: np.ndarray) -> tuple[np.ndarray, float]:
        """The mean of y, and that of |y|², of coordinates (dim + 1,) in units of the radius over 2^exponent."""
        share = noisy_mean[-1] / self.radius * 2.0**_SHIFT / _TIMES + 1
        return noisy_mean[:-1], float(share) * self.radius**2


def length_facts(radius: float, dim: int, n: int, unit: str) -> Facts:
    """How far the mean of n such vectors moves: 2r/n, as in a ball of R^{dim+1}."""
    return mean_facts(Ball(Euclidean(dim + 1), np.zeros(dim + 1), radius), n, unit=unit)


def length_deviation(radius: float, deviation: Any) -> Any:
    """The standard deviation of the mean squared length, where each coordinate of the mean has this one."""
    return radius * deviation * 2.0**_SHIFT / _TIMES
