"""Ellipsoids as domains: clipping to the nearest point, refusals, and bodies from public scales and samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from dpmanifolds import (
    SPD,
    ArgumentError,
    Ball,
    DPManifoldsError,
    Ellipsoid,
    Euclidean,
    NotOnManifoldError,
    RadiusTooLargeError,
    Sphere,
    Stiefel,
)
from dpmanifolds.domains.axes import Axes, nearest_in_ellipsoid
from tests.manifolds.cases import SMOOTH
from tests.test_domains import same

NORTH = np.array([0.0, 0.0, 1.0])
SAMPLE = np.random.default_rng(0).normal(size=(40, 3)) * [3.0, 1.0, 0.2]


def some_ellipsoid(manifold, count=None) -> Ellipsoid:
    """Around a random point, with axes from 0.02 to 0.5 of what has a unique mean, in random directions."""
    count = count or manifold.dim
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((manifold.dim, count)))[0]
    axes = min(0.5 * manifold.max_radius, 0.6) * np.geomspace(0.04, 1.0, count)[::-1]
    return Ellipsoid(manifold, manifold.random_point(rng=3), axes, basis)


@pytest.mark.grid
@pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
def test_clipping_moves_records_onto_the_body_and_leaves_the_others_alone(manifold, backend):
    body = some_ellipsoid(manifold)
    rng = np.random.default_rng(0)
    whitened = rng.standard_normal((6, manifold.dim))
    whitened /= np.linalg.norm(whitened, axis=1, keepdims=True)
    near = manifold.exp_coordinates(body.center, body.radius * body.body.restore(0.6 * whitened))
    far = manifold.exp_coordinates(body.center, body.radius * body.body.restore(1.5 * whitened))
    assert np.all(np.asarray(body.contains(near)))
    assert not np.any(np.asarray(body.contains(far)))
    assert np.all(same(backend.numpy(body.clip(backend.array(near))), near))
    assert np.all(backend.numpy(body.contains(body.clip(backend.array(far)))))


@pytest.mark.parametrize("dim", [1, 2, 7, 60])
@pytest.mark.parametrize("ratio", [1.0, 10.0, 1e4])
def test_the_nearest_point_is_that_of_a_bisection(dim, ratio):
    rng = np.random.default_rng(dim)
    lengths = np.geomspace(1 / ratio, 1.0, dim)
    rows = rng.standard_normal((30, dim)) * np.geomspace(0.01, 100.0, 30)[:, None]
    for row, found in zip(rows, nearest_in_ellipsoid(rows, lengths), strict=True):

        def size(shift, row=row):
            return float(np.sum((lengths * row / (lengths**2 + shift)) ** 2)) - 1

        shift = 0.0 if size(0.0) <= 0 else optimize.brentq(size, 0.0, 1e6, xtol=1e-300, rtol=1e-13)
        assert np.allclose(found, lengths * row / (lengths**2 + shift), rtol=1e-7, atol=1e-9)


def test_no_point_of_the_body_is_nearer_than_the_nearest():
    rng = np.random.default_rng(3)
    lengths = np.array([2.0, 0.5, 0.1])
    rows = rng.standard_normal((20, 3)) * 3
    inside = rng.standard_normal((5000, 3))
    inside *= lengths * rng.random((5000, 1)) ** (1 / 3) / np.linalg.norm(inside, axis=1, keepdims=True)
    found = lengths * nearest_in_ellipsoid(rows, lengths)
    others = np.min(np.linalg.norm(rows[:, None] - inside, axis=-1), axis=1)
    assert np.all(np.linalg.norm(rows - found, axis=1) <= others)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_nearest_point_of_a_ball_is_along_the_ray(size):
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [-3e7, 0.0]])
    found = nearest_in_ellipsoid(rows * size, np.array([size, size]))
    assert np.allclose(found, [[0.6, 0.8], [0.3, 0.4], [-1.0, 0.0]], atol=1e-9)


@pytest.mark.parametrize("row", [[np.nan, 0.0], [np.inf, 0.0], [1e308, 1e308]])
def test_a_row_that_is_hard_leaves_the_others_bit_for_bit(row):
    lengths, rows = np.array([1.0, 0.1]), np.random.default_rng(0).standard_normal((9, 2))
    alone = nearest_in_ellipsoid(rows, lengths)
    together = nearest_in_ellipsoid(np.insert(rows, 4, row, axis=0), lengths)
    assert np.array_equal(np.delete(together, 4, axis=0), alone)


def test_directions_without_an_axis_stay_at_the_centre():
    body = Ellipsoid(Euclidean(3), [1.0, 1.0, 1.0], [2.0], basis=np.eye(3)[:, 1:2])
    assert np.allclose(body.clip(np.array([[5.0, 2.0, -3.0]])), [[1.0, 2.0, 1.0]], atol=1e-7)
    assert body.contains(np.array([[1.0, 2.9, 1.0], [1.1, 1.0, 1.0]])).tolist() == [True, False]


WRONG = {
    "no axes": ({"axes": []}, ArgumentError, "axes"),
    "too many": ({"axes": [1.0, 1.0, 1.0]}, ArgumentError, "at most 2"),
    "negative": ({"axes": [1.0, -1.0]}, ArgumentError, "greater than 0"),
    "nan": ({"axes": [1.0, np.nan]}, ArgumentError, "finite"),
    "words": ({"axes": "wide"}, ArgumentError, "numbers"),
    "hair-thin": ({"axes": [1.0, 1e-12]}, ArgumentError, "factor"),
    "beyond the cut locus": ({"axes": [3.2, 1.0]}, RadiusTooLargeError, "3.14"),
    "fewer axes without a basis": ({"axes": [1.0]}, ArgumentError, "which 1 directions"),
    "basis of another shape": ({"axes": [1.0, 1.0], "basis": np.eye(3)}, ArgumentError, "shape"),
    "basis not orthonormal": ({"axes": [1.0, 1.0], "basis": [[1.0, 1.0], [0.0, 1.0]]}, ArgumentError, "orthonormal"),
    "basis with nan": ({"axes": [1.0, 1.0], "basis": [[np.nan, 0.0], [0.0, 1.0]]}, ArgumentError, "orthonormal"),
    "source that is no text": ({"axes": [1.0, 1.0], "source": 3}, ArgumentError, "source"),
    "two centres": ({"axes": [1.0, 1.0], "center": np.stack([NORTH, NORTH])}, ArgumentError, "one point"),
    "centre off the manifold": ({"axes": [1.0, 1.0], "center": 2 * NORTH}, NotOnManifoldError, "lie on"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_bodies_are_refused_with_a_reason(case):
    arguments, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        Ellipsoid(**{"manifold": Sphere(2), "center": NORTH, **arguments})


WRONG_SAMPLES = {
    "one record": (SAMPLE[:1], "at least 3"),
    "two records": (SAMPLE[:2], "at least 3"),
    "no variation": (np.ones((9, 3)), "does not vary"),
    "wrong shape": (np.ones((9, 2)), "shape"),
    "no leading axis": (np.ones(3), "leading axis"),
    "nan": (np.where(np.arange(40)[:, None] == 3, np.nan, SAMPLE), "finite"),
}


@pytest.mark.parametrize("case", WRONG_SAMPLES)
def test_wrong_samples_are_refused_with_a_reason(case):
    sample, words = WRONG_SAMPLES[case]
    with pytest.raises(DPManifoldsError, match=words):
        Ellipsoid.from_sample(Euclidean(3), sample)


def test_samples_off_the_manifold_and_spaces_without_balls_are_refused():
    with pytest.raises(NotOnManifoldError, match="sample"):
        Ellipsoid.from_sample(Sphere(2), 2 * np.eye(3))
    with pytest.raises(RadiusTooLargeError, match="optimisation"):
        Ellipsoid.from_sample(Stiefel(3, 2), Stiefel(3, 2).random_point(5, rng=0))


def test_a_body_from_few_records_holds_fresh_ones():
    space, rng = Euclidean(30), np.random.default_rng(2)
    scales = np.geomspace(3.0, 0.03, 30)
    for count in (5, 20, 200):
        body = Ellipsoid.from_sample(space, rng.standard_normal((count, 30)) * scales)
        fresh = rng.standard_normal((4000, 30)) * scales
        held = np.linalg.norm((fresh - body.center) @ body.basis / body.axes, axis=1) <= 1
        assert np.mean(held) > 0.85


def test_a_body_from_many_records_has_the_best_shape():
    rng = np.random.default_rng(4)
    scales = np.array([5.0, 1.0, 0.2])
    body = Ellipsoid.from_sample(Euclidean(3), rng.standard_normal((20_000, 3)) * scales)
    assert np.allclose(np.sort(body.axes / body.radius), np.sort(np.sqrt(scales / 5.0)), rtol=0.05)


def test_no_axes_have_less_noise_than_those_from_scales():
    scales = np.array([4.0, 1.0, 0.3])
    best = Ellipsoid.from_scales(Euclidean(3), np.zeros(3), scales, margin=0.0)
    assert np.isclose(np.sum((scales / best.axes) ** 2), 1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = best.axes * np.exp(rng.standard_normal(3))
        other *= np.sqrt(np.sum((scales / other) ** 2))
        assert np.sum(other**2) >= np.sum(best.axes**2) - 1e-9


@pytest.mark.parametrize("scales", [[1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [np.nan, 1.0, 1.0], [[1.0, 1.0, 1.0]]])
def test_wrong_scales_are_refused(scales):
    with pytest.raises(ArgumentError, match="scales"):
        Ellipsoid.from_scales(Euclidean(3), np.zeros(3), scales)


def test_a_body_says_where_it_is_from():
    body = Ellipsoid.from_sample(SPD(2), SPD(2).random_point(9, rng=0), source="the atlas of 2019")
    assert "from the atlas of 2019" in repr(body)
    assert body.diameter == 2 * body.radius
    assert Ball(SPD(2), np.eye(2), 1.0).body is None
    assert isinstance(body.body, Axes)
