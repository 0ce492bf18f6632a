"""The pages of the documentation: their Python runs and prints what they show, and the reference is complete."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import dpmanifolds

DOCS = Path(__file__).resolve().parents[1] / "docs"
specification = importlib.util.spec_from_file_location("run_pages", DOCS / "run_pages.py")
run_pages = importlib.util.module_from_spec(specification)
specification.loader.exec_module(run_pages)


@pytest.mark.parametrize("path", run_pages.pages(), ids=lambda path: path.stem)
def test_the_python_of_a_page_runs_and_prints_what_it_shows(path):
    assert run_pages.run_page(path) > 0


def test_a_page_that_shows_something_else_is_found(tmp_path):
    page = tmp_path / "wrong.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(run_pages.PageError, match=r"wrong\.md, line 1"):
        run_pages.run_page(page)
    page.write_text("```python\nundefined_name\n```\n", encoding="utf-8")
    with pytest.raises(run_pages.PageError, match="NameError"):
        run_pages.run_page(page)


def test_every_room_with_public_names_has_a_page_in_the_reference():
    listed = re.search(
        r"```\{toctree\}\n:maxdepth: 1\n\n(.*?)```", (DOCS / "api" / "index.md").read_text("utf-8"), re.S
    )
    pages = set(listed[1].split())
    package = Path(dpmanifolds.__file__).parent
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {"domains", "errors"}
    assert pages == rooms - {"cli"}
    assert pages == {path.stem for path in (DOCS / "api").glob("*.md")} - {"index"}
    for room in pages:
        assert f"automodule:: dpmanifolds.{room}\n" in (DOCS / "api" / f"{room}.md").read_text(encoding="utf-8")


def test_every_public_name_lives_in_a_room_of_the_reference():
    rooms = [path.stem for path in (DOCS / "api").glob("*.md") if path.stem != "index"]
    found = {name for room in rooms for name in importlib.import_module(f"dpmanifolds.{room}").__all__}
    assert set(dpmanifolds.__all__) - {"__version__"} <= found
