"""The README: its first example stands near the top, all of its Python runs as printed, and its links lead on."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_first_example_runs_and_is_short(capsys):
    text = README.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert found is not None
    code = found.group(1)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 8
    assert text[: found.end()].count("\n") < 25
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_the_two_commands_are_named():
    text = README.read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_all_of_its_python_runs_and_prints_what_it_shows():
    specification = importlib.util.spec_from_file_location("run_pages", README.parent / "docs" / "run_pages.py")
    run_pages = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(run_pages)
    assert run_pages.run_page(README) >= 3


def test_what_stands_before_the_example_is_three_sentences():
    before = README.read_text(encoding="utf-8").split("```")[0].split("\n", 1)[1]
    assert len(re.findall(r"\.(?=\s|$)", before)) == 3


def test_every_link_leads_to_a_file_and_every_make_target_exists():
    text = README.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert len(links) > 10
    assert [link for link in links if not (README.parent / link).exists()] == []
    targets = set(
        re.findall(r"^([a-z-]+):", (README.parent / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    assert set(re.findall(r"make ([a-z-]+)[` \n]", text)) - {"and"} <= targets
