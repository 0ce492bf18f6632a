"""Random neighbours at the edge of random domains: does one record decide more than its own integers?

Each trial draws a manifold, a centre far from the origin, a radius up to the cut locus, records at the edge, outside
and on awkward places, and two data sets that differ in one of them. Then it asks of both:

- do releases of every statistic end in the same way (no error, no warning, or the same refusal on both)?
- do the integers of the records that both have agree bit for bit, and the sums to 2R in exact arithmetic?
- given the same noisy answers, do both ask for the same noise, and is what it hides of their difference paid for?
- is what is released finite, on the manifold, in the domain?

    python -m tests.redteam.neighbours --trials 1500
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpmanifolds as dpm
from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Euclidean,
    GaussianDP,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    Power,
    PureDP,
    SpecialOrthogonal,
    Sphere,
    ZeroConcentratedDP,
)
from dpmanifolds._points import host
from dpmanifolds.auditing.front_door import Said, overheard_noise
from dpmanifolds.noise import LatticeLaplace, RoundedLaplace
from dpmanifolds.noise.symmetric import SymmetricLaplace, WishartDifference
from dpmanifolds.releases.clusters import private_kmeans
from dpmanifolds.releases.discriminant import private_discriminant
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.rounding import finest_exponent
from dpmanifolds.sums.total import integers_of
from tests.sums.hard import hard_records

METRICS = ("affine-invariant", "log-euclidean", "log-cholesky")
BUDGETS = (PureDP(1.0), GaussianDP(1.0), ZeroConcentratedDP(0.5), ApproxDP(1.0, 1e-6), PureDP(1e-3), GaussianDP(30.0))


@dataclass(frozen=True)
class Pair:
    """A domain, and two data sets that differ in their last record."""

    ball: Ball
    first: Any
    second: Any
    budget: Any
    seed: int

    def __repr__(self) -> str:
        where = f"{self.ball.manifold!r}, r = {self.ball.radius:.6g}, n = {len(self.first)}"
        return f"seed {self.seed}: {where}, {self.budget!r}"


def manifolds(rng: np.random.Generator) -> Any:
    """One of all kinds, small ones more often."""
    k = int(rng.choice([2, 3, 4, 5, 8]))
    return rng.choice(
        np.array(
            [
                Euclidean(int(rng.choice([1, 2, 7]))),
                Sphere(int(rng.choice([1, 2, 5, 20]))),
                Hyperbolic(int(rng.choice([1, 2, 4]))),
                SPD(k, METRICS[0]),
                SPD(k, METRICS[1]),
                SPD(k, METRICS[2]),
                PlanarShapes(int(rng.choice([3, 4, 9]))),
                SpecialOrthogonal(int(rng.choice([2, 3, 4]))),
                Grassmann(5, int(rng.choice([1, 2]))),
                Power(SPD(2), 2),
            ],
            dtype=object,
        )
    )


def far_center(manifold: Any, rng: np.random.Generator) -> Any:
    """A public centre, far from where formulas are simple."""
    center = manifold.random_point(rng=rng)
    if isinstance(manifold, Euclidean):
        return center * 10.0 ** rng.uniform(-3, 6)
    if isinstance(manifold, Hyperbolic):
        way = rng.standard_normal(manifold.dim)
        way *= rng.uniform(0, 6) * manifold.scale_length / np.linalg.norm(way)
        return manifold.exp(manifold.origin, manifold.from_coordinates(manifold.origin, way))
    if isinstance(manifold, type(SPD(2))) or hasattr(manifold, "metric"):
        scale = np.exp(rng.uniform(-6, 6, manifold.k) * rng.choice([0.0, 0.5, 1.0]))
        moved = np.sqrt(scale)[:, None] * center * np.sqrt(scale)
        return (moved + moved.T) / 2
    return center


def random_pair(seed: int) -> Pair:
    """Two neighbours."""
    rng = np.random.default_rng(seed)
    manifold = manifolds(rng)
    center = far_center(manifold, rng)
    widest = min(manifold.injectivity_radius, 12.0)
    radius = widest * float(rng.choice([1e-6, 1e-2, 0.3, 0.7, 0.999])) * (1 - 1e-3)
    ball = Ball(manifold, center, radius)
    count = int(rng.choice([1, 2, 3, 17, 40]))
    rest = np.stack([_record(ball, rng) for _ in range(count + 1)])
    return Pair(ball, rest[:count], np.concatenate([rest[: count - 1], rest[count:]]), rng.choice(BUDGETS), seed)


def _record(ball: Ball, rng: np.random.Generator) -> np.ndarray:
    """At the edge, a hair off it, outside, at the centre, or hard."""
    manifold, center = ball.manifold, host(ball.center)
    way = rng.standard_normal(manifold.dim)
    if rng.random() < 0.3:
        way = np.eye(manifold.dim)[rng.integers(manifold.dim)] * rng.choice([-1.0, 1.0])
    length = ball.radius * float(rng.choice([0.0, 1e-9, 0.5, 1 - 1e-12, 1.0, 1 + 1e-12, 1.3, 3.0]))
    with np.errstate(all="ignore"):
        point = manifold.exp(center, manifold.from_coordinates(center, way * length / np.linalg.norm(way)))
    if rng.random() < 0.25 or not bool(manifold.belongs(point)):
        found = hard_records(manifold, center, 4, int(rng.integers(1 << 30)))[rng.integers(4)]
        return np.asarray(found)
    return np.asarray(point)


_NOISY = f"{dpm.NoiseExceedsDomainWarning.__name__}: {dpm.NoiseExceedsDomainWarning.words}"
_FINE = ("released []", f"released {[_NOISY]}")
"""What a release may say: nothing, or that public facts promise little; the same on both neighbours."""


def outcome(release: Callable[[], Any]) -> str:
    """How a call ends: what it raises or warns of, never what it returns."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            value = release()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    told = sorted({f"{note.category.__name__}: {note.message}" for note in heard})
    return f"released {told}" + ("" if value is None else f", {value}")


def statistics(pair: Pair, points: np.ndarray) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every kind of release, as a call that returns what is wrong with its value, or None."""
    ball, budget, n = pair.ball, pair.budget, len(points)
    common = {"on_invalid": "center", "rng": pair.seed}
    people = np.arange(n) // 2

    def checked(release: Any) -> str | None:
        value = release.value
        if not np.all(np.isfinite(np.asarray(value))):
            return "not finite"
        return None if bool(ball.manifold.belongs(value)) else "not on the manifold"

    yield "mean", lambda: checked(dpm.private_mean(points, ball, budget, **common))
    yield "mean of persons", lambda: checked(dpm.private_mean(points, ball, budget, group_by=people, **common))
    yield (
        "mean, number protected",
        lambda: checked(dpm.private_mean(points, ball, budget, adjacency="add-remove-one", n_guess=20, **common)),
    )
    yield "refined mean", lambda: checked(dpm.private_mean(points, ball, budget, refine=1, **common))
    yield "mean by axes", lambda: checked(dpm.private_mean(points, ball, budget, refine="axes", **common))
    yield "variance", lambda: _number(dpm.private_variance(points, ball, budget, **common).value, ball)
    labels = (np.arange(n) % 2).tolist()
    if n > 3:
        yield from _more_statistics(pair, points, labels)
    yield (
        "class means",
        lambda: _all(
            checked(release)
            for release in dpm.private_class_means(
                points, labels, ball, budget, classes=[0, 1], private_labels=True, **common
            ).releases
        ),
    )


def _more_statistics(pair: Pair, points: np.ndarray, labels: list[int]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Two of those that take longer."""
    ball, budget, times = pair.ball, pair.budget, np.linspace(0.0, 1.0, len(points))
    common = {"on_invalid": "center", "rng": pair.seed}
    half = len(points) // 2
    ways: list[tuple[str, Callable[[], Any]]] = [
        ("mean and spread", lambda: dpm.private_mean_and_spread(points, ball, budget, **common)),
        ("difference", lambda: dpm.private_difference(points[:half], points[half:], ball, budget, **common)),
        (
            "regression",
            lambda: dpm.private_geodesic_regression(points, times, ball, budget, covariate_bounds=(0.2, 0.8), **common),
        ),
        ("clusters", lambda: private_kmeans(points, 3, ball, budget, rounds=2, **common)),
        ("discriminant", lambda: private_discriminant(points, labels, ball, budget, classes=[0, 1], **common)),
        ("clipped share", lambda: dpm.private_clipped_share(points, ball, budget, **common)),
        ("median", lambda: dpm.private_median(points, ball, budget, steps=2, **common)),
    ]
    if ball.manifold.ambient_dim:
        ways.append(("extrinsic mean", lambda: dpm.private_mean(points, ball, budget, kind="extrinsic", **common)))
    for number in np.random.default_rng(pair.seed).permutation(len(ways))[:2]:
        name, release = ways[number]
        yield name, lambda release=release: release() and None


def spent(first: Sequence[Said], second: Sequence[Said]) -> tuple[float, float]:
    """What hides the difference of the sums of both: μ of the Gaussian noise, and ε of the Laplace noise."""
    squared = epsilon = 0.0
    for one, other in zip(first, second, strict=True):
        apart = np.array(
            [int(a) - int(b) for a, b in zip(one.values.flat, other.values.flat, strict=True)], dtype=float
        )
        sigma = float(one.law.sigma)
        if isinstance(one.law, WishartDifference):
            epsilon += float(np.linalg.norm(apart.reshape(one.values.shape), "nuc")) / sigma
        elif isinstance(one.law, LatticeLaplace):
            epsilon += float(np.sum(np.abs(apart))) / sigma
        elif isinstance(one.law, RoundedLaplace | SymmetricLaplace):
            epsilon += float(np.linalg.norm(apart)) / sigma
        else:
            squared += (float(np.linalg.norm(apart)) / sigma) ** 2
    return math.sqrt(squared), epsilon


def is_paid(budget: Any, mu: float, epsilon: float, *, pairs: int = 1) -> bool:
    """Whether so much is within the budget, of `pairs` of neighbours; for budgets and laws that are of one kind."""
    more = pairs * (1 + 1e-9)
    if isinstance(budget, PureDP):
        return mu == 0 and epsilon <= budget.epsilon * more
    if epsilon > 0 or isinstance(budget, ApproxDP):
        return True
    return mu <= more * (budget.mu if isinstance(budget, GaussianDP) else math.sqrt(2 * budget.rho))


def _all(found: Iterator[str | None]) -> str | None:
    return next((each for each in found if each), None)


def _number(value: Any, ball: Ball) -> str | None:
    return None if 0 <= float(np.asarray(value)) <= ball.radius**2 * (1 + 1e-9) else f"{value!r} is out of range"


def attack(seed: int) -> list[str]:
    """What is wrong for the neighbours of this seed."""
    pair = random_pair(seed)
    found = []
    for (name, one), (_, other) in zip(statistics(pair, pair.first), statistics(pair, pair.second), strict=True):
        with overheard_noise() as heard:
            end = outcome(one)
        with overheard_noise(forced=heard.said) as again:
            ends = end, outcome(other)
        if ends[0] != ends[1] or ends[0] not in _FINE:
            found.append(f"{pair!r}: {name} ends in {ends[0]!r} and in {ends[1]!r}")
        # one record that is replaced is one removed and one added
        elif not is_paid(pair.budget, *spent(heard.said, again.said), pairs=1 + ("protected" in name)):
            found.append(f"{pair!r}: {name} hides more than is paid for")
    exponent = finest_exponent(pair.ball.manifold.dim)
    pull = TangentContribution(
        pair.ball.manifold, host(pair.ball.center), None, radius=pair.ball.radius, exponent=exponent
    )
    one, other = (integers_of(pull, points, len(points))[0] for points in (pair.first, pair.second))
    if not np.array_equal(one[:, :-1], other[:, :-1]):
        found.append(f"{pair!r}: a record's integers depend on another record")
    moved = [int(a) - int(b) for a, b in zip(one.sum(axis=1).tolist(), other.sum(axis=1).tolist(), strict=True)]
    if sum(z * z for z in moved) > 4 * 4**exponent:
        found.append(f"{pair!r}: the sum moves by more than 2R")
    return found


def main() -> int:
    """Attack so many pairs; 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1_500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    found = 0
    for seed in range(arguments.first, arguments.first + arguments.trials):
        for fault in attack(seed):
            found += 1
            print(fault, flush=True)
    print(f"{arguments.trials} pairs of neighbours attacked, {found} faults found.")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
