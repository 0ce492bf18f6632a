"""Every benchmark, one after the other, and what they come to: one table and two figures.

    python benchmarks/summary.py [--quick] [--only NAME …] [--gpu gpu.json] [--out FOLDER] [--write docs/performance.md]

Ours, the peer on the same work in the same run, their ratio (above 1: ours is faster) and, where there is one, how many
times the least possible work ours takes. `--gpu` adds what `gpu.py` wrote on a machine that has one. `--write` puts the
table between the marks of the page and the figures beside it, under figures/. `--only` runs some of the benchmarks
again, and keeps what an earlier run left of the others in the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
RUNS = [
    ["imports.py"],
    ["mean.py"],
    ["memory.py"],
    ["sampling.py"],
    ["accounting.py"],
    ["descriptors.py", "--images", "100000", "--repeats", "2"],
    ["utility.py"],
    ["descent.py"],
    ["scale.py"],
    ["dask_scaling.py", "--metrics", "log-euclidean", "--repeats", "3"],
    ["dask_scaling.py", "--metrics", "affine-invariant", "--records", "1000000", "--repeats", "3"],
]
QUICK = [
    ["mean.py", "--repeats", "2"],
    ["descriptors.py", "--images", "2000", "--repeats", "2"],
    ["descent.py", "--records", "20000", "--repeats", "2"],
    ["scale.py", "--records", "200000", "--repeats", "1", "--quick"],
]
HEADINGS = ("what", "case", "ours", "peer", "theirs", "ratio", "ours / limit")
MARKS = "<!-- table of benchmarks/summary.py -->", "<!-- end of the table -->"


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
        rows += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return rows


def gpu_rows(path: Path) -> list[dict[str, Any]]:
    """The figures of `gpu.py` as rows: against two cores of that machine, or against reading at copy speed."""
    figures = json.loads(path.read_text(encoding="utf-8"))
    host = {(row["case"], row["n"]): row["mean_ms"] for row in figures if row.get("library") == "cpu" and "n" in row}
    rows = []
    for row in figures:
        if row.get("library") in (None, "cpu") or "mean_ms" not in row:
            continue
        name = {"jax": "JAX", "torch": "PyTorch"}[row["library"]]
        limit = row["limit_ms"] / 1e3 if "limit_ms" in row else None
        case = f"{row['case']}, n = {row['n']:,}, {name}"
        peer = host.get((row["case"], row["n"]))
        if peer is not None or limit is not None:
            rows.append(
                {
                    "area": "GPU",
                    "case": case,
                    "ours": (row["kernel_ms"] if peer is None else row["mean_ms"]) / 1e3,
                    "peer": "two cores" if peer is not None else "–",
                    "theirs": None if peer is None else peer / 1e3,
                    "limit": limit,
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


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table as it stands on the page."""
    lines = [f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}"]
    lines += [f"| {' | '.join(cells(row))} |" for row in rows]
    return "\n".join(lines)


def draw_ratios(rows: list[dict[str, Any]], path: Path) -> None:
    """All ratios on one axis."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    compared = [row for row in rows if row["theirs"] is not None]
    areas = list(dict.fromkeys(row["area"] for row in compared))
    figure, axes = plt.subplots(figsize=(9, 0.24 * len(compared) + 1.2), layout="constrained")
    for position, row in enumerate(reversed(compared)):
        ratio = row["theirs"] / row["ours"]
        axes.barh(position, ratio - 1, left=1, color=f"C{areas.index(row['area'])}", height=0.7)
        axes.annotate(
            f"{ratio:.3g}",
            (ratio, position),
            xytext=(3 if ratio >= 1 else -3, 0),
            textcoords="offset points",
            va="center",
            ha="left" if ratio >= 1 else "right",
            fontsize=7,
        )
    labels = [f"{row['area']}: {row['case']} – {row['peer']}" for row in reversed(compared)]
    axes.set_yticks(range(len(compared)), labels, fontsize=7)
    axes.set_xscale("log")
    axes.axvline(1, color="0.3", linewidth=0.8)
    axes.set_xlabel("time of the peer over ours (right of 1: ours is faster)")
    axes.margins(x=0.12, y=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_growth(curves: list[dict[str, Any]], path: Path) -> None:
    """Time against n, and time per record against k and d, with fitted exponents."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    variables = list(dict.fromkeys(curve["variable"] for curve in curves))
    figure, panels = plt.subplots(1, len(variables), figsize=(4 * len(variables), 3.6), layout="constrained")
    for axes, variable in zip(panels, variables, strict=True):
        for curve in (one for one in curves if one["variable"] == variable):
            label = f"{curve['growth']}: exponent {curve['slope']:.2f}"
            axes.loglog(curve["sizes"], [1e3 * time for time in curve["times"]], "o-", label=label, markersize=4)
        axes.set_xlabel({"n": "number of records n", "k": "size k of the matrices", "d": "dimension d"}[variable])
        marks = sorted({size for curve in curves if curve["variable"] == variable for size in curve["sizes"]})
        axes.set_xticks(marks, [f"{mark:,}" for mark in marks], fontsize=8)
        axes.minorticks_off()
        axes.set_ylabel("CPU time of the mean in ms" if variable == "n" else "CPU time per record in ms")
        axes.legend(fontsize=7)
        axes.grid(which="major", alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


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
    rows = [row for row in everything if "area" in row] + (gpu_rows(given.gpu) if given.gpu else [])
    table = Table(title="Ours, the peer, and the least that must be done: CPU time, on a GPU wall time")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("what", "case", "peer") else "right")
    for row in rows:
        table.add_row(*cells(row))
    Console(width=160).print(table)
    figures = given.write.parent / "figures" if given.write else given.out
    draw_ratios(rows, figures / "performance-ratios.png")
    draw_growth([row for row in everything if "growth" in row], figures / "performance-growth.png")
    (given.out / "table.md").write_text(markdown(rows) + "\n", encoding="utf-8")
    if given.write:
        before, rest = given.write.read_text(encoding="utf-8").split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        text = f"{before}{MARKS[0]}\n\n{markdown(rows)}\n\n{MARKS[1]}{after}"
        given.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
