"""Embedded records: where they lie, what they add to a sum, and how far two of them are apart in exact integers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Ball,
    Euclidean,
    GaussianDP,
    Grassmann,
    NotAvailableError,
    PlanarShapes,
    PureDP,
    SpecialOrthogonal,
    Sphere,
    WholeSpace,
)
from dpmanifolds.sums import calibrate
from dpmanifolds.sums.ambient import AmbientContribution, body_of
from dpmanifolds.sums.projectors import ProjectorContribution
from dpmanifolds.sums.total import integers_of, read_records
from tests.sums.hard import hard_records

SPACES = [
    Sphere(2),
    Sphere(7, curvature=4.0),
    Grassmann(2, 1),
    Grassmann(5, 1),
    Grassmann(6, 2),
    Grassmann(6, 3),
    Grassmann(5, 4),
    SpecialOrthogonal(2),
    SpecialOrthogonal(3),
    SpecialOrthogonal(4),
    SpecialOrthogonal(5),
    PlanarShapes(3),
    PlanarShapes(7),
]
every_space = pytest.mark.parametrize("space", SPACES, ids=repr)
pytestmark = pytest.mark.grid


def bodies(space):
    center = space.random_point(rng=3)
    for domain in (WholeSpace(space, center), *(Ball(space, center, f * space.injectivity_radius) for f in (0.2, 0.9))):
        for adjacency in ("replace-one", "add-remove-one"):
            yield body_of(domain, adjacency)


def contribution_of(body, substitute=None):
    law = calibrate("wrapped-gaussian", body.facts(100), GaussianDP(1.0), "rounded")
    return body.contribution(law, substitute), law


def exact_squared_distance(a, b):
    return sum((int(x) - int(y)) ** 2 for x, y in zip(a, b, strict=True))


@every_space
def test_embedded_points_lie_on_a_sphere_and_return(space):
    points = space.random_point(200, rng=0)
    rows = space.embed(points)
    assert rows.shape == (200, space.ambient_dim)
    assert np.allclose(np.linalg.norm(rows, axis=1), space.ambient_radius, rtol=1e-13)
    assert np.linalg.norm(space.embed(space.random_point(20_000, rng=1)).mean(axis=0)) < 0.03 * space.ambient_radius
    assert np.max(space.dist(space.unembed(rows), points)) < 1e-7
    assert np.max(space.dist(space.unembed(0.3 * rows), points)) < 1e-7


def ambient_of(space, point):
    """The matrix or vector itself."""
    if isinstance(space, Grassmann):
        return point @ point.T
    if isinstance(space, PlanarShapes):
        return np.outer(point, np.conj(point))
    return point / 2 if space == SpecialOrthogonal(3) else point


@every_space
def test_distances_of_embedded_points_are_those_of_matrices(space):
    points = space.random_point(8, rng=2)
    rows = space.embed(points)
    for (a, x), (b, y) in itertools.combinations(zip(points, rows, strict=True), 2):
        assert np.linalg.norm(x - y) == pytest.approx(np.linalg.norm(ambient_of(space, a) - ambient_of(space, b)))


@every_space
def test_no_chord_is_longer_than_stated_and_some_is_as_long(space):
    a, b = space.random_point(3000, rng=4), space.random_point(3000, rng=5)
    chords = np.linalg.norm(space.embed(a) - space.embed(b), axis=1)
    stated = np.array([space.chord(radius) for radius in space.dist(a, b)])
    assert np.all(chords <= stated * (1 + 1e-9))
    assert np.max(chords / stated) > 0.97
    assert space.chord(math.inf) == space.chord(100.0) <= 2 * space.ambient_radius * (1 + 1e-12)


@every_space
def test_the_body_of_a_ball_holds_it(space):
    for body in bodies(space):
        if body.projectors or isinstance(body.domain, WholeSpace):
            continue
        points = body.domain.clip(space.random_point(2000, rng=6))
        rows = space.embed(points) - (0 if body.offset is None else body.offset)
        assert np.max(np.linalg.norm(rows, axis=1)) <= body.radius * (1 + 1e-9)


def test_the_body_of_a_cap_is_as_wide_as_the_cap():
    north = np.array([0.0, 0.0, 1.0])
    for radius in (0.1, 0.7, 1.5):
        body = body_of(Ball(Sphere(2), north, radius))
        assert body.radius == pytest.approx(math.sin(radius))
        assert np.allclose(body.offset, math.cos(radius) * north)
    for radius in (1.6, 3.0):
        body = body_of(Ball(Sphere(2), north, radius))
        assert (body.radius, body.offset) == (1.0, None)


@pytest.mark.grid(at_most=2)
@every_space
def test_two_records_are_at_most_as_far_apart_as_the_noise_is_made_for(space):
    """In exact integers, of hard records too, and of means of persons."""
    for body in bodies(space):
        rule, law = contribution_of(body)
        shape = body.facts(100).shape
        most, radius = shape.diameter(law.exponent, gaussian=True), 1 << law.exponent
        points = np.concatenate([space.random_point(60, rng=7), hard_records(space, body.center, 40)])
        whole, _ = integers_of(rule, points)
        names = np.random.default_rng(8).integers(0, 25, len(points))
        means = [whole[:, names == name] for name in np.unique(names)]
        persons = np.stack([np.sign(s) * (abs(s) // c) for s, c in ((m.sum(axis=1), m.shape[1]) for m in means)])
        columns = np.concatenate([whole.T, persons])
        assert all(exact_squared_distance(each, 0 * each) <= radius * radius for each in columns)
        assert max(exact_squared_distance(a, b) for a, b in itertools.combinations(columns, 2)) <= most * most


def test_opposite_records_move_a_sum_as_far_as_the_noise_is_made_for():
    """Within 1 %: the ball of a sphere, orthogonal lines, rotations by half a turn, shapes at the cut locus."""
    pairs = {
        Sphere(2): (np.eye(3)[0], -np.eye(3)[0]),
        Grassmann(5, 1): (np.eye(5)[:, :1], np.eye(5)[:, 1:2]),
        Grassmann(6, 2): (np.eye(6)[:, :2], np.eye(6)[:, 2:4]),
        SpecialOrthogonal(4): (np.eye(4), -np.eye(4)),
        SpecialOrthogonal(3): (np.eye(3), np.diag([1.0, -1.0, -1.0])),
    }
    for space, pair in pairs.items():
        body = body_of(WholeSpace(space, pair[0]))
        rule, law = contribution_of(body)
        a, b = integers_of(rule, np.stack(pair))[0].T
        most = body.facts(100).shape.diameter(law.exponent, gaussian=True)
        assert 0.98 * most < math.sqrt(exact_squared_distance(a, b)) <= most


@pytest.mark.parametrize(
    ("space", "diameter"),
    [
        (Sphere(3), 2.0),
        (Sphere(3, curvature=0.25), 4.0),
        (Grassmann(5, 1), math.sqrt(2)),
        (Grassmann(6, 2), 2.0),
        (Grassmann(6, 3), math.sqrt(6)),
        (SpecialOrthogonal(3), math.sqrt(2)),
        (SpecialOrthogonal(4), 4.0),
        (PlanarShapes(9), math.sqrt(2)),
    ],
    ids=repr,
)
def test_the_sensitivity_of_records_anywhere_is_the_diameter_of_the_manifold(space, diameter):
    facts = body_of(WholeSpace(space, space.random_point(rng=0))).facts(50)
    assert float(facts.at_center) == pytest.approx(diameter / 50, rel=1e-6)


@pytest.mark.grid(at_most=2)
@every_space
def test_integers_of_a_record_do_not_depend_on_the_others(space):
    for body in bodies(space):
        for substitute in (None, body.center):
            rule, _ = contribution_of(body, substitute)
            records = hard_records(space, body.center, 40, seed=1)
            together, broken = integers_of(rule, records, 40)
            order = np.random.default_rng(2).permutation(40)
            shuffled, _ = integers_of(rule, records[order], 40)
            assert np.array_equal(shuffled, together[:, order])
            other = records.copy()
            other[1:] = space.random_point(39, rng=9)
            assert np.array_equal(integers_of(rule, other, 40)[0][:, 0], together[:, 0])
            alone = [integers_of(rule, records[row : row + 1], 40) for row in range(40)]
            assert np.array_equal(np.concatenate([one[0] for one in alone], axis=1), together)
            assert np.array_equal(np.concatenate([one[1] for one in alone]), broken)


@every_space
def test_a_sum_stands_for_the_mean_of_embedded_records(space):
    for body in bodies(space):
        rule, law = contribution_of(body)
        points = space.random_point(400, rng=10)
        if not isinstance(body.domain, WholeSpace):
            points = body.domain.clip(points)
        total = read_records(space, points).total(rule)
        mean = np.array(total.integers, dtype=float) / 400 * (100 * body.facts(100).shape.step(law.exponent))
        found, expected = body.coordinates_of(law, mean), space.embed(points).mean(axis=0)
        coarse = 3e-5 if body.projectors else 1e-8
        assert np.linalg.norm(found - expected) < coarse * space.ambient_radius


def test_which_body_is_taken():
    for space, kind in ((Grassmann(5, 1), True), (PlanarShapes(6), True), (Sphere(3), False), (Grassmann(6, 3), False)):
        center = space.random_point(rng=0)
        rule, _ = contribution_of(body_of(WholeSpace(space, center)))
        assert isinstance(rule, ProjectorContribution if kind else AmbientContribution)
        rule, _ = contribution_of(body_of(WholeSpace(space, center), "add-remove-one"))
        assert isinstance(rule, AmbientContribution)
        rule, _ = contribution_of(body_of(Ball(space, center, 0.1)))
        assert isinstance(rule, AmbientContribution)


@pytest.mark.grid(at_most=1)
@every_space
def test_the_planned_error_is_that_of_noise_on_records_at_the_centre(space):
    """2,000 draws at most, of both; their means differ by less than 12 % with a failure rate below 1e−6."""
    center = space.random_point(rng=3)
    body = body_of(WholeSpace(space, center))
    law = calibrate("wrapped-laplace", body.facts(300), PureDP(2.0), "rounded")
    rng = np.random.default_rng(11)
    zeros = np.zeros(law.dim, dtype=np.int64)
    noise = np.stack([law.noise.release(zeros, rng) for _ in range(2000)]) * law.step
    middle = space.embed(center)
    there = space.unembed(middle + np.stack([body.coordinates_of(law, each) for each in noise]))
    assert np.mean(space.dist(center, there)) == pytest.approx(body.expected_error(law).mean, rel=0.12)


@pytest.mark.parametrize("space", [Euclidean(3), SPD(2)], ids=repr)
def test_other_manifolds_say_that_they_have_no_embedding(space):
    point = space.random_point(rng=0)
    with pytest.raises(NotAvailableError, match="no extrinsic mean"):
        body_of(Ball(space, point, 1.0))
    for call in (space.embed, space.unembed, lambda _: space.chord(1.0)):
        with pytest.raises(NotAvailableError, match="no embedding"):
            call(point)
