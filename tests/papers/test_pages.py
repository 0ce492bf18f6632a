"""The page about the papers is written from what a run left, and keeps what people wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmanifolds import ArgumentError
from papers import names
from papers._checks import inside
from papers._study import Numbers, Result, claim, not_reproducible
from papers.pages import BEYOND, PAPERS, loose_numbers, main, tables, written

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
TABLES = ["runs", "choices", *(one.lower() for one in PAPERS), *BEYOND]


@pytest.fixture
def folder(tmp_path):
    """What a run of all studies leaves."""
    for name in names():
        numbers = Numbers()
        numbers.add("ε = 1", "S²: wrapped Laplace, rounded", 0.25, 1.0)
        numbers.add("ε = 1", "S²: Riemannian Laplace, idealized", 0.25, 1.0)
        numbers.add("ε = 1", "S²: wrapped Gaussian, rounded", 0.5, 2.0)
        rows = [claim(f"{paper}, section 1", f"a|b in {name}", "0.37", True) for paper in PAPERS]
        rows.append(not_reproducible("Han, Table 1", "rates", "no constants", inside("it", 2.0, 0.0, 1.0)))
        result = Result(name, "title", numbers, tuple(rows), "quick")
        result.write(tmp_path / "run", seed=0, real_data=True, cpu_seconds=1.5)
        (tmp_path / "run" / f"{name}.png").write_bytes(b"a picture of " + name.encode())
    return tmp_path / "run"


TEXT = "# Title\n\nKept 0.37.\n\n<!-- counts -->\nstale\n<!-- end of counts -->\nand kept\n"


def test_counts_stand_between_their_markers_and_rows_in_tables(folder):
    page = written(TEXT, folder)
    assert "stale" not in page
    assert page.count("and kept") == 1
    assert f"| {PAPERS['Han']} | {len(names())} | 0 | {len(names())} |" in page
    assert written(page, folder) == page
    found = tables(folder)
    assert list(found) == [f"papers-{name}.csv" for name in TABLES]
    assert found["papers-choices.csv"] == 'manifold and public ball,ε = 1\nS²,"wrapped Laplace, rounded: 0.25"\n'
    assert "\nsection 1,a|b in soto-1,0.37,confirmed,soto-1\n" in found["papers-soto.csv"]
    assert "\nsoto-1,quick,real,0,1.5 s,0 of 1\n" in found["papers-runs.csv"]


def test_a_study_beyond_the_papers_may_be_missing_and_its_table_stays(folder, tmp_path):
    (folder / "mammals.json").unlink()
    page = tmp_path / "papers.md"
    page.write_text(TEXT, encoding="utf-8")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "papers-mammals.csv").write_text("kept", encoding="utf-8")
    main(["--out", str(folder), "--write", str(page)])
    assert (tmp_path / "tables" / "papers-mammals.csv").read_text(encoding="utf-8") == "kept"
    (folder / "soto-1.json").unlink()
    with pytest.raises(ArgumentError, match="lacks soto-1"):
        tables(folder)


def test_a_page_without_a_marker_is_refused(folder):
    with pytest.raises(ArgumentError, match="counts"):
        written("# Title\n", folder)


def test_the_command_writes_page_and_figures_and_refuses_numbers_that_no_row_has(folder, tmp_path):
    page = tmp_path / "papers.md"
    page.write_text(TEXT, encoding="utf-8")
    main(["--out", str(folder), "--write", str(page)])
    assert (tmp_path / "figures" / "han-1.png").read_bytes() == b"a picture of han-1"
    page.write_text(TEXT.replace("Kept 0.37", "Kept 0.38"), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"0\.38"):
        main(["--out", str(folder), "--write", str(page)])


def test_the_page_of_the_project_has_its_markers_and_tables_and_no_loose_number():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- counts -->") == page.count("<!-- end of counts -->") == 1
    files = [PAGE.parent / "tables" / f"papers-{name}.csv" for name in TABLES]
    assert all(f"tables/{file.name}" in page for file in files)
    assert loose_numbers(page, "".join(file.read_text(encoding="utf-8") for file in files)) == []


def test_every_figure_of_the_page_is_there():
    page = PAGE.read_text(encoding="utf-8")
    for name in names():
        assert f"figures/{name}.png" in page
        assert (PAGE.parent / "figures" / f"{name}.png").is_file()
