"""Differences of two groups: what they promise, what they say, and whether intervals and regions hold."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import GaussianDP, NotOnManifoldError, PureDP
from dpmanifolds.auditing.front_door import overheard_noise
from dpmanifolds.releases.difference import carry_difference, difference_derivatives
from dpmanifolds.releases.length import SeenErrors, difference_interval, interval_holds, length_interval
from tests.selection import thorough

PLANE = dpm.Euclidean(2)
BALL = dpm.Ball(PLANE, np.zeros(2), 4.0)


def groups(n=300, m=200, gap=(0.5, 0.0), seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)), rng.standard_normal((m, 2)) + gap


def test_in_a_flat_space_the_region_is_that_of_two_independent_means():
    x, y = groups()
    found = dpm.private_difference(x, y, BALL, GaussianDP(2.0), rng=0)
    parts = [part.sampling + part.noise for part in found.law.parts]
    noises = [release.spread.mean**2 for release in found.releases]
    assert np.allclose(found.vector, found.second.value - found.first.value)
    for part, noise, n in zip(parts, noises, (300, 200), strict=True):
        # the records have variance 1 in each direction
        assert np.allclose(part, (1 / n + noise) * np.eye(2), atol=0.5 / n)
    assert np.allclose(found.law.covariance, parts[0] + parts[1])
    assert not found.zero_inside
    low, high = found.interval
    assert low < 0.5 < high


@thorough("pairs", 60, 400)
def test_the_length_and_the_vector_are_covered_and_would_not_be_with_half_the_covariance(pairs):
    # seeded; a true 95 % has fewer than 46 of 60, and 354 of 400, once in 1,000,000 times
    least, hits, short = {60: 46, 400: 354}[pairs], np.zeros(3), 0
    for seed in range(pairs):
        x, y = groups(60, 80, seed=seed)
        found = dpm.private_difference(x, y, BALL, GaussianDP(1.0), rng=seed)
        low, high = found.interval
        hits += [found.contains([0.5, 0.0]), low <= 0.5 <= high, not found.contains([9.0, 0.0])]
        gap = found.vector - [0.5, 0.0]
        short += bool(gap @ np.linalg.solve(0.49 * found.shape, gap) <= 1)
    assert hits.min() >= least
    assert short < 0.88 * pairs


@pytest.mark.parametrize(
    ("space", "center"), [(dpm.Sphere(2), np.array([0.0, 0.0, 1.0])), (dpm.SPD(2), np.eye(2))], ids=repr
)
def test_derivatives_of_the_difference_are_those_of_the_distance(space, center):
    place, other = np.full(space.dim, 0.1), np.full(space.dim, -0.2)
    base = space.move(center, 0.3 * np.eye(space.dim)[0])
    first, second = difference_derivatives(space, center, place, base, other)
    to, end = space.move(center, place), space.move(base, other)
    vector = carry_difference(space, to, end, to)
    assert np.allclose(vector, space.log_coordinates(to, end))
    for derivative, which in ((first, 0), (second, 1)):
        slopes = []
        for axis in 1e-5 * np.eye(space.dim):
            ends = [
                space.dist(space.move(center, place + s * axis), end)
                if which == 0
                else space.dist(to, space.move(base, other + s * axis))
                for s in (1, -1)
            ]
            slopes.append((ends[0] - ends[1]) / 2e-5)
        assert np.allclose(vector / np.linalg.norm(vector) @ derivative, slopes, atol=1e-6)


def test_the_interval_of_a_long_vector_is_normal_and_that_of_a_short_one_begins_at_zero():
    errors = SeenErrors.of(np.random.default_rng(0).standard_normal((200_000, 3)) * 0.1, np.eye(3)[0])
    low, high = length_interval(2.0, errors, 0.95)
    # |ℓu + e| ≈ ℓ + e₁ + (e₂² + e₃²)/2ℓ
    assert (low, high) == pytest.approx((2 - 0.196 - 0.005, 2 + 0.196 - 0.005), abs=0.003)
    low, high = length_interval(0.02, errors, 0.95)
    assert low == 0.0
    assert 0.1 < high < 0.35


def test_a_length_is_asked_about_as_the_interval_answers():
    difference = dpm.private_difference(*groups(80, 60), BALL, GaussianDP(3.0), rng=3)
    for vector in (difference.vector, 0.05 * difference.vector):
        law = difference.law
        low, high = difference_interval(law, vector, 0.95)
        asked = np.linspace(0, 1.5 * high, 40)
        held = [interval_holds(law, vector, 0.95, length, 40_000) for length in asked]
        assert held == [bool(low <= length <= high) for length in asked]
        assert any(held)
        assert not all(held)


def test_a_record_of_one_group_moves_no_sum_of_the_other():
    x, y = groups(30, 20)
    moved = x.copy()
    moved[3] = [9.0, -9.0]
    said = []
    for first in (x, moved):
        with overheard_noise() as tap:
            made = dpm.private_difference(first, y, BALL, GaussianDP(1.0), rng=0)
        said.append(tap.said)
    assert made.guarantee.unit == "record within group"
    # one sum for each group, in this order
    assert len(said[0]) == 2
    assert not np.array_equal(said[0][0].values, said[1][0].values)
    assert np.array_equal(said[0][1].values, said[1][1].values)


@pytest.mark.parametrize("budget", [PureDP(2.0), GaussianDP(1.0), dpm.ApproxDP(1.0, 1e-6)])
def test_people_in_both_groups_share_the_budget(budget):
    x, y = groups()
    apart = dpm.private_difference(x, y, BALL, budget, rng=0)
    shared = dpm.private_difference(x, y, BALL, budget, disjoint=False, unit="person", rng=0)
    assert apart.guarantee.fits(budget)
    assert shared.guarantee.fits(budget)
    assert shared.guarantee.unit == "person"
    assert dpm.compose(*(release.guarantee for release in shared.releases)).fits(budget)
    assert shared.first.spread.mean > 1.3 * apart.first.spread.mean


def test_words_and_json():
    x, y = groups()
    found = dpm.private_difference(x, y, BALL, GaussianDP(1.0), rng=0)
    text = found.summary()
    assert "Zero is outside of the 95% region" in text
    assert "neighbours differ in one record within group" in text
    assert "independent draws" in text
    again = dpm.Difference.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert repr(again) == repr(found)
    wide = found.at_level(0.999999)
    assert wide.interval[1] > found.interval[1]
    none = dpm.private_difference(x, x[:200], BALL, GaussianDP(0.3), rng=1)
    assert none.zero_inside
    assert none.interval[0] == 0.0
    assert "do not show that the populations differ" in none.summary()
    for broken in ("{}", "[", found.first.to_json()):
        with pytest.raises(dpm.ArgumentError):
            dpm.Difference.from_json(broken)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"x": np.zeros((0, 2))}, dpm.DPManifoldsError, "^x "),
        ({"y": np.zeros((1, 2))}, dpm.ArgumentError, "^y a spread needs at least 2 records"),
        ({"y": np.zeros((9, 3))}, dpm.DPManifoldsError, "shape"),
        ({"y": np.full((9, 2), np.inf)}, NotOnManifoldError, "finite"),
        ({"domain": dpm.WholeSpace(dpm.Sphere(2), [0.0, 0.0, 1.0])}, dpm.ArgumentError, "Ball"),
        ({"level": 1.0}, dpm.ArgumentError, "level"),
        ({"level": np.nan}, dpm.ArgumentError, "level"),
        ({"disjoint": "yes"}, dpm.ArgumentError, "disjoint"),
        ({"budget": None}, dpm.ArgumentError, "budget"),
    ],
)
def test_bad_input_is_refused_with_words_and_costs_nothing(change, error, words, tmp_path):
    x, y = groups(9, 9)
    ledger = dpm.ledger.Ledger(tmp_path / "a.ledger")
    ledger.open_dataset("clinic", GaussianDP(1.0), unit="record within group")
    usual = {"x": x, "y": y, "domain": BALL, "budget": GaussianDP(1.0), "ledger": ledger, "dataset": "clinic"}
    with pytest.raises(error, match=words), overheard_noise() as tap:
        dpm.private_difference(**{**usual, **change})
    assert not tap.said
    dpm.private_difference(**usual)


@pytest.mark.filterwarnings("ignore::dpmanifolds.NoiseExceedsDomainWarning")
def test_means_too_far_apart_for_floating_point_are_saved_and_show_no_difference():
    space = dpm.SPD(4)
    ball = dpm.Ball(space, np.eye(4), radius=200.0)
    x, y = (space.random_point(100, rng=seed) for seed in (1, 2))
    made = [dpm.private_difference(x, y, ball, dpm.GaussianDP(0.01), rng=seed) for seed in range(8)]
    untold = [each for each in made if not np.isfinite(each.length)]
    assert untold
    for each in untold:
        assert each.zero_inside
        assert dpm.Difference.from_json(each.to_json()).first == each.first


@pytest.mark.parametrize("ask", [dpm.private_difference, dpm.private_two_sample_test])
def test_one_object_as_both_groups_is_refused_before_anything_is_drawn(ask):
    x, rng = groups()[0], np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(dpm.ArgumentError, match=r"^y is x itself"):
        ask(x, x, BALL, GaussianDP(1.0), rng=rng)
    assert rng.bit_generator.state == before
    shared = dpm.private_difference(x, x, BALL, GaussianDP(1.0), disjoint=False, rng=rng)
    assert shared.guarantee.unit == "record"


def test_one_person_in_two_spellings_is_refused():
    x, y = groups(9, 9)
    names = ["ann", "ann ", *"bcdefgh"]
    others = [f"other {name}" for name in "bcdefghij"]
    for ask in (
        lambda: dpm.private_mean_and_spread(x, BALL, GaussianDP(1.0), group_by=names),
        lambda: dpm.private_geodesic_regression(
            x, np.arange(9.0), BALL, GaussianDP(1.0), covariate_bounds=(0, 9), group_by=names
        ),
        lambda: dpm.private_difference(x, y, BALL, GaussianDP(1.0), group_by=(names, others)),
    ):
        with pytest.raises(dpm.ArgumentError, match="group_by spells a name in two ways"):
            ask()
    with pytest.raises(dpm.ArgumentError, match="group_by names somebody in both groups"):
        dpm.private_difference(x, y, BALL, GaussianDP(1.0), group_by=(["ann", *others[1:]], ["ann ", *"bcdefghi"]))


@pytest.mark.filterwarnings("ignore::dpmanifolds.NoiseExceedsDomainWarning")
def test_a_person_with_a_record_given_twice_counts_once():
    x, y = groups(40, 30)
    twice = np.concatenate([x, x])
    names = [f"x{i}" for i in range(40)]
    once = dpm.private_mean_and_spread(x, BALL, GaussianDP(1.0), group_by=names, rng=0)
    made = dpm.private_mean_and_spread(twice, BALL, GaussianDP(1.0), group_by=names + names, rng=0)
    assert (made.n, made.guarantee.unit) == (40, "person")
    # the same noise; a person's mean square is rounded to a finer lattice than a record's
    np.testing.assert_allclose(made.coordinates, once.coordinates, atol=1e-6)
    found = dpm.private_difference(
        twice, y, BALL, GaussianDP(1.0), group_by=(names + names, [f"y{i}" for i in range(30)]), rng=0
    )
    assert (found.first.n, found.guarantee.unit) == (40, "person within group")
