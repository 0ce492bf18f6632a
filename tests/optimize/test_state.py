"""Runs that crash: an entry of the ledger pays for so many draws, whatever happens to processes and files."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    ArgumentError,
    Ball,
    BudgetExceededError,
    GaussianDP,
    Hyperbolic,
    PlanarShapes,
    PrivateFrechetMedian,
    PrivatePCA,
    Product,
    private_median,
)
from dpmanifolds.errors import LedgerError
from dpmanifolds.ledger import Ledger
from dpmanifolds.ledger.runs import PaidRun
from dpmanifolds.optimize import FrechetMeanLoss, FrechetMedianLoss, draws, plan_descent, private_descent, private_svrg
from dpmanifolds.optimize.draws import Draws
from dpmanifolds.optimize.state import StateFile
from tests.ledger.test_store import change

SPACE = SPD(2)
BALL = Ball(SPACE, np.eye(2), 2.0)
RECORDS = BALL.clip(SPACE.random_point(300, rng=0))
STEPS = 10
FORK = multiprocessing.get_context("fork")


class CrashError(Exception):
    pass


def crash_at(step):
    def callback(t, _):
        if t == step:
            raise CrashError

    return callback


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    for name in ("A", "B"):
        ledger.open_dataset(name, GaussianDP(2.0))
    return ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"


def run(state, ledger, records=RECORDS, loss=None, **options):
    settings = {"start": BALL.center, "steps": STEPS, "step_size": 0.5, "dataset": "A"} | options
    if not {"noise", "budget"} & set(settings):
        settings["budget"] = GaussianDP(1.0)
    return private_descent(loss or FrechetMeanLoss(BALL), records, SPACE, state=state, ledger=ledger, **settings)


def interrupt(state, ledger, step=4, **options):
    with pytest.raises(CrashError):
        run(state, ledger, callback=crash_at(step), **options)


def lose_a_draw(state, ledger, monkeypatch, after, act=run, **options):
    """Die with a draw that was taken, and made, and not saved: the `after`-th of this process, from 0."""
    saved = iter(range(after + 1))
    save = Draws.save

    def dies(draws, points):
        if next(saved) == after:
            raise CrashError
        save(draws, points)

    with monkeypatch.context() as patch:
        patch.setattr(Draws, "save", dies)
        with pytest.raises(CrashError):
            act(state, ledger, **options)


def spends(ledger):
    return [entry for entry in ledger.entries() if entry.kind in ("spend", "use")]


def count_draws(monkeypatch):
    """Every draw of noise that is made from here on, by position."""
    made = []
    take = PaidRun.take

    def counted(paid, position):
        take(paid, position)
        made.append(position)

    monkeypatch.setattr(PaidRun, "take", counted)
    return made


def test_a_state_needs_a_ledger(path):
    with pytest.raises(ArgumentError, match="state= needs ledger="):
        run(path, None, dataset=None)
    assert not path.exists()


def test_a_data_set_needs_a_ledger():
    for act in (
        lambda: run(None, None, dataset="B"),
        lambda: svrg(None, None, dataset="B"),
        lambda: private_median(RECORDS, BALL, GaussianDP(1.0), dataset="B"),
    ):
        with pytest.raises(ArgumentError, match="ledger"):
            act()


def test_an_interrupted_run_goes_on_and_is_charged_once(path, ledger):
    interrupt(path, ledger, 4)
    seen = []
    result = run(path, ledger, callback=lambda t, _: seen.append(t))
    assert seen == [5, 6, 7, 8, 9, 10]
    assert (result.steps, result.lost_steps) == (10, 0)
    assert result.guarantee.fits(GaussianDP(1.0))
    assert len(spends(ledger)) == 1
    ledger.verify()


@pytest.mark.parametrize("terms", [{"budget": GaussianDP(1.0)}, {"noise": 0.1}])
def test_a_lost_draw_is_one_step_less_and_never_made_again(path, ledger, monkeypatch, terms):
    made = count_draws(monkeypatch)
    lose_a_draw(path, ledger, monkeypatch, 3, **terms)
    lose_a_draw(path, ledger, monkeypatch, 0, **terms)
    result = run(path, ledger, **terms)
    assert (result.steps, result.lost_steps) == (8, 2)
    assert made == list(range(STEPS))
    assert len(spends(ledger)) == 1
    assert result.guarantee == spends(ledger)[0].guarantee
    if "noise" in terms:
        assert result.guarantee == plan_descent(n=300, clip=result.clip, noise=0.1, steps=STEPS).guarantee


def test_every_draw_may_be_lost(path, ledger, monkeypatch):
    for _ in range(STEPS):
        lose_a_draw(path, ledger, monkeypatch, 0)
    result = run(path, ledger)
    assert (result.steps, result.lost_steps) == (0, STEPS)
    assert np.array_equal(result.point, BALL.center)


@pytest.mark.parametrize("step", [1, 5, 9, 10])
def test_five_copies_of_a_state_give_one_result_for_one_charge(path, ledger, tmp_path, monkeypatch, step):
    interrupt(path, ledger, step)
    copies = [shutil.copy(path, tmp_path / f"copy{i}.json") for i in range(5)]
    made = count_draws(monkeypatch)
    told = []
    for copy in copies:
        try:
            told.append(run(copy, ledger).point)
        except BudgetExceededError:
            continue
    assert made == list(range(step, STEPS))
    # at the last step nothing is left to be drawn, and all copies tell the same
    assert len(told) == (5 if step == STEPS else 1)
    assert all(np.array_equal(point, told[0]) for point in told)
    assert len(spends(ledger)) == 1


def test_a_state_of_the_last_lost_draw_is_told_once(path, ledger, tmp_path, monkeypatch):
    lose_a_draw(path, ledger, monkeypatch, STEPS - 1)
    early = shutil.copy(path, tmp_path / "early.json")
    assert run(path, ledger).steps == STEPS - 1
    assert run(path, ledger).steps == STEPS - 1
    with pytest.raises(BudgetExceededError, match="has ended"):
        run(early, ledger)


def test_an_older_state_is_refused_while_the_run_goes_on(path, ledger, tmp_path):
    interrupt(path, ledger, 2)
    old = shutil.copy(path, tmp_path / "old.json")
    interrupt(path, ledger, 5)
    with pytest.raises(BudgetExceededError, match="used before"):
        run(old, ledger)
    assert run(path, ledger).steps == STEPS


def test_a_copy_that_runs_at_the_same_time_stops_one_of_the_two(path, ledger, tmp_path, monkeypatch):
    interrupt(path, ledger, 2)
    copy = shutil.copy(path, tmp_path / "copy.json")
    made = count_draws(monkeypatch)

    def meanwhile(t, _):
        if t == 5:
            shutil.copy(path, copy)
            run(copy, ledger)

    with pytest.raises(BudgetExceededError, match="taken already"):
        run(path, ledger, callback=meanwhile)
    assert made == list(range(2, STEPS))
    with pytest.raises(BudgetExceededError, match="has ended"):
        run(path, ledger)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_middle_of_a_run_shares_the_draws(path, ledger):
    ends = []

    def fork(t, _):
        if t == 3:
            ends.append(os.fork())

    try:
        run(path, ledger, callback=fork)
        ended = 0
    except BudgetExceededError:
        ended = 1
    if ends == [0]:
        os._exit(ended)
    _, status = os.waitpid(ends[0], 0)
    assert sorted([ended, os.waitstatus_to_exitcode(status)]) in ([0, 1], [1, 1])
    assert len(spends(ledger)) == 1


def _race(arguments):
    state, ledger = arguments
    try:
        return run(state, Ledger(ledger)).point.tolist()
    except (BudgetExceededError, ArgumentError):
        return None


def test_processes_that_resume_copies_at_once_make_each_draw_once(path, ledger, tmp_path):
    interrupt(path, ledger, 2)
    copies = [str(shutil.copy(path, tmp_path / f"copy{i}.json")) for i in range(4)]
    with FORK.Pool(4) as pool:
        told = [point for point in pool.map(_race, [(copy, ledger.path) for copy in copies], 1) if point is not None]
    assert all(point == told[0] for point in told)
    assert len(spends(ledger)) == 1
    ledger.verify()


def test_a_finished_run_is_told_again_and_not_paid_again(path, ledger, monkeypatch):
    one = run(path, ledger, output="average")
    made = count_draws(monkeypatch)
    two = run(path, ledger, output="average")
    assert np.array_equal(one.point, two.point)
    assert (one.guarantee, made) == (two.guarantee, [])
    assert len(spends(ledger)) == 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"records": np.broadcast_to(np.eye(2), RECORDS.shape)}, "other records"),
        ({"records": np.concatenate([RECORDS[:-1], BALL.center[None]])}, "other records"),
        ({"records": np.concatenate([RECORDS[:-1], RECORDS[:1]])}, "other records"),
        ({"group_by": np.arange(300)}, "other"),
        ({"dataset": "B"}, "data set 'A'"),
        ({"budget": GaussianDP(1.01)}, "other settings"),
        ({"budget": None, "noise": 0.01}, "other settings"),
        ({"steps": 11}, "other settings"),
        ({"step_size": 0.4}, "other settings"),
        ({"start": 2 * np.eye(2)}, "other settings"),
        ({"output": "average"}, "other settings"),
        ({"loss": FrechetMedianLoss(BALL)}, "other settings"),
        ({"loss": FrechetMeanLoss(Ball(SPACE, 2 * np.eye(2), 2.0))}, "other settings"),
        ({"within": BALL}, "other settings"),
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
    assert run(path, ledger).lost_steps == 0


def test_a_plan_without_a_budget_is_not_resumed_with_one(path, ledger):
    budget = GaussianDP(1.0)
    clip = FrechetMeanLoss(BALL).bound
    noise = plan_descent(n=300, clip=clip, budget=budget, steps=STEPS).noise
    interrupt(path, ledger, noise=noise)
    with pytest.raises(ArgumentError, match="other settings"):
        run(path, ledger, budget=budget)


def test_a_domain_elsewhere_is_another_setting(path, ledger):
    interrupt(path, ledger, within=BALL)
    with pytest.raises(ArgumentError, match="other settings"):
        run(path, ledger, within=Ball(SPACE, 1.5 * np.eye(2), 2.0))
    assert run(path, ledger, within=Ball(SPACE, np.eye(2), 2.0)).steps == STEPS


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


@pytest.mark.parametrize("state", ["", ".", "none/run.json"])
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
    assert run(path, ledger).steps == STEPS


def killed(where, state, ledger):
    """A run whose process is killed at this place."""

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    take, end, replace, count = PaidRun.take, PaidRun.end, os.replace, iter(range(100))
    if where == "before the charge":
        Ledger.spend = die
    elif where == "after the charge":
        draws.find_run = die
    elif where == "after a draw was taken":
        PaidRun.take = lambda paid, position: (take(paid, position), position == 3 and die())
    elif where == "in the middle of saving":
        os.replace = lambda a, b: die() if next(count) == 5 else replace(a, b)
    elif where == "before the end":
        PaidRun.end = die
    else:
        PaidRun.end = lambda paid, tag: (end(paid, tag), die())
    run(state, ledger)


@pytest.mark.parametrize(
    ("where", "charges", "lost"),
    [
        ("before the charge", 0, 0),
        ("after the charge", 1, 0),
        ("after a draw was taken", 1, 1),
        ("in the middle of saving", 1, 1),
        ("before the end", 1, 0),
        ("after the end", 1, 0),
    ],
)
def test_kill_9_anywhere_costs_no_second_charge(path, ledger, where, charges, lost):
    process = FORK.Process(target=killed, args=(where, path, ledger))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(spends(ledger)) == charges
    result = run(path, ledger)
    assert (result.steps, result.lost_steps) == (STEPS - lost, lost)
    assert len(spends(ledger)) == 1
    assert np.array_equal(run(path, ledger).point, result.point)


def test_a_reservation_pays_for_a_run(path, ledger):
    promise = plan_descent(n=300, clip=FrechetMeanLoss(BALL).bound, budget=GaussianDP(1.0), steps=STEPS).guarantee
    plan = ledger.reserve("A", [promise], what="one run")
    interrupt(path, plan)
    assert run(path, plan).steps == STEPS
    assert plan.unused() == ()
    assert [entry.kind for entry in spends(ledger)] == ["use"]


def svrg(state, ledger, **options):
    settings = {"start": BALL.center, "budget": ApproxDP(1.0, 1e-6), "anchors": 2, "inner": 2, "step_size": 0.4}
    settings |= {"smoothness": 2.0, "batch_size": 30, "dataset": "A"} | options
    return private_svrg(FrechetMeanLoss(BALL), RECORDS, SPACE, state=state, ledger=ledger, **settings)


@pytest.fixture
def approximate(tmp_path):
    ledger = Ledger(tmp_path / "approximate.ledger")
    ledger.open_dataset("A", ApproxDP(1.0, 1e-6))
    return ledger


@pytest.mark.parametrize("after", range(6))
def test_variance_reduction_goes_on_too(path, approximate, monkeypatch, after):
    made = count_draws(monkeypatch)
    lose_a_draw(path, approximate, monkeypatch, after, act=svrg)
    result = svrg(path, approximate)
    assert result.lost_steps == 1
    assert made == list(range(6))
    assert bool(SPACE.belongs(result.point))
    assert len(spends(approximate)) == 1
    with pytest.raises(ArgumentError, match="other settings"):
        svrg(path, approximate, step_size=0.3)


def test_the_median_goes_on_too(path, ledger, monkeypatch):
    def median(state, ledger, **options):
        return private_median(RECORDS, BALL, GaussianDP(1.0), state=state, ledger=ledger, dataset="A", **options)

    lose_a_draw(path, ledger, monkeypatch, 2, act=median, steps=6)
    model = PrivateFrechetMedian(BALL, GaussianDP(1.0), steps=6, state=path, ledger=ledger, dataset="A").fit(RECORDS)
    assert model.release_.reason.startswith("5 steps")
    assert np.array_equal(median(path, ledger, steps=6).value, model.median_)
    assert len(spends(ledger)) == 1


def test_principal_components_go_on_too(path, ledger, monkeypatch):
    table = np.random.default_rng(0).standard_normal((200, 4))

    def fit(state, ledger, **options):
        terms = {"solver": "descent", "steps": 5, "state": state, "ledger": ledger, "dataset": "A"} | options
        return PrivatePCA(2, GaussianDP(1.0), radius=4.0, **terms).fit(table)

    lose_a_draw(path, ledger, monkeypatch, 2, act=fit)
    assert fit(path, ledger).release_.lost_steps == 1
    assert len(spends(ledger)) == 1
    with pytest.raises(ArgumentError, match="state= is for solver='descent'"):
        fit(path, ledger, solver="covariance")


def test_points_come_back_bit_for_bit(path):
    for space in (PlanarShapes(4), Product(Hyperbolic(2), SPD(2))):
        point = space.random_point(rng=0)
        with StateFile(path) as file:
            file.write({}, {"point": point}, "")
            back = file.read()[1]["point"]
        parts = zip(point, back, strict=True) if isinstance(point, tuple) else [(point, back)]
        assert all(np.array_equal(a, b) for a, b in parts)


def test_shapes_resume(path, ledger):
    space = PlanarShapes(4)
    ball = Ball(space, space.random_point(rng=0), 0.5)
    records = ball.clip(space.random_point(50, rng=1))
    settings = {"start": ball.center, "steps": 4, "budget": GaussianDP(1.0), "step_size": 0.1, "state": path}
    settings |= {"ledger": ledger, "dataset": "A"}
    with pytest.raises(CrashError):
        private_descent(FrechetMedianLoss(ball), records, space, callback=crash_at(2), **settings)
    result = private_descent(FrechetMedianLoss(ball), records, space, **settings)
    assert bool(space.belongs(result.point))
    assert result.steps == 4


def test_the_fingerprint_of_records_knows_neither_order_nor_blocks(path, ledger):
    interrupt(path, ledger, 2)
    interrupt(path, ledger, 4, records=RECORDS[::-1])
    interrupt(path, ledger, 6, records=[RECORDS[:100], RECORDS[100:]])
    assert run(path, ledger, records=lambda: iter(np.array_split(RECORDS, 7))).steps == STEPS
