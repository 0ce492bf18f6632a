"""Crowds, forks and small runs of `tests.ledger.torture`, and that its judge can condemn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpmanifolds.errors import BudgetExceededError
from dpmanifolds.ledger import Ledger, Receipt
from dpmanifolds.privacy import Guarantee, PureDP
from tests.ledger import torture
from tests.ledger.connections import watch_commits

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def folder():
    """In memory where that is possible: a kill does not lose what the system holds, so the disk's pace adds nothing."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        yield Path(name)


@posix
def test_four_processes_of_fifty_spends_get_exactly_the_budget(folder):
    score = torture.crowd(folder, 4, 200)
    assert score.passed
    assert (score.tried, score.acknowledged, score.refused, score.recorded) == (200, 180, 20, 180)


def test_threads_get_exactly_the_budget(folder):
    ledger = Ledger(folder / "privacy.ledger")
    ledger.open_dataset("survey", PureDP(1.0))

    def spend(_):
        try:
            return ledger.spend("survey", Guarantee.pure(0.03125), what="mean").number
        except BudgetExceededError:
            return None

    with ThreadPoolExecutor(8) as pool:
        numbers = [number for number in pool.map(spend, range(40)) if number is not None]
    assert sorted(numbers) == list(range(2, 34))


@posix
def test_a_fork_waits_for_the_transaction_of_another_thread_and_the_child_can_spend(folder, monkeypatch):
    ledger = Ledger(folder / "privacy.ledger")
    ledger.open_dataset("survey", PureDP(1.0))
    inside, enough = threading.Event(), threading.Event()

    def hold(_):
        if threading.current_thread() is thread:
            inside.set()
            enough.wait(0.2)

    watch_commits(monkeypatch, hold)
    spent = {"what": "by a thread"}
    thread = threading.Thread(target=ledger.spend, args=("survey", Guarantee.pure(0.125)), kwargs=spent)
    thread.start()
    inside.wait()
    child = fork_and_spend(ledger)
    enough.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ledger.spend("survey", Guarantee.pure(0.125), what="by the parent")
    assert [entry.what for entry in ledger.entries()] == [None, "by a thread", "by a child", "by the parent"]


def fork_and_spend(ledger):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    status = 1
    signal.alarm(20)  # a child that inherits a held lock would wait for ever
    try:
        ledger.spend("survey", Guarantee.pure(0.125), what="by a child")
        status = 0
    finally:
        os._exit(status)


@posix
def test_a_small_torture_is_survived(folder):
    command = ["-m", "tests.ledger.torture", "--processes=2", "--spends=20", "--kills=5", "--pages=100"]
    command += ["--folder", str(folder), "--seed=1"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[-2:] for line in done.stdout.splitlines()[1:]] == [["0", "0"]] * 6


@posix
def test_a_full_disk_is_survived_without_a_disk_of_ones_own(folder, monkeypatch):
    monkeypatch.setattr(torture.shutil, "which", lambda name: None)
    score = torture.full_disk(folder)
    assert "limit" in score.ordeal
    assert score.passed
    assert score.failed == 1
    assert score.acknowledged == score.recorded > 10


def test_the_judge_condemns_lost_spends_and_overspending(folder):
    ledger = torture.opened(folder / "privacy.ledger", 5)
    receipts = [torture.spend(ledger) for _ in range(4)]
    fair, lost, over = torture.Score("fair"), torture.Score("lost"), torture.Score("over")
    fair.judge(ledger, receipts, 4)
    lost.judge(ledger, [*receipts, Receipt("survey", "mean", 6, "", "f" * 64)], 5)
    over.judge(ledger, receipts, 3)
    assert (fair.passed, lost.passed, over.passed) == (True, False, False)
    assert (lost.lost, over.overspent) == (1, 1)
