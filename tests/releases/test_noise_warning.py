"""Noise as large as the ball is said in the same words everywhere, before anything is spent, from public facts."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, Ball, NoiseExceedsDomainWarning, PureDP
from dpmanifolds.ledger import Ledger
from dpmanifolds.planning import plan, plan_page
from dpmanifolds.show import report_html

WORDS = "the noise is larger than the ball: this release says little more than the public centre"
BALL = Ball(SPD(4), np.eye(4), radius=2.0)
# the noise errs by 10·2r/(nε)
RECORDS = SPD(4).random_point(15, rng=0)
ENOUGH = SPD(4).random_point(21, rng=0)
HALF = PureDP(0.5)
LINE = Ball.from_bounds(dpm.Euclidean(1), [0.0], [1.0])

WAYS: dict[str, Any] = {
    "mean": lambda **more: dpm.private_mean(RECORDS, BALL, PureDP(1.0), **more),
    "gaussian": lambda **more: dpm.private_mean(RECORDS, BALL, dpm.GaussianDP(0.1), **more),
    "added": lambda **more: dpm.private_mean(RECORDS, BALL, HALF, adjacency="add-remove-one", n_guess=10, **more),
    "iterator": lambda **more: dpm.private_mean(iter([RECORDS]), BALL, HALF, steps=1, **more),
    "refined": lambda **more: dpm.private_mean(RECORDS, BALL, HALF, refine=1, **more),
    "direct": lambda **more: dpm.private_mean(RECORDS, BALL, HALF, mechanism="direct", **more),
    "persons": lambda **more: dpm.private_mean(ENOUGH, BALL, HALF, group_by=np.arange(21) // 3, **more),
    "value": lambda **more: dpm.privatize(np.array([0.3]), LINE, 1.0, PureDP(1.0), **more),
    "classes": lambda **more: dpm.private_class_means(RECORDS, np.arange(15) % 2, BALL, PureDP(1.0), **more),
}


def ledger_in(folder: Path) -> Ledger:
    ledger = Ledger(folder / "privacy.ledger")
    ledger.open_dataset("survey", dpm.ApproxDP(20.0, 1e-3))
    return ledger


@pytest.mark.parametrize("way", WAYS)
def test_it_is_said_at_the_line_that_asked(way: str) -> None:
    with pytest.warns(NoiseExceedsDomainWarning) as said:
        made = WAYS[way](rng=0)
    assert [str(each.message) for each in said] == [WORDS]
    assert said[0].filename == __file__
    for release in made.releases if way == "classes" else (made,):
        assert release.noise_warning == WORDS


@pytest.mark.parametrize("way", WAYS)
def test_as_an_error_it_saves_the_budget(way: str, tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    if way == "persons":
        ledger.open_dataset("persons", dpm.PureDP(1.0), unit="person")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseExceedsDomainWarning)
        with pytest.raises(NoiseExceedsDomainWarning, match="larger than the ball"):
            WAYS[way](ledger=ledger, dataset="persons" if way == "persons" else "survey")
    assert [entry.kind for entry in ledger.entries()] == ["open"] * len(ledger.datasets())


def test_as_an_error_it_draws_nothing() -> None:
    rng = np.random.default_rng(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseExceedsDomainWarning)
        with pytest.raises(NoiseExceedsDomainWarning):
            WAYS["mean"](rng=rng)
    assert rng.random() == np.random.default_rng(5).random()


def test_it_depends_on_no_record() -> None:
    """Records at the centre, at the edge and far outside: n = 20 is one too few, n = 21 is enough."""
    for one in (np.eye(4), np.exp(1.0) * np.eye(4), 1e6 * np.eye(4)):
        with pytest.warns(NoiseExceedsDomainWarning):
            dpm.private_mean(np.broadcast_to(one, (20, 4, 4)), BALL, PureDP(1.0), steps=1, rng=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            release = dpm.private_mean(np.broadcast_to(one, (21, 4, 4)), BALL, PureDP(1.0), steps=1, rng=0)
        assert release.noise_warning == ""


def test_summary_and_report_say_it_in_the_same_words() -> None:
    with pytest.warns(NoiseExceedsDomainWarning):
        release = dpm.private_mean(RECORDS, BALL, HALF, rng=0)
    again = dpm.Release.from_json(release.to_json())
    assert again.noise_warning == WORDS
    assert f"WARNING: {WORDS}.\n" in again.summary()
    assert f"{WORDS}.</p>" in report_html(again)
    useful = dpm.private_mean(ENOUGH, BALL, PureDP(50.0), rng=0)
    assert useful.noise_warning == ""
    assert WORDS not in useful.summary() + report_html(useful)


def test_the_planner_and_its_page_say_it_in_the_same_words() -> None:
    table = plan(BALL, 15, [PureDP(0.5), PureDP(50.0)])
    noisy, useful = (table.best(budget) for budget in table.budgets)
    assert WORDS in noisy.note
    assert WORDS in str(table)
    assert WORDS not in useful.note
    assert WORDS in plan_page()


def test_numbers_and_matrices_of_moments_are_not_points_of_the_ball() -> None:
    variance = dpm.private_variance(RECORDS, BALL, HALF, rng=0)
    assert variance.noise_warning == ""
    mean, moment = dpm.PrivateTangentPCA(BALL, HALF, 1, random_state=0).fit(RECORDS).releases_
    assert (mean.noise_warning, moment.noise_warning) == (WORDS, "")


def test_an_estimator_says_it_too() -> None:
    with pytest.warns(NoiseExceedsDomainWarning, match=WORDS):
        dpm.PrivateFrechetMean(BALL, HALF, random_state=0).fit(RECORDS)
