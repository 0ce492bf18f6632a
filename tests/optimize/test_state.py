"""Runs that crash: what was drawn is paid for, and what was saved is public."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpmanifolds import SPD, ArgumentError, Ball, GaussianDP, Hyperbolic, PlanarShapes, Product
from dpmanifolds.optimize import FrechetMeanLoss, FrechetMedianLoss, private_descent
from dpmanifolds.optimize.state import StateFile
from tests.optimize.test_descent import Book

SPACE = SPD(2)
BALL = Ball(SPACE, np.eye(2), 2.0)
RECORDS = BALL.clip(SPACE.random_point(500, rng=0))


class CrashError(Exception):
    pass


def crash_at(step):
    def callback(t, _):
        if t == step:
            raise CrashError

    return callback


def run(path, **options):
    settings = {"start": BALL.center, "steps": 10, "step_size": 0.5, "state": path} | options
    return private_descent(FrechetMeanLoss(BALL), RECORDS, SPACE, **settings)


def test_with_a_budget_a_lost_step_is_one_step_less(tmp_path):
    path, book = tmp_path / "run.json", Book()
    settings = {"budget": GaussianDP(1.0), "ledger": book, "dataset": "study"}
    with pytest.raises(CrashError):
        run(path, callback=crash_at(4), **settings)
    assert json.loads(path.read_text())["finished"] == 3
    seen = []
    result = run(path, callback=lambda t, _: seen.append(t), **settings)
    assert (result.steps, result.lost_steps) == (9, 1)
    assert seen == [4, 5, 6, 7, 8, 9]
    assert result.guarantee.fits(GaussianDP(1.0))
    assert len(book.entries) == 1


def test_without_a_budget_a_lost_step_is_paid_on_top(tmp_path):
    path, book = tmp_path / "run.json", Book()
    settings = {"noise": 0.1, "ledger": book, "dataset": "study"}
    for step in (4, 7):
        with pytest.raises(CrashError):
            run(path, callback=crash_at(step), **settings)
    result = run(path, **settings)
    assert (result.steps, result.lost_steps) == (10, 2)
    whole = run(None, noise=0.1).guarantee
    assert result.guarantee.as_gaussian().mu == pytest.approx(whole.as_gaussian().mu * np.sqrt(12 / 10))
    paid = sum(guarantee.as_gaussian().mu ** 2 for _, guarantee, *_ in book.entries)
    assert paid == pytest.approx(result.guarantee.as_gaussian().mu ** 2)


def test_a_lost_step_is_drawn_anew(tmp_path):
    path, seen = tmp_path / "run.json", []

    def callback(t, w):
        if t == 1:
            seen.append(w)
            if len(seen) == 1:
                raise CrashError

    with pytest.raises(CrashError):
        run(path, noise=0.1, callback=callback)
    run(path, noise=0.1, callback=callback)
    assert len(seen) == 2
    assert not np.array_equal(*seen)


def test_a_finished_run_is_told_again_and_not_paid_again(tmp_path):
    path, book = tmp_path / "run.json", Book()
    settings = {"budget": GaussianDP(1.0), "ledger": book, "dataset": "study", "output": "average"}
    one, two = run(path, **settings), run(path, **settings)
    assert np.array_equal(one.point, two.point)
    assert one.guarantee == two.guarantee
    assert len(book.entries) == 1


def test_a_state_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.json"
    run(path, noise=0.1)
    with pytest.raises(ArgumentError, match="other settings"):
        run(path, noise=0.2)
    path.write_text("{}")
    with pytest.raises(ArgumentError, match="holds no state"):
        run(path, noise=0.1)


def test_two_processes_cannot_share_a_state(tmp_path):
    path = tmp_path / "run.json"
    with StateFile(path, {}), pytest.raises(ArgumentError, match="another process"):
        run(path, noise=0.1)


def test_points_come_back_bit_for_bit(tmp_path):
    for space in (PlanarShapes(4), Product(Hyperbolic(2), SPD(2))):
        point = space.random_point(rng=0)
        with StateFile(tmp_path / "x.json", {}) as file:
            file.write(finished=1, started=1, lost=0, points={"point": point})
            back = file.read()["points"]["point"]
        parts = zip(point, back, strict=True) if isinstance(point, tuple) else [(point, back)]
        assert all(np.array_equal(a, b) for a, b in parts)


def test_shapes_resume(tmp_path):
    space = PlanarShapes(4)
    ball = Ball(space, space.random_point(rng=0), 0.5)
    records = ball.clip(space.random_point(50, rng=1))
    settings = {"start": ball.center, "steps": 4, "noise": 0.1, "step_size": 0.1, "state": tmp_path / "run.json"}
    with pytest.raises(CrashError):
        private_descent(FrechetMedianLoss(ball), records, space, callback=crash_at(2), **settings)
    result = private_descent(FrechetMedianLoss(ball), records, space, **settings)
    assert bool(space.belongs(result.point))
    assert result.lost_steps == 1
