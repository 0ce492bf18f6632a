"""What a mechanism tells about its sum is what its noise was made for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpmanifolds import SPD, ApproxDP, ArgumentError, Ball, GaussianDP, PureDP
from dpmanifolds.descent import plan_descent
from dpmanifolds.ledger import filters
from dpmanifolds.privacy import Guarantee, compose, poisson_descent
from dpmanifolds.privacy.lattice import DiscreteGaussianTerm
from dpmanifolds.sums import calibrate, mean_facts

BALL = Ball(SPD(2), np.eye(2), 1.0)


def test_laplace_noise_for_private_labels_tells_how_far_a_change_of_class_moves_both_sums():
    law = calibrate("wrapped-laplace", mean_facts(BALL, 200, labelled=True), PureDP(1.0), "rounded")
    assert float(law.sensitivity) == pytest.approx(law.sigma, rel=1e-9)
    assert float(law.sensitivity) > 2 * BALL.radius / 200


def test_a_change_of_class_moves_the_integers_of_two_classes():
    law = calibrate("wrapped-gaussian", mean_facts(BALL, 200, labelled=True), GaussianDP(1.0), "lattice")
    (term,) = law.guarantee.terms
    assert isinstance(term, DiscreteGaussianTerm)
    assert term.dim == 2 * law.dim


def test_facts_for_one_kind_of_neighbours_are_not_relabelled():
    with pytest.raises(ArgumentError, match="same neighbours"):
        replace(mean_facts(BALL, 100), adjacency="add-remove-one")


def test_full_batches_that_are_cut_have_a_renyi_divergence():
    cut = poisson_descent(n=10, rate=1.0, steps=2, clip=1.0, sigma=0.5, largest_batch=4)
    assert 0 < cut.as_renyi(2.0).epsilon < 100


def test_points_and_laplace_steps_of_added_records_are_charged_together():
    steps = poisson_descent(n=100, rate=0.1, steps=1, clip=1.0, sigma=2.0, law="laplace", adjacency="add-remove-one")
    point = Guarantee.approx(0.1, 1e-6, adjacency="add-remove-one")
    charged = filters.charge(ApproxDP(1.0, 1e-5), compose(point, steps))
    assert charged.epsilon >= 0.1


def test_the_sensitivity_of_a_gradient_is_rounded_up():
    plan = plan_descent(n=3, clip_norm=1.0, steps=2, sigma=1.0)
    assert Fraction(float(plan.sensitivity)) >= Fraction(2, 3)
