"""What every domain is: a public promise, and a rule that moves a record onto it, alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.domains.axes import Axes
from dpmanifolds.manifolds import Manifold


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

    body: Axes | None = None
    """What it looks like in tangent coordinates at the centre, in units of the radius; None for a ball."""

    @property
    def has_unique_mean(self) -> bool:
        """Whether records of the domain have one Fréchet mean, inside of it, whatever they are."""
        return self.radius < self.manifold.max_radius

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest distance between two points of the domain (or an upper bound of it)."""

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

    def __repr__(self) -> str:
        return f"all of {self.manifold!r}"

    @property
    def diameter(self) -> float:
        return math.inf

    def clip(self, points: Array) -> Array:
        """Points as they are."""
        return points

    def contains(self, points: Array) -> Array:
        return np.ones(self.manifold.batch_shape(points), dtype=bool)
