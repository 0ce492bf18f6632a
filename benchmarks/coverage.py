"""How often 95 % regions hold the population's mean, and those of differences the populations' difference.

    python benchmarks/coverage.py [--sets 100000] [--pairs 10000] [--jobs 1] [--only NAME] [--sizes 50 200]
                                  [--write docs/coverage.md] [--merge FOLDER]

Data sets of n = 50, 200, 1000 records of a known population (`coverage_simulation.Population`) on S², SPD(3), planar
shapes of 8 landmarks and H³; each is released under several budgets, with noise of its own. Pairs of data sets, n and
n/2 records, for differences whose length is 0, a tenth and four tenths of the radius of the ball, along the axis on
which records spread least and along the one on which they spread most. Work is cut into
blocks that `--jobs` processes share. A cell is kept if it lies in [94.5 %, 97 %], up to three standard errors of its
own. `--write` puts what was counted into tables/coverage.csv and tables/coverage_differences.csv beside a page, rows of
other places and sizes stay, and the smallest and the largest share for each place and size between its markers.
`--merge` takes rows from a folder of such tables, counted on another machine, and counts nothing.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from coverage_simulation import Batch, Population, Simulation
from threadpoolctl import threadpool_limits

from dpmanifolds import SPD, Budget, GaussianDP, Hyperbolic, Manifold, PlanarShapes, PureDP, Sphere
from dpmanifolds.releases.difference import carry_difference, difference_derivatives, fit_count
from dpmanifolds.releases.length import interval_holds
from dpmanifolds.releases.population import RegionLaw, region_law

_SIZES = (50, 200, 1000)
_BUDGETS: tuple[Budget, ...] = (GaussianDP(0.5), GaussianDP(1.0), GaussianDP(3.0), PureDP(3.0))
_PAIR_BUDGETS: tuple[Budget, ...] = (GaussianDP(0.5), GaussianDP(1.0), GaussianDP(3.0))
# how far apart in radii of the ball, and along which axis: the last one is the narrowest, the way back on the first one
# leads through the centre of the ball
_APART = {
    "0 r": (0.0, -1),
    "0.1 r": (0.1, -1),
    "0.4 r": (0.4, -1),
    "0.1 r, widest axis": (-0.1, 0),
    "0.4 r, widest axis": (-0.4, 0),
}
_PAIR_SIZES = (100, 400)
_LEVEL, _LEAST, _MOST = 0.95, 0.945, 0.97
_ROWS = 60_000
_DRAWS = 4000
_TABLES = ("coverage", "coverage_differences")
_KINDS = (": vector", ": length")
_START, _END = "<!-- coverage -->", "<!-- end of coverage -->"


def _places() -> dict[str, tuple[Manifold, Any, float]]:
    shapes = PlanarShapes(8)
    return {
        "S²": (Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0),
        "H³": (Hyperbolic(3), Hyperbolic(3).origin, 1.5),
        "SPD(3)": (SPD(3), np.eye(3), 1.5),
        "shapes(8)": (shapes, shapes.random_point(rng=0), 0.6),
    }


class Cell(NamedTuple):
    """One place, size and budget; for pairs also how they lie."""

    name: str
    n: int
    budget: Budget
    apart: str | None = None


class Block(NamedTuple):
    """So many data sets of a place and size, or pairs so far apart, which every budget releases."""

    name: str
    n: int
    apart: str | None
    count: int
    seed: int

    def generator(self) -> np.random.Generator:
        """The same in every run, another for every block."""
        mark = hashlib.sha256(repr((self.name, self.n, self.apart)).encode()).digest()[:8]
        return np.random.default_rng([self.seed, int.from_bytes(mark, "big")])


@cache
def _simulation(name: str, n: int, budget: Budget) -> Simulation:
    return Simulation.of(_people(name).ball, n, budget)


@cache
def _people(name: str) -> Population:
    return Population.of(*_places()[name])


def run_block(block: Block) -> dict[Cell, tuple[int, ...]]:
    """How many of a block's data sets are covered; of pairs: how many vectors, and how many lengths."""
    return _run_sets(block) if block.apart is None else _run_pairs(block)


def _run_sets(block: Block) -> dict[Cell, tuple[int, ...]]:
    people, rng, found = _people(block.name), block.generator(), {}
    space = people.ball.manifold
    points = people.draw(block.count, block.n, rng)
    seen = space.log_coordinates(people.ball.center, points)
    for budget in _BUDGETS:
        simulation = _simulation(block.name, block.n, budget)
        batch = simulation.release(points, simulation.noises(block.count, rng), seen)
        truth = space.to_coordinates(batch.base, space.log(batch.base, people.center))
        inside = _inside(region_law([batch.part]), truth - batch.place)
        found[Cell(block.name, block.n, budget)] = (int(np.sum(inside)),)
    return found


def _inside(law: RegionLaw, gaps: np.ndarray) -> np.ndarray:
    sizes = np.einsum("...i,...ij,...j->...", gaps, law.weight, gaps)
    return np.asarray(sizes <= law.threshold(_LEVEL))


def _run_pairs(block: Block) -> dict[Cell, tuple[int, ...]]:
    """The second group is half as large, and lies along an axis from the first."""
    name, n, apart = block.name, block.n, block.apart
    assert apart is not None
    length, axis = _APART[apart]
    people, rng, found = _people(name), block.generator(), {}
    space, radius = people.ball.manifold, people.ball.radius
    away = space.move(people.center, length * radius * np.eye(space.dim)[axis])
    points = [people.draw(block.count, n, rng), people._replace(center=away).draw(block.count, n // 2, rng)]
    seen = [space.log_coordinates(people.ball.center, each) for each in points]
    for budget in _PAIR_BUDGETS:
        # both groups have the plan of the smaller one, as `private_difference` does
        second = _simulation(name, n // 2, budget)
        first = replace(second, n=n, plan=fit_count(second.plan, n))
        batches = [
            simulation.release(own, simulation.noises(block.count, rng), near)
            for simulation, own, near in zip((first, second), points, seen, strict=True)
        ]
        law, vectors, to = _difference_law(space, *batches)
        inside = _inside(law, carry_difference(space, people.center, away, to) - vectors)
        held = [
            interval_holds(_one(law, row), vectors[row], _LEVEL, abs(length) * radius, _DRAWS)
            for row in range(block.count)
        ]
        found[Cell(name, n, budget, apart)] = int(np.sum(inside)), int(np.sum(held))
    return found


def _difference_law(space: Manifold, first: Batch, second: Batch) -> tuple[RegionLaw, np.ndarray, Any]:
    """`Difference.law`, the vectors and where they are, for many pairs."""
    derivatives = difference_derivatives(space, first.base, first.place, second.base, second.place)
    parts = [batch.moved(derivative) for batch, derivative in zip((first, second), derivatives, strict=True)]
    to = space.exp_coordinates(first.base, first.place)
    return region_law(parts), carry_difference(space, to, space.exp_coordinates(second.base, second.place), to), to


def _one(law: RegionLaw, row: int) -> RegionLaw:
    fields = ("sampling", "noise", "entry", "scale", "seen", "doubt")
    parts = tuple(part._replace(**{name: getattr(part, name)[row] for name in fields}) for part in law.parts)
    return RegionLaw(*(each[row] for each in law[:-1]), parts)


def _blocks(name: str, n: int, apart: str | None, sets: int) -> Iterable[Block]:
    size = max(1, min(_ROWS // n, 1000))
    for seed, start in enumerate(range(0, sets, size)):
        yield Block(name, n, apart, min(size, sets - start), seed)


@contextmanager
def _processes(jobs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """What maps blocks to counts."""
    if jobs == 1:
        yield map
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=threadpool_limits, initargs=(1,))
    with pool:
        yield pool.map


def _added(results: Iterable[dict[Cell, tuple[int, ...]]], sets: int) -> dict[Cell, np.ndarray]:
    counts: dict[Cell, np.ndarray] = {}
    for result in results:
        for cell, hits in result.items():
            counts[cell] = counts.get(cell, 0) + np.array(hits)
    return {cell: count / sets for cell, count in counts.items()}


def _rows(found: dict[Cell, np.ndarray], sets: int) -> list[dict[str, str]]:
    """One row for each place, size and, of pairs, way to lie: a share for each budget."""
    made: dict[tuple[Any, ...], dict[str, str]] = {}
    for cell, shares in found.items():
        size = {"n": str(cell.n)}
        if cell.apart is not None:
            size = {"n, m": f"{cell.n}, {cell.n // 2}", "apart": cell.apart}
        row = made.setdefault((cell.name, cell.n, cell.apart), {"": cell.name, **size, "sets": str(sets)})
        kinds = ("",) if cell.apart is None else _KINDS
        row.update({f"{cell.budget!r}{kind}": f"{100 * share:.2f}" for kind, share in zip(kinds, shares, strict=True)})
    return list(made.values())


def _merge(path: Path, rows: list[dict[str, str]]) -> None:
    """A table with these rows in the place of the ones that it had for the same cells."""
    known = {_key(row): row for row in _read(path)} | {_key(row): row for row in rows}
    order = list(_places())
    merged = sorted(known.values(), key=lambda row: (order.index(row[""]), *map(int, re.findall(r"\d+", _key(row)[1]))))
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, merged[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") if path.exists() else StringIO() as file:
        return [row for row in csv.DictReader(file) if "sets" in row]


def _key(row: dict[str, str]) -> tuple[str, str]:
    return row[""], f"{row.get('n') or row['n, m']} {row.get('apart', '')}"


def _shares(row: dict[str, str]) -> dict[str, float]:
    return {name: float(share) / 100 for name, share in row.items() if "DP(" in name}


def _misses(row: dict[str, str]) -> int:
    """How many shares of a row are outside of the aim by more than three standard errors."""
    missed = 0
    for share in _shares(row).values():
        error = 3 * math.sqrt(share * (1 - share) / int(row["sets"]))
        missed += not _LEAST - error <= share <= _MOST + error
    return missed


def _summary(rows: list[dict[str, str]], table: str) -> str:
    """The smallest and the largest share over all budgets and distances, for each place and size."""
    size = "n, m" if "n, m" in rows[0] else "n"
    sizes = list(dict.fromkeys(row[size] for row in rows))
    columns = [(each, kind) for each in sizes for kind in (_KINDS if size == "n, m" else ("",))]
    lines = [["", *(f"{size} = {each}{kind}" for each, kind in columns)]]
    for name in dict.fromkeys(row[""] for row in rows):
        cells = []
        for each, kind in columns:
            own = [row for row in rows if row[""] == name and row[size] == each]
            shares = [share for row in own for key, share in _shares(row).items() if key.endswith(kind or ")")]
            cells.append(f"{100 * min(shares):.1f}–{100 * max(shares):.1f}" if shares else "")
        lines.append([name, *cells])
    table_rows = [f"|{'|'.join(line)}|" for line in lines]
    count, missed = sum(len(_shares(row)) for row in rows), sum(map(_misses, rows))
    sets = sorted({int(row["sets"]) for row in rows})
    told = f"{sets[0]:,}" if len(sets) == 1 else f"{sets[0]:,} to {sets[-1]:,}"
    end = (
        f"{told} in each of {count} cells, of which {missed} miss the aim by more than three standard errors: "
        f"[every cell](tables/{table}.csv)."
    )
    return "\n".join([table_rows[0], "|---" * len(lines[0]) + "|", *table_rows[1:], "", end])


def _write(page: Path) -> None:
    """Between the markers of a page, what the tables beside it come to."""
    told = []
    for title, table in zip(("Means", "Differences, pairs of data sets"), _TABLES, strict=True):
        rows = _read(page.parent / "tables" / f"{table}.csv")
        told += [f"**{title}**:", _summary(rows, table)] if rows else []
    before, rest = page.read_text(encoding="utf-8").split(_START)
    made = before + _START + "\n" + "\n\n".join(told) + "\n" + _END + rest.split(_END)[1]
    page.write_text(made, encoding="utf-8")


def main(options: list[str] | None = None) -> None:
    """Measure, print, write: one place and size after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100_000, help="data sets for each cell")
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs of data sets for each cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="one place: S², H³, SPD(3) or shapes(8)")
    parser.add_argument("--sizes", type=int, nargs="*", help="these n alone")
    parser.add_argument("--write", type=Path, help="a page with the markers")
    parser.add_argument("--merge", type=Path, help="a folder with tables to put into those of the page")
    asked = parser.parse_args(options)
    threadpool_limits(1)
    if asked.merge is not None:
        _keep(asked.write, {table: _read(asked.merge / f"{table}.csv") for table in _TABLES})
        return
    names = [name for name in _places() if asked.only in name]
    means, differences = _TABLES
    work = [(means, name, n, (None,), asked.sets) for n in _SIZES for name in names if asked.sets]
    work += [(differences, name, n, tuple(_APART), asked.pairs) for n in _PAIR_SIZES for name in names if asked.pairs]
    with _processes(asked.jobs) as run:
        for table, name, n, distances, sets in work:
            if asked.sizes and n not in asked.sizes:
                continue
            start = time.perf_counter()
            blocks = [block for apart in distances for block in _blocks(name, n, apart, sets)]
            rows = _rows(_added(run(run_block, blocks), sets), sets)
            print(
                *("  ".join(row.values()) for row in rows), f"{time.perf_counter() - start:.0f} s", sep="\n", flush=True
            )
            if asked.write is not None:
                _keep(asked.write, {table: rows})


def _keep(page: Path, found: dict[str, list[dict[str, str]]]) -> None:
    for table, rows in found.items():
        _merge(page.parent / "tables" / f"{table}.csv", rows)
    _write(page)


if __name__ == "__main__":
    main()
