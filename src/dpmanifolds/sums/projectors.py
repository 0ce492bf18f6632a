"""Sums of projectors: integers that are positive semidefinite matrices, so that two of them are never opposite.

>>> import numpy as np
>>> from dpmanifolds import Grassmann
>>> rule = ProjectorContribution(Grassmann(3, 1), np.eye(3)[:, :1], exponent=20)
>>> whole, _ = rule(np.stack([np.eye(3)[:, :1], np.eye(3)[:, 1:2]]))
>>> bool(np.linalg.norm(whole[:, 0] - whole[:, 1]) <= rule.most_apart), rule.most_apart < 2 * 2**20
(True, True)

Projectors of rank q in R^m or C^m have length √q, and √(q(m−q)/m) without their trace; the ball of that radius is up to
√2 times as wide as they are apart, ‖P − Q‖ ≤ √2q. A record's frame F (m, q) becomes integers Z = round(s·F), and what
it adds is made of A = ZZ*, a positive semidefinite matrix of integers, by construction and exactly. Its length
‖A‖² ≤ N is checked in exact integers. Two of them have tr(AB) ≥ 0, hence ‖A − B‖² ≤ ‖A‖² + ‖B‖² ≤ 2N. The integers
are 5·a_ii less a public number, and 7 times what is above the diagonal: 49 ≤ 2·25, so that they differ by at most
5·√2N (docs/proofs/sums.md, section 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpmanifolds._arrays import Array, gather, namespace, transpose
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds._orthonormal import across_ones
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.mechanism import Facts, root_up
from dpmanifolds.sums.rounding import length_fits

_ON, _ABOVE = 5, 7
"""Weights of integers on the diagonal and above it: 7/5 stands for √2."""


def projector_integers(manifold: Manifold) -> int:
    """How many integers the projector of a point has."""
    _, size = manifold.projector_shape
    return size * size if manifold.is_complex else size * (size + 1) // 2


def chord_of_projectors(manifold: Manifold) -> float:
    """√2q/√(q(m−q)/m): how far two of them are apart, in units of their distance to the middle; rounded up."""
    rank, size = manifold.projector_shape
    return math.sqrt(2 * size / (size - rank)) * (1 + 2.0**-40)


def projector_facts(facts: Facts, chord: float) -> Facts:
    """Those of a sum of integers in a ball, with their own diameter."""
    assert facts.shape is not None
    shape = replace(facts.shape, chord=chord)
    finest = shape.finest
    value = shape.diameter(finest, gaussian=True) * shape.step(finest) * (1 + 2.0**-49)
    told = "√2q/n for a sum of projectors of rank q, as integers"
    return replace(facts, shape=shape, at_center=replace(facts.at_center, value=value, statement=told))


@dataclass(frozen=True, eq=False)
class ProjectorContribution(AtPoint):
    """The projector of a record in whole steps, less a public multiple of the identity.

    Replacing a record moves the sum by at most `most_apart`, adding one by 2^exponent.
    """

    exponent: int = 29

    @property
    def dim(self) -> int:  # type: ignore[override]
        return projector_integers(self.manifold)

    @cached_property
    def most_apart(self) -> int:
        """As `SumShape.diameter` has it."""
        return math.ceil(Fraction(chord_of_projectors(self.manifold)) * (1 << self.exponent))

    @cached_property
    def largest(self) -> int:
        """N: 5·√2N and the rounding of two means of persons, 2√D, stay below `most_apart`."""
        room = max(0, self.most_apart - 2 * root_up(self.dim))
        return room * room // (2 * _ON * _ON)

    @cached_property
    def scale(self) -> float:
        """s: a hair shorter than √N allows, so that rounding does not make the check fail."""
        rank, size = self.manifold.projector_shape
        return math.sqrt(math.sqrt(self.largest / rank)) - 2 * math.sqrt(size * rank)

    @property
    def _largest_trace(self) -> float:
        return 1.01 * math.sqrt(self.largest * self.manifold.projector_shape[0])

    @cached_property
    def middle(self) -> int:
        """5·s²·q/m, rounded: the integers on the diagonal of the middle of all projectors."""
        rank, size = self.manifold.projector_shape
        return round(_ON * self.scale**2 * rank / size)

    def coordinates(self, base: Array, points: Array) -> Array:
        """The frame, one number after the other; complex ones as pairs."""
        xp = namespace(points)
        frames = self.manifold.projector_frame(points)
        flat = xp.reshape(frames, (frames.shape[0], -1))
        return xp.concat([xp.real(flat), xp.imag(flat)], axis=-1) if self.manifold.is_complex else flat

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        xp = namespace(rows)
        with np.errstate(all="ignore"):
            steps = xp.round(self.scale * rows)
            # of so small a trace that no square below leaves 64 bits
            usable = (broken == 0) & (xp.sum(steps * steps, axis=-1) <= self._largest_trace)
            steps = xp.where(usable[:, None], steps, xp.zeros_like(steps))
        diagonal, above = self._squares(steps)
        fits = xp.sum(diagonal * diagonal, axis=-1) + 2 * xp.sum(above * above, axis=-1) <= self.largest
        whole = xp.concat([_ON * diagonal - self.middle, _ABOVE * above], axis=-1)
        whole = xp.permute_dims(xp.where((usable & fits)[:, None], whole, xp.zeros_like(whole)), (1, 0))
        return whole * xp.astype(length_fits(whole, self.exponent), xp.int64), broken

    def _squares(self, steps: Array) -> tuple[Array, Array]:
        """Entries of ZZ* on the diagonal and above it, int64: sums of whole numbers below 2⁵³ are exact."""
        xp = namespace(steps)
        rank, size = self.manifold.projector_shape
        parts = xp.reshape(steps, (steps.shape[0], -1, size, rank))
        real = parts[:, 0, ...]
        square = real @ transpose(real)
        rows, columns = np.triu_indices(size, 1)
        places = rows * size + columns
        if not self.manifold.is_complex:
            flat = xp.reshape(square, (steps.shape[0], size * size))
            entries = gather(flat, np.arange(size) * (size + 1)), gather(flat, places)
            return xp.astype(entries[0], xp.int64), xp.astype(entries[1], xp.int64)
        imaginary = parts[:, 1, ...]
        square = square + imaginary @ transpose(imaginary)
        turned = imaginary @ transpose(real)
        flat, across = (
            xp.reshape(each, (steps.shape[0], size * size)) for each in (square, turned - transpose(turned))
        )
        above = xp.concat([gather(flat, places), gather(across, places)], axis=-1)
        return xp.astype(gather(flat, np.arange(size) * (size + 1)), xp.int64), xp.astype(above, xp.int64)

    @property
    def stretch(self) -> float:
        """What a step is worth, over what it would be worth without the hair that `scale` is shorter by."""
        rank, size = self.manifold.projector_shape
        return (1 << self.exponent) / (_ON * self.scale**2 * math.sqrt(rank * (size - rank) / size))


def decode_projector(manifold: Manifold, coordinates: np.ndarray) -> np.ndarray:
    """`Manifold.embed`'s coordinates for those that integers stand for: the diagonal, 7/5 times what is above it."""
    _, size = manifold.projector_shape
    above = coordinates[..., size:] * (math.sqrt(2.0) * _ON / _ABOVE)
    return np.concatenate([across_ones(coordinates[..., :size]), above], axis=-1)
