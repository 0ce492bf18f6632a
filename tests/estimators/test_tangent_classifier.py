"""The private tangent classifier: public subjects help, and nothing of the private records is looked at for it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm
from dpmanifolds.estimators import Congruence, PrivateTangentClassifier
from dpmanifolds.estimators.tangent_classifier import learn_contrasts

CHANNELS, BUDGET = 6, dpm.ApproxDP(3.0, 1e-5)


def subject(seed, trials=120, mixing=None):
    """Matrices of 60 samples of six sources, two of which change with the class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(trials) % 2
    logs = 0.3 * rng.standard_normal((trials, CHANNELS))
    logs[:, 0] += 0.8 * (2 * labels - 1)
    logs[:, 1] -= 0.8 * (2 * labels - 1)
    mixing = np.eye(CHANNELS) + 0.2 * rng.standard_normal((CHANNELS, CHANNELS)) if mixing is None else mixing
    seen = mixing @ (rng.standard_normal((trials, CHANNELS, 60)) * np.exp(logs / 2)[..., None])
    return seen @ np.swapaxes(seen, 1, 2) / 60, labels


PUBLIC = [subject(seed) for seed in (1, 2, 3)]


def model(**given):
    options = {"classes": [0, 1], "public": PUBLIC, "random_state": 0} | given
    return PrivateTangentClassifier(None, BUDGET, **options)


def test_it_tells_new_trials_apart_within_its_budget():
    points, labels = subject(10, 300)
    fitted = model().fit(points[:240], labels[:240])
    assert np.mean(fitted.predict(points[240:]) == labels[240:]) > 0.85
    assert fitted.guarantee_.fits(BUDGET, strict=True)
    assert fitted.decision_function(points[240:]).shape == (60,)
    assert fitted.transform(points[240:]).shape == (60, 1)


def test_the_public_part_does_not_look_at_private_records():
    points, labels = subject(10, 100)
    one = model().fit(points, labels)
    other = model().fit(3 * points[::-1], 1 - labels)
    assert np.array_equal(one.filters_.filters, other.filters_.filters)
    sums = [fitted.discriminant_.releases[1] for fitted in (one, other)]
    assert sums[0].sigma == sums[1].sigma


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("filters", [4, "auto", None])
def test_filters_are_common_spatial_patterns_of_public_subjects(filters):
    points, labels = subject(10, 200)
    fitted = model(filters=filters).fit(points, labels)
    if filters is None:
        assert fitted.filters_ is None
    elif filters == 4:
        assert np.allclose(fitted.filters_.filters, Congruence.from_public(PUBLIC, 4).filters)
    with pytest.warns(dpm.UnprotectedScoreWarning):
        assert fitted.score(points, labels) > 0.8


def test_labels_may_be_words_and_classes_are_sorted():
    points, labels = subject(10, 200)
    words = np.array(["rest", "hand"])[labels]
    public = [(x, np.array(["rest", "hand"])[y]) for x, y in PUBLIC]
    fitted = model(classes=["rest", "hand"], public=public).fit(points, words)
    assert fitted.classes_.tolist() == ["hand", "rest"]
    assert np.mean(fitted.predict(points) == words) > 0.8


def test_it_is_an_estimator_that_can_be_cloned_and_stands_in_a_pipeline():
    points, labels = subject(10, 200)
    chain = make_pipeline(
        Congruence.from_public(PUBLIC, 4),
        clone(model(public=None)).set_params(domain=dpm.Ball(dpm.SPD(4), np.eye(4), 4.0)),
    )
    assert chain.fit(points, labels).predict(points).shape == (200,)


def test_a_pure_budget_and_one_subject_will_do():
    points, labels = subject(10, 200)
    fitted = PrivateTangentClassifier(None, dpm.PureDP(5.0), classes=[0, 1], public=PUBLIC[:1], random_state=0)
    assert fitted.fit(points, labels).guarantee_.fits(dpm.PureDP(5.0))


def test_covariances_of_public_subjects_are_believed_as_far_as_they_agree():
    """Much said by many records and like subjects, little by few records and by subjects that are turned."""
    rng, space = np.random.default_rng(5), dpm.Euclidean(4)

    def drawn(count, turn):
        labels = np.arange(count) % 2
        return rng.standard_normal((count, 4)) * [2.0, 1.0, 0.5, 0.5] @ turn, labels

    def rounding(sizes, *, turned=False):
        turns = [np.linalg.qr(rng.standard_normal((4, 4)))[0] if turned else np.eye(4) for _ in sizes]
        found = [drawn(size, turn) for size, turn in zip(sizes, turns, strict=True)]
        return learn_contrasts(space, found)[1].rounding

    assert rounding([4000]) < 0.02
    assert rounding([4000] * 4) < 0.02
    assert rounding([12]) > 0.1
    assert rounding([4000] * 4, turned=True) > 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_public_part_of_the_same_records_is_not_lost(epsilon):
    """With one public subject its contrast was left out: 0.71 and 0.92 here, where it alone reaches 1.00."""
    points, labels = subject(10, 900)
    public, learned, asked = slice(100), slice(100, 300), slice(300, None)
    budget = dpm.ApproxDP(epsilon, 1e-5)
    right = []
    for seed in range(6):
        given = {"classes": [0, 1], "public": [(points[public], labels[public])], "random_state": seed}
        fitted = PrivateTangentClassifier(None, budget, **given).fit(points[learned], labels[learned])
        right.append(np.mean(fitted.predict(points[asked]) == labels[asked]))
    assert np.mean(right) > 0.95


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"classes": [0]}, "two labels"),
        ({"public": [PUBLIC[0][0]]}, "pairs"),
        ({"public": []}, "at least one subject"),
        ({"public": [(PUBLIC[0][0], np.zeros(120))]}, "both of"),
        ({"public": None}, "Ball"),
        ({"filters": 7}, "at most the number of channels"),
    ],
)
def test_wrong_use_is_told(given, message):
    with pytest.raises(dpm.ArgumentError, match=message):
        model(**given).fit(*subject(10, 20))


def test_congruence_refuses_what_is_no_stack_of_matrices():
    filters = Congruence(np.eye(3)[:2])
    for wrong in (np.eye(3), np.zeros((5, 4, 4))):
        with pytest.raises(dpm.ArgumentError, match="shape"):
            filters.transform(wrong)
    with pytest.raises(dpm.ArgumentError, match="finite matrix"):
        Congruence(np.array([[np.nan, 1.0, 0.0]])).transform(np.eye(3)[None])


def test_filtered_matrices_are_symmetric_to_the_last_bit_and_each_on_its_own():
    points, _ = subject(10, 30)
    filters = Congruence.from_public(PUBLIC, 4)
    made = filters.transform(points)
    assert np.array_equal(made, np.swapaxes(made, 1, 2))
    changed = points.copy()
    changed[7] = np.nan
    rest = np.arange(30) != 7
    assert np.array_equal(filters.transform(changed)[rest], made[rest])


def odd_record(kind):
    """A malformed, or a huge, record for a list of matrices."""
    found = {"none": None, "a text": "86420", "ragged": [[1.0], [2.0]], "none inside": [[None] * CHANNELS] * CHANNELS}
    found |= {"complex": [[1j] * CHANNELS] * CHANNELS, "huge": (1e308 * np.ones((CHANNELS, CHANNELS))).tolist()}
    return found[kind]


@pytest.mark.parametrize("kind", ["none", "a text", "ragged", "none inside", "complex", "huge"])
def test_an_odd_record_is_heard_of_neither_by_an_error_nor_by_a_warning(kind):
    """Filters refused the whole list, and warned of an overflow."""
    points, labels = subject(10, 40)
    listed, told = points.tolist(), points.copy()
    listed[7] = odd_record(kind)
    told[7] = np.nan
    fits = [model(filters=4, on_invalid="center").fit(each, labels).discriminant_ for each in (listed, told)]
    if kind == "huge":
        assert np.isfinite(fits[0].threshold)
    else:
        assert np.array_equal(fits[0].direction, fits[1].direction)
    with pytest.raises(dpm.ArgumentError, match="real numbers"):
        Congruence(np.eye(CHANNELS)).transform(points + 0j)


def test_a_signalling_nan_passes_the_filters_unheard():
    points = subject(10, 40)[0].astype(np.float32)
    points[7].reshape(-1).view(np.uint32)[0] = 0x7FA00000
    made = Congruence.from_public(PUBLIC, 4).transform(points)
    assert np.isfinite(made).all(axis=(1, 2)).sum() == 39


def test_many_records_and_few_public_ones_leave_a_rehearsal():
    """The rehearsal asked for an epsilon of 2667, which no budget has."""
    points, labels = subject(10, 16_000)
    few = [(subject_points[:12], subject_labels[:12]) for subject_points, subject_labels in PUBLIC]
    fitted = PrivateTangentClassifier(None, dpm.PureDP(1.0), classes=[0, 1], public=few).fit(points, labels)
    assert fitted.guarantee_.fits(dpm.PureDP(1.0))


def test_an_error_about_names_of_persons_is_one_of_ours():
    points, labels = subject(10, 40)
    with pytest.raises(dpm.ArgumentError, match="group_by"):
        model(filters=4).fit(points, labels, group_by=[*range(39), [1]])
