"""A ball that was forgotten is told as what it is: Python alone would say that the budget is missing."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dpmanifolds as dpm

ENTRANCES = [
    getattr(dpm, name)
    for name in dpm.__all__
    if name.startswith("private_") and "domain" in inspect.signature(getattr(dpm, name)).parameters
]


def test_every_release_of_records_is_asked():
    assert len(ENTRANCES) == 12


@pytest.mark.parametrize("release", ENTRANCES, ids=lambda release: release.__name__)
def test_a_forgotten_ball_is_told_as_one(release):
    places = list(inspect.signature(release).parameters)
    before = [np.zeros((5, 2))] * places.index("domain")
    with pytest.raises(dpm.ArgumentError, match="domain is missing: the ball where records live comes before"):
        release(*before, dpm.PureDP(1.0))


@pytest.mark.parametrize("kind", [dpm.PrivateMDM, dpm.PrivateTangentSpace, dpm.PrivateFrechetMean])
def test_a_model_without_its_ball_says_so_at_fit(kind):
    points, labels = dpm.SPD(2).random_point(20, rng=0), [0, 1] * 10
    with pytest.raises(dpm.ArgumentError, match="domain is missing"):
        kind(dpm.PureDP(1.0)).fit(points, labels)
