"""Budgets in words."""

from __future__ import annotations

from typing import Any

from dpmanifolds.privacy import RenyiDP

__all__ = ["budget_in_words", "percent"]

_LETTERS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ"}


def budget_in_words(budget: Any) -> str:
    """The numbers of a budget.

    >>> from dpmanifolds import ApproxDP
    >>> budget_in_words(ApproxDP(1.0, 1e-6))
    'ε = 1, δ = 1e-06'
    """
    if isinstance(budget, RenyiDP):
        return f"Rényi ε = {budget.epsilon:.6g} of order {budget.alpha:.4g}"
    return ", ".join(f"{_LETTERS[name]} = {value:.6g}" for name, value in vars(budget).items())


def percent(share: float) -> str:
    """With one decimal.

    >>> percent(0.7311)
    '73.1 %'
    """
    return f"{100 * share:.1f} %"
