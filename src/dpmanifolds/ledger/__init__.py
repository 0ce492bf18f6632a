"""The account that never overspends: a file that every release is entered into before its noise is drawn."""

from __future__ import annotations

from dpmanifolds.ledger.account import Ledger, as_ledger
from dpmanifolds.ledger.records import Dataset, Entry, Receipt, keyed_fingerprint
from dpmanifolds.ledger.runs import Reservation

__all__ = ["Dataset", "Entry", "Ledger", "Receipt", "Reservation", "as_ledger", "keyed_fingerprint"]
