"""The exception family: what was given, what is allowed, what to do.

Errors about public arguments say everything. Errors that depend on records say only which rule failed, never a
value, an index or a count.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArgumentError",
    "BudgetExceededError",
    "ConvergenceError",
    "DPManifoldsError",
    "LedgerError",
    "NotAvailableError",
    "NotOnManifoldError",
    "PrivacyLeakWarning",
    "RadiusTooLargeError",
    "ScaleOutOfRangeError",
]


class DPManifoldsError(Exception):
    """Base of every error this package raises on purpose."""


class ArgumentError(DPManifoldsError, ValueError):
    """A public argument is outside what is allowed."""


class NotOnManifoldError(DPManifoldsError, ValueError):
    """Records, a centre or a start point do not lie on the manifold."""


class RadiusTooLargeError(DPManifoldsError, ValueError):
    """A ball is larger than the radius up to which the Fréchet mean is unique."""


class ScaleOutOfRangeError(DPManifoldsError, ValueError):
    """A law does not exist, or cannot be drawn or represented, at this scale."""


class NotAvailableError(DPManifoldsError, NotImplementedError):
    """A quantity that exists but that this package does not compute on this manifold."""


class ConvergenceError(DPManifoldsError, ArithmeticError):
    """An iteration could not reach what it promised."""


class BudgetExceededError(DPManifoldsError, ValueError):
    """A ledger refuses a release: what was spent, asked for and remains, as budgets (None is nothing)."""

    def __init__(
        self, message: str, *, dataset: str = "", spent: Any = None, asked: Any = None, remaining: Any = None
    ) -> None:
        super().__init__(message)
        self.dataset = dataset
        self.spent = spent
        self.asked = asked
        self.remaining = remaining


class LedgerError(DPManifoldsError, RuntimeError):
    """The file of a ledger cannot be read, trusted or written; nothing was spent."""


class PrivacyLeakWarning(UserWarning):
    """A public quantity was computed from private records."""
