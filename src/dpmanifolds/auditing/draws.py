"""Many releases of one mechanism at once, and the attacker's score of each.

A release is one draw per call. An audit needs 100,000 of them: here the same arithmetic (coordinates, rounding, noise,
exp, projection) runs over a whole array of draws, and the tests hold it against `Mechanism.release` on the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.auditing.bounds import lower_bound
from dpmanifolds.auditing.claims import Claim
from dpmanifolds.auditing.neighbours import Neighbours
from dpmanifolds.distributions import move
from dpmanifolds.errors import ArgumentError
from dpmanifolds.mechanisms import (
    KNormGradientMechanism,
    Mechanism,
    RiemannianGaussianMechanism,
    RiemannianLaplaceMechanism,
    WrappedGaussianMechanism,
    WrappedLaplaceMechanism,
    coordinates_at,
    host,
)
from dpmanifolds.noise import as_generator

_PILOT = 1500

__all__ = ["releases", "scores", "worst_of"]


def releases(mechanism: Mechanism, pair: Neighbours, which: int, count: int, rng: Any = None) -> Array:
    """`count` independent releases (count, *point_shape) of the first (0) or the second (1) neighbour."""
    statistic = pair.means[which]
    domain = mechanism.facts.domain
    if isinstance(mechanism, WrappedGaussianMechanism | WrappedLaplaceMechanism):
        coordinates = coordinates_at(domain.manifold, host(domain.center), statistic)
        values = np.rint(coordinates / mechanism.step).astype(np.int64)
        source = None if rng is None else as_generator(rng)
        drawn = np.stack([mechanism._noisy(values, source) for _ in range(count)])
        return mechanism.point_of(drawn * mechanism.step)
    if isinstance(mechanism, RiemannianLaplaceMechanism | RiemannianGaussianMechanism):
        drawn = mechanism._law.sample_coordinates(count, as_generator(rng))
        return mechanism._shown(move(domain.manifold, statistic, drawn))
    if isinstance(mechanism, KNormGradientMechanism):
        records = pair.second if which else pair.first
        return mechanism._shown(host(mechanism._law(records, statistic).sample(count, as_generator(rng))))
    raise ArgumentError(f"no attack is known on {type(mechanism).__name__}.")


def scores(mechanism: Mechanism, pair: Neighbours, released: Array) -> np.ndarray:
    """The log-likelihood ratio of releases (count, *point_shape) for the first neighbour over the second.

    Exact, up to a constant, for releases that were not projected to the edge of the ball; any score is a valid attack.
    """
    manifold, sigma = mechanism.facts.domain.manifold, mechanism.scale
    if isinstance(mechanism, WrappedGaussianMechanism | WrappedLaplaceMechanism):
        seen = coordinates_at(manifold, host(mechanism.facts.domain.center), released)
        near, far = (seen - each for each in pair.coordinates)
        if isinstance(mechanism, WrappedGaussianMechanism):
            return np.asarray(np.sum((far - near) * (far + near), axis=-1) / (2 * sigma * sigma))
        order = 1 if mechanism.numerics == "lattice" else 2
        return np.asarray((np.linalg.norm(far, order, axis=-1) - np.linalg.norm(near, order, axis=-1)) / sigma)
    if isinstance(mechanism, KNormGradientMechanism):
        laws = [mechanism._law(*each) for each in ((pair.first, pair.means[0]), (pair.second, pair.means[1]))]
        inside = mechanism.facts.domain.clip(released)
        return np.asarray(laws[1]._gradient_norm(inside) - laws[0]._gradient_norm(inside)) / sigma
    near, far = (np.asarray(manifold.dist(mean, released)) for mean in pair.means)
    if isinstance(mechanism, RiemannianGaussianMechanism):
        return np.asarray((far - near) * (far + near) / (2 * sigma * sigma))
    return np.asarray((far - near) / sigma)


def _loss_bound(mechanism: Mechanism, pair: Neighbours) -> float:
    """How far the pair is apart in the mechanism's own noise: to rank pairs, by draws that enter no bound."""
    if isinstance(mechanism, WrappedGaussianMechanism | WrappedLaplaceMechanism):
        order = 1 if isinstance(mechanism, WrappedLaplaceMechanism) and mechanism.numerics == "lattice" else 2
        return float(np.linalg.norm(pair.coordinates[0] - pair.coordinates[1], order)) / mechanism.scale
    if isinstance(mechanism, KNormGradientMechanism):
        pilot = np.random.default_rng(0)
        first, second = (scores(mechanism, pair, releases(mechanism, pair, which, _PILOT, pilot)) for which in (0, 1))
        return lower_bound(first, second, Claim.of(mechanism.guarantee)).value
    return pair.moved / mechanism.scale


def worst_of(pairs: list[Neighbours], mechanism: Mechanism) -> Neighbours:
    """The pair that is farthest apart; the first of equals, whose means are near the centre and rarely projected."""
    return max(pairs, key=lambda pair: round(_loss_bound(mechanism, pair), 6))
