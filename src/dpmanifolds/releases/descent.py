"""Private Riemannian gradient descent whose promise is exact, and the Fréchet median by it.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(3), np.eye(3), radius=2.0)
>>> loss, records = dpm.losses.FrechetMeanLoss(ball), dpm.SPD(3).random_point(2000, rng=0)
>>> release = dpm.private_descent(loss, records, ball, dpm.ApproxDP(1.0, 1e-6), steps=5, step_size=0.5)
>>> release.guarantee.fits(dpm.ApproxDP(1.0, 1e-6)), release.value.shape
(True, (3, 3))
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpmanifolds._points import host
from dpmanifolds._validate import choice, positive_integer, positive_number
from dpmanifolds.descent.descent import (
    OUTPUTS,
    DescentDetails,
    Run,
    as_loss,
    choose_clip_norm,
    manifold_of,
    probe_gradients,
    return_point,
    start_domain,
)
from dpmanifolds.descent.draws import Charge, open_ledger, paid_draws
from dpmanifolds.descent.losses import FrechetMedianLoss, Loss
from dpmanifolds.descent.noise_plan import DescentPlan, plan_descent
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.descent.records import hold_records
from dpmanifolds.descent.step_sizes import StepRule, median_schedule, step_sizes
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget
from dpmanifolds.privacy.budget import checked_budget, warn_of_delta
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import domain_first, open_account
from dpmanifolds.sums.noisy import NoiseSource


@domain_first
def private_descent(
    loss: Loss | Callable[[Any, Any], Any],
    records: Any,
    domain: Domain | Manifold,
    budget: Budget | None,
    *,
    start: Any = None,
    steps: int | None = None,
    step_size: float | StepRule | Callable[[int], float] | Any,
    clip_norm: float | None = None,
    sigma: float | None = None,
    batch_size: int | None = None,
    sampling: str = "poisson",
    output: str = "last",
    retraction: bool = False,
    longest_step: float | None = None,
    group_by: Any = None,
    adjacency: str = "replace-one",
    n_guess: int | None = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    callback: Callable[[int, Any], object] | None = None,
    progress: bool = False,
    state: str | os.PathLike[str] | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """T noisy gradient steps under a promise that composes them exactly; `Release.descent` tells how they were made.

    w_{t+1} = exp_{w_t}(−η_t ζ_t), where ζ_t is the mean of the per-record Riemannian gradients, each clipped to the
    norm C around a public vector, plus noise N(0, σ²I) (Han et al. 2022, Algorithm 1). Everything but the records is
    public: start, step sizes, C, T, σ, n.

    `domain`: a public domain (`Ball`) to which every iterate is clipped, and at whose centre the descent starts unless
    told otherwise; or a manifold, to go anywhere on it from `start`.

    Give two of `budget`, `steps` and `sigma` (σ on the mean gradient), None for the third: it is solved for, and the
    guarantee fits the budget; without one `Release.spent` is the guarantee's μ. `clip_norm` is C; without
    it the loss's own proven bound is used. `batch_size` b: random batches of mean size b, each record with probability
    b/n ("poisson", the sum divided by b whatever came), or exactly b ("without-replacement"). Budgets in μ or ρ gain
    nothing from random batches: no number below that of the full batch is known for these, so give them (ε, δ).

    `output`: w_T; a uniformly random one of w_0, …, w_{T−1}; or the geodesic average w̄_{t+1} = exp_{w̄_t}(a·log w_{t+1})
    with a = 1/(t+1) or 2/(t+1). `longest_step` cuts the length of every step (on a `Power` of each copy).

    Each record's gradient becomes integers on its own; they are summed exactly and integer noise of exact law is added
    once, so that the promise holds for every floating-point arithmetic (docs/proofs/sums.md).

    `group_by`: a person's name for each record. The mean of the integers of a person's records is then one term of the
    sum, and n and b count persons: one person moves the sum by at most 2C (`sums.total`).

    `adjacency="add-remove-one"`: neighbours have one record (person) more or less, so that their number is private
    too. The sum is divided by the public `n_guess`; a record moves it by C. Random batches are then Poisson ones: each
    record with probability b/n_guess, the sum divided by b.

    `callback(t, w)` sees each iterate: all of them together carry the promise. `ledger` is charged under `dataset`
    before the first draw. `state` is a path, for runs with a ledger: iterates are saved there after every draw and the
    same call goes on after a crash, with the same records, data set and settings, without a second charge. The ledger
    counts the draws, and pays for no more than `steps`: one that was taken and not saved is left out (`lost_steps`).
    Only the newest state can be resumed, and one result is told.

    `records` may also be a memory map, a Zarr array, a function that returns a fresh iterator over blocks, or a Dask
    array (a tuple of them where records are tuples): every step is then a pass over blocks. Workers of a Dask cluster
    prepare their chunks once and keep them, and send sums; batches and noise are drawn here. The promise and the
    result are those of the same records in one array. The value comes in the library of the records.

    `on_invalid`: malformed records (off the manifold, not finite) raise an error that names none, before anything is
    spent and outside of the guarantee; "center" puts a public record in their place, inside of it. A well-formed record
    whose gradient is not finite counts as zero.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> loss = dpm.losses.EigenvectorLoss(dimension=3, radius=1.0)
    >>> records = np.random.default_rng(0).standard_normal((5000, 3)) * [0.5, 0.1, 0.1]
    >>> release = dpm.private_descent(
    ...     loss, records, loss.manifold, dpm.ApproxDP(1.0, 1e-6), start=[0.6, 0.8, 0.0], steps=20, step_size=1.0
    ... )
    >>> release.spent.epsilon <= 1.0, bool(abs(release.value[0]) > 0.9), release.descent.steps
    (True, True, 20)
    """
    manifold = manifold_of(domain)
    loss = as_loss(loss, manifold)
    region, w = start_domain(domain, start)
    choice("output", output, OUTPUTS)
    if "average" in output and manifold.max_radius == 0:
        raise ArgumentError(
            f"output={output!r} needs logarithms, which {manifold!r} lacks far from a point: use 'last'."
        )
    ledger = open_ledger(ledger, dataset, state, rng)
    longest = None if longest_step is None else positive_number("longest_step", longest_step)
    private_count = choice("adjacency", adjacency, ADJACENCIES) == "add-remove-one"
    if private_count is (n_guess is None):
        raise ArgumentError(
            "n_guess, a public guess of the number of records, goes with adjacency='add-remove-one': give both or none."
        )
    held = hold_records(loss, records, group_by=group_by, on_invalid=on_invalid, may_be_empty=private_count)
    loss = loss.for_records(held.reference)
    plan = plan_descent(
        n=positive_integer("n_guess", n_guess) if private_count else held.count,
        clip_norm=choose_clip_norm(loss, clip_norm),
        budget=budget,
        steps=steps,
        sigma=sigma,
        batch_size=batch_size,
        sampling=sampling,
        unit=held.unit_of(loss) if unit is None else unit,
        adjacency=adjacency,
    )
    sizes = step_sizes(step_size, steps=plan.steps, sigma=plan.sigma, dim=manifold.dim)
    source = NoisyGradient(loss, held, plan, NoiseSource.of(rng))
    probe_gradients(source, w)
    run = Run(region, sizes, output, retraction, longest, source, callback, progress)
    if budget is not None:
        warn_of_delta(budget, plan.n)
    charge = Charge(
        ledger,
        dataset,
        plan.guarantee,
        plan.steps,
        "descent",
        run.public_settings(budget),
        (loss, region, sizes),
        reproducible=rng is not None,
        domain=loss.domain,
    )
    with paid_draws(charge, {"point": w, "chosen": w}, state=state, records=held) as draws:
        point, details = run.go(draws)
    value, seeded = return_point(point, held, private_count), rng is not None
    return release_descent(loss, plan, region, budget, value, details, reproducible=seeded)


def release_descent(
    loss: Loss,
    plan: DescentPlan,
    region: Domain,
    budget: Budget | None,
    value: Any,
    details: DescentDetails,
    *,
    reproducible: bool,
) -> Release:
    """Where the steps led, and everything that is promised about it."""
    return Release(
        statistic=loss.statistic,
        value=value,
        guarantee=plan.guarantee,
        budget=budget,
        mechanism="noisy gradient descent",
        theorem="B1 and the composition of its steps (docs/proofs/descent.md)",
        numerics="rounded",
        sensitivity=plan.sensitivity,
        sigma=plan.sigma,
        step=None,
        n=plan.n if plan.adjacency == "replace-one" else None,
        domain=region,
        expected_error=None,
        reason=f"{details.steps} steps, {details.law} noise on each mean gradient, output {details.output}",
        reproducible=reproducible,
        descent=details,
    )


@domain_first
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

    Each record pulls with a unit vector wherever it is, so the mean gradient moves by at most 2/n between neighbours,
    on any manifold and for any radius: outliers pull no harder than other records, and the ball only sets where the
    descent starts and how far it may go. `steps` and their sizes are public functions of the ball, n and the budget
    (`median_schedule`); iterates are averaged with weights 2/(t+1). Other arguments as in `private_mean`: `points` in
    every form that can be read more than once, block by block in each step; workers of a Dask cluster keep theirs.
    `state`, a path, lets the descent go on after a crash (`private_descent`).

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
    loss = FrechetMedianLoss(domain)
    held = hold_records(loss, points, group_by=group_by, on_invalid=on_invalid)
    count, sizes = median_schedule(domain, held.count, budget, steps)
    release = private_descent(
        loss,
        held,
        domain,
        budget,
        steps=count,
        step_size=sizes,
        output="weighted-average",
        unit=unit,
        state=state,
        ledger=account.ledger,
        dataset=dataset,
        rng=account.rng,
    )
    return replace(release, value=host(release.value))
