"""The extrinsic mean in place of the Fréchet mean: one sum, taken where public facts say that it is closer.

>>> import numpy as np
>>> from dpmanifolds import Ball, PureDP, Sphere
>>> from dpmanifolds.sums.steps import plan_steps
>>> wide, small = (Ball(Sphere(10), np.eye(11)[0], radius) for radius in (1.5, 0.2))
>>> [find_stand_in(ball, plan_steps(ball, 1_000, PureDP(1.0)).predicted, 1_000, PureDP(1.0)) is None
...  for ball in (wide, small)]
[False, True]

Embedded records lie in a body that is narrower than a wide ball, and one sum is enough. What is paid is another target.
Let c(ρ) be half the squared chord of a geodesic of length ρ along which angles are not shared out, k² = c″(0), and
score(ρ) = c′(ρ)/k²: sin ρ on the unit sphere, ½·sin 2ρ for subspaces. At the extrinsic mean p the scores of records add
up to 0, so that the mean of log_p x is that of (ρ − score)·u, u unit vectors. As (ρ − score)/c grows with ρ, for
records within half the injectivity radius of p (a quarter turn on spheres)

    |mean of log_p x| ≤ κ·W,  κ = (ρ − score)/c there,  W = mean of c = ρ₀² − ⟨mean of embed(x), embed(p)⟩,

and W is known from what was released, up to its noise. The Fréchet mean is that over the least average second
derivative of half the squared distance away, 1 − λW at least. That is a bound; on real directions and shapes it was a
small part of ρ − score at the spread of the records (`_SKEW`), and that is what decides (docs/proofs/sums.md,
section 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.privacy import Budget
from dpmanifolds.sums.ambient import AmbientBody, body_of
from dpmanifolds.sums.choose import choose
from dpmanifolds.sums.mechanism import ExpectedError
from dpmanifolds.sums.steps import average_over_places, usual_spread
from dpmanifolds.sums.wrapped import WrappedMechanism

# |mean of (ρ − score)u| over ρ − score at the spread of the records: .03 to .37 on 13 data sets, .15 in the middle
_SKEW = 0.15
# what a stand-in must gain, and the least second derivative that a bound is told for
_GAIN, _LEAST_CURVE = 0.98, 0.25
_NODES = 200


class _Curve(NamedTuple):
    """Along a geodesic from the centre: lengths, c, ρ − score, and how flat half the squared distance is across it."""

    lengths: np.ndarray
    half_square: np.ndarray
    gap: np.ndarray
    flatter: np.ndarray
    stiffness: float
    """k²."""

    def at(self, values: np.ndarray, length: float) -> float:
        return float(np.interp(length, self.lengths, values))


@dataclass(frozen=True, eq=False)
class StandIn:
    """A body, its mechanism, and what they are expected to err."""

    body: AmbientBody
    law: WrappedMechanism
    noise: ExpectedError
    """Of noise alone, for records that lie close together."""
    predicted: float
    """Noise, and the usual distance between both means, over the usual places: what steps are compared with."""
    reason: str

    def tell_error(self, noisy: np.ndarray, point: np.ndarray) -> ExpectedError:
        """Noise and target together, from a noisy mean that was released and the point that it led to.

        The 90 % are 95 % for the noise and 95 % for that in W; see above for what the bound on the target is about.
        """
        noise = self.body.expected_error(self.law, noisy)
        domain, rho = self.body.domain, self.body.manifold.ambient_radius
        curve = _curve_of(domain, domain.radius + float(domain.manifold.dist(self.body.center, point)))
        seen = self.body.coordinates_of(self.law, noisy)
        share = rho * rho - float(seen @ np.asarray(self.body.manifold.embed(point)))
        spread = float(np.interp(share, curve.half_square, curve.lengths))
        likely = _SKEW * curve.at(curve.gap, spread) / max(1 - curve.stiffness * max(share, 0.0), _LEAST_CURVE)
        largest = max(share, 0.0) + rho * self.law.error_quantile(0.95)
        kappa, flat = float(np.max(curve.gap / curve.half_square)), float(np.max(curve.flatter / curve.half_square))
        most = min(kappa * largest / max(1 - flat * largest, _LEAST_CURVE), domain.diameter)
        wider = self.law.error_quantile(0.95) / self.law.error_quantile(0.9)
        return replace(
            noise,
            mean=math.hypot(noise.mean, likely),
            mean_at_edge=math.hypot(noise.mean_at_edge, likely),
            radius_90=wider * noise.radius_90 + most,
            target=most,
        )


@lru_cache(maxsize=32)
def find_stand_in(
    domain: Domain,
    others: float,
    n: int,
    budget: Budget,
    *,
    mechanism: str = "auto",
    numerics: str = "safe",
    adjacency: str = "replace-one",
    unit: str = "record",
) -> StandIn | None:
    """The extrinsic mean, if it is predicted to err less than `others`; None elsewhere. All of it is public.

    Worked out once for the same public facts; domains are told apart by being the same object.
    """
    if not isinstance(domain, Ball) or not domain.manifold.ambient_dim:
        return None
    body = body_of(domain, adjacency)
    if body.projectors and adjacency != "replace-one":
        return None
    try:
        facts = body.facts(n, adjacency=adjacency, unit=unit)
        law = choose(facts, budget, mechanism=mechanism, numerics=numerics).mechanism
    except NotAvailableError:
        return None
    assert isinstance(law, WrappedMechanism)
    if not body.has_room(law):
        return None
    curve = _curve_of(domain, domain.radius)
    spread = usual_spread(domain)
    bent = max(1 - curve.stiffness * curve.at(curve.half_square, spread), _LEAST_CURVE)
    # a lower bound first: what is drawn takes time
    least = law.deviation * math.sqrt(domain.manifold.dim) / math.sqrt(curve.stiffness) / bent
    gap = _SKEW * curve.at(curve.gap, spread) / bent
    if average_over_places(domain, 0.9 * least, gap) > _GAIN * others:
        return None
    noise = body.expected_error(law)
    predicted = average_over_places(domain, noise.mean / bent, gap)
    if predicted > _GAIN * others:
        return None
    told = f"{predicted:.3g} against {others:.3g} by tangent steps"
    return StandIn(
        body, law, noise, predicted, f"the extrinsic mean, whose error public facts predict to be less: {told}"
    )


def _curve_of(domain: Domain, reach: float) -> _Curve:
    """Up to `reach` or half the injectivity radius, whichever is less."""
    manifold = domain.manifold
    turn = math.sqrt(max(manifold.curvature_bounds[1], 0.0))
    lengths = np.linspace(0.0, min(reach, manifold.injectivity_radius / 2), _NODES + 1)[1:]
    center, first = host(domain.center), np.eye(manifold.dim)[0]
    points = manifold.embed(manifold.move(center, lengths[:, None] * first))
    half_square = np.sum((points - manifold.embed(center)) ** 2, axis=-1) / 2
    stiffness = 2 * float(half_square[0]) / float(lengths[0]) ** 2
    gap = np.maximum(lengths - np.gradient(half_square, lengths, edge_order=2) / stiffness, 0.0)
    angles = np.maximum(turn * lengths, 1e-9)
    return _Curve(lengths, half_square, gap, 1 - angles / np.tan(angles), stiffness)
