"""Noise in shares: several parties draw a part of the Gaussian noise each, and the sum keeps the promise of the whole.

>>> shares = calibrate_shares(moved=2**30, mu=1.0, parties=5, tolerated=1, dim=6)
>>> round(shares.sigma / 2**29, 9), shares.mu(2**30) <= 1.0  # σ/√(k − t) each
(1.0, True)
>>> len(shares.draw(rng=0)), shares.log10_eta() < -1e15
(6, True)

**Theorem** (docs/proofs/shares.md). Let Z_1, …, Z_m be independent exactly rounded Gaussians of scale σ_s ≥ ½ on the
integers, in each of d coordinates, and let neighbours move an integer vector X by at most Δ in ℓ2. Then X + ΣZ_i is
(μ + 4√(π/2)·η)-Gaussian-DP, μ = Δ/(σ_s√m), η = −d(m − 1)·ln(1 − 3e^{−π²σ_s²}), and so is its residue modulo any number.
Of k parties t may be gone, or tell their shares to whoever looks: m = k − t shares are left, whatever the others add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from scipy import special

from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError, ScaleOutOfRangeError
from dpmanifolds.noise import as_generator
from dpmanifolds.noise.exact import BitStream, draw_rounded, exact_sigma, rational
from dpmanifolds.privacy.rounding import root_above, up

LEAST_SIGMA = 0.5
"""The smallest share, in steps, that the theorem is about: smaller ones do not add up to a Gaussian."""
_PER_ETA = 5.0133  # above 4√(π/2)
_LARGEST_SIGMA = 2.0**60
_MOST_ENLARGEMENTS = 40


@dataclass(frozen=True)
class NoiseShares:
    """What each of some parties draws, in whole steps of a public lattice."""

    parties: int
    """k: all that take part."""
    tolerated: int
    """t: how many may be gone or known, together."""
    sigma: float
    """σ_s of one share."""
    dim: int
    """How many integers get noise."""
    halved: int = 0
    """So many of them, the last, get σ_s/√2: those above the diagonal of a symmetric matrix."""

    def __post_init__(self) -> None:
        positive_integer("parties", self.parties)
        positive_integer("dim", self.dim)
        positive_integer("halved", self.halved, at_least=0)
        if positive_integer("tolerated", self.tolerated, at_least=0) >= self.parties:
            raise ArgumentError(
                f"must leave at least one of {self.parties} shares; got {self.tolerated}.", argument="tolerated"
            )
        exact_sigma(self.sigma, _LARGEST_SIGMA)
        if self._least < LEAST_SIGMA:
            raise ScaleOutOfRangeError(
                f"shares of {self._least:g} steps do not add up to Gaussian noise: at least {LEAST_SIGMA} is needed. "
                "Take a finer lattice, fewer parties or a smaller budget."
            )

    @property
    def _least(self) -> float:
        """The scale of the smallest share of a coordinate."""
        return self.sigma / math.sqrt(2) if self.halved else self.sigma

    @property
    def needed(self) -> int:
        """How many shares the promise needs."""
        return self.parties - self.tolerated

    def eta(self, shares: int | None = None) -> float:
        """An upper bound of η for so many shares, those that are needed unless told; 0.0 below the range of floats."""
        aliased = 3 * math.exp(-(math.pi**2) * self._least**2)
        return float(up(-self.dim * ((shares or self.needed) - 1) * math.log1p(-up(aliased, 40)), 40))

    def log10_eta(self, shares: int | None = None) -> float:
        """log10 of that bound, also where no float holds it; −∞ for one share, which is exact."""
        factors = self.dim * ((shares or self.needed) - 1)
        # −ln(1 − x) ≤ 1.2x for x ≤ 3e^{−π²/4}
        return math.log10(3.6 * factors) - math.pi**2 * self._least**2 * math.log10(math.e) if factors else -math.inf

    def mu(self, moved: int, shares: int | None = None) -> float:
        """The μ that so many honest shares promise for integers that move by at most `moved` in ℓ2; η is in it.

        More shares than are needed are noise on top of what keeps the promise, and never make it worse.
        """
        count = self.needed if shares is None else positive_integer("shares", shares)
        exact = Fraction(positive_integer("moved", moved)) ** 2 / (rational(self.sigma) ** 2 * count)
        # η below the range of floats is far below the last place of μ, by which this is above
        found = math.nextafter(root_above(exact) + _PER_ETA * self.eta(count), math.inf)
        return min(found, self.mu(moved)) if count > self.needed else found

    def deviation(self, shares: int) -> float:
        """The standard deviation of the sum of so many shares in a coordinate, in steps."""
        return self.sigma * math.sqrt(shares)

    def draw(self, rng: Any = None) -> list[int]:
        """One share: integers that are exactly rounded Gaussians. Each party calls it once for each sum."""
        source = BitStream(as_generator(rng))
        return draw_rounded(self.dim, rational(self.sigma), source, radial=False, halved=self.halved)

    def overflow_probability(self, bits: int, largest: int, shares: int | None = None) -> float:
        """A bound on the chance that a sum of absolute value up to `largest` and its noise is misread modulo 2^bits.

        A share differs from its Gaussian by at most ½, so that some coordinate of the sum leaves [−2^{b−1}, 2^{b−1})
        with a probability of at most 2d·Φ(−(2^{b−1} − largest − k/2 − 1)/(σ_s√k)).
        """
        count = self.parties if shares is None else shares
        room = (1 << (bits - 1)) - largest - count / 2 - 1
        if room <= 0:
            return 1.0
        tail = special.log_ndtr(-room / self.deviation(count))
        # the smallest float stands for what lies below
        return min(1.0, max(float(up(2 * self.dim * math.exp(tail), 30)), 5e-324))


def calibrate_shares(*, moved: int, mu: float, parties: int, tolerated: int, dim: int, halved: int = 0) -> NoiseShares:
    """The smallest shares, up to rounding, any k − t of which promise μ, η included."""
    needed = positive_integer("parties", parties) - positive_integer("tolerated", tolerated, at_least=0)
    sigma = moved / (mu * math.sqrt(max(needed, 1)))
    for attempt in range(_MOST_ENLARGEMENTS):
        shares = NoiseShares(parties, tolerated, sigma, dim, halved)
        if shares.mu(moved) <= mu:
            return shares
        sigma *= 1 + 2.0 ** (attempt - 50)
    raise ScaleOutOfRangeError(f"shares of {sigma:g} steps are too coarse to promise μ = {mu:g}. Take a finer lattice.")


def center_residues(residues: list[int], modulus: int) -> list[int]:
    """Residues as the numbers from −modulus/2 to modulus/2 that they stand for.

    >>> center_residues([3, 2**64 - 3], 2**64)
    [3, -3]
    """
    half = modulus // 2
    return [(residue + half) % modulus - half for residue in residues]
