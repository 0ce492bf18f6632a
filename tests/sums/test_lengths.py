"""A tangent vector and its squared length in one sum: as far apart as the vector alone, record by record."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.records.source import source_of
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.joint_moment import TangentJointContribution
from dpmanifolds.sums.lengths import LengthContribution, length_deviation
from dpmanifolds.sums.outer import sum_outer
from dpmanifolds.sums.total import divide_towards_zero, read_records

SPHERE = dpm.Sphere(2)
NORTH = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize("exponent", [8, 9])
def test_all_pairs_on_a_line_are_at_most_2r_apart(exponent):
    # opposite directions are the worst for given lengths, so that a line holds the worst pairs
    radius = 1 << exponent
    whole = np.arange(-radius, radius + 1, dtype=np.int64)
    lengths = (13 * whole * whole) >> (exponent + 3)
    apart = (whole[:, None] - whole) ** 2 + (lengths[:, None] - lengths) ** 2
    assert int(apart.max()) == (2 * radius) ** 2


def test_no_pair_of_lengths_is_farther_apart_at_any_exponent():
    # (a + b)² + (⌊c·a²⌋ − ⌊c·b²⌋)² at integers a², b², where |z − z'| is at most a + b
    rng = np.random.default_rng(0)
    for exponent in (8, 12, 20, 25):
        most = 1 << 2 * exponent
        first = rng.integers(0, most + 1, 30_000)
        near = np.clip(first + rng.integers(-40, 41, first.size), 0, most)
        for second in (rng.integers(0, most + 1, first.size), near, np.full_like(first, most), most - first // 2):
            sizes = [((13 * each) >> (exponent + 3)).astype(object) for each in (first, second)]
            sums = [math.isqrt(int(4 * a * b)) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
            # (a + b)² = a² + b² + 2ab, and 2ab ≤ isqrt(4a²b²) + 1 unless it is whole
            exact = [root * root == 4 * a * b for root, a, b in zip(sums, first.tolist(), second.tolist(), strict=True)]
            apart = [
                a + b + root + (0 if whole else 1) + int(s - t) ** 2
                for a, b, root, whole, s, t in zip(first.tolist(), second.tolist(), sums, exact, *sizes, strict=True)
            ]
            assert max(apart) <= 4 * most


def test_four_per_cent_more_of_the_length_would_be_too_much():
    gap = np.linspace(0, 1, 100_001)
    worst = np.max((2 - gap) ** 2 * (1 + (13 / 8 * gap) ** 2))
    assert worst == pytest.approx(4.0, abs=1e-12)
    assert np.max((2 - gap) ** 2 * (1 + (1.04 * 13 / 8 * gap) ** 2)) > 4.01


def rules():
    view = TangentContribution(SPHERE, NORTH)
    return [
        LengthContribution(SPHERE, NORTH, radius=1.0, exponent=20),
        TangentJointContribution(2, 1.0, 0.7, 20, view, np.array([0.1, 0.0])),
    ]


@pytest.mark.parametrize("rule", rules(), ids=["lengths", "squares"])
def test_a_record_is_the_same_integers_in_any_company(rule):
    points = SPHERE.random_point(200, rng=0)
    other = points.copy()
    other[7] = [np.nan, 0.0, 1e300]
    other[8] = -NORTH
    one, two = (rule(rule.form(each))[0] for each in (points, other))
    one, two = (each if each.shape[0] == 200 else each.T for each in (np.asarray(one), np.asarray(two)))
    same = np.all(one == two, axis=1)
    assert same[[row for row in range(200) if row not in (7, 8)]].all()


def test_what_is_read_is_the_mean_and_the_mean_square():
    rule = LengthContribution(SPHERE, NORTH, radius=2.0, exponent=24)
    points = SPHERE.random_point(300, rng=1)
    whole, broken = rule(points)
    assert not broken.any()
    assert rule.fits(whole).all()
    rows = SPHERE.log_coordinates(NORTH, points)
    rows *= np.minimum(1, 2.0 / np.linalg.norm(rows, axis=1))[:, None]
    mean, square = rule.read(whole.mean(axis=1) * 2.0 / 2**24)
    assert np.allclose(mean, rows.mean(axis=0), atol=1e-6)
    assert square == pytest.approx(np.mean(np.sum(rows**2, axis=1)), abs=1e-6)
    assert length_deviation(2.0, 0.13) == pytest.approx(0.16)


def test_a_wrong_length_does_not_fit():
    rule = LengthContribution(SPHERE, NORTH, radius=2.0, exponent=24)
    whole, _ = rule(SPHERE.random_point(5, rng=1))
    whole[-1, 2] -= 1
    whole[0, 3] = 1 << 25
    whole[-1, 4] = (13 << 24 >> 4) + 1
    assert rule.fits(whole).tolist() == [True, True, False, False, False]


def test_vectors_with_any_longer_length_are_at_most_2r_apart():
    """Where averages of persons lie: pairs on a line, one with the least length that fits, one with the most."""
    radius = 1 << 8
    whole = np.arange(-radius, radius + 1, dtype=np.int64)
    lengths, longest = (13 * whole * whole) >> 11, 13 * radius >> 3
    apart = (whole[:, None] - whole) ** 2 + (longest - lengths) ** 2
    assert int(apart.max()) == (2 * radius) ** 2


def test_records_of_a_person_count_as_their_average():
    """They need not lie on the paraboloid, and are no less for it; none leaves the body."""
    rng, space = np.random.default_rng(0), dpm.Euclidean(3)
    rule = LengthContribution(space, np.zeros(3), radius=2.0, exponent=20)
    rows, names = rng.uniform(-1, 1, (3000, 3)), np.repeat(np.arange(1000), 3)
    # of some persons nearly alike, and along one axis: there rounding decides
    rows[:1500] = np.repeat([[1.8, 0.0, 0.0]], 1500, axis=0) + rng.uniform(-8e-6, 8e-6, (1500, 1)) * [1.0, 0.0, 0.0]
    total = read_records(space, rows, group_by=names).total(rule)
    mean, square = rule.read(np.array(total.integers, dtype=np.float64) / 1000 * 2.0 / 2**20)
    assert np.allclose(mean, rows.mean(axis=0), atol=1e-5)
    assert square == pytest.approx(np.mean(np.sum(rows**2, axis=1)), abs=1e-5)
    whole, _ = rule(rows)
    sums = whole.reshape(4, 1000, 3).sum(axis=2)
    assert not rule.fits(divide_towards_zero(sums, 3)).all()
    assert rule.fits(rule.settle(divide_towards_zero(sums, 3))).all()


def test_a_mean_and_spread_of_many_dimensions_is_that_of_persons():
    """Squares do not pay from 1,000 dimensions on: lengths are summed then."""
    space = dpm.Euclidean(1000)
    rows = np.random.default_rng(0).standard_normal((200, 1000)) / 40 + 0.03
    ball, names = dpm.Ball(space, np.zeros(1000), 4.0), np.repeat(np.arange(100), 2)
    release = dpm.private_mean_and_spread(rows, ball, dpm.GaussianDP(100.0), group_by=names, rng=0)
    assert release.spread.kind == "variance"
    assert np.linalg.norm(release.value - rows.mean(axis=0)) < 0.05 < np.linalg.norm(rows.mean(axis=0))


def test_squares_of_tangent_vectors_are_those_of_numpy():
    space, base, offset = dpm.SPD(2), np.diag([2.0, 1.0]), np.array([0.3, 0.0, -0.2])
    points = space.random_point(150, rng=0)
    rule = TangentJointContribution(3, 1.5, 0.5, 25, TangentContribution(space, base), offset)
    seen = rule.read(np.array(sum_outer(source_of(space, points), rule).integers, dtype=object).reshape(4, 4))
    rows = space.to_coordinates(base, space.log(base, points)) - offset
    rows *= np.minimum(1, 1.5 / np.linalg.norm(rows, axis=1))[:, None]
    assert np.allclose(seen.squares, rows.T @ rows, atol=1e-4)
    assert np.allclose(seen.sums, rows.sum(axis=0), atol=1e-4)
    assert seen.number == pytest.approx(150, rel=1e-6)
