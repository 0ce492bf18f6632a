"""Tangent steps in floating point: the formulas of `private_mean`, with noise from a table instead of exact integers.

A grid of (manifold, radius, n, budget) and the mean error of 1…4 steps in each cell, over positions of the mean.
Records: a wrapped Gaussian of root mean square distance `spread`·r around a point at `position`·r from the centre,
clipped to the ball; the error is the distance to the Fréchet mean of the clipped records. n sets the noise only:
`RECORDS` records stand for the law, since what they leave of the way to their mean does not depend on their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Budget,
    GaussianDP,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    PureDP,
    SpecialOrthogonal,
    Sphere,
    frechet_mean,
)
from dpmanifolds._points import host
from dpmanifolds.sums.steps import StepPlan, plan_steps
from dpmanifolds.sums.walk import weigh_step
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedMechanism

RECORDS = 120
POSITIONS = (0.0, 0.25, 0.5, 0.75)
BUDGETS: tuple[Budget, ...] = (PureDP(1.0), GaussianDP(1.0), ApproxDP(1.0, 1e-6))
SIZES = (40, 200, 1000, 5000)


def balls() -> Iterator[Ball]:
    """Small, medium and wide ones."""
    shapes, subspaces = PlanarShapes(8), Grassmann(5, 2)
    for dim in (2, 10):
        yield from (Ball(Sphere(dim), np.eye(dim + 1)[0], radius) for radius in (0.4, 1.0, 1.45))
    yield from (Ball(shapes, shapes.random_point(rng=0), radius) for radius in (0.2, 0.4, 0.7))
    yield from (Ball(subspaces, subspaces.random_point(rng=0), radius) for radius in (0.2, 0.5, 0.75))
    yield from (Ball(SpecialOrthogonal(3), np.eye(3), radius) for radius in (0.4, 1.0, 2.0))
    for k in (3, 8):
        yield from (Ball(SPD(k), np.eye(k), math.sqrt(k) / 2 * math.log(ratio)) for ratio in (2.0, 10.0, 100.0))
    for dim in (2, 3):
        space = Hyperbolic(dim)
        yield from (Ball(space, space.origin, radius) for radius in (0.5, 1.5, 3.0))


class Data(NamedTuple):
    """Records in a ball, and their Fréchet mean."""

    ball: Ball
    records: Any
    mean: Any
    first: np.ndarray
    """The mean of their coordinates at the centre."""


def draw_data(ball: Ball, position: float, spread: float, rng: Any, *, count: int = 0, line: bool = False) -> Data:
    """Records around a point at `position` radii from the centre; `line`: all of them along one direction across."""
    manifold = ball.manifold
    direction = rng.standard_normal(manifold.dim)
    middle = manifold.move(host(ball.center), position * ball.radius * direction / np.linalg.norm(direction))
    half = rng.standard_normal(((count or RECORDS) // 2, manifold.dim))
    if line:
        across = rng.standard_normal(manifold.dim)
        half = half[:, :1] * (across / np.linalg.norm(across)) * math.sqrt(manifold.dim)
    around = np.concatenate([half, -half]) * spread * ball.radius / math.sqrt(manifold.dim)
    records = ball.clip(manifold.move(middle, around))
    seen = manifold.log_coordinates(host(ball.center), records)
    return Data(ball, records, frechet_mean(manifold, records).point, np.mean(seen, axis=0))


def noise_table(dim: int, count: int, gaussian: bool, rng: Any) -> np.ndarray:
    """Noise of scale 1 (count, dim): directions in opposite pairs, lengths by quantiles."""
    half = rng.standard_normal((count // 2, dim))
    directions = np.concatenate([half, -half]) / np.linalg.norm(np.concatenate([half, half]), axis=-1, keepdims=True)
    levels = (np.arange(count) + 0.5) / count
    lengths = np.sqrt(2 * special.gammaincinv(dim / 2, levels)) if gaussian else special.gammaincinv(dim, levels)
    return np.asarray(rng.permutation(lengths)[:, None] * directions)


def step_errors(data: Data, plan: StepPlan, count: int, seed: int) -> np.ndarray:
    """Distances to the mean of `count` releases; the noise of the last step is the same for every plan of a seed."""
    ball, manifold = data.ball, data.ball.manifold
    laws: Sequence[WrappedMechanism] = plan.mechanisms  # type: ignore[assignment]
    tables = [
        law.sigma * noise_table(manifold.dim, count, isinstance(law, WrappedGaussianMechanism), generator)
        for law, generator in zip(laws[::-1], np.random.default_rng(seed).spawn(len(laws)), strict=True)
    ][::-1]
    center, whole = host(ball.center), plan.gain(0, 0.0)
    first = data.first + tables[0]
    if len(laws) == 1:
        way = plan.shrink(0, whole * first)
        lengths = np.linalg.norm(way, axis=-1, keepdims=True)
        ends = manifold.move(center, way * np.minimum(1.0, ball.radius * (1 - 1e-12) / np.maximum(lengths, 1e-300)))
        return np.asarray(manifold.dist(data.mean, ends))
    ends = [_reach(ball, center, start) for start in plan.shrink(0, whole * first)]
    kept = [_reach(ball, center, whole * start) for start in first]
    behind, before = [center] * count, np.linalg.norm(first, axis=-1).tolist()
    for number in range(1, len(laws)):
        looks = [_look(data, base, noise) for base, noise in zip(ends, tables[number], strict=True)]
        ways = zip(ends, behind, kept, before, looks, strict=True)
        kept = [_next(data, plan, number, *way) for way in ways]
        seen = np.stack([manifold.log_coordinates(center, each) for each in kept])
        behind, before = ends, np.linalg.norm(looks, axis=-1).tolist()
        ends = [manifold.move(center, guess) for guess in plan.shrink(number, seen)]
    return np.array([float(manifold.dist(data.mean, end)) for end in ends])


def _look(data: Data, base: Any, noise: np.ndarray) -> np.ndarray:
    """The noisy mean of the records as seen from `base`."""
    ball, manifold = data.ball, data.ball.manifold
    offset = manifold.log_coordinates(base, host(ball.center)) if manifold.is_hadamard else 0.0
    seen = manifold.log_coordinates(base, data.records) - offset
    lengths = np.linalg.norm(seen, axis=-1, keepdims=True)
    seen = seen * np.minimum(1.0, ball.radius / np.maximum(lengths, 1e-300))
    return np.asarray(np.mean(seen, axis=0) + offset + noise)


def _next(
    data: Data, plan: StepPlan, number: int, base: Any, behind: Any, kept: Any, before: float, drawn: np.ndarray
) -> Any:
    """The point that is reached from there, clipped onto the ball."""
    ball, manifold = data.ball, data.ball.manifold
    gain = plan.gain(number, float(manifold.dist(host(ball.center), base)))
    back, other = manifold.log_coordinates(base, behind), manifold.log_coordinates(base, kept)
    return _reach(ball, base, weigh_step(drawn, back, other, before, plan, number, gain))


def _reach(ball: Ball, base: Any, way: np.ndarray) -> Any:
    point = ball.manifold.move(base, way * min(1.0, ball.radius / max(float(np.linalg.norm(way)), 1e-300)))
    distance = float(ball.manifold.dist(host(ball.center), point))
    if distance <= ball.radius:
        return point
    return ball.manifold.geodesic(host(ball.center), point, ball.radius / distance)


class Cell(NamedTuple):
    """Mean errors over positions of 1…4 steps, and what `auto` takes."""

    ball: Ball
    n: int
    budget: Budget
    errors: tuple[float, ...]
    auto: int
    own: float
    """The error of `auto`, whose first step aims at the Fréchet mean even where it is the only one."""
    predicted: tuple[float, ...]
    by_position: np.ndarray

    @property
    def ratio(self) -> float:
        """The error of `auto` over that of the best fixed number."""
        return self.own / min(self.own, *self.errors)


def simulate_cell(ball: Ball, n: int, budget: Budget, *, spread: float, data_sets: int, count: int, **law: Any) -> Cell:
    """Every number of steps on the same records and the same noise."""
    own = plan_steps(ball, n, budget)
    plans = [*(plan_steps(ball, n, budget, steps=number) for number in (1, 2, 3, 4)), own]
    errors = np.zeros((len(POSITIONS), len(plans)))
    for place, position in enumerate(POSITIONS):
        for seed in range(data_sets):
            data = draw_data(ball, position, spread, np.random.default_rng([seed, place]), **law)
            for number, plan in enumerate(plans):
                errors[place, number] += np.mean(step_errors(data, plan, count, seed)) / data_sets
    *fixed, taken = np.mean(errors, axis=0).tolist()
    predicted = tuple(plan.predicted for plan in plans)
    return Cell(ball, n, budget, tuple(fixed), len(own.mechanisms), taken, predicted, errors)
