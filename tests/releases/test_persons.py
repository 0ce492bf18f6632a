"""Several records of one person: one point per person, one person per point, and refusals before anything is drawn."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import ArgumentError, Ball, PureDP
from dpmanifolds._points import host
from dpmanifolds.intrinsic.frechet import by_person, clipped_records
from dpmanifolds.ledger import Ledger
from dpmanifolds.privacy import sensitivity_of_mean, sensitivity_of_variance
from dpmanifolds.records.persons import persons_of

BALLS = {
    "affine-invariant": Ball(dpm.SPD(2), np.eye(2), 1.5),
    "log-euclidean": Ball(dpm.SPD(2, "log-euclidean"), np.eye(2), 1.5),
    "sphere": Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 0.7),
    "hyperbolic": Ball(dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 1.5),
    "shapes": Ball(dpm.PlanarShapes(4), dpm.PlanarShapes(4).random_point(rng=9), 0.5),
    "product": Ball(dpm.Product(dpm.Sphere(2), dpm.Euclidean(2)), (np.array([0.0, 0.0, 1.0]), np.zeros(2)), 0.7),
}
every_ball = pytest.mark.parametrize("ball", BALLS.values(), ids=BALLS)


def taken(records, rows):
    return tuple(part[rows] for part in records) if isinstance(records, tuple) else records[rows]


def joined(*parts):
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return np.concatenate(parts)


def visits(ball, seed=0, persons=20, most=5):
    """Records in and around the ball, from one to five of each person, in no order."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, most + 1, size=persons)))
    return ball.manifold.random_point(len(names), rng=rng), names


def points_of_persons(ball, records, names):
    """The same by hand: clip, and take the mean of each name."""
    clipped = clipped_records(records, ball, "raise")
    means = [dpm.frechet_mean(ball.manifold, taken(clipped, names == name)).point for name in np.unique(names)]
    return tuple(map(np.stack, zip(*means, strict=True))) if isinstance(means[0], tuple) else np.stack(means)


@every_ball
def test_grouping_is_the_mean_of_each_person(ball):
    records, names = visits(ball)
    found = by_person(ball, clipped_records(records, ball, "raise"), names)
    assert np.max(ball.manifold.dist(found, points_of_persons(ball, records, names))) < 1e-7
    assert np.all(ball.contains(found))


@every_ball
def test_a_mean_of_persons_is_that_of_their_tangent_means(ball):
    """One step: every person counts with the mean of the logs of their clipped records at the centre."""
    records, names = visits(ball)
    manifold, center = ball.manifold, host(ball.center)
    logs = manifold.log_coordinates(center, ball.clip(records))
    means = np.stack([logs[names == name].mean(axis=0) for name in np.unique(names)])
    release = dpm.private_mean(records, ball, dpm.GaussianDP(600.0), group_by=names, steps=1, rng=3)
    assert release.n == 20
    assert np.allclose(release.coordinates, means.mean(axis=0), atol=10 * release.sigma)


def worst_person(ball, sign, count):
    """`count` records at the edge of the ball, in one of two opposite directions."""
    step = np.zeros((count, ball.manifold.dim))
    step[:, 0] = sign * ball.radius
    vectors = ball.manifold.from_coordinates(ball.center, step)
    return ball.manifold.exp(ball.center, vectors)


@pytest.mark.grid(at_most=1)
@every_ball
def test_replacing_all_records_of_a_person_moves_no_more_than_one_point_may(ball):
    """Any number of records, at opposite ends of the ball or anywhere: Theorems S1 and S1v for n persons."""
    n, manifold = 8, ball.manifold
    bounds = float(sensitivity_of_mean(ball, n)), float(sensitivity_of_variance(ball, n))
    moved = np.zeros(2)
    for seed in range(6):
        others, names = visits(ball, seed, persons=n - 1)
        found = []
        for person in (
            worst_person(ball, 1, 1),
            worst_person(ball, -1, 40),
            manifold.random_point(7, rng=seed),
        ):
            count = manifold.batch_shape(person)[0]
            records = clipped_records(joined(others, person), ball, "raise")
            points = by_person(ball, records, np.concatenate([names, np.full(count, n)]))
            mean = dpm.frechet_mean(manifold, points).point
            found.append((mean, float(np.mean(manifold.dist(mean, points) ** 2))))
        for first in found:
            for second in found:
                moved = np.maximum(moved, [manifold.dist(first[0], second[0]), abs(first[1] - second[1])])
    assert np.all(moved <= np.array(bounds) * (1 + 1e-9))
    # the attack has teeth: a person who counted as 40 records would move the mean several times as far
    assert moved[0] > bounds[0] / 4


def test_a_person_who_counted_once_per_record_would_be_caught():
    ball = BALLS["log-euclidean"]
    records, names = visits(ball, persons=7)
    means = [
        dpm.frechet_mean(ball.manifold, ball.clip(joined(records, worst_person(ball, sign, 40)))).point
        for sign in (1, -1)
    ]
    assert ball.manifold.dist(*means) > 2 * float(sensitivity_of_mean(ball, len(np.unique(names)) + 1))


def test_malformed_records_of_a_person_count_as_the_centre():
    ball = BALLS["affine-invariant"]
    records, names = visits(ball)
    spoilt = records.copy()
    spoilt[names == 3] = np.nan
    mended = np.where((names == 3)[:, None, None], ball.center, records)
    for release in (dpm.private_mean, dpm.private_median, dpm.private_variance):
        one = release(spoilt, ball, PureDP(1.0), group_by=names, on_invalid="center", rng=0)
        other = release(mended, ball, PureDP(1.0), group_by=names, rng=0)
        assert np.allclose(one.value, other.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (np.arange(5), "as many names"),
        (np.zeros((60, 1)), "as many names"),
        ([], "as many names"),
        (["ann"] * 59 + [""], "at least one name is missing"),
        (["ann"] * 59 + ["  "], "at least one name is missing"),
        ([1.0] * 59 + [np.nan], "at least one name is missing"),
        (np.array(["ann"] * 59 + [None], dtype=object), "missing"),
        (["ann"] * 59 + [Decimal("NaN")], "at least one name is missing"),
        (np.array(["ann"] * 59 + [[7]], dtype=object), "numbers or strings"),
        (np.array(["2020-01-01"] * 59 + ["NaT"], dtype="M8[D]"), "at least one name is missing"),
    ],
    ids=["too few", "a column", "none", "empty", "blank", "nan", "None", "no decimal", "mixed", "no time"],
)
def test_names_that_name_nobody_are_refused_and_not_quoted(tmp_path, names, message):
    ball = BALLS["sphere"]
    records = ball.clip(ball.manifold.random_point(60, rng=0))
    ledger = Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("clinic", PureDP(10.0))
    account = {"ledger": ledger, "dataset": "clinic", "group_by": names}
    labels = np.repeat(["a", "b"], 30)
    for call in (
        lambda: dpm.private_mean(records, ball, PureDP(1.0), **account),
        lambda: dpm.private_median(records, ball, PureDP(1.0), **account),
        lambda: dpm.private_variance(records, ball, PureDP(1.0), **account),
        lambda: dpm.private_class_means(records, labels, ball, PureDP(1.0), **account),
    ):
        with pytest.raises(ArgumentError, match=message) as refusal:
            call()
        assert "ann" not in str(refusal.value)
    assert ledger.spent("clinic") is None


@pytest.mark.parametrize(
    "names",
    [[7.0] * 59 + ["7"], [*range(58), 58.0, b"058"], np.array(["7"] * 59 + ["7.0"]), ["bob"] * 59 + ["bob\t"]],
    ids=["number and text", "bytes", "two files", "blank"],
)
def test_one_name_in_two_spellings_is_refused(names):
    """A column of IDs with a gap comes as 7.0, another as 7: one person would be protected by half."""
    records = np.zeros((60, 1))
    with pytest.raises(ArgumentError, match="spells a name in two ways"):
        dpm.private_mean(records, Ball(dpm.Euclidean(1), [0.0], 1.0), PureDP(1.0), group_by=names)


class TestClassMeans:
    """Persons of one class each."""

    ball = BALLS["affine-invariant"]

    def labelled(self):
        records, names = visits(self.ball, persons=30)
        return records, names, np.where(names % 3 == 0, "left", "right")

    @pytest.mark.parametrize("private_labels", [False, True])
    def test_they_are_those_of_records_grouped_by_hand(self, private_labels):
        records, names, labels = self.labelled()
        options = {"classes": ["left", "right"], "private_labels": private_labels, "rng": 5, "steps": 1}
        grouped = dpm.private_class_means(records, labels, self.ball, dpm.GaussianDP(600.0), group_by=names, **options)
        logs = self.ball.manifold.log_coordinates(self.ball.center, self.ball.clip(records))
        for name, release in zip(("left", "right"), grouped.releases, strict=True):
            own = [logs[names == person].mean(axis=0) for person in np.unique(names[labels == name])]
            assert np.allclose(release.coordinates, np.mean(own, axis=0), atol=30 * release.sigma)
        if not private_labels:
            assert [release.n for release in grouped.releases] == [10, 20]

    def test_a_person_of_two_classes_is_refused_before_anything_is_spent(self, tmp_path):
        records, names, labels = self.labelled()
        name = next(name for name in range(30) if np.sum(names == name) > 1)
        labels[np.flatnonzero(names == name)[0]] = "left" if name % 3 else "right"
        ledger = Ledger(tmp_path / "privacy.ledger")
        ledger.open_dataset("clinic", PureDP(10.0))
        account = {"ledger": ledger, "dataset": "clinic", "group_by": names}
        for private in (False, True):
            with pytest.raises(ArgumentError, match="same label") as refusal:
                dpm.private_class_means(
                    records,
                    labels,
                    self.ball,
                    PureDP(1.0),
                    classes=["left", "right"],
                    private_labels=private,
                    **account,
                )
            assert str(name) not in str(refusal.value)
        assert ledger.spent("clinic") is None

    def test_with_private_labels_such_a_person_is_in_no_class_inside_of_the_promise(self):
        records, names, labels = self.labelled()
        mixed, unknown = labels.copy(), labels.copy()
        mixed[np.flatnonzero(names == 4)[:1]] = "left"
        unknown[names == 4] = "neither"
        if np.sum(names == 4) == 1:
            pytest.fail("the made-up person needs two records")
        options = {"classes": ["left", "right"], "private_labels": True, "on_invalid": "center", "rng": 1}
        one, other = (
            dpm.private_class_means(records, each, self.ball, PureDP(2.0), group_by=names, **options)
            for each in (mixed, unknown)
        )
        assert np.array_equal(one.means, other.means)


def test_persons_know_their_records():
    persons = persons_of(np.array(["b", "a", "b", "c", "b"]), 5)
    assert persons.count == 3
    assert persons.numbers.tolist() == [1, 0, 1, 2, 1]
    assert persons.sizes.tolist() == [1, 3, 1]
    assert persons.rows(1).tolist() == [0, 2, 4]
    some = persons.of(np.array([2, 1]))
    assert some.order.tolist() == [3, 0, 2, 4]
    assert some.sizes.tolist() == [1, 3]
    values = np.arange(10.0).reshape(5, 2)
    assert np.array_equal(persons.means(values), [values[1], values[[0, 2, 4]].mean(axis=0), values[3]])


class _Tensor:
    """A number of an array library that is equal, and hashed, by identity, as those of PyTorch are."""

    ndim = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def item(self) -> int:
        return self.value


def test_names_are_compared_as_numbers_and_what_is_equal_to_itself_alone_is_refused():
    """Two names of one person that are equal to nothing but themselves would make two persons of one."""
    assert persons_of([_Tensor(1), _Tensor(1), 2], 3).count == 2
    assert persons_of(np.array([_Tensor(1), 1, _Tensor(2)], dtype=object), 3).count == 2
    for names in ([object(), object()], np.array([object(), 1], dtype=object)):
        with pytest.raises(ArgumentError, match="numbers or strings"):
            persons_of(names, 2)
