"""Lines typed on the command line, in this process."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cache
from typing import Any

import typer.testing

from dpmanifolds.cli import app

__all__ = ["type_line"]

# the tree of commands is built once, where Typer builds it anew for every line
typer.testing._get_command = cache(typer.main.get_command)


def type_line(line: str | Iterable[Any], answers: str | None = None) -> Any:
    """What the program does with a line, as text or in words: its exit code and all that it prints."""
    words = shlex.split(line) if isinstance(line, str) else [str(word) for word in line]
    runner = typer.testing.CliRunner()
    return runner.invoke(app, words, input=answers, prog_name="dpmanifolds", env={"COLUMNS": "80"})
