"""Statistics of permutation tests: exact integers for every permutation.

>>> import dpmanifolds as dpm
>>> from dpmanifolds.sums.features import kernel_of
>>> line = dpm.Ball(dpm.Euclidean(1), [0.0], radius=1.0)
>>> statistic = TwoSampleStatistic(kernel_of(line, "linear"), sizes=(50, 100))
>>> round(statistic.sensitivity / statistic.unit * 50, 4)  # √2/min(n, m) in units of mean features
1.4142
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._points import count_records
from dpmanifolds._validate import hide_records
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import as_generator
from dpmanifolds.records.persons import Persons
from dpmanifolds.sums.contribution import Contribution
from dpmanifolds.sums.features import Kernel
from dpmanifolds.sums.mechanism import root_up
from dpmanifolds.sums.rounding import finest_exponent
from dpmanifolds.sums.total import RecordSums, divide_towards_zero, integers_of

_EXACT_BITS, _ROOM_BITS = 52, 61
_LIMB = 21
_MOST_ADDED = 1 << 20
_MOST_RULES = 8
_LEAST_EXPONENT = 8
_LARGEST_TABLE = 1 << 30


@dataclass(frozen=True, eq=False)
class TwoSampleStatistic:
    """‖mean of the features of one group − that of the other‖, in lattice steps, for many cuts into groups.

    With g = gcd(n, m), V = (m/g)·S_A − (n/g)·S_B is an integer vector, and T = ⌊‖V‖⌋, the largest over the parts of the
    kernel. A replaced record moves V by at most max(n, m)/g times the distance of two feature vectors, √2·R, and T by
    no more than the next integer.
    """

    kernel: Kernel
    sizes: tuple[int, int]

    @property
    def _weights(self) -> tuple[int, int]:
        """n/g and m/g."""
        common = math.gcd(*self.sizes)
        return self.sizes[0] // common, self.sizes[1] // common

    @property
    def exponent(self) -> int:
        """Of the finest lattice on which all sums are exact and the noise fits."""
        (first, second), count = self._weights, sum(self.sizes)
        room = _ROOM_BITS - 1 - (count * max(first, second)).bit_length()
        return _checked_exponent(self.kernel.finest_exponent, _EXACT_BITS - count.bit_length(), room)

    @property
    def sensitivity(self) -> int:
        """⌈√2·R·max(n, m)/g⌉, over all permutations."""
        return root_up(2 * (max(self._weights) << self.exponent) ** 2)

    @property
    def own_sensitivity(self) -> int:
        """The same: no cut is special."""
        return self.sensitivity

    @property
    def unit(self) -> float:
        """How many steps are a distance of 1 between the two mean features."""
        return float(math.lcm(*self.sizes)) * 2.0**self.exponent

    def values(self, sums: np.ndarray) -> list[int]:
        """T for each row of the permuted sums of the first group (P + 1, dim), int64; the last row: of all records."""
        first, second = self._weights
        differences = (first + second) * sums[:-1] - first * sums[-1]
        return _longest_parts(differences, self.kernel.sizes)


@dataclass(frozen=True, eq=False)
class IndependenceStatistic:
    """‖covariance of the features of records with those of their partners‖, in lattice steps, for many pairings.

    n²·C = n·Σz⊗w − Σz⊗Σw is an integer matrix, and T = ⌊‖n²·C‖⌋, the largest over the parts of the kernel. Replacing a
    record and its partner moves C by at most 2(n − 1)/n² times the diameters √2·R, √2·R' of both bodies.
    """

    kernel: Kernel
    partner_features: int
    n: int

    @property
    def _bits(self) -> int:
        """Of both lattices together, so that all sums and products are exact."""
        length = self.n.bit_length()
        return min(_ROOM_BITS - 1 - 2 * length, _EXACT_BITS - length)

    @property
    def exponent(self) -> int:
        """Of the lattice of records."""
        return _checked_exponent(self.kernel.finest_exponent, self._bits // 2)

    @property
    def partner_exponent(self) -> int:
        """Of the lattice of partners."""
        return _checked_exponent(finest_exponent(2 * self.partner_features), self._bits // 2)

    @property
    def sensitivity(self) -> int:
        """4(n − 1)·R·R', over all permutations."""
        return 4 * (self.n - 1) << (self.exponent + self.partner_exponent)

    @property
    def own_sensitivity(self) -> int:
        """⌈√6(n − 1)·R·R'⌉: a pair that stays together moves less than one that is torn apart."""
        return root_up(6 * ((self.n - 1) << (self.exponent + self.partner_exponent)) ** 2)

    @property
    def unit(self) -> float:
        """How many steps are a covariance of norm 1."""
        return float(self.n**2) * 2.0 ** (self.exponent + self.partner_exponent)

    def values(self, products: np.ndarray, records: np.ndarray, partners: np.ndarray) -> list[int]:
        """T for each of Σz⊗w (P, dim, dim'), with the sums of all z (dim,) and of all w (dim',); int64."""
        centred = self.n * products - np.multiply.outer(records, partners)
        sizes = [size * self.partner_features for size in self.kernel.sizes]
        return _longest_parts(centred.reshape(len(centred), -1), sizes)


def draw_pairings(n: int, permutations: int, rng: Any = None) -> np.ndarray:
    """Whose partner each of n records has (P + 1, n): its own, and those of random permutations."""
    _check_table(n, permutations)
    generator = as_generator(rng)
    return np.stack([np.arange(n), *(generator.permutation(n) for _ in range(permutations))])


@hide_records()
def paired_sums(
    records: RecordSums, contribution: Contribution, partners: np.ndarray, pairings: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σz⊗w over all terms for each pairing (P, dim, dim'), Σz, and which rules were broken; w (dim', n) are integers.

    Matrix products in double precision, of integers whose sums stay below 2⁵³: exact.
    """
    part = _PairedPart(contribution, partners.astype(np.float64), pairings, records.known_count)
    if records.persons is not None:
        whole, broken = term_integers(records, contribution)
        return *part.of(0, whole), broken
    total: _Products = records.source.reduce(part, _add_products)
    return total.products, total.sums, total.broken


@dataclass(frozen=True)
class _Products:
    products: np.ndarray
    sums: np.ndarray
    broken: np.ndarray


@dataclass(frozen=True)
class _PairedPart:
    contribution: Contribution
    partners: np.ndarray
    pairings: np.ndarray
    terms: int | None

    def __call__(self, _: int, first: int, block: Any) -> _Products:
        whole, broken = integers_of(self.contribution, block, self.terms)
        return _Products(*self.of(first, whole), np.bincount(broken, minlength=_MOST_RULES))

    def of(self, first: int, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(first, first + whole.shape[1])
        numbers = whole.astype(np.float64)
        products = [numbers @ self.partners[:, pairing[rows]].T for pairing in self.pairings]
        return np.rint(np.stack(products)).astype(np.int64), whole.sum(axis=1)


def _add_products(a: _Products, b: _Products) -> _Products:
    return _Products(a.products + b.products, a.sums + b.sums, a.broken + b.broken)


def _check_table(count: int, permutations: int) -> None:
    most = _LARGEST_TABLE // count
    if permutations >= most:
        raise ArgumentError(
            f"must be below {most:,} for {count:,} records: more do not fit memory, and hardly sharpen the answer; got "
            f"{permutations:,}.",
            argument="permutations",
        )


def draw_seed(rng: Any = None) -> int:
    """A seed for who is put where, which knows nothing of the records."""
    return int(as_generator(rng).integers(1 << 62))


def draw_groups(sizes: tuple[int, int], permutations: int, rng: Any = None) -> np.ndarray:
    """Who is in the first group (P + 2, n + m) uint8: as it is, under random permutations, and everybody."""
    generator, count = as_generator(rng), sum(sizes)
    _check_table(count, permutations)
    chosen = np.zeros((permutations + 2, count), dtype=np.uint8)
    chosen[0, : sizes[0]] = 1
    for row in chosen[1:-1]:
        row[generator.permutation(count)[: sizes[0]]] = 1
    chosen[-1] = 1
    return chosen


@hide_records()
def chosen_sums(records: RecordSums, contribution: Contribution, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ of the integers of the chosen terms, for each row of `chosen`: int64, exact; and which rules were broken.

    A matrix product in double precision: all terms, and all sums of some of them, are integers below 2⁵³.
    """
    if records.persons is not None:
        whole, broken = term_integers(records, contribution)
        return _exact_product(chosen, whole), broken
    total: _Sums = records.source.reduce(_ChosenPart(contribution, chosen, records.known_count), _add_sums)
    return total.sums, total.broken


@hide_records()
def term_integers(records: RecordSums, contribution: Contribution) -> tuple[np.ndarray, np.ndarray]:
    """The integers (dim, terms) of every record, or the averages of every person's, and which rules were broken."""
    parts: _Parts = records.source.reduce(_IntegersPart(contribution, records.known_count), _add_parts)
    whole = np.concatenate(parts.whole, axis=1)
    if records.persons is not None:
        whole = average_persons(whole, records.persons)
        whole = whole * np.asarray(contribution.fits(whole))
    return whole, parts.broken


def average_persons(whole: np.ndarray, persons: Persons) -> np.ndarray:
    """The mean (dim, persons) of the integers of each person's records, towards zero, so that it stays in the body."""
    sums = np.add.reduceat(whole[:, persons.order], persons.starts[:-1], axis=1)
    return divide_towards_zero(sums, persons.sizes)


@dataclass(frozen=True)
class _Sums:
    sums: np.ndarray
    broken: np.ndarray


@dataclass(frozen=True)
class _ChosenPart:
    contribution: Contribution
    chosen: np.ndarray
    terms: int | None

    def __call__(self, _: int, first: int, block: Any) -> _Sums:
        whole, broken = integers_of(self.contribution, block, self.terms)
        rows = self.chosen[:, first : first + count_records(block)]
        return _Sums(_exact_product(rows, whole), np.bincount(broken, minlength=_MOST_RULES))


def _add_sums(a: _Sums, b: _Sums) -> _Sums:
    return _Sums(a.sums + b.sums, a.broken + b.broken)


@dataclass(frozen=True)
class _Parts:
    whole: list[np.ndarray]
    broken: np.ndarray


@dataclass(frozen=True)
class _IntegersPart:
    contribution: Contribution
    terms: int | None

    def __call__(self, _: int, first: int, block: Any) -> _Parts:
        whole, broken = integers_of(self.contribution, block, self.terms)
        return _Parts([whole], np.bincount(broken, minlength=_MOST_RULES))


def _add_parts(a: _Parts, b: _Parts) -> _Parts:
    return _Parts(a.whole + b.whole, a.broken + b.broken)


def _exact_product(chosen: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """chosen (P, n) times the integers (dim, n): int64 (P, dim), where n·max|z| ≤ 2⁵³."""
    return np.rint(chosen.astype(np.float64) @ whole.T.astype(np.float64)).astype(np.int64)


def _checked_exponent(*most: int) -> int:
    exponent = min(most)
    if exponent < _LEAST_EXPONENT:
        raise ArgumentError("so many records do not fit 64-bit integers: take a sample of them.")
    return exponent


def _longest_parts(vectors: np.ndarray, sizes: Sequence[int]) -> list[int]:
    """⌊√Σv²⌋ of each row, the largest over its parts; exact."""
    if max(sizes) == 1:
        return [int(one) for one in np.max(np.abs(vectors), axis=1)]
    longest, start = [0] * len(vectors), 0
    for size in sizes:
        squares = squared_lengths(vectors[:, start : start + size])
        longest = [max(one, math.isqrt(square)) for one, square in zip(longest, squares, strict=True)]
        start += size
    return longest


def squared_lengths(vectors: np.ndarray) -> list[int]:
    """Σv² of each row of int64, |v| < 2⁶², in exact integers: three limbs of 21 bits each.

    Products of two limbs are below 2⁴²: so many are added up at once that their sum stays below 2⁶³.

    >>> import numpy as np
    >>> squared_lengths(np.array([[2**61, -3], [1, 2]]))  # 2**122 + 9 and 5
    [5316911983139663491615228241121378313, 5]
    """
    totals = [0] * len(vectors)
    for start in range(0, vectors.shape[1], _MOST_ADDED):
        parts = _squared_lengths(vectors[:, start : start + _MOST_ADDED])
        totals = [total + part for total, part in zip(totals, parts, strict=True)]
    return totals


def _squared_lengths(vectors: np.ndarray) -> list[int]:
    mask = (1 << _LIMB) - 1
    limbs = (vectors & mask, (vectors >> _LIMB) & mask, vectors >> (2 * _LIMB))
    totals = [0] * len(vectors)
    for i, low in enumerate(limbs):
        for j, high in enumerate(limbs[i:], start=i):
            products = np.einsum("pd,pd->p", low, high).tolist()
            factor = (1 if i == j else 2) << (_LIMB * (i + j))
            totals = [total + factor * product for total, product in zip(totals, products, strict=True)]
    return totals
