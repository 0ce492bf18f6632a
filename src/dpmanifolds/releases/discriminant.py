"""What tells two classes apart, as one direction at a private centre: a label-signed tangent sum, and a threshold.

Three bounded sums, each with its share of the budget (docs/proofs/discriminant.md):

1. a centre p: one step of the mean, shrunk by how far such centres are known to lie apart;
2. the contrast (1/n)Σ y_i·log_p x_i, y_i = ±1 the label of record i. It is one sum, where two class means are two: a
   record with its label is y·z(x), in the same ball as z(x), and replacing both moves the sum by 2R;
3. the mean score ⟨w, log_p x⟩ of each class along the direction w of the contrast, as class means with private labels.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> X = np.concatenate([dpm.SPD(2).random_point(300, rng=0), 3 * dpm.SPD(2).random_point(300, rng=1)])
>>> ball = dpm.Ball(dpm.SPD(2), 2 * np.eye(2), radius=2.0)
>>> found = private_discriminant(X, np.repeat([0, 1], 300), ball, dpm.GaussianDP(1.0), classes=(0, 1), rng=0)
>>> len(found.releases), bool(found.scores(np.stack([np.eye(2), 4 * np.eye(2)]))[1] > found.threshold)
(4, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean, Manifold
from dpmanifolds.privacy import Budget, Guarantee, compose
from dpmanifolds.releases.classes import class_names, read_groups
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, check_request
from dpmanifolds.sums import Draw, calibrate, choose, mean_facts
from dpmanifolds.sums.contribution import ScoreContribution, TangentContribution
from dpmanifolds.sums.mechanism import Facts
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import RecordSums
from dpmanifolds.sums.wrapped import WrappedMechanism

__all__ = ["Contrasts", "Discriminant", "private_discriminant"]

_LEAST_SCORE = 0.05


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
    """Records (m, dim) as seen from the mean of their subject."""

    def expect(self) -> tuple[np.ndarray, float]:
        """The contrast that a new subject is expected to have, and its variance in each coordinate.

        The average over subjects, shrunk as far as that average could be chance (James and Stein).
        """
        subjects, dim = self.means.shape
        average = self.means.mean(axis=0)
        between = float(np.sum((self.means - average) ** 2)) / max(subjects - 1, 1) / dim
        chance = between * dim / subjects
        kept = max(0.0, 1 - chance / max(float(average @ average), 1e-300)) if subjects > 1 else 0.0
        lost = (1 - kept) * float(average @ average) / dim
        return kept * average, between * (1 + 1 / subjects) + lost


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
    """The centre, the contrast and the mean score of either class."""

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
    shares: Sequence[float] = (0.15, 0.7, 0.15),
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
    promise = compose(plan.center.guarantee, plan.contrast.guarantee, plan.score.guarantee)
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
    contrast = drawn if public is None else _expected(public, domain, base, drawn, law.deviation)
    direction = contrast / max(float(np.linalg.norm(contrast)), 1e-300)

    reach = spread if public is None else _reach(public, domain, base, direction)
    means, made = _class_scores(request, plan, groups, base, direction, reach, count)
    return Discriminant(
        (names[0], names[1]),
        domain.manifold,
        base,
        direction,
        (means[0] + means[1]) / 2,
        promise,
        (*stages, *made),
    )


class _Plan(NamedTuple):
    center: StepPlan
    contrast: WrappedMechanism
    score: WrappedMechanism
    part: Budget
    """Of the scores."""


def _plan(request: Request, spread: float, n: int, *parts: Budget) -> _Plan:
    """Calibrated noise for the three sums; all of it public."""
    ball = Ball(Euclidean(request.domain.manifold.dim), np.zeros(request.domain.manifold.dim), spread)
    contrast = choose(mean_facts(ball, n, unit=request.unit), parts[1]).mechanism
    score = choose(_score_facts(request, spread, n), parts[2]).mechanism
    assert isinstance(contrast, WrappedMechanism)
    assert isinstance(score, WrappedMechanism)
    return _Plan(request.plan(n, parts[0]), contrast, score, parts[2])


def _error(plan: _Plan) -> float:
    return plan.contrast.expected_error.mean


def _score_facts(request: Request, reach: float, n: int) -> Facts:
    line = Ball(Euclidean(1), np.zeros(1), reach)
    return mean_facts(line, max(1, n // 2), unit=request.unit, labelled=True)


def _added(one: list[int], other: list[int], sign: int) -> list[int]:
    """Exact integers."""
    return [a + sign * b for a, b in zip(one, other, strict=True)]


def _expected(public: Contrasts, domain: Domain, base: Array, drawn: np.ndarray, noise: float) -> np.ndarray:
    """The posterior mean of the contrast, given what public subjects have: post-processing."""
    expected, variance = public.expect()
    expected = _moved(domain, base, expected[None])[0]
    return np.asarray(expected + (drawn - expected) * (variance / max(variance + noise**2, 1e-300)))


def _reach(public: Contrasts, domain: Domain, base: Array, direction: np.ndarray) -> float:
    """The score that nineteen of twenty public records keep: public once the direction is."""
    scores = np.abs(_moved(domain, base, public.records) @ direction)
    return max(float(np.quantile(scores, 0.95)), _LEAST_SCORE * public.spread)


def _moved(domain: Domain, base: Array, rows: np.ndarray) -> np.ndarray:
    """Coordinates at the centre of the domain, carried along the geodesic to another public point."""
    manifold, center = domain.manifold, domain.center
    vectors = manifold.from_coordinates(center, rows)
    return np.asarray(manifold.to_coordinates(base, manifold.transport(center, base, vectors)))


def _class_scores(
    request: Request,
    plan: _Plan,
    groups: list[RecordSums],
    base: Array,
    direction: np.ndarray,
    reach: float,
    count: int,
) -> tuple[list[float], list[Release]]:
    """The mean score of either class, by noise that was planned for another reach: what is promised is the same."""
    law = calibrate(plan.score.name, _score_facts(request, reach, count), plan.part, plan.score.numerics)
    assert isinstance(law, WrappedMechanism)
    assert law.exponent is not None
    rule = ScoreContribution(
        request.domain.manifold, base, request.substitute, direction=direction, radius=reach, exponent=law.exponent
    )
    means, made = [], []
    for group in groups:
        total = group.total(rule)
        drawn = law.noisy_mean(total.integers, total.rows, request.account.rng)
        means.append(float(np.clip(drawn[0], -reach, reach)))
        made.append(
            request.release(
                law, Draw(np.asarray([means[-1]]), drawn), statistic="mean score", n=None, reason="a share", base=base
            )
        )
    return means, made
