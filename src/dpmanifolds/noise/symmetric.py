"""Noise for symmetric matrices that is the same in every orthonormal basis: Gaussian, or Laplace in Frobenius norm.

>>> import numpy as np
>>> noise = SymmetricGaussian(dim=3, scale=2**30)
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

`others` are further integers that move along: |c(S) − c(S')|² + |o − o'|² ≤ Δ². They get noise like the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise.exact import Scale, _draw, exact_scale
from dpmanifolds.noise.exact_arithmetic import BitStream
from dpmanifolds.noise.generators import as_generator

__all__ = ["SymmetricGaussian", "SymmetricLaplace", "whole_matrix"]


@dataclass(frozen=True)
class _SymmetricNoise:
    """Symmetric integers + round(Y), Y the same in every orthonormal basis; all in lattice steps."""

    dim: int
    scale: Scale
    """Of the diagonal."""
    others: int = 0

    def __post_init__(self) -> None:
        positive_integer("dim", self.dim)
        positive_integer("others", self.others, at_least=0)
        exact_scale(self.scale, math.inf)

    @property
    def coordinates(self) -> int:
        """How many numbers are drawn."""
        return self.dim * (self.dim + 1) // 2 + self.others

    def release(self, values: Any, rng: Any = None) -> np.ndarray:
        """A symmetric matrix of integers of any size (dim, dim), with noise: Python's integers, of any size too."""
        return self.release_with(values, (), rng)[0]

    def release_with(self, values: Any, others: Sequence[int], rng: Any = None) -> tuple[np.ndarray, list[int]]:
        """The same, and the other integers with theirs."""
        steps = whole_matrix(values, self.dim)
        if len(others) != self.others:
            raise ArgumentError(f"others must be {self.others} integers; got {len(others)}.")
        above, diagonal = np.triu_indices(self.dim, 1), np.diag_indices(self.dim)
        noise = np.array(self._drawn(above[0].size, BitStream(as_generator(rng))), dtype=object)
        noisy = steps.copy()
        noisy[diagonal] += noise[: self.dim]
        noisy[above] += noise[self.dim + self.others :]
        noisy.T[above] = noisy[above]
        return noisy, [int(a) + b for a, b in zip(others, noise[self.dim : self.dim + self.others], strict=True)]

    def _drawn(self, halved: int, source: BitStream) -> list[int]:
        raise NotImplementedError

    def _ratio(self, steps: Scale) -> float:
        """Rounded upwards."""
        ratio = Fraction(steps) / Fraction(self.scale)
        return math.nextafter(float(ratio), math.inf) if ratio else 0.0


@dataclass(frozen=True)
class SymmetricGaussian(_SymmetricNoise):
    """Standard deviation σ on the diagonal and σ/√2 off it: the Gaussian orthogonal ensemble.

    >>> SymmetricGaussian(dim=2, scale=4.0).mu(frobenius_steps=2)
    0.5000000000000001
    """

    def _drawn(self, halved: int, source: BitStream) -> list[int]:
        return _draw(self.coordinates, _exact(self.scale), source, radial=False, halved=halved)

    def mu(self, frobenius_steps: Scale) -> float:
        """An upper bound, tight to rounding, of the μ at which matrices that move so far are released."""
        return self._ratio(frobenius_steps)

    @property
    def spread(self) -> float:
        """The standard deviation of an entry off the diagonal."""
        return float(self.scale) / math.sqrt(2)


@dataclass(frozen=True)
class SymmetricLaplace(_SymmetricNoise):
    """Density ∝ exp(−‖Y‖_F/σ) on symmetric matrices.

    >>> SymmetricLaplace(dim=2, scale=4.0).epsilon(frobenius_steps=2)
    0.5000000000000001
    """

    def _drawn(self, halved: int, source: BitStream) -> list[int]:
        return _draw(self.coordinates, _exact(self.scale), source, radial=True, halved=halved)

    def epsilon(self, frobenius_steps: Scale) -> float:
        """An upper bound, tight to rounding, of the ε at which matrices that move so far are released."""
        return self._ratio(frobenius_steps)

    @property
    def spread(self) -> float:
        """The standard deviation of an entry off the diagonal: one of D coordinates has σ√(D + 1)."""
        return float(self.scale) * math.sqrt((self.coordinates + 1) / 2)


def whole_matrix(values: Any, dim: int) -> np.ndarray:
    """A symmetric matrix of whole numbers as Python's integers."""
    steps = np.asarray(values)
    whole = steps.dtype.kind == "i" or (
        steps.dtype.kind == "O" and all(isinstance(entry, int) for entry in steps.ravel().tolist())
    )
    if not whole or steps.shape != (dim, dim) or not np.array_equal(steps, steps.T):
        raise ArgumentError(f"values must be a symmetric ({dim}, {dim}) array of whole numbers of lattice steps.")
    return np.array(steps.tolist(), dtype=object).reshape(dim, dim)


def _exact(scale: Scale) -> Fraction:
    exact = Fraction(scale)
    return Fraction(int(exact.numerator), int(exact.denominator))
