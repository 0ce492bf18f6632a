"""What scikit-learn expects of an estimator, for every private one."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm
from dpmanifolds.errors import BudgetExceededError
from dpmanifolds.estimators import (
    PrivateFrechetMean,
    PrivateFrechetMedian,
    PrivateKMeans,
    PrivateMDM,
    PrivateTangentPCA,
    PrivateTangentSpace,
    UnprotectedModelWarning,
    UnprotectedScoreWarning,
)
from dpmanifolds.ledger import Ledger

SPACE = dpm.SPD(2)
BALL = dpm.Ball(SPACE, 1.5 * np.eye(2), radius=2.0)
BUDGET = dpm.PureDP(2.0)
X = np.concatenate([SPACE.random_point(120, rng=0), 4 * SPACE.random_point(120, rng=1)])
Y = np.repeat(["small", "tall"], 120)

KINDS = {
    "mean": lambda **given: PrivateFrechetMean(BALL, BUDGET, **given),
    "median": lambda **given: PrivateFrechetMedian(BALL, BUDGET, steps=5, **given),
    "k-means": lambda **given: PrivateKMeans(2, BALL, BUDGET, rounds=2, **given),
    "mdm": lambda **given: PrivateMDM(BALL, BUDGET, **given),
    "tangent space": lambda **given: PrivateTangentSpace(BALL, BUDGET, **given),
    "tangent pca": lambda **given: PrivateTangentPCA(BALL, BUDGET, 2, **given),
}
LEARNED = {
    "mean": "mean_",
    "median": "median_",
    "k-means": "cluster_centers_",
    "mdm": "means_",
    "tangent space": "reference_",
    "tangent pca": "components_",
}
TRANSFORMERS = ("k-means", "mdm", "tangent space", "tangent pca")
every_kind = pytest.mark.parametrize("kind", KINDS)


def learned(kind, model) -> np.ndarray:
    return getattr(model, LEARNED[kind])


@every_kind
def test_the_constructor_stores_and_does_nothing_else(kind):
    model = KINDS[kind](random_state=3)
    names = set(inspect.signature(type(model).__init__).parameters) - {"self"}
    assert set(vars(model)) == names == set(model.get_params())
    assert model.domain is BALL
    # nothing is checked before fit
    assert KINDS[kind](on_invalid="no such thing").on_invalid == "no such thing"


@every_kind
def test_clones_have_equal_parameters_and_nothing_learned(kind):
    model = KINDS[kind](random_state=3, unit="household").fit(X, Y)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert (copy.unit, copy.random_state, copy.budget) == ("household", 3, BUDGET)
    assert repr(copy.domain) == repr(BALL)
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert np.array_equal(learned(kind, copy.fit(X, Y)), learned(kind, model))


@every_kind
def test_set_params_changes_the_next_fit(kind):
    model = KINDS[kind](random_state=0).set_params(budget=dpm.PureDP(0.5)).fit(X, Y)
    assert model.guarantee_.as_pure().epsilon == pytest.approx(0.5)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(epsilon=1.0)


@every_kind
def test_fit_returns_the_estimator_and_leaves_records_alone(kind):
    records, labels = X.copy(), Y.copy()
    model = KINDS[kind]()
    assert model.fit(records, labels) is model
    assert np.array_equal(records, X)
    assert np.array_equal(labels, Y)


@every_kind
def test_one_seed_is_one_result_and_no_seed_never_is(kind):
    first, again = (learned(kind, KINDS[kind](random_state=7).fit(X, Y)) for _ in range(2))
    assert np.array_equal(first, again)
    drawn = [learned(kind, KINDS[kind]().fit(X, Y)) for _ in range(2)]
    assert not np.array_equal(*drawn)
    generator = np.random.default_rng(7)
    assert np.array_equal(learned(kind, KINDS[kind](random_state=generator).fit(X, Y)), first)


@every_kind
def test_fitted_estimators_survive_pickling(kind):
    model = KINDS[kind](random_state=1).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(learned(kind, copy), learned(kind, model))
    assert copy.guarantee_ == model.guarantee_
    if kind in TRANSFORMERS:
        assert np.array_equal(copy.transform(X), model.transform(X))


@every_kind
def test_bad_arguments_are_told_at_fit_in_our_words(kind):
    with pytest.raises(dpm.ArgumentError, match="budget must be PureDP"):
        KINDS[kind]().set_params(budget=1.0).fit(X, Y)
    with pytest.raises(dpm.ArgumentError, match=r"domain must be a (Domain|Ball)"):
        KINDS[kind]().set_params(domain=None).fit(X, Y)
    with pytest.raises(dpm.ArgumentError, match="RandomState is not taken"):
        KINDS[kind](random_state=np.random.RandomState(0)).fit(X, Y)
    with pytest.raises(dpm.ArgumentError, match=r"shape \(\.\.\., 2, 2\)"):
        KINDS[kind]().fit(X.reshape(len(X), 4), Y)
    with pytest.raises(dpm.ArgumentError, match="empty"):
        KINDS[kind]().fit(X[:0], Y[:0])


@every_kind
def test_malformed_records_are_refused_or_become_the_centre(kind):
    spoilt = X.copy()
    spoilt[3] = np.nan
    with pytest.raises(dpm.NotOnManifoldError):
        KINDS[kind]().fit(spoilt, Y)
    mended = np.where(np.isnan(spoilt), BALL.center, spoilt)
    model = KINDS[kind](random_state=0, on_invalid="center").fit(spoilt, Y)
    assert np.array_equal(learned(kind, model), learned(kind, KINDS[kind](random_state=0).fit(mended, Y)))


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_transform_needs_a_fit_and_records_of_the_same_space(kind):
    with pytest.raises(NotFittedError):
        KINDS[kind]().transform(X)
    model = KINDS[kind]().fit(X, Y)
    assert model.transform(X).shape == (len(X), len(model.get_feature_names_out()))
    for wrong in (SPACE.random_point(rng=0), dpm.SPD(3).random_point(4, rng=0), np.zeros((3, 2))):
        with pytest.raises(dpm.ArgumentError):
            model.transform(wrong)
    for broken in (-X, np.full_like(X, np.nan), X + np.array([[0.0, 1.0], [0.0, 0.0]])):
        with pytest.raises(dpm.NotOnManifoldError):
            model.transform(broken)


@every_kind
def test_a_ledger_is_charged_once_per_fit_with_the_whole_promise(kind, tmp_path):
    path = str(tmp_path / "privacy.ledger")
    ledger = Ledger(path)
    ledger.open_dataset("study", dpm.PureDP(5.0), unit="record within class" if kind == "mdm" else "record")
    model = clone(KINDS[kind](ledger=path, dataset="study"))
    for count in (1, 2):
        model.fit(X, Y)
        assert ledger.remaining("study").epsilon == pytest.approx(5.0 - 2.0 * count)
    with pytest.raises(BudgetExceededError):
        model.fit(X, Y)
    with pytest.raises(dpm.ArgumentError, match="reproducible"):
        clone(model).set_params(random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", ["tangent space", "tangent pca"])
@pytest.mark.filterwarnings("ignore:what PrivateTangent")
def test_a_pipeline_ends_in_any_model(kind):
    pipeline = make_pipeline(KINDS[kind](random_state=0), LogisticRegression())
    assert np.mean(pipeline.fit(X, Y).predict(X) == Y) > 0.8
    assert np.array_equal(clone(pipeline).fit(X, Y).predict(X), pipeline.predict(X))


@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
@pytest.mark.filterwarnings("ignore:what PrivateTangent")
def test_cross_validation_and_grids_run():
    scores = cross_val_score(KINDS["mdm"](random_state=0), X, Y, cv=3, scoring="accuracy")
    assert scores.shape == (3,)
    assert scores.mean() > 0.8
    folds = cross_val_score(make_pipeline(KINDS["tangent space"](random_state=0), LogisticRegression()), X, Y, cv=3)
    assert folds.mean() > 0.8
    grid = GridSearchCV(
        KINDS["mdm"](random_state=0), {"budget": [dpm.PureDP(1e-3), dpm.PureDP(10.0)]}, cv=2, scoring="accuracy"
    )
    assert grid.fit(X, Y).best_params_["budget"] == dpm.PureDP(10.0)


def test_scores_say_that_they_have_no_noise():
    model = KINDS["mdm"](random_state=0).fit(X, Y)
    with pytest.warns(UnprotectedScoreWarning, match="without noise"):
        score = model.score(X, Y)
    assert score == np.mean(model.predict(X) == Y)
    assert issubclass(UnprotectedScoreWarning, dpm.PrivacyLeakWarning)
    with pytest.warns(UnprotectedScoreWarning):
        cross_val_score(model, X, Y, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprotectedScoreWarning)
        assert model.score(X, Y) == score


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_a_model_that_is_trained_on_records_without_noise_is_told(kind, tmp_path):
    """By a pipeline, at the user's line, and before anything is spent."""
    model = make_pipeline(KINDS[kind](random_state=0), LogisticRegression())
    with pytest.warns(UnprotectedModelWarning, match=r"not private\. Use PrivateTangentClassifier") as said:
        model.fit(X, Y)
    assert [each.filename for each in said] == [__file__]
    assert issubclass(UnprotectedModelWarning, dpm.PrivacyLeakWarning)
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("study", dpm.PureDP(5.0))
    with pytest.raises(UnprotectedModelWarning):
        make_pipeline(KINDS[kind](ledger=ledger, dataset="study"), LogisticRegression()).fit(X, Y)
    assert [entry.kind for entry in ledger.entries()] == ["open"]


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_no_model_is_trained_where_the_transformer_is_the_last_step_or_looks_at_new_records(kind):
    model = make_pipeline(KINDS[kind](random_state=0)).fit(X, Y)
    assert model.transform(X[:3]).shape[0] == 3


def test_frames_of_pandas_get_column_names():
    names = KINDS["tangent space"]().fit(X).get_feature_names_out()
    assert names.tolist() == ["privatetangentspace0", "privatetangentspace1", "privatetangentspace2"]
