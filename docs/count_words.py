"""Count the words of the pages, tables and code blocks included: `python docs/count_words.py`.

A word is what stands between blanks, as `wc -w` counts. Counted against the limit: every page of `docs/` but the
reference (`docs/api`) and the proofs (`docs/proofs`), which are shown beside. Of the gallery (`docs/gallery`) prose is
counted; the code and what it printed are included there by the build, from files of their own, and are not. Tables in
`docs/tables` are files to download, and no part of a page. Ends with status 1 above the limit.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
LIMIT = 25_000


def count_words(path: Path) -> int:
    """The words of one page; of the gallery's pages, of their prose."""
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "gallery":
        text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return len(text.split())


def count_pages() -> dict[str, int]:
    """The words of each page that counts, by its name."""
    pages = [path for path in sorted(DOCS.rglob("*.md")) if path.relative_to(DOCS).parts[0] not in ("api", "proofs")]
    return {path.relative_to(DOCS).as_posix(): count_words(path) for path in pages}


def main() -> None:
    """Print all counts; status 1 where the pages are too long."""
    found = count_pages()
    for name, words in sorted(found.items(), key=lambda item: -item[1]):
        print(f"{words:7,} {name}")
    total = sum(found.values())
    print(f"{total:7,} words in {len(found)} pages; at most {LIMIT:,}")
    print(f"{sum(map(count_words, (DOCS / 'proofs').glob('*.md'))):7,} words of proofs beside them, not counted")
    if total > LIMIT:
        raise SystemExit(f"the pages have {total - LIMIT:,} words too many")


if __name__ == "__main__":
    main()
