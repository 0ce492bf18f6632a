"""The Fréchet median by private descent: unit gradients, so the noise does not grow with the ball.

>>> import numpy as np
>>> from dpmanifolds import ApproxDP, Ball, SPD
>>> from dpmanifolds.descent import descend_to_median
>>> ball = Ball(SPD(2), np.eye(2), 2.0)
>>> result = descend_to_median(SPD(2).random_point(500, rng=0), ball, ApproxDP(1.0, 1e-6))
>>> result.guarantee.fits(ApproxDP(1.0, 1e-6)), result.clip
(True, 1.0)
"""

from __future__ import annotations

import math
from typing import Any

from dpmanifolds._validate import shown
from dpmanifolds.descent.descent import DescentResult, private_descent
from dpmanifolds.descent.losses.frechet import FrechetMedianLoss
from dpmanifolds.descent.noise_plan import plan_descent
from dpmanifolds.descent.records import hold_records
from dpmanifolds.descent.step_sizes import GeometricSteps
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget
from dpmanifolds.privacy.budget import checked_budget

__all__ = ["descend_to_median", "median_schedule"]

_FIRST = 0.5
_FINEST = 1e-4
_COARSEST = 0.1


def median_schedule(ball: Ball, n: int, budget: Budget, steps: int | None = None) -> tuple[int, GeometricSteps]:
    """T and the step sizes, from the ball, n and the budget alone.

    Let a be the typical length of the noise of a single-step run: 2√d/(nμ), or 2d/(nε) under a pure budget. Steps
    shrink geometrically from r/2 to a·r/2 (a cut to [1e−4, 0.1]). Gaussian noise per step grows as √T while averaging
    wins it back, so T = 8 steps per factor e costs nothing; ℓ2-Laplace noise grows as T, so there T = 2 per factor e.

    >>> import numpy as np
    >>> from dpmanifolds import ApproxDP, Ball, Sphere
    >>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0)
    >>> median_schedule(ball, 1000, ApproxDP(1.0, 1e-6))[0]
    36
    """
    pure = checked_budget(budget).bounded_loss
    noise = plan_descent(n=n, clip=1.0, budget=budget, steps=1).noise
    typical = noise * (ball.manifold.dim if pure else math.sqrt(ball.manifold.dim))
    last = _FIRST * min(max(typical, _FINEST), _COARSEST)
    if steps is None:
        steps = math.ceil((2 if pure else 8) * math.log(_FIRST / last))
    return steps, GeometricSteps(_FIRST * ball.radius, last * ball.radius)


def descend_to_median(
    points: Any,
    ball: Ball,
    budget: Budget,
    *,
    steps: int | None = None,
    group_by: Any = None,
    on_invalid: str = "raise",
    rng: Any = None,
    **options: Any,
) -> DescentResult:
    """argmin (1/n)Σρ(w, x_i) over the ball, privately: noisy unit gradients from the centre, averaged on the way.

    Each record pulls with a unit vector wherever it is, so the mean gradient moves by at most 2/n between neighbours,
    on any manifold and for any radius (Theorem S3); outliers pull no harder than others. Step sizes and their
    number come from `median_schedule`; iterates are clipped to the ball and averaged with weights 2/(t+1), all of it
    post-processing. `options` go to `private_descent` (ledger, dataset, progress, …).

    >>> import numpy as np
    >>> from dpmanifolds import SPD, ApproxDP, Ball
    >>> from dpmanifolds.descent import descend_to_median
    >>> ball = Ball(SPD(2), np.eye(2), radius=2.0)
    >>> result = descend_to_median(SPD(2).random_point(500, rng=0), ball, ApproxDP(1.0, 1e-6), steps=4)
    >>> result.steps, bool(ball.contains(result.point))
    (4, True)
    """
    if not isinstance(ball, Ball):
        raise ArgumentError(f"ball must be a Ball, the public promise about where records live; got {shown(ball)}.")
    loss = FrechetMedianLoss(ball)
    guess = options.get("n_guess")
    held = hold_records(loss, points, group_by=group_by, on_invalid=on_invalid, may_be_empty=guess is not None)
    count, sizes = median_schedule(ball, held.count if guess is None else guess, budget, steps)
    settings: dict[str, Any] = {"output": "weighted-average", "within": ball, "step_size": sizes} | options
    return private_descent(
        loss,
        held,
        ball.manifold,
        start=ball.center,
        budget=budget,
        steps=count,
        rng=rng,
        **settings,
    )
