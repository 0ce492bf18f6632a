"""What scikit-learn's checks ask of estimators that take tables, asked of those that take matrices.

`test_checks.py` runs scikit-learn's own checks, which make tables alone; these are the same claims by the same names.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_predict, cross_val_score

import dpmanifolds as dpm

SPACE = dpm.SPD(3)
BALL = dpm.Ball(SPACE, np.eye(3), radius=3.0)
NEAR = {"budget": dpm.GaussianDP(50.0), "random_state": 0}
X = np.concatenate([SPACE.random_point(60, rng=0), 3 * SPACE.random_point(60, rng=1)])
Y = np.repeat(["left", "right"], 60)
NEW = SPACE.random_point(30, rng=2)

CLASSIFIERS = {
    "mdm": dpm.PrivateMDM(BALL, **NEAR),
    "logistic": dpm.PrivateLogisticRegression(BALL, classes=["left", "right"], steps=3, **NEAR),
    "tangent classifier": dpm.PrivateTangentClassifier(BALL, classes=["left", "right"], **NEAR),
}
MODELS = {
    "mean": dpm.PrivateFrechetMean(BALL, **NEAR),
    "median": dpm.PrivateFrechetMedian(BALL, steps=3, **NEAR),
    "k-means": dpm.PrivateKMeans(2, BALL, rounds=1, **NEAR),
    "tangent space": dpm.PrivateTangentSpace(BALL, **NEAR),
    "tangent pca": dpm.PrivateTangentPCA(BALL, n_components=2, **NEAR),
    **CLASSIFIERS,
}
LOOKS = ("transform", "predict", "predict_proba", "decision_function")
every_model = pytest.mark.parametrize("name", MODELS)
every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
pytestmark = pytest.mark.filterwarnings("ignore:what Private", "ignore:this score is computed")


def fitted(name: str, points=X, labels=Y, **given):
    model = clone(MODELS[name])
    return model.fit(points, labels, **given) if is_classifier(model) else model.fit(points, **given)


def seen(model, points=NEW) -> dict[str, np.ndarray]:
    """What each method that looks at records says."""
    return {look: np.asarray(getattr(model, look)(points)) for look in LOOKS if hasattr(model, look)}


def told(name: str, *given, **options) -> dict[str, np.ndarray]:
    """What a fitted model says of new records; of those that look at none, what they have learned."""
    model = fitted(name, *given, **options)
    return {"learned": getattr(model, f"{name}_")} if name in ("mean", "median") else seen(model)


@every_model
def test_estimators_unfitted(name):
    for look in LOOKS:
        if hasattr(MODELS[name], look):
            with pytest.raises(NotFittedError):
                getattr(clone(MODELS[name]), look)(NEW)


@every_classifier
def test_a_score_needs_a_fit(name):
    with pytest.raises(NotFittedError):
        clone(MODELS[name]).score(X, Y)


@every_model
def test_n_features_in_is_the_number_of_channels_and_there_are_no_names(name):
    model = clone(MODELS[name])
    assert not hasattr(model, "n_features_in_")
    model = fitted(name)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(dpm.ArgumentError):
        fitted(name, dpm.SPD(4).random_point(120, rng=0))
    for look in LOOKS:
        if hasattr(model, look):
            with pytest.raises(dpm.ArgumentError):
                getattr(model, look)(dpm.SPD(4).random_point(5, rng=0))


@every_model
def test_fit2d_and_empty_data_are_refused(name):
    for points in (X.reshape(120, 9), X[0], X[:0], 3.0):
        with pytest.raises(dpm.DPManifoldsError):
            fitted(name, points, Y[: np.shape(points)[0]] if np.ndim(points) else Y)


@every_model
@pytest.mark.parametrize("part", [0.0, 1.0], ids=["zero imaginary part", "imaginary part"])
def test_complex_data_are_refused_and_lose_nothing_in_silence(name, part):
    points = X + 1j * part * X
    with pytest.raises(dpm.ArgumentError, match="must be real numbers"):
        fitted(name, points)
    model = fitted(name)
    for look in LOOKS:
        if hasattr(model, look):
            with pytest.raises(dpm.ArgumentError, match="must be real numbers"):
                getattr(model, look)(points)


@every_classifier
@pytest.mark.parametrize(
    "labels",
    [
        np.linspace(0.0, 1.0, 120),
        np.where(np.arange(120) == 7, np.nan, np.repeat([0.0, 1.0], 60)),
        np.where(np.arange(120) == 7, np.inf, np.repeat([0.0, 1.0], 60)),
        [None, *Y[1:]],
        None,
    ],
    ids=["continuous", "NaN", "inf", "None among them", "None"],
)
def test_classifiers_regression_target(name, labels):
    model = clone(MODELS[name])
    if name != "mdm" and labels is not None and labels[0] is not None:
        model.set_params(classes=[0, 1])
    with pytest.raises(dpm.ArgumentError):
        model.fit(X, labels)


@every_classifier
def test_as_many_labels_as_records(name):
    with pytest.raises(dpm.ArgumentError):
        fitted(name, X, Y[:-1])


@every_model
def test_dict_unchanged_and_records_unchanged(name):
    model = fitted(name)
    before = {key: np.array(value, dtype=object) for key, value in vars(model).items()}
    points = NEW.copy()
    seen(model, points)
    assert np.array_equal(points, NEW)
    assert set(vars(model)) == set(before)


@every_model
def test_methods_subset_and_sample_order_invariance(name):
    model = fitted(name)
    turned = np.random.default_rng(0).permutation(len(NEW))
    for look, whole in seen(model).items():
        parts = np.concatenate([np.asarray(getattr(model, look)(NEW[k : k + 1])) for k in range(len(NEW))])
        agree = np.array_equal if whole.dtype.kind in "OUS" else np.allclose
        assert agree(parts, whole)
        assert agree(np.asarray(getattr(model, look)(NEW[turned])), whole[turned])


@every_model
def test_fit_idempotent_readonly_memmap_and_lists(name, tmp_path):
    """The same seed and the same records, however they lie in memory, are the same model."""
    np.save(tmp_path / "x.npy", X)
    readonly = X.copy()
    readonly.flags.writeable = False
    first = told(name)
    for points in (readonly, np.load(tmp_path / "x.npy", mmap_mode="r"), np.asfortranarray(X), X.tolist()):
        again = told(name, points)
        assert all(np.array_equal(numbers, again[look]) for look, numbers in first.items())


@pytest.mark.parametrize("name", ["mean", "mdm", "tangent space"])
def test_sample_weight_equivalence(name):
    """Records of weight 0 are as if they were not there; equal weights are no weights; others are refused."""
    kept = np.arange(120) % 3 != 0
    pairs = (
        (told(name, sample_weight=np.where(kept, 2.0, 0.0)), told(name, X[kept], Y[kept])),
        (told(name, sample_weight=np.ones(120)), told(name)),
    )
    for weighted, plain in pairs:
        assert all(np.array_equal(numbers, plain[look]) for look, numbers in weighted.items())
    for weights in (np.arange(120), -np.ones(120), np.zeros(120), np.ones(119), np.full(120, np.nan)):
        with pytest.raises(dpm.ArgumentError, match="sample_weight"):
            fitted(name, sample_weight=weights)


@pytest.mark.parametrize("tool", [cross_val_predict, cross_val_score])
def test_tools_that_refit_say_what_they_spend(tool):
    model = dpm.PrivateMDM(BALL, dpm.PureDP(0.5))
    options = {"scoring": "accuracy"} if tool is cross_val_score else {}
    dpm.spent(reset=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tool(model, X, Y, cv=4, **options)
    words = [str(each.message) for each in said if each.category is dpm.RefitSpendsWarning]
    assert len(words) == 4
    assert "scores of left-out records have no noise" in words[0]
    (spending,) = dpm.spent(reset=True)
    assert spending.releases == 4
    assert spending.guarantee.as_pure().epsilon == pytest.approx(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpm.RefitSpendsWarning)
        with pytest.raises(dpm.RefitSpendsWarning):
            tool(model, X, Y, cv=4, error_score="raise", **options) if options else tool(model, X, Y, cv=4)
    assert dpm.spent(reset=True) == []


def test_groups_of_a_splitter_are_persons_without_being_asked_for():
    units = []

    class Noted(dpm.PrivateMDM):
        def fit(self, X, y=None, **given):
            super().fit(X, y, **given)
            units.append(self.guarantee_.unit)
            return self

    with sklearn.config_context(enable_metadata_routing=True):
        cross_val_predict(Noted(BALL, **NEAR), X, Y, cv=GroupKFold(3), params={"groups": np.arange(120) // 4})
    assert units == ["person within class"] * 3


def test_a_delta_of_one_in_n_is_told():
    with pytest.warns(dpm.LargeDeltaWarning, match="not below 1/n"):
        dpm.PrivateMDM(BALL, dpm.ApproxDP(1.0, 0.1)).fit(X, Y)
