"""Sensitivities: their values, the lemmas behind them, and what is refused."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmanifolds import (
    SPD,
    ApproxDP,
    ArgumentError,
    Ball,
    Domain,
    Euclidean,
    Grassmann,
    Hyperbolic,
    NotAvailableError,
    PlanarShapes,
    Power,
    Product,
    RadiusTooLargeError,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
    frechet_mean,
)
from dpmanifolds.privacy import (
    Sensitivity,
    sensitivity_of_flat_mean,
    sensitivity_of_mean,
    sensitivity_of_mean_at_center,
    sensitivity_of_mean_gradient,
    sensitivity_of_variance,
)
from dpmanifolds.statistics.solver_error import solver_tolerance
from dpmanifolds.sums import calibrate, mean_facts, value_facts

CERTIFICATE = Path(__file__).parents[2] / "certificates" / "sensitivity.py"


def ball_of(manifold, radius):
    return Ball(manifold, manifold.random_point(rng=1), radius)


def sphere_ball(radius, d=2, curvature=1.0):
    return ball_of(Sphere(d, curvature), radius)


@mpmath.workdps(60)
def largest_log_image(r):
    """L(r) from its definition, with 60 digits."""
    r = mpmath.mpf(r)

    def pair(psi):
        side = mpmath.acos(mpmath.cos(r) ** 2 - mpmath.sin(r) ** 2 * mpmath.cos(psi))
        return 2 * side / mpmath.sin(side) * mpmath.sin(r) * mpmath.sin(psi)

    grid = [pair(mpmath.pi * i / 400) for i in range(1, 400)]
    best = max(range(399), key=lambda i: grid[i]) + 1
    low, high = mpmath.pi * (best - 1) / 400, mpmath.pi * (best + 1) / 400
    for _ in range(80):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if pair(a) < pair(b) else (low, b)
    return pair(low)


def test_the_values_of_the_mathematics_page():
    ball, wide = sphere_ball(math.pi / 8), sphere_ball(0.24 * math.pi)
    assert round(float(sensitivity_of_mean(ball, 1000)) * 1000, 6) == 0.828427
    assert round(float(sensitivity_of_mean_gradient(ball, 7)) * 7, 4) == 0.8062
    assert round(float(sensitivity_of_mean_gradient(wide, 3)) * 3, 3) == 1.668


@pytest.mark.parametrize(
    ("manifold", "radius", "expected"),
    [
        (Sphere(3, 4.0), 0.5, math.tan(1.0)),
        (Sphere(2), 1.5, 2 * math.tan(1.5)),
        (PlanarShapes(5), 0.3, math.tan(0.6)),
        (SpecialOrthogonal(3), 1.0, 4 * math.tan(0.5)),
        (SpecialOrthogonal(4), 1.0, 2 * math.sqrt(2) * math.tan(math.sqrt(0.5))),
        (Grassmann(4, 2), 0.5, math.sqrt(2) * math.tan(math.sqrt(2) * 0.5)),
        (Grassmann(4, 1), 0.7, 2 * math.tan(0.7)),
        (Hyperbolic(3), 4.0, 8.0),
        (SPD(3), 2.0, 4.0),
        (SPD(3, metric="log-euclidean"), 2.0, 4.0),
        (Sphere(1), 1.5, 3.0),
        (SpecialOrthogonal(2), 1.5, 3.0),
        (Grassmann(2, 1), 0.7, 1.4),
        (Product(Sphere(1), Euclidean(2)), 1.5, 3.0),
        (Product(Sphere(1), Hyperbolic(2)), 1.5, 3.0),
        (Power(Sphere(1), 3), 1.5, 3.0),
        (Product(Sphere(2), Hyperbolic(2)), 0.4, 2 * math.tan(0.4)),
        (Product(Sphere(2), PlanarShapes(4)), 0.4, math.tan(0.8)),
        (Power(Sphere(2), 3), 0.4, 2 * math.tan(0.4)),
    ],
    ids=repr,
)
def test_the_mean_moves_at_most_by_the_curvature_of_each_space(manifold, radius, expected):
    ball = ball_of(manifold, radius)
    for function in (sensitivity_of_mean, sensitivity_of_mean_at_center):
        sensitivity = function(ball, 1000)
        assert float(sensitivity) * 1000 == pytest.approx(expected, rel=1e-12)
        assert float(sensitivity) * 1000 >= expected * (1 - 1e-15)
        assert sensitivity.tag == ("P" if manifold.curvature_bounds[1] <= 0 else "P (certified)")
    assert float(sensitivity_of_mean(ball, 1)) == pytest.approx(2 * radius, rel=1e-12)


@pytest.mark.grid(at_most=5)
@pytest.mark.parametrize("radius", [1e-9, 1e-7, 2e-6, 1e-3, 0.1, math.pi / 8, 0.7, 1.2, 1.5, 1.57])
def test_the_gradient_moves_at_most_by_the_widest_logarithm(radius):
    computed = float(sensitivity_of_mean_gradient(sphere_ball(radius), 1))
    exact = float(largest_log_image(radius))
    assert exact * (1 - 1e-15) <= computed <= exact * (1 + 1e-11)
    scaled = float(sensitivity_of_mean_gradient(sphere_ball(radius / 3, curvature=9.0), 1))
    assert scaled == pytest.approx(computed / 3, rel=1e-11)


@pytest.mark.parametrize(
    ("r", "t"), [(0.3, 0.1), (0.3, 0.3), (1.0, 0.5), (1.0, 1.0), (1.5, 0.2), (1.5, 1.4), (1.5, 1.5)]
)
def test_the_widest_pair_of_logarithms_is_symmetric_about_the_axis(r, t):
    """The lemma of docs/proofs: the diameter of log_x(B_r) is twice its largest half-width, d(x, m₀) = t."""
    psi = np.linspace(-math.pi, math.pi, 1201)
    sphere = Sphere(2)
    x = np.array([math.sin(t), 0.0, math.cos(t)])
    circle = np.stack([math.sin(r) * np.cos(psi), math.sin(r) * np.sin(psi), np.full_like(psi, math.cos(r))], axis=-1)
    logs = sphere.to_coordinates(x, sphere.log(x, circle))
    axis = sphere.to_coordinates(x, np.array([-math.cos(t), 0.0, math.sin(t)]))
    half_width = np.abs(logs @ np.array([-axis[1], axis[0]])).max()
    gaps = np.linalg.norm(logs[:, None] - logs[None], axis=-1)
    assert gaps.max() == pytest.approx(2 * half_width, rel=1e-5)
    half_chord = math.acos(min(1.0, math.cos(r) / math.cos(t)))
    convexity = half_chord / math.tan(half_chord) if half_chord else 1.0
    assert t / math.sin(t) * 2 * half_width / convexity <= 2 * math.tan(r)


class Box(Domain):
    """[0, 3]×[0, 4], which is not a ball."""

    manifold = Euclidean(2)
    center = np.array([1.5, 2.0])
    radius = 2.5
    diameter = 5.0

    def clip(self, points):
        return np.clip(points, 0.0, [3.0, 4.0])

    def contains(self, points):
        return np.all(points == self.clip(points), axis=-1)


def test_flat_domains_count_by_their_diameter():
    assert float(sensitivity_of_flat_mean(Box(), 10)) == pytest.approx(0.5, rel=1e-12)
    assert float(sensitivity_of_flat_mean(Box(), 10, rounding=0.1, solver_tolerance=0.2)) == pytest.approx(1.1)
    for manifold in (Sphere(2), Sphere(1), SPD(2), Hyperbolic(2)):
        with pytest.raises(ArgumentError, match="flat"):
            sensitivity_of_flat_mean(ball_of(manifold, 0.5), 10)


def test_the_variance_of_flat_records_attains_its_bound():
    n, r = 7, 2.0
    records = np.full((n, 1), -r)
    moved = records.copy()
    moved[0] = r
    change = moved.var() - records.var()
    bound = float(sensitivity_of_variance(Ball(Euclidean(1), [0.0], r), n))
    assert change == pytest.approx(bound, rel=1e-12)
    assert change <= bound


def test_the_variance_on_negative_curvature_stays_below_the_plain_bound():
    r, n = 1.0, 5
    steepness = 2 / math.tanh(2.0)
    bound = float(sensitivity_of_variance(ball_of(Hyperbolic(2), r), n))
    assert bound == pytest.approx(4 / n * (4 * steepness) / (4 * steepness + 1), rel=1e-12)
    assert 4 * (n - 1) / n**2 < bound < 4 / n


def test_public_errors_are_charged_on_both_sides():
    ball = sphere_ball(1.0)
    plain = float(sensitivity_of_mean(ball, 50))
    assert float(sensitivity_of_mean(ball, 50, solver_tolerance=0.01)) == pytest.approx(plain + 0.02)
    assert float(sensitivity_of_mean(ball, 50, rounding=0.01)) == pytest.approx(plain + 0.02)
    tangent = float(sensitivity_of_mean_at_center(ball, 50, solver_tolerance=0.01, rounding=0.1))
    assert tangent == pytest.approx(plain + 0.02 / math.sin(1.0) + 0.2)
    hadamard = float(sensitivity_of_mean_at_center(ball_of(SPD(2), 1.0), 50, solver_tolerance=0.01))
    assert hadamard == pytest.approx(0.04 + 0.02)
    variance = float(sensitivity_of_variance(ball, 50, solver_tolerance=0.1, rounding=0.01))
    assert variance == pytest.approx(4 * 49 / 2500 + 0.01 + 0.02)


@given(st.floats(0.01, 1.55), st.integers(1, 10**9))
def test_bounds_are_above_the_flat_ones_and_below_the_diameter(r, n):
    ball = sphere_ball(r)
    tight = float(sensitivity_of_mean(ball, n))
    assert min(2 * r / n, 2 * r) <= tight <= 2 * r * (1 + 1e-12)
    assert 2 * r / n <= float(sensitivity_of_mean_gradient(ball, n)) <= 2 * math.tan(r) / n * (1 + 1e-12)


@pytest.mark.parametrize("n", [0, -1, 1.5, math.nan, "7", None])
def test_a_bad_count_is_refused(n):
    ball = sphere_ball(0.5)
    for function in (
        sensitivity_of_mean,
        sensitivity_of_mean_at_center,
        sensitivity_of_mean_gradient,
        sensitivity_of_variance,
    ):
        with pytest.raises(ArgumentError, match="n must be"):
            function(ball, n)
    with pytest.raises(ArgumentError, match="n must be"):
        sensitivity_of_flat_mean(Box(), n)


@pytest.mark.parametrize("bad", [-1e-9, math.nan, math.inf, "x", None])
def test_bad_error_bounds_are_refused(bad):
    for name in ("solver_tolerance", "rounding"):
        for function in (sensitivity_of_mean, sensitivity_of_mean_at_center, sensitivity_of_variance):
            with pytest.raises(ArgumentError, match=name):
                function(sphere_ball(0.5), 10, **{name: bad})
        with pytest.raises(ArgumentError, match=name):
            sensitivity_of_flat_mean(Box(), 10, **{name: bad})


def test_other_bad_input_is_refused():
    with pytest.raises(ArgumentError, match="ball must be a Ball"):
        sensitivity_of_mean(0.5, 10)
    with pytest.raises(ArgumentError, match="ball must be a Ball"):
        sensitivity_of_variance(Box(), 10)
    with pytest.raises(ArgumentError, match="domain must be a Domain"):
        sensitivity_of_flat_mean(Euclidean(2), 10)
    with pytest.raises(ArgumentError, match="at least 2"):
        sensitivity_of_variance(sphere_ball(0.5), 1)
    with pytest.raises(ArgumentError, match="value"):
        Sensitivity(-1.0, "S1", "P", "")
    with pytest.raises(RadiusTooLargeError, match="is unique for radii below"):
        sensitivity_of_mean(sphere_ball(math.nextafter(math.pi / 2, 0)), 10)
    for manifold, radius in ((Sphere(2), 1.6), (Sphere(1), 1.6), (PlanarShapes(4), 0.8), (Stiefel(3, 2), 0.1)):
        with pytest.raises(RadiusTooLargeError):
            sensitivity_of_mean(ball_of(manifold, radius), 10)


SOLVED = [
    (Sphere(2), 1.4),
    (Sphere(1), 1.4),
    (Sphere(20, 4.0), 0.7),
    (Hyperbolic(3), 2.0),
    (PlanarShapes(6), 0.7),
    (SpecialOrthogonal(3), 1.4),
    (SpecialOrthogonal(4), 1.4),
    (Grassmann(5, 2), 0.7),
    (SPD(3), 2.0),
    (SPD(5), 2.0),
    (SPD(3, metric="log-euclidean"), 2.0),
    (SPD(3, metric="log-cholesky"), 2.0),
    (Euclidean(4), 10.0),
    (Power(SPD(2), 5), 2.0),
    (Product(Sphere(2), SPD(2), Sphere(1)), 1.0),
]


@pytest.mark.parametrize(("manifold", "radius"), SOLVED, ids=repr)
def test_the_public_solver_tolerance_is_reached(manifold, radius):
    ball = ball_of(manifold, radius)
    rng = np.random.default_rng(0)
    for count in (1, 2, 40):
        delta = solver_tolerance(ball, count)
        assert delta < 1e-4 * radius
        for _ in range(3):
            records = ball.clip(manifold.random_point(count, rng=rng))
            assert frechet_mean(manifold, records).error_bound <= delta / 2


def test_an_unreachable_solver_tolerance_is_refused_before_any_record_is_read():
    with pytest.raises(ArgumentError, match="solver tolerance"):
        solver_tolerance(ball_of(SPD(3), 12.0), 100)
    with pytest.raises(ArgumentError, match="solver tolerance"):
        solver_tolerance(sphere_ball(math.pi / 2 - 1e-6), 100)
    with pytest.raises(ArgumentError, match="dtype"):
        solver_tolerance(sphere_ball(0.5), 100, dtype="int64")
    with pytest.raises(ArgumentError, match="must be a Domain"):
        solver_tolerance("everywhere", 100)
    assert solver_tolerance(Box(), 100) == solver_tolerance(Ball(Euclidean(2), Box.center, 2.5), 100)
    assert solver_tolerance(sphere_ball(0.5), 100, dtype=np.float32) > solver_tolerance(sphere_ball(0.5), 100)


@pytest.fixture(scope="module")
def certificate():
    pytest.importorskip("flint")
    spec = importlib.util.spec_from_file_location("certificate_of_sensitivity", CERTIFICATE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_last_step_of_s1_is_certified(certificate):
    assert certificate.main() == 0


def test_the_certificate_bounds_the_slack_from_below(certificate):
    """(N) of the proof against the slack itself, in double precision."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        r, share = rng.uniform(0.1, 1.5), rng.uniform(0.1, 1.0)
        lower = float(certificate.near(*map(certificate.arb, (r, r, share, share))))
        t, s = r * share, rng.uniform(0.0, 1.0) ** 3
        rho = math.acos(math.cos(r) * math.cos(t) - s * math.sin(r) * math.sin(t))
        inner = math.acos(min(1.0, math.cos(r) / math.cos(t)))
        logs = [math.log(x / math.sin(x)) if x else 0.0 for x in (inner, rho)]
        slack = logs[0] - logs[1] - math.log(t / math.tan(t)) - math.log1p(-s * s) / 2
        assert slack / (r * t) ** 2 >= lower - 1e-9


def test_the_certificate_rejects_a_false_claim(certificate, monkeypatch):
    box = [certificate.arb(x) for x in (1.0, 1.001, 0.8, 0.801)]
    assert certificate.far(*box, 64)
    right = certificate.k
    monkeypatch.setattr(certificate, "k", lambda x: right(x) ** 2)
    assert not certificate.far(*box, 64)


def test_a_bound_for_replacements_is_not_taken_for_added_records():
    """`value_facts` labelled it with whatever adjacency was named."""
    ball = Ball(SPD(2), np.eye(2), 1.0)
    with pytest.raises(ArgumentError, match="'replace-one' neighbours; got adjacency 'add-remove-one'"):
        value_facts(ball, sensitivity_of_mean(ball, 10), adjacency="add-remove-one")
    with pytest.raises(ArgumentError, match="adjacency"):
        value_facts(ball, 0.1, adjacency="swap")
    stated = value_facts(ball, 0.1, adjacency="add-remove-one")
    assert (stated.adjacency, stated.at_center.adjacency) == ("add-remove-one", "add-remove-one")


@pytest.mark.parametrize("labels", [{"adjacency": "add-remove-one"}, {"labelled": True}])
def test_no_mechanism_around_the_mean_itself_where_its_bound_does_not_hold(labels):
    """direct-gaussian was calibrated there, to the facts of a sum."""
    facts = mean_facts(Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5), 100, **labels)
    around = {"direct-gaussian": "rounded", "direct-laplace": "rounded", "k-norm-gradient": "idealized"}
    for name, numerics in around.items():
        with pytest.raises(NotAvailableError, match="replace-one neighbours and public classes only"):
            calibrate(name, facts, ApproxDP(1.0, 1e-6), numerics)


@pytest.mark.parametrize("gaussian", [True, False])
def test_the_facts_of_a_mean_that_counts_along_are_the_length_of_one_record(gaussian):
    """(z, c₀) with |z| ≤ R: what one record more adds to the sum, to the last step."""
    shape = mean_facts(Ball(Euclidean(3), np.zeros(3), 1.0), 100, adjacency="add-remove-one").shape
    for exponent in (8, 20, shape.finest):
        radius, weight = 1 << exponent, shape.weight(exponent, gaussian=gaussian)
        moved = shape.diameter(exponent, gaussian=gaussian)
        assert (moved - 1) ** 2 < radius * radius + weight * weight <= moved * moved
