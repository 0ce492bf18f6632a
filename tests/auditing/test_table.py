"""The program behind docs/audits.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmanifolds.auditing import table
from dpmanifolds.auditing.precision_table import precision_lines

PAGE = Path(__file__).parents[2] / "docs" / "audits.md"


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "audits.md"
    path.write_text(
        "before\n<!-- audit table -->\nSTALE\n<!-- end of audit table -->\nbetween\n"
        "<!-- precision table -->\nSTALE\n<!-- end of precision table -->\nafter\n",
        encoding="utf-8",
    )
    return path


def test_the_tables_are_written_between_their_markers(page, monkeypatch, capsys):
    monkeypatch.setattr(table, "precision_lines", lambda draws, python: [f"{draws} draws of low-order bits"])
    options = ["--draws", "400", "--jobs", "1", "--only", "wrapped-laplace (lattice) on Sphere(1", "--write", str(page)]
    for _ in range(2):
        table.main(options)
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n<!-- audit table -->\n| mechanism |")
        assert text.count("| wrapped-laplace | lattice | `Sphere(1, 1.0)` | 1 | ε = 1 |") == 1
        assert "STALE" not in text
        assert "<!-- precision table -->\n400 draws of low-order bits\n<!-- end" in text
        assert text.endswith("after\n")
    assert "wrapped-laplace" in capsys.readouterr().out


def test_every_mechanism_has_rows_up_to_six_dimensions():
    assert {row.mechanism for row in table.ROWS} == {
        "wrapped-laplace",
        "wrapped-gaussian",
        "riemannian-laplace",
        "riemannian-gaussian",
        "k-norm-gradient",
    }
    assert {row.manifold.dim for row in table.ROWS} == {1, 2, 3, 4, 5, 6}
    assert len({row.label for row in table.ROWS}) == len(table.ROWS)


def test_the_page_shows_no_broken_promise():
    """Every row of the committed page, as `make audit` wrote it."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    audited = [row for row in rows if len(row) == 9 and row[0] != "mechanism"]
    assert audited
    for row in audited:
        claimed, shown = float(row[4].split("=")[1]), float(row[5])
        assert shown <= claimed
        if row[0] != "k-norm-gradient":
            assert shown >= 0.6 * claimed
            assert "caught" in row[7]


@pytest.mark.statistical
def test_the_low_order_bits_of_no_mechanism_of_ours_tell_anything():
    lines = precision_lines(5000)[2:]
    assert len(lines) == 18
    for line in lines:
        assert ("**separated**" in line) == ("NumPy" in line)
