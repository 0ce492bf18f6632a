"""One budget cut into shares that compose back to at most it, strictly: every share is rounded down.

>>> from dpmanifolds.privacy import GaussianDP, split
>>> [round(part.mu, 12) for part in split(GaussianDP(1.0), [0.36, 0.64])[0]]
[0.6, 0.8]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dpmanifolds._validate import positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy.budget import Budget, checked_budget

__all__ = ["split"]


def split(budget: Budget, shares: Sequence[float]) -> list[tuple[Budget, ...]]:
    """Ways to cut a budget by shares that sum to at most 1; releases within one way's parts are together within it.

    ε, ρ and D_α are cut by the shares, μ by their roots. A point (ε, δ) cannot be cut without loss: it is cut as the
    pure ε and as the Gaussian μ that it affords, for noise of either kind.

    >>> from dpmanifolds.privacy import PureDP, split
    >>> [round(part.epsilon, 6) for part in split(PureDP(1.0), [0.25, 0.75])[0]]
    [0.25, 0.75]
    """
    try:
        parts = [positive_number("share", share) for share in shares]
    except TypeError:
        raise ArgumentError(f"shares must be a list of numbers such as [0.5, 0.5]; got {shares!r}.") from None
    if not parts or math.fsum(parts) > 1 + 1e-12:
        raise ArgumentError(f"shares must be one or more numbers above 0 with a sum of at most 1; got {parts}.")
    return checked_budget(budget).cut(_exact_shares(parts))


def _exact_shares(parts: list[float]) -> list[Fraction]:
    """The shares as exact numbers whose sum is at most 1: ten times the float 0.1 is a hair more."""
    exact = [Fraction(part) for part in parts]
    total = max(sum(exact, Fraction(0)), Fraction(1))
    return [share / total for share in exact]
