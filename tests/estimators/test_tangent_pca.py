"""Principal directions at a private mean: what one record can move, what is paid, what is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dpmanifolds as dpm
from dpmanifolds.estimators import PrivateTangentPCA
from dpmanifolds.privacy import compose
from tests.selection import thorough

SPACE = dpm.SPD(2)
BALL = dpm.Ball(SPACE, np.eye(2), radius=3.0)


def stretched(count: int, spread: tuple[float, ...] = (0.8, 0.3, 0.1), seed: int = 0) -> np.ndarray:
    """Records whose coordinates at the centre have these deviations."""
    draws = np.random.default_rng(seed).standard_normal((count, 3)) * spread
    return SPACE.exp(np.eye(2), SPACE.from_coordinates(np.eye(2), draws))


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize(
    "budget", [dpm.PureDP(1.0), dpm.GaussianDP(0.7), dpm.ApproxDP(1.0, 1e-6), dpm.ZeroConcentratedDP(0.5)], ids=repr
)
def test_both_releases_together_keep_the_budget(budget):
    model = PrivateTangentPCA(BALL, budget, 2).fit(stretched(400))
    mean, moment = model.releases_
    assert model.guarantee_ == compose(mean.guarantee, moment.guarantee)
    assert model.guarantee_.fits(budget)
    # and leave next to nothing of it
    spent = PrivateTangentPCA(BALL, budget, 2, mean_share=0.5).fit(stretched(400)).guarantee_
    assert not compose(spent, dpm.Guarantee.pure(0.02)).fits(budget)


def test_the_share_of_the_mean_buys_a_better_mean():
    errors = [
        PrivateTangentPCA(BALL, dpm.PureDP(1.0), 1, mean_share=share)
        .fit(stretched(200))
        .releases_[0]
        .expected_error.mean
        for share in (0.1, 0.8)
    ]
    # eight times the part of a pure budget; the number of steps may differ
    assert 5 * errors[1] < errors[0] < 10 * errors[1]


def test_with_a_large_budget_it_is_pca_of_the_tangent_coordinates():
    records = BALL.clip(stretched(5000))
    model = PrivateTangentPCA(BALL, dpm.GaussianDP(600.0), 3, clip_norm=4.0, random_state=0).fit(records)
    mean = dpm.frechet_mean(SPACE, records).point
    features = SPACE.to_coordinates(mean, SPACE.log(mean, records))
    values = np.linalg.eigvalsh(features.T @ features / len(features))[::-1]
    assert np.allclose(model.explained_variance_, values, atol=1e-4)
    assert np.allclose(model.explained_variance_ratio_, values / values.sum(), atol=1e-4)
    assert np.allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)
    scores = model.transform(records)
    assert np.allclose(scores.T @ scores / len(scores), np.diag(values), atol=1e-3)
    assert np.allclose(model.inverse_transform(scores), records, rtol=1e-9)


def test_directions_are_found_at_a_usual_budget():
    records = stretched(20_000)
    features = SPACE.to_coordinates(np.eye(2), SPACE.log(np.eye(2), records))
    whole = np.linalg.eigh(features.T @ features)[1][:, -1]
    found = PrivateTangentPCA(BALL, dpm.PureDP(1.0), 1, clip_norm=2.0, random_state=0).fit(records).components_[0]
    assert abs(found @ whole) > 0.999


@thorough("fits", 60, 120)
def test_noise_of_the_second_moment_has_the_calibrated_scale(fits):
    """χ² over 6 normals of each fit; a scale that is 30 % off lies far outside of the band of 1 − 1e−6."""
    records = np.repeat(np.eye(2)[None], 50, axis=0)
    model = PrivateTangentPCA(BALL, dpm.GaussianDP(2.0), 1, mean_share=0.5, clip_norm=1.0, numerics="rounded")
    deviations = []
    for seed in range(fits):
        mean, moment = model.set_params(random_state=seed).fit(records).releases_
        assert moment.sigma == pytest.approx(np.sqrt(2) / 50 / (2.0 * np.sqrt(0.5)), rel=1e-6)
        # records all sit at the centre: the second moment is that of one vector
        vector = SPACE.to_coordinates(mean.value, SPACE.log(mean.value, np.eye(2)))
        exact = [*vector**2, *(np.sqrt(2) * np.outer(vector, vector)[np.triu_indices(3, 1)])]
        deviations.append((moment.coordinates - exact) / moment.sigma)
    total = float(np.sum(np.square(deviations)))
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], np.size(deviations))
    assert low < total < high
    assert not low < total * 1.3**2 < high
    assert not low < total * 0.7**2 < high


def test_variances_are_never_negative():
    model = PrivateTangentPCA(BALL, dpm.PureDP(1e-3), 3, random_state=0).fit(stretched(20))
    assert np.all(model.explained_variance_ >= 0)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": 0}, "at least 1"),
        ({"n_components": 4}, "at most 3"),
        ({"mean_share": 0.0}, "above 0 and below 1"),
        ({"mean_share": 1.5}, "from 0 to 1"),
        ({"clip_norm": -1.0}, "clip_norm must be"),
        ({"numerics": "fast"}, "numerics must be one of"),
        ({"numerics": "idealized"}, "numerics must be one of"),
    ],
)
def test_wrong_arguments_are_told(wrong, message):
    with pytest.raises(dpm.ArgumentError, match=message):
        PrivateTangentPCA(BALL, dpm.PureDP(1.0), 1).set_params(**wrong).fit(stretched(20))
