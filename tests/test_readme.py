"""The README's first example runs as printed, and stands near the top."""

from __future__ import annotations

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
