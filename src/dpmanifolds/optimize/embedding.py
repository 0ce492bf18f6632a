"""Embedding a graph in hyperbolic space, one edge being one record.

>>> import numpy as np
>>> from dpmanifolds import Hyperbolic
>>> from dpmanifolds.optimize import HyperbolicEmbeddingLoss
>>> edges = np.array([[0, 1], [0, 2], [2, 3]])
>>> loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=5, negatives=4, seed=0)
>>> loss.manifold.point_shape, loss.unit
((5, 3), 'edge')

Nickel and Kiela's loss: f(X, (u, v)) = −log(e^{−ρ(u,v)}/Σ_{v'} e^{−ρ(u,v')}), the sum over v and K nodes v' that a
PUBLIC seed draws from all nodes, or over all nodes but u (`negatives=None`): that costs nodes² distances per step and
embeds far better than a few draws that stay the same from step to step. The nodes are public; whether an edge is there
is what is protected. Negatives that avoided the true neighbours of u would read other records and break the promise:
ours do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, safe_divide
from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Hyperbolic, Manifold, Power
from dpmanifolds.optimize.loss import Loss, clip_factors

__all__ = ["HyperbolicEmbeddingLoss"]


# rows of nodes² tables that are worked on at a time: what they take stays near the cache
_ROWS = 32


@dataclass(frozen=True)
class HyperbolicEmbeddingLoss(Loss):
    """Softmax over distances with public negatives, K drawn ones or (None) every node but u; NumPy only.

    With p the softmax weights: grad_v = (1 − p_v)∇ρ, grad_v' = −p_v'∇ρ and |grad_u| ≤ 2(1 − p_v), each |∇ρ| = 1; a
    negative that equals u or v is left out, which looks at this record alone. So |grad f|² ≤ 4 + 1 + 1: C = √6, and
    clipping there changes nothing (docs/proofs/descent.md, D8). An edge from a node to itself pulls at nothing where
    every node is a negative.

    >>> import numpy as np
    >>> from dpmanifolds import Hyperbolic
    >>> from dpmanifolds.optimize import HyperbolicEmbeddingLoss
    >>> loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=5, negatives=4)
    >>> loss.manifold, round(loss.bound, 6)
    (Power(Hyperbolic(2, -1.0), 5), 2.44949)
    """

    space: Hyperbolic
    nodes: int
    negatives: int | None = 10
    seed: int = 0
    unit: str = "edge"

    def __post_init__(self) -> None:
        if not isinstance(self.space, Hyperbolic):
            raise ArgumentError(f"space must be Hyperbolic(d); got {self.space!r}.")
        positive_integer("nodes", self.nodes, at_least=2)
        if self.negatives is not None:
            positive_integer("negatives", self.negatives)

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """One point of the space per node."""
        return Power(self.space, self.nodes)

    @property
    def bound(self) -> float:
        return 6**0.5 * (1 + 1e-12)

    def magnitude(self, clip: float) -> float:
        """A node can get several parts of one row; with all nodes, four parts of length 1 are added up twice."""
        return 8.0 if self.negatives is None else clip * (2 + self.negatives)

    def prepare(self, records: Any) -> Array:
        """Edges (n, 2) with their negatives beside them: (n, 2 + K) integers; negatives depend on the row alone."""
        edges = np.asarray(records)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.shape[0] == 0 or edges.dtype.kind not in "iu":
            raise ArgumentError(f"records must be edges, whole numbers of shape (n, 2) with n ≥ 1; got {edges.shape}.")
        if not bool(np.all((edges >= 0) & (edges < self.nodes))):
            raise ArgumentError(f"edges must join nodes 0 to {self.nodes - 1}, and at least one does not.")
        if self.negatives is None:
            return edges.astype(np.int64)
        public = np.random.default_rng(self.seed).integers(0, self.nodes, (edges.shape[0], self.negatives))
        return np.concatenate([edges.astype(np.int64), public], axis=1)

    def start(self, spread: float = 1e-3) -> np.ndarray:
        """A public start: nodes scattered within about `spread` of the origin, by the public seed."""
        return self.placed(positive_number("spread", spread) * self._scattered())

    def start_by_counts(self, counts: Any, deviation: float, *, reach: float = 16.0, rate: float = 2.5) -> np.ndarray:
        """A start from NOISY numbers of edges into each node: those with many near the origin, others far out.

        Radius `reach` − `rate`·log(1 + count/(2·deviation)) in units of 1/√κ, `deviation` that of the noise; directions
        by the public seed. The counts must have been released, and paid for: `private_descent` knows nothing of them.
        """
        noisy = np.asarray(counts, dtype=np.float64)
        if noisy.shape != (self.nodes,) or not np.all(np.isfinite(noisy)):
            raise ArgumentError(f"counts must be {self.nodes} finite numbers, one for each node.")
        units = np.maximum(noisy, 0.0) / (2 * positive_number("deviation", deviation))
        radius = np.maximum(positive_number("reach", reach) - positive_number("rate", rate) * np.log1p(units), 0.05)
        directions = self._scattered()
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return self.placed(directions * (radius * self.space.scale_length)[:, None])

    def placed(self, coordinates: np.ndarray) -> np.ndarray:
        """The points with these coordinates (nodes, d) as seen from the origin."""
        tangent = self.space.from_coordinates(self.space.origin, coordinates)
        return np.asarray(self.space.exp(self.space.origin, tangent))

    def _scattered(self) -> np.ndarray:
        return np.random.default_rng((self.seed, 1)).standard_normal((self.nodes, self.space.dim))

    def value(self, w: Array, records: Array) -> float:
        if self.negatives is not None:
            scores = self._scores(records, _Pairs(self.space, w[records[:, :1]], w[records[:, 1:]]).distance)
            return float(np.mean(np.logaddexp.reduce(scores, axis=1) - scores[:, 0]))
        total = sum(float(np.sum(np.log(part.weight[part.joined]))) for part in self._sources(w, records))
        return float(-total / records.shape[0])

    def gradients(self, w: Array, records: Array) -> Array:
        rows = np.zeros((records.shape[0], self.nodes, self.space.dim))
        if self.negatives is not None:
            parts, nodes = self._parts(w, records)
            np.add.at(rows, (np.arange(records.shape[0])[:, None], nodes), parts)
            return rows.reshape(records.shape[0], -1)
        for part in self._sources(w, records):
            at, aim = part.joined
            pull = -part.weight[at]
            pull[np.arange(aim.size), aim] += 1.0
            rows[part.records] = -pull[:, :, None] * part.pairs.inward[at]
            rows[part.records, part.nodes[at]] = part.mean[at] - part.pairs.outward[at, aim]
        return rows.reshape(records.shape[0], -1)

    def clipped_sum(self, w: Array, records: Array, clip: float) -> Array:
        """Only the nodes of an edge and its negatives are touched; a node that is drawn twice gets both parts."""
        if self.negatives is None:
            return self._sum_over_all(w, records, clip)
        parts, nodes = self._parts(w, records)
        # repeated negatives add up: a bound on the length of the row without gathering it
        size = np.linalg.norm(parts, axis=-1)
        length = np.sqrt(size[:, 0] ** 2 + size[:, 1] ** 2 + np.sum(size[:, 2:], axis=1) ** 2)
        parts = parts * clip_factors(length, clip)[:, None, None]
        at, flat = nodes.ravel(), parts.reshape(-1, self.space.dim)
        columns = [np.bincount(at, flat[:, i], self.nodes) for i in range(self.space.dim)]
        return np.stack(columns, axis=-1).ravel()

    def _sum_over_all(self, w: Array, records: Array, clip: float) -> np.ndarray:
        """Edges that start at the same node share its distances: the sum is that of weighted edges."""
        total = np.zeros((self.nodes, self.space.dim))
        for part in self._sources(w, records):
            at, aim = part.joined
            toward, weight = part.pairs.outward[at, aim], part.weight[at, aim]
            # |grad_u|² + |grad_v|² + Σ|grad_v'|², the last two from the squares of all weights of u
            others = np.sum(part.weight**2, axis=1)[at] - weight**2
            pulled = np.sum((toward - part.mean[at]) ** 2, axis=1)
            factor = clip_factors(np.sqrt(pulled + (1 - weight) ** 2 + np.maximum(others, 0.0)), clip)
            given = np.bincount(at, factor, len(part.nodes))
            edges = np.zeros_like(part.weight)
            np.add.at(edges, (at, aim), factor)
            np.add.at(total, part.nodes[at], -factor[:, None] * toward)
            total[part.nodes] += given[:, None] * part.mean
            total -= np.einsum("un,und->nd", edges - given[:, None] * part.weight, part.pairs.inward)
        return total.ravel()

    def _sources(self, w: Array, records: Array) -> Iterator[_Sources]:
        """The edges by their first node, a few first nodes at a time; those from a node to itself are left out."""
        proper = np.flatnonzero(records[:, 0] != records[:, 1])
        nodes, place = np.unique(records[proper, 0], return_inverse=True)
        for first in range(0, len(nodes), _ROWS):
            few = nodes[first : first + _ROWS]
            here = np.flatnonzero((place >= first) & (place < first + _ROWS))
            pairs = _Pairs(self.space, w[few][:, None], w[None])
            scores = -pairs.distance
            scores[np.arange(len(few)), few] = -np.inf
            weight = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
            mean = np.einsum("un,und->ud", weight, pairs.outward)
            joined = place[here] - first, records[proper[here], 1]
            yield _Sources(few, proper[here], joined, pairs, weight, mean)

    def _scores(self, records: Array, distance: np.ndarray) -> np.ndarray:
        """−ρ(u, ·) to v and the negatives, minus infinity for negatives that do not count."""
        targets = records[:, 1:]
        usable = (targets != records[:, :1]) & (targets != records[:, 1:2])
        usable[:, 0] = True
        return np.where(usable, -distance, -np.inf)

    def _parts(self, w: Array, records: Array) -> tuple[np.ndarray, np.ndarray]:
        """Gradient coordinates (n, 2 + K, d) at u, v and the negatives, and their nodes (n, 2 + K)."""
        pairs = _Pairs(self.space, w[records[:, :1]], w[records[:, 1:]])
        scores = self._scores(records, pairs.distance)
        pull = -np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        pull[:, 0] += 1.0
        # ∇ρ(·, y) points away from y
        here, there = np.einsum("nk,nkd->nd", pull, pairs.outward), pull[:, :, None] * pairs.inward
        return -np.concatenate([here[:, None], there], axis=1), records


@dataclass(frozen=True)
class _Sources:
    """Some first nodes u, their edges, and the softmax of each over all other nodes."""

    nodes: np.ndarray
    records: np.ndarray
    """Which edges start at these nodes."""
    joined: tuple[np.ndarray, np.ndarray]
    """Of each edge the place of its first node in `nodes`, and its second node."""
    pairs: _Pairs
    weight: np.ndarray
    mean: np.ndarray
    """Σ_v' p_v'·(unit vector at u towards v')."""


class _Pairs:
    """Distances of points, and unit vectors between them, in coordinates at either end; 0 where they coincide.

    In the Poincaré ball, with y − x = δ and a = 1 − |·|²: sinh²(√κρ/2) = |δ|²/(a_x·a_y), and the unit vector at x
    towards y has the direction of the Möbius difference, a_x·δ − |δ|²x. It is divided by its own length, as computed:
    so far out that digits are lost its direction may be off, its length is not, and the bound C rests on that.
    """

    def __init__(self, space: Hyperbolic, x: np.ndarray, y: np.ndarray) -> None:
        ball_x, ball_y = space.to_poincare(x), space.to_poincare(y)
        inside_x, inside_y = (2 * space.scale_length / (space.scale_length + point[..., 0]) for point in (x, y))
        step = ball_y - ball_x
        square = np.sum(step * step, axis=-1)
        self.distance = 2 * space.scale_length * np.arcsinh(np.sqrt(square / (inside_x * inside_y)))
        bent = square[..., None]
        self.outward = _unit(inside_x[..., None] * step - bent * ball_x)
        self.inward = _unit(-inside_y[..., None] * step - bent * ball_y)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(safe_divide(vectors, np.sqrt(np.einsum("...d,...d->...", vectors, vectors))[..., None]))
