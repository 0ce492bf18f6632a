"""What users of pyRiemann do, with our estimators in the place of its own; the budget leaves no noise to speak of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm

classification = pytest.importorskip("pyriemann.classification")
TangentSpace = pytest.importorskip("pyriemann.tangentspace").TangentSpace
Covariances = pytest.importorskip("pyriemann.estimation").Covariances

NO_NOISE = {"budget": dpm.GaussianDP(600.0), "random_state": 0}
METRICS = [
    ("riemann", "affine-invariant"),
    ("logeuclid", "log-euclidean"),
    ("logchol", "log-cholesky"),
]
pytestmark = pytest.mark.filterwarnings("ignore:what PrivateTangentSpace hands on")


def trials(count: int, seed: int, channels: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Signals (n, channels, times) of two classes, whose first channel has more or less power."""
    rng = np.random.default_rng(seed)
    labels = np.array(["left", "right"])[np.arange(count) % 2]
    power = np.ones((count, channels, 1))
    power[labels == "right", 0] = 1.5
    return power * rng.standard_normal((count, channels, 60)), labels


SIGNALS, Y = trials(200, 0)
X = Covariances("oas").fit_transform(SIGNALS)
NEW = Covariances("oas").fit_transform(trials(80, 1)[0])


def ball(metric: str = "riemann", channels: int = 3) -> dpm.Ball:
    """Wider than every record is far, so that nothing is clipped."""
    return dpm.Ball(dpm.SPD(channels, metric), np.eye(channels), radius=4.0)


@pytest.mark.parametrize(("theirs", "ours"), METRICS)
def test_names_of_metrics_are_pyriemanns(theirs, ours):
    assert dpm.SPD(3, theirs) == dpm.SPD(3, ours)
    model = dpm.PrivateMDM(ball(theirs), metric=theirs, **NO_NOISE).fit(X, Y)
    peer = classification.MDM(metric=theirs).fit(X, Y)
    assert np.allclose(model.transform(NEW), peer.transform(NEW), atol=5e-3)
    # probabilities move by at most half of what squared distances do
    assert np.allclose(model.predict_proba(NEW), peer.predict_proba(NEW), atol=1e-2)


@pytest.mark.parametrize(
    "metric", [{"mean": "logeuclid", "distance": "riemann"}, {"mean": "riemann", "distance": "logeuclid"}]
)
def test_a_dict_names_the_metric_of_means_and_that_of_distances(metric):
    model = dpm.PrivateMDM(ball(metric["mean"]), metric=metric, n_jobs=2, **NO_NOISE).fit(X, Y)
    peer = classification.MDM(metric=metric).fit(X, Y)
    assert np.allclose(model.covmeans_, peer.covmeans_, atol=5e-3)
    assert np.allclose(model.transform(NEW), peer.transform(NEW), atol=5e-3)
    with pytest.raises(dpm.ArgumentError, match="say the metric there"):
        dpm.PrivateMDM(ball("logchol"), metric=metric, **NO_NOISE).fit(X, Y)


def test_weights_of_0_drop_records_as_pyriemanns_do():
    weights = np.where(np.arange(len(X)) % 5 == 0, 0.0, 2.0)
    model = dpm.PrivateMDM(ball(), **NO_NOISE).fit(X, Y, sample_weight=weights)
    peer = classification.MDM().fit(X, Y, sample_weight=weights)
    assert np.allclose(model.transform(NEW), peer.transform(NEW), atol=5e-3)
    space = dpm.PrivateTangentSpace(ball(), **NO_NOISE).fit(X, sample_weight=weights)
    assert np.allclose(space.reference_, TangentSpace().fit(X, sample_weight=weights).reference_, atol=5e-3)


def test_the_tangent_space_has_pyriemanns_lengths_and_angles():
    """Orthonormal coordinates are unique up to a rotation, so that inner products are compared."""
    ours = dpm.PrivateTangentSpace(ball(), metric="riemann", **NO_NOISE).fit(X)
    peer = TangentSpace(metric="riemann").fit(X)
    mine, theirs = ours.transform(NEW), peer.transform(NEW)
    assert mine.shape == theirs.shape == (80, 6)
    assert np.allclose(mine @ mine.T, theirs @ theirs.T, atol=2e-2)
    assert np.allclose(ours.inverse_transform(mine), NEW, atol=1e-9)
    assert np.allclose(peer.inverse_transform(theirs), NEW, atol=1e-9)


def test_a_log_euclidean_tangent_space_has_the_lengths_of_its_metric():
    """pyRiemann's has those of entries of the tangent matrix, which are other ones unless the reference is I."""
    logm = pytest.importorskip("pyriemann.geometry.base").logm
    ours = dpm.PrivateTangentSpace(ball("logeuclid"), **NO_NOISE).fit(X)
    away = (logm(NEW) - logm(ours.reference_)).reshape(len(NEW), -1)
    mine = ours.transform(NEW)
    assert np.allclose(mine @ mine.T, away @ away.T, atol=1e-9)
    assert np.allclose(ours.reference_, TangentSpace(metric="logeuclid").fit(X).reference_, atol=5e-3)


def test_pipelines_from_signals_tell_apart_what_pyriemanns_do():
    """TangentSpace with a discriminant is what FgMDM filters by; a linear rule does not see how axes are turned."""
    new = trials(80, 1)[0]
    ends = {
        "mdm": (dpm.PrivateMDM(ball(), **NO_NOISE), classification.MDM()),
        "tangent": (dpm.PrivateTangentSpace(ball(), **NO_NOISE), TangentSpace()),
    }
    found = {}
    for name, pair in ends.items():
        last = [LinearDiscriminantAnalysis()] if name == "tangent" else []
        ours, peer = (make_pipeline(Covariances("oas"), each, *last).fit(SIGNALS, Y) for each in pair)
        found[name] = np.mean(ours.predict(new) == peer.predict(new))
    assert min(found.values()) > 0.97, found


def test_predictions_across_folds_are_pyriemanns():
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    ours, peer = (
        cross_val_predict(model, X, Y, cv=folds) for model in (dpm.PrivateMDM(ball(), **NO_NOISE), classification.MDM())
    )
    assert np.mean(ours == peer) > 0.97
    assert np.mean(ours == Y) > 0.8


@pytest.mark.long
def test_grids_of_parameters_reach_through_a_pipeline():
    chain = make_pipeline(Covariances(), dpm.PrivateMDM(ball(), **NO_NOISE))
    grid = GridSearchCV(
        chain,
        {"covariances__estimator": ["oas", "lwf"], "privatemdm__domain": [ball(), ball("logeuclid")]},
        cv=2,
        scoring="accuracy",
    )
    grid.fit(SIGNALS, Y)
    assert len(grid.cv_results_["params"]) == 4
    assert isinstance(grid.best_estimator_[-1].covmeans_, np.ndarray)


@pytest.mark.parametrize(
    "model",
    [
        dpm.PrivateMDM(ball(), **NO_NOISE),
        dpm.PrivateTangentSpace(ball(), **NO_NOISE),
        dpm.PrivateTangentClassifier(ball(), classes=["left", "right"], **NO_NOISE),
        dpm.PrivateLogisticRegression(ball(), classes=["left", "right"], **NO_NOISE),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_are_cloned_set_refitted_at_another_size_and_kept(model):
    fitted = clone(model).fit(X, Y)
    kept = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(kept.transform(NEW), fitted.transform(NEW))
    before = fitted.transform(NEW)
    fitted.set_params(domain=ball(channels=4))
    assert np.array_equal(fitted.transform(NEW), before), "parameters count from the next fit on"
    larger = Covariances("oas").fit_transform(trials(200, 2, channels=4)[0])
    assert fitted.fit(larger, Y).n_features_in_ == 4
    with pytest.raises(dpm.ArgumentError):
        fitted.transform(NEW)
    assert len(fitted.get_feature_names_out()) == fitted.transform(larger).shape[1]


def test_frames_have_the_names_of_the_features():
    pandas = pytest.importorskip("pandas")
    space = dpm.PrivateTangentSpace(ball(), **NO_NOISE).set_output(transform="pandas").fit(X)
    framed = space.transform(NEW)
    assert isinstance(framed, pandas.DataFrame)
    assert framed.columns.tolist() == space.get_feature_names_out().tolist()
