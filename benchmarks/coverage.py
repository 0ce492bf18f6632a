"""How often 95 % regions hold the population's mean, and those of differences the populations' difference.

    python benchmarks/coverage.py [--sets 2000] [--pairs 500] [--jobs 1] [--only NAME] [--write docs/coverage.md]

Data sets of n = 50, 200, 1000 records of a known population (`coverage_simulation.Population`) on S², SPD(3), planar
shapes of 8 landmarks and H³, released under several budgets; `--sets` of them for each cell, in blocks that `--jobs`
processes share. Pairs of data sets, n and n/2 records, for differences whose length is 0, a tenth and four tenths of
the radius of the ball; `--pairs` of them for each cell. A cell is kept if it lies in [94.5 %, 97 %], up to three
standard errors of its own; others are bold. Prints both tables; `--write` puts them between the markers of a page.
"""

from __future__ import annotations

import argparse
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
from timing import one_core

from dpmanifolds import SPD, Budget, GaussianDP, Hyperbolic, Manifold, PlanarShapes, PureDP, Sphere
from dpmanifolds.releases.difference import carry_difference, difference_derivatives, fit_count, length_interval
from dpmanifolds.releases.population import RegionLaw, region_law

_SIZES = (50, 200, 1000)
_BUDGETS: tuple[Budget, ...] = (GaussianDP(0.5), GaussianDP(1.0), GaussianDP(3.0), PureDP(3.0))
_PAIR_BUDGETS: tuple[Budget, ...] = (GaussianDP(0.5), GaussianDP(1.0), GaussianDP(3.0))
_LENGTHS = (0.0, 0.1, 0.4)
_LEVEL, _LEAST, _MOST = 0.95, 0.945, 0.97
_ROWS = 60_000
_DRAWS = 4000
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
    return int.from_bytes(cell.label.encode()[:64].ljust(64), "big") % (1 << 61)


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
    zero = _inside(law, vectors)
    lengths = [_covers(_one(law, row), vectors[row], length * radius, bool(zero[row])) for row in range(block.count)]
    return int(np.sum(inside)), int(np.sum(lengths))


def _difference_law(space: Manifold, first: Batch, second: Batch) -> tuple[RegionLaw, np.ndarray, Any]:
    """`Difference.law`, the vectors and where they are, for many pairs."""
    derivatives = difference_derivatives(space, first.base, first.place, second.base, second.place)
    parts = [batch.moved(derivative) for batch, derivative in zip((first, second), derivatives, strict=True)]
    to = space.exp_coordinates(first.base, first.place)
    return region_law(parts), carry_difference(space, to, space.exp_coordinates(second.base, second.place), to), to


def _one(law: RegionLaw, row: int) -> RegionLaw:
    parts = tuple(
        part._replace(sampling=part.sampling[row], noise=part.noise[row], entry=part.entry[row], scale=part.scale[row])
        for part in law.parts
    )
    return RegionLaw(*(each[row] for each in law[:-1]), parts)


def _covers(law: RegionLaw, vector: np.ndarray, truth: float, zero: bool) -> bool:
    low, high = length_interval(vector, law.draw_errors(_DRAWS), _LEVEL)
    return (0.0 if zero else low) <= truth <= high


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
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=one_core) as pool:
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


def _mean_table(found: dict[Cell, np.ndarray], sets: int) -> list[str]:
    budgets = list(dict.fromkeys(cell.budget for cell in found))
    lines = ["| | n | " + " | ".join(map(repr, budgets)) + " |", "|---|---|" + "---|" * len(budgets)]
    for name, n in dict.fromkeys((cell.name, cell.n) for cell in found):
        shares = [_shown(float(found[Cell(name, n, budget)][0]), sets) for budget in budgets]
        lines.append(f"| {name} | {n} | " + " | ".join(shares) + " |")
    return lines


def _pair_table(found: dict[Cell, np.ndarray], sets: int) -> list[str]:
    budgets = list(dict.fromkeys(cell.budget for cell in found))
    heads = " | ".join(f"{budget!r}: vector | length" for budget in budgets)
    lines = [f"| | n, m | apart | {heads} |", "|---|---|---|" + "---|---|" * len(budgets)]
    for name, n, length in dict.fromkeys((cell.name, cell.n, cell.length) for cell in found):
        shares = [_shown(float(share), sets) for budget in budgets for share in found[Cell(name, n, budget, length)]]
        lines.append(f"| {name} | {n}, {n // 2} | {length:g} r | " + " | ".join(shares) + " |")
    return lines


def main(options: list[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=2000, help="data sets for each cell")
    parser.add_argument("--pairs", type=int, default=500, help="pairs of data sets for each cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="one place: S², H³, SPD(3) or shapes(8)")
    parser.add_argument("--write", type=Path, help="a page with the markers")
    asked = parser.parse_args(options)
    one_core()
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
    lines = [f"The population's mean, {asked.sets:,} data sets in each cell:", ""]
    lines += _mean_table(measure(means, asked.sets, asked.jobs), asked.sets)
    if asked.pairs:
        lines += ["", f"Differences, {asked.pairs:,} pairs of data sets in each cell:", ""]
        lines += _pair_table(measure(pairs, asked.pairs, asked.jobs), asked.pairs)
    print("\n".join(lines))
    print(f"{time.perf_counter() - start:.0f} s")
    if asked.write is not None:
        text = asked.write.read_text(encoding="utf-8")
        before, rest = text.split(_START)
        page = before + _START + "\n" + "\n".join(lines) + "\n" + _END + rest.split(_END)[1]
        asked.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
