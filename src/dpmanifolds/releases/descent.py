"""Releases made by private descent: the Fréchet median, and any run of `private_descent`."""

from __future__ import annotations

import os
from typing import Any

from dpmanifolds._points import host
from dpmanifolds.descent import DescentResult, FrechetMedianLoss, descend_to_median
from dpmanifolds.descent.records import hold_records
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import open_account

__all__ = ["private_median", "release_of_descent"]


def private_median(
    points: Any,
    domain: Ball,
    budget: Budget,
    *,
    steps: int | None = None,
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    state: str | os.PathLike[str] | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The Fréchet median argmin (1/n)Σρ(x, x_i) of `points`, by descent with noisy unit gradients (Theorem S3).

    Outliers pull no harder than other records, and the noise does not grow with the radius of the ball: it only sets
    where the descent starts and how far it may go. `steps` and their sizes are public functions of the ball, n and
    the budget. Other arguments as in `private_mean`: `points` in every form that can be read more than once, block by
    block in each step; workers of a Dask cluster keep theirs. `state`, a path, lets the descent go on after a crash
    (`private_descent`).

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
    held = hold_records(FrechetMedianLoss(domain), points, group_by=group_by, on_invalid=on_invalid)
    result = descend_to_median(
        held,
        domain,
        budget,
        steps=steps,
        rng=account.rng,
        unit=unit,
        state=state,
        ledger=account.ledger,
        dataset=dataset,
    )
    return release_of_descent(result, domain, budget, statistic="median", n=held.count)


def release_of_descent(
    result: DescentResult, domain: Domain, budget: Budget, *, statistic: str = "minimiser", n: int | None = None
) -> Release:
    """A run of `private_descent` as a release; its error depends on the loss and the records, and is not stated.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.descent import FrechetMeanLoss
    >>> from dpmanifolds.releases import release_of_descent
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.5)
    >>> records, budget = dpm.SPD(2).random_point(400, rng=0), dpm.ApproxDP(1.0, 1e-6)
    >>> result = dpm.private_descent(
    ...     FrechetMeanLoss(ball), records, ball.manifold, start=ball.center, budget=budget, steps=3, step_size=0.5
    ... )
    >>> release = release_of_descent(result, ball, budget, statistic="mean", n=400)
    >>> release.statistic, release.value.shape, release.guarantee.fits(budget)
    ('mean', (2, 2), True)
    """
    from dpmanifolds import __version__

    return Release(
        statistic=statistic,
        value=host(result.point),
        guarantee=result.guarantee,
        budget=budget,
        mechanism="noisy gradient descent",
        theorem="B1 and the composition of its steps (docs/proofs/descent.md)",
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
