"""docs/league.md from the numbers of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Cell", "read_cells", "write_page"]

LIMIT, GOAL = 1.02, 0.8
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
        return "within noise" if ratio - 3 * width <= LIMIT else "**missed**"


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
    yield _counted("the best published rival", cells, [cell.best for cell in cells], f" (goal ≤ {GOAL})")
    beside = [cell for cell in cells if _COMBINED in cell.errors]
    yield _counted(f"{_COMBINED}, which no paper has", beside, [_COMBINED] * len(beside), "")
    wins: dict[str, int] = {}
    for cell in cells:
        wins[cell.best] = wins.get(cell.best, 0) + 1
    ranked = sorted(wins.items(), key=lambda pair: -pair[1])
    yield "Best rival: " + ", ".join(f"{name} in {count}" for name, count in ranked) + ".\n"


def _counted(what: str, cells: list[Cell], rivals: list[str], goal: str) -> str:
    ratios, widths = np.array([cell.over(rival) for cell, rival in zip(cells, rivals, strict=True)]).T
    verdicts = [cell.verdict(rival) for cell, rival in zip(cells, rivals, strict=True)]
    return (
        f"{len(cells)} cells. `auto` over {what}: median {np.median(ratios):.2f}{goal}, {verdicts.count('kept')} at or "
        f"below {LIMIT}, {verdicts.count('within noise')} above by less than three standard errors, "
        f"{verdicts.count('**missed**')} missed. Standard error of a ratio: median {np.median(widths):.3f}, largest "
        f"{np.max(widths):.3f}.\n"
    )


def _table(cells: list[Cell]) -> Iterator[str]:
    yield "| case | budget | auto | best published rival | | ratio | | over James–Stein | | public centre |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for cell in cells:
        auto, best = cell.errors["auto"][0], cell.errors[cell.best][0]
        ratio, width = cell.over(cell.best)
        beside = " | "
        if _COMBINED in cell.errors:
            beside = "{:.3f} ± {:.3f} | {}".format(*cell.over(_COMBINED), cell.verdict(_COMBINED))
        yield (
            f"| {cell.case} | {cell.budget} | {auto:.3g} | {cell.best} | {best:.3g} | {ratio:.3f} ± {width:.3f} | "
            f"{cell.verdict(cell.best)} | {beside} | {cell.errors['public centre'][0]:.3g} |"
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
    "extrinsic mean": "ambient coordinates are bounded whatever the ball is, and take one sum; where `auto` takes "
    "tangent steps it expects records to be more lopsided than these, so that the other target costs more than it "
    "saves.",
    "geometric median": "a record's gradient has length 1 however large the ball is, and the descent starts from a "
    "paid radius: another target, which is close to the mean where records are nearly symmetric. `auto` has too few "
    "records here to pay for a radius, or keeps the mean.",
    "Riemannian Laplace": "one draw around the Fréchet mean itself, promised for real numbers only; tangent steps "
    "carry over some of the noise of the first one.",
    "Riemannian Gaussian": "one draw around the Fréchet mean itself, promised for real numbers only.",
    "wrapped Laplace": "the Fréchet mean itself is released (S1w), promised for real numbers only, with noise by its "
    "exact profile; tangent steps carry over some of the noise of the first one.",
    _COMBINED: "one step in the public ball with all of the budget. `auto` pays for a radius (2 to 5 % of the error), "
    "which gains where the ball is too large, or for a second step, which gains where the mean lies "
    "far from the centre; or its prior, which must do for means anywhere in the ball, shrinks a little less.",
    "ℓ2 mechanism": "one step in the public ball with all of the budget; `auto` pays for a radius or a second step.",
    "tangent Gaussian": "one step in the public ball with all of the budget; `auto` pays for a radius.",
    "CoinPress": "its second step clips around a rough mean, at the scale of the records.",
    "pooled with the public mean": "its weight is the best linear one under the public variance.",
    "public covariance": "its axes come from the public fifth, without regard to how few records gave them.",
}


def _misses(cells: list[Cell], rivals: list[str]) -> Iterator[str]:
    missed = [(cell, rival) for cell, rival in zip(cells, rivals, strict=True) if cell.verdict(rival) == "**missed**"]
    missed.sort(key=lambda pair: -pair[0].over(pair[1])[0])
    if not missed:
        yield "None."
    for name in dict.fromkeys(rival for _, rival in missed):
        mine = [cell for cell, rival in missed if rival == name]
        yield f"- **{name}**, {len(mine)} cells: {_WHY.get(name, 'see the table.')}"
        for cell in mine:
            facts, (ratio, width) = cell.facts, cell.over(name)
            yield (
                f"  - {ratio:.3f} ± {width:.3f}: {cell.case}, {cell.budget} (d={facts['d']:.0f}, n={facts['n']:.0f}, "
                f"radius over spread {facts['radius'] / facts['spread']:.1f}; {cell.how})"
            )


def _checks(told: dict[str, Any]) -> str:
    """How simulated releases compare with those of `private_mean` itself, on the first split."""
    ratios, scores = [], []
    for result in told["results"]:
        for cell in result["cells"].values():
            if _CHECK in cell:
                real, ours = cell[_CHECK], cell["auto"]
                ratios.append(math.sqrt(real["mean"] / ours["mean"]))
                scores.append((real["mean"] - ours["mean"]) / math.sqrt(real["variance"] + ours["variance"]))
    if not ratios:
        return ""
    return (
        f"Check: 8 releases of `private_mean` itself in each of {len(ratios)} cells have {np.median(ratios):.2f} times "
        f"the simulated error in the median (half of the cells between {np.quantile(ratios, 0.25):.2f} and "
        f"{np.quantile(ratios, 0.75):.2f}); pooled, {np.sqrt(np.mean(np.square(ratios))):.3f}.\n"
    )


def write_page(told: dict[str, Any]) -> str:
    """The whole page."""
    cells = read_cells(told)
    counts = [cell["auto"].get("count", 0) for result in told["results"] for cell in result["cells"].values()]
    lines = [_HEAD.format(splits=told["splits"], least=min(counts), most=max(counts)), _checks(told)]
    for block, title, words in _BLOCKS:
        chosen = [cell for cell in cells if cell.block == block]
        if not chosen:
            continue
        lines += [f"## {title}", "", words, "", *_summary(chosen), *_table(chosen), "", "### Cells that miss", ""]
        lines += [*_misses(chosen, [cell.best for cell in chosen]), ""]
        beside = [cell for cell in chosen if _COMBINED in cell.errors]
        lines += [f"### Cells that miss {_COMBINED}", "", *_misses(beside, [_COMBINED] * len(beside)), ""]
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
{splits} random splits (or simulated data sets), the same for all, with {least} to {most} releases of ours each, in
eight runs whose spread gives the standard error (one where a sample is public), and hundreds of each rival (60 at most
of the K-norm gradient). Ours are simulated: decisions, plans and estimates are the library's, on the exact sums of
integers, with noise in floating point (`benchmarks/league/simulate.py`). Standard errors are given the splits: they say
nothing about other splits.

**Real data**: a random fifth is public, its mean is the centre and 1.1 times its largest distance the radius of the
ball (`Ball.from_sample`); the rest is private. **Simulations**: a stated ball, records around a point a ninth to a
third of the radius away from its centre. The public centre alone is shown, not ranked.

**Rivals** have the tightest constants that are proven for them, exact calibration and plain floating-point noise, and
may project onto the ball:

- the ℓ2 mechanism (Hardt and Talwar 2010) with its exact (ε, δ) profile; beside the ranking, the better of it and the
  Gaussian, followed by positive-part James–Stein, which no paper has;
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

Second moments of vectors (Analyze Gauss, SeparateCov, AdaptiveCov, CoinPress) are compared by
`benchmarks/covariance.py`, principal components (DP-PCA, k-DP-PCA too) on [a page of their own](league_vectors.md).
DP-SGD logistic regression on tangent features plays against `PrivateTangentClassifier` in
`benchmarks/league/sgd.py` ([its table](tables/league_classifiers.csv); the rival has the best of 72 settings by the
records told apart). Ours is ahead with unrelated public subjects (.82 to .75 with 8 channels, .71 to .64 with 22, at
ε = 1) and level with related ones at 22 channels; **DP-SGD is ahead** with related ones at 8 channels (.90 to .88) and
on real data with a public fifth (EEG .88 to .72, digits .94 to .81 at ε = 1), where even public weights alone (.86,
.94) are ahead of ours. Not here: diffprivlib's PCA.
"""
_TAIL = "The run took {minutes:.0f} minutes with {jobs} processes.\n"
