"""Records that a descent reads block by block: the run of the array, from every source, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    ArgumentError,
    GaussianDP,
    NotOnManifoldError,
    PureDP,
    Sphere,
)
from dpmanifolds.descent import private_svrg
from dpmanifolds.descent.losses import FrechetMeanLoss, FrechetMedianLoss
from dpmanifolds.releases import private_descent, private_median
from tests.descent.totals import total_of
from tests.statistics.test_streaming import ChunkedFile, added_memory, ball_of, cut, records_around, written

SPACES = {
    "affine-invariant": SPD(3),
    "affine-invariant-5": SPD(5),
    "flat": SPD(3, "log-euclidean"),
    "sphere": Sphere(3),
}
SOURCES = {
    "memory map": written,
    "chunked file": lambda x, folder: ChunkedFile(x, 130),
    "function": lambda x, folder: lambda: iter(cut(x, 450)),
    "function of small blocks": lambda x, folder: lambda: iter(cut(x, 3)),
}


def run(loss, records, **options):
    given = {"budget": None, "start": loss.ball.center, "sigma": 0.01, "steps": 4, "step_size": 0.3, "rng": 5} | options
    return private_descent(loss, records, loss.manifold, **given)


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 150},
        {"batch_size": 150, "sampling": "without-replacement"},
        {"group_by": np.arange(2000) // 3},
    ],
    ids=["full", "poisson", "fixed", "persons"],
)
def test_every_source_gives_the_run_of_the_array(name, source, options, tmp_path):
    ball = ball_of(SPACES[name])
    records = records_around(ball, 2000)
    whole = run(FrechetMeanLoss(ball), records, **options)
    streamed = run(FrechetMeanLoss(ball), SOURCES[source](records, tmp_path), **options)
    assert np.array_equal(whole.value, streamed.value)
    assert (streamed.sensitivity, streamed.guarantee) == (whole.sensitivity, whole.guarantee)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", SPACES)
def test_the_sum_over_blocks_is_the_sum_over_records(name):
    ball = ball_of(SPACES[name])
    loss = FrechetMedianLoss(ball)
    records = records_around(ball, 1000)
    w = records[3]
    for size in (1, 77, 1000):
        blocks = cut(records, size)
        for chosen in (None, np.arange(1000), np.array([0, 76, 77, 999]), np.array([], dtype=int)):
            whole = total_of(loss, w, records, chosen=chosen)
            assert np.array_equal(total_of(loss, w, lambda blocks=blocks: iter(blocks), chosen=chosen), whole)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("source", SOURCES)
def test_the_median_is_found_from_every_source(source, tmp_path):
    ball = ball_of(SPD(3))
    records = records_around(ball, 1500)
    whole = private_median(records, ball, GaussianDP(1.0), rng=2)
    streamed = private_median(SOURCES[source](records, tmp_path), ball, GaussianDP(1.0), rng=2)
    assert np.array_equal(whole.value, streamed.value)


def test_variance_reduction_reads_blocks_too():
    ball = ball_of(SPD(2))
    records = records_around(ball, 1000)
    options = {"start": ball.center, "budget": ApproxDP(1.0, 1e-6), "anchors": 2, "inner": 2, "step_size": 0.3}
    options |= {"smoothness": 2.0, "batch_size": 100, "rng": 0}
    whole = private_svrg(FrechetMeanLoss(ball), records, SPD(2), **options)
    streamed = private_svrg(FrechetMeanLoss(ball), lambda: iter(cut(records, 90)), SPD(2), **options)
    assert np.array_equal(whole.point, streamed.point)


@pytest.mark.long
def test_memory_does_not_grow_with_the_records(monkeypatch):
    """Twice as many records that never exist at once: less than a quarter of the added ones on top."""
    ball = ball_of(Sphere(3))
    block = records_around(ball, 4000)

    def release(source, count):
        run(FrechetMeanLoss(ball), source, steps=2)

    assert added_memory(monkeypatch, block, release, 80, 160) < 80 * block.nbytes / 4


class Account:
    def __init__(self):
        self.spent = 0

    def spend(self, *arguments, **options):
        self.spent += 1


@pytest.mark.parametrize("options", [{}, {"batch_size": 10}], ids=["full", "batches"])
def test_a_bad_record_in_a_late_block_is_refused_before_anything_is_spent(options):
    ball = ball_of(SPD(3))
    blocks = cut(records_around(ball, 900), 100)
    blocks[7][3, 0, 1] = np.nan
    account = Account()
    with pytest.raises(NotOnManifoldError, match="finite") as caught:
        run(FrechetMeanLoss(ball), lambda: iter(blocks), rng=None, ledger=account, dataset="a", **options)
    assert account.spent == 0
    assert not any(number in str(caught.value).replace("SPD(3", "") for number in "0123456789")


def test_what_cannot_be_streamed_is_refused():
    ball = ball_of(SPD(3))
    blocks = cut(records_around(ball, 90), 10)
    with pytest.raises(ArgumentError, match="group_by"):
        run(FrechetMeanLoss(ball), lambda: iter(blocks), group_by=np.arange(91))
    with pytest.raises(ArgumentError, match="only once"):
        run(FrechetMeanLoss(ball), iter(blocks))
    with pytest.raises(ArgumentError, match="empty"):
        run(FrechetMeanLoss(ball), lambda: iter([]))
    with pytest.raises(ArgumentError, match="must return blocks"):
        run(FrechetMeanLoss(ball), lambda: 3)


def test_a_pure_budget_draws_its_noise_in_the_same_order():
    ball = ball_of(Sphere(3))
    records = records_around(ball, 500)
    options = {"budget": PureDP(2.0), "sigma": None}
    whole = run(FrechetMeanLoss(ball), records, **options)
    streamed = run(FrechetMeanLoss(ball), lambda: iter(cut(records, 60)), **options)
    assert whole.descent.law == streamed.descent.law == "laplace"
    assert np.array_equal(whole.value, streamed.value)
