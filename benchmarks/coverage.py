"""How often 95 % regions hold the population's mean, and those of differences the populations' difference.

    python benchmarks/coverage.py [--sets 2100] [--pairs 2000] [--jobs 1] [--only NAME] [--write docs/coverage.md]

Data sets of n = 50, 200, 1000 records of a known population (`coverage_simulation.Population`) on S², SPD(3), planar
shapes of 8 landmarks and H³, released under several budgets; `--sets` of them for each cell, in blocks that `--jobs`
processes share. Pairs of data sets, n and n/2 records, for differences whose length is 0, a tenth and four tenths of
the radius of the ball; `--pairs` of them for each cell. A cell is kept if it lies in [94.5 %, 97 %], up to three
standard errors of its own; others are bold. Prints both tables; `--write` puts them beside a page, as
tables/coverage.csv and tables/coverage_differences.csv, and between its markers the smallest and the largest share for
each place and size.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import math
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from coverage_simulation import Batch, Population, Simulation
from threadpoolctl import threadpool_limits

from dpmanifolds import SPD, Budget, GaussianDP, Hyperbolic, Manifold, PlanarShapes, PureDP, Sphere
from dpmanifolds.releases.difference import carry_difference, difference_derivatives, fit_count
from dpmanifolds.releases.length import difference_interval
from dpmanifolds.releases.population import RegionLaw, region_law

_SIZES = (50, 200, 1000)
_BUDGETS: tuple[Budget, ...] = (GaussianDP(0.5), GaussianDP(1.0), GaussianDP(3.0), PureDP(3.0))
_PAIR_BUDGETS: tuple[Budget, ...] = (GaussianDP(0.5), GaussianDP(1.0), GaussianDP(3.0))
_LENGTHS = (0.0, 0.1, 0.4)
_LEVEL, _LEAST, _MOST = 0.95, 0.945, 0.97
_ROWS = 60_000
_DRAWS = 4000
_KINDS = ("vector", "length")
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
    """One place, size and budget; for pairs with a length."""

    name: str
    n: int
    budget: Budget
    length: float | None = None

    @property
    def label(self) -> str:
        away = "" if self.length is None else f", {self.length:g} of the radius apart"
        return f"{self.name}, n = {self.n}{away}, {self.budget!r}"


class Block(NamedTuple):
    """So many data sets, or pairs, of a cell."""

    cell: Cell
    count: int
    seed: int


@cache
def _simulation(name: str, n: int, budget: Budget) -> tuple[Simulation, Population]:
    space, middle, radius = _places()[name]
    people = Population.of(space, middle, radius)
    return Simulation.of(people.ball, n, budget), people


def run_block(block: Block) -> tuple[int, ...]:
    """How many of a block's data sets are covered; of pairs: how many vectors, and how many lengths."""
    if block.cell.length is not None:
        return _run_pairs(block)
    simulation, people = _simulation(*block.cell[:3])
    rng = np.random.default_rng([block.seed, _mark(block.cell)])
    batch = simulation.release(people.draw(block.count, block.cell.n, rng), simulation.noises(block.count, rng))
    space = people.ball.manifold
    truth = space.to_coordinates(batch.base, space.log(batch.base, people.center))
    return (int(np.sum(_inside(region_law([batch.part]), truth - batch.place))),)


def _mark(cell: Cell) -> int:
    """A number that tells cells apart, the same in every run."""
    return int.from_bytes(hashlib.sha256(cell.label.encode()).digest()[:8], "big")


def _inside(law: RegionLaw, gaps: np.ndarray) -> np.ndarray:
    sizes = np.einsum("...i,...ij,...j->...", gaps, law.weight, gaps)
    return np.asarray(sizes <= law.threshold(_LEVEL))


def _run_pairs(block: Block) -> tuple[int, int]:
    """The second group is half as large, and lies along the last axis from the first."""
    name, n, budget, length = block.cell
    assert length is not None
    first, people = _simulation(name, n, budget)
    # both groups have the plan of the smaller one, as `private_difference` does
    second, _ = _simulation(name, n // 2, budget)
    first = replace(first, plan=fit_count(second.plan, n))
    space, radius = people.ball.manifold, people.ball.radius
    away = space.move(people.center, length * radius * np.eye(space.dim)[-1])
    others = people._replace(center=away)
    rng = np.random.default_rng([block.seed, _mark(block.cell)])
    batches = [
        simulation.release(group.draw(block.count, size, rng), simulation.noises(block.count, rng))
        for simulation, group, size in ((first, people, n), (second, others, n // 2))
    ]
    law, vectors, to = _difference_law(space, *batches)
    truth = carry_difference(space, people.center, away, to)
    inside = _inside(law, truth - vectors)
    lengths = [_covers(_one(law, row), vectors[row], length * radius) for row in range(block.count)]
    return int(np.sum(inside)), int(np.sum(lengths))


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


def _covers(law: RegionLaw, vector: np.ndarray, truth: float) -> bool:
    low, high = difference_interval(law, vector, _LEVEL, _DRAWS)
    return low <= truth <= high


def _blocks(cell: Cell, sets: int) -> Iterable[Block]:
    size = max(1, min(_ROWS // cell.n, 1000))
    for seed, start in enumerate(range(0, sets, size)):
        yield Block(cell, min(size, sets - start), seed)


def measure(cells: list[Cell], sets: int, jobs: int) -> dict[Cell, np.ndarray]:
    """The share of data sets that is covered in every cell."""
    blocks = [block for cell in cells for block in _blocks(cell, sets)]
    found: dict[Cell, np.ndarray] = {}
    if jobs == 1:
        results: Iterable[tuple[int, ...]] = map(run_block, blocks)
        return _added(found, blocks, results, sets)
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=threadpool_limits, initargs=(1,))
    with pool:
        return _added(found, blocks, pool.map(run_block, blocks), sets)


def _added(
    found: dict[Cell, np.ndarray], blocks: list[Block], results: Iterable[tuple[int, ...]], sets: int
) -> dict[Cell, np.ndarray]:
    for block, hits in zip(blocks, results, strict=True):
        found[block.cell] = found.get(block.cell, np.zeros(len(hits))) + np.array(hits) / sets
    return found


def _shown(share: float, sets: int) -> str:
    error = 3 * math.sqrt(share * (1 - share) / sets)
    kept = _LEAST - error <= share <= _MOST + error
    return f"{100 * share:.2f}" if kept else f"**{100 * share:.2f}**"


def _rows(found: dict[Cell, np.ndarray], sets: int) -> list[list[str]]:
    """A table with its head: one row for each place, size and, of pairs, length."""
    budgets = list(dict.fromkeys(cell.budget for cell in found))
    pairs = next(iter(found)).length is not None
    heads = [f"{budget!r}{of}" for budget in budgets for of in ((": vector", ": length") if pairs else ("",))]
    made = [["", "n, m", "apart", *heads] if pairs else ["", "n", *heads]]
    for name, n, length in dict.fromkeys((cell.name, cell.n, cell.length) for cell in found):
        shares = [_shown(float(share), sets) for budget in budgets for share in found[Cell(name, n, budget, length)]]
        made.append([name, *([str(n)] if length is None else [f"{n}, {n // 2}", f"{length:g} r"]), *shares])
    return made


def _ranges(found: dict[Cell, np.ndarray]) -> list[list[str]]:
    """The smallest and the largest share over all budgets and lengths, for each place and size."""
    sizes = list(dict.fromkeys(cell.n for cell in found))
    pairs = next(iter(found)).length is not None
    made = [
        ["", *(f"n = {n}, m = {n // 2}: {of}" if pairs else f"n = {n}" for n in sizes for of in _KINDS[: 1 + pairs])]
    ]
    for name in dict.fromkeys(cell.name for cell in found):
        row = [name]
        for n in sizes:
            shares = np.array([share for cell, share in found.items() if cell[:2] == (name, n)])
            row += [
                f"{100 * low:.1f} – {100 * high:.1f}" for low, high in zip(shares.min(0), shares.max(0), strict=True)
            ]
        made.append(row)
    return made


def _table(rows: list[list[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]


def _write(page: Path, told: list[tuple[str, str, dict[Cell, np.ndarray], int]]) -> None:
    """All cells beside the page, what they come to between its markers."""
    lines = []
    for title, name, found, sets in told:
        path = page.parent / "tables" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_rows(found, sets))
        bold = sum(cell.startswith("**") for row in _rows(found, sets) for cell in row)
        count = sum(share.size for share in found.values())
        end = f"{bold} of {count} miss the aim by more than three standard errors: [every cell](tables/{path.name})."
        lines += [title, "", *_table(_ranges(found)), "", end, ""]
    before, rest = page.read_text(encoding="utf-8").split(_START)
    made = before + _START + "\n" + "\n".join(lines[:-1]) + "\n" + _END + rest.split(_END)[1]
    page.write_text(made, encoding="utf-8")


def main(options: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=2100, help="data sets for each cell")
    parser.add_argument("--pairs", type=int, default=2000, help="pairs of data sets for each cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="one place: S², H³, SPD(3) or shapes(8)")
    parser.add_argument("--write", type=Path, help="a page with the markers")
    asked = parser.parse_args(options)
    threadpool_limits(1)
    names = [name for name in _places() if asked.only in name]
    start = time.perf_counter()
    means = [Cell(name, n, budget) for name in names for n in _SIZES for budget in _BUDGETS]
    pairs = [
        Cell(name, n, budget, length)
        for name in names
        for n in (100, 400)
        for length in _LENGTHS
        for budget in _PAIR_BUDGETS
    ]
    told = []
    if asked.sets:
        found = measure(means, asked.sets, asked.jobs)
        title = f"The population's mean, {asked.sets:,} data sets in each of {len(means)} cells:"
        told.append((title, "coverage", found, asked.sets))
    if asked.pairs:
        found = measure(pairs, asked.pairs, asked.jobs)
        title = f"Differences, {asked.pairs:,} pairs of data sets in each of {len(pairs)} cells:"
        told.append((title, "coverage_differences", found, asked.pairs))
    for title, _, cells, sets in told:
        print("\n".join([title, "", *_table(_rows(cells, sets)), ""]))
    print(f"{time.perf_counter() - start:.0f} s")
    if asked.write is not None:
        _write(asked.write, told)


if __name__ == "__main__":
    main()
