"""Points of a ball around a base with density ∝ e^{−rate·ρ(base, ·)}, exactly, for a rate of any size.

In geodesic polar coordinates at the base the volume is s^{d−1}·J. Where J is a function of the distance s alone, or
is bounded by one, and s^{d−1} times it is log-concave, the radius is drawn exactly on (0, reach), the direction
uniformly, and J/bound is left to a rejection. A ball needs no law on the whole space: the rate may be 0, or too
small for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, singledispatch
from typing import NamedTuple, NoReturn

import numpy as np

from dpmanifolds._arrays import log_sinc
from dpmanifolds.distributions._spd_envelopes import envelope
from dpmanifolds.distributions.compact import root_system
from dpmanifolds.distributions.radial import RadialDensity, Root
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import (
    FlatManifold,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    SPDAffineInvariant,
    SpecialOrthogonal,
    Sphere,
)
from dpmanifolds.noise import LogConcaveSampler, uniform_directions

__all__ = ["BallProposal", "Peak", "ball_proposal"]

_HALVINGS = 60


@dataclass(frozen=True)
class _LinearKernel:
    """k(s) = −rate·s on a bounded interval; the rate may be negative."""

    rate: float

    def difference(self, s: np.ndarray, t: float) -> np.ndarray:
        return np.asarray(-self.rate * (s - t))

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.full(np.shape(s), -self.rate)

    def level(self, t: float) -> float:
        return -self.rate * t

    def largest_mode(self, power: float) -> float:
        return power / self.rate if self.rate > 0 else math.inf


class Peak(NamedTuple):
    """A log-concave density of radii by its height above the one at its mode, and the log of that one."""

    height: Callable[[np.ndarray], np.ndarray]
    mode: float
    scale: float
    level: float


@dataclass(frozen=True)
class BallProposal:
    """Radii and uniform directions; `bound` is the log of the bound of J, None where the bound is J itself."""

    manifold: Manifold
    make_sampler: Callable[[], LogConcaveSampler]
    bound: Callable[[np.ndarray], np.ndarray] | None
    peak: Peak
    """Of e^{−rate·s}·s^{d−1}·bound."""

    @cached_property
    def sampler(self) -> LogConcaveSampler:
        """Exact draws of the radius."""
        return self.make_sampler()

    def draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Radii, coordinates, and minus the log of the probability J/bound to keep them."""
        radius = self.sampler.sample(count, rng)
        coordinates = radius[:, None] * uniform_directions(count, self.manifold.dim, rng)
        return radius, coordinates, self.excess(radius, coordinates)

    def excess(self, radius: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
        """log(bound/J)."""
        if self.bound is None:
            return np.zeros(radius.size)
        rows, columns = self.manifold.point_shape
        base = np.eye(rows, columns)
        vectors = self.manifold.from_coordinates(base, coordinates)
        return np.asarray(self.bound(radius) - self.manifold.log_volume_density(base, vectors))


@singledispatch
def ball_proposal(manifold: Manifold, rate: float, reach: float) -> BallProposal:
    """Proposals with density ∝ e^{−rate·s} on the ball of radius `reach`, which lies inside the cut locus."""
    _unknown(manifold)


def _unknown(manifold: Manifold) -> NoReturn:
    raise ArgumentError(f"no exact proposals in balls of {manifold!r} are known.")


def _radial(
    manifold: Manifold,
    rate: float,
    reach: float,
    roots: tuple[Root, ...] = (),
    power: float = 0.0,
    bound: Callable[[np.ndarray], np.ndarray] | None = None,
) -> BallProposal:
    density = RadialDensity(_LinearKernel(rate), roots, reach, power)
    peak = Peak(density.log_density, density.mode, density.scale, density.level)
    return BallProposal(manifold, partial(getattr, density, "sampler"), bound, peak)


@ball_proposal.register
def _(manifold: FlatManifold, rate: float, reach: float) -> BallProposal:
    return _radial(manifold, rate, reach, power=manifold.dim - 1)


@ball_proposal.register
def _(manifold: Sphere, rate: float, reach: float) -> BallProposal:
    return _radial(manifold, rate, reach, (Root(manifold.dim - 1, 1 / manifold.sphere_radius),))


@ball_proposal.register
def _(manifold: Hyperbolic, rate: float, reach: float) -> BallProposal:
    # Root keeps (1 − e^{−2s})/2 of sinh s; its e^s is part of the kernel
    growth = (manifold.dim - 1) / manifold.scale_length
    root = Root(manifold.dim - 1, 1 / manifold.scale_length, hyperbolic=True)
    return _radial(manifold, rate - growth, reach, (root,))


@ball_proposal.register
def _(manifold: PlanarShapes, rate: float, reach: float) -> BallProposal:
    return _radial(manifold, rate, reach, (Root(manifold.dim - 2, 1.0), Root(1, 2.0)))


@ball_proposal.register(SpecialOrthogonal)
@ball_proposal.register(Grassmann)
def _(manifold: SpecialOrthogonal | Grassmann, rate: float, reach: float) -> BallProposal:
    """J ≤ (sin κs/κs)^M, see `compact.RootSystemLaw`; an equality in rank one."""
    roots = root_system(manifold)
    bound = partial(_compact_bound, roots.count, roots.frequency) if roots.rank > 1 else None
    return _radial(manifold, rate, reach, (Root(roots.count, roots.frequency),), roots.rank - 1, bound)


def _compact_bound(count: int, frequency: float, radius: np.ndarray) -> np.ndarray:
    return np.asarray(count * log_sinc(frequency * radius))


@ball_proposal.register
def _(manifold: SPDAffineInvariant, rate: float, reach: float) -> BallProposal:
    """log J ≤ min(C, E2, E3), see `_spd_envelopes`."""
    k, power = manifold.k, manifold.dim - 1
    if k == 1:
        return _radial(manifold, rate, reach)
    slope = partial(_spd_slope, k, power, rate)
    low, high = 0.0, reach
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(np.array([middle]))[0] > 0 else (low, middle)
    mode = (low + high) / 2
    log_density = partial(_spd_log_density, k, power, rate, mode)
    make = partial(LogConcaveSampler, log_density, slope, mode=mode, scale=mode, lower=0.0, upper=reach)
    level = power * math.log(mode) - rate * mode + float(_spd_bound(k, np.array([mode]))[0])
    return BallProposal(manifold, make, partial(_spd_bound, k), Peak(log_density, mode, mode, level))


def _spd_bound(k: int, radius: np.ndarray) -> np.ndarray:
    return envelope(k, radius).value


def _spd_log_density(k: int, power: int, rate: float, mode: float, radius: np.ndarray) -> np.ndarray:
    change = _spd_bound(k, radius) - _spd_bound(k, np.array([mode]))
    return np.asarray(power * np.log(radius / mode) - rate * (radius - mode) + change)


def _spd_slope(k: int, power: int, rate: float, radius: np.ndarray) -> np.ndarray:
    return np.asarray(power / radius - rate + envelope(k, radius).slope)
