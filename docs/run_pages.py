"""Run the Python of the pages: blocks of a page share their names, and what stands below a `>>>` must be printed.

    python docs/run_pages.py            every page
    python docs/run_pages.py faq.md     one page

Each page runs in an empty directory.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent
_BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


class PageError(Exception):
    """A block of a page fails, or prints something else than it shows."""


def pages() -> list[Path]:
    """Every page with Python on it."""
    return [path for path in sorted(DOCS.rglob("*.md")) if _BLOCK.search(path.read_text(encoding="utf-8"))]


def run_page(path: Path) -> int:
    """Run the blocks of a page in order; the number of blocks."""
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = list(_BLOCK.finditer(text))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for found in blocks:
            line = text[: found.start()].count("\n") + 1
            _run(found[1], found[2], names, f"{path.name}, line {line}")
    return len(blocks)


def _run(kind: str, code: str, names: dict[str, object], where: str) -> None:
    if kind == "pycon":
        said: list[str] = []
        test = doctest.DocTestParser().get_doctest(code, names, where, None, 0)
        runner = doctest.DocTestRunner(optionflags=_FLAGS)
        runner.run(test, out=said.append, clear_globs=False)
        names |= test.globs
        if said:
            raise PageError(f"{where}:\n{''.join(said)}")
        return
    try:
        with contextlib.redirect_stdout(open(os.devnull, "w", encoding="utf-8")) as sink, sink:
            exec(compile(code, where, "exec"), names)
    except Exception as error:
        raise PageError(f"{where}: {type(error).__name__}: {error}") from error


def main(wanted: list[str]) -> None:
    """Run the pages named, or all."""
    for path in [DOCS / name for name in wanted] or pages():
        start = time.perf_counter()
        count = run_page(path)
        print(f"{path.relative_to(DOCS)}: {count} blocks, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
