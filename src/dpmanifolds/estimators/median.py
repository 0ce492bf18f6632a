"""The private Fréchet median as a scikit-learn estimator.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.estimators import PrivateFrechetMedian
>>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
>>> model = PrivateFrechetMedian(ball, dpm.GaussianDP(0.5)).fit(dpm.SPD(2).random_point(500, rng=0))
>>> model.median_.shape, model.guarantee_.fits(dpm.GaussianDP(0.5))
((2, 2), True)
"""
# ruff: noqa: N803

from __future__ import annotations

import os
from typing import Any, Self

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Ball
from dpmanifolds.estimators._base import PrivateEstimator
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases import Release, private_median

__all__ = ["PrivateFrechetMedian"]


class PrivateFrechetMedian(PrivateEstimator):
    """The Fréchet median of the records, clipped to a public ball, within a budget: `private_median`.

    It costs more noise than the mean on well-behaved records and less trust in them: outliers pull no harder than
    others. `steps` of the descent is a public number, by default chosen from public facts; with `state`, a path, it
    goes on after a crash (`private_descent`). Parameters and attributes are otherwise those of `PrivateFrechetMean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> model = dpm.PrivateFrechetMedian(ball, dpm.ApproxDP(1.0, 1e-6)).fit(dpm.SPD(2).random_point(500, rng=0))
    >>> model.median_.shape, model.guarantee_.fits(dpm.ApproxDP(1.0, 1e-6))
    ((2, 2), True)
    """

    median_: Array
    release_: Release
    guarantee_: Guarantee

    def __init__(
        self,
        domain: Ball,
        budget: Budget,
        *,
        steps: int | None = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self.domain: Ball = domain
        self.budget = budget
        self.steps = steps
        self.on_invalid = on_invalid
        self.unit = unit
        self.random_state = random_state
        self.state = state
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None) -> Self:
        """Release the median of X (n, *point_shape); `group_by` names a person for each record. `y` is not used."""
        self.release_ = private_median(
            X, self.domain, self.budget, steps=self.steps, group_by=group_by, state=self.state, **self._terms()
        )
        self.manifold_ = self.release_.manifold
        self.median_ = self.release_.value
        self.guarantee_ = self.release_.guarantee
        return self
