"""The public lattice that noise is drawn on: how fine it is, how far a statistic moves on it, what noise that needs.

>>> lattice = Lattice(step=0.5, moved=3.0, exponent=None)
>>> lattice.scale_for(1.5)  # in steps
2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.sums.mechanism import Facts

_UP = 1 + 2.0**-49
_FINENESS = 30
_LARGEST_STEPS = 2.0**58
_LARGEST_NOISE = 2.0**52
_COARSEST = 8
_MOST_ENLARGEMENTS = 46


class Lattice(NamedTuple):
    """A public lattice, and how far the statistic moves on it."""

    step: float
    moved: float
    """In steps, ℓ2, rounded up."""
    exponent: int | None

    def scale_for(self, parameter: float) -> float:
        """The least σ in steps, up to rounding upwards, with moved ≤ parameter·σ."""
        sigma = self.moved / parameter
        while Fraction(sigma) * Fraction(parameter) < Fraction(self.moved):
            sigma = math.nextafter(sigma, math.inf)
        return sigma


def choose_lattice(facts: Facts, parameter: float, *, gaussian: bool, coordinatewise: bool = False) -> Lattice:
    """Of a sum: the one its integers lie on, made coarser where so much noise would leave 64 bits.

    Of another statistic: about 2⁻³⁰ of the noise scale, coarser only where the domain would leave 64-bit integers; it
    is rounded to it, which costs √d steps in ℓ2, Δ + √d·g, and in ℓ1 √d·Δ + d·g.
    """
    shape = facts.shape
    dim = noisy_dim(facts)
    root = math.sqrt(dim) * _UP
    if shape is not None:
        coarse = math.floor(math.log2(_LARGEST_NOISE * min(parameter, 1.0) / (2 * dim)))
        exponent = min(shape.finest, coarse)
        if exponent < _COARSEST:
            raise ScaleOutOfRangeError(f"so little budget needs noise beyond 64-bit integers (part {parameter:g}).")
        moved = float(shape.diameter(exponent, gaussian=gaussian)) * (root if coordinatewise else 1.0)
        return Lattice(shape.step(exponent), moved, exponent)
    sigma = float(facts.at_center) / parameter
    if not 1e-90 < sigma < 1e90:
        raise ScaleOutOfRangeError(f"the noise scale {sigma:g} leaves the range of the lattice. Rescale the data.")
    fine = 2.0 ** (math.frexp(sigma)[1] - 1 - _FINENESS)
    coarse_step = 2.0 ** math.frexp(facts.domain.radius / _LARGEST_STEPS)[1]
    step = max(fine, coarse_step)
    moved = (float(facts.at_center) / step + root) * _UP
    return Lattice(step, moved * root if coordinatewise else moved, None)


def noisy_dim(facts: Facts) -> int:
    """How many coordinates get noise."""
    return facts.domain.manifold.dim if facts.shape is None else facts.shape.integers


def enlarge(sigma: float, budget: Budget, promise: Callable[[float], Guarantee]) -> tuple[float, Guarantee]:
    """σ, grown by hairs until its promise keeps the budget."""
    for attempt in range(_MOST_ENLARGEMENTS):
        guarantee = promise(sigma)
        if guarantee.fits(budget, strict=True):
            return sigma, guarantee
        sigma *= 1 + 2.0 ** (attempt - 48)
    raise ScaleOutOfRangeError(f"the noise promises nothing within {budget!r} at the lattice scale {sigma:g}.")
