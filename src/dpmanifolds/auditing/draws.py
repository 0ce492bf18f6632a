"""Many releases of one mechanism at once, and the attacker's score of each.

A release is one draw per call. An audit needs 100,000 of them: here the same noise is drawn around the same exact sum
as often as wanted, and what comes after it (estimate, exp) runs over a whole array of draws. The tests hold it against
`private_mean` and `Mechanism.release` on the same bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds.auditing.bounds import lower_bound
from dpmanifolds.auditing.claims import Claim
from dpmanifolds.auditing.neighbours import Neighbours
from dpmanifolds.auditing.transcripts import overheard_noise
from dpmanifolds.errors import ArgumentError
from dpmanifolds.intrinsic import KNormGradientMechanism, RiemannianGaussianMechanism, RiemannianLaplaceMechanism
from dpmanifolds.noise import as_generator
from dpmanifolds.sums import Mechanism, WrappedGaussianMechanism, WrappedLaplaceMechanism
from dpmanifolds.sums.wrapped import WrappedMechanism

_PILOT = 1500

__all__ = ["adds_to_sums", "attack", "noisy_sums", "reached_points", "releases", "scores", "worst_of"]


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
    """`sums.frames.reach_point` from the centre, for many noisy coordinates at once."""
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
