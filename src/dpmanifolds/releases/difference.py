"""How far apart two groups are: two private means, the geodesic between them, and regions for both.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=1.0)
>>> rng = np.random.default_rng(0)
>>> x, y = (ball.manifold.move(ball.center, at + 0.2 * rng.standard_normal((800, 2))) for at in ([0, 0], [0.3, 0]))
>>> difference = dpm.private_difference(x, y, ball, dpm.GaussianDP(1.0), rng=0)
>>> difference
Difference(length 0.299, 95 % within [0.279, 0.319], zero is outside; GaussianDP(mu=1.0), n=800 and 800)
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds._validate import number_between
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget, Guarantee, split
from dpmanifolds.releases.length import difference_interval
from dpmanifolds.releases.population import RegionLaw, mean_part, region_law
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.spread import SpreadWalk, assumption_of, check_count, estimate_mean, read_spread
from dpmanifolds.releases.spread_plan import SpreadPlan, plan_spread
from dpmanifolds.releases.statistic import check_request, domain_first, names_of_groups, read_named
from dpmanifolds.releases.written import read_json

_STEP = 1e-5


@dataclass(frozen=True, eq=False)
class Difference:
    """Two private means of a `private_difference`, and everything that follows from them; post-processing.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=4.0)
    >>> rng = np.random.default_rng(3)
    >>> x, y = rng.standard_normal((500, 2)), rng.standard_normal((300, 2)) + [1.0, 0.0]
    >>> difference = dpm.private_difference(x, y, ball, dpm.GaussianDP(1.0), rng=0)
    >>> low, high = difference.interval
    >>> low < 1.0 < high, difference.zero_inside, bool(difference.contains([1.0, 0.0]))
    (True, False, True)
    """

    first: Release
    second: Release
    guarantee: Guarantee
    """What both together promise."""
    budget: Budget
    level: float = 0.95

    @property
    def releases(self) -> tuple[Release, Release]:
        return self.first, self.second

    @property
    def manifold(self) -> Manifold:
        return self.first.manifold

    @cached_property
    def vector(self) -> np.ndarray:
        """From the first mean to the second: coordinates (d,) of its logarithm at `first.value`."""
        return np.asarray(self.manifold.log_coordinates(host(self.first.value), host(self.second.value)))

    @property
    def length(self) -> float:
        """The geodesic distance of the two means; it is on average longer than that of the populations' means."""
        return float(np.linalg.norm(self.vector))

    @cached_property
    def law(self) -> RegionLaw:
        """Of the error of `vector`: sampling and noise of both groups."""
        ends = [self._end(release) for release in self.releases]
        derivatives = difference_derivatives(self.manifold, *(part for end in ends for part in end))
        parts = []
        for release, derivative in zip(self.releases, derivatives, strict=True):
            assert release.spread is not None
            assert release.n is not None
            inverse, noisy = estimate_mean(release)[1], read_spread(release)[1]
            parts.append(mean_part(noisy, n=release.n, noise=release.spread, derivative=derivative @ inverse))
        return region_law(parts)

    def _end(self, release: Release) -> tuple[Array, np.ndarray]:
        base = release.viewpoint
        return base, np.asarray(self.manifold.log_coordinates(base, host(release.value)))

    @cached_property
    def shape(self) -> np.ndarray:
        """The matrix E of the region {v : (v − vector)ᵀE⁻¹(v − vector) ≤ 1} for the populations' difference."""
        shape = self.law.threshold(self.level) * np.linalg.inv(self.law.weight)
        return np.asarray((shape + shape.T) / 2)

    def contains(self, vectors: Any) -> np.ndarray:
        """Whether tangent vectors with these coordinates (..., d) at `first.value` lie in the region.

        All do where floating point does not tell one mean from the other: nothing is known then.
        """
        if not np.all(np.isfinite(self.vector)):
            return np.ones(np.shape(vectors)[:-1], dtype=bool)
        gaps = np.asarray(vectors, dtype=np.float64) - self.vector
        return np.asarray(np.sum(gaps * np.linalg.solve(self.shape, gaps[..., None])[..., 0], axis=-1) <= 1)

    @property
    def zero_inside(self) -> bool:
        """Whether no difference at all is among what the region holds."""
        return bool(self.contains(np.zeros(self.manifold.dim)))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """For the distance of the populations' means, at `level`; it begins at 0 wherever zero is inside."""
        return difference_interval(self.law, self.vector, self.level)

    @property
    def assumption(self) -> str:
        """What has to be true of the records for the region and the interval to hold."""
        return assumption_of(*self.releases)

    def at_level(self, level: float) -> Difference:
        """The same releases with regions at another level: free of charge."""
        return replace(self, level=_checked_level(level))

    def summary(self) -> str:
        """One page in plain language."""
        zero = "inside" if self.zero_inside else "outside"
        low, high = self.interval
        said = (
            "these releases do not show that the populations differ"
            if self.zero_inside
            else f"it would be in {1 - self.level:.0%} of such releases, if they did not differ"
        )
        return (
            f"What was released\n"
            f"  The private means and spreads of two groups of {self.first.n} and {self.second.n} records on "
            f"{self.manifold!r}.\n"
            f"\nHow large the difference is\n"
            f"  The means are {self.length:.4g} apart; the populations' means {low:.4g} to {high:.4g}, with "
            f"{self.level:.0%} confidence.\n"
            f"  Zero is {zero} of the {self.level:.0%} region of the difference as a vector: {said}.\n"
            f"  {self.assumption}\n"
            f"\nThe promise\n"
            f"  {self.budget.read(self.guarantee)!r}, {self.guarantee.neighbours}.\n"
            f"\nWhat it rests on\n"
            f"  {self.first.mechanism} on exact sums: {self.first.theorem}.\n"
            f"  {self.first.numerics_statement}.\n"
        )

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Difference(length {self.length:.3g}, {100 * self.level:g} % within [{low:.3g}, {high:.3g}], zero is "
            f"{'inside' if self.zero_inside else 'outside'}; {self.budget.read(self.guarantee)!r}, n={self.first.n} "
            f"and {self.second.n})"
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """Both releases, what they promise together, and the figures that follow from them."""
        told = {
            "length": self.length,
            "interval": list(self.interval),
            "vector": self.vector.tolist(),
            "shape": self.shape.tolist(),
            "zero_inside": self.zero_inside,
            "assumption": self.assumption,
        }
        # floating point does not tell the way between means that are too far apart: what it cost must not be lost
        known = np.all(np.isfinite([self.length, *self.interval])) and np.all(np.isfinite(self.shape))
        told = told if known else {"assumption": self.assumption}
        made = {
            "statistic": "difference",
            "level": self.level,
            "first": json.loads(self.first.to_json()),
            "second": json.loads(self.second.to_json()),
            "guarantee": json.loads(self.guarantee.to_json()),
            "budget": self.budget.to_dict(),
            "told": told,
        }
        return json.dumps(made, ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Difference:
        """What `to_json` wrote; figures are worked out again."""
        with read_json(cls, text) as data:
            first, second = (Release.from_json(json.dumps(data[key])) for key in ("first", "second"))
            guarantee = Guarantee.from_json(json.dumps(data["guarantee"]))
            made = cls(first, second, guarantee, Budget.from_dict(data["budget"]), _checked_level(data["level"]))
            for release in made.releases:
                read_spread(release)
        return made


@domain_first
def private_difference(
    x: Any,
    y: Any,
    domain: Ball,
    budget: Budget,
    *,
    level: float = 0.95,
    disjoint: bool = True,
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Difference:
    """The difference between the means of two groups of records, x and y, in one public ball, within `budget`.

    Two `private_mean_and_spread`; the geodesic between the means; its length with an interval, and its tangent vector
    with a region, at `level`, for the means of the populations that the groups are drawn from.

    By default the groups are `disjoint`: a person is in one of them, and in which one is public, as are both numbers.
    Neighbours differ in one record of one group (unit "record within group"), and each group may spend the whole
    budget (docs/proofs/regions.md, R3). With `disjoint=False` a person may have a record in each group: neighbours
    differ in one record of each, and the groups share the budget. Where it is secret who is in which group neither
    holds; `private_class_means(private_labels=True)` protects that.

    `group_by=(names of x, names of y)`: a person counts as one in each group, as in `private_mean_and_spread`; somebody
    in both is refused where groups are disjoint.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> x, y = dpm.SPD(2).random_point(400, rng=2), dpm.SPD(2).random_point(300, rng=3)
    >>> both = dpm.private_difference(x, y, ball, dpm.GaussianDP(1.0), rng=0)
    >>> both.vector.shape, both.guarantee.unit, both.zero_inside
    ((3,), 'record within group', True)
    """
    level = _checked_level(level)
    if not isinstance(disjoint, bool):
        raise ArgumentError(f"disjoint must be True or False; got {disjoint!r}.")
    request = check_request(
        domain,
        budget,
        ball_for="a difference",
        group_by=group_by,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    request = replace(request, unit=f"{request.unit} within group" if disjoint else request.unit)
    names = names_of_groups(x, y, group_by, disjoint=disjoint)
    groups = read_named("x", domain, x, names[0]), read_named("y", domain, y, names[1])
    for group, name in zip(groups, "xy", strict=True):
        check_count(group, name)
    plan = _plan(domain, min(group.count for group in groups), budget, request.unit, disjoint)
    walks = [SpreadWalk(request, group, fit_count(plan, group.count), group.count) for group in groups]
    looks = [walk.look() for walk in walks]
    for walk in walks:
        walk.warn()
    promise = plan.guarantee if disjoint else plan.guarantee.k_fold(2)
    told = {"n_second": walks[1].n, "mechanism": walks[0].mechanism, "disjoint": disjoint}
    request.spend("difference", promise, walks[0].n, domain=domain, **told)
    first, second = (walk.draw(look) for walk, look in zip(walks, looks, strict=True))
    return Difference(first, second, promise, budget, level)


def _plan(domain: Ball, n: int, budget: Budget, unit: str, disjoint: bool) -> SpreadPlan:
    """One plan for both groups, so that both make one promise: that of the smaller one, with all or half of it."""
    if disjoint:
        return plan_spread(domain, n, budget, unit)
    plans = [plan_spread(domain, n, parts[0], unit) for parts in split(budget, [0.5, 0.5])]
    return min(plans, key=lambda plan: plan.predicted)


def fit_count(plan: SpreadPlan, n: int) -> SpreadPlan:
    """The same noise in steps, and so the same promise, for another number of records."""
    return plan if plan.rough is None else replace(plan, rough=plan.rough.for_count(n))


def _checked_level(level: Any) -> float:
    number = number_between("level", level, 0.0, 1.0)
    if number in (0.0, 1.0):
        raise ArgumentError(f"level must be above 0 and below 1, such as 0.95; got {number:g}.")
    return number


def carry_difference(manifold: Manifold, first: Array, second: Array, to: Array) -> np.ndarray:
    """The logarithm from one point to another, carried in parallel to a third: coordinates (..., d) there."""
    vector = manifold.log(first, second)
    return np.asarray(manifold.to_coordinates(to, manifold.transport(first, to, vector)))


def difference_derivatives(
    manifold: Manifold, base: Array, place: np.ndarray, other_base: Array, other_place: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How the difference moves with the coordinates of the first mean, and of the second: (..., d, d) each.

    Coordinates are those at public bases, `place` (..., d); by central differences.
    """
    to = manifold.exp_coordinates(base, place)
    dim, found = manifold.dim, []
    step = _STEP * max(1.0, manifold.typical_dist / math.sqrt(dim) if manifold.is_hadamard else 0.0)
    for moved in (0, 1):
        columns = []
        for axis in np.eye(dim):
            ends = []
            for sign in (step, -step):
                first = to if moved else manifold.exp_coordinates(base, place + sign * axis)
                second = manifold.exp_coordinates(other_base, other_place + (sign * axis if moved else 0.0))
                ends.append(carry_difference(manifold, first, second, to))
            columns.append((ends[0] - ends[1]) / (2 * step))
        found.append(np.stack(columns, axis=-1))
    return found[0], found[1]
