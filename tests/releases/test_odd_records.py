"""Records that are no numbers, or not alike: each is judged by itself, and no message quotes one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import Ball, Euclidean, GaussianDP, Hyperbolic, PlanarShapes, PureDP
from dpmanifolds.descent.losses import EigenvectorLoss, FrechetMeanLoss, GaussianCovarianceLoss, HyperbolicEmbeddingLoss

BALL = Ball(Euclidean(2), [0.0, 0.0], 2.0)
BUDGET = GaussianDP(1.0)
NUMBERS = np.random.default_rng(0).uniform(-1, 1, (30, 2))
LABELS = np.arange(30) % 2
ROW = 17


class Refusing:
    """As a tensor does that needs its gradient, or lives on another device."""

    def __array__(self, *_, **__):
        raise RuntimeError("86420")


ODD = {
    "None": None,
    "a text": "1.5 and 2.5",
    "a text inside": [0.25, "86420"],
    "None inside": [None, 0.5],
    "a complex number": [1.5 + 2j, 0.5],
    "too short": [1.0],
    "too long": [1.0, 2.0, 3.0],
    "one number": 1.5,
    "a matrix": np.eye(2),
    "huge": [10**400, 1.0],
    "an object": object(),
    "a table": {"x": 1.0},
    "empty": [],
    "a masked entry": [np.ma.masked, 0.5],
    "a masked array": np.ma.masked_array([0.25, 0.5], mask=[True, False]),
    "an array of one number inside": [np.array([0.25]), 0.5],
    "what is no array": Refusing(),
}
OF_TWO_ENTRIES = ("None inside", "a text inside", "a complex number", "huge", "a masked entry")
ENTRIES = {
    "mean": lambda x: dpm.private_mean(x, BALL, BUDGET, on_invalid="center", rng=0).value,
    "mean, add/remove": lambda x: dpm.private_mean(
        x, BALL, BUDGET, on_invalid="center", adjacency="add-remove-one", n_guess=30, rng=0
    ).value,
    "mean of persons": lambda x: dpm.private_mean(
        x, BALL, BUDGET, on_invalid="center", group_by=np.arange(30) // 2, rng=0
    ).value,
    "direct mean": lambda x: dpm.private_mean(
        x, BALL, BUDGET, mechanism="direct-gaussian", on_invalid="center", rng=0
    ).value,
    "k-norm gradient": lambda x: dpm.private_mean(
        x, BALL, PureDP(1.0), mechanism="k-norm-gradient", numerics="idealized", on_invalid="center", rng=0
    ).value,
    "variance": lambda x: dpm.private_variance(x, BALL, BUDGET, on_invalid="center", rng=0).value,
    "class means": lambda x: dpm.private_class_means(x, LABELS, BALL, BUDGET, on_invalid="center", rng=0).means,
    "median": lambda x: dpm.private_median(x, BALL, BUDGET, steps=2, on_invalid="center", rng=0).value,
    "descent": lambda x: dpm.private_descent(
        FrechetMeanLoss(BALL), x, BALL.manifold, BUDGET, start=[0.0, 0.0], steps=2, step_size=0.5,
        on_invalid="center", rng=0,
    ).value,
    "descent of a loss of vectors": lambda x: dpm.private_descent(
        GaussianCovarianceLoss(2), x, dpm.SPD(2), BUDGET, start=np.eye(2), steps=2, step_size=0.1, clip_norm=2.0,
        on_invalid="center", rng=0,
    ).value,
    "covariance": lambda x: dpm.private_covariance(x, 2.0, BUDGET, on_invalid="center", rng=0).value,
    "covariance in a ball": lambda x: dpm.private_covariance(x, BALL, BUDGET, on_invalid="center", rng=0).value,
}  # fmt: skip


@pytest.mark.grid
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_record_of_a_list_is_a_malformed_one(entry, kind):
    """The release is that of the array with a record of NaNs in its place, to the last bit."""
    listed = NUMBERS.tolist()
    listed[ROW] = ODD[kind]
    array = NUMBERS.copy()
    array[ROW] = np.nan
    if entry == "covariance" and kind not in OF_TWO_ENTRIES:
        pytest.skip("a bound on lengths has no public shape of records: a list of unlike ones is refused")
    with warnings.catch_warnings(record=True) as heard:
        # what would be raised in place of a warning may be taken for an odd entry
        warnings.simplefilter("always")
        assert np.array_equal(ENTRIES[entry](listed), ENTRIES[entry](array))
    assert not heard


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_a_mask_hides_is_no_number(entry):
    """The number behind a mask was taken for one that is there."""
    masked = np.ma.masked_array(NUMBERS, mask=np.zeros((30, 2), dtype=bool))
    masked[ROW, 1] = np.ma.masked
    array = NUMBERS.copy()
    array[ROW] = np.nan
    # without a public shape of records a list of rows is one of blocks
    for given in (masked,) if entry == "covariance" else (masked, list(masked)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert np.array_equal(ENTRIES[entry](given), ENTRIES[entry](array))
        assert not heard


def test_masked_names_and_labels_are_missing():
    names = np.ma.masked_array(np.arange(30) // 2, mask=np.arange(30) == 4)
    words = np.ma.masked_array((np.arange(30) // 2).astype(str), mask=np.arange(30) == 4)
    for given in (names, words, list(names), list(words)):
        with pytest.raises(dpm.ArgumentError, match="missing"):
            dpm.private_mean(NUMBERS, BALL, BUDGET, group_by=given)
    labels = np.ma.masked_array(LABELS, mask=np.arange(30) == ROW)
    plain = [None if number == ROW else int(label) for number, label in enumerate(LABELS)]
    asked = {"classes": [0, 1], "private_labels": True, "on_invalid": "center", "rng": 0}
    expected = dpm.private_class_means(NUMBERS, plain, BALL, BUDGET, **asked).means
    for labelled in (labels, list(labels)):
        assert np.array_equal(dpm.private_class_means(NUMBERS, labelled, BALL, BUDGET, **asked).means, expected)


@pytest.mark.parametrize("entry", ["mean", "class means", "variance"])
def test_an_array_of_records_as_objects_is_read_record_by_record(entry):
    """A row of such an array that is shorter made class means fail without words of their own."""
    objects = np.empty(30, dtype=object)
    objects[:] = [row.tolist() for row in NUMBERS]
    objects[ROW] = [1.0]
    array = NUMBERS.copy()
    array[ROW] = np.nan
    assert np.array_equal(ENTRIES[entry](objects), ENTRIES[entry](array))


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_array_of_objects_is_read_entry_by_entry(entry):
    objects = NUMBERS.astype(object)
    objects[ROW, 1] = None
    objects[3, 0] = int(NUMBERS[3, 0])
    array = NUMBERS.copy()
    array[ROW], array[3, 0] = np.nan, int(NUMBERS[3, 0])
    assert np.array_equal(ENTRIES[entry](objects), ENTRIES[entry](array))


def test_odd_landmarks_are_malformed_too():
    """Complex points and real landmarks, each record by itself."""
    space = PlanarShapes(4)
    ball = Ball(space, space.random_point(rng=0), 0.3)
    shapes = space.random_point(20, rng=1)
    marks = space.to_landmarks(shapes)
    for given, blank in ((marks.tolist(), np.full((4, 2), np.nan)), (shapes.tolist(), np.full(4, np.nan))):
        whole = np.array(given)
        whole[5] = blank
        for odd in (None, [1.0], "a shape"):
            given[5] = odd
            releases = [dpm.private_mean(x, ball, BUDGET, on_invalid="center", rng=0).value for x in (given, whole)]
            assert np.array_equal(*releases)


def test_edges_that_are_no_edges_are_malformed_too():
    loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=5, negatives=4)
    edges = [[0, 1], [1, 2], [2, 3], [3, 4]]
    for odd in ([0.5, 1], None, [1], ["0", "1"], [-1, 2], [0, 10**30]):
        formed, broken = loss.bring(loss.form([*edges, odd]))
        assert broken.tolist() == [0, 0, 0, 0, 1]
        assert np.array_equal(formed[:4], loss.bring(loss.form(np.array(edges)))[0])


QUOTES = ("86420", "97531", "37")


class ToldError(Exception):
    """What somebody's own code says of a record."""


def blocks_that_fail():
    yield NUMBERS
    raise ToldError("record 37 of 86420 is broken")


class Frame:
    """A table of another library, whose numbers show when it is printed."""

    def __repr__(self):
        return "   age\n0  86420\n1  97531"

    __str__ = __repr__


def records_with(row):
    space = dpm.SPD(2)
    records = space.random_point(40, rng=0)
    records[37] = row
    return records


def listed(row):
    rows = NUMBERS.tolist()
    rows[7] = row
    return rows


SLIPS = {
    "a source that fails": lambda: dpm.private_mean(blocks_that_fail, BALL, BUDGET),
    "a source of a descent": lambda: dpm.private_descent(
        FrechetMeanLoss(BALL), blocks_that_fail, Euclidean(2), BUDGET, start=[0.0, 0.0], steps=1, step_size=1.0
    ),
    "a table as a path": lambda: dpm.read_points(Frame()),
    "a table as records": lambda: dpm.private_mean(Frame(), BALL, BUDGET),
    "records as a domain": lambda: dpm.private_mean(NUMBERS, listed([86420.0, 1.0]), BUDGET),
    "records as a budget": lambda: dpm.private_mean(NUMBERS, BALL, listed([86420.0, 1.0])),
    "records as a manifold": lambda: dpm.frechet_mean(listed([86420.0, 1.0]), Euclidean(2)),
    "records as a ball's manifold": lambda: Ball(listed([86420.0, 1.0]), [0.0], 1.0),
    "records as a number": lambda: dpm.plan(BALL, listed([86420.0, 1.0]), BUDGET),
    "records as a name": lambda: dpm.private_mean(NUMBERS, BALL, BUDGET, mechanism=listed([86420.0, 1.0])),
    "a text that is no number": lambda: dpm.private_mean(listed(["86420", "97531"]), BALL, BUDGET),
    "a text in an array": lambda: dpm.private_mean(np.array(listed(["86420", "97531"])), BALL, BUDGET),
    "a matrix that cannot be factorised": lambda: dpm.frechet_mean(dpm.SPD(2), records_with(-np.eye(2))),
    "the same in a direct release": lambda: dpm.private_mean(
        records_with(np.ones((2, 2))), Ball(dpm.SPD(2), np.eye(2), 1.5), BUDGET, mechanism="direct-gaussian"
    ),
    "a median": lambda: dpm.frechet_median(dpm.SPD(2, "log-cholesky"), records_with(-np.eye(2))),
    "records as a loss": lambda: dpm.private_descent(
        listed([86420.0, 1.0]), NUMBERS, Euclidean(2), BUDGET, start=[0.0, 0.0], steps=1, step_size=1.0
    ),
    "a vector of texts": lambda: dpm.private_descent(
        EigenvectorLoss(dimension=2, radius=1.0), listed(["86420", 1.0]), dpm.Sphere(1), BUDGET,
        start=[1.0, 0.0], steps=1, step_size=1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SLIPS)
def test_no_error_quotes_a_record_or_counts_up_to_it(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpm.DPManifoldsError) as caught:
            SLIPS[name]()
    error = caught.value
    assert not any(digits in str(error) for digits in QUOTES)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.needs("torch")
@pytest.mark.parametrize("metric", ["affine-invariant", "log-cholesky"])
def test_no_batch_element_of_pytorch_is_heard_of(metric):
    """`linalg.cholesky: (Batch element 37)` is a record's number."""
    torch = pytest.importorskip("torch")
    records = torch.tensor(records_with(np.ones((2, 2))))
    space = dpm.SPD(2, metric)

    def loss(w, record):
        return torch.linalg.cholesky(record).sum() + (w * w).sum()

    for statistic in (dpm.frechet_mean, dpm.frechet_median):
        with pytest.raises(dpm.DPManifoldsError) as caught:
            statistic(space, records)
        assert "37" not in str(caught.value)
    # a record whose loss fails has gradient 0, silently
    release = dpm.private_descent(
        loss, records, Euclidean(2), BUDGET, start=[0.0, 0.0], steps=1, step_size=0.1, clip_norm=1.0
    )
    assert bool(torch.isfinite(release.value).all())


LIBRARIES = {
    "numpy": lambda x: x,
    "torch": lambda x: pytest.importorskip("torch").tensor(x),
    "jax": lambda x: pytest.importorskip("jax.numpy").asarray(x),
}
MATRICES = Ball(dpm.SPD(2), np.eye(2), 1.5)
RELEASES = {
    "mean": lambda x: dpm.private_mean(x, MATRICES, BUDGET),
    "mean of three steps": lambda x: dpm.private_mean(x, MATRICES, BUDGET, steps=3),
    "refined mean": lambda x: dpm.private_mean(x, MATRICES, BUDGET, refine=1),
    "mean by axes": lambda x: dpm.private_mean(x, MATRICES, BUDGET, refine="axes"),
    "mean of persons": lambda x: dpm.private_mean(x, MATRICES, BUDGET, group_by=np.arange(40) % 9),
    "variance": lambda x: dpm.private_variance(x, MATRICES, BUDGET),
    "median": lambda x: dpm.private_median(x, MATRICES, BUDGET, steps=2),
    "class means": lambda x: dpm.private_class_means(x, np.arange(40) % 2, MATRICES, BUDGET),
    "descent": lambda x: dpm.private_descent(
        FrechetMeanLoss(MATRICES), x, MATRICES.manifold, BUDGET, start=np.eye(2), steps=2, step_size=0.5
    ),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("entry", RELEASES)
def test_no_valid_record_makes_a_library_warn(entry, library):
    """1e160·I is a matrix like any other: its square overflows, and nobody hears of it."""
    sizes = (1.0, 1e160, 1e-160, 1e30) if library != "jax" else (1.0, 1e30, 1e-30)
    for size in sizes:
        records = LIBRARIES[library](records_with(size * np.eye(2)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            RELEASES[entry](records)


MATRICES = Ball(dpm.SPD(2), np.eye(2), 2.0)
SHAPES = Ball(PlanarShapes(4), PlanarShapes(4).from_landmarks(np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])), 0.6)
CAP = Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0)
NEST = {
    "a row too short": [[1.0, 0.0], [0.0]],
    "a row missing": [[1.0, 0.0], None],
    "a row of text": [[1.0, 0.0], "x"],
    "a vector": [1.0, 2.0],
    "another size": [[1, 2, 3], [4, 5, 6]],
    "None": None,
}


def mean_of(records, ball):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dpm.private_mean(records, ball, PureDP(600.0), steps=1, on_invalid="center", rng=0).value


@pytest.mark.parametrize("kind", NEST)
def test_a_ragged_matrix_of_a_list_leaves_the_others_as_they_are(kind):
    """200 copies of diag(3, 2), one of them ragged: the mean went to the centre."""
    array = np.array([np.diag([3.0, 2.0])] * 200)
    listed = array.tolist()
    listed[7] = NEST[kind]
    array[7] = np.nan
    assert np.array_equal(mean_of(listed, MATRICES), mean_of(array, MATRICES))


@pytest.mark.parametrize("missing", [None, [None, None], [1.0], [1.0, 2j]])
def test_a_missing_landmark_leaves_the_other_shapes_as_they_are(missing):
    other = np.array([[0.0, 0], [2, 0], [1, 1], [0, 1]])
    array = np.array([other] * 50)
    listed = array.tolist()
    listed[3][2] = missing
    array[3] = np.nan
    assert np.array_equal(mean_of(listed, SHAPES), mean_of(array, SHAPES))


def test_complex_numbers_of_single_precision_keep_their_imaginary_part():
    shape = SHAPES.manifold.from_landmarks(np.array([[0.0, 0], [2, 0], [1, 1], [0, 1]])).astype(np.complex64)
    listed = [list(shape) for _ in range(50)]
    listed[3] = [None] * 4
    array = np.array([shape.astype(complex)] * 50)
    array[3] = np.nan
    assert np.array_equal(mean_of(listed, SHAPES), mean_of(array, SHAPES))


def test_no_element_decides_whether_a_list_is_one_of_blocks():
    point = np.array([0.6, 0.0, 0.8])
    whole = mean_of(np.array([point] * 200), CAP)
    odd = np.array([point] * 200)
    odd[0] = np.nan
    for row in (0, 5):
        records, blocks = [point] * 200, [point[None]] * 200
        records[row] = point[None]
        assert np.array_equal(mean_of(records, CAP), whole)
        blocks[row] = point
        assert np.array_equal(mean_of(blocks, CAP), whole)
        for strange in (None, np.zeros((2, 2)), "x"):
            records, blocks = [point] * 200, [point[None]] * 200
            records[row] = blocks[row] = strange
            assert np.allclose(mean_of(records, CAP), mean_of(odd, CAP), atol=1e-12)
            assert np.allclose(mean_of(blocks, CAP), mean_of(odd, CAP), atol=1e-12)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_one_odd_element_among_blocks_of_landmarks_is_a_malformed_record(precision):
    shapes = PlanarShapes(4).random_point(40, rng=0)
    landmarks = np.stack([shapes.real, shapes.imag], axis=-1).astype(precision)
    blocks = [landmarks[:10], landmarks[10:39]]
    told = mean_of([*blocks, np.full((1, 4, 2), np.nan, dtype=precision)], SHAPES)
    for strange in (None, "x", np.zeros(7), np.full(4, np.nan + 0j), np.full((1, 4), np.nan + 0j)):
        assert np.array_equal(mean_of([*blocks, strange], SHAPES), told)


def test_a_stream_that_can_be_read_once_takes_one_step_where_its_number_is_protected():
    points = CAP.clip(dpm.Sphere(2).random_point(400, rng=0))
    options = {"adjacency": "add-remove-one", "n_guess": 400, "rng": 0}
    one = dpm.private_mean(iter([points[:100], points[100:]]), CAP, BUDGET, **options)
    assert np.array_equal(one.value, dpm.private_mean(points, CAP, BUDGET, steps=1, refine=0, **options).value)
    with pytest.raises(dpm.ArgumentError, match="read only once"):
        dpm.private_mean(iter([points]), CAP, BUDGET, steps=2, **options)
