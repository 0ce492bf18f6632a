"""A folder of files, and a way to type commands in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from dpmanifolds.cli import app
from tests.cli.files import write_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the made-up files, as the current one."""
    monkeypatch.chdir(tmp_path)
    write_files()
    return tmp_path


@pytest.fixture
def typed() -> Callable:
    """Run a command line, as a list or as text, in this process."""

    def run(line, answers: str | None = None):
        import shlex

        arguments = shlex.split(line) if isinstance(line, str) else line
        return CliRunner().invoke(app, arguments, input=answers, prog_name="dpmanifolds", env={"COLUMNS": "80"})

    return run


@pytest.fixture
def quick_pages(monkeypatch):
    """Reports without figures, which are tested elsewhere."""
    monkeypatch.setattr("dpmanifolds.show.report.figure_svg", lambda release: None)
