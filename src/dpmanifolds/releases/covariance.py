"""The private covariance matrix of vectors, or their second moment: a point of SPD(d).

>>> import numpy as np
>>> from dpmanifolds import GaussianDP
>>> X = np.random.default_rng(0).standard_normal((2000, 3)) * [3.0, 1.0, 1.0] + 5.0
>>> release = private_covariance(X, 100.0, GaussianDP(1.0), rng=0)
>>> release.statistic, release.value.shape, [stage.statistic for stage in release.stages]
('covariance', (3, 3), ['mean', 'counts'])

Three exact sums, each with its part of the budget, as far as public facts say that they pay:

1. a noisy mean c: from there vectors are shorter than from the public centre;
2. noisy counts of |x − c|, and from them the length r that vectors are shortened to (`sums.moment_radius`);
3. Σ ỹỹᵀ of ỹ = (y, κ), y = x − c shortened to r: the second moment of y and its mean in one sum (`sums.joint_moment`).

The rest is post-processing: eigenvalues that fit the noisy eigenvectors (`sums.shrink_spectrum`), and the mean taken
off, or what lies between c and the centre put back. Proofs: docs/proofs/covariance.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpmanifolds._points import has_parts, host, leaves
from dpmanifolds._validate import choice, hide_records, number_between
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.privacy import Budget, Guarantee, compose
from dpmanifolds.releases.refine import release_counts
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.second_moment import MomentFacts
from dpmanifolds.releases.statistic import Request, best_cut, check_terms, domain_first
from dpmanifolds.sums.counts import PERSON_UNIT, CountsNoise, DistanceBins, counts_noise
from dpmanifolds.sums.joint_moment import JointContribution, JointMoment
from dpmanifolds.sums.moments import MomentNoise, moment_noise
from dpmanifolds.sums.outer import sum_outer
from dpmanifolds.sums.shrink_spectrum import BulkNoise, MomentRadius, best_moment_radius, lift_spectrum, shrink_spectrum
from dpmanifolds.sums.steps import StepPlan, plan_steps
from dpmanifolds.sums.total import ExactSum, RecordSums, read_records

_SMALLEST, _LARGEST = 1e-100, 1e100
_METHODS = ("auto", "one-shot", "radius", "center")
_EDGES = 32
_SHARES = (0.03, 0.06, 0.1, 0.2)
# how far records lie from their mean, and that from the centre, where a bound is chosen in good faith: shares of it
_SPREAD, _OFFSET = 0.33, 0.33
# κ over r: where the mean is only corrected, and where the answer rests on it
_LITTLE, _MUCH = 0.35, 0.5
_GUESS = 0.2
"""The Frobenius norm of a second moment over the squared bound, in good faith."""
_LEAST_SHARE = 1e-9
"""The least eigenvalue of the value, as a share of the squared bound."""


@domain_first
def private_covariance(
    vectors: Any,
    domain: Ball | float,
    budget: Budget,
    *,
    about: str = "mean",
    method: str = "auto",
    group_by: Any = None,
    adjacency: str = "replace-one",
    n_guess: int | None = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The covariance matrix of `vectors` (n, d), (1/n)Σ(x − x̄)(x − x̄)ᵀ, as a positive definite matrix.

    `domain` is the public promise about where vectors lie: a ball of `Euclidean(d)`, or a bound on their length.
    `about="origin"` gives the second moment (1/n)Σ(x − p)(x − p)ᵀ around the centre p of the domain instead: the origin
    for a bound. `method` says what is paid for before the squares: nothing ("one-shot"), the length that vectors are
    shortened to ("radius"), or that and a point that they are seen from ("center"); "auto" decides by d, n and the
    budget. The noise is Gaussian, or under a pure ε the smaller of two laws.

    The release's `coordinates` are the noisy (1/n)Σ yyᵀ of y = x − base, as it was drawn: its diagonal, then √2 times
    what is above it row by row; and behind them the noisy mean of y, where it was drawn (`released_mean`). With
    `group_by` n is the number of persons, each with the mean of their own squares. Vectors that are not finite raise
    before anything is drawn (outside of the promise), or count as the centre (`on_invalid="center"`, inside of it).
    Other arguments as in `private_mean`; `vectors` in every form that can be read more than once, block by block.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = np.random.default_rng(0).standard_normal((5000, 3)) * [3.0, 1.0, 1.0]
    >>> release = dpm.private_covariance(X, 50.0, dpm.ZeroConcentratedDP(0.5))
    >>> bool(dpm.SPD(3).belongs(release.value)), bool(8.0 < release.value[0, 0] < 10.0)
    (True, True)
    """
    choice("about", about, ("mean", "origin"))
    choice("method", method, _METHODS)
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
    if isinstance(domain, Ball):
        request = Request(domain=check_ball(domain), **vars(terms))
        records = request.read(vectors, group_by)
    else:
        if isinstance(domain, Domain):
            raise ArgumentError(
                f"must be a Ball of Euclidean(d), or a bound on the length of vectors; got {domain!r}.",
                argument="domain",
            )
        bound = number_between("domain", domain, _SMALLEST, _LARGEST)
        records = read_records(None, vectors, group_by=group_by, guess=terms.guess)
        records.source.refuse_single_use()
        with hide_records():
            dim = _dimension(records.source.template())
        request = Request(domain=Ball(Euclidean(dim), np.zeros(dim), bound), **vars(terms))
    n = terms.guess or records.count
    plan = plan_covariance(
        request.domain,
        n,
        budget,
        about=about,
        method=method,
        adjacency=adjacency,
        unit=terms.unit,
        persons=records.persons is not None,
    )
    return release_covariance(request, records, plan, n, about)


def release_covariance(request: Request, records: RecordSums, plan: CovariancePlan, n: int, about: str) -> Release:
    """Look, charge, draw."""
    return _Walk(request, records, plan, n, about).release()


def _dimension(template: Any) -> int:
    shape = leaves(template)[0].shape
    if has_parts(template) or len(shape) != 2 or shape[1] < 1:
        raise ArgumentError(f"vectors must be a table of shape (n, d); got records of shape {tuple(shape[1:])}.")
    return int(shape[1])


def check_ball(ball: Ball) -> Ball:
    """A ball of vectors, or an error."""
    if not isinstance(ball.manifold, Euclidean):
        raise ArgumentError(
            f"must be a ball of Euclidean(d), or a bound on the length of vectors; got one of {ball.manifold!r}.",
            argument="domain",
        )
    number_between("domain", ball.radius, _SMALLEST, _LARGEST)
    return ball


@dataclass(frozen=True)
class CovariancePlan:
    """What is paid for, in order, and what all of it promises; made of public facts."""

    mean: StepPlan | None
    counts: CountsNoise | None
    moment: MomentNoise
    constant: float
    """κ over r."""
    predicted: float
    """The error in Frobenius norm over the squared bound, for vectors in places that a bound is chosen for."""

    @property
    def guarantee(self) -> Guarantee:
        """Of all stages together."""
        earlier = [stage.guarantee for stage in (self.mean, self.counts) if stage is not None]
        return compose(*earlier, self.moment.guarantee) if earlier else self.moment.guarantee

    def noise(self, dim: int, n: int) -> float:
        """The size of the noise on (1/n)Σ yyᵀ in Frobenius norm, over r²."""
        return self.moment.spread * (1 + self.constant**2) * math.sqrt(dim * (dim + 1)) / n


@lru_cache(maxsize=32)
def plan_covariance(
    domain: Ball,
    n: int,
    budget: Budget,
    *,
    about: str = "mean",
    method: str = "auto",
    adjacency: str = "replace-one",
    unit: str = "record",
    persons: bool = False,
) -> CovariancePlan:
    """The stages, and the shares of the budget, with the smallest error that public facts predict.

    With vectors within a third of the bound of their mean, and that a third of it away from the centre, squares are
    summed at r² = 1.5 times the mean squared length from the point that they are seen from, and err by six tenths of
    the noise at that r once eigenvalues are shrunk; counts whose noise has the deviation s lose about (1 + 2/d)s
    vectors of length r. The promise does not depend on any of it. Worked out once for the same facts.
    """
    dim, counted = domain.manifold.dim, adjacency == "add-remove-one"

    def plan(*parts: Budget) -> CovariancePlan:
        constant = _constant(about, dim, paid=len(parts) == 3, counted=counted)
        mean = plan_steps(domain, n, parts[0], adjacency=adjacency, unit=unit) if len(parts) == 3 else None
        counts = None
        if len(parts) > 1:
            counts = counts_noise(_EDGES, parts[-2], unit, unit=PERSON_UNIT if persons else 1, adjacency=adjacency)
        moment = moment_noise(dim + (constant > 0), parts[-1], unit, adjacency=adjacency)
        made = CovariancePlan(mean, counts, moment, constant, 0.0)
        square, lost = 1.0, 0.0
        if counts is not None:
            offset = _OFFSET if mean is None else mean.expected_error.mean / domain.radius
            square = 1.5 * (_SPREAD**2 + offset**2)
            lost = (1 + 2 / dim) * counts.deviation / n / dim**0.25
        return replace(made, predicted=square * math.hypot(0.6 * made.noise(dim, n), lost))

    return best_cut(budget, _cuts(method), plan, lambda made: made.predicted)


def _constant(about: str, dim: int, *, paid: bool, counted: bool) -> float:
    """κ/r: how precisely the mean must be known, or the number of records where only that is asked for.

    Counting errs by ‖M‖_F/κ² where the squares have √D = √(d(d+1)/2): together (1 + κ²)²(D + m²/κ⁴), least at κ⁶ = m²/D
    for ‖M‖_F = m.
    """
    if about == "mean":
        return _LITTLE if paid else _MUCH
    if paid:
        return _MUCH
    return (_GUESS**2 / (dim * (dim + 1) / 2)) ** (1 / 6) if counted else 0.0


def _cuts(method: str) -> Iterator[list[float]]:
    if method in ("auto", "one-shot"):
        yield [1.0]
    for counts in _SHARES:
        if method in ("auto", "radius"):
            yield [counts, 1 - counts]
        if method in ("auto", "center"):
            yield from ([mean, counts, 1 - mean - counts] for mean in _SHARES)


@dataclass(frozen=True)
class _Walk:
    """One covariance, from the first pass to the release."""

    request: Request
    records: RecordSums
    plan: CovariancePlan
    n: int
    about: str

    @property
    def dim(self) -> int:
        return self.request.domain.manifold.dim

    @property
    def center(self) -> np.ndarray:
        return np.asarray(host(self.request.domain.center), dtype=np.float64)

    def release(self) -> Release:
        """Look, charge, draw, and make of it what can be made."""
        request, plan, base, chosen = self.request, self.plan, self.center, MomentRadius(self.request.domain.radius, 1)
        stages = list[Release]()
        walk, looked, bins, rule = request.walk(), None, None, None
        first: ExactSum
        # the first pass, whichever it is, refuses malformed records before anything is spent
        if plan.mean is not None:
            looked = walk.first_look(self.records, plan.mean)
        elif plan.counts is not None:
            bins = self._bins(base)
            first = request.refuse_malformed(self.records.total(bins))
        else:
            rule = self._rule(base, chosen.radius)
            first = request.refuse_malformed(sum_outer(self.records.source, rule, self.records.persons))
        request.spend(self.statistic, plan.guarantee, self.n, mechanism=plan.moment.mechanism, domain=request.domain)
        if plan.mean is not None:
            taken = walk.take(self.records, plan.mean, first=looked)
            stages += request.release_steps(walk, plan.mean, taken)
            base = np.asarray(taken[-1].drawn.point, dtype=np.float64)
            bins = self._bins(base)
            first = self.records.total(bins)
        if plan.counts is not None:
            assert bins is not None
            counts = plan.counts.draw(first.integers, request.account.rng)
            stages.append(release_counts(request, plan.counts, counts, self.n))
            chosen = self._choose(counts, bins)
            rule = self._rule(base, chosen.radius)
            first = sum_outer(self.records.source, rule, self.records.persons)
        assert rule is not None
        noisy = plan.moment.draw(first.integers, request.account.rng)
        return self._finish(rule, noisy, chosen, tuple(stages))

    @property
    def statistic(self) -> str:
        return "covariance" if self.about == "mean" else "second moment"

    def _bins(self, base: np.ndarray) -> DistanceBins:
        """Counts of the distances to a public point, up to the largest there is, by factors of the fourth root of 2."""
        reach = self.request.domain.radius + float(np.linalg.norm(base - self.center))
        edges = reach * 2.0 ** (-np.arange(_EDGES)[::-1] / 4)
        unit = 1 if self.plan.counts is None else self.plan.counts.unit
        return DistanceBins(self.request.domain.manifold, base, self.request.substitute, edges=edges, unit=unit)

    def _choose(self, counts: np.ndarray, bins: DistanceBins) -> MomentRadius:
        assert self.plan.counts is not None
        assert bins.edges is not None
        total = float(self.n) if self.request.guess is None else max(1.0, float(np.sum(counts)))
        noise = self.plan.noise(self.dim, self.n)
        return best_moment_radius(counts, self.plan.counts.deviation, bins.edges, total, noise=noise, dim=self.dim)

    def _rule(self, base: np.ndarray, radius: float) -> JointContribution:
        substitute = self.center if self.request.mends else None
        return JointContribution(self.dim, radius, self.plan.constant, self.plan.moment.exponent, base, substitute)

    def _finish(
        self, rule: JointContribution, noisy: np.ndarray, chosen: MomentRadius, stages: tuple[Release, ...]
    ) -> Release:
        """The release; all of this is post-processing of noisy numbers."""
        assert rule.center is not None
        seen, request = rule.read(noisy), self.request
        count = float(self.n) if request.guess is None else max(1.0, seen.number)
        moment = JointMoment(seen.squares / count, seen.sums / count, count)
        facts = MomentFacts(request, rule.reach, self.n, self.plan.moment)
        coordinates = upper_triangle(moment.squares)
        if rule.constant:
            coordinates = np.concatenate([coordinates, moment.sums])
        value = self._value(rule, moment, facts.bulk, chosen.growth)
        return replace(
            facts.release(coordinates, value),
            statistic=self.statistic,
            guarantee=self.plan.guarantee,
            domain=request.domain,
            base=None if np.array_equal(rule.center, self.center) else rule.center,
            reason=f"smallest error that public facts predict; vectors were shortened to {rule.radius:.4g}",
            stages=stages,
        )

    def _value(self, rule: JointContribution, moment: JointMoment, noise: BulkNoise, growth: float) -> np.ndarray:
        """A positive definite matrix: eigenvalues that fit, the mean taken off, or the way from the centre put back."""
        assert rule.center is not None
        bound = self.request.domain.radius
        squares = growth * shrink_spectrum(moment.squares, noise, most=rule.radius**2)
        mean = moment.sums
        if rule.constant:
            mean = _shrink_mean(mean, noise.spread / (rule.constant * rule.radius))
        if self.about == "mean":
            value = squares - np.outer(mean, mean)
        else:
            away = rule.center - self.center
            value = squares + np.outer(away, mean) + np.outer(mean, away) + np.outer(away, away)
        return lift_spectrum(value, _LEAST_SHARE * bound**2, bound**2)


def _shrink_mean(mean: np.ndarray, deviation: float) -> np.ndarray:
    """Towards 0, as James and Stein do, for noise with this deviation in each number."""
    beyond = 1 - max(len(mean) - 2, 0) * deviation**2 / max(float(mean @ mean), 1e-300)
    return mean * max(0.0, beyond)


def released_mean(release: Release) -> np.ndarray:
    """The mean that a covariance was taken around: the point that vectors were seen from, and their noisy mean there.

    >>> import numpy as np
    >>> from dpmanifolds import GaussianDP
    >>> X = np.random.default_rng(0).standard_normal((2000, 3)) + 5.0
    >>> np.round(released_mean(private_covariance(X, 20.0, GaussianDP(2.0), rng=0))).tolist()
    [5.0, 5.0, 5.0]
    """
    point = np.asarray(release.viewpoint, dtype=np.float64)
    dim = point.size
    assert release.coordinates is not None
    behind = release.coordinates[dim * (dim + 1) // 2 :]
    if not behind.size:
        raise ArgumentError("a second moment around a public centre holds no mean; pass about='mean'.")
    return np.asarray(point + behind)
