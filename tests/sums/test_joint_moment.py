"""Squares of vectors with a constant coordinate: exact in any cut, bounded for every record, and what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dpmanifolds import ArgumentError
from dpmanifolds.records.persons import persons_of
from dpmanifolds.records.source import source_of
from dpmanifolds.sums.joint_moment import JointContribution
from dpmanifolds.sums.moments import frobenius_steps, nuclear_steps
from dpmanifolds.sums.outer import finest_factor_exponent, sum_outer

HARD = np.array(
    [[np.nan, 0, 0], [np.inf, 1, 0], [1e300, 1e300, -1e300], [1e-300, 0, 0], [5e-324, 0, 0], [0, 0, 0], [1, 0, 0],
     [2, 0, 0], [1e154, 1e155, 0], [0.6, 0.8, 1e-17], [-1.7e308, 1.7e308, 1.7e308]]
)  # fmt: skip


def rule_of(dim, constant=0.6, radius=1.0, **terms):
    width = dim + (constant > 0)
    return JointContribution(dim, radius, constant, finest_factor_exponent(width), **terms)


def matrix_of(records, rule, persons=None):
    total = sum_outer(source_of(None, np.asarray(records, dtype=float)), rule, persons)
    return np.array(total.integers, dtype=object).reshape(rule.shape), total


def moved(y, z, constant):
    """The squared distance by its own formula, |y|⁴ + |z|⁴ − 2(y·z)² + 2κ²|y − z|²."""
    a, b, inner = (np.sum(one * other, axis=-1) for one, other in ((y, y), (z, z), (y, z)))
    return a * a + b * b - 2 * inner * inner + 2 * constant**2 * (a + b - 2 * inner)


def into_ball(points):
    return points / np.maximum(1.0, np.linalg.norm(points, axis=-1, keepdims=True))


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("constant", [0.1, 0.35, 0.6, 1.0])
@pytest.mark.parametrize("dim", [2, 3, 5])
def test_the_farthest_pair_that_a_search_finds_is_the_bound_and_no_farther(dim, constant):
    """Unequal lengths included: 200,000 random pairs, and 5 climbs from random starts."""
    rng = np.random.default_rng(dim)
    bound = 2 * (1 + constant**2) ** 2
    y, z = (into_ball(rng.standard_normal((200_000, dim)) * rng.uniform(0, 2, (200_000, 1))) for _ in range(2))
    assert np.all(moved(y, z, constant) <= bound * (1 + 1e-12))

    def shortfall(both):
        return -moved(into_ball(both[:dim]), into_ball(both[dim:]), constant)

    found = [minimize(shortfall, rng.standard_normal(2 * dim), method="Nelder-Mead", tol=1e-9) for _ in range(5)]
    assert 0.9999 * bound < max(-each.fun for each in found) <= bound * (1 + 1e-12)


def test_the_bound_is_the_one_with_the_inner_product_written_out():
    """2r⁴ − 2t² + 4κ²r² + 4κ²t with t = min(r², κ²) is 2(r² + κ²)² where κ ≤ r, and less beyond."""
    for r, constant in ((1.0, 0.6), (2.0, 0.3), (3.0, 3.0), (1.0, 1.7)):
        t = min(r * r, constant**2)
        written = 2 * r**4 - 2 * t * t + 4 * constant**2 * r * r + 4 * constant**2 * t
        assert written <= 2 * (r * r + constant**2) ** 2 * (1 + 1e-12)
        if constant <= r:
            assert written == pytest.approx(2 * (r * r + constant**2) ** 2, rel=1e-12)


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize(("dim", "constant"), [(2, 0.35), (2, 0.6), (3, 1.0), (40, 0.5), (1, 0.5), (3, 0.0), (1, 0.0)])
def test_integers_of_any_two_records_are_within_the_steps_that_noise_is_made_for(dim, constant):
    """Hard records, random ones and the worst pair, y·z = −κ²; the worst pair comes within 0.1 % of the bound."""
    rng = np.random.default_rng(3)
    rule = rule_of(dim, constant)
    trace = 4**rule.exponent
    y, z = np.zeros(dim), np.zeros(dim)
    y[0], z[0] = 5.0, -5.0 * constant**2
    if dim > 1:
        z[1] = 5.0 * math.sqrt(1 - constant**4)
    hard = np.zeros((len(HARD), dim))
    hard[:, : min(dim, 3)] = HARD[:, : min(dim, 3)]
    records = [y, z, *hard, *(rng.standard_normal((20, dim)) * 10.0 ** rng.uniform(-3, 3, (20, 1)))]
    found = [matrix_of(record[None], rule)[0] for record in records]
    for one in found:
        assert int(np.trace(one)) <= trace
        assert int(np.sum(one * one)) <= trace**2
        for other in found:
            gap = one - other
            assert int(np.sum(gap * gap)) <= frobenius_steps(rule.width, trace) ** 2
            assert np.linalg.norm(gap.astype(float), "nuc") <= nuclear_steps(rule.width, trace) * (1 + 1e-12)
    worst = math.sqrt(int(np.sum((found[0] - found[1]) ** 2)))
    if dim > 1:
        assert worst > 0.999 * frobenius_steps(rule.width, trace)


@pytest.mark.parametrize("constant", [0.5, 0.0])
def test_sums_are_those_of_the_shortened_records(constant):
    rng = np.random.default_rng(1)
    records, center = rng.standard_normal((3000, 4)) + 1, np.array([1.0, 0.5, 1.0, 2.0])
    rule = rule_of(4, constant, radius=2.5, center=center)
    seen = rule.read(matrix_of(records, rule)[0])
    rows = records - center
    rows = rows * np.minimum(1, 2.5 / np.linalg.norm(rows, axis=1))[:, None]
    assert np.allclose(seen.squares, rows.T @ rows, rtol=0, atol=2e-3)
    if constant:
        assert np.allclose(seen.sums, rows.sum(axis=0), rtol=0, atol=2e-3)
        assert seen.number == pytest.approx(3000, abs=1e-3)


def test_a_record_gives_the_same_integers_in_any_company_place_and_layout():
    rng = np.random.default_rng(2)
    records = np.concatenate([HARD, rng.standard_normal((1500, 3))])
    rule = rule_of(3, center=np.array([0.1, -0.2, 0.3]))
    whole, total = matrix_of(records, rule)
    assert total.broken.tolist()[:3] == [1509, 2, 0]
    for form in (records[::-1], np.asfortranarray(records)):
        assert np.array_equal(matrix_of(form, rule)[0], whole)
    for pieces in (2, 9, 200):
        cut = sum_outer(source_of(None, np.array_split(records, pieces)), rule)
        assert cut.integers == total.integers
    alone = sum(matrix_of(record[None], rule)[0] for record in records[:100])
    assert np.array_equal(alone, matrix_of(records[:100], rule)[0])


def test_what_is_not_finite_counts_as_the_substitute_and_what_overflows_as_the_centre():
    rule = rule_of(3, center=np.array([1e308, 0.0, 0.0]), radius=1e3)
    seen = rule.read(matrix_of([[-1.7e308, 0, 0]], rule)[0])
    assert (seen.squares == 0).all()
    assert seen.number == pytest.approx(1, abs=1e-6)
    mended = rule_of(3, substitute=np.array([0.5, 0.0, 0.0]))
    found, total = matrix_of([[np.nan, 1, 2], [np.inf, 0, 0]], mended)
    assert total.broken.tolist()[:2] == [2, 0]
    assert np.array_equal(found, 2 * matrix_of([[0.5, 0, 0]], mended)[0])
    far = rule_of(3).read(matrix_of([[1e300, 0.0, 1e300]], rule_of(3))[0])
    assert np.allclose(far.squares, [[0.5, 0, 0.5], [0, 0, 0], [0.5, 0, 0.5]], atol=1e-5)


def test_a_person_counts_with_the_mean_of_their_records_and_as_one():
    rng = np.random.default_rng(5)
    records, names = rng.standard_normal((2000, 3)), rng.integers(0, 150, 2000)
    persons, rule = persons_of(names, 2000), rule_of(3, radius=3.0)
    seen = rule.read(matrix_of(records, rule, persons)[0])
    rows = records * np.minimum(1, 3.0 / np.linalg.norm(records, axis=1))[:, None]
    own = [rows[persons.rows(i)] for i in range(150)]
    assert np.allclose(seen.squares, sum(each.T @ each / len(each) for each in own), rtol=0, atol=1e-3)
    assert np.allclose(seen.sums, sum(each.mean(axis=0) for each in own), rtol=0, atol=1e-3)
    assert seen.number == pytest.approx(150, abs=1e-3)
    for many in (1, 3, 1000):
        table = np.tile([[9.0, 0, 0]], (many, 1))
        one = matrix_of(table, rule, persons_of(np.zeros(many), many))[0]
        assert int(np.trace(one)) <= 4**rule.exponent


def test_shapes_are_checked():
    with pytest.raises(ArgumentError, match="shape"):
        matrix_of(np.zeros((5, 2)), rule_of(3))
