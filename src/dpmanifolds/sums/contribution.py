"""What one record adds to a sum: integers that are a function of that record and of public values, and of nothing else.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> pull = TangentContribution(Euclidean(2), np.zeros(2), radius=5.0, exponent=4)
>>> whole, broken = pull(np.array([[3.0, 4.0], [30.0, 40.0], [np.nan, 0.0]]))
>>> whole.tolist(), broken.tolist()
([[9, 9, 0], [12, 12, 0]], [0, 0, 1])

A block of records goes in, a column of integers for each comes out. The contract (docs/proofs/sums.md): the column of a
record is the same, bit for bit, whatever the other records of the block are. So nothing here asks `any` or `all`, keeps
what it saw, or raises; a record that has no coordinates gets zeros.

Rows of coordinates lie on a public lattice inside of a public ball, checked exactly. A row w of length at most 1
becomes z = w·R rounded to integers, R = 2^exponent; a longer one is shortened first, one that is not finite becomes 0.
Whatever floating point made of it, Σz² ≤ R² is checked in exact integers at the end, and a row that fails becomes 0:
the promise rests on that check alone (docs/proofs/sums.md). Shortening aims a hair below 1, so that neither rounding to
the nearest integer nor floating point ever makes it fail.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from array_api_compat import is_jax_array

from dpmanifolds._arrays import Array, call_compiled, is_numpy, like, namespace, to_numpy
from dpmanifolds._points import as_block, in_double, like_parts, map_parts, on_host, records_at, replace_rows
from dpmanifolds.domains.axes import Axes
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import Seen
from dpmanifolds.statistics.kernels.integers import (
    BallRule,
    ball_columns,
    ball_rule,
    ball_sums,
    large_integers,
    large_rule,
)
from dpmanifolds.sums.rounding import ball_integers, box_fits, box_integers, length_fits, shortened_length


class Contribution(ABC):
    """A rule from one record to integers (dim,); a value that travels to other processes."""

    dim: int
    """How many integers a record has."""
    exponent: int
    """Of the size of the body, 2^exponent steps of the lattice, where it is a ball."""
    tile_bytes: int = 1 << 20
    """How many bytes of records are worked on together."""
    in_rows: bool = False
    """Whether vectors lie one after the other in a tile, rather than one number of all of them."""
    in_columns: bool = False
    """Whether one number of all records lies after the other where records are matrices too."""
    in_doubles: bool = False
    """Whether NumPy's numbers become double precision when tiles are cut."""
    fixed_rows: bool = False
    """Whether neighbours have as many rows, each in the same place: no persons, no record more or less."""

    @property
    def bound(self) -> int:
        """No integer is larger than this in size."""
        return 1 << self.exponent

    @abstractmethod
    def __call__(self, block: Array) -> tuple[Array, Array]:
        """Integers (dim, n), one column per record, and the number of the rule that each record breaks, 0 for none.

        `block` comes in double precision, in the form that the manifold gives its points, NumPy or on a device.
        """

    def sum_tile(self, tile: Array, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The total (dim,) of the first `rows` records of a tile, and the rules that these break; on the host."""
        whole, broken = self(tile)
        return to_numpy(namespace(whole).sum(whole[:, :rows], axis=1)), to_numpy(broken)[:rows]

    def fits(self, whole: Array) -> Array:
        """Whether each column of integers lies in the body, in exact arithmetic."""
        return length_fits(whole, self.exponent)

    def form(self, block: Any) -> Array:
        """A block as it was read, in that form: shapes are checked, numbers are not."""
        return block

    @property
    def filler(self) -> Array | None:
        """A public record that fills up the last tile of a block; None where tiles may be short."""
        return None

    def sum_on_device(self, block: Array) -> tuple[np.ndarray, np.ndarray] | None:
        """Totals (dim,) of at most 2²⁷ records as they were read, and how many break no rule, the first, the second, …

        By one fused kernel, for arrays on an accelerator; None where there is none.
        """
        return None

    def integers_on_device(self, block: Array) -> tuple[Array, Array] | None:
        """What a call gives, by that kernel; None where there is none."""
        return None


@dataclass(frozen=True, eq=False)
class AtPoint(Contribution):
    """What a record looks like from a public point of its manifold."""

    manifold: Manifold
    base: Array
    """Public, or released before; NumPy."""
    substitute: Array | None = None
    """The public centre, which takes the place of malformed records; None: they count as 0, and are told."""
    in_doubles = True

    @property
    def filler(self) -> Array | None:
        return self.base

    @property
    def in_rows(self) -> bool:  # type: ignore[override]
        return self.manifold.in_rows

    @property
    def in_columns(self) -> bool:  # type: ignore[override]
        return self.manifold.in_columns

    def form(self, block: Any) -> Array:
        """NumPy's numbers stay where they are, in their precision, until they are read tile by tile."""
        return map_parts(lambda part: part if is_numpy(part) else in_double(part), self.manifold.take_form(block))

    def seen(self, block: Array) -> tuple[Array, Array]:
        """Coordinates (n, dim) at the base, and broken rules; for a record that breaks one, of its substitute, or NaN.

        A record that keeps the cheap rules and has no coordinates is malformed if it is not on the manifold, and
        otherwise merely out of reach: it counts as 0.
        """
        rows, broken = self.look_at(block)
        xp = namespace(rows)
        return xp.where((broken > 0)[:, None], xp.full_like(rows, math.nan), rows), broken

    def coordinates(self, base: Array, points: Array) -> Array:
        """What is looked at of a record: log at the base."""
        return self.manifold.log_coordinates(base, points)

    def look_at(self, block: Array) -> tuple[Array, Array]:
        """The same, with any numbers for a record that breaks a rule."""
        seen = self.see(block)
        return seen.coordinates, seen.broken

    def see(self, block: Array) -> Seen:
        """The same, as the manifold sees it."""
        base = like_parts(self.base, block)
        with np.errstate(all="ignore"):
            # not where something else than log is looked at
            fused = self.manifold.see(base, block) if type(self).coordinates is AtPoint.coordinates else None
            seen = self._see_by_steps(base, block) if fused is None else self._with_lost(fused, block)
            if self.substitute is None:
                return seen
            xp, broken = namespace(seen.broken), seen.broken
            own = self.coordinates(base, as_block(like_parts(self.substitute, block)))
            return Seen(xp.where((broken > 0)[:, None], own, seen.coordinates), xp.zeros_like(broken))

    def _see_by_steps(self, base: Array, block: Array) -> Seen:
        manifold = self.manifold
        block = manifold.side_by_side(block)
        broken = manifold.broken_rule(block)
        if manifold.log_can_fail:
            block = replace_rows(block, base, broken > 0)
        return self._with_lost(Seen(self.coordinates(base, block), broken), block)

    def _with_lost(self, seen: Seen, block: Array) -> Seen:
        """Those judged that keep the cheap rules and have no coordinates."""
        xp = namespace(seen.broken)
        found = xp.all(xp.isfinite(seen.rows), axis=-1) if seen.lengths is None else seen.lengths < math.inf
        return seen._replace(broken=self._add_lost(seen.broken, found, block))

    def _add_lost(self, broken: Array, found: Array, block: Array) -> Array:
        lost = (broken == 0) & ~found
        rows = np.flatnonzero(to_numpy(lost)).tolist()
        return namespace(broken).where(lost, self._judged(block, lost, rows), broken) if rows else broken

    def _judged(self, block: Array, lost: Array, rows: list[int]) -> Array:
        """The first rule broken by records that `belongs` refuses, or the last; a look at each alone, on the host."""
        codes = np.zeros(lost.shape[0], dtype=np.int64)
        for row in rows:
            record = on_host(records_at(block, row))
            if not bool(self.manifold.belongs(record)):
                codes[row] = int(self.manifold.broken_rule(as_block(record))[0]) or len(self.manifold.rules)
        return like_integers(codes, lost)


@dataclass(frozen=True, eq=False)
class TangentContribution(AtPoint):
    """log at the base less a public offset, moved onto the body, in units of its axes over 2^exponent.

    The body is the ball of `radius`, or the ellipsoid of these axes times the radius, whose nearest point counts.
    Replacing a record moves the sum by at most 2·2^exponent, adding one by half of that.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.domains.axes import Axes
    >>> narrow = Axes(np.array([0.1, 1.0]))  # in units of the radius
    >>> pull = TangentContribution(Euclidean(2), np.zeros(2), radius=5.0, exponent=4, axes=narrow)
    >>> pull(np.array([[3.0, 0.0], [0.0, 3.0], [0.25, 0.0]]))[0].tolist()  # in sixteenths of each axis
    [[15, 0, 8], [0, 10, 0]]
    """

    radius: float = 1.0
    offset: np.ndarray | None = None
    exponent: int = 30
    axes: Axes | None = None

    @property
    def tile_bytes(self) -> int:  # type: ignore[override]
        """Whole blocks where many short calls work on a tile."""
        return 1 << (21 if self.manifold.in_columns else 20)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.manifold.dim if self.axes is None else self.axes.count

    def __call__(self, block: Array) -> tuple[Array, Array]:
        found = self._by_large_kernel(block)
        if found is not None:
            return found
        seen = self.see(block)
        broken = seen.broken
        with np.errstate(all="ignore"):
            if is_jax_array(block) and self.axes is None:
                offset = 0.0 if self.offset is None else self.offset
                return call_compiled(_round_at(self.exponent), seen.coordinates, offset, self.radius, broken), broken
            if self.offset is None and self.axes is None:
                return ball_integers(
                    seen.rows,
                    self.exponent,
                    radius=self.radius,
                    usable=broken == 0,
                    shares=seen.shares,
                    lengths=seen.lengths,
                ), broken
            rows = seen.coordinates
            if self.offset is not None:
                rows = rows - like(self.offset, rows)
            if self.axes is None:
                return ball_integers(rows, self.exponent, radius=self.radius, usable=broken == 0), broken
            whitened = self.axes.whiten(rows / self.radius)
            return ball_integers(whitened, self.exponent, usable=broken == 0), broken

    def sum_tile(self, tile: Array, rows: int) -> tuple[np.ndarray, np.ndarray]:
        found = self._by_large_kernel(tile, rows)
        return super().sum_tile(tile, rows) if found is None else (to_numpy(found[0]), to_numpy(found[1])[:rows])

    def _by_large_kernel(self, block: Array, rows: int | None = None) -> tuple[Array, Array] | None:
        """Integers (dim, n), or the total (dim,) of so many records, of matrices from 4×4 on, and the broken rules.

        None where there is no kernel for them.
        """
        rule = self._device_rule(block, large=True)
        if rule is None:
            return None
        whole, codes, found = large_integers(block, rule, rows)
        broken = self._add_lost(codes, found, block)
        if self.substitute is None:
            return whole, broken
        xp, own = namespace(whole), like_integers(self._own_integers(), whole)
        if rows is None:
            return xp.where((broken > 0)[None, :], own[:, None], whole), xp.zeros_like(broken)
        return whole + own * xp.sum(broken[:rows] > 0), xp.zeros_like(broken)

    def sum_on_device(self, block: Array) -> tuple[np.ndarray, np.ndarray] | None:
        block = self.manifold.take_form(block)
        rule = self._device_rule(block)
        if rule is None:
            return None
        total, counts = ball_sums(block, rule)
        if self.substitute is None:
            return total, counts
        replaced = counts[1:].sum()
        return total + replaced * self._own_integers(), np.array([counts[0] + replaced])

    def integers_on_device(self, block: Array) -> tuple[Array, Array] | None:
        block = self.manifold.take_form(block)
        rule = self._device_rule(block)
        if rule is None:
            return None
        whole, broken = ball_columns(block, rule)
        if self.substitute is None:
            return whole, broken
        xp, own = namespace(whole), like_integers(self._own_integers(), whole)
        return xp.where((broken > 0)[None, :], own[:, None], whole), xp.zeros_like(broken)

    def _device_rule(self, block: Array, *, large: bool = False) -> BallRule | None:
        if self.axes is not None or is_numpy(block):
            return None
        return (large_rule if large else ball_rule)(
            self.manifold,
            self.base,
            block,
            offset=self.offset,
            radius=self.radius,
            limit=shortened_length(self.dim, self.exponent),
            exponent=self.exponent,
        )

    def _own_integers(self) -> np.ndarray:
        """Those of the substitute: public."""
        return to_numpy(self(to_numpy(self.substitute)[None, ...])[0][:, 0])


@dataclass(frozen=True, eq=False)
class OnLine(AtPoint):
    """One number of a record as seen from the base, cut to an interval, in units of half of it over 2^exponent."""

    radius: float = 1.0
    exponent: int = 30
    dim = 1

    def fits(self, whole: Array) -> Array:
        return box_fits(whole, self.exponent)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.seen(block)
        with np.errstate(all="ignore"):
            return box_integers(self.measured(rows)[:, None], self.exponent), broken

    @abstractmethod
    def measured(self, rows: Array) -> Array:
        """The number for each row of coordinates, from −1 to 1 where it is not cut."""


class DistanceContribution(OnLine):
    """ρ² to the base, cut to [0, radius²], as 2ρ²/radius² − 1."""

    def measured(self, rows: Array) -> Array:
        return 2 * (namespace(rows).sum(rows * rows, axis=-1) / (self.radius * self.radius)) - 1


@cache
def _round_at(exponent: int) -> Callable[..., Array]:
    """For JAX, which compiles it."""

    def round_rows(rows: Array, offset: Array, radius: Array, broken: Array) -> Array:
        return ball_integers((rows - offset) / radius, exponent, usable=broken == 0)

    return round_rows


def like_integers(codes: np.ndarray, reference: Array) -> Array:
    """Integers in the library and on the device of a reference."""
    from array_api_compat import device

    return namespace(reference).asarray(codes, device=device(reference))
