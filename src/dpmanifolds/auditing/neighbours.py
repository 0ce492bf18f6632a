"""Pairs of data sets that differ in one record and move a sum, or the Fréchet mean, as far as it goes.

A sum of integers moves by its whole 2R when a record moves from one point of the edge, or from beyond it, to the
opposite one, wherever the others stand. For the Fréchet mean: in a plane of the largest curvature κ > 0 the other
records stand at ±r·e₂, and the last one moves from r·e₁ to −r·e₁, which attains Theorem S1 as n grows. Where κ ≤ 0 the
mean moves by the full 2r/n when the others stand at the centre. Laws that live on the ball alone are worst off with the
mean near its edge. Which plane is the worst is not asked of a theorem: axes, diagonals and random directions are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds._validate import positive_integer
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import as_generator
from dpmanifolds.statistics import frechet_mean
from dpmanifolds.sums.total import read_records
from dpmanifolds.sums.walk import Walk
from dpmanifolds.sums.wrapped import WrappedMechanism

_INSIDE = 1 - 1e-12
_PLANES, _NARROWINGS = 200, 12
_RANDOM_PAIRS = 4
_ONE_SIDE = np.array([1.0])
_BOTH_SIDES = np.array([1.0, -1.0])


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two data sets of n records in a ball that differ in the last record.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.auditing import worst_neighbours
    >>> pair = worst_neighbours(dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0), n=10, rng=0)[0]
    >>> int(np.sum(np.any(pair.first != pair.second, axis=(1, 2)))), round(pair.moved, 6)
    (1, 0.2)
    """

    ball: Ball
    first: Array
    second: Array
    description: str

    def sums(self, mechanism: WrappedMechanism) -> tuple[list[int], list[int]]:
        """The exact sums that a mechanism adds its noise to, in the first step of `private_mean`."""
        walk = Walk(self.ball)
        look = walk.look(walk.center, mechanism)
        sets = (read_records(self.ball.manifold, each) for each in (self.first, self.second))
        one, other = (records.total(look).integers for records in sets)
        return one, other

    @property
    def records(self) -> tuple[Array, Array]:
        return self.first, self.second

    @cached_property
    def means(self) -> tuple[Array, Array]:
        """The Fréchet means, as a release computes them."""
        one, other = (host(frechet_mean(self.ball.manifold, each).point) for each in (self.first, self.second))
        return one, other

    @cached_property
    def moved(self) -> float:
        """How far the mean moves, as a distance on the manifold."""
        return float(self.ball.manifold.dist(*self.means))


def worst_neighbours(ball: Ball, n: int, *, rng: Any = None) -> list[Neighbours]:
    """Candidates for the worst pair; the same whatever mechanism is attacked.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.auditing import worst_neighbours
    >>> pairs = worst_neighbours(dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0), n=10, rng=0)
    >>> round(max(pair.moved for pair in pairs), 6)  # 2r/n: as far as any record can move the mean
    0.2
    """
    if not isinstance(ball, Ball):
        raise ArgumentError(f"worst-case neighbours are known in a Ball; got {type(ball).__name__}.")
    n = positive_integer("n", n, at_least=2)
    return [
        _pair(ball, n, along, others, signs, description)
        for along, others, signs, description in _directions(ball, as_generator(rng))
    ]


def _directions(
    ball: Ball, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray | None, np.ndarray, str]]:
    """Unit vectors: where the record moves along, where the others stand (None: at the centre) with which signs."""
    dim, curved = ball.manifold.dim, ball.manifold.curvature_bounds[1] > 0
    axes, diagonal = np.eye(dim), np.full(dim, 1 / math.sqrt(dim))
    yield axes[0], None, _BOTH_SIDES, "the others at the centre, one moves along an axis"
    yield axes[0], axes[0], _ONE_SIDE, "the others at one point of the edge, one moves from there to the opposite point"
    if dim == 1:
        return
    yield diagonal, None, _BOTH_SIDES, "the others at the centre, one moves along the diagonal"
    if curved:
        for other in sorted({1, dim // 2, dim - 1}):
            yield axes[0], axes[other], _BOTH_SIDES, f"the others at ± axis {other + 1}, one moves along axis 1"
        if ball.manifold.curvature_bounds[0] != ball.manifold.curvature_bounds[1]:
            yield (
                *_most_curved_plane(ball, rng),
                _BOTH_SIDES,
                "the others across, in the most curved plane found",
            )
        folded = np.where(np.arange(dim) % 2 == 0, 1.0, -1.0) / math.sqrt(dim)
        across = folded - (folded @ diagonal) * diagonal
        yield diagonal, across / np.linalg.norm(across), _BOTH_SIDES, "the others across, one moves along the diagonal"
    for number in range(_RANDOM_PAIRS):
        frame, _ = np.linalg.qr(rng.standard_normal((dim, 2)))
        yield frame[:, 0], frame[:, 1] if curved else None, _BOTH_SIDES, f"random directions, number {number + 1}"


def _most_curved_plane(ball: Ball, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal u, v for which exp(r·u) and exp(r·v) come closest: a random search that narrows down."""
    dim, center = ball.manifold.dim, host(ball.center)

    def distance(frames: np.ndarray) -> np.ndarray:
        ends = (ball.manifold.move(center, ball.radius * frames[..., side]) for side in (0, 1))
        return np.asarray(ball.manifold.dist(*ends))

    best, width = np.linalg.qr(rng.standard_normal((dim, 2)))[0], 1.0
    for _ in range(_NARROWINGS):
        frames = np.linalg.qr(best + width * rng.standard_normal((_PLANES, dim, 2)))[0]
        frames[0] = best
        best, width = frames[int(np.argmin(distance(frames)))], 0.7 * width
    return best[:, 0], best[:, 1]


def _pair(
    ball: Ball, n: int, along: np.ndarray, others: np.ndarray | None, signs: np.ndarray, description: str
) -> Neighbours:
    rest = np.resize(signs, n - 1)[:, None] * (np.zeros_like(along) if others is None else others)
    sets = []
    for side in (1.0, -1.0):
        coordinates = ball.radius * _INSIDE * np.concatenate([rest, side * along[None]])
        sets.append(ball.clip(ball.manifold.move(host(ball.center), coordinates)))
    return Neighbours(ball, sets[0], sets[1], description)
