"""Whole releases under attack: neighbours differ in noisy sums and in nothing else, and those keep their promise.

Small sizes here, every row and pair in the long run and in docs/audits.md.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dpmanifolds as dpm
from audits.doors import DOORS
from dpmanifolds import Ball, Euclidean, GaussianDP, Hyperbolic, PureDP, Sphere, ZeroConcentratedDP
from dpmanifolds.auditing import audit_release, find_difference
from dpmanifolds.auditing.front_door import PathError, overheard_noise, remembered_plans
from dpmanifolds.releases.discriminant import private_discriminant
from tests.auditing.hard import hard_neighbours, hard_records
from tests.sums.cases import BALLS

LINE = Ball(Euclidean(1), [0.0], 1.0)
POLE = np.array([0.0, 0.0, 1.0])
GAUSSIAN, PURE = GaussianDP(1.0), PureDP(1.0)
NAMES = [0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 7]
LABELS = [0, 1] * 6
CALLS = {
    "mean": lambda x, ball, rng: dpm.private_mean(x, ball, PURE, steps=1, rng=rng),
    "two steps": lambda x, ball, rng: dpm.private_mean(x, ball, GAUSSIAN, steps=2, on_invalid="center", rng=rng),
    "lattice": lambda x, ball, rng: dpm.private_mean(
        x, ball, ZeroConcentratedDP(0.5), steps=3, numerics="lattice", on_invalid="center", rng=rng
    ),
    "add or remove": lambda x, ball, rng: dpm.private_mean(
        x, ball, GAUSSIAN, adjacency="add-remove-one", n_guess=9, on_invalid="center", rng=rng
    ),
    "persons": lambda x, ball, rng: dpm.private_mean(
        x, ball, GAUSSIAN, steps=2, group_by=NAMES, on_invalid="center", rng=rng
    ),
    "refined": lambda x, ball, rng: dpm.private_mean(
        x, ball, GAUSSIAN, refine=2, group_by=NAMES, on_invalid="center", rng=rng
    ),
    "classes": lambda x, ball, rng: dpm.private_class_means(
        x, LABELS, ball, PURE, steps=2, on_invalid="center", rng=rng
    ),
    "private classes": lambda x, ball, rng: dpm.private_class_means(
        x, LABELS, ball, GAUSSIAN, steps=2, classes=[0, 1, 2], private_labels=True, on_invalid="center", rng=rng
    ),
    "discriminant": lambda x, ball, rng: private_discriminant(
        x, LABELS, ball, GAUSSIAN, classes=(0, 1), on_invalid="center", rng=rng
    ),
    "variance": lambda x, ball, rng: dpm.private_variance(x, ball, GAUSSIAN, on_invalid="center", rng=rng),
    "variance, add or remove": lambda x, ball, rng: dpm.private_variance(
        x, ball, PURE, adjacency="add-remove-one", n_guess=5, on_invalid="center", rng=rng
    ),
}
QUICK = [row for row in DOORS if not row.adaptive and row.budget == GAUSSIAN][::2]


def differences(call, ball, share):
    """What find_difference says of a random share of all pairs of hard records."""
    rng = np.random.default_rng(0)
    with remembered_plans():
        for number, pair in enumerate(hard_neighbours(ball, 12)):
            if rng.random() < share:
                told = find_difference(lambda x, noise: call(x, ball, noise), pair.first, pair.second, rng=number)
                if told is not None:
                    yield f"{pair.description}: {told}"


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("where", ["circle", "sphere", "hyperbolic", "spd"])
@pytest.mark.parametrize("name", CALLS)
def test_neighbours_with_the_same_noisy_sums_release_the_same_bits(name, where):
    """The same path, the same noise asked for, the same warnings and errors, the same release."""
    assert list(differences(CALLS[name], BALLS[where], 0.05)) == []


@pytest.mark.long
@pytest.mark.parametrize("where", BALLS)
@pytest.mark.parametrize("name", CALLS)
def test_all_hard_neighbours_with_the_same_noisy_sums_release_the_same_bits(name, where):
    assert list(differences(CALLS[name], BALLS[where], 0.6)) == []


@pytest.mark.grid(at_most=24)
@pytest.mark.parametrize("row", DOORS, ids=lambda row: row.label)
def test_the_neighbours_of_the_table_differ_in_their_noisy_sums_alone(row):
    assert row.find_difference(rng=0) is None


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.label)
def test_a_release_keeps_its_promise_and_half_the_noise_is_seen(row):
    """2,000 draws: the alarm is at 1 − 1e−6, half of the noise is seen at 95 %."""
    assert not row.audit(2000, rng=0, confidence=1 - 1e-6).flagged
    assert row.audit(2000, rng=0).lower_bound > 0.6
    assert row.audit(2000, 0.5, rng=1).flagged


@pytest.mark.long
@pytest.mark.parametrize("row", DOORS, ids=lambda row: row.label)
def test_every_release_keeps_its_promise_and_30_percent_too_little_noise_is_seen(row):
    """16,000 draws, fewer where each costs two calls, more for pure promises of several sums; false alarm 1e−6."""
    draws = row.draws(16_000)
    assert not row.audit(draws, rng=1, confidence=1 - 1e-6).flagged
    assert row.audit(draws, 0.7, rng=2).flagged


def test_remembered_plans_change_no_bit():
    records = hard_records(BALLS["sphere"])
    points = np.stack([records["ordinary"], records["at the edge"]] * 5)

    def released():
        made = dpm.private_mean(points, BALLS["sphere"], PURE, steps=2, rng=3)
        spread = dpm.private_variance(points, BALLS["sphere"], PURE, rng=3)
        return made.to_json(), spread.to_json()

    usual = released()
    with remembered_plans():
        assert released() == released() == usual
    assert released() == usual


def test_forced_answers_are_released_as_they_were():
    points = np.zeros((10, 1))
    with overheard_noise() as tap:
        one = dpm.private_mean(points, LINE, PURE, rng=3)
    with overheard_noise(forced=tap.said) as again:
        other = dpm.private_mean(points + 0.5, LINE, PURE)
    assert np.array_equal(one.coordinates, other.coordinates)
    assert not np.array_equal(tap.said[0].values, again.said[0].values)
    unheard = dpm.private_mean(points, LINE, PURE, rng=3)
    assert np.array_equal(one.coordinates, unheard.coordinates)


def test_another_path_is_told():
    with overheard_noise() as tap:
        dpm.private_mean(np.zeros((10, 1)), LINE, PURE)
    for other in (GAUSSIAN, PureDP(2.0)):
        with pytest.raises(PathError, match="noise number 1"), overheard_noise(forced=tap.said):
            dpm.private_mean(np.zeros((10, 1)), LINE, other)
    with pytest.raises(PathError, match="2 times"), overheard_noise(forced=tap.said):
        dpm.private_class_means(np.zeros((20, 1)), [0, 1] * 10, LINE, PURE)


@pytest.mark.parametrize(
    ("leak", "told"),
    [
        (lambda x: dpm.private_mean(x, LINE, PureDP(1.0 + (x.max() > 0))), "noise number 1"),
        (lambda x: dpm.private_mean(x, Ball(Euclidean(1), [float(x.max() > 0)], 1.0), PURE), "releases"),
        (lambda x: warnings.warn("large", stacklevel=1) if x.max() > 0 else dpm.private_mean(x, LINE, PURE), ""),
        (lambda x: dpm.private_mean(x / (x.max() <= 0), LINE, PURE), "warns"),
    ],
    ids=["scale", "center", "nothing", "warning"],
)
def test_a_leak_beside_the_sums_is_found(leak, told):
    difference = find_difference(lambda x, _: leak(x), np.zeros((6, 1)), np.append(np.zeros(5), 1.0)[:, None])
    assert difference is not None
    assert told in difference


def test_a_sum_that_one_record_moves_too_far_is_flagged():
    """Every record is scaled by the largest of them: what one record does to the others is seen by 1,000 draws."""

    def released(x, rng):
        return dpm.private_mean(x / np.abs(x).max(), LINE, GAUSSIAN, rng=rng)

    records = np.full((20, 1), 0.1)
    changed = records.copy()
    changed[-1] = 1.0
    assert find_difference(released, records, changed) is None
    assert audit_release(released, records, changed, draws=1000, calls=10, rng=0).flagged


@pytest.mark.long
def test_a_thousand_draws_see_two_fifths_of_the_noise():
    """As in the docstring of `audit_release`, where 300 draws see a fifth of it."""
    ends = np.array([[0.0], [1.0]]), np.array([[0.0], [-1.0]])

    def released(x, rng):
        return dpm.private_mean(x, LINE, PURE, rng=rng)

    assert audit_release(released, *ends, draws=1000, noise_factor=0.4, rng=0).flagged


def test_calls_that_depend_on_earlier_answers_are_not_cut_short():
    ball = Ball(Hyperbolic(2), Hyperbolic(2).origin, 1.0)
    records = ball.clip(np.asarray(Hyperbolic(2).random_point(10, rng=0)))
    with pytest.raises(dpm.ArgumentError, match="earlier answers"):
        audit_release(
            lambda x, rng: dpm.private_mean(x, ball, GAUSSIAN, steps=2, rng=rng), records, records, draws=200, calls=5
        )


@pytest.mark.long
def test_two_steps_are_scored_by_what_both_neighbours_hide():
    """200 draws of each show half of the noise; the long run has the promise itself, which more draws attack."""
    ball = Ball(Sphere(2), POLE, 1.0)
    rest = np.stack([POLE] * 9)
    ends = [np.concatenate([rest, [[np.sin(angle), 0.0, np.cos(angle)]]]) for angle in (1.3, -1.3)]

    def released(x, rng):
        return dpm.private_mean(x, ball, GaussianDP(3.0), steps=2, rng=rng)

    assert audit_release(released, *ends, draws=200, noise_factor=0.5, rng=1).flagged
