"""The published Algorithms 1 and 2: as good as they can be, and why they carry no promise."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import Euclidean, Hyperbolic, Sphere
from dpmanifolds.privacy import RiemannianGaussianProfile, gaussian_dp_mu
from papers.jiang_algorithms import (
    algorithm_1,
    algorithm_2,
    algorithm_2_step_by_step,
    gaussian_chains,
    published_circle_delta,
)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0, 4.0])
def test_algorithm_1_finds_mu_on_the_circle_from_below(sigma):
    exact = gaussian_dp_mu(Sphere(1), sigma, 1.0)
    assert exact * 0.99 < algorithm_1(sigma, 1.0) < exact


def test_published_formula_is_right_at_zero_and_too_small_beyond():
    profile = RiemannianGaussianProfile(Sphere(1), 1.0, 1.0)
    assert float(published_circle_delta(1.0, np.array(0.0), 1.0)) == pytest.approx(profile.delta(0.0), abs=1e-14)
    assert float(published_circle_delta(1.0, np.array(1.0), 1.0)) < 0.75 * profile.delta(1.0)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("sampler", ["exact", "chain"])
@pytest.mark.parametrize("space", [Sphere(2), Hyperbolic(2), Euclidean(1)], ids=repr)
def test_algorithm_2_is_within_a_tenth_of_mu(space, sampler):
    estimate = algorithm_2(space, 1.0, 1.0, largest_epsilon=2.0, sampler=sampler, rng=3)
    assert estimate == pytest.approx(gaussian_dp_mu(space, 1.0, 1.0), rel=0.1)


def test_algorithm_2_overestimates_at_small_sigma():
    assert algorithm_2(Sphere(2), 0.25, 1.0, rng=0) > 1.02 * gaussian_dp_mu(Sphere(2), 0.25, 1.0)


@pytest.mark.long
def test_step_by_step_and_array_versions_agree():
    options = {"draws": 400, "repeats": 10, "epsilons": 20, "largest_epsilon": 1.0}
    one = algorithm_2_step_by_step(Sphere(2), 1.0, 1.0, rng=0, **options)
    other = algorithm_2(Sphere(2), 1.0, 1.0, sampler="chain", rng=1, **options)
    assert one == pytest.approx(other, rel=0.25)


def test_chains_move_towards_the_riemannian_gaussian():
    footpoint = np.array([0.0, 0.0, 1.0])
    states = gaussian_chains(Sphere(2), footpoint, 0.5, 200, 300, rng=0)
    assert states.shape == (300, 200, 3)
    distance = Sphere(2).dist(footpoint, states[:, 50:])
    assert np.mean(distance**2) == pytest.approx(0.4594, abs=0.03)
