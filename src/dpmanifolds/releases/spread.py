"""A private mean and how far records spread around it, from one budget: what regions for the population are made of.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=1.0)
>>> X = ball.clip(dpm.Sphere(2).random_point(2000, rng=0))
>>> release = private_mean_and_spread(X, ball, dpm.GaussianDP(1.0), rng=0)
>>> release.statistic, release.spread.kind, len(release.stages), release.spent
('mean and spread', 'covariance', 1, GaussianDP(mu=1.0))

1. Where the metric is curved, a rough mean p by one tangent step, for a small part of the budget; else p is the centre.
2. One exact sum from p, of y = log_p x less a public offset. Either Σ ỹỹᵀ of ỹ = (y, κ) (`sums.joint_moment`): the
   second moment and the mean of y together, for less than two releases cost; or Σ (y, |y|²) (`sums.lengths`), where the
   squared length costs nothing beside the mean, and nothing is known of the directions that records spread in.

Public facts decide which, and how the budget is cut (`releases.spread_plan`). Proofs: docs/proofs/regions.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.population import (
    SpreadNoise,
    average_hessian_at,
    center_moment,
    fit_covariance,
)
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.second_moment import MomentFacts
from dpmanifolds.releases.spread_plan import SpreadPlan, law_name, plan_spread, square_noise
from dpmanifolds.releases.statistic import Request, check_request, domain_first, warn_of_noise
from dpmanifolds.sums import Draw, calibrate
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.joint_moment import TangentJointContribution
from dpmanifolds.sums.lengths import LengthContribution, length_deviation, length_facts
from dpmanifolds.sums.mechanism import ExpectedError
from dpmanifolds.sums.outer import sum_outer
from dpmanifolds.sums.total import RecordSums
from dpmanifolds.sums.walk import Walk
from dpmanifolds.sums.wrapped import WrappedMechanism

LEAST_RECORDS = 2
"""A spread needs two records."""
TESTED_RECORDS = 50
"""The smallest number of records that coverage was studied for (docs/coverage.md)."""


@domain_first
def private_mean_and_spread(
    points: Any,
    domain: Ball,
    budget: Budget,
    *,
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The mean of `points` (n, *point_shape), clipped to the public ball, and their spread around it, within `budget`.

    What `population_region`, `private_difference` and `synthesize` are made of. The value is the mean: one more Newton
    step from a rough private mean p, not shrunk towards the centre, so that what is said about its error holds (the
    best guess of the mean alone is `private_mean`). The release's `coordinates` are the noisy mean of v = log_p x, and
    behind it the noisy covariance of v (its diagonal, then √2 times what is above it row by row), or its trace alone in
    high dimension; `spread` says which, and what noise they have. Neighbours differ in one record, and n is public.

    `group_by` names a person for each record: a person counts as one, with the mean of their tangent vectors and of
    their squares, and n is the number of persons. The spread is then that of records, which is at least that of the
    persons' means: regions cover too much rather than too little. Other arguments as in `private_mean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> release = dpm.private_mean_and_spread(dpm.SPD(2).random_point(500, rng=0), ball, dpm.GaussianDP(1.0), rng=0)
    >>> release.value.shape, release.coordinates.shape, release.spread.kind
    ((2, 2), (9,), 'covariance')
    """
    request = check_request(
        domain,
        budget,
        ball_for="a spread",
        group_by=group_by,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    records = request.read(points, group_by)
    check_count(records, "points")
    assert isinstance(request.domain, Ball)
    n = records.count
    return SpreadWalk(request, records, plan_spread(request.domain, n, budget, request.unit), n).release()


def check_count(records: RecordSums, name: str) -> None:
    """Two records, or persons, at least."""
    if records.count < LEAST_RECORDS:
        raise ArgumentError(
            f"a spread needs at least {LEAST_RECORDS} records, or persons; got {records.count}.", argument=name
        )


@dataclass(frozen=True)
class SpreadWalk:
    """One mean and spread, from the first pass to the release; `look` before the budget is spent, `draw` after it."""

    request: Request
    records: RecordSums
    plan: SpreadPlan
    n: int

    @property
    def domain(self) -> Ball:
        assert isinstance(self.request.domain, Ball)
        return self.request.domain

    @property
    def walk(self) -> Walk:
        return self.request.walk()

    def release(self) -> Release:
        """Look, charge, draw."""
        first = self.look()
        self.warn()
        told = {"mechanism": self.mechanism}
        self.request.spend("mean and spread", self.plan.guarantee, self.n, domain=self.domain, **told)
        return self.draw(first)

    def warn(self) -> None:
        """Where noise is as large as the domain."""
        warn_of_noise(self.domain, self._expected_error(self.noise(self.domain.radius, 0.0)))

    @property
    def mechanism(self) -> str:
        """What the last sum's noise is called."""
        return self.plan.squares.mechanism if self.plan.squares is not None else self._lengths.name

    @property
    def _lengths(self) -> WrappedMechanism:
        assert isinstance(self.plan.lengths, WrappedMechanism)
        return self.plan.lengths

    def look(self) -> Any:
        """The first pass, which refuses malformed records before anything is spent, and what it saw."""
        if self.plan.rough is not None:
            return self.walk.first_look(self.records, self.plan.rough)
        return self.request.refuse_malformed(self._sum(*self._place(self.walk.center)))

    def draw(self, first: Any) -> Release:
        """Noise on every sum. It spends the plan's guarantee."""
        stages: tuple[Release, ...] = ()
        base, total = self.walk.center, first
        if self.plan.rough is not None:
            taken = self.walk.take(self.records, self.plan.rough, first=first)
            stages = self.request.release_steps(self.walk, self.plan.rough, taken)
            base, total = taken[-1].drawn.point, None
        base, offset, reach = self._place(base)
        total = self._sum(base, offset, reach) if total is None else total
        rng = self.request.account.rng
        if self.plan.squares is not None:
            noisy = self.plan.squares.draw(total.integers, rng)
            seen = self._squares_rule(base, offset, reach).read(noisy)
            mean, moment = seen.sums / self.n, seen.squares / self.n
        else:
            law = self._settled(reach)
            mean, length = self._length_rule(base, offset, reach).read(law.noisy_mean(total.integers, self.n, rng))
            moment = np.array([[length]])
        return self._finish(base, offset, reach, mean, moment, stages)

    def _place(self, base: Array) -> tuple[Array, np.ndarray | None, float]:
        """Where records are seen from, less which offset, and how far at most.

        On a Hadamard manifold within r of log_p(centre); elsewhere within r + ρ(p, centre) of p.
        """
        walk, manifold = self.walk, self.domain.manifold
        if manifold.is_hadamard:
            return base, walk.offset(base), self.domain.radius
        return base, None, self.domain.radius + float(manifold.dist(walk.center, base))

    def _sum(self, base: Array, offset: np.ndarray | None, reach: float) -> Any:
        if self.plan.squares is not None:
            return sum_outer(self.records.source, self._squares_rule(base, offset, reach), self.records.persons)
        return self.records.total(self._length_rule(base, offset, reach))

    def _squares_rule(self, base: Array, offset: np.ndarray | None, reach: float) -> TangentJointContribution:
        assert self.plan.squares is not None
        manifold = self.domain.manifold
        view = TangentContribution(manifold, base, self.request.substitute)
        return TangentJointContribution(
            manifold.dim, reach, self.plan.constant, self.plan.squares.exponent, view, offset
        )

    def _settled(self, reach: float) -> WrappedMechanism:
        """The same noise in steps, and the same promise, for another radius."""
        facts = length_facts(reach, self.domain.manifold.dim, self.n, self.request.unit)
        law = calibrate(self._lengths.name, facts, self.plan.part, self._lengths.numerics)
        assert isinstance(law, WrappedMechanism)
        return law

    def _length_rule(self, base: Array, offset: np.ndarray | None, reach: float) -> LengthContribution:
        exponent = self._settled(reach).exponent
        assert exponent is not None
        return LengthContribution(
            self.domain.manifold, base, self.request.substitute, radius=reach, offset=offset, exponent=exponent
        )

    def deviations(self, reach: Any, away: Any) -> tuple[Any, Any]:
        """Of the noise on the mean and on the centred moment, where the mean lies `away` from the offset.

        Taking the mean off adds noise: M̂ − ŷŷᵀ errs by E − ȳeᵀ − eȳᵀ − eeᵀ. Of one data set, or of many.
        """
        dim = self.domain.manifold.dim
        if self.plan.squares is not None:
            moment, mean = square_noise(self.plan.squares, self.plan.constant, reach, self.n)
            return mean, np.sqrt(moment**2 + 2 * (away * mean) ** 2 / dim + mean**4)
        mean = self._settled(self.domain.radius).deviation * reach / self.domain.radius
        length = length_deviation(reach, mean)
        return mean, np.sqrt(length**2 + 4 * (away * mean) ** 2 + 2 * dim * mean**4)

    def noise(self, reach: float, away: float) -> SpreadNoise:
        """What is known of the noise of one data set."""
        dim, (mean, moment) = self.domain.manifold.dim, self.deviations(reach, away)
        law = law_name(self.plan)
        if self.plan.squares is None:
            return SpreadNoise("variance", float(mean), float(moment), law, dim + 1)
        return SpreadNoise("covariance", float(mean), float(moment), law, (dim + 1) * (dim + 2) // 2)

    def _expected_error(self, noise: SpreadNoise) -> ExpectedError:
        dim = self.domain.manifold.dim
        rng = np.random.default_rng(0)
        lengths = np.sqrt(rng.chisquare(dim, 20_000) * noise.mixture(dim, 20_000, rng)) * noise.mean
        mean, most = float(np.mean(lengths)), float(np.quantile(lengths, 0.9))
        return ExpectedError(mean, most, mean, simulated=True)

    def _finish(
        self,
        base: Array,
        offset: np.ndarray | None,
        reach: float,
        mean: np.ndarray,
        moment: np.ndarray,
        stages: tuple[Release, ...],
    ) -> Release:
        """The release; all of this is post-processing of noisy numbers."""
        noise, dim = self.noise(reach, float(np.linalg.norm(mean))), self.domain.manifold.dim
        seen = mean if offset is None else mean + offset
        if noise.kind == "covariance":
            spread = upper_triangle(center_moment(moment, mean, noise.mean, self.n))
        else:
            trace = float(moment[0, 0]) - float(mean @ mean) + dim * noise.mean**2
            spread = np.array([trace * self.n / (self.n - 1)])
        made = self._describe(reach, noise)
        draft = replace(
            made,
            coordinates=np.concatenate([seen, spread]),
            base=None if base is self.walk.center else base,
            value=base,
            stages=stages,
        )
        step, _ = estimate_mean(draft)
        return replace(draft, value=self.walk.reach(base, step))

    def _describe(self, reach: float, noise: SpreadNoise) -> Release:
        """Everything but the numbers."""
        if self.plan.squares is not None:
            facts = MomentFacts(self.request, reach * math.hypot(1.0, self.plan.constant), self.n, self.plan.squares)
            made = facts.release(np.zeros(1), np.zeros(1))
        else:
            law = self._settled(reach)
            made = self.request.release(law, Draw(np.zeros(1), np.zeros(1)), statistic="", n=self.n, reason="")
        what = "their second moment" if self.plan.squares is not None else "their mean squared length"
        return replace(
            made,
            statistic="mean and spread",
            guarantee=self.plan.guarantee,
            domain=self.domain,
            spread=noise,
            expected_error=self._expected_error(noise),
            reason=f"smallest region that public facts predict; tangent vectors were summed with {what}",
        )


def read_spread(release: Release) -> tuple[np.ndarray, np.ndarray]:
    """The noisy mean (d,) in coordinates at the viewpoint, and the noisy covariance (d, d), or its trace (1, 1)."""
    if not isinstance(release, Release):
        raise ArgumentError(f"release must be a Release; got {type(release).__name__}.")
    if release.spread is None or release.coordinates is None:
        raise NotAvailableError(
            f"this release ({release.statistic}) holds no spread of the records around their mean. Release both "
            "together: private_mean_and_spread(points, domain, budget)."
        )
    dim = release.manifold.dim
    mean, behind = release.coordinates[:dim], release.coordinates[dim:]
    if release.spread.kind == "variance":
        return mean, behind.reshape(1, 1)
    return mean, np.asarray(from_upper_triangle(behind, dim))


def assumption_of(*releases: Release) -> str:
    """What has to be true of the records for what is said about their populations."""
    shape = small = ""
    if any(release.spread is not None and release.spread.kind == "variance" for release in releases):
        shape = (
            " Only how far records spread was released, not in which directions: the worst of them is assumed, and "
            "the region is larger than need be."
        )
    fewest = min(release.n or 0 for release in releases)
    if fewest < TESTED_RECORDS:
        small = f" It was tested from n = {TESTED_RECORDS} on; here n = {fewest}."
    return (
        "The records are independent draws of one law whose support lies in the public ball (what clipping to it moves "
        "is not covered), and n is large enough for their tangent mean to be nearly Gaussian: an approximation for "
        f"large n (docs/proofs/regions.md, docs/coverage.md).{small}{shape}"
    )


def estimate_mean(release: Release) -> tuple[np.ndarray, np.ndarray]:
    """The mean in coordinates at the viewpoint, H⁻¹m̂, and H⁻¹ (d, d): Newton's step by the released spread."""
    mean, noisy = read_spread(release)
    assert release.spread is not None
    dim = release.manifold.dim
    if release.spread.kind == "covariance":
        covariance, _ = fit_covariance(noisy, release.spread.moment)
    else:
        covariance = max(float(noisy[0, 0]), 0.0) / dim * np.eye(dim)
    if release.manifold.is_flat:
        return mean, np.eye(dim)
    hessian = average_hessian_at(release.manifold, release.viewpoint, covariance, release.domain.radius)
    inverse = np.linalg.inv(hessian)
    return inverse @ mean, inverse
