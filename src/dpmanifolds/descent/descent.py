"""Private Riemannian gradient descent whose promise is exact.

>>> import numpy as np
>>> from dpmanifolds import ApproxDP, Ball, SPD
>>> from dpmanifolds.descent import FrechetMeanLoss, private_descent
>>> manifold = SPD(3)
>>> ball = Ball(manifold, np.eye(3), radius=2.0)
>>> records = manifold.random_point(2000, rng=0)
>>> result = private_descent(
...     FrechetMeanLoss(ball), records, manifold, start=ball.center, budget=ApproxDP(1.0, 1e-6), steps=5, step_size=0.5
... )
>>> result.guarantee.fits(ApproxDP(1.0, 1e-6)), result.point.shape
(True, (3, 3))

w_{t+1} = exp_{w_t}(−η_t ζ_t), where ζ_t is the mean of the per-record Riemannian gradients, each clipped to the norm C
around a public vector, plus noise N(0, σ²I) in orthonormal coordinates of the tangent space at w_t (Han et al. 2022,
Algorithm 1). Everything but the records is public: start, step sizes, C, T, σ, n. All iterates w_1, …, w_T together
carry the promise (docs/proofs/descent.md), so callbacks may look at them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, is_numpy
from dpmanifolds._points import host, leaves
from dpmanifolds._validate import choice, hide_records, positive_integer, positive_number, shown
from dpmanifolds.descent.draws import Charge, open_ledger, paid_draws
from dpmanifolds.descent.losses.loss import Loss, OuterLoss, like_point
from dpmanifolds.descent.moves import is_finite
from dpmanifolds.descent.noise_plan import plan_descent
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.descent.records import HeldRecords, hold_records
from dpmanifolds.descent.run import Run
from dpmanifolds.descent.step_sizes import StepRule, step_sizes
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity
from dpmanifolds.privacy.guarantee import ADJACENCIES

__all__ = ["DescentResult", "private_descent"]

OUTPUTS = ("last", "random", "average", "weighted-average")


@dataclass(frozen=True, eq=False)
class DescentResult:
    """What a private run gives away: a point and the public numbers behind it.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.descent import EigenvectorLoss
    >>> loss = EigenvectorLoss(dimension=3, radius=1.0)
    >>> records = np.random.default_rng(0).standard_normal((2000, 3)) * [0.5, 0.1, 0.1]
    >>> result = dpm.private_descent(
    ...     loss, records, loss.manifold, start=[0.6, 0.8, 0.0], budget=dpm.GaussianDP(1.0), steps=3, step_size=1.0
    ... )
    >>> result.steps, result.clip, result.numerics, result.guarantee.fits(dpm.GaussianDP(1.0))
    (3, 1.0, 'rounded', True)
    """

    point: Array
    guarantee: Guarantee
    manifold: Manifold
    noise: float
    """σ per coordinate of each mean gradient (the scale of the ℓ2-Laplace under a pure budget)."""
    sensitivity: Sensitivity
    """Of one step's mean gradient."""
    clip: float
    steps: int
    """Steps that led here; the guarantee also covers `lost_steps`."""
    batch_size: int | None
    sampling: str
    law: str
    output: str
    numerics: str
    reproducible: bool
    lost_steps: int = 0


def private_descent(
    loss: Loss | Callable[[Any, Any], Any],
    records: Any,
    manifold: Manifold,
    *,
    start: Any,
    budget: Budget | None = None,
    steps: int | None = None,
    step_size: float | StepRule | Callable[[int], float] | Any,
    clip: float | None = None,
    noise: float | None = None,
    batch_size: int | None = None,
    sampling: str = "poisson",
    output: str = "last",
    retraction: bool = False,
    within: Domain | None = None,
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
) -> DescentResult:
    """T noisy gradient steps under a promise that composes them exactly.

    Give two of `budget`, `steps` and `noise` (σ on the mean gradient); the third is solved for, and the guarantee fits
    the budget. `clip` is C; without it the loss's own proven bound is used. `batch_size` b: random batches of mean
    size b, each record with probability b/n ("poisson", the sum divided by b whatever came), or exactly b
    ("without-replacement"). Budgets in μ or ρ gain nothing from random batches: no number below that of the full
    batch is known for these, so give them (ε, δ).

    `output`: w_T; a uniformly random one of w_0, …, w_{T−1}; or the geodesic average w̄_{t+1} = exp_{w̄_t}(a·log w_{t+1})
    with a = 1/(t+1) or 2/(t+1). `within`: a public domain to which every iterate is clipped; `longest_step` cuts
    the length of every step (on a `Power` of each copy).

    Each record's gradient becomes integers on its own; they are summed exactly and integer noise of exact law is added
    once, so that the promise holds for every floating-point arithmetic (docs/proofs/sums.md).

    `group_by`: a person's name for each record. The mean of the integers of a person's records is then one term of the
    sum, and n and b count persons: one person moves the sum by at most 2C (`sums.total`).

    `adjacency="add-remove-one"`: neighbours have one record (person) more or less, so that their number is private
    too. The sum is divided by the public `n_guess`; a record moves it by C. Random batches are then Poisson ones: each
    record with probability b/n_guess, the sum divided by b.

    `callback(t, w)` sees each iterate. `ledger` is charged under `dataset` before the first draw. `state` is a path,
    for runs with a ledger: iterates are saved there after every draw and the same call goes on after a crash, with the
    same records, data set and settings, without a second charge. The ledger counts the draws, and pays for no more
    than `steps`: one that was taken and not saved is left out (`lost_steps`). Only the newest state can be resumed,
    and one result is told.

    `records` may also be a memory map, a Zarr array, a function that returns a fresh iterator over blocks, or a Dask
    array (a tuple of them where records are tuples): every step is then a pass over blocks. Workers of a Dask cluster
    prepare their chunks once and keep them, and send sums; batches and noise are drawn here. The promise and the
    result are those of the same records in one array.

    `on_invalid`: malformed records (off the manifold, not finite) raise an error that names none, before anything is
    spent and outside of the guarantee; "center" puts a public record in their place, inside of it. A well-formed record
    whose gradient is not finite counts as zero.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.descent import EigenvectorLoss
    >>> loss = EigenvectorLoss(dimension=3, radius=1.0)
    >>> records = np.random.default_rng(0).standard_normal((5000, 3)) * [0.5, 0.1, 0.1]
    >>> budget = dpm.ApproxDP(1.0, 1e-6)
    >>> result = dpm.private_descent(
    ...     loss, records, loss.manifold, start=[0.6, 0.8, 0.0], budget=budget, steps=20, step_size=1.0
    ... )
    >>> result.guarantee.fits(budget), bool(abs(result.point[0]) > 0.9)
    (True, True)
    """
    loss = as_loss(loss, manifold)
    w = checked_start(manifold, start)
    choice("output", output, OUTPUTS)
    if "average" in output and manifold.max_radius == 0:
        raise ArgumentError(
            f"output={output!r} needs logarithms, which {manifold!r} lacks far from a point: use 'last'."
        )
    if within is not None and not (isinstance(within, Domain) and within.manifold == manifold):
        raise ArgumentError(f"within must be a Domain of {manifold!r}; got {shown(within)}.")
    ledger = open_ledger(ledger, dataset, state, rng)
    longest = None if longest_step is None else positive_number("longest_step", longest_step)
    private_count = choice("adjacency", adjacency, ADJACENCIES) == "add-remove-one"
    if private_count is (n_guess is None):
        raise ArgumentError(
            "n_guess, a public guess of the number of records, goes with adjacency='add-remove-one': give both or none."
        )
    held = hold_records(loss, records, group_by=group_by, on_invalid=on_invalid, may_be_empty=private_count)
    loss = loss.for_records(held.reference)
    clip = clip_norm(loss, clip)
    plan = plan_descent(
        n=positive_integer("n_guess", n_guess) if private_count else held.count,
        clip=clip,
        budget=budget,
        steps=steps,
        noise=noise,
        batch_size=batch_size,
        sampling=sampling,
        unit=held.unit_of(loss) if unit is None else unit,
        adjacency=adjacency,
    )
    sizes = step_sizes(step_size, steps=plan.steps, noise=plan.noise, dim=manifold.dim)
    source = NoisyGradient(loss, held, plan, as_generator(rng))
    probe_gradients(source, w)
    run = Run(manifold, plan, sizes, output, retraction, within, longest, source, callback, progress)
    charge = Charge(
        ledger,
        dataset,
        plan.guarantee,
        plan.steps,
        "descent",
        run.public_settings(budget),
        (loss, within, sizes),
        reproducible=rng is not None,
    )
    with paid_draws(charge, {"point": w, "chosen": w}, state=state, records=held) as draws:
        outcome = run.go(draws)
    return DescentResult(
        point=returned_point(outcome.point, held, private_count),
        guarantee=plan.guarantee,
        manifold=manifold,
        noise=plan.noise,
        sensitivity=plan.sensitivity,
        clip=clip,
        steps=outcome.steps,
        batch_size=plan.batch_size,
        sampling=sampling if plan.batch_size else "full batch",
        law=plan.law,
        output=output,
        numerics="rounded",
        reproducible=rng is not None,
        lost_steps=outcome.lost,
    )


def as_loss(loss: Any, manifold: Manifold) -> Loss:
    check_manifold(manifold)
    if not isinstance(loss, Loss):
        if not callable(loss):
            raise ArgumentError(f"must be a Loss or a function loss(w, record); got {shown(loss)}.", argument="loss")
        from dpmanifolds.descent.losses.autograd import AutogradLoss

        return AutogradLoss(loss, manifold)
    if loss.manifold != manifold:
        raise ArgumentError(f"the loss is for parameters on {loss.manifold!r}; manifold is {manifold!r}.")
    return loss


def checked_start(manifold: Manifold, start: Any) -> Any:
    """One point of the manifold, as NumPy in double precision."""
    point = manifold.as_points(start, "start")
    if manifold.batch_shape(point) != ():
        raise ArgumentError(f"start must be one point of {manifold!r}; got leading axes {manifold.batch_shape(point)}.")
    w = host(point)
    if not (is_finite(w) and bool(manifold.belongs(w))):
        raise NotOnManifoldError(f"start does not lie on {manifold!r}; use manifold.project to put it there.")
    return w


def returned_point(point: Any, held: HeldRecords, private_count: bool = False) -> Any:
    """The point in the library of the records; NumPy keeps double precision.

    Of records that come in blocks there may be none that would tell, where their number is protected: then NumPy's.
    """
    if private_count and not held.given.is_in_memory:
        return point
    return point if all(map(is_numpy, leaves(held.reference))) else like_point(point, held.reference)


def clip_norm(loss: Loss, clip: float | None) -> float:
    if clip is not None:
        return positive_number("clip", clip)
    if loss.bound is None:
        raise ArgumentError(
            "this loss has no proven bound on its gradients: give clip, the public norm to which per-record gradients "
            "are shortened. It must not be read off the records."
        )
    return loss.bound


def probe_gradients(source: NoisyGradient, w: Any) -> None:
    """Whether gradients have the right shape and integers can hold the noise: public facts, told before spending."""
    loss = source.loss
    _ = source.exponent
    if isinstance(loss, OuterLoss) or source.records.source.count == 0:
        return
    with np.errstate(all="ignore"), hide_records():
        rows = loss.gradients(w, source.records.head())
    expected = (1, loss.manifold.dim)
    if getattr(rows, "shape", None) is None or tuple(rows.shape) != expected:
        raise ArgumentError(
            f"gradients must be coordinates of shape (records, dim) = {expected}; got {getattr(rows, 'shape', None)}. "
            "Use manifold.to_coordinates(w, gradient) for tangent vectors."
        )
