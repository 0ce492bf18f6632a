"""Medians and variances of records in blocks: the releases of the array, from every source, in bounded memory."""

from __future__ import annotations

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
    private_median,
    private_variance,
)
from tests.statistics.test_streaming import SOURCES, SPACES, added_memory, ball_of, cut, records_around

ENTRIES = {
    "median": lambda x, ball, **o: private_median(x, ball, ApproxDP(1.0, 1e-6), steps=6, **o),
    "variance": lambda x, ball, **o: private_variance(x, ball, PureDP(1.0), **o),
}
SOME_SPACES = ("log-euclidean", "log-cholesky", "affine-invariant-5", "sphere", "hyperbolic", "shapes", "power")
SOME_SOURCES = ("memory map", "chunked file", "small blocks", "function")


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize("source", SOME_SOURCES)
@pytest.mark.parametrize("name", SOME_SPACES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_source_gives_the_release_of_the_array(entry, name, source, tmp_path):
    ball = ball_of(SPACES[name])
    records = records_around(ball, 1200)
    whole = ENTRIES[entry](records, ball, rng=5)
    streamed = ENTRIES[entry](SOURCES[source](records, tmp_path), ball, rng=5)
    assert whole.n == streamed.n == 1200
    assert np.allclose(whole.value, streamed.value, rtol=0, atol=1e-12)
    assert (whole.sensitivity, whole.sigma, whole.guarantee) == (
        streamed.sensitivity,
        streamed.sigma,
        streamed.guarantee,
    )


@pytest.mark.parametrize("entry", ENTRIES)
def test_single_precision_is_read_as_double_block_by_block(entry):
    ball = ball_of(SPD(3))
    records = records_around(ball, 700).astype(np.float32)
    exact = ENTRIES[entry](records.astype(np.float64), ball, rng=2)
    assert np.array_equal(ENTRIES[entry](records, ball, rng=2).value, exact.value)
    assert np.array_equal(ENTRIES[entry](lambda: iter(cut(records, 50)), ball, rng=2).value, exact.value)


def test_the_variance_is_that_of_the_clipped_records():
    ball = Ball(SPD(3), np.eye(3), 1.0)
    records = records_around(ball, 3000)
    clipped = ball.clip(records)
    found = private_variance(lambda: iter(cut(records, 700)), ball, PureDP(500.0), rng=0)
    center = frechet_mean(ball.manifold, clipped).point
    expected = np.mean(ball.manifold.dist(center, clipped) ** 2)
    # around a private mean, up to the distance b = r + ρ(centre, mean): a hair more than the clipped records have
    assert abs(found.value - expected) < 0.05 * expected


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_iterator_is_refused_as_several_passes_are_needed(entry):
    ball = Ball(SPD(3, "log-euclidean"), np.eye(3), 1.0)
    with pytest.raises(ArgumentError, match="fresh iterator"):
        ENTRIES[entry](iter(cut(records_around(ball, 100), 10)), ball)


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_bad_record_in_a_late_block_is_found_and_not_named(entry):
    ball = Ball(SPD(3), np.eye(3), 1.0)
    blocks = cut(records_around(ball, 1000), 100)
    blocks[7][3, 1, 1] = np.nan
    with pytest.raises(NotOnManifoldError, match="finite") as caught:
        ENTRIES[entry](blocks, ball)
    assert not any(number in str(caught.value).replace("SPD(3", "") for number in "0123456789")
    mended = ENTRIES[entry](blocks, ball, on_invalid="center", rng=1)
    blocks[7][3] = np.eye(3)
    assert np.allclose(mended.value, ENTRIES[entry](blocks, ball, rng=1).value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("entry", ENTRIES)
def test_persons_are_grouped_whatever_the_source(entry):
    ball = Ball(SPD(2), np.eye(2), 2.0)
    records, names = records_around(ball, 300), np.arange(300) // 3
    whole = ENTRIES[entry](records, ball, group_by=names, rng=1)
    streamed = ENTRIES[entry](cut(records, 70), ball, group_by=names, rng=1)
    assert whole.n == streamed.n == 100
    assert np.allclose(whole.value, streamed.value, rtol=0, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("entry", ENTRIES)
def test_memory_does_not_grow_with_the_records(entry, monkeypatch):
    """Twice as many records that never exist at once: less than a quarter of the added ones on top."""
    ball = ball_of(Sphere(3))
    block = records_around(ball, 4000)

    def release(source, count):
        assert ENTRIES[entry](source, ball).n == count

    assert added_memory(monkeypatch, block, release, 80, 160) < 80 * block.nbytes / 4
