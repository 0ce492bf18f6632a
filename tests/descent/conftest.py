"""A ledger with two data sets, and the path of a state."""

from __future__ import annotations

import pytest

from dpmanifolds.ledger import Ledger
from dpmanifolds.privacy import GaussianDP


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    for name in ("A", "B"):
        ledger.open_dataset(name, GaussianDP(2.0))
    return ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"
