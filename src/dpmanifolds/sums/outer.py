"""Exact sums of outer products a bᵀ: two short integer vectors per record instead of the matrix they make.

>>> import numpy as np
>>> from dpmanifolds.records.source import source_of
>>> from dpmanifolds.sums.joint_moment import JointContribution
>>> square = JointContribution(dimension=2, radius=5.0, constant=0.0, exponent=10)
>>> total = sum_outer(source_of(None, np.array([[3.0, 4.0], [30.0, 40.0]])), square)
>>> total.integers  # (613, 817)ᵀ(613, 817) twice: 3/5 and 4/5 of 1024, less a hair
[751538, 1001642, 1001642, 1334978]

Each record gives two vectors of length at most 1, which become integers with |a|² ≤ 4^e, |b|² ≤ 4^f, each checked
exactly; so ‖a bᵀ‖ ≤ 2^{e+f} in exact integers, whatever floating point did. Neighbours that replace a record move
Σ a bᵀ by at most 2·2^{e+f}; where b = a by √2·4^e (Frobenius) and 2·4^e (nuclear), and by 4^e if a is one number
(docs/proofs/sums.md).

All integers are float64 numbers below 2⁵³, where sums and products are exact in any order: e and f are so small that
squares add up below it (`finest_factor_exponent`), and b is cut into pieces so small that the product Aᵀ B of a tile's
matrices does too.

A person with m records counts with (1/m)Σ a bᵀ = Σ (a/√m)(b/√m)ᵀ: vectors are divided by √m before they become
integers, and m|a|² ≤ 4^e, m|b|² ≤ 4^f is checked for every one of them. So Σ|a|² ≤ 4^e and Σ|b|² ≤ 4^f over a person,
hence ‖Σ a bᵀ‖ ≤ 2^{e+f}, and for b = a the trace of Σ a aᵀ ≤ 4^e: the bounds of one record hold for one person.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from dpmanifolds._arrays import Array, dot, namespace, norm, to_numpy
from dpmanifolds._points import count_records, cut_tile, leaves, on_host, taken
from dpmanifolds._validate import hide_records, real_numbers
from dpmanifolds.errors import ArgumentError
from dpmanifolds.records.persons import Persons
from dpmanifolds.records.source import Source
from dpmanifolds.sums.total import ExactSum, _stays, tile_size

_CHUNK = 4096
_EXACT_BITS = 53
_FINEST = 25


def finest_factor_exponent(dimension: int) -> int:
    """The largest e at which `dimension` squares of integers up to 2^e add up exactly in float64.

    25 at most: then the products of 4096 records add up below 2⁶³.

    >>> finest_factor_exponent(1), finest_factor_exponent(3), finest_factor_exponent(1000)
    (25, 25, 21)
    """
    return min(_FINEST, (_EXACT_BITS - (dimension - 1).bit_length()) // 2)


class OuterContribution(ABC):
    """A rule from one record to two vectors of length at most 1 (longer ones are shortened); it travels to others.

    `exponents` are e and f. What it gives a record is, bit for bit, a function of that record and of public values:
    where rows may be added or dropped (persons, add/remove) in any company and place, else for a fixed place.
    """

    shape: tuple[int, int]
    """Of a bᵀ."""
    exponents: tuple[int, int]
    tile_bytes: int = 1 << 20
    """How many bytes of records are worked on together."""
    fixed_rows: bool = False
    """Whether neighbours have as many rows, each in the same place."""

    @property
    def dim(self) -> int:
        """How many numbers a total has: the rows of the matrix, one after the other."""
        return self.shape[0] * self.shape[1]

    @property
    def bound(self) -> int:
        """No record's matrix of integers is longer than this."""
        return 1 << sum(self.exponents)

    @abstractmethod
    def __call__(self, block: Array) -> tuple[Array, Array, Array]:
        """Rows a (n, shape[0]) and b (n, shape[1]), float64, and the number of the rule that each record breaks.

        b may be the very same array as a. A record without such numbers has NaN or zeros, and raises nothing.
        """

    def form(self, block: Any) -> Array:
        """A block as it was read, in the form that the rule takes: shapes are checked, numbers are not."""
        return block

    @property
    def filler(self) -> Array | None:
        """A public record that fills up the last tile of a block; None where tiles may be short."""
        return None


@hide_records()
def sum_outer(
    source: Source, contribution: OuterContribution, persons: Persons | None = None, chosen: np.ndarray | None = None
) -> ExactSum:
    """One pass; the exact Σ a bᵀ, row by row as (dim,), over records, persons, or those of these numbers (ascending).

    Not private until noise is added.
    """
    if any(
        e > finest_factor_exponent(size) for e, size in zip(contribution.exponents, contribution.shape, strict=True)
    ):
        raise ArgumentError(f"exponents are at most {tuple(map(finest_factor_exponent, contribution.shape))} here.")
    if persons is not None or chosen is not None:
        source.locate()
    sizes = None
    if persons is not None:
        sizes = persons.sizes[persons.numbers]
        if chosen is not None:
            sizes = np.where(np.isin(persons.numbers, chosen), sizes, 0)
        count = persons.count if chosen is None else len(chosen)
        total = source.reduce(_Part(contribution, sizes, None), operator.add)
        return ExactSum(total.high, total.low, count, total.broken)
    whole: ExactSum = source.reduce(_Part(contribution, None, chosen), operator.add)
    return whole


@dataclass(frozen=True)
class _Part:
    """The sum of one block, where the block is."""

    contribution: OuterContribution
    sizes: np.ndarray | None
    """For persons: how many records the person of each record has, 0 where that one does not take part."""
    chosen: np.ndarray | None

    def __call__(self, _: int, first: int, block: Any) -> ExactSum:
        end = first + count_records(block)
        sizes = wanted = None
        if self.sizes is not None:
            wanted = np.flatnonzero(self.sizes[first:end])
            sizes = self.sizes[first:end][wanted]
        elif self.chosen is not None:
            wanted = self.chosen[slice(*np.searchsorted(self.chosen, [first, end]))] - first
        block = block if wanted is None else taken(block, wanted)
        total = ExactSum.of(np.zeros(self.contribution.dim, dtype=np.int64), 0, np.zeros(0, dtype=np.int64))
        for left, right, broken in factor_tiles(self.contribution, block, sizes):
            total = total + ExactSum.of(np.zeros_like(total.low), 0, broken)
            for product in exact_product(left, right, self.contribution.exponents):
                total = total + ExactSum.of(to_numpy(product).ravel(), 0, broken[:0])
        return ExactSum(total.high, total.low, end - first if wanted is None else len(wanted), total.broken)


def factor_tiles(
    contribution: OuterContribution, block: Any, sizes: np.ndarray | None
) -> Iterator[tuple[Array, Array, np.ndarray]]:
    """Integers (n, shape[0]) and (n, shape[1]) and broken rules, tile by tile."""
    block = block if contribution.fixed_rows and _stays(block) else on_host(block)
    parts = leaves(block)
    count, size = int(parts[0].shape[0]), tile_size(parts, contribution.tile_bytes)
    with np.errstate(all="ignore"):
        formed = contribution.form(block) if count else block
    for first in range(0, count, size):
        rows = min(size, count - first)
        many = None if sizes is None else sizes[first : first + rows]
        with np.errstate(all="ignore"):
            a, b, broken = contribution(cut_tile(formed, first, size, contribution.filler, in_rows=True))
            left = whole_rows(a[:rows, :], contribution.exponents[0], many)
            right = left if b is a else whole_rows(b[:rows, :], contribution.exponents[1], many)
        yield left, right, to_numpy(broken[:rows])


def whole_rows(rows: Array, exponent: int, sizes: np.ndarray | None = None) -> Array:
    """Integers in float64, one row for each row of length at most 1: |z|² ≤ 4^exponent, or 4^exponent/m for `sizes` m.

    Rows longer than 1 (1/√m) are shortened to a hair less, those that are not finite become 0. The check at the end is
    exact: where Σz² is computed as at most 4^exponent, no |z_i| exceeds 2^exponent, as rounding is monotone, so that no
    operation was rounded.

    >>> import numpy as np
    >>> whole_rows(np.array([[3.0, 4.0], [0.25, 0.0], [np.nan, 1.0]]), 4).tolist()
    [[9.0, 12.0], [4.0, 0.0], [0.0, 0.0]]
    """
    xp = namespace(rows)
    # Σz² of complex numbers is no squared length, and the real part of z zᵀ may be negative: twice as far away
    dim, root, most = int(real_numbers("rows", rows).shape[1]), 1.0, 4.0**exponent
    if sizes is not None:
        root, most = (
            xp.asarray(numbers, dtype=xp.float64, device=device(rows))
            for numbers in (np.sqrt(sizes), (1 << 2 * exponent) // sizes)
        )
    # L/√m with L = 1 − η − √(md) lattice steps: then neither rounding makes the check fail
    limit = 1 - (dim + 8) * 2.0**-52 - math.sqrt(dim) * 2.0**-exponent * root
    limit = (limit if sizes is None else xp.clip(limit, 0.0, 1.0)) / root
    length = norm(rows) / root
    factor = xp.where(length > limit, limit / length, 1.0) * 2.0**exponent / root
    whole = xp.round(rows * factor[:, None])
    fits = dot(whole, whole) <= most
    return xp.where(fits[:, None], whole, 0.0)


def exact_product(left: Array, right: Array, exponents: tuple[int, int]) -> Iterator[Array]:
    """Aᵀ B for integers A (n, D), B (n, p) in float64, |A| ≤ 2^e, |B| ≤ 2^f, as int64 matrices that add up to it.

    B = Σ_j B_j·2^{jk} with 0 ≤ B_j < 2^k but for the last, which has a sign: Aᵀ B_j has partial sums of at most
    n·2^e·2^k ≤ 2⁵³ and is exact in float64.

    >>> import numpy as np
    >>> a = np.array([[2.0**25], [1 - 2.0**25]])
    >>> (product,) = exact_product(a, a, (25, 25))
    >>> int(product[0, 0]) == 2**50 + (2**25 - 1) ** 2
    True
    """
    xp = namespace(left)
    for first in range(0, int(left.shape[0]), _CHUNK):
        a, b = (whole[first : min(first + _CHUNK, int(whole.shape[0])), :] for whole in (left, right))
        bits = _EXACT_BITS - exponents[0] - (int(a.shape[0]) - 1).bit_length()
        pieces = []
        for _ in range(math.ceil(exponents[1] / bits) - 1):
            high = xp.floor(b * 2.0**-bits)
            pieces.append(b - high * 2.0**bits)
            b = high
        pieces.append(b)
        stacked = xp.concat(pieces, axis=1) if len(pieces) > 1 else b
        product = xp.astype(xp.permute_dims(a, (1, 0)) @ stacked, xp.int64)
        width = int(right.shape[1])
        total = product[:, (len(pieces) - 1) * width :]
        for j in range(len(pieces) - 2, -1, -1):
            total = total * (1 << bits) + product[:, j * width : (j + 1) * width]
        yield total
