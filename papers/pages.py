"""The page about the papers: `python -m papers.pages --out out/papers --write docs/papers.md`.

Reads what a run of the studies left in a folder. Between the markers of the page goes how many verdicts of each kind
there are; the rows of each paper, the best mechanism for each manifold and the sizes of the runs go to tables
(`tables/papers-….csv` beside the page), the figures to `figures/`. What stands outside of the markers is written by
people and stays; a number with a decimal point that stands there must also stand in a table, or the command names it
and ends with status 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpmanifolds.errors import ArgumentError
from papers._study import CONFIRMED, CORRECTED, NOT_REPRODUCIBLE, names

__all__ = ["loose_numbers", "main", "read_studies", "tables", "written"]

PAPERS = {
    "Reimherr": "Reimherr, Bharath, Soto 2021 (Laplace)",
    "Soto": "Soto, Bharath, Reimherr, Slavković 2022 (K-norm gradient, shapes)",
    "Jiang": "Jiang, Chang, Liu, Ding, Kong, Jiang 2023 (Gaussian DP)",
    "Han": "Han, Mishra, Jawanpuria, Gao 2022 (descent)",
    "Utpala": "Utpala, Vepakomma, Miolane 2022 (tangent Gaussian)",
}
BEYOND = ("private-pca", "mammals")
"""Studies that no paper has; their tables stay as they are where a folder does not hold them."""

_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?!\w)")


def _table(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(heading), ["---"] * len(list(heading)), *(list(row) for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _csv(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heading, *rows])
    return text.getvalue()


def _rows_of(paper: str, studies: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The rows whose place starts with the name of a paper, with the study that printed them."""
    return [
        (name, row) for name, told in studies.items() for row in told["claims"] if row["where"].startswith(f"{paper},")
    ]


def _verdicts(paper: str, studies: dict[str, Any]) -> str:
    cut = len(paper) + 2
    rows = ((r["where"][cut:], r["says"], r["sees"], r["verdict"], name) for name, r in _rows_of(paper, studies))
    return _csv(("where", "the paper says", "we see", "verdict", "printed by"), rows)


def _counts(studies: dict[str, Any]) -> str:
    kinds = (CONFIRMED, CORRECTED, NOT_REPRODUCIBLE)
    found = {paper: [row["verdict"] for _, row in _rows_of(paper, studies)] for paper in PAPERS}
    return _table(
        ("paper", *kinds),
        ((PAPERS[p], *(str(verdicts.count(kind)) for kind in kinds)) for p, verdicts in found.items()),
    )


def _runs(studies: dict[str, Any]) -> str:
    rows = []
    for name, told in studies.items():
        checks = [check for row in told["claims"] for check in row["checks"]]
        kept = sum(check["low"] <= check["value"] <= check["high"] for check in checks)
        data = "real" if told["real_data"] else "synthetic"
        spent, share = f"{told['cpu_seconds']:g} s", f"{kept} of {len(checks)}" if checks else "–"
        rows.append((name, told["size"], data, str(told["seed"]), spent, share))
    return _csv(("study", "size", "data, where it uses any", "seed", "CPU time", "checked numbers inside"), rows)


def _beyond(told: dict[str, Any]) -> str:
    rows = ((row["where"], row["says"], row["sees"], row["verdict"]) for row in told["claims"])
    return _csv(("where", "the claim", "we see", "verdict"), rows)


def _choices(file: Path) -> str:
    """For each manifold and promise the mechanism with safe numerics that errs least."""
    best: dict[str, dict[str, str]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            case, _, mechanism = row["series"].partition(": ")
            if float(row["value"]) == 1.0 and "idealized" not in mechanism:
                best.setdefault(case, {}).setdefault(row["panel"], f"{mechanism}: {float(row['x']):.3g}")
    promises = list(dict.fromkeys(promise for found in best.values() for promise in found))
    return _csv(
        ("manifold and public ball", *promises),
        ((case, *(found.get(promise, "–") for promise in promises)) for case, found in best.items()),
    )


def read_studies(folder: Path) -> dict[str, Any]:
    """What a run left, by study."""
    studies = {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in names()
        if (folder / f"{name}.json").is_file()
    }
    lacking = [name for name in names() if name not in studies and name not in BEYOND]
    if lacking:
        raise ArgumentError(f"out must hold a run of all studies; {folder} lacks {', '.join(lacking)}.")
    return studies


def tables(folder: Path) -> dict[str, str]:
    """The text of each table, by the name of its file; none for a study of `BEYOND` that the folder does not hold."""
    studies = read_studies(folder)
    found = {"runs": _runs(studies), "choices": _choices(folder / "comparison.csv")}
    found |= {paper.lower(): _verdicts(paper, studies) for paper in PAPERS}
    found |= {name: _beyond(studies[name]) for name in BEYOND if name in studies}
    return {f"papers-{name}.csv": text for name, text in found.items()}


def written(page: str, folder: Path) -> str:
    """The page with what stands between its markers replaced by what the folder holds."""
    start, end = "<!-- counts -->\n", "<!-- end of counts -->"
    if page.count(start) != 1 or page.count(end) != 1:
        raise ArgumentError(f"the page must have the marker {start.strip()!r} and its end once.")
    before, _, rest = page.partition(start)
    return f"{before}{start}\n{_counts(read_studies(folder))}\n{end}{rest.partition(end)[2]}"


def loose_numbers(page: str, rows: str = "") -> list[str]:
    """Numbers with a decimal point that stand in the prose about the papers, but in no table of the page or of `rows`.

    >>> loose_numbers("It errs by 0.37 of 0.5.\\n\\n| where | we see |\\n| here | 0.37 |\\n")
    ['0.5']
    """
    lines = page.splitlines()
    rows += " ".join(line for line in lines if line.startswith("|"))
    prose = " ".join(line for line in lines if not line.startswith("|") and not line.startswith("    "))
    known = set(_NUMBER.findall(rows))
    return [number for number in _NUMBER.findall(prose) if number not in known]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Write the page and its figures."""
    parser = argparse.ArgumentParser(prog="python -m papers.pages", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/papers"), help="the folder that a run wrote")
    parser.add_argument("--write", type=Path, default=Path("docs/papers.md"), help="the page with the markers")
    given = parser.parse_args(arguments)
    page = written(given.write.read_text(encoding="utf-8"), given.out)
    given.write.write_text(page, encoding="utf-8")
    beside = given.write.parent
    for folder in ("figures", "tables"):
        (beside / folder).mkdir(exist_ok=True)
    for name, text in tables(given.out).items():
        (beside / "tables" / name).write_text(text, encoding="utf-8")
    for picture in (given.out / f"{name}.png" for name in names()):
        if picture.is_file():
            shutil.copyfile(picture, beside / "figures" / picture.name)
    loose = loose_numbers(page, "".join(map(_read, sorted((beside / "tables").glob("papers-*.csv")))))
    if loose:
        raise SystemExit(f"{given.write}: in the prose, but in no row: {', '.join(loose)}")


if __name__ == "__main__":
    main()
