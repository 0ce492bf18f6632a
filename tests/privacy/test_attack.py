"""Searches for neighbours that break the sensitivities: none may, and the worst ones come close.

A data set is a few positions in the ball with whole multiplicities, so that n = 50 costs no more than n = 5.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Ball,
    Euclidean,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    frechet_mean,
)
from dpmanifolds.privacy import (
    sensitivity_of_mean,
    sensitivity_of_mean_at_center,
    sensitivity_of_mean_gradient,
    sensitivity_of_variance,
)
from tests.selection import thorough

SPACES = [
    (Sphere(2), math.pi / 8),
    (Sphere(2), 1.3),
    (Sphere(5), 0.9),
    (Sphere(3, 4.0), 0.6),
    (Sphere(2, 0.25), 2.0),
    (Sphere(1), 1.5),
    (PlanarShapes(3), 0.6),
    (PlanarShapes(5), 0.6),
    (SpecialOrthogonal(3), 1.3),
    (SpecialOrthogonal(4), 1.3),
    (Grassmann(4, 2), 0.7),
    (Grassmann(3, 1), 0.7),
    (Hyperbolic(2), 2.0),
    (Hyperbolic(3, -4.0), 1.0),
    (SPD(2), 2.0),
    (SPD(3), 1.0),
    (Euclidean(2), 1.0),
    (Product(Sphere(2), Sphere(2, 0.5)), 1.2),
    (Product(Sphere(2), SPD(2)), 1.2),
    (Product(Sphere(1), Euclidean(1)), 1.5),
    (Power(Sphere(2), 2), 1.2),
]


class Attack:
    """Data sets in a ball, by the coordinates of their positions at the centre."""

    def __init__(self, manifold, radius):
        self.manifold = manifold
        self.ball = Ball(manifold, manifold.random_point(rng=3), radius)
        self.limits = {}

    def points(self, coordinates):
        """The points with these coordinates, pulled into the ball."""
        length = np.linalg.norm(coordinates, axis=-1, keepdims=True)
        inside = coordinates * np.minimum(1.0, self.ball.radius / np.maximum(length, 1e-300))
        center = self.spread(self.ball.center, len(coordinates))
        return self.manifold.exp(center, self.manifold.from_coordinates(center, inside))

    def spread(self, point, count):
        if isinstance(point, tuple):
            return tuple(self.spread(part, count) for part in point)
        return np.broadcast_to(point, (count, *point.shape))

    def mean(self, coordinates, counts):
        # a copy of a power manifold whose records all agree needs no step, and its length 0 is divided by
        with np.errstate(divide="ignore"):
            return frechet_mean(self.manifold, self.points(coordinates), sample_weight=counts)

    def bounds(self, n):
        if n not in self.limits:
            kinds = (sensitivity_of_mean, sensitivity_of_mean_at_center, sensitivity_of_variance)
            self.limits[n] = [float(kind(self.ball, n)) for kind in kinds]
        return self.limits[n]

    def ratios(self, rest, counts, before, after):
        """What the mean, its logarithm at the centre and the variance moved, over their bounds."""
        weights = np.array([*counts, 1.0])
        one, other = (np.concatenate([rest, [record]]) for record in (before, after))
        a, b = self.mean(one, weights), self.mean(other, weights)
        assert max(a.error_bound, b.error_bound) < 1e-6
        moved = float(self.manifold.dist(a.point, b.point))
        logs = [
            self.manifold.to_coordinates(self.ball.center, self.manifold.log(self.ball.center, each.point))
            for each in (a, b)
        ]
        seen = float(np.linalg.norm(logs[0] - logs[1]))
        change = abs(self.variance(a.point, one, weights) - self.variance(b.point, other, weights))
        return np.array([moved, seen, change]) / self.bounds(int(weights.sum()))

    def variance(self, mean, coordinates, weights):
        distance = self.manifold.dist(self.spread(mean, len(coordinates)), self.points(coordinates))
        return float(weights @ distance**2) / weights.sum()

    def structured(self, n):
        """The worst case of the proof: records at ±r e_b, one moving from r e_a to −r e_a; for several a, b."""
        axes = self.ball.radius * np.eye(self.manifold.dim)
        half = self.manifold.dim // 2
        best = np.zeros(3)
        for a, b in {(0, self.manifold.dim - 1), (0, half), (0, min(1, self.manifold.dim - 1))}:
            rest, counts = np.stack([axes[b], -axes[b]]), (n // 2, n - 1 - n // 2)
            best = np.maximum(best, self.ratios(rest, counts, axes[a], -axes[a]))
        return np.maximum(best, self.ratios(axes[:1], (n - 1,), axes[0], -axes[0]))

    def searched(self, rng, starts, steps):
        """Random data sets, each improved by random steps for the mean."""
        best = np.zeros(3)
        dim, radius = self.manifold.dim, self.ball.radius
        for _ in range(starts):
            positions = int(rng.integers(1, 5))
            n = int(rng.integers(positions + 1, 51))
            counts = np.ones(positions) + rng.multinomial(n - 1 - positions, np.ones(positions) / positions)
            state = 2 * radius * rng.standard_normal((positions + 2, dim)) / math.sqrt(dim)
            here, size = self.ratios(state[2:], counts, state[0], state[1]), 0.5 * radius
            best = np.maximum(best, here)
            for _ in range(steps):
                trial = state + size * rng.standard_normal(state.shape) / math.sqrt(dim)
                there = self.ratios(trial[2:], counts, trial[0], trial[1])
                best = np.maximum(best, there)
                if there[0] > here[0]:
                    state, here = trial, there
                else:
                    size *= 0.9
        return best

    def gradient(self, rng, size):
        """The widest ‖log_x p − log_x q‖ over random x, p, q of the ball, over its bound."""
        draws = rng.standard_normal((3, size, self.manifold.dim))
        shrink = rng.choice([1.0, 1.0, 0.7], (3, size, 1))
        draws *= self.ball.radius * shrink / np.linalg.norm(draws, axis=-1, keepdims=True)
        x, p, q = map(self.points, draws)
        logs = [self.manifold.to_coordinates(x, self.manifold.log(x, each)) for each in (p, q)]
        return np.linalg.norm(logs[0] - logs[1], axis=-1).max() / float(sensitivity_of_mean_gradient(self.ball, 1))


def assert_unbroken(ratios):
    assert np.all(ratios <= 1 + 1e-7)


@pytest.mark.grid(at_most=5)
@thorough(("starts", "steps"), (4, 6), (6, 8))
@pytest.mark.parametrize(("manifold", "radius"), SPACES, ids=repr)
def test_no_search_moves_a_statistic_beyond_its_bound(manifold, radius, starts, steps):
    attack = Attack(manifold, radius)
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 50):
        assert_unbroken(attack.structured(n))
    assert_unbroken(attack.searched(rng, starts=starts, steps=steps))
    assert attack.gradient(rng, 3000) <= 1 + 1e-9


@pytest.mark.long
@pytest.mark.parametrize(("manifold", "radius"), SPACES, ids=repr)
def test_no_long_search_moves_a_statistic_beyond_its_bound(manifold, radius):
    attack = Attack(manifold, radius)
    rng = np.random.default_rng(1)
    for n in range(2, 51):
        assert_unbroken(attack.structured(n))
    assert_unbroken(attack.searched(rng, starts=60, steps=60))
    assert attack.gradient(rng, 200_000) <= 1 + 1e-9


def test_the_mean_on_the_sphere_comes_within_a_hundredth_of_its_bound():
    """S1 and S1w at r = π/8 with n = 30: at most 0.2 % could be gained by a better theorem."""
    moved, seen, _ = Attack(Sphere(2), math.pi / 8).structured(30)
    assert moved > 0.998
    assert seen > 0.998


@pytest.mark.parametrize(
    ("manifold", "radius"),
    [(Sphere(2), 1.3), (Sphere(4, 4.0), 0.6), (PlanarShapes(5), 0.3), (SpecialOrthogonal(3), 1.0), (SPD(2), 2.0)],
    ids=repr,
)
def test_the_bound_is_nearly_attained_with_many_records(manifold, radius):
    ratios = Attack(manifold, radius).structured(1001)
    assert ratios[0] > 0.98
    assert ratios[1] > 0.98


def test_the_gradient_on_the_sphere_attains_its_bound():
    """S2 at r = π/8: x on the boundary, and the pair that sees it under the widest angle."""
    r = math.pi / 8
    sphere = Sphere(2)
    psi = np.linspace(0.01, math.pi, 4000)
    x = np.array([-math.sin(r), 0.0, math.cos(r)])
    pair = [
        np.stack([math.sin(r) * np.cos(psi), side * math.sin(r) * np.sin(psi), np.full_like(psi, math.cos(r))], axis=-1)
        for side in (1, -1)
    ]
    widest = np.linalg.norm(sphere.log(x, pair[0]) - sphere.log(x, pair[1]), axis=-1).max()
    bound = float(sensitivity_of_mean_gradient(Ball(sphere, np.array([0.0, 0.0, 1.0]), r), 1))
    assert bound * (1 - 1e-6) <= widest <= bound * (1 + 1e-12)


def test_the_gradient_bound_fails_outside_of_the_ball():
    """Why S2 asks for x in the ball where the curvature is positive."""
    r = math.pi / 8
    sphere = Sphere(2)
    x = np.array([-math.sin(2.5), 0.0, math.cos(2.5)])
    pair = np.array([[0.0, side * math.sin(r), math.cos(r)] for side in (1, -1)])
    logs = sphere.log(x, pair)
    bound = float(sensitivity_of_mean_gradient(Ball(sphere, np.array([0.0, 0.0, 1.0]), r), 1))
    assert np.linalg.norm(logs[0] - logs[1]) > 1.2 * bound


def test_the_attack_sees_a_bound_that_is_a_tenth_too_small():
    """The flat 2r/n is broken on the sphere, so the search has power."""
    attack = Attack(Sphere(2), 0.6)
    moved = attack.structured(30)[0] * float(sensitivity_of_mean(attack.ball, 30))
    assert moved > 1.1 * 2 * 0.6 / 30
