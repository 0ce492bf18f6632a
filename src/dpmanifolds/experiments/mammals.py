"""The mammals of WordNet in hyperbolic space, each edge protected: how well noisy descent puts ancestors near.

>>> import numpy as np
>>> from dpmanifolds.experiments.mammals import mean_average_precision
>>> line = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
>>> mean_average_precision(line, np.array([[0, 1], [0, 2], [3, 0]])).__round__(6)
0.666667

    python -m dpmanifolds.experiments.mammals [--quick] [--data DIR]

The transitive closure "x is a y" has 6,540 edges between 1,180 nodes. The nodes and their number are public; the
promise is for one edge replaced. All three runs take the same start, steps, step sizes and negatives; only the noise
differs. MAP is the mean over nodes of the average precision with which a node's ancestors come first among all nodes,
by distance. A few nodes are ancestors of nearly all others: what their popularity alone explains is shown too. The rate
and the longest step were chosen by looking at runs on these very edges, which the promise does not cover, and MAP
depends on them: shorter steps (20/T instead of 30/T) help the run without noise and hurt the private ones.
"""

from __future__ import annotations

import argparse
import csv
from typing import Any

import numpy as np

from dpmanifolds.experiments._plots import curves
from dpmanifolds.experiments._study import Claim, Numbers, Result, Setting, claim, reproduce
from dpmanifolds.manifolds import Hyperbolic
from dpmanifolds.optimize import GeometricSteps, HyperbolicEmbeddingLoss, private_descent
from dpmanifolds.privacy import ApproxDP

__all__ = ["PANELS", "SIZE", "draw", "main", "mean_average_precision", "run"]

PANELS, SIZE = (1, 1), (5.2, 3.8)
_DIMENSION = 5
_DELTA = 1e-6
_NO_NOISE = 1e-12
# noise alone would carry nodes beyond what numbers can tell apart
_FARTHEST = 30.0
_PANEL = "MAP of the reconstruction along the run"
_FREE = "no noise (not private)"
_POPULAR = "nodes in the order of their exact number of descendants (not private)"


def mean_average_precision(distance: np.ndarray, edges: np.ndarray) -> float:
    """Over the nodes u with an edge (u, v): the average precision of these v in the order of distance from u."""
    nodes = len(distance)
    related = np.zeros((nodes, nodes), dtype=bool)
    related[edges[:, 0], edges[:, 1]] = True
    order = np.argsort(np.where(np.eye(nodes, dtype=bool), np.inf, distance), axis=1, kind="stable")
    hits = np.take_along_axis(related, order, axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, nodes + 1)
    counts = hits.sum(axis=1)
    return float(np.mean(np.sum(precision * hits, axis=1)[counts > 0] / counts[counts > 0]))


def run(setting: Setting) -> Result:
    """One embedding for each ε, and the level of chance."""
    edges, nodes, source = _edges(setting)
    space = Hyperbolic(_DIMENSION)
    steps = setting.pick(6, 60, 300)
    loss = HyperbolicEmbeddingLoss(space, nodes=nodes, negatives=setting.pick(5, 20, 50))
    numbers, final = Numbers(), {}
    seen = {round(share * steps) for share in (0.25, 0.5, 0.75, 1.0)}
    chance = mean_average_precision(_distances(space, loss.start(1.0)), edges)
    for epsilon in setting.each((1.0, 10.0, np.inf), "embedding"):
        label = _FREE if epsilon == np.inf else f"ours, ({epsilon:g}, 10⁻⁶)"
        track: dict[int, float] = {}

        def look(t: int, w: np.ndarray, track: dict[int, float] = track) -> None:
            if t in seen:
                track[t] = mean_average_precision(_distances(space, w), edges)

        private: dict[str, Any] = {"budget": ApproxDP(epsilon, _DELTA)} if epsilon < np.inf else {"noise": _NO_NOISE}
        private_descent(
            loss, edges, loss.manifold, start=loss.start(0.1), steps=steps, longest_step=_FARTHEST / steps,
            step_size=GeometricSteps(_rate(len(edges), steps), _rate(len(edges), steps) / 10), numerics="idealized",
            callback=look, rng=setting.rng, **private,
        )  # fmt: skip
        for t, value in track.items():
            numbers.add(_PANEL, label, t, value)
        final[epsilon] = track[steps]
    popularity = np.bincount(edges[:, 1], minlength=nodes)
    popular = mean_average_precision(np.broadcast_to(-1.0 * popularity, (nodes, nodes)), edges)
    for t in sorted(seen):
        numbers.add(_PANEL, _POPULAR, t, popular)
        numbers.add(_PANEL, "no information: scattered nodes", t, chance)
    title = f"{source}: {nodes:,} nodes, {len(edges):,} edges in H{_DIMENSION}, {steps} steps, edge-level privacy"
    return Result("mammals", title, numbers, _verdicts(final, chance, popular), setting.size)


def _rate(edges: int, steps: int) -> float:
    """A mean gradient is a sum over edges divided by their number: per edge the first step is at most 100/steps."""
    return 100 * edges / steps


def _verdicts(final: dict[float, float], chance: float, popular: float) -> tuple[Claim, ...]:
    told = ", ".join(f"{'∞' if epsilon == np.inf else f'{epsilon:g}'}: {value:.3f}" for epsilon, value in final.items())
    return (
        claim(
            "mammals",
            "without noise the same steps reconstruct the closure with MAP above one half",
            f"MAP by ε: {told}; chance {chance:.3f}",
            final[np.inf] > 0.5,
        ),
        claim(
            "mammals",
            "at (1, 10⁻⁶) for every edge ten times the MAP of scattered nodes is left",
            f"{final[1.0]:.3f} against {chance:.3f}",
            final[1.0] > 10 * chance,
        ),
        claim(
            "mammals",
            "at (10, 10⁻⁶) the embedding knows more than which nodes are popular",
            f"{final[10.0]:.3f}; the exact order of popularity alone gives {popular:.3f}",
            final[10.0] > popular,
        ),
    )


def _distances(space: Hyperbolic, points: np.ndarray) -> np.ndarray:
    return np.asarray(space.dist(points[:, None], points[None]))


def _edges(setting: Setting) -> tuple[np.ndarray, int, str]:
    """Edges (n, 2) from a node to its ancestors, the number of nodes and where they are from."""
    file = setting.file("hyperbolic/wordnet_mammal_closure.csv")
    if file is None:
        nodes = setting.pick(31, 255, 1023)
        pairs = [(child, above) for child in range(1, nodes) for above in _ancestors(child)]
        return np.array(pairs), nodes, "A binary tree"
    with file.open(encoding="utf-8", newline="") as stream:
        rows = [(row["id1"], row["id2"]) for row in csv.DictReader(stream) if row["id1"] != row["id2"]]
    place = {name: index for index, name in enumerate(sorted({name for row in rows for name in row}))}
    return np.array([[place[one], place[two]] for one, two in rows]), len(place), "The mammals of WordNet"


def _ancestors(node: int) -> list[int]:
    found = []
    while node:
        node = (node - 1) // 2
        found.append(node)
    return found


def draw(result: Result, axes: Any) -> None:
    """MAP along the runs."""
    curves(axes[0], result, _PANEL, x="step", y="mean average precision", log="y")


def main(arguments: list[str] | None = None) -> None:
    """Run this study."""
    parser = argparse.ArgumentParser(prog="python -m dpmanifolds.experiments.mammals", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="out")
    parser.add_argument("--data", default=None, help="the folder of real data (else DPMANIFOLDS_DATA)")
    given = parser.parse_args(arguments)
    from rich.console import Console

    reproduce("mammals", quick=given.quick, out=given.out, data=given.data, console=Console())


if __name__ == "__main__":
    main()
