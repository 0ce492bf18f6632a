"""The public functions and the neighbours that they are attacked on: the second table of docs/audits.md.

>>> from audits.doors import DOORS
>>> report = DOORS[0].audit(draws=400, rng=0)
>>> print(DOORS[0].label, report.claim, report.flagged)
private_geodesic_regression, one look on Euclidean(1), Gaussian μ = 1 False

Each row moves one record, or one person, or adds one, so that every noisy sum of the release moves as far as it can:
from a point beyond the edge of the ball to the opposite one, so that clipping shows the same two ends from wherever a
later step looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.auditing.front_door import Door, audit_release, find_difference
from dpmanifolds.auditing.report import AuditReport
from dpmanifolds.domains import Ball, Ellipsoid, WholeSpace
from dpmanifolds.estimators import PrivateLogisticRegression
from dpmanifolds.manifolds import SPD, Euclidean, Grassmann, Hyperbolic, Manifold, SpecialOrthogonal, Sphere
from dpmanifolds.privacy import Budget, GaussianDP, PureDP
from dpmanifolds.releases import (
    private_class_means,
    private_clipped_share,
    private_covariance,
    private_difference,
    private_geodesic_regression,
    private_mean,
    private_mean_and_spread,
    private_variance,
)
from dpmanifolds.releases.clusters import private_kmeans
from dpmanifolds.releases.discriminant import private_discriminant

__all__ = ["DOORS", "DoorRow"]

_N = 20
_PURE, _GAUSSIAN = PureDP(1.0), GaussianDP(1.0)
_WIDE = 2.2
# larger budgets are told apart by fewer draws, where a draw is dear
_MORE_PURE, _MORE_GAUSSIAN = PureDP(2.0), GaussianDP(2.0)
# noise on several numbers shows its largest loss to more draws where that is large
_MOST_PURE = PureDP(4.0)
Data: TypeAlias = tuple[Any, Any]
"""Records, and the labels or the names of persons that go with them."""


@dataclass(frozen=True)
class DoorRow:
    """One public function, called one way, on one pair of neighbours."""

    function: str
    manifold: Manifold
    radius: float
    budget: Budget
    neighbours: str
    call: Callable[[Ball, Budget, Data, Any], Any]
    pair: Callable[[Ball], tuple[Data, Data]]
    effort: float = 1.0
    """How many times the usual draws: pure promises of several sums need more, Gaussian ones fewer."""
    adaptive: bool = False
    """Whether later sums depend on earlier answers: then each draw costs two calls."""

    @property
    def label(self) -> str:
        kind = "pure" if self.budget.bounded_loss else "Gaussian"
        return f"{self.function} on {self.manifold!r}, {kind}"

    @property
    def ball(self) -> Ball:
        return Ball(self.manifold, _center(self.manifold), self.radius)

    def opened(self) -> tuple[Door, Data, Data]:
        """The function of records and noise, and both neighbours."""
        ball = self.ball
        return partial(_called, self.call, ball, self.budget), *self.pair(ball)

    def draws(self, wanted: int) -> int:
        """How many are made where so many are usual."""
        return max(200, round(self.effort * wanted))

    def audit(self, draws: int, noise_factor: float = 1.0, rng: Any = None, *, confidence: float = 0.95) -> AuditReport:
        """Attack with `draws` calls on each neighbour, or with draws from what every call says."""
        release, first, second = self.opened()
        return audit_release(
            release,
            first,
            second,
            draws=draws,
            calls=None if self.adaptive else 20,
            confidence=confidence,
            noise_factor=noise_factor,
            description=self.neighbours,
            rng=rng,
        )

    def find_difference(self, rng: Any = None) -> str | None:
        """What tells the neighbours apart beside their noisy sums; None if nothing does."""
        return find_difference(*self.opened(), rng=rng)


def _called(call: Any, ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    return call(ball, budget, data, rng)


def _center(manifold: Manifold) -> Any:
    """The natural one, or a pole."""
    if manifold.natural_center is not None:
        return manifold.natural_center
    return np.eye(manifold.dim + 1)[-1].reshape(manifold.point_shape)


def _at(ball: Ball, *shares: float) -> np.ndarray:
    """Records along the first axis, at these shares of the radius."""
    along = np.outer(shares, np.eye(ball.manifold.dim)[0])
    return np.asarray(ball.manifold.move(host(ball.center), ball.radius * along))


def _ends(ball: Ball, first: float = 1.3, second: float = -1.3) -> tuple[Data, Data]:
    """One record moves, the others stand at the centre."""
    one, other = (_at(ball, *[0.0] * (_N - 1), end) for end in (first, second))
    return (one, None), (other, None)


def _crowded(ball: Ball) -> tuple[Data, Data]:
    """The others stand at one end, where the mean is: a record there has distance 0 to it, one at the other end 2r."""
    one, other = (_at(ball, *[-1.0] * (_N - 1), end) for end in (3.0, -1.0))
    return (one, None), (other, None)


def _one_more(ball: Ball) -> tuple[Data, Data]:
    return (_at(ball, *[0.0] * (_N - 1), 1.3), None), (_at(ball, *[0.0] * (_N - 1)), None)


def _persons(ball: Ball) -> tuple[Data, Data]:
    """A person with seven records becomes one with a single record, at the other end."""
    rest, names = [0.0] * (2 * (_N - 1)), [number // 2 for number in range(2 * (_N - 1))]
    return (_at(ball, *rest, *[1.3] * 7), [*names, -1, *[-1] * 6]), (_at(ball, *rest, -1.3), [*names, -1])


def _classes(ball: Ball, end: float, label: int) -> tuple[Data, Data]:
    """The last record of class 0 at one end moves to another place, another class, or both."""
    labels = [number % 2 for number in range(_N - 1)]
    one, other = (_at(ball, *[0.0] * (_N - 1), place) for place in (1.3, end))
    return (one, [*labels, 0]), (other, [*labels, label])


def _everywhere(ball: Ball, first: list[int], second: list[int]) -> tuple[Data, Data]:
    """A person with records of the first classes at one end becomes one with records of the second at the other."""
    kinds = sorted({*first, *second})
    labels, names = kinds * (_N - 1), [number // len(kinds) for number in range(len(kinds) * (_N - 1))]
    if len(kinds) > 2:
        # others have two classes each
        labels, names = labels[: 2 * (_N - 1)], [number // 2 for number in range(2 * (_N - 1))]
    one, other = (
        (_at(ball, *[0.0] * len(labels), *[end] * len(own)), ([*labels, *own], [*names, *[-1] * len(own)]))
        for end, own in ((1.3, first), (-1.3, second))
    )
    return one, other


def _pair_of_vectors(ball: Ball, end: tuple[float, float]) -> tuple[Data, Data]:
    """One vector of the plane moves from the right to another end, the others stand at the centre."""
    one, other = (np.concatenate([np.zeros((_N - 1, 2)), ball.radius * np.array([at])]) for at in (_RIGHT, end))
    return (one, None), (other, None)


def _turned_persons(ball: Ball) -> tuple[Data, Data]:
    """A person with seven vectors becomes one with a single vector."""
    (one, _), (other, _) = _pair_of_vectors(ball, _TURNED)
    names = list(range(_N))
    return (np.concatenate([one, np.tile(one[-1:], (6, 1))]), [*names, *names[-1:] * 6]), (other, names)


def _both_halves(ball: Ball) -> tuple[Data, Data]:
    """Two records move, the last of each half."""
    one, other = (_at(ball, *([0.0] * (_N // 2 - 1) + [end]) * 2) for end in (1.3, -1.3))
    return (one, None), (other, None)


def _one_vector_more(ball: Ball) -> tuple[Data, Data]:
    (one, _), _ = _pair_of_vectors(ball, _TURNED)
    return (one, None), (one[:-1], None)


def _mean(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    return private_mean(data[0], ball, budget, rng=rng, **options)


def _mean_anywhere(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    return private_mean(data[0], WholeSpace(ball.manifold, ball.center), budget, kind="extrinsic", rng=rng)


def _shaped_mean(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    """In an ellipsoid whose longest axis is the ball's radius, along the first coordinate."""
    body = Ellipsoid(ball.manifold, ball.center, ball.radius * np.geomspace(1.0, 0.2, ball.manifold.dim))
    return private_mean(data[0], body, budget, rng=rng, **options)


def _sampled_mean(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    """With a public sample of pairs at opposite sides of the centre, the widest along the first coordinate."""
    dim = ball.manifold.dim
    ways = ball.radius * np.geomspace(0.3, 0.05, dim)[:, None] * np.eye(dim)
    sample = ball.manifold.move(host(ball.center), np.concatenate([ways, -ways, 0.5 * ways, -0.5 * ways]))
    return private_mean(data[0], ball, budget, public_sample=sample, rng=rng)


def _grouped_mean(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    return private_mean(data[0], ball, budget, group_by=data[1], rng=rng, **options)


def _class_means(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    return private_class_means(data[0], data[1], ball, budget, rng=rng, **options)


def _sampled_class_means(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    """With public samples of both classes, of other widths: bodies of other axes, wide along the first coordinate."""
    dim = ball.manifold.dim
    ways = ball.radius * np.geomspace(0.3, 0.05, dim)[:, None] * np.eye(dim)
    pairs = np.concatenate([ways, -ways, 0.5 * ways, -0.5 * ways])
    sample = ball.manifold.move(host(ball.center), np.concatenate([pairs, 0.5 * pairs]))
    public = sample, np.repeat([0, 1], len(pairs))
    return private_class_means(
        data[0], data[1], ball, budget, classes=[0, 1], private_labels=True, public_sample=public, rng=rng
    )


def _person_means(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    labels, names = data[1]
    options |= {"classes_per_person": 2, "steps": 1, "rng": rng}
    return private_class_means(data[0], labels, ball, budget, group_by=names, **options)


def _variance(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    return private_variance(data[0], ball, budget, rng=rng)


def _clipped(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    return private_clipped_share(data[0], ball, budget, rng=rng)


def _spread(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    return private_mean_and_spread(data[0], ball, budget, rng=rng)


def _difference(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    """Between the first half of the records and the second; the last record is the one that moves."""
    half = _N // 2
    return private_difference(data[0][:half], data[0][half:], ball, budget, rng=rng, **options)


def _discriminant(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    return private_discriminant(data[0], data[1], ball, budget, classes=(0, 1), rng=rng)


def _logistic(ball: Ball, budget: Budget, data: Data, rng: Any) -> Any:
    """One step from public weights that are sure of themselves, so that a wrong label pulls with all its length."""
    model = PrivateLogisticRegression(
        ball, budget, classes=[0, 1], initial=([[0.0, 1e5]], [0.0]), steps=1, random_state=rng
    )
    return model.fit(*data).release_


def _mistaken(ball: Ball) -> tuple[Data, Data]:
    """A record of class 0 where weights are sure of 1 becomes one of class 1 nearby, where they are sure of 0."""
    others = [[0.0, 0.0]] * (_N - 1)
    ends = (([[3.0, 0.03]], 0), ([[3.0, -0.03]], 1))
    one, other = ((ball.radius * np.array(others + end), [0] * (_N - 1) + [label]) for end, label in ends)
    return one, other


def _covariance(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    return private_covariance(data[0], ball, budget, group_by=data[1], rng=rng, **options)


def _regression(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    return private_geodesic_regression(data[0], data[1], ball, budget, covariate_bounds=(-1, 1), rng=rng, **options)


def _clusters(ball: Ball, budget: Budget, data: Data, rng: Any, **options: Any) -> Any:
    return private_kmeans(data[0], 2, ball, budget, centers=_at(ball, 0.5, -0.5), rng=rng, **options)


def _across_in_time(ball: Ball, first: float = 1.0, second: float = 1.0) -> tuple[Data, Data]:
    """The last record moves across at the end of its covariate, which may change too; others are in the middle."""
    (one, _), (other, _) = _ends(ball)
    return (one, np.append(np.zeros(_N - 1), first)), (other, np.append(np.zeros(_N - 1), second))


_ONE, _TWO = partial(_mean, steps=1), partial(_mean, steps=2)
_ADDED = partial(_mean, steps=1, adjacency="add-remove-one", n_guess=_N)
_SHAPED_ADDED = partial(_shaped_mean, adjacency="add-remove-one", n_guess=_N)
_EXTRINSIC, _ANYWHERE = partial(_mean, kind="extrinsic"), _mean_anywhere
_REFINED = partial(_mean, steps=1, refine=1)
_BY_AXES = partial(_mean, refine="axes")
_AXES_ADDED = partial(_BY_AXES, adjacency="add-remove-one", n_guess=_N)
_PRIVATE = partial(_class_means, steps=1, classes=[0, 1], private_labels=True)
_ACROSS = "from beyond the edge to the opposite side"
_RIGHT, _UP = (3.0, 0.0), (0.0, 3.0)
_TURNED, _INSIDE = (-0.75, 3 * np.sqrt(15 / 16)), (-0.225, 0.9 * np.sqrt(15 / 16))
"""A cosine of −κ²/r² = −1/4: there squares and mean together move farthest. Inside: into another bin of the counts."""
_SQUARES = partial(_covariance, about="origin", method="one-shot")
_AT_ONCE = partial(_covariance, method="one-shot")
_LENGTHS = partial(_covariance, about="origin", method="radius")
_MORE_VECTORS = partial(_AT_ONCE, adjacency="add-remove-one", n_guess=_N)
_CENTERED = partial(_covariance, method="center")
_BOTH = partial(_difference, disjoint=False)
_S1, _S2, _LINE, _SPD, _PLANE = Sphere(1), Sphere(2), Euclidean(1), SPD(2), Euclidean(2)
_LINES = Grassmann(3, 1)


def _rows() -> tuple[DoorRow, ...]:
    grouped, public = partial(_grouped_mean, steps=1), partial(_class_means, steps=1)
    moved, relabelled, both = (
        partial(_classes, end=end, label=label) for end, label in ((-1.3, 0), (1.3, 1), (-1.3, 1))
    )
    one_more = "with a record beyond the edge, and without"
    persons = "a person with seven records at one end, with one at the other"
    other_label, other_both = "the same record, of the other class", "from one end of class 0 to the other of class 1"
    bins, reach = (
        "across, from the last bin of the histogram to another",
        "from the others at the edge to beyond the other",
    )
    across_both = partial(_everywhere, first=[0, 0, 1], second=[0, 1, 1])
    to_others = partial(_everywhere, first=[0, 0, 1], second=[2, 3, 3])
    by_person, by_secret = _person_means, partial(_person_means, classes=[0, 1, 2, 3], private_labels=True)
    orthogonal, turned = "from beyond the edge to a right angle there", "from beyond the edge to a cosine of −1/4 there"
    bins_too, to_center = "the same, into another bin of the counts", "from beyond the edge to the centre"
    right_and_up, across, inwards = (partial(_pair_of_vectors, end=end) for end in (_UP, _TURNED, _INSIDE))
    mistaken = "a record and its label, between two that public weights are sure of and wrong about"
    leaving = partial(_ends, first=1.3, second=0.0)
    edges, in_both = "from one side of the edge to the other", _ACROSS + ", in both groups"
    sides, poles, lines = (
        partial(_ends, first=first, second=second) for first, second in ((1, -1), (0, np.pi), (0, np.pi / 2))
    )
    # how it is called, where a pure and where a Gaussian promise is attacked, on which neighbours, how often
    fixed: list[tuple[str, Manifold, Manifold, str, Any, Any, float]] = [
        ("private_mean, one step", _S2, _SPD, _ACROSS, _ONE, _ends, 1.0),
        ("private_mean, one record more", _S1, _S2, one_more, _ADDED, _one_more, 1.0),
        ("private_mean, in an ellipsoid", _S2, _SPD, _ACROSS, _shaped_mean, _ends, 1.0),
        ("private_mean, in an ellipsoid, one record more", _S2, _SPD, one_more, _SHAPED_ADDED, _one_more, 2.0),
        ("private_mean, with a public sample", _S2, _SPD, _ACROSS, _sampled_mean, _ends, 1.0),
        ("private_mean, group_by", _S2, _S2, persons, grouped, _persons, 1.0),
        ("private_mean, extrinsic", _S1, SpecialOrthogonal(2), edges, _EXTRINSIC, sides, 1.5),
        ("private_mean, extrinsic, anywhere", _S1, _S2, "from one pole to the other", _ANYWHERE, poles, 1.5),
        ("private_class_means, public labels", _S2, _S2, _ACROSS, public, moved, 1.5),
        ("private_class_means, private labels", _LINE, _S2, _ACROSS, _PRIVATE, moved, 3.0),
        ("private_class_means, private labels, label changed", _LINE, _S2, other_label, _PRIVATE, relabelled, 3.0),
        ("private_class_means, private labels, both changed", _LINE, _S2, other_both, _PRIVATE, both, 3.0),
        ("private_class_means, with public samples", _LINE, _S2, other_both, _sampled_class_means, both, 3.0),
        ("PrivateLogisticRegression", _PLANE, _PLANE, mistaken, _logistic, _mistaken, 3.0),
        ("private_covariance, squares alone", _PLANE, _PLANE, orthogonal, _SQUARES, right_and_up, 3.0),
        ("private_mean_and_spread", _LINE, _PLANE, _ACROSS, _spread, _ends, 3.0),
        ("private_clipped_share", _S2, _SPD, "from beyond the edge to the centre", _clipped, leaving, 1.0),
        ("private_difference", _LINE, _PLANE, _ACROSS + ", in one group", _difference, _ends, 3.0),
    ]
    in_two, everywhere = "private_class_means, persons in two classes", "a person of both classes moves across"
    gone = "private labels: a person of two classes becomes one of two others"
    fixed.append((in_two, _LINE, _S2, everywhere, by_person, across_both, 3.0))
    outwards = partial(_ends, first=3.0, second=0.0)
    far, inner = partial(_ends, first=3.0, second=-3.0), partial(_ends, first=1.3, second=-0.95)
    adaptive: list[tuple[str, Manifold, float, Budget, str, Any, Any, float]] = [
        ("private_mean, two steps", _S1, 1.0, _MORE_PURE, _ACROSS, _TWO, _ends, 0.25),
        ("private_mean, two steps", _S2, 1.0, _MORE_GAUSSIAN, _ACROSS, _TWO, _ends, 0.075),
        ("private_mean, two steps", Hyperbolic(2), 1.5, _MORE_GAUSSIAN, _ACROSS, _TWO, far, 0.075),
        ("private_mean, refine=1", _LINE, 1.0, _MORE_PURE, bins, _REFINED, inner, 0.25),
        ("private_mean, refine=1", _LINE, 1.0, _MORE_GAUSSIAN, bins, _REFINED, inner, 0.075),
        ("private_mean, refine='axes'", _PLANE, 1.0, _MORE_GAUSSIAN, _ACROSS, _BY_AXES, far, 0.1),
        (
            "private_mean, refine='axes', one record more",
            _PLANE,
            1.0,
            _MORE_GAUSSIAN,
            one_more,
            _AXES_ADDED,
            _one_more,
            0.1,
        ),
        ("private_variance", _LINE, 1.0, _MORE_PURE, reach, _variance, _crowded, 0.3),
        ("private_variance", _LINE, 1.0, _MORE_GAUSSIAN, reach, _variance, _crowded, 0.075),
        ("private_mean_and_spread", _S2, 1.0, _MORE_GAUSSIAN, _ACROSS, _spread, _ends, 0.075),
        ("private_mean_and_spread", Hyperbolic(2), 1.5, _MORE_GAUSSIAN, _ACROSS, _spread, far, 0.075),
        ("private_discriminant", _S2, 1.0, _MORE_GAUSSIAN, _ACROSS, _discriminant, moved, 0.075),
        ("private_covariance, radius first", _LINE, 1.0, _MORE_PURE, to_center, _LENGTHS, outwards, 0.5),
        ("private_covariance, radius first", _LINE, 1.0, _MORE_GAUSSIAN, to_center, _LENGTHS, outwards, 0.075),
        ("private_covariance, centre first", _PLANE, 1.0, _MORE_GAUSSIAN, bins_too, _CENTERED, inwards, 0.2),
    ]
    at_end, both_ends = _across_in_time, partial(_across_in_time, second=-1.0)
    late, over = "across, at the upper bound of the covariate", "across, from the upper bound to the lower"
    look, looks = partial(_regression, steps=1), partial(_regression, steps=2)
    one_round, rounds = partial(_clusters, rounds=1), partial(_clusters, rounds=2)
    swap = "from beyond the edge of one cluster to that of the other"
    fixed.append(("PrivateKMeans, one round", _LINE, _S2, swap, one_round, far, 3.0))
    adaptive += [
        ("private_geodesic_regression, two looks", _LINE, 1.0, _MORE_GAUSSIAN, late, looks, at_end, 0.075),
        ("private_geodesic_regression, two looks", _S2, 1.0, _MORE_GAUSSIAN, late, looks, at_end, 0.075),
        ("PrivateKMeans, two rounds", _S2, 1.0, _MORE_GAUSSIAN, swap, rounds, _ends, 0.075),
    ]
    # under a pure ε noise on six numbers, or on many sums, shows too little of it to an attack of this size:
    # tests/audits/test_largest_losses.py has that exactly
    several: list[tuple[str, str, Any, Any]] = [
        ("private_covariance, squares and mean", turned, _AT_ONCE, across),
        ("private_covariance, one vector more", one_more, _MORE_VECTORS, _one_vector_more),
        ("private_covariance, group_by", persons, _AT_ONCE, _turned_persons),
        ("private_difference, people in both groups", in_both, _BOTH, _both_halves),
    ]
    regression = "private_geodesic_regression, one look"
    made = [
        DoorRow(regression, space, 1.0, _GAUSSIAN, told, look, pair, 0.5)
        for space, told, pair in ((_LINE, late, at_end), (_S2, over, both_ends))
    ]
    made.append(DoorRow(regression, _LINE, 1.0, _MORE_PURE, late, look, at_end, 4.0))
    for name, pure, gaussian, told, call, pair, effort in fixed:
        made.append(DoorRow(name, pure, 1.0, _PURE, told, call, pair, effort))
        made.append(DoorRow(name, gaussian, 1.0, _GAUSSIAN, told, call, pair, 0.5))
    # Wishart noise: one record more shows all that it loses
    wishart = "private_covariance, one vector more"
    made.append(DoorRow(wishart, _PLANE, 1.0, _MOST_PURE, one_more, _MORE_VECTORS, _one_vector_more, 4.0))
    # pure noise of four classes hides its worst case from draws: tests/releases/test_class_persons.py has it exactly
    made.append(DoorRow(in_two, _S1, 1.0, _GAUSSIAN, gone, by_secret, to_others, 0.5))
    for name, told, call, pair in several:
        made.append(DoorRow(name, _PLANE, 1.0, _GAUSSIAN, told, call, pair, 0.5))
    apart = "from a line to one across"
    made += [
        DoorRow("private_mean, extrinsic, lines", _LINES, 1.0, budget, apart, _ANYWHERE, lines, effort)
        for budget, effort in ((_MORE_PURE, 4.0), (_GAUSSIAN, 0.5))
    ]
    # in so wide a ball it is taken in place of the Fréchet mean, and a quarter turn to either side is as far as can be
    quarter = np.pi / 2 / _WIDE
    made += [
        DoorRow("private_mean, extrinsic, as it comes", space, _WIDE, budget, "half a turn", _mean, turn, effort)
        for space, budget, effort, turn in (
            (_S1, _PURE, 1.5, partial(_ends, first=quarter, second=-quarter)),
            (_S2, _GAUSSIAN, 0.5, partial(_ends, first=quarter, second=-quarter)),
        )
    ]
    return (*made, *(DoorRow(*row, adaptive=True) for row in adaptive))


DOORS = _rows()
