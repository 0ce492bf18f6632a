"""Normalisations, dimensions, curvatures and radii pinned to their definitions; constructors that refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy.spatial.transform import Rotation

from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import (
    SPD,
    Correlation,
    Euclidean,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)

PI, INF = math.pi, math.inf
METRICS = ("affine-invariant", "log-euclidean", "log-cholesky")


def test_so3_distance_is_the_angle_and_half_the_trace_form():
    space = SpecialOrthogonal(3)
    a, b = space.random_point((2, 20), rng=17)
    angle = Rotation.from_matrix(np.swapaxes(a, -1, -2) @ b).magnitude()
    assert np.allclose(space.dist(a, b), angle, rtol=1e-12)
    plane = np.array([[0.0, -0.7, 0.0], [0.7, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert float(space.norm(np.eye(3), plane)) == pytest.approx(0.7, rel=1e-15)


@pytest.mark.parametrize(("n", "p"), [(4, 1), (5, 2), (5, 4), (6, 3)])
def test_grassmann_distance_is_the_l2_norm_of_the_principal_angles(n, p):
    a, b = Grassmann(n, p).random_point((2, 10), rng=18)
    expected = [np.linalg.norm(scipy.linalg.subspace_angles(x, y)) for x, y in zip(a, b, strict=True)]
    assert np.allclose(Grassmann(n, p).dist(a, b), expected, rtol=1e-12)


def test_sphere_of_curvature_4_has_great_circles_of_length_pi():
    space = Sphere(2, curvature=4.0)
    corners = np.array([[0.5, 0, 0], [0, 0.5, 0], [-0.5, 0, 0], [0, -0.5, 0]])
    assert float(np.sum(space.dist(corners, np.roll(corners, -1, axis=0)))) == pytest.approx(PI, rel=1e-15)
    step = np.array([0.0, PI, 0.0])
    assert np.allclose(space.exp(corners[0], step), corners[0], atol=1e-15)


def test_hyperbolic_space_of_curvature_minus_4_is_half_the_size_of_the_unit_one():
    rng = np.random.default_rng(19)
    x, y = Hyperbolic(3).random_point((2, 10), rng=rng)
    assert np.allclose(Hyperbolic(3, -4.0).dist(x / 2, y / 2), Hyperbolic(3).dist(x, y) / 2, rtol=1e-14)
    reached = Hyperbolic(2, -4.0).exp(np.array([0.5, 0.0, 0.0]), np.array([0.0, 1.5, 0.0]))
    assert np.allclose(reached, [math.cosh(3) / 2, math.sinh(3) / 2, 0], rtol=1e-15)


def test_shape_distance_is_the_arc_cosine_of_the_hermitian_product_and_at_most_half_pi():
    space = PlanarShapes(6)
    x, y = space.random_point((2, 500), rng=20)
    expected = np.arccos(np.abs(np.sum(np.conj(x) * y, axis=-1)))
    assert np.allclose(space.dist(x, y), expected, rtol=1e-12)
    assert np.max(space.dist(x, y)) < PI / 2
    fourier = np.exp(2j * PI * np.outer([1, 2], np.arange(6)) / 6)
    assert float(space.dist(*space.from_landmarks(fourier))) == pytest.approx(PI / 2, rel=1e-15)


def test_spd_metrics_written_out_by_hand():
    a, b = np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([[1.0, 0.5], [0.5, 1.25]])
    # Cholesky factors [[2, 0], [1, 2]] and [[1, 0], [1/2, 1]]
    by_hand = math.sqrt(0.5**2 + 2 * math.log(2) ** 2)
    assert float(SPD(2, "log-cholesky").dist(a, b)) == pytest.approx(by_hand, rel=1e-15)
    c = np.array([[2.0, -0.3], [-0.3, 0.7]])
    difference = scipy.linalg.logm(a) - scipy.linalg.logm(c)
    assert float(SPD(2, "log-euclidean").dist(a, c)) == pytest.approx(np.linalg.norm(difference), rel=1e-13)
    ratios = scipy.linalg.eigh(a, c, eigvals_only=True)
    assert float(SPD(2).dist(a, c)) == pytest.approx(np.linalg.norm(np.log(ratios)), rel=1e-13)
    v = np.array([[0.2, 0.4], [0.4, -1.0]])
    whitened = np.linalg.inv(a) @ v
    assert float(SPD(2).inner(a, v, v)) == pytest.approx(np.trace(whitened @ whitened), rel=1e-13)


FLAT, HALF_TURN = (0.0, 0.0), PI / math.sqrt(0.3)
FACTS = [
    (Euclidean(3), 3, FLAT, INF, INF),
    (Sphere(1), 1, FLAT, PI, PI / 2),
    (Sphere(2), 2, (1.0, 1.0), PI, PI / 2),
    (Sphere(7, 4.0), 7, (4.0, 4.0), PI / 2, PI / 4),
    (Sphere(2, 0.3), 2, (0.3, 0.3), HALF_TURN, HALF_TURN / 2),
    (Hyperbolic(1), 1, FLAT, INF, INF),
    (Hyperbolic(4, -0.5), 4, (-0.5, -0.5), INF, INF),
    (SPD(1), 1, FLAT, INF, INF),
    (SPD(4), 10, (-0.5, 0.0), INF, INF),
    (SPD(4, "log-euclidean"), 10, FLAT, INF, INF),
    (SPD(4, "log-cholesky"), 10, FLAT, INF, INF),
    (Correlation(5), 10, FLAT, INF, INF),
    (PlanarShapes(3), 2, (4.0, 4.0), PI / 2, PI / 4),
    (PlanarShapes(9), 14, (1.0, 4.0), PI / 2, PI / 4),
    (Grassmann(2, 1), 1, FLAT, PI / 2, PI / 4),
    (Grassmann(5, 1), 4, (1.0, 1.0), PI / 2, PI / 4),
    (Grassmann(5, 4), 4, (1.0, 1.0), PI / 2, PI / 4),
    (Grassmann(5, 2), 6, (0.0, 2.0), PI / 2, PI / 4),
    (SpecialOrthogonal(2), 1, FLAT, PI, PI / 2),
    (SpecialOrthogonal(3), 3, (0.25, 0.25), PI, PI / 2),
    (SpecialOrthogonal(4), 6, (0.0, 0.5), PI, PI / 2),
    (SpecialOrthogonal(6), 15, (0.0, 0.5), PI, PI / 2),
    (Product(Sphere(2)), 2, (1.0, 1.0), PI, PI / 2),
    (Product(Sphere(2), SPD(2)), 5, (-0.5, 1.0), PI, PI / 2),
    (Product(Hyperbolic(2), Euclidean(3)), 5, (-1.0, 0.0), INF, INF),
    (Product(Sphere(1), Sphere(1)), 2, FLAT, PI, PI / 2),
    (Product(Sphere(1, 4.0), Euclidean(2)), 3, FLAT, PI / 2, PI / 4),
    (Product(Sphere(2, 4.0), SpecialOrthogonal(2)), 3, (0.0, 4.0), PI / 2, PI / 4),
    (Product(Grassmann(5, 2), PlanarShapes(4)), 10, (0.0, 4.0), PI / 2, PI / 4),
    (Power(Sphere(2), 1), 2, (1.0, 1.0), PI, PI / 2),
    (Power(Sphere(2), 3), 6, (0.0, 1.0), PI, PI / 2),
    (Power(SPD(3), 100), 600, (-0.5, 0.0), INF, INF),
    (Power(SpecialOrthogonal(2), 4), 4, FLAT, PI, PI / 2),
]


@pytest.mark.parametrize(("space", "dim", "curvature", "injectivity", "radius"), FACTS, ids=repr)
def test_dimension_curvature_and_radii_are_those_of_the_table(space, dim, curvature, injectivity, radius):
    assert space.dim == dim
    assert space.curvature_bounds == curvature
    assert space.injectivity_radius == pytest.approx(injectivity, rel=1e-15)
    assert space.max_radius == pytest.approx(radius, rel=1e-15)
    assert space.is_hadamard == (injectivity == INF)


def test_stiefel_is_for_optimisation_only():
    assert Stiefel(6, 3).dim == 12
    assert Stiefel(6, 3).max_radius == 0
    assert not Stiefel(6, 3).is_hadamard


REFUSED: list[tuple[Callable[[], Any], tuple[str, ...]]] = [
    (lambda: Euclidean(0), ("d must be at least 1", "got 0")),
    (lambda: Sphere(0), ("d must be at least 1", "got 0")),
    (lambda: Sphere(2.5), ("d must be a whole number", "got 2.5")),
    (lambda: Sphere(2, -1.0), ("curvature must be finite and above 0", "got -1.0")),
    (lambda: Sphere(2, INF), ("curvature must be finite and above 0", "got inf")),
    (lambda: Sphere(2, None), ("curvature must be a number above 0", "got None")),
    (lambda: Hyperbolic(0), ("d must be at least 1", "got 0")),
    (lambda: Hyperbolic(2, 1.0), ("curvature must be finite and below 0", "got 1.0")),
    (lambda: Hyperbolic(2, math.nan), ("curvature must be finite and below 0", "got nan")),
    (lambda: SPD(0), ("k must be at least 1", "got 0")),
    (lambda: SPD(3, "wasserstein"), (*METRICS, "'riemann'", "'logeuclid'", "'logchol'", "got 'wasserstein'")),
    (lambda: PlanarShapes(2), ("k must be at least 3", "got 2")),
    (lambda: PlanarShapes(9, 3), ("plane", "got dimension=3", "project to a plane")),
    (lambda: Grassmann(1, 1), ("n must be at least 2", "got 1")),
    (lambda: Grassmann(3, 3), ("1 ≤ p < n", "n=3, p=3")),
    (lambda: Grassmann(3, 0), ("p must be at least 1", "got 0")),
    (lambda: Stiefel(3, 4), ("1 ≤ p < n", "n=3, p=4", "SpecialOrthogonal")),
    (lambda: SpecialOrthogonal(1), ("n must be at least 2", "got 1")),
    (Product, ("one or more manifolds", "got ()")),
    (lambda: Product(Sphere(2), 3), ("one or more manifolds", "3")),
    (lambda: Power(Sphere(2), 0), ("m must be at least 1", "got 0")),
    (lambda: Power(Product(Sphere(2)), 2), ("points are arrays", "Product")),
]


@pytest.mark.parametrize(("build", "words"), REFUSED)
def test_constructors_say_what_was_given_and_what_is_allowed(build, words):
    with pytest.raises(ArgumentError) as caught:
        build()
    assert [word for word in words if word not in str(caught.value)] == []


def test_landmarks_as_pairs_and_as_complex_numbers_are_the_same_shape():
    space, rng = PlanarShapes(5), np.random.default_rng(21)
    pairs = rng.standard_normal((4, 5, 2))
    from_pairs, from_complex = space.from_landmarks(pairs), space.from_landmarks(pairs @ np.array([1, 1j]))
    assert np.array_equal(from_pairs, from_complex)
    assert np.all(space.belongs(from_pairs, 1e-14))
    assert space.from_landmarks(pairs.astype(np.float32)).dtype == np.complex64
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    moved = space.from_landmarks(30.0 * pairs @ turn + [100.0, -7.0])
    assert np.max(space.dist(from_pairs, moved)) < 1e-14
    assert np.allclose(space.from_landmarks(space.to_landmarks(from_pairs)), from_pairs, atol=1e-15)


@pytest.mark.parametrize("place", [0.0, 1e6, 0.1])
def test_landmarks_that_coincide_are_refused(place):
    landmarks = np.random.default_rng(22).standard_normal((3, 4, 2))
    landmarks[1] = place
    with pytest.raises(NotOnManifoldError, match="coincide"):
        PlanarShapes(4).from_landmarks(landmarks)


@pytest.mark.parametrize("bad", [math.nan, INF, -INF])
@pytest.mark.parametrize("axis", [0, 1])
def test_landmarks_that_are_not_finite_are_refused(bad, axis):
    landmarks = np.random.default_rng(23).standard_normal((3, 4, 2))
    landmarks[1, 2, axis] = bad
    with pytest.raises(NotOnManifoldError, match="finite"):
        PlanarShapes(4).from_landmarks(landmarks)


@pytest.mark.parametrize(
    ("landmarks", "words"),
    [
        (np.ones((7, 4, 3)), r"\(7, 4, 3\) lie in three dimensions"),
        (np.ones((7, 5, 2)), r"shape \(\.\.\., 4, 2\); got \(7, 5, 2\)"),
        (np.ones((7, 5), dtype=complex), r"shape \(\.\.\., 4\); got \(7, 5\)"),
    ],
)
def test_landmarks_of_another_shape_are_refused(landmarks, words):
    with pytest.raises(ArgumentError, match=words):
        PlanarShapes(4).from_landmarks(landmarks)


ISOTROPIC = [
    Sphere(1),
    Sphere(4, curvature=0.3),
    Hyperbolic(1),
    Hyperbolic(3, curvature=-2.0),
    PlanarShapes(3),
    PlanarShapes(6),
    SpecialOrthogonal(3),
    Grassmann(5, 1),
    Grassmann(4, 3),
]


@pytest.mark.parametrize("space", ISOTROPIC, ids=repr)
def test_polar_roots_are_the_volume_density_in_every_direction(space):
    base = space.random_point(rng=0)
    directions = np.random.default_rng(1).standard_normal((50, space.dim))
    lengths = np.linspace(0.01, min(0.99 * space.injectivity_radius, 3.0), 50)
    vectors = space.from_coordinates(base, directions * (lengths / np.linalg.norm(directions, axis=1))[:, None])
    turn = np.sinh if space.curvature_bounds[0] < 0 else np.sin
    expected = sum(m * np.log(turn(a * lengths) / (a * lengths)) for m, a in space.polar_roots)
    assert sum(m for m, _ in space.polar_roots) == space.dim - 1
    assert np.allclose(space.log_volume_density(base, vectors), expected, rtol=1e-9, atol=1e-12)


def test_spaces_whose_directions_differ_have_no_polar_roots():
    spaces = (SPD(2), Grassmann(4, 2), SpecialOrthogonal(4), Stiefel(3, 2), Euclidean(2), Product(Sphere(2), Sphere(2)))
    assert all(space.polar_roots is None for space in spaces)


@pytest.mark.parametrize(
    "space",
    [*(SPD(k, metric) for k in (2, 3, 20) for metric in METRICS), Correlation(3), Power(SPD(3), 4), Sphere(2)],
    ids=repr,
)
def test_a_distance_that_floating_point_does_not_reach_is_told_in_no_units(space):
    """A release that was paid for is written down and told whatever came out of it."""
    point = space.random_point(rng=0)
    with np.errstate(all="raise"):
        told = [space.describe_distance(point, distance) for distance in (0.0, 0.1, 300.0, 1e3, 1e10, 1e200)]
    assert told[1]
    assert not any(word in text for text in told for word in ("nan", "inf"))
