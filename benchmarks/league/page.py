"""docs/league.md from the numbers of a run."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.league.tables import markdown, write_csv

__all__ = ["Cell", "read_cells", "write_page", "write_tables"]

LIMIT = 1.02
_VERDICTS = ("kept", "within noise", "missed")
_CHECK = "private_mean itself"
_NOT_RANKED = ("auto", "public centre", _CHECK)
_COMBINED = "ℓ2/Gaussian + James–Stein"
"""Of published parts; no paper has it, and it is shown beside the ranking."""


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
    def published(self) -> dict[str, tuple[float, float]]:
        """All rivals that a paper has."""
        return {name: pair for name, pair in self.errors.items() if name not in (*_NOT_RANKED, _COMBINED)}

    @property
    def best(self) -> str:
        """The best of them."""
        return min(self.published, key=lambda name: self.published[name][0])

    def over(self, rival: str) -> tuple[float, float]:
        """The ratio of `auto` to a rival, and its standard error by the delta method."""
        ratio = self.errors["auto"][0] / self.errors[rival][0]
        return ratio, ratio * math.hypot(*(self.errors[name][1] / self.errors[name][0] for name in ("auto", rival)))

    def verdict(self, rival: str) -> str:
        ratio, width = self.over(rival)
        if ratio <= LIMIT:
            return "kept"
        return "within noise" if ratio - 3 * width <= LIMIT else "missed"


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


def _counts(cells: list[Cell], rivals: list[str]) -> tuple[str, ...]:
    """How many cells, the median ratio, and the verdicts."""
    verdicts = [cell.verdict(rival) for cell, rival in zip(cells, rivals, strict=True)]
    middle = np.median([cell.over(rival)[0] for cell, rival in zip(cells, rivals, strict=True)])
    return str(len(cells)), f"{middle:.2f}", *(str(verdicts.count(each)) for each in _VERDICTS)


def _summary(cells: list[Cell]) -> Iterator[str]:
    """By what is public, by kind of data where that is a ball, and against what is not ranked."""
    rows = []
    for block, title in _BLOCKS.items():
        chosen = [cell for cell in cells if cell.block == block]
        beside = [cell for cell in chosen if _COMBINED in cell.errors]
        if chosen:
            rows.append((f"**{title}**", *_counts(chosen, [cell.best for cell in chosen])))
            rows += [
                (kind, *_counts(mine, [cell.best for cell in mine]))
                for kind in dict.fromkeys(cell.kind for cell in chosen)
                if block == "ball" and (mine := [cell for cell in chosen if cell.kind == kind])
            ]
            rows.append((f"against {_COMBINED}", *_counts(beside, [_COMBINED] * len(beside))))
    head = ("public", "cells", "median", f"≤ {LIMIT}", "above, within 3 standard errors", "missed")
    yield from markdown(head, rows)


def _wins(cells: list[Cell]) -> str:
    """Who was the best rival, how often."""
    found = Counter(cell.best for cell in cells)
    return ", ".join(f"{name} {count}" for name, count in found.most_common())


_WHY = {
    "extrinsic mean": "ambient coordinates are bounded whatever the ball is, and take one sum. `auto` expects records "
    "to be more lopsided than these, so that the other target costs more than it saves.",
    "geometric median": "a record's gradient has length 1 however large the ball is; another target, which is close to "
    "the mean where records are nearly symmetric.",
    "Riemannian Laplace": "one draw around the Fréchet mean itself, promised for real numbers only; tangent steps "
    "carry over some of the noise of the first one.",
    "Riemannian Gaussian": "one draw around the Fréchet mean itself, promised for real numbers only.",
    "wrapped Laplace": "noise on the Fréchet mean itself, promised for real numbers only; tangent steps carry over "
    "some of the noise of the first one, and a histogram of distances takes its share.",
    "wrapped Gaussian": "one step with all of the budget; `auto` pays for a histogram of distances.",
    "ℓ2 mechanism": "one step in the public ball with all of the budget; `auto` pays for a histogram of distances, "
    "which gains where the ball is too large, or for a second step, which gains where the mean is far from the centre.",
    "tangent Gaussian": "one step with all of the budget; `auto` pays for a histogram of distances.",
    "CoinPress": "its second step clips around a rough mean, at the scale of the records.",
    "pooled with the public mean": "its weight is the best linear one under the public variance.",
    "public covariance": "its axes come from the public fifth, without regard to how few records gave them.",
}


def _misses(cells: list[Cell]) -> Iterator[str]:
    missed = [cell for cell in cells if cell.verdict(cell.best) == "missed"]
    missed.sort(key=lambda cell: -cell.over(cell.best)[0])
    if not missed:
        yield "None."
    for name in dict.fromkeys(cell.best for cell in missed):
        yield f"- **{name}**: {_WHY.get(name, 'no reason is known.')}"
        for cell in missed:
            if cell.best == name:
                ratio, width = cell.over(name)
                public = "" if cell.block == "ball" else ", public fifth"
                yield f"  - {ratio:.2f} ± {width:.2f}: {cell.case}, {cell.budget}{public} ({cell.how})"


def _checks(told: dict[str, Any]) -> str:
    """How simulated releases compare with those of `private_mean` itself, on the first split."""
    ratios = []
    for result in told["results"]:
        for cell in result["cells"].values():
            if _CHECK in cell:
                real, ours = cell[_CHECK], cell["auto"]
                ratios.append(math.sqrt(real["mean"] / ours["mean"]))
    if not ratios:
        return ""
    return (
        f"Check: 8 releases of `private_mean` itself in each of {len(ratios)} cells have {np.median(ratios):.2f} times "
        f"the simulated error in the median, {np.sqrt(np.mean(np.square(ratios))):.3f} pooled."
    )


def write_page(told: dict[str, Any], classifiers: Path | None = None) -> str:
    """The whole page; with the table of classifiers, where there is one."""
    cells = read_cells(told)
    counts = [cell["auto"].get("count", 0) for result in told["results"] for cell in result["cells"].values()]
    widths = [cell.over(cell.best)[1] for cell in cells]
    read = _READ.format(
        splits=told["splits"],
        least=min(counts),
        most=max(counts),
        width=float(np.median(widths)),
        widest=max(widths),
        check=_checks(told),
        wins=_wins([cell for cell in cells if cell.block == "ball"]),
    )
    lines = [_HEAD.format(minutes=told["minutes"], jobs=told["jobs"], limit=LIMIT), *_summary(cells), ""]
    lines += ["## Cells that miss", "", *_misses(cells), "", read]
    if classifiers is not None and classifiers.is_file():
        lines += [_CLASSIFIERS, *_classifiers(classifiers), ""]
    return "\n".join(lines)


def _classifiers(path: Path) -> list[str]:
    """Accuracy at both ε of ours and of the rival, with its best setting in brackets, and of public weights alone."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    shown, behind = [], []
    for name in dict.fromkeys(row[0] for row in rows):
        mine = [[float(cell) for cell in row[2:]] for row in rows if row[0] == name]
        pairs = [f"{ours:.2f}, {chosen:.2f} ({best:.2f})" for _, ours, chosen, best, *_ in mine]
        shown.append((name, *pairs, f"{mine[0][-2]:.2f}"))
        behind += [(chosen - ours) / width for _, ours, chosen, *_, width in mine if chosen > ours]
    head = ("data", "ours, DP-SGD at ε = 1", "ours, DP-SGD at ε = 3", "public weights alone")
    most = max(behind, default=0.0)
    ahead = f"DP-SGD is ahead in {len(behind)} of {len(rows)} cells, by {most:.1f} standard errors at most."
    return [*markdown(head, shown), "", ahead]


def write_tables(told: dict[str, Any], folder: Path) -> None:
    """Every cell, and every competitor of every cell, as CSV files."""
    cells = read_cells(told)
    head = ("data", "kind", "public", "budget", "d", "n", "radius over spread", "auto", "what auto took", "best rival")
    head += (
        "its error",
        "ratio",
        "standard error",
        "verdict",
        f"ratio to {_COMBINED}",
        "standard error",
        "centre alone",
    )
    rows, every = [], []
    for cell in cells:
        ratio, width = cell.over(cell.best)
        beside = [f"{each:.3f}" for each in cell.over(_COMBINED)] if _COMBINED in cell.errors else ["", ""]
        facts = cell.facts
        named = (cell.case, cell.kind, cell.block, cell.budget)
        sizes = (f"{facts['d']:.0f}", f"{facts['n']:.0f}", f"{facts['radius'] / facts['spread']:.1f}")
        errors = {name: f"{cell.errors[name][0]:.4g}" for name in ("auto", cell.best, "public centre")}
        ours = (errors["auto"], cell.how, cell.best, errors[cell.best])
        verdict = (f"{ratio:.3f}", f"{width:.3f}", cell.verdict(cell.best), *beside, errors["public centre"])
        rows.append((*named, *sizes, *ours, *verdict))
        every += [(*named, name, f"{rms:.4g}", f"{error:.2g}") for name, (rms, error) in cell.errors.items()]
    write_csv(folder / "league.csv", head, rows)
    write_csv(folder / "league_rivals.csv", (*head[:4], "competitor", "error", "standard error"), every)


_BLOCKS = {"ball": "a ball", "ball and sample": "a ball and a fifth of the records"}
_HEAD = """# The league: private means against published mechanisms

`private_mean` as it comes (`auto`) against published mechanisms, at the same promise and with the same public knowledge
in every cell. Printed by `make league DATA=folder`, in {minutes:.0f} minutes (`--jobs {jobs}`). Every cell is in
[league.csv](tables/league.csv), every rival's error in [league_rivals.csv](tables/league_rivals.csv).

## What came out

Numbers are the error of `auto` over that of the best published rival: below 1, ours errs less. Budgets: ε = 1;
(1, 10⁻⁶); (3, 10⁻⁶); μ = 1. A cell is missed if its ratio is above {limit} by more than three standard errors.
"""
_READ = """## How to read it

**Error**: root mean square of the geodesic distance to the Fréchet mean of the private records, unclipped, over
{splits} random splits (or simulated data sets), with {least} to {most} releases of ours and hundreds of each rival (60
of the K-norm gradient). Standard errors of ratios ({width:.3f} in the middle, {widest:.3f} at most) are given the
splits. Ours are simulated: decisions, plans and estimates are the library's, on the exact sums of integers, with noise
in floating point. {check}

**Data**: a random fifth of the real records is public; its mean is the centre, and 1.1 times its largest distance the
radius of the ball. Simulated records lie around a point at a ninth to a third of the radius of a stated ball. The
public centre alone is in the tables and not ranked.

**Rivals** have the tightest constants that are proven for them, exact calibration and plain floating-point noise, and
may project onto the ball: ℓ2 mechanism (Hardt and Talwar 2010) with its exact profile; tangent Gaussian (Utpala et
al. 2022); exponential-wrapped Laplace and Gaussian on the Fréchet mean; Riemannian Laplace (Reimherr et al. 2021) and
Gaussian (Jiang et al. 2023); K-norm gradient with the factor 2 that it needs (Soto et al. 2022); noise on the entries
of the Fréchet mean; noisy extrinsic means (Chaudhuri et al. 2013); CoinPress (Biswas et al. 2020); PLAN (Aumüller et
al. 2023), simplified; a private geometric median (after Haghifam et al. 2024). With a public fifth also CoinPress with
the public scale (Bie et al. 2022), the noisy mean weighted against the public one, and noise in the shape of the public
covariance. James–Stein after the better of ℓ2 and Gaussian noise is no paper's, and not ranked.

Best where a ball is public: {wins}.

Left out: the K-norm gradient beyond 14 dimensions or where few proposals are accepted; ℓ2-Laplace noise under Gaussian
DP, or beyond 300 dimensions where there is a δ, where the Gaussian is smaller; pure ε for CoinPress, PLAN and the
median, which are published for zCDP. Second moments are compared by `benchmarks/covariance.py`, principal components on
[a page of their own](league_vectors.md).
"""
_CLASSIFIERS = """## Classifiers

Accuracy at δ = 10⁻⁵ (`python -m benchmarks.league.sgd --subjects 8 --data folder`;
[more](tables/league_classifiers.csv)) of `PrivateTangentClassifier` as it comes, and of DP-SGD logistic regression on
the same tangent features. Both choose their settings where that is free: public subjects play the private one. In
brackets is the one of the rival's 72 settings that does best on the records told apart, which nobody can know. Public:
five subjects, or a fifth of the real records.
"""
