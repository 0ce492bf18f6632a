"""Embedding a graph in hyperbolic space, one edge being one record.

>>> import numpy as np
>>> from dpmanifolds import Hyperbolic
>>> from dpmanifolds.optimize import HyperbolicEmbeddingLoss
>>> edges = np.array([[0, 1], [0, 2], [2, 3]])
>>> loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=5, negatives=4, seed=0)
>>> loss.manifold.point_shape, loss.unit
((5, 3), 'edge')

Nickel and Kiela's loss: f(X, (u, v)) = −log(e^{−ρ(u,v)}/Σ_{v'} e^{−ρ(u,v')}), the sum over v and K nodes v' that a
PUBLIC seed draws from all nodes. The nodes are public; whether an edge is there is what is protected. Negatives that
avoided the true neighbours of u would read other records and break the promise: ours do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, safe_divide
from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Hyperbolic, Manifold, Power
from dpmanifolds.optimize.loss import Loss, clip_factors

__all__ = ["HyperbolicEmbeddingLoss"]


@dataclass(frozen=True)
class HyperbolicEmbeddingLoss(Loss):
    """Softmax over distances with public negatives; NumPy only.

    With p the softmax weights: grad_v = (1 − p_v)∇ρ, grad_v' = −p_v'∇ρ and |grad_u| ≤ 2(1 − p_v), each |∇ρ| = 1; a
    negative that equals u or v is left out, which looks at this record alone. So |grad f|² ≤ 4 + 1 + 1: C = √6, and
    clipping there changes nothing.
    """

    space: Hyperbolic
    nodes: int
    negatives: int = 10
    seed: int = 0
    unit: str = "edge"

    def __post_init__(self) -> None:
        if not isinstance(self.space, Hyperbolic):
            raise ArgumentError(f"space must be Hyperbolic(d); got {self.space!r}.")
        positive_integer("nodes", self.nodes, at_least=2)
        positive_integer("negatives", self.negatives)

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        """One point of the space per node."""
        return Power(self.space, self.nodes)

    @property
    def bound(self) -> float:
        return 6**0.5 * (1 + 1e-12)

    def magnitude(self, clip: float) -> float:
        """A node can get several parts of one row."""
        return clip * (2 + self.negatives)

    def prepare(self, records: Any) -> Array:
        """Edges (n, 2) with their negatives beside them: (n, 2 + K) integers; negatives depend on the row alone."""
        edges = np.asarray(records)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.shape[0] == 0 or edges.dtype.kind not in "iu":
            raise ArgumentError(f"records must be edges, whole numbers of shape (n, 2) with n ≥ 1; got {edges.shape}.")
        if not bool(np.all((edges >= 0) & (edges < self.nodes))):
            raise ArgumentError(f"edges must join nodes 0 to {self.nodes - 1}, and at least one does not.")
        public = np.random.default_rng(self.seed).integers(0, self.nodes, (edges.shape[0], self.negatives))
        return np.concatenate([edges.astype(np.int64), public], axis=1)

    def start(self, spread: float = 1e-3) -> np.ndarray:
        """A public start: nodes scattered within about `spread` of the origin, by the public seed."""
        draws = np.random.default_rng((self.seed, 1)).standard_normal((self.nodes, self.space.dim))
        tangent = self.space.from_coordinates(self.space.origin, positive_number("spread", spread) * draws)
        return np.asarray(self.space.exp(self.space.origin, tangent))

    def value(self, w: Array, records: Array) -> float:
        scores = self._scores(records, self.space.dist(w[records[:, :1]], w[records[:, 1:]]))
        return float(np.mean(np.logaddexp.reduce(scores, axis=1) - scores[:, 0]))

    def gradients(self, w: Array, records: Array) -> Array:
        parts, nodes = self._parts(w, records)
        rows = np.zeros((records.shape[0], self.nodes, self.space.dim))
        np.add.at(rows, (np.arange(records.shape[0])[:, None], nodes), parts)
        return rows.reshape(records.shape[0], -1)

    def clipped_sum(self, w: Array, records: Array, clip: float) -> Array:
        """Only the 2 + K nodes of an edge are touched; a node that is drawn twice gets both parts."""
        parts, nodes = self._parts(w, records)
        # repeated negatives add up: a bound on the length of the row without gathering it
        size = np.linalg.norm(parts, axis=-1)
        length = np.sqrt(size[:, 0] ** 2 + size[:, 1] ** 2 + np.sum(size[:, 2:], axis=1) ** 2)
        parts = parts * clip_factors(length, clip)[:, None, None]
        at, flat = nodes.ravel(), parts.reshape(-1, self.space.dim)
        columns = [np.bincount(at, flat[:, i], self.nodes) for i in range(self.space.dim)]
        return np.stack(columns, axis=-1).ravel()

    def _scores(self, records: Array, distance: np.ndarray) -> np.ndarray:
        """−ρ(u, ·) to v and the negatives, minus infinity for negatives that do not count."""
        targets = records[:, 1:]
        usable = (targets != records[:, :1]) & (targets != records[:, 1:2])
        usable[:, 0] = True
        return np.where(usable, -distance, -np.inf)

    def _parts(self, w: Array, records: Array) -> tuple[np.ndarray, np.ndarray]:
        """Gradient coordinates (n, 2 + K, d) at u, v and the negatives, and their nodes (n, 2 + K)."""
        here, there = w[records[:, :1]], w[records[:, 1:]]
        outward, inward = self._logs(here, there), self._logs(there, here)
        distance = np.linalg.norm(outward, axis=-1)
        scores = self._scores(records, distance)
        weights = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        pull = -weights
        pull[:, 0] += 1.0
        # ∇ρ(·, y) is minus the unit logarithm, 0 where the points coincide
        share = -safe_divide(pull, distance)[:, :, None]
        return np.concatenate([np.sum(share * outward, axis=1)[:, None], share * inward], axis=1), records

    def _logs(self, base: Array, point: Array) -> np.ndarray:
        return np.asarray(self.space.to_coordinates(base, self.space.log(base, point)))
