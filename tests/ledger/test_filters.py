"""Filters: which releases they read, what they add, and that the total stays within the budget."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.ledger import filters
from dpmanifolds.privacy import (
    ApproxDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    compose,
    fixed_size_descent,
)

TOTALS = [ApproxDP(1.0, 1e-6), ApproxDP(0.1, 1e-3), ApproxDP(10.0, 1e-9), ApproxDP(1e-6, 1e-6), ApproxDP(600.0, 0.5)]
KINDS = [PureDP(1.0), GaussianDP(0.7), ZeroConcentratedDP(0.3), RenyiDP(8.0, 2.0), ApproxDP(1.0, 1e-6)]


@pytest.mark.grid
@pytest.mark.parametrize("total", TOTALS, ids=str)
@pytest.mark.parametrize("name", ["gaussian", "zcdp", "renyi", "pure", "basic"])
def test_the_limit_of_a_filter_implies_the_total(total, name):
    limit = filters.limit_of(total, name)
    assert limit.filter == name
    assert limit.as_approx(total.delta).epsilon <= total.epsilon * (1 + 1e-11)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("total", TOTALS[:3], ids=str)
def test_a_limit_is_nearly_the_largest_that_implies_the_total(total):
    for name, larger in [
        ("gaussian", lambda limit: GaussianDP(limit.mu * 1.001)),
        ("zcdp", lambda limit: ZeroConcentratedDP(limit.rho * 1.01)),
        ("renyi", lambda limit: RenyiDP(limit.alpha, limit.epsilon * 1.001)),
    ]:
        assert larger(filters.limit_of(total, name)).as_approx(total.delta).epsilon > total.epsilon


@pytest.mark.parametrize("total", TOTALS[:3], ids=str)
def test_the_chosen_order_serves_gaussian_noise_best(total):
    chosen = filters.limit_of(total)
    for factor in (0.7, 0.9, 1.1, 1.5):
        other = filters.limit_of(total, "renyi", 1 + (chosen.alpha - 1) * factor)
        assert other.epsilon / other.alpha < chosen.epsilon / chosen.alpha


@pytest.mark.parametrize("total", KINDS[:-1], ids=str)
def test_a_total_of_its_own_kind_is_its_own_limit(total):
    assert filters.limit_of(total) == total
    with pytest.raises(ArgumentError, match="is kept by filter="):
        filters.limit_of(total, "basic")


def test_auto_for_approx_is_renyi_and_alpha_belongs_to_it():
    assert isinstance(filters.limit_of(ApproxDP(1.0, 1e-6)), RenyiDP)
    assert filters.limit_of(ApproxDP(1.0, 1e-6), "renyi", 16.0).alpha == 16.0
    with pytest.raises(ArgumentError, match="order of filter='renyi'"):
        filters.limit_of(ApproxDP(1.0, 1e-6), "zcdp", 16.0)
    with pytest.raises(ArgumentError, match="no Rényi divergence"):
        filters.limit_of(ApproxDP(1.0, 1e-6), "renyi", 1.5)
    with pytest.raises(ArgumentError, match="above 1"):
        filters.limit_of(ApproxDP(1.0, 1e-6), "renyi", 0.5)


def test_unknown_totals_and_filters_are_refused():
    with pytest.raises(ArgumentError, match="budget must be"):
        filters.limit_of(1.0)
    with pytest.raises(ArgumentError, match="filter must be one of"):
        filters.limit_of(PureDP(1.0), "advanced")


@pytest.mark.parametrize(
    ("limit", "release", "expected"),
    [
        (PureDP(1.0), Guarantee.laplace(0.2), PureDP(0.2)),
        (GaussianDP(1.0), Guarantee.gaussian(0.2), GaussianDP(0.2)),
        (GaussianDP(1.0), Guarantee.pure(1.0), PureDP(1.0).as_gaussian()),
        (ZeroConcentratedDP(1.0), Guarantee.pure(1.0), PureDP(1.0).as_zcdp()),
        (ZeroConcentratedDP(1.0), Guarantee.zcdp(0.25), ZeroConcentratedDP(0.25)),
        (RenyiDP(4.0, 1.0), Guarantee.zcdp(0.25), RenyiDP(4.0, 1.0)),
        (RenyiDP(4.0, 1.0), Guarantee.pure(1.0), PureDP(1.0).as_renyi(4.0)),
        (ApproxDP(1.0, 1e-6), Guarantee.pure(0.5), PureDP(0.5)),
        (ApproxDP(1.0, 1e-6), Guarantee.approx(0.5, 1e-7), ApproxDP(0.5, 1e-7)),
        (
            ApproxDP(1.0, 1e-6),
            compose(Guarantee.approx(0.25, 2.0**-20).k_fold(2), Guarantee.pure(0.125)),
            ApproxDP(0.625, 2.0**-19),
        ),
    ],
    ids=str,
)
def test_a_release_is_read_as_the_kind_of_the_filter(limit, release, expected):
    found = filters.charge(limit, release)
    assert type(found) is type(expected)
    assert found.cost[0] == pytest.approx(expected.cost[0], rel=1e-12)
    assert found.cost[1] == expected.cost[1]


@pytest.mark.parametrize(
    ("limit", "release", "possible"),
    [
        (PureDP(1.0), Guarantee.gaussian(0.1), "bounded loss"),
        (GaussianDP(1.0), Guarantee.approx(0.1, 1e-9), "releases with a μ"),
        (GaussianDP(1.0), Guarantee.zcdp(0.1), "releases with a μ"),
        (ZeroConcentratedDP(1.0), Guarantee.approx(0.1, 1e-9), "releases with a ρ"),
        (RenyiDP(4.0, 1.0), Guarantee.profile(0.1, [0.1, 0.0]), "Rényi divergences"),
        (ApproxDP(1.0, 1e-6), Guarantee.gaussian(0.1), "delta="),
    ],
    ids=str,
)
def test_what_a_filter_cannot_read_is_refused_with_what_it_can(limit, release, possible):
    with pytest.raises(NotAvailableError, match=possible):
        filters.charge(limit, release)


def test_the_basic_filter_reads_any_release_at_a_named_delta():
    release = Guarantee.gaussian(0.1)
    assert filters.charge(ApproxDP(1.0, 1e-6), release, 1e-7) == release.as_approx(1e-7)
    with pytest.raises(ArgumentError, match="for filter='basic'"):
        filters.check_delta(GaussianDP(1.0), 1e-7)
    with pytest.raises(ArgumentError, match="strictly between"):
        filters.check_delta(ApproxDP(1.0, 1e-6), 0.0)


def test_random_batches_cost_a_renyi_filter_far_less_than_a_gaussian_one():
    descent = fixed_size_descent(n=10_000, batch=100, steps=100, clip=1.0, sigma=0.08)
    total = ApproxDP(1.0, 1e-6)
    by_renyi, by_mu = filters.limit_of(total, "renyi"), filters.limit_of(total, "gaussian")
    assert filters.within(by_renyi, filters.charge(by_renyi, descent).cost)
    assert filters.charge(by_mu, descent).mu > 10 * by_mu.mu


@pytest.mark.parametrize(("excess", "kept"), [(9e-13, True), (1.2e-12, False)])
@pytest.mark.parametrize(
    ("limit", "release"),
    [
        (PureDP(1.0), Guarantee.pure),
        (GaussianDP(1.0), lambda half: Guarantee.gaussian(half * math.sqrt(2))),
        (ZeroConcentratedDP(1.0), Guarantee.zcdp),
    ],
    ids=["pure", "gaussian", "zcdp"],
)
def test_the_slack_is_that_of_guarantees(limit, release, excess, kept):
    both = release((1 + excess) / 2).k_fold(2)
    assert both.fits(limit) is kept
    assert filters.within(limit, filters.charge(limit, both).cost) is kept


@given(st.sampled_from(KINDS), st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30))
def test_sums_agree_with_exact_fractions(limit, shares):
    spent, exact = (Fraction(0), Fraction(0)), Fraction(0)
    for share in shares:
        part = scaled(limit, share / len(shares))
        spent = filters.add(spent, part.cost)
        main = next(iter(vars(part).values())) if not isinstance(part, RenyiDP) else part.epsilon
        exact += Fraction(main) ** (2 if isinstance(limit, GaussianDP) else 1)
    assert spent[0] == exact


@given(st.sampled_from(KINDS), st.lists(st.floats(1e-6, 1.0), max_size=10))
def test_what_remains_can_be_spent_and_leaves_nothing(limit, shares):
    spent = (Fraction(0), Fraction(0))
    for share in shares:
        after = filters.add(spent, scaled(limit, share).cost)
        spent = after if filters.within(limit, after) else spent
    rest = filters.left(limit, spent)
    if rest is not None:
        spent = filters.add(spent, rest.cost)
        assert filters.within(limit, spent)
    assert filters.left(limit, spent) is None
    told = filters.told(limit, spent)
    assert told is not None
    assert told.cost[0] <= limit.cost[0]


def scaled(limit, share):
    if isinstance(limit, RenyiDP):
        return RenyiDP(limit.alpha, limit.epsilon * share)
    if isinstance(limit, ApproxDP):
        return ApproxDP(limit.epsilon * share, limit.delta * share)
    return type(limit)(next(iter(vars(limit).values())) * share)


def test_nothing_spent_is_told_as_none_and_nothing_left_as_none():
    nothing = (Fraction(0), Fraction(0))
    for limit in KINDS:
        assert filters.told(limit, nothing) is None
        assert filters.left(limit, nothing) == limit
        assert filters.left(limit, limit.cost) is None
    half = filters.left(ApproxDP(1.0, 1e-6), (Fraction(1, 2), Fraction(1e-6)))
    assert half == PureDP(0.5)


def test_a_sum_is_told_from_above_and_the_rest_from_below():
    third = GaussianDP(0.6).cost
    assert filters.told(GaussianDP(1.0), third) == GaussianDP(0.6)
    rest = filters.left(GaussianDP(1.0), third)
    assert Fraction(rest.mu) ** 2 <= 1 - Fraction(0.6) ** 2 < Fraction(math.nextafter(rest.mu, 1.0)) ** 2
