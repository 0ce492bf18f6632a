"""One private step: the gradient of each record as integers inside of a ball of radius C, their exact sum, and noise.

>>> import numpy as np
>>> from dpmanifolds import Ball, Euclidean
>>> from dpmanifolds.descent.losses import FrechetMeanLoss
>>> loss = FrechetMeanLoss(Ball(Euclidean(2), [0.0, 0.0], 10.0))
>>> pull = contribution_at(loss, np.zeros(2), clip_norm=5.0, exponent=4, moving=False)
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
from fractions import Fraction
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, has_doubles, like, namespace, norm, safe_divide, to_numpy
from dpmanifolds._points import count_records, in_double, records_at
from dpmanifolds.descent.losses.loss import Loss, OuterLoss, row_product
from dpmanifolds.descent.noise_plan import DescentPlan
from dpmanifolds.descent.records import HeldRecords
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.privacy.rounding import float_above
from dpmanifolds.sums.contribution import Contribution
from dpmanifolds.sums.noisy import NoiseSource
from dpmanifolds.sums.outer import OuterContribution, finest_factor_exponent
from dpmanifolds.sums.rounding import ball_integers, finest_exponent
from dpmanifolds.sums.total import ExactSum

_SPARE_BITS = 10


@dataclass(frozen=True, eq=False)
class _OfLoss:
    """What both kinds of contribution take from their loss."""

    loss: Loss
    clip_norm: float
    exponent: int
    """`clip_norm` is 2^exponent lattice steps."""
    moving: bool

    @property
    def filler(self) -> Any:
        return self.loss.filler if self.moving else None

    @property
    def fixed_rows(self) -> bool:
        return not self.moving

    @property
    def tile_bytes(self) -> int:
        """Tiles of one shape are filled up and cost as much as full ones: smaller ones where that is needed."""
        return 1 << (18 if self.moving else 20)

    def form(self, block: Any) -> Array:
        """Blocks come prepared, with the rules they break beside them."""
        return block[0]


@dataclass(frozen=True, eq=False)
class GradientContribution(_OfLoss, Contribution):  # type: ignore[override]
    """grad f(w, x) − a(w), shortened to `clip_norm`."""

    rule: Callable[[Array], Array]
    """`loss.at(w)`."""
    anchor: np.ndarray | None

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.loss.manifold.dim

    def __call__(self, block: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            rows = self._rows(block)
            if self.anchor is not None:
                rows = rows - like(self.anchor, rows)
            whole = ball_integers(rows, self.exponent, radius=self.clip_norm)
        xp = namespace(whole)
        return whole, xp.zeros_like(whole[0, :])

    def _rows(self, block: Array) -> Array:
        if not self.moving or self.loss.any_company:
            return _in_double(self.rule(block))
        alone = (records_at(block, slice(i, i + 1)) for i in range(count_records(block)))
        rows = [_in_double(self.rule(record)) for record in alone]
        return namespace(*rows).concat(rows, axis=0)


@dataclass(frozen=True, eq=False)
class OuterGradient(_OfLoss, OuterContribution):  # type: ignore[override]
    """a bᵀ/C as the product of two vectors of the same length √(|a||b|/C), each shortened to 1."""

    loss: OuterLoss
    w: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.loss.shape

    @property
    def exponents(self) -> tuple[int, int]:  # type: ignore[override]
        return self.exponent - self.exponent // 2, self.exponent // 2

    def __call__(self, block: Array) -> tuple[Array, Array, Array]:
        with np.errstate(all="ignore"):
            a, b = self.loss.factors(self.w, block, row_product if self.moving else operator.matmul)
            xp = namespace(a)
            long, wide = (xp.sqrt(norm(x)) for x in (a, b))
            root = math.sqrt(self.clip_norm)
            rows = a * safe_divide(wide, long * root)[:, None], b * safe_divide(long, wide * root)[:, None]
        return *rows, np.zeros(int(a.shape[0]), dtype=np.int64)


def contribution_at(
    loss: Loss, w: Any, *, clip_norm: float, exponent: int, moving: bool
) -> GradientContribution | OuterGradient:
    """What records add to a step at w."""
    if isinstance(loss, OuterLoss):
        return OuterGradient(loss, clip_norm, exponent, moving, w)
    return GradientContribution(loss, clip_norm, exponent, moving, loss.at(w), loss.anchor(w))


def exponent_for(loss: Loss, count: int, sigma: float, law: str) -> int:
    """m such that C is 2^m lattice steps, from public numbers: n, the noise of a sum in units of C, the dimension.

    As fine as 64-bit integers allow: the noise has at most 2⁵² steps (2⁵²/√d for the ℓ2-Laplace), n records 2⁶².
    """
    if isinstance(loss, OuterLoss):
        dim, finest, factors = math.prod(loss.shape), 2 * finest_factor_exponent(loss.shape[0]), 2
    else:
        dim, finest, factors = loss.manifold.dim, finest_exponent(loss.manifold.dim), 1
    bits = (dim - 1).bit_length()
    largest = 52 - math.log2(sigma) - (bits / 2 if law == "laplace" else 0)
    exponent = min(finest, math.floor(largest - 1e-6), 61 - count.bit_length())
    if exponent // factors < _SPARE_BITS + bits / 2:
        raise ScaleOutOfRangeError(
            f"the noise of a step, {sigma:.3g} times what a record adds, is too large for 64-bit integers in "
            f"{dim} dimensions with {count} records. Use fewer steps, a larger budget or larger batches."
        )
    return exponent


@dataclass(frozen=True)
class NoisyGradient:
    """Σ(clipped gradients)/divisor + noise + anchor, as coordinates at the public w."""

    loss: Loss
    records: HeldRecords
    plan: DescentPlan
    noise: NoiseSource
    clip_norm: float | None = None
    """To what gradients are shortened, where the noise follows: σ of the plan is for its own clip norm."""

    @property
    def length(self) -> float:
        return self.plan.clip_norm if self.clip_norm is None else self.clip_norm

    @property
    def exponent(self) -> int:
        """C is 2^exponent lattice steps."""
        return exponent_for(self.loss, self.plan.n, float(self._noise_of_sum), self.plan.law)

    @property
    def sigma_steps(self) -> float:
        """The noise of the sum in lattice steps, no less than what the plan promises: σ·divisor·2^exponent/C."""
        return float_above(self._noise_of_sum * (1 << self.exponent))

    @property
    def _noise_of_sum(self) -> Fraction:
        """In units of what one record adds, C."""
        return Fraction(self.plan.sigma) * self.plan.exact_divisor / Fraction(self.plan.clip_norm)

    def rule(self, w: Any) -> GradientContribution | OuterGradient:
        """What a record adds at w; in any company where a neighbour may have more or fewer rows, or other places.

        So it is in random batches: with a record in it a batch has one row more than without, or another one.
        """
        fixed = self.plan.batch_size is None and self.records.persons is None
        moving = not fixed or self.plan.adjacency != "replace-one"
        return contribution_at(self.loss, w, clip_norm=self.length, exponent=self.exponent, moving=moving)

    def total(self, w: Any) -> ExactSum:
        """The integers of one batch, summed exactly. Not private."""
        return self.records.total(self.rule(w), self.plan.draw_batch(self.records.count, self.noise))

    def private(self, w: Any, total: ExactSum) -> np.ndarray:
        """The noisy gradient at w: the sum of integers and rounded noise, then functions of it alone."""
        return self.read(w, self.noise.add_to(total, self.plan.law, self.sigma_steps))

    def read(self, w: Any, noisy: np.ndarray) -> np.ndarray:
        """The gradient that noisy integers stand for."""
        mean = np.asarray(noisy * (self.length / 2.0**self.exponent) / self.plan.divisor)
        if isinstance(self.loss, OuterLoss):
            return self.loss.coordinates(w, mean.reshape(self.loss.shape))
        anchor = self.loss.anchor(w)
        return mean if anchor is None else mean + anchor


def _in_double(rows: Any) -> Array:
    return in_double(rows if has_doubles(rows) else to_numpy(rows))
