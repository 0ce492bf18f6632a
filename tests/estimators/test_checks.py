"""scikit-learn's own checks, for every estimator in so far as it takes tables.

The checks try tables of many widths and many labels, and a private estimator is told both before it sees records. So
each is wrapped in a class that says them in its `fit`, from the shape of the table and the list of labels, and changes
nothing else. The budget leaves no noise to speak of.
"""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator

import dpmanifolds as dpm
from dpmanifolds import estimators

BUDGET = dpm.GaussianDP(600.0)
NEAR = {"budget": BUDGET, "random_state": 0}


def ball_for(width: int) -> dpm.Ball:
    return dpm.Ball(dpm.Euclidean(width), np.zeros(width), radius=20.0)


class Suited:
    """`fit` with public arguments that suit the table; parameters are as before when it ends."""

    def fit(self, X: Any, y: Any = None, **given: Any) -> Any:
        shape = getattr(X, "shape", np.shape(np.asarray(X)))
        suited = self.suit(shape[1] if len(shape) == 2 and shape[1] else 1, y)
        before = {name: getattr(self, name) for name in suited}
        try:
            vars(self).update(suited)
            return super().fit(X, y, **given)  # type: ignore[misc]
        finally:
            vars(self).update(before)

    def suit(self, width: int, y: Any) -> dict[str, Any]:
        return {"domain": ball_for(width)}


class SuitedToLabels(Suited):
    def suit(self, width: int, y: Any) -> dict[str, Any]:
        labels = np.asarray([] if y is None else y)
        found = np.unique(labels).tolist()
        whole = labels.dtype.kind not in "fc" or np.array_equal(labels, np.round(labels))
        return {"domain": ball_for(width), "classes": found if whole and len(found) > 1 else [0, 1]}


class Mean(Suited, dpm.PrivateFrechetMean):
    pass


class Median(Suited, dpm.PrivateFrechetMedian):
    pass


class TangentSpace(Suited, dpm.PrivateTangentSpace):
    pass


class TangentPCA(Suited, dpm.PrivateTangentPCA):
    pass


class KMeans(Suited, dpm.PrivateKMeans):
    pass


class MDM(Suited, dpm.PrivateMDM):
    pass


class Logistic(SuitedToLabels, dpm.PrivateLogisticRegression):
    pass


class TangentClassifier(SuitedToLabels, dpm.PrivateTangentClassifier):
    pass


def as_points(y: Any) -> Any:
    """Points of Euclidean(1): numbers as a column."""
    return y if y is None else np.reshape(np.asarray(y), (-1, 1))


class Regression(Suited, dpm.PrivateGeodesicRegression):
    def suit(self, width: int, y: Any) -> dict[str, Any]:
        return {"covariate_bounds": [(-20, 20)] * width}

    def fit(self, X: Any, y: Any = None, **given: Any) -> Any:
        return super().fit(X, as_points(y), **given)

    def score(self, X: Any, y: Any) -> float:
        return super().score(X, as_points(y))


MODELS: dict[str, BaseEstimator] = {
    "mean": Mean(ball_for(1), **NEAR),
    "median": Median(ball_for(1), steps=3, **NEAR),
    "tangent space": TangentSpace(ball_for(1), **NEAR),
    "tangent pca": TangentPCA(ball_for(1), **NEAR),
    "k-means": KMeans(2, ball_for(1), **NEAR),
    "mdm": MDM(ball_for(1), **NEAR),
    "logistic": Logistic(ball_for(1), classes=[0, 1], **NEAR),
    "tangent classifier": TangentClassifier(ball_for(1), classes=[0, 1], **NEAR),
    "pca": dpm.PrivatePCA(1, radius=20.0, **NEAR),
    "regression": Regression(ball_for(1), covariate_bounds=(-20, 20), **NEAR),
}

OBJECTS = (
    "in fit what is no number is one malformed record, and the error names neither it nor its type; predict and "
    "transform take arrays of numbers"
)
ARRAYS = "needs SCIPY_ARRAY_API before SciPy is imported; tests/manifolds runs every array library"
PROTECTED = "labels are private: the error says that one is none of the classes, and not what it is"
CANNOT_HOLD = {
    **{(name, "check_dtype_object"): OBJECTS for name in MODELS},
    **{(name, "check_array_api_input"): ARRAYS for name in MODELS},
    ("logistic", "check_classifiers_regression_target"): PROTECTED,
    ("tangent classifier", "check_classifiers_regression_target"): PROTECTED,
    ("tangent classifier", "check_classifiers_one_label"): "which labels occur is private: with one, noise decides",
}


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


CASES = [(kind, check) for kind, model in MODELS.items() for _, check in estimator_checks_generator(model, mark=None)]


@pytest.mark.grid(at_most=160)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "check"), CASES, ids=[f"{kind}-{number}-{name_of(check)}" for number, (kind, check) in enumerate(CASES)]
)
def test_a_check_of_scikit_learn_holds_or_is_listed_with_its_reason(kind, check):
    """What is listed must fail, so that the list stays true."""
    if (kind, name_of(check)) not in CANNOT_HOLD:
        try:
            check(MODELS[kind])
        except SkipTest as skipped:
            if "pandas is not installed" in str(skipped):
                pytest.skip(f"{check} without its frames: {skipped}")
            pytest.fail(f"left out by scikit-learn and not listed: {skipped}")
        return
    with pytest.raises((Exception, SkipTest)):
        check(MODELS[kind])


def test_every_estimator_that_takes_tables_is_checked():
    private = {each for each in map(vars(estimators).get, estimators.__all__) if issubclass(each, BaseEstimator)}
    assert len(MODELS) == len(private) - 1
    checked = {each for model in MODELS.values() for each in type(model).__mro__}
    assert private - checked == {dpm.Congruence}, "it takes matrices alone"
    assert {check for _, check in CANNOT_HOLD} <= {name_of(check) for _, check in CASES}
