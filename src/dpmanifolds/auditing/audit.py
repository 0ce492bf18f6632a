"""The audit of a mechanism: attack it on the worst known neighbours, and hold the result against its promise.

A release is one draw per call. An audit needs 100,000 of them: here the same noise is drawn around the same exact sum
as often as wanted, and what comes after it (estimate, exp) runs over a whole array of draws. The tests hold it against
`private_mean` and `Mechanism.release` on the same bits. How a mechanism draws many and what its likelihood is, it says
itself.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import as_block, host
from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.auditing.bounds import Claim, lower_bound
from dpmanifolds.auditing.neighbours import Neighbours, worst_neighbours
from dpmanifolds.auditing.report import AuditReport
from dpmanifolds.domains import Ball
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Budget
from dpmanifolds.sums import Mechanism, choose, mean_facts
from dpmanifolds.sums.wrapped import WrappedMechanism


def audit(
    mechanism: str,
    domain: Ball,
    n: int,
    budget: Budget,
    *,
    numerics: str = "safe",
    draws: int = 100_000,
    confidence: float = 0.95,
    noise_factor: float = 1.0,
    delta: float | None = None,
    pair: Neighbours | None = None,
    rng: Any = None,
) -> AuditReport:
    """Attack the named mechanism for the private mean of n records in a ball.

    `draws` releases of each of two neighbours are scored by their exact log-likelihood ratio: of the noisy sum of
    integers for a wrapped mechanism, in one step, of the released point for the others. Up to about six dimensions
    such an attack has the power to see 30 % too little noise (`noise_factor=0.7` shows that it does); above, compare
    laws instead. Several steps, classes, persons and other releases are attacked by `audit_release`. The claim that
    is attacked is the mechanism's own guarantee, which may be stronger than the budget, or its ε at `delta`. `pair`
    are neighbours of your own, the worst known ones otherwise. `rng=None` draws from the secure source, as a release
    does.

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.auditing import audit
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4)
    >>> report = audit("wrapped-gaussian", ball, 100, dpm.GaussianDP(1.0), draws=2000, rng=0)
    >>> report.claim.name, report.claimed, report.flagged
    ('μ', 1.0, False)
    """
    draws = positive_integer("draws", draws, at_least=200)
    factor = positive_number("noise_factor", noise_factor)
    chosen = choose(mean_facts(domain, n), budget, mechanism=mechanism, numerics=numerics).mechanism
    if pair is None:
        pair = worst_of(worst_neighbours(domain, n, rng=0), chosen)
    source = None if rng is None else as_generator(rng)
    return AuditReport.from_scores(
        *attack(chosen, pair, draws, source, factor),
        chosen.guarantee,
        confidence,
        delta,
        mechanism=chosen.name,
        numerics=chosen.numerics,
        domain=repr(domain.manifold),
        n=n,
        draws=draws,
        noise_factor=factor,
        pair=pair.description,
    )


_PILOT = 1500


def adds_to_sums(mechanism: Mechanism) -> TypeGuard[WrappedMechanism]:
    """Whether noise is added to an exact sum of integers."""
    return isinstance(mechanism, WrappedMechanism) and mechanism.facts.shape is not None


def attack(
    mechanism: Mechanism, pair: Neighbours, count: int, rng: Any = None, noise_factor: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of `count` releases of the first and of the second neighbour, with so much of the noise.

    Where noise is added to sums both neighbours get the same: either error rate is bounded on its own, and no bound
    needs the two to be independent.
    """
    weak = mechanism.weakened(noise_factor)
    if not adds_to_sums(weak):
        first, second = (scores(weak, pair, releases(weak, pair, which, count, rng)) for which in (0, 1))
        return first, second
    one, other = _totals(weak, pair)
    noise, density = noisy_sums(weak, pair, 0, count, rng) - one, weak.noise.log_density
    return density(noise) - density(noise + one - other), density(noise + other - one) - density(noise)


def noisy_sums(mechanism: WrappedMechanism, pair: Neighbours, which: int, count: int, rng: Any = None) -> np.ndarray:
    """`count` noisy sums (count, dim) of integers, from the same exact sum."""
    total = pair.sums(mechanism)[which]
    source = None if rng is None else as_generator(rng)
    return np.stack([mechanism.add_noise(total, source) for _ in range(count)])


def releases(mechanism: Mechanism, pair: Neighbours, which: int, count: int, rng: Any = None) -> Array:
    """`count` independent releases (count, *point_shape) of the first (0) or the second (1) neighbour, in one step."""
    if adds_to_sums(mechanism):
        return reached_points(mechanism, noisy_sums(mechanism, pair, which, count, rng) * mechanism.step)
    return mechanism.draw_many(pair.means[which], count, records=pair.records[which], rng=rng)


def reached_points(mechanism: WrappedMechanism, drawn: np.ndarray) -> Array:
    """`Walk.reach` from the centre, for many noisy coordinates at once."""
    domain = mechanism.facts.domain
    center = host(domain.center)
    guess = drawn if mechanism.is_coordinatewise else mechanism.shrink(drawn)
    length = np.linalg.norm(guess, axis=-1, keepdims=True)
    inside = guess * np.minimum(1.0, domain.radius / np.maximum(length, 1e-300))
    return domain.clip(domain.manifold.move(center, inside))


def scores(mechanism: Mechanism, pair: Neighbours, released: Array) -> np.ndarray:
    """The log-likelihood ratio of releases (count, *point_shape) for the first neighbour over the second.

    Noisy sums are scored as they are, by `attack`.
    """
    first, second = (
        mechanism.log_likelihood(released, mean, records=records)
        for mean, records in zip(pair.means, pair.records, strict=True)
    )
    return np.asarray(first - second)


def _totals(mechanism: WrappedMechanism, pair: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    one, other = (np.array(total, dtype=np.int64) for total in pair.sums(mechanism))
    return one, other


def _loss_bound(mechanism: Mechanism, pair: Neighbours) -> float:
    """How far the pair is apart in the mechanism's own noise: to rank pairs, by draws that enter no bound."""
    if adds_to_sums(mechanism):
        one, other = _totals(mechanism, pair)
        return -float(mechanism.noise.log_density(one - other))
    if mechanism.stays_inside:
        found = attack(mechanism, pair, _PILOT, np.random.default_rng(0))
        return lower_bound(*found, Claim.of(mechanism.guarantee)).value
    return -float(mechanism.log_likelihood(as_block(pair.means[1]), pair.means[0])[0])


def worst_of(pairs: list[Neighbours], mechanism: Mechanism) -> Neighbours:
    """The pair that is farthest apart; the first of equals, whose means are near the centre and rarely projected."""
    return max(pairs, key=lambda pair: round(_loss_bound(mechanism, pair), 6))
