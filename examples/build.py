"""The gallery: `python -m examples.build` runs every example and writes its page to docs/gallery (`make docs` does).

An example is a module of this folder with a docstring and a function `main(folder)`, which prints and may leave figures
(PNG) in the folder. Its page has the docstring, the code, what was printed and the figures.

>>> from examples.build import find_examples
>>> "directions" in find_examples()
True
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["find_examples", "main", "write_page"]

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"


def find_examples() -> dict[str, Any]:
    """Every example by its name."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
    modules = {name: importlib.import_module(f"examples.{name}") for name in names if name != "build"}
    return {name: module for name, module in modules.items() if module.__doc__ and hasattr(module, "main")}


def write_page(name: str, module: Any, gallery: Path) -> None:
    """Run an example in an empty folder and write its page, its code, its output and its figures."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(printed):
            module.main(Path(folder))
        figures = sorted(Path(folder).rglob("*.png"))
        for figure in figures:
            shutil.copyfile(figure, gallery / f"{name}-{figure.name}")
        said = printed.getvalue().replace(folder, ".").rstrip()
    title, _, rest = inspect.getdoc(module).partition("\n")  # type: ignore[union-attr]
    rest = rest.partition(">>>")[0].strip()
    shown = "".join(f"![{figure.stem}]({name}-{figure.name})\n\n" for figure in figures)
    code = f"```{{literalinclude}} ../../examples/{name}.py\n:language: python\n```"
    output = f"## What it prints\n\n```text\n{said}\n```"
    page = f"# {title.rstrip('.')}\n\n{rest}\n\n{shown}{output}\n\n## The code\n\n{code}\n"
    (gallery / f"{name}.md").write_text(page, encoding="utf-8")


def main(wanted: list[str]) -> None:
    """Write the pages of the examples named, or of all."""
    GALLERY.mkdir(exist_ok=True)
    for name, module in find_examples().items():
        if not wanted or name in wanted:
            write_page(name, module, GALLERY)
            print(f"docs/gallery/{name}.md")


if __name__ == "__main__":
    main(sys.argv[1:])
