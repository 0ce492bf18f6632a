"""The nearest private class mean, against pyRiemann's."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.estimators import PrivateMDM

MDM = pytest.importorskip("pyriemann.classification").MDM

SPACE = dpm.SPD(3)
BALL = dpm.Ball(SPACE, 2 * np.eye(3), radius=3.0)


def labelled(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping classes, shuffled."""
    rng = np.random.default_rng(seed)
    records = np.concatenate([scale * SPACE.random_point(count, rng=rng) for scale in (1.0, 2.0, 4.0)])
    order = rng.permutation(3 * count)
    return records[order], np.repeat([10, 20, 30], count)[order]


@pytest.mark.parametrize(("metric", "theirs"), [("affine-invariant", "riemann"), ("log-euclidean", "logeuclid")])
def test_without_noise_to_speak_of_it_is_pyriemanns_mdm(metric, theirs):
    records, labels = labelled(100, 0)
    new, _ = labelled(60, 1)
    # larger than every record's distance, so that nothing is clipped
    everywhere = dpm.Ball(dpm.SPD(3, metric), 2 * np.eye(3), radius=6.0)
    ours = PrivateMDM(everywhere, dpm.GaussianDP(600.0), random_state=0).fit(records, labels)
    peer = MDM(metric=theirs).fit(records, labels)
    assert np.array_equal(ours.classes_, peer.classes_)
    assert np.max(everywhere.manifold.dist(ours.covmeans_, peer.covmeans_)) < 3e-3
    assert np.allclose(ours.transform(new), peer.transform(new), atol=3e-3)
    assert np.allclose(ours.predict_proba(new), peer.predict_proba(new), atol=1e-2)
    assert np.mean(ours.predict(new) == peer.predict(new)) > 0.98


@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_accuracy_comes_back_with_the_budget():
    records, labels = labelled(300, 2)
    new, truth = labelled(300, 3)
    peer = np.mean(MDM().fit(records, labels).predict(new) == truth)
    accuracy = {
        epsilon: np.mean(
            PrivateMDM(BALL, dpm.PureDP(epsilon), random_state=0).fit(records, labels).predict(new) == truth
        )
        for epsilon in (1e-3, 20.0)
    }
    assert accuracy[20.0] > peer - 0.02
    # it cannot know: the noise fills the ball
    assert accuracy[1e-3] < peer - 0.1


def test_probabilities_are_softmax_of_squared_distances():
    records, labels = labelled(50, 4)
    model = PrivateMDM(BALL, dpm.PureDP(1.0)).fit(records, labels)
    weights = np.exp(-(model.transform(records[:7]) ** 2))
    assert np.allclose(model.predict_proba(records[:7]), weights / weights.sum(axis=1, keepdims=True))
    assert np.array_equal(model.predict(records), model.classes_[model.predict_proba(records).argmax(axis=1)])


def test_classes_are_sorted_however_they_are_listed():
    records, labels = labelled(50, 5)
    listed = PrivateMDM(BALL, dpm.PureDP(1.0), classes=[30, 10, 20], random_state=0).fit(records, labels)
    found = PrivateMDM(BALL, dpm.PureDP(1.0), random_state=0).fit(records, labels)
    assert listed.classes_.tolist() == [10, 20, 30]
    assert np.array_equal(listed.means_, found.means_)


def test_public_labels_promise_less_than_private_ones():
    records, labels = labelled(400, 6)
    public = PrivateMDM(BALL, dpm.PureDP(1.0)).fit(records, labels)
    assert public.guarantee_.unit == "record within class"
    hidden = PrivateMDM(BALL, dpm.PureDP(1.0), private_labels=True, classes=[10, 20, 30]).fit(records, labels)
    assert hidden.guarantee_.unit == "record"
    assert hidden.guarantee_.fits(dpm.PureDP(1.0))
    assert hidden.class_means_.private_labels
    with pytest.raises(dpm.ArgumentError, match="needs classes"):
        PrivateMDM(BALL, dpm.PureDP(1.0), private_labels=True).fit(records, labels)


def test_labels_must_match_the_records():
    records, labels = labelled(20, 7)
    for wrong in (labels[:-1], None):
        with pytest.raises(dpm.ArgumentError, match="one entry per record"):
            PrivateMDM(BALL, dpm.PureDP(1.0)).fit(records, wrong)
