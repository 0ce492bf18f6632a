"""A list with one odd record: it is the centre, inside of the promise, and decides nothing about the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.errors import ArgumentError

ROWS = [[0.1 * (row % 7), 0.2 - 0.05 * (row % 5)] for row in range(40)]
LABELS = [row % 2 for row in range(40)]
ODD = {
    "short": [0.3],
    "long": np.zeros(3),
    "a number": 3.0,
    "missing": None,
    "complex": [1j, 0.2],
    "nested": [[1], [2]],
    "text": "abc",
    "bytes": b"ab",
    "mapping": {},
    "object": object(),
    "huge": [10**400, 1],
}
BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=2.0)
BUDGET = dpm.GaussianDP(1.0)
MEND = {"on_invalid": "center", "random_state": 0}
FITS = {
    "mean": lambda X: dpm.PrivateFrechetMean(BALL, BUDGET, **MEND).fit(X).mean_,
    "median": lambda X: dpm.PrivateFrechetMedian(BALL, BUDGET, steps=3, **MEND).fit(X).median_,
    "tangent space": lambda X: dpm.PrivateTangentSpace(BALL, BUDGET, **MEND).fit(X).reference_,
    "tangent PCA": lambda X: dpm.PrivateTangentPCA(BALL, BUDGET, **MEND).fit(X).components_,
    "k-means": lambda X: dpm.PrivateKMeans(2, BALL, BUDGET, **MEND).fit(X).cluster_centers_,
    "class means": lambda X: (
        dpm.PrivateMDM(BALL, BUDGET, private_labels=True, classes=[0, 1], **MEND).fit(X, LABELS).means_
    ),
    "classifier": lambda X: (
        dpm.PrivateTangentClassifier(BALL, BUDGET, classes=[0, 1], **MEND).fit(X, LABELS).decision_function(ROWS)
    ),
    "logistic": lambda X: (
        dpm.PrivateLogisticRegression(BALL, BUDGET, classes=[0, 1], steps=3, **MEND).fit(X, LABELS).coef_
    ),
    "PCA": lambda X: dpm.PrivatePCA(1, BUDGET, 2.0, **MEND).fit(X).components_,
    "PCA around a centre": lambda X: dpm.PrivatePCA(1, BUDGET, 2.0, center=[0.0, 0.0], **MEND).fit(X).components_,
    "regression": lambda X: (
        dpm.PrivateGeodesicRegression(BALL, BUDGET, covariate_bounds=[(-1, 1)] * 2, **MEND).fit(X, np.array(ROWS)).coef_
    ),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_one_odd_record_of_a_list_counts_as_a_malformed_one(fit):
    """Whether there is an answer would tell that record apart."""
    expected = fit([*ROWS[:-1], [math.nan, 0.2]])
    for odd in ODD.values():
        assert np.array_equal(fit([*ROWS[:-1], odd]), expected)


def test_the_type_and_the_shape_of_an_array_are_told():
    mean = dpm.PrivateFrechetMean(BALL, BUDGET, **MEND)
    with pytest.raises(ArgumentError, match="Complex data not supported"):
        mean.fit(np.array(ROWS) + 0j)
    with pytest.raises(ArgumentError, match="Reshape your data"):
        mean.fit(np.zeros(40))
