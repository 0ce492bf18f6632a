"""Records in blocks: the same mean from any source, in bounded memory, clipped on the way in, noise drawn once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    ArgumentError,
    Ball,
    Euclidean,
    Hyperbolic,
    NotOnManifoldError,
    PlanarShapes,
    Power,
    PureDP,
    Sphere,
    frechet_mean,
    private_mean,
)
from dpmanifolds.auditing.front_door import overheard_noise
from dpmanifolds.records.blocks import ordered_map, total_of
from dpmanifolds.records.source import Source

SPACES = {
    "log-euclidean": SPD(3, "log-euclidean"),
    "log-euclidean-5": SPD(5, "log-euclidean"),
    "log-cholesky": SPD(3, "log-cholesky"),
    "affine-invariant": SPD(3),
    "affine-invariant-5": SPD(5),
    "sphere": Sphere(3),
    "sphere-20": Sphere(20),
    "hyperbolic": Hyperbolic(2),
    "shapes": PlanarShapes(5),
    "euclidean": Euclidean(4),
    "power": Power(SPD(2), 3),
}


class ChunkedFile:
    """What Zarr and HDF5 arrays have in common."""

    def __init__(self, array: np.ndarray, chunk: int) -> None:
        self._array = array
        self.shape, self.dtype, self.chunks = array.shape, array.dtype, (chunk, *array.shape[1:])
        self.read = 0

    def __getitem__(self, part):
        self.read += 1
        return self._array[part].copy()


class Again:
    """An iterable that can be read as often as wanted."""

    def __init__(self, blocks):
        self._blocks = blocks

    def __iter__(self):
        return iter(self._blocks)


def cut(array, size):
    return [array[first : first + size] for first in range(0, len(array), size)]


def ball_of(space, fraction=0.5):
    """A ball that leaves some of the records outside."""
    return Ball(space, space.random_point(rng=9), min(fraction * space.max_radius, 1.0))


def records_around(ball, count, seed=0):
    rng = np.random.default_rng(seed)
    space = ball.manifold
    vectors = rng.standard_normal((count, space.dim))
    vectors *= 1.4 * ball.radius * rng.uniform(size=(count, 1)) / np.linalg.norm(vectors, axis=1, keepdims=True)
    return space.exp(ball.center, space.from_coordinates(ball.center, vectors))


def added_memory(monkeypatch, block, release, fewer, more):
    """How much higher the peak of release(source, n) is for more copies of a block, made one after the other.

    On one thread: how many blocks wait for several is a matter of timing, and bounded by a test of its own.
    """
    monkeypatch.setattr(Source, "memory", 1 << 19)
    monkeypatch.setattr("dpmanifolds.records.source.cores", lambda: 1)
    monkeypatch.setattr("dpmanifolds.records.blocks.cores", lambda: 1)

    def peak(blocks):
        tracemalloc.start()
        try:
            release(lambda: (block.copy() for _ in range(blocks)), len(block) * blocks)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(4)
    return peak(more) - peak(fewer)


def written(array, folder):
    path = folder / "records.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


SOURCES = {
    "memory map": written,
    "chunked file": lambda x, folder: ChunkedFile(x, 130),
    "list of blocks": lambda x, folder: cut(x, 700),
    "small blocks": lambda x, folder: cut(x, 3),
    "function": lambda x, folder: lambda: iter(cut(x, 450)),
    "iterable": lambda x, folder: Again(cut(x, 999)),
}


@pytest.mark.grid
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SPACES)
def test_every_source_gives_the_mean_of_the_array(name, source, tmp_path):
    ball = ball_of(SPACES[name])
    records = records_around(ball, 2000)
    whole = frechet_mean(ball.manifold, records)
    streamed = frechet_mean(ball.manifold, SOURCES[source](records, tmp_path))
    assert float(ball.manifold.dist(whole.point, streamed.point)) < 1e-12 + 2 * streamed.error_bound
    assert np.allclose(whole.point, streamed.point, rtol=0, atol=1e-12)
    assert streamed.error_bound < 1e-8


@pytest.mark.grid
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SPACES)
def test_every_source_gives_the_same_release(name, source, tmp_path):
    ball = ball_of(SPACES[name])
    records = records_around(ball, 2000)
    whole = private_mean(records, ball, ApproxDP(1.0, 1e-6), refine=0, rng=5)
    streamed = private_mean(SOURCES[source](records, tmp_path), ball, ApproxDP(1.0, 1e-6), refine=0, rng=5)
    assert whole.n == streamed.n == 2000
    assert np.allclose(whole.value, streamed.value, rtol=0, atol=1e-12)
    assert whole.sensitivity == streamed.sensitivity


@pytest.mark.parametrize("name", SPACES)
def test_clipping_on_the_way_in_is_clipping_first(name):
    ball = ball_of(SPACES[name])
    records = records_around(ball, 3000)
    assert 0.1 < np.mean(~ball.contains(records)) < 0.9
    release = private_mean(records, ball, PureDP(1.0), rng=1, steps=1)
    first = private_mean(ball.clip(records), ball, PureDP(1.0), rng=1, steps=1)
    # both are shortened to a hair (2⁻²⁹ of the radius, or 1e−9) inside
    assert np.allclose(release.coordinates, first.coordinates, rtol=0, atol=1e-7)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("metric", ["log-euclidean", "log-cholesky", "affine-invariant"])
def test_clipping_holds_around_a_centre_that_is_no_multiple_of_the_identity(k, metric):
    space = SPD(k, metric)
    tilted = np.eye(k) + 0.3 * np.diag(np.arange(k)) / k
    tilted[0, 1] = tilted[1, 0] = 0.2
    ball = Ball(space, tilted, 0.8)
    records = records_around(ball, 500)
    release = private_mean(records, ball, PureDP(1e2), rng=1, steps=1)
    again = private_mean(ball.clip(records), ball, PureDP(1e2), rng=1, steps=1)
    assert np.allclose(release.value, again.value, rtol=1e-7)


@pytest.mark.parametrize("metric", ["log-euclidean", "log-cholesky", "affine-invariant"])
def test_a_record_far_outside_counts_as_one_on_the_edge(metric):
    """Condition 1e14, where the logarithm has hardly a digit: the mean is certain all the same."""
    space = SPD(3, metric)
    ball = Ball(space, np.eye(3), 1.0)
    frame = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    far = (frame * np.array([1e7, 1.0, 1e-7])) @ frame.T
    records = np.concatenate([space.random_point(50, rng=0) * 0 + np.eye(3), ((far + far.T) / 2)[None]])
    release = private_mean(records, ball, PureDP(500.0), rng=0)
    assert float(space.dist(np.eye(3), release.value)) < 2.5 / 51


def test_single_precision_is_read_as_double_block_by_block(tmp_path):
    ball = Ball(SPD(3, "log-euclidean"), np.eye(3), 3.0)
    records = records_around(ball, 5000).astype(np.float32)
    exact = private_mean(records.astype(np.float64), ball, PureDP(1.0), rng=2)
    assert private_mean(written(records, tmp_path), ball, PureDP(1.0), rng=2) == exact
    assert private_mean(records, ball, PureDP(1.0), rng=2) == exact


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", ["log-euclidean", "affine-invariant", "sphere"])
def test_memory_does_not_grow_with_the_records(name, monkeypatch):
    """Twice as many records that never exist at once: less than a quarter of the added ones on top.

    They are read as double, so that a block takes twice its bytes.
    """
    ball = ball_of(SPACES[name])
    block = records_around(ball, 4000).astype(np.float32)

    def release(source, count):
        assert private_mean(source, ball, PureDP(1.0)).n == count

    assert added_memory(monkeypatch, block, release, 60, 120) < 60 * 2 * block.nbytes / 4


def test_an_iterator_is_read_once_where_one_pass_is_enough():
    ball = Ball(SPD(3, "log-euclidean"), np.eye(3), 1.0)
    records = records_around(ball, 1000)
    streamed = private_mean(iter(cut(records, 90)), ball, PureDP(1.0), rng=3)
    assert streamed.n == 1000
    assert np.allclose(streamed.value, private_mean(records, ball, PureDP(1.0), refine=0, rng=3).value, atol=1e-12)
    flat = frechet_mean(ball.manifold, (block for block in cut(records, 300)))
    assert np.allclose(flat.point, frechet_mean(ball.manifold, records).point, atol=1e-12)


def test_an_iterator_is_refused_where_several_passes_are_needed():
    ball = Ball(SPD(3), np.eye(3), 1.0)
    blocks = cut(records_around(ball, 100), 10)
    with pytest.raises(ArgumentError, match="fresh iterator"):
        frechet_mean(SPD(3), iter(blocks))
    assert private_mean(iter(blocks), ball, PureDP(1.0)).n == 100
    with pytest.raises(ArgumentError, match="fresh iterator"):
        private_mean(iter(blocks), ball, PureDP(1.0), steps=2)
    with pytest.raises(ArgumentError, match="fresh iterator"):
        private_mean(iter(blocks), Ball(SPD(3, "log-euclidean"), np.eye(3), 1.0), PureDP(1.0), refine=1)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (lambda: iter([]), "empty"),
        ([np.zeros((0, 3, 3))], "empty"),
        (lambda: iter([np.eye(3)]), "blocks of records"),
        (lambda: iter(["text"]), "blocks of records"),
        (lambda: iter([np.zeros((4, 2, 2))]), "shape"),
        (iter([]), "empty"),
    ],
    ids=["no block", "empty block", "one matrix", "text", "shape", "empty iterator"],
)
def test_streams_of_something_else_are_refused(points, message):
    with pytest.raises(ArgumentError, match=message):
        frechet_mean(SPD(3, "log-euclidean"), points)


def test_a_bad_record_in_a_late_block_is_found_and_not_named():
    ball = Ball(SPD(3), np.eye(3), 1.0)
    blocks = cut(records_around(ball, 1000), 100)
    blocks[7][3, 1, 1] = np.nan
    with pytest.raises(NotOnManifoldError, match="finite") as caught:
        private_mean(blocks, ball, PureDP(1.0))
    assert not any(number in str(caught.value).replace("SPD(3", "") for number in "0123456789")
    mended = private_mean(blocks, ball, PureDP(1.0), on_invalid="center", rng=1)
    blocks[7][3] = np.eye(3)
    assert np.allclose(mended.value, private_mean(blocks, ball, PureDP(1.0), rng=1).value, atol=1e-12)


def test_a_source_that_changes_between_passes_is_refused():
    ball = ball_of(Sphere(3))
    lengths = iter([5, 5, 4])

    def blocks():
        return iter(cut(records_around(ball, 100), 20)[: next(lengths, 4)])

    with pytest.raises(ArgumentError, match="same ones"):
        frechet_mean(Sphere(3), blocks)


def test_weights_go_with_the_records_of_a_stream():
    ball = ball_of(SPD(3))
    records, weights = records_around(ball, 500), np.random.default_rng(0).uniform(size=500)
    whole = frechet_mean(SPD(3), records, sample_weight=weights)
    assert np.allclose(frechet_mean(SPD(3), cut(records, 60), sample_weight=weights).point, whole.point, atol=1e-12)
    with pytest.raises(ArgumentError, match="sample_weight"):
        frechet_mean(SPD(3), cut(records, 60), sample_weight=weights[:-1])


def test_noise_is_drawn_once_whatever_the_number_of_blocks():
    ball = ball_of(SPD(3))
    with overheard_noise() as tap:
        private_mean(cut(records_around(ball, 900), 50), ball, PureDP(1.0), steps=1, refine=0)
    assert len(tap.said) == 1


def test_a_chunked_file_is_read_in_whole_chunks():
    ball = Ball(SPD(3, "log-euclidean"), np.eye(3), 1.0)
    file = ChunkedFile(records_around(ball, 3000), 1000)
    frechet_mean(ball.manifold, file)
    assert file.read <= 3


def test_grouping_and_refining_take_streams():
    ball = Ball(SPD(2), np.eye(2), 2.0)
    records = records_around(ball, 300)
    for options in ({"group_by": np.arange(300) // 3}, {"refine": 1}):
        whole = private_mean(records, ball, PureDP(1.0), rng=1, **options)
        assert np.allclose(private_mean(cut(records, 70), ball, PureDP(1.0), rng=1, **options).value, whole.value)


def test_parts_are_merged_in_order_and_as_a_balanced_tree():
    depth = total_of([(f"{i}.", 0) for i in range(100)], lambda a, b: (a[0] + b[0], 1 + max(a[1], b[1])))
    assert depth == ("".join(f"{i}." for i in range(100)), 7)


def test_a_pass_runs_only_a_few_blocks_ahead():
    taken, done = [], []

    def items():
        for i in range(50):
            taken.append(i)
            yield i

    for result in ordered_map(lambda i: i * i, items(), threads=2):
        done.append(result)
        assert len(taken) - len(done) <= 5
    assert done == [i * i for i in range(50)]
