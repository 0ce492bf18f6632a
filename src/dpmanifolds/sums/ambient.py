"""The extrinsic mean: records as points of the flat space around their manifold, summed there.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> from dpmanifolds.domains import WholeSpace
>>> north = np.array([0.0, 0.0, 1.0])
>>> body_of(WholeSpace(Sphere(2), north)).radius, round(body_of(Ball(Sphere(2), north, radius=0.5)).radius, 6)
(1.0, 0.479426)

`Manifold.embed` puts all points on a sphere of radius ρ₀ around 0 in R^D. That sphere's ball is a body for records that
may lie anywhere. Records within r of a public centre c have |embed(x) − embed(c)| ≤ s = chord(r), and with
m_t = (1 − t)·embed(c), 0 ≤ t ≤ 1,

    |embed(x) − m_t|² = (1 − t)|embed(x) − embed(c)|² + t²ρ₀² ≤ (1 − t)s² + t²ρ₀²,

least at t = s²/2ρ₀²: a ball of radius s·√(1 − s²/4ρ₀²) around a public point holds them, ρ₀·sin r/ρ₀ on a sphere; from
s² = 2ρ₀² on it is the ball around 0 (docs/proofs/sums.md, section 7). Projectors have a body of their own, which is
narrower where records may lie anywhere (`sums.projectors`). Integers are checked as for tangent vectors, so
the promise rests on none of this. Leading back to the manifold (`Manifold.unembed`) is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like
from dpmanifolds._points import host
from dpmanifolds.domains import Ball, Domain, WholeSpace
from dpmanifolds.errors import ArgumentError, NotAvailableError, NotOnManifoldError
from dpmanifolds.manifolds import Euclidean, Manifold
from dpmanifolds.noise import as_generator
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.estimate import shrink_length
from dpmanifolds.sums.mechanism import ExpectedError, Facts, mean_facts, simulated_error
from dpmanifolds.sums.projectors import (
    ProjectorContribution,
    chord_of_projectors,
    decode_projector,
    projector_facts,
    projector_integers,
)
from dpmanifolds.sums.rounding import ball_integers
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedMechanism

_SIMULATED = 4_000_000
_FEWEST_DRAWS, _MOST_DRAWS = 50, 2000


@dataclass(frozen=True, eq=False)
class AmbientContribution(AtPoint):
    """embed(x) less a public offset, shortened to the radius, in units of the radius over 2^exponent.

    Replacing a record moves the sum by at most 2·2^exponent, adding one by half of that.
    """

    radius: float = 1.0
    offset: np.ndarray | None = None
    exponent: int = 29

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.manifold.ambient_dim

    def coordinates(self, base: Array, points: Array) -> Array:
        rows = self.manifold.embed(points)
        return rows if self.offset is None else rows - like(self.offset, rows)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        return ball_integers(rows, self.exponent, radius=self.radius, usable=broken == 0), broken


@dataclass(frozen=True, eq=False)
class AmbientBody:
    """The public ball of R^D that embedded records of a domain lie in."""

    domain: Domain
    center: np.ndarray
    """A point of the manifold: where malformed records, and a mean that is nowhere, are put."""
    offset: np.ndarray | None
    """The middle of the ball; None for 0."""
    radius: float
    projectors: bool = False
    """Whether integers are those of projectors, with their own diameter."""

    @property
    def manifold(self) -> Manifold:
        return self.domain.manifold

    def facts(self, n: int, *, adjacency: str = "replace-one", unit: str = "record") -> Facts:
        """How far the mean of n embedded records moves: 2·radius/n for a sum of integers, or less for projectors."""
        size = projector_integers(self.manifold) if self.projectors else self.manifold.ambient_dim
        facts = mean_facts(Ball(Euclidean(size), np.zeros(size), self.radius), n, adjacency=adjacency, unit=unit)
        return projector_facts(facts, chord_of_projectors(self.manifold)) if self.projectors else facts

    def contribution(self, law: WrappedMechanism, substitute: Array | None) -> AtPoint:
        """What a record adds; `substitute` takes the place of malformed ones, which otherwise count as 0."""
        assert law.exponent is not None
        if self.projectors:
            return ProjectorContribution(self.manifold, self.center, substitute, exponent=law.exponent)
        return AmbientContribution(
            self.manifold, self.center, substitute, radius=self.radius, offset=self.offset, exponent=law.exponent
        )

    def has_room(self, law: WrappedMechanism) -> bool:
        """Whether the lattice of this law is fine enough for projectors: on another all of them would be lost in it."""
        rule = self.contribution(law, None)
        return not isinstance(rule, ProjectorContribution) or rule.scale > 0

    def point_of(self, law: WrappedMechanism, noisy: np.ndarray) -> Array:
        """The point of the domain nearest to a noisy mean of coordinates less the offset: post-processing.

        In a ball it is then shrunk towards the centre, like a tangent mean. What has no nearest point, or none that
        floating point can hold, becomes the public centre: noise is paid for by now, and the release must not fail.
        """
        with np.errstate(all="ignore"):
            try:
                found = self.coordinates_of(law, noisy)
                point = self.manifold.unembed(found)
                if bool(self.manifold.belongs(point)):
                    return self.domain.clip(self._settle(law, point, found))
            except np.linalg.LinAlgError:
                pass
        return self.center

    def _settle(self, law: WrappedMechanism, point: Array, found: np.ndarray) -> Array:
        """The best guess from a point with the noise that is left along the manifold: see `sums.estimate`.

        Noise of deviation τ in coordinates turns a mean of length R·ρ₀ by τ/R in each direction, over the length that
        coordinates give to a short way.
        """
        if not isinstance(self.domain, Ball) or law.is_coordinatewise:
            return point
        manifold, short = self.manifold, 1e-6 * self.manifold.injectivity_radius
        overlap = float(found @ np.asarray(manifold.embed(point))) / manifold.ambient_radius**2
        deviation = law.deviation * short / manifold.chord(short) / min(max(overlap, 1e-3), 1.0)
        gaussian = isinstance(law, WrappedGaussianMechanism)
        seen = manifold.log_coordinates(self.center, point)
        length = float(np.linalg.norm(seen))
        if not 0 < length < math.inf:
            return point
        wanted = shrink_length(
            length,
            dim=manifold.dim,
            radius=self.domain.radius,
            sigma=deviation / (1.0 if gaussian else math.sqrt(manifold.dim + 1)),
            gaussian=gaussian,
        )
        return manifold.move(self.center, seen * (wanted / length))

    def _best_guess(self, law: WrappedMechanism, noisy: np.ndarray) -> np.ndarray:
        return self.coordinates_of(law, noisy if law.is_coordinatewise else law.shrink(noisy))

    def coordinates_of(self, law: WrappedMechanism, noisy: np.ndarray) -> np.ndarray:
        """`Manifold.embed`'s coordinates for what integers and noise say."""
        found = self._decode(law, noisy)
        return found if self.offset is None else found + self.offset

    def _decode(self, law: WrappedMechanism, coordinates: np.ndarray) -> np.ndarray:
        if not self.projectors:
            return coordinates
        rule = self.contribution(law, None)
        assert isinstance(rule, ProjectorContribution)
        return decode_projector(self.manifold, rule.stretch * coordinates)

    def expected_error(self, law: WrappedMechanism, noisy: np.ndarray | None = None) -> ExpectedError:
        """How far noise leads from the nearest point, from draws with a fixed seed around a mean of coordinates.

        Around that of records which all lie at the centre, before anything is known. Where records spread, their mean
        is shorter than each of them, and the same noise turns it farther: with a `noisy` mean that was released, the
        draws are made around the best guess from it, which is post-processing.
        """
        size, manifold = self.manifold.ambient_dim, self.manifold
        middle = np.asarray(manifold.embed(self.center)) if noisy is None else self._best_guess(law, noisy)
        count = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _SIMULATED // (size * size)))
        integers = law.dim if law.facts.shape is None else law.facts.shape.dim
        noise = self._decode(law, law.sigma * _unit_noise(law, count, as_generator(0))[:, :integers])
        with np.errstate(all="ignore"):
            distances = np.asarray(manifold.dist(manifold.unembed(middle), manifold.unembed(middle + noise)))
        return simulated_error(distances)


def _unit_noise(law: WrappedMechanism, count: int, rng: np.random.Generator) -> np.ndarray:
    if law.is_coordinatewise:
        return rng.laplace(size=(count, law.dim))
    normal = rng.standard_normal((count, law.dim))
    if isinstance(law, WrappedGaussianMechanism):
        return normal
    lengths = rng.gamma(law.dim, size=(count, 1))
    return np.asarray(lengths * normal / np.linalg.norm(normal, axis=1, keepdims=True))


def body_of(domain: Any, adjacency: str = "replace-one") -> AmbientBody:
    """The body of a ball, or of a whole manifold, that moves a sum least for these neighbours.

    An error for other domains, and for manifolds without an embedding.
    """
    if not isinstance(domain, (Ball, WholeSpace)):
        raise ArgumentError(
            "must be a Ball, or a WholeSpace where records may lie anywhere, for an extrinsic mean; got "
            f"{type(domain).__name__}.",
            argument="domain",
        )
    manifold = domain.manifold
    if not manifold.ambient_dim:
        raise NotAvailableError(
            f"{manifold!r} has no extrinsic mean: spheres, Grassmann, SpecialOrthogonal and PlanarShapes have one. Use "
            "kind='frechet'."
        )
    center = host(manifold.as_points(domain.center, "center"))
    if manifold.batch_shape(center) != () or not bool(manifold.belongs(center)):
        raise NotOnManifoldError(f"must be one point of {manifold!r}.", argument="center")
    whole = manifold.ambient_radius
    chord = manifold.chord(domain.radius)
    share = chord * chord / (2 * whole * whole)
    radius = whole if share >= 1 else chord * math.sqrt(1 - share / 2)
    narrow = chord_of_projectors(manifold) * whole if manifold.projector_shape[0] else math.inf
    if adjacency == "replace-one" and narrow < 2 * radius:
        return AmbientBody(domain, center, None, whole, projectors=True)
    offset = None if share >= 1 else (1 - share) * np.asarray(manifold.embed(center))
    return AmbientBody(domain, center, offset, radius)
