"""Embedding a graph in hyperbolic space, one edge being one record.

>>> import numpy as np
>>> from dpmanifolds import Hyperbolic
>>> from dpmanifolds.descent.losses import HyperbolicEmbeddingLoss
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

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, safe_divide
from dpmanifolds._validate import positive_integer, positive_number, record_numbers
from dpmanifolds.descent.losses.loss import Loss
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Hyperbolic, Manifold, Power

# rows of nodes² tables that are worked on at a time: what they take stays near the cache
_ROWS = 32
_LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True)
class HyperbolicEmbeddingLoss(Loss):
    """Softmax over distances with public negatives, K drawn ones or (None) every node but u; NumPy only.

    With p the softmax weights: grad_v = (1 − p_v)∇ρ, grad_v' = −p_v'∇ρ and |grad_u| ≤ 2(1 − p_v), each |∇ρ| = 1; a
    negative that equals u or v is left out, which looks at this record alone. So |grad f|² ≤ 4 + 1 + 1: C = √6, and
    clipping there changes nothing (docs/proofs/descent.md, D8). An edge from a node to itself pulls at nothing where
    every node is a negative.

    >>> import numpy as np
    >>> from dpmanifolds import Hyperbolic
    >>> from dpmanifolds.descent.losses import HyperbolicEmbeddingLoss
    >>> loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=5, negatives=4)
    >>> loss.manifold, round(loss.bound, 6)
    (Power(Hyperbolic(2, -1.0), 5), 2.44949)
    """

    space: Hyperbolic
    nodes: int
    negatives: int | None = 10
    seed: int = 0
    unit: str = "edge"
    any_company = True

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
    def rules(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"edges must join nodes 0 to {self.nodes - 1}",)

    @property
    def bound(self) -> float:
        return 6**0.5 * (1 + 1e-12)

    @property
    def filler(self) -> np.ndarray:
        """An edge from the first node to itself, and its negatives."""
        return np.asarray(self._with_negatives(np.zeros((1, 2), dtype=np.int64))[0])

    def form(self, records: Any) -> Array:
        """Edges (n, 2) as whole numbers."""
        edges = _whole_numbers(records)
        if edges.ndim != 2 or edges.shape[1] not in (2, self.filler.shape[0]) or edges.dtype.kind not in "iu":
            raise ArgumentError(f"records must be edges, whole numbers of shape (n, 2); got {edges.shape}.")
        return self._with_negatives(edges[:, :2].astype(np.int64))

    def bring(self, block: Array) -> tuple[Array, Array]:
        """Edges with their negatives beside them: (n, 2 + K)."""
        broken = np.any((block < 0) | (block >= self.nodes), axis=1)
        return np.where(broken[:, None], self.filler, block), broken.astype(np.int64)

    def _with_negatives(self, edges: np.ndarray) -> np.ndarray:
        """Negatives are a hash of the edge itself and the public seed: the same in any company."""
        if self.negatives is None:
            return edges
        with np.errstate(over="ignore"):
            u, v = (edges[:, i : i + 1].astype(np.uint64) for i in (0, 1))
            key = _mixed(_mixed(u + _mixed(np.asarray(self.seed, dtype=np.uint64))) + v)
            drawn = _mixed(key + _mixed(np.arange(self.negatives, dtype=np.uint64))) % np.uint64(self.nodes)
        return np.concatenate([edges, drawn.astype(np.int64)], axis=1)

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
        proper = records[records[:, 0] != records[:, 1]]
        chances = _Tables.of(self.space, w).weight[proper[:, 0], proper[:, 1]]
        return float(-np.sum(np.log(chances)) / records.shape[0])

    def gradients(self, w: Array, records: Array) -> Array:
        return self.at(w)(records)

    def at(self, w: Array) -> Callable[[Array], Array]:
        """With all nodes as negatives, what an edge adds is looked up in tables over pairs of nodes."""
        return partial(self._rows, w) if self.negatives is not None else _Tables.of(self.space, w)

    def _rows(self, w: Array, records: Array) -> np.ndarray:
        """Only the nodes of an edge and its negatives are touched; a node that is drawn twice gets both parts."""
        rows = np.zeros((records.shape[0], self.nodes, self.space.dim))
        parts, nodes = self._parts(w, records)
        at = np.arange(records.shape[0])
        for k in range(nodes.shape[1]):
            rows[at, nodes[:, k]] += parts[:, k]
        return rows.reshape(records.shape[0], -1)

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
        here, there = np.sum(pull[:, :, None] * pairs.outward, axis=1), pull[:, :, None] * pairs.inward
        return -np.concatenate([here[:, None], there], axis=1), records


@dataclass(frozen=True)
class _Tables:
    """The softmax of each node u over all others, and what it makes of edges from u; all of it public given w.

    The row of (u, v) is p_v'·(unit vector at v' towards u) at every v' and Σ_v' p_v'·(unit vector at u towards v') at
    u, less the unit vectors between u and v at both ends. An edge from a node to itself has none.
    """

    weight: np.ndarray
    """(u, v)."""
    base: np.ndarray
    """(u, v', d)."""
    outward: np.ndarray
    inward: np.ndarray

    @classmethod
    def of(cls, space: Hyperbolic, w: np.ndarray) -> _Tables:
        count = w.shape[0]
        shape = (count, count, space.dim)
        weight, base, outward, inward = np.empty(shape[:2]), np.empty(shape), np.empty(shape), np.empty(shape)
        for first in range(0, count, _ROWS):
            few = np.arange(first, min(first + _ROWS, count))
            pairs = _Pairs(space, w[few][:, None], w[None])
            scores = -pairs.distance
            scores[np.arange(len(few)), few] = -np.inf
            share = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
            weight[few], outward[few], inward[few] = share, pairs.outward, pairs.inward
            base[few] = share[:, :, None] * pairs.inward
            base[few, few] = np.einsum("un,und->ud", share, pairs.outward)
        return cls(weight, base, outward, inward)

    def __call__(self, records: Array) -> np.ndarray:
        u, v = records[:, 0], records[:, 1]
        at = np.arange(len(records))
        rows = self.base[u]
        rows[at, v] -= self.inward[u, v]
        rows[at, u] -= self.outward[u, v]
        rows[u == v] = 0.0
        return np.asarray(rows.reshape(len(records), -1))


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
    return np.asarray(safe_divide(vectors, np.sqrt(np.sum(vectors * vectors, axis=-1))[..., None]))


def _whole_numbers(records: Any) -> np.ndarray:
    """An array as it is; a list entry by entry, −1 for what is no whole number."""
    if getattr(records, "dtype", None) is not None and records.dtype != object:
        return np.asarray(records)
    numbers = record_numbers("records", records, (2,))
    whole = (np.abs(numbers) < _LARGEST_WHOLE) & (numbers == np.floor(numbers))
    return np.where(whole, numbers, -1).astype(np.int64)


def _mixed(keys: np.ndarray) -> np.ndarray:
    """A public permutation of 64-bit numbers that leaves no pattern (splitmix64)."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))
