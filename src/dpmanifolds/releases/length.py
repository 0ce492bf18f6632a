"""An interval for the length of a difference that is seen with a known error: a test of every length, inverted.

>>> import numpy as np
>>> errors = SeenErrors.of(np.random.default_rng(0).standard_normal((40_000, 2)) * 0.1, np.array([0.6, 0.8]))
>>> [round(end, 2) for end in length_interval(5.0, errors, 0.95)]
[4.8, 5.2]
>>> length_interval(0.01, errors, 0.95)[0]
0.0

Derivation: docs/proofs/regions.md, R6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmanifolds.releases.population import RegionLaw

_HALVINGS = 60
_FAR = 3.0
"""From so many root mean square errors on both tails of the test are as likely."""
_MOST_DOUBT, _LEAST_DEGREES = 1.0, 4.0
"""The deviation of a variance along one direction, over it, from which on the fitted covariance is believed instead."""


@dataclass(frozen=True)
class SeenErrors:
    """Draws of the error of a vector, in the direction that was seen."""

    along: np.ndarray
    """(count,)"""
    squares: np.ndarray
    """(count,): of the whole length."""

    @classmethod
    def of(cls, errors: np.ndarray, direction: np.ndarray) -> SeenErrors:
        return cls(errors @ direction, np.sum(errors * errors, axis=1))

    @cached_property
    def size(self) -> float:
        """Root mean square."""
        return math.sqrt(float(np.mean(self.squares)))

    @cached_property
    def median(self) -> float:
        """Half of all errors are shorter."""
        return float(np.sqrt(np.median(self.squares)))

    def share_below(self, length: float, limit: float) -> float:
        """P(|ℓu + error| ≤ limit), u the direction."""
        return float(np.mean(length * length + 2 * length * self.along + self.squares <= limit * limit))


def seen_errors(law: RegionLaw, vector: np.ndarray, count: int | None = None) -> SeenErrors:
    """Errors of a vector with this law, by a fixed seed; the variance along the vector is estimated by itself.

    In one direction the released covariance is an unbiased estimate, where the fitted one was drawn towards a multiple
    of the identity. How well it is known (a sample's variance, and noise of deviation √2·s) gives the degrees of
    freedom of a t law (Welch and Satterthwaite). The more noise hides it the more the fitted one counts. Where a trace
    alone was released all of it is taken to lie along the vector.
    """
    size = float(np.linalg.norm(vector))
    direction = vector / size if size > 0 else np.eye(vector.size)[0]
    errors = SeenErrors.of(law.draw_errors() if count is None else law.draw_errors(count), direction)
    fitted, total = float(direction @ law.covariance @ direction), float(np.trace(law.covariance))
    found = sampled = hidden = 0.0
    for part in law.parts:
        ball = part.facts.kind == "variance"
        own = float(np.trace(part.sampling)) if ball else max(float(direction @ part.seen @ direction), 0.0)
        found += own + float(direction @ part.noise @ direction)
        sampled += 2 * own * own / (part.n - 1)
        hidden += 2 * float(part.doubt) ** 2
    known = float(law.scale) * fitted * fitted
    trust = 1 - min(1.0, hidden / max(_MOST_DOUBT * found, 1e-300) ** 2)
    variance = trust * found + (1 - trust) * fitted
    doubt = sampled + trust * trust * hidden + (1 - trust) ** 2 * known
    degrees = min(max(2 * variance * variance / max(doubt, 1e-300), _LEAST_DEGREES), 1e9)
    count = len(errors.along)
    tails = np.sqrt(np.random.default_rng(2).chisquare(degrees, count) / degrees)
    along = errors.along * math.sqrt(variance / max(fitted, 1e-300)) / tails
    across = (errors.squares - errors.along**2) * (max(total - variance, 0.0) / max(total - fitted, 1e-300))
    return SeenErrors(along, along * along + across)


def difference_interval(law: RegionLaw, vector: np.ndarray, level: float) -> tuple[float, float]:
    """`length_interval` for a vector with this law, beginning at 0 wherever the vector's own region holds 0.

    The spectrum of an estimated covariance is not that of the true one, and a test of the whole length depends on it:
    alone it would reject 0 too often, by up to 2 in 100. The region of the vector allows for that uncertainty.
    """
    low, high = length_interval(float(np.linalg.norm(vector)), seen_errors(law, vector), level)
    return (low if _excludes_zero(law, vector, level) else 0.0), high


def interval_holds(law: RegionLaw, vector: np.ndarray, level: float, length: float, count: int) -> bool:
    """Whether that interval, from so many draws, holds a length: both of its tests, and no end of it."""
    seen, errors = float(np.linalg.norm(vector)), seen_errors(law, vector, count)
    if is_too_long(length, seen, errors, level):
        return False
    return not (is_too_short(length, seen, errors, level) and _excludes_zero(law, vector, level))


def _excludes_zero(law: RegionLaw, vector: np.ndarray, level: float) -> bool:
    return bool(vector @ law.weight @ vector > law.threshold(level))


def length_interval(seen: float, errors: SeenErrors, level: float) -> tuple[float, float]:
    """Ends of an interval for the length ℓ of a vector that was seen with length `seen` and these errors.

    All ℓ that a test of size 1 − level does not reject (`is_too_short`, `is_too_long`).
    """
    farthest = seen + float(np.sqrt(np.max(errors.squares)))
    return (
        _last(lambda length: is_too_short(length, seen, errors, level), farthest),
        _last(lambda length: not is_too_long(length, seen, errors, level), farthest),
    )


def is_too_short(length: float, seen: float, errors: SeenErrors, level: float) -> bool:
    """Whether so much was seen that the test rejects this length: P(|ℓu + error| ≤ seen) > level + its other share.

    That probability falls with ℓ (Anderson 1955). A seen length is too short for ℓ where it is below a share of
    1 − level that grows from 0 at ℓ = 0 to a half of it at three root mean square errors, and too long where the rest
    of it is left above. So the lower end is 0 as often as it may be, and the interval is no longer than need be.
    """
    return errors.share_below(length, seen) > level + _lower_share(length, errors, level)


def is_too_long(length: float, seen: float, errors: SeenErrors, level: float) -> bool:
    """Whether so little was seen that the test rejects this length; below half of all errors it says no more."""
    return errors.share_below(length, max(seen, errors.median)) < _lower_share(length, errors, level)


def _lower_share(length: float, errors: SeenErrors, level: float) -> float:
    return (1 - level) / 2 * min(1.0, length / max(_FAR * errors.size, 1e-300))


def _last(holds: Callable[[float], bool], most: float) -> float:
    """The last number from 0 on at which a statement holds that holds up to some number; 0 where it never does."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
