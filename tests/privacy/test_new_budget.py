"""A new kind of budget is one class: the rest of the package knows it from then on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget, PureDP, convert, split
from dpmanifolds.privacy.budget import KINDS, KINDS_BY_FILTER, budget_of

UNIT = math.log(2.0)


@pytest.fixture(scope="module")
def bits():
    """Pure ε in bits: one bit at most doubles any probability."""

    @dataclass(frozen=True)
    class BitsDP(Budget):
        bits: float
        spends: ClassVar[str] = "bits"
        filter: ClassVar[str] = "bits"
        filter_reads: ClassVar[str] = "releases with a bounded loss"
        bounded_loss: ClassVar[bool] = True

        def as_pure(self):
            return PureDP(self.bits * UNIT)

        @classmethod
        def read_from(cls, promise, **kept):
            return cls(math.nextafter(promise.as_pure().epsilon / UNIT, math.inf))

        def spent_by(self, guarantee):
            epsilon = guarantee.total_pure()
            return None if epsilon is None else epsilon / UNIT

        def largest_epsilon(self):
            return self.bits * UNIT

        def gaussian_mu(self):
            return self.as_pure().gaussian_mu()

        @classmethod
        def limit_within(cls, total, alpha):
            return cls(total.epsilon / UNIT)

    yield BitsDP
    del KINDS["BitsDP"], KINDS_BY_FILTER["bits"]


def test_it_is_written_printed_and_made_by_its_numbers(bits):
    assert Budget.from_dict(bits(1.5).to_dict()) == bits(1.5) == budget_of(bits=1.5)
    assert (bits(1.5).in_words(), bits(1.5).label) == ("bits = 1.5", "bits=1.5")
    with pytest.raises(ArgumentError, match="RenyiDP or BitsDP"):
        split(1.0, [1.0])


def test_it_is_read_split_and_converted(bits):
    assert convert(PureDP(UNIT), bits).bits == pytest.approx(1.0)
    assert split(bits(1.0), [0.25, 0.75]) == [(bits(0.25), bits(0.75))]


def test_a_mean_is_released_under_it_written_down_and_charged(bits, tmp_path):
    ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4)
    records = dpm.Sphere(2).random_point(300, rng=0)
    ledger = dpm.Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("survey", bits(3.0))
    release = dpm.private_mean(records, ball, bits(1.0), ledger=ledger, dataset="survey")
    assert release.spent.bits == pytest.approx(1.0)
    assert dpm.Release.from_json(release.to_json()) == release
    assert ledger.remaining("survey").bits == pytest.approx(2.0)
    with pytest.raises(dpm.BudgetExceededError):
        dpm.private_mean(records, ball, bits(2.5), ledger=ledger, dataset="survey")


def test_a_descent_is_planned_under_it(bits):
    from dpmanifolds.descent import plan_descent

    planned = plan_descent(n=1000, clip_norm=1.0, budget=bits(1.0), steps=10)
    assert planned.law == "laplace"
    assert planned.guarantee.fits(bits(1.0), strict=True)
