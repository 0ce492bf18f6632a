"""Attacks on decisions: nothing above its claim, and noise that is too small is caught."""

from __future__ import annotations

import pytest

from audits import decisions
from audits.decisions import CAUGHT, DECISIONS, SEEDS, weaker_noise
from dpmanifolds.sums.decision_noise import DecisionNoise
from tests.selection import thorough


@pytest.mark.parametrize("row", DECISIONS, ids=lambda row: f"{row.function} {row.budget!r}")
@thorough("draws", 100, 200)
def test_no_decision_breaks_its_promise(row, draws):
    """A false alarm has a probability of at most 1e−6."""
    assert not row.audit(draws=draws, rng=0, confidence=1 - 1e-6).flagged


def test_far_too_little_noise_is_caught_by_few_draws():
    assert DECISIONS[0].audit(draws=400, noise_factor=0.2, rng=1).flagged


@pytest.mark.long
@pytest.mark.parametrize("row", CAUGHT, ids=lambda row: f"{row.function} {row.budget!r}")
def test_thirty_per_cent_too_little_noise_is_caught(row):
    draws = 16_000 * row.effort
    assert not row.audit(draws=draws, rng=SEEDS[1.0], confidence=1 - 1e-6).flagged
    assert row.audit(draws=draws, noise_factor=0.7, rng=SEEDS[0.7]).flagged


def test_noise_is_made_weaker_only_meanwhile():
    usual = DecisionNoise.add_to
    with weaker_noise(0.5):
        assert DecisionNoise.add_to is not usual
    assert DecisionNoise.add_to is usual


def test_the_row_is_written_beside_the_page_and_its_summary_between_the_markers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(decisions, "DECISIONS", DECISIONS[:1])
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- decision table -->\nSTALE\n<!-- end of decision table -->\nb\n", encoding="utf-8")
    decisions.main(["--draws", "200", "--write", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "STALE" not in text
    assert text.count("| private_two_sample_test | 1 |") == 1
    assert "private_two_sample_test, linear kernel" in (tmp_path / "tables" / "decision_table.csv").read_text("utf-8")
    assert text.endswith("<!-- end of decision table -->\nb\n")
    assert "private_two_sample_test" in capsys.readouterr().out
