"""A mean with a public sample at hand: the sample says where to look and how, the records say the rest.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> points = np.random.default_rng(0).normal(size=(400, 4)) * [2.0, 0.5, 0.1, 0.1]
>>> ball = dpm.Ball(dpm.Euclidean(4), np.zeros(4), radius=10.0)
>>> release = dpm.private_mean(points[80:], ball, dpm.GaussianDP(1.0), public_sample=points[:80], rng=0)
>>> release.domain
Ellipsoid(Euclidean(4), 4 axes from 1.32354 to 4.51529, from a public sample)

Everything public is made of the sample, n and the budget before a record is read, and the sample is never compared with
the records: a record's integers, the noise on their sum and the promise are those of any ellipsoid
(docs/proofs/sums.md, section 8). What is made of the noisy sum is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds.domains import Ball, Ellipsoid
from dpmanifolds.domains.domain import check_sample, mean_of_sample
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Euclidean, Manifold
from dpmanifolds.releases.refine import best_radius, distance_bins
from dpmanifolds.releases.refine_plan import plan_rounds, unit_of
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request
from dpmanifolds.statistics.mean import newton_direction
from dpmanifolds.sums import Draw, ExpectedError, mean_facts, offered
from dpmanifolds.sums.public import LEAST_RECORDS, MOST_DIRECTIONS, Noise, PublicPart, SampleFit, fit_sample
from dpmanifolds.sums.steps import StepPlan, plan_steps
from dpmanifolds.sums.total import RecordSums, read_records
from dpmanifolds.sums.walk import Look, Walk
from dpmanifolds.sums.wrapped import WrappedMechanism

_SOURCE = "a public sample"
_NEARLY_ALL = 0.99
_ACCURACY = 1e-6
# what a Gaussian vector of any covariance keeps, 9 times in 10, in units of its root mean square length: no covariance
# has more than that of one direction (Székely and Bakirov 2003)
_WITHIN_90 = 1.6449


@dataclass(frozen=True, eq=False)
class PublicSample:
    """Public records in the domain, and their mean."""

    points: Array
    center: Array
    rows: np.ndarray
    """Coordinates (m, dim) at the centre."""

    def release(self, request: Request, records: RecordSums, rounds: int) -> Release | None:
        """The mean; None where the domain alone, with so many rounds of `refine`, is predicted to do better."""
        if records.known_count is None:
            records.source.refuse_single_use()
        n = request.count_of(records)
        fit = self.fit(request, n)
        if self.error_without(request, n, rounds, unit_of(records)) <= fit.predicted:
            return None
        shaped = ShapedMean(self, request, fit, *self.plan(request, n, fit))
        look, law = shaped.look(records), shaped.plan.laws[0]
        told = {"mechanism": law.name, "numerics": law.numerics, "body": repr(shaped.body)}
        request.spend("mean", shaped.plan.guarantee, n, **told, domain=request.domain)
        return shaped.draw(look)

    def shape_class(self, request: Request, n: int, labelled: bool) -> ShapedMean:
        """The mean of one class of n records among several; `labelled`: whether which class is protected too."""
        fit = self.fit(request, n, labelled)
        return ShapedMean(self, request, fit, *self.plan(request, n, fit, labelled))

    def plan(self, request: Request, n: int, fit: SampleFit, labelled: bool = False) -> tuple[Ellipsoid, StepPlan]:
        """The body for records like those of the sample, and the one step in it."""
        body = Ellipsoid(request.domain.manifold, self.center, fit.lengths, fit.basis, _SOURCE)
        return body, plan_steps(
            body,
            n,
            request.budget,
            mechanism=request.mechanism,
            numerics=request.numerics,
            adjacency=request.adjacency,
            unit=request.unit,
            labelled=labelled,
        )

    def error_without(self, request: Request, n: int, rounds: int, unit: int = 1) -> float:
        """What the mean in the domain alone is expected to err by, for records like those of the sample: public facts.

        With a paid radius it is that of the edge which the sample's own distances to the public centre make best.
        """
        if not rounds:
            return request.plan(n).expected_error.mean
        ball, noise = request.domain, plan_rounds(request, n, rounds, unit).plans[-1].expected_error.mean
        bins = distance_bins(request, host(ball.center), 1)
        counts = read_records(ball.manifold, self.points).total(bins).integers
        assert bins.edges is not None
        share = noise / ball.radius
        found = np.array(counts, dtype=np.float64)
        radius, moved = best_radius(found, bins.edges, float(len(self.rows)), share, reach=ball.radius)
        return math.hypot(share * min(radius, ball.radius), moved)

    def fit(self, request: Request, n: int, labelled: bool = False) -> SampleFit:
        """Axes, and what to make of the noisy mean in them, from the sample, n and the budget."""
        manifold = request.domain.manifold
        return fit_sample(
            self.rows,
            n,
            _noise_for(request, n, labelled),
            manifold.neighbour_covariance(self.center) if manifold.dim <= MOST_DIRECTIONS else None,
            longest=_NEARLY_ALL * manifold.injectivity_radius,
        )

    def correct(self, manifold: Manifold, guess: np.ndarray) -> np.ndarray:
        """H⁻¹ of a tangent mean, H the sample's average Hessian of half the squared distance.

        One step of Newton's method for the Fréchet mean of records like those of the sample; post-processing.
        """
        if manifold.is_flat or manifold.is_product or manifold.dim > MOST_DIRECTIONS:
            return guess
        weights = np.full(len(self.rows), 1 / len(self.rows))
        here = replace(manifold.linearize(self.center, self.points, weights, True), pull=guess)
        found = np.asarray(newton_direction(here, _ACCURACY))
        longest = 2 * float(np.linalg.norm(guess))
        return found * min(1.0, longest / max(float(np.linalg.norm(found)), 1e-300))

    def part(self, fit: SampleFit) -> PublicPart:
        """What the sample contributes, as a release tells it."""
        return PublicPart(
            records=len(self.rows),
            axes=fit.lengths.size,
            dim=self.rows.shape[1],
            predicted=fit.predicted,
            of_center=fit.of_center,
            noise=fit.noise_error,
            structure=fit.structure,
            weight=fit.weight,
        )


@dataclass(frozen=True, eq=False)
class ShapedMean:
    """A mean that a public sample has shaped, before a record is read: everything in it is public."""

    sample: PublicSample
    request: Request
    fit: SampleFit
    body: Ellipsoid
    plan: StepPlan

    def look(self, records: RecordSums) -> Look:
        """The exact sum, from the sample's mean. Not private."""
        substitute = self.sample.center if self.request.mends else None
        return Walk(self.body, substitute, self.request.account.rng).first_look(records, self.plan)

    def draw(self, look: Look) -> Release:
        """Noise on that sum, and what the sample makes of it. It spends the plan's guarantee."""
        request, fit, body, law = self.request, self.fit, self.body, self.plan.laws[0]
        noisy = law.noisy_mean(look.total.integers, look.total.rows, request.account.rng)
        guess = self.sample.correct(body.manifold, fit.guess(noisy / body.radius))
        drawn = Draw(Walk(request.domain).reach(self.sample.center, guess), body.body.restore(noisy))
        shape = law.facts.shape
        count = None if shape is None or shape.counted else shape.count
        made = request.release(law, drawn, statistic="mean", n=count, reason=self.plan.reason, domain=body)
        public = self.sample.part(fit)
        return replace(made, guarantee=self.plan.guarantee, expected_error=expected_of(fit), public=public)


def expected_of(fit: SampleFit) -> ExpectedError:
    """What a release is predicted to err by, if records are like those of the sample."""
    return ExpectedError(fit.predicted, _WITHIN_90 * fit.predicted, fit.predicted)


def read_sample(request: Request, sample: Any) -> PublicSample:
    """A public sample, clipped to the ball that was promised, or an error that says what is wrong with it."""
    domain = request.domain
    if not isinstance(domain, Ball) or request.steps not in ("auto", 1):
        raise ArgumentError(
            "is for a mean in a Ball by one step, which is what the sample replaces further ones by; got "
            f"{type(domain).__name__} with steps={request.steps!r}.",
            argument="public_sample",
        )
    manifold = domain.manifold
    points = host(check_sample(manifold, sample, at_least=LEAST_RECORDS, argument="public_sample"))
    points = domain.clip(points)
    center = mean_of_sample(manifold, points)
    rows = np.asarray(manifold.log_coordinates(center, points), dtype=np.float64)
    if not np.all(np.isfinite(rows)) or not bool(manifold.belongs(center)):
        raise NotOnManifoldError("has no mean that its records can be looked at from.", argument="public_sample")
    return PublicSample(points, center, rows)


def _noise_for(request: Request, n: int, labelled: bool) -> Noise:
    """What the budget makes of the noise, by the number of directions: all public."""

    @cache
    def variance(count: int) -> float:
        facts = mean_facts(
            Ball(Euclidean(count), np.zeros(count), 1.0),
            n,
            adjacency=request.adjacency,
            unit=request.unit,
            labelled=labelled,
        )
        laws = offered(facts, request.budget, mechanism=request.mechanism, numerics=request.numerics)
        return min(law.deviation for law in laws if isinstance(law, WrappedMechanism)) ** 2

    return variance
