"""The permutation test: exact integers, its sensitivity over all permutations, and the exact law of its answer."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.sums.decision_noise import DecisionNoise, among_largest, decision_noise, rank_of_first
from dpmanifolds.sums.features import Kernel, kernel_of
from dpmanifolds.sums.permutation import (
    IndependenceStatistic,
    TwoSampleStatistic,
    chosen_sums,
    draw_groups,
    draw_pairings,
    paired_sums,
    squared_lengths,
    term_integers,
)
from dpmanifolds.sums.total import read_records
from tests.sums.exact_decision import loss, rank_law, rejection_probability

LINE = dpm.Ball(dpm.Euclidean(1), [0.0], radius=1.0)
PLANE = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=1.0)
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=1.0)


def integers(kernel: Kernel, points: np.ndarray, exponent: int) -> np.ndarray:
    return term_integers(read_records(kernel.domain.manifold, points), kernel.contribution(exponent))[0]


def cuts(n: int, m: int) -> np.ndarray:
    """All ways to choose the first group, the given one first, and everybody as the last row."""
    chosen = [np.isin(np.arange(n + m), group) for group in itertools.combinations(range(n + m), n)]
    return np.array([*chosen, np.ones(n + m, dtype=bool)], dtype=np.uint8)


def values_of(kernel: Kernel, points: np.ndarray, n: int, chosen: np.ndarray) -> list[int]:
    statistic = TwoSampleStatistic(kernel, (n, len(points) - n))
    sums, _ = chosen_sums(read_records(kernel.domain.manifold, points), kernel.contribution(statistic.exponent), chosen)
    return statistic.values(sums)


def test_squared_lengths_are_those_of_python_integers():
    rng = np.random.default_rng(0)
    vectors = rng.integers(-(2**62) + 1, 2**62, size=(20, 50))
    vectors[0] = 2**62 - 1
    assert squared_lengths(vectors) == [sum(v * v for v in row) for row in vectors.tolist()]


def test_squared_lengths_of_very_long_vectors_stay_exact():
    """Every limb of −1 is the largest there is: 2²¹ squares of it leave 64 bits."""
    assert squared_lengths(np.full((1, 2**21 + 3), -1)) == [2**21 + 3]


@pytest.mark.parametrize("sizes", [(7, 7), (9, 6), (11, 4)])
@pytest.mark.parametrize("kernel", ["directions", "gaussian", "linear"])
def test_the_statistic_is_the_floor_of_that_of_a_plain_program_in_python_integers(sizes, kernel):
    rng = np.random.default_rng(1)
    n, m = sizes
    points, chosen = rng.normal(size=(n + m, 2)), draw_groups(sizes, 20, 2)
    law = kernel_of(PLANE, kernel)
    statistic = TwoSampleStatistic(law, sizes)
    whole = integers(law, points, statistic.exponent).T.tolist()
    expected = []
    for row in chosen[:-1].tolist():
        sums = [
            [sum(z[j] for z, own in zip(whole, row, strict=True) if own == group) for j in range(len(whole[0]))]
            for group in (1, 0)
        ]
        squares = [(Fraction(a, n) - Fraction(b, m)) ** 2 for a, b in zip(*sums, strict=True)]
        square = max(squares) if kernel == "directions" else sum(squares)
        expected.append(math.isqrt(int(square * math.lcm(n, m) ** 2)))
    assert values_of(law, points, n, chosen) == expected


def test_the_statistic_is_the_root_of_the_plain_v_statistic_of_the_kernel():
    rng = np.random.default_rng(2)
    n, m = 30, 20
    points = 0.4 * rng.normal(size=(n + m, 2))
    law = kernel_of(PLANE, "gaussian", [0.7])
    statistic = TwoSampleStatistic(law, (n, m))
    chart = points / np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True))
    gram = np.exp(-np.sum((chart[:, None] - chart) ** 2, axis=-1) / (2 * 0.7**2))
    weights = np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])
    found = values_of(law, points, n, draw_groups((n, m), 1, 0))[0] / statistic.unit
    assert found == pytest.approx(math.sqrt(weights @ gram @ weights), rel=0.1)


@pytest.mark.grid
@pytest.mark.parametrize("sizes", [(3, 3), (4, 2), (2, 3)])
@pytest.mark.parametrize("kernel", ["directions", "gaussian", "linear", "both"])
def test_no_replaced_record_moves_the_statistic_of_any_permutation_by_more_than_charged(sizes, kernel):
    n, m = sizes
    law = kernel_of(LINE, "gaussian", [0.2, 0.6]) if kernel == "both" else kernel_of(LINE, kernel)
    statistic, chosen = TwoSampleStatistic(law, sizes), cuts(n, m)
    rng, moved = np.random.default_rng(3), 0
    ends = [np.array(each)[:, None] for each in itertools.product([-1.0, 1.0], repeat=n + m)]
    for points in [*ends, *rng.uniform(-1.5, 1.5, size=(30, n + m, 1))]:
        for place, end in itertools.product((0, n + m - 1), (-1.0, 1.0)):
            other = points.copy()
            other[place] = end
            pair = [values_of(law, each, n, chosen) for each in (points, other)]
            moved = max(moved, *(abs(a - b) for a, b in zip(*pair, strict=True)))
    assert moved <= statistic.sensitivity
    assert moved >= (0.999 if kernel == "linear" else 0.7) * statistic.sensitivity


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("kernel", ["directions", "gaussian", "linear"])
def test_no_replaced_pair_moves_the_covariance_of_any_pairing_by_more_than_charged(kernel):
    n = 4
    law, partner = kernel_of(LINE, kernel, pairs=16), kernel_of(LINE, "linear")
    statistic = IndependenceStatistic(law, sum(partner.sizes), n)
    pairings = np.array(list(itertools.permutations(range(n))))
    rng, moved, own = np.random.default_rng(4), 0, 0

    def values(pairs: np.ndarray) -> list[int]:
        records = read_records(dpm.Euclidean(1), pairs[:, :1])
        partners = integers(partner, pairs[:, 1:], statistic.partner_exponent)
        products, sums, _ = paired_sums(records, law.contribution(statistic.exponent), partners, pairings)
        return statistic.values(products, sums, partners.sum(axis=1))

    ends = [np.array(each).reshape(n, 2) for each in itertools.product([-1.0, 1.0], repeat=2 * n)]
    for pairs in [*ends[:: 1 if kernel == "linear" else 5], *rng.uniform(-1.5, 1.5, size=(20, n, 2))]:
        before = values(pairs)
        for end in itertools.product((-1.0, 1.0), repeat=2):
            other = pairs.copy()
            other[0] = end
            gaps = [abs(a - b) for a, b in zip(before, values(other), strict=True)]
            moved, own = max(moved, *gaps), max(own, gaps[0])
    assert own <= statistic.own_sensitivity < moved / 0.49 if kernel == "linear" else own <= statistic.own_sensitivity
    assert moved <= statistic.sensitivity
    assert moved >= (0.49 if kernel == "linear" else 0.3) * statistic.sensitivity


def test_the_charge_for_a_pair_is_nearly_attained_among_many_records():
    """One record stands apart, and another partner; a pair that joins both moves the covariance of one pairing most."""
    n = 40
    law = kernel_of(LINE, "linear")
    statistic = IndependenceStatistic(law, 1, n)
    pairing = np.arange(n)
    pairing[[0, 1, 2]] = [2, 0, 1]
    found = []
    for end in (-1.0, 1.0):
        records, partners = np.full((n, 1), -1.0), np.full((n, 1), -1.0)
        records[1], partners[2], records[0], partners[0] = 1.0, 1.0, end, end
        own = integers(law, partners, statistic.partner_exponent)
        rule = law.contribution(statistic.exponent)
        products, sums, _ = paired_sums(read_records(dpm.Euclidean(1), records), rule, own, pairing[None, :])
        found += statistic.values(products, sums, own.sum(axis=1))
    assert 0.95 * statistic.sensitivity <= abs(found[1] - found[0]) <= statistic.sensitivity


def test_a_pair_that_stays_together_moves_no_more_than_root_three_halves_of_both_diameters():
    """Three points at equal distances in each space, and a search among others; pairs of a ball of diameter 1."""
    rng = np.random.default_rng(6)
    corners = np.eye(3) / np.sqrt(2)
    worst = 0.0
    for trial in range(3000):
        # φ and φ' as seen from the mean of the others: three points at most 1 apart
        spaces = []
        for _ in range(2):
            points = corners[rng.integers(0, 3, size=3)] if trial % 3 == 0 else rng.normal(size=(3, 3))
            widest = max(np.linalg.norm(a - b) for a, b in itertools.combinations(points, 2))
            spaces.append((points[1:] - points[0]) / max(widest, 1e-9))
        (a, after), (b, other) = spaces
        worst = max(worst, np.linalg.norm(np.outer(a, b) - np.outer(after, other)))
    assert worst <= np.sqrt(1.5) * (1 + 1e-12)
    assert worst >= np.sqrt(1.5) * 0.999


def test_over_all_pairings_the_statistic_moves_by_a_third_of_its_sensitivity_or_so():
    """Lemma 5: its root mean square, for random neighbours, and for the ones that attain the bound."""
    n = 5
    pairings, rng = np.array(list(itertools.permutations(range(n)))), np.random.default_rng(8)
    most = np.sqrt(n / (8 * (n - 1))) * 4 * (n - 1)

    def size(z: np.ndarray, w: np.ndarray) -> float:
        z, w = z - z.mean(axis=0), w - w.mean(axis=0)
        return n * float(np.sqrt(np.mean([np.sum((z.T @ w[each]) ** 2) for each in pairings])))

    moved = 0.0
    for _ in range(60):
        z, w = (rng.normal(size=(n, 3)) for _ in range(2))
        z, w = (each / np.linalg.norm(each, axis=1, keepdims=True) / np.sqrt(2) for each in (z, w))
        other, partners = z.copy(), w.copy()
        other[0], partners[0] = -z[0], -w[0]
        moved = max(moved, abs(size(z, w) - size(other, partners)))
    assert moved < most
    apart = np.full((n, 1), -1 / np.sqrt(2))
    apart[0] = 1 / np.sqrt(2)
    assert size(apart, np.eye(n)) == pytest.approx(most)  # and 0 where the first record stands with the others


def test_decisions_about_independence_lose_no_more_than_their_epsilon_by_their_exact_law():
    n, steps, epsilon, worst = 5, 12, 1.0, 0.0
    law = kernel_of(LINE, "linear")
    statistic = IndependenceStatistic(law, 1, n)
    pairings = np.array(list(itertools.permutations(range(n))))
    own = math.ceil(steps * statistic.own_sensitivity / statistic.sensitivity)
    sigma = DecisionNoise.of("laplace", own + steps, epsilon).sigma

    def answer(pairs: np.ndarray) -> float:
        partners = integers(law, pairs[:, 1:], statistic.partner_exponent)
        rule, records = law.contribution(statistic.exponent), read_records(dpm.Euclidean(1), pairs[:, :1])
        products, sums, _ = paired_sums(records, rule, partners, pairings)
        values = coarse(statistic.values(products, sums, partners.sum(axis=1)), statistic.sensitivity, steps)
        return rejection_probability(values[0], np.array(values), sigma, 39, 2)

    rng = np.random.default_rng(7)
    for pairs in [np.full((n, 2), -1.0), *rng.choice([-1.0, -0.5, 0.0, 1.0], size=(8, n, 2))]:
        answers = []
        for end in itertools.product((-1.0, 1.0), repeat=2):
            pairs[0] = end
            answers.append(answer(pairs))
        worst = max(worst, *(loss(a, b) for a, b in itertools.combinations(answers, 2)))
    assert 0.2 * epsilon <= worst <= epsilon


def test_the_covariance_is_the_norm_of_the_plain_one():
    rng = np.random.default_rng(5)
    n = 12
    law, partner = kernel_of(CAP, "exponential", pairs=32), kernel_of(LINE, "gaussian", pairs=8)
    statistic = IndependenceStatistic(law, sum(partner.sizes), n)
    points, ages = dpm.Sphere(2).random_point(n, rng=6), rng.uniform(-1, 1, size=(n, 1))
    partners, pairings = integers(partner, ages, statistic.partner_exponent), draw_pairings(n, 5, 7)
    rule = law.contribution(statistic.exponent)
    products, sums, _ = paired_sums(read_records(dpm.Sphere(2), points), rule, partners, pairings)
    found = np.array(statistic.values(products, sums, partners.sum(axis=1))) / statistic.unit
    z = integers(law, points, statistic.exponent) / 2.0**statistic.exponent
    w = partners / 2.0**statistic.partner_exponent
    expected = [np.linalg.norm(np.cov(z, w[:, each], ddof=0)[: len(z), len(z) :]) for each in pairings]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def _worst(n: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    """All stand at one end, the second group a step inside; the first record comes from the other end to its own.

    The statistic as it is grows by Δ, while those of most permutations shrink.
    """
    before = np.concatenate([[1.0], np.full(n - 1, -1.0), np.full(n, -1.0 + step)])[:, None]
    after = before.copy()
    after[0] = -1.0
    return before, after


TINY = [_worst(5, 0.4), _worst(5, 0.2), _worst(5, 1.9)]
TINY += [
    (each, np.where(np.arange(10)[:, None] == 9, -1.0, each))
    for each in np.random.default_rng(9).uniform(-1, 1, size=(3, 10, 1))
]


def coarse(values: list[int], sensitivity: int, steps: int) -> list[int]:
    """On a lattice on which Δ is a few steps, so that sums over all noise are short; rounding down keeps |ΔT| ≤ Δ."""
    return [value * steps // sensitivity for value in values]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("permutations", "rank"), [(19, 1), (99, 5), (199, 10)])
def test_the_decision_loses_no_more_than_its_epsilon_by_its_exact_law(epsilon, permutations, rank):
    law, chosen = kernel_of(LINE, "linear"), cuts(5, 5)
    sensitivity, steps, worst = TwoSampleStatistic(law, (5, 5)).sensitivity, 12, 0.0
    sigma = DecisionNoise.of("laplace", 2 * steps, epsilon).sigma
    for pair in TINY:
        values = [coarse(values_of(law, each, 5, chosen), sensitivity, steps) for each in pair]
        answers = [rejection_probability(each[0], np.array(each), sigma, permutations, rank) for each in values]
        worst = max(worst, loss(*answers))
    assert worst <= epsilon
    assert worst >= 0.6 * epsilon


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_a_rank_loses_no_more_than_twice_the_price_of_a_decision(epsilon):
    law, chosen = kernel_of(LINE, "linear"), cuts(5, 5)
    sensitivity, steps, worst = TwoSampleStatistic(law, (5, 5)).sensitivity, 12, 0.0
    noise = DecisionNoise.of("laplace", 4 * steps + 2, epsilon, pvalue=True)
    for pair in TINY:
        values = [coarse(values_of(law, each, 5, chosen), sensitivity, steps) for each in pair]
        laws = [rank_law(each[0], np.array(each), noise.sigma, 19) for each in values]
        assert all(math.isclose(each.sum(), 1.0, abs_tol=1e-9) for each in laws)
        worst = max(worst, float(np.max(np.abs(np.log(laws[0] / laws[1])))))
    assert worst <= epsilon
    assert worst >= 0.35 * epsilon


@pytest.mark.parametrize(("permutations", "rank"), [(19, 1), (39, 2), (199, 10)])
def test_the_level_is_exact_whatever_the_records_and_the_noise_are(permutations, rank):
    law, chosen = kernel_of(LINE, "linear"), cuts(5, 5)
    sensitivity = TwoSampleStatistic(law, (5, 5)).sensitivity
    for points, _ in TINY[1:5:2]:
        null = np.array(coarse(values_of(law, points, 5, chosen), sensitivity, 12))
        # where labels mean nothing, the statistic as it is is one of all, each as likely
        firsts, counts = np.unique(null, return_counts=True)
        shares = counts / counts.sum()
        for sigma in (0.5, 12.0):
            answers = [rejection_probability(first, null, sigma, permutations, rank) for first in firsts]
            assert shares @ answers <= rank / (permutations + 1) + 1e-12
            if permutations == 19:
                ranks = shares @ np.array([rank_law(first, null, sigma, 9) for first in firsts])
                np.testing.assert_allclose(ranks, 1 / 10, atol=1e-9)


def test_the_code_answers_with_the_exact_law():
    """12,000 draws; a false alarm needs 5.3 standard errors (1e−7), and 30 % less noise is further away."""
    values, sigma, draws = [30, 12, 25, 3], 10.0, 12_000
    rng = np.random.default_rng(8)
    found = {}
    for factor in (1.0, 0.7):
        noise = DecisionNoise("laplace", factor * sigma, 1)
        found[factor] = np.mean([among_largest(noise.add_to(values, rng), 1) for _ in range(draws)])
    steps = np.arange(-600, 601)
    masses = np.exp(-np.abs(steps) / sigma)
    masses /= masses.sum()
    below = [np.cumsum(masses)[np.clip(steps + values[0] - other - 1 + 600, 0, 1200)] for other in values[1:]]
    expected = float(np.sum(masses * np.prod(below, axis=0)))
    error = math.sqrt(expected * (1 - expected) / draws)
    assert abs(found[1.0] - expected) < 5.3 * error
    assert abs(found[0.7] - expected) > 5.3 * error


def test_places_among_equals_are_drawn_evenly():
    places = np.bincount([rank_of_first([5, 5, 5, 9, 1], rng) for rng in map(np.random.default_rng, range(3000))])
    assert places[:2].tolist() == [0, 0]
    assert np.all(np.abs(places[2:5] - 1000) < 5.3 * math.sqrt(3000 * 2 / 9))


@pytest.mark.parametrize(
    "budget",
    [dpm.PureDP(0.3), dpm.ApproxDP(1.0, 1e-6), dpm.GaussianDP(1.0), dpm.ZeroConcentratedDP(0.5), dpm.RenyiDP(4.0, 0.5)],
)
@pytest.mark.parametrize("pvalue", [False, True])
def test_what_is_promised_keeps_the_budget_and_uses_it(budget, pvalue):
    noise = decision_noise(TwoSampleStatistic(kernel_of(PLANE), (20, 30)), budget, 0.05, pvalue=pvalue)
    promise = noise.guarantee("record")
    assert promise.fits(budget, strict=True)
    less = DecisionNoise(noise.law, noise.sigma * 0.7, noise.shift, noise.pvalue).guarantee("record")
    assert not less.fits(budget)


def test_gaussian_noise_is_for_gaussian_budgets():
    statistic = TwoSampleStatistic(kernel_of(PLANE), (20, 30))
    assert decision_noise(statistic, dpm.GaussianDP(1.0), 0.05).law == "gaussian"
    assert decision_noise(statistic, dpm.PureDP(1.0), 0.05).law == "laplace"


@pytest.mark.parametrize("sizes", [(2, 3), (100, 100), (99_999, 100_000), (1_000_000, 999_983), (2, 3_000_000)])
def test_lattices_leave_room_for_exact_sums(sizes):
    statistic = TwoSampleStatistic(kernel_of(PLANE), sizes)
    n, m = sizes
    largest, weight = 2**statistic.exponent, math.lcm(n, m)
    assert (n + m) * largest <= 2**53
    assert 2 * weight * largest * 2 < 2**62
    assert 2 * (weight // min(n, m) * largest) ** 2 <= statistic.sensitivity**2


def test_draws_of_groups_are_subsets_of_the_right_size():
    chosen = draw_groups((5, 8), 50, 1)
    assert chosen[0].tolist() == [1] * 5 + [0] * 8
    assert chosen[-1].all()
    assert np.all(chosen[:-1].sum(axis=1) == 5)
    assert len({tuple(row) for row in chosen.tolist()}) > 40
