"""A state serves the run that wrote it, on its records, data set, ledger, budget and settings, and nothing else."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from dpmanifolds import (
    ArgumentError,
    Ball,
    BudgetExceededError,
    GaussianDP,
)
from dpmanifolds.descent import plan_descent
from dpmanifolds.descent.draws import StateFile
from dpmanifolds.descent.losses import FrechetMeanLoss, FrechetMedianLoss
from dpmanifolds.errors import LedgerError
from dpmanifolds.ledger import Ledger
from tests.descent.runs import (
    BALL,
    RECORDS,
    SPACE,
    STEPS,
    interrupt,
    lose_a_draw,
    run,
    spends,
)
from tests.ledger.test_store import change


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"records": np.broadcast_to(np.eye(2), RECORDS.shape)}, "other records"),
        ({"records": np.concatenate([RECORDS[:-1], BALL.center[None]])}, "other records"),
        ({"records": np.concatenate([RECORDS[:-1], RECORDS[:1]])}, "other records"),
        ({"group_by": np.arange(300)}, "other"),
        ({"dataset": "B"}, "data set 'A'"),
        ({"budget": GaussianDP(1.01)}, "other settings"),
        ({"budget": None, "sigma": 0.01}, "other settings"),
        ({"steps": 11}, "other settings"),
        ({"step_size": 0.4}, "other settings"),
        ({"start": 2 * np.eye(2)}, "other settings"),
        ({"output": "average"}, "other settings"),
        ({"loss": FrechetMedianLoss(BALL)}, "other settings"),
        ({"loss": FrechetMeanLoss(Ball(SPACE, 2 * np.eye(2), 2.0))}, "other settings"),
        ({"domain": BALL}, "other settings"),
        ({"adjacency": "add-remove-one", "n_guess": 300}, "other settings"),
    ],
)
def test_a_state_serves_no_other_run(path, ledger, change, match):
    ledger.open_dataset("C", GaussianDP(2.0), adjacency="add-remove-one")
    interrupt(path, ledger)
    before = (path.read_bytes(), spends(ledger))
    with pytest.raises(ArgumentError, match=match):
        run(path, ledger, **change)
    assert (path.read_bytes(), spends(ledger)) == before
    assert run(path, ledger).descent.lost_steps == 0


def test_a_plan_without_a_budget_is_not_resumed_with_one(path, ledger):
    budget = GaussianDP(1.0)
    clip = FrechetMeanLoss(BALL).bound
    noise = plan_descent(n=300, clip_norm=clip, budget=budget, steps=STEPS).sigma
    interrupt(path, ledger, sigma=noise)
    with pytest.raises(ArgumentError, match="other settings"):
        run(path, ledger, budget=budget)


def test_a_domain_elsewhere_is_another_setting(path, ledger):
    interrupt(path, ledger, domain=BALL)
    with pytest.raises(ArgumentError, match="other settings"):
        run(path, ledger, domain=Ball(SPACE, 1.5 * np.eye(2), 2.0))
    assert run(path, ledger, domain=Ball(SPACE, np.eye(2), 2.0)).descent.steps == STEPS


def test_a_state_belongs_to_its_ledger(path, ledger, tmp_path, monkeypatch):
    other = Ledger(tmp_path / "other.ledger")
    other.open_dataset("A", GaussianDP(2.0))
    lose_a_draw(path, ledger, monkeypatch, 0)
    with pytest.raises(ArgumentError, match="another ledger"):
        run(path, other)
    interrupt(path, ledger, 3)
    with pytest.raises(ArgumentError, match="another ledger"):
        run(path, other)
    assert spends(other) == []


def test_a_ledger_that_was_put_back_shows(path, ledger, tmp_path):
    backup = shutil.copy(ledger.path, tmp_path / "backup")
    interrupt(path, ledger, 2)
    later = shutil.copy(ledger.path, tmp_path / "later")
    interrupt(path, ledger, 6)
    shutil.copy(later, ledger.path)
    with pytest.raises(BudgetExceededError, match="put back"):
        run(path, ledger)
    shutil.copy(backup, ledger.path)
    with pytest.raises(ArgumentError, match="knows nothing"):
        run(path, ledger)


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data["facts"].update(position=5),
        lambda data: data["facts"].update(lost=1),
        lambda data: data["facts"].update(settings="0" * 64),
        lambda data: data["points"]["point"]["real"].reverse(),
        lambda data: data.update(tag="0" * 64),
    ],
)
def test_an_edited_state_is_refused(path, ledger, edit):
    interrupt(path, ledger)
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ArgumentError, match="altered"):
        run(path, ledger)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 1, "run": "x", "finished": 3}', '{"schema": 2}'])
def test_other_files_are_refused(path, ledger, text):
    path.write_text(text)
    with pytest.raises(ArgumentError, match="holds no state"):
        run(path, ledger)
    assert spends(ledger) == []


@pytest.mark.parametrize("state", ["", ".", "none/run.json", "/dev/zero", "/dev/full", "x" * 300])
def test_a_state_that_cannot_be_written_is_refused_before_anything_is_spent(ledger, state, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="state must be a file"):
        run(state, ledger)
    assert spends(ledger) == []


def test_a_ledger_is_no_state(ledger):
    with pytest.raises(ArgumentError, match="holds no state"):
        run(ledger.path, ledger)
    ledger.verify()


def test_the_draws_of_a_ledger_only_grow(path, ledger):
    interrupt(path, ledger)
    for statement in (
        "UPDATE runs SET drawn = 0",
        "UPDATE runs SET drawn = drawn + 2",
        "UPDATE runs SET steps = 100, drawn = drawn + 1",
        "DELETE FROM runs",
        "INSERT OR REPLACE INTO runs SELECT name, entry, steps, secret, 0, '', seal FROM runs",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            change(ledger.path, statement)
    change(ledger.path, "UPDATE runs SET drawn = drawn + 1")
    for act in (lambda: run(path, ledger), ledger.verify):
        with pytest.raises(LedgerError, match="altered or damaged"):
            act()
    change(ledger.path, "DROP TABLE runs")
    for act in (lambda: run(path, ledger), ledger.verify):
        with pytest.raises(LedgerError):
            act()


def test_the_secret_of_a_run_stands_in_its_row_only(path, ledger):
    interrupt(path, ledger)
    with closing(sqlite3.connect(ledger.path)) as connection:
        ((secret,),) = connection.execute("SELECT secret FROM runs").fetchall()
    assert secret not in path.read_text() + ledger.export() + ledger.export("csv")


def test_two_processes_cannot_share_a_state(path, ledger):
    with StateFile(path), pytest.raises(ArgumentError, match="another process"):
        run(path, ledger)


def test_a_seed_is_refused(path, ledger):
    with pytest.raises(ArgumentError, match="leave rng out"):
        run(path, ledger, rng=0)


def test_a_refusal_of_the_ledger_leaves_a_path_that_can_be_used(path, ledger):
    with pytest.raises(BudgetExceededError):
        run(path, ledger, budget=GaussianDP(3.0))
    assert run(path, ledger).descent.steps == STEPS
