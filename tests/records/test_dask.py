"""Dask arrays and bags: the release of the array, through the death of a process, and nothing of a record in a log."""

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
    Euclidean,
    NotOnManifoldError,
    PureDP,
    Sphere,
    frechet_mean,
    private_mean,
    private_median,
    private_variance,
)
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.total import read_records
from dpmanifolds.sums.wrapped import WrappedMechanism

da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
pytest.importorskip("distributed")
from tests.records.cluster import local_client, said  # noqa: E402

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
    with local_client() as client:
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


ENTRIES = {
    # where nobody knows beforehand how many there are, no radius is paid for
    "mean": lambda x, ball, **o: private_mean(x, ball, PureDP(1.0), refine=0, **o),
    "median": lambda x, ball, **o: private_median(x, ball, ApproxDP(1.0, 1e-6), steps=4, **o),
    "variance": lambda x, ball, **o: private_variance(x, ball, PureDP(1.0), **o),
}
FORMS = {
    "array": lambda x: da.from_array(x, chunks=(470, *x.shape[1:])),
    "array of unknown length": lambda x: da.from_array(np.concatenate([x, x]), chunks=(130, *x.shape[1:]))[
        da.from_array(np.arange(2 * len(x)) < len(x), chunks=130)
    ],
    "bag of records": lambda x: db.from_sequence(list(x), npartitions=7),
    "bag of blocks": lambda x: db.from_sequence(np.array_split(x, 30), npartitions=4),
    "bag with an empty partition": lambda x: db.concat(
        [db.from_sequence([[]]).flatten(), db.from_sequence(list(x), npartitions=3)]
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["log-euclidean", "affine-invariant", "sphere"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_form_gives_every_release_of_the_array(entry, name, form):
    ball, records = some_records(name, 1000)
    whole = ENTRIES[entry](records, ball, rng=3)
    split = ENTRIES[entry](FORMS[form](records), ball, rng=3)
    assert split.n == 1000
    assert np.allclose(split.value, whole.value, rtol=0, atol=1e-12)
    assert (split.sensitivity, split.guarantee) == (whole.sensitivity, whole.guarantee)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.usefixtures("client")
def test_processes_give_every_release_of_the_array(entry):
    ball, records = some_records("affine-invariant", 1000)
    whole = ENTRIES[entry](records, ball, rng=3)
    for form in ("array", "bag of blocks"):
        assert np.allclose(ENTRIES[entry](FORMS[form](records), ball, rng=3).value, whole.value, rtol=0, atol=1e-12)


def test_a_bag_is_read_once_where_one_pass_is_enough(tmp_path):
    ball, records = some_records("log-euclidean", 300)
    path = tmp_path / "calls"

    def noted(record):
        with open(path, "ab") as file:
            file.write(b".")
        return record

    assert private_mean(db.from_sequence(list(records), npartitions=3).map(noted), ball, PureDP(1.0)).n == 300
    assert path.stat().st_size == 300


def slow(block):
    time.sleep(0.3)
    return block


@pytest.mark.parametrize("entry", ["mean", "variance"])
def test_a_killed_worker_changes_neither_the_value_nor_the_number_of_draws(client, entry, monkeypatch):
    drawn = []
    add = WrappedMechanism.add_noise
    monkeypatch.setattr(WrappedMechanism, "add_noise", lambda self, *a, **k: (drawn.append(1), add(self, *a, **k))[1])
    ball, records = some_records("log-euclidean")
    array = da.from_array(records, chunks=(250, 3, 3)).map_blocks(slow, dtype=float, meta=np.empty((0, 3, 3)))
    undisturbed = ENTRIES[entry](array, ball, rng=8)
    once = drawn.copy()
    assert once
    drawn.clear()
    victims = list(client.run(os.getpid).values())
    killer = threading.Timer(0.8, os.kill, (victims[0], signal.SIGKILL))
    killer.start()
    disturbed = ENTRIES[entry](array, ball, rng=8)
    killer.join()
    assert victims[0] not in client.run(os.getpid).values()
    assert drawn == once
    assert np.array_equal(undisturbed.value, disturbed.value)


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_number_of_a_record_shows_in_task_names_logs_or_errors(client, entry):
    ball, records = some_records("log-euclidean", 400)
    records[123, 0, 0] = 54321.125
    records[124, 1, 2] = 12345.0625
    array = da.from_array(records, chunks=(100, 3, 3), name="records")
    with pytest.raises(NotOnManifoldError, match="symmetric") as caught:
        ENTRIES[entry](array, ball)
    told = "".join(traceback.format_exception(caught.value)) + said(client)
    assert "54321" not in told
    assert "12345" not in told
    assert not any(number in str(caught.value).replace("SPD(3", "") for number in "0123456789")


def test_wrong_dask_arrays_are_refused():
    ball, records = some_records("log-euclidean", 100)
    with pytest.raises(ArgumentError, match="shape"):
        frechet_mean(ball.manifold, da.zeros((10, 2, 2)))
    with pytest.raises(ArgumentError, match="leading axis"):
        frechet_mean(ball.manifold, da.zeros((2, 10, 3, 3)))
    with pytest.raises(ArgumentError, match="empty"):
        frechet_mean(ball.manifold, da.zeros((0, 3, 3)))
    with pytest.raises(ArgumentError, match="empty"):
        frechet_mean(ball.manifold, da.from_array(records)[da.from_array(records[:, 0, 0]) > 1e9])
    with pytest.raises(ArgumentError, match="empty"):
        frechet_mean(ball.manifold, db.from_sequence([]))
    # an element of a bag that is neither a record nor a block of them is a malformed record
    for odd in (np.eye(2), records[None], None, "a matrix"):
        with pytest.raises(NotOnManifoldError, match="finite"):
            frechet_mean(ball.manifold, db.from_sequence([records[0], odd]))
    with pytest.raises(ArgumentError, match="Delayed"):
        frechet_mean(ball.manifold, da.from_array(records).to_delayed()[0, 0, 0])
    with pytest.raises(ArgumentError, match="sample_weight"):
        frechet_mean(ball.manifold, da.from_array(records), sample_weight=np.ones(100))


@pytest.mark.parametrize("odd", [np.full((500, 2), 9.0), [[9.0, 9.0]] * 500, np.full((1, 2), 9.0)])
def test_a_block_among_the_records_of_a_bag_is_one_record(odd):
    """Its rows moved the sum by 500 where one record may move it by 2."""
    plane = Euclidean(2)
    ball = Ball(plane, np.zeros(2), 1.0)
    elements = [*np.zeros((20, 2)), odd, *np.zeros((19, 2))]
    release = private_mean(db.from_sequence(elements, npartitions=5), ball, PureDP(1.0), on_invalid="center")
    assert release.n == 40
    with pytest.raises(NotOnManifoldError, match="finite"):
        private_mean(db.from_sequence(elements, npartitions=5), ball, PureDP(1.0))


def test_a_record_among_the_blocks_of_a_bag_is_a_record():
    elements = [np.zeros((10, 2)), np.zeros(2), np.zeros((10, 2))]
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    assert private_mean(db.from_sequence(elements, npartitions=1), ball, PureDP(1.0)).n == 21


@pytest.mark.parametrize("odd", [np.full((500, 2), 9.0), [[9.0, 9.0]] * 500])
@pytest.mark.parametrize("entry", ["mean", "variance", "median"])
def test_a_block_alone_in_its_partition_is_one_record_of_a_bag_of_records(entry, odd):
    """Bags of up to 100 elements have one in each partition: most of it said that the block was one."""
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    bag = db.from_sequence([*np.zeros((39, 2)), odd])
    assert bag.npartitions == 40
    assert ENTRIES[entry](bag, ball, on_invalid="center").n == 40
    with pytest.raises(NotOnManifoldError, match="finite"):
        ENTRIES[entry](bag, ball)


@pytest.mark.parametrize("odd", [[1.0, None], [1.0], None, [1.0, "a"]])
@pytest.mark.parametrize("others", [0, 1, 49])
def test_a_malformed_record_of_a_block_in_a_bag_takes_no_other_with_it(odd, others):
    """A list of 50 records, one of them odd, counted as one record that is malformed."""
    plane = Euclidean(2)
    block, mended = [[1.0, 1.0]] * others, TangentContribution(plane, np.zeros(2), np.zeros(2), radius=2.0, exponent=9)
    seen = read_records(plane, db.from_sequence([[[1.0, 1.0]] * 50] * 2 + [[*block, odd]])).total(mended)
    assert seen.rows == 101 + others
    assert seen.integers == [256 * (100 + others)] * 2


def test_what_elements_of_a_bag_are_is_decided_before_persons_are_told_apart():
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    elements = [*np.zeros((39, 2)), np.full((500, 2), 9.0)]
    names = np.arange(40) // 2
    assert private_mean(db.from_sequence(elements), ball, PureDP(1.0), group_by=names, on_invalid="center").n == 20
