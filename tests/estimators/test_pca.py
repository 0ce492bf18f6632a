"""Private principal components: right subspaces, right noise, scikit-learn's manners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, ArgumentError, GaussianDP, NotOnManifoldError, PureDP
from dpmanifolds.estimators.pca import PrivatePCA

BUDGET = ApproxDP(1.0, 1e-6)
DIGITS = load_digits().data
TABLE = np.random.default_rng(0).standard_normal((4000, 6)) * [3.0, 2.5, 0.5, 0.5, 0.5, 0.5]


def captured(components, X):
    return np.sum((X @ components.T) ** 2) / np.sum(X**2)


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize("solver", ["covariance", "descent"])
@pytest.mark.parametrize("budget", [BUDGET, GaussianDP(0.5), PureDP(5.0)], ids=repr)
def test_the_main_plane_is_found_within_the_budget(solver, budget):
    pca = PrivatePCA(2, budget, radius=8.0, solver=solver, random_state=0).fit(TABLE)
    best = captured(np.linalg.eigh(TABLE.T @ TABLE)[1].T[-2:], TABLE)
    assert captured(pca.components_, TABLE) > 0.95 * best
    assert np.allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-10)
    assert pca.guarantee_.fits(budget)
    assert pca.solver_ == solver


def test_digits_at_three_budgets():
    """Five components, R = 60; the best capture 84.8 %. Averages of two runs."""
    shares = []
    for epsilon in (0.1, 1.0, 10.0):
        runs = [PrivatePCA(5, ApproxDP(epsilon, 1e-6), 60.0, random_state=seed).fit(DIGITS) for seed in range(2)]
        shares.append(np.mean([captured(run.components_, DIGITS) for run in runs]))
    assert shares[0] > 0.64
    assert shares[1] > 0.78
    assert shares[2] > 0.84


def test_auto_decides_from_public_numbers():
    def chosen(features, **options):
        return PrivatePCA(1, BUDGET, 1.0, random_state=0, **options).fit(np.zeros((5, features))).solver_

    assert chosen(64) == "covariance"
    assert chosen(3001, steps=1) == "descent"
    assert chosen(64, solver="descent", steps=1) == "descent"


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("budget", [ApproxDP(0.1, 1e-6), BUDGET, PureDP(10.0)], ids=repr)
def test_auto_is_not_worse_than_descent_on_digits(budget):
    runs = {
        solver: PrivatePCA(2, budget, 60.0, solver=solver, random_state=0).fit(DIGITS) for solver in ("auto", "descent")
    }
    assert captured(runs["auto"].components_, DIGITS) > captured(runs["descent"].components_, DIGITS) - 0.01


def test_variances_are_told_by_the_covariance_alone():
    pca = PrivatePCA(2, GaussianDP(10.0), radius=20.0, random_state=0).fit(TABLE)
    assert pca.explained_variance_ == pytest.approx([9.0, 6.25], rel=0.1)
    assert PrivatePCA(2, GaussianDP(10.0), radius=20.0, solver="descent").fit(TABLE).explained_variance_ is None


def test_it_follows_the_manners_of_scikit_learn():
    pca = clone(PrivatePCA(2, BUDGET, radius=8.0, center=np.ones(6), random_state=0))
    with pytest.warns(dpm.UnprotectedModelWarning, match="PrivatePCA"):
        scores = make_pipeline(FunctionTransformer(), pca).fit_transform(TABLE)
    assert scores.shape == (4000, 2)
    assert np.allclose(pca.transform(pca.inverse_transform(scores[:5])), scores[:5])
    assert pca.get_feature_names_out().tolist() == ["privatepca0", "privatepca1"]
    assert pca.set_params(n_components=3).n_components == 3


@pytest.mark.parametrize("solver", ["covariance", "descent"])
def test_one_record_moves_what_is_noised_by_no_more_than_the_sensitivity(solver):
    """The noise of a fit has the scale of its sensitivity over what earlier stages left of μ, read off the release."""
    release = PrivatePCA(2, GaussianDP(0.5), radius=8.0, solver=solver, steps=1).fit(TABLE).release_
    earlier = sum(stage.guarantee.as_gaussian().mu ** 2 for stage in release.stages) if solver == "covariance" else 0.0
    assert release.sensitivity.value / release.sigma == pytest.approx(np.sqrt(0.25 - earlier), rel=1e-5)
    if solver == "descent":
        assert release.sensitivity.value == pytest.approx(64 / 4000, rel=1e-5)
    else:
        # vectors with their constant are no longer than the square root of this
        longest = release.sensitivity.value * 4000 / np.sqrt(2)
        assert longest < 1.25 * (2 * 8.0) ** 2


def test_around_the_mean_it_finds_the_components_of_the_covariance_and_the_mean():
    """Without the mean the leading component of these vectors is the way to it."""
    away = np.array([0.0, 0.0, 0.0, 20.0, 0.0, 0.0])
    pca = PrivatePCA(2, GaussianDP(3.0), radius=60.0, center="mean", random_state=0).fit(TABLE + away)
    assert np.linalg.norm(pca.components_[:, :2]) > 1.4
    assert np.allclose(pca.mean_, away, atol=0.5)
    assert pca.explained_variance_ == pytest.approx([9.0, 6.25], rel=0.2)
    assert pca.guarantee_.fits(GaussianDP(3.0))
    plain = PrivatePCA(2, GaussianDP(3.0), radius=60.0, random_state=0).fit(TABLE + away)
    assert abs(plain.components_[0, 3]) > 0.99
    with pytest.raises(ArgumentError, match="center='mean'"):
        PrivatePCA(2, BUDGET, radius=8.0, center="mean", solver="descent").fit(TABLE)
    with pytest.raises(ArgumentError, match="center"):
        PrivatePCA(2, BUDGET, radius=8.0, center="median").fit(TABLE)


@pytest.mark.parametrize("solver", ["covariance", "descent"])
def test_rows_that_are_not_finite_count_as_the_centre_where_that_is_asked_for(solver):
    spoiled, mended = TABLE.copy(), TABLE.copy()
    spoiled[[3, 70]] = [[np.nan], [np.inf]]
    mended[[3, 70]] = 1.0
    options = {"radius": 8.0, "center": np.ones(6), "solver": solver, "steps": 3, "random_state": 0}
    one = PrivatePCA(2, BUDGET, on_invalid="center", **options).fit(spoiled)
    assert np.array_equal(one.components_, PrivatePCA(2, BUDGET, **options).fit(mended).components_)
    with pytest.raises(NotOnManifoldError, match="finite"):
        PrivatePCA(2, BUDGET, **options).fit(spoiled)


@pytest.mark.parametrize(
    ("options", "X", "error", "message"),
    [
        ({"n_components": 6}, TABLE, ArgumentError, "below the number of columns"),
        ({"n_components": 0}, TABLE, ArgumentError, "n_components"),
        ({"radius": -1.0}, TABLE, ArgumentError, "radius"),
        ({"solver": "svd"}, TABLE, ArgumentError, "solver"),
        ({"center": [0.0, 1.0]}, TABLE, ArgumentError, "center"),
        ({"budget": 1.0}, TABLE, ArgumentError, "budget"),
        ({}, np.zeros(4), ArgumentError, "table"),
        ({}, np.where(np.arange(12).reshape(2, 6) == 7, np.nan, 1.0), NotOnManifoldError, "finite"),
    ],
)
def test_bad_arguments_are_refused(options, X, error, message):
    with pytest.raises(error, match=message):
        PrivatePCA(**({"n_components": 2, "budget": BUDGET, "radius": 8.0} | options)).fit(X)
