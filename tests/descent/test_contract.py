"""One record, one integer vector: what a record adds is the same whatever the other records are, bit for bit.

Hard records everywhere: equal to w, antipodal, nearly singular, off the manifold by 3e−7, 1e±300, subnormal, NaN, inf.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Ball,
    Euclidean,
    GaussianDP,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)
from dpmanifolds.descent import plan_descent
from dpmanifolds.descent.losses import (
    AutogradLoss,
    EigenvectorLoss,
    FrechetMeanLoss,
    FrechetMedianLoss,
    GaussianCovarianceLoss,
    GeodesicRegressionLoss,
    HyperbolicEmbeddingLoss,
    PCALoss,
)
from dpmanifolds.descent.losses.loss import Loss
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.descent.records import hold_records
from dpmanifolds.releases import private_descent
from dpmanifolds.sums.noisy import NoiseSource
from tests.descent.totals import integers_at, total_of
from tests.selection import thorough

N = 41


def hard_copies(records, w, rng):
    """Each record of a block replaced by something hard, one kind after the other."""
    flat = records.reshape(len(records), -1).copy()
    kinds = [
        lambda x: w.ravel() if w.size == x.size else x,
        lambda x: -x,
        lambda x: x * (1 + 3e-7),
        lambda x: x * 1e300,
        lambda x: x * 1e-300,
        lambda x: x * 5e-324,
        lambda x: np.where(np.arange(x.size) == 0, np.nan, x),
        lambda x: np.where(np.arange(x.size) == x.size - 1, np.inf, x),
        lambda x: x * 0,
        lambda x: np.round(x, 1),
        lambda x: x * np.exp(rng.normal(0, 8, x.size)),
    ]
    with np.errstate(all="ignore"):
        for i in range(len(flat)):
            flat[i] = kinds[i % len(kinds)](flat[i])
    return flat.reshape(records.shape)


def spread(ball, count, seed):
    """Points in and around a ball, some on its edge and beyond."""
    rng, space = np.random.default_rng(seed), ball.manifold
    coordinates = rng.standard_normal((count, space.dim)) * ball.radius * rng.uniform(0, 1.5, (count, 1))
    coordinates /= max(1.0, np.sqrt(space.dim) / 1.5)
    return space.exp(ball.center, space.from_coordinates(ball.center, coordinates))


def _ball(manifold, radius):
    return Ball(manifold, manifold.random_point(rng=1), radius)


BALLS = [
    _ball(SPD(2), 3.0), _ball(SPD(3), 3.0), _ball(SPD(5), 3.0), _ball(SPD(3, "log-euclidean"), 3.0),
    _ball(SPD(4, "log-cholesky"), 2.0), _ball(Hyperbolic(3), 4.0), _ball(Euclidean(4), 2.0), _ball(Sphere(2), 1.5),
    _ball(Sphere(10), 1.5), _ball(PlanarShapes(5), 0.7), _ball(SpecialOrthogonal(3), 1.5), _ball(Grassmann(5, 2), 0.7),
    _ball(Power(SPD(2), 3), 2.0),
]  # fmt: skip


def _cases():
    rng = np.random.default_rng(5)
    for ball in BALLS:
        for kind in (FrechetMeanLoss, FrechetMedianLoss):
            yield kind(ball), ball.center, spread(ball, N, 0), spread(ball, N, 1), 1.0
    for loss in (EigenvectorLoss(17, 1.0), PCALoss(Grassmann(17, 3), 1.0), PCALoss(Stiefel(17, 3), 1.0)):
        w = loss.manifold.random_point(rng=2)
        yield loss, w, rng.standard_normal((N, 17)), rng.standard_normal((N, 17)), loss.bound
    covariance = GaussianCovarianceLoss(7)
    yield covariance, SPD(7).random_point(rng=2), rng.standard_normal((N, 7)), rng.standard_normal((N, 7)), 2.0


CASES = list(_cases())
IDS = [f"{type(loss).__name__}-{loss.manifold!r}" for loss, *_ in CASES]
every_loss = pytest.mark.parametrize(("loss", "w", "records", "others", "clip"), CASES, ids=IDS)


def fits(loss, whole, clip):
    """Σz² ≤ R² in Python's integers; for outer products both factors."""
    from dpmanifolds.descent.losses.loss import OuterLoss
    from dpmanifolds.descent.noisy_step import contribution_at, exponent_for

    exponent = exponent_for(loss, 10**6, 1.0, "gaussian")
    if isinstance(loss, OuterLoss):
        pull = contribution_at(loss, np.zeros(loss.shape), clip_norm=clip, exponent=exponent, moving=False)
        parts = whole[: loss.shape[0]], whole[loss.shape[0] :]
        return all(np.all(np.sum(z * z, axis=0) <= 4**e) for z, e in zip(parts, pull.exponents, strict=True))
    return bool(np.all(np.sum(whole * whole, axis=0) <= 4**exponent))


@pytest.mark.grid(at_most=6)
@every_loss
def test_replacing_other_records_changes_no_integer(loss, w, records, others, clip):
    rng = np.random.default_rng(1)
    whole = integers_at(loss, w, records, clip)
    assert fits(loss, whole, clip)
    assert np.any(whole)
    for replaced in (others, hard_copies(others, w, rng)):
        for kept in (0, N // 2, N - 1):
            company = replaced.copy()
            company[kept] = records[kept]
            found = integers_at(loss, w, company, clip)
            assert fits(loss, found, clip)
            assert np.array_equal(found[:, kept], whole[:, kept])
    hard = hard_copies(records, w, rng)
    there = integers_at(loss, w, hard, clip)
    for kept in range(0, N, 5):
        company = others.copy()
        company[kept] = hard[kept]
        assert np.array_equal(integers_at(loss, w, company, clip)[:, kept], there[:, kept])


@pytest.mark.grid(at_most=6)
@thorough("every", 3, 1)
@every_loss
def test_records_have_the_same_integers_alone_and_in_any_place(loss, w, records, others, clip, every):
    """As persons and added records need it: the number of rows, the order and the cuts are private then."""
    rng = np.random.default_rng(2)
    for given in (records, hard_copies(records, w, rng)):
        whole = integers_at(loss, w, given, clip, moving=True)
        order = rng.permutation(N)
        assert np.array_equal(integers_at(loss, w, given[order], clip, moving=True), whole[:, order])
        pieces = [integers_at(loss, w, part, clip, moving=True) for part in np.array_split(given, 6)]
        assert np.array_equal(np.concatenate(pieces, axis=1), whole)
        # every third has all the hard kinds among them
        alone = [integers_at(loss, w, one[None], clip, moving=True) for one in given[::every]]
        assert np.array_equal(np.concatenate(alone, axis=1), whole[:, ::every])
        behind = integers_at(loss, w, np.concatenate([others, given]), clip, moving=True)
        assert np.array_equal(behind[:, N:], whole)


def test_tuples_and_edges_have_integers_of_their_own():
    rng = np.random.default_rng(3)
    sphere = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0)
    regression = GeodesicRegressionLoss(Sphere(2))
    pairs = Product(Hyperbolic(2), SPD(2))
    both = Ball(pairs, pairs.random_point(rng=0), 2.0)
    cases = [
        (regression, Sphere(2).random_point(2, rng=0), (rng.random(N), spread(sphere, N, 0))),
        (FrechetMeanLoss(both), both.center, pairs.random_point(N, rng=1)),
    ]
    for negatives in (4, None):
        loss = HyperbolicEmbeddingLoss(Hyperbolic(3), nodes=8, negatives=negatives)
        cases.append((loss, loss.start(0.8), rng.integers(0, 8, (N, 2))))
    for loss, w, records in cases:
        whole = integers_at(loss, w, records, moving=True)
        order = rng.permutation(N)

        def at(index, records=records):
            return tuple(part[index] for part in records) if isinstance(records, tuple) else records[index]

        assert np.array_equal(integers_at(loss, w, at(order), moving=True), whole[:, order])
        alone = [integers_at(loss, w, at(slice(i, i + 1)), moving=True) for i in range(N)]
        assert np.array_equal(np.concatenate(alone, axis=1), whole)


def test_a_record_off_the_sphere_moves_the_sum_of_a_median_by_at_most_two():
    """Issue 16, A1: 99 records at a centre that projecting moves by an ulp; the sum moved by 101, 2 was charged."""
    rng = np.random.default_rng(0)
    space, found = Sphere(2), 0
    for _ in range(200):
        center = space.project(rng.standard_normal(3))
        if np.array_equal(space.project(center), center):
            continue
        found += 1
        ball = Ball(space, center, 1.0)
        loss, q = FrechetMedianLoss(ball), space.project(center + 0.3 * rng.standard_normal(3))
        sums = [total_of(loss, center, np.stack([center] * 99 + [last])) for last in (q, q * (1 + 3e-7))]
        assert np.linalg.norm(sums[0] - sums[1]) <= 2
    assert found > 5


@pytest.mark.parametrize("kind", [FrechetMeanLoss, FrechetMedianLoss])
def test_no_well_formed_record_decides_whether_a_run_ends(kind):
    """Issue 16, A5: 1000 records at one edge of a wide ball and one at the other failed, always."""
    ball = Ball(SPD(5), np.eye(5), 13.0)
    space = ball.manifold
    away = np.zeros(15)
    away[0] = 13.0
    edge, opposite = (space.exp(ball.center, space.from_coordinates(ball.center, s * away)) for s in (1, -1))
    for last in (edge, opposite, 1e-300 * np.eye(5), 1e300 * np.eye(5)):
        records = np.stack([edge] * 200 + [last])
        result = private_descent(kind(ball), records, ball, GaussianDP(1.0), steps=2, step_size=0.1)
        assert bool(ball.contains(result.value))


def _user_losses(library):
    """Losses that users write: squared distances, products, an eigensolver."""
    sphere = Sphere(4)
    yield AutogradLoss(lambda w, x: sphere.dist(w, x) ** 2 / 2, sphere), sphere, sphere.random_point(N, rng=0)
    yield AutogradLoss(lambda w, x: -((w * x).sum() ** 2), sphere), sphere, sphere.random_point(N, rng=0)
    for space in (SPD(3), SPD(3, "log-euclidean")):
        yield AutogradLoss(lambda w, x, m=space: m.dist(w, x) ** 2 / 2, space), space, space.random_point(N, rng=0)
    solve = library.linalg.eigvalsh
    yield AutogradLoss(lambda w, x: (solve(w @ x @ w.T) ** 2).sum(), SPD(4)), SPD(4), SPD(4).random_point(N, rng=0)


@pytest.mark.grid
@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", range(5))
def test_losses_of_users_keep_the_contract(name, dtype, number):
    library = pytest.importorskip(name)
    if name == "jax":
        library.config.update("jax_enable_x64", True)
    numbers = library.numpy if name == "jax" else library
    loss, space, records = list(_user_losses(numbers))[number]
    w = space.random_point(rng=7).astype(dtype)
    rng = np.random.default_rng(4)

    def integers(records, moving):
        # numbers that are not finite are refused, outside of the promise
        finite = np.nan_to_num(np.clip(records, -1e38, 1e38), nan=3.0)
        given = numbers.asarray(np.ascontiguousarray(finite.astype(dtype)))
        return integers_at(loss, w, given, moving=moving)

    with np.errstate(all="ignore"):
        hard = hard_copies(records, w, rng)
        hard[5] = w
        for given in (records, hard):
            whole = integers(given, False)
            assert fits(loss, whole, 1.0)
            for kept in (0, 5, N - 1):
                company = hard_copies(space.random_point(N, rng=9), w, rng)
                company[kept] = given[kept]
                assert np.array_equal(integers(company, False)[:, kept], whole[:, kept])
            alone = np.concatenate([integers(one[None], True) for one in given[:12]], axis=1)
            assert np.array_equal(alone, integers(given, True)[:, :12])


class _SignLoss(Loss):
    """A loss of a user's own whose rows depend on how a product of all of them is cut."""

    manifold = Euclidean(1)
    bound = None
    matrix = np.random.default_rng(0).standard_normal((50, 8))

    def form(self, records):
        return np.asarray(records, dtype=float)

    def value(self, w, records):
        return 0.0

    def gradients(self, w, records):
        return np.sign((records @ self.matrix)[:, :1] - 1e-17)


def test_a_record_of_a_random_batch_moves_its_sum_by_no_more_than_its_own_part():
    """Rows of a batch are counted by coins: with a record there is one more, and products of all are cut elsewhere."""
    loss, rng = _SignLoss(), np.random.default_rng(1)
    plan = plan_descent(n=41, clip_norm=1.0, steps=1, sigma=1.0, batch_size=8)
    # records on the edge, where the last bit decides
    records = rng.standard_normal((N, 50))
    records -= np.outer(records @ loss.matrix[:, 0], loss.matrix[:, 0]) / (loss.matrix[:, 0] @ loss.matrix[:, 0])
    gradient = NoisyGradient(loss, hold_records(loss, records), plan, NoiseSource.of(0))
    unit = 2**gradient.exponent
    for _ in range(60):
        batch = np.sort(rng.permutation(N)[:9])
        sums = [gradient.records.total(gradient.rule(np.zeros(1)), chosen).integers[0] for chosen in (batch, batch[1:])]
        assert abs(sums[0] - sums[1]) <= unit
