"""Runs as a whole: they find minima, keep their books, and refuse bad input before anything is spent."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    ArgumentError,
    Ball,
    DPManifoldsError,
    Euclidean,
    GaussianDP,
    Grassmann,
    Hyperbolic,
    NotAvailableError,
    NotOnManifoldError,
    Power,
    Product,
    PureDP,
    ScaleOutOfRangeError,
    Sphere,
    Stiefel,
    frechet_mean,
    frechet_median,
)
from dpmanifolds.descent import ConvexSteps, GeometricSteps, PolyakSteps, SmoothSteps, StronglyConvexSteps
from dpmanifolds.descent.losses import (
    EigenvectorLoss,
    FrechetMeanLoss,
    FrechetMedianLoss,
    GaussianCovarianceLoss,
    Loss,
    PCALoss,
)
from dpmanifolds.descent.step_sizes import step_sizes
from dpmanifolds.releases import private_descent
from tests.descent.totals import total_of
from tests.selection import thorough

BUDGET = ApproxDP(1.0, 1e-6)
SPACE = SPD(3)
BALL = Ball(SPACE, np.eye(3), 2.0)
RECORDS = BALL.clip(SPACE.random_point(3000, rng=0))


class Book:
    """A ledger that only writes down."""

    def __init__(self):
        self.entries = []

    def spend(self, dataset, guarantee, *, what, parameters, reproducible):
        self.entries.append((dataset, guarantee, what, parameters, reproducible))


def run(loss=None, records=RECORDS, domain=SPACE, **options):
    settings = {"start": BALL.center, "budget": BUDGET, "steps": 8, "step_size": 0.5} | options
    return private_descent(loss or FrechetMeanLoss(BALL), records, domain, **settings)


@pytest.mark.grid
@pytest.mark.parametrize("output", ["last", "average", "weighted-average"])
@pytest.mark.parametrize("retraction", [False, True])
def test_the_mean_of_matrices_is_found(output, retraction):
    result = run(output=output, retraction=retraction, steps=20, budget=GaussianDP(20.0), rng=0)
    mean = frechet_mean(SPACE, RECORDS).point
    assert SPACE.dist(result.value, mean) < (0.1 if output == "last" else 0.25)
    assert result.guarantee.fits(GaussianDP(20.0))


@pytest.mark.parametrize("sampling", ["poisson", "without-replacement"])
def test_random_batches_find_the_mean_too(sampling):
    result = run(batch_size=300, sampling=sampling, steps=30, sigma=0.02, budget=None, step_size=0.2, rng=1)
    assert SPACE.dist(result.value, frechet_mean(SPACE, RECORDS).point) < 0.3
    assert result.descent.batch_size == 300
    assert result.descent.sampling == sampling


def test_the_noise_is_calibrated_so_that_the_error_is_the_predicted_one():
    """w_{t+1} − x̄ = (1−η)(w_t − x̄) − ησz on a flat space: variance σ²η/(2−η) per coordinate; 200 runs, 5.5 sd."""
    space = Euclidean(3)
    ball = Ball(space, np.zeros(3), 1.0)
    records = ball.clip(0.3 * space.random_point(200, rng=0))
    mean = records.mean(axis=0)
    errors = [
        run(FrechetMeanLoss(ball), records, space, start=np.zeros(3), steps=15, sigma=0.1, budget=None, rng=seed).value
        - mean
        for seed in range(200)
    ]
    variance = np.mean(np.square(errors)) / (0.01 * 0.5 / 1.5)
    assert abs(variance - 1) < 5.5 * np.sqrt(2 / 600)


def test_leading_eigenvectors_subspaces_and_covariances_are_found():
    rng = np.random.default_rng(0)
    scales = np.array([3.0, 2.5, 1.0, 0.5, 0.2])
    vectors = rng.standard_normal((8_000, 5)) * scales / 8
    large = GaussianDP(50.0)
    tilted = Sphere(4).project(np.ones(5))
    first = run(EigenvectorLoss(5, 1.0), vectors, Sphere(4), start=tilted, steps=80, step_size=2.0, budget=large, rng=0)
    assert abs(first.value[0]) > 0.98
    for space in (Grassmann(5, 2), Stiefel(5, 2)):
        start = space.random_point(rng=3)
        plane = run(PCALoss(space, 1.0), vectors, space, start=start, steps=80, step_size=4.0, budget=large, rng=0)
        assert np.linalg.norm(plane.value[:2]) > 0.98 * np.sqrt(2)
        assert bool(space.belongs(plane.value, 1e-12))
    covariance = run(
        GaussianCovarianceLoss(5),
        8 * vectors,
        SPD(5),
        start=np.eye(5),
        steps=60,
        step_size=0.5,
        clip_norm=8.0,
        budget=large,
        rng=0,
    )
    assert SPD(5).dist(covariance.value, np.diag(scales**2)) < 0.3


def test_pure_budgets_get_laplace_noise():
    result = run(budget=PureDP(2.0), steps=4)
    assert result.descent.law == "laplace"
    assert result.guarantee.as_pure().epsilon == pytest.approx(2.0)
    assert result.descent.sigma == pytest.approx(2 * 2.0 * 4 / (3000 * 2.0), rel=1e-6)


def test_the_result_holds_nothing_that_was_not_noised():
    result = run()
    assert {field.name for field in dataclasses.fields(result.descent)} == {
        "steps", "clip_norm", "sigma", "law", "output", "batch_size", "sampling", "lost_steps",
    }  # fmt: skip
    assert (result.coordinates, result.step, result.stages, result.expected_error) == (None, None, (), None)
    assert result.numerics == "rounded"
    assert not result.reproducible


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("output", ["last", "random", "average", "weighted-average"])
def test_a_seed_repeats_a_run_and_marks_it(output):
    one, two = (run(rng=7, output=output) for _ in range(2))
    assert np.array_equal(one.value, two.value)
    assert one.reproducible
    assert not np.array_equal(run(output=output).value, one.value) or output == "random"


@thorough("runs", 25, 60)
def test_a_random_output_is_one_of_the_iterates_before_the_last(runs):
    chosen = set()
    for seed in range(runs):
        seen = [np.eye(3)]
        point = run(
            records=RECORDS[:50], output="random", steps=3, rng=seed, callback=lambda _, w, seen=seen: seen.append(w)
        ).value
        chosen.add(next(i for i, w in enumerate(seen) if np.array_equal(w, point)))
    assert chosen == {0, 1, 2}


def test_averages_are_those_of_the_paper():
    for output, weight in (("average", 1), ("weighted-average", 2)):
        seen = []
        point = run(output=output, steps=5, rng=3, callback=lambda _, w, seen=seen: seen.append(w)).value
        average = seen[0]
        for t in range(1, 5):
            average = SPACE.geodesic(average, seen[t], min(1.0, weight / (t + 1)))
        assert np.allclose(point, average)


def test_iterates_stay_within_the_domain_they_are_given():
    small = Ball(SPACE, np.eye(3), 0.1)
    seen = []
    run(domain=small, sigma=5.0, budget=None, callback=lambda _, w: seen.append(w))
    assert bool(np.all(small.contains(np.stack(seen))))


def test_no_step_is_longer_than_the_longest():
    seen = [np.eye(3)]
    run(longest_step=0.05, sigma=5.0, budget=None, rng=0, callback=lambda _, w: seen.append(w))
    assert SPACE.dist(np.stack(seen[:-1]), np.stack(seen[1:])) == pytest.approx(0.05)
    space = Power(Hyperbolic(2), 3)
    start = np.stack([Hyperbolic(2).origin] * 3)
    ball = Ball(space, start, 2.0)
    # of a fixed seed: without one, a step of a copy is shorter than 0.1 in one run of 1,300
    point = run(
        FrechetMeanLoss(ball), start[None], space, start=start, longest_step=0.1, steps=1, sigma=9.0, budget=None, rng=0
    ).value
    assert Hyperbolic(2).dist(start, point) == pytest.approx([0.1] * 3)


def test_a_step_out_of_this_world_is_shortened():
    """It is drawn and paid for by then: the run goes on from where numbers can go."""
    space = Hyperbolic(2)
    ball = Ball(space, space.origin, 2.0)
    result = run(FrechetMeanLoss(ball), space.origin[None], space, start=space.origin, sigma=1e6, budget=None)
    assert bool(space.belongs(result.value))


def test_a_covariance_that_cannot_be_factorised_is_never_reached():
    """Cholesky's own error came out of the middle of a run that was paid for."""
    loss, records = GaussianCovarianceLoss(3), np.random.default_rng(0).standard_normal((40, 3))
    for seed in range(20):
        result = run(loss, records, SPD(3), start=np.eye(3), clip_norm=3.0, sigma=30.0, steps=8, budget=None, rng=seed)
        np.linalg.cholesky(result.value)


def test_products_descend():
    space = Product(Hyperbolic(2), SPD(2))
    center = (Hyperbolic(2).origin, np.eye(2))
    ball = Ball(space, center, 2.0)
    records = ball.clip(space.random_point(2000, rng=0))
    result = run(FrechetMeanLoss(ball), records, space, start=center, steps=15, budget=GaussianDP(20.0), rng=0)
    assert space.dist(result.value, frechet_mean_of_product(space, records)) < 0.2


def frechet_mean_of_product(space, records):
    return tuple(frechet_mean(factor, part).point for factor, part in zip(space.factors, records, strict=True))


def test_the_ledger_is_asked_once_and_before_any_draw():
    class Refuses(Book):
        def spend(self, *arguments, **options):
            raise PermissionError

    seen = []
    with pytest.raises(PermissionError):
        run(ledger=Refuses(), dataset="study", callback=lambda t, _: seen.append(t))
    assert not seen
    book = Book()
    result = run(ledger=book, dataset="study")
    ((dataset, guarantee, what, parameters, reproducible),) = book.entries
    assert (dataset, what, reproducible) == ("study", "descent", False)
    assert guarantee == result.guarantee
    assert parameters["steps"] == 8
    assert parameters["n"] == 3000
    run(ledger=book, dataset="study", rng=1)
    assert book.entries[1][4] is True


class Broken(Loss):
    """A loss whose gradients are whatever it is told."""

    manifold = SPACE

    def __init__(self, rows):
        self.rows = rows

    def value(self, w, records):
        return 0.0

    def gradients(self, w, records):
        return self.rows(records.shape[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"start": np.eye(2)}, ArgumentError, r"shape \(\.\.\., 3, 3\)"),
        ({"start": -np.eye(3)}, NotOnManifoldError, "start does not lie"),
        ({"start": np.full((3, 3), np.nan)}, NotOnManifoldError, "start does not lie"),
        ({"start": np.stack([np.eye(3)] * 2)}, ArgumentError, "one point"),
        ({"clip_norm": 0.0}, ArgumentError, "clip_norm must be"),
        ({"clip_norm": -1.0}, ArgumentError, "clip_norm must be"),
        ({"steps": 0}, ArgumentError, "steps must be"),
        ({"steps": None}, ArgumentError, "exactly two"),
        ({"batch_size": 3001}, ArgumentError, "at most the number of records"),
        ({"step_size": 0.0}, ArgumentError, "step_size must be"),
        ({"step_size": [0.1, 0.2]}, ArgumentError, "one number per step"),
        ({"step_size": lambda t: -1.0}, ArgumentError, "above 0"),
        ({"output": "best"}, ArgumentError, "output must be one of"),
        ({"n_guess": 5}, ArgumentError, "n_guess"),
        ({"adjacency": "add-remove-one"}, ArgumentError, "n_guess"),
        ({"on_invalid": "drop"}, ArgumentError, "on_invalid must be"),
        ({"sigma": 1e15, "budget": None}, ScaleOutOfRangeError, "too large for 64-bit"),
        ({"steps": None, "sigma": 1e-9}, ArgumentError, "not even one step"),
        ({"domain": Ball(SPD(2), np.eye(2), 1.0), "start": None}, ArgumentError, "the loss is for"),
        ({"state": "somewhere", "rng": 1}, ArgumentError, "leave rng out"),
        ({"dataset": None}, ArgumentError, "needs dataset"),
        ({"records": np.full((5, 3, 3), np.nan)}, NotOnManifoldError, "finite"),
        ({"records": np.zeros((0, 3, 3))}, ArgumentError, "empty"),
        ({"domain": SPD(2)}, ArgumentError, "the loss is for"),
        ({"domain": "SPD"}, ArgumentError, "domain must be"),
        ({"loss": 3.0}, ArgumentError, "loss must be"),
        ({"loss": lambda w, x: 0.0}, ArgumentError, "JAX or PyTorch"),
        ({"loss": Broken(lambda n: np.zeros((n, 6)))}, ArgumentError, "no proven bound"),
        ({"loss": Broken(lambda n: np.zeros((n, 3, 3))), "clip_norm": 1.0}, ArgumentError, r"shape \(records, dim\)"),
        ({"loss": Broken(lambda n: None), "clip_norm": 1.0}, ArgumentError, r"shape \(records, dim\)"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_and_nothing_is_spent(options, error, message):
    book = Book()
    with pytest.raises(error, match=message) as failure:
        run(**({"ledger": book, "dataset": "study"} | options))
    assert not book.entries
    assert isinstance(failure.value, DPManifoldsError)


@pytest.mark.parametrize("last", [np.nan, np.inf, 1e300, 1.0])
def test_a_gradient_that_is_no_number_counts_as_zero_and_stops_nothing(last):
    """Issue 16, A6: whether a run fails must not hang on one record."""
    loss = Broken(lambda n: np.where(np.arange(n)[:, None] == 2, last, np.zeros((n, 6))))
    assert bool(SPACE.belongs(run(loss, clip_norm=1.0, steps=2).value))


def test_the_number_of_records_can_be_private():
    options = {"adjacency": "add-remove-one", "n_guess": 1000, "rng": 0}
    book = Book()
    result = run(**options, ledger=book, dataset="study")
    assert result.guarantee.adjacency == "add-remove-one"
    assert result.guarantee.fits(BUDGET)
    # one record moves the sum by C instead of 2C
    assert float(result.sensitivity) == 2.0 / 1000
    assert result.descent.sigma == pytest.approx(run(records=RECORDS[:1000]).descent.sigma / 2, rel=1e-9)
    for records in (RECORDS[:-1], RECORDS[:1], RECORDS[:0]):
        other = run(records=records, **options, ledger=book, dataset="study")
        assert (other.descent.sigma, other.guarantee) == (result.descent.sigma, result.guarantee)
    assert all(entry[1:] == book.entries[0][1:] for entry in book.entries)
    assert "3000" not in repr(book.entries)
    names = np.repeat(np.arange(300), 10)
    assert run(**options, group_by=names, unit="record").guarantee == result.guarantee
    with pytest.raises(NotAvailableError, match="replace-one"):
        run(**options, batch_size=10, sampling="without-replacement")


def test_the_number_of_records_can_be_private_with_random_batches():
    """The promise, the noise and the ledger know the guess alone; batches are of those that there are."""
    options = {"adjacency": "add-remove-one", "n_guess": 1000, "batch_size": 100, "rng": 0}
    book = Book()
    results = [run(records=records, **options, ledger=book, dataset="study") for records in (RECORDS, RECORDS[:0])]
    assert results[0].guarantee == results[1].guarantee
    assert results[0].guarantee.fits(BUDGET)
    assert results[0].guarantee.adjacency == "add-remove-one"
    assert (
        results[0].descent.sigma == results[1].descent.sigma < run(records=RECORDS[:1000], batch_size=100).descent.sigma
    )
    assert float(results[0].sensitivity) == pytest.approx(2.0 / 100)
    assert all(entry[1:] == book.entries[0][1:] for entry in book.entries)
    assert "3000" not in repr(book.entries)
    assert run(**options, unit="record", group_by=np.repeat(np.arange(300), 10)).guarantee == results[0].guarantee


def test_a_record_moves_the_released_sum_by_c_where_it_is_added():
    """Euclidean, all at the edge: the exact sums of neighbours differ by the integers of one record."""
    space = Euclidean(2)
    ball = Ball(space, np.zeros(2), 1.0)
    records = np.tile([[5.0, 0.0]], (50, 1))
    sums = [total_of(FrechetMeanLoss(ball), np.zeros(2), part, moving=True) for part in (records, records[1:])]
    assert 0.999 < np.linalg.norm(sums[0] - sums[1]) <= 1.0


def test_averaging_frames_is_refused():
    space = Stiefel(5, 2)
    with pytest.raises(ArgumentError, match="use 'last'"):
        run(PCALoss(space, 1.0), np.zeros((9, 5)), space, start=space.random_point(rng=0), output="average")


def test_step_rules_are_those_of_the_theorems():
    plan = {"steps": 4, "sigma": 0.5, "dim": 6}
    assert step_sizes(ConvexSteps(2.0, 1.0), **plan) == pytest.approx([2 / np.sqrt((1 + 6 * 0.25) * 4)] * 4)
    curved = ConvexSteps(2.0, 1.0, lowest_curvature=-0.5)
    opening = np.sqrt(2) / np.tanh(np.sqrt(2))
    assert step_sizes(curved, **plan) == pytest.approx([2 / np.sqrt(2.5 * 4 * opening)] * 4)
    assert step_sizes(StronglyConvexSteps(2.0), **plan) == pytest.approx([1 / 2, 1 / 4, 1 / 6, 1 / 8])
    assert step_sizes(PolyakSteps(4.0, 8.0), **plan) == pytest.approx([1 / 16] * 4)
    assert step_sizes(SmoothSteps(4.0), **plan) == pytest.approx([0.25] * 4)
    assert step_sizes(GeometricSteps(1.0, 0.125), **plan) == pytest.approx([1, 0.5, 0.25, 0.125])
    assert step_sizes(lambda t: 1 / (1 + t), **plan) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    with pytest.raises(ArgumentError, match="lipschitz"):
        ConvexSteps(1.0, -1.0)


def test_strong_convexity_steps_with_weighted_averages_find_the_mean():
    result = run(
        step_size=StronglyConvexSteps(1.0), output="weighted-average", steps=40, budget=GaussianDP(10.0), rng=0
    )
    assert SPACE.dist(result.value, frechet_mean(SPACE, RECORDS).point) < 0.15


def test_medians_are_found_on_curved_spaces():
    space = Sphere(2)
    ball = Ball(space, np.array([0.0, 0.0, 1.0]), 1.0)
    records = ball.clip(space.random_point(4000, rng=1))
    result = run(
        FrechetMedianLoss(ball), records, space, start=ball.center, steps=40, budget=GaussianDP(20.0),
        step_size=GeometricSteps(0.5, 0.02), rng=0,
    )  # fmt: skip
    assert space.dist(result.value, frechet_median(space, records).point) < 0.05


def test_progress_is_shown_and_changes_nothing(capsys):
    assert np.array_equal(run(progress=True, rng=5).value, run(rng=5).value)


def test_a_ledger_may_be_given_by_its_path(tmp_path):
    from dpmanifolds import Ball, GaussianDP, Ledger

    path = tmp_path / "account.sqlite"
    Ledger(path).open_dataset("people", GaussianDP(1.0))
    ball = Ball(SPD(2), np.eye(2), 1.0)
    private_descent(
        FrechetMeanLoss(ball),
        ball.clip(SPD(2).random_point(50, rng=0)),
        SPD(2),
        start=np.eye(2),
        budget=GaussianDP(0.6),
        steps=3,
        step_size=0.3,
        ledger=str(path),
        dataset="people",
    )
    assert Ledger(path).remaining("people").mu == pytest.approx(0.8, rel=1e-6)
