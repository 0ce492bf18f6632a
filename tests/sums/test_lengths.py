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
    # t of a person may be as large as 13R/8
    apart = (whole[:, None] - whole) ** 2 + (13 * radius // 8 - lengths) ** 2
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
    whole[-1, 4] = 1
    assert rule.fits(whole).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("exponent", [8, 24])
def test_the_mean_over_the_records_of_a_person_never_leaves_the_body(exponent):
    rng = np.random.default_rng(0)
    rule = LengthContribution(SPHERE, NORTH, radius=1.0, exponent=exponent)
    for many, spread in ((2, 1.0), (3, 1e-7), (7, 0.01), (50, 1.0), (1, 1.0)):
        middles = rng.normal(size=(200, 1, 2)) * rng.choice([0.0, 0.1, 1.0], size=(200, 1, 1))
        points = SPHERE.move(NORTH, (middles + spread * rng.normal(size=(200, many, 2))).reshape(-1, 2))
        whole, _ = rule(points)
        means = divide_towards_zero(whole.reshape(3, 200, many).sum(axis=2), np.array([many]))
        assert rule.fits(means).all()


def test_a_person_s_records_count_with_their_mean_and_mean_square():
    points = SPHERE.move(NORTH, 0.4 + 0.2 * np.random.default_rng(1).normal(size=(80, 2)))
    rule = LengthContribution(SPHERE, NORTH, radius=1.0, exponent=24)
    total = read_records(SPHERE, points, group_by=np.arange(80) // 2).total(rule)
    alone = read_records(SPHERE, points).total(rule)
    assert np.allclose(np.array(total.integers) * 2, alone.integers, atol=80)


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
