"""Crashes that are known and not repaired yet, by exception and room; any other crash fails the tests.

Nearly all are wrong types or absurd sizes of arguments that end in another exception than one of ours: complex or long
double numbers on a real manifold (TypeError), whole numbers beyond floats (OverflowError), arrays where a word or a
number is meant (ValueError), budgets such as ε = 1e−320 (Hang, MemoryError). The `LinAlgError` is a private descent
whose noisy step leaves what floats can hold: it depends on the noise. `releases`, `mechanisms`, `noise` and `domains`
have none.
"""

from __future__ import annotations

__all__ = ["is_known"]

_KNOWN = (
    "Hang in ledger/",
    "Hang in privacy/",
    "LinAlgError in manifolds/",
    "MemoryError in privacy/",
    "OverflowError in _validate.py",
    "OverflowError in optimize/",
    "OverflowError in privacy/",
    "OverflowError in statistics/records.py",
    "TypeError in _arrays.py",
    "TypeError in _validate.py",
    "TypeError in data/",
    "TypeError in manifolds/",
    "TypeError in optimize/",
    "TypeError in planning/",
    "TypeError in privacy/",
    "TypeError in statistics/",
    "UFuncTypeError in data/readers.py",
    "ValueError in _arrays.py",
    "ValueError in _validate.py",
    "ValueError in data/",
    "ValueError in manifolds/planar_shapes.py",
    "ValueError in optimize/",
    "ValueError in privacy/",
    "ValueError in statistics/records.py",
    "ZeroDivisionError in distributions/",
    "ZeroDivisionError in privacy/",
)


def is_known(failure: str) -> bool:
    """Whether a failure, as the report names it, is one of the known."""
    return failure.split(": ", 1)[1].startswith(_KNOWN)
