"""What one record adds to the sum of a step: its gradient at the public w, as integers inside of a ball of radius C.

>>> import numpy as np
>>> from dpmanifolds import Ball, Euclidean
>>> from dpmanifolds.descent import FrechetMeanLoss
>>> loss = FrechetMeanLoss(Ball(Euclidean(2), [0.0, 0.0], 10.0))
>>> pull = contribution_at(loss, np.zeros(2), clip=5.0, exponent=4, moving=False)
>>> whole, _ = pull(np.array([[3.0, 4.0], [6.0, 8.0], [np.nan, 0.0]]))
>>> whole.tolist()  # in sixteenths of C
[[-9, -9, 0], [-12, -12, 0]]

The integers are a function of the record and of w, so the promise of a step holds whatever floating point did
(docs/proofs/sums.md). `moving`: the number of rows can change between neighbours (persons, add/remove), so that a row
must be the same in any place and company, not only in its own place: tiles then have one shape, filled up.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, has_doubles, like, namespace, norm, safe_divide, to_numpy
from dpmanifolds._points import count_records, in_double, records_at
from dpmanifolds.descent.losses.loss import Loss, OuterLoss, row_product
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.sums.contribution import Contribution, ball_integers, finest_exponent, length_fits
from dpmanifolds.sums.outer import OuterContribution, finest_factor_exponent

__all__ = ["GradientContribution", "OuterGradient", "contribution_at", "exponent_for"]

_SPARE_BITS = 10


@dataclass(frozen=True, eq=False)
class GradientContribution(Contribution):
    """grad f(w, x) − a(w), shortened to `clip`, in units of clip/2^exponent."""

    loss: Loss
    rule: Callable[[Array], Array]
    """`loss.at(w)`."""
    anchor: np.ndarray | None
    clip: float
    exponent: int
    moving: bool

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.loss.manifold.dim

    @property
    def bound(self) -> int:  # type: ignore[override]
        return 1 << self.exponent

    @property
    def filler(self) -> Any:
        return self.loss.filler if self.moving else None

    @property
    def tile_bytes(self) -> int:  # type: ignore[override]
        return _tile_bytes(self.moving)

    def form(self, block: Any) -> Array:
        """Blocks come prepared, with the rules they break beside them."""
        return block[0]

    def fits(self, whole: Array) -> Array:
        return length_fits(whole, self.exponent)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            rows = self._rows(block)
            if self.anchor is not None:
                rows = rows - like(self.anchor, rows)
            whole = ball_integers(rows, self.exponent, radius=self.clip)
        xp = namespace(whole)
        return whole, xp.zeros_like(whole[0, :])

    def _rows(self, block: Array) -> Array:
        if not self.moving or self.loss.any_company:
            return _in_double(self.rule(block))
        alone = (records_at(block, slice(i, i + 1)) for i in range(count_records(block)))
        rows = [_in_double(self.rule(record)) for record in alone]
        return namespace(*rows).concat(rows, axis=0)


@dataclass(frozen=True, eq=False)
class OuterGradient(OuterContribution):
    """a bᵀ/C as the product of two vectors of the same length √(|a||b|/C), each shortened to 1."""

    loss: OuterLoss
    w: np.ndarray
    clip: float
    exponent: int
    moving: bool

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.loss.shape

    @property
    def exponents(self) -> tuple[int, int]:  # type: ignore[override]
        return self.exponent - self.exponent // 2, self.exponent // 2

    @property
    def filler(self) -> Any:
        return self.loss.filler if self.moving else None

    @property
    def tile_bytes(self) -> int:  # type: ignore[override]
        return _tile_bytes(self.moving)

    def form(self, block: Any) -> Array:
        return block[0]

    def __call__(self, block: Array) -> tuple[Array, Array, Array]:
        with np.errstate(all="ignore"):
            a, b = self.loss.factors(self.w, block, row_product if self.moving else operator.matmul)
            xp = namespace(a)
            long, wide = (xp.sqrt(norm(x)) for x in (a, b))
            root = math.sqrt(self.clip)
            rows = a * safe_divide(wide, long * root)[:, None], b * safe_divide(long, wide * root)[:, None]
        return *rows, np.zeros(int(a.shape[0]), dtype=np.int64)


def _tile_bytes(moving: bool) -> int:
    """Tiles of one shape are filled up and cost as much as full ones: smaller ones where that is needed."""
    return 1 << (18 if moving else 20)


def contribution_at(
    loss: Loss, w: Any, *, clip: float, exponent: int, moving: bool
) -> GradientContribution | OuterGradient:
    """What records add to a step at w."""
    if isinstance(loss, OuterLoss):
        return OuterGradient(loss, w, clip, exponent, moving)
    return GradientContribution(loss, loss.at(w), loss.anchor(w), clip, exponent, moving)


def exponent_for(loss: Loss, count: int, noise: float, law: str) -> int:
    """m such that C is 2^m lattice steps, from public numbers: n, the noise of a sum in units of C, the dimension.

    As fine as 64-bit integers allow: the noise has at most 2⁵² steps (2⁵²/√d for the ℓ2-Laplace), n records 2⁶².
    """
    outer = isinstance(loss, OuterLoss)
    dim = math.prod(loss.shape) if isinstance(loss, OuterLoss) else loss.manifold.dim
    bits = (dim - 1).bit_length()
    finest = 2 * finest_factor_exponent(loss.shape[0]) if isinstance(loss, OuterLoss) else finest_exponent(dim)
    largest = 52 - math.log2(noise) - (bits / 2 if law == "laplace" else 0)
    exponent = min(finest, math.floor(largest - 1e-6), 61 - count.bit_length())
    if (exponent // 2 if outer else exponent) < _SPARE_BITS + bits / 2:
        raise ScaleOutOfRangeError(
            f"the noise of a step, {noise:.3g} times what a record adds, is too large for 64-bit integers in "
            f"{dim} dimensions with {count} records. Use fewer steps, a larger budget or larger batches."
        )
    return exponent


def _in_double(rows: Any) -> Array:
    return in_double(rows if has_doubles(rows) else to_numpy(rows))
