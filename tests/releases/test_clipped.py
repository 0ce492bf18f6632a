"""The private share of clipped records: its law, its promise, and a ball that was chosen by looking."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

import dpmanifolds as dpm
from audits.doors import DOORS
from dpmanifolds import Ball, GaussianDP, PureDP
from dpmanifolds.privacy import Guarantee
from tests.selection import thorough

BALL = Ball(dpm.SPD(2), np.eye(2), radius=1.0)
RECORDS = np.exp(np.linspace(-1.4, 1.4, 50))[:, None, None] * np.eye(2)
OUTSIDE = np.mean(~BALL.contains(RECORDS))
HALVES = np.repeat([0, 1], 25)
SMALL = PureDP(0.5)
LOOKED_AT = {
    "mean": lambda ball, **account: dpm.private_mean(RECORDS, ball, SMALL, **account),
    "mean with a public sample": lambda ball, **account: dpm.private_mean(
        RECORDS, ball, SMALL, public_sample=RECORDS[15:35], **account
    ),
    "mean by axes": lambda ball, **account: dpm.private_mean(RECORDS, ball, SMALL, refine="axes", **account),
    "clipped share": lambda ball, **account: dpm.private_clipped_share(RECORDS, ball, SMALL, **account),
    "mean and spread": lambda ball, **account: dpm.private_mean_and_spread(RECORDS, ball, SMALL, **account),
    "median": lambda ball, **account: dpm.private_median(RECORDS, ball, SMALL, steps=2, **account),
    "logistic regression": lambda ball, **account: dpm.PrivateLogisticRegression(
        ball, SMALL, classes=[0, 1], steps=2, **account
    ).fit(RECORDS, HALVES),
}


@thorough("draws", 2400, 3000)
def test_noise_on_the_share_is_laplace_of_one_over_n_epsilon(draws):
    """Draws against the law of one record in n, by Kolmogorov and Smirnov; 0.7 of that noise is found (1e−6)."""
    wide = [dpm.private_clipped_share(RECORDS, BALL, PureDP(2.0), rng=seed).coordinates[0] for seed in range(draws)]
    for factor in (1.0, 0.7):
        law = stats.laplace(loc=OUTSIDE, scale=factor / (50 * 2.0))
        assert (stats.kstest(wide, law.cdf).pvalue > 1e-6) == (factor == 1.0)


def test_with_little_noise_it_is_the_share_of_records_outside():
    assert 0 < OUTSIDE < 1
    found = dpm.private_clipped_share(RECORDS, BALL, GaussianDP(500.0), rng=0)
    assert found.value == pytest.approx(OUTSIDE, abs=1e-3)
    assert found.sensitivity.value == pytest.approx(1 / 50)


def test_its_error_is_told_in_percent_of_the_records_whatever_the_share_is():
    """Percents of a share near 0 would be of nothing."""
    for seed in range(3):
        found = dpm.private_clipped_share(RECORDS, Ball(dpm.SPD(2), np.eye(2), radius=9.0), PureDP(1.0), rng=seed)
        assert found.error_statement.endswith("The average is 2 % of 50 records")


def test_of_a_person_it_is_the_average_of_records():
    names = np.repeat(np.arange(10), 5)
    found = dpm.private_clipped_share(RECORDS, BALL, GaussianDP(500.0), group_by=names, rng=0)
    assert (found.n, found.guarantee.unit) == (10, "person")
    assert found.value == pytest.approx(OUTSIDE, abs=2e-3)


def test_malformed_records_are_told_before_anything_is_spent(tmp_path):
    ledger = dpm.Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("study", PureDP(1.0))
    bad = RECORDS.copy()
    bad[3] = np.nan
    with pytest.raises(dpm.DPManifoldsError):
        dpm.private_clipped_share(bad, BALL, PureDP(1.0), ledger=ledger, dataset="study")
    assert ledger.spent("study") is None or ledger.remaining("study") == PureDP(1.0)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(
    "row", [row for row in DOORS if row.function == "private_clipped_share"], ids=lambda r: r.label
)
def test_an_attack_finds_no_more_than_is_promised_and_finds_too_little_noise(row):
    assert row.find_difference(rng=0) is None
    assert not row.audit(row.draws(6000), rng=1, confidence=1 - 1e-6).flagged
    assert row.audit(row.draws(6000), 0.7, rng=1).flagged


class TestLooking:
    @pytest.fixture
    def ledger(self, tmp_path):
        ledger = dpm.Ledger(tmp_path / "privacy.ledger")
        ledger.open_dataset("study", PureDP(5.0))
        return ledger

    def test_a_release_in_the_domain_that_was_entered_first_is_not_marked(self, ledger):
        dpm.validate(RECORDS, BALL, ledger=ledger, dataset="study")
        same = Ball(dpm.SPD(2), np.eye(2), radius=1.0)
        dpm.private_mean(RECORDS, same, PureDP(1.0), ledger=ledger, dataset="study")
        assert [entry.kind for entry in ledger.entries("study")] == ["open", "look", "spend"]
        assert "domain_after_look" not in ledger.entries("study")[-1].parameters
        assert ledger.remaining("study") == PureDP(4.0)
        assert ledger.verify() == 3

    @pytest.mark.parametrize("other", [Ball(dpm.SPD(2), np.eye(2), 1.5), Ball(dpm.SPD(2), 2 * np.eye(2), 1.0)])
    def test_a_release_in_another_domain_is_marked_and_warned_of(self, ledger, other):
        dpm.validate(RECORDS, BALL, ledger=ledger, dataset="study")
        dpm.validate(RECORDS, other, ledger=ledger, dataset="study")
        with pytest.warns(dpm.PrivacyLeakWarning, match="looked at with another domain"):
            dpm.private_mean(RECORDS, other, PureDP(1.0), ledger=ledger, dataset="study")
        assert ledger.entries("study")[-1].parameters["domain_after_look"] is True

    @pytest.mark.parametrize("door", LOOKED_AT.values(), ids=LOOKED_AT)
    def test_every_door_marks_another_domain_and_not_the_first(self, ledger, door):
        dpm.validate(RECORDS, BALL, ledger=ledger, dataset="study")
        with warnings.catch_warnings():
            warnings.simplefilter("error", dpm.PrivacyLeakWarning)
            door(BALL, ledger=ledger, dataset="study")
        assert "domain_after_look" not in ledger.entries("study")[-1].parameters
        with pytest.warns(dpm.PrivacyLeakWarning, match="looked at with another domain"):
            door(Ball(dpm.SPD(2), np.eye(2), 1.5), ledger=ledger, dataset="study")
        assert ledger.entries("study")[-1].parameters["domain_after_look"] is True

    def test_a_reserved_release_is_marked_too(self, ledger):
        plan = ledger.reserve("study", [Guarantee.laplace(1.0)], what="a mean")
        dpm.validate(RECORDS, BALL, ledger=ledger, dataset="study")
        wide = Ball(dpm.SPD(2), np.eye(2), 1.5)
        with pytest.warns(dpm.PrivacyLeakWarning, match="looked at with another domain"):
            dpm.privatize(np.eye(2), wide, 0.1, PureDP(1.0), ledger=plan, dataset="study")
        assert ledger.entries("study")[-1].parameters["domain_after_look"] is True

    @pytest.mark.parametrize("reserved", [False, True], ids=["ledger", "reservation"])
    def test_a_descent_in_another_domain_is_marked_and_one_on_the_whole_manifold_is_not(self, ledger, reserved):
        dpm.validate(RECORDS, BALL, ledger=ledger, dataset="study")
        wide = Ball(dpm.SPD(2), np.eye(2), 1.5)
        pays = dpm.private_median(RECORDS, wide, dpm.PureDP(1.0), steps=2).guarantee
        payer = ledger.reserve("study", [pays], what="one median") if reserved else ledger
        with pytest.warns(dpm.PrivacyLeakWarning, match="looked at with another domain"):
            dpm.private_median(RECORDS, wide, dpm.PureDP(1.0), steps=2, ledger=payer, dataset="study")
        assert ledger.entries("study")[-1].parameters["domain_after_look"] is True
        if not reserved:
            loss = dpm.losses.FrechetMedianLoss(dpm.Ball(dpm.SPD(2), np.eye(2), 1.0))
            options = {"start": np.eye(2), "steps": 2, "step_size": 0.1, "ledger": ledger, "dataset": "study"}
            dpm.private_descent(loss, RECORDS, dpm.SPD(2), dpm.PureDP(1.0), **options)
            assert "domain_after_look" not in ledger.entries("study")[-1].parameters

    def test_an_ellipsoid_of_a_public_sample_in_the_ball_that_was_entered_is_not_another_domain(self, ledger):
        public = BALL.clip(dpm.SPD(2).random_point(60, rng=7))
        records = 0.02 * np.eye(2) + dpm.SPD(2).exp(np.eye(2), 0.1 * dpm.SPD(2).log(np.eye(2), RECORDS))
        dpm.validate(records, BALL, ledger=ledger, dataset="study")
        sample = dpm.SPD(2).exp(np.eye(2), 0.1 * dpm.SPD(2).log(np.eye(2), public))
        release = dpm.private_mean(records, BALL, PureDP(1.0), public_sample=sample, ledger=ledger, dataset="study")
        assert isinstance(release.domain, dpm.Ellipsoid)
        told = ledger.entries("study")[-1].parameters
        assert told["domain"] == repr(BALL)
        assert "domain_after_look" not in told

    def test_the_domain_is_entered_before_the_look(self, ledger):
        with pytest.raises(dpm.DPManifoldsError):
            dpm.validate(RECORDS, BALL, ledger=ledger, dataset="unknown")
        with pytest.raises(dpm.ArgumentError, match="go together"):
            dpm.validate(RECORDS, BALL, ledger=ledger)


def test_records_in_other_units_are_told():
    """mm²/s under a ball for µm²/ms, and V² under one for µV²."""
    tensors = dpm.data.simulate_tensors(50, rng=0)
    report = dpm.validate(tensors, Ball.typical(dpm.SPD(3), "diffusion-tensor", unit="um2/ms"))
    assert (report.inside, len(report.outside)) == (0, 50)
    assert "diffusion-tensor in mm²/s" in str(report)
    right = dpm.validate(tensors, Ball.typical(dpm.SPD(3), "diffusion-tensor", unit="mm²/s"))
    assert (right.inside, right.remark) == (50, "")
    volts = 5e-11 * np.ones((9, 1, 1)) * np.eye(4)
    assert "eeg in V²" in str(dpm.validate(volts, Ball.typical(dpm.SPD(4), "eeg", unit="uV2")))


def test_typical_balls_hold_what_they_are_for():
    correlations = 0.9 * np.ones((6, 6)) + 0.1 * np.eye(6)
    assert Ball.typical(dpm.SPD(6), "correlation").contains(correlations[None])[0]
    assert Ball.typical(dpm.Sphere(2), "composition").radius == Ball.positive_orthant(dpm.Sphere(2)).radius
    with pytest.raises(dpm.ArgumentError, match="mm²/s or µm²/ms"):
        Ball.typical(dpm.SPD(3), "diffusion-tensor")
    with pytest.raises(dpm.ArgumentError, match="center"):
        Ball.typical(dpm.PlanarShapes(5), "landmark-shape")
