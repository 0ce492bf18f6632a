"""Continuous noise rounded to whole lattice steps, with no error at all in its law.

>>> from dpmanifolds.noise.exact import RoundedGaussian
>>> gaussian = RoundedGaussian(dim=3, sigma=2**30)
>>> released = gaussian.release([10, -20, 30])  # in steps of a public lattice
>>> released.shape, released.dtype.name
((3,), 'int64')
>>> round(gaussian.mu(l2_steps=2**30), 12)
1.0

A real random vector y is a function of uniform real numbers, of which only the first bits are known. Integer
arithmetic encloses y in a box; when the box does not fit into one cell of the lattice, more bits are revealed.
So what is returned is round(y) for the real vector y: given ideal bits its law is that of the rounded continuous
law, in the tails too (docs/proofs/numerics.md, theorems 1 and 2).

Random bits are revealed as they are needed. Vectors of many coordinates are decided by floating point first, with a
proven bound on its error; integers decide the few that lie too near to the border of a cell. The outcome is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise.enclosures import enclosed_in_disc, enclosed_sizes, minus_log, minus_log_between
from dpmanifolds.noise.generators import as_generator

Tape: TypeAlias = Callable[[int], int]
"""tape(n): the next n bits of one endless string of fair bits, as an integer below 2^n."""

_BUFFER = 4096


class BitStream:
    """Fair bits from a generator, in whole bytes; every bit is handed out once."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._bytes = b""
        self._next = 0

    def take(self, bits: int) -> int:
        """An integer uniform on 0, …, 2^bits − 1."""
        count = -(-bits // 8)
        start, stop = self._next, self._next + count
        if stop > len(self._bytes):
            self._bytes = self._generator.bytes(max(_BUFFER, count))
            start, stop = 0, count
        self._next = stop
        return int.from_bytes(self._bytes[start:stop]) >> (8 * count - bits)

    def numbers(self, count: int) -> np.ndarray:
        """So many integers of 128 bits, as `take` gives them, in halves of 64 bits (count, 2), the high one first."""
        held = min(count, (len(self._bytes) - self._next) // 16)
        found = self._bytes[self._next : self._next + 16 * held]
        self._next += 16 * held
        if held < count:
            self._bytes = self._generator.bytes(-(-16 * (count - held) // _BUFFER) * _BUFFER)
            self._next = 16 * (count - held)
            found += self._bytes[: self._next]
        return np.frombuffer(found, dtype=">u8").reshape(count, 2)

    def below(self, limit: int) -> int:
        """An integer uniform on 0, …, limit − 1 (by rejection, so without bias)."""
        bits = (limit - 1).bit_length()
        while True:
            number = self.take(bits)
            if number < limit:
                return number

    def tape(self) -> Tape:
        """The bits of one more independent real number uniform on (0, 1)."""
        return self.take


Scale: TypeAlias = float | Fraction
"""Any rational number; a float is the binary fraction that it is."""

_START_BITS = 128
_MANY = 64
_FACTORS = 8
_GUARD_BITS = 32
_LARGEST_SCALE = 2**52
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class _RoundedNoise:
    """values + round(y) = round(values + y), in lattice steps; sums beyond int64 are set to the nearest int64."""

    dim: int
    sigma: Scale
    """In steps: at most 2^52 (the Laplace: sigma·√dim), taken as the exact rational that it is."""
    radial: ClassVar[bool] = False
    """Whether the law is the ℓ2-Laplace, and not the Gaussian."""

    def __post_init__(self) -> None:
        dim = positive_integer("dim", self.dim)
        exact_sigma(self.sigma, _LARGEST_SCALE / math.sqrt(dim) if self.radial else _LARGEST_SCALE)

    def release(self, values: Any, rng: Any = None) -> np.ndarray:
        """The integers `values` (dim,) plus noise, as int64 (dim,)."""
        steps = whole_steps(values, self.dim)
        source = BitStream(as_generator(rng))
        return saturated_sum(steps, draw_rounded(steps.size, rational(self.sigma), source, radial=self.radial))


class RoundedGaussian(_RoundedNoise):
    """values + round(y) = round(values + y), y ~ N(0, scale²·I): post-processing of the Gaussian mechanism.

    So it is exactly μ-GDP with μ = (ℓ2 sensitivity of the integer values)/sigma (docs/proofs/numerics.md, theorem 1).
    Sums beyond int64 are set to the nearest int64, which is post-processing too.

    >>> from dpmanifolds.noise.exact import RoundedGaussian
    >>> RoundedGaussian(dim=2, sigma=4.0).mu(l2_steps=2.0)
    0.5000000000000001
    """

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim), up to a constant."""
        return np.asarray(-np.sum(np.square(offsets / float(self.sigma)), axis=-1) / 2)

    def mu(self, l2_steps: float) -> float:
        """An upper bound, tight to rounding, of the μ at which values that move by up to `l2_steps` are released."""
        return ratio_up("l2_steps", l2_steps, self.sigma)


class RoundedLaplace(_RoundedNoise):
    """values + round(y) = round(values + y), y of density ∝ exp(−|y|₂/sigma): post-processing of the ℓ2-Laplace.

    So it is exactly ε-DP with ε = (ℓ2 sensitivity of the integer values)/sigma (docs/proofs/numerics.md, theorem 1).
    Sums beyond int64 are set to the nearest int64, which is post-processing too.

    >>> from dpmanifolds.noise.exact import RoundedLaplace
    >>> RoundedLaplace(dim=2, sigma=4.0).epsilon(l2_steps=2.0)
    0.5000000000000001
    """

    radial: ClassVar[bool] = True

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim), up to a constant."""
        return np.asarray(-np.linalg.norm(offsets / float(self.sigma), axis=-1))

    def epsilon(self, l2_steps: float) -> float:
        """An upper bound, tight to rounding, of the ε at which values that move by up to `l2_steps` are released."""
        return ratio_up("l2_steps", l2_steps, self.sigma)


def exact_sigma(sigma: Any, largest: float) -> Fraction:
    """`sigma` as the rational number that it is, if it lies in (0, largest]."""
    try:
        exact = rational(sigma)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"sigma must be a finite number of lattice steps above 0; got {sigma!r}.") from None
    if not 0 < exact <= largest:
        raise ArgumentError(
            f"sigma must be above 0 and at most {largest:.6g} lattice steps, so that the noise fits 64-bit integers; "
            f"got {sigma!r}. Take a coarser lattice."
        )
    return exact


def whole_steps(values: Any, dim: int) -> np.ndarray:
    """`values` as int64 (dim,); floats are refused, because rounding belongs to whoever knows the lattice."""
    steps = np.asarray(values)
    if steps.dtype.kind not in "iu" or not np.can_cast(steps.dtype, np.int64):
        raise ArgumentError(
            f"values must be whole numbers of lattice steps (int64); got an array of dtype {steps.dtype}. "
            "Round them to the public lattice first."
        )
    if steps.shape != (dim,):
        raise ArgumentError(f"values must have shape ({dim},); got {steps.shape}.")
    return steps.astype(np.int64)


def saturated_sum(steps: np.ndarray, noise: list[int]) -> np.ndarray:
    """steps + noise as int64, the nearest int64 where the sum of the integers is beyond."""
    return to_int64(steps.astype(object) + np.array(noise, dtype=object))


def to_int64(integers: Any) -> np.ndarray:
    """Integers of any size as int64, the nearest int64 for those beyond."""
    held = np.asarray(integers, dtype=object)
    return np.asarray(np.minimum(np.maximum(held, int(_INT64.min)), int(_INT64.max)).astype(np.int64))


def rational(number: Scale) -> Fraction:
    """The rational number that it is, of Python's own integers."""
    exact = Fraction(number)
    # NumPy integers pass through Fraction as they are, and would wrap around when squared
    return Fraction(int(exact.numerator), int(exact.denominator))


def ratio_up(name: str, steps: Scale, sigma: Scale) -> float:
    """steps/sigma as a float above it, tight to rounding; an error names the argument."""
    if not 0 <= steps < math.inf:
        raise ArgumentError(f"must be finite and at least 0; got {steps!r}.", argument=name)
    ratio = rational(steps) / rational(sigma)
    # float(Fraction) is the nearest float, so the next one is above the ratio
    return math.nextafter(float(ratio), math.inf) if ratio else 0.0


def draw_rounded(
    dim: int, sigma: Fraction, source: BitStream, *, radial: bool, bits: int = _START_BITS, halved: int = 0
) -> list[int]:
    """round(sigma·x) for x ~ N(0, I), or round(sigma·|h|·x) with h ~ N(0, I) on R^(dim+1) when `radial`.

    The second is the ℓ2-Laplace law (docs/proofs/numerics.md, lemma 1). The last `halved` numbers are divided by √2
    before they are rounded. The integers do not depend on `bits`, only the number of times that more bits are asked for
    does.
    """
    signs = f"{source.take(dim):0{dim}b}"
    count = (dim + 1) // 2
    many = _Pairs(count, source) if bits == _START_BITS and count >= _MANY else None
    open_pairs = {} if many else {index: NormalPair(source, bits) for index in range(count)}
    radius = _ChiSquare(dim + 1, source, bits) if radial else None
    numerator, denominator = sigma.numerator**2, sigma.denominator**2
    sizes = [[0] * count, [0] * count]
    while open_pairs or many:
        precision = bits + _GUARD_BITS
        low = high = numerator
        unit = denominator
        if radius is not None:
            radius_low, radius_high = radius.bounds(bits, precision)
            low, high, unit = low * radius_low, high * radius_high, unit << precision
        if many:
            sizes, open_pairs, many = *many.rounded(low, high, unit, dim - halved), None
        for index, pair in list(open_pairs.items()):
            units = (unit << (2 * index >= dim - halved), unit << (2 * index + 1 >= dim - halved))
            found = pair.rounded(bits, precision, low, high, units)
            if found is not None:
                sizes[0][index], sizes[1][index] = found
                del open_pairs[index]
        bits *= 2
    flat = [size for pair in zip(*sizes, strict=True) for size in pair]
    return [-size if sign == "1" else size for sign, size in zip(signs, flat, strict=False)]


class _Pairs:
    """Many pairs as `NormalPair` draws them one after the other, from the same bits, of which 53 are looked at."""

    def __init__(self, count: int, source: BitStream) -> None:
        self._source = source
        self._near: dict[int, NormalPair] = {}
        kept, missing = [], count
        while missing:
            drawn = source.numbers(2 * missing).reshape(missing, 4)
            inside, proven = enclosed_in_disc(*_first_bits(drawn))
            for row in np.flatnonzero(~proven).tolist():
                pair = self._known(drawn[row])
                inside[row] = pair.is_inside()
                if inside[row]:
                    self._near[count - missing + int(np.count_nonzero(inside[:row]))] = pair
            kept.append(drawn[inside])
            missing -= len(kept[-1])
        self._halves = np.concatenate(kept)

    def _known(self, halves: np.ndarray) -> NormalPair:
        u, u_rest, v, v_rest = halves.tolist()
        return NormalPair(self._source, _START_BITS, (u << 64 | u_rest, v << 64 | v_rest))

    def rounded(self, low: int, high: int, unit: int, whole: int) -> tuple[list[list[int]], dict[int, NormalPair]]:
        """√c times sizes, from `whole` on /√2, rounded, for c in [low, high]/unit; and the pairs that are left open."""
        # the root of an integer of at least 2^106, as a float: off by less than 2^-51 of it, unless it is so small that
        # every size is 0
        shift = max(0, (108 + unit.bit_length() - low.bit_length()) // 2)
        root = math.ldexp(math.isqrt((low << 2 * shift) // unit), -shift)
        at = np.arange(len(self._halves))
        scales = [np.where(2 * at + part >= whole, root * math.sqrt(0.5), root) for part in (0, 1)]
        unsure = 2.0**-50 + 2 * float(Fraction(high - low, low))
        sizes, proven = enclosed_sizes(*_first_bits(self._halves), (scales[0], scales[1]), unsure)
        undecided = np.flatnonzero(~proven.all(axis=0)).tolist()
        return sizes.tolist(), {row: self._near.get(row) or self._known(self._halves[row]) for row in undecided}


def _first_bits(halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two numbers of each row as floats of their first 53 bits."""
    return (halves[:, 0] >> np.uint64(11)) * 2.0**-53, (halves[:, 2] >> np.uint64(11)) * 2.0**-53


class _Uniform:
    """A real number uniform on (0, 1), known to lie in [value, value + 1]/2^bits with value ≥ 1."""

    __slots__ = ("_tape", "bits", "value")

    def __init__(self, source: BitStream, bits: int, known: int | None = None) -> None:
        self._tape: Tape = source.tape()
        self.value, self.bits = self._tape(bits) if known is None else known, bits
        while not self.value:
            self.reveal(2 * self.bits)

    def reveal(self, bits: int) -> None:
        """Know at least `bits` bits; those known already stay."""
        if bits > self.bits:
            self.value = (self.value << (bits - self.bits)) | self._tape(bits - self.bits)
            self.bits = bits


class NormalPair:
    """The sizes |x|, |z| of two independent standard normal numbers, by Marsaglia's polar method.

    (u, v) is uniform on the quarter of the unit disc with u, v > 0, s = u² + v², and |x| = u·√(−2 ln s/s),
    |z| = v·√(−2 ln s/s). u and v are known to lie in [U, U + 1]/2^bits and [V, V + 1]/2^bits.
    """

    __slots__ = ("_first", "_second")

    def __init__(self, source: BitStream, bits: int, known: tuple[int, int] | None = None) -> None:
        if known is not None:
            self._first, self._second = (_Uniform(source, bits, value) for value in known)
            return
        while True:
            self._first, self._second = _Uniform(source, bits), _Uniform(source, bits)
            if self.is_inside():
                return

    def is_inside(self) -> bool:
        """Whether the point lies in the disc; as many bits are revealed as that needs."""
        first, second = self._first, self._second
        while True:
            bits = max(first.bits, second.bits)
            first.reveal(bits)
            second.reveal(bits)
            one = 1 << (2 * bits)
            if (first.value + 1) ** 2 + (second.value + 1) ** 2 <= one:
                return True
            if first.value**2 + second.value**2 >= one:
                return False
            first.reveal(2 * bits)

    def rounded(self, bits: int, precision: int, low: int, high: int, units: tuple[int, int]) -> tuple[int, int] | None:
        """√c·|x| and √c·|z| rounded, each if it is the same for every c in [low, high] over its unit; else None."""
        rounded = []
        for ((bottom, below), (top, above)), unit in zip(self.squares(bits, precision), units, strict=True):
            size = _nearest_root(bottom * low, below * unit)
            if size != _nearest_root(top * high, above * unit):
                return None
            rounded.append(size)
        return rounded[0], rounded[1]

    def squares(self, bits: int, precision: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Lower and upper bounds of x² and of z², each as (numerator, denominator)."""
        bits = max(bits, self._first.bits, self._second.bits)
        self._first.reveal(bits)
        self._second.reveal(bits)
        u, v = self._first.value, self._second.value
        inner, outer = u * u + v * v, (u + 1) ** 2 + (v + 1) ** 2
        log_low, log_high = minus_log_between(inner, outer, 2 * bits, precision)
        below, above = outer << precision, inner << precision
        for part in (u, v):
            yield (2 * log_low * part * part, below), (2 * log_high * (part + 1) ** 2, above)


class _ChiSquare:
    """|h|² for h ~ N(0, I) on R^degrees: −2·(sum of ln U_k), and the square of one normal number if degrees is odd."""

    def __init__(self, degrees: int, source: BitStream, bits: int) -> None:
        self._uniforms = [_Uniform(source, bits) for _ in range(degrees // 2)]
        self._normal = NormalPair(source, bits) if degrees % 2 else None

    def bounds(self, bits: int, precision: int) -> tuple[int, int]:
        """Bounds of |h|² in units of 2^−precision."""
        for uniform in self._uniforms:
            uniform.reveal(bits)
        # the sum of the logarithms is that of the product
        shift = sum(uniform.bits for uniform in self._uniforms)
        bottom, lost = _product([uniform.value for uniform in self._uniforms], precision, up=0)
        high = 2 * minus_log(bottom, shift - lost, precision)[1]
        top, lost = _product([uniform.value + 1 for uniform in self._uniforms], precision, up=1)
        # at most 1, also where rounding up says more
        low = 2 * minus_log(top, shift - lost, precision)[0] if top.bit_length() <= shift - lost else 0
        if self._normal is not None:
            (least, below), (most, above) = next(self._normal.squares(bits, precision))
            low += (least << precision) // below
            high += -((-most << precision) // above)
        return low, high


def _product(factors: list[int], precision: int, *, up: int) -> tuple[int, int]:
    """The product of positive integers over 2^lost, rounded down, or up (1), to precision + 64 bits now and then."""
    product, lost = 1, 0
    for first in range(0, len(factors), _FACTORS):
        product *= math.prod(factors[first : first + _FACTORS])
        extra = max(0, product.bit_length() - precision - 64)
        product, lost = (product >> extra) + (up if extra else 0), lost + extra
    return product, lost


def _nearest_root(numerator: int, denominator: int) -> int:
    """The integer nearest to y = √(numerator/denominator), upwards at a half: ⌊y + ½⌋ = ⌊(⌊2y⌋ + 1)/2⌋."""
    return (math.isqrt(4 * numerator // denominator) + 1) // 2
