"""What people do first: a sample, a table with IDs, a look at the units, a small question about the ball."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from tests.command_line import type_line

TENSORS = ["--layout", "upper", "--manifold", "spd:3"]


def run(*words: str) -> str:
    done = type_line(words)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("sample", "tensors.csv", "--n", "200")
    return tmp_path


def test_the_sample_is_released_by_the_command_of_the_readme(folder):
    run("mean", "tensors.csv", *TENSORS, "--typical", "diffusion-tensor:mm2/s", "--epsilon", "1", "--yes", "--quiet")
    found = np.linalg.eigvalsh(dpm.Release.from_json((folder / "release" / "release.json").read_text()).value)
    assert found[-1] / 1.2e-3 == pytest.approx(1, abs=0.5)


def test_what_is_counted_has_the_name_of_what_is_protected(folder):
    ball = ["--typical", "diffusion-tensor:mm2/s", "--epsilon", "1"]
    said = run("mean", "tensors.csv", *TENSORS, *ball, "--unit", "image", "--yes")
    assert said.count("the private mean of 200 images") == 2
    assert "200 records" not in said + run("info", "release")


def test_a_plan_offers_the_flat_metric_as_it_is_typed():
    said = run("plan", "--manifold", "spd:3", "--typical", "diffusion-tensor:mm2/s", "--n", "200", "--epsilon", "1")
    assert "; --metric log-euclidean is flat, and does not" in " ".join(said.split())


def test_a_wrong_unit_is_told_by_validate_and_by_the_private_share(folder):
    said = run("validate", "tensors.csv", *TENSORS, "--eigenvalues", "0.1", "10")
    assert "0 inside" in said
    assert "diffusion-tensor in mm²/s" in " ".join(said.split())
    said = run("validate", "tensors.csv", *TENSORS, "--typical", "diffusion-tensor:mm2/s")
    assert "200 inside" in said
    run("clipped", "tensors.csv", *TENSORS, "--eigenvalues", "0.1", "10", "--epsilon", "1", "--yes", "--quiet")
    assert dpm.Release.from_json((folder / "release" / "release.json").read_text()).value > 0.8


def test_a_file_that_is_given_twice_is_refused(folder):
    (folder / "again.csv").symlink_to(folder / "tensors.csv")
    for second in ("./tensors.csv", "again.csv"):
        words = ["mean", "tensors.csv", second, *TENSORS, "--eigenvalues", "1e-4", "3e-3", "--epsilon", "1", "--yes"]
        done = type_line(words)
        assert done.exit_code == 2
        assert "one file is given twice" in " ".join(done.output.split())


@pytest.mark.filterwarnings("always:the records of 'clinic'")
def test_a_look_is_entered_and_a_release_in_another_ball_is_marked(folder):
    run("ledger", "open", "l", "--dataset", "clinic", "--epsilon", "2")
    account = ["--ledger", "l", "--dataset", "clinic"]
    run("validate", "tensors.csv", *TENSORS, "--eigenvalues", "0.1", "10", *account)
    assert dpm.Ledger("l").entries()[-1].kind == "look"
    assert "look" in run("ledger", "show", "l", "--dataset", "clinic")
    ball = ["--typical", "diffusion-tensor:mm2/s", "--epsilon", "1"]
    said = run("mean", "tensors.csv", *TENSORS, *ball, *account, "--yes", "--quiet")
    assert "warning: the records of 'clinic' were looked at with another domain" in said
    shown = " ".join(run("ledger", "show", "l", "--dataset", "clinic").split())
    assert "after a look" in shown


@pytest.mark.parametrize("ids", ["sub-{}", "{}"])
def test_info_tells_a_column_of_ids(folder, ids):
    lines = (folder / "tensors.csv").read_text().splitlines()
    rows = [",".join([ids.format(number), line]) for number, line in enumerate(lines[1:])]
    (folder / "with_ids.csv").write_text("\n".join(["id," + lines[0], *rows]))
    said = run("info", "with_ids.csv")
    assert "columns: id, xx" in said
    assert '--columns "xx,xy,xz,yy,yz,zz"' in said
    done = type_line(["mean", "with_ids.csv", *TENSORS, "--eigenvalues", "1e-4", "3e-3", "--epsilon", "1"])
    assert done.exit_code == 2
    assert "--columns" in done.output
    kept = run("validate", "with_ids.csv", "--columns", "xx,xy,xz,yy,yz,zz", *TENSORS, "--eigenvalues", "1e-4", "3e-3")
    assert "200 inside" in kept


def test_info_tells_missing_cells_from_columns_of_words(folder):
    head, first, *others = (folder / "tensors.csv").read_text().splitlines()
    gap = ",".join(["NA", *first.split(",")[1:]])
    (folder / "gaps.csv").write_text("\n".join([head, gap, *others]))
    said = run("info", "gaps.csv")
    assert "missing or no numbers, in: xx" in said
    assert "--columns" not in said


@pytest.mark.parametrize("comma", [False, True], ids=["points", "commas"])
def test_tables_with_semicolons_are_read(folder, comma):
    text = (folder / "tensors.csv").read_text().replace(",", ";")
    (folder / "european.csv").write_text(text.replace(".", ",") if comma else text)
    said = run("validate", "european.csv", *TENSORS, "--eigenvalues", "1e-4", "3e-3")
    assert "200 inside" in said
    assert "european.csv: 200 × 6" in run("info", "european.csv")
