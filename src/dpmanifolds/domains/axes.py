"""The body of a domain in tangent coordinates, where it is no ball: an ellipsoid, and the nearest point of it.

>>> import numpy as np
>>> axes = Axes(np.array([2.0, 1.0]))
>>> axes.restore(axes.whiten(np.array([[3.0, 0.0], [0.5, 0.5], [0.0, -7.0]]))).round(6).tolist()
[[2.0, 0.0], [0.5, 0.5], [0.0, -1.0]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifolds._arrays import Array, like, namespace

_ITERATIONS = 16
_FARTHEST = 2.0**20


@dataclass(frozen=True, eq=False)
class Axes:
    """The ellipsoid {U·diag(a)·w : |w| ≤ 1}: public semi-axes a > 0 (k,) in public directions U (dim, k).

    U has orthonormal columns up to rounding; there may be fewer of them than dimensions: directions without an axis
    stay at the centre. Integers are those of w: the promise knows nothing of the axes, and the noise that is added to
    them takes the ellipsoid's shape when U·diag(a) leads back (docs/proofs/sums.md, section 8).
    """

    lengths: np.ndarray
    basis: np.ndarray | None = None
    """Columns are directions; None: the coordinates themselves."""

    @property
    def count(self) -> int:
        """k."""
        return int(self.lengths.size)

    def whiten(self, rows: Array) -> Array:
        """w (n, k) for rows of coordinates (n, dim): of the nearest point of the ellipsoid, each from its row alone."""
        return nearest_in_ellipsoid(self.turn(rows), self.lengths)

    def turn(self, rows: Array) -> Array:
        """Uᵀc (n, k) for rows c of coordinates (n, dim), each from its row alone."""
        # one product for each record, so that it depends on no other
        return rows if self.basis is None else (rows[:, None, :] @ like(self.basis, rows))[:, 0, :]

    def gauge(self, rows: Array) -> Array:
        """|diag(a)⁻¹Uᵀc| (n,): how many times as large the ellipsoid must be to hold the point of each row.

        >>> Axes(np.array([2.0, 1.0])).gauge(np.array([[2.0, 0.0], [0.0, 3.0]])).tolist()
        [1.0, 3.0]
        """
        xp = namespace(rows)
        scaled = self.turn(rows) / like(self.lengths, rows)
        return xp.sqrt(xp.sum(scaled * scaled, axis=-1))

    def restore(self, whitened: np.ndarray) -> np.ndarray:
        """Coordinates (..., dim) for w (..., k)."""
        long: np.ndarray = whitened * self.lengths
        return long if self.basis is None else long @ self.basis.T


def nearest_in_ellipsoid(rows: Array, lengths: np.ndarray) -> Array:
    """w (n, k), |w| ≤ 1 up to rounding, with diag(a)·w nearest to each row (n, k); a > 0: semi-axes (k,), or (n, k).

    Outside, w_i = a_i·c_i/(a_i² + e) with the one e > 0 that makes |w| = 1: Newton's method for 1/|w| = 1, which is
    concave in e, from e = 0, so that e grows towards it; a fixed number of times for every row. Rows beyond 10⁶ times
    the longest axis are shortened to that first, so that no square overflows. Each row of w is a function of that row
    and of a alone, bit for bit.

    >>> import numpy as np
    >>> nearest_in_ellipsoid(np.array([[3.0, 4.0]]), np.array([1.0, 1.0])).round(6).tolist()
    [[0.6, 0.8]]
    """
    xp = namespace(rows)
    longest = float(np.max(lengths))
    axes = like(lengths / longest, rows)
    with np.errstate(all="ignore"):
        scaled = rows / longest
        largest = xp.max(xp.abs(scaled), axis=-1, keepdims=True)
        scaled = scaled * xp.where(largest > _FARTHEST, _FARTHEST / largest, xp.ones_like(largest))
        squares, shift = axes * axes, xp.zeros_like(largest)
        weighted = axes * scaled
        for _ in range(_ITERATIONS):
            width = squares + shift
            powers = (weighted / width) ** 2
            total = xp.sum(powers, axis=-1, keepdims=True)
            slope = xp.sum(powers / width, axis=-1, keepdims=True)
            outside = total > 1
            step = (xp.sqrt(total) - 1) * total / xp.where(outside, slope, xp.ones_like(slope))
            shift = shift + xp.where(outside, step, xp.zeros_like(step))
        return weighted / (squares + shift)
