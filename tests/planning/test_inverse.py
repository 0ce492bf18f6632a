"""Budgets, records and radii for a target error are inverse to the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Budget,
    Euclidean,
    GaussianDP,
    Hyperbolic,
    PureDP,
    RenyiDP,
    Sphere,
    ZeroConcentratedDP,
)
from dpmanifolds.data import DescriptorDomain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.planning import budget_for, radius_for, records_for
from dpmanifolds.sums import choose, mean_facts

SPHERE = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.6)
PLANE = Ball(Hyperbolic(2), Hyperbolic(2).origin, 2.0)
FLAT = Ball(SPD(3, "log-euclidean"), np.eye(3), 1.0)
DOMAINS = [SPHERE, PLANE, FLAT]
KINDS: list[tuple[type[Budget], dict[str, float]]] = [
    (PureDP, {}),
    (ApproxDP, {"delta": 1e-6}),
    (GaussianDP, {}),
    (ZeroConcentratedDP, {}),
    (RenyiDP, {"alpha": 8.0}),
]


def error_of(domain: Any, n: int, budget: Budget, measure: str = "mean") -> float:
    error = choose(mean_facts(domain, n), budget).mechanism.expected_error
    return float(getattr(error, measure))


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize(("kind", "kept"), KINDS)
def test_the_budget_is_the_smallest_that_reaches_the_error(domain: Ball, kind: type[Budget], kept: Any) -> None:
    budget = budget_for(domain, 500, 0.03, kind, **kept)
    assert isinstance(budget, kind)
    assert error_of(domain, 500, budget) <= 0.03
    name = {GaussianDP: "mu", ZeroConcentratedDP: "rho"}.get(kind, "epsilon")
    less = replace(budget, **{name: getattr(budget, name) * (1 - 1e-6)})
    assert error_of(domain, 500, less) > 0.03


def test_the_pure_budget_follows_the_formula() -> None:
    assert budget_for(FLAT, 1000, 0.01).epsilon == pytest.approx(6 * (2 / 1000) / 0.01, rel=1e-5)


@pytest.mark.parametrize("measure", ["mean", "radius_90", "mean_at_edge"])
def test_the_measure_that_was_asked_for_is_kept(measure: str) -> None:
    budget = budget_for(PLANE, 500, 0.05, measure=measure)
    assert error_of(PLANE, 500, budget, measure) == pytest.approx(0.05, rel=1e-8)


@pytest.mark.parametrize("domain", [*DOMAINS, DescriptorDomain(1)])
@pytest.mark.parametrize("budget", [PureDP(0.7), ApproxDP(0.5, 1e-6), GaussianDP(1.0)])
@pytest.mark.parametrize("error", [0.2, 0.0123])
def test_the_records_are_the_fewest_that_reach_the_error(domain: Any, budget: Budget, error: float) -> None:
    n = records_for(domain, budget, error)
    assert error_of(domain, n, budget) <= error < error_of(domain, n - 1, budget)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("budget", [PureDP(0.7), ApproxDP(0.5, 1e-6)])
def test_the_radius_is_the_largest_that_reaches_the_error(domain: Ball, budget: Budget) -> None:
    radius = radius_for(domain, 300, budget, 0.02)
    assert error_of(replace(domain, radius=radius), 300, budget) <= 0.02
    assert error_of(replace(domain, radius=radius * (1 + 1e-6)), 300, budget) > 0.02


def test_the_three_inverses_agree() -> None:
    budget = budget_for(SPHERE, 400, 0.02)
    assert records_for(SPHERE, budget, 0.02) == 400
    assert radius_for(SPHERE, 400, budget, 0.02) == pytest.approx(0.6, rel=1e-6)


def test_the_radius_stays_below_the_cut_locus() -> None:
    assert 3.14 < radius_for(SPHERE, 10**6, PureDP(10.0), 0.5) < np.pi
    assert 3.14 < radius_for(Ball(Sphere(1), np.array([1.0, 0.0]), 0.1), 1000, PureDP(1.0), 5.0) < np.pi


def test_a_named_mechanism_needs_its_own_budget() -> None:
    pure = budget_for(SPHERE, 500, 0.02)
    lattice = budget_for(SPHERE, 500, 0.02, numerics="lattice")
    assert lattice.epsilon > 1.1 * pure.epsilon
    gaussian = budget_for(SPHERE, 500, 0.02, ApproxDP, delta=1e-6, mechanism="wrapped-gaussian")
    assert gaussian.epsilon > pure.epsilon


def test_no_budget_is_larger_than_700() -> None:
    with pytest.raises(NotAvailableError, match="up to 700"):
        budget_for(FLAT, 10, 1e-6)


def test_the_noise_alone_sets_the_error_however_small() -> None:
    assert radius_for(SPHERE, 100, PureDP(1.0), 1e-13) == pytest.approx(1e-13 * 100 / 4, rel=1e-6)
    assert records_for(FLAT, PureDP(1.0), 1e-10) > 10**10


def test_errors_that_need_no_release_are_refused() -> None:
    for ask in (lambda: budget_for(FLAT, 100, 1.0), lambda: records_for(FLAT, PureDP(1.0), 2.0)):
        with pytest.raises(ArgumentError, match="no release is needed"):
            ask()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: budget_for(FLAT, 100, 0.1, ApproxDP),
        lambda: budget_for(FLAT, 100, 0.1, RenyiDP),
        lambda: budget_for(FLAT, 100, 0.1, float),
        lambda: budget_for(FLAT, 100, -0.1),
        lambda: budget_for(FLAT, 0, 0.1),
        lambda: budget_for(FLAT, 100, 0.1, measure="median"),
        lambda: records_for(FLAT, 1.0, 0.1),
        lambda: records_for(Euclidean(2), PureDP(1.0), 0.1),
        lambda: radius_for(DescriptorDomain(1), 100, PureDP(1.0), 0.1),
    ],
)
def test_wrong_arguments_are_named(ask: Any) -> None:
    with pytest.raises(ArgumentError, match=r"must be|needs"):
        ask()


def test_a_mechanism_that_cannot_keep_the_budget_says_why() -> None:
    with pytest.raises(NotAvailableError, match="unbounded"):
        records_for(FLAT, PureDP(1.0), 0.1, mechanism="wrapped-gaussian")
