"""The page's JavaScript gives the numbers of the library, on a grid."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import special

import dpmanifolds as dpm
from dpmanifolds.intrinsic.direct import of_frechet_mean
from dpmanifolds.manifolds import manifold_from_name
from dpmanifolds.planning import plan, split_plan
from dpmanifolds.planning.inverse import budget_for
from dpmanifolds.privacy import affordable_epsilon, affordable_mu, affordable_rho, affordable_shift, mu_for
from dpmanifolds.sums import mean_facts
from tests.planner.node import NODE, ask
from tests.selection import thorough

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

SPACES = {
    "euclidean:1": dpm.Euclidean(1),
    "euclidean:7": dpm.Euclidean(7),
    "sphere:1": dpm.Sphere(1),
    "sphere:2": dpm.Sphere(2),
    "sphere:9": dpm.Sphere(9),
    "hyperbolic:1": dpm.Hyperbolic(1),
    "hyperbolic:2": dpm.Hyperbolic(2),
    "hyperbolic:5": dpm.Hyperbolic(5),
    "spd:1": dpm.SPD(1),
    "spd:3": dpm.SPD(3),
    "spd:3:log-euclidean": dpm.SPD(3, "log-euclidean"),
    "spd:8:log-euclidean": dpm.SPD(8, "log-euclidean"),
    "spd:3:log-cholesky": dpm.SPD(3, "log-cholesky"),
    "shapes:3": dpm.PlanarShapes(3),
    "shapes:12": dpm.PlanarShapes(12),
    "rotations:2": dpm.SpecialOrthogonal(2),
    "rotations:3": dpm.SpecialOrthogonal(3),
    "rotations:5": dpm.SpecialOrthogonal(5),
    "grassmann:2,1": dpm.Grassmann(2, 1),
    "grassmann:6,1": dpm.Grassmann(6, 1),
    "grassmann:5,2": dpm.Grassmann(5, 2),
}
BUDGETS = [
    dpm.PureDP(0.3),
    dpm.PureDP(2.0),
    dpm.ApproxDP(0.5, 1e-6),
    dpm.ApproxDP(3.0, 1e-2),
    dpm.ApproxDP(0.01, 1e-2),
    dpm.GaussianDP(0.7),
    dpm.ZeroConcentratedDP(0.05),
]


def in_js(key: str) -> str:
    family, sizes, *metric = key.split(":")
    return f"space({json.dumps(family)}, [{sizes}], {json.dumps(metric[0] if metric else 'affine-invariant')})"


def budget_in_js(budget: dpm.Budget) -> str:
    kind = {"PureDP": "pure", "ApproxDP": "approx", "GaussianDP": "gaussian", "ZeroConcentratedDP": "zcdp"}
    return json.dumps({"kind": kind[type(budget).__name__], **budget.__dict__})


def ball_of(manifold: dpm.Manifold, share: float) -> dpm.Ball:
    """Around a natural centre, with a share of the largest radius, or of 2 where there is none."""
    centers = {
        dpm.Euclidean: lambda: np.zeros(manifold.dim),
        dpm.Sphere: lambda: np.eye(manifold.dim + 1)[-1],
        dpm.Hyperbolic: lambda: manifold.origin,
        dpm.PlanarShapes: lambda: manifold.random_point(rng=0),
        dpm.SpecialOrthogonal: lambda: np.eye(manifold.n),
        dpm.Grassmann: lambda: np.eye(manifold.n, manifold.p),
    }
    center = centers.get(type(manifold), lambda: np.eye(manifold.k))()
    return dpm.Ball(manifold, center, share * min(manifold.max_radius, 2.0))


def number(value: float | str) -> float:
    return math.inf if value == "Infinity" else float(value)


def test_special_functions_are_right_to_twelve_digits():
    points = np.concatenate([np.linspace(-4, 8, 61), [1.999999, 2.000001, 20.0, 26.0]])
    found = ask(*(f"[special.erfc({x!r}), special.erfcx({x!r})]" for x in points.tolist()))
    np.testing.assert_allclose([f[0] for f in found], special.erfc(points), rtol=1e-12)
    np.testing.assert_allclose([f[1] for f in found], special.erfcx(points), rtol=1e-12)
    arguments = [0.5, 1.0, 1.5, 7.0, 33.5, 900.0]
    found = ask(*(f"special.lgamma({x})" for x in arguments))
    np.testing.assert_allclose(found, special.gammaln(arguments), rtol=1e-12, atol=1e-14)


def test_facts_of_the_manifolds_agree():
    for key, told in zip(SPACES, ask(*map(in_js, SPACES)), strict=True):
        manifold = SPACES[key]
        assert told["dim"] == manifold.dim, key
        assert (told["lower"], told["upper"]) == manifold.curvature_bounds, key
        assert number(told["maxRadius"]) == pytest.approx(manifold.max_radius, rel=1e-15), key
        assert told["hadamard"] == manifold.is_hadamard, key
        assert told["flat"] == (manifold.is_hadamard and manifold.curvature_bounds == (0.0, 0.0)), key


def test_sensitivities_agree_with_everything_that_floating_point_adds():
    cases = [(key, ball_of(SPACES[key], share), n) for key in SPACES for share in (0.1, 0.7) for n in (1, 40, 10**6)]
    found = ask(*(f"planner.facts({in_js(key)}, {ball.radius!r}, {n})" for key, ball, n in cases))
    for (key, ball, n), told in zip(cases, found, strict=True):
        facts = mean_facts(ball, n)
        assert told["atCenter"] == pytest.approx(float(facts.at_center), rel=1e-9), (key, n)
        facts = of_frechet_mean(facts)
        assert told["inDistance"] == pytest.approx(float(facts.in_distance), rel=1e-9), (key, n)
        assert told["ofGradient"] == pytest.approx(float(facts.of_gradient), rel=1e-9), (key, n)


@pytest.mark.parametrize("key", ["sphere:2", "shapes:12", "rotations:3", "grassmann:5,2", "sphere:1"])
def test_a_radius_is_refused_where_the_library_refuses_it(key):
    manifold = SPACES[key]
    unique, wide, at = ask(
        *(
            f"planner.facts({in_js(key)}, {radius!r}, 100)"
            for radius in (0.9 * manifold.max_radius, 1.1 * manifold.max_radius, manifold.injectivity_radius)
        )
    )
    assert "refusal" not in unique
    assert "unknown" not in unique
    assert "unique" in wide["unknown"]
    assert "must be below" in at["refusal"]
    with pytest.raises(dpm.RadiusTooLargeError):
        dpm.Ball(manifold, manifold.random_point(rng=0), manifold.injectivity_radius)


def test_a_ball_too_large_for_a_solver_is_none_for_sums():
    (told,) = ask("planner.facts(space('hyperbolic', [2]), 20, 100)")
    assert told["atCenter"] == pytest.approx(0.4)
    assert "double precision" in told["unknown"]
    facts = mean_facts(dpm.Ball(dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 20.0), 100)
    with pytest.raises(dpm.NotAvailableError):
        assert of_frechet_mean(facts)


def test_what_budgets_afford_agrees():
    grid = [(e, d) for e in (0.01, 0.1, 1.0, 8.0, 50.0) for d in (1e-12, 1e-6, 1e-3, 0.1)]
    found = ask(*(f"planner.money.muFor({e}, {d})" for e, d in grid))
    np.testing.assert_allclose(found, [mu_for(e, d) for e, d in grid], rtol=1e-10)
    asked = [
        f"planner.money.{name}({budget_in_js(b)})" for b in BUDGETS for name in ("affordableEpsilon", "affordableMu")
    ]
    told = iter(ask(*asked, *(f"planner.money.affordableRho({budget_in_js(b)})" for b in BUDGETS)))
    for budget in BUDGETS:
        assert next(told) == pytest.approx(affordable_epsilon(budget), rel=1e-9)
        mu = next(told)
        assert mu is None if isinstance(budget, dpm.PureDP) else mu == pytest.approx(affordable_mu(budget), rel=1e-9)
    for budget in BUDGETS:
        rho = next(told)
        if isinstance(budget, dpm.PureDP | dpm.GaussianDP):
            assert rho is None
        else:
            assert rho == pytest.approx(affordable_rho(budget), rel=1e-6)


@thorough("dims", (1, 2, 21), (1, 2, 3, 4, 21, 301))
def test_what_laplace_noise_in_many_dimensions_affords_agrees_with_the_certified_supremum(dims):
    budgets = [
        dpm.ApproxDP(1e-3, 1e-9),
        dpm.ApproxDP(1.0, 1e-6),
        dpm.ApproxDP(20.0, 1e-12),
        dpm.GaussianDP(0.01),
        dpm.GaussianDP(1.99),
        dpm.GaussianDP(2.01),
        dpm.GaussianDP(9.0),
        dpm.ZeroConcentratedDP(1e-3),
        dpm.ZeroConcentratedDP(3.0),
    ]
    cases = [(budget, dim) for budget in budgets for dim in dims]
    # far along, and where the largest shift of all is kept
    cases += [(dpm.GaussianDP(10.0), 1500), (dpm.GaussianDP(30.0), 1500), (dpm.ApproxDP(200.0, 1e-6), 600)]
    found = ask(*(f"planner.money.affordableShift({budget_in_js(budget)}, {dim})" for budget, dim in cases))
    for (budget, dim), told in zip(cases, found, strict=True):
        wanted = max(affordable_shift(budget, dim), affordable_epsilon(budget, on_the_line=True))
        assert told == pytest.approx(wanted, rel=1e-7), (budget, dim)


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: f"{type(b).__name__}-{next(iter(b.__dict__.values()))}")
def test_expected_errors_of_safe_mechanisms_agree(budget):
    balls = {key: ball_of(manifold, 0.4) for key, manifold in SPACES.items()}
    asked = (
        f"planner.rows(planner.facts({in_js(key)}, {ball.radius!r}, 300), {budget_in_js(budget)})"
        for key, ball in balls.items()
    )
    for (key, ball), told in zip(balls.items(), ask(*asked), strict=True):
        ours = {(row["name"], row["numerics"]): row for row in told}
        for row in plan(ball, 300, budget, mechanisms=("wrapped-laplace", "wrapped-gaussian"), steps=1).rows:
            mine = ours[row.mechanism, row.numerics]
            assert mine["available"] == row.available, (key, row)
            if row.available:
                assert mine["sigma"] == pytest.approx(row.sigma, rel=1e-6), (key, row)
                assert mine["mean"] == pytest.approx(row.error.mean, rel=1e-6), (key, row)
                assert mine["atEdge"] == pytest.approx(row.error.mean_at_edge, rel=1e-6), (key, row)
                assert mine.get("chosen", False) == row.chosen, (key, row)
                if not row.error.simulated:
                    assert mine["radius90"] == pytest.approx(row.error.radius_90, rel=1e-6), (key, row)


def test_the_riemannian_laplace_agrees_where_the_page_offers_it():
    keys = [key for key in SPACES if key not in ("spd:3", "rotations:5", "grassmann:5,2")]
    balls = [ball_of(SPACES[key], 0.4) for key in keys]
    asked = (
        f"planner.rows(planner.facts({in_js(key)}, {ball.radius!r}, 30), {{kind: 'pure', epsilon: 0.8}})[4]"
        for key, ball in zip(keys, balls, strict=True)
    )
    for key, ball, told in zip(keys, balls, ask(*asked), strict=True):
        (row,) = plan(ball, 30, dpm.PureDP(0.8), mechanisms="riemannian-laplace", numerics="all").rows
        assert told["available"] == row.available, key
        if row.available:
            assert told["mean"] == pytest.approx(row.error.mean, rel=1e-6), key
            assert told["radius90"] == pytest.approx(row.error.radius_90, rel=1e-6), key


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("key", ["sphere:2", "hyperbolic:2", "shapes:12"])
def test_the_k_norm_gradient_agrees_with_draws(key):
    """20 000 draws of a fixed seed: the mean is within 4 % but for a chance far below 1e−6 (it is a fixed number)."""
    ball = ball_of(SPACES[key], 0.4)
    (told,) = ask(f"planner.rows(planner.facts({in_js(key)}, {ball.radius!r}, 30), {{kind: 'pure', epsilon: 2}})[6]")
    (row,) = plan(ball, 30, dpm.PureDP(2.0), mechanisms="k-norm-gradient", numerics="all").rows
    assert told["sigma"] == pytest.approx(row.sigma, rel=1e-9)
    assert told["mean"] == pytest.approx(row.error.mean, rel=0.04)


def test_the_budget_for_an_error_agrees():
    ball = ball_of(SPACES["spd:3"], 0.5)
    f = f"planner.facts({in_js('spd:3')}, {ball.radius!r}, 500)"
    pure, approx, none = ask(
        f"planner.budgetFor({f}, {{kind: 'pure', epsilon: 1}}, 'auto', 0.03)",
        f"planner.budgetFor({f}, {{kind: 'approx', epsilon: 1, delta: 1e-6}}, 'wrapped-gaussian (rounded)', 0.03)",
        f"planner.budgetFor({f}, {{kind: 'pure', epsilon: 1}}, 'wrapped-gaussian (rounded)', 0.03)",
    )
    assert pure["epsilon"] == pytest.approx(budget_for(ball, 500, 0.03, steps=1).epsilon, rel=1e-6)
    wanted = budget_for(ball, 500, 0.03, dpm.ApproxDP, delta=1e-6, mechanism="wrapped-gaussian", steps=1)
    assert approx["epsilon"] == pytest.approx(wanted.epsilon, rel=1e-6)
    assert none is None


def test_a_shared_budget_is_cut_as_the_library_cuts_it():
    ball = ball_of(SPACES["spd:8:log-euclidean"], 0.5)
    for count in (2, 50):
        (told,) = ask(
            f"planner.shared(planner.facts({in_js('spd:8:log-euclidean')}, {ball.radius!r}, 1000), "
            f"{{kind: 'approx', epsilon: 1, delta: 1e-6}}, Array({count}).fill(1), 'auto')"
        )
        best = split_plan(ball, 1000, dpm.ApproxDP(1.0, 1e-6), count).best()
        row = told["releases"][0]["row"]
        assert row["name"] == best.mechanism
        assert row["mean"] == pytest.approx(best.error.mean, rel=1e-6)
        assert len(told["releases"]) == count
    (uneven,) = ask("planner.money.split({kind: 'gaussian', mu: 1}, [0.36, 0.64])")
    assert [part["mu"] for part in uneven[0]] == pytest.approx([0.6, 0.8])


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("n", "spread"), [(500, 0.5), (20, 0.013), (100_000, 2.0)])
def test_the_sampling_error_is_told_in_the_words_of_the_plan(n, spread):
    found = dpm.plan(dpm.Ball(dpm.SPD(3), np.eye(3), 1.5), n, dpm.PureDP(1.0), spread=spread)
    useful = found.usefulness()
    [told] = ask(f"planner.sampling({n}, {spread!r}, {useful.error!r})")
    assert told["without"] == pytest.approx(useful.sampling_error)
    assert told["ratio"] == pytest.approx(useful.over_sampling)
    assert told["equal"] == useful.equal_from
    assert told["words"] in found.remarks


def test_an_error_is_told_in_the_units_that_python_tells_it_in():
    """Degrees and shares of a size are the same numbers; of matrices the page tells a bound that no draw exceeds."""
    cases = {"sphere:2": "degrees", "rotations:3": "degrees", "grassmann:4,2": "degrees", "shapes:5": "% of the size"}
    told = ask(
        *(f"spaces.describe({in_js(place)}, 0.05)" for place in cases), f"spaces.describe({in_js('spd:3')}, 0.05)"
    )
    for (place, unit), words in zip(cases.items(), told[:-1], strict=True):
        space = manifold_from_name(place)
        theirs = space.describe_distance(space.random_point(rng=0), 0.05)
        assert unit in words.replace("\xa0", " ")
        assert float(words.split()[0].replace("\xa0%", "")) == pytest.approx(float(theirs.split()[0]), rel=0.01)
    bound = float(told[-1].replace("\xa0%", "").split()[-1]) / 100
    assert bound == pytest.approx(math.expm1(0.05), rel=1e-3)
    for space in (dpm.SPD(3), dpm.SPD(3, "log-euclidean")):
        points = space.random_point(200, rng=0)
        steps = np.random.default_rng(1).standard_normal((200, 6))
        moved = space.exp(points, space.from_coordinates(points, 0.05 * steps / np.linalg.norm(steps, axis=1)[:, None]))
        ratio = np.linalg.eigvalsh(moved) / np.linalg.eigvalsh(points)
        assert np.all(np.abs(np.log(ratio)) <= 0.05 * (1 + 1e-9))
        assert np.abs(np.log(ratio)).max() > 0.04
