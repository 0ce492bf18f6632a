"""Crashes that are known and not repaired yet, by exception and file; any other crash fails the tests.

All but one are arguments of a wrong type or of absurd size; they do not depend on the value of a record, and nothing is
spent: a ρ above 1e13, tolerances beyond floats and log-Cholesky balls whose condition overflows (OverflowError), radii
that underflow (ZeroDivisionError), text or decimals as a tolerance, coverage or margin, and a function that gives
no blocks (TypeError). The `LinAlgError` is a mean without privacy of matrices whose sum leaves the floats.
"""

from __future__ import annotations

__all__ = ["is_known"]

_KNOWN = (
    "LinAlgError in statistics/_start.py",
    "OverflowError in privacy/_renyi.py",
    "OverflowError in privacy/sensitivity.py",
    "OverflowError in privacy/solver.py",
    "TypeError in statistics/mean.py",
    "TypeError in statistics/reference.py",
    "TypeError in statistics/sources.py",
    "ZeroDivisionError in privacy/solver.py",
)


def is_known(failure: str) -> bool:
    """Whether a failure, as the report names it, is one of the known."""
    return failure.split(": ", 1)[1].startswith(_KNOWN)
