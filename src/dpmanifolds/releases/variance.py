"""The private Fréchet variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import to_numpy
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.mechanisms import Draw, choose, value_facts
from dpmanifolds.privacy import Budget, sensitivity_of_variance, solver_tolerance
from dpmanifolds.privacy.solver import coordinate_rounding
from dpmanifolds.releases.entry import (
    checked_budget,
    clipped_records,
    computed_mean,
    grouped,
    open_account,
    precision_of,
)
from dpmanifolds.releases.release import Release, release_of

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
    `private_mean`.

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
    records = clipped_records(points, domain, on_invalid)
    if group_by is not None:
        records = grouped(domain, records, group_by)
    manifold, dtype = domain.manifold, precision_of(records)
    n = manifold.batch_shape(records)[0]
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
    center = computed_mean(domain, records, dtype).point
    # summed in double precision whatever the records are: that is what `rounding` pays for
    squares = np.asarray(to_numpy(manifold.dist(center, records)), dtype=np.float64) ** 2
    variance = float(squares.mean())
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
