"""The audit of a mechanism: attack it on the worst known neighbours, and hold the result against its promise.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> from dpmanifolds.auditing import audit
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
>>> report = audit("wrapped-laplace", ball, 100, PureDP(1.0), draws=2000, rng=0)
>>> report.claimed, report.flagged
(1.0, False)
>>> report.lower_bound > 0.4
True
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.auditing.bounds import Claim, lower_bound, profile_bands
from dpmanifolds.auditing.front_door import overheard_noise
from dpmanifolds.auditing.neighbours import Neighbours, worst_neighbours
from dpmanifolds.auditing.report import AuditReport, profile_points, score_histogram
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.intrinsic import KNormGradientMechanism, RiemannianGaussianMechanism, RiemannianLaplaceMechanism
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Budget
from dpmanifolds.sums import Mechanism, WrappedGaussianMechanism, WrappedLaplaceMechanism, choose, mean_facts
from dpmanifolds.sums.wrapped import WrappedMechanism

__all__ = ["adds_to_sums", "attack", "audit", "noisy_sums", "reached_points", "releases", "scores", "worst_of"]


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
    pair: Neighbours | None = None,
    rng: Any = None,
) -> AuditReport:
    """Attack the named mechanism for the private mean of n records in a ball.

    `draws` releases of each of two neighbours are scored by their exact log-likelihood ratio: of the noisy sum of
    integers for a wrapped mechanism, in one step, of the released point for the others. Up to about six dimensions such
    an attack has the power to see 30 % too little noise (`noise_factor=0.7` shows that it does); above, compare laws
    instead. Several steps, classes, persons and other releases are attacked by `audit_release`. The claim that is
    attacked is the mechanism's own guarantee, which may be stronger than the budget. `pair` are neighbours of your own,
    the worst known ones otherwise. `rng=None` draws from the secure source, as a release does.

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
    claim = Claim.of(chosen.guarantee)
    if pair is None:
        pair = worst_of(worst_neighbours(domain, n, rng=0), chosen)
    source = None if rng is None else as_generator(rng)
    first, second = attack(chosen, pair, draws, source, factor)
    return AuditReport(
        mechanism=chosen.name,
        numerics=chosen.numerics,
        domain=repr(domain.manifold),
        n=n,
        claim=claim,
        bound=lower_bound(first, second, claim, confidence),
        confidence=confidence,
        draws=draws,
        noise_factor=factor,
        pair=pair.description,
        profile=profile_bands(first, second, chosen.guarantee, profile_points(chosen.guarantee), confidence),
        histogram=score_histogram(first, second),
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
    if not isinstance(mechanism, WrappedMechanism):
        weakened = replace(mechanism, scale=mechanism.scale * noise_factor)
        first, second = (scores(weakened, pair, releases(weakened, pair, which, count, rng)) for which in (0, 1))
        return first, second
    with overheard_noise(noise_factor):
        if not adds_to_sums(mechanism):
            made = [releases(mechanism, pair, which, count, rng) for which in (0, 1)]
            first, second = (scores(mechanism, pair, each) / noise_factor for each in made)
            return first, second
        drawn = noisy_sums(mechanism, pair, 0, count, rng)
    one, other = _totals(mechanism, pair)
    noise, sigma = drawn - one, _sigma_steps(mechanism) * noise_factor
    return _ratio(mechanism, noise, drawn - other, sigma), _ratio(mechanism, noise + other - one, noise, sigma)


def noisy_sums(mechanism: WrappedMechanism, pair: Neighbours, which: int, count: int, rng: Any = None) -> np.ndarray:
    """`count` noisy sums (count, dim) of integers, from the same exact sum."""
    total = pair.sums(mechanism)[which]
    source = None if rng is None else as_generator(rng)
    return np.stack([mechanism.add_noise(total, source) for _ in range(count)])


def releases(mechanism: Mechanism, pair: Neighbours, which: int, count: int, rng: Any = None) -> Array:
    """`count` independent releases (count, *point_shape) of the first (0) or the second (1) neighbour, in one step."""
    domain = mechanism.facts.domain
    if adds_to_sums(mechanism):
        drawn = noisy_sums(mechanism, pair, which, count, rng) * mechanism.step
        return reached_points(mechanism, drawn)
    statistic = pair.means[which]
    if isinstance(mechanism, WrappedMechanism):
        coordinates = domain.manifold.log_coordinates(host(domain.center), statistic)
        values = np.rint(coordinates / mechanism.step).astype(np.int64)
        source = None if rng is None else as_generator(rng)
        drawn = np.stack([mechanism._noisy(values, source) for _ in range(count)])
        return mechanism.point_of(drawn * mechanism.step)
    if isinstance(mechanism, RiemannianLaplaceMechanism | RiemannianGaussianMechanism):
        drawn = mechanism._law.sample_coordinates(count, as_generator(rng))
        return mechanism._shown(domain.manifold.move(statistic, drawn))
    if isinstance(mechanism, KNormGradientMechanism):
        records = pair.second if which else pair.first
        return mechanism._shown(host(mechanism._law(records, statistic).sample(count, as_generator(rng))))
    raise ArgumentError(f"no attack is known on {type(mechanism).__name__}.")


def reached_points(mechanism: WrappedMechanism, drawn: np.ndarray) -> Array:
    """`releases.tangent.reached` from the centre, for many noisy coordinates at once."""
    domain = mechanism.facts.domain
    center = host(domain.center)
    guess = drawn if mechanism.is_coordinatewise else mechanism.shrink(drawn)
    length = np.linalg.norm(guess, axis=-1, keepdims=True)
    inside = guess * np.minimum(1.0, domain.radius / np.maximum(length, 1e-300))
    return domain.clip(domain.manifold.move(center, inside))


def scores(mechanism: Mechanism, pair: Neighbours, released: Array) -> np.ndarray:
    """The log-likelihood ratio of releases (count, *point_shape) for the first neighbour over the second.

    Exact, up to a constant, for laws around the Fréchet mean and releases that were not projected to the edge of the
    ball; any score is a valid attack. Noisy sums are scored as they are, by `attack`.
    """
    manifold, sigma = mechanism.facts.domain.manifold, mechanism.scale
    if isinstance(mechanism, WrappedMechanism):
        seen = manifold.log_coordinates(host(mechanism.facts.domain.center), released)
        return _ratio(mechanism, seen - pair.coordinates[0], seen - pair.coordinates[1], sigma)
    if isinstance(mechanism, KNormGradientMechanism):
        laws = [mechanism._law(*each) for each in ((pair.first, pair.means[0]), (pair.second, pair.means[1]))]
        inside = mechanism.facts.domain.clip(released)
        return np.asarray(laws[1]._gradient_norm(inside) - laws[0]._gradient_norm(inside)) / sigma
    near, far = (np.asarray(manifold.dist(mean, released)) for mean in pair.means)
    if isinstance(mechanism, RiemannianGaussianMechanism):
        return np.asarray((far - near) * (far + near) / (2 * sigma * sigma))
    return np.asarray((far - near) / sigma)


def _ratio(mechanism: WrappedMechanism, near: np.ndarray, far: np.ndarray, sigma: float) -> np.ndarray:
    """ln of the density at `near` over that at `far`."""
    near, far = near / sigma, far / sigma
    if isinstance(mechanism, WrappedGaussianMechanism):
        return np.asarray(np.sum((far - near) * (far + near), axis=-1) / 2)
    order = _norm(mechanism)
    return np.asarray(np.linalg.norm(far, order, axis=-1) - np.linalg.norm(near, order, axis=-1))


def _norm(mechanism: WrappedMechanism) -> int:
    return 1 if isinstance(mechanism, WrappedLaplaceMechanism) and mechanism.numerics == "lattice" else 2


def _totals(mechanism: WrappedMechanism, pair: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    one, other = (np.array(total, dtype=np.int64) for total in pair.sums(mechanism))
    return one, other


def _sigma_steps(mechanism: WrappedMechanism) -> float:
    assert mechanism.sigma_steps is not None
    return mechanism.sigma_steps


def _loss_bound(mechanism: Mechanism, pair: Neighbours) -> float:
    """How far the pair is apart in the mechanism's own noise: to rank pairs, by draws that enter no bound."""
    if adds_to_sums(mechanism):
        one, other = _totals(mechanism, pair)
        return float(np.linalg.norm(one - other, _norm(mechanism))) / _sigma_steps(mechanism)
    if isinstance(mechanism, WrappedMechanism):
        return float(np.linalg.norm(pair.coordinates[0] - pair.coordinates[1], _norm(mechanism))) / mechanism.scale
    if isinstance(mechanism, KNormGradientMechanism):
        pilot = np.random.default_rng(0)
        first, second = (scores(mechanism, pair, releases(mechanism, pair, which, _PILOT, pilot)) for which in (0, 1))
        return lower_bound(first, second, Claim.of(mechanism.guarantee)).value
    return pair.moved / mechanism.scale


def worst_of(pairs: list[Neighbours], mechanism: Mechanism) -> Neighbours:
    """The pair that is farthest apart; the first of equals, whose means are near the centre and rarely projected."""
    return max(pairs, key=lambda pair: round(_loss_bound(mechanism, pair), 6))
