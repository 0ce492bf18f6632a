"""Class means with a public sample of each class: a body for each, one promise for all."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.auditing.front_door import overheard_noise
from dpmanifolds.releases import private_class_means

DIM, BALL = 6, dpm.Ball(dpm.Euclidean(6), np.zeros(6), radius=8.0)
# one class spreads along the first coordinates, the other along the last: their bodies have other axes
WIDE, TALL = np.geomspace(2.0, 0.02, DIM), np.geomspace(0.02, 0.5, DIM)


def records(n=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    noise = rng.standard_normal((n, DIM)) * np.where(labels[:, None] == 0, WIDE, TALL)
    return noise + np.outer(2 * labels - 1, np.full(DIM, 0.3)), labels


PUBLIC = records(120, seed=1)


def means(budget, points=None, labels=None, **given):
    usual = records()
    points, labels = usual[0] if points is None else points, usual[1] if labels is None else labels
    options = {"classes": [0, 1], "public_sample": PUBLIC, "rng": 0} | given
    return private_class_means(points, labels, BALL, budget, **options)


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(
    "budget", [dpm.GaussianDP(1.0), dpm.PureDP(1.0), dpm.ApproxDP(1.0, 1e-6), dpm.ZeroConcentratedDP(0.5)]
)
def test_each_class_has_its_body_and_all_keep_the_budget(budget, private):
    found = means(budget, private_labels=private)
    assert found.guarantee.fits(budget, strict=True)
    assert all(release.public is not None and release.guarantee == found.guarantee for release in found.releases)
    assert repr(found.releases[0].domain) != repr(found.releases[1].domain)
    assert found.guarantee.unit == ("record" if private else "record within class")


def test_it_errs_less_than_the_ball_and_than_public_records_alone():
    """Averages over 20 releases of 300 records, errors of both classes."""
    points, labels = records()
    truth = np.stack([points[labels == label].mean(axis=0) for label in (0, 1)])
    budget = dpm.GaussianDP(1.0)
    shaped, ball = (
        np.mean([
            np.linalg.norm(means(budget, private_labels=True, rng=seed, public_sample=sample).means - truth)
            for seed in range(20)
        ])
        for sample in (PUBLIC, None)
    )  # fmt: skip
    alone = np.linalg.norm([PUBLIC[0][PUBLIC[1] == label].mean(axis=0) - truth[label] for label in (0, 1)])
    assert shaped < 0.6 * ball
    assert shaped < alone


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("budget", [dpm.GaussianDP(1.0), dpm.PureDP(1.0)])
@pytest.mark.parametrize("changed", ["value", "label", "both"])
def test_one_record_moves_the_sums_of_two_bodies_by_no_more_than_is_charged(changed, budget):
    """The integers that noise is added to, of two neighbours, in units of that noise."""
    points, labels = records(40)
    other, relabelled = points.copy(), labels.copy()
    points[-1] = [90.0, 0, 0, 0, 0, 0]
    other[-1] = points[-1] if changed == "label" else -points[-1]
    if changed != "value":
        relabelled[-1] = 1 - labels[-1]
    with overheard_noise() as one:
        means(budget, points, labels, private_labels=True)
    with overheard_noise() as two:
        means(budget, other, relabelled, private_labels=True)
    lengths = [
        np.linalg.norm((first.values - second.values).astype(float)) / float(first.law.sigma)
        for first, second in zip(one.said, two.said, strict=True)
    ]
    spent = sum(lengths) if budget.bounded_loss else np.linalg.norm(lengths)
    assert 0.3 < spent <= 1 + 1e-9


def test_the_public_part_does_not_look_at_private_records():
    first, second = (means(dpm.GaussianDP(1.0), points, private_labels=True) for points in (None, -5 * records()[0]))
    for one, other in zip(first.releases, second.releases, strict=True):
        assert (one.sigma, repr(one.domain)) == (other.sigma, repr(other.domain))


def test_the_ball_is_kept_where_it_is_expected_to_do_better():
    many, labels = np.zeros((200_000, 1)), np.arange(200_000) % 2
    sample = np.tile([[-1.0], [1.0], [0.5]], (2, 1)), np.repeat([0, 1], 3)
    line = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    found = private_class_means(many, labels, line, dpm.GaussianDP(5.0), public_sample=sample, rng=0)
    assert all(release.public is None for release in found.releases)


def test_curved_records_and_persons():
    space = dpm.SPD(2)
    ball = dpm.Ball(space, np.eye(2), radius=3.0)
    X = np.concatenate([space.random_point(200, rng=0), 2 * space.random_point(200, rng=1)])
    y = np.repeat(["a", "b"], 200)
    sample = np.concatenate([space.random_point(40, rng=2), 2 * space.random_point(40, rng=3)])
    model = dpm.PrivateMDM(ball, dpm.GaussianDP(1.0), public_sample=(sample, np.repeat(["a", "b"], 40)), random_state=0)
    model.fit(X, y, group_by=np.arange(400) // 4)
    assert model.guarantee_.unit == "person within class"
    assert model.means_.shape == (2, 2, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"public_sample": PUBLIC[0]}, "pair"),
        ({"public_sample": (PUBLIC[0], PUBLIC[1][:-1])}, "label for each"),
        ({"public_sample": (PUBLIC[0], PUBLIC[1] + 1)}, "label for each"),
        ({"public_sample": (PUBLIC[0], np.zeros(120))}, "public_sample"),
        ({"classes_per_person": 2, "group_by": np.arange(300)}, "one class each"),
        ({"steps": 2}, "one step"),
    ],
)
def test_wrong_use_is_told_before_anything_is_drawn(given, message):
    with overheard_noise() as tap, pytest.raises(dpm.DPManifoldsError, match=message):
        means(dpm.GaussianDP(1.0), private_labels=True, **given)
    assert tap.said == []
