"""What a record and its covariates add to a regression: all moments of (1, t, c) that a fit needs, in one body.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> view = RegressionView(Euclidean(2), np.zeros(2), np.array([[20.0, 80.0]]), radius=5.0)
>>> rule = view.contribution(exponent=29)
>>> whole, _ = rule((np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[80.0], [50.0]])))
>>> seen = view.read(whole.sum(axis=1) * 2.0**-29 / 2, 29)
>>> np.round(seen.products, 3).tolist()  # means of c, and of t·c
[[1.5, 2.5], [1.5, 2.0]]
>>> np.round(seen.covariates, 3).tolist(), round(seen.square, 3)  # of (1, t)(1, t)ᵀ and |c|²
([[1.0, 0.5], [0.5, 0.5]], 13.0)

**Theorem.** Let h = (a, c) with |h|² ≤ 2R². The vector of a_i·c_j, of a_i·a_j for i < j, of a_i²/√2 and of |c|²/√2
moves by at most 2R² where one h is replaced by another, as it moves by no more than hhᵀ/√2 does in Frobenius norm:

    ½‖hhᵀ − h'h'ᵀ‖² = ½|h|⁴ + ½|h'|⁴ − (h·h')² ≤ 4R⁴   (docs/proofs/regression.md, theorem 1).

With one covariate its own moments get more weight within the same 2R² (theorem 2). a stands for (1, θt), c for log of
the record at a public point, each of length R at most. Products a_i·c_j alone move by as much, for a = a' and c = −c':
all other moments come for nothing. h becomes integers first, lengths are checked in exact integers, and products of
integers are exact; 7/10 stands for 1/√2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, clamp, like, namespace, norm
from dpmanifolds._points import like_parts
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.manifolds import Euclidean, Manifold, Product
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.mechanism import Facts, mean_facts, root_up

_ACROSS, _ON = 10, 7
"""Weights of products of two numbers and of squares: 7/10 stands for 1/√2, from below."""
_HAIR = 1 - 2.0**-40
_WEIGHT = 3.0**0.25
"""θ: for covariates that fill their bounds evenly, the one with the least expected error of predictions."""


class Moments(NamedTuple):
    """Means over records, or what noise left of them; or the standard deviation of the noise on each of them."""

    products: np.ndarray
    """(1, t)ᵀ c: (q + 1, dim)."""
    covariates: np.ndarray
    """(1, t)ᵀ(1, t): (q + 1, q + 1)."""
    square: float
    """|c|²."""


def count_moments(dim: int, covariates: int) -> int:
    """How many integers a record has."""
    return (covariates + 1) * dim + covariates * (covariates + 3) // 2 + 1


def regression_facts(dim: int, covariates: int, n: int, unit: str) -> Facts:
    """How far the mean of n such vectors moves, in units of R²: 2/n for neighbours that replace a record."""
    size = count_moments(dim, covariates)
    facts = mean_facts(Ball(Euclidean(size), np.zeros(size), 1.0), n, unit=unit)
    told = "2/n for the joint moments of covariates and tangent coordinates, as integers"
    return replace(facts, at_center=replace(facts.at_center, statement=told))


@dataclass(frozen=True, eq=False)
class RegressionView:
    """From where, and in which units, records and covariates are looked at: all of it public, or released before."""

    space: Manifold
    base: Array
    """A point of the manifold; NumPy."""
    bounds: np.ndarray
    """Of each covariate: (q, 2)."""
    radius: float
    """Of the ball of tangent coordinates."""
    slopes: np.ndarray | None = None
    """(q, dim), coordinates at the base: what is left of a record beyond exp(Σ t_j·slope_j) is looked at."""
    reach: float = math.inf
    """Records farther than this from the base are moved there first."""
    substitute: Array | None = None
    """Takes the place of malformed records, with covariates in the middle of their bounds; None: told, and 0."""

    @property
    def count(self) -> int:
        """Of covariates."""
        return len(self.bounds)

    def contribution(self, exponent: int) -> RegressionContribution:
        """What a record adds; the noise is made for vectors that are at most 2·2^exponent apart."""
        middle, space = np.asarray(self.bounds.mean(axis=1)), Product(self.space, Euclidean(self.count))
        whole = None if self.substitute is None else (self.substitute, middle)
        return RegressionContribution(space, (self.base, middle), whole, view=self, exponent=exponent)

    def units(self, exponent: int) -> _Units:
        """What numbers are in integers, and the weights of their products; R by the exponent."""
        size = self.contribution(exponent).size
        longest = math.sqrt(1 + self.count * _WEIGHT**2)
        # a hair shorter than R, so that rounding never makes the checks fail
        first = size - math.sqrt(self.count + 1)
        one, steps = math.floor(first / longest), first / longest * _WEIGHT
        length = (size - math.sqrt(self.space.dim) / 2) * _HAIR / self.radius
        if min(one, length) <= 0:
            raise ScaleOutOfRangeError(
                f"so little budget for moments of {self.space.dim} dimensions needs noise beyond 64-bit integers: give "
                "a larger budget, or fewer dimensions."
            )
        if self.count > 1:
            return _Units(one, steps, length, one, _ON, _ON)
        most = math.ceil(steps)
        square = math.isqrt(2 * (_ACROSS * size) ** 2 // most**2)
        return _Units(one, steps, length, min(size, size * one // most), square, _ACROSS * one // size)

    def read(self, vector: np.ndarray, exponent: int) -> Moments:
        """What a mean of vectors, with noise or without, says in the units of covariates and coordinates."""
        units, dim, q = self.units(exponent), self.space.dim, self.count
        scaled, length = vector * 2.0**exponent, units.length
        first = np.append(units.one, np.full(q, units.steps))
        cut = (q + 1) * dim
        products = scaled[:cut].reshape(q + 1, dim) / (_ACROSS * first[:, None] * length)
        covariates = np.eye(q + 1)
        rows, columns = np.triu_indices(q + 1, 1)
        paired = np.append(units.pair, first[1:])
        crossed = scaled[cut : cut + len(rows)] / (_ACROSS * paired[rows] * paired[columns])
        covariates[rows, columns] = covariates[columns, rows] = crossed
        inner = np.arange(1, q + 1)
        covariates[inner, inner] = scaled[cut + len(rows) : -1] / (units.square * units.steps**2)
        return Moments(products, covariates, float(scaled[-1]) / (units.distance * length**2))

    def deviations(self, deviation: float, exponent: int) -> Moments:
        """The standard deviation of the noise on each moment, for that of the noise on each entry of a mean."""
        found = self.read(np.full(count_moments(self.space.dim, self.count), deviation), exponent)
        found.covariates[0, 0] = 0.0
        return found


class _Units(NamedTuple):
    one: int
    """1."""
    steps: float
    """A covariate at its upper bound."""
    length: float
    """A unit of length."""
    pair: int
    """1, in products with covariates."""
    square: int
    """The weight of squares of covariates."""
    distance: int
    """The weight of |c|²."""


@dataclass(frozen=True, eq=False)
class RegressionContribution(AtPoint):
    """Products of integers of h = (a, c), for records that are tuples of a point and its covariates."""

    view: RegressionView | None = None
    exponent: int = 29

    @property
    def _view(self) -> RegressionView:
        assert self.view is not None
        return self.view

    @property
    def dim(self) -> int:  # type: ignore[override]
        return count_moments(self._view.space.dim, self._view.count)

    @property
    def bound(self) -> int:
        return 1 << (self.exponent + 1)

    @cached_property
    def size(self) -> int:
        """R: 20R² and the rounding of two means of persons, 2√D, stay below 2·2^exponent."""
        return math.isqrt(((2 << self.exponent) - 2 * root_up(self.dim)) // (2 * _ACROSS))

    def fits(self, whole: Array) -> Array:
        """Means of vectors of one body lie in its hull, which is no wider: no column is refused."""
        xp = namespace(whole)
        return xp.ones(whole.shape[1], dtype=xp.bool)

    def coordinates(self, base: Array, points: Array) -> Array:
        """Covariates from −1 to 1, and what is seen of the record."""
        view, (point, given) = self._view, points
        xp = namespace(given)
        middle, half = view.bounds.mean(axis=1), np.diff(view.bounds, axis=1)[:, 0] / 2
        times = xp.clip((given - like(middle, given)) / like(half, given), -1.0, 1.0)
        return xp.concat([times, self._seen(base[0], point, times)], axis=-1)

    def _seen(self, base: Array, points: Array, times: Array) -> Array:
        """log at the base; later what is left beyond the geodesic at these times, carried back to the base.

        There records are moved to within reach of the base first, and those without coordinates to it, row by row:
        every matrix that is factorised below is then as well conditioned as public numbers make it.
        """
        view = self._view
        rows = view.space.log_coordinates(base, points)
        if view.slopes is None:
            return rows
        xp = namespace(rows)
        slopes = like(view.slopes, rows)
        ahead = xp.sum(times[:, :, None] * slopes[None, :, :], axis=1)
        if view.space.is_flat:
            return rows - ahead
        lost = ~xp.all(xp.isfinite(rows), axis=-1)
        kept = xp.where(lost[:, None], xp.zeros_like(rows), rows)
        length = norm(kept)
        kept = kept * xp.where(length > view.reach, view.reach / length, xp.ones_like(length))[:, None]
        left = _beyond(view.space, like_parts(view.base, points), kept, ahead)
        return xp.where(lost[:, None], rows, left)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        xp, view, q = namespace(rows), self._view, self._view.count
        units = view.units(self.exponent)
        with np.errstate(all="ignore"):
            usable = (broken == 0) & xp.all(xp.isfinite(rows), axis=-1)
            rows = xp.where(usable[:, None], rows, xp.zeros_like(rows))
            length = norm(rows[:, q:])
            short = xp.where(length > view.radius, view.radius / length, xp.ones_like(length))
            most = math.ceil(units.steps)
            a = clamp(xp.astype(xp.round(rows[:, :q] * units.steps), xp.int64), -most, most)
            # cut, so that no square leaves 64 bits: lengths below 1e−160 are not told by squares in floating point
            scaled = xp.round(rows[:, q:] * (short * units.length)[:, None])
            c = clamp(xp.astype(scaled, xp.int64), -self.size, self.size)
        square, limit = xp.sum(c * c, axis=1), self.size * self.size
        fits = usable & (units.one**2 + xp.sum(a * a, axis=1) <= limit) & (square <= limit)
        whole_a, paired = (xp.concat([xp.full_like(a[:, :1], one), a], axis=1) for one in (units.one, units.pair))
        parts = [_ACROSS * xp.reshape(whole_a[:, :, None] * c[:, None, :], (a.shape[0], -1))]
        for i, j in np.stack(np.triu_indices(q + 1, 1), axis=1).tolist():
            parts.append(_ACROSS * (paired[:, i] * paired[:, j])[:, None])
        parts += [units.square * a * a, units.distance * square[:, None]]
        whole = xp.concat(parts, axis=1)
        whole = xp.where(fits[:, None], whole, xp.zeros_like(whole))
        return xp.permute_dims(whole, (1, 0)), broken


def _beyond(space: Manifold, base: Array, rows: Array, ahead: Array) -> Array:
    """log of exp(rows) at exp(ahead), both at the base, carried back to the base along its geodesic."""
    there = space.exp(base, space.from_coordinates(base, ahead))
    points = space.exp(base, space.from_coordinates(base, rows))
    return space.to_coordinates(base, space.transport(there, base, space.log(there, points)))
