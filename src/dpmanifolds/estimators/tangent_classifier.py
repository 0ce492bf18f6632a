"""A private linear classifier in a tangent space, helped by public subjects.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> X = np.concatenate([dpm.SPD(2).random_point(300, rng=0), 3 * dpm.SPD(2).random_point(300, rng=1)])
>>> ball = dpm.Ball(dpm.SPD(2), 2 * np.eye(2), radius=2.0)
>>> model = dpm.PrivateTangentClassifier(ball, dpm.GaussianDP(1.0), classes=["rest", "task"], random_state=0)
>>> model.fit(X, np.repeat(["rest", "task"], 300)).predict(np.stack([np.eye(2), 4 * np.eye(2)])).tolist()
['rest', 'task']
"""
# ruff: noqa: N803

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.estimators._arguments import row_of_labels
from dpmanifolds.estimators._base import PrivateClassifier
from dpmanifolds.estimators.congruence import Congruence
from dpmanifolds.manifolds import SPD, Manifold
from dpmanifolds.manifolds.spd import SPDBase
from dpmanifolds.privacy import Budget, GaussianDP, PureDP, affordable_epsilon, affordable_mu
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.records.persons import persons_of
from dpmanifolds.releases.discriminant import Contrasts, Discriminant, private_discriminant
from dpmanifolds.statistics import frechet_mean

Subjects = list[tuple[Array, np.ndarray]]

_FILTERS = (4, 6, 8, 12, 16)
_MOST_CHANNELS = 12
_INSIDE = 0.9
_KEPT_RECORDS = 4000
_GOOD_MEAN = 1e-3  # of a public subject: a hundredth of what noise leaves of a private one
_CLOSE = 0.005
_LARGEST_REHEARSED = 500.0  # a budget that leaves no noise to speak of, and is still one


class PrivateTangentClassifier(PrivateClassifier):
    """Two classes told apart by the sign of a score ⟨w, log_p x⟩ − t, with private p, w and t; labels are protected.

    The direction w is that of one label-signed tangent sum (`private_discriminant`), which has √2 less noise than two
    class means. Say how related public subjects are to the private records, and compare with what they reach alone.

    Parameters
    ----------
    domain : Ball or None
        A ball around a public centre that holds the records; None where public subjects say where records live.
    <budget>
    classes : list of two
        The labels, as those that occur are private.
    public : list of pairs (points, labels), default=None
        Labelled records of public subjects, or of one: a public part of the same records will do. They help in five
        ways, none of which looks at the private records: spatial filters for matrices (`Congruence.from_public`); a
        centre, and radii for clipping; what contrast to expect, towards which the noisy one is shrunk; how records
        spread within classes, against which the direction is weighed; and how many filters to take.
    filters : int, "auto" or None
        How many; "auto" takes what does best when each public subject in turn plays the private one, with as much noise
        as there will be.
    shares : three numbers, default=(0.3, 0.55, 0.15)
        Of the budget, for the centre, the direction and the threshold.
    <shared>

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = np.concatenate([dpm.SPD(2).random_point(300, rng=0), 3 * dpm.SPD(2).random_point(300, rng=1)])
    >>> y, ball = np.repeat([0, 1], 300), dpm.Ball(dpm.SPD(2), 2 * np.eye(2), radius=2.0)
    >>> model = dpm.PrivateTangentClassifier(ball, dpm.GaussianDP(1.0), classes=[0, 1], random_state=0).fit(X, y)
    >>> bool(np.mean(model.predict(X) == y) > 0.8), model.guarantee_.fits(dpm.GaussianDP(1.0))
    (True, True)
    """

    classes: Sequence[Any]
    public: Sequence[tuple[Any, Any]] | None
    filters: int | str | None
    shares: Sequence[float]
    discriminant_: Discriminant
    """The releases behind the classifier."""
    filters_: Congruence | None
    """The public filters that records pass before anything else."""

    def __init__(
        self,
        domain: Ball | None = None,
        budget: Budget | None = None,
        *,
        classes: Sequence[Any],
        public: Sequence[tuple[Any, Any]] | None = None,
        filters: int | str | None = "auto",
        shares: Sequence[float] = (0.3, 0.55, 0.15),
        on_invalid: str = "raise",
        unit: str | None = None,
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, *, group_by: Any = None, groups: Any = None) -> Self:
        """Release the centre, the direction and the threshold for X (n, *point_shape) with labels y (n,).

        `group_by`, or `groups`, names a person for each record; all records of a person must have the same label.
        """
        group_by = self._begin(X, group_by, groups)
        checked_budget(self.budget)
        names = _sorted(self.classes)
        count = _count(X) if group_by is None else persons_of(group_by, _count(X)).count
        domain, contrasts, filters = self._public_part(names, count)
        self.discriminant_ = private_discriminant(
            X if filters is None else filters.transform(X),
            row_of_labels(self, y),
            domain,
            self.budget,
            classes=names,
            public=contrasts,
            shares=self.shares,
            group_by=group_by,
            **self._terms(),
        )
        self._live_on(self.discriminant_.manifold)
        self.filters_ = filters
        self.classes_ = np.asarray(names)
        self.guarantee_ = self.discriminant_.guarantee
        self._n_features_out = 1
        return self

    def _public_part(self, names: list[Any], n: int) -> tuple[Ball, Contrasts | None, Congruence | None]:
        """The domain, what public subjects say, and the filters: everything that is known before records are."""
        if self.public is None:
            if not isinstance(self.domain, Ball):
                raise ArgumentError(
                    f"must be a Ball, or None where public subjects tell where records live; got "
                    f"{type(self.domain).__name__}.",
                    argument="domain",
                )
            if not (self.filters is None or self.filters == "auto"):
                raise ArgumentError("needs public subjects to take the filters from.", argument="filters")
            return self.domain, None, None
        subjects = read_subjects(self.public, names)
        manifold = _manifold_of(self.domain, subjects)
        if self.filters is None or not isinstance(manifold, SPDBase):
            return *learn_contrasts(manifold, subjects), None
        if self.filters == "auto":
            return self._best_filters(manifold, subjects, names, n)
        return _filtered(manifold, subjects, self.filters)

    def _best_filters(
        self, manifold: SPDBase, subjects: Subjects, names: list[Any], n: int
    ) -> tuple[Ball, Contrasts, Congruence]:
        """As many filters as do best on public subjects, each playing the private one in turn; fewer where it is close.

        Either half of that subject's records is learned from once, with the noise that n records get, and the other
        half is told apart.
        """
        channels = subjects[0][0].shape[-1]
        counts = [count for count in _FILTERS if count < channels]
        counts += [channels] if channels <= _MOST_CHANNELS else []
        played = subjects if len(subjects) > 1 else _halves(*subjects[0])
        turns = range(len(played))
        found = np.array(
            [np.ravel([self._rehearse(manifold, played, held, k, names, n) for held in turns]) for k in counts]
        )
        told = found.mean(axis=1)
        return _filtered(manifold, subjects, counts[int(np.argmax(told >= told.max() - _CLOSE))])

    def _rehearse(
        self, manifold: SPDBase, subjects: Subjects, held: int, count: int, names: list[Any], n: int
    ) -> list[float]:
        """The share of either half of a public subject's records that is told apart by what the other half teaches."""
        others = [each for number, each in enumerate(subjects) if number != held]
        domain, contrasts, filters = _filtered(manifold, others, count)
        points, labels = filters.transform(subjects[held][0]), subjects[held][1]
        half, shares = len(labels) // 2, []
        for learned, asked in ((slice(None, half), slice(half, None)), (slice(half, None), slice(None, half))):
            model = private_discriminant(
                points[learned],
                labels[learned],
                domain,
                _with_noise_of(self.budget, n / len(labels[learned])),
                classes=names,
                public=contrasts,
                shares=self.shares,
                rng=held,
            )
            above = model.scores(points[asked]) > model.threshold
            shares.append(float(np.mean(above == (labels[asked] == names[1]))))
        return shares

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores less the threshold: above 0 for the second class."""
        check_is_fitted(self)
        points = self._points(X if self.filters_ is None else self.filters_.transform(X))
        return self.discriminant_.scores(points) - self.discriminant_.threshold

    def transform(self, X: Any) -> np.ndarray:
        """`decision_function` as a column (n, 1)."""
        return self.decision_function(X)[:, None]

    def predict(self, X: Any) -> np.ndarray:
        """The class of each record."""
        check_is_fitted(self)
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])


def _sorted(classes: Any) -> list[Any]:
    """Scorers of scikit-learn count on sorted classes."""
    names = np.unique(np.asarray(classes)).tolist()
    if len(names) > 2:
        raise ArgumentError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"name two labels instead of {len(names)}, or take PrivateMDM or PrivateLogisticRegression.",
            argument="classes",
        )
    if len(names) != 2:
        raise ArgumentError(f"must name two labels; got {len(names)}.", argument="classes")
    return list(names)


def _count(X: Any) -> int:
    rows = X if hasattr(X, "__len__") or not hasattr(X, "__array__") else np.asarray(X)
    if not hasattr(rows, "__len__") or len(rows) == 0:
        raise ArgumentError("must be an array of records (n, *point_shape), with at least one.", argument="X")
    return len(rows)


def read_subjects(public: Any, names: list[Any]) -> Subjects:
    """Public subjects as arrays, each with records of both classes, or an error that says which is not."""
    found: Subjects = []
    for number, pair in enumerate(public):
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ArgumentError("must be a list of pairs (points, labels), one for each subject.", argument="public")
        points, labels = host(np.asarray(pair[0])), np.asarray(pair[1])
        if labels.shape != points.shape[:1] or sorted(np.unique(labels).tolist()) != sorted(names):
            raise ArgumentError(
                f"subject {number} must have one label for each record, and both of {names}.", argument="public"
            )
        if min(np.sum(labels == name) for name in names) < 2:
            raise ArgumentError(f"subject {number} needs two records of either class.", argument="public")
        found.append((points, labels))
    if not found:
        raise ArgumentError("must hold at least one subject; leave it out to go without.", argument="public")
    return found


def _halves(points: Array, labels: np.ndarray) -> Subjects:
    """One subject as two, each with every other record of either class."""
    turn = np.zeros(len(labels), dtype=bool)
    for name in np.unique(labels):
        turn[np.flatnonzero(labels == name)[::2]] = True
    return [(points[part], labels[part]) for part in (turn, ~turn)]


def _manifold_of(domain: Domain | None, subjects: Subjects) -> Manifold:
    """That of the domain; without one, matrices with the affine-invariant metric."""
    if domain is not None:
        return domain.manifold
    shape = subjects[0][0].shape
    if len(shape) != 3 or shape[1] != shape[2]:
        raise ArgumentError("must say on which manifold records live, where they are no matrices.", argument="domain")
    return SPD(shape[1])


def _filtered(manifold: SPDBase, subjects: Subjects, count: Any) -> tuple[Ball, Contrasts, Congruence]:
    filters = Congruence.from_public(subjects, count)
    seen = [(filters.transform(points), labels) for points, labels in subjects]
    return *learn_contrasts(SPD(seen[0][0].shape[-1], metric=manifold.metric), seen), filters


def learn_contrasts(manifold: Manifold, subjects: Subjects) -> tuple[Ball, Contrasts]:
    """What public subjects say about where records live, how they spread, and how classes differ.

    The ball holds nine of ten public records, around the mean of the subjects' means; what is known at a subject's own
    mean is carried along the geodesic to that centre.
    """
    names = np.unique(subjects[0][1])
    means = [frechet_mean(manifold, points, tolerance=_GOOD_MEAN).point for points, _ in subjects]
    center = frechet_mean(manifold, np.stack(means)).point if len(means) > 1 else means[0]
    away = np.stack([manifold.log_coordinates(center, mean) for mean in means])
    seen, around, signed = [], [], []
    for (points, labels), mean in zip(subjects, means, strict=True):
        vectors = manifold.transport(mean, center, manifold.log(mean, points))
        rows = np.asarray(manifold.to_coordinates(center, vectors))
        seen.append(rows)
        first, second = (rows[labels == name].mean(axis=0) for name in names)
        signed.append((second - first) / 2)
        around.append(rows - np.where((labels == names[1])[:, None], second, first))
    rows = np.concatenate(seen)
    reach = np.concatenate([manifold.dist(center, points) for points, _ in subjects])
    spread = float(np.quantile(np.linalg.norm(rows, axis=1), _INSIDE))
    # one subject says nothing about others: as far apart as its own records
    between = float(np.sum(away**2)) / max(len(means) - 1, 1) if len(means) > 1 else spread**2
    radius = min(float(np.quantile(reach, _INSIDE)), 0.999 * manifold.injectivity_radius)
    kept = np.concatenate(around)[:: max(1, len(rows) // _KEPT_RECORDS)]
    balance = np.array([2 * np.mean(labels == names[1]) - 1 for _, labels in subjects])
    deviation = float(np.sqrt(between / manifold.dim))
    contrasts = Contrasts(deviation, spread, np.stack(signed), kept, balance, _disagreement(around))
    return Ball(manifold, center, max(radius, spread)), contrasts


def _disagreement(around: list[np.ndarray]) -> float:
    """How little public records say about another subject's covariance, between 0 and 1 (after Ledoit and Wolf 2004).

    The square by which a new subject's is expected to be off the average, over what the average and it are off a
    multiple of the identity; where there is one subject, by which its average over records is off.
    """
    each = [rows.T @ rows / len(rows) for rows in around]
    average, subjects = np.mean(each, axis=0), len(each)
    shape = average - np.trace(average) / len(average) * np.eye(len(average))
    if subjects > 1:
        off = sum(float(np.sum((own - average) ** 2)) for own in each) / (subjects - 1) * (1 + 1 / subjects)
    else:
        rows = around[0]
        off = float(np.mean(np.sum(rows**2, axis=1) ** 2) - np.sum(average**2)) / len(rows)
    return off / max(off + float(np.sum(shape**2)), 1e-300)


def _with_noise_of(budget: Budget, ratio: float) -> Budget:
    """A budget under which fewer records get the noise that `ratio` times as many get under this one."""
    if budget.bounded_loss:
        return PureDP(min(affordable_epsilon(budget) * ratio, _LARGEST_REHEARSED))
    return GaussianDP(min(affordable_mu(budget) * ratio, _LARGEST_REHEARSED))
