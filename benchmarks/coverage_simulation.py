"""Many data sets at once, released by the arithmetic of `private_mean_and_spread` in floating point.

The release itself takes one data set, and turns each record into integers. Here the same plan, the same steps and the
same post-processing functions of the package run on arrays of data sets (count, n, *point_shape); noise is drawn from
the same laws without rounding, which is 1e−8 of it. `tests/releases/test_spread.py` compares both, with the same noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds import Ball, Budget, Manifold
from dpmanifolds._points import host
from dpmanifolds.noise.symmetric import WishartDifference
from dpmanifolds.releases.population import (
    MeanPart,
    average_hessian_at,
    center_moment,
    fit_covariance,
    mean_part,
)
from dpmanifolds.releases.spread import SpreadWalk
from dpmanifolds.releases.spread_plan import SpreadPlan, plan_spread
from dpmanifolds.releases.statistic import check_request
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import read_records
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedMechanism

__all__ = ["Batch", "Population", "Simulation"]

_MANY = 100


class Population(NamedTuple):
    """Points exp_m(v): v is Gaussian with deviations from 1 to 0.3 along the axes, and even, so that m is their mean.

    On a symmetric space the reflection at m is an isometry that maps the law onto itself, hence its Fréchet mean onto
    itself. Root mean square 0.35 of the radius, |v| at most 0.68 of it; m lies 0.3 of it from the public centre.
    """

    ball: Ball
    center: Any
    """m."""
    deviations: np.ndarray

    @classmethod
    def of(cls, manifold: Manifold, middle: Any, radius: float, away: float = 0.3, way: int = 0) -> Population:
        """Around a point at `away` of the radius from the public centre."""
        dim = manifold.dim
        sizes = np.geomspace(1.0, 0.3, dim)
        center = manifold.move(middle, away * radius * np.eye(dim)[way])
        deviations = 0.35 * radius * sizes / np.linalg.norm(sizes)
        return cls(Ball(manifold, middle, radius), center, deviations)

    def draw(self, count: int, n: int, rng: np.random.Generator) -> Any:
        """Data sets (count, n, *point_shape)."""
        vectors = rng.standard_normal((count, n, self.deviations.size)) * self.deviations
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors *= np.minimum(1.0, 0.68 * self.ball.radius / np.maximum(lengths, 1e-300))
        return self.ball.manifold.exp_coordinates(self.center, vectors)


class Batch(NamedTuple):
    """What releases of many data sets say."""

    base: Any
    place: np.ndarray
    """The mean in coordinates at the base, (count, d)."""
    part: MeanPart
    """Its uncertainty in these coordinates."""
    inverse: np.ndarray
    noisy: np.ndarray
    deviations: tuple[np.ndarray, np.ndarray]

    def moved(self, derivative: np.ndarray) -> MeanPart:
        """Its uncertainty in other coordinates."""
        return mean_part(
            self.noisy,
            n=self.part.n,
            noise=self.part.facts,
            derivative=derivative @ self.inverse,
            deviations=self.deviations,
        )


@dataclass(frozen=True)
class Simulation:
    """Releases of data sets of n records in one ball, under one budget."""

    ball: Ball
    n: int
    budget: Budget
    plan: SpreadPlan

    @classmethod
    def of(cls, ball: Ball, n: int, budget: Budget) -> Simulation:
        return cls(ball, n, budget, plan_spread(ball, n, budget, "record"))

    @cached_property
    def walk(self) -> SpreadWalk:
        """The one whose plan and noise are simulated; it reads no records."""
        manifold = self.ball.manifold
        nobody = read_records(manifold, np.stack([host(self.ball.center)] * 2))
        return SpreadWalk(check_request(self.ball, self.budget), nobody, self.plan, self.n)

    def noises(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Of every sum, in units of the mean."""
        rough = () if self.plan.rough is None else self.plan.rough.laws
        made = [_draw(law, count, rng) for law in rough]
        if self.plan.squares is None:
            law = self.walk._settled(self.ball.radius)
            return [*made, _draw(law, count, rng)]
        return [*made, _draw_squares(self.plan.squares.law, count, rng) / self.plan.squares.steps / self.n]

    def release(self, points: Any, noises: list[np.ndarray], seen: np.ndarray) -> Batch:
        """Of data sets (count, n, *point_shape), with this noise; that of squares over (1 + κ²/r²)·reach².

        `seen` are their coordinates at the public centre, which all budgets share.
        """
        manifold, count = self.ball.manifold, len(noises[-1])
        center = host(self.ball.center)
        base: Any = np.broadcast_to(center, (count, *center.shape))
        if self.plan.rough is not None:
            base = self._rough(seen, self.plan.rough, noises)
        hadamard, radius = manifold.is_hadamard, self.ball.radius
        offset = manifold.to_coordinates(base, manifold.log(base, center)) if hadamard else np.zeros(1)
        reach = np.full(count, radius) if hadamard else radius + np.asarray(manifold.dist(base, center))
        rows = seen if self.plan.rough is None else _look(manifold, base, points)
        rows = _shorten(rows - offset[..., None, :], reach[:, None, None])
        mean, noisy = self._sums(rows, reach, noises[-1])
        deviations = self.walk.deviations(reach, np.linalg.norm(mean, axis=-1))
        dim, facts = manifold.dim, self.walk.noise(radius, 0.0)
        if facts.kind == "covariance":
            noisy = center_moment(noisy, mean, deviations[0], self.n)
            fitted, _ = fit_covariance(noisy, deviations[1])
        else:
            trace = noisy - np.sum(mean * mean, axis=-1) + dim * deviations[0] ** 2
            noisy = trace[:, None, None] * (self.n / (self.n - 1))
            fitted = np.maximum(noisy, 0.0) / dim * np.eye(dim)
        hessian = np.broadcast_to(np.eye(dim), fitted.shape)
        if not manifold.is_flat:
            hessian = average_hessian_at(manifold, base, fitted, radius)
        inverse = np.linalg.inv(hessian)
        place = (inverse @ (mean + offset)[..., None])[..., 0]
        part = mean_part(noisy, n=self.n, noise=facts, derivative=inverse, deviations=deviations)
        return Batch(base, place, part, inverse, noisy, deviations)

    def _sums(self, rows: np.ndarray, reach: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The noisy mean, and the noisy second moment or mean squared length, of rows (count, n, d)."""
        mean = np.mean(rows, axis=1)
        if self.plan.squares is None:
            share = reach / self.ball.radius
            noise = noise * share[:, None]
            return mean + noise[:, :-1], np.mean(np.sum(rows * rows, -1), 1) + noise[:, -1] * reach * 8 / 13
        constant = self.plan.constant
        moment = np.swapaxes(rows, 1, 2) @ rows / self.n
        scaled = noise * ((1 + constant**2) * reach**2)[:, None, None]
        return mean + scaled[:, -1, :-1] / (constant * reach)[:, None], moment + scaled[:, :-1, :-1]

    def _rough(self, seen: np.ndarray, plan: StepPlan, noises: list[np.ndarray]) -> Any:
        """One tangent step: `Walk.take` for many data sets."""
        manifold, center, radius = self.ball.manifold, host(self.ball.center), self.ball.radius
        drawn = np.mean(_shorten(seen, radius), axis=1) + noises[0]
        return manifold.exp_coordinates(center, _shorten(plan.shrink(0, plan.gain(0, 0.0) * drawn), radius))


def _look(manifold: Manifold, base: Any, points: Any) -> np.ndarray:
    """log coordinates (count, n, d) of data sets at a base each; one by one where that is faster."""
    if points.shape[1] >= _MANY:
        return np.stack([np.asarray(manifold.log_coordinates(*each)) for each in zip(base, points, strict=True)])
    at = base[:, None]
    return np.asarray(manifold.to_coordinates(at, manifold.log(at, points)))


def _shorten(rows: np.ndarray, radius: Any) -> np.ndarray:
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)))


def _draw(law: WrappedMechanism, count: int, rng: np.random.Generator) -> np.ndarray:
    normal = rng.standard_normal((count, law.dim))
    if isinstance(law, WrappedGaussianMechanism):
        return law.sigma * normal
    lengths = rng.gamma(law.dim, size=(count, 1))
    return np.asarray(law.sigma * lengths * normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _draw_squares(law: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    dim, sigma = law.dim, float(law.sigma)
    if isinstance(law, WishartDifference):
        left, right = rng.standard_normal((2, count, dim, dim + 1))
        return np.asarray(sigma / 2 * (left @ np.swapaxes(left, 1, 2) - right @ np.swapaxes(right, 1, 2)))
    numbers = rng.standard_normal((count, dim * (dim + 1) // 2))
    if law.radial:
        numbers *= rng.gamma(numbers.shape[1], size=(count, 1)) / np.linalg.norm(numbers, axis=1, keepdims=True)
    made = np.zeros((count, dim, dim))
    rows, columns = np.triu_indices(dim, 1)
    made[:, rows, columns] = sigma / np.sqrt(2) * numbers[:, dim:]
    made += np.swapaxes(made, 1, 2)
    made[:, np.arange(dim), np.arange(dim)] = sigma * numbers[:, :dim]
    return made
