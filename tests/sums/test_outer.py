"""Sums of outer products: exact in any cut, bounded for every record and person, whatever the numbers are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmanifolds import ArgumentError
from dpmanifolds.records.persons import persons_of
from dpmanifolds.records.source import source_of
from dpmanifolds.sums.joint_moment import JointContribution
from dpmanifolds.sums.outer import exact_product, finest_factor_exponent, sum_outer, whole_rows

HARD = np.array(
    [[np.nan, 0, 0], [np.inf, 1, 0], [1e300, 1e300, -1e300], [1e-300, 0, 0], [5e-324, 0, 0], [0, 0, 0], [1, 0, 0],
     [2, 0, 0], [1e154, 1e155, 0], [0.6, 0.8, 1e-17]]
)  # fmt: skip
RULE = JointContribution(3, 1.0, 0.0, exponent=25)


def exact(records, rule=RULE, persons=None, chosen=None):
    return sum_outer(source_of(None, records), rule, persons, chosen)


@pytest.mark.parametrize("exponents", [(25, 25), (28, 20), (10, 26), (26, 10), (20, 20)])
def test_products_are_those_of_python_integers(exponents):
    rng = np.random.default_rng(0)
    for n in (1, 2, 31, 4096, 5000):
        a, b = (
            rng.integers(-(2**e), 2**e, (n, size), endpoint=True) for e, size in zip(exponents, (4, 3), strict=True)
        )
        a[:, 0], b[:, 0] = 2 ** exponents[0], 2 ** exponents[1]
        parts = exact_product(a.astype(float), b.astype(float), exponents)
        assert np.array_equal(sum(part.astype(object) for part in parts), a.T.astype(object) @ b.astype(object))


def test_totals_are_the_same_in_any_cut_and_order():
    records = np.concatenate([HARD, np.random.default_rng(1).standard_normal((9000, 3))])
    whole = exact(records)
    assert exact(records[::-1]).integers == whole.integers
    for pieces in (2, 7, 100):
        cut = exact(np.array_split(records, pieces))
        assert (cut.integers, cut.rows, cut.broken.tolist()) == (whole.integers, 9010, whole.broken.tolist())
    alone = [exact(record[None]).integers for record in records[:200]]
    assert np.array_equal(np.sum(np.array(alone, dtype=object), axis=0), exact(records[:200]).integers)
    assert whole.broken.tolist()[:3] == [9008, 2, 0]


@pytest.mark.parametrize("dim", [3, 17, 300])
def test_totals_do_not_depend_on_the_memory_layout(dim):
    """Rows, columns, every second number of a wider table: the same integers."""
    records = np.random.default_rng(8).standard_normal((3000, dim)) * 3
    wide = np.zeros((3000, 2 * dim))
    wide[:, ::2] = records
    rule = JointContribution(dim, 1.0, 0.0, exponent=finest_factor_exponent(dim))
    found = [exact(form, rule).integers for form in (records, np.asfortranarray(records), wide[:, ::2])]
    assert found[0] == found[1] == found[2]


def test_the_total_is_the_second_moment():
    records = np.random.default_rng(2).standard_normal((2000, 3)) / 4
    unit = np.minimum(1, 1 / np.linalg.norm(records, axis=1))[:, None] * records
    found = np.array(exact(records).integers, dtype=float).reshape(3, 3) / 4.0**25
    assert np.allclose(found, unit.T @ unit, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dim", [1, 2, 3, 64])
def test_many_records_at_the_edge_do_not_overflow_at_the_finest_exponent(dim):
    """4096 of them are multiplied at once: at an exponent of 26 their sum would leave 64 bits."""
    rule = JointContribution(dim, 1.0, 0.0, exponent=finest_factor_exponent(dim))
    alone = exact(np.eye(dim)[:1], rule).integers[0]
    assert 0.999 * 4**rule.exponent < alone <= 4**rule.exponent
    assert exact(np.tile(np.eye(dim)[:1], (9000, 1)), rule).integers[0] == 9000 * alone


def test_no_record_is_longer_than_its_bound():
    """The exact check is what the promise rests on; floating point alone keeps it, so that it never fires."""
    rng = np.random.default_rng(3)
    for dim, exponent in ((1, 25), (3, 25), (700, 21), (700, 12), (3, 2)):
        rows = rng.standard_normal((500, dim)) * 10.0 ** rng.uniform(-3, 3, (500, 1))
        for sizes in (None, np.full(500, 1), rng.integers(1, 10**6, 500)):
            with np.errstate(all="ignore"):
                whole = whole_rows(rows, exponent, sizes)
            assert np.array_equal(whole, np.rint(whole))
            many = np.ones(500, dtype=object) if sizes is None else sizes.astype(object)
            whole = whole.astype(int).astype(object)
            assert np.all(np.sum(whole * whole, axis=1) * many <= 4**exponent)
            if exponent > 20:
                lost = np.all(whole == 0, axis=1) & (np.linalg.norm(rows, axis=1) > 1)
                assert not np.any(lost)


def test_a_person_with_any_records_stays_within_the_bounds_of_one_record():
    """Σzzᵀ of a person has trace ≤ 4^e, so two of them are at most √2·4^e apart, and 2·4^e in the nuclear norm."""
    rng = np.random.default_rng(4)
    for many in (1, 2, 5, 1000):
        one, two = np.tile([[9.0, 0, 0]], (many, 1)), rng.standard_normal((many + 1, 3)) * 100
        found = []
        for records in (one, two):
            own = persons_of(np.zeros(len(records)), len(records))
            matrix = np.array(exact(records, persons=own).integers, dtype=object).reshape(3, 3)
            assert 0 < sum(matrix.diagonal()) <= 4**25
            found.append(matrix)
        apart = (found[0] - found[1]).astype(float) / 4.0**25
        assert np.linalg.norm(apart) <= math.sqrt(2)
        assert np.linalg.norm(apart, "nuc") <= 2


def test_persons_count_with_the_mean_of_their_squares_in_any_cut():
    rng = np.random.default_rng(5)
    records, names = rng.standard_normal((3000, 3)) / 3, rng.integers(0, 400, 3000)
    persons = persons_of(names, 3000)
    whole = exact(records, persons=persons)
    assert (whole.rows, whole.integers) == (400, exact(np.array_split(records, 11), persons=persons).integers)
    unit = np.minimum(1, 1 / np.linalg.norm(records, axis=1))[:, None] * records
    means = sum(unit[persons.rows(i)].T @ unit[persons.rows(i)] / len(persons.rows(i)) for i in range(400))
    assert np.allclose(np.array(whole.integers, dtype=float).reshape(3, 3) / 4.0**25, means, rtol=0, atol=1e-4)
    some = np.array([3, 5, 250])
    parts = [exact(records, persons=persons, chosen=np.array([i])).integers for i in some]
    assert (
        exact(records, persons=persons, chosen=some).integers == np.sum(np.array(parts, dtype=object), axis=0).tolist()
    )


def test_chosen_records_are_summed_alone():
    records = np.random.default_rng(6).standard_normal((500, 3))
    chosen = np.array([0, 7, 200, 499])
    assert exact(records, chosen=chosen).integers == exact(records[chosen]).integers
    assert exact(records, chosen=np.array([], dtype=int)).integers == [0] * 9


def test_shapes_and_exponents_are_checked():
    with pytest.raises(ArgumentError, match="shape"):
        exact(np.zeros((5, 2)))
    with pytest.raises(ArgumentError, match="at most"):
        exact(np.zeros((5, 3)), JointContribution(3, 1.0, 0.0, exponent=26))
