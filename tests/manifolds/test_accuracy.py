"""Accuracy where naive formulas lose their digits, the normalisation of each metric, and the facts of each space."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dpmanifolds._arrays import log_sinc, log_sinhc, sinc, sinhc, x_cot_x, x_coth_x
from dpmanifolds.manifolds import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Power,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)

PI, INF = math.pi, math.inf
METRICS = ("affine-invariant", "log-euclidean", "log-cholesky")
CURVATURES = (1.0, 4.0, 0.3)


def unit_tangents(space: Manifold, base: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    coordinates = rng.standard_normal((*space.batch_shape(base), space.dim))
    return space.from_coordinates(base, coordinates / np.linalg.norm(coordinates, axis=-1, keepdims=True))


def exact(array: np.ndarray) -> Any:
    return mp.matrix(array.tolist())


def exact_angle(x: np.ndarray, y: np.ndarray) -> Any:
    """The angle of two real vectors, from the float64 numbers as given."""
    x, y = exact(x), exact(y)
    return mp.acos((x.T * y)[0] / (mp.norm(x) * mp.norm(y)))


ELEMENTARY = {
    log_sinc: lambda x: mp.log(mp.sin(x) / x),
    log_sinhc: lambda x: mp.log(mp.sinh(x) / x),
    x_cot_x: lambda x: x * mp.cot(x),
    x_coth_x: lambda x: x * mp.coth(x),
    sinc: lambda x: mp.sin(x) / x,
    sinhc: lambda x: mp.sinh(x) / x,
}


@pytest.mark.parametrize("function", list(ELEMENTARY))
def test_elementary_functions_are_right_to_14_digits_on_both_sides_of_the_series_switch(function):
    x = np.concatenate([np.logspace(-10, -1.3, 20), np.linspace(0.06, 0.14, 81), np.linspace(0.15, 3.1, 60)])
    with mp.workdps(50):
        expected = np.array([float(ELEMENTARY[function](mp.mpf(value))) for value in x.tolist()])
    for sign in (1, -1):
        assert np.max(np.abs(function(sign * x) / expected - 1)) <= 1e-14


def test_elementary_functions_at_zero_and_far_out():
    zero = np.zeros(1)
    assert [float(function(zero)[0]) for function in ELEMENTARY] == [0, 0, 1, 1, 1, 1]
    assert np.all(log_sinc(np.array([PI, 4.0, 100.0])) == -INF)
    assert float(log_sinhc(np.array(2000.0))) == pytest.approx(2000 - math.log(4000), rel=1e-15)
    assert float(x_coth_x(np.array(2000.0))) == 2000.0


@pytest.mark.parametrize("curvature", CURVATURES)
def test_sphere_distance_keeps_its_digits_at_angle_1e_minus_7(curvature):
    space, rng = Sphere(4, curvature), np.random.default_rng(1)
    x = space.random_point(20, rng=rng)
    u = unit_tangents(space, x, rng)
    y = math.cos(1e-7) * x + math.sin(1e-7) * space.sphere_radius * u
    distance = space.dist(x, y) / space.sphere_radius
    assert np.max(np.abs(distance / 1e-7 - 1)) <= 1e-8
    assert np.max(np.abs(space.norm(x, space.log(x, y)) / space.sphere_radius / 1e-7 - 1)) <= 1e-8
    with mp.workdps(50):
        as_given = [float(exact_angle(a, b)) for a, b in zip(x, y, strict=True)]
    assert np.allclose(distance, as_given, rtol=1e-14, atol=0)


@pytest.mark.parametrize("gap", [1e-5, 1e-9, 1e-13, 1e-15])
@pytest.mark.parametrize("curvature", CURVATURES)
def test_sphere_log_has_the_right_norm_just_before_the_antipode(curvature, gap):
    space, rng = Sphere(3, curvature), np.random.default_rng(2)
    x = space.random_point(50, rng=rng)
    y = -math.cos(gap) * x + math.sin(gap) * space.sphere_radius * unit_tangents(space, x, rng)
    v = space.log(x, y)
    assert np.allclose(space.norm(x, v), (PI - gap) * space.sphere_radius, rtol=1e-14, atol=0)
    assert np.allclose(space.dist(x, y), (PI - gap) * space.sphere_radius, rtol=1e-14, atol=0)
    assert np.max(np.abs(np.sum(x * v, axis=-1))) < 1e-12
    assert np.allclose(space.exp(x, v), y, rtol=0, atol=1e-14)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_sphere_log_of_the_antipode_is_one_of_the_shortest_ways_there(curvature):
    space = Sphere(3, curvature)
    x = space.random_point(4, rng=3)
    # the antipode, the antipode off by the last bit, the point itself, and an ordinary point in one batch
    y = np.stack([-x[0], -x[1] * (1 + 2**-52), x[2], x[0]])
    v = space.log(x, y)
    assert np.allclose(space.norm(x, v)[:2], PI * space.sphere_radius, rtol=1e-14)
    assert np.max(np.abs(np.sum(x * v, axis=-1))) < 1e-10
    assert np.all(v[2] == 0)
    assert np.allclose(space.exp(x, v), y, rtol=0, atol=1e-14)


def shape_pair(angle: float, k: int = 7, count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Shapes at this distance, the second one turned by an arbitrary phase."""
    space, rng = PlanarShapes(k), np.random.default_rng(4)
    x = space.random_point(count, rng=rng)
    y = math.cos(angle) * x + math.sin(angle) * unit_tangents(space, x, rng)
    return x, y * np.exp(1j * rng.uniform(0, 2 * PI, size=(count, 1)))


def test_shape_distance_keeps_its_digits_at_angle_1e_minus_7():
    x, y = shape_pair(1e-7)
    assert np.max(np.abs(PlanarShapes(7).dist(x, y) / 1e-7 - 1)) <= 1e-8
    assert np.max(np.abs(np.linalg.norm(PlanarShapes(7).log(x, y), axis=-1) / 1e-7 - 1)) <= 1e-8


@pytest.mark.parametrize("angle", [1e-7, 1e-3, 1.0, PI / 2 - 1e-9, PI / 2])
def test_shape_log_is_horizontal_and_leads_to_the_point_up_to_the_cut_locus(angle):
    space = PlanarShapes(7)
    x, y = shape_pair(angle)
    v = space.log(x, y)
    assert np.allclose(np.linalg.norm(v, axis=-1), angle, rtol=1e-8, atol=0)
    assert np.max(np.abs(np.sum(np.conj(x) * v, axis=-1))) < 1e-14
    assert np.max(np.abs(np.sum(v, axis=-1))) < 1e-14
    assert np.max(space.dist(space.exp(x, v), y)) < 1e-14


@pytest.mark.parametrize("radius", [1e-8, 1.0, 8.0, 25.0])
@pytest.mark.parametrize("curvature", [-1.0, -4.0, -0.25])
def test_hyperbolic_round_trip_from_the_origin_keeps_its_digits_to_radius_25(curvature, radius):
    space, rng = Hyperbolic(3, curvature), np.random.default_rng(5)
    origin = np.broadcast_to(space.origin, (40, 4))
    v = radius * unit_tangents(space, origin, rng)
    reached = space.exp(space.origin, v)
    assert np.allclose(space.log(space.origin, reached), v, rtol=0, atol=1e-13 * radius)
    assert np.allclose(space.dist(space.origin, reached), radius, rtol=1e-13)


@pytest.mark.parametrize("radius", [1e-6, 1.0, 10.0, 20.0])
@pytest.mark.parametrize("spread", [1e-6, 1e-2, 2.0])
def test_hyperbolic_distance_is_right_to_13_digits_of_the_numbers_as_given(radius, spread):
    space, rng = Hyperbolic(3, -4.0), np.random.default_rng(6)
    spatial = rng.standard_normal((20, 3))
    spatial *= math.sinh(2 * radius) / 2 / np.linalg.norm(spatial, axis=-1, keepdims=True)
    other = spatial * (1 + spread * rng.standard_normal((20, 3)))
    x, y = (space.project(np.concatenate([np.zeros((20, 1)), part], axis=-1)) for part in (spatial, other))

    def expected(a: Any, b: Any) -> float:
        times = mp.sqrt((mp.mpf(1) / 4 + (a.T * a)[0]) * (mp.mpf(1) / 4 + (b.T * b)[0]))
        return float(mp.acosh(4 * (times - (a.T * b)[0])) / 2)

    with mp.workdps(80):
        as_given = [expected(exact(a), exact(b)) for a, b in zip(spatial, other, strict=True)]
    assert np.allclose(space.dist(x, y), as_given, rtol=1e-13, atol=0)


def test_hyperbolic_exp_comes_back_from_radius_8_to_the_middle():
    space, rng = Hyperbolic(3), np.random.default_rng(7)
    near = space.random_point(100, rng=rng)
    far = space.exp(space.origin, 8 * unit_tangents(space, np.broadcast_to(space.origin, near.shape), rng))
    assert np.max(space.dist(space.exp(far, space.log(far, near)), near)) < 1e-7
    assert np.max(space.dist(space.exp(near, space.log(near, far)), far)) < 1e-9


@pytest.mark.parametrize("curvature", [-1.0, -4.0])
@pytest.mark.parametrize("size", [0.0, 1e-9, 0.5, 1 - 1e-3, 1 - 1e-9, 1 - 1e-12])
def test_poincare_coordinates_round_trip_up_to_the_boundary(curvature, size):
    space, rng = Hyperbolic(3, curvature), np.random.default_rng(8)
    direction = rng.standard_normal((30, 3))
    ball = size * direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    point = space.from_poincare(ball)
    assert np.all(space.belongs(point, 1e-13))
    assert np.allclose(space.to_poincare(point), ball, rtol=1e-14, atol=0)
    distance = 2 * math.atanh(size) / math.sqrt(-curvature)
    assert np.allclose(space.dist(space.origin, point), distance, rtol=1e-13 + 2e-16 / (1 - size), atol=0)


@pytest.mark.parametrize(("n", "p"), [(2, 1), (5, 1), (5, 2), (5, 4), (6, 3), (8, 3)])
@pytest.mark.parametrize("angle", [1e-8, PI / 2 - 1e-8])
def test_grassmann_distance_is_right_to_6_digits_at_small_and_at_right_angles(n, p, angle):
    space, rng = Grassmann(n, p), np.random.default_rng(9)
    for ratio in (0.0, 0.5, 1.0):
        x = space.random_point((), rng=rng)
        left, _, right = np.linalg.svd(space.random_tangent(x, rng=rng), full_matrices=False)
        angles = np.zeros(p)
        angles[0] = angle
        if space.rank > 1:
            angles[1] = ratio * angle
        turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
        y = (x @ right.T * np.cos(angles) + left * np.sin(angles)) @ turn
        assert float(space.dist(x, y)) == pytest.approx(np.linalg.norm(angles), rel=1e-6)
        v = space.log(x, y)
        assert float(np.linalg.norm(v)) == pytest.approx(np.linalg.norm(angles), rel=1e-6)
        assert float(space.dist(space.exp(x, v), y)) < 1e-14


def rotations_near_pi(n: int, gaps: list[float], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A base and the rotation of it by π − gap in as many planes as there are gaps."""
    space = SpecialOrthogonal(n)
    block = np.eye(n)
    for i, gap in enumerate(gaps):
        cosine, sine = -math.cos(gap), math.sin(gap)
        block[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cosine, -sine], [sine, cosine]]
    frame, base = space.random_point(rng=rng), space.random_point(rng=rng)
    return base, base @ frame @ block @ frame.T


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12, 1e-13, 64 * 4 * 2.0**-52, 1e-14, 1e-15, 0.0])
def test_rotation_log_keeps_its_digits_up_to_the_angle_pi(n, gap):
    space, rng = SpecialOrthogonal(n), np.random.default_rng(10)
    for gaps in [[gap], *([[gap, ratio * gap] for ratio in (1.0, 0.5, 1e-3)] if n >= 4 else [])]:
        for _ in range(4):
            base, point = rotations_near_pi(n, gaps, rng)
            expected = np.linalg.norm(PI - np.array(gaps))
            v = space.log(base, point)
            assert float(space.dist(base, point)) == pytest.approx(expected, abs=1e-14)
            assert float(space.norm(base, v)) == pytest.approx(expected, abs=1e-9)
            assert np.allclose(space.exp(base, v), point, rtol=0, atol=1e-9)


@pytest.mark.parametrize("diagonal", [(-1, -1), (1, -1, -1), (-1, -1, 1, 1), (-1, -1, -1, -1), (-1, 1, -1, -1, -1)])
def test_rotation_by_exactly_pi_has_a_log_that_leads_there(diagonal):
    space, point = SpecialOrthogonal(len(diagonal)), np.diag(np.array(diagonal, dtype=float))
    identity = np.eye(len(diagonal))
    v = space.log(identity, point)
    planes = diagonal.count(-1) // 2
    assert np.array_equal(v, -v.T)
    assert float(space.norm(identity, v)) == pytest.approx(PI * math.sqrt(planes), abs=1e-14)
    assert float(space.dist(identity, point)) == pytest.approx(PI * math.sqrt(planes), abs=1e-14)
    assert np.allclose(space.exp(identity, v), point, rtol=0, atol=1e-14)


def pairs_at_the_cut_locus() -> list[tuple[Manifold, np.ndarray, np.ndarray]]:
    """Spaces, points, and other points at (or within rounding of) the injectivity radius from them."""
    rng = np.random.default_rng(24)
    pairs = []
    for space in (Sphere(1), Sphere(3, 4.0)):
        x = space.random_point(4, rng=rng)
        factor = np.array([-1.0, -1 - 2**-52, -1 + 2**-52, -1])
        pairs.append((space, x, factor[:, None] * x + [[0.0], [0.0], [0.0], [1e-14]] * unit_tangents(space, x, rng)))
    shapes, lines = PlanarShapes(5), Grassmann(4, 1)
    x = shapes.random_point(4, rng=rng)
    pairs.append((shapes, x, unit_tangents(shapes, x, rng)))
    x = lines.random_point(4, rng=rng)
    pairs.append((lines, x, unit_tangents(lines, x, rng)))
    for n in (2, 3, 4, 5):
        ends = [rotations_near_pi(n, [gap] * (n // 2), rng) for gap in (0.0, 1e-15, 1e-13, 1e-9)]
        pairs.append((SpecialOrthogonal(n), np.stack([a for a, _ in ends]), np.stack([b for _, b in ends])))
    return pairs


@pytest.mark.parametrize(
    ("space", "base", "to"), [pytest.param(*pair, id=repr(pair[0])) for pair in pairs_at_the_cut_locus()]
)
def test_transport_at_the_cut_locus_is_an_isometry_along_the_way_that_log_takes(space, base, to):
    v, velocity = unit_tangents(space, base, np.random.default_rng(25)), space.log(base, to)
    moved, arriving = space.transport(base, to, v), space.transport(base, to, velocity)
    assert np.allclose(space.norm(to, moved), 1.0, rtol=0, atol=1e-12)
    assert np.allclose(space.inner(to, moved, arriving), space.inner(base, v, velocity), rtol=0, atol=1e-12)
    assert np.max(space.dist(space.exp(to, -arriving), base)) < 1e-12


def spd_of_condition(k: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    frame = np.linalg.qr(rng.standard_normal((k, k)))[0]
    matrix = (frame * np.geomspace(1, 1 / condition, k)) @ frame.T
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("k", [2, 3, 5])
def test_affine_invariant_distance_is_right_to_6_digits_at_condition_1e10(k):
    rng = np.random.default_rng(11)
    for _ in range(3):
        a, b = spd_of_condition(k, 1e10, rng), spd_of_condition(k, 1e10, rng)
        with mp.workdps(60):
            inverse = mp.cholesky(exact(a)) ** -1
            values = mp.eigsy(inverse * exact(b) * inverse.T, eigvals_only=True)
            expected = mp.sqrt(mp.fsum(mp.log(value) ** 2 for value in values))
        assert float(SPD(k).dist(a, b)) == pytest.approx(float(expected), rel=1e-6)
        assert float(SPD(k).norm(a, SPD(k).log(a, b))) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_log_euclidean_distance_is_right_to_6_digits_at_condition_1e10(k):
    rng = np.random.default_rng(12)

    def exact_log(matrix: np.ndarray) -> Any:
        values, vectors = mp.eigsy(exact(matrix))
        return vectors * mp.diag([mp.log(value) for value in values]) * vectors.T

    a, b = spd_of_condition(k, 1e10, rng), spd_of_condition(k, 1e10, rng)
    with mp.workdps(60):
        expected = mp.sqrt(mp.fsum(entry**2 for entry in exact_log(a) - exact_log(b)))
    assert float(SPD(k, "log-euclidean").dist(a, b)) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("metric", METRICS)
def test_spd_results_are_symmetric_to_the_last_bit(metric, k, dtype):
    space, rng = SPD(k, metric), np.random.default_rng(13)
    a, b = space.random_point((2, 5), rng=rng).astype(dtype)
    v = space.random_tangent(a, rng=rng)
    results = {
        "random_point": space.random_point(5, rng=rng),
        "random_tangent": v,
        "exp": space.exp(a, v),
        "log": space.log(a, b),
        "transport": space.transport(a, b, v),
        "geodesic": space.geodesic(a, b, 0.3),
        "from_coordinates": space.from_coordinates(a, np.ones((5, space.dim), dtype=dtype)),
        "project": space.project(a + dtype(1e-3) * np.triu(a)),
    }
    assert [name for name, value in results.items() if not np.array_equal(value, np.swapaxes(value, -1, -2))] == []


SINGLE_PRECISION = [
    Euclidean(3),
    Sphere(3, 4.0),
    Hyperbolic(3, -0.5),
    *(SPD(3, metric) for metric in METRICS),
    PlanarShapes(5),
    Grassmann(5, 2),
    SpecialOrthogonal(3),
    SpecialOrthogonal(4),
    Stiefel(5, 2),
    Power(SPD(2), 3),
]


@pytest.mark.parametrize("space", SINGLE_PRECISION, ids=repr)
def test_float32_stays_float32_and_is_right_to_4_digits(space):
    rng = np.random.default_rng(14)
    base = space.random_point(20, rng=rng)
    u, v = 0.7 * unit_tangents(space, base, rng), 0.7 * unit_tangents(space, base, rng)

    def operations(base: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        point = space.exp(base, u)
        moved = space.transport(base, point, v)
        return [point, space.log(base, point), moved, space.dist(base, point), space.inner(base, u, v)]

    single = np.complex64 if np.iscomplexobj(base) else np.float32
    for ours, reference in zip(
        operations(*(array.astype(single) for array in (base, u, v))), operations(base, u, v), strict=True
    ):
        assert ours.dtype in (np.float32, np.complex64)
        assert np.max(np.abs(ours - reference)) <= 1e-4 * max(1.0, np.max(np.abs(reference)))


@pytest.mark.parametrize(
    "space",
    [Euclidean(3), Sphere(4), Sphere(2, 0.3), Hyperbolic(4), Hyperbolic(2, -4.0), *(SPD(3, m) for m in METRICS[1:])],
    ids=repr,
)
def test_log_of_the_same_point_is_exactly_zero(space):
    points = space.random_point(50, rng=15)
    assert np.all(space.log(points, points) == 0)
    assert np.all(space.dist(points, points) == 0)


@pytest.mark.parametrize(
    "space", [SPD(4), PlanarShapes(5), Grassmann(5, 2), SpecialOrthogonal(4), Stiefel(5, 2)], ids=repr
)
def test_log_of_the_same_point_is_zero_to_rounding_where_the_formula_multiplies_matrices(space):
    points = space.random_point(50, rng=16)
    assert np.max(space.norm(points, space.log(points, points))) < 2e-14
    assert np.max(space.dist(points, points)) < 2e-14
