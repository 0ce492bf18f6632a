"""Private logistic regression as an estimator: tables, curved records, several classes, public weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm
from dpmanifolds.estimators import PrivateLogisticRegression, PrivateTangentSpace

BUDGET = dpm.ApproxDP(3.0, 1e-6)
PLANE = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=4.0)
CENTRES = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])


def table(classes=3, count=1500, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    return CENTRES[labels] + 0.7 * rng.standard_normal((count, 2)), labels


def model(domain=PLANE, budget=BUDGET, **given):
    return PrivateLogisticRegression(domain, budget, **({"classes": [0, 1, 2], "random_state": 0} | given))


@pytest.mark.parametrize("budget", [BUDGET, dpm.PureDP(3.0), dpm.GaussianDP(1.0), dpm.ZeroConcentratedDP(0.5)])
@pytest.mark.parametrize("classes", [2, 3])
def test_it_tells_classes_apart_within_its_budget(budget, classes):
    X, y = table(classes)
    fitted = model(budget=budget, classes=range(classes)).fit(X, y)
    assert np.mean(fitted.predict(X) == y) > 0.9
    assert fitted.guarantee_.fits(budget, strict=True)
    rows = 1 if classes == 2 else 3
    assert fitted.coef_.shape == (rows, 2)
    assert fitted.intercept_.shape == (rows,)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_add_up_and_agree_with_scores_and_classes(classes):
    X, y = table(classes)
    fitted = model(classes=range(classes)).fit(X, y)
    found = fitted.predict_proba(X)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(fitted.predict(X), np.argmax(found, axis=1))
    scores = fitted.decision_function(X)
    assert np.array_equal(scores > 0 if classes == 2 else np.argmax(scores, axis=1), fitted.predict(X))
    far = fitted.decision_function(np.array([[1e5, 0.0]]))
    assert np.allclose(far, fitted.decision_function(np.array([[4.0, 0.0]])))


def test_public_weights_are_where_it_starts_and_what_a_penalty_pulls_to():
    X, y = table(2)
    public = LogisticRegression().fit(*table(2, seed=1))
    tight = {"classes": [0, 1], "initial": (public.coef_, public.intercept_), "steps": 1}
    small = dpm.GaussianDP(0.001)
    kept = model(penalty=1e9, **tight).fit(X, y)
    assert kept.coef_ == pytest.approx(public.coef_, abs=1e-3)
    assert kept.intercept_ == pytest.approx(public.intercept_, abs=1e-3)
    assert np.mean(model(budget=small, penalty=1e4, **tight).fit(X, y).predict(X) == y) > 0.95


def test_public_weights_are_lost_less_in_noise_where_private_records_are_few():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(36)

    def drawn(count):
        X = rng.standard_normal((count, 36)) / 6
        return X, (X @ weights + 0.3 * rng.logistic(size=count) > 0).astype(int)

    public, (X, y), (others, truth) = LogisticRegression().fit(*drawn(400)), drawn(130), drawn(2000)
    ball = dpm.Ball(dpm.Euclidean(36), np.zeros(36), 1.2)
    given = {"classes": [0, 1], "initial": (public.coef_, public.intercept_), "budget": dpm.GaussianDP(0.3)}
    usual = model(ball, classes=[0, 1], budget=given["budget"]).fit(X, y).penalty_
    models = [model(ball, **given), model(ball, penalty=usual, **given)]
    mended, plain = (np.mean(each.fit(X, y).predict(others) == truth) for each in models)
    assert mended > plain + 0.04


def test_the_pull_grows_where_public_weights_are_short_and_is_the_usual_one_where_they_are_long():
    def penalty(coef):
        initial = None if coef is None else (np.full((1, 4), coef), np.zeros(1))
        ball = dpm.Ball(dpm.Euclidean(4), np.zeros(4), 2.0)
        return model(ball, classes=[0, 1], initial=initial, steps=1).fit(np.eye(4), [0, 1, 0, 1]).penalty_

    assert penalty(0.25) == pytest.approx(4 * penalty(None))
    assert penalty(7.0) == pytest.approx(penalty(None))
    assert penalty(0.0) == pytest.approx(16 * penalty(None))


def test_curved_records_are_seen_from_the_centre_of_the_ball():
    space = dpm.SPD(2)
    X = np.concatenate([space.random_point(400, rng=0), 4 * space.random_point(400, rng=1)])
    y = np.repeat(["small", "tall"], 400)
    ball = dpm.Ball(space, 2 * np.eye(2), radius=2.5)
    fitted = model(ball, classes=["tall", "small"]).fit(X, y)
    assert fitted.classes_.tolist() == ["small", "tall"]
    assert np.mean(fitted.predict(X) == y) > 0.8
    rows = space.log_coordinates(2 * np.eye(2), X)
    flat = model(dpm.Ball(dpm.Euclidean(3), np.zeros(3), 2.5), classes=["tall", "small"]).fit(rows, y)
    assert np.allclose(flat.coef_, fitted.coef_, atol=1e-6)


def test_it_follows_a_private_tangent_space_in_a_pipeline_and_can_be_cloned():
    space = dpm.SPD(2)
    X = np.concatenate([space.random_point(400, rng=0), 4 * space.random_point(400, rng=1)])
    y = np.repeat([0, 1], 400)
    first = PrivateTangentSpace(dpm.Ball(space, 2 * np.eye(2), radius=2.5), dpm.GaussianDP(1.0), random_state=0)
    second = clone(model(dpm.Ball(dpm.Euclidean(3), np.zeros(3), 2.5), classes=[0, 1]))
    chain = make_pipeline(first, second)
    chain.fit(X, y)
    assert np.mean(chain.predict(X) == y) > 0.8


def test_persons_and_malformed_records_count_inside_of_the_promise():
    X, y = table()
    X[3], labels = np.nan, y.astype(object)
    labels[5] = "none of them"
    fitted = model(on_invalid="center").fit(X, labels, group_by=np.arange(len(y)) // 5)
    assert fitted.guarantee_.unit == "person"
    assert fitted.release_.n == 300
    assert np.all(np.isfinite(fitted.coef_))


def test_a_point_out_of_reach_is_no_malformed_record_and_counts_as_the_centre():
    """Its logarithm leaves floating point; that it is there must not decide whether there is a release."""
    space, y = dpm.SPD(2), np.repeat(["no", "yes"], 100)
    ball = dpm.Ball(space, 1e-200 * np.eye(2), radius=2.0)
    far = 1e-200 * space.random_point(200, rng=0)
    at_center = far.copy()
    far[3], at_center[3] = 1e200 * np.eye(2), 1e-200 * np.eye(2)
    found = [model(ball, classes=["no", "yes"]).fit(X, y).coef_ for X in (far, at_center)]
    assert np.array_equal(*found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_layout_and_read_only_tables_change_nothing(dtype):
    X, y = table()
    X = X.astype(dtype)
    usual = model().fit(X.astype(float), y).coef_
    odd = np.asfortranarray(X)
    odd.setflags(write=False)
    assert np.array_equal(model().fit(odd, y).coef_, usual)


@pytest.mark.parametrize(
    ("given", "X", "message"),
    [
        ({"classes": [0]}, None, "two labels"),
        ({"initial": (np.zeros((2, 2)), np.zeros(2))}, None, "coef of shape"),
        ({"penalty": -1.0}, None, "penalty"),
        ({"steps": 0}, None, "steps"),
        ({"domain": dpm.WholeSpace(dpm.Euclidean(2), np.zeros(2))}, None, "Ball"),
        ({"budget": 1.0}, None, "budget"),
        ({"classes": [0, 1]}, None, "every label"),
        ({}, np.full((1500, 2), np.nan), "finite"),
        ({}, np.zeros((1500, 3)), "shape"),
        ({}, np.zeros((0, 2)), "empty"),
    ],
)
def test_wrong_use_is_told_before_anything_is_drawn(given, X, message):
    from dpmanifolds.auditing.front_door import overheard_noise

    usual, y = table()
    with overheard_noise() as tap, pytest.raises((dpm.DPManifoldsError, TypeError, ValueError), match=message):
        model(**given).fit(usual if X is None else X, y[: len(usual if X is None else X)])
    assert tap.said == []


def test_the_ledger_is_charged_once(tmp_path):
    ledger = dpm.Ledger(tmp_path / "account.sqlite")
    ledger.open_dataset("clinic", BUDGET)
    model(random_state=None, ledger=ledger, dataset="clinic").fit(*table())
    assert [entry.kind for entry in ledger.entries("clinic")] == ["open", "spend"]
    with pytest.raises(dpm.BudgetExceededError):
        model(random_state=None, ledger=ledger, dataset="clinic").fit(*table())
