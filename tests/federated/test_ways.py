"""The three ways predicted: against what their releases tell, and arguments that are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    ArgumentError,
    GaussianDP,
    NotAvailableError,
    PureDP,
    combine,
    plan_sites,
    private_mean,
    run_study,
)
from tests.federated.parties import FLAT, NAMES, split_sites, study


@pytest.mark.parametrize("sizes", [[50, 50, 50, 50], [140, 20, 20, 20]], ids=str)
def test_what_is_predicted_is_what_releases_of_each_way_tell(sizes):
    """Within 2 %, and in fact to rounding: both are the length of the same Gaussian noise."""
    ways = plan_sites(FLAT, sizes, GaussianDP(1.0), tolerated=1)
    points = np.zeros((200, 3))
    parts = np.split(points, np.cumsum(sizes)[:-1])
    told = {"mechanism": "wrapped-gaussian", "refine": 0, "rng": 0}
    central = private_mean(points, FLAT, GaussianDP(1.0), **told)
    alone = combine(
        [private_mean(part, FLAT, GaussianDP(1.0), **{**told, "rng": seed}) for seed, part in enumerate(parts)]
    )
    secure = run_study(study(tolerated=1), split_sites(points))
    plain = run_study(study(transport="plain"), split_sites(points))
    for predicted, release in (
        (ways.central, central),
        (ways.secure, secure),
        (ways.plain, plain),
        (ways.alone, alone),
    ):
        assert release.expected_error.mean == pytest.approx(predicted, rel=1e-6)


def test_wrong_plans_are_told():
    with pytest.raises(ArgumentError, match="counts"):
        plan_sites(FLAT, [], GaussianDP(1.0))
    with pytest.raises(ArgumentError, match="counts"):
        plan_sites(FLAT, [10, 0], GaussianDP(1.0))
    with pytest.raises(ArgumentError, match="tolerated"):
        plan_sites(FLAT, [10] * len(NAMES), GaussianDP(1.0), tolerated=4)
    with pytest.raises(NotAvailableError, match="unbounded"):
        plan_sites(FLAT, [10, 10], PureDP(1.0))
