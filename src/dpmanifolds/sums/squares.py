"""How long records are in each direction of a public basis: exact sums of squared coordinates, and axes made of them.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> from dpmanifolds.sums.total import read_records
>>> rule = SquaresContribution(Euclidean(2), np.zeros(2), radius=5.0)
>>> records = read_records(Euclidean(2), np.array([[3.0, 0.0], [0.0, -4.0], [30.0, 40.0]]))
>>> rule.read(np.array(records.total(rule).integers)).round(2).tolist()  # 9 + 9 and 16 + 16
[18.0, 32.0]

**Theorem.** A record's coordinates c in a public orthonormal basis, shortened to a public radius r, become integers z
with Σz² ≤ T = 4^exponent, checked exactly, and then their squares, which are exact: a point of the simplex {s ≥ 0, Σs ≤
T}. Two such points differ by at most √2·T in ℓ2 and 2T in ℓ1, and one that is added or removed moves the sum by at most
T in either norm (docs/proofs/sums.md, section 9). So the noise is that of counts whose unit is T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.domains.axes import Axes
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.counts import simplex_fits
from dpmanifolds.sums.rounding import ball_integers

_EXPONENT = 14
SQUARES_UNIT = 1 << 2 * _EXPONENT
"""T: what all squares of a record add up to at most."""

# standard deviations of its noise below which a square says nothing about its own direction
_SEEN = 2.0
_LEAST_ROOT = 1e-3  # of the largest √λ


@dataclass(frozen=True, eq=False)
class SquaresContribution(AtPoint):
    """Squares of the coordinates of log at the base, in the directions of a basis, for records shortened to `radius`.

    In units of radius²/T. A record that has no coordinates adds 0.
    """

    radius: float = 1.0
    basis: np.ndarray | None = None
    """Columns are orthonormal directions up to rounding; None: the coordinates themselves."""

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.manifold.dim

    @property
    def bound(self) -> int:
        return SQUARES_UNIT

    def fits(self, whole: Array) -> Array:
        return simplex_fits(whole, SQUARES_UNIT)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        with np.errstate(all="ignore"):
            turned = rows if self.basis is None else Axes(np.ones(self.dim), self.basis).turn(rows)
            whole = ball_integers(turned, _EXPONENT, radius=self.radius, usable=broken == 0)
        return whole * whole, broken

    def read(self, total: np.ndarray) -> np.ndarray:
        """Σc² in each direction, for a sum of integers, with noise or without."""
        return np.asarray(total, dtype=np.float64) * (self.radius**2 / SQUARES_UNIT)


def axes_for_squares(squares: np.ndarray, deviation: float) -> np.ndarray:
    """Semi-axes a for mean squares λ of coordinates that are known with this noise: a² = √λ·Σ√λ, so that E|c/a|² = 1.

    Squares within two standard deviations of 0 say nothing about their own directions: these share one λ, what is known
    of their average and a standard deviation of it more. No λ is below 10⁻⁶ of the largest. Post-processing.

    >>> axes_for_squares(np.array([16.0, 1.0, 0.02, -0.02]), deviation=0.0625).round(3).tolist()
    [4.656, 2.328, 1.067, 1.067]
    """
    likely = np.array(squares, dtype=np.float64)
    unseen = likely < _SEEN * deviation
    if np.any(unseen):
        likely[unseen] = max(float(np.mean(likely[unseen])), 0.0) + deviation / math.sqrt(np.count_nonzero(unseen))
    roots = np.sqrt(likely)
    roots = np.maximum(roots, _LEAST_ROOT * float(np.max(roots)))
    return np.asarray(np.sqrt(roots * np.sum(roots)))
