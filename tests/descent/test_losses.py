"""Losses: gradients against finite differences, fused sums against plain ones, bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ArgumentError,
    Ball,
    Euclidean,
    Grassmann,
    Hyperbolic,
    NotAvailableError,
    NotOnManifoldError,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)
from dpmanifolds.descent.losses import (
    EigenvectorLoss,
    FrechetMeanLoss,
    FrechetMedianLoss,
    GaussianCovarianceLoss,
    GeodesicRegressionLoss,
    HyperbolicEmbeddingLoss,
    LogisticLoss,
    Loss,
    PCALoss,
)
from tests.descent.totals import coordinates_of, total_of

RNG = np.random.default_rng(3)


def _ball(manifold, radius):
    return Ball(manifold, manifold.random_point(rng=1), radius)


def _in_ball(ball, count, seed=0):
    return ball.clip(ball.manifold.random_point(count, rng=seed))


BALLS = [
    _ball(SPD(2), 2.0),
    _ball(SPD(3), 2.0),
    _ball(SPD(5), 3.0),
    _ball(SPD(3, "log-euclidean"), 2.0),
    _ball(SPD(2, "log-cholesky"), 1.0),
    _ball(Hyperbolic(3), 2.0),
    _ball(Euclidean(4), 2.0),
    _ball(Sphere(2), 1.0),
    _ball(PlanarShapes(5), 0.6),
    _ball(SpecialOrthogonal(3), 1.0),
    _ball(Grassmann(5, 2), 0.6),
    _ball(Power(SPD(2), 3), 2.0),
    _ball(Product(Hyperbolic(2), SPD(2)), 2.0),
]


def _cases():
    rng = np.random.default_rng(11)
    for ball in BALLS:
        for kind in (FrechetMeanLoss, FrechetMedianLoss):
            yield kind(ball), _in_ball(ball, 6), _in_ball(ball, 1, seed=9)
    vectors = rng.standard_normal((6, 5))
    yield EigenvectorLoss(5, radius=2.0), vectors, Sphere(4).random_point(1, rng=2)
    yield PCALoss(Grassmann(5, 2), radius=2.0), vectors, Grassmann(5, 2).random_point(1, rng=2)
    yield PCALoss(Stiefel(5, 2), radius=2.0), vectors, Stiefel(5, 2).random_point(1, rng=2)
    yield GaussianCovarianceLoss(5), vectors, SPD(5).random_point(1, rng=2)
    for classes, penalty in ((2, 0.0), (2, 0.3), (4, 0.1)):
        logistic = LogisticLoss(5, classes, radius=2.0, penalty=penalty)
        yield logistic, (vectors, np.arange(6.0) % classes), rng.standard_normal((1, logistic.manifold.dim))
    for space in (
        Sphere(2),
        Sphere(3, curvature=4.0),
        Hyperbolic(2),
        Hyperbolic(3, curvature=-0.5),
        SPD(2, "log-euclidean"),
    ):
        ball = _ball(space, 0.5)
        records = (rng.random(6), _in_ball(ball, 6))
        yield GeodesicRegressionLoss(space), records, _in_ball(ball, 2, seed=4)[None]
    edges = np.array([[0, 1], [0, 2], [2, 3], [4, 1]])
    loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=6, negatives=7, seed=1)
    yield loss, edges, loss.start(0.5)[None]
    for space in (Hyperbolic(2), Hyperbolic(3, curvature=-4.0)):
        all_nodes = HyperbolicEmbeddingLoss(space, nodes=5, negatives=None, seed=1)
        yield all_nodes, np.array([[0, 1], [0, 2], [2, 3], [4, 1], [0, 1]]), all_nodes.start(0.5)[None]


def _first(w):
    return tuple(part[0] for part in w) if isinstance(w, tuple) else w[0]


def _record(records, i):
    return tuple(part[i : i + 1] for part in records) if isinstance(records, tuple) else records[i : i + 1]


CASES = list(_cases())
IDS = [f"{type(loss).__name__}-{loss.manifold!r}" for loss, *_ in CASES]


@pytest.mark.grid
@pytest.mark.parametrize(("loss", "records", "w"), CASES, ids=IDS)
def test_gradients_are_the_derivatives_of_the_value(loss: Loss, records, w):
    w, records = _first(w), loss.prepare(records)
    rows = loss.gradients(w, records)
    manifold, rng = loss.manifold, np.random.default_rng(7)
    assert rows.shape[1] == manifold.dim
    h = 1e-5
    for i in range(3):
        one, c = _record(records, i), rng.standard_normal(manifold.dim) / np.sqrt(manifold.dim)
        values = [loss.value(manifold.exp(w, manifold.from_coordinates(w, s * h * c)), one) for s in (1.0, -1.0)]
        assert rows[i] @ c == pytest.approx((values[0] - values[1]) / (2 * h), abs=1e-6)


@pytest.mark.grid
@pytest.mark.parametrize(("loss", "records", "w"), CASES, ids=IDS)
@pytest.mark.parametrize("share", [0.3, 10.0])
def test_exact_sums_are_sums_of_clipped_rows(loss: Loss, records, w, share):
    w, prepared = _first(w), loss.prepare(records)
    rows = loss.gradients(w, prepared) - (0 if loss.anchor(w) is None else loss.anchor(w))
    clip = share * float(np.median(np.linalg.norm(rows, axis=1)))
    clipped = rows * np.minimum(1, clip / np.linalg.norm(rows, axis=1))[:, None]
    for moving in (False, True):
        found = coordinates_of(loss, w, total_of(loss, w, records, clip, moving=moving))
        assert np.allclose(found, clipped.sum(axis=0), atol=2e-6 * clip)


@pytest.mark.parametrize("ball", [ball for ball in BALLS if ball.manifold.is_hadamard], ids=repr)
def test_on_hadamard_manifolds_mean_gradients_lie_within_the_radius_of_the_anchor(ball):
    loss = FrechetMeanLoss(ball)
    records = loss.prepare(ball.manifold.random_point(200, rng=5))
    far = ball.manifold.from_coordinates(ball.center, RNG.standard_normal(ball.manifold.dim))
    for w in (ball.center, ball.manifold.exp(ball.center, far)):
        rows = loss.gradients(w, records) - loss.anchor(w)
        assert np.max(np.linalg.norm(rows, axis=1)) <= ball.radius * (1 + 1e-9)
        assert np.allclose(total_of(loss, w, records), rows.sum(axis=0), atol=1e-5)


def test_without_the_anchor_far_iterates_would_be_clipped():
    ball = Ball(Hyperbolic(2), Hyperbolic(2).origin, 1.0)
    loss = FrechetMeanLoss(ball)
    w = Hyperbolic(2).exp(Hyperbolic(2).origin, np.array([0.0, 3.0, 0.0]))
    rows = loss.gradients(w, loss.prepare(Hyperbolic(2).random_point(50, rng=0)))
    assert np.min(np.linalg.norm(rows, axis=1)) > loss.bound


@pytest.mark.parametrize("seed", range(3))
def test_proven_bounds_hold_and_are_reached(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((20_000, 2))
    x /= np.linalg.norm(x, axis=1)[:, None]
    for loss, w in ((EigenvectorLoss(2, 1.0), np.array([1.0, 0.0])), (PCALoss(Grassmann(2, 1), 1.0), np.eye(2)[:, :1])):
        lengths = np.linalg.norm(loss.gradients(w, loss.prepare(3 * x)), axis=1)
        assert 0.999 * loss.bound < lengths.max() <= loss.bound * (1 + 1e-12)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e30])
def test_no_vector_adds_more_than_the_bound(size, dtype):
    """Issue 16, A7: single precision exceeded what was charged by 4e−7; integers are checked exactly."""
    x = (size * np.random.default_rng(1).standard_normal((300, 5))).astype(dtype)
    frame = Grassmann(5, 2).random_point(rng=0)
    for loss, w in ((EigenvectorLoss(5, 0.7), frame[:, 0]), (PCALoss(Grassmann(5, 2), 0.7), frame)):
        for one in x:
            assert np.linalg.norm(total_of(loss, w, one[None])) <= loss.bound


def test_no_edge_pulls_harder_than_root_six():
    loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=4, negatives=9, seed=0)
    edges = loss.prepare(np.array([(i, j) for i in range(4) for j in range(4)]))
    spread = [loss.start(s) for s in (1e-3, 1.0, 3.0)]
    lengths = [np.linalg.norm(loss.gradients(w, edges), axis=1).max() for w in spread]
    assert max(lengths) <= loss.bound
    line = Hyperbolic(1)
    apart = HyperbolicEmbeddingLoss(line, nodes=3, negatives=50, seed=0)
    w = line.exp(line.origin, np.array([[0.0, 0.0], [0.0, 8.0], [0.0, -4.0]]))
    worst = np.linalg.norm(apart.gradients(w, apart.prepare(np.array([[0, 1]]))), axis=1)
    assert worst[0] > 0.97 * apart.bound


def test_no_edge_pulls_harder_than_root_six_where_all_nodes_are_negatives():
    """Also so far out that neighbouring nodes lose all their digits: a row is at most C and what rounding adds."""
    line, plane = Hyperbolic(1), Hyperbolic(2)
    loss = HyperbolicEmbeddingLoss(line, nodes=3, negatives=None)
    w = line.exp(line.origin, np.array([[0.0, 0.0], [0.0, 8.0], [0.0, -4.0]]))
    assert np.linalg.norm(loss.gradients(w, loss.prepare(np.array([[0, 1]])))) > 0.97 * loss.bound
    many = HyperbolicEmbeddingLoss(plane, nodes=40, negatives=None)
    edges = many.prepare(RNG.integers(0, 40, (60, 2)))
    crowd = plane.exp(plane.origin, plane.from_coordinates(plane.origin, [17.0, 0.0] + 1e-7 * many.start(1.0)[:, 1:]))
    for w in (many.start(1e-3), many.start(3.0), crowd):
        for one in edges:
            assert np.linalg.norm(total_of(many, w, one[None])) <= many.bound


def test_an_edge_from_a_node_to_itself_pulls_at_nothing_where_all_nodes_are_negatives():
    loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=4, negatives=None)
    edges, w = loss.prepare(np.array([[0, 1], [2, 2]])), loss.start(1.0)
    assert not np.any(loss.gradients(w, edges)[1])
    assert np.array_equal(total_of(loss, w, edges, 1.0), total_of(loss, w, edges[:1], 1.0))
    assert 2 * loss.value(w, edges) == pytest.approx(loss.value(w, edges[:1]))


def test_popular_nodes_start_near_the_origin():
    loss = HyperbolicEmbeddingLoss(Hyperbolic(3, curvature=-4.0), nodes=4, negatives=None)
    start = loss.start_by_counts([1000.0, 50.0, -3.0, 1e9], deviation=2.0)
    radius = 2 * loss.space.dist(loss.space.origin, start)
    assert radius == pytest.approx([16 - 2.5 * np.log(251), 16 - 2.5 * np.log(13.5), 16.0, 0.05])
    for counts, deviation in (([1.0, 2.0], 1.0), ([1.0, 2.0, np.nan, 0.0], 1.0), ([1.0] * 4, 0.0)):
        with pytest.raises(ArgumentError):
            loss.start_by_counts(counts, deviation)


def test_the_negatives_of_an_edge_do_not_depend_on_the_other_edges():
    loss = HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=9, negatives=5, seed=3)
    edges = RNG.integers(0, 9, (20, 2))
    other = edges.copy()
    other[7] = (8, 0)
    same = np.arange(20) != 7
    assert np.array_equal(loss.prepare(edges)[same], loss.prepare(other)[same])
    # nor on their place: issue 16, B4
    assert np.array_equal(loss.prepare(edges)[::-1], loss.prepare(edges[::-1]))
    many = loss.prepare(np.stack(np.meshgrid(np.arange(9), np.arange(9)), axis=-1).reshape(-1, 2))[:, 2:]
    assert len(np.unique(many, axis=0)) > 75
    assert np.max(np.abs(np.bincount(many.ravel(), minlength=9) - 45)) < 5.5 * np.sqrt(45)


def test_regression_recovers_a_geodesic_without_noise():
    space = Sphere(2)
    a, b = np.array([0.0, 0.0, 1.0]), space.project(np.array([1.0, 0.5, 0.6]))
    t = np.linspace(0, 1, 40)
    loss = GeodesicRegressionLoss(space)
    records = loss.prepare((t, space.geodesic(a, b, t)))
    w = np.stack([space.project(np.array([0.2, 0.1, 1.0])), space.project(np.array([1.0, 0.1, 0.2]))])
    for _ in range(200):
        step = -loss.gradients(w, records).mean(axis=0)
        w = loss.manifold.exp(w, loss.manifold.from_coordinates(w, step))
    assert np.allclose(w, np.stack([a, b]), atol=1e-6)


def test_single_precision_records_are_read_exactly():
    loss = FrechetMeanLoss(Ball(SPD(3), np.eye(3), 2.0))
    records = SPD(3).random_point(1000, rng=0).astype(np.float32)
    assert loss.prepare(records).dtype == np.float64
    assert np.array_equal(total_of(loss, np.eye(3), records), total_of(loss, np.eye(3), records.astype(np.float64)))


def test_what_cannot_be_a_loss_is_refused():
    with pytest.raises(ArgumentError, match="Ball"):
        FrechetMeanLoss(SPD(2))
    with pytest.raises(NotAvailableError, match="log-euclidean"):
        GeodesicRegressionLoss(SPD(2))
    with pytest.raises(ArgumentError, match="Grassmann"):
        PCALoss(Sphere(2), 1.0)
    with pytest.raises(NotOnManifoldError, match="nodes 0 to 3"):
        HyperbolicEmbeddingLoss(Hyperbolic(2), nodes=4).prepare(np.array([[0, 7]]))
    with pytest.raises(ArgumentError, match=r"shape \(n, 5\)"):
        EigenvectorLoss(5, 1.0).prepare(np.zeros((3, 4)))
    with pytest.raises(NotOnManifoldError, match="finite") as failure:
        EigenvectorLoss(2, 1.0).prepare(np.array([[1.0, 2.0], [np.nan, 4.0]]))
    assert "nan" not in str(failure.value)
