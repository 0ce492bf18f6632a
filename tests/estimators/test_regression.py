"""Geodesic regression and k-means as scikit-learn knows them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import dpmanifolds as dpm

SPACE, NORTH = dpm.Sphere(2), np.array([0.0, 0.0, 1.0])
BALL = dpm.Ball(SPACE, NORTH, radius=1.0)
RNG = np.random.default_rng(0)
AGE = RNG.uniform(20, 80, (600, 1))
Y = SPACE.exp_coordinates(
    NORTH, np.stack([0.015 * (AGE[:, 0] - 50), 0 * AGE[:, 0]], axis=1) + 0.05 * RNG.normal(size=(600, 2))
)


def model(**given):
    return dpm.PrivateGeodesicRegression(BALL, dpm.GaussianDP(1.0), covariate_bounds=(20, 80), **given)


def test_it_fits_predicts_clones_and_pickles():
    fitted = model(random_state=0).fit(AGE, Y)
    assert fitted.n_features_in_ == 1
    assert fitted.guarantee_.fits(dpm.GaussianDP(1.0))
    assert np.allclose(np.abs(fitted.coef_), [[0.015, 0.0]], atol=0.003)
    again = clone(fitted)
    assert again.get_params().keys() == fitted.get_params().keys()
    assert not [name for name in vars(again) if name.endswith("_")]
    assert np.array_equal(again.fit(AGE, Y).predict(AGE), fitted.predict(AGE))
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict(AGE[:3]), fitted.predict(AGE[:3]))
    assert model(on_invalid="no such thing").on_invalid == "no such thing"


def test_it_says_that_a_score_has_no_noise():
    fitted = model(random_state=0).fit(AGE, Y)
    with pytest.warns(dpm.UnprotectedScoreWarning):
        score = fitted.score(AGE, Y)
    assert 0.8 < score < 1
    assert fitted.regression_.r_squared == pytest.approx(score, abs=0.1)


def test_wrong_use_is_told_in_our_words():
    with pytest.raises(NotFittedError):
        model().predict(AGE)
    fitted = model(random_state=0).fit(AGE, Y)
    for wrong in (np.zeros((3, 2)), np.full((2, 1), np.nan), [["a"]]):
        with pytest.raises(dpm.ArgumentError):
            fitted.predict(wrong)
    with pytest.raises(dpm.ArgumentError, match="as many"):
        model().fit(AGE[:-1], Y)
    with pytest.raises(dpm.ArgumentError, match="covariate_bounds"):
        dpm.PrivateGeodesicRegression(BALL, dpm.GaussianDP(1.0), covariate_bounds=None).fit(AGE, Y)


def test_clusters_are_found_where_they_are():
    ways = 0.7 * np.array([[1.0, 0.0], [-0.5, 0.87], [-0.5, -0.87]])
    points = SPACE.exp_coordinates(NORTH, np.repeat(ways, 300, axis=0) + 0.07 * RNG.normal(size=(900, 2)))
    found = dpm.PrivateKMeans(3, BALL, dpm.GaussianDP(1.0), random_state=0).fit(points)
    truth = SPACE.exp_coordinates(NORTH, ways)
    assert np.max(np.min(SPACE.dist(found.cluster_centers_[:, None], truth[None]), axis=0)) < 0.05
    assert np.allclose(found.counts_, 300, atol=60)
    assert not hasattr(found, "labels_")
    assert len(set(found.predict(truth).tolist())) == 3


def test_k_means_refuses_what_it_cannot_start_from():
    points = SPACE.random_point(20, rng=0)
    for given, words in (
        ({"centers": points[:2]}, "3 points"),
        ({"centers": 2 * points[:3]}, "points of"),
        ({"rounds": 0}, "rounds"),
    ):
        with pytest.raises(dpm.DPManifoldsError, match=words):
            dpm.PrivateKMeans(3, BALL, dpm.GaussianDP(1.0), **given).fit(points)
    with pytest.raises(dpm.ArgumentError, match="n_clusters"):
        dpm.PrivateKMeans(0, BALL, dpm.GaussianDP(1.0)).fit(points)


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.filterwarnings("ignore:the noise is")
def test_empty_clusters_and_more_clusters_than_records_are_released_too(count):
    points = SPACE.exp_coordinates(NORTH, np.zeros((5, 2)))
    found = dpm.PrivateKMeans(count, BALL, dpm.PureDP(1.0), rounds=3, random_state=0).fit(points)
    assert found.cluster_centers_.shape == (count, 3)
    assert np.all(SPACE.belongs(found.cluster_centers_))
    assert np.all(found.counts_ >= 1)
