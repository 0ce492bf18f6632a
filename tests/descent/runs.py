"""Descents on a ledger that are interrupted, and what is seen of them."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Ball,
    GaussianDP,
)
from dpmanifolds.descent.draws import Draws
from dpmanifolds.descent.losses import FrechetMeanLoss
from dpmanifolds.ledger.runs import PaidRun
from dpmanifolds.releases import private_descent

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


def run(state, ledger, records=RECORDS, loss=None, **options):
    settings = {
        "domain": SPACE,
        "budget": None,
        "start": BALL.center,
        "steps": STEPS,
        "step_size": 0.5,
        "dataset": "A",
    } | options
    if not {"sigma", "budget"} & set(options):
        settings["budget"] = GaussianDP(1.0)
    return private_descent(loss or FrechetMeanLoss(BALL), records, state=state, ledger=ledger, **settings)


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
