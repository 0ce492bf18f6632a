"""`--group-by`: a column, a file of names, or one person per file, for every command that makes a release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.data import read_labels, read_points
from dpmanifolds.descent.losses import FrechetMeanLoss
from dpmanifolds.estimators import PrivatePCA, PrivateTangentPCA
from dpmanifolds.ledger import Ledger
from dpmanifolds.show import load_release
from tests.cli.test_commands import done

SPHERE = "directions.npy --manifold sphere:2 --center 0,0,1 --radius 0.5 --yes --seed 7 --out out"
BALL = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
PERSONS = np.repeat([f"p{person}" for person in range(30)], 3)
BUDGET = dpm.ApproxDP(1.0, 1e-6)


pytestmark = pytest.mark.usefixtures("quick_pages")


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("statistic", ["mean", "median", "variance"])
def test_a_file_of_names_is_the_argument_of_python(folder, typed, statistic):
    outcome = done(typed(f"{statistic} {SPHERE} --epsilon 1 --delta 1e-6 --group-by persons.txt"))
    private = getattr(dpm, f"private_{statistic}")
    expected = private(np.load("directions.npy"), BALL, BUDGET, group_by=PERSONS, rng=7)
    assert load_release("out") == expected
    assert expected.n == 30
    assert "30 persons" in outcome.stderr
    assert "30 persons" in outcome.stdout


def test_descend_takes_the_mean_gradient_of_each_person(folder, typed):
    done(typed(f"descend {SPHERE} --epsilon 1 --delta 1e-6 --steps 4 --group-by persons.txt"))
    result = dpm.private_descent(
        FrechetMeanLoss(BALL),
        np.load("directions.npy"),
        BALL,
        BUDGET,
        steps=4,
        step_size=0.5,
        group_by=PERSONS,
        rng=7,
    )
    release = load_release("out")
    assert np.array_equal(release.value, result.value)
    assert release.n == 30


def test_pca_takes_the_second_moment_of_each_person(folder, typed):
    done(typed(f"pca {SPHERE} --mu 1 --components 1 --group-by persons.txt"))
    expected = PrivateTangentPCA(BALL, dpm.GaussianDP(1.0), 1, random_state=7)
    expected.fit(np.load("directions.npy"), group_by=PERSONS)
    assert np.array_equal(np.load("out/components.npz")["components"], expected.components_)
    assert load_release("out/mean").n == 30


def test_a_column_names_persons_and_is_no_number(folder, typed):
    outcome = done(
        typed("pca visits.csv --manifold euclidean:2 --radius 3 --mu 1 -k 1 --group-by person --yes --seed 7")
    )
    persons = read_labels("visits.csv", "person")
    assert persons[4] == "person 1, ward 2"
    model = PrivatePCA(1, dpm.GaussianDP(1.0), 3.0, center=np.zeros(2), solver="covariance", random_state=7)
    model.fit(read_points("visits.csv", columns=["x", "y"]), group_by=persons)
    assert np.array_equal(np.load("release/components.npz")["components"], model.components_)
    assert "30 persons" in outcome.stdout
    assert "ward" not in outcome.stderr + outcome.stdout


def test_columns_are_taken_in_the_order_given(folder, typed):
    place = "--manifold euclidean:2 --radius 3 --epsilon 600 --yes --seed 1"
    done(typed(f"mean visits.csv {place} --columns y,x --out a"))
    done(typed(f"mean visits.csv {place} --columns x,y --group-by person --out b"))
    assert np.allclose(
        load_release("a").value[::-1], read_points("visits.csv", columns=["x", "y"]).mean(axis=0), atol=0.1
    )
    assert load_release("b").n == 30


def test_a_person_in_two_files_is_one_person_and_files_can_be_persons(folder, typed):
    Path("more.csv").write_text(Path("visits.csv").read_text())
    place = "--manifold euclidean:2 --radius 3 --epsilon 1 --yes"
    done(typed(f"mean visits.csv more.csv {place} --group-by person --out a"))
    done(typed(f"mean visits.csv more.csv {place} --columns x,y --group-by files --out b"))
    assert [load_release(each).n for each in "ab"] == [30, 2]


def test_voxels_are_charged_to_an_account_of_persons_only_when_grouped_or_said_to_be(folder, typed):
    place = "--layout upper --eigenvalues 1e-5 1e-2 --epsilon 0.5 --yes"
    account = "--ledger privacy.ledger --dataset clinic"
    typed("ledger open privacy.ledger --dataset clinic --epsilon 9 --unit person")
    refused = typed(f"mean sub-0.nii.gz {place} {account} --out a")
    assert refused.exit_code == 2
    assert Ledger("privacy.ledger").spent("clinic") is None
    done(typed(f"mean sub-0.nii.gz {place} {account} --unit person --out b"))
    np.save("half.npy", np.arange(18) // 9)
    done(typed(f"mean sub-0.nii.gz {place} {account} --group-by half.npy --out c"))
    assert load_release("c").n == 2


def test_a_specimen_that_is_dropped_moves_no_name_to_another_record(folder, typed):
    """One name more than records: the first was taken for a heading, and records counted as other persons'."""
    specimen = "LM=4\n0 0\n{} 0\n1 1\n0 2\n"
    specimens = [specimen.format(1 + row / 10) for row in range(8)]
    Path("dropped.tps").write_text("".join([*specimens[:5], "LM=0\n", *specimens[5:]]))
    names = [f"p{row // 3}" for row in range(9)]
    Path("names.txt").write_text("\n".join(names))
    line = (
        "mean dropped.tps --missing drop --center 0,0,1,0,1,1,0,2 --radius 0.3 --epsilon 1 --yes --group-by names.txt"
    )
    refused = typed(line)
    assert refused.exit_code == 2
    assert "must name a person for each of the 8 records" in refused.stderr
    Path("names.txt").write_text("\n".join(["Person_ID", *names[:5], *names[6:]]))
    done(typed(line))
    assert load_release("release").n == 3


@pytest.mark.parametrize(("first", "count"), [("-0.5,x", None), ("NA,0.5", None), ("x,y", 3)])
def test_a_first_record_that_is_malformed_is_not_left_out_silently(folder, typed, first, count):
    Path("rows.csv").write_text(f"{first}\n1,2\n3,4\n5,6\n")
    line = "mean rows.csv --manifold euclidean:2 --radius 9 --epsilon 9 --yes --on-invalid center"
    outcome, told = typed(line), typed("info rows.csv")
    if count is not None:
        done(outcome)
        assert load_release("release").n == count
        return
    for refused in (outcome, told):
        assert refused.exit_code == 2
        assert "Say which: --header yes or --header no" in refused.stderr
        assert "0.5" not in refused.stderr + refused.stdout
    done(typed(f"{line} --header yes"))
    assert load_release("release").n == 3
