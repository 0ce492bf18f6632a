"""A mean by tangent steps, from the first pass to the release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host, leaves
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, ScaleOutOfRangeError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases.entry import Account
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.sums import Draw, Mechanism
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.records import RecordSums, read_records
from dpmanifolds.sums.steps import StepPlan, is_flat, plan_steps, safe_share
from dpmanifolds.sums.total import ExactSum, check_rules
from dpmanifolds.sums.wrapped import WrappedMechanism

__all__ = ["TANGENT", "TangentMean", "is_usable", "reached", "settled", "step_share"]


_MOST_TRIES = 40
# times the radius that holds noise nine times in ten: from two dimensions on it is longer once in 300,000 times or less
_BEYOND_NOISE = 4.0
TANGENT = ("auto", "wrapped-gaussian", "wrapped-laplace")
"""Mechanisms of a mean by sums."""


@dataclass(frozen=True)
class TangentMean:
    """One request, checked; everything in it is public."""

    domain: Domain
    budget: Budget
    mechanism: str
    numerics: str
    steps: int | str
    adjacency: str
    guess: int | None
    on_invalid: str
    unit: str
    account: Account

    def release(self, points: Any, group_by: Any, refine: int) -> Release:
        """Plan, read, charge, draw."""
        manifold = self.domain.manifold
        records = read_records(manifold, points, group_by=group_by, guess=self.guess)
        if refine:
            from dpmanifolds.releases.refine import refined_mean

            return refined_mean(self, records, refine)
        one = self.steps == 1 or (self.steps == "auto" and is_flat(manifold))
        told_by_the_pass = one and self.guess is None and records.known_count is None
        n = None if told_by_the_pass else self.public_number(records)
        plan = self.plan(self.domain, n or 1, self.budget, once=n is None or records.source.is_single_use)
        start = host(self.domain.center)
        first = records.total(self.look(self.domain, start, plan.mechanisms[0]))
        self.check(first)
        if n is None:
            n, seen = first.rows, plan.last
            plan = self.plan(self.domain, n, self.budget, once=True)
            # noise is so many lattice steps, whatever n is
            assert isinstance(seen, WrappedMechanism)
            assert isinstance(plan.last, WrappedMechanism)
            assert plan.last.exponent == seen.exponent
        self.spend("mean", plan.guarantee, n, mechanism=plan.last.name, numerics=plan.last.numerics)
        (*stages, last), _ = self.go(records, self.domain, plan, start, first)
        return replace(last, guarantee=plan.guarantee, stages=tuple(stages))

    def public_number(self, records: RecordSums) -> int | None:
        """n, or the guess of it; None where only the one pass that there is can tell."""
        if self.guess is not None:
            return self.guess
        if records.known_count is None and records.source.is_single_use:
            return None
        return records.count

    def plan(self, domain: Domain, n: int, budget: Budget, *, once: bool = False, labelled: bool = False) -> StepPlan:
        """The steps that public facts suggest; one where records can be read only once."""
        if once and self.steps not in ("auto", 1):
            raise ArgumentError(
                f"is an iterator, which can be read only once, and steps={self.steps} reads them as often. Pass "
                "an array of numbers, a list of blocks, or a function that returns a fresh iterator.",
                argument="points",
            )
        return plan_steps(
            domain,
            n,
            budget,
            steps=1 if once else self.steps,
            mechanism=self.mechanism,
            numerics=self.numerics,
            adjacency=self.adjacency,
            unit=self.unit,
            labelled=labelled,
        )

    def spend(self, what: str, guarantee: Guarantee, n: int, **told: Any) -> None:
        """Charge the account; a number of records that is protected is not told."""
        self.account.spend(what, guarantee, **self.told_number(n), **told, domain=repr(self.domain))

    def told_number(self, n: int) -> dict[str, int]:
        return {"n": n} if self.guess is None else {"n_guess": n}

    def look(self, domain: Domain, base: Array, law: Mechanism) -> TangentContribution:
        """What a record adds as seen from a public point p: log_p, in a ball of the domain's radius r.

        On a Hadamard manifold log_p is 1-Lipschitz: records of the ball of radius r around the centre are seen in the
        ball of radius r around log_p(centre). Elsewhere the ball is the one around p itself.
        """
        assert isinstance(law, WrappedMechanism)
        assert law.exponent is not None
        manifold, center = domain.manifold, host(domain.center)
        try:
            offset = manifold.log_coordinates(base, center) if manifold.is_hadamard else np.zeros(manifold.dim)
        except np.linalg.LinAlgError:
            offset = np.full(manifold.dim, np.nan)
        if not np.all(np.isfinite(offset)):
            raise NotOnManifoldError(
                f"is too close to the edge of {manifold!r} to be factorised.", argument="center"
            ) from None
        return TangentContribution(
            manifold,
            base,
            host(self.domain.center) if self._mends else None,
            radius=domain.radius,
            offset=offset if np.any(offset) and not all(map(np.array_equal, leaves(base), leaves(center))) else None,
            exponent=law.exponent,
        )

    @property
    def _mends(self) -> bool:
        return self.on_invalid == "center"

    def check(self, first: ExactSum) -> None:
        """Refuse malformed records: before anything is spent or drawn, and outside of the promise."""
        if not self._mends:
            manifold = self.domain.manifold
            check_rules(first, manifold.rules, repr(manifold))

    def go(
        self, records: RecordSums, domain: Domain, plan: StepPlan, base: Array, first: ExactSum | None
    ) -> tuple[tuple[Release, ...], Array]:
        """Noise on the first sum, then on those at the points that are reached; and where the last one is."""
        stages: list[Release] = []
        behind, length = base, 0.0
        for number, law in enumerate(plan.mechanisms):
            assert isinstance(law, WrappedMechanism)
            seen = self.look(domain, base, law)
            total = records.total(seen) if number or first is None else first
            noisy = law.noisy_mean(total.integers, total.rows, self.account.rng)
            drawn = noisy if seen.offset is None else noisy + seen.offset
            if number:
                back = domain.manifold.log_coordinates(base, behind)
                step = drawn * step_share(drawn, back, length, plan, number)
                point = settled(domain, law, reached(domain, base, step), plan.noises[number])
            else:
                step = drawn if law.is_coordinatewise else law.shrink(drawn)
                point = reached(domain, base, plan.gains[0] * step)
            behind, length = base, float(np.linalg.norm(drawn))
            stages.append(self._stage(law, Draw(point, drawn), domain, base, plan))
            base = point
        return tuple(stages), base

    def _stage(self, law: Mechanism, drawn: Draw, domain: Domain, base: Array, plan: StepPlan) -> Release:
        made = release_of(
            law,
            drawn,
            statistic="mean",
            budget=self.budget,
            n=None if law.facts.shape is None or law.facts.shape.counted else law.facts.shape.count,
            reason=plan.reason,
            reproducible=self.account.reproducible,
            domain=domain,
            base=base,
        )
        return replace(made, expected_error=plan.expected_error) if law is plan.last else made


def step_share(drawn: np.ndarray, back: np.ndarray, before: float, plan: StepPlan, number: int) -> float:
    """How much of a later step is taken, for these noisy coordinates: post-processing.

    The plan's gain; more where they are longer than noise alone makes them, 1 − noise²/length² (James and Stein) of the
    most that the plan allows. Less where the curvature is negative and they lead back against the step before by more
    than its noise explains: that one went |back| of the `before` that it saw and overshot, so that the second
    derivative on this way is (before + overshot)/|back| (the secant rule), and its inverse is the share that ends where
    nothing is left; not below what is safe for any records.
    """
    noise, length, way = plan.mechanisms[number].expected_error.mean, np.linalg.norm(drawn), np.linalg.norm(back)
    share = max(plan.gains[number], plan.gains[0] * (1 - (noise / max(float(length), noise)) ** 2))
    overshot = float(drawn @ back) / max(float(way), 1e-300)
    if overshot > _BEYOND_NOISE * plan.mechanisms[number - 1].expected_error.radius_90:
        share = min(share, max(float(way) / (before + overshot), safe_share(plan.last.facts.domain)))
    return share


def reached(domain: Domain, base: Array, guess: np.ndarray) -> Array:
    """The point of the domain that coordinates at a public point lead to: post-processing.

    Where floating point has no such point, or none that can be looked from, the way there is shortened by quarters:
    noise is drawn and paid for by now, and the release must not fail.
    """
    length = float(np.linalg.norm(guess))
    guess = guess * min(1.0, domain.radius / max(length, 1e-300))
    for _ in range(_MOST_TRIES):
        point = _try_reach(domain, base, guess)
        if point is not None:
            return point
        guess = 0.75 * guess
    return base


def _try_reach(domain: Domain, base: Array, guess: np.ndarray) -> Array | None:
    manifold = domain.manifold
    try:
        with np.errstate(all="ignore"):
            point = domain.clip(manifold.move(base, guess))
    except (ScaleOutOfRangeError, np.linalg.LinAlgError):
        return None
    return point if is_usable(domain, point) else None


def settled(domain: Domain, law: WrappedMechanism, point: Array, noise: float) -> Array:
    """A point that later steps reached, shrunk towards the centre like that of a first one: post-processing."""
    if law.is_coordinatewise:
        return point
    manifold, center = domain.manifold, host(domain.center)
    seen = manifold.log_coordinates(center, point)
    guess = replace(law, scale=law.scale * noise / law.expected_error.mean).shrink(seen)
    return point if np.array_equal(guess, seen) else reached(domain, center, guess)


def is_usable(domain: Domain, point: Array) -> bool:
    """Whether a released point can be looked from: all of it is public by now."""
    try:
        with np.errstate(all="ignore"):
            seen = domain.manifold.log_coordinates(point, host(domain.center))
            return bool(np.all(np.isfinite(seen))) and bool(domain.manifold.belongs(point))
    except np.linalg.LinAlgError:
        return False
