"""The steps of a mean, taken: an exact sum from a public point, noise on it, and the point that it leads to.

>>> import numpy as np
>>> from dpmanifolds import Ball, GaussianDP, Sphere
>>> from dpmanifolds.sums.steps import plan_steps
>>> from dpmanifolds.sums.total import read_records
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=1.0)
>>> records, walk = read_records(ball.manifold, Sphere(2).random_point(500, rng=0)), Walk(ball, rng=generator_of(1))
>>> stages = walk.take(records, plan_steps(ball, 500, GaussianDP(1.0)))
>>> len(stages), bool(ball.contains(stages[-1].drawn.point))
(2, True)

Everything but the sums is public, or post-processing of what was released (docs/proofs/sums.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host, leaves
from dpmanifolds.domains import Domain
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import as_generator
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.frames import try_move
from dpmanifolds.sums.mechanism import Draw
from dpmanifolds.sums.steps import StepPlan, safe_share
from dpmanifolds.sums.total import ExactSum, RecordSums, check_rules
from dpmanifolds.sums.wrapped import WrappedMechanism

# times the radius that holds noise nine times in ten: from two dimensions on it is longer once in 300,000 times or less
_BEYOND_NOISE = 4.0
_MOST_TRIES = 40
# of the radius: no rounding of a distance reaches over the rest of it
_PLAINLY_INSIDE = 0.9


def generator_of(rng: Any) -> np.random.Generator:
    """The generator that a seed means, for draws that must be repeated; None is the secure source."""
    return as_generator(rng)


class Look(NamedTuple):
    """What records add as seen from a public point, and the exact sum of it. The sum is not private."""

    rule: TangentContribution
    total: ExactSum


class Stage(NamedTuple):
    """What one step let out."""

    law: WrappedMechanism
    drawn: Draw
    base: Array | None
    """Where it was looked from; None for the centre of the domain."""
    records: int | None
    """The public number of records; None where it is protected."""


@dataclass(frozen=True)
class Walk:
    """Steps in one domain; everything in it is public."""

    domain: Domain
    substitute: Array | None = None
    """What takes the place of malformed records; None: they count as 0, and are told."""
    rng: np.random.Generator | None = None
    """None: the secure source."""

    @cached_property
    def center(self) -> Array:
        """That of the domain: NumPy."""
        return host(self.domain.center)

    def look(self, base: Array, law: WrappedMechanism) -> TangentContribution:
        """What a record adds as seen from a public point p: log_p, in a ball of the domain's radius r.

        On a Hadamard manifold log_p is 1-Lipschitz: records of the ball of radius r around the centre are seen in the
        ball of radius r around log_p(centre). Elsewhere the ball is the one around p itself.
        """
        assert law.exponent is not None
        manifold = self.domain.manifold
        offset = self.offset(base) if manifold.is_hadamard else None
        return TangentContribution(
            manifold,
            base,
            self.substitute,
            radius=self.domain.radius,
            offset=offset,
            exponent=law.exponent,
            axes=self.domain.body,
        )

    def offset(self, base: Array) -> np.ndarray | None:
        """log_p(centre): the middle of the ball that records are seen in from p on a Hadamard manifold; None for 0."""
        if self._is_center(base):
            _check_factors(self.domain)
            return None
        offset = _offset(self.domain.manifold, base, self.center)
        return offset if np.any(offset) else None

    def _is_center(self, base: Array) -> bool:
        return base is self.center or all(map(np.array_equal, leaves(base), leaves(self.center)))

    def first_look(self, records: RecordSums, plan: StepPlan) -> Look:
        """From the centre. Malformed records are refused: before anything is spent, and outside of the promise."""
        manifold, rule = self.domain.manifold, self.look(self.center, plan.laws[0])
        total = records.total(rule)
        if self.substitute is None:
            check_rules(total, manifold.rules, manifold)
        return Look(rule, total)

    def take(
        self, records: RecordSums, plan: StepPlan, base: Array | None = None, first: Look | None = None
    ) -> list[Stage]:
        """Noise on the first sum, then on those at the points that are reached. It spends the plan's guarantee."""
        manifold, stages = self.domain.manifold, list[Stage]()
        base = self.center if base is None else base
        kept, behind, length = base, base, 0.0
        for number, law in enumerate(plan.laws):
            rule, total = first or (self.look(base, law), None)
            total, first = total or records.total(rule), None
            noisy = law.noisy_mean(total.integers, total.rows, self.rng)
            noisy = noisy if rule.offset is None else noisy + rule.offset
            drawn = noisy if rule.axes is None else rule.axes.restore(noisy)
            if number:
                gain = plan.gain(number, float(manifold.dist(self.center, base)))
                back, other = (manifold.log_coordinates(base, each) for each in (behind, kept))
                kept = self.reach(base, weigh_step(drawn, back, other, length, plan, number, gain))
                point = self._settle(kept, plan, number)
            else:
                guess = plan.shrink(0, plan.gain(0, 0.0) * noisy)
                if len(plan.laws) > 1:
                    kept = self.reach(base, plan.gain(0, 0.0) * drawn)
                point = self.reach(base, guess if rule.axes is None else rule.axes.restore(guess))
            shape = law.facts.shape
            count = None if shape is None or shape.counted else shape.count
            stages.append(Stage(law, Draw(point, drawn), None if self._is_center(base) else base, count))
            behind, length, base = base, float(np.linalg.norm(drawn)), point
        return stages

    def reach(self, base: Array, guess: np.ndarray) -> Array:
        """The point of the domain that coordinates at a public point lead to: post-processing.

        Where floating point has no such point, or none that can be looked from, the way there is shortened by quarters:
        noise is drawn and paid for by now, and the release must not fail.
        """
        radius, length = self.domain.radius, float(np.linalg.norm(guess))
        if length > radius:
            guess, length = guess * (radius / length), radius
        # coordinates at the centre of a ball are as long as the way is
        inside = self.domain.body is None and length <= _PLAINLY_INSIDE * radius and self._is_center(base)
        for _ in range(_MOST_TRIES):
            point = try_move(self.domain, base, guess, inside=inside)
            if point is not None and self._is_usable(point):
                return point
            guess = 0.75 * guess
        return base

    def _is_usable(self, point: Array) -> bool:
        """Whether a released point can be looked from: all of it is public by now. Plain formulas always can."""
        manifold = self.domain.manifold
        try:
            with np.errstate(all="ignore"):
                if manifold.log_can_fail and not np.all(np.isfinite(manifold.log_coordinates(point, self.center))):
                    return False
                return bool(manifold.belongs(point))
        except np.linalg.LinAlgError:
            return False

    def _settle(self, point: Array, plan: StepPlan, number: int) -> Array:
        """A point that later steps reached, shrunk towards the centre like that of a first one: post-processing."""
        seen = self.domain.manifold.log_coordinates(self.center, point)
        guess = plan.shrink(number, seen)
        return point if np.array_equal(guess, seen) else self.reach(self.center, guess)


@lru_cache(maxsize=64)
def _check_factors(domain: Domain) -> None:
    """An error where records cannot be looked at from the public centre; domains are told apart by being the same."""
    center = host(domain.center)
    _offset(domain.manifold, center, center)


def _offset(manifold: Manifold, base: Array, center: Array) -> np.ndarray:
    try:
        offset = np.asarray(manifold.log_coordinates(base, center))
    except np.linalg.LinAlgError:
        offset = np.full(manifold.dim, np.nan)
    if not np.all(np.isfinite(offset)):
        raise NotOnManifoldError(f"is too close to the edge of {manifold!r} to be factorised.", argument="center")
    return offset


def weigh_step(
    drawn: np.ndarray, back: np.ndarray, kept: np.ndarray, before: float, plan: StepPlan, number: int, gain: float
) -> np.ndarray:
    """The way from the point that is looked from, for noisy coordinates there: post-processing.

    Known are two points with independent noise: where this step leads, and where the steps before led before they were
    shrunk towards the centre (`kept`; shrinking is for the last of them to do, and once). The first is weighted by the
    plan's gain for the point that is looked from; by more where both are farther apart than noise alone makes them,
    1 − noise²/distance² (James and Stein) of the most that the plan allows. Less of a step is taken, and nothing of the
    other point, where the curvature is negative and it leads back against the step before by more than its noise
    explains: that one went |back| of the `before` that it saw and overshot, so that the second derivative on this way
    is (before + overshot)/|back| (the secant rule), and its inverse is the share that ends where nothing is left; not
    below what is safe for any records.
    """
    noise, way = plan.mechanisms[number].expected_error.mean, np.linalg.norm(back)
    whole = min(plan.gain(0, 0.0), 1.0)
    apart = float(np.linalg.norm(drawn - kept))
    share = max(gain, whole * (1 - (noise / max(apart, noise)) ** 2))
    overshot = float(drawn @ back) / max(float(way), 1e-300)
    if overshot > _BEYOND_NOISE * plan.mechanisms[number - 1].expected_error.radius_90:
        return drawn * min(share, max(float(way) / (before + overshot), safe_share(plan.last.facts.domain)))
    return np.asarray(share * drawn + (1 - share / whole) * kept)
