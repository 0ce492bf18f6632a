"""pyRiemann's own tests of MDM and TangentSpace (its test_classification.py and test_tangentspace.py), asked of ours.

Its sizes, six or nine 3×3 matrices, are kept: no budget means anything there, so noise is taken out through a seam. The
functions have its names. What we refuse, and it takes, is in the last tests.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm
from dpmanifolds.noise import exact

pytest.importorskip("pyriemann")
from pyriemann.classification import MDM
from pyriemann.datasets import make_matrices
from pyriemann.estimation import Covariances
from pyriemann.tangentspace import TangentSpace

OURS = {"riemann": "affine-invariant", "logeuclid": "log-euclidean", "logchol": "log-cholesky"}
# with two records of a class the few tangent steps of a release leave up to half a percent
NEAR = {"rtol": 1e-2, "atol": 1e-2}
pytestmark = [
    pytest.mark.usefixtures("no_noise"),
    pytest.mark.filterwarnings(
        "ignore:this score is computed", "ignore:what Private", "ignore:sklearn.model_selection fits"
    ),
]


@pytest.fixture
def no_noise(monkeypatch):
    """The seam: integers are released as they are. The budget is large, so that nothing is shrunk for noise either."""
    monkeypatch.setattr(exact, "draw_rounded", lambda count, *_given, **_named: [0] * count)


def ball_of(metric: str, channels: int = 3) -> dpm.Ball:
    return dpm.Ball(dpm.SPD(channels, OURS[metric]), np.eye(channels), radius=6.0)


def mdm(mean: str = "riemann", channels: int = 3, **given) -> dpm.PrivateMDM:
    return dpm.PrivateMDM(ball_of(mean, channels), dpm.GaussianDP(600.0), **given)


def tangent_space(mean: str = "riemann", channels: int = 3, **given) -> dpm.PrivateTangentSpace:
    return dpm.PrivateTangentSpace(ball_of(mean, channels), dpm.GaussianDP(600.0), **given)


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def labelled(request):
    count = 3 * request.param
    return make_matrices(count, 3, "spd", rs=request.param), np.arange(count) % request.param


def test_classifier(labelled):
    """clf_fit, clf_predict, clf_predict_proba, clf_score, clf_populate_classes, clf_transform, clf_fittransform."""
    X, y = labelled
    classes = len(np.unique(y))
    ours, peer = mdm().fit(X, y), MDM().fit(X, y)
    assert np.array_equal(ours.classes_, peer.classes_)
    assert ours.covmeans_.shape == (classes, 3, 3)
    assert np.allclose(ours.covmeans_, peer.covmeans_, **NEAR)
    assert np.array_equal(ours.predict(X), peer.predict(X))
    chances = ours.predict_proba(X)
    assert chances.shape == (len(X), classes)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert isinstance(ours.score(X, y), float)
    assert ours.score(X, y) == peer.score(X, y)
    assert ours.transform(X).shape == (len(X), classes)
    assert np.allclose(ours.transform(X), peer.transform(X), **NEAR)
    assert np.array_equal(mdm().fit_transform(X, y), ours.transform(X))


def test_weights(labelled):
    """clf_fit and ts_fit with sample_weight: those of 0 drop a record."""
    X, y = labelled
    weights = np.where(np.arange(len(X)) < len(np.unique(y)), 0.0, 0.7)
    means = mdm().fit(X, y, sample_weight=weights).covmeans_
    assert np.allclose(means, MDM().fit(X, y, sample_weight=weights).covmeans_, **NEAR)
    reference = tangent_space().fit(X, sample_weight=weights).reference_
    assert np.allclose(reference, TangentSpace().fit(X, sample_weight=weights).reference_, **NEAR)


def test_fit_independence(labelled):
    """Fitting again at another size erases the fit before."""
    X, y = labelled
    smaller = X[:, :-1, :-1]
    for ours, peer in ((mdm(), MDM()), (tangent_space(), TangentSpace())):
        ours.fit(X, y)
        ours.set_params(domain=ball_of("riemann", 2)).fit(smaller, y)
        assert np.allclose(ours.transform(smaller).shape, peer.fit(smaller, y).transform(smaller).shape)
        assert ours.fit_transform(smaller, y).shape == ours.transform(smaller).shape


def test_jobs(labelled):
    X, y = labelled
    assert np.array_equal(mdm(n_jobs=2).fit(X, y).predict(X), MDM(n_jobs=2).fit(X, y).predict(X))


def test_pipeline(labelled):
    """Covariances of signals, then the classifier; three folds."""
    _, y = labelled
    signals = np.random.default_rng(42).standard_normal((len(y), 3, 100))
    ours, peer = (make_pipeline(Covariances(estimator="scm"), each) for each in (mdm(), MDM()))
    assert np.array_equal(ours.fit(signals, y).predict(signals), peer.fit(signals, y).predict(signals))
    assert np.allclose(ours.predict_proba(signals), peer.predict_proba(signals), **NEAR)
    folds = [cross_val_score(each, signals, y, cv=KFold(n_splits=3), scoring="accuracy") for each in (ours, peer)]
    assert np.array_equal(*folds)


@pytest.mark.parametrize("metric", [42, "faulty", {"foo": "bar"}, {"mean": "faulty", "distance": "riemann"}])
@pytest.mark.parametrize("make", [mdm, tangent_space])
def test_metric_errors(make, metric, labelled):
    with pytest.raises((TypeError, KeyError, ValueError)):
        make(metric=metric).fit(*labelled)


@pytest.mark.parametrize("mean", OURS)
@pytest.mark.parametrize("distance", OURS)
def test_mdm(mean, distance, labelled):
    X, y = labelled
    metric = {"mean": mean, "distance": distance}
    ours, peer = mdm(mean, metric=metric).fit(X, y), MDM(metric=metric).fit(X, y)
    assert np.allclose(ours.transform(X), peer.transform(X), **NEAR)


@pytest.mark.parametrize("metric", OURS)
def test_tangentspace(metric, labelled):
    """ts_fit, ts_transform, ts_fit_transform, ts_inversetransform."""
    X, _ = labelled
    ours, peer = tangent_space(metric).fit(X), TangentSpace(metric=metric).fit(X)
    assert np.allclose(ours.reference_, peer.reference_, **NEAR)
    assert ours.transform(X).shape == peer.transform(X).shape == (len(X), 6)
    assert np.array_equal(tangent_space(metric).fit_transform(X), ours.transform(X))
    assert ours.inverse_transform(ours.transform(X)) == pytest.approx(X)


def test_tangentspace_vecdim_error_and_matdim_error(labelled):
    ours = tangent_space().fit(labelled[0])
    for wrong in (np.empty((4, 7)), np.empty((4, 3, 4)), np.empty((1, 2, 3, 4))):
        with pytest.raises(ValueError, match="shape"):
            ours.transform(wrong)


def test_what_is_refused(labelled):
    """Weights that differ (a record would count for more than 1/n), Euclidean means, and a look without a fit."""
    X, y = labelled
    with pytest.raises(dpm.ArgumentError, match="one record counts for more than 1/n"):
        mdm().fit(X, y, sample_weight=np.arange(1, len(X) + 1))
    with pytest.raises(dpm.ArgumentError, match="metric must be one of"):
        mdm(metric="euclid").fit(X, y)
    with pytest.raises(NotFittedError):
        tangent_space().transform(X)
