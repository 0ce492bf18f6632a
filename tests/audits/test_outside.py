"""Auditors that others wrote, on a few releases; `make auditors` has them all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audits.doors import DOORS
from audits.outside import ATTACKED, FAULTS, attack_draws, object_to

LABELS = {row.label: row for row in DOORS}
SOME = [
    "private_mean, one step on Sphere(2, 1.0), pure",
    "private_mean, refine=1 on Euclidean(1), pure",
    "private_class_means, private labels, both changed on Sphere(2, 1.0), Gaussian",
    "private_covariance, one vector more on Euclidean(2), pure",
]


def test_what_draws_are_attacked_for_are_rows_of_the_table():
    assert set(ATTACKED) <= set(LABELS)


@pytest.mark.needs("dp_recorder")
@pytest.mark.parametrize("label", SOME)
def test_dp_recorder_finds_nothing_and_30_percent_less_noise(label):
    pytest.importorskip("dp_recorder")
    opened = LABELS[label].opened()
    assert object_to(*opened) is None
    assert "> Sens" in object_to(*opened, 0.7)


@pytest.mark.needs("dp_recorder")
@pytest.mark.parametrize("name", list(FAULTS))
def test_dp_recorder_finds_planted_faults(name):
    pytest.importorskip("dp_recorder")
    row = replace(LABELS["private_mean, refine=1 on Euclidean(1), pure"], call=FAULTS[name])
    assert object_to(*row.opened()) is not None


@pytest.mark.needs("dp_auditorium")
def test_dp_auditorium_finds_nothing_and_30_percent_less_noise():
    """10,000 draws of each; 1e-5 is the probability that it finds what is not there."""
    pytest.importorskip("dp_auditorium")
    row = LABELS["private_clipped_share on SPD(2, metric='affine-invariant'), Gaussian"]
    assert not attack_draws(row, "network", 10_000)[1]
    assert attack_draws(row, "network", 10_000, 0.7)[1]
