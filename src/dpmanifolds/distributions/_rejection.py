"""Rejection sampling of independent, identically distributed draws, in batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dpmanifolds.errors import ConvergenceError

__all__ = ["Proposal", "collect"]

Proposal: TypeAlias = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
"""Makes so many proposals (as rows) and says which are accepted."""


def collect(
    count: int,
    width: int,
    propose: Proposal,
    rng: np.random.Generator,
    *,
    batch: int,
    most: float = math.inf,
    failure: str = "",
) -> np.ndarray:
    """The first `count` accepted proposals, as rows of `width` numbers.

    Proposals are asked for in batches of at most `batch`. When `most` times as many as were accepted, plus one, have
    been made, `ConvergenceError` says `failure`.

    >>> import numpy as np
    >>> from dpmanifolds.distributions._rejection import collect
    >>> def half_normal(size, rng):
    ...     draws = rng.standard_normal((size, 1))
    ...     return draws, draws[:, 0] > 0
    >>> collect(5, 1, half_normal, np.random.default_rng(0), batch=100).shape
    (5, 1)
    """
    result = np.empty((count, width))
    done, tried, size = 0, 0, min(max(2 * count, 16), batch)
    while done < count:
        if tried > most * (done + 1):
            raise ConvergenceError(failure)
        rows, accepted = propose(size, rng)
        found = rows[accepted][: count - done]
        result[done : done + found.shape[0]] = found
        done, tried = done + found.shape[0], tried + size
        # enough for what is left at the rate so far, or twice as many while there is none
        wanted = 1.25 * (count - done) * tried / done if done else 2 * size
        size = int(min(max(math.ceil(wanted), 16), batch))
    return result
