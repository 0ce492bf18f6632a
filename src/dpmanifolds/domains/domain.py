"""What every domain is: a public promise, and a rule that moves a record onto it, alone; and how one is checked."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import leaves, map_parts, on_host
from dpmanifolds._validate import hide_records, shown
from dpmanifolds.domains.axes import Axes
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, RadiusTooLargeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold


class Domain(ABC):
    """The public promise about where records live.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.domains import Domain
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=1.0)
    >>> isinstance(ball, Domain), ball.clip(np.array([3.0, 4.0])).round(6).tolist()
    (True, [0.6, 0.8])
    """

    manifold: Manifold
    center: Array
    radius: float
    """No point of the domain is farther than this from `center`."""

    largest_condition: float = math.inf
    """The largest condition number of a matrix of the domain, where one is known beyond what the radius implies."""

    kind: ClassVar[str] = ""
    """What it is called where it is written down; empty: it is not."""

    written: ClassVar[tuple[str, ...]] = ()
    """The arguments that make it again."""

    body: Axes | None = None
    """What it looks like in tangent coordinates at the centre, in units of the radius; None for a ball."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that tells this domain from another, in hexadecimal: public, as the domain is."""
        digest = hashlib.sha256(f"{type(self).__name__} {self.manifold!r}".encode())
        shape = () if self.body is None else vars(self.body).values()
        for part in (self.center, self.radius, *shape):
            for leaf in () if part is None else leaves(on_host(part)):
                array = np.ascontiguousarray(leaf)
                digest.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
        return digest.hexdigest()

    @property
    def has_unique_mean(self) -> bool:
        """Whether records of the domain have one Fréchet mean, inside of it, whatever they are."""
        return self.radius < self.manifold.max_radius

    @property
    def diameter(self) -> float:
        """Largest distance between two points of the domain (or an upper bound of it)."""
        return 2 * self.radius

    @abstractmethod
    def clip(self, points: Array) -> Array:
        """Each record moved onto the domain, alone and by a fixed rule; records inside stay bit for bit."""

    @abstractmethod
    def contains(self, points: Array) -> Array:
        """Whether each point lies in the domain, up to rounding."""


@dataclass(frozen=True, eq=False)
class WholeSpace(Domain):
    """All of a manifold: no promise at all, and a public point of it. A descent may go anywhere; no sum is bounded.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.domains import WholeSpace
    >>> WholeSpace(Sphere(2), [0.0, 0.0, 1.0])
    all of Sphere(2, 1.0)
    """

    manifold: Manifold
    center: Array
    radius = math.inf
    kind: ClassVar[str] = "all"
    written: ClassVar[tuple[str, ...]] = ("center", "manifold")

    def __repr__(self) -> str:
        return f"all of {self.manifold!r}"

    def clip(self, points: Array) -> Array:
        """Points as they are."""
        return points

    def contains(self, points: Array) -> Array:
        return np.ones(self.manifold.batch_shape(points), dtype=bool)


_MOST_STEPS = 500
_SHORTEST_STEP = 1e-12


def check_domain(domain: Any) -> Domain:
    """A domain, or an error that says what one is."""
    if not isinstance(domain, Domain):
        raise ArgumentError(
            "must be a Domain such as Ball(manifold, center, radius), the public promise about where records live; got "
            f"{shown(domain)}.",
            argument="domain",
        )
    return domain


def check_center(manifold: Manifold, center: Any) -> Array:
    """One point of a manifold that has balls, or an error that says what is wrong."""
    check_manifold(manifold)
    point = manifold.as_points(center, "center")
    if manifold.batch_shape(point) != ():
        raise ArgumentError(
            f"must be one point of {manifold!r}; got leading axes {manifold.batch_shape(point)}.", argument="center"
        )
    if not bool(manifold.belongs(point)):
        raise NotOnManifoldError(f"center does not lie on {manifold!r}; use manifold.project to put it there.")
    _refuse_optimisation_only(manifold)
    return point


def check_sample(manifold: Manifold, sample: Any, *, at_least: int = 1, argument: str = "sample") -> Array:
    """Points (m, *point_shape) of a manifold that has balls, m ≥ `at_least`, or an error that says what is wrong."""
    check_manifold(manifold)
    _refuse_optimisation_only(manifold)
    points = manifold.as_points(sample, argument)
    shape = manifold.batch_shape(points)
    if len(shape) != 1 or shape[0] < at_least:
        needed = "one point" if at_least == 1 else f"{at_least} points"
        raise ArgumentError(f"must have one leading axis, of at least {needed}; got {shape}.", argument=argument)
    rule = manifold.first_broken_rule(points)
    if rule is not None:
        raise NotOnManifoldError(f"must lie on {manifold!r}: {rule}.", argument=argument)
    return points


def check_reach(manifold: Manifold, radius: float, argument: str) -> float:
    """How far a domain reaches from its centre, or an error where exp comes round again."""
    limit = manifold.injectivity_radius
    if radius >= limit:
        raise RadiusTooLargeError(
            f"must be below {limit:.6g} on {manifold!r}, where the farthest points from a centre lie; "
            f"got {radius:.6g}. Use a smaller domain (records outside are clipped to it) or another manifold.",
            argument=argument,
        )
    return radius


def _refuse_optimisation_only(manifold: Manifold) -> None:
    if manifold.max_radius == 0:
        raise RadiusTooLargeError(f"{manifold!r} is for optimisation only: no ball of it has a proven mean.")


@hide_records()
def mean_of_sample(manifold: Manifold, points: Array) -> Array:
    """The Fréchet mean by steps along the mean logarithm, halved where they do not bring the points closer."""
    center, step = map_parts(lambda part: part[0, ...], points), 1.0
    with np.errstate(all="ignore"):
        logs = to_numpy(manifold.log_coordinates(center, points))
        for _ in range(_MOST_STEPS):
            pull = np.mean(logs, axis=0)
            following = manifold.exp_coordinates(center, step * pull)
            there = to_numpy(manifold.log_coordinates(following, points))
            if np.sum(there * there) < np.sum(logs * logs):
                center, logs, step = following, there, min(1.0, 2 * step)
            else:
                step /= 2
            if step * np.linalg.norm(pull) <= _SHORTEST_STEP * (1 + np.max(np.abs(logs))):
                break
    return center
