"""The private second moment (1/n)Σ vvᵀ of vectors, and that of tangent coordinates around a private mean.

>>> import numpy as np
>>> from dpmanifolds import GaussianDP
>>> X = np.random.default_rng(0).standard_normal((2000, 3))
>>> release = private_second_moment(X, clip_norm=4.0, budget=GaussianDP(1.0))
>>> release.statistic, release.value.shape, release.mechanism
('second moment', (6,), 'wrapped-gaussian')

Replacing a record replaces one term vvᵀ by wwᵀ, of rank one and trace at most C²:

    ‖vvᵀ − wwᵀ‖²_F = |v|⁴ + |w|⁴ − 2(v·w)² ≤ 2C⁴  (C⁴ in one dimension),   ‖vvᵀ − wwᵀ‖_* ≤ |v|² + |w|² ≤ 2C²,

both attained by orthogonal v and w of length C. Vectors become integers on their own, before their squares are formed,
so that both bounds hold exactly in whole steps (`sums.moments`). A person with several vectors has one term (1/m)Σ vvᵀ,
positive semidefinite with a trace of at most C²: the same bounds. Proofs: docs/proofs/second_moment.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import has_parts, leaves
from dpmanifolds._validate import hide_records, number_between
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity, compose
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Terms, best_cut, check_request, check_terms
from dpmanifolds.sums import Draw
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.mechanism import Facts, SumShape
from dpmanifolds.sums.moments import (
    MomentNoise,
    TangentSquareContribution,
    frobenius_steps,
    moment_noise,
    nuclear_steps,
)
from dpmanifolds.sums.outer import SquareContribution, finest_factor_exponent, sum_outer
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import check_rules, read_records
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

__all__ = [
    "nuclear_sensitivity_of_second_moment",
    "private_second_moment",
    "private_tangent_moment",
    "sensitivity_of_second_moment",
]

_UP = 1 + 2.0**-49
_NUMERICS = ("safe", "rounded")
_SMALLEST, _LARGEST = 1e-100, 1e100
_RULES = ("records must be finite numbers",)


def sensitivity_of_second_moment(clip_norm: float, n: int, dim: int) -> Sensitivity:
    """How far (1/n)Σ vvᵀ moves in Frobenius norm between neighbours with |v| ≤ C: √2·C²/n, or C²/n for dim 1.

    >>> round(float(sensitivity_of_second_moment(2.0, 1000, 3)), 6)
    0.005657
    """
    trace = 4 ** finest_factor_exponent(dim)
    return _moved(clip_norm, n, frobenius_steps(dim, trace), trace, "√2·C²/n in Frobenius norm (C²/n in one dimension)")


def nuclear_sensitivity_of_second_moment(clip_norm: float, n: int, dim: int) -> Sensitivity:
    """The same in nuclear norm, the sum of the absolute eigenvalues: 2C²/n, or C²/n for dim 1.

    >>> round(float(nuclear_sensitivity_of_second_moment(2.0, 1000, 3)), 6)
    0.008
    """
    trace = 4 ** finest_factor_exponent(dim)
    return _moved(clip_norm, n, nuclear_steps(dim, trace), trace, "2·C²/n in nuclear norm (C²/n in one dimension)")


def _moved(clip_norm: float, n: int, steps: int, trace: int, bound: str, adjacency: str = "replace-one") -> Sensitivity:
    value, statement = steps / trace * clip_norm * clip_norm / n * _UP, f"{bound} for a sum of squares of integers"
    return Sensitivity(value, "second moment of clipped vectors", "P", statement, adjacency)


def private_second_moment(
    vectors: Any,
    clip_norm: float,
    budget: Budget,
    *,
    center: Any = None,
    group_by: Any = None,
    adjacency: str = "replace-one",
    n_guess: int | None = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """(1/n)Σ vvᵀ of `vectors` (n, d) less a public `center`, each shortened to the public length `clip_norm`.

    The value is the diagonal, and then √2 times what is above it row by row. Of the Gaussian, the Laplace in Frobenius
    norm and the difference of two Wishart matrices the one with the smallest noise off the diagonal is taken; public
    numbers decide. With `group_by` n is the number of persons and each has one term. Vectors that are not finite raise
    before anything is drawn (outside of the promise), or count as the centre (`on_invalid="center"`, inside of it).
    Other arguments as in `private_mean`; `vectors` in every form that can be read more than once, block by block.
    """
    terms = check_terms(
        budget,
        group_by=group_by,
        adjacency=adjacency,
        n_guess=n_guess,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    radius = number_between("clip_norm", clip_norm, _SMALLEST, _LARGEST)
    shape = None if center is None else np.shape(center)
    records = read_records(None, vectors, group_by=group_by, guess=terms.guess, shape=shape)
    records.source.refuse_single_use()
    with hide_records():
        dim = _dimension(records.source.template())
    noise = moment_noise(dim, budget, terms.unit, adjacency=adjacency)
    rule = SquareContribution(dim, radius, noise.exponent, _public_center(center, dim), mends=terms.mends)
    total = sum_outer(records.source, rule, records.persons)
    check_rules(total, _RULES, f"R^{dim}")
    moment = _Moment(terms, radius, terms.guess or total.rows, noise)
    terms.spend(
        "second moment", noise.guarantee, moment.count, mechanism=noise.mechanism, numerics="rounded", clip_norm=radius
    )
    return moment.release(total.integers, total.rows)


def _dimension(template: Any) -> int:
    shape = leaves(template)[0].shape
    if has_parts(template) or len(shape) != 2 or shape[1] < 1:
        raise ArgumentError(f"vectors must be a table of shape (n, d); got records of shape {tuple(shape[1:])}.")
    return int(shape[1])


def _public_center(center: Any, dim: int) -> np.ndarray | None:
    if center is None:
        return None
    point = np.asarray(center, dtype=np.float64)
    if point.shape != (dim,) or not np.all(np.isfinite(point)):
        raise ArgumentError(f"must be {dim} finite numbers from public knowledge.", argument="center")
    return point


@dataclass(frozen=True)
class _Moment:
    """What is public about a second moment, in the units of the records."""

    terms: Terms
    radius: float
    count: int
    """The public number of records, or the guess of it."""
    noise: MomentNoise

    @property
    def step(self) -> float:
        return self.radius * self.radius / self.count / self.noise.steps

    @property
    def ball(self) -> Ball:
        plane = Euclidean(self.noise.law.dim * (self.noise.law.dim + 1) // 2)
        return Ball(plane, np.zeros(plane.dim), self.radius**2)

    @property
    def sensitivity(self) -> Sensitivity:
        nuclear, added = self.noise.is_nuclear, self.noise.weight is not None
        bound = ("(C² + c₀)/n" if added else "2·C²/n") if nuclear else ("√(C⁴ + c₀²)/n" if added else "√2·C²/n")
        statement = f"{bound} in {'nuclear' if nuclear else 'Frobenius'} norm"
        if not added:
            statement += " (C²/n in one dimension)"
        return _moved(self.radius, self.count, self.noise.moved, self.noise.steps, statement, self.terms.adjacency)

    def release(self, total: list[int], rows: int) -> Release:
        """One draw, with everything that is promised about it."""
        noisy, count = self.noise.draw(total, rows, self.terms.account.rng)
        divisor = 1.0 if count is None else self.count / count
        coordinates = upper_triangle(noisy.astype(np.float64)) * (self.step * divisor)
        if self.noise.is_nuclear:
            return self._by_wishart(coordinates)
        family = WrappedGaussianMechanism if self.noise.is_gaussian else WrappedLaplaceMechanism
        ball, adjacency = self.ball, self.terms.adjacency
        shape = SumShape(ball.manifold.dim, ball.radius, self.count, adjacency)
        scale = float(self.noise.law.scale)
        law = family(
            facts=Facts(ball, self.sensitivity, adjacency=adjacency, unit=self.terms.unit, shape=shape),
            scale=scale * self.step,
            step=self.step,
            guarantee=self.noise.guarantee,
            numerics="rounded",
            sigma_steps=scale,
        )
        return self.terms.release(
            law,
            Draw(law.point_of(coordinates), coordinates),
            statistic="second moment",
            n=self.terms.public_count(self.count),
            reason="smallest noise off the diagonal from public facts",
        )

    def _by_wishart(self, coordinates: np.ndarray) -> Release:
        return Release(
            statistic="second moment",
            value=coordinates,
            coordinates=coordinates,
            guarantee=self.noise.guarantee,
            budget=self.terms.budget,
            mechanism=self.noise.mechanism,
            theorem="nuclear sensitivity over the scale of two Wishart matrices (docs/proofs/second_moment.md, P3)",
            numerics="rounded",
            sensitivity=self.sensitivity,
            scale=float(self.noise.law.scale) * self.step,
            step=self.step,
            n=self.terms.public_count(self.count),
            domain=self.ball,
            expected_error=None,
            reason="smaller off the diagonal than noise of the same size in every direction",
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
    moves their second moment by the bounds of `private_second_moment`. A person with several records has one term in
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
    share = number_between("mean_share", mean_share, 0.0, 1.0)
    if share in (0.0, 1.0):
        raise ArgumentError(f"mean_share must leave something for either part: above 0 and below 1; got {share:g}.")
    records = request.read(points, group_by)
    n = records.count

    def plan_parts(*parts: Budget) -> tuple[tuple[Budget, ...], StepPlan, MomentNoise]:
        return parts, request.plan(n, parts[0]), moment_noise(domain.manifold.dim, parts[1], request.unit)

    parts, plan, noise = best_cut(budget, [[share, 1 - share]], plan_parts, lambda way: way[2].spread)
    promise = compose(plan.guarantee, noise.guarantee)
    walk = request.walk()
    first = walk.first_look(records, plan)
    request.spend("tangent PCA", promise, n, clip_norm=radius, domain=domain)
    taken = walk.take(records, plan, first=first)
    *stages, last = replace(request, budget=parts[0]).release_steps(walk, plan, taken)
    base = taken[-1].drawn.point
    view = TangentContribution(domain.manifold, base, request.substitute)
    total = sum_outer(records.source, TangentSquareContribution(view, radius, noise.exponent), records.persons)
    moment = _Moment(replace(request, budget=parts[1]), radius, n, noise).release(total.integers, total.rows)
    return TangentMoment(replace(last, guarantee=plan.guarantee, stages=tuple(stages)), moment, base, promise)
