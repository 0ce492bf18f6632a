"""Low-order bits: plain floating-point noise is separated, ours is not."""

from __future__ import annotations

import numpy as np
import pytest

from audits.precision import precision_attack
from audits.precision_table import attack_mechanism, attack_numpy, attack_opendp, numbers_of
from dpmanifolds import ApproxDP, ArgumentError, Euclidean, PureDP, Sphere

PURE, APPROX = PureDP(1.0), ApproxDP(1.0, 1e-6)
SAFE = [
    ("wrapped-laplace", "rounded", PURE),
    ("wrapped-laplace", "lattice", PURE),
    ("wrapped-gaussian", "rounded", APPROX),
    ("wrapped-gaussian", "lattice", APPROX),
    ("direct-laplace", "rounded", PURE),
    ("direct-gaussian", "rounded", APPROX),
]
IDEALIZED = [
    ("riemannian-laplace", "idealized", PURE),
    ("riemannian-gaussian", "idealized", APPROX),
    ("k-norm-gradient", "idealized", PURE),
]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_of_numpy_is_separated(kind):
    """An event that some releases of one neighbour show and none of the other."""
    found = attack_numpy(kind, 10_000, rng=0)
    assert found.separated
    assert found.bound > 2
    assert min(found.rates) == 0.0
    assert max(found.rates) > 0.01


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("manifold", [Euclidean(1), Sphere(2)], ids=repr)
@pytest.mark.parametrize(("name", "numerics", "budget"), [*SAFE, *IDEALIZED[:2]])
def test_our_noise_is_not_separated(name, numerics, budget, manifold):
    assert not attack_mechanism(name, numerics, budget, manifold, 1000, rng=0).separated


@pytest.mark.long
@pytest.mark.parametrize("manifold", [Euclidean(1), Sphere(2)], ids=repr)
@pytest.mark.parametrize(("name", "numerics", "budget"), [*SAFE, *IDEALIZED])
def test_our_noise_is_not_separated_by_many_draws(name, numerics, budget, manifold):
    assert not attack_mechanism(name, numerics, budget, manifold, 40_000, rng=1).separated


def test_opendp_on_floats_is_not_separated():
    assert not attack_opendp("laplace", 1000).separated


def test_the_attack_needs_no_offset_when_one_mean_is_zero():
    """0 + y keeps every bit of y, 1 + y only those above 2^−53."""
    rng = np.random.default_rng(0)
    naive = [mean + rng.laplace(size=(4000, 1)) for mean in (0.0, 1.0)]
    found = precision_attack(*naive, epsilon=1.0)
    assert found.separated
    assert "multiple of 2^" in found.event


def test_two_samples_of_one_law_are_not_separated():
    rng = np.random.default_rng(1)
    found = precision_attack(*rng.laplace(size=(2, 4000, 2)), epsilon=0.3)
    assert not found.separated


def test_every_number_of_a_point_is_looked_at():
    points = (np.ones((5, 2, 2)), np.full((5, 3), 1 + 2j))
    assert numbers_of(points).shape == (5, 10)


def test_outputs_must_be_rows():
    with pytest.raises(ArgumentError, match="shape"):
        precision_attack(np.zeros(500), np.zeros(500), epsilon=1.0)
