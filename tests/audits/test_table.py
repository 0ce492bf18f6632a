"""The program behind docs/audits.md."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from audits import table
from audits.precision_table import precision_lines

PAGE = Path(__file__).parents[2] / "docs" / "audits.md"


def read_rows(page, name):
    with (page.parent / "tables" / f"{name}_table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "audits.md"
    path.write_text(
        "before\n<!-- audit table -->\nSTALE\n<!-- end of audit table -->\nbetween\n"
        "<!-- release table -->\nSTALE\n<!-- end of release table -->\nbetween\n"
        "<!-- precision table -->\nSTALE\n<!-- end of precision table -->\nafter\n",
        encoding="utf-8",
    )
    return path


def test_rows_are_written_beside_the_page_and_summaries_between_its_markers(page, monkeypatch, capsys):
    bits = ["| noise | verdict |", "|---|---|", "| ours | not separated |", "| NumPy: `x` | **separated** |"]
    monkeypatch.setattr(table, "precision_lines", lambda draws, python: bits)
    monkeypatch.setattr(table, "ROWS", [row for row in table.ROWS if row.label.startswith("wrapped-laplace (lattice)")])
    monkeypatch.setattr(table, "DOORS", [row for row in table.DOORS if "one record more" in row.label])
    options = ["--draws", "400", "--jobs", "1", "--only", "on Sphere(1", "--write", str(page)]
    for _ in range(2):
        table.main(options)
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n<!-- audit table -->\n| mechanism | rows |")
        assert text.count("| wrapped-laplace | 1 |") == 1
        assert text.count("| private_mean | 1 |") == 1
        assert "| ours | 1 | 0 of 1 |\n| NumPy | 1 | 1 of 1 |" in text
        assert "STALE" not in text
        assert text.endswith("after\n")
        (row,) = read_rows(page, "audit")
        assert (row["mechanism"], row["numerics"], row["manifold"]) == ("wrapped-laplace", "lattice", "Sphere(1, 1.0)")
        assert [row["neighbours"] for row in read_rows(page, "release")] == [
            "with a record beyond the edge, and without"
        ]
    assert "wrapped-laplace" in capsys.readouterr().out


def test_every_mechanism_has_rows_up_to_six_dimensions():
    assert {row.mechanism for row in table.ROWS} == {
        "wrapped-laplace",
        "wrapped-gaussian",
        "direct-laplace",
        "direct-gaussian",
        "riemannian-laplace",
        "riemannian-gaussian",
        "k-norm-gradient",
    }
    assert {row.manifold.dim for row in table.ROWS} == {1, 2, 3, 4, 5, 6}
    assert len({row.label for row in table.ROWS}) == len(table.ROWS)


def test_every_public_release_has_rows_for_pure_and_gaussian_promises():
    functions = {row.function for row in table.DOORS}
    assert {name.split(",")[0] for name in functions} == {
        "private_mean",
        "private_class_means",
        "private_variance",
        "private_discriminant",
        "private_covariance",
        "private_clipped_share",
        "private_mean_and_spread",
        "private_difference",
        "private_geodesic_regression",
        "PrivateKMeans",
        "PrivateLogisticRegression",
    }
    for name in functions | {"private_covariance", "private_geodesic_regression", "PrivateKMeans"}:
        kinds = {type(row.budget).__name__ for row in table.DOORS if row.function.startswith(name)}
        # several numbers at once under a pure ε are beyond what attacks can show: tests/audits/test_largest_losses.py
        by_axes = "private_mean, refine='axes'"
        many = ("private_covariance,", "private_geodesic_regression,", "PrivateKMeans,", "private_difference,", by_axes)
        # tests/releases/test_discriminant.py has its pure promise exactly
        many = (*many, "private_discriminant")
        several = name.startswith(many) and "PureDP" not in kinds
        assert kinds == ({"GaussianDP"} if several else {"PureDP", "GaussianDP"})
    assert len({row.label for row in table.DOORS}) == len(table.DOORS)
    assert max(row.manifold.dim for row in table.DOORS) <= 3


def test_the_committed_tables_show_no_broken_promise():
    """Every row, as `make audit` wrote it; the page has their summaries."""
    audits, releases = (read_rows(PAGE, name) for name in ("audit", "release"))
    assert (len(audits), len(releases)) == (len(table.ROWS), len(table.DOORS))
    for row in (*audits, *releases):
        claimed, shown = float(row["claimed"].partition("=")[2].split()[0]), float(row["shown at 95 %"])
        assert shown <= claimed
        if row.get("mechanism") != "k-norm-gradient":
            assert shown >= 0.6 * claimed
            assert "(caught)" in row["shown with noise × 0.7"]
    text = PAGE.read_text(encoding="utf-8")
    for name in {row["mechanism"] for row in audits} | {row["release"].partition(",")[0] for row in releases}:
        assert f"\n| {name} | " in text


@pytest.mark.long
def test_the_low_order_bits_of_no_mechanism_of_ours_tell_anything():
    lines = precision_lines(5000)[2:]
    assert len(lines) == 22
    for line in lines:
        assert ("**separated**" in line) == ("NumPy" in line)
