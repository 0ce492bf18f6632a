"""The published chains, as baselines: they head for the laws they claim."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import SPD, Sphere, frechet_mean
from dpmanifolds.intrinsic import RiemannianLaplace
from papers.chains import (
    knorm_gradient_chain,
    log_euclidean_laplace_chain,
    log_euclidean_laplace_chain_in_coordinates,
)


@pytest.mark.long
@pytest.mark.parametrize("chain", [log_euclidean_laplace_chain, log_euclidean_laplace_chain_in_coordinates])
def test_the_laplace_chain_reaches_the_right_distance(chain):
    """Mean of 60 ends against the exact mean distance, within 5 standard errors (false alarm below 1e-6)."""
    space, mean = SPD(2, "log-euclidean"), np.diag([1.0, 2.0])
    law = RiemannianLaplace(space, mean, 0.3)
    ends = np.array([float(space.dist(mean, chain(mean, 0.3, 150, rng=seed))) for seed in range(60)])
    spread = np.sqrt(law.mean_squared_distance - law.mean_distance**2)
    assert abs(ends.mean() - law.mean_distance) < 5 * spread / np.sqrt(60)
    assert abs(ends.mean() - 0.6 * law.mean_distance) > 5 * spread / np.sqrt(60)


def test_the_knorm_gradient_chain_stays_in_its_ball():
    sphere, north = Sphere(2), np.array([0.0, 0.0, 1.0])
    records = sphere.exp(north, 0.2 * np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]))
    end = knorm_gradient_chain(records, north, 0.4, 0.05, steps=300, rng=0)
    assert bool(sphere.belongs(end))
    assert float(sphere.dist(north, end)) <= 0.4
    near = [knorm_gradient_chain(records, north, 0.4, 0.005, steps=300, rng=seed) for seed in range(5)]
    assert np.max(sphere.dist(frechet_mean(sphere, records).point, np.stack(near))) < 0.1
