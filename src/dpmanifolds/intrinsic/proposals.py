"""Points of a ball around a base with density ∝ e^{−rate·ρ(base, ·)}, exactly, for a rate of any size.

In geodesic polar coordinates at the base the volume is s^{d−1}·J. Where J is a function of the distance s alone, or
is bounded by one, and s^{d−1} times it is log-concave, the radius is drawn exactly on (0, reach), the direction
uniformly, and J/bound is left to a rejection. A ball needs no law on the whole space: the rate may be 0, or too
small for one.

Seen from a point x̂ near its edge, a ball needs caps of directions too. A ball of radius r around m₀ fills only a part
of the directions at x̂, a = ρ(m₀, x̂), and ever fewer with the distance s: in 60 dimensions, from the edge, 2⁻⁶⁰ of the
ball around x̂ that reaches as far. So directions are proposed in the cap that may lie inside of the ball, and radii in
proportion to the size of that cap. In the space of curvature κ, with sn = sin, sinh or the identity, a point at
distance s in a direction θ away from m₀ lies in the ball if and only if

    (1 − cos θ)/2 ≤ w_κ(s) = sn((r + s − a)/2)·sn((r − s + a)/2)/(sn a·sn s)

(the law of cosines). Where the curvature is at most κ, distances are at least those of the model, so that the cap of
w_κ holds all directions that stay inside; where it is at least κ, those of the cap of w_κ all do (Toponogov).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import special

from dpmanifolds._arrays import log_sinc
from dpmanifolds.errors import ArgumentError, ConvergenceError
from dpmanifolds.intrinsic.law import identity_of
from dpmanifolds.intrinsic.spd_eigenvalues import envelope
from dpmanifolds.manifolds import Manifold, SPDAffineInvariant
from dpmanifolds.manifolds._common import RootSystem
from dpmanifolds.noise import LogConcaveSampler, uniform_directions
from dpmanifolds.noise.log_concave import falls
from dpmanifolds.privacy.radial import ExponentialKernel, RadialDensity, Root, polar_roots

_HALVINGS = 60


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
        base = identity_of(self.manifold)
        vectors = self.manifold.from_coordinates(base, coordinates)
        return np.asarray(self.bound(radius) - self.manifold.log_volume_density(base, vectors))


def ball_proposal(manifold: Manifold, rate: float, reach: float) -> BallProposal:
    """Proposals with density ∝ e^{−rate·s} on the ball of radius `reach`, which lies inside the cut locus."""
    if manifold.is_flat:
        return _radial(manifold, rate, reach, power=manifold.dim - 1)
    if manifold.polar_roots is not None:
        roots = polar_roots(manifold)
        return _radial(manifold, rate - sum(root.growth for root in roots), reach, roots)
    if manifold.root_system is not None:
        return _compact_proposal(manifold, manifold.root_system, rate, reach)
    if isinstance(manifold, SPDAffineInvariant):
        return _spd_proposal(manifold, rate, reach)
    raise ArgumentError(f"no exact proposals in balls of {manifold!r} are known.")


def _radial(
    manifold: Manifold,
    rate: float,
    reach: float,
    roots: tuple[Root, ...] = (),
    power: float = 0.0,
    bound: Callable[[np.ndarray], np.ndarray] | None = None,
) -> BallProposal:
    density = RadialDensity(ExponentialKernel(rate), roots, reach, power)
    peak = Peak(density.log_density, density.mode, density.scale, density.level)
    return BallProposal(manifold, partial(getattr, density, "sampler"), bound, peak)


def _compact_proposal(manifold: Manifold, system: RootSystem, rate: float, reach: float) -> BallProposal:
    """J ≤ (sin κs/κs)^M, see `compact.RootSystemLaw`."""
    bound = partial(_compact_bound, system.count, system.frequency)
    return _radial(manifold, rate, reach, (Root(system.count, system.frequency),), system.rank - 1, bound)


def _compact_bound(count: int, frequency: float, radius: np.ndarray) -> np.ndarray:
    return np.asarray(count * log_sinc(frequency * radius))


def _spd_proposal(manifold: SPDAffineInvariant, rate: float, reach: float) -> BallProposal:
    """log J ≤ min(C, E2, E3), see `spd_eigenvalues`."""
    k, power = manifold.k, manifold.dim - 1
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


_CELLS = 1024
_LEVELS = 0.05 * 1.06 ** np.arange(180)
_SLACK = 1e-9
# beyond, the share of a cap leaves the range of floating point where it matters
_MOST_DIMENSIONS = 1000


class LensProposal:
    """Proposals ∝ e^{k(ρ(x̂, ·)) − rate·ρ(x̂, ·)} in the ball of `radius`, from x̂ at `distance` from its centre.

    `rate` is that of the source, k a convex function, 0 unless given. The density of the radius is at most, on each of
    some thousand cells, the product of the log-concave part at its highest point there, of e^k at the higher end, and
    of the share of the cap at the near end, which falls with s: radii are drawn from these steps, and what lies between
    is left to the rejection.
    """

    def __init__(
        self,
        source: BallProposal,
        distance: float,
        radius: float,
        convex: Callable[[np.ndarray], np.ndarray] = np.zeros_like,
    ) -> None:
        self._source, self._convex = source, convex
        self._distance, self._radius = distance, radius
        reach, (height, mode, scale, level) = distance + radius, source.peak
        with np.errstate(all="ignore"):
            ends = [falls(height, mode, end, scale, _LEVELS) for end in (0.0, reach)]
            self._edges = np.unique(np.concatenate([np.linspace(0.0, reach, _CELLS + 1), *ends]))
            low, high = self._edges[:-1], self._edges[1:]
            top = np.where(high <= mode, height(high), np.where(low >= mode, height(np.maximum(low, 1e-300)), 0.0))
            self._steps = top + np.maximum(convex(low), convex(high)) + np.log(self._share(low)) + _SLACK
            logs = self._steps + np.log(high - low)
        largest = float(np.max(logs))
        self._cumulative = np.cumsum(np.exp(logs - largest))
        self.log_total = level + largest + math.log(self._cumulative[-1])
        """log of the integral of the steps, over the area of the unit sphere."""

    @property
    def midpoints(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the cells, and their widths: where an integral over radii is looked at."""
        return (self._edges[1:] + self._edges[:-1]) / 2, np.diff(self._edges)

    def _share(self, s: np.ndarray) -> np.ndarray:
        manifold = self._source.manifold
        if manifold.dim > _MOST_DIMENSIONS:
            return np.ones_like(s)
        return cap_share(manifold.dim, cap_part(manifold.curvature_bounds[1], self._distance, self._radius, s))

    def draw(self, axis: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Radii, coordinates at x̂, and minus the log of the probability to keep them; `axis` points to the centre."""
        cell = np.searchsorted(self._cumulative, rng.random(count) * self._cumulative[-1], side="right")
        cell = np.minimum(cell, self._steps.size - 1)
        low, high = self._edges[cell], self._edges[cell + 1]
        radius = np.clip(low + rng.random(count) * (high - low), 1e-300, None)
        with np.errstate(all="ignore"):
            share = self._share(radius)
            excess = self._steps[cell] - self._source.peak.height(radius) - self._convex(radius) - np.log(share)
        coordinates = radius[:, None] * _directions(axis, share, rng)
        return radius, coordinates, np.where(share > 0, excess + self._source.excess(radius, coordinates), math.inf)


def _directions(axis: np.ndarray, share: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors uniform on caps around the axis that have these shares of the sphere."""
    count, dim = share.size, axis.size
    chance = rng.random(count) * share
    if dim == 1:
        return np.where(chance < 0.5, axis, -axis)[:, None]
    # (1 − cos θ)/2 has the law Beta((d−1)/2, (d−1)/2)
    part = special.betaincinv((dim - 1) / 2, (dim - 1) / 2, chance)
    across = rng.standard_normal((count, dim))
    across -= (across @ axis)[:, None] * axis
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return np.asarray((1 - 2 * part)[:, None] * axis + (2 * np.sqrt(part * (1 - part)))[:, None] * across)


def cap_share(dim: int, part: np.ndarray) -> np.ndarray:
    """The share of the directions with (1 − cos θ)/2 ≤ part."""
    part = np.clip(part, 0.0, 1.0)
    if dim == 1:
        return np.where(part >= 1, 1.0, np.where(part > 0, 0.5, 0.0))
    return np.asarray(special.betainc((dim - 1) / 2, (dim - 1) / 2, part))


def cap_part(curvature: float, distance: float, radius: float, s: np.ndarray) -> np.ndarray:
    """w_κ(s), raised by a hair."""
    distance = min(distance, radius)
    if distance == 0:
        return np.ones_like(s)
    near, far = (radius + s - distance) / 2, (radius - s + distance) / 2
    with np.errstate(all="ignore"):
        logs = sum(sign * log_sn(curvature, x) for sign, x in ((1, near), (1, far), (-1, distance), (-1, s)))
        part = np.exp(np.minimum(logs, 1.0)) * (1 + _SLACK)
    return np.where(s == 0, 1.0, np.where(far > 0, part, 0.0))


def log_sn(curvature: float, s: np.ndarray | float) -> np.ndarray:
    """log of sin(√κs)/√κ, of s, or of sinh(√−κs)/√−κ."""
    s = np.asarray(s, dtype=np.float64)
    root = math.sqrt(abs(curvature))
    if curvature == 0:
        return np.asarray(np.log(s))
    if curvature > 0:
        return np.asarray(np.log(np.sin(root * s) / root))
    return np.asarray(root * s + np.log(-np.expm1(-2 * root * s) / (2 * root)))


Proposal: TypeAlias = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
"""Makes so many proposals (as rows) and says which are accepted."""


def collect(
    count: int,
    width: int,
    propose: Proposal,
    rng: np.random.Generator,
    *,
    batch: int,
    most: float = math.inf,
    failure: str = "",
) -> np.ndarray:
    """The first `count` accepted proposals, as rows of `width` numbers.

    Proposals are asked for in batches of at most `batch`. When `most` times as many as were accepted, plus one, have
    been made, `ConvergenceError` says `failure`.

    >>> import numpy as np
    >>> from dpmanifolds.intrinsic.proposals import collect
    >>> def half_normal(size, rng):
    ...     draws = rng.standard_normal((size, 1))
    ...     return draws, draws[:, 0] > 0
    >>> collect(5, 1, half_normal, np.random.default_rng(0), batch=100).shape
    (5, 1)
    """
    result = np.empty((count, width))
    done, tried, size = 0, 0, min(max(2 * count, 16), batch)
    while done < count:
        if tried > most * (done + 1):
            raise ConvergenceError(failure)
        rows, accepted = propose(size, rng)
        found = rows[accepted][: count - done]
        result[done : done + found.shape[0]] = found
        done, tried = done + found.shape[0], tried + size
        # enough for what is left at the rate so far, or twice as many while there is none
        wanted = 1.25 * (count - done) * tried / done if done else 2 * size
        size = int(min(max(math.ceil(wanted), 16), batch))
    return result
