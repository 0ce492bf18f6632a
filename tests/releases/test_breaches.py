"""What attacks found, with the neighbours they used: none of it is left.

Each test has the number that was measured then. `moved` compares exact sums, in units of what one record may move.
"""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, Ball, Euclidean, Hyperbolic, PureDP, Sphere
from dpmanifolds._arrays import norm
from dpmanifolds._points import cut_tile, host
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.moments import TangentSquareContribution
from dpmanifolds.sums.rounding import finest_exponent
from dpmanifolds.sums.total import read_records

YEARS = Ball(Euclidean(1), [1960.0], 60.0)


def moved(domain, first, second, group_by=(None, None)):
    """How far one step's sum moves, in steps, over the 2R that is charged."""
    exponent = finest_exponent(domain.manifold.dim)
    pull = TangentContribution(
        domain.manifold, host(domain.center), host(domain.center), radius=domain.radius, exponent=exponent
    )
    totals = [
        np.array(read_records(domain.manifold, points, group_by=names).total(pull).integers, dtype=float)
        for points, names in zip((first, second), group_by, strict=True)
    ]
    return float(np.linalg.norm(totals[0] - totals[1])) / 2 ** (exponent + 1)


def test_a_record_off_the_sphere_by_3e_7_moves_no_other_record():
    """101 where 2 was charged, and told apart 100 times of 100: all records were projected if one needed it."""
    rng = np.random.default_rng(0)
    while True:
        center = Sphere(2).random_point(rng=rng)
        if not np.array_equal(Sphere(2).project(center), center):
            break
    last = Sphere(2).random_point(rng=1)
    ball = Ball(Sphere(2), center, 1.0)
    first = np.concatenate([np.tile(center, (99, 1)), last[None]])
    second = np.concatenate([np.tile(center, (99, 1)), last[None] * (1 + 3e-7)])
    assert moved(ball, first, second) < 1e-6


@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_record_of_large_condition_moves_no_other_record(k):
    """72.7, 153 and 45.9 where 2 was charged: one such record changed the algorithm of its block."""
    space = SPD(k)
    ball = Ball(space, np.eye(k), 8.0)
    records = space.random_point(500, rng=0)
    other = records.copy()
    other[-1] = np.diag(np.geomspace(1e-3, 1e3, k))
    assert moved(ball, records, other) <= 1.0


def test_a_second_record_of_a_person_moves_no_other_person():
    """27.8 where 2 was charged: 16 rows instead of 15 changed the algorithm."""
    space = SPD(2)
    ball = Ball(space, np.eye(2), 14.0)
    records = np.stack([np.diag([np.exp(9.0), np.exp(-9.0)])] * 15)
    more = np.concatenate([records, records[:1]])
    names = np.arange(15)
    assert moved(ball, records, more, (names, np.append(names, 0))) == 0.0


def test_a_source_that_shuffles_between_passes_clips_every_record():
    """0.01 became 0.9999 where 1e−4 was claimed: what clipping had done was kept by the number of the block."""
    ball = Ball(Euclidean(1), [0.0], 1.0)
    for far in (0.5, 1e6):
        rng = np.random.default_rng(0)

        def shuffled(far=far, rng=rng):
            records = np.full((100_000, 1), 0.1)
            records[0] = far
            order = rng.permutation(10)
            return iter([records[10_000 * i : 10_000 * (i + 1)] for i in order])

        release = dpm.private_variance(shuffled, ball, PureDP(100.0), rng=0)
        assert release.value < 0.02


@pytest.mark.parametrize("options", [{}, {"on_invalid": "center"}, {"refine": 1}, {"group_by": np.arange(640)}])
@pytest.mark.parametrize("release", [dpm.private_mean, dpm.private_variance])
def test_years_far_from_the_origin_are_released_wherever_they_lie(release, options):
    """0 of 200 against 200 of 200 raised: rounding was measured from the year 0, the tolerance from the centre."""
    if release is dpm.private_variance:
        options = {name: value for name, value in options.items() if name != "refine"}
    for last in (1900.0, 2020.0):
        records = np.full((640, 1), 1922.55)
        records[-1] = last
        assert release(records, YEARS, PureDP(1.0), **options).n == 640


def test_records_at_opposite_edges_of_a_wide_ball_are_released():
    """NotOnManifoldError 4 of 4 against 0 of 4."""
    space = SPD(5)
    ball = Ball(space, np.eye(5), 13.0)
    edge = np.diag(np.exp([13.0, 0, 0, 0, 0]))
    for last in (edge, np.diag(np.exp([-13.0, 0, 0, 0, 0]))):
        records = np.concatenate([np.tile(edge, (1000, 1, 1)), last[None]])
        for release in (dpm.private_mean, dpm.private_median, dpm.private_variance):
            assert release(records, ball, dpm.GaussianDP(1.0), on_invalid="center").guarantee.fits(dpm.GaussianDP(1.0))


def test_persons_far_out_in_hyperbolic_space_are_released():
    space = Hyperbolic(2)
    ball = Ball(space, space.origin, 18.0)
    far = space.exp(space.origin, np.array([[0.0, 17.9, 0.0], [0.0, -17.9, 0.0], [0.0, 0.0, 17.5]]))
    for rows in ([0, 0, 1], [0, 1, 2]):
        release = dpm.private_mean(far[np.array(rows * 20)], ball, PureDP(1.0), group_by=np.arange(60) // 3)
        assert release.n == 20


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("size", [1e160, 1e-160, 1e300, 1e-300])
def test_no_valid_record_is_heard_of_by_a_warning(size):
    """1e160·I gave a warning that 1·I did not."""
    records = np.tile(np.eye(3), (50, 1, 1))
    records[7] *= size
    for metric in ("affine-invariant", "log-euclidean", "log-cholesky"):
        ball = Ball(SPD(3, metric), np.eye(3), 2.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for release in (dpm.private_mean, dpm.private_median, dpm.private_variance):
                release(records, ball, dpm.GaussianDP(1.0))


def signalling(records):
    """Single precision, with a signalling NaN in one record: NumPy warns when it is made double."""
    odd = records.astype(np.float32)
    odd[7].reshape(-1).view(np.uint32)[0] = 0x7FA00000
    return odd


HEARD = {
    "mean": lambda x, ball, asked: dpm.private_mean(x, ball, **asked),
    "mean of blocks": lambda x, ball, asked: dpm.private_mean([x[:9], x[9:].astype(float)], ball, **asked),
    "direct mean": lambda x, ball, asked: dpm.private_mean(x, ball, mechanism="direct-gaussian", **asked),
    "variance": lambda x, ball, asked: dpm.private_variance(x, ball, **asked),
    "median": lambda x, ball, asked: dpm.private_median(x, ball, steps=2, **asked),
    "median of a stream": lambda x, ball, asked: dpm.private_median(lambda: iter([x, x]), ball, steps=2, **asked),
    "tangent PCA": lambda x, ball, asked: dpm.PrivateTangentPCA(ball, n_components=1, **asked).fit(x),
    "covariance": lambda x, ball, asked: dpm.private_covariance(x.reshape(50, -1), 2.0, **asked),
    "PCA": lambda x, ball, asked: dpm.PrivatePCA(1, radius=2.0, **asked).fit(x.reshape(50, -1)),
    "PCA by descent": lambda x, ball, asked: dpm.PrivatePCA(1, radius=2.0, solver="descent", steps=2, **asked).fit(
        x.reshape(50, -1)
    ),
}


@pytest.mark.parametrize("name", HEARD)
def test_a_signalling_nan_of_single_precision_is_not_heard_of(name):
    """Reading it warned, in tangent PCA after the budget was spent: under `-W error` nothing was released for it."""
    ball = Ball(SPD(2), np.eye(2), 2.0)
    asked = {"budget": dpm.GaussianDP(1.0), "on_invalid": "center"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HEARD[name](signalling(np.tile(np.eye(2), (50, 1, 1))), ball, asked)


@pytest.mark.parametrize("dim", [1, 3])
def test_complex_vectors_are_refused_by_covariances(dim):
    """2 and 1.41 where 1 was charged: the real part of z zᵀ is as far below 0 for z = i as it is above for z = 1."""
    records = np.zeros((20, dim), dtype=complex)
    records[3, 0] = 1j
    losses = dpm.losses.EigenvectorLoss(2, radius=1.0), dpm.losses.GaussianCovarianceLoss(2)
    for given in (records, [records[:9], records[9:]], lambda: iter([records])):
        with pytest.raises(dpm.ArgumentError, match="real numbers"):
            dpm.private_covariance(given, 1.0, PureDP(1.0))
    with pytest.raises(dpm.ArgumentError, match="real numbers"):
        dpm.PrivatePCA(1, PureDP(1.0), radius=1.0).fit(np.zeros((20, 2), dtype=complex))
    for loss in losses:
        with pytest.raises(dpm.ArgumentError, match="real numbers"):
            dpm.private_descent(
                loss, np.zeros((20, 2), dtype=complex), loss.manifold, PureDP(1.0), steps=1, step_size=0.1,
                clip_norm=1.0, start=loss.manifold.random_point(rng=0),
            )  # fmt: skip


def test_a_label_that_cannot_be_compared_is_of_no_class():
    """What its comparison raised was shown, word for word."""

    class Secret:
        def __hash__(self) -> int:
            raise RuntimeError("86420")

    ball, labels = Ball(SPD(2), np.eye(2), 2.0), [0, 1] * 10
    labels[3] = Secret()
    asked = {"classes": [0, 1], "private_labels": True}
    found = dpm.private_class_means(
        SPD(2).random_point(20, rng=0), labels, ball, PureDP(1.0), on_invalid="center", **asked
    )
    assert len(found.releases) == 2
    with pytest.raises(dpm.ArgumentError, match="one of classes"):
        dpm.private_class_means(SPD(2).random_point(20, rng=0), labels, ball, PureDP(1.0), **asked)


def test_vectors_in_a_list_around_a_public_center_have_its_shape():
    """A short one stopped the release, and so did the removal of the only one."""
    rows = np.random.default_rng(0).uniform(-1, 1, (20, 3)).tolist()
    ball, asked = Ball(Euclidean(3), np.zeros(3), 2.0), {"on_invalid": "center", "rng": 0}
    short, none = ([*rows[:19], last] for last in ([1.0], [np.nan] * 3))
    one, other = (dpm.private_covariance(each, ball, PureDP(1.0), **asked) for each in (short, none))
    assert np.array_equal(one.value, other.value)
    added = {"adjacency": "add-remove-one", "n_guess": 5}
    for count in (0, 1):
        assert dpm.private_covariance(rows[:count], ball, PureDP(1.0), **asked, **added).value.shape == (3, 3)


def test_a_sum_refuses_to_be_used_as_a_point():
    """Noise for a sum is less than a point needs that is not one."""
    from dpmanifolds.sums import calibrate, mean_facts

    ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 1.2)
    mechanism = calibrate("wrapped-laplace", mean_facts(ball, 100), PureDP(1.0), "rounded")
    with pytest.raises(dpm.ArgumentError, match="sum of integers"):
        mechanism.release(ball.center)


def landmarks(count, kind):
    rng = np.random.default_rng(3)
    space, mean = dpm.PlanarShapes(16), rng.normal(size=(16, 2))
    center = space.from_landmarks(mean)
    step = rng.normal(size=space.dim)
    edge = space.exp(center, space.from_coordinates(center, 0.6 * step / np.linalg.norm(step)))
    shape = np.stack([edge.real, edge.imag], -1)
    records = [(100 + 4 * shape + 0.01 * rng.normal(size=(16, 2))).astype(kind) for _ in range(count)]
    return Ball(space, center, 0.7), records


def test_the_precision_of_one_record_of_landmarks_moves_no_other_one():
    """827 where 2 was charged: a list, or blocks that are joined, take the finest precision of all."""
    ball, single = landmarks(200, np.float32)
    mixed = [*single[:-1], single[-1].astype(np.float64)]
    assert moved(ball, single, mixed) == 0.0
    blocks = [[record[None] for record in records] for records in (single, mixed)]
    assert moved(ball, *blocks) == 0.0


def test_one_record_more_of_landmarks_moves_no_other_one():
    """2.0 where 1.02 was charged: in the order of R and MATLAB a tile of one row was added up in another order."""
    ball, records = landmarks(600, np.float32)
    stored = np.asfortranarray(np.stack(records).transpose(1, 2, 0)).transpose(2, 0, 1)
    exponent = finest_exponent(ball.manifold.dim)
    pull = TangentContribution(ball.manifold, host(ball.center), radius=ball.radius, exponent=exponent)
    totals = [
        np.array(read_records(ball.manifold, stored[:count]).total(pull).integers, dtype=float)
        for count in (512, 513, 514)
    ]
    for fewer, more in pairwise(totals):
        assert np.linalg.norm(more - fewer) <= 2**exponent


def test_one_name_makes_no_other_names_equal():
    """995 where 2 was charged: a float among large whole numbers merged 1001 persons into 6."""
    ball = Ball(Euclidean(1), [0.0], 16.0)
    records = np.arange(1001.0)[:, None] % 16
    names = [[*range(2**60, 2**60 + 1000), last] for last in (2**60 + 1000, 0.5)]
    assert moved(ball, records, records, names) == 0.0
    assert [dpm.private_mean(records, ball, PureDP(1.0), group_by=each).n for each in names] == [1001, 1001]


def test_a_secret_number_of_records_reaches_no_account(tmp_path):
    """Class means wrote the true number as the guess, and the median planned its steps from it."""
    ball = Ball(SPD(2), np.eye(2), 2.0)
    for count in (0, 60, 61):
        ledger = dpm.Ledger(tmp_path / f"{count}.ledger")
        ledger.open_dataset("clinic", PureDP(5.0), adjacency="add-remove-one")
        labels = np.arange(count) % 2
        dpm.private_class_means(
            SPD(2).random_point(count, rng=0),
            labels,
            ball,
            PureDP(1.0),
            classes=[0, 1],
            private_labels=True,
            adjacency="add-remove-one",
            n_guess=50,
            ledger=ledger,
            dataset="clinic",
        )
        (spent,) = [entry.details["parameters"] for entry in ledger.entries("clinic") if entry.kind == "spend"]
        assert spent["n_guess"] == 50
        assert count not in spent.values() or count == 0


@pytest.mark.parametrize("rows", [100, 40_000])
def test_a_stream_that_fills_one_buffer_again_and_again_counts_each_record_once(rows):
    """327 where 1 was charged: blocks were kept, to be joined or read ahead, while the source wrote over them."""
    ball, blocks = Ball(Sphere(2), [1.0, 0.0, 0.0], 1.0), 32_768 // rows or 6

    def streamed(last):
        def stream():
            buffer = np.empty((rows, 3))
            for number in range(blocks):
                buffer[...] = [1.0, 0.0, 0.0]
                if number == blocks - 1:
                    buffer[rows // 2] = last
                yield buffer

        return stream

    first, second = ([np.cos(1.0), sign * np.sin(1.0), 0.0] for sign in (1, -1))
    assert moved(ball, streamed(first), streamed(second)) <= 1.0


def test_a_stream_of_objects_that_look_at_one_buffer_counts_each_record_once():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 1.0)

    def streamed(last):
        def stream():
            buffer, rows = np.empty((100, 3)), np.empty(100, dtype=object)
            for row in range(100):
                rows[row] = buffer[row]
            for number in range(300):
                buffer[...] = [1.0, 0.0, 0.0]
                if number == 299:
                    buffer[50] = last
                yield rows

        return stream

    first, second = ([np.cos(1.0), sign * np.sin(1.0), 0.0] for sign in (1, -1))
    assert moved(ball, streamed(first), streamed(second)) <= 1.0


def test_two_iterators_over_one_buffer_keep_their_first_blocks():
    space, buffer = Sphere(2), np.empty((50, 3))

    def shared(blocks):
        for block in blocks:
            buffer[...] = block
            yield buffer

    rule = TangentContribution(space, np.eye(3)[0], radius=2.0, exponent=20)
    one, two = (space.random_point((4, 50), rng=seed) for seed in (0, 1))
    first, _ = (read_records(space, shared(blocks)) for blocks in (one, two))
    assert first.total(rule).integers == read_records(space, one.reshape(-1, 3)).total(rule).integers


@pytest.mark.parametrize("dim", [5, 7, 12, 15])
@pytest.mark.parametrize("last", [0.0, 1e-200], ids=["zero", "tiny"])
def test_a_record_without_direction_changes_no_bit_of_the_other_rows(dim, last):
    """Vectors in rows: one record of length 0 led all coordinates of its tile into a copy of another memory layout.

    Norms of rows then differed in their last bits: one record decided integers of others (second moments, descents).
    """
    space = Sphere(dim)
    center, records = space.random_point(rng=0), space.random_point(500, rng=1)
    rule = TangentSquareContribution(TangentContribution(space, center), 0.5, 20)
    found = []
    for other in (space.random_point(rng=2), last * center):
        tile = cut_tile(np.concatenate([records, other[None]]), 0, 512, rule.filler, in_rows=True)
        rows = rule(tile)[0]
        found.append(norm(rows)[:500])
    assert np.array_equal(*found)
