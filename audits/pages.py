"""Tables of an audit: every row goes to a CSV file beside the page, and the page shows a summary.

>>> from audits.pages import summarize
>>> lines = ["| what | claimed | shown at 95 % | shown with noise × 0.7 |", "|---|---|---|---|",
...          "| noise, on a circle | ε = 2 | 1.8 | 2.5 (caught) |",
...          "| noise, on a sphere | ε = 2 | 1.6 | 2.1 (caught) |"]
>>> print("\\n".join(summarize(lines)))
| what | rows | largest share of its claim | least share with noise × 0.7 | caught |
|---|---|---|---|---|
| noise | 2 | 0.90 | 1.05 | 2 of 2 |
"""

from __future__ import annotations

import csv
from pathlib import Path

__all__ = ["cells_of", "summarize", "write_tables", "written"]


def cells_of(line: str) -> list[str]:
    """The cells of a row of a table in Markdown, without its signs."""
    return [cell.strip().replace("`", "").replace("**", "") for cell in line.strip().strip("|").split("|")]


def summarize(lines: list[str]) -> list[str]:
    """One row for all that begin with the same words up to a comma; a table of verdicts tells how many there are."""
    head, *rows = (cells_of(line) for line in lines if not line.startswith("|---"))
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(row[0].partition(",")[0].partition(":")[0], []).append(dict(zip(head, row, strict=True)))
    attacked = "shown with noise × 0.7" in head
    titles = ["largest share of its claim", "least share with noise × 0.7", "caught"] if attacked else ["separated"]
    told = _shares if attacked else _verdicts
    made = [[name, str(len(group)), *told(group)] for name, group in groups.items()]
    first, *others = (f"| {' | '.join(row)} |" for row in ([head[0], "rows", *titles], *made))
    return [first, "|---" * (2 + len(titles)) + "|", *others]


def _shares(group: list[dict[str, str]]) -> list[str]:
    claims = [float(row["claimed"].partition("=")[2].split()[0]) for row in group]
    shown = [float(row["shown at 95 %"]) / claim for row, claim in zip(group, claims, strict=True)]
    weak = [float(row["shown with noise × 0.7"].split()[0]) / claim for row, claim in zip(group, claims, strict=True)]
    caught = sum("(caught)" in row["shown with noise × 0.7"] for row in group)
    return [f"{max(shown):.2f}", f"{min(weak):.2f}", f"{caught} of {len(group)}"]


def _verdicts(group: list[dict[str, str]]) -> list[str]:
    return [f"{sum(row['verdict'] == 'separated' for row in group)} of {len(group)}"]


def written(text: str, mark: str, lines: list[str]) -> str:
    """The page with what stands between the two markers replaced."""
    start, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}" + "\n".join(lines) + f"\n{end}{after}"


def write_tables(page: Path, tables: dict[str, list[str]]) -> None:
    """Write each table, named by the mark of its place, to tables/<mark>.csv beside the page; its summary into that."""
    text = page.read_text(encoding="utf-8")
    for mark, lines in tables.items():
        path = page.parent / "tables" / f"{mark.replace(' ', '_')}.csv"
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                cells_of(line) for line in lines if not line.startswith("|---")
            )
        link = f"\nEvery row: [{path.name}](tables/{path.name})."
        text = written(text, mark, [*summarize(lines), link])
    page.write_text(text, encoding="utf-8")
