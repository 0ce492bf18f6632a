"""What a row's number must be: an interval around what theory says, or around what many runs gave.

>>> from papers._checks import near
>>> near("E|u|²", 12.04, 12.0, error=0.023).passed
True
>>> near("E|u|²", 8.0, 12.0, error=0.023).passed
False

A number with an expectation of its own gets `near`: the interval is the quantile of Student's law (normal where the
number of replicates is not given) that a right number leaves with probability `FALSE_ALARM`, times its standard error,
plus a slack for what is not random. Others get `inside`, with edges at least seven standard deviations away from what
ten seeds give (`python -m papers.margins` prints how far).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import norm, t

__all__ = ["FALSE_ALARM", "Check", "inside", "near"]

FALSE_ALARM = 1e-7
"""Of one check of a right number. Some hundred checks make 1e−5 for a whole run."""


@dataclass(frozen=True)
class Check:
    """A number and where it must lie."""

    number: str
    value: float
    low: float
    high: float
    proven: str = ""
    """"low", "high" or "both": edges that a theorem gives, which no right number passes."""

    @property
    def passed(self) -> bool:
        """False for a number that is not finite."""
        return math.isfinite(self.value) and self.low <= self.value <= self.high

    def __str__(self) -> str:
        return f"{self.number} = {self.value:.6g}, expected {self.low:.6g} to {self.high:.6g}"


def near(
    number: str, value: float, expected: float, *, error: float = 0.0, replicates: int | None = None, slack: float = 0.0
) -> Check:
    """Within the statistical error of what is expected; `slack` is for what is not random.

    `error` is the standard error of a mean of `replicates` values; None for so many that it is known well.
    """
    law = norm if replicates is None else t(max(1, replicates - 1))
    reach = float(law.isf(FALSE_ALARM / 2)) * error + slack
    return Check(number, float(value), expected - reach, expected + reach)


def inside(number: str, value: float, low: float, high: float, proven: str = "") -> Check:
    """Between two edges that are not derived from this run; `proven` are those that a theorem gives."""
    return Check(number, float(value), float(low), float(high), proven)
