"""Dask arrays: the same release as in memory, through the death of a process, and nothing of a record in a log."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    ArgumentError,
    Ball,
    NotOnManifoldError,
    PureDP,
    Sphere,
    frechet_mean,
    private_mean,
)
from dpmanifolds.mechanisms.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")

SPACES = {
    "log-euclidean": SPD(3, "log-euclidean"),
    "affine-invariant": SPD(3),
    "affine-invariant-5": SPD(5),
    "sphere": Sphere(2),
}


def some_records(name, count=4000):
    space = SPACES[name]
    center = np.array([0.0, 0.0, 1.0]) if name == "sphere" else np.eye(space.k)
    rng = np.random.default_rng(0)
    vectors = space.from_coordinates(center, 0.4 * rng.standard_normal((count, space.dim)))
    return Ball(space, center, 0.9), space.exp(center, vectors)


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("chunk", [4000, 1500, 37])
@pytest.mark.parametrize("name", SPACES)
def test_a_dask_array_gives_the_release_of_the_array(name, chunk):
    ball, records = some_records(name)
    whole = private_mean(records, ball, ApproxDP(1.0, 1e-6), rng=3)
    split = private_mean(da.from_array(records, chunks=(chunk, *records.shape[1:])), ball, ApproxDP(1.0, 1e-6), rng=3)
    assert split.n == 4000
    assert np.allclose(split.value, whole.value, rtol=0, atol=1e-12)
    assert split.sensitivity == whole.sensitivity


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.usefixtures("client")
def test_processes_give_the_mean_of_the_array(name):
    ball, records = some_records(name)
    chunks = (500, *(1,) * (records.ndim - 1))
    found = frechet_mean(ball.manifold, da.from_array(records, chunks=chunks))
    expected = frechet_mean(ball.manifold, records)
    assert np.allclose(found.point, expected.point, rtol=0, atol=1e-12)
    assert found.passes <= expected.passes + 1


def slow(block):
    time.sleep(0.3)
    return block


def test_a_killed_worker_changes_neither_the_value_nor_the_number_of_draws(client, monkeypatch):
    drawn = []
    for family in (WrappedLaplaceMechanism, WrappedGaussianMechanism):
        draw = family.draw
        monkeypatch.setattr(family, "draw", lambda self, *a, d=draw, **k: (drawn.append(1), d(self, *a, **k))[1])
    ball, records = some_records("log-euclidean")
    array = da.from_array(records, chunks=(250, 3, 3)).map_blocks(slow, dtype=float)
    undisturbed = private_mean(array, ball, PureDP(1.0), rng=8)
    assert drawn == [1]
    drawn.clear()
    victims = list(client.run(os.getpid).values())
    killer = threading.Timer(0.8, os.kill, (victims[0], signal.SIGKILL))
    killer.start()
    disturbed = private_mean(array, ball, PureDP(1.0), rng=8)
    killer.join()
    assert victims[0] not in client.run(os.getpid).values()
    assert drawn == [1]
    assert np.array_equal(undisturbed.value, disturbed.value)


def test_no_number_of_a_record_shows_in_task_names_logs_or_errors(client):
    ball, records = some_records("log-euclidean", 400)
    records[123, 0, 0] = 54321.125
    records[124, 1, 2] = 12345.0625
    array = da.from_array(records, chunks=(100, 3, 3), name="records")
    with pytest.raises(NotOnManifoldError, match="symmetric") as caught:
        private_mean(array, ball, PureDP(1.0))
    told = ["".join(traceback.format_exception(caught.value))]
    told += [str(client.get_worker_logs()), str(client.get_scheduler_logs())]
    told += [str(client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks]))]
    for text in told:
        assert "54321" not in text
        assert "12345" not in text
    assert not any(number in str(caught.value).replace("SPD(3", "") for number in "0123456789")


def test_wrong_dask_arrays_are_refused():
    ball, records = some_records("log-euclidean", 100)
    with pytest.raises(ArgumentError, match="shape"):
        frechet_mean(ball.manifold, da.zeros((10, 2, 2)))
    with pytest.raises(ArgumentError, match="leading axis"):
        frechet_mean(ball.manifold, da.zeros((2, 10, 3, 3)))
    with pytest.raises(ArgumentError, match="empty"):
        frechet_mean(ball.manifold, da.zeros((0, 3, 3)))
    with pytest.raises(ArgumentError, match="compute_chunk_sizes"):
        frechet_mean(ball.manifold, da.from_array(records)[da.from_array(records[:, 0, 0]) > 1])
    with pytest.raises(ArgumentError, match="sample_weight"):
        frechet_mean(ball.manifold, da.from_array(records), sample_weight=np.ones(100))
