"""A short run of the fuzzer; `python -m tests.fuzz` makes long ones."""

from __future__ import annotations

import dpmanifolds as dpm
from tests.fuzz import engine
from tests.fuzz.calls import TARGETS
from tests.selection import thorough


@thorough("calls", 500, 2000)
def test_no_call_ends_in_anything_but_an_answer_or_one_of_our_errors(calls):
    report = engine.run(calls, seed=1)
    assert not report.failures, str(report)
    assert report.outcomes["done"] > calls / 5
    assert report.outcomes["refused"] > calls / 5


def test_the_fuzzer_sees_a_crash_and_can_repeat_it(monkeypatch):
    def crash(_):
        raise ZeroDivisionError

    monkeypatch.setitem(TARGETS, "crash", (1e9, crash))
    report = engine.run(2, seed=0)
    assert list(report.failures.values()) == [[0, 1]]
    assert engine.call(0, 1)[:2] == ("crash", "crashed")


def test_the_fuzzer_sees_a_hang(monkeypatch):
    def turn(_):
        while True:
            pass

    monkeypatch.setitem(TARGETS, "turn", (1e9, turn))
    monkeypatch.setattr(engine, "LONGEST", 0.05)
    assert engine.call(0, 0)[:2] == ("turn", "hung")


def test_a_refusal_is_no_failure(monkeypatch):
    monkeypatch.setitem(TARGETS, "refuse", (1e9, lambda _: dpm.SPD(0)))
    assert engine.call(0, 0) == ("refuse", "refused", "")
