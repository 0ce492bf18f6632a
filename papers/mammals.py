"""The mammals of WordNet in hyperbolic space, each edge protected: how well noisy descent puts ancestors near.

>>> import numpy as np
>>> from papers.mammals import mean_average_precision
>>> line = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
>>> mean_average_precision(line, np.array([[0, 1], [0, 2], [3, 0]])).__round__(6)
0.666667

    python -m papers.mammals [--quick] [--data DIR]

The transitive closure "x is a y" has 6,540 edges between 1,180 nodes. The nodes and the number of edges are public; the
promise is for one edge replaced, and MAP is the mean over nodes of the average precision with which a node's ancestors
come first among all nodes, by distance.

Without noise, short steps of the full gradient from a small cloud around the origin (Nickel and Kiela's start) with all
nodes as negatives find the hierarchy. A private run has 5,900 noisy numbers per step to learn it from: most nodes are
in five or six edges, and the noise on the gradient of a node, σ√5 with σ = 2√6·√T/μ, is several times as large as all
of these can pull. What noise leaves is how popular a node is, as an ancestor. So a private run first buys noisy numbers
of descendants with 30 % of μ² (replacing an edge moves them by √2), starts with popular nodes near the origin, and
spends the rest on T steps of descent, in curvature −4; both are composed. Rates, shares and lengths of steps were
the best of about 1,200 private settings (100 without noise) by their MAP on these very edges, which the promise does
not cover.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmanifolds.descent import GeometricSteps
from dpmanifolds.descent.losses import HyperbolicEmbeddingLoss
from dpmanifolds.domains import Ball
from dpmanifolds.manifolds import Euclidean, Hyperbolic
from dpmanifolds.privacy import ApproxDP, GaussianDP, compose, mu_for
from dpmanifolds.releases import private_descent, privatize
from papers._checks import Check, inside
from papers._plots import curves
from papers._study import Claim, Numbers, Result, Setting, claim, mean_and_error, reproduce

__all__ = ["PANELS", "SIZE", "draw", "main", "mean_average_precision", "run"]

PANELS, SIZE = (1, 1), (6.4, 5.2)
_DIMENSION = 5
_DELTA = 1e-6
_COUNTS_SHARE = 0.3
_REAL = "The mammals of WordNet"
_PANEL = "MAP of the reconstruction along the run"
_FREE = "no noise (not private)"
_POPULAR = "nodes in the order of their exact number of descendants (not private)"
_Track = dict[float, float]
"""MAP by the share of the steps that are done."""


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
    """Embeddings for each ε, and the levels of chance and of popularity."""
    edges, nodes, source = _edges(setting)
    chance = mean_average_precision(
        _distances(space := Hyperbolic(_DIMENSION), HyperbolicEmbeddingLoss(space, nodes).start(1.0)), edges
    )
    numbers, final, begun = Numbers(), {}, {}
    for epsilon in setting.each((1.0, 10.0), "private embedding"):
        tracks = [_private(setting, edges, nodes, epsilon) for _ in range(setting.pick(2, 2, 3))]
        for done in tracks[0]:
            sample = np.array([track[done] for track in tracks])
            numbers.add_sample(_PANEL, f"ours, ({epsilon:g}, 10⁻⁶)", done, sample)
        final[epsilon] = [track[1.0] for track in tracks]
        begun[epsilon] = float(np.mean([track[0.0] for track in tracks]))
    free = _without_noise(setting, edges, nodes)
    popularity = np.bincount(edges[:, 1], minlength=nodes)
    popular = mean_average_precision(np.broadcast_to(-1.0 * popularity, (nodes, nodes)), edges)
    for done, value in free.items():
        numbers.add(_PANEL, _FREE, done, value)
        numbers.add(_PANEL, _POPULAR, done, popular)
        numbers.add(_PANEL, "no information: scattered nodes", done, chance)
    title = f"{source}: {nodes:,} nodes, {len(edges):,} edges in H{_DIMENSION}, edge-level privacy"
    real = setting.size != "smoke" and source == _REAL
    return Result("mammals", title, numbers, _verdicts(final, begun, free[1.0], chance, popular, real), setting.size)


def _without_noise(setting: Setting, edges: np.ndarray, nodes: int) -> _Track:
    space = Hyperbolic(_DIMENSION)
    loss = HyperbolicEmbeddingLoss(space, nodes, negatives=None)
    steps = setting.pick(40, 150, 300)
    track, look = _watched(space, loss.start(1e-3), edges, steps)
    private_descent(
        loss, edges, loss.manifold, None, start=loss.start(1e-3), steps=steps, sigma=1e-12,
        step_size=_per_edge(edges, 0.1, 0.03), longest_step=0.05, callback=look, rng=setting.rng,
    )  # fmt: skip
    return track


def _private(setting: Setting, edges: np.ndarray, nodes: int, epsilon: float) -> _Track:
    """Noisy numbers of descendants, then noisy steps: Gaussian noise twice, (ε, 10⁻⁶) together."""
    budget = ApproxDP(epsilon, _DELTA)
    mu = mu_for(epsilon, _DELTA) * (1 - 1e-9)
    parts = [GaussianDP(mu * math.sqrt(share)) for share in (_COUNTS_SHARE, 1 - _COUNTS_SHARE)]
    counts = privatize(
        np.bincount(edges[:, 1], minlength=nodes).astype(np.float64),
        Ball(plane := Euclidean(nodes), np.zeros(plane.dim), float(len(edges))),
        math.sqrt(2) * (1 + 1e-12), parts[0], unit="edge", statistic="edges into each node", rng=setting.rng,
    )  # fmt: skip
    space = Hyperbolic(_DIMENSION, curvature=-4.0)
    loss = HyperbolicEmbeddingLoss(space, nodes, negatives=None)
    start = loss.start_by_counts(counts.value, counts.sigma)
    steps = setting.pick(10, 30, 30)
    track, look = _watched(space, start, edges, steps)
    embedding = private_descent(
        loss, edges, loss.manifold, parts[1], start=start, steps=steps,
        step_size=_per_edge(edges, 0.0075, 0.00025), longest_step=0.1, callback=look, rng=setting.rng,
    )  # fmt: skip
    assert compose(counts.guarantee, embedding.guarantee).fits(budget)
    return track


def _per_edge(edges: np.ndarray, first: float, last: float) -> GeometricSteps:
    """A mean gradient is a sum over edges divided by their number: steps that count for each edge."""
    return GeometricSteps(first * len(edges), last * len(edges))


def _watched(
    space: Hyperbolic, start: np.ndarray, edges: np.ndarray, steps: int
) -> tuple[_Track, Callable[[int, np.ndarray], None]]:
    """A record of MAP at the start and after each quarter of the steps, and the callback that keeps it."""
    seen = {round(share * steps): share for share in (0.25, 0.5, 0.75, 1.0)}
    track = {0.0: mean_average_precision(_distances(space, start), edges)}

    def look(t: int, w: np.ndarray) -> None:
        if t in seen:
            track[seen[t]] = mean_average_precision(_distances(space, w), edges)

    return track, look


def _verdicts(
    final: dict[float, list[float]], begun: dict[float, float], free: float, chance: float, popular: float, real: bool
) -> tuple[Claim, ...]:
    def checked(number: str, value: float, low: float, high: float) -> Check | None:
        return inside(number, value, low, high) if real else None

    middle = {epsilon: mean_and_error(sample) for epsilon, sample in final.items()}
    told = ", ".join(f"{epsilon:g}: {value:.4f} ± {error:.4f}" for epsilon, (value, error) in middle.items())
    return (
        claim(
            "mammals",
            "without noise descent reconstructs the closure with MAP above 0.8",
            f"MAP by ε: {told}, ∞: {free:.3f}; chance {chance:.3f}",
            free > 0.8,
            checked("MAP without noise", free, 0.75, 1.0),
            checked("MAP of popularity", popular, 0.624, 0.625),
        ),
        claim(
            "mammals",
            "at (1, 10⁻⁶) for every edge nine tenths of what popularity explains are left",
            f"{middle[1.0][0]:.3f}, {begun[1.0]:.3f} at its start by counts; exact popularity gives {popular:.3f}",
            middle[1.0][0] > 0.9 * popular,
            checked("MAP at ε = 1", middle[1.0][0], 0.5, 0.7),
        ),
        claim(
            "mammals",
            "at (10, 10⁻⁶) the embedding knows more than which nodes are popular",
            f"{middle[10.0][0]:.3f}, {begun[10.0]:.3f} at its start by counts; exact popularity gives {popular:.3f}",
            middle[10.0][0] > popular,
            checked("MAP at ε = 10", middle[10.0][0], 0.5, 0.7),
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
    return np.array([[place[one], place[two]] for one, two in rows]), len(place), _REAL


def _ancestors(node: int) -> list[int]:
    found = []
    while node:
        node = (node - 1) // 2
        found.append(node)
    return found


def draw(result: Result, axes: Any) -> None:
    """MAP along the runs."""
    curves(axes[0], result, _PANEL, x="share of the steps that are done", y="mean average precision", log="")


def main(arguments: list[str] | None = None) -> None:
    """Run this study."""
    parser = argparse.ArgumentParser(prog="python -m papers.mammals", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="out")
    parser.add_argument("--data", default=None, help="the folder of real data (else DPMANIFOLDS_DATA)")
    given = parser.parse_args(arguments)
    from rich.console import Console

    reproduce("mammals", quick=given.quick, out=given.out, data=given.data, console=Console())


if __name__ == "__main__":
    main()
