"""Nothing fails after it was paid for, and what is refused is refused from public facts alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, Ball, Euclidean, Hyperbolic, NotAvailableError, PureDP, Sphere
from dpmanifolds.sums import calibrate, value_facts
from tests.selection import thorough

IDEALIZED = {"mechanism": "k-norm-gradient", "numerics": "idealized"}


@pytest.mark.grid(at_most=1)
@thorough("releases", 5, 20)
@pytest.mark.parametrize("across", [False, True])
def test_the_k_norm_gradient_draws_for_records_at_one_point_of_the_edge(across, releases):
    """Each release failed, and none of the neighbour with one record across, after ε = 1.1 had been charged."""
    space, edge = Euclidean(60), np.eye(60)[0]
    records = np.tile(edge, (20, 1))
    if across:
        records[0] = -edge
    ball, budget = Ball(space, np.zeros(60), 1.0), PureDP(1.1)
    for number in range(releases):
        release = dpm.private_mean(records, ball, budget, **IDEALIZED, rng=number)
        assert bool(ball.contains(release.value))


def test_a_hopeless_k_norm_gradient_is_refused_without_a_record():
    """In so wide a ball of the sphere hardly any proposal is accepted: the number of records and ε say so."""
    ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 1.5)
    with pytest.raises(NotAvailableError, match="no K-norm gradient draws"):
        dpm.plan(ball, 1_000_000, PureDP(1.0), mechanisms="k-norm-gradient", numerics="all").best()


NEAR_CRITICAL = {
    "hyperbolic": (Hyperbolic(2), Hyperbolic(2).origin, 1.0, 0.999),
    "hyperbolic, at the limit": (Hyperbolic(3), Hyperbolic(3).origin, 0.5, 1 - 1e-9),
    "matrices": (SPD(2), np.eye(2), math.sqrt(2), 0.9),
    "matrices, at the limit": (SPD(3), np.eye(3), math.sqrt(0.5), 0.9999),
    "flat matrices": (SPD(2, "log-euclidean"), np.eye(2), 1.0, 1e6),
    "flat space": (Euclidean(2), np.zeros(2), 1.0, 1e12),
}


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", NEAR_CRITICAL)
def test_the_riemannian_laplace_near_its_critical_scale_never_fails(name):
    """24 to 42 % of such releases raised: draws lay beyond what floating point holds.

    What lies beyond a public distance from the centre becomes the centre (in flat spaces: is projected to it), and the
    share that does is the same for neighbours up to e^ε: 300 draws each, 5 standard deviations.
    """
    manifold, center, critical, factor = NEAR_CRITICAL[name]
    ball = Ball(manifold, center, 1.0)
    epsilon = 0.5 / (critical * factor)
    mechanism = calibrate("riemannian-laplace", value_facts(ball, 0.5), PureDP(epsilon), "idealized")
    edge = manifold.exp(center, manifold.from_coordinates(center, 0.5 * np.eye(manifold.dim)[0]))
    rng = np.random.default_rng(0)
    shares = []
    for statistic in (center, edge):
        drawn = np.stack([mechanism.release(statistic, rng=rng) for _ in range(300)])
        assert np.all(ball.contains(drawn))
        shares.append(float(np.mean([np.array_equal(point, center) for point in drawn])))
    for one, other in (shares, shares[::-1]):
        assert one <= math.exp(epsilon) * other + 5 * math.sqrt(0.25 / 150)


@pytest.mark.parametrize("radius", [5.0, 15.0, 30.0])
@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_noise_at_the_centre_of_a_ball_beyond_floating_point_never_fails(radius):
    """exp of so much noise is no matrix in double precision: the way there is shortened."""
    space = SPD(2)
    ball = Ball(space, np.eye(2), radius)
    for seed in range(20):
        release = dpm.privatize(np.eye(2), ball, radius, PureDP(1.0), numerics="lattice", rng=seed)
        assert bool(space.belongs(release.value))


def test_a_variance_out_of_range_is_refused_before_it_is_paid_for(tmp_path):
    """(2r)² is what squares are at most, seen from a mean at the edge: beyond floating point from r = 9.5e153 on."""
    ledger = dpm.Ledger(tmp_path / "ledger")
    ledger.open_dataset("study", PureDP(10.0))
    ball = Ball(Euclidean(1), [0.0], 1.2e154)
    with pytest.raises(dpm.DPManifoldsError):
        dpm.private_variance(np.zeros((10, 1)), ball, PureDP(1.0), ledger=ledger, dataset="study")
    with pytest.raises(dpm.ArgumentError, match="domain"):
        dpm.private_covariance(np.ones((10, 2)), 1e160, PureDP(1.0), ledger=ledger, dataset="study")
    assert ledger.remaining("study").epsilon == 10.0


def test_no_error_counts_records_where_their_number_is_protected():
    ball, protected = Ball(Euclidean(1), [0.0], 1.0), {"adjacency": "add-remove-one", "n_guess": 10}
    passes = iter([86, 85, 84, 83, 82])

    def fewer_every_time():
        return iter([np.zeros((next(passes), 1))])

    for action in (
        lambda: dpm.private_variance(fewer_every_time, ball, PureDP(1.0), **protected),
        lambda: dpm.private_mean(np.zeros((86, 1)), ball, PureDP(1.0), group_by=[1, 2, 3], **protected),
        lambda: dpm.private_class_means(
            np.zeros((86, 1)), [0, 1], ball, PureDP(1.0), classes=[0, 1], private_labels=True, **protected
        ),
    ):
        with pytest.raises(dpm.ArgumentError) as caught:
            action()
        assert not any(str(number) in str(caught.value) for number in range(82, 87))
