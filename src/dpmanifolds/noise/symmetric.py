"""Noise for symmetric matrices: Gaussian, Laplace in Frobenius norm, and the difference of two Wishart matrices.

>>> import numpy as np
>>> noise = SymmetricGaussian(dim=3, sigma=2**30)
>>> noise.release(np.zeros((3, 3), dtype=object), rng=0).shape, round(noise.mu(frobenius_steps=2**30), 9)
((3, 3), 1.0)

The diagonal of a symmetric matrix S, and √2 times what is above it, are coordinates c(S) with |c(S)|₂ = ‖S‖_F. Noise of
the Gaussian or the ℓ2-Laplace law on these d(d+1)/2 coordinates is noise Y on the matrix whose entries off the diagonal
are divided by √2. For neighbours ‖S − S'‖_F ≤ Δ, so S + Y is (Δ/σ)-Gaussian-DP, or (Δ/σ)-DP.

**Rounding.** k + round(y) = round(k + y) for integers k: for a matrix of integers S, S + round(Y) is a function of
S + Y (docs/proofs/numerics.md, theorem 1), entry by entry, whatever units the entries have. So the integers off the
diagonal get the rounded y/√2, drawn without error (theorem 2 there: σ²/2 is as rational as σ² is). Noise on all d²
entries that is symmetrised afterwards has, up to rounding, the same law for the Gaussian, with twice the draws; the
ℓ2-Laplace would have more noise, as its size grows with the dimension.

**Theorem.** Let A, B be independent with density f(a) ∝ exp(−tr(a)/s) on the positive semidefinite d×d matrices, and
let ‖M − M'‖_* ≤ Δ for neighbours (nuclear norm). Then M + A − B is (Δ/s)-differentially private.

*Proof* (with more words: docs/proofs/second_moment.md, P3). Let h(z) = ∫ f(z + b)f(b)db be the density of A − B, and
M − M' = P − Q with P, Q ⪰ 0 and tr P + tr Q ≤ Δ. For Q ⪰ 0, f(b + Q) ≥ e^{−tr(Q)/s}f(b): if b ⪰ 0 then b + Q ⪰ 0 and
both are exponentials, else the right side is 0. So, with b → b + Q, h(z + P − Q) = ∫ f(z + P + b)f(b + Q)db ≥
e^{−(tr P + tr Q)/s}h(z). Take z = y − M: the density at y under M' is at least e^{−Δ/s} times that under M. ∎

A alone would not do: M + A ⪰ M tells neighbours apart by its support. f is the Wishart law of d + 1 degrees: A =
(s/2)GGᵀ with G standard normal (d, d+1). An entry of A − B off the diagonal has standard deviation s·√((d+1)/2), which
for the second moment, Δ = 2R²/n, is √(2(d+1))·R²/(nε); the ℓ2-Laplace on the Frobenius norm has about d/√2·R²/(nε). In
one dimension it is the Laplace law. G is known to 2^−p, GGᵀ is computed in integers without error, and where the
enclosure of an entry does not fit into one cell of the lattice more bits of G are revealed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise.exact import BitStream, NormalPair, Scale, draw_rounded, exact_sigma, ratio_up, rational
from dpmanifolds.noise.generators import as_generator

_START = 96
_WIDTH = 4


@dataclass(frozen=True)
class _SymmetricNoise:
    """Symmetric integers + round(Y), Y the same in every orthonormal basis; all in lattice steps."""

    dim: int
    sigma: Scale
    """Of the diagonal."""
    radial: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_integer("dim", self.dim)
        exact_sigma(self.sigma, math.inf)

    @property
    def coordinates(self) -> int:
        """How many numbers are drawn."""
        return self.dim * (self.dim + 1) // 2

    def release(self, values: Any, rng: Any = None) -> np.ndarray:
        """A symmetric matrix of integers of any size (dim, dim), with noise: Python's integers, of any size too."""
        noisy = whole_matrix(values, self.dim)
        above, diagonal = np.triu_indices(self.dim, 1), np.diag_indices(self.dim)
        source, sigma = BitStream(as_generator(rng)), rational(self.sigma)
        drawn = draw_rounded(self.coordinates, sigma, source, radial=self.radial, halved=above[0].size)
        noise = np.array(drawn, dtype=object)
        noisy[diagonal] += noise[: self.dim]
        noisy[above] += noise[self.dim :]
        noisy.T[above] = noisy[above]
        return noisy


class SymmetricGaussian(_SymmetricNoise):
    """Standard deviation σ on the diagonal and σ/√2 off it: the Gaussian orthogonal ensemble.

    >>> SymmetricGaussian(dim=2, sigma=4.0).mu(frobenius_steps=2)
    0.5000000000000001
    """

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim, dim), up to a constant."""
        return np.asarray(-np.square(_frobenius(offsets) / float(self.sigma)) / 2)

    def mu(self, frobenius_steps: Scale) -> float:
        """An upper bound, tight to rounding, of the μ at which matrices that move so far are released."""
        return ratio_up("frobenius_steps", frobenius_steps, self.sigma)

    @property
    def spread(self) -> float:
        """The standard deviation of an entry off the diagonal."""
        return float(self.sigma) / math.sqrt(2)


class SymmetricLaplace(_SymmetricNoise):
    """Density ∝ exp(−‖Y‖_F/σ) on symmetric matrices.

    >>> SymmetricLaplace(dim=2, sigma=4.0).epsilon(frobenius_steps=2)
    0.5000000000000001
    """

    radial: ClassVar[bool] = True

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim, dim), up to a constant."""
        return np.asarray(-_frobenius(offsets) / float(self.sigma))

    def epsilon(self, frobenius_steps: Scale) -> float:
        """An upper bound, tight to rounding, of the ε at which matrices that move so far are released."""
        return ratio_up("frobenius_steps", frobenius_steps, self.sigma)

    @property
    def spread(self) -> float:
        """The standard deviation of an entry off the diagonal: one of D coordinates has σ√(D + 1)."""
        return float(self.sigma) * math.sqrt((self.coordinates + 1) / 2)


def _frobenius(matrices: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(matrices.astype(np.float64), axis=(-2, -1)))


def whole_matrix(values: Any, dim: int) -> np.ndarray:
    """A symmetric matrix of whole numbers as Python's integers."""
    steps = np.asarray(values)
    whole = steps.dtype.kind == "i" or (
        steps.dtype.kind == "O" and all(isinstance(entry, int) for entry in steps.ravel().tolist())
    )
    if not whole or steps.shape != (dim, dim) or not np.array_equal(steps, steps.T):
        raise ArgumentError(f"values must be a symmetric ({dim}, {dim}) array of whole numbers of lattice steps.")
    return np.array(steps.tolist(), dtype=object).reshape(dim, dim)


@dataclass(frozen=True)
class WishartDifference:
    """Symmetric integers + round(A − B), A and B of density ∝ exp(−tr(a)/sigma), all in lattice steps.

    >>> noise = WishartDifference(dim=3, sigma=2.0**30)
    >>> noise.release(np.zeros((3, 3), dtype=object), rng=0).shape, round(noise.epsilon(nuclear_steps=2**30), 9)
    ((3, 3), 1.0)
    """

    dim: int
    sigma: Scale

    def __post_init__(self) -> None:
        positive_integer("dim", self.dim)
        exact_sigma(self.sigma, math.inf)

    def epsilon(self, nuclear_steps: Scale) -> float:
        """An upper bound, tight to rounding, of the ε at which integers that move so far are released."""
        return ratio_up("nuclear_steps", nuclear_steps, self.sigma)

    @property
    def spread(self) -> float:
        """The standard deviation of an entry off the diagonal."""
        return float(self.sigma) * math.sqrt((self.dim + 1) / 2)

    def release(self, values: Any, rng: Any = None, *, start: int = _START) -> np.ndarray:
        """A symmetric matrix of integers of any size (dim, dim), with noise: Python's integers, of any size too.

        The first precision, `start`, does not change what comes out.
        """
        steps = whole_matrix(values, self.dim)
        source = BitStream(as_generator(rng))
        factors = [_NormalMatrix(self.dim, self.dim + 1, source) for _ in range(2)]
        # A − B = (s/2)(GGᵀ − HHᵀ)
        half = Fraction(self.sigma) / 2
        bits = start
        while True:
            (first, first_error), (second, second_error) = (factor.gram(bits) for factor in factors)
            total, error = first - second, first_error + second_error
            unit = half.denominator << (2 * bits)
            low, high = (_nearest((total + shift) * half.numerator, unit) for shift in (-error, error))
            if bool(np.all(low == high)):
                break
            bits *= 2
        above = np.triu_indices(self.dim)
        noisy = np.empty_like(steps)
        noisy[above] = noisy.T[above] = steps[above] + low
        return noisy


def _nearest(numerators: np.ndarray, denominator: int) -> np.ndarray:
    """The integers nearest to the quotients, upwards at a half."""
    return np.asarray((2 * numerators + denominator) // (2 * denominator))


class _NormalMatrix:
    """Independent standard normal numbers whose bits are revealed as they are needed."""

    def __init__(self, rows: int, columns: int, source: BitStream) -> None:
        count = rows * columns
        self._shape = rows, columns
        signs = f"{source.take(count):0{count}b}"
        self._negative = np.array([sign == "1" for sign in signs])
        self._pairs = [NormalPair(source, 128) for _ in range((count + 1) // 2)]

    def gram(self, bits: int) -> tuple[np.ndarray, int]:
        """The upper triangle of GGᵀ in units of 4^−bits, as integers of any size, and a bound on the error of each.

        Entries of G are off by at most w = 4 units of 2^−bits, so those of GGᵀ by (|g_i|₁ + |g_j|₁)w + columns·w².
        """
        sizes = np.empty(2 * len(self._pairs), dtype=object)
        for index, pair in enumerate(self._pairs):
            sizes[2 * index : 2 * index + 2] = _fixed(pair, bits)
        count = math.prod(self._shape)
        entries = np.where(self._negative, -sizes[:count], sizes[:count]).reshape(self._shape)
        longest = max(np.abs(entries).sum(axis=1))
        return exact_gram(entries), 2 * longest * _WIDTH + self._shape[1] * _WIDTH**2


def _fixed(pair: NormalPair, bits: int) -> tuple[int, int]:
    """The two sizes in units of 2^−bits, each off by at most `_WIDTH`."""
    known = bits + 32
    while True:
        found, exact = [], True
        for (bottom, below), (top, above) in pair.squares(known, known + 32):
            low, high = (math.isqrt((up << (2 * bits)) // down) for up, down in ((bottom, below), (top, above)))
            exact = exact and high + 1 - low <= _WIDTH
            found.append(low)
        if exact:
            return found[0], found[1]
        known *= 2


def exact_gram(entries: np.ndarray) -> np.ndarray:
    """The upper triangle of GGᵀ for a matrix of integers of any size, without error, row by row.

    Entries are cut into limbs so short that every sum of products of two limbs is an integer below 2^53: floating-point
    matrix products are then exact in whatever order they add.

    >>> exact_gram(np.array([[2**80, 1], [3, -(2**70)]], dtype=object)) == [4**80 + 1, 3 * 2**80 - 2**70, 4**70 + 9]
    array([ True,  True,  True])
    """
    width = (53 - int(entries.shape[1]).bit_length()) // 2
    mask = (1 << width) - 1
    negative, rest = np.sign(entries).astype(np.float64), np.abs(entries)
    limbs = []
    while bool(np.any(rest != 0)):
        limbs.append((rest & mask).astype(np.float64) * negative)
        rest = rest >> width
    above = np.triu_indices(entries.shape[0])
    total = np.zeros(above[0].size, dtype=object)
    for order in range(2 * len(limbs) - 2, -1, -1):
        pairs = [(i, order - i) for i in range(len(limbs)) if 0 <= order - i < len(limbs)]
        layer = sum((limbs[i] @ limbs[j].T)[above].astype(np.int64) for i, j in pairs)
        total = (total << width) + layer.astype(object)
    return np.asarray(total)
