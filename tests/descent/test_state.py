"""Runs that crash: an entry of the ledger pays for so many draws, whatever happens to processes and files."""

from __future__ import annotations

import os
import shutil
import signal

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
from dpmanifolds.descent import draws, plan_descent, private_svrg
from dpmanifolds.descent.draws import StateFile
from dpmanifolds.descent.losses import FrechetMeanLoss, FrechetMedianLoss
from dpmanifolds.ledger import Ledger
from dpmanifolds.ledger.runs import PaidRun
from dpmanifolds.releases import private_descent
from tests.descent.runs import (
    BALL,
    FORK,
    RECORDS,
    SPACE,
    STEPS,
    CrashError,
    count_draws,
    crash_at,
    interrupt,
    lose_a_draw,
    run,
    spends,
)


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
    assert (result.descent.steps, result.descent.lost_steps) == (10, 0)
    assert result.guarantee.fits(GaussianDP(1.0))
    assert len(spends(ledger)) == 1
    ledger.verify()


@pytest.mark.parametrize("terms", [{"budget": GaussianDP(1.0)}, {"sigma": 0.1}])
def test_a_lost_draw_is_one_step_less_and_never_made_again(path, ledger, monkeypatch, terms):
    made = count_draws(monkeypatch)
    lose_a_draw(path, ledger, monkeypatch, 3, **terms)
    lose_a_draw(path, ledger, monkeypatch, 0, **terms)
    result = run(path, ledger, **terms)
    assert (result.descent.steps, result.descent.lost_steps) == (8, 2)
    assert made == list(range(STEPS))
    assert len(spends(ledger)) == 1
    assert result.guarantee == spends(ledger)[0].guarantee
    if "noise" in terms:
        assert (
            result.guarantee
            == plan_descent(n=300, clip_norm=result.descent.clip_norm, sigma=0.1, steps=STEPS).guarantee
        )


def test_every_draw_may_be_lost(path, ledger, monkeypatch):
    for _ in range(STEPS):
        lose_a_draw(path, ledger, monkeypatch, 0)
    result = run(path, ledger)
    assert (result.descent.steps, result.descent.lost_steps) == (0, STEPS)
    assert np.array_equal(result.value, BALL.center)


@pytest.mark.parametrize("step", [1, 5, 9, 10])
def test_five_copies_of_a_state_give_one_result_for_one_charge(path, ledger, tmp_path, monkeypatch, step):
    interrupt(path, ledger, step)
    copies = [shutil.copy(path, tmp_path / f"copy{i}.json") for i in range(5)]
    made = count_draws(monkeypatch)
    told = []
    for copy in copies:
        try:
            told.append(run(copy, ledger).value)
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
    assert run(path, ledger).descent.steps == STEPS - 1
    assert run(path, ledger).descent.steps == STEPS - 1
    with pytest.raises(BudgetExceededError, match="has ended"):
        run(early, ledger)


def test_an_older_state_is_refused_while_the_run_goes_on(path, ledger, tmp_path):
    interrupt(path, ledger, 2)
    old = shutil.copy(path, tmp_path / "old.json")
    interrupt(path, ledger, 5)
    with pytest.raises(BudgetExceededError, match="used before"):
        run(old, ledger)
    assert run(path, ledger).descent.steps == STEPS


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
        return run(state, Ledger(ledger)).value.tolist()
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
    assert np.array_equal(one.value, two.value)
    assert (one.guarantee, made) == (two.guarantee, [])
    assert len(spends(ledger)) == 1


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


@pytest.mark.grid(at_most=2)
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
    assert (result.descent.steps, result.descent.lost_steps) == (STEPS - lost, lost)
    assert len(spends(ledger)) == 1
    assert np.array_equal(run(path, ledger).value, result.value)


def test_a_reservation_pays_for_a_run(path, ledger):
    promise = plan_descent(n=300, clip_norm=FrechetMeanLoss(BALL).bound, budget=GaussianDP(1.0), steps=STEPS).guarantee
    plan = ledger.reserve("A", [promise], what="one run")
    interrupt(path, plan)
    assert run(path, plan).descent.steps == STEPS
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


@pytest.mark.grid(at_most=1)
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
    assert fit(path, ledger).release_.descent.lost_steps == 1
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
    assert bool(space.belongs(result.value))
    assert result.descent.steps == 4


def test_the_fingerprint_of_records_knows_neither_order_nor_blocks(path, ledger):
    interrupt(path, ledger, 2)
    interrupt(path, ledger, 4, records=RECORDS[::-1])
    interrupt(path, ledger, 6, records=[RECORDS[:100], RECORDS[100:]])
    assert run(path, ledger, records=lambda: iter(np.array_split(RECORDS, 7))).descent.steps == STEPS
