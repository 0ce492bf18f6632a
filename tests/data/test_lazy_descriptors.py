"""Descriptors as a Dask pipeline: those of the array, lazily, and nothing of an image in a log."""

from __future__ import annotations

import os
import traceback

import numpy as np
import pytest

from dpmanifolds import SPD, ApproxDP, ArgumentError, Ball, NotOnManifoldError, PureDP, private_mean, private_median
from dpmanifolds.data import DescriptorDomain, image_descriptors

da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
pytest.importorskip("distributed")
from tests.records.cluster import kill_a_worker, local_client, said  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

GREY = np.random.default_rng(0).integers(0, 256, size=(60, 12, 10), dtype=np.uint8)
COLOUR = np.random.default_rng(1).random((25, 8, 9, 3))
DOMAIN = DescriptorDomain(channels=1)


@pytest.fixture(scope="module")
def client():
    with local_client() as client:
        yield client


@pytest.mark.parametrize(
    ("images", "chunks"),
    [
        (GREY, (60, 12, 10)),
        (GREY, (7, 5, 10)),
        (GREY, (1, 12, 3)),
        (GREY[..., None], (20, 12, 10, 1)),
        (COLOUR, (6, 4, 9, 1)),
        (COLOUR.astype(np.float32), (25, 8, 9, 3)),
    ],
    ids=["one chunk", "cut rows", "cut columns", "one channel", "cut colours", "single precision"],
)
def test_a_dask_array_gives_the_descriptors_of_the_array(images, chunks):
    expected = image_descriptors(images)
    lazy = image_descriptors(da.from_array(images, chunks=chunks))
    assert lazy.shape == expected.shape
    assert lazy.dtype == np.float64
    assert lazy.chunks[0] == da.from_array(images, chunks=chunks).chunks[0]
    assert np.array_equal(lazy.compute(), expected)


@pytest.mark.parametrize(
    "elements",
    [list(GREY), np.split(GREY, 6), [GREY[:10], GREY[10:40], *GREY[40:]], list(GREY[..., None])],
    ids=["images", "blocks", "both", "one channel"],
)
def test_a_bag_gives_the_descriptors_of_the_array(elements):
    lazy = image_descriptors(db.from_sequence(elements, npartitions=4))
    assert lazy.shape[1:] == (9, 9)
    assert np.array_equal(lazy.compute(), image_descriptors(GREY))


def test_images_of_a_bag_may_differ_in_size_but_not_in_channels():
    small, large = COLOUR[:4], np.random.default_rng(2).random((3, 20, 15, 3))
    lazy = image_descriptors(db.from_sequence([*small, *large, GREY[0], *small], npartitions=2)).compute()
    expected = np.concatenate([image_descriptors(part) for part in (small, large, small)])
    assert np.isnan(lazy[7]).all()
    assert np.array_equal(np.delete(lazy, 7, axis=0), expected)


@pytest.mark.parametrize("place", [0, 1, 30])
@pytest.mark.parametrize("odd", [[[1], [2, 3]], np.zeros((50, 12, 10)), COLOUR[0], None, "text"], ids=type)
def test_an_odd_element_of_a_bag_is_one_image_and_takes_no_other_with_it(odd, place):
    """A list of rows of unequal length made one descriptor of its partition; a block among images counted as many."""
    lazy = image_descriptors(db.from_sequence([*GREY[:place], odd, *GREY[place:]], npartitions=7)).compute()
    assert np.isnan(lazy[place]).all()
    assert np.array_equal(np.delete(lazy, place, axis=0), image_descriptors(GREY))


def marked(block, path):
    with open(path, "ab") as file:
        file.write(b".")
    return block


def test_nothing_is_computed_before_it_is_asked_for(tmp_path):
    path = tmp_path / "calls"
    path.touch()
    images = da.from_array(GREY, chunks=(20, 12, 10)).map_blocks(marked, path=str(path), meta=np.empty((0, 0, 0), "u1"))
    lazy = image_descriptors(images)
    assert path.stat().st_size == 0
    # one pass is enough for a flat metric
    private_mean(lazy, DOMAIN, PureDP(1.0))
    assert path.stat().st_size == 3


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("kind", ["array", "bag"])
def test_releases_take_the_pipeline_as_it_is(kind):
    points = image_descriptors(GREY)
    images = da.from_array(GREY, chunks=(9, 12, 10)) if kind == "array" else db.from_sequence(GREY, npartitions=5)
    whole = private_mean(points, DOMAIN, PureDP(1.0), rng=3)
    lazy = private_mean(image_descriptors(images), DOMAIN, PureDP(1.0), rng=3)
    assert lazy.n == 60
    assert lazy.sensitivity == whole.sensitivity
    assert np.allclose(lazy.value, whole.value, rtol=0, atol=1e-12)
    ball = Ball(SPD(9, "log-euclidean"), points[0], 3.0)
    median = private_median(points, ball, ApproxDP(1.0, 1e-6), steps=3, rng=3)
    found = private_median(image_descriptors(images), ball, ApproxDP(1.0, 1e-6), steps=3, rng=3)
    assert np.allclose(found.value, median.value, rtol=0, atol=1e-12)


def test_a_killed_worker_changes_nothing(client):
    lazy = image_descriptors(da.from_array(GREY, chunks=(5, 12, 10))).persist()
    before = private_mean(lazy, DOMAIN, PureDP(1.0), rng=3)
    victim = kill_a_worker(client)
    assert np.array_equal(private_mean(lazy, DOMAIN, PureDP(1.0), rng=3).value, before.value)
    assert victim not in client.run(os.getpid).values()


def test_an_image_that_is_none_shows_nowhere_and_is_refused_or_replaced(client):
    images = GREY / 255
    images[13, 2, 3] = np.nan
    images[13, 4, 4] = 0.54321125
    lazy = image_descriptors(da.from_array(images, chunks=(10, 12, 10), name="images"))
    with pytest.raises(NotOnManifoldError, match="finite") as caught:
        private_mean(lazy, DOMAIN, PureDP(1.0))
    told = "".join(traceback.format_exception(caught.value)) + said(client)
    assert "54321" not in told
    mended = private_mean(lazy, DOMAIN, PureDP(1.0), on_invalid="center", rng=1)
    points = image_descriptors(GREY)
    points[13] = DOMAIN.center
    assert np.allclose(mended.value, private_mean(points, DOMAIN, PureDP(1.0), rng=1).value, rtol=0, atol=1e-12)
    assert [bool(np.isnan(point).any()) for point in lazy.compute()] == [row == 13 for row in range(60)]


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (lambda: da.zeros((5, 4)), "shape"),
        (lambda: da.zeros((5, 2, 8)), "at least 3 pixels"),
        (lambda: da.zeros((5, 8, 8, 4)), "alpha"),
        (lambda: da.zeros((5, 8, 8), dtype=int), "full_scale"),
        (lambda: da.zeros((5, 8, 8), dtype=complex), "real numbers"),
        (lambda: db.from_sequence([]), "empty"),
        (lambda: db.from_sequence(["text"]), "real numbers"),
        (lambda: da.zeros((5, 8, 8)).to_delayed()[0, 0, 0], "Dask bag"),
    ],
    ids=["axes", "small", "alpha", "signed", "complex", "empty", "text", "delayed"],
)
def test_other_things_are_refused_at_once(images, message):
    with pytest.raises(ArgumentError, match=message):
        image_descriptors(images())
