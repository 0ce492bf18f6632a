"""`dpmanifolds regress`, as it is typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.show import load_release

SPHERE = "--manifold sphere:2 --center 0,0,1 --radius 0.5"


@pytest.fixture
def ages(folder):
    """Ages for the directions, and a table of its own with a column of ages."""
    rng = np.random.default_rng(0)
    np.savetxt("ages.csv", rng.uniform(20, 80, 90), header="age", comments="")
    Path("few.csv").write_text("age\n30\n40\n50\n")
    x, age = rng.normal(size=(400, 2)), rng.uniform(20, 80, 400)
    x[:, 0] += (age - 50) / 20
    rows = [f"{a:.4f},{b:.4f},{c:.2f}" for (a, b), c in zip(x, age, strict=True)]
    Path("grown.csv").write_text("\n".join(["x,y,age", *rows]))
    return folder


def test_a_file_of_covariates(ages, typed, quick_pages):
    options = "--covariates ages.csv --covariate-bounds 20:80 --mu 1 --yes --seed 3 --out out"
    line = f"regress directions.npy {SPHERE} {options}"
    ended = typed(line)
    assert ended.exit_code == 0, ended.stderr
    fit = dpm.GeodesicRegression.from_json(Path("out/regression.json").read_text(encoding="utf-8"))
    ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    ages_read = np.loadtxt("ages.csv", skiprows=1)
    expected = dpm.private_geodesic_regression(
        np.load("directions.npy"), ages_read, ball, dpm.GaussianDP(1.0), covariate_bounds=(20, 80), rng=3
    )
    assert fit == expected
    release = load_release("out")
    assert release.statistic == "regression base"
    assert np.array_equal(release.value, fit.base)
    assert release.guarantee == fit.guarantee
    assert "95 % region" in Path("out/report.html").read_text(encoding="utf-8")
    assert "How 90 records change with covariate 1" in Path("out/regression.html").read_text(encoding="utf-8")
    assert "covariate 1" in ended.stdout
    for written in ("regression.json", "regression.html"):
        assert typed(line).exit_code == 2
        Path("out", written).unlink()


def test_columns_of_the_table(ages, typed, quick_pages):
    ended = typed(
        "regress grown.csv --columns x,y --covariates age --covariate-bounds 20:80 --manifold euclidean:2 --radius 5 "
        "--epsilon 2 --yes --seed 0 --out out"
    )
    assert ended.exit_code == 0, ended.stderr
    fit = dpm.GeodesicRegression.from_json(Path("out/regression.json").read_text(encoding="utf-8"))
    assert fit.slopes[0, 0] == pytest.approx(0.05, abs=0.03)
    assert "age" in ended.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--covariates ages.csv --covariate-bounds 80:20", "low < high"),
        ("--covariates ages.csv --covariate-bounds twenty", "LOW:HIGH"),
        ("--covariates ages.csv --covariate-bounds 20:80,0:1", "2 for each record"),
        ("--covariates age --covariate-bounds 20:80", "must be a file"),
        ("--covariates few.csv --covariate-bounds 20:80", "as many as there are records: 90; got 3"),
        ("--covariates ages.csv --covariate-bounds 20:80 --steps 7", "--steps must be"),
        ("--covariate-bounds 20:80", "covariates"),
    ],
)
def test_wrong_use_costs_nothing(ages, typed, options, words):
    ended = typed(f"regress directions.npy {SPHERE} {options} --mu 1 --yes --out out")
    assert ended.exit_code == 2
    assert words in " ".join(ended.stderr.split())
    assert not Path("out").exists()
