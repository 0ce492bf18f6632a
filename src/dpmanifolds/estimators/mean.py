"""The private Fréchet mean as a scikit-learn estimator.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.estimators import PrivateFrechetMean
>>> ball = dpm.Ball(dpm.SPD(3), np.eye(3), radius=2.0)
>>> model = PrivateFrechetMean(ball, dpm.PureDP(1.0)).fit(dpm.SPD(3).random_point(500, rng=0))
>>> model.mean_.shape, model.guarantee_.as_pure()
((3, 3), PureDP(epsilon=1.0))
"""
# ruff: noqa: N803

from __future__ import annotations

from typing import Any, Self

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Domain
from dpmanifolds.estimators._base import PrivateEstimator
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases import Release, private_mean

__all__ = ["PrivateFrechetMean"]


class PrivateFrechetMean(PrivateEstimator):
    """The Fréchet mean of the records, clipped to a public domain, within a budget: `private_mean`.

    Each `fit` is one release and spends the budget once. `random_state` is for tests and teaching: None draws from
    the secure source, and only such fits are taken by a `ledger` (a path, or a `Ledger`, which can be cloned too).

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> model = dpm.PrivateFrechetMean(ball, dpm.PureDP(1.0)).fit(dpm.SPD(2).random_point(500, rng=0))
    >>> model.mean_.shape, model.guarantee_.fits(dpm.PureDP(1.0))
    ((2, 2), True)
    """

    mean_: Array
    release_: Release
    guarantee_: Guarantee

    def __init__(
        self,
        domain: Domain,
        budget: Budget,
        *,
        mechanism: str = "auto",
        numerics: str = "safe",
        refine: int = 0,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self.domain = domain
        self.budget = budget
        self.mechanism = mechanism
        self.numerics = numerics
        self.refine = refine
        self.on_invalid = on_invalid
        self.unit = unit
        self.random_state = random_state
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: Any = None, *, group_by: Any = None) -> Self:
        """Release the mean of X (n, *point_shape); `group_by` names a person for each record. `y` is not used."""
        self.release_ = private_mean(
            X,
            self.domain,
            self.budget,
            mechanism=self.mechanism,
            numerics=self.numerics,
            refine=self.refine,
            group_by=group_by,
            **self._terms(),
        )
        self.manifold_ = self.release_.manifold
        self.mean_ = self.release_.value
        self.guarantee_ = self.release_.guarantee
        return self
