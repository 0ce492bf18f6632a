"""Checked numbers: a right one passes, a wrong one fails, is named, and makes the command fail."""

from __future__ import annotations

import json

import numpy as np
import pytest

from papers import reproduce
from papers.__main__ import main
from papers._checks import FALSE_ALARM, inside, near
from papers._study import Numbers, Result, Setting, claim, compared, not_reproducible, run_study
from papers.margins import margins


def made(*checks):
    return Result("jiang-1", "title", Numbers(), (claim("section 9", "a half", "0.5", True, *checks),), "quick")


def test_a_number_within_its_error_passes_and_one_that_is_30_percent_off_fails():
    assert near("it", 12.1, 12.0, error=0.03).passed
    assert not near("it", 1.3 * 12.0, 12.0, error=0.03).passed
    assert not near("it", 0.7 * 12.0, 12.0, error=0.03).passed
    assert not near("it", np.nan, 12.0, error=0.03).passed
    assert inside("it", 0.5, 0.4, 0.6).passed
    assert not inside("it", 0.61, 0.4, 0.6).passed


def test_the_interval_has_the_false_alarm_rate_of_the_normal_and_of_students_law():
    """By the tables: 5.3267 and, with 7 degrees of freedom, 19.4 standard errors for 1e−7 on both sides together."""
    assert near("it", 0.0, 0.0, error=1.0).high == pytest.approx(5.3267, abs=1e-3)
    from scipy.stats import t

    assert 2 * t(7).sf(near("it", 0.0, 0.0, error=1.0, replicates=8).high) == pytest.approx(FALSE_ALARM)


def test_a_failed_check_names_study_row_and_number():
    (line,) = made(near("the share", 0.7, 0.5, slack=0.01)).failures
    assert line == "jiang-1: section 9: a half: the share = 0.7, expected 0.49 to 0.51"
    assert made(None, near("the share", 0.5, 0.5)).failures == []
    row = compared("here", "1", 1.0, (0.9, 1.1), checks=[None, inside("it", 2.0, 0.0, 1.0)])
    assert len(row.failures) == 1
    assert len(not_reproducible("here", "1", "why", inside("it", 2.0, 0.0, 1.0)).failures) == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_command_fails_and_names_the_row_of_a_wrong_number(jobs, tmp_path, monkeypatch, capsys):
    wrong = made(inside("the share", 0.7, 0.4, 0.6), inside("other", 0.5, 0.4, 0.6))
    monkeypatch.setattr("papers._study.run_study", lambda name, setting: wrong)
    monkeypatch.setattr("papers._study.draw_to", lambda result, path: False)
    monkeypatch.setattr("papers.__main__.ProcessPoolExecutor", _Here)
    with pytest.raises(SystemExit) as stopped:
        main(["jiang-1", "--quick", "--jobs", jobs, "--out", str(tmp_path)])
    told = capsys.readouterr().out
    assert stopped.value.code == 1
    assert "WRONG NUMBER in jiang-1: section 9" in told
    assert "1 of 2 checked numbers" in told


class _Here:
    """A pool that runs in this process."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def submit(self, function, *arguments, **options):
        from concurrent.futures import Future

        done = Future()
        done.set_result(function(*arguments, **options))
        return done


@pytest.mark.long
def test_studies_that_run_beside_each_other_give_the_numbers_of_a_run_in_turn(tmp_path, monkeypatch):
    """Two real processes, on the studies that take least."""
    monkeypatch.setattr("papers.__main__.names", lambda: ["soto-2", "utpala-1"])
    main(["all", "--quick", "--jobs", "2", "--out", str(tmp_path / "beside")])
    reproduce("soto-2", quick=True, out=tmp_path / "in turn")
    tables = [(tmp_path / folder / "soto-2.csv").read_bytes() for folder in ("beside", "in turn")]
    assert tables[0] == tables[1]
    assert (tmp_path / "beside" / "utpala-1.json").is_file()


def test_a_run_writes_its_checks_its_size_and_its_cost(tmp_path, monkeypatch):
    right = made(inside("the share", 0.5, 0.4, 0.6))
    monkeypatch.setattr("papers._study.run_study", lambda name, setting: right)
    monkeypatch.setattr("papers._study.draw_to", lambda result, path: False)
    reproduce("jiang-1", quick=True, out=tmp_path, seed=5)
    told = json.loads((tmp_path / "jiang-1.json").read_text(encoding="utf-8"))
    assert (told["size"], told["seed"], told["real_data"]) == ("quick", 5, False)
    assert told["cpu_seconds"] >= 0
    assert told["claims"][0]["checks"] == [{"number": "the share", "value": 0.5, "low": 0.4, "high": 0.6, "proven": ""}]


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(
    ("target", "factor", "row"),
    [
        ("papers.jiang_figure_1.gaussian_dp_mu", 1.3, "circle's μ"),
        ("papers.jiang_figure_1.sensitivity_of_mean", 0.7, "2r(2−h)/(nh)"),
    ],
)
def test_a_study_with_a_wrong_formula_fails(target, factor, row, monkeypatch):
    """What the checks are for: a μ or a tight sensitivity that is 30 % off."""
    import importlib

    place, _, name = target.rpartition(".")
    real = getattr(importlib.import_module(place), name)

    def wrong(*arguments, **options):
        return float(real(*arguments, **options)) * factor

    monkeypatch.setattr(target, wrong)
    result = run_study("jiang-1", Setting("smoke", np.random.default_rng(1)))
    assert any(row in line for line in result.failures)


def test_margins_measure_the_distance_to_edges_that_are_not_proven():
    runs = [
        made(
            inside("a", value, 0.0, 10.0),
            inside("b", value, 0.0, 3.0, proven="high"),
            near("c", value, 2.0, error=value),
            inside("d", 1.0, 0.0, 2.0),
        )
        for value in (1.0, 2.0, 3.0)
    ]
    first, second = margins(runs)
    assert (first.number, first.mean, first.deviation, first.distance) == ("a", 2.0, 1.0, 2.0)
    assert (second.number, second.distance) == ("b", 2.0)


@pytest.mark.long
@pytest.mark.parametrize("name", ["errata", "reimherr-1", "soto-1", "jiang-1", "han-1", "utpala-1", "comparison"])
def test_key_numbers_at_quick_size_are_what_they_must_be(name):
    """False alarm of each number below 1e−6."""
    result = run_study(name, Setting("quick", np.random.default_rng(7)))
    assert result.failures == []
    assert sum(len(one.checks) for one in result.claims) >= 5
