"""Persons with records of several classes: one vector for all of them, protected as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, ApproxDP, Ball, Euclidean, GaussianDP, PureDP, ZeroConcentratedDP
from dpmanifolds.auditing.front_door import find_difference, overheard_noise
from dpmanifolds.ledger import Ledger

PLANE = Ball(Euclidean(2), np.zeros(2), 1.0)
CLASSES = ["a", "b", "c"]


def study(persons: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two to five records of every class for each person, and labels and names that go with them."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 6, (persons, 3))
    labels = np.concatenate([np.repeat(CLASSES, row) for row in counts])
    names = np.repeat(np.arange(persons), counts.sum(axis=1))
    records = rng.uniform(-0.5, 0.5, (len(labels), 2)) + 0.1 * (labels == "b")[:, None]
    return records, labels, names


def released(data: tuple[Any, Any, Any], budget: Any = None, **options: Any) -> dpm.ClassMeans:
    records, labels, names = data
    options = {"classes_per_person": 3, "rng": 0} | options
    return dpm.private_class_means(records, labels, PLANE, budget or GaussianDP(1.0), group_by=names, **options)


def sums_of(data: tuple[Any, Any, Any], **options: Any) -> tuple[np.ndarray, list[Any]]:
    """The exact sums of all classes, side by side, and their noise, in whole steps."""
    with overheard_noise() as tap:
        released(data, **options)
    return np.concatenate([each.values for each in tap.said]), [each.law for each in tap.said]


@pytest.mark.parametrize("private", [False, True])
def test_a_class_mean_is_the_mean_of_the_persons_own_means_of_that_class(private: bool) -> None:
    records, labels, names = data = study()
    options: dict[str, Any] = {"private_labels": True, "classes": CLASSES} if private else {}
    found = released(data, GaussianDP(600.0), **options)
    for label, mean in zip(found.classes, found.means, strict=True):
        own = [records[(labels == label) & (names == name)].mean(axis=0) for name in range(30)]
        np.testing.assert_allclose(mean, np.mean(own, axis=0), atol=2e-3)


def test_persons_without_a_class_do_not_count_there() -> None:
    records, labels, names = study()
    kept = ~((labels == "b") & (names < 10))
    found = released((records[kept], labels[kept], names[kept]), GaussianDP(600.0))
    own = [records[(labels == "b") & (names == name)].mean(axis=0) for name in range(10, 30)]
    np.testing.assert_allclose(found.means[1], np.mean(own, axis=0), atol=2e-3)
    assert [release.n for release in found.releases] == [30, 20, 30]


@pytest.mark.parametrize("budget", [PureDP(1.0), GaussianDP(0.7), ApproxDP(1.0, 1e-6), ZeroConcentratedDP(0.3)])
@pytest.mark.parametrize("most", [2, 3, 7])
@pytest.mark.parametrize("private", [False, True])
def test_all_classes_together_keep_the_budget(budget: Any, most: int, private: bool) -> None:
    rng = np.random.default_rng(1)
    labels, names = np.tile(np.arange(most), 40), np.repeat(np.arange(40), most)
    options: dict[str, Any] = {"private_labels": True, "classes": list(range(most))} if private else {}
    found = released((rng.uniform(-1, 1, (40 * most, 2)), labels, names), budget, classes_per_person=most, **options)
    assert found.guarantee.fits(budget, strict=True)
    assert found.guarantee.unit == ("person" if private else "person within class")
    assert {release.guarantee for release in found.releases} == {found.guarantee}


def test_noise_grows_with_the_root_of_the_classes_for_gaussian_and_with_their_number_for_pure_promises() -> None:
    for budget, factor in ((GaussianDP(1.0), np.sqrt(3)), (PureDP(1.0), 3.0)):
        joint = released(study(), budget).releases[0]
        alone = dpm.private_mean(np.zeros((30, 2)), PLANE, budget, refine=0, rng=0)
        assert joint.sigma == pytest.approx(factor * alone.sigma, rel=1e-9)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("private", [False, True])
def test_no_person_moves_the_sums_farther_than_the_noise_is_made_for(private: bool) -> None:
    """Fifty persons that are replaced at random, and the worst: from one end to the other in all classes.

    μ = √(Σ moved²/σ²) stays at 1 and comes within 1e−6 of it.
    """
    rng = np.random.default_rng(2)
    options: dict[str, Any] = {"private_labels": True, "classes": CLASSES} if private else {}
    rest = study(10)

    def with_person(places: np.ndarray, labels: list[str]) -> tuple[Any, Any, Any]:
        return (
            np.concatenate([rest[0], places]),
            np.concatenate([rest[1], labels]),
            np.concatenate([rest[2], np.full(len(labels), 99)]),
        )

    def moved(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> float:
        (first, laws), (second, _) = sums_of(one, **options), sums_of(other, **options)
        return float(np.linalg.norm(first - second) / laws[0].sigma)

    worst = 0.0
    for _ in range(50):
        pair = []
        for _ in range(2):
            labels = [*CLASSES, *rng.choice(CLASSES, rng.integers(0, 5))]
            if private:
                labels = list(rng.choice(CLASSES, rng.integers(1, 8)))
            pair.append(with_person(rng.standard_normal((len(labels), 2)) * rng.choice([0.3, 3.0, 1e6]), labels))
        worst = max(worst, moved(*pair))
    assert worst <= 1 + 1e-12
    ends = [with_person(np.full((3, 2), sign * 9.0), CLASSES) for sign in (1, -1)]
    assert 1 - 1e-6 <= moved(*ends) <= 1 + 1e-12
    if private:
        # from two classes to the third: counts and places of all three move
        gone = with_person(np.full((2, 2), 9.0), ["a", "b"]), with_person(np.full((1, 2), 9.0), ["c"])
        assert 0.5 <= moved(*gone) <= 1


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("weaker", [1.0, 0.7])
def test_the_largest_loss_of_pure_noise_is_the_promise_and_30_percent_too_little_noise_breaks_it(
    private: bool, weaker: float
) -> None:
    """Exactly: the loss of ℓ2-Laplace noise, class by class, reaches the sum of the lengths moved over σ.

    A person of two classes moves across in both of them; or, where labels are private, to the two other classes.
    """
    labels, names = [0, 1, 2, 3] * 50, (np.arange(200) // 2).tolist()
    options: dict[str, Any] = {"private_labels": True, "classes": [0, 1, 2, 3]} if private else {}
    sums = []
    for end, own in ((9.0, [0, 0, 1]), (-9.0, [2, 3] if private else [0, 1])):
        places = np.concatenate([np.zeros((200, 2)), np.full((len(own), 2), end)])
        data = (places, labels + own, names + [999] * len(own))
        with overheard_noise() as tap:
            made = released(data, PureDP(1.0), classes_per_person=2, steps=1, mechanism="wrapped-laplace", **options)
        sums.append(tap.said)
    lengths = [np.linalg.norm(one.values - other.values) for one, other in zip(*sums, strict=True)]
    loss = float(sum(lengths)) / (weaker * sums[0][0].law.sigma)
    assert made.guarantee.as_pure().epsilon == pytest.approx(1.0, rel=1e-12)
    assert loss == pytest.approx(1 / weaker, rel=1e-6)
    assert (loss <= 1 + 1e-12) == (weaker == 1.0)


def test_whoever_has_more_classes_than_allowed_is_refused_before_anything_is_spent(tmp_path: Any) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("study", GaussianDP(5.0), unit="person within class")
    terms = {"ledger": ledger, "dataset": "study", "rng": None}
    with pytest.raises(dpm.ArgumentError, match="classes_per_person a person may have records of 2 classes at most"):
        released(study(), classes_per_person=2, **terms)
    with pytest.raises(dpm.ArgumentError, match="take classes_per_person="):
        released(study(), classes_per_person=1, **terms)
    with pytest.raises(dpm.ArgumentError, match="classes_per_person is for group_by"):
        dpm.private_class_means(*study()[:2], PLANE, GaussianDP(1.0), classes_per_person=2)
    for wrong in (0, 1.5, "all"):
        with pytest.raises(dpm.ArgumentError, match="classes_per_person must be"):
            released(study(), classes_per_person=wrong)
    assert [entry.kind for entry in ledger.entries()] == ["open"]
    released(study(), **terms)
    assert ledger.spent("study").mu == pytest.approx(1.0)


def test_with_private_labels_such_a_person_is_in_no_class_and_nothing_else_differs() -> None:
    """A person of all classes against one without a record of any, and against one with labels that are none."""
    rest = study(12)
    two = np.isin(rest[1], ["a", "b"])
    rest = (rest[0][two], rest[1][two], rest[2][two])

    def with_person(labels: list[Any]) -> tuple[Any, Any, Any]:
        places = np.full((len(labels), 2), 0.7)
        return (
            np.concatenate([rest[0], places]),
            [*rest[1].tolist(), *labels],
            np.concatenate([rest[2], np.full(len(labels), 99)]),
        )

    def door(data: Any, rng: Any) -> dpm.ClassMeans:
        return released(data, classes_per_person=2, private_labels=True, classes=CLASSES, on_invalid="center", rng=rng)

    many, none, few = with_person(list("abc")), with_person([None, "z"]), with_person(list("ab"))
    for one, other in ((many, none), (many, few), (none, few)):
        assert find_difference(door, one, other, rng=0) is None
    with overheard_noise() as tap:
        door(many, 0)
    with overheard_noise() as other_tap:
        door(none, 0)
    assert all(np.array_equal(a.values, b.values) for a, b in zip(tap.said, other_tap.said, strict=True))


def test_a_classifier_learns_from_persons_that_have_every_class() -> None:
    rng = np.random.default_rng(4)
    space = SPD(2)
    labels, names = np.tile([0, 0, 1, 1], 60), np.repeat(np.arange(60), 4)
    records = space.random_point(240, rng=rng) * np.where(labels, 4.0, 1.0)[:, None, None]
    ball = Ball(space, 2 * np.eye(2), 2.0)
    for private in (False, True):
        model = dpm.PrivateMDM(
            ball, PureDP(3.0), classes_per_person=2, private_labels=private, classes=[0, 1], random_state=0
        ).fit(records, labels, group_by=names)
        assert np.mean(model.predict(records) == labels) > 0.8
        assert model.guarantee_.fits(PureDP(3.0))
    with pytest.raises(dpm.ArgumentError, match="same label"):
        dpm.PrivateMDM(ball, PureDP(3.0)).fit(records, labels, group_by=names)


def test_a_class_that_nobody_has_is_released_where_labels_are_private() -> None:
    records, labels, names = study()
    found = released((records, labels, names), private_labels=True, classes=[*CLASSES, "d"])
    assert np.all(np.isfinite(found.means))
