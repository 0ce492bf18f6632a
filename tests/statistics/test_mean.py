"""The Fréchet mean: right, certified, fast to converge, and clear about bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmanifolds import (
    SPD,
    ArgumentError,
    Ball,
    ConvergenceError,
    Euclidean,
    Grassmann,
    Hyperbolic,
    NotOnManifoldError,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
    frechet_mean,
)
from dpmanifolds.records import source
from dpmanifolds.statistics.solver_error import solver_tolerance
from tests.manifolds.cases import SMOOTH


def cloud(manifold, count: int, radius: float, seed: int = 0):
    """Records in a ball around a random point, away from its centre on average."""
    rng = np.random.default_rng(seed)
    base = manifold.random_point(rng=rng)
    coordinates = rng.standard_normal((count, manifold.dim))
    coordinates *= radius * rng.uniform(size=(count, 1)) ** 0.5 / np.linalg.norm(coordinates, axis=1, keepdims=True)
    coordinates[:, 0] = np.abs(coordinates[:, 0])
    return manifold.exp(base, manifold.from_coordinates(base, coordinates))


def gradient(manifold, point, records, weights=None):
    logs = manifold.to_coordinates(point, manifold.log(point, records))
    return np.linalg.norm(np.average(logs, axis=0, weights=weights))


def usual_radius(manifold) -> float:
    return min(0.7 * manifold.max_radius, 1.5)


@pytest.mark.grid
@pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
def test_the_gradient_vanishes_at_the_mean_within_five_passes(manifold, backend):
    records = cloud(manifold, 60, usual_radius(manifold))
    result = frechet_mean(manifold, backend.array(records))
    point = backend.numpy(result.point)
    assert gradient(manifold, point, records) <= 2e-10
    assert result.converged
    assert result.passes <= 5
    assert result.is_global
    assert result.error_bound < 1e-8
    first = result.point[0] if isinstance(result.point, tuple) else result.point
    given_first = backend.array(records[0] if isinstance(records, tuple) else records)
    assert type(first) is type(given_first)
    assert first.dtype == given_first.dtype


@pytest.mark.grid
@pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
def test_weights_act_like_repeated_records(manifold):
    records = cloud(manifold, 12, usual_radius(manifold), seed=3)
    counts = np.array([1, 2, 3, 1, 0, 1, 4, 1, 1, 2, 1, 1])

    def repeat(value):
        return tuple(map(repeat, value)) if isinstance(value, tuple) else np.repeat(value, counts, axis=0)

    weighted = frechet_mean(manifold, records, sample_weight=counts)
    repeated = frechet_mean(manifold, repeat(records))
    assert float(manifold.dist(weighted.point, repeated.point)) < 1e-9
    assert gradient(manifold, weighted.point, records, counts) < 2e-10


@pytest.mark.grid
@pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
def test_one_record_is_its_own_mean(manifold):
    record = cloud(manifold, 1, 0.3)
    result = frechet_mean(manifold, record)

    def first(value):
        return tuple(map(first, value)) if isinstance(value, tuple) else value[0]

    assert float(manifold.dist(result.point, first(record))) < 1e-9


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.01, 3.0), k=st.integers(2, 6))
def test_the_affine_invariant_mean_is_equivariant_and_self_dual(seed, spread, k):
    """mean(AxAᵀ) = A mean(x) Aᵀ and mean(x⁻¹) = mean(x)⁻¹."""
    manifold = SPD(k)
    rng = np.random.default_rng(seed)
    records = cloud(manifold, 15, spread, seed)
    mean = frechet_mean(manifold, records).point
    change = rng.standard_normal((k, k)) + 2 * np.eye(k)
    if np.linalg.cond(change) > 1e3:
        return
    moved = change @ records @ change.T
    moved = (moved + moved.swapaxes(1, 2)) / 2
    assert float(manifold.dist(frechet_mean(manifold, moved).point, change @ mean @ change.T)) < 1e-7
    inverses = np.linalg.inv(records)
    inverses = (inverses + inverses.swapaxes(1, 2)) / 2
    assert float(manifold.dist(frechet_mean(manifold, inverses).point, np.linalg.inv(mean))) < 1e-7


@pytest.mark.parametrize("k", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(
    ("metric", "name"), [("affine-invariant", "riemann"), ("log-euclidean", "logeuclid"), ("log-cholesky", "logchol")]
)
def test_means_agree_with_pyriemann(k, metric, name):
    gmean = pytest.importorskip("pyriemann.geometry.mean").gmean
    records = cloud(SPD(k), 80, 1.5, seed=k)
    weights = np.random.default_rng(k).uniform(0.1, 1.0, 80)
    options = {"tol": 1e-12, "maxiter": 300} if name == "riemann" else {}
    theirs = gmean(records, metric=name, sample_weight=weights, **options)
    ours = frechet_mean(SPD(k, metric), records, sample_weight=weights, tolerance=1e-12).point
    assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-10)


def test_two_records_have_their_midpoint_as_mean():
    for manifold in (Sphere(4), Hyperbolic(3), SPD(4), PlanarShapes(6), Grassmann(6, 2), SpecialOrthogonal(4)):
        records = cloud(manifold, 2, 0.3, seed=5)
        middle = manifold.geodesic(records[0], records[1], 0.5)
        assert float(manifold.dist(frechet_mean(manifold, records).point, middle)) < 1e-9


def test_the_error_bound_covers_the_true_error():
    """Against the same mean at full accuracy, for loose tolerances."""
    for manifold in (SPD(3), SPD(5), Sphere(3), Hyperbolic(3), PlanarShapes(5), Grassmann(5, 2), SpecialOrthogonal(3)):
        records = cloud(manifold, 40, usual_radius(manifold), seed=8)
        exact = frechet_mean(manifold, records, tolerance=1e-13).point
        for tolerance in (1e-8, 1e-7):
            loose = frechet_mean(manifold, records, tolerance=tolerance)
            assert float(manifold.dist(loose.point, exact)) <= loose.error_bound < 1e-6


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    records = cloud(SPD(3), 20_000, 1.0)
    several = frechet_mean(SPD(3), records).point
    monkeypatch.setattr(source, "cores", lambda: 1)
    assert np.array_equal(several, frechet_mean(SPD(3), records).point)


def test_a_power_has_the_means_of_its_copies():
    manifold = Power(SPD(4), 3)
    records = cloud(manifold, 50, 1.5)
    whole = frechet_mean(manifold, records).point
    for copy in range(3):
        single = frechet_mean(SPD(4), records[:, copy]).point
        assert float(SPD(4).dist(whole[copy], single)) < 1e-9


@pytest.mark.parametrize("k", [3, 6])
def test_badly_conditioned_data_stop_at_the_floor_and_say_so(k):
    rng = np.random.default_rng(k)
    frames = np.linalg.qr(rng.standard_normal((30, k, k)))[0]
    values = 10 ** rng.uniform(-7, 7, size=(30, k))
    records = (frames * values[:, None, :]) @ frames.swapaxes(1, 2)
    records = (records + records.swapaxes(1, 2)) / 2
    records = records[np.linalg.eigvalsh(records)[:, 0] > 0]
    result = frechet_mean(SPD(k), records, tolerance=1e-15)
    assert not result.converged
    assert result.passes < 40
    assert result.error_bound > result.gradient_norm


def test_real_landmarks_and_tensors_keep_their_precision():
    """float32 in, float32 out, with the error that float32 allows."""
    for manifold in (SPD(3), SPD(5), Sphere(2), SPD(3, "log-euclidean"), Hyperbolic(2)):
        records = cloud(manifold, 300, 0.7)
        single = frechet_mean(manifold, records.astype(np.float32))
        double = frechet_mean(manifold, records)
        assert single.point.dtype == np.float32
        assert float(manifold.dist(single.point.astype(np.float64), double.point)) < 1e-4


def test_real_landmarks_are_taken_as_they_come():
    landmarks = np.random.default_rng(0).standard_normal((20, 5, 2)) * 0.1 + np.array(
        [[0, 0], [4, 0], [4, 3], [0, 3], [2, 5]]
    )
    manifold = PlanarShapes(5)
    direct = frechet_mean(manifold, landmarks)
    prepared = frechet_mean(manifold, manifold.from_landmarks(landmarks))
    assert float(manifold.dist(direct.point, prepared.point)) < 1e-12


def test_read_only_and_non_contiguous_records_work():
    records = cloud(SPD(4), 40, 1.0)
    expected = frechet_mean(SPD(4), records[::2].copy()).point
    records.setflags(write=False)
    assert np.allclose(frechet_mean(SPD(4), records[::2]).point, expected, atol=1e-12)
    assert np.allclose(frechet_mean(SPD(4), np.asfortranarray(records)[::2]).point, expected, atol=1e-12)


GOOD = np.stack([np.eye(3), 2 * np.eye(3), np.diag([1.0, 2.0, 3.0])])


def altered(value, at=(1, 0, 0)):
    records = GOOD.copy()
    records[at] = value
    return records


@pytest.mark.grid
@pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean", "log-cholesky"])
@pytest.mark.parametrize(
    ("records", "error", "message"),
    [
        (altered(np.nan), NotOnManifoldError, "finite"),
        (altered(np.inf), NotOnManifoldError, "finite"),
        (altered(0.5, (1, 0, 1)), NotOnManifoldError, "symmetric"),
        (altered(-1.0), NotOnManifoldError, "positive definite"),
        (altered(0.0), NotOnManifoldError, "positive definite"),
        (GOOD[:0], ArgumentError, "empty"),
        (GOOD[0], ArgumentError, "leading axis"),
        (GOOD[:, :2], ArgumentError, "shape"),
        (np.zeros((4, 4)), ArgumentError, "shape"),
        ("matrices", ArgumentError, "array of numbers"),
        ([[1.0], [1.0, 2.0]], NotOnManifoldError, "finite"),
        ((matrix for matrix in GOOD), ArgumentError, "array of numbers"),
        (None, ArgumentError, "array of numbers"),
    ],
    ids=["nan", "inf", "skew", "negative", "singular", "empty", "one", "cut", "size", "text", "ragged", "gen", "none"],
)
def test_bad_matrices_are_refused_without_naming_a_record(records, error, message, metric):
    with pytest.raises(error, match=message) as caught:
        frechet_mean(SPD(3, metric), records)
    assert "record 1" not in str(caught.value)
    assert "[1" not in str(caught.value)


@pytest.mark.parametrize("k", [3, 5])
def test_a_bad_matrix_among_many_good_ones_is_found(k):
    records = np.broadcast_to(np.eye(k), (9000, k, k)).copy()
    records[7777, 0, 0] = -1.0
    with pytest.raises(NotOnManifoldError, match="positive definite"):
        frechet_mean(SPD(k), records)


def test_bad_points_of_other_manifolds_are_refused():
    with pytest.raises(NotOnManifoldError, match="equations"):
        frechet_mean(Sphere(2), np.ones((4, 3)))
    with pytest.raises(NotOnManifoldError, match="coincide"):
        frechet_mean(PlanarShapes(4), np.ones((3, 4, 2)))
    with pytest.raises(ArgumentError, match="three dimensions"):
        frechet_mean(PlanarShapes(4), np.ones((3, 4, 3)))
    with pytest.raises(NotOnManifoldError, match="equations"):
        frechet_mean(SpecialOrthogonal(3), np.stack([np.diag([1.0, 1.0, -1.0])]))
    with pytest.raises(ArgumentError, match="no Fréchet mean"):
        frechet_mean(Stiefel(4, 2), Stiefel(4, 2).random_point(5, rng=0))
    with pytest.raises(ArgumentError, match="tuple of 2"):
        frechet_mean(Product(Sphere(2), Euclidean(1)), np.ones((3, 3)))
    with pytest.raises(ArgumentError, match="Manifold"):
        frechet_mean("SPD", GOOD)


@pytest.mark.parametrize("weights", [[1, 1], [1, 1, -1], [0, 0, 0], [1, 1, np.nan], [[1, 1, 1]]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ArgumentError, match="sample_weight"):
        frechet_mean(SPD(3), GOOD, sample_weight=weights)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, math.nan, "small"])
def test_bad_tolerances_are_refused(tolerance):
    with pytest.raises(ArgumentError, match="tolerance"):
        frechet_mean(SPD(3), GOOD, tolerance=tolerance)


def test_records_without_a_centre_are_refused():
    with pytest.raises(ConvergenceError, match="no centre"):
        frechet_mean(Sphere(2), np.concatenate([np.eye(3), -np.eye(3)]))


def test_records_beyond_the_uniqueness_radius_are_flagged():
    sphere = Sphere(2)
    records = np.stack([sphere.project(np.array([math.cos(a), math.sin(a), 0.2])) for a in (0.0, 1.0, 2.0, 3.0, 4.5)])
    assert not frechet_mean(sphere, records).is_global


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(
    ("manifold", "share"), [(Sphere(3), 0.99), (Sphere(3, curvature=1e-4), 0.8), (SpecialOrthogonal(3), 0.95)], ids=repr
)
def test_records_at_the_edge_of_a_wide_ball_reach_the_public_tolerance(manifold, share):
    """A solver that gave up on some data sets would tell which: 150 sets of 12 records at the edge, none may fail."""
    rng = np.random.default_rng(0)
    center = manifold.random_point(rng=0)
    ball = Ball(manifold, center, share * manifold.max_radius)
    tolerance = solver_tolerance(ball, 12)
    for _ in range(150):
        steps = rng.standard_normal((12, manifold.dim))
        steps *= ball.radius * (1 - 1e-9) / np.linalg.norm(steps, axis=1, keepdims=True)
        result = frechet_mean(manifold, manifold.exp(center, manifold.from_coordinates(center, steps)))
        assert result.error_bound <= tolerance / 2
        assert bool(ball.contains(result.point))
