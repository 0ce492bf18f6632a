"""CONTRIBUTING's "add a manifold": one class in `cylinder.py`, one line in `cases.py`, and everything works on it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.manifolds import manifold_from_json, manifold_from_name
from dpmanifolds.records.blocks import check_block
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.total import integers_of
from tests.command_line import type_line
from tests.manifolds.cases import MANIFOLDS
from tests.manifolds.cylinder import Cylinder

SPACE = Cylinder(2.0)
BUDGET = dpm.ApproxDP(1.0, 1e-6)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def ball() -> dpm.Ball:
    return dpm.Ball(SPACE, SPACE.natural_center, radius=1.5)


@pytest.fixture
def records(ball):
    return ball.clip(SPACE.random_point(400, rng=0))


def test_the_law_suite_runs_on_it():
    assert SPACE in MANIFOLDS


def test_contributing_names_the_files_of_this_example():
    recipe = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in ("tests/manifolds/cylinder.py", "tests/manifolds/cases.py", "tests/manifolds/test_own_manifold.py"):
        assert name in recipe
        assert (ROOT / name).is_file()


def test_it_knows_itself_by_its_parameters():
    assert Cylinder(2.0) == SPACE != Cylinder(3.0)
    assert SPACE.words == "positions on a cylinder of radius 2"


@pytest.mark.parametrize("space", [SPACE, dpm.Power(SPACE, 3), dpm.Product(dpm.Sphere(2), SPACE)], ids=repr)
def test_json_both_ways(space):
    assert manifold_from_json(json.loads(json.dumps(space.to_json()))) == space


def test_its_name_on_the_command_line():
    assert manifold_from_name("cylinder:2.0") == manifold_from_name("cylinder:2") == SPACE
    with pytest.raises(dpm.ArgumentError, match=r"cylinder:1\.0"):
        manifold_from_name("cylinder:wide")
    with pytest.raises(dpm.ArgumentError, match="radius"):
        manifold_from_name("cylinder:-2")
    with pytest.raises(dpm.ArgumentError, match="one metric only"):
        manifold_from_name("cylinder:2", "round")


def test_a_name_of_this_package_is_not_taken_over():
    with pytest.raises(dpm.ArgumentError, match="name of its own"):
        type("Sphere", (Cylinder,), {"__module__": "elsewhere"})
    assert manifold_from_json(dpm.Sphere(2).to_json()) == dpm.Sphere(2)


def test_a_name_that_nobody_knows_is_told():
    with pytest.raises(dpm.ArgumentError, match="Import the module that defines it"):
        manifold_from_json({"name": "Klein", "parameters": []})


def test_its_mean_is_that_of_angles_and_heights(records):
    result = dpm.frechet_mean(SPACE, records)
    angles = np.arctan2(records[:, 1], records[:, 0])
    expected = [2 * math.cos(angles.mean()), 2 * math.sin(angles.mean()), records[:, 2].mean()]
    assert np.allclose(result.point, expected, atol=1e-12)
    assert result.converged
    assert result.error_bound < 1e-11


@pytest.mark.parametrize("space", [dpm.Power(SPACE, 2), dpm.Product(SPACE, dpm.Sphere(2))], ids=repr)
def test_means_on_what_is_made_of_it(space):
    near = space.move(space.random_point(rng=1), 0.3 * np.random.default_rng(2).standard_normal((50, space.dim)))
    result = dpm.frechet_mean(space, near)
    logs = space.log_coordinates(result.point, near)
    assert np.linalg.norm(logs.mean(axis=0)) < 1e-9


def test_a_contribution_is_a_function_of_one_record(records):
    contribution = TangentContribution(SPACE, records[0], None, radius=2.0, exponent=30)
    together, _ = integers_of(contribution, records)
    alone = [integers_of(contribution, records[row : row + 1])[0][:, 0] for row in range(0, len(records), 37)]
    assert np.array_equal(together[:, ::37], np.transpose(alone))


def test_private_mean_and_its_json(ball, records):
    release = dpm.private_mean(records, ball, BUDGET)
    assert bool(ball.contains(release.value))
    assert release.guarantee.fits(dpm.ApproxDP(1.001, 1e-6))
    again = dpm.Release.from_json(release.to_json())
    assert again == release
    assert again.manifold == SPACE


def test_other_statistics(ball, records):
    assert bool(ball.contains(dpm.private_median(records, ball, dpm.PureDP(1.0)).value))
    assert 0 <= dpm.private_variance(records, ball, BUDGET).value <= ball.radius**2


def test_malformed_records_are_told_by_their_rule(ball, records):
    off = records.copy()
    off[3] *= 2
    with pytest.raises(dpm.NotOnManifoldError, match="satisfy the manifold's equations"):
        check_block(SPACE, off)
    with pytest.raises(dpm.NotOnManifoldError, match="at least one"):
        dpm.private_mean(off, ball, BUDGET)
    assert bool(ball.contains(dpm.private_mean(off, ball, BUDGET, on_invalid="center").value))


def test_plan_before_any_data(ball):
    table = str(dpm.plan(ball, 400, BUDGET))
    assert "Cylinder(2.0)" in table
    assert "chosen" in table


def test_plan_and_mean_on_the_command_line(tmp_path, records):
    np.save(tmp_path / "positions.npy", records)
    place = ["--manifold", "cylinder:2.0", "--radius", "1.5", "--epsilon", "1"]
    planned = type_line(["plan", *place, "--n", "400"])
    assert planned.exit_code == 0, planned.output
    out = tmp_path / "out"
    line = ["mean", str(tmp_path / "positions.npy"), *place, "--yes", "--out", str(out)]
    released = type_line(line)
    assert released.exit_code == 0, released.output
    assert "positions on a cylinder of radius 2" in released.output
    value = dpm.Release.from_json((out / "release.json").read_text(encoding="utf-8"))
    assert value.manifold == SPACE
    wrong = type_line(["plan", *place[:2], "--radius", "9", "--epsilon", "1", "--n", "400"])
    assert wrong.exit_code != 0
    assert "on cylinder:2.0" in wrong.output
