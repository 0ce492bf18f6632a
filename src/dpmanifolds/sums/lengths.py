"""A tangent vector and its squared length in one exact sum: the length costs nothing.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> pull = LengthContribution(Euclidean(2), np.zeros(2), radius=5.0, exponent=8)
>>> whole, _ = pull(np.array([[3.0, 0.0], [0.0, 30.0]]))
>>> whole.tolist()  # 3/5 and 1 of 256 less a hair; and 13/8 of the squares, from −208 to 208
[[154, 0], [0, 255], [-58, 204]]

**Theorem** (docs/proofs/regions.md, R1). Let z be integers with |z|² ≤ R², R = 2^m ≥ 2⁸, and t = ⌊(13/8)·|z|²/R⌋. Any
two vectors (z, t) are at most 2R apart in ℓ2: as far as z alone. So noise that protects the mean protects the mean
squared length beside it. The same holds for integers t from there up to ⌊(13/8)·R⌋, where averages of a person lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, namespace
from dpmanifolds.domains import Ball
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.sums.contribution import AtPoint, ball_integers, length_fits
from dpmanifolds.sums.mechanism import Facts, mean_facts

__all__ = ["LengthContribution", "length_deviation", "length_facts"]

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
    def bound(self) -> int:  # type: ignore[override]
        return 1 << self.exponent

    def fits(self, whole: Array) -> Array:
        xp = namespace(whole)
        vectors = whole[:-1, :]
        # squares of numbers in range, so that nothing leaves 64 bits
        inside = xp.all(xp.abs(vectors) <= self.bound, axis=0) & length_fits(vectors, self.exponent)
        return inside & (whole[-1, :] >= self._lengths(vectors)) & (whole[-1, :] <= self._longest - self._middle)

    def settle(self, means: Array) -> Array:
        """The length of an average is at least that of the average vector, but for a step that division lost."""
        xp = namespace(means)
        vectors, lengths = means[:-1, :], means[-1:, :]
        return xp.concat([vectors, xp.maximum(lengths, self._lengths(vectors)[None, :])], axis=0)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        with np.errstate(all="ignore"):
            if self.offset is not None:
                rows = rows - like(self.offset, rows)
        vectors = ball_integers(rows, self.exponent, radius=self.radius, usable=broken == 0)
        return namespace(vectors).concat([vectors, self._lengths(vectors)[None, :]], axis=0), broken

    def _lengths(self, vectors: Array) -> Array:
        """t less the middle of its range, from integers alone."""
        squares = namespace(vectors).sum(vectors * vectors, axis=0)
        return ((_TIMES * squares) >> (self.exponent + _SHIFT)) - self._middle

    @property
    def _longest(self) -> int:
        return _TIMES * self.bound >> _SHIFT

    @property
    def _middle(self) -> int:
        return _TIMES * self.bound >> (_SHIFT + 1)

    def read(self, noisy_mean: np.ndarray) -> tuple[np.ndarray, float]:
        """The mean of y, and that of |y|², of coordinates (dim + 1,) in units of the radius over 2^exponent."""
        share = noisy_mean[-1] / self.radius * 2.0**_SHIFT / _TIMES + 0.5
        return noisy_mean[:-1], float(share) * self.radius**2


def length_facts(radius: float, dim: int, n: int, unit: str) -> Facts:
    """How far the mean of n such vectors moves: 2r/n, as in a ball of R^{dim+1}."""
    return mean_facts(Ball(Euclidean(dim + 1), np.zeros(dim + 1), radius), n, unit=unit)


def length_deviation(radius: float, deviation: Any) -> Any:
    """The standard deviation of the mean squared length, where each coordinate of the mean has this one."""
    return radius * deviation * 2.0**_SHIFT / _TIMES
