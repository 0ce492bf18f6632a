"""Releases of `private_mean` as it comes, many at a time: the exact sums are known, and the noise is in floating point.

What is decided, planned and made of noisy sums is the library's own code (`find_extrinsic_mean`, `decide_rounds`,
`plan_rounds`, `shrink_ball`, `StepPlan`, `weigh_step`, `AmbientBody`, `SampleFit`); the noise of a sum comes from a
table of directions in opposite pairs and lengths by quantiles (`step_simulation`). `check` is `private_mean` itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.league.cases import Task, shorten
from dpmanifolds import Ball, Budget, private_mean
from dpmanifolds.releases.extrinsic import find_extrinsic_mean
from dpmanifolds.releases.public_sample import read_sample
from dpmanifolds.releases.refine import distance_bins, shrink_ball
from dpmanifolds.releases.refine_plan import decide_rounds, plan_rounds
from dpmanifolds.releases.statistic import Request, check_request
from dpmanifolds.sums.steps import StepPlan, move_plan
from dpmanifolds.sums.total import RecordSums, read_records
from dpmanifolds.sums.walk import Walk
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedMechanism

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from step_simulation import Data, noise_table, step_errors

__all__ = ["MANY_DIMENSIONS", "Played", "check", "releases_for", "simulate_auto", "simulate_sample"]

MANY_DIMENSIONS = 80


class Played(NamedTuple):
    """Squared errors, and what was chosen."""

    squares: np.ndarray
    how: str


def releases_for(dim: int, count: int, *, one: bool) -> int:
    """Of so many: all of them where one step is taken, which costs least, or a quarter; fewer in high dimension.

    There lengths of noise hardly vary. An even number, for pairs.
    """
    share = 1.0 if one else 0.25
    return 2 * max(4, round(count * share * (1.0 if dim <= MANY_DIMENSIONS else 0.2) / 2))


def simulate_auto(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> Played:
    """`private_mean(records, ball, budget)`, up to `count` times."""
    request = check_request(task.ball, budget)
    records = read_records(task.manifold, task.records)
    rounds = decide_rounds(request, records)
    stand_in = find_extrinsic_mean(request, task.n, rounds)
    if stand_in is not None:
        count = releases_for(task.dim, count, one=False)
        law, body = stand_in.law, stand_in.body
        total = np.array(records.total(body.contribution(law, None)).integers) * law.step
        noisy = total + _noise(law, count, rng)
        points = np.stack([np.asarray(body.point_of(law, row)) for row in noisy])
        return Played(task.squares(points), f"extrinsic mean, {law.name}")
    if rounds:
        return _refined(task, request, records, count, rng)
    plan = request.plan(task.n)
    count = releases_for(task.dim, count, one=len(plan.mechanisms) == 1)
    return Played(_steps(task, plan, task.ball, count, rng), f"{plan.last.name}, {len(plan.mechanisms)} steps")


def _noise(law: WrappedMechanism, count: int, rng: np.random.Generator) -> np.ndarray:
    return law.sigma * noise_table(law.dim, count, isinstance(law, WrappedGaussianMechanism), rng)


def _steps(task: Task, plan: StepPlan, ball: Ball, count: int, rng: np.random.Generator) -> np.ndarray:
    """Even numbers alone have opposite pairs."""
    first = shorten(np.asarray(task.manifold.log_coordinates(task.center, task.records)), ball.radius).mean(axis=0)
    data = Data(ball, task.records, task.truth, first)
    return step_errors(data, plan, count + count % 2, int(rng.integers(2**31)))[:count] ** 2


def _refined(task: Task, request: Request, records: RecordSums, count: int, rng: np.random.Generator) -> Played:
    """A radius is paid for by noise of its own on every histogram; releases with the same radius go on together."""
    planned = plan_rounds(request, task.n, 1, 1)
    (plan,), noise = planned.plans, planned.noise
    count = releases_for(task.dim, count, one=False)
    bins = distance_bins(request, task.center, noise.unit, planned.look.edges)
    whole = records.total(bins).integers
    found: dict[float, tuple[Ball, int]] = {}
    for _ in range(count):
        ball, _moved = shrink_ball(request, bins, noise.draw(whole, rng), noise, task.n, 0.0, plan.expected_error.mean)
        found[ball.radius] = (ball, found.get(ball.radius, (ball, 0))[1] + 1)
    parts = [_steps(task, move_plan(plan, ball), ball, number, rng) for ball, number in found.values()]
    return Played(np.concatenate(parts), f"{plan.last.name}, a paid radius and {len(plan.mechanisms)} steps")


def simulate_sample(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> Played:
    """`private_mean(records, ball, budget, public_sample=…)`, up to `count` times."""
    request = check_request(task.ball, budget)
    sample = read_sample(request, task.public)
    records = read_records(task.manifold, task.records)
    fit = sample.fit(request, task.n)
    if sample.error_without(request, task.n, decide_rounds(request, records)) <= fit.predicted:
        return simulate_auto(task, budget, count, rng)
    count = releases_for(task.dim, count, one=False)
    body, plan = sample.plan(request, task.n, fit)
    law = plan.laws[0]
    noisy = np.array(Walk(body).first_look(records, plan).total.integers) * law.step + _noise(law, count, rng)
    reach = Walk(task.ball).reach
    points = [
        np.asarray(reach(sample.center, sample.correct(task.manifold, fit.guess(row / body.radius)))) for row in noisy
    ]
    return Played(task.squares(np.stack(points)), f"{law.name}, {law.dim} directions of a sample")


def check(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """Squared errors of `private_mean` itself."""
    made = [private_mean(task.records, task.ball, budget, rng=rng) for _ in range(count)]
    return np.array([float(task.squares(np.asarray(release.value))) for release in made])
