"""How often private tests find what is there, and what is not: the tables of docs/tests_of_groups.md.

    PYTHONPATH=. python benchmarks/two_sample.py level  [--repeats 10000] [--write docs/tables/level.csv]
    PYTHONPATH=. python benchmarks/two_sample.py power  [--repeats 1000] [--write docs/tables/power.csv]
    PYTHONPATH=. python benchmarks/two_sample.py real DATA [--repeats 200] [--write docs/tables/real_groups.csv]
    PYTHONPATH=. python benchmarks/two_sample.py check
    PYTHONPATH=. python benchmarks/two_sample.py figure  # docs/figures/tests-of-groups.png, of scikit-learn's digits

`level` and `power` simulate the formulas of the test (`permutation_simulation`, which runs on a GPU where there is one:
--charts FILE writes what it needs, --found FILE reads its answers); `check` holds that program against the package;
`real` runs the package's test on real groups, with a public fifth of the records for centre and radius. `--write` puts
rows in the place of those of the same settings, and leaves others.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from permutation_simulation import library, simulate

import dpmanifolds as dpm
from dpmanifolds.data import image_descriptors
from dpmanifolds.domains import WholeSpace
from dpmanifolds.sums.decision_noise import among_largest, decision_noise
from dpmanifolds.sums.features import Kernel, kernel_of
from dpmanifolds.sums.permutation import (
    TwoSampleStatistic,
    chosen_sums,
    draw_groups,
)
from dpmanifolds.sums.total import read_records

STYLE = Path(__file__).resolve().parents[1] / "docs" / "figures.mplstyle"
POOL = 20_000
SETTINGS = [(20, 0.5, 99), (100, 1.0, 199), (500, 5.0, 999)]
BALLS: list[tuple[dpm.Manifold, float]] = [
    (dpm.Euclidean(5), 3.0),
    (dpm.SPD(2), 2.0),
    (dpm.SPD(3, "log-euclidean"), 2.0),
    (dpm.SPD(2, "log-cholesky"), 2.0),
    (dpm.Sphere(2), 1.0),
    (dpm.Hyperbolic(2), 1.5),
    (dpm.PlanarShapes(5), 0.6),
    (dpm.Grassmann(4, 2), 0.6),
    (dpm.SpecialOrthogonal(3), 1.2),
]
# effects at which the test without noise finds a shift of Gaussian records in about 96 % of data sets
EFFECTS = {2: 0.60, 5: 0.68, 20: 0.83, 50: 1.03}


def main(arguments: list[str] | None = None) -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("level", "power", "real", "check", "figure"))
    parser.add_argument("data", nargs="?", type=Path, help="the folder of real data, for `real`")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--only", default="", help="the cells whose names, and shifts, hold this")
    parser.add_argument("--directions", type=int, help="so many public directions, for `power`, in place of the usual")
    parser.add_argument("--largest", type=int, default=500, help="leave larger groups out")
    parser.add_argument("--charts", type=Path, help="write what the simulation needs, and end")
    parser.add_argument("--found", type=Path, help="read what the simulation found elsewhere")
    parser.add_argument("--write", type=Path, help="the CSV file of `level`, `power` or `real`")
    options = parser.parse_args(arguments)
    if options.table == "real":
        compare_real(options.data, options.repeats or 200, options.only, options.write)
    elif options.table == "check":
        print_check(options.repeats or 400)
    elif options.table == "figure":
        draw_figure(Path("docs/figures/tests-of-groups.png"), options.repeats or 200)
    else:
        if options.table == "level":
            cases, pools = level_cases(options.repeats)
        else:
            cases, pools = power_cases(options.repeats, options.directions)
        cases = sorted(
            (
                case
                for case in cases
                if case["n"] <= options.largest and options.only in f"{case['label']}, {case['shift']:.2f}"
            ),
            key=lambda case: case["n"],
        )
        if options.charts is not None:
            np.savez_compressed(options.charts, cases=json.dumps(cases), **pools)
            return
        tell_found(options, cases, pools)


def tell_found(options: Any, cases: list[dict[str, Any]], pools: dict[str, np.ndarray]) -> None:
    """What was found elsewhere, or is found here, printed and written row by row."""
    tell = level_row if options.table == "level" else power_row
    rng, xp = np.random.default_rng(0), library(gpu=False)
    for case in cases:
        if options.found is not None:
            text = json.loads(options.found.read_text(encoding="utf-8"))
            found = [each for each in text if all(each[key] == case[key] for key in ("label", "n", "shift"))]
        else:
            found = [case | each for each in simulate(case, pools, case["repeats"], rng, xp)]
        keep_rows([tell(each) for each in found], 5 if options.table == "power" else 4, options.write)


def keep_rows(rows: list[dict[str, str]], keys: int, path: Path | None) -> None:
    """Print rows, and merge them into a file, by their first columns."""
    for row in rows:
        print(*row.values(), sep=" | ", flush=True)
    if path is None:
        return
    known: list[dict[str, str]] = []
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            known = list(csv.DictReader(file))
    merged = {tuple(row.values())[:keys]: row for row in known} | {tuple(row.values())[:keys]: row for row in rows}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged.values())


def chart_of(kernel: Kernel, points: Any) -> np.ndarray:
    """Coordinates of records in the chart of a kernel."""
    rule = kernel.contribution(20)
    rows = np.asarray(rule.look_at(rule.form(points))[0]) / kernel.radius
    return rows


def level_cases(repeats: int | None) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """One law for both groups: records at and beyond the edge of the ball, off its centre."""
    cases, pools = [], {}
    for manifold, radius in BALLS:
        center = manifold.random_point(rng=3) if manifold.natural_center is None else manifold.natural_center
        ball = dpm.Ball(manifold, center, radius)
        rng = np.random.default_rng(1)
        rows = 0.5 * radius * rng.standard_normal((POOL, manifold.dim)) / math.sqrt(manifold.dim)
        rows[:, 0] += 0.3 * radius
        points = manifold.move(np.asarray(ball.center), rows)
        kernels: dict[str, Any] = {"directions": ball, "gaussian": ball, "linear": ball}
        if manifold.ambient_dim:
            kernels["exponential"] = WholeSpace(manifold, center)
        for name, domain in kernels.items():
            kernel = kernel_of(domain, name, size=(2 * SETTINGS[-1][0], SETTINGS[-1][2]))
            key = f"{manifold!r} {name}"
            pools[key] = chart_of(kernel, points)
            if kernel.parts[0] is not None:
                pools[f"{key} directions"] = kernel.parts[0]
            for n, epsilon, count in SETTINGS:
                case = case_of(key, key, n, (epsilon,), count, repeats or 10_000)
                cases.append(case | {"separate": kernel.is_separate})
    return cases, pools


def power_cases(
    repeats: int | None, directions: int | None = None
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Gaussian records of R^d, a shift of the mean, in balls of 1.2, 2 and 3 times their rms length."""
    cases, pools = [], {}
    for (dim, effect), width in product(EFFECTS.items(), (1.2, 2.0, 3.0)):
        rng = np.random.default_rng(2)
        ball = dpm.Ball(dpm.Euclidean(dim), np.zeros(dim), width * math.sqrt(dim))
        pools[f"R^{dim}"] = rng.standard_normal((POOL, dim))
        shares = (0.5, 1.0, 1.5, 2.0) if width == 1.2 else (1.0,)
        for name, even in (("directions", False), ("directions", True), ("gaussian", False), ("linear", False)):
            kernel = kernel_of(ball, name, size=(200, 199))
            told = name
            if directions is not None and kernel.is_separate:
                kernel, told = kernel_of(ball, name, pairs=directions // 2), f"{directions} directions"
            key = f"R^{dim}, {width}, {name}{', all axes alike' if even else ''}"
            if kernel.parts[0] is not None:
                pools[f"{key} directions"] = kernel.parts[0]
            for share in shares:
                case = case_of(f"R^{dim}", key, 100, (0.5, 1.0, 3.0), 199, repeats or 1000)
                case |= {"separate": kernel.is_separate, "even": even, "dim": dim, "width": width, "kernel": told}
                cases.append(case | {"shift": share * effect, "scale": 1 / ball.radius})
    return cases, pools


def case_of(pool: str, key: str, n: int, epsilons: tuple[float, ...], count: int, repeats: int) -> dict[str, Any]:
    """One setting of the simulation."""
    return {
        "pool": pool,
        "label": key,
        "shift": 0.0,
        "scale": 1.0,
        "directions": f"{key} directions",
        "n": n,
        "m": n,
        "epsilons": epsilons,
        "permutations": count,
        "level": 0.05,
        "repeats": repeats,
    }


def level_row(found: dict[str, Any]) -> dict[str, str]:
    """How often nothing was called something."""
    manifold, _, kernel = found["label"].rpartition(" ")
    settings = f"{found['n']}, {found['epsilon']:g}, {found['permutations']}"
    told = {"manifold": manifold, "kernel": kernel, "n = m, epsilon, permutations": settings}
    return told | {"data sets": str(found["repeats"]), "rejected": f"{found['private']:.4f}"}


def power_row(found: dict[str, Any]) -> dict[str, str]:
    """How often a shift was found."""
    share = f"{found['seen'] / found['clear']:.2f}" if found["clear"] else "none"
    kernel = f"{found['kernel']}{', all axes alike' if found['even'] else ''}"
    told = {"dimension": str(found["dim"]), "radius over rms length": f"{found['width']:g}", "kernel": kernel}
    told |= {
        "shift": f"{found['shift']:.2f}",
        "epsilon": f"{found['epsilon']:g}",
        "without noise": f"{found['plain']:.2f}",
    }
    told |= {"private": f"{found['private']:.2f}", "beyond reach": f"{found['clear'] / found['repeats']:.2f}"}
    return told | {"of these found": share, "data sets": str(found["repeats"])}


def print_check(repeats: int) -> None:
    """The package and the simulation on the same laws."""
    cases, pools = power_cases(repeats)
    rng = np.random.default_rng(3)
    for case in cases[:12:3]:
        pool, name = pools[case["pool"]], case["kernel"]
        dim = pool.shape[1]
        way = np.full(dim, 1 / math.sqrt(dim)) if case["even"] else np.eye(dim)[0]
        ball, shift = dpm.Ball(dpm.Euclidean(dim), np.zeros(dim), 1 / case["scale"]), case["shift"] * way
        answers = []
        for _ in range(repeats):
            x, y = (pool[rng.integers(POOL, size=100)] for _ in range(2))
            test = dpm.private_two_sample_test(x, y + shift, ball, dpm.PureDP(1.0), kernel=name, rng=rng)
            answers.append(test.rejected)
        simulated = simulate(case | {"epsilons": (1.0,)}, pools, 2000, rng, np)[0]["private"]
        print(f"{case['label']}, {case['shift']:.2f}: package {np.mean(answers):.3f}, simulation {simulated:.3f}")


def compare_real(data: Path, repeats: int, only: str, write: Path | None) -> None:
    """Real groups: a public fifth gives centre and radius (1.5 times the median distance to its mean)."""
    for label, manifold, first, second in real_groups(data):
        if only not in label:
            continue
        rng = np.random.default_rng(4)
        groups, public = [], []
        for points in (first, second):
            order = rng.permutation(len(points))
            cut = max(2, len(points) // 5)
            public.append(points[order[:cut]])
            groups.append(points[order[cut:]])
        sample = np.concatenate(public)
        center = dpm.frechet_mean(manifold, sample).point
        radius = 1.5 * float(np.median(manifold.dist(np.asarray(center), sample)))
        ball = dpm.Ball(manifold, center, min(radius, 0.99 * manifold.injectivity_radius))
        shares = find_shares(ball, groups, (0.5, 1.0, 3.0), repeats, rng)
        row = {"groups": label, "n, m": ", ".join(str(len(group)) for group in groups), "dimension": str(manifold.dim)}
        row["p without noise"] = f"{plain_rank(ball, groups):.3f}"
        names = ("found at ε = 0.5", "1", "3")
        keep_rows([row | {name: f"{share:.2f}" for name, share in zip(names, shares, strict=True)}], 1, write)


def find_shares(
    ball: dpm.Ball, groups: list[np.ndarray], epsilons: tuple[float, ...], repeats: int, rng: np.random.Generator
) -> list[float]:
    """How often `private_two_sample_test` says that groups differ, over permutations and noise; for each pure ε.

    All read the same integers of the records, and the statistics of one set of permutations, as it does.
    """
    found = np.zeros(len(epsilons))
    for _ in range(repeats):
        statistic, values = statistics_of(ball, groups, 199, rng)
        for number, epsilon in enumerate(epsilons):
            noisy = decision_noise(statistic, dpm.PureDP(epsilon), 0.05).add_to(values, rng)
            found[number] += among_largest(noisy, 10)
    return [float(share) for share in found / repeats]


def statistics_of(
    ball: dpm.Ball, groups: list[np.ndarray], count: int, rng: np.random.Generator
) -> tuple[TwoSampleStatistic, list[int]]:
    """T of the groups as they are and of so many permutations, in lattice steps; directions are those of 199."""
    sizes = (len(groups[0]), len(groups[1]))
    kernel = kernel_of(ball, size=(sum(sizes), 199))
    statistic = TwoSampleStatistic(kernel, sizes)
    records = read_records(ball.manifold, np.concatenate(groups))
    sums, _ = chosen_sums(records, kernel.contribution(statistic.exponent), draw_groups(sizes, count, rng))
    return statistic, statistic.values(sums)


def plain_rank(ball: dpm.Ball, groups: list[np.ndarray], count: int = 999) -> float:
    """The p-value of the same test without noise."""
    _, values = statistics_of(ball, groups, count, np.random.default_rng(6))
    return next(rank for rank in range(1, count + 2) if among_largest(values, rank)) / (count + 1)


def real_groups(data: Path) -> Iterator[tuple[str, dpm.Manifold, np.ndarray, np.ndarray]]:
    """What they are called, where they live, and the records of both."""

    def load(name: str) -> Any:
        return np.load(data / f"{name}.npz", allow_pickle=False)

    def shapes(name: str, label: str, pairs: list[tuple[tuple[str, ...], tuple[str, ...], str]]) -> Iterator[Any]:
        file = load(f"shapes/{name}")
        space = dpm.PlanarShapes(file["x"].shape[1])
        points = np.asarray(space.as_points(file["x"]))
        for first, second, words in pairs:
            yield words, space, points[np.isin(file[label], first)], points[np.isin(file[label], second)]

    sexes = [
        ((f"{ape}f",), (f"{ape}m",), f"{name}: female, male skulls")
        for ape, name in (("gor", "gorillas"), ("pan", "chimpanzees"), ("pongo", "orang-utans"))
    ]
    species = [
        (("gorf", "gorm"), ("panf", "panm"), "apes: gorillas, chimpanzees"),
        (("gorf", "gorm"), ("pongof", "pongom"), "apes: gorillas, orang-utans"),
    ]
    yield from shapes("apes", "group", sexes + species)
    yield from shapes(
        "honeybee_wings_lineages",
        "lineage",
        [((a,), (b,), f"honeybee wings: lineages {a}, {b}") for a, b in ("AC", "AO", "CO", "AM")],
    )
    yield from shapes(
        "mosquito_wings",
        "group",
        [(("AE",), ("CX",), "mosquito wings: Aedes, Culex"), (("AE",), ("AN",), "mosquito wings: Aedes, Anopheles")],
    )
    yield from shapes(
        "schizophrenia_mr_landmarks", "group", [(("con",), ("scz",), "brain landmarks: controls, schizophrenia")]
    )
    file = load("spd/connectomes_fnc28")
    for metric in ("affine-invariant", "log-euclidean"):
        space = dpm.SPD(28, metric)
        points = space.place(file["x"])
        yield f"connectomes, {metric}: labels 0, 1", space, points[file["label"] == 0], points[file["label"] == 1]
    file = load("sphere/compositional_crohn_microbiome")
    roots = np.sqrt(file["counts"] / file["counts"].sum(axis=1, keepdims=True))
    yield "microbiome: Crohn's disease, controls", dpm.Sphere(47), roots[file["y"] == "CD"], roots[file["y"] == "no"]
    file = load("images/mnist10k")
    for a, b in ((3, 8), (4, 9), (0, 1)):
        first, second = (image_descriptors(file["x"][file["y"] == digit][:250], eta=1e-2) for digit in (a, b))
        yield (
            f"digits {a}, {b} (250 each), covariance descriptors",
            dpm.SPD(first.shape[-1], "log-euclidean"),
            first,
            second,
        )


def digit_groups() -> tuple[dpm.Ball, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Covariance descriptors of scikit-learn's digits; 0, 1 and 2 stand for public records, and give the ball."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    points = image_descriptors(digits.images, full_scale=16.0, eta=1e-2)
    space = dpm.SPD(points.shape[-1], "log-euclidean")
    public = points[digits.target <= 2]
    center = dpm.frechet_mean(space, public).point
    radius = 1.5 * float(np.median(space.dist(np.asarray(center), public)))
    groups = {each: points[digits.target == each][:60] for each in range(10)}
    pairs = {"3 and 8": (groups[3], groups[8]), "4 and 9": (groups[4], groups[9]), "5 and 6": (groups[5], groups[6])}
    return dpm.Ball(space, center, radius), pairs | {"7 and 7": (groups[7][::2], groups[7][1::2])}


def draw_figure(path: Path, repeats: int) -> None:
    """How often the digits are told apart, over ε."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    ball, pairs = digit_groups()
    epsilons = (0.2, 0.35, 0.6, 1.0, 1.7, 3.0)
    rng = np.random.default_rng(5)
    with rc_context(fname=STYLE):
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        axes = figure.subplots()
        # curves that meet at 1 stay visible: later ones are drawn with smaller marks
        for place, (label, (first, second)) in enumerate(pairs.items()):
            shares = find_shares(ball, [first, second], epsilons, repeats, rng)
            rank = plain_rank(ball, [first, second])
            told = f"{label}: n = {len(first)}, {len(second)}; without noise p = {rank:.3f}"
            print(told, [f"{share:.2f}" for share in shares], flush=True)
            axes.semilogx(epsilons, shares, marker="osv^"[place], markersize=9 - 2 * place, label=told)
        axes.axhline(0.05, color="black", linestyle=":", label="level 0.05")
        axes.set(xlabel="ε", ylabel="share of tests that find a difference", ylim=(-0.02, 1.04))
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        figure.legend(loc="outside lower center", ncols=2)
        figure.savefig(path)


if __name__ == "__main__":
    main()
