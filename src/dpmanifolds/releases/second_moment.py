"""Second moments (1/n)Σ vvᵀ: how far one record moves them, what one promises, and that of tangent coordinates.

Replacing a record replaces one term vvᵀ by wwᵀ, of rank one and trace at most C²:

    ‖vvᵀ − wwᵀ‖²_F = |v|⁴ + |w|⁴ − 2(v·w)² ≤ 2C⁴  (C⁴ in one dimension),   ‖vvᵀ − wwᵀ‖_* ≤ |v|² + |w|² ≤ 2C²,

both attained by orthogonal v and w of length C. Vectors become integers on their own, before their squares are formed,
so that both bounds hold exactly in whole steps (`sums.moments`). A person with several vectors has one term (1/m)Σ vvᵀ,
positive semidefinite with a trace of at most C²: the same bounds. Proofs: docs/proofs/second_moment.md. Of ordinary
vectors: `private_covariance`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._validate import number_between
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity, compose
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, Terms, best_cut, check_request
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.moments import (
    MomentNoise,
    TangentSquareContribution,
    moment_noise,
)
from dpmanifolds.sums.outer import sum_outer
from dpmanifolds.sums.shrink_spectrum import BulkNoise, shrink_spectrum
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import RecordSums

_UP = 1 + 2.0**-49
_NUMERICS = ("safe", "rounded")
_SMALLEST, _LARGEST = 1e-100, 1e100


@dataclass(frozen=True)
class MomentFacts:
    """What is public about a second moment, in the units of the records."""

    terms: Terms
    radius: float
    """The longest vector there is."""
    count: int
    """The public number of records, or the guess of it."""
    noise: MomentNoise

    @property
    def step(self) -> float:
        """Of the lattice that noisy entries lie on."""
        return self.radius * self.radius / self.count / self.noise.steps

    @property
    def ball(self) -> Ball:
        """Where second moments lie: within the squared radius of 0 in Frobenius norm."""
        plane = Euclidean(self.noise.law.dim * (self.noise.law.dim + 1) // 2)
        return Ball(plane, np.zeros(plane.dim), self.radius**2)

    @property
    def sensitivity(self) -> Sensitivity:
        """In the norm that the noise is made for."""
        factor = "" if self.terms.guess is not None else "2·" if self.noise.is_nuclear else "√2·"
        statement = f"{factor}C²/n in {'nuclear' if self.noise.is_nuclear else 'Frobenius'} norm"
        if factor:
            statement += " (C²/n in one dimension)"
        value = self.noise.moved / self.noise.steps * self.radius * self.radius / self.count * _UP
        statement += " for a sum of squares of integers"
        return Sensitivity(value, "second moment of clipped vectors", "P", statement, self.terms.adjacency)

    @property
    def theorem(self) -> str:
        """Why the noise keeps the promise."""
        if self.noise.is_nuclear:
            return "nuclear sensitivity over the scale of two Wishart matrices (docs/proofs/second_moment.md, P3)"
        return "Frobenius sensitivity over the scale of symmetric noise (docs/proofs/second_moment.md, P2)"

    @property
    def bulk(self) -> BulkNoise:
        """What the noise does to eigenvalues."""
        return BulkNoise(self.noise.spread * self.radius**2 / self.count, wishart=self.noise.is_nuclear)

    def release(self, coordinates: np.ndarray, value: np.ndarray) -> Release:
        """Noisy coordinates, the matrix that was made of them, and everything that is promised about them."""
        return Release(
            statistic="second moment",
            value=value,
            coordinates=coordinates,
            guarantee=self.noise.guarantee,
            budget=self.terms.budget,
            mechanism=self.noise.mechanism,
            theorem=self.theorem,
            numerics="rounded",
            sensitivity=self.sensitivity,
            sigma=float(self.noise.law.sigma) * self.step,
            step=self.step,
            n=self.terms.public_count(self.count),
            domain=self.ball,
            expected_error=None,
            reason="smallest noise off the diagonal from public facts",
            reproducible=self.terms.account.reproducible,
        )


@dataclass(frozen=True)
class TangentMoment:
    """A private mean, and the second moment of the records as they are seen from it."""

    mean: Release
    moment: Release
    base: Array
    """The point that was looked from: the mean, unless that has no tangent coordinates."""
    guarantee: Guarantee
    """What both together promise."""


def private_tangent_moment(
    points: Any,
    domain: Domain,
    budget: Budget,
    *,
    mean_share: float = 0.3,
    clip_norm: float | None = None,
    numerics: str = "safe",
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> TangentMoment:
    """A mean m by tangent steps for `mean_share` of the budget, and (1/n)Σ vvᵀ of v = log_m x for the rest.

    Coordinates are shortened to the public `clip_norm`, by default the radius of the domain: whatever m is, a record
    moves their second moment by the bounds above. A person with several records has one term in
    each. `points` in every form that can be read more than once, block by block; malformed records as in
    `private_mean`.
    """
    request = check_request(
        domain,
        budget,
        numerics=numerics,
        kinds=_NUMERICS,
        group_by=group_by,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    radius = domain.radius if clip_norm is None else number_between("clip_norm", clip_norm, _SMALLEST, _LARGEST)
    records = request.read(points, group_by)
    way = plan_tangent_moment(request, records.count, mean_share)
    return release_tangent_moment(request, records, records.count, way, radius)


class TangentMomentPlan(NamedTuple):
    """How the budget is cut, and what either part pays for."""

    parts: tuple[Budget, ...]
    mean: StepPlan
    moment: MomentNoise


def plan_tangent_moment(request: Request, n: int, mean_share: float = 0.3) -> TangentMomentPlan:
    """From public facts."""
    share = number_between("mean_share", mean_share, 0.0, 1.0)
    if share in (0.0, 1.0):
        raise ArgumentError(f"mean_share must leave something for either part: above 0 and below 1; got {share:g}.")

    def plan_parts(*parts: Budget) -> TangentMomentPlan:
        noise = moment_noise(request.domain.manifold.dim, parts[1], request.unit)
        return TangentMomentPlan(parts, request.plan(n, parts[0]), noise)

    return best_cut(request.budget, [[share, 1 - share]], plan_parts, lambda way: way.moment.spread)


def release_tangent_moment(
    request: Request, records: RecordSums, n: int, way: TangentMomentPlan, radius: float
) -> TangentMoment:
    """Look, charge, draw."""
    parts, plan, noise = way
    promise = compose(plan.guarantee, noise.guarantee)
    walk = request.walk()
    first = walk.first_look(records, plan)
    request.spend("tangent PCA", promise, n, clip_norm=radius, domain=request.domain)
    taken = walk.take(records, plan, first=first)
    *stages, last = replace(request, budget=parts[0]).release_steps(walk, plan, taken)
    base = taken[-1].drawn.point
    view = TangentContribution(request.domain.manifold, base, request.substitute)
    total = sum_outer(records.source, TangentSquareContribution(view, radius, noise.exponent), records.persons)
    facts = MomentFacts(replace(request, budget=parts[1]), radius, n, noise)
    noisy = noise.draw(total.integers, request.account.rng).astype(np.float64) * facts.step
    moment = facts.release(upper_triangle(noisy), shrink_spectrum(noisy, facts.bulk, most=radius**2))
    return TangentMoment(replace(last, guarantee=plan.guarantee, stages=tuple(stages)), moment, base, promise)
