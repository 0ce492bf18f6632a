"""A direction between two classes: one signed sum, labels protected, charged once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dpmanifolds as dpm
from dpmanifolds import SPD, Ball, Euclidean, GaussianDP, PureDP
from dpmanifolds.auditing.front_door import overheard_noise
from dpmanifolds.releases.discriminant import Contrasts, private_discriminant

BALL = Ball(Euclidean(3), np.zeros(3), radius=2.0)
SHARES = (0.3, 0.55, 0.15)
FALSE_ALARM = 1e-6


def records(n=400, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    return 0.3 * rng.standard_normal((n, 3)) + np.outer(2 * labels - 1, [0.8, 0.0, 0.0]), labels


def test_the_direction_is_that_between_the_class_means():
    points, labels = records()
    found = private_discriminant(points, labels, BALL, GaussianDP(2.0), classes=(0, 1), rng=0)
    assert found.direction[0] > 0.98
    assert np.linalg.norm(found.direction) == pytest.approx(1.0)
    assert abs(found.threshold) < 0.2
    assert np.mean((found.scores(points) > found.threshold) == labels) > 0.97


@pytest.mark.parametrize("budget", [GaussianDP(1.0), PureDP(1.0), dpm.ApproxDP(1.0, 1e-5), dpm.ZeroConcentratedDP(0.5)])
def test_all_stages_together_keep_the_budget(budget):
    found = private_discriminant(*records(), BALL, budget, classes=(0, 1), rng=0)
    assert found.guarantee.fits(budget, strict=True)
    assert len(found.releases) == 3


@pytest.mark.parametrize("changed", ["value", "label", "both"])
def test_a_pure_promise_is_the_sum_of_what_one_record_moves(changed):
    """Lengths in units of the scale of each sum's Laplace noise add up to ε at most, and nearly to it."""
    points, labels = records(20)
    other, relabelled = points.copy(), labels.copy()
    points[-1] = [9.0, 0.0, 0.0]
    other[-1] = points[-1] if changed == "label" else [-9.0, 0.0, 0.0]
    if changed != "value":
        relabelled[-1] = 1 - labels[-1]
    with overheard_noise() as one:
        private_discriminant(points, labels, BALL, PureDP(1.0), classes=(0, 1), rng=0)
    with overheard_noise(forced=one.said) as two:
        private_discriminant(other, relabelled, BALL, PureDP(1.0), classes=(0, 1))
    lost = [
        np.linalg.norm((first.values - second.values).astype(float)) / float(first.law.sigma)
        for first, second in zip(one.said, two.said, strict=True)
    ]
    assert sum(lost) <= 1 + 1e-9
    if changed == "value":
        assert sum(lost) > 0.9


@pytest.mark.parametrize("helped", [False, True])
@pytest.mark.parametrize("changed", ["value", "label", "both"])
def test_one_record_moves_no_sum_by_more_than_its_noise_was_made_for(changed, helped):
    """The integers that noise is added to, of two neighbours, in exact arithmetic, with and without public ones."""
    points, labels = records(20)
    given = {"classes": (0, 1), "public": one_subject([0.8, 0.0, 0.0]) if helped else None}
    other, relabelled = points.copy(), labels.copy()
    points[-1] = [9.0, 0.0, 0.0]
    other[-1] = points[-1] if changed == "label" else [-9.0, 0.0, 0.0]
    if changed != "value":
        relabelled[-1] = 1 - labels[-1]
    with overheard_noise() as one:
        private_discriminant(points, labels, BALL, GaussianDP(1.0), rng=0, **given)
    with overheard_noise(forced=one.said) as two:
        private_discriminant(other, relabelled, BALL, GaussianDP(1.0), **given)
    assert len(one.said) == 3
    for first, second, share in zip(one.said, two.said, SHARES, strict=True):
        moved = (first.values - second.values).astype(float)
        assert np.linalg.norm(moved) <= np.sqrt(share) * float(first.law.sigma) * (1 + 1e-9)
        if changed == "value":
            assert np.linalg.norm(moved) > 0.9 * np.sqrt(share) * float(first.law.sigma)


def test_the_contrast_has_the_noise_that_it_says():
    """600 numbers of noise: their sum of squares keeps the true scale and rejects one that is off by 30 %."""
    points, labels = np.zeros((50, 3)), np.arange(50) % 2
    drawn, scale = [], None
    for seed in range(200):
        found = private_discriminant(points, labels, BALL, GaussianDP(1.0), classes=(0, 1), rng=seed)
        drawn.append(found.releases[1].coordinates)
        scale = found.releases[1].sigma
    assert scale == pytest.approx(2 * 2.0 / (50 * np.sqrt(SHARES[1])), rel=1e-6)
    noise = np.concatenate(drawn)

    def p_value(sigma):
        law, square = stats.chi2(noise.size), np.sum((noise / sigma) ** 2)
        return 2 * min(law.cdf(square), law.sf(square))

    assert p_value(scale) > FALSE_ALARM
    assert p_value(0.7 * scale) < FALSE_ALARM
    assert p_value(1.3 * scale) < FALSE_ALARM


def test_public_contrasts_are_believed_as_far_as_subjects_agree():
    agreeing = Contrasts(0.1, 1.0, np.tile([0.5, 0.0, 0.0], (5, 1)), np.zeros((10, 3)), np.zeros(5), 0.5)
    expected, variance = agreeing.expect()
    assert expected == pytest.approx([0.5, 0.0, 0.0])
    assert variance == pytest.approx(0.0)
    apart = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    opposed = Contrasts(0.1, 1.0, apart, np.zeros((10, 3)), np.zeros(4), 0.5)
    expected, variance = opposed.expect()
    assert np.linalg.norm(expected) == pytest.approx(0.0)
    assert variance > 0.3


def test_one_public_subject_is_believed_as_far_as_noise_asks_for_it():
    expected, variance = one_subject([0.6, 0.0, 0.0]).expect()
    assert expected == pytest.approx([0.6, 0.0, 0.0])
    assert variance == pytest.approx(0.09 / 3)


def one_subject(contrast, spread=(0.3, 0.3, 0.3)):
    """A subject with as many records of either class, which spread in each coordinate as told."""
    around = np.random.default_rng(3).standard_normal((2000, 3)) * np.asarray(spread)
    return Contrasts(0.5, 2.0, np.array([contrast]), around, np.zeros(1), 0.5)


def test_coordinates_in_which_public_records_spread_count_less():
    """Fisher's direction, with half of the covariance at its mean: (0.5C + 0.5·tr C/3)⁻¹c."""
    labels, spread = np.arange(20_000) % 2, np.array([0.6, 0.1, 0.1])
    points = np.random.default_rng(4).standard_normal((20_000, 3)) * spread
    points += np.outer(2 * labels - 1, [0.3, 0.3, 0.0])
    public = one_subject([0.3, 0.3, 0.0], spread)
    found = private_discriminant(points, labels, BALL, GaussianDP(2.0), classes=(0, 1), public=public, rng=0)
    wanted = np.array([0.3, 0.3, 0.0]) / (0.5 * spread**2 + 0.5 * np.mean(spread**2))
    assert found.direction @ wanted / np.linalg.norm(wanted) > 0.99


def test_noise_in_the_sizes_of_classes_hardly_moves_the_threshold():
    """It went to 2.6 in some of these draws, where classes are at ±0.8: the noisy share was taken at its word."""
    points, labels = records(100)
    public = one_subject([0.8, 0.0, 0.0])
    thresholds = [
        private_discriminant(points, labels, BALL, GaussianDP(0.7), classes=(0, 1), public=public, rng=seed).threshold
        for seed in range(60)
    ]
    assert max(np.abs(thresholds)) < 0.8


def test_the_ledger_is_charged_once_and_a_refusal_draws_nothing(tmp_path):
    ledger = dpm.Ledger(tmp_path / "account.sqlite")
    ledger.open_dataset("clinic", GaussianDP(1.2))
    options = {"classes": (0, 1), "ledger": ledger, "dataset": "clinic"}
    private_discriminant(*records(), BALL, GaussianDP(1.0), **options)
    assert [entry.kind for entry in ledger.entries("clinic")] == ["open", "spend"]
    with overheard_noise() as tap, pytest.raises(dpm.BudgetExceededError):
        private_discriminant(*records(), BALL, GaussianDP(1.0), **options)
    assert tap.said == []
    assert len(ledger.entries("clinic")) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1, 2, 0]}, "every label"),
        ({"labels": [0, 1]}, "one entry per record"),
        ({"classes": (0,)}, "two labels"),
        ({"classes": (0, 1, 2)}, "two labels"),
        ({"shares": (0.5, 0.5)}, "three numbers"),
        ({"points": np.full((4, 3), np.nan)}, "finite"),
        ({"domain": 3}, "Ball"),
        ({"budget": 1.0}, "budget"),
    ],
)
def test_wrong_use_is_told_before_anything_is_drawn(change, message):
    given = {
        "points": np.zeros((4, 3)),
        "labels": [0, 1, 0, 1],
        "domain": BALL,
        "budget": GaussianDP(1.0),
        "classes": (0, 1),
    } | change
    with overheard_noise() as tap, pytest.raises((dpm.DPManifoldsError, TypeError), match=message):
        private_discriminant(
            given["points"],
            given["labels"],
            given["domain"],
            given["budget"],
            classes=given["classes"],
            **({"shares": given["shares"]} if "shares" in given else {}),
        )
    assert tap.said == []


def test_labels_and_records_that_are_malformed_count_inside_of_the_promise():
    points, labels = records(40)
    points[0], given = np.nan, labels.tolist()
    given[1] = None
    found = private_discriminant(points, given, BALL, GaussianDP(5.0), classes=(0, 1), on_invalid="center", rng=0)
    assert np.all(np.isfinite(found.direction))


def test_a_person_is_one_term_with_one_label():
    points, labels = records(40)
    names = np.arange(40) // 4
    with pytest.raises(dpm.ArgumentError, match="same label"):
        private_discriminant(points, labels, BALL, GaussianDP(1.0), classes=(0, 1), group_by=names)
    found = private_discriminant(points, names % 2, BALL, GaussianDP(1.0), classes=(0, 1), group_by=names, rng=0)
    assert found.guarantee.unit == "person"
    assert found.releases[0].n == 10


def test_it_works_on_a_curved_space():
    rng = np.random.default_rng(0)
    space = SPD(3)
    labels = np.arange(300) % 2
    logs = 0.2 * rng.standard_normal((300, 6)) + np.outer(2 * labels - 1, [0.5, -0.5, 0, 0, 0, 0])
    points = space.exp_coordinates(np.eye(3), logs)
    found = private_discriminant(points, labels, Ball(space, np.eye(3), 1.5), GaussianDP(1.0), classes=(0, 1), rng=0)
    assert np.mean((found.scores(points) > found.threshold) == labels) > 0.95


@pytest.mark.parametrize("share", [0.5, 0.8, 0.1])
def test_the_threshold_lies_halfway_between_the_classes_whatever_their_sizes(share):
    rng = np.random.default_rng(1)
    labels = (rng.random(20_000) < share).astype(int)
    points = 0.3 * rng.standard_normal((20_000, 3)) + np.outer(2 * labels - 1, [0.6, 0.0, 0.0])
    found = private_discriminant(points, labels, BALL, GaussianDP(2.0), classes=(0, 1), rng=0)
    middle = np.mean([found.scores(points[labels == label]).mean() for label in (0, 1)])
    assert found.threshold == pytest.approx(middle, abs=0.06)


def test_few_eigenvectors_make_up_a_contrast_of_matrices():
    """Noise in 136 numbers, two sources in it: the direction is far closer to theirs than that of the noisy sum."""
    space, rng = SPD(16), np.random.default_rng(2)
    labels = np.arange(600) % 2
    signs = np.outer(2 * labels - 1, [0.5, -0.5, *[0.0] * 14])
    points = space.exp_coordinates(
        np.eye(16), np.concatenate([signs, np.zeros((600, 120))], axis=1) + 0.05 * rng.standard_normal((600, 136))
    )
    found = private_discriminant(points, labels, Ball(space, np.eye(16), 1.0), GaussianDP(0.08), classes=(0, 1), rng=0)
    # in a frame at the base, which a Cholesky factor makes: the first two entries stay what they are
    drawn = found.releases[1].coordinates
    along = [np.linalg.norm(vector[:2]) / np.linalg.norm(vector) for vector in (found.direction, drawn)]
    assert along[0] > 0.9 > along[1] + 0.1
