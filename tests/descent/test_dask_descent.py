"""Descent on Dask arrays: the run of the array, data that stay on workers, through the death of one of them."""

from __future__ import annotations

import os
import traceback

import numpy as np
import pytest

from dpmanifolds import SPD, ApproxDP, ArgumentError, Ball, NotOnManifoldError, Sphere
from dpmanifolds.descent.losses import EigenvectorLoss, FrechetMeanLoss, FrechetMedianLoss, GeodesicRegressionLoss
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.descent.step_sizes import median_schedule
from dpmanifolds.releases import private_descent, private_median
from tests.descent.test_streamed import Account
from tests.statistics.test_streaming import ball_of, records_around

da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
pytest.importorskip("distributed")
from tests.records.cluster import kill_a_worker, local_client, said  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SPACES = {"affine-invariant": SPD(3), "flat": SPD(3, "log-euclidean"), "sphere": Sphere(3)}


@pytest.fixture(scope="module")
def client():
    with local_client() as client:
        yield client


def run(ball, records, **options):
    given = {"budget": None, "start": ball.center, "sigma": 0.01, "steps": 5, "step_size": 0.3, "rng": 5} | options
    return private_descent(FrechetMeanLoss(ball), records, ball.manifold, **given)


def chunked(records, size):
    return da.from_array(records, chunks=(size, *records.shape[1:]))


@pytest.mark.parametrize(
    "options", [{}, {"batch_size": 150}, {"group_by": np.arange(2000) // 3}], ids=["full", "batch", "persons"]
)
@pytest.mark.parametrize("size", [2000, 700, 61])
@pytest.mark.parametrize("name", SPACES)
def test_a_dask_array_gives_the_run_of_the_array(name, size, options):
    ball = ball_of(SPACES[name])
    records = records_around(ball, 2000)
    whole, split = run(ball, records, **options), run(ball, chunked(records, size), **options)
    assert np.allclose(whole.value, split.value, rtol=0, atol=0)
    assert (split.sensitivity, split.guarantee) == (whole.sensitivity, whole.guarantee)


def test_a_chunk_without_records_and_an_unknown_number_of_them_do_no_harm():
    ball = ball_of(SPD(3))
    records = records_around(ball, 600)
    whole = run(ball, records, batch_size=90)
    keep = np.r_[np.zeros(100, bool), np.ones(500, bool)]
    padded = chunked(np.concatenate([records[:100], records]), 100)
    some = padded[da.from_array(np.r_[np.zeros(100, bool), np.ones(600, bool)], chunks=100)]
    assert np.allclose(whole.value, run(ball, some, batch_size=90).value, rtol=0, atol=0)
    half = run(ball, chunked(records, 100)[da.from_array(keep, chunks=100)])
    assert np.allclose(half.value, run(ball, records[keep]).value, rtol=0, atol=0)


@pytest.mark.usefixtures("client")
def test_records_may_be_tuples_of_dask_arrays():
    space = Sphere(2)
    rng = np.random.default_rng(0)
    times, responses = rng.uniform(size=400), space.random_point(400, rng=1)
    options = {
        "budget": None,
        "start": space.random_point(2, rng=2),
        "clip_norm": 1.0,
        "sigma": 0.01,
        "steps": 4,
        "step_size": 0.3,
        "rng": 5,
    }
    loss = GeodesicRegressionLoss(space)
    whole = private_descent(loss, (times, responses), loss.manifold, **options)
    split = private_descent(
        loss,
        (da.from_array(times, chunks=90), da.from_array(responses, chunks=(130, 2))),
        loss.manifold,
        batch_size=None,
        **options,
    )
    assert np.allclose(whole.value, split.value, rtol=0, atol=0)


def noting(block, path):
    with open(path, "ab") as file:
        file.write(b".")
    return block


@pytest.mark.usefixtures("client")
def test_workers_make_and_keep_their_chunks_once(tmp_path):
    ball = ball_of(SPD(3))
    records = records_around(ball, 1000)
    path = tmp_path / "calls"
    array = chunked(records, 100).map_blocks(noting, path=str(path), dtype=float, meta=np.empty((0, 3, 3)))
    found = run(ball, array, steps=8)
    assert path.stat().st_size == 10
    assert np.allclose(found.value, run(ball, records, steps=8).value, rtol=0, atol=0)


@pytest.mark.parametrize("options", [{}, {"batch_size": 300}], ids=["full", "batches"])
def test_a_killed_worker_changes_neither_the_result_nor_the_number_of_draws(client, options, monkeypatch):
    drawn, killed = [], []
    private = NoisyGradient.private
    monkeypatch.setattr(NoisyGradient, "private", lambda self, *a: (drawn.append(1), private(self, *a))[1])

    def kill_once(step, _):
        if step == 2 and not killed:
            killed.append(kill_a_worker(client))

    ball = ball_of(SPD(3))
    array = chunked(records_around(ball, 2000), 100)
    undisturbed = run(ball, array, steps=6, **options)
    assert len(drawn) == 6
    disturbed = run(ball, array, steps=6, callback=kill_once, **options)
    assert len(drawn) == 12
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert np.array_equal(undisturbed.value, disturbed.value)


def test_a_median_survives_a_killed_worker(client):
    ball = ball_of(Sphere(3))
    records = records_around(ball, 1000)
    budget = ApproxDP(1.0, 1e-6)
    expected = private_median(records, ball, budget, steps=5, rng=1)
    _, sizes = median_schedule(ball, 1000, budget, 5)
    found = private_descent(
        FrechetMedianLoss(ball),
        chunked(records, 90),
        ball,
        budget,
        steps=5,
        step_size=sizes,
        output="weighted-average",
        rng=1,
        callback=lambda step, _: kill_a_worker(client) if step == 1 else None,
    )
    assert np.allclose(found.value, expected.value, rtol=0, atol=0)


@pytest.mark.parametrize("options", [{}, {"batch_size": 10}], ids=["full", "batches"])
def test_no_number_of_a_record_shows_in_task_names_logs_or_errors(client, options):
    ball = Ball(SPD(3), np.eye(3), 1.0)
    records = records_around(ball, 400)
    records[323, 0, 0] = 54321.125
    records[324, 1, 2] = 12345.0625
    account = Account()
    with pytest.raises(NotOnManifoldError, match="symmetric") as caught:
        run(ball, chunked(records, 100), rng=None, ledger=account, dataset="a", **options)
    told = "".join(traceback.format_exception(caught.value)) + said(client)
    assert "54321" not in told
    assert "12345" not in told
    assert account.spent == 0
    assert not any(number in str(caught.value).replace("SPD(3", "") for number in "0123456789")


def test_what_cannot_be_read_is_refused_with_what_to_do():
    ball = ball_of(SPD(3))
    records = records_around(ball, 100)
    loss = EigenvectorLoss(3, 1.0)
    with pytest.raises(ArgumentError, match="from_delayed"):
        private_descent(
            loss,
            db.from_sequence(list(records)),
            loss.manifold,
            None,
            start=np.eye(3)[0],
            sigma=0.1,
            steps=1,
            step_size=1.0,
        )
    bag = run(ball, db.from_sequence(list(records), npartitions=2))
    assert np.array_equal(bag.value, run(ball, records).value)
    with pytest.raises(ArgumentError, match="group_by"):
        run(ball, chunked(records, 10), group_by=np.arange(99))
    regression = GeodesicRegressionLoss(SPD(3, "log-euclidean"))
    times = da.from_array(np.linspace(0, 1, 50), chunks=10)
    with pytest.raises(ArgumentError, match="same leading axis"):
        private_descent(
            regression, (times, chunked(records, 10)), regression.manifold, None, start=np.stack([np.eye(3)] * 2),
            clip_norm=1.0, sigma=0.1, steps=1, step_size=0.1,
        )  # fmt: skip
