"""docs/league.md from the numbers of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Cell", "read_cells", "write_page"]

LIMIT, GOAL = 1.02, 0.8
_EXTRINSIC = "auto, kind extrinsic"
_NOT_RANKED = ("auto", "public centre", _EXTRINSIC)
_COMBINED = "ℓ2/Gaussian + James–Stein"


class Cell(NamedTuple):
    """A case, a budget and what is public, with the rms error of every competitor and its standard error."""

    case: str
    kind: str
    budget: str
    block: str
    facts: dict[str, float]
    errors: dict[str, tuple[float, float]]
    how: str
    """What `auto` chose."""

    @property
    def ranked(self) -> dict[str, tuple[float, float]]:
        return {name: pair for name, pair in self.errors.items() if name not in _NOT_RANKED}

    @property
    def best(self) -> str:
        """The best rival."""
        return min(self.ranked, key=lambda name: self.ranked[name][0])

    @property
    def ratio(self) -> float:
        """Of `auto` to the best rival."""
        return self.errors["auto"][0] / self.errors[self.best][0]

    def ratio_without(self, name: str) -> float:
        """Of `auto` to the best of the other rivals."""
        return self.errors["auto"][0] / min(error for rival, (error, _) in self.ranked.items() if rival != name)

    @property
    def width(self) -> float:
        """Its standard error, by the delta method."""
        return self.ratio * math.hypot(*(self.errors[name][1] / self.errors[name][0] for name in ("auto", self.best)))

    @property
    def verdict(self) -> str:
        if self.ratio <= LIMIT:
            return "kept"
        return "within noise" if self.ratio - 3 * self.width <= LIMIT else "**missed**"


def read_cells(told: dict[str, Any]) -> list[Cell]:
    """Splits pooled: the root of the mean of squared errors. Rivals with a ball alone stand in both blocks."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in told["results"]:
        for key in result["cells"]:
            grouped.setdefault((result["case"], key), []).append(result)
    cells = []
    for (case, key), results in grouped.items():
        budget, block = key.split("|")
        parts = [dict(one["cells"][key]) for one in results]
        if block != "ball":
            parts = [
                {**_rivals_of(one["cells"][f"{budget}|ball"]), **part} for one, part in zip(results, parts, strict=True)
            ]
        if not all("auto" in part for part in parts):
            continue
        how = parts[0].pop("how")
        names = [name for name in parts[0] if all(name in part for part in parts)]
        facts = {name: float(np.median([one["facts"][name] for one in results])) for name in results[0]["facts"]}
        errors = {name: _pool([part[name] for part in parts]) for name in names}
        cells.append(Cell(case, results[0]["kind"], budget, block, facts, errors, how))
    return cells


def _rivals_of(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: moments for name, moments in cell.items() if name not in (*_NOT_RANKED, "how")}


def _pool(moments: list[dict[str, float]]) -> tuple[float, float]:
    """rms, and its standard error given the splits."""
    mean = float(np.mean([one["mean"] for one in moments]))
    error = math.sqrt(sum(one["variance"] for one in moments)) / len(moments)
    return math.sqrt(mean), error / (2 * math.sqrt(mean)) if mean else 0.0


def _summary(cells: list[Cell]) -> Iterator[str]:
    ratios = np.array([cell.ratio for cell in cells])
    verdicts = [cell.verdict for cell in cells]
    yield (
        f"{len(cells)} cells. `auto` over the best rival: median {np.median(ratios):.2f} (goal ≤ {GOAL}), "
        f"{verdicts.count('kept')} at or below {LIMIT}, {verdicts.count('within noise')} above by less than three "
        f"standard errors, {verdicts.count('**missed**')} missed.\n"
    )
    published = [cell.ratio_without(_COMBINED) for cell in cells]
    yield (
        f"Without the James–Stein line, a combination of published parts that no paper has: median "
        f"{np.median(published):.2f}, {sum(ratio <= LIMIT for ratio in published)} at or below {LIMIT}.\n"
    )
    wins: dict[str, int] = {}
    for cell in cells:
        wins[cell.best] = wins.get(cell.best, 0) + 1
    ranked = sorted(wins.items(), key=lambda pair: -pair[1])
    yield "Best rival: " + ", ".join(f"{name} in {count}" for name, count in ranked) + ".\n"


def _table(cells: list[Cell]) -> Iterator[str]:
    yield "| case | budget | auto | best rival | | ratio | | public centre |"
    yield "|---|---|---|---|---|---|---|---|"
    for cell in cells:
        auto, best = cell.errors["auto"][0], cell.errors[cell.best][0]
        yield (
            f"| {cell.case} | {cell.budget} | {auto:.3g} | {cell.best} | {best:.3g} | "
            f"{cell.ratio:.2f} ± {cell.width:.2f} | {cell.verdict} | {cell.errors['public centre'][0]:.3g} |"
        )


def _matrix(cells: list[Cell], budget: str) -> Iterator[str]:
    """Each rival's error over ours."""
    chosen = [cell for cell in cells if cell.budget == budget]
    names = list(dict.fromkeys(name for cell in chosen for name in cell.errors if name != "auto"))
    yield "| " + " | ".join(["case", *names]) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for cell in chosen:
        auto = cell.errors["auto"][0]
        shown = [f"{cell.errors[name][0] / auto:.2f}" if name in cell.errors else "–" for name in names]
        yield "| " + " | ".join([cell.case, *shown]) + " |"


_WHY = {
    "extrinsic mean": "ambient coordinates are bounded whatever the ball is, and take one sum; the Fréchet mean by "
    'tangent steps pays for the whole radius, and for each step. `kind="extrinsic"` releases that other mean; its '
    "error, against the Fréchet mean too, over the best rival's is given.",
    "geometric median": "a record's gradient has length 1 however large the ball is, and the descent starts from a "
    "paid radius; these records are symmetric, so that their median is their mean.",
    "Riemannian Laplace": "one draw around the Fréchet mean itself, promised for real numbers only; tangent steps "
    "carry over some of the noise of the first one.",
    "wrapped Laplace": "the Fréchet mean itself is released (S1w), promised for real numbers only, with noise by its "
    "exact profile; tangent steps carry over some of the noise of the first one.",
    "ℓ2/Gaussian + James–Stein": "one step. The mean lies near the public centre, where one step has hardly any bias, "
    "and `auto`, which must expect it anywhere in the ball, takes more; or noise by the exact profile.",
    "ℓ2 mechanism": "noise by the exact profile of its law, or one step where `auto` takes several.",
    "CoinPress": "its second step clips around a rough mean, at the scale of the records.",
    "pooled with the public mean": "its weight is the best linear one under the public variance.",
    "public covariance": "its axes come from the public fifth, without regard to how few records gave them.",
}


def _misses(cells: list[Cell]) -> Iterator[str]:
    missed = sorted((cell for cell in cells if cell.verdict == "**missed**"), key=lambda cell: -cell.ratio)
    if not missed:
        yield "None."
    for name in dict.fromkeys(cell.best for cell in missed):
        mine = [cell for cell in missed if cell.best == name]
        yield f"- **{name}**, {len(mine)} cells: {_WHY.get(name, 'see the table.')}"
        for cell in mine:
            facts, other = cell.facts, cell.errors.get(_EXTRINSIC)
            ours = "" if other is None else f'; kind="extrinsic" {other[0] / cell.errors[cell.best][0]:.2f}'
            yield (
                f"  - {cell.ratio:.2f} ± {cell.width:.2f}: {cell.case}, {cell.budget} (d={facts['d']:.0f}, "
                f"n={facts['n']:.0f}, radius over spread {facts['radius'] / facts['spread']:.1f}; {cell.how}{ours})"
            )


def write_page(told: dict[str, Any]) -> str:
    """The whole page."""
    cells = read_cells(told)
    lines = [
        _HEAD.format(
            splits=told["splits"],
            releases=told["releases"],
            four=4 * told["releases"],
            few=max(told["releases"] // 3, 5),
        )
    ]
    for block, title, words in _BLOCKS:
        chosen = [cell for cell in cells if cell.block == block]
        if not chosen:
            continue
        lines += [f"## {title}", "", words, "", *_summary(chosen), *_table(chosen), "", "### Cells that miss", ""]
        lines += [*_misses(chosen), ""]
        for budget in dict.fromkeys(cell.budget for cell in chosen):
            lines += [f"### Error over that of `auto`, {budget}", "", *_matrix(chosen, budget), ""]
    lines += [_TAIL.format(minutes=told["minutes"], jobs=told["jobs"])]
    return "\n".join(lines)


_BLOCKS = (
    ("ball", "A public ball", "What is public: the centre and the radius. A dash: not offered there, or left out."),
    (
        "ball and sample",
        "A public ball and a public fifth",
        "What is public: the same ball, and the fifth of the records that it was made of. Rivals that know the ball "
        "alone play too.",
    ),
)
_HEAD = """# The league

`private_mean` as it comes (`auto`) against published mechanisms, at the same promise and with the same public
knowledge in every cell. Printed by

    make league DATA=folder

**Error**: root mean square of the geodesic distance to the Fréchet mean of the private records, unclipped, over
{splits} random splits (or simulated data sets) with {releases} releases of ours each, {four} in at most
14 dimensions ({few} wherever a sample is public), and of each rival four times the former (60 at most of the K-norm
gradient). Standard errors are given the splits: they say nothing about other splits.

**Real data**: a random fifth is public, its mean is the centre and 1.1 times its largest distance the radius of the
ball (`Ball.from_sample`); the rest is private. **Simulations**: a stated ball, records around a point a ninth to a
third of the radius away from its centre. The public centre alone is shown, not ranked.

**Rivals** have the tightest constants that are proven for them, exact calibration and plain floating-point noise, and
may project onto the ball:

- the ℓ2 mechanism (Hardt and Talwar 2010) with its exact (ε, δ) profile; the better of it and the Gaussian, followed by
  positive-part James–Stein;
- tangent Gaussian (Utpala et al. 2022); exponential-wrapped Laplace and Gaussian at the centre, on the Fréchet mean;
- Riemannian Laplace (Reimherr et al. 2021), Riemannian Gaussian (Jiang et al. 2023), K-norm gradient with the factor 2
  that it needs (Soto et al. 2022);
- noise on the entries of the Fréchet mean (vech or ambient coordinates), projected; noisy extrinsic means, projected
  (Chaudhuri et al. 2013 for subspaces);
- CoinPress (Biswas et al. 2020); PLAN (Aumüller et al. 2023), simplified; a private geometric median (after Haghifam et
  al. 2024);
- with a public fifth also: CoinPress with the public scale (as Bie et al. 2022), the noisy mean weighted against the
  public one, and noise in the shape of the public covariance.

Left out for time: the K-norm gradient beyond 14 dimensions or where fewer than one proposal in 1,000 is sure to be
accepted; ℓ2-Laplace noise under Gaussian DP, where its deviation is 1.286 (d = 2) to 1.003 (d = 253) times the
Gaussian's, and beyond 300 dimensions where there is a δ. CoinPress, PLAN and the median are published for zCDP,
and have no pure ε.

Second moments of vectors (Analyze Gauss, SeparateCov) are compared by `benchmarks/covariance.py`.
"""
_TAIL = "The run took {minutes:.0f} minutes with {jobs} processes.\n"
