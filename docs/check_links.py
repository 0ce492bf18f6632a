"""Whether every link of the built site leads somewhere: `python docs/check_links.py out/docs` ends `make docs`.

Links within the site must name a file that is there and, behind a `#`, an anchor of that page. Pages must show no
markup that was meant for another program. Ends with status 1 and names what is wrong.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FOREIGN = re.compile(r":[a-z:]+:`|\$[^\s$][^$\n]*\$|\\(?:frac|sum|sqrt|mathbb|ell)\b")


class Page(HTMLParser):
    """The links of a page, its anchors, and the text that is no code."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [link for name in ("href", "src") if (link := given.get(name))]
        self.anchors |= {anchor for name in ("id", "name") if (anchor := given.get(name))}
        self._hidden += tag in ("pre", "code", "script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("pre", "code", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text.append(data)


@cache
def read_page(path: Path) -> Page:
    """A page, parsed once."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def pages_of(site: Path) -> list[Path]:
    """The pages of a site; what lies in `_static` are parts of the theme."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def find_faults(site: Path) -> list[str]:
    """What is wrong, page by page."""
    faults = []
    for path in pages_of(site):
        page, name = read_page(path), path.relative_to(site).as_posix()
        if found := FOREIGN.search("".join(page.text)):
            faults.append(f"{name}: shows {found[0]!r}")
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                faults.append(f"{name}: no file {link}")
            elif target.suffix == ".html" and unquote(parts.fragment) not in {"", *read_page(target).anchors}:
                faults.append(f"{name}: no anchor {link}")
    return faults


def main() -> None:
    """Check one site."""
    site = Path(sys.argv[1])
    if faults := find_faults(site):
        raise SystemExit("\n".join(faults))
    print(f"{len(pages_of(site))} pages: every link leads somewhere")


if __name__ == "__main__":
    main()
