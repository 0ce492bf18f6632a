"""A few of the red team's neighbours; `make redteam` attacks many."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from dpmanifolds.sums.contribution import TangentContribution
from tests.redteam import neighbours


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("seed", range(12))
def test_no_fault_is_found(seed):
    assert neighbours.attack(seed) == []


def test_a_sum_that_looks_at_its_company_is_found(monkeypatch):
    """As version 0.1 had it: one record off the sphere moves all others by an ulp."""
    honest = TangentContribution.__call__

    def careless(self, block):
        whole, broken = honest(self, block)
        return whole + int(np.abs(whole).sum() % 2), broken

    monkeypatch.setattr(TangentContribution, "__call__", careless)
    assert any("depend on another record" in fault for seed in range(12) for fault in neighbours.attack(seed))


def test_a_record_that_decides_whether_there_is_a_release_is_found(monkeypatch):
    honest = TangentContribution.__call__

    def fragile(self, block):
        whole, broken = honest(self, block)
        if int(np.abs(whole).sum()) % 2:
            raise ArithmeticError
        return whole, broken

    monkeypatch.setattr(TangentContribution, "__call__", fragile)

    def is_found(seed):
        with suppress(ArithmeticError):
            return any("ends in" in fault for fault in neighbours.attack(seed))

    assert any(map(is_found, range(12)))


def test_a_record_that_counts_twice_is_found(monkeypatch):
    honest = TangentContribution.__call__

    def doubled(self, block):
        whole, broken = honest(self, block)
        return 2 * whole, broken

    monkeypatch.setattr(TangentContribution, "__call__", doubled)
    assert any("more than is paid for" in fault for seed in range(12) for fault in neighbours.attack(seed))
