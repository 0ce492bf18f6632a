"""The attack on low-order bits: floating-point noise tells more than real numbers would.

A sum x + y of floats is rounded to the grid of its size, and the noise y itself has a grid of its own. So some sums can
come from one neighbour only: "the output minus x is a multiple of 2^−k" has a fair probability under one neighbour and
probability 0 under the other (Mironov 2012). The attack tries all k, all entries of the output and the offsets 0, x and
x'; like every attack here it chooses its event on one half of the draws and counts on the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._validate import number_between
from dpmanifolds.auditing.bounds import Claim, upper_rate
from dpmanifolds.errors import ArgumentError

__all__ = ["PrecisionReport", "precision_attack"]

_STEPS = np.arange(8, 66)
_CHOOSING_ERROR = 1e-5
_FEWEST = 100


@dataclass(frozen=True)
class PrecisionReport:
    """The best event about low-order bits.

    >>> import numpy as np
    >>> from audits.precision import precision_attack
    >>> rng = np.random.default_rng(0)
    >>> whole = [mean + rng.geometric(0.3, size=(4000, 1)) - rng.geometric(0.3, size=(4000, 1)) for mean in (0, 1)]
    >>> precision_attack(*whole, epsilon=1.0, offsets=(0, 1)).separated  # integers have no low-order bits to tell
    False
    """

    claim: Claim
    bound: float
    """ε is at least this, with the asked confidence."""
    event: str
    rates: tuple[float, float]
    """How often the event was seen under the two neighbours."""

    @property
    def separated(self) -> bool:
        """Whether low-order bits show more than is promised."""
        return self.bound > self.claim.value


def precision_attack(
    first: ArrayLike,
    second: ArrayLike,
    *,
    epsilon: float,
    delta: float = 0.0,
    offsets: Iterable[ArrayLike] = (),
    confidence: float = 0.95,
) -> PrecisionReport:
    """Tell outputs (count, entries) of two neighbours apart by their low-order bits, against an (ε, δ) promise.

    `offsets` are numbers (or rows of them) that the attacker subtracts first: the two statistics without noise.

    >>> import numpy as np
    >>> from audits.precision import precision_attack
    >>> rng = np.random.default_rng(0)
    >>> naive = [mean + rng.laplace(scale=0.1, size=(4000, 1)) for mean in (0.0, 0.1)]
    >>> precision_attack(*naive, epsilon=1.0, offsets=(0.0, 0.1)).separated  # floats tell them apart
    True
    """
    error = (1 - number_between("confidence", confidence, 0.0, 1.0)) / 2
    claim = Claim("ε", float(epsilon), float(delta))
    outputs = [np.asarray(each, dtype=np.float64) for each in (first, second)]
    if any(each.ndim != 2 or each.shape[0] < _FEWEST for each in outputs):
        raise ArgumentError(
            f"outputs must have shape (count, entries) with at least {_FEWEST} draws of each neighbour."
        )
    trained = [each[: each.shape[0] // 2] for each in outputs]
    counted = [each[each.shape[0] // 2 :] for each in outputs]
    shifts = [np.zeros(1), *(np.atleast_1d(np.asarray(each, dtype=np.float64)) for each in offsets)]
    best, chosen = 0.0, None
    for entry in range(outputs[0].shape[1]):
        for shift in shifts:
            amount = float(shift[entry % shift.size])
            value, event = _best_event(trained, entry, amount, claim, min(error, _CHOOSING_ERROR))
            if value > best:
                best, chosen = value, event
    if chosen is None:
        return PrecisionReport(claim, 0.0, "none that tells them apart", (math.nan, math.nan))
    seen = [float(np.mean(chosen.happens(each))) for each in counted]
    return PrecisionReport(claim, chosen.implied(counted, claim, error), str(chosen), (seen[0], seen[1]))


@dataclass(frozen=True)
class _Event:
    """Entry `entry`, less `shift`, is (or is not) a multiple of 2^exponent; an alarm for the neighbour `of`."""

    entry: int
    shift: float
    exponent: int
    negated: bool
    of: int

    def happens(self, outputs: np.ndarray) -> np.ndarray:
        return np.asarray(_is_multiple(outputs[:, self.entry] - self.shift, self.exponent) != self.negated)

    def implied(self, outputs: list[np.ndarray], claim: Claim, error: float) -> float:
        counts = [np.array(np.sum(self.happens(each))) for each in outputs]
        sizes = [each.shape[0] for each in outputs]
        return float(_implied(counts, sizes, self.of, claim, error))

    def __str__(self) -> str:
        less = f" − {self.shift:.4g}" if self.shift > 0 else f" + {-self.shift:.4g}" if self.shift < 0 else ""
        return f"entry {self.entry + 1}{less} is {'no' if self.negated else 'a'} multiple of 2^{self.exponent}"


def _is_multiple(numbers: np.ndarray, exponent: int) -> np.ndarray:
    scaled = np.ldexp(numbers, -exponent)
    return np.asarray(scaled == np.rint(scaled))


def _implied(counts: list[np.ndarray], sizes: list[int], of: int, claim: Claim, error: float) -> np.ndarray:
    """What an event seen so often implies when it is an alarm for the neighbour `of`."""
    misses = upper_rate(sizes[of] - counts[of], sizes[of], error)
    alarms = upper_rate(counts[1 - of], sizes[1 - of], error)
    return claim.implied(alarms, misses)


def _best_event(
    outputs: list[np.ndarray], entry: int, shift: float, claim: Claim, error: float
) -> tuple[float, _Event]:
    """The exponent, the side and the neighbour that tell most, for one entry and one offset."""
    numbers = [each[:, entry] - shift for each in outputs]
    largest = max(float(np.max(np.abs(each))) for each in numbers)
    exponents = (math.frexp(largest)[1] if largest > 0 else 0) - _STEPS
    seen = [np.array([np.sum(_is_multiple(each, int(k))) for k in exponents]) for each in numbers]
    sizes = [each.size for each in numbers]
    found = []
    for negated in (False, True):
        counts = [size - count if negated else count for size, count in zip(sizes, seen, strict=True)]
        for of in (0, 1):
            values = _implied(counts, sizes, of, claim, error)
            at = int(np.argmax(values))
            found.append((float(values[at]), _Event(entry, shift, int(exponents[at]), negated, of)))
    return max(found, key=lambda each: each[0])
