"""The papers' bounds, beside the proven ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmanifolds import ArgumentError, Ball, RadiusTooLargeError, Sphere
from dpmanifolds.privacy import gaussian_sigma, sensitivity_of_mean, sensitivity_of_mean_gradient
from papers.published import (
    classical_gaussian_sigma,
    published_sensitivity_of_mean,
    published_sensitivity_of_mean_gradient,
)


def sphere_ball(radius):
    return Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius)


def test_the_values_of_the_mathematics_page():
    ball, wide = sphere_ball(math.pi / 8), sphere_ball(0.24 * math.pi)
    assert round(published_sensitivity_of_mean(ball, 100) * 100, 4) == 1.2146
    assert round(published_sensitivity_of_mean_gradient(ball, 7) * 7, 5) == 0.95395
    assert round(published_sensitivity_of_mean_gradient(wide, 3) * 3, 3) == 2.873


@given(st.floats(0.01, math.pi / 4 - 1e-9), st.integers(1, 10**9))
def test_the_proven_bounds_are_below_the_published_ones(r, n):
    ball = sphere_ball(r)
    assert float(sensitivity_of_mean(ball, n)) <= published_sensitivity_of_mean(ball, n)
    assert float(sensitivity_of_mean_gradient(ball, n)) <= published_sensitivity_of_mean_gradient(ball, n)


def test_the_published_bounds_end_at_a_quarter_of_pi():
    for bound in (published_sensitivity_of_mean, published_sensitivity_of_mean_gradient):
        with pytest.raises(RadiusTooLargeError, match="below π/4"):
            bound(sphere_ball(0.8), 10)


def test_classical_sigma_is_private_and_larger_and_refused_beyond_one():
    for epsilon in (0.01, 0.5, 1.0):
        assert classical_gaussian_sigma(1.0, epsilon, 1e-6) > gaussian_sigma(1.0, epsilon, 1e-6)
    with pytest.raises(ArgumentError, match="up to 1 only"):
        classical_gaussian_sigma(1.0, 1.0001, 1e-6)
