"""Releases made by private descent: the Fréchet median, and any run of `private_descent`."""

from __future__ import annotations

from typing import Any

from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.mechanisms import host
from dpmanifolds.optimize import DescentResult, descend_to_median
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.entry import checked_budget, clipped_records, grouped, open_account
from dpmanifolds.releases.release import Release

__all__ = ["private_median", "release_of_descent"]


def private_median(
    points: Any,
    domain: Ball,
    budget: Budget,
    *,
    steps: int | None = None,
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str = "person",
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The Fréchet median argmin (1/n)Σρ(x, x_i) of `points`, by descent with noisy unit gradients (Theorem S3).

    Outliers pull no harder than other records, and the noise does not grow with the radius of the ball: it only sets
    where the descent starts and how far it may go. `steps` and their sizes are public functions of the ball, n and
    the budget. Other arguments as in `private_mean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> release = dpm.private_median(dpm.SPD(2).random_point(500, rng=0), ball, dpm.ApproxDP(1.0, 1e-6))
    >>> release.statistic, release.value.shape
    ('median', (2, 2))
    """
    if not isinstance(domain, Ball):
        raise ArgumentError(f"domain must be a Ball for the median; got {type(domain).__name__}.")
    checked_budget(budget)
    account = open_account(ledger, dataset, rng)
    records = clipped_records(points, domain, on_invalid)
    if group_by is not None:
        records = grouped(domain, records, group_by)
    result = descend_to_median(
        records, domain, budget, steps=steps, rng=account.rng, unit=unit, ledger=account.ledger, dataset=dataset
    )
    n = domain.manifold.batch_shape(records)[0]
    return release_of_descent(result, domain, budget, statistic="median", n=n)


def release_of_descent(
    result: DescentResult, domain: Domain, budget: Budget, *, statistic: str = "minimiser", n: int | None = None
) -> Release:
    """A run of `private_descent` as a release; its error depends on the loss and the records, and is not stated."""
    from dpmanifolds import __version__

    return Release(
        statistic=statistic,
        value=host(result.point),
        guarantee=result.guarantee,
        budget=budget,
        mechanism="noisy gradient descent",
        theorem="S3 or S4 and the composition of its steps (docs/proofs/descent.md)",
        numerics=result.numerics,
        sensitivity=result.sensitivity,
        scale=result.noise,
        step=None,
        n=n,
        domain=domain,
        expected_error=None,
        reason=f"{result.steps} steps, {result.law} noise on each mean gradient, output {result.output}",
        reproducible=result.reproducible,
        version=__version__,
    )
