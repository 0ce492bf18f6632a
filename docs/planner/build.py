"""Put the planner page together: `python docs/planner/build.py` writes the one file that travels in the wheel.

The page opens from disk, loads nothing and sends nothing. Its formulas are those of `dpmanifolds.planning`, written
again in JavaScript, and tests hold one against the other.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["BUILT", "built_page", "main"]

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "src" / "dpmanifolds" / "planning" / "planner.html"
# in the order in which they need each other
_SCRIPTS = ("special.js", "spaces.js", "l2_laplace.js", "budgets.js", "planner.js", "snippets.js", "chart.js", "ui.js")


def built_page() -> str:
    """The page with its style and its scripts inside of it."""
    filled = {"STYLE": _text("style.css"), "SCRIPT": "\n".join(map(_text, _SCRIPTS))}
    return re.sub(r"/\*(STYLE|SCRIPT)\*/", lambda found: filled[found[1]], _text("page.html"))


def main() -> None:
    """Write the page to where the package reads it."""
    BUILT.write_text(built_page(), encoding="utf-8")
    print(BUILT)


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
