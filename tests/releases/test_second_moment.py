"""Second moments of tangent coordinates: records in any form, malformed ones, which noise, what comes out."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import GaussianDP, NotOnManifoldError, PureDP
from dpmanifolds.manifolds._symmetric import from_upper_triangle
from dpmanifolds.releases.second_moment import private_tangent_moment


@pytest.mark.parametrize("form", ["array", "blocks", "function"])
def test_tangent_moments_take_records_in_any_form(form):
    space = dpm.SPD(2)
    records = space.random_point(400, rng=0)
    ball = dpm.Ball(space, np.eye(2), 2.0)
    blocks = np.array_split(records, 3)
    points = {"array": records, "blocks": blocks, "function": lambda: iter(blocks)}[form]
    one = private_tangent_moment(records, ball, PureDP(1.0), rng=0)
    other = private_tangent_moment(points, ball, PureDP(1.0), rng=0)
    assert np.array_equal(one.moment.value, other.moment.value)
    assert np.array_equal(one.base, other.base)


def test_malformed_points_raise_before_anything_is_drawn_or_count_as_the_centre():
    space = dpm.SPD(2)
    ball = dpm.Ball(space, 2 * np.eye(2), 2.0)
    spoiled = space.random_point(200, rng=0)
    mended = spoiled.copy()
    spoiled[[3, 60]] = [-np.eye(2), np.full((2, 2), np.nan)]
    mended[[3, 60]] = 2 * np.eye(2)
    with pytest.raises(NotOnManifoldError):
        private_tangent_moment(spoiled, ball, GaussianDP(1.0))
    one = private_tangent_moment(spoiled, ball, GaussianDP(1.0), on_invalid="center", rng=4)
    other = private_tangent_moment(mended, ball, GaussianDP(1.0), rng=4)
    assert np.array_equal(one.moment.value, other.moment.value)


def test_in_high_dimension_pure_noise_is_that_of_wishart_matrices():
    space = dpm.SPD(5)
    found = private_tangent_moment(space.random_point(60, rng=0), dpm.Ball(space, np.eye(5), 2.0), PureDP(1.0), rng=0)
    assert found.moment.mechanism == "wishart-difference"
    assert found.guarantee.fits(PureDP(1.0))
    assert found.moment.sigma == pytest.approx(2 * 4.0 / 60 / 0.7, rel=1e-9)


def test_the_value_is_positive_with_the_trace_and_the_eigenvectors_of_the_noisy_coordinates():
    space = dpm.SPD(3)
    ball = dpm.Ball(space, np.eye(3), 3.0)
    found = private_tangent_moment(space.random_point(400, rng=0), ball, GaussianDP(1.0), rng=0)
    noisy, value = from_upper_triangle(found.moment.coordinates, 6), found.moment.value
    assert np.linalg.eigvalsh(value)[0] >= -1e-12
    assert np.trace(value) == pytest.approx(np.trace(noisy))
    assert np.allclose(value @ noisy, noisy @ value, atol=1e-12)
