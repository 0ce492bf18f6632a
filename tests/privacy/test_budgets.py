"""Budgets: what follows from what, never less than the truth, and what does not follow."""

from __future__ import annotations

import dataclasses
import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP, convert

EPSILONS = st.floats(-6, 2).map(lambda power: 10**power)
DELTAS = st.floats(-12, -0.5).map(lambda power: 10**power)
ORDERS = st.floats(-3, 3).map(lambda power: 1 + 10**power)


def exact_pure_renyi(epsilon: float, alpha: float) -> mp.mpf:
    with mp.workdps(200):
        epsilon, alpha = mp.mpf(epsilon), mp.mpf(alpha)
        p = mp.exp(epsilon) / (1 + mp.exp(epsilon))
        return mp.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1)


@settings(max_examples=60, deadline=None)
@given(EPSILONS, ORDERS)
def test_pure_to_renyi_is_the_divergence_of_randomised_response(epsilon, alpha):
    claimed, exact = PureDP(epsilon).as_renyi(alpha).epsilon, exact_pure_renyi(epsilon, alpha)
    assert exact <= claimed <= exact * (1 + mp.mpf("1e-12"))


@settings(max_examples=60, deadline=None)
@given(EPSILONS, ORDERS)
def test_pure_to_zcdp_bounds_every_order_and_is_below_half_the_square(epsilon, alpha):
    rho = PureDP(epsilon).as_zcdp().rho
    assert exact_pure_renyi(epsilon, alpha) <= rho * alpha
    assert rho <= epsilon**2 / 2 * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 10.0])
def test_pure_to_zcdp_is_attained_as_the_order_falls_to_one(epsilon):
    assert float(exact_pure_renyi(epsilon, 1 + 1e-9)) == pytest.approx(PureDP(epsilon).as_zcdp().rho, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(EPSILONS, DELTAS)
def test_pure_to_approx_is_the_profile_of_randomised_response(epsilon, delta):
    other = mp.mpf(PureDP(epsilon).as_approx(delta).epsilon)
    with mp.workdps(60):
        top = mp.exp(mp.mpf(epsilon))
        assert (top - mp.exp(other)) / (1 + top) <= delta
        closer = other - mp.mpf("1e-12") * (epsilon + delta)
        assert closer <= 0 or (top - mp.exp(closer)) / (1 + top) > delta


@settings(max_examples=40, deadline=None)
@given(EPSILONS, DELTAS, DELTAS)
def test_approx_to_approx_at_larger_delta_is_the_two_point_profile(epsilon, delta, larger):
    if larger < delta:
        with pytest.raises(NotAvailableError):
            ApproxDP(epsilon, delta).as_approx(larger)
        return
    other = mp.mpf(ApproxDP(epsilon, delta).as_approx(larger).epsilon)
    with mp.workdps(60):
        top, delta = mp.exp(mp.mpf(epsilon)), mp.mpf(delta)
        assert delta + (1 - delta) * (top - mp.exp(other)) / (1 + top) <= mp.mpf(larger)


@settings(max_examples=30, deadline=None)
@given(st.floats(-3, 1).map(lambda power: 10**power), DELTAS, ORDERS)
def test_moment_bounds_are_true_for_the_gaussian_pair(mu, delta, alpha):
    exact = GaussianDP(mu).as_approx(delta).epsilon
    assert GaussianDP(mu).as_zcdp().as_approx(delta).epsilon >= exact * (1 - 1e-9)
    if alpha > 1.1 and alpha * mu * mu / 2 < 600:
        assert GaussianDP(mu).as_renyi(alpha).as_approx(delta).epsilon >= exact * (1 - 1e-9)


@settings(max_examples=30, deadline=None)
@given(st.floats(-3, 1).map(lambda power: 10**power), DELTAS)
def test_moment_bounds_are_true_for_randomised_response(epsilon, delta):
    exact = PureDP(epsilon).as_approx(delta).epsilon
    assert PureDP(epsilon).as_zcdp().as_approx(delta).epsilon >= exact * (1 - 1e-9)
    assert PureDP(epsilon).as_gaussian().as_approx(delta).epsilon >= exact * (1 - 1e-9)


def test_zcdp_to_approx_agrees_with_dp_accounting_and_is_no_worse():
    from dp_accounting import rdp

    orders = [1 + 10 ** (k / 40) for k in range(-120, 160)]
    for rho in (1e-3, 0.1, 0.5, 4.0):
        ours = ZeroConcentratedDP(rho).as_approx(1e-6).epsilon
        theirs = rdp.compute_epsilon(orders, [rho * order for order in orders], 1e-6)[0]
        assert theirs * (1 - 1e-3) <= ours <= theirs * (1 + 1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0, 3.3])
def test_gaussian_to_zcdp_and_renyi_never_round_down(mu):
    rho = GaussianDP(mu).as_zcdp().rho
    assert mp.mpf(mu) ** 2 / 2 <= rho <= mu * mu / 2 * (1 + 1e-15)
    assert mp.mpf(rho) * mp.mpf(1.7) <= GaussianDP(mu).as_renyi(1.7).epsilon


@pytest.mark.parametrize(
    ("budget", "to"),
    [
        (GaussianDP(1.0), PureDP),
        (ApproxDP(1.0, 1e-6), PureDP),
        (ApproxDP(1.0, 1e-6), GaussianDP),
        (ApproxDP(1.0, 1e-6), ZeroConcentratedDP),
        (ApproxDP(1.0, 1e-6), RenyiDP),
        (ZeroConcentratedDP(1.0), PureDP),
        (ZeroConcentratedDP(1.0), GaussianDP),
        (RenyiDP(4.0, 1.0), PureDP),
        (RenyiDP(4.0, 1.0), GaussianDP),
        (RenyiDP(4.0, 1.0), ZeroConcentratedDP),
    ],
)
def test_what_does_not_follow_is_refused(budget, to):
    with pytest.raises(NotAvailableError, match="implies no"):
        convert(budget, to, delta=1e-6, alpha=2.0)


def test_a_renyi_budget_says_nothing_about_higher_orders():
    assert RenyiDP(4.0, 1.0).as_renyi(2.0) == RenyiDP(2.0, 1.0)
    with pytest.raises(NotAvailableError):
        RenyiDP(4.0, 1.0).as_renyi(4.1)


def test_conversions_to_the_own_kind_change_nothing():
    for budget in (PureDP(0.3), GaussianDP(0.3), ZeroConcentratedDP(0.3)):
        assert convert(budget, type(budget)) == budget
    assert convert(ApproxDP(0.3, 1e-6), ApproxDP, delta=1e-6) == ApproxDP(0.3, 1e-6)


def test_a_promise_of_epsilon_zero_is_told_as_the_smallest_normal_number():
    assert GaussianDP(1e-9).as_approx(1e-3).epsilon == 2.0**-1022
    assert PureDP(1e-9).as_approx(1e-3).epsilon == 2.0**-1022


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, -math.inf, "x", None, [1.0, 2.0]])
def test_amounts_must_be_positive_numbers(bad):
    for make in (
        PureDP,
        GaussianDP,
        ZeroConcentratedDP,
        lambda value: ApproxDP(value, 1e-6),
        lambda value: RenyiDP(2.0, value),
    ):
        with pytest.raises(ArgumentError, match="must be"):
            make(bad)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 2.0, math.nan, "x"])
def test_delta_must_be_inside_the_unit_interval(bad):
    with pytest.raises(ArgumentError, match="strictly between 0 and 1"):
        ApproxDP(1.0, bad)


@pytest.mark.parametrize("bad", [1.0, 0.5, 0.0, -2.0, math.nan])
def test_orders_must_exceed_one(bad):
    with pytest.raises(ArgumentError, match="alpha"):
        RenyiDP(bad, 1.0)


def test_an_absurd_epsilon_is_refused_with_the_reason():
    assert PureDP(700.0).epsilon == 700.0
    with pytest.raises(ArgumentError, match="promises nothing: allowed is up to 700"):
        PureDP(1e6)


def test_convert_asks_for_what_it_needs():
    with pytest.raises(ArgumentError, match="needs delta="):
        convert(PureDP(1.0), ApproxDP)
    with pytest.raises(ArgumentError, match="needs alpha="):
        convert(PureDP(1.0), RenyiDP)
    with pytest.raises(ArgumentError, match="to must be"):
        convert(PureDP(1.0), float)
    with pytest.raises(ArgumentError, match="budget must be"):
        convert(1.0, PureDP)


def test_budgets_are_frozen_values():
    assert PureDP(1) == PureDP(1.0)
    assert len({PureDP(1.0), PureDP(1.0), GaussianDP(1.0)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        PureDP(1.0).epsilon = 2.0


def test_budgets_do_not_load_dp_accounting():
    import subprocess
    import sys

    code = (
        "import sys; from dpmanifolds.privacy import Guarantee, PureDP; Guarantee.pure(1.0).k_fold(3).epsilon(1e-6);"
        "PureDP(1.0).as_gaussian(); sys.exit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
