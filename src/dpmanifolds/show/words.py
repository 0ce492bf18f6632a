"""Shares in words."""

from __future__ import annotations

__all__ = ["percent"]


def percent(share: float) -> str:
    """With one decimal.

    >>> percent(0.7311)
    '73.1 %'
    """
    return f"{100 * share:.1f} %"
