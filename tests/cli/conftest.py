"""A folder of files, and a way to type commands in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.files import write_files
from tests.command_line import type_line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the made-up files, as the current one."""
    monkeypatch.chdir(tmp_path)
    write_files()
    return tmp_path


@pytest.fixture
def typed() -> Callable:
    """Run a command line, as a list or as text, in this process."""
    return type_line


@pytest.fixture
def quick_pages(monkeypatch):
    """Reports without figures, which are tested elsewhere."""
    monkeypatch.setattr("dpmanifolds.show.report.figure_svg", lambda release: None)
    monkeypatch.setattr("dpmanifolds.show.regression.svg_of", lambda draw: None)
