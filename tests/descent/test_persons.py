"""Descent that protects persons: one clipped mean gradient each."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.descent.losses import (
    EigenvectorLoss,
    FrechetMeanLoss,
    FrechetMedianLoss,
    HyperbolicEmbeddingLoss,
    PCALoss,
)
from dpmanifolds.releases import private_descent, private_median
from tests.descent.totals import coordinates_of, total_of

BALL = dpm.Ball(dpm.SPD(2), np.eye(2), 1.5)
LOSSES = {
    "mean": (FrechetMeanLoss(BALL), BALL.center, lambda rng, m: dpm.SPD(2).random_point(m, rng=rng)),
    "median": (FrechetMedianLoss(BALL), 1.3 * np.eye(2), lambda rng, m: dpm.SPD(2).random_point(m, rng=rng)),
    "eigenvector": (EigenvectorLoss(3, 2.0), np.array([0.6, 0.0, 0.8]), lambda rng, m: rng.standard_normal((m, 3))),
    "pca": (PCALoss(dpm.Grassmann(4, 2), 2.0), np.eye(4)[:, :2], lambda rng, m: 3 * rng.standard_normal((m, 4))),
}
every_loss = pytest.mark.parametrize("kind", LOSSES)


def visits(kind, persons=12, seed=0):
    rng = np.random.default_rng(seed)
    names = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, 6, size=persons)))
    return LOSSES[kind][2](rng, len(names)), names


@every_loss
def test_a_person_is_the_mean_gradient_of_their_records(kind):
    loss, w, _ = LOSSES[kind]
    records, names = visits(kind)
    rows = loss.gradients(w, loss.prepare(records)) - (0 if loss.anchor(w) is None else loss.anchor(w))
    expected = np.stack([rows[names == name].mean(axis=0) for name in range(12)])
    for chosen in (None, np.array([2, 5])):
        found = total_of(loss, w, records, group_by=names, chosen=chosen)
        wanted = expected[slice(None) if chosen is None else chosen].sum(axis=0)
        assert np.allclose(coordinates_of(loss, w, found), wanted, atol=1e-5)


@every_loss
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_replacing_all_records_of_a_person_moves_the_sum_by_at_most_twice_the_clip(kind, share):
    loss, w, draw = LOSSES[kind]
    clip = share * loss.bound
    records, names = visits(kind, persons=8)
    sums = []
    for seed, count in enumerate((1, 1, 1, 3, 60, 1, 1, 1)):
        person = 50 * draw(np.random.default_rng(seed), count) if seed % 2 else draw(np.random.default_rng(seed), count)
        everyone = np.concatenate([names, np.full(count, 8)])
        sums.append(total_of(loss, w, np.concatenate([records, person]), clip, group_by=everyone))
    moved = max(np.linalg.norm(first - second) for first in sums for second in sums)
    assert 0.3 * clip < moved <= 2 * clip * (1 + 1e-15)


@every_loss
def test_persons_of_one_record_each_change_nothing(kind):
    loss, w, draw = LOSSES[kind]
    records = draw(np.random.default_rng(0), 200)
    options = {"start": w, "budget": dpm.ApproxDP(2.0, 1e-6), "steps": 4, "step_size": 0.05, "rng": 1}
    one = private_descent(loss, records, loss.manifold, group_by=np.arange(200), **options)
    other = private_descent(loss, records, loss.manifold, unit="person", **options)
    assert np.allclose(one.value, other.value, atol=1e-5)
    assert one.guarantee == other.guarantee
    assert float(one.sensitivity) == float(other.sensitivity)


@pytest.mark.parametrize("batch_size", [None, 20])
def test_n_and_batches_count_persons_and_the_unit_is_a_person(batch_size):
    loss, w, draw = LOSSES["eigenvector"]
    records, names = draw(np.random.default_rng(0), 900), np.repeat(np.arange(100), 9)
    given = {"start": w, "budget": dpm.ApproxDP(2.0, 1e-6), "steps": 3, "step_size": 0.1, "group_by": names}
    seen = []
    result = private_descent(
        loss, records, loss.manifold, batch_size=batch_size, callback=lambda t, point: seen.append(t), **given
    )
    assert float(result.sensitivity) == pytest.approx(2 * loss.bound / (batch_size or 100), rel=1e-6)
    assert result.guarantee.unit == "person"
    assert seen == [1, 2, 3]
    with pytest.raises(dpm.ArgumentError, match="at most the number of records, 100"):
        private_descent(loss, records, loss.manifold, batch_size=101, **given)


def test_records_of_many_blocks_give_the_same_sums():
    loss, w, draw = LOSSES["mean"]
    rng = np.random.default_rng(0)
    names = rng.integers(0, 3000, size=80_000)
    names[:3000] = np.arange(3000)
    records = draw(rng, 80_000)
    found = total_of(loss, w, records, group_by=names)
    assert np.array_equal(found, total_of(loss, w, lambda: iter(np.array_split(records, 17)), group_by=names))
    order = rng.permutation(80_000)
    assert np.array_equal(found, total_of(loss, w, records[order], group_by=names[order]))


def test_embeddings_protect_persons_too():
    """Issue 16, B4: it crashed, and persons shifted the negatives of others."""
    loss = HyperbolicEmbeddingLoss(dpm.Hyperbolic(2), nodes=9, negatives=4)
    rng = np.random.default_rng(0)
    edges, names = rng.integers(0, 9, (60, 2)), np.repeat(np.arange(20), 3)
    w = loss.start(0.5)
    others = total_of(loss, w, edges, group_by=names, chosen=np.arange(1, 20))
    more = np.concatenate([rng.integers(0, 9, (5, 2)), edges])
    same = total_of(loss, w, more, group_by=np.concatenate([[0] * 5, names]), chosen=np.arange(1, 20))
    assert np.array_equal(others, same)
    result = private_descent(
        loss, edges, loss.manifold, start=w, budget=dpm.ApproxDP(2.0, 1e-6), steps=2, step_size=0.1, group_by=names
    )
    assert result.guarantee.fits(dpm.ApproxDP(2.0, 1e-6))


def test_a_second_record_of_a_person_changes_no_other_part():
    """Issue 16, A3: 16 rows instead of 15 switched the algorithm, and the sum moved by 27.8 where 2 was allowed."""
    rng = np.random.default_rng(3)
    for ball in (dpm.Ball(dpm.SPD(2), np.eye(2), 14.0), dpm.Ball(dpm.SPD(3), np.eye(3), 14.0)):
        space = ball.manifold
        far = ball.clip(
            space.exp(ball.center, space.from_coordinates(ball.center, 9 * rng.standard_normal((16, space.dim))))
        )
        for loss in (FrechetMedianLoss(ball), FrechetMeanLoss(ball)):
            one = total_of(loss, ball.center, far[:15], group_by=np.arange(15))
            two = total_of(loss, ball.center, far, group_by=np.r_[np.arange(15), 0])
            assert np.linalg.norm(one - two) <= 2 * loss.bound
            rest = np.arange(1, 15)
            kept = [total_of(loss, ball.center, x, group_by=g, chosen=rest) for x, g in
                    ((far[:15], np.arange(15)), (far, np.r_[np.arange(15), 0]))]  # fmt: skip
            assert np.array_equal(*kept)


def test_the_schedule_of_the_median_counts_persons():
    records = dpm.SPD(2).random_point(400, rng=0)
    names = np.repeat(np.arange(100), 4)
    many = np.where(names == 3, 200, 1)
    one = private_median(records, BALL, dpm.ApproxDP(1.0, 1e-6), group_by=names, rng=0)
    other = private_median(
        np.repeat(records, many, axis=0), BALL, dpm.ApproxDP(1.0, 1e-6), group_by=np.repeat(names, many), rng=0
    )
    assert (one.descent.steps, one.descent.sigma, one.guarantee) == (
        other.descent.steps,
        other.descent.sigma,
        other.guarantee,
    )


def test_names_are_checked_before_anything_is_spent(tmp_path):
    loss, w, draw = LOSSES["eigenvector"]
    ledger = dpm.Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("clinic", dpm.ApproxDP(2.0, 1e-6))
    for names in (np.arange(7), [""] * 30):
        with pytest.raises(dpm.ArgumentError, match="group_by must name a person"):
            private_descent(
                loss,
                draw(np.random.default_rng(0), 30),
                loss.manifold,
                start=w,
                budget=dpm.ApproxDP(1.0, 1e-6),
                steps=2,
                step_size=0.1,
                group_by=names,
                ledger=ledger,
                dataset="clinic",
            )
    assert ledger.spent("clinic") is None
