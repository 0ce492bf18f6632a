"""A plan says what would be released, and why not, before any data."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Budget,
    Euclidean,
    GaussianDP,
    Hyperbolic,
    PureDP,
    Sphere,
    private_mean,
)
from dpmanifolds.data import DescriptorDomain
from dpmanifolds.errors import ArgumentError, DPManifoldsError, NotAvailableError
from dpmanifolds.planning import Plan, plan, split_plan
from dpmanifolds.sums import MECHANISMS, calibrate, choose, mean_facts

BALL = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8)
BUDGETS = [PureDP(1.0), ApproxDP(1.0, 1e-6), GaussianDP(0.5)]


@pytest.fixture(scope="module")
def everything() -> Plan:
    """All mechanisms and numerics on a sphere."""
    return plan(BALL, 300, BUDGETS, numerics="all")


@pytest.mark.parametrize("numerics", ["safe", "rounded", "lattice", "idealized"])
@pytest.mark.parametrize("budget", [PureDP(1.0), GaussianDP(0.5)])
def test_the_plan_chooses_what_a_release_would(numerics: str, budget: Budget) -> None:
    facts = mean_facts(BALL, 300)
    row = plan(BALL, 300, budget, numerics=numerics).best(budget)
    chosen = choose(facts, budget, numerics=numerics).mechanism
    assert (row.mechanism, row.numerics, row.sigma) == (chosen.name, chosen.numerics, chosen.sigma)
    assert row.error == chosen.expected_error
    assert row.sensitivity == chosen.sensitivity


def test_every_row_is_its_calibrated_mechanism(everything: Plan) -> None:
    facts = mean_facts(BALL, 300)
    for row in everything.rows:
        if row.available:
            mechanism = calibrate(row.mechanism, facts, row.budget, row.numerics)
            assert (row.sigma, row.error) == (mechanism.sigma, mechanism.expected_error)
        else:
            with pytest.raises(NotAvailableError, match=r".") as refusal:
                calibrate(row.mechanism, facts, row.budget, row.numerics)
            assert row.note == str(refusal.value)


def test_nothing_is_dropped_silently(everything: Plan) -> None:
    for table in (everything, plan(BALL, 300, BUDGETS)):
        for budget in BUDGETS:
            rows = [row for row in table.rows if row.budget == budget]
            assert {row.mechanism for row in rows} == set(MECHANISMS)
            assert all(row.available or row.note for row in rows)
    assert "numerics='all'" in str(plan(BALL, 300, PureDP(1.0)))
    assert "unbounded privacy loss" in str(plan(BALL, 300, PureDP(1.0)))


def test_prices_compare_with_the_best_of_the_budget(everything: Plan) -> None:
    for budget in BUDGETS:
        rows = [row for row in everything.rows if row.budget == budget and row.available]
        assert min(row.price for row in rows) == 1.0
        assert everything.best(budget).price < 1.001
        assert sum(row.chosen for row in rows) == 1


def test_idealized_rows_are_never_chosen_unless_asked_for(everything: Plan) -> None:
    assert all(row.numerics != "idealized" for row in everything.rows if row.chosen)


def test_curvature_is_told_where_it_matters() -> None:
    wide = Ball(Hyperbolic(2), Hyperbolic(2).origin, 3.0)
    table = plan(wide, 1000, PureDP(1.0), numerics="all", mechanisms=["wrapped-laplace", "riemannian-laplace"])
    assert "2.3 times" in str(table)
    edges = {row.mechanism: row.error.mean_at_edge / row.error.mean for row in table.rows if row.error}
    assert edges["wrapped-laplace"] == pytest.approx(2.3304, abs=1e-3)
    assert edges["riemannian-laplace"] == 1.0
    assert "Curvature" not in str(plan(BALL, 1000, PureDP(1.0)))


def test_noise_wider_than_the_domain_is_told() -> None:
    assert "the noise is larger than the ball" in plan(BALL, 2, PureDP(0.1)).best().note
    assert "the noise is larger than the ball" not in plan(BALL, 2000, PureDP(1.0)).best().note


def test_errors_become_the_budgets_that_reach_them() -> None:
    table = plan(BALL, 300, GaussianDP(1.0), errors=[0.01, 0.02])
    assert table.budgets[0] == GaussianDP(1.0)
    means = [table.best(budget).error.mean for budget in table.budgets[1:]]
    assert means == pytest.approx([0.01, 0.02], rel=1e-8)


def test_the_usual_budgets_stand_in_for_none() -> None:
    assert plan(BALL, 300).budgets == (PureDP(0.1), PureDP(0.3), PureDP(1.0), PureDP(3.0))


def test_domains_other_than_balls_are_planned() -> None:
    row = plan(DescriptorDomain(1), 1000, PureDP(1.0)).best()
    assert float(row.sensitivity) == pytest.approx(DescriptorDomain(1).diameter / 1000, rel=5e-3)


def test_equal_shares_compose_to_the_budget() -> None:
    whole = plan(BALL, 300, GaussianDP(1.0)).best()
    share = split_plan(BALL, 300, GaussianDP(1.0), releases=4).best()
    assert share.budget.mu == pytest.approx(0.5)
    assert share.error.mean == pytest.approx(2 * whole.error.mean, rel=1e-8)
    third = split_plan(BALL, 300, PureDP(1.0), releases=3).best()
    assert 3 * third.budget.epsilon <= 1.0


def test_rows_survive_csv() -> None:
    table = plan(BALL, 300, BUDGETS)
    read = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert len(read) == len(table.rows)
    for line, row in zip(read, table.to_rows(), strict=True):
        assert line["mean"] == ("" if row["mean"] is None else repr(row["mean"]))
        assert line["note"] == row["note"]


def test_the_table_is_aligned() -> None:
    lines = str(plan(BALL, 300, PureDP(1.0))).splitlines()
    heads, first = lines[1], lines[2]
    for heading in ("mechanism", "sigma", "mean", "price"):
        start = heads.index(heading)
        assert first[start - 1] == " "
        assert first[start] != " "


def test_rich_prints_it() -> None:
    from rich.console import Console

    console = Console(width=200, file=io.StringIO())
    console.print(plan(BALL, 300, PureDP(1.0)))
    assert "wrapped-laplace" in console.file.getvalue()


@pytest.mark.parametrize(
    "arguments",
    [
        {"budgets": 1.0},
        {"budgets": []},
        {"budgets": [PureDP(1.0), "much"]},
        {"numerics": "real"},
        {"mechanisms": "laplace"},
        {"mechanisms": ["wrapped-laplace", "laplace"]},
        {"n": 0},
        {"errors": 0.0},
        {"domain": Euclidean(2)},
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="must be"):
        plan(**{"domain": BALL, "n": 100, "budgets": PureDP(1.0), **arguments})


def test_best_refuses_what_was_not_planned() -> None:
    table = plan(BALL, 300, PureDP(1.0), mechanisms="wrapped-gaussian")
    with pytest.raises(ArgumentError, match="planned"):
        table.best(PureDP(2.0))
    with pytest.raises(NotAvailableError, match="unbounded"):
        table.best(PureDP(1.0))


def test_plans_of_spd_agree_with_the_formula() -> None:
    ball = Ball(SPD(3), np.eye(3), 1.5)
    row = plan(ball, 500, PureDP(2.0)).best()
    assert row.error.mean == pytest.approx(6 * (2 * 1.5 / 500) / 2.0, rel=1e-6)


@pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean"])
def test_a_metric_that_is_flat_is_offered_where_the_ball_is_so_large_that_curvature_is_felt(metric: str) -> None:
    wide, narrow = (str(plan(Ball(SPD(3, metric), np.eye(3), radius), 1000, PureDP(1.0))) for radius in (3.0, 0.2))
    assert ("metric='log-euclidean' is flat" in wide) == ("Curvature:" in wide) == (metric == "affine-invariant")
    assert "Curvature" not in narrow
    assert "Curvature" in str(plan(Ball(Hyperbolic(2), Hyperbolic(2).origin, 3.0), 1000, PureDP(1.0)))


def test_percents_have_no_powers_of_ten() -> None:
    """Of EEG covariances in their typical ball a large error is many times a variance."""
    ball = Ball.typical(SPD(8), "eeg", unit="uV2")
    error = plan(ball, 120, PureDP(1.0)).best().error
    assert error is not None
    assert re.search(r"60 % of the radius of the domain, or 1\d\d\d % in a variance", error.relate(ball, ball.center))


def test_a_plan_with_a_public_sample_tells_what_private_mean_would_predict():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((440, 4)) * [2.0, 0.5, 0.2, 0.05]
    ball, budgets = Ball(Euclidean(4), np.zeros(4), 12.0), [GaussianDP(1.0), PureDP(1.0)]
    found = plan(ball, 400, budgets, public_sample=points[:40])
    for budget in budgets:
        row = found.best(budget)
        release = private_mean(points[40:], ball, budget, public_sample=points[:40], rng=0)
        assert row.public == release.public
        assert (row.mechanism, row.numerics, row.sigma) == (release.mechanism, release.numerics, release.sigma)
        assert row.error == release.expected_error
        assert min(each.price for each in found.rows if each.budget == budget and each.available) == 1.0
        alone = plan(ball, 400, budget).best()
        beside = [each for each in found.rows if each.budget == budget and each.public is None and each.available]
        assert min(each.error.mean for each in beside) == alone.error.mean
    assert "where the mean of the sample alone has" in str(found)
    assert "wrapped-gaussian, public sample (rounded)" in str(found)
    assert found.to_csv().count("public sample") == 2


def test_a_plan_with_a_public_sample_chooses_the_ball_where_private_mean_would():
    ball, sample = Ball(Euclidean(1), [0.0], 1.0), np.array([[-1.0], [1.0], [0.5]])
    found = plan(ball, 200_000, GaussianDP(5.0), public_sample=sample)
    assert found.best().public is None
    assert found.usefulness().n == 200_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"public_sample": np.zeros((2, 3))}, "public_sample"),
        ({"public_sample": np.eye(3), "kind": "extrinsic"}, "public_sample"),
        ({"public_sample": np.eye(3), "numerics": "idealized"}, "public_sample"),
        ({"public_sample": np.eye(3), "mechanisms": "riemannian-laplace"}, "public_sample"),
        ({"public_sample": np.full((5, 3), np.nan)}, "public_sample"),
    ],
    ids=["few", "extrinsic", "idealized", "intrinsic", "nan"],
)
def test_a_sample_that_cannot_be_planned_with_is_refused(options, message):
    with pytest.raises(DPManifoldsError, match=message):
        plan(BALL, 100, PureDP(1.0), **options)
