"""Run the Python of the pages: blocks of a page share their names, and what stands below a `>>>` must be printed.

    python docs/run_pages.py            every page
    python docs/run_pages.py faq.md     one page

Each page runs in an empty directory. `<!-- needs: mne -->` above a block says that it is run only where that package is
installed; blocks that were left out are told.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import os
import re
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent
_BLOCK = re.compile(
    r"(?:^<!-- needs: (?P<needs>[a-z_, ]+) -->\n)?^```(?P<kind>python|pycon)\n(?P<code>.*?)^```",
    flags=re.DOTALL | re.MULTILINE,
)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


class PageError(Exception):
    """A block of a page fails, or prints something else than it shows."""


def pages() -> list[Path]:
    """Every page with Python on it."""
    return [path for path in sorted(DOCS.rglob("*.md")) if _BLOCK.search(path.read_text(encoding="utf-8"))]


def needs_of(path: Path) -> list[str]:
    """The packages that blocks of a page need."""
    found = _BLOCK.finditer(path.read_text(encoding="utf-8"))
    return [name for block in found for name in _names(block["needs"])]


def _names(needs: str | None) -> list[str]:
    return [name.strip() for name in (needs or "").split(",") if name.strip()]


def run_page(path: Path, left_out: list[str] | None = None) -> int:
    """Run the blocks of a page in order; the number of blocks that were run, `left_out` gets the others."""
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    done = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for found in _BLOCK.finditer(text):
            where = f"{path.name}, line {text[: found.start('kind')].count(chr(10)) + 1}"
            if lacking := [name for name in _names(found["needs"]) if importlib.util.find_spec(name) is None]:
                if left_out is not None:
                    left_out.append(f"{where} (needs {', '.join(lacking)})")
                continue
            _run(found["kind"], found["code"], names, where)
            done += 1
    return done


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
        left_out: list[str] = []
        count = run_page(path, left_out)
        print(f"{path.relative_to(DOCS)}: {count} blocks, {time.perf_counter() - start:.1f} s")
        for block in left_out:
            print(f"    not run: {block}")


if __name__ == "__main__":
    main(sys.argv[1:])
