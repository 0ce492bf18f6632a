"""The logistic loss: what one record can do to a gradient, whatever it and the others are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dpmanifolds as dpm
from dpmanifolds.descent.losses import LogisticLoss
from tests.descent.totals import integers_at, total_of

LOSSES = [LogisticLoss(3, 2, 2.0), LogisticLoss(3, 4, 2.0, penalty=0.2, start=np.linspace(-1, 1, 16))]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=["two", "four"])


def records(loss, count=40, seed=0):
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal((count, 3)), rng.integers(0, loss.classes, count).astype(float)


@every_loss
def test_a_record_pulls_no_further_than_the_bound_and_the_bound_is_near(loss):
    """Records at the edge whose class is all but ruled out pull as far as any can."""
    rng = np.random.default_rng(1)
    vectors, numbers = loss.prepare(records(loss, 500))
    edges = loss.prepare((vectors * 100, numbers))
    longest = 0.0
    for size in (0.1, 1.0, 50.0):
        for _ in range(20):
            w = size * rng.standard_normal(loss.manifold.dim)
            pulls = np.linalg.norm(loss.gradients(w, edges) - loss.anchor(w), axis=1)
            longest = max(longest, float(pulls.max()))
    assert 0.97 * loss.bound < longest <= loss.bound * (1 + 1e-12)


@every_loss
def test_the_hessian_stays_below_the_smoothness(loss):
    rng, dim = np.random.default_rng(2), loss.manifold.dim
    held = loss.prepare(records(loss, 60))
    for size in (0.0, 1.0):
        w = size * rng.standard_normal(dim)
        rows = [
            (loss.gradients(w + 1e-5 * e, held) - loss.gradients(w - 1e-5 * e, held)).mean(axis=0) / 2e-5
            for e in np.eye(dim)
        ]
        assert np.linalg.eigvalsh((np.array(rows) + np.array(rows).T) / 2)[-1] <= loss.smoothness + 1e-6


HARD = [
    ([np.nan, 0.0, 0.0], 0.0),
    ([np.inf, 0.0, 0.0], 1.0),
    ([1e300, -1e300, 1e300], 1.0),
    ([5e-324, 0.0, 0.0], 0.0),
    ([1.0, 0.0, 0.0], np.nan),
    ([1.0, 0.0, 0.0], 7.0),
    ([1.0, 0.0, 0.0], -1.0),
    ([1.0, 0.0, 0.0], 0.5),
]


@every_loss
@pytest.mark.parametrize("moving", [False, True])
def test_what_a_record_adds_is_the_same_whatever_the_others_are(loss, moving):
    w = np.random.default_rng(3).standard_normal(loss.manifold.dim)
    vectors, numbers = records(loss)
    usual = integers_at(loss, w, (vectors, numbers), loss.bound, moving=moving)
    for vector, number in HARD:
        changed = vectors.copy(), numbers.copy()
        changed[0][7], changed[1][7] = vector, number
        found = integers_at(loss, w, changed, loss.bound, moving=moving)
        rest = np.arange(len(numbers)) != 7
        assert np.array_equal(found[:, rest], usual[:, rest])
        if not np.isfinite(number) or number not in range(loss.classes) or not np.all(np.isfinite(vector)):
            assert not found[:, 7].any()


@every_loss
def test_integers_are_the_same_in_any_company_where_rows_can_change(loss):
    w = np.random.default_rng(3).standard_normal(loss.manifold.dim)
    vectors, numbers = records(loss, 300)
    usual = integers_at(loss, w, (vectors, numbers), loss.bound, moving=True)
    for chosen in (slice(0, 1), slice(7, 8), slice(3, 111)):
        alone = integers_at(loss, w, (vectors[chosen], numbers[chosen]), loss.bound, moving=True)
        assert np.array_equal(alone, usual[:, chosen])


@every_loss
def test_a_person_is_the_mean_of_its_records(loss):
    w = np.random.default_rng(4).standard_normal(loss.manifold.dim)
    vectors, numbers = records(loss, 6)
    found = total_of(loss, w, (vectors, numbers), group_by=[0, 0, 0, 1, 1, 2])
    rows = loss.gradients(w, loss.prepare((vectors, numbers))) - loss.anchor(w)
    wanted = rows[:3].mean(axis=0) + rows[3:5].mean(axis=0) + rows[5]
    assert found == pytest.approx(wanted, abs=1e-6)


def test_descent_without_much_noise_reaches_scikit_learns_minimum():
    """λ/2|w|² on all but the intercept is scikit-learn's penalty 1/C; here the intercept has one too, tiny as λ is."""
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((3000, 2))
    numbers = (rng.random(3000) < 1 / (1 + np.exp(-(vectors @ [1.5, -0.7] + 0.4)))).astype(float)
    loss = LogisticLoss(2, 2, 6.0)
    release = dpm.private_descent(
        loss, (vectors, numbers), loss.manifold, None, start=np.zeros(3), steps=400, step_size=0.6, sigma=1e-4, rng=0
    )
    peer = LogisticRegression(C=1e8).fit(vectors, numbers)
    assert release.value[:2] == pytest.approx(peer.coef_[0], abs=0.02)
    assert release.value[2] * loss.constant == pytest.approx(peer.intercept_[0], abs=0.02)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"features": 0}, "features"),
        ({"classes": 1}, "classes"),
        ({"radius": -1.0}, "radius"),
        ({"penalty": -1.0}, "penalty"),
        ({"start": np.zeros(2)}, "finite numbers"),
        ({"start": np.full(4, np.nan)}, "finite numbers"),
    ],
)
def test_wrong_constants_are_told(given, message):
    with pytest.raises((dpm.DPManifoldsError, TypeError), match=message):
        LogisticLoss(**({"features": 3, "classes": 2, "radius": 1.0} | given))


@pytest.mark.parametrize("wrong", [np.zeros((4, 3)), (np.zeros((4, 2)), np.zeros(4)), (np.zeros((4, 3)), np.zeros(3))])
def test_records_of_another_form_are_refused(wrong):
    with pytest.raises(dpm.ArgumentError):
        LOSSES[0].prepare(wrong)
