"""What tells two classes apart, as one direction at a private centre: a label-signed tangent sum, and a threshold.

Three bounded sums, each with its share of the budget (docs/proofs/discriminant.md):

1. a centre p: one step of the mean, shrunk by how far such centres are known to lie apart;
2. the contrast (1/n)Σ y_i·log_p x_i, y_i = ±1 the label of record i. It is one sum, where two class means are two: a
   record with its label is y·z(x), in the same ball as z(x), and replacing both moves the sum by 2R;
3. the threshold: the mean of s − y·h, s = ⟨w, log_p x⟩ the score of a record along the direction w of the contrast and
   ±h what classes are expected to have, with the share of either class beside it. Where classes are of the same size h
   plays no part, and one number with one spread stands for two class means.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> X = np.concatenate([dpm.SPD(2).random_point(300, rng=0), 3 * dpm.SPD(2).random_point(300, rng=1)])
>>> ball = dpm.Ball(dpm.SPD(2), 2 * np.eye(2), radius=2.0)
>>> found = private_discriminant(X, np.repeat([0, 1], 300), ball, dpm.GaussianDP(1.0), classes=(0, 1), rng=0)
>>> len(found.releases), bool(found.scores(np.stack([np.eye(2), 4 * np.eye(2)]))[1] > found.threshold)
(3, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array, clamp, like, namespace
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean, Manifold
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle
from dpmanifolds.privacy import Budget, Guarantee, compose
from dpmanifolds.releases.classes import class_names, read_groups
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, check_request
from dpmanifolds.sums import Draw, mean_facts
from dpmanifolds.sums.contribution import AtPoint, TangentContribution
from dpmanifolds.sums.rounding import ball_integers
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import RecordSums
from dpmanifolds.sums.wrapped import WrappedMechanism

_LEAST_SCORE = 0.05
_TAG = 0.2
_FARTHEST_BALANCE = 0.9
_ANY_BALANCE = 1 / 3  # the variance of a number between −1 and 1
_OF_EDGE = 0.8
_LEAST_ROUNDING = 0.02


@dataclass(frozen=True, eq=False)
class Contrasts:
    """What public subjects say about subjects at large, in coordinates at the centre of the domain."""

    between: float
    """The deviation, in each coordinate, of subjects' means around the centre."""
    spread: float
    """A radius around a subject's own mean that holds most of its records."""
    means: np.ndarray
    """The contrast of each subject (subjects, dim)."""
    records: np.ndarray
    """Records (m, dim) as seen from the mean of their class of their subject."""
    balance: np.ndarray
    """The mean sign of each subject's labels (subjects,): 0 where classes are of the same size."""
    rounding: float
    """How far the covariance of these records is drawn to a multiple of the identity, between 0 and 1."""

    def expect(self) -> tuple[np.ndarray, float]:
        """The contrast that a new subject is expected to have, and its variance in each coordinate.

        The average over subjects, shrunk as far as that average could be chance (James and Stein).
        """
        subjects, dim = self.means.shape
        average = self.means.mean(axis=0)
        if subjects == 1:  # says nothing about others: expected to be off by half of its length
            return average, float(average @ average) / (4 * dim)
        between = float(np.sum((self.means - average) ** 2)) / (subjects - 1) / dim
        chance = between * dim / subjects
        kept = max(0.0, 1 - chance / max(float(average @ average), 1e-300))
        lost = (1 - kept) * float(average @ average) / dim
        return kept * average, between * (1 + 1 / subjects) + lost

    def expect_balance(self) -> tuple[float, float]:
        """The balance of a new subject, and its variance: of these subjects, and of one that could be anywhere."""
        average = float(self.balance.mean())
        return average, float(np.sum((self.balance - average) ** 2) + _ANY_BALANCE) / (len(self.balance) + 1)


@dataclass(frozen=True, eq=False)
class Discriminant:
    """A released centre, direction and threshold, and what all of them together promise."""

    classes: tuple[Any, Any]
    manifold: Manifold
    base: Array
    """The private centre."""
    direction: np.ndarray
    """Of the contrast, of length 1, in coordinates at the centre."""
    threshold: float
    """Scores above it are of the second class."""
    guarantee: Guarantee
    releases: tuple[Release, ...]
    """The centre, the contrast and the threshold."""

    def scores(self, points: Array) -> np.ndarray:
        """⟨w, log_p x⟩ for points (n, *point_shape): says something about them, and is not private."""
        return np.asarray(self.manifold.log_coordinates(self.base, points) @ self.direction)


def private_discriminant(
    points: Any,
    labels: Any,
    domain: Domain,
    budget: Budget,
    *,
    classes: Sequence[Any],
    public: Contrasts | None = None,
    shares: Sequence[float] = (0.3, 0.55, 0.15),
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Discriminant:
    """The direction and the threshold that tell two `classes` of records in a domain apart; labels are protected.

    Without `public` contrasts the domain's own radius bounds records at the centre too, and nothing is shrunk towards
    public subjects. `shares` of the budget go to the centre, the contrast and the threshold. Other arguments as in
    `private_class_means`.
    """
    request = check_request(
        domain,
        budget,
        group_by=group_by,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
        steps=1,
        ball_for="a discriminant",
    )
    if len(class_names(classes)) != 2:
        raise ArgumentError(f"must name two labels; got {len(classes)}.", argument="classes")
    if len(list(shares)) != 3:
        raise ArgumentError("must be three numbers: for the centre, the contrast, the threshold.", argument="shares")
    groups, names, count = read_groups(request, points, labels, classes, group_by, private=True)
    spread = domain.radius if public is None else public.spread
    plan = best_cut(budget, [list(shares)], partial(_plan, request, spread, count), _error)
    walk = request.walk()
    looks = [walk.first_look(group, plan.center) for group in groups]
    promise = compose(plan.center.guarantee, plan.contrast.guarantee, plan.threshold.guarantee)
    request.spend("discriminant", promise, count, classes=2, domain=domain)
    rng = request.account.rng

    law = plan.center.laws[0]
    drawn = law.noisy_mean(_added(looks[0].total.integers, looks[1].total.integers, 1), count, rng)
    if public is None:
        guess = law.shrink(drawn)
    else:
        guess = drawn * (public.between**2 / (public.between**2 + law.deviation**2))
    base = walk.reach(walk.center, guess)
    stages = [request.release(law, Draw(base, drawn), statistic="mean", n=count, reason="a share", domain=domain)]

    law = plan.contrast
    assert law.exponent is not None
    rule = TangentContribution(domain.manifold, base, request.substitute, radius=spread, exponent=law.exponent)
    first, second = (group.total(rule) for group in groups)
    drawn = law.noisy_mean(_added(second.integers, first.integers, -1), count, rng)
    stages.append(request.release(law, Draw(drawn, drawn), statistic="contrast", n=count, reason="a share", base=base))
    contrast, noise = _expected(public, domain, base, drawn, law.deviation)
    contrast = _keep_sources(domain.manifold, contrast, noise)
    if public is None:
        length = float(np.linalg.norm(contrast))
        gap = float(np.sqrt(max(0.0, length**2 - noise**2 * contrast.size)))
        line = _Line(contrast / max(length, 1e-300), gap, spread, np.inf)
    else:
        around, off = _moved(domain, base, public.records), plan.center.laws[0].deviation
        line = _against_spread(public, contrast, around, off)
    threshold, told = _threshold(request, plan.threshold, groups, base, line, count, public)
    return Discriminant(
        (names[0], names[1]), domain.manifold, base, line.direction, threshold, promise, (*stages, told)
    )


class _Plan(NamedTuple):
    center: StepPlan
    contrast: WrappedMechanism
    threshold: WrappedMechanism


class _Line(NamedTuple):
    """Where scores are measured: all of it public once the contrast is."""

    direction: np.ndarray
    gap: float
    """Half of what scores of the two classes are apart."""
    reach: float
    """How far from what its class is expected to have a score counts."""
    off: float
    """How far the midpoint is expected to lie from the score of the centre."""


def _plan(request: Request, spread: float, n: int, *parts: Budget) -> _Plan:
    """Calibrated noise for the three sums; all of it public."""
    laws = []
    for dim, radius, part in ((request.domain.manifold.dim, spread, parts[1]), (2, 1.0, parts[2])):
        facts = mean_facts(Ball(Euclidean(dim), np.zeros(dim), radius), n, unit=request.unit)
        laws.append(request.choose(facts, part))
    return _Plan(request.plan(n, parts[0]), *laws)


def _error(plan: _Plan) -> float:
    return plan.contrast.expected_error.mean


def _added(one: list[int], other: list[int], sign: int) -> list[int]:
    """Exact integers."""
    return [a + sign * b for a, b in zip(one, other, strict=True)]


def _expected(
    public: Contrasts | None, domain: Domain, base: Array, drawn: np.ndarray, noise: float
) -> tuple[np.ndarray, float]:
    """The posterior mean of the contrast, given what public subjects have, and the noise left in it."""
    if public is None:
        return drawn, noise
    expected, variance = public.expect()
    expected = _moved(domain, base, expected[None])[0]
    kept = variance / max(variance + noise**2, 1e-300)
    return np.asarray(expected + (drawn - expected) * kept), kept * noise


def _keep_sources(manifold: Manifold, contrast: np.ndarray, noise: float) -> np.ndarray:
    """A contrast of symmetric matrices by few of their eigenvectors, as sources of signals have it: post-processing.

    Eigenvalues of noise alone reach e = σ√(2k); each λ becomes ±√(λ² − (0.8e)²), which at e itself is best for few
    sources under much noise (Donoho, Gavish and Johnstone 2018), or 0. Where none is left the contrast stays.
    """
    if not manifold.has_symmetric_coordinates:
        return contrast
    size = manifold.point_shape[0]
    values, vectors = np.linalg.eigh(from_upper_triangle(contrast, size))
    left = np.sign(values) * np.sqrt(np.maximum(values**2 - 2 * size * (_OF_EDGE * noise) ** 2, 0.0))
    return np.asarray(upper_triangle((vectors * left) @ vectors.T)) if np.any(left) else contrast


def _against_spread(public: Contrasts, contrast: np.ndarray, records: np.ndarray, noise: float) -> _Line:
    """Fisher's direction C⁻¹c of a contrast c, C the covariance of public records within their classes.

    A score counts as far as nineteen of twenty of those records reach. The midpoint is off by what noise left of the
    centre, and by what classes of different sizes do to a mean.
    """
    within = records.T @ records / len(records)
    size = float(np.trace(within)) / len(contrast)
    part = max(public.rounding, _LEAST_ROUNDING)
    within = (1 - part) * within + (part * size if size > 0 else 1.0) * np.eye(len(contrast))
    pull = np.linalg.solve(within, contrast)
    direction = pull / max(float(np.linalg.norm(pull)), 1e-300)
    reach = max(float(np.quantile(np.abs(records @ direction), 0.95)), _LEAST_SCORE * public.spread)
    gap = float(direction @ contrast)
    left = public.between * noise / max(float(np.hypot(public.between, noise)), 1e-300)
    return _Line(direction, gap, reach, float(np.hypot(left, gap * np.sqrt(public.expect_balance()[1]))))


def _moved(domain: Domain, base: Array, rows: np.ndarray) -> np.ndarray:
    """Coordinates at the centre of the domain, carried along the geodesic to another public point."""
    manifold, center = domain.manifold, domain.center
    vectors = manifold.from_coordinates(center, rows)
    return np.asarray(manifold.to_coordinates(base, manifold.transport(center, base, vectors)))


@dataclass(frozen=True, eq=False)
class ScoreContribution(AtPoint):
    """How far ⟨w, log x⟩ lies from what its class is expected to have, and which class that is: a point of a disc.

    With s the score along a public direction w at the base, e the expected one and ±κ by the class, the disc's point is
    (c, ±κ)/√(1 + κ²), c = (s − e)/radius cut to ±1, in units of 2^−exponent.
    """

    direction: np.ndarray | None = None
    expected: float = 0.0
    tag: float = 0.0
    """±κ."""
    radius: float = 1.0
    exponent: int = 29
    dim = 2

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.seen(block)
        xp = namespace(rows)
        with np.errstate(all="ignore"):
            scores = xp.sum(rows * like(self.direction, rows), axis=-1)
            cut = clamp((scores - self.expected) / self.radius, -1.0, 1.0)
            points = xp.stack([cut, xp.full_like(cut, self.tag)], axis=-1) / math.hypot(1.0, self.tag)
            return ball_integers(points, self.exponent), broken


def _threshold(
    request: Request,
    law: WrappedMechanism,
    groups: list[RecordSums],
    base: Array,
    line: _Line,
    count: int,
    public: Contrasts | None,
) -> tuple[float, Release]:
    """Halfway between the scores of the two classes, and its release.

    With b the mean sign of the labels, the mean of s − y·h is the midpoint and b times what h is short of half the gap.
    The contrast is that half times 1 − b², so that the excess is h·b³/(1 − b²): b is read off its own noisy mean.
    """
    assert law.exponent is not None
    totals = []
    for group, sign in zip(groups, (-1.0, 1.0), strict=True):
        rule = ScoreContribution(
            request.domain.manifold,
            base,
            request.substitute,
            direction=line.direction,
            expected=sign * line.gap,
            tag=sign * _TAG,
            radius=line.reach,
            exponent=law.exponent,
        )
        totals.append(group.total(rule).integers)
    drawn = law.noisy_mean(_added(totals[0], totals[1], 1), count, request.account.rng)
    unit = float(np.hypot(1.0, _TAG))
    likely, variance = (0.0, _ANY_BALANCE) if public is None else public.expect_balance()
    seen, noise = float(drawn[1]) * unit / _TAG - likely, law.deviation * unit / _TAG
    variance = min(variance, max(0.0, seen**2 - noise**2))
    balance = likely + seen * variance / (variance + noise**2)
    balance = float(np.clip(balance, -_FARTHEST_BALANCE, _FARTHEST_BALANCE))
    middle = float(np.clip(drawn[0] * unit, -1.0, 1.0)) * line.reach
    squared = (law.deviation * unit * line.reach) ** 2
    middle *= 1 - squared / (line.off**2 + squared)
    threshold = middle - line.gap * balance**3 / (1 - balance**2)
    drawing = Draw(np.asarray([threshold]), drawn)
    return threshold, request.release(law, drawing, statistic="threshold", n=count, reason="a share", base=base)
