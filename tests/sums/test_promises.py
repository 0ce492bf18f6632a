"""Scales and promises: what is offered, that it fits the budget, and that the scale pays for it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import cycle

import pytest

from dpmanifolds import ArgumentError, GaussianDP, NotAvailableError, PureDP
from dpmanifolds.noise import LatticeGaussian, LatticeLaplace
from dpmanifolds.sums import MECHANISMS, calibrate, choose, mean_facts, offered
from tests.sums.cases import ALL, BALLS, BUDGETS, LARGE, is_offered, mechanism_for

SLACK = 1 + 1e-12
SLOW = {("riemannian-gaussian", budget, where) for budget in ("zcdp", "renyi") for where in BALLS}
QUICK = list(zip(((name, kind, budget) for name, kind in ALL for budget in BUDGETS), cycle(BALLS)))
CASES = [
    pytest.param(
        *promise,
        where,
        marks=[] if (promise, where) in QUICK and (promise[0], promise[2], where) not in SLOW else pytest.mark.long,
    )
    for promise, _ in QUICK
    for where in BALLS
]


@pytest.mark.parametrize(("name", "numerics", "budget", "where"), CASES)
def test_what_is_offered_fits_the_budget_and_pays_for_it(name, numerics, budget, where):
    mechanism = mechanism_for(name, numerics, BALLS[where], BUDGETS[budget])
    assert (mechanism is not None) == is_offered(name, numerics, where, budget)
    if mechanism is not None:
        assert (mechanism.name, mechanism.numerics) == (name, numerics)
        assert mechanism.guarantee.fits(BUDGETS[budget])
        assert mechanism.guarantee.adjacency == "replace-one"
        check_scale(mechanism)


def check_scale(mechanism):
    """The promise follows from the scale by the mechanism's own theorem; and no scale is wastefully large."""
    kept, claimed = promised(mechanism)
    assert kept <= claimed * SLACK
    assert kept > claimed * 0.999


def promised(mechanism):
    """What the scale gives, and what the guarantee says."""
    facts, guarantee, sigma, step = mechanism.facts, mechanism.guarantee, mechanism.sigma, mechanism.step
    dim = facts.domain.manifold.dim
    if mechanism.name.startswith("direct"):
        on_lattice = float(facts.at_center) + math.sqrt(dim) * step
        claimed = guarantee.as_gaussian().mu if mechanism.name == "direct-gaussian" else guarantee.as_pure().epsilon
        return on_lattice / sigma, claimed
    if mechanism.name.startswith("wrapped"):
        # exact integers: a sum moves by 2R steps, and the noise is drawn with sigma_steps
        moved = facts.shape.diameter(mechanism.exponent, gaussian=mechanism.name == "wrapped-gaussian")
        assert moved == 2 * 2**mechanism.exponent
        assert sigma == mechanism.sigma_steps * step
        exactly = float(Fraction(moved) / Fraction(mechanism.sigma_steps))
    if mechanism.name == "wrapped-gaussian":
        if mechanism.numerics == "lattice":
            return LatticeGaussian(dim, mechanism.sigma_steps).rho(moved), guarantee.as_zcdp().rho
        return exactly, guarantee.as_gaussian().mu
    if mechanism.name == "wrapped-laplace":
        if mechanism.numerics == "lattice":
            # integers move by whole steps
            ell1 = math.floor(math.sqrt(dim) * moved)
            return LatticeLaplace(dim, mechanism.sigma_steps).epsilon(ell1), guarantee.as_pure().epsilon
        return exactly, guarantee.as_pure().epsilon
    if mechanism.name == "riemannian-gaussian":
        (term,) = guarantee.terms
        if term.kind == "gaussian":
            return float(facts.in_distance) / sigma, term.mu
        assert term.sensitivity >= float(facts.in_distance)
        assert term.sigma == pytest.approx(sigma, rel=1e-14)
        return 1.0, 1.0
    if mechanism.name == "k-norm-gradient":
        return 2 * float(facts.of_gradient) / sigma, guarantee.as_pure().epsilon
    return float(facts.in_distance) / sigma, guarantee.as_pure().epsilon


@pytest.mark.grid(at_most=5)
@pytest.mark.parametrize("where", LARGE)
@pytest.mark.parametrize("budget", BUDGETS)
def test_large_manifolds_pay_too(budget, where):
    for name, numerics in ALL[:4]:
        mechanism = mechanism_for(name, numerics, LARGE[where], BUDGETS[budget])
        if mechanism is not None:
            assert mechanism.guarantee.fits(BUDGETS[budget])
            check_scale(mechanism)


@pytest.mark.parametrize(
    ("name", "numerics", "theorem"),
    [
        ("wrapped-laplace", "rounded", "B1"),
        ("wrapped-gaussian", "rounded", "B1"),
        ("direct-laplace", "rounded", "S1w"),
        ("direct-gaussian", "rounded", "S1w"),
        ("riemannian-laplace", "idealized", "S1"),
        ("riemannian-gaussian", "idealized", "S1"),
        ("k-norm-gradient", "idealized", "S2"),
    ],
)
def test_the_scale_is_made_from_the_right_theorem(name, numerics, theorem):
    budget = GaussianDP(1.0) if name.endswith("gaussian") else PureDP(1.0)
    mechanism = calibrate(name, mean_facts(BALLS["sphere"], 50), budget, numerics)
    assert mechanism.sensitivity.theorem == theorem
    assert mechanism.theorem.split()[0] == theorem


def test_the_sphere_pays_what_the_theorem_says():
    """S², r = π/8, n = 100, ε = 1: 2r/n by sums, 2·tan(r)/n around the mean, and 2·L(r)/n for the K-norm gradient."""
    facts = mean_facts(BALLS["sphere"], 100)
    scales = {name: calibrate(name, facts, PureDP(1.0), numerics).sigma for name, numerics in (ALL[0], ALL[4], ALL[6])}
    assert scales["wrapped-laplace"] == pytest.approx(0.00785398, rel=1e-6)
    assert calibrate("direct-laplace", facts, PureDP(1.0), "rounded").sigma == pytest.approx(0.00828427, rel=1e-6)
    assert scales["riemannian-laplace"] == pytest.approx(0.00828427, rel=1e-6)
    assert scales["k-norm-gradient"] == pytest.approx(2 * 0.0080623, rel=1e-4)


def test_safe_numerics_never_choose_an_idealized_mechanism():
    for ball in BALLS.values():
        for budget in (PureDP(1.0), GaussianDP(0.5)):
            chosen = choose(mean_facts(ball, 100), budget)
            assert chosen.mechanism.numerics in ("rounded", "lattice")
            errors = [each.expected_error.mean for each in offered(mean_facts(ball, 100), budget)]
            assert chosen.mechanism.expected_error.mean == min(errors)


@pytest.mark.parametrize("name", ["riemannian-laplace", "riemannian-gaussian", "k-norm-gradient"])
def test_idealized_mechanisms_must_be_asked_for(name):
    with pytest.raises(ArgumentError, match="idealized"):
        choose(mean_facts(BALLS["sphere"], 100), GaussianDP(1.0), mechanism=name)


def test_where_nothing_is_offered_the_reasons_are_told():
    with pytest.raises(NotAvailableError, match="wrapped-gaussian"):
        choose(mean_facts(BALLS["sphere"], 100), PureDP(1.0), mechanism="wrapped-gaussian")
    assert len(MECHANISMS) == 7
