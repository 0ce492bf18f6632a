"""Private logistic regression on tangent coordinates: noisy gradients of records that are integers one by one.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.estimators import PrivateLogisticRegression
>>> X = np.random.default_rng(0).standard_normal((2000, 2)) + np.repeat([[1.0, 0.0], [-1.0, 0.0]], 1000, axis=0)
>>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=3.0)
>>> model = PrivateLogisticRegression(ball, dpm.ApproxDP(1.0, 1e-6), classes=["a", "b"], random_state=0)
>>> model.fit(X, np.repeat(["a", "b"], 1000)).predict([[2.0, 0.0], [-2.0, 0.0]]).tolist()
['a', 'b']
"""
# ruff: noqa: N803, N806

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._points import count_records, cut_tile, host, leaves, on_host
from dpmanifolds._validate import hide_records, positive_integer
from dpmanifolds.descent.losses import LogisticLoss
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.estimators._arguments import keep_weighted, row_of_labels
from dpmanifolds.estimators._base import PrivateClassifier
from dpmanifolds.privacy import Budget, affordable_epsilon, affordable_mu
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.records.blocks import record_form
from dpmanifolds.records.persons import persons_of
from dpmanifolds.releases import Release, private_descent
from dpmanifolds.releases.classes import read_classes
from dpmanifolds.releases.statistic import check_domain
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.total import tile_size

_STEPS, _PURE_STEPS = 12, 4


class PrivateLogisticRegression(PrivateClassifier):
    """Classes told apart by logistic regression on log at the public centre of a ball; labels are protected.

    A record is its coordinates at the centre of the `domain`, shortened to the radius, and the number of its class; on
    `Euclidean(p)` these are tables (n, p), so that it can stand behind `PrivateTangentSpace` in a pipeline. Weights
    come from `private_descent` with `LogisticLoss`: every step adds noise to a mean of gradients each of which became
    integers on its own, and the promise is the exact composition of the steps. Two classes have one vector of weights,
    more have one each (softmax), with intercepts.

    Parameters
    ----------
    <domain, budget>
    classes : list
        The labels, as those that occur are private.
    initial : pair (coef, intercept), default=None
        Public weights w₀ to start from and to be pulled to, as scikit-learn's models have them.
    penalty : float or "auto"
        λ of (λ/2)|w − w₀|². By default λ = 5ν²/t², ν the deviation of one noisy mean gradient that gets the whole
        budget and t how far a coordinate is expected to change the odds of a class, as a logarithm: 1, or less where
        public weights are so small that twice their length would not do it.
    steps : int, default=None
        Of 1/L each, L a bound on the curvature of the loss: 12, or 4 under a pure budget.
    <on_invalid, unit, random_state, state, ledger, dataset>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = np.concatenate([dpm.SPD(2).random_point(600, rng=0), 3 * dpm.SPD(2).random_point(600, rng=1)])
    >>> y, ball = np.repeat([0, 1], 600), dpm.Ball(dpm.SPD(2), 2 * np.eye(2), radius=2.0)
    >>> model = dpm.PrivateLogisticRegression(ball, dpm.GaussianDP(1.0), classes=[0, 1], random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, model.guarantee_.fits(dpm.GaussianDP(1.0)), model.coef_.shape
    ((2, 2), True, (1, 3))
    """

    classes: Sequence[Any]
    initial: tuple[Any, Any] | None
    penalty: float | str
    steps: int | None
    state: str | os.PathLike[str] | None
    coef_: np.ndarray
    """Weights of coordinates at the centre (1, dim), or (classes, dim) for more than two classes."""
    intercept_: np.ndarray
    """One for each row of weights."""
    penalty_: float
    """The one that was taken, from public facts."""
    release_: Release
    """The release behind the fit."""

    def __init__(
        self,
        domain: Ball | None = None,
        budget: Budget | None = None,
        *,
        classes: Sequence[Any],
        initial: tuple[Any, Any] | None = None,
        penalty: float | str = "auto",
        steps: int | None = None,
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, *, group_by: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release weights for records X (n, *point_shape) with labels y (n,).

        `group_by`, or `groups`, names a person for each record: the mean of a person's gradients is then one term. Of
        public weights 0 drops a record, all others must be equal.
        """
        group_by = self._begin(X, group_by, groups)
        X, y, group_by = keep_weighted(sample_weight, X, row_of_labels(self, y), group_by)
        checked_budget(self.budget)
        domain = check_domain(self.domain, ball_for="logistic regression")
        names = np.unique(np.asarray(self.classes)).tolist()
        if len(names) < 2:
            raise ArgumentError(f"must name two labels or more; got {len(names)}.", argument="classes")
        default = _PURE_STEPS if self.budget.bounded_loss else _STEPS
        steps = default if self.steps is None else positive_integer("steps", self.steps)
        rows = coordinates_of_records(domain, X)
        count = len(rows) if group_by is None else persons_of(group_by, len(rows)).count
        loss = self._loss(domain, len(names), count)
        numbers, _ = read_classes(y, len(rows), names, private=True, lenient=self.on_invalid == "center")
        self.release_ = private_descent(
            loss,
            (rows, numbers.astype(np.float64)),
            loss.manifold,
            self.budget,
            start=np.zeros(loss.manifold.dim) if loss.start is None else loss.start,
            steps=steps,
            step_size=1 / loss.smoothness,
            group_by=group_by,
            state=self.state,
            **self._terms(),
        )
        weights = np.asarray(self.release_.value).reshape(loss.rows, loss.features + 1)
        self._live_on(domain.manifold)
        self._ball = domain
        self.classes_ = np.asarray(names)
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1] * loss.constant
        self.guarantee_, self.penalty_ = self.release_.guarantee, float(loss.penalty)
        self._n_features_out = loss.rows
        return self

    def _loss(self, domain: Domain, classes: int, n: int) -> LogisticLoss:
        """The loss, with public weights to start from in the units of its parameter."""
        plain = LogisticLoss(domain.manifold.dim, classes, domain.radius, ball=domain)
        given: Any = self.penalty
        automatic = given == "auto"
        if self.initial is None:
            return replace(plain, penalty=_default_penalty(plain, self.budget, n) if automatic else given)
        coef, intercept = (np.asarray(part, dtype=np.float64) for part in self.initial)
        wanted = (plain.rows, plain.features)
        if coef.shape != wanted or intercept.shape != wanted[:1]:
            raise ArgumentError(
                f"must be coef of shape {wanted} and intercept of shape {wanted[:1]}, from public records; got "
                f"{coef.shape} and {intercept.shape}.",
                argument="initial",
            )
        length = float(np.sqrt(np.sum(coef**2) / plain.rows))
        penalty = _default_penalty(plain, self.budget, n, length) if automatic else given
        start = np.concatenate([coef, intercept[:, None] / plain.constant], axis=1).ravel()
        return replace(plain, penalty=penalty, start=start)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) for two classes, above 0 for the second; (n, classes) for more."""
        scores = self.transform(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def transform(self, X: Any) -> np.ndarray:
        """Scores as columns (n, 1), or (n, classes)."""
        check_is_fitted(self)
        rows = np.asarray(self.manifold_.log_coordinates(host(self._ball.center), self._points(X)))
        return np.asarray(_shorten(rows, self._ball.radius) @ self.coef_.T + self.intercept_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class (n, classes)."""
        scores = self.transform(X)
        if scores.shape[1] == 1:
            scores = np.concatenate([-scores / 2, scores / 2], axis=1)
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each record."""
        check_is_fitted(self)
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


def _default_penalty(loss: LogisticLoss, budget: Budget, n: int, length: float | None = None) -> float:
    """5ν²/t²: the variance ν² of the noise over that of a weight, (t√d/R)², and its Hessian, R²/5d.

    A coordinate of records that fill a ball of radius R has the variance R²/d, and P(1 − P) is about a fifth. Public
    weights of some `length` |w₀| are expected to be off by 2|w₀| in all: t√d/R = 2|w₀|/√d, where that is less than with
    t = 1. All of them together may always change the odds by a factor of e at the edge of the ball.
    """
    moved = 2 * loss.bound / n
    if length is not None:
        moved *= max(1.0, loss.features / max(2 * loss.radius * length, 1.0))
    if budget.bounded_loss:
        return 5 * (loss.manifold.dim + 1) * (moved / affordable_epsilon(budget)) ** 2
    return 5 * (moved / affordable_mu(budget)) ** 2


def _shorten(rows: np.ndarray, radius: float) -> np.ndarray:
    return np.asarray(rows * (radius / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), radius)))


def coordinates_of_records(domain: Domain, X: Any) -> np.ndarray:
    """Coordinates (n, dim) at the centre of a ball, in tiles of one shape; NaN for a record that is malformed.

    A point of the manifold that is out of reach of floating point is no malformed record, and has 0.
    """
    manifold, center = domain.manifold, host(domain.center)
    look = TangentContribution(manifold, center)
    with hide_records():
        block = on_host(look.form(record_form(manifold, X)))
        count, size = count_records(block), tile_size(leaves(block), look.tile_bytes)
        tiles = (cut_tile(block, first, size, center, in_doubles=True) for first in range(0, count, size))
        pieces = [_seen_or_centre(look, tile) for tile in tiles]
        return np.asarray(np.concatenate(pieces)[:count])


def _seen_or_centre(look: TangentContribution, tile: Any) -> np.ndarray:
    rows, broken = look.seen(tile)
    lost = (broken == 0) & ~np.all(np.isfinite(rows), axis=1)
    return np.where(lost[:, None], 0.0, rows)
