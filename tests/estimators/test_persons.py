"""Estimators that protect persons with several records."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import dpmanifolds as dpm
from dpmanifolds.estimators import (
    PrivateMDM,
    PrivatePCA,
    PrivateTangentPCA,
    PrivateTangentSpace,
    UnprotectedScoreWarning,
)

SPACE = dpm.SPD(2)
BALL = dpm.Ball(SPACE, np.eye(2), radius=2.0)


def table(persons=40, width=4, seed=0):
    rng = np.random.default_rng(seed)
    names = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, 6, size=persons)))
    return rng.standard_normal((len(names), width)) * np.linspace(3, 0.3, width), names


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("solver", ["covariance", "descent"])
@pytest.mark.parametrize("budget", [dpm.PureDP(3.0), dpm.ApproxDP(3.0, 1e-6)], ids=["pure", "approximate"])
def test_persons_of_one_record_each_change_nothing(solver, budget):
    """The descent charges a little rounding more, hence other last digits."""
    vectors, _ = table(300)
    names = np.random.default_rng(0).permutation(len(vectors))
    sorted_by_name = vectors[np.argsort(names)]
    options = {"radius": 6.0, "solver": solver, "steps": 5, "random_state": 2}
    one = PrivatePCA(2, budget, **options).fit(vectors, group_by=names)
    other = PrivatePCA(2, budget, **options).fit(sorted_by_name)
    assert np.allclose(np.abs(one.components_), np.abs(other.components_), atol=1e-6)


@pytest.mark.parametrize("solver", ["covariance", "descent"])
def test_repeating_the_rows_of_a_person_changes_nothing(solver):
    vectors, names = table(200)
    many = np.where(names == 7, 30, 1)
    options = {"radius": 6.0, "solver": solver, "steps": 5, "random_state": 2}
    budget = dpm.ApproxDP(3.0, 1e-6)
    one = PrivatePCA(1, budget, **options).fit(vectors, group_by=names)
    other = PrivatePCA(1, budget, **options).fit(np.repeat(vectors, many, axis=0), group_by=np.repeat(names, many))
    assert np.allclose(np.abs(one.components_), np.abs(other.components_), atol=1e-6)
    assert one.guarantee_ == other.guarantee_


def test_tangent_pca_counts_persons_in_both_of_its_releases():
    names = np.repeat(np.arange(100), 3)
    records = SPACE.random_point(300, rng=0)
    budget = dpm.GaussianDP(1.0)
    model = PrivateTangentPCA(BALL, budget, 1, random_state=0).fit(records, group_by=names)
    mean = model.releases_[0]
    assert mean.n == 100
    assert model.guarantee_.fits(budget)
    ungrouped = PrivateTangentPCA(BALL, budget, 1, random_state=0).fit(records)
    assert float(model.releases_[1].sensitivity) == pytest.approx(
        3 * float(ungrouped.releases_[1].sensitivity), rel=1e-6
    )
    many = np.where(names == 7, 30, 1)
    other = PrivateTangentPCA(BALL, budget, 1, random_state=0)
    other.fit(np.repeat(records, many, axis=0), group_by=np.repeat(names, many))
    assert np.allclose(model.components_, other.components_, atol=1e-6)


def test_mdm_and_tangent_space_hand_the_names_on():
    names = np.repeat(np.arange(60), 4)
    records, labels = SPACE.random_point(240, rng=0), np.where(names < 20, "a", "b")
    model = PrivateMDM(BALL, dpm.PureDP(2.0), random_state=1).fit(records, labels, group_by=names)
    other = dpm.private_class_means(records, labels, BALL, dpm.PureDP(2.0), group_by=names, rng=1)
    assert np.array_equal(model.means_, other.means)
    assert [release.n for release in model.class_means_.releases] == [20, 40]
    space = PrivateTangentSpace(BALL, dpm.PureDP(2.0)).fit(records, group_by=names)
    assert space.release_.n == 60
    with pytest.raises(dpm.ArgumentError, match="same label"):
        PrivateMDM(BALL, dpm.PureDP(2.0)).fit(records, np.tile(["a", "b"], 120), group_by=names)


def test_the_names_that_keep_a_person_out_of_the_test_fold_can_be_those_that_protect_them():
    names = np.repeat(np.arange(60), 4)
    records = SPACE.random_point(240, rng=0) * np.where(names < 30, 1.0, 4.0)[:, None, None]
    labels = np.where(names < 30, "small", "large")
    wide = dpm.Ball(SPACE, 2 * np.eye(2), radius=2.0)
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprotectedScoreWarning)
        model = PrivateMDM(wide, dpm.PureDP(9.0), random_state=0).set_fit_request(group_by="groups")
        scores = cross_val_score(model, records, labels, cv=GroupKFold(3), params={"groups": names})
    assert scores.min() > 0.6
    with pytest.raises(dpm.ArgumentError, match="same label"):
        make_pipeline(PrivateMDM(wide, dpm.PureDP(9.0))).fit(records, labels, privatemdm__group_by=names % 40)


def test_names_are_checked():
    model = PrivatePCA(1, dpm.PureDP(1.0), 3.0)
    vectors, names = table()
    with pytest.raises(dpm.ArgumentError, match="group_by must name a person"):
        model.fit(vectors, group_by=names[:-1])
