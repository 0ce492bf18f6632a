"""One budget cut into shares that compose back to it, exactly.

>>> from dpmanifolds.privacy import GaussianDP, split
>>> split(GaussianDP(1.0), [0.36, 0.64])
[(GaussianDP(mu=0.6), GaussianDP(mu=0.8))]
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpmanifolds._validate import positive_number
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy.affordable import affordable_epsilon, affordable_mu
from dpmanifolds.privacy.budgets import ApproxDP, Budget, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP

__all__ = ["split"]

_DOWN = 1 - 2.0**-50


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
    if isinstance(budget, PureDP):
        return [tuple(PureDP(budget.epsilon * part * _whole(part)) for part in parts)]
    if isinstance(budget, GaussianDP):
        return [tuple(GaussianDP(budget.mu * math.sqrt(part)) for part in parts)]
    if isinstance(budget, ZeroConcentratedDP):
        return [tuple(ZeroConcentratedDP(budget.rho * part * _whole(part)) for part in parts)]
    if isinstance(budget, RenyiDP):
        return [tuple(RenyiDP(budget.alpha, budget.epsilon * part * _whole(part)) for part in parts)]
    if not isinstance(budget, ApproxDP):
        raise ArgumentError(f"budget must be a budget such as PureDP; got {budget!r}.")
    ways = []
    for kind, afforded in ((PureDP, affordable_epsilon), (GaussianDP, affordable_mu)):
        try:
            ways += split(kind(afforded(budget)), parts)
        except NotAvailableError:
            continue
    return ways


def _whole(part: float) -> float:
    """A hair less for true shares, so that sums of rounded parts stay within the whole."""
    return 1.0 if part == 1.0 else _DOWN
