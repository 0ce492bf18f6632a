"""Every benchmark, one after the other, and what they come to: a table and two figures.

    python benchmarks/summary.py [--quick] [--only NAME …] [--gpu gpu.json] [--out FOLDER] [--write DOCS]

Ours, the peer on the same work in the same run, their ratio (above 1: ours is faster) and, where there is one, how many
times the least possible work ours takes. `--gpu` adds what `gpu.py` wrote on a machine that has one, in a table of its
own. `--write` puts tables/performance.csv, tables/performance_gpu.csv and the figures under the folder of the docs.
`--only` runs some of the benchmarks again, and keeps what an earlier run left of the others in the folder.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
STYLE = HERE.parent / "docs" / "figures.mplstyle"
RUNS = [
    ["imports.py"],
    ["private_mean.py", "--repeats", "7"],
    ["small.py"],
    ["mean.py"],
    ["memory.py"],
    ["sampling.py"],
    ["accounting.py"],
    ["descriptors.py", "--images", "100000", "--repeats", "2"],
    ["utility.py"],
    ["descent.py"],
    ["scale.py", "--records", "100000000"],
    ["dask_scaling.py", "--metrics", "log-euclidean", "--repeats", "3"],
    ["dask_scaling.py", "--metrics", "affine-invariant", "--records", "1000000", "--repeats", "3"],
]
QUICK = [
    ["private_mean.py", "--repeats", "1"],
    ["mean.py", "--repeats", "2"],
    ["descriptors.py", "--images", "2000", "--repeats", "2"],
    ["descent.py", "--records", "20000", "--repeats", "2"],
    ["scale.py", "--records", "200000", "--repeats", "1", "--quick"],
]
NAMES = {"jax": "JAX", "torch": "PyTorch"}
HEADINGS = ("what", "case", "ours", "peer", "theirs", "ratio", "ours / limit")
# slopes of log time over log size are told where no three sizes in a row bend by more
STRAIGHT = 0.15


def run_all(runs: list[list[str]], only: list[str] | None, out: Path) -> list[dict[str, Any]]:
    """Run the benchmarks; each prints its own tables and leaves its rows in a file of its own."""
    rows: list[dict[str, Any]] = []
    for number, command in enumerate(runs):
        path = out.resolve() / f"{number:02}-{command[0]}.jsonl"
        if only is None or command[0] in only:
            path.write_text("", encoding="utf-8")
            print(f"$ python benchmarks/{' '.join(command)}", flush=True)
            environment = {**os.environ, "DPMANIFOLDS_BENCH": str(path), "PYTHONPATH": str(HERE.parent)}
            subprocess.run([sys.executable, str(HERE / command[0]), *command[1:]], env=environment, check=True)
        if path.exists():
            rows += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return rows


def gpu_rows(path: Path) -> list[dict[str, Any]]:
    """The figures of `gpu.py` as rows: against two cores of that machine where these did the same, and their limits."""
    figures = [row for row in json.loads(path.read_text(encoding="utf-8")) if "n" in row]
    known = {(row["library"], row["case"], row["n"]): row for row in figures}
    rows = []
    for (library, case, n), row in known.items():
        host = known.get(("cpu", case, n))
        ours, theirs = (None if one is None else one.get("private_ms", one.get("mean_ms")) / 1e3 for one in (row, host))
        if library != "cpu":
            rows.append(
                {
                    "area": "GPU",
                    "case": f"{case}, n = {n:,}, {NAMES[library]}",
                    "ours": ours,
                    "peer": "–" if host is None else "two cores",
                    "theirs": theirs,
                    "limit": row["limit_ms"] / 1e3 if "limit_ms" in row else None,
                }
            )
    return rows


def cells(row: dict[str, Any]) -> list[str]:
    """One line of the table."""
    theirs, limit = row["theirs"], row["limit"]
    return [
        row["area"],
        row["case"],
        shown(row["ours"]),
        row["peer"],
        "–" if theirs is None else shown(theirs),
        "–" if theirs is None else f"{theirs / row['ours']:.3g}",
        "–" if limit is None else f"{row['ours'] / limit:.3g}",
    ]


def shown(seconds: float) -> str:
    """A time with a unit that suits it."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    """The table as a file, with the cells that are printed."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADINGS, *map(cells, rows)])


def draw_ratios(rows: list[dict[str, Any]], path: Path) -> None:
    """One small panel for each kind of mean, one bar for each case, one colour for each peer."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    compared = [row for row in rows if row["area"] in ("mean", "private mean, one pass") and row["theirs"] is not None]
    areas = [area for area in ("mean", "private mean, one pass") if any(row["area"] == area for row in compared)]
    peers = sorted({row["peer"] for row in compared})
    most = max(row["theirs"] / row["ours"] for row in compared)
    tallest = max(sum(row["area"] == area for row in compared) for area in areas)
    with rc_context(fname=STYLE):
        figure = Figure(figsize=(6.5 if len(areas) == 1 else 11.0, 0.32 * tallest + 1.5), layout="constrained")
        for axes, area in zip(figure.subplots(1, len(areas), squeeze=False)[0], areas, strict=True):
            shown_here = [row for row in compared if row["area"] == area][::-1]
            for position, row in enumerate(shown_here):
                ratio = row["theirs"] / row["ours"]
                axes.barh(position, ratio, color=f"C{peers.index(row['peer'])}", height=0.7)
                axes.annotate(f" {ratio:.1f}", (ratio, position), va="center")
            axes.set_yticks(range(len(shown_here)), [short(row["case"]) for row in shown_here])
            axes.axvline(1, color="black", linewidth=1)
            axes.set_xlim(0, 1.12 * most)
            axes.grid(visible=False, axis="y")
            axes.set_title({"mean": "Fréchet mean, no privacy"}.get(area, area[0].upper() + area[1:]))
            axes.set_xlabel("time of the peer over ours")
        bars = [Patch(color=f"C{number}", label=peer) for number, peer in enumerate(peers)]
        figure.legend(handles=bars, loc="outside lower center", ncols=len(peers))
        figure.savefig(path)


def short(case: str) -> str:
    """A case in few letters.

    >>> short("SPD(10, metric='log-euclidean'), n = 10,000"), short("Sphere(50, 1.0), n = 100,000")
    ('SPD(10), log-Euclidean', 'Sphere(50)')
    """
    space = case.split(", n = ", maxsplit=1)[0]
    if "metric=" in space:
        metric = space.split("'")[1].replace("euclidean", "Euclidean")
        return f"{space.split(',')[0]}), {metric}"
    return f"{space.split(',')[0]})" if "," in space else space


def is_straight(curve: dict[str, Any]) -> bool:
    """Whether the slope between neighbouring sizes is the same all along, so that an exponent says something."""
    import numpy as np

    slopes = np.diff(np.log(curve["times"])) / np.diff(np.log(curve["sizes"]))
    return bool(np.ptp(slopes) <= STRAIGHT)


def draw_growth(curves: list[dict[str, Any]], path: Path) -> None:
    """Time against n, and time per record against k and d; exponents of curves that are straight."""
    import numpy as np
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    variables = list(dict.fromkeys(curve["variable"] for curve in curves))
    with rc_context(fname=STYLE):
        figure = Figure(figsize=(3.2 * len(variables), 4.2), layout="constrained")
        for axes, variable in zip(np.atleast_1d(figure.subplots(1, len(variables))), variables, strict=True):
            for curve in (one for one in curves if one["variable"] == variable):
                name = curve["growth"]
                name = short(name) if "metric=" in name or ", 1.0" in name else name
                label = f"{name}: exponent {curve['slope']:.2f}" if is_straight(curve) else name
                axes.loglog(curve["sizes"], [1e3 * time for time in curve["times"]], "o-", label=label)
            axes.set_xlabel({"n": "number of records n", "k": "size k of the matrices", "d": "dimension d"}[variable])
            marks = sorted({size for curve in curves if curve["variable"] == variable for size in curve["sizes"]})
            shown_marks = marks[:: 2 if len(marks) > 5 else 1]
            axes.set_xticks(shown_marks, [f"{mark / 1e6:g}M" if mark >= 1e5 else f"{mark:,}" for mark in shown_marks])
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
            axes.set_ylabel("CPU time of the mean in ms" if variable == "n" else "CPU time per record in ms")
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
        figure.savefig(path)


def main() -> None:
    """Run, print, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and small ones, to see that everything works")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these again, keep the rest")
    parser.add_argument("--gpu", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    everything = run_all(QUICK if given.quick else RUNS, given.only, given.out)
    tables, figures = (given.write / name if given.write else given.out for name in ("tables", "figures"))
    rows, curves = ([row for row in everything if name in row] for name in ("area", "growth"))
    show("Ours, the peer, and the least that must be done: CPU time", rows, tables / "performance.csv")
    if given.gpu:
        show("On a GPU: wall time", gpu_rows(given.gpu), tables / "performance_gpu.csv")
    draw_ratios(rows, figures / "performance-ratios.png")
    if curves:
        draw_growth(curves, figures / "performance-growth.png")


def show(title: str, rows: list[dict[str, Any]], path: Path) -> None:
    """Print a table and write it."""
    table = Table(title=title)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("what", "case", "peer") else "right")
    for row in rows:
        table.add_row(*cells(row))
    Console(width=160).print(table)
    write_csv(rows, path)


if __name__ == "__main__":
    main()
