"""Sums of squares: the integers of a record depend on it alone, and neighbours are no farther apart than is charged."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmanifolds as dpm
from dpmanifolds.noise.symmetric import SymmetricGaussian, WishartDifference
from dpmanifolds.records.persons import persons_of
from dpmanifolds.records.source import source_of
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.joint_moment import JointContribution
from dpmanifolds.sums.moments import TangentSquareContribution, frobenius_steps, moment_noise, nuclear_steps
from dpmanifolds.sums.outer import finest_factor_exponent, sum_outer
from tests.selection import thorough

SPACES = {
    "SPD(2)": (dpm.SPD(2), dpm.SPD(2).random_point(1, rng=9)[0]),
    "SPD(3), log-Euclidean": (dpm.SPD(3, "log-euclidean"), np.eye(3)),
    "Sphere(3)": (dpm.Sphere(3), np.array([0.6, 0.8, 0.0, 0.0])),
    "Hyperbolic(2)": (dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin),
}


def exact(records, rule, manifold=None, persons=None):
    total = sum_outer(source_of(manifold, records), rule, persons)
    return np.array(total.integers, dtype=object).reshape(rule.shape)


def squared_norms(gap):
    """‖D‖²_F, and ‖D‖²_* for a difference of two squares: (λ₁ − λ₂)² = 2(λ₁² + λ₂²) − (λ₁ + λ₂)². Exact integers."""
    frobenius = sum(entry * entry for entry in gap.ravel().tolist())
    return frobenius, 2 * frobenius - sum(gap.diagonal().tolist()) ** 2


def hard_records(space, base):
    """Records where floating point is at its worst, and some that are none."""
    near, far = space.random_point(2, rng=0)
    rows = [base, near, near * (1 + 1e-7), near * 1e-300, near * 1e300, far, -base, np.full_like(base, np.nan)]
    infinite = near.copy()
    infinite[(0,) * infinite.ndim] = np.inf
    return np.stack([*rows, infinite, np.zeros_like(base), base * (1 + 2.0**-52)])


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("mended", [False, True])
def test_a_tangent_square_is_the_same_alone_and_in_any_company(name, mended):
    """Alone, first, last, in any order and cut; whatever the others are, malformed ones included."""
    space, base = SPACES[name]
    view = TangentContribution(space, base, base if mended else None)
    rule = TangentSquareContribution(view, 1.5, finest_factor_exponent(space.dim))
    records = np.concatenate([hard_records(space, base), space.random_point(40, rng=1)])
    alone = [exact(record[None], rule, space) for record in records]
    assert np.array_equal(exact(records, rule, space), sum(alone))
    assert np.array_equal(exact(records[::-1].copy(), rule, space), sum(alone))
    assert np.array_equal(exact([records[:5], records[5:8], records[8:]], rule, space), sum(alone))
    for row in (0, 4, 7, 20):
        others = np.delete(records, row, axis=0)
        with_it = exact(np.concatenate([others[:3], records[row][None], others[3:]]), rule, space)
        assert np.array_equal(with_it - exact(others, rule, space), alone[row])
    assert all(0 <= sum(square.diagonal().tolist()) <= 4**rule.exponent for square in alone)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", SPACES)
def test_replaced_records_stay_within_the_bounds_in_exact_integers(name):
    space, base = SPACES[name]
    rule = TangentSquareContribution(TangentContribution(space, base), 0.5, finest_factor_exponent(space.dim))
    trace = 4**rule.exponent
    squares = [
        exact(record[None], rule, space)
        for record in np.concatenate([hard_records(space, base), space.random_point(30, rng=2)])
    ]
    for one in squares:
        for other in squares:
            frobenius, nuclear = squared_norms(one - other)
            assert frobenius <= frobenius_steps(space.dim, trace) ** 2
            assert nuclear <= nuclear_steps(space.dim, trace) ** 2


@thorough("examples", 60, 200)
def test_a_replaced_vector_moves_the_sum_by_no_more_than_both_bounds(examples):
    @settings(max_examples=examples)
    @given(st.integers(1, 5), st.integers(1, 9), st.floats(0.1, 10.0), st.integers(0, 2**32 - 1))
    def holds(dim, n, radius, seed):
        rng = np.random.default_rng(seed)
        vectors = rng.standard_normal((n, dim)) * 10 ** rng.uniform(-3, 3, (n, 1))
        other = vectors.copy()
        other[0] = rng.standard_normal(dim) * 10 ** rng.uniform(-3, 3)
        rule = JointContribution(dim, radius, 0.0, finest_factor_exponent(dim))
        frobenius, nuclear = squared_norms(exact(vectors, rule) - exact(other, rule))
        assert frobenius <= frobenius_steps(dim, 4**rule.exponent) ** 2
        assert nuclear <= nuclear_steps(dim, 4**rule.exponent) ** 2

    holds()


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_orthogonal_replacements_attain_both_bounds(dim):
    """To the 5e−7 that is kept free for rounding."""
    one, other = np.zeros((10, dim)), np.zeros((10, dim))
    one[0, 0] = 1e9
    other[0, -1] = 1e9 if dim > 1 else 0.0
    rule = JointContribution(dim, 2.0, 0.0, finest_factor_exponent(dim))
    frobenius, nuclear = squared_norms(exact(one, rule) - exact(other, rule))
    assert math.sqrt(frobenius) == pytest.approx(frobenius_steps(dim, 4**rule.exponent), rel=5e-7)
    assert math.sqrt(nuclear) == pytest.approx(nuclear_steps(dim, 4**rule.exponent), rel=5e-7)


def test_replacing_all_vectors_of_a_person_moves_it_no_more_than_one_vector_may():
    """One long vector against forty orthogonal ones comes close to both bounds."""
    n, width, reach = 6, 3, 1.5
    rng = np.random.default_rng(1)
    names = rng.permutation(np.repeat(np.arange(n - 1), 3))
    vectors = rng.standard_normal((len(names), width))
    rule = JointContribution(width, reach, 0.0, finest_factor_exponent(width))
    candidates = [
        reach * np.eye(width)[:1],
        np.tile(9 * np.eye(width)[1], (40, 1)),
        rng.standard_normal((25, width)),
        np.zeros((3, width)),
        np.full((2, width), np.nan),
    ]
    found = []
    for person in candidates:
        everyone = persons_of(np.concatenate([names, np.full(len(person), n)]), len(names) + len(person))
        found.append(exact(np.concatenate([vectors, person]), rule, persons=everyone))
    gaps = [(first - second).astype(float) for first in found for second in found]
    frobenius, nuclear = (max(np.linalg.norm(gap, kind) for gap in gaps) for kind in ("fro", "nuc"))
    assert 0.999 < frobenius / frobenius_steps(width, 4**rule.exponent) <= 1 + 1e-12
    assert 0.999 < nuclear / nuclear_steps(width, 4**rule.exponent) <= 1 + 1e-12


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 64])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove-one"])
@pytest.mark.parametrize("budget", [dpm.PureDP(0.3), dpm.GaussianDP(0.7), dpm.ApproxDP(1.0, 1e-6)], ids=repr)
def test_the_scale_is_the_distance_of_neighbours_over_the_budget(dim, adjacency, budget):
    noise = moment_noise(dim, budget, "person", adjacency=adjacency)
    assert noise.guarantee.fits(budget)
    assert noise.guarantee.adjacency == adjacency
    trace, alone = 4**noise.exponent, dim == 1 or adjacency == "add-remove-one"
    if isinstance(noise.law, WishartDifference):
        assert noise.moved == (trace if alone else 2 * trace)
        assert noise.law.epsilon(noise.moved) == pytest.approx(noise.guarantee.as_pure().epsilon, rel=1e-12)
        return
    assert (noise.moved - 1) ** 2 < trace**2 * (1 if alone else 2) <= noise.moved**2
    if isinstance(noise.law, SymmetricGaussian):
        assert noise.law.mu(noise.moved) == pytest.approx(noise.guarantee.as_gaussian().mu, rel=1e-9)
    else:
        assert noise.law.epsilon(noise.moved) == pytest.approx(noise.guarantee.as_pure().epsilon, rel=1e-12)
