"""Releases for persons with several records, attacked through the whole of `private_mean`."""

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, GaussianDP, PureDP
from dpmanifolds.auditing import Claim, lower_bound

SPACE = dpm.Euclidean(1)
BALL = dpm.Ball(SPACE, np.zeros(1), 1.0)


def released(budget, place, visits, count):
    """Means of ten persons with two visits at the centre and of one with so many visits at a place."""
    records = np.concatenate([np.zeros((20, 1)), np.full((visits, 1), place)])
    names = np.concatenate([np.repeat(np.arange(10), 2), np.full(visits, 10)])
    return np.array([float(dpm.private_mean(records, BALL, budget, group_by=names).value[0]) for _ in range(count)])


@pytest.mark.long
@pytest.mark.parametrize(
    ("budget", "weaker", "claim"),
    [
        (PureDP(1.0), PureDP(1 / 0.7), Claim("ε", 1.0)),
        (GaussianDP(1.0), GaussianDP(1 / 0.7), Claim("μ", 1.0)),
        (ApproxDP(1.0, 1e-2), ApproxDP(1.6, 1e-2), Claim("ε", 1.0, 1e-2)),
    ],
    ids=["pure", "gaussian", "approximate"],
)
def test_a_person_with_seven_visits_hides_as_well_as_one_with_a_single_record(budget, weaker, claim):
    """One person moves from r with seven visits to −r with one, the most a person can do.

    The release in one dimension is an increasing function of a noisy number, so that thresholds are the best attack.
    False alarm 1e−6; 30 % too little noise (a promise of 1/0.7, sold as 1) must be caught at 95 %.
    """
    count = 6000
    honest = [released(budget, place, visits, count) for place, visits in ((1.0, 7), (-1.0, 1))]
    assert lower_bound(*honest, claim, confidence=1 - 1e-6).value <= claim.value
    assert lower_bound(*honest, claim).value >= 0.6 * claim.value
    cheap = [released(weaker, place, visits, count) for place, visits in ((1.0, 7), (-1.0, 1))]
    assert lower_bound(*cheap, claim).value > claim.value
