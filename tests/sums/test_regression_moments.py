"""The joint moments of a regression: how far one record moves them, and that each record's are its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import dpmanifolds as dpm
from dpmanifolds._points import map_parts
from dpmanifolds.sums.clusters import ClusterContribution
from dpmanifolds.sums.regression import RegressionView
from dpmanifolds.sums.total import integers_of

SPACES = {
    "plane": (dpm.Euclidean(2), np.zeros(2)),
    "sphere": (dpm.Sphere(2), np.array([0.0, 0.0, 1.0])),
    "matrices": (dpm.SPD(2), np.eye(2)),
    "shapes": (dpm.PlanarShapes(4), dpm.PlanarShapes(4).random_point(rng=0)),
    "hyperbolic": (dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin),
    "pair": (dpm.Product(dpm.Sphere(1), dpm.Euclidean(1)), (np.array([1.0, 0.0]), np.zeros(1))),
}
every_space = pytest.mark.parametrize("name", SPACES)


def view_of(name, q=1, *, later=False, radius=0.8, substitute=None):
    space, base = SPACES[name]
    slopes = 0.2 * np.ones((q, space.dim)) if later else None
    bounds = np.tile([10.0, 30.0], (q, 1))
    return RegressionView(space, base, bounds, radius, slopes, reach=1.5, substitute=substitute)


def points_around(name, count, rng, length=1.5):
    space, base = SPACES[name]
    rows = rng.normal(size=(count, space.dim))
    return space.exp_coordinates(base, rows * (length * rng.random(count) / np.linalg.norm(rows, axis=1))[:, None])


def column(rule, point, times):
    """The integers of one record."""
    return integers_of(rule, (np.asarray(point)[None], np.asarray(times, dtype=float)[None]))[0][:, 0]


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(dim, q):
    rng = np.random.default_rng(dim * 10 + q)
    view = RegressionView(dpm.Euclidean(dim), np.zeros(dim), np.tile([-1.0, 1.0], (q, 1)), 2.0)
    rule = view.contribution(29)
    ends = rng.normal(size=(400, dim))
    ends *= (2.0 * rng.choice([0.5, 1.0, 9.0], 400) / np.linalg.norm(ends, axis=1))[:, None]
    times = np.where(rng.random((400, q)) < 0.6, rng.choice([-1.0, 1.0], (400, q)), rng.uniform(-3, 3, (400, q)))
    ends, times = np.concatenate([ends, -ends, ends]), np.concatenate([times, times, -times])
    whole = integers_of(rule, (ends, times))[0].astype(np.float64)
    squares = np.sum(whole**2, axis=0)
    apart = np.sqrt(np.max(squares[:, None] + squares - 2 * whole.T @ whole))
    # the corner of all covariates, at either end: the bound is attained, so that noise for 30 % less would not do
    corner = [column(rule, sign * 2.0 * np.eye(dim)[0], np.ones(q)) for sign in (1, -1)]
    worst = np.linalg.norm((corner[0] - corner[1]).astype(np.float64))
    assert apart <= 2 * 2.0**29
    assert 0.999 * 2 * 2.0**29 <= worst <= 2 * 2.0**29


@pytest.mark.parametrize("radius", [1e-168, 1e-300, 1e-308, 1e-3, 1e160, 1e300])
def test_no_square_leaves_64_bits_whatever_the_radius_is(radius):
    """Lengths below 1e−160 have squares of 0: a record far outside of so small a ball is not seen to be there."""
    rule = RegressionView(dpm.Euclidean(2), np.zeros(2), np.array([[-1.0, 1.0]]), radius).contribution(29)
    with np.errstate(all="ignore"):
        far = np.ldexp(radius, np.arange(64)) * np.array([[1.0], [1.5], [2.0**32 / rule.size]])
    far = np.stack([far.ravel(), np.zeros(far.size)], axis=1)
    far = far[np.all(np.isfinite(far), axis=1)]
    whole = integers_of(rule, (far, np.ones((len(far), 1))))[0].astype(object)
    assert all(sum(each * each for each in column) <= 4**30 for column in whole.T)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("q", [1, 2])
def test_climbing_finds_no_wider_pair(q):
    """From many pairs of records uphill, in the real numbers that the integers stand for."""
    rng, dim = np.random.default_rng(3), 2
    weight = 3.0**0.25

    def vector(h):
        t, c = np.clip(h[:q], -1, 1), h[q:]
        c = c / max(1.0, np.linalg.norm(c))
        a = np.append(1.0, weight * t) / np.sqrt(1 + q * weight**2)
        if q == 1:
            one, most = np.array([1.0, weight]) / np.sqrt(1 + weight**2)
            return np.append(np.outer(a, c).ravel(), [one / most * a[1], np.sqrt(2) / most * a[1] ** 2, one * (c @ c)])
        over = np.outer(a, a)
        squares = 0.7 * np.append(np.diag(over), c @ c)
        return np.concatenate([np.outer(a, c).ravel(), over[np.triu_indices(q + 1, 1)], squares])

    def apart(pair):
        return -np.linalg.norm(vector(pair[: q + dim]) - vector(pair[q + dim :]))

    found = [optimize.minimize(apart, rng.normal(size=2 * (q + dim)), method="Nelder-Mead").fun for _ in range(8)]
    assert 1.95 < -min(found) <= 2.0 + 1e-12


@every_space
@pytest.mark.parametrize("later", [False, True])
def test_a_column_is_its_records_own_whatever_stands_beside_it(name, later):
    rng = np.random.default_rng(5)
    rule = view_of(name, 2, later=later).contribution(28)
    points, times = points_around(name, 40, rng), rng.uniform(5, 35, (40, 2))
    own, _ = integers_of(rule, (points, times), 40)
    others, hard = points_around(name, 40, rng), rng.uniform(-1e9, 1e9, (40, 2))
    hard[::3] = np.nan
    hard[1::3] = np.inf
    for row in (0, 17, 39):

        def put(there, here, row=row):
            mixed = np.array(there)
            mixed[row] = here[row]
            if there.dtype.kind == "f" and there.ndim > 1:
                mixed[(row + 1) % 40] = np.nan
                mixed[(row + 2) % 40] = 1e300
            return mixed

        block = (map_parts(put, others, points), put(hard, times))
        assert np.array_equal(integers_of(rule, block, 40)[0][:, row], own[:, row])


@every_space
@pytest.mark.parametrize("later", [False, True])
def test_malformed_records_count_as_nothing_or_as_the_centre(name, later):
    base = SPACES[name][1]
    rng = np.random.default_rng(6)
    points, times = points_around(name, 6, rng), rng.uniform(10, 30, (6, 1))
    times[2], times[4] = np.nan, np.inf
    whole, broken = integers_of(view_of(name, later=later).contribution(28), (points, times))
    assert (broken > 0).tolist() == [False, False, True, False, True, False]
    assert not whole[:, [2, 4]].any()
    mended, told = integers_of(view_of(name, later=later, substitute=base).contribution(28), (points, times))
    assert not told.any()
    assert np.array_equal(mended[:, 2], mended[:, 4])


def test_moments_are_read_back_in_their_own_units():
    rng = np.random.default_rng(7)
    view = RegressionView(dpm.Euclidean(3), np.zeros(3), np.array([[0.0, 4.0], [-1.0, 1.0]]), 5.0)
    c, t = rng.normal(size=(500, 3)), np.stack([rng.uniform(0, 4, 500), rng.uniform(-1, 1, 500)], axis=1)
    seen = view.read(integers_of(view.contribution(29), (c, t))[0].sum(axis=1) / 500 * 2.0**-29, 29)
    s = np.concatenate([np.ones((500, 1)), (t - [2.0, 0.0]) / [2.0, 1.0]], axis=1)
    assert np.allclose(seen.products, s.T @ c / 500, atol=1e-4)
    assert np.allclose(seen.covariates, s.T @ s / 500, atol=1e-4)
    assert seen.square == pytest.approx(np.mean(np.sum(c * c, axis=1)), abs=1e-3)
    noise = view.deviations(0.01, 29)
    assert noise.covariates[0, 0] == 0.0
    assert np.all(noise.products > 0)


@pytest.mark.parametrize("name", ["sphere", "matrices"])
def test_what_is_left_beyond_a_geodesic_is_carried_back(name):
    space, base = SPACES[name]
    view = view_of(name, later=True, radius=5.0)
    rng = np.random.default_rng(8)
    t, left = rng.uniform(-1, 1, (50, 1)), 0.1 * rng.normal(size=(50, space.dim))
    there = space.exp_coordinates(base, t * 0.2 * np.ones(space.dim))
    vectors = np.stack(
        [space.transport(base, at, space.from_coordinates(base, row)) for at, row in zip(there, left, strict=True)]
    )
    rule = view.contribution(29)
    rows = rule.coordinates((base, np.array([20.0])), (space.exp(there, vectors), 20 + 10 * t))
    assert np.allclose(rows[:, 0], t[:, 0])
    assert np.allclose(rows[:, 1:], left, atol=1e-9)


def test_a_record_is_in_the_cluster_of_its_nearest_centre_and_moves_no_more_than_a_label():
    space, north = dpm.Sphere(2), np.array([0.0, 0.0, 1.0])
    centers = tuple(space.exp_coordinates(north, np.array([[0.7, 0.0], [-0.7, 0.0], [0.0, 0.9]])))
    rule = ClusterContribution(space, north, centers=centers, radius=0.5, exponent=20)
    rng = np.random.default_rng(9)
    points = space.exp_coordinates(north, 1.2 * rng.normal(size=(300, 2)))
    whole, _ = integers_of(rule, points, 300)
    parts = whole.T.reshape(300, 3, 3)
    nearest = np.argmin(np.stack([space.dist(center, points) for center in centers], axis=1), axis=1)
    assert np.array_equal(np.argmax(parts[:, :, 2], axis=1), nearest)
    assert np.array_equal(parts[:, :, 2].sum(axis=1), np.ones(300))
    joint = parts.astype(np.float64)
    joint[:, :, 2] *= 2.0**20
    flat = joint.reshape(300, -1)
    squares = np.sum(flat**2, axis=1)
    apart = np.sqrt(np.max(squares[:, None] + squares - 2 * flat @ flat.T))
    assert 1.9 * 2.0**20 < apart <= 2 * 2.0**20
    # alone, and beside what cannot be seen
    hard = points.copy()
    hard[1:] = np.nan
    assert np.array_equal(integers_of(rule, hard, 300)[0][:, 0], whole[:, 0])
