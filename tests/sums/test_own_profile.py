"""ℓ2-Laplace noise is promised by its own profile, in its own dimension, wherever a budget is not pure."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, Ball, Euclidean, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpmanifolds.auditing import audit_release
from dpmanifolds.privacy import Guarantee, compose
from dpmanifolds.sums import calibrate, choose, mean_facts, offered
from tests.selection import thorough


def ball(dim):
    return Ball(Euclidean(dim), np.zeros(dim), 1.0)


def laplace(dim, budget, numerics="rounded", **facts):
    return calibrate("wrapped-laplace", mean_facts(ball(dim), 1000, **facts), budget, numerics)


@pytest.mark.parametrize(("epsilon", "gain"), [(1.0, 1.197), (3.0, 1.243)])
def test_in_21_dimensions_it_errs_less_than_pure_laplace_and_than_the_analytic_gaussian(epsilon, gain):
    facts, budget = mean_facts(ball(21), 1000), ApproxDP(epsilon, 1e-6)
    chosen = choose(facts, budget).mechanism
    others = (
        calibrate("wrapped-laplace", facts, PureDP(epsilon), "rounded"),
        calibrate("wrapped-gaussian", facts, budget, "rounded"),
    )
    assert chosen.name == "wrapped-laplace"
    least = min(other.expected_error.mean for other in others)
    assert least / chosen.expected_error.mean == pytest.approx(gain, abs=0.001)


def test_most_of_the_time_it_is_plain_that_it_errs_more():
    facts, budget = mean_facts(ball(21), 1000), GaussianDP(1.0)
    other = calibrate("wrapped-gaussian", facts, budget, "rounded")
    assert type(laplace(21, budget)).errs_more(facts, budget, "rounded", other.expected_error.mean)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 1.6, 2.0, 3.0, 30.0])
@pytest.mark.parametrize("dim", [1, 2, 21, 300])
@pytest.mark.grid
def test_what_is_not_calibrated_as_it_plainly_errs_more_does(dim, mu):
    facts, budget = mean_facts(ball(dim), 1000), GaussianDP(mu)
    laws = offered(facts, budget)
    least = min(laws, key=lambda law: law.expected_error.mean)
    assert choose(facts, budget).mechanism == least
    for law in laws:
        if type(law).errs_more(facts, budget, law.numerics, least.expected_error.mean):
            assert law.expected_error.mean > least.expected_error.mean


@pytest.mark.parametrize(
    "budget", [ApproxDP(1.0, 1e-6), GaussianDP(1.0), ZeroConcentratedDP(0.5), RenyiDP(8.0, 1.0)], ids=repr
)
def test_the_promise_is_that_of_the_noise_and_just_keeps_the_budget(budget):
    law = laplace(6, budget)
    shift = float(law.sensitivity) / law.sigma
    assert law.guarantee.fits(budget, strict=True)
    assert law.guarantee.terms[0].kind == "l2-laplace"
    assert law.guarantee.terms[0].shift >= shift
    assert not Guarantee.l2_laplace(shift * (1 + 1e-8), 6).fits(budget)
    assert law.guarantee == Guarantee.from_json(law.guarantee.to_json())


def test_where_one_record_moves_several_draws_or_coordinates_the_line_is_promised():
    budget = ApproxDP(1.0, 1e-6)
    assert laplace(6, budget, labelled=True).guarantee.terms[0].kind == "laplace"
    assert laplace(6, budget, "lattice").guarantee.terms[0].kind == "discrete-laplace"
    assert laplace(6, PureDP(1.0)).guarantee.terms[0].kind == "laplace"
    assert laplace(1, budget).guarantee.terms[0].kind == "laplace"


def test_a_secret_number_of_records_is_one_more_dimension():
    law = laplace(6, ApproxDP(1.0, 1e-6), adjacency="add-remove-one")
    assert law.guarantee.terms[0].dim == 7


def test_a_budget_too_small_for_the_profile_is_kept_by_noise_on_the_line():
    budget = ApproxDP(1e-8, 1e-12)
    law = laplace(2, budget)
    assert law.guarantee.terms[0].kind == "laplace"
    assert law.guarantee.fits(budget, strict=True)


def test_several_releases_lose_far_less_than_their_largest_losses():
    promise = compose(*[laplace(21, ApproxDP(1.0, 1e-6)).guarantee] * 10)
    assert promise.epsilon(1e-6) < 0.4 * promise.as_pure().epsilon


def test_a_ledger_and_json_know_it(tmp_path):
    records = np.zeros((100, 3))
    ledger = dpm.Ledger(tmp_path / "account")
    ledger.open_dataset("d", ApproxDP(3.0, 1e-5))
    options = {"mechanism": "wrapped-laplace", "ledger": ledger, "dataset": "d"}
    for _ in range(2):
        release = dpm.private_mean(records, ball(3), ApproxDP(1.0, 1e-6), **options)
    assert dpm.Release.from_json(release.to_json()) == release
    assert release.spent.epsilon <= 1.0


@thorough("draws", 12_000, 40_000)
@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (0.7, True)])
def test_an_audit_catches_three_tenths_too_little_noise(factor, caught, draws):
    """3 dimensions, ε = 1, δ = 1e−6: the loss of ×0.7 is 1.43 at most; 12,000 draws or more, confidence 1 − 1e−6."""

    def released(records, rng):
        return dpm.private_mean(records, ball(3), ApproxDP(1.0, 1e-6), mechanism="wrapped-laplace", refine=0, rng=rng)

    ends = [np.vstack([np.zeros((9, 3)), [[end, 0.0, 0.0]]]) for end in (1.0, -1.0)]
    report = audit_release(
        released, *ends, draws=draws, calls=20, noise_factor=factor, confidence=1 - 1e-6, rng=np.random.default_rng(7)
    )
    assert report.flagged is caught
