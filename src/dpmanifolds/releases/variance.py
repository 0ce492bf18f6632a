"""The private Fréchet variance."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean, Manifold, Product
from dpmanifolds.mechanisms import Draw, choose, value_facts
from dpmanifolds.privacy import Budget, sensitivity_of_variance, solver_tolerance
from dpmanifolds.privacy.solver import coordinate_rounding
from dpmanifolds.releases.entry import (
    by_person,
    certain_mean,
    checked_budget,
    clipped_records,
    computed_mean,
    lasting_records,
    open_account,
    precision_of,
)
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.statistics.mean import mean_of
from dpmanifolds.statistics.streaming import Records

__all__ = ["private_variance"]


def private_variance(
    points: Any,
    domain: Ball,
    budget: Budget,
    *,
    mechanism: str = "auto",
    numerics: str = "safe",
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str = "person",
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The Fréchet variance min_x (1/n)Σρ²(x, x_i) of records clipped to a public ball (Theorem S1v); a number.

    It lies between 0 and r², as the centre is one of the x, and the release is clipped to that range. Arguments as in
    `private_mean`: `points` in every form that can be read more than once, block by block.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> release = dpm.private_variance(dpm.SPD(2).random_point(500, rng=0), ball, dpm.PureDP(1.0))
    >>> 0.0 <= release.value <= 4.0
    True
    """
    if not isinstance(domain, Ball):
        raise ArgumentError(f"domain must be a Ball for the variance; got {type(domain).__name__}.")
    checked_budget(budget)
    account = open_account(ledger, dataset, rng)
    records = _read(points, domain, on_invalid, group_by)
    n, dtype = records.count, records.dtype
    span = domain.radius * domain.radius
    # a distance is off by at most the rounding of coordinates, its square by that times twice the diameter
    rounding = 4 * domain.radius * coordinate_rounding(domain, dtype) + n * 2.0**-52 * span
    moved = sensitivity_of_variance(domain, n, solver_tolerance=solver_tolerance(domain, n, dtype), rounding=rounding)
    chosen = choose(
        value_facts(Ball(Euclidean(1), np.array([span / 2]), span / 2), moved, unit=unit),
        budget,
        mechanism=mechanism,
        numerics=numerics,
    )
    law = chosen.mechanism
    variance = records.variance()
    account.spend("variance", law.guarantee, n=n, mechanism=law.name, numerics=law.numerics, domain=repr(domain))
    drawn = law.draw(np.clip(np.array([variance]), 0.0, span), rng=account.rng)
    return release_of(
        law,
        Draw(float(drawn.point[0]), None if drawn.coordinates is None else span / 2 + drawn.coordinates),
        statistic="variance",
        budget=budget,
        n=n,
        reason=chosen.reason,
        reproducible=account.reproducible,
        domain=domain,
    )


@dataclass(frozen=True)
class _InMemory:
    """Clipped records in one array."""

    domain: Ball
    array: Array

    @property
    def count(self) -> int:
        return int(self.domain.manifold.batch_shape(self.array)[0])

    @property
    def dtype(self) -> str:
        return precision_of(self.array)

    def variance(self) -> float:
        """(1/n)Σρ² around the mean. Not private."""
        center = computed_mean(self.domain, self.array, self.dtype).point
        return _Squares(self.domain.manifold, center)(0, 0, self.array) / self.count


@dataclass(frozen=True)
class _Streamed:
    """Records that are clipped on their way in: one pass or more for the mean, one for the squares."""

    domain: Ball
    records: Records

    @property
    def count(self) -> int:
        return self.records.source.counted()

    @property
    def dtype(self) -> str:
        return precision_of(self.records.reference)

    def variance(self) -> float:
        """The same. Not private."""
        center = certain_mean(mean_of(self.records), self.domain, self.count, self.dtype).point
        total: float = self.records.each(_Squares(self.domain.manifold, center), operator.add)
        return total / self.count


@dataclass(frozen=True)
class _Squares:
    """Σρ²(center, x) over a block, in double precision whatever the records are: that is what `rounding` pays for."""

    manifold: Manifold
    center: Array

    def __call__(self, _: int, __: int, block: Array) -> float:
        distances = np.asarray(to_numpy(self.manifold.dist(self.center, block)), dtype=np.float64)
        return float(distances @ distances)


def _read(points: Any, domain: Ball, on_invalid: str, group_by: Any) -> _InMemory | _Streamed:
    if group_by is None and not isinstance(domain.manifold, Product):
        records = lasting_records(points, domain, on_invalid)
        records.source.refuse_single_use()
        return _Streamed(domain, records)
    return _InMemory(domain, by_person(domain, clipped_records(points, domain, on_invalid), group_by))
