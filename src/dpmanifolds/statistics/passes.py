"""Records of one manifold as every statistic reads them: in blocks, prepared on the way in, as often as needed.

A statistic is a `part` of one block, a `merge` of two parts and what it makes of the total: memory stays at a few
blocks whatever the number of records, and the noise of a release is drawn once, after the last merge.

>>> import numpy as np
>>> from dpmanifolds import SPD, frechet_mean
>>> blocks = [np.stack([np.eye(2)] * 3), np.stack([4 * np.eye(2)] * 3)]
>>> frechet_mean(SPD(2), blocks).point.round(9)
array([[2., 0.],
       [0., 2.]])

What one pass tells is here too: the mean in spaces with a flat chart, and elsewhere a start for the steps.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from dpmanifolds._arrays import Array, eps, like, namespace
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import FlatManifold, Manifold, SPDLogEuclidean
from dpmanifolds.manifolds.linearization import FlatSums
from dpmanifolds.records.blocks import LARGEST_BLOCK, check_block, record_weights
from dpmanifolds.records.source import ArraySource, Part, Source, source_of
from dpmanifolds.statistics.kernels.device import fits_device, log_sums, longest_device_sum

State = TypeVar("State")


@dataclass(frozen=True)
class Preparation:
    """What happens to a block between reading it and using it."""

    manifold: Manifold
    is_checked: bool = False
    """Whether the records are known to lie on the manifold."""

    def __call__(self, raw: Array) -> Array:
        """The block as points of the manifold, or an error where one breaks a rule."""
        block = self.manifold.as_points(raw)
        if not self.is_checked:
            check_block(self.manifold, block)
        return block


@dataclass
class Records:
    """Records in blocks, with weights that sum to one."""

    source: Source
    preparation: Preparation
    weights: Array | None = None
    """None: all the same."""
    _uniform: dict[tuple[int, int], Array] = field(default_factory=dict)

    @property
    def manifold(self) -> Manifold:
        return self.preparation.manifold

    @property
    def reference(self) -> Array:
        """One record or so, for its library, device and precision."""
        return self.manifold.as_points(self.source.template())

    def reduce(self, part: Callable[[int, Array, Array], State], merge: Callable[[State, State], State]) -> State:
        """One pass: part(number, block, weights) of every prepared block, merged in the order of the blocks.

        While the number of records is unknown every weight is one.
        """
        if not self.source.is_local:
            task: Part[State] = _Task(part, self.preparation, self.source.count)
            return self.source.reduce(task, merge)
        return self.source.reduce(
            lambda number, first, raw: part(number, *self._prepared(first, raw)),
            merge,
        )

    def head(self, most: int) -> Array:
        """The first `most` records, prepared."""
        return self.preparation(self.source.sample(most))

    def sample(self, most: int) -> Records:
        """Some of the records, prepared and held in memory."""
        block = self.head(most)
        return Records(ArraySource(block), Preparation(self.manifold, is_checked=True))

    @property
    def memory(self) -> int:
        """How many bytes a pass may keep for the next one; nearly none where they would travel between processes."""
        return self.source.memory

    @property
    def longest_sum(self) -> int:
        """How many numbers one total of a pass adds up, at most: those of a block, and the depth of the tree."""
        blocks = self.source.counted() / self.source.longest_block
        return self.source.longest_block + 2 + math.ceil(math.log2(blocks + 1))

    def _prepared(self, first: int, raw: Array) -> tuple[Array, Array]:
        """The block ready for use, and the weights of its records."""
        block = self.preparation(raw)
        return block, self._weights_at(first, int(block.shape[0]), block)

    def _weights_at(self, first: int, rows: int, block: Array) -> Array:
        if self.weights is not None:
            return self.weights[first : first + rows]
        key = (rows, self.source.count or 1)
        if key not in self._uniform:
            self._uniform[key] = uniform_weights(*key, block)
        return self._uniform[key]


@dataclass(frozen=True)
class _Task:
    """A part of a statistic that travels to the process where the block is."""

    part: Callable[[int, Array, Array], Any]
    preparation: Preparation
    count: int | None

    def __call__(self, number: int, first: int, raw: Array) -> Any:
        block = self.preparation(raw)
        return self.part(number, block, uniform_weights(int(block.shape[0]), self.count or 1, block))


def longest_sum_of_arrays(count: int) -> int:
    """How many numbers one total over so many records of NumPy adds up, at most: those of a block, and the blocks."""
    block = min(count, LARGEST_BLOCK)
    return block + math.ceil(count / block)


def uniform_weights(rows: int, count: int, reference: Array) -> Array:
    """1/count for each of so many rows."""
    return like(np.full(rows, 1 / count), reference)


def records_of(manifold: Manifold, points: Any, *, sample_weight: Any = None) -> Records:
    """`points`, in any form that can be read block by block, as records of a manifold (no product)."""
    records = Records(source_of(manifold, points), Preparation(manifold))
    source = records.source
    if not manifold.single.has_chart:
        source.refuse_single_use()
        source.counted()
    if sample_weight is not None:
        if not source.is_local:
            raise ArgumentError(
                "sample_weight is not offered for Dask arrays or bags: weights would have to travel with them."
            )
        source.refuse_single_use()
        records.weights = record_weights(sample_weight, records.reference, source.counted())
    return records


def not_finite() -> NotOnManifoldError:
    """What is said where sums over records are no numbers."""
    return NotOnManifoldError("the records lead to numbers that are not finite; check them with dpmanifolds.validate.")


def flat_mean(records: Records) -> tuple[Array, float]:
    """chart⁻¹(Σ w chart(x)), and a bound on its rounding error (ℓ2 over the copies of a power)."""
    manifold = cast(FlatManifold, records.manifold.single)
    known = records.source.count is not None
    fused = _device_sums(manifold, records)
    total, size, rounding = fused or records.reduce(_FlatPart(manifold), FlatSums.plus)
    if not known:
        scale = 1 / records.source.counted()
        total, size, rounding = total * scale, size * scale, rounding * scale
    xp = namespace(total)
    if not bool(xp.all(xp.isfinite(total))):
        raise not_finite()
    terms = longest_device_sum(records.source.counted()) if fused else records.longest_sum
    rounding = rounding + terms * size
    point = manifold.inverse_chart(total)
    error = eps(total) * float(xp.sqrt(xp.sum(rounding * rounding)))
    return like(point, records.reference) if fused else point, error


def _device_sums(manifold: FlatManifold, records: Records) -> FlatSums | None:
    """The sums by a fused kernel, where there is one; None sends malformed records on to the checks elsewhere."""
    array = getattr(records.source, "array", None)
    if not isinstance(manifold, SPDLogEuclidean) or not fits_device(array, manifold.k):
        return None
    sums = log_sums(array, records.weights)
    return None if sums is None else FlatSums(sums.total, sums.size, 4 * manifold.k**2 * sums.spread)


@dataclass(frozen=True)
class _FlatPart:
    """The sums of one block."""

    manifold: FlatManifold

    def __call__(self, _: int, block: Array, weights: Array) -> FlatSums:
        return self.manifold.chart_sums(block, weights)


def extrinsic_mean(manifold: Manifold, records: Records) -> Array:
    """A mean of the ambient arrays, brought back to the manifold (weights sum to one)."""
    moment = records.reduce(_MomentPart(manifold), operator.add)
    try:
        return manifold.point_of_moment(moment)
    except np.linalg.LinAlgError:
        raise not_finite() from None


@dataclass(frozen=True)
class _MomentPart:
    """The moment of one block."""

    manifold: Manifold

    def __call__(self, _: int, block: Array, weights: Array) -> Array:
        return self.manifold.ambient_moment(block, weights)
