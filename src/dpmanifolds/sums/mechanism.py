"""What every mechanism is: public facts, a σ calibrated to a budget, a promise, an expected error, one draw."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._validate import choice, positive_integer, positive_number, shown
from dpmanifolds._words import tell_percent
from dpmanifolds.domains import Domain
from dpmanifolds.domains.axes import Axes
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.statistics.solver_error import coordinate_rounding
from dpmanifolds.sums.rounding import finest_exponent

FAMILIES: dict[str, type[Mechanism]] = {}
"""Every mechanism by its name: each registers itself."""


@dataclass(frozen=True)
class Facts:
    """The public facts about a statistic that a mechanism is calibrated to. Nothing here is read off the records.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball
    >>> from dpmanifolds.sums import mean_facts
    >>> facts = mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500)
    >>> round(float(facts.at_center), 6), facts.labels
    (0.004, {'adjacency': 'replace-one', 'unit': 'record'})
    """

    domain: Domain
    """Where the statistic lives."""
    at_center: Sensitivity
    """How far it moves, in the tangent space at the public point that is looked from."""
    in_distance: Sensitivity | None = None
    """How far it moves, as a distance on the manifold, for laws around the statistic itself."""
    of_gradient: Sensitivity | None = None
    """How far the gradient field moves whose zero the statistic is, for the K-norm gradient."""
    adjacency: str = "replace-one"
    unit: str = "record"
    shape: SumShape | None = None
    """Of the sum of integers that the statistic is a quotient of; None where it is no such sum."""
    precision: str | None = field(default=None, compare=False, repr=False)
    """Of the Fréchet mean that the statistic stands for, should it be asked for; None where it stands for none."""

    def __post_init__(self) -> None:
        parts = (self.at_center, self.in_distance, self.of_gradient, self.shape)
        if any(part is not None and part.adjacency != self.adjacency for part in parts):
            raise ArgumentError(f"all facts must hold for the same neighbours; got {self.adjacency!r} and others.")

    @property
    def labels(self) -> dict[str, str]:
        """Adjacency and unit, as a guarantee takes them."""
        return {"adjacency": self.adjacency, "unit": self.unit}


@dataclass(frozen=True)
class SumShape:
    """The body that one record's integers lie in, and what the sum is divided by: all of it public.

    With R = 2^exponent the integers are those of a ball of radius R in R^dim, one more is c₀ for every record where the
    number of records is paid for. How far one record moves the sum (docs/proofs/sums.md, theorems 2 and 3):

    - replaced: 2R, or what else the body says (`chord`), the count does not move;
    - added or removed: √(R² + c₀²);
    - replaced, where the sum has a part for each class and the class is the record's own secret: 2R within a class,
      √2·√(R² + c₀²) between two in ℓ2, which c₀ = R keeps at 2R; for noise drawn class by class the lengths of both
      parts add up, 2√(R² + c₀²).

    >>> SumShape(dim=6, radius=1.5, count=1000).diameter(20, gaussian=True) == 2**21
    True
    >>> SumShape(dim=6, radius=1.5, count=1000, adjacency="add-remove-one").diameter(20, gaussian=True)
    1090544
    """

    dim: int
    radius: float
    """Of the ball in coordinates that R stands for."""
    count: int
    """The public number of records, or the public guess of it."""
    adjacency: str = "replace-one"
    labelled: bool = False
    """Whether the sum has a part for each class, and which one a record adds to is secret."""
    chord: float = 2.0
    """The integers of two records are at most chord·R apart."""
    axes: Axes | None = None
    """Of the ellipsoid, in units of the radius, that the ball of whitened coordinates stands for; None for a ball."""

    @property
    def counted(self) -> bool:
        """Whether the number of records is one of the integers."""
        return self.labelled or self.adjacency == "add-remove-one"

    @property
    def integers(self) -> int:
        """How many integers get noise together."""
        return self.dim + self.counted

    @property
    def finest(self) -> int:
        """The finest lattice on which the integers of a record can be checked exactly."""
        return finest_exponent(self.dim)

    def weight(self, exponent: int, *, gaussian: bool) -> int:
        """c₀: R where it is free; else so that, with a mean at a fifth of the radius, the whole error is least."""
        free = gaussian and self.labelled and self.adjacency == "replace-one"
        return 1 << exponent if free else max(1, round((1 << exponent) * (0.04 / self.dim) ** 0.25))

    def diameter(self, exponent: int, *, gaussian: bool) -> int:
        """How far one record moves the sum, in steps, rounded up."""
        radius = 1 << exponent
        squared = radius * radius + (self.weight(exponent, gaussian=gaussian) ** 2 if self.counted else 0)
        if self.adjacency == "add-remove-one":
            return root_up(squared)
        if not self.labelled:
            return math.ceil(Fraction(self.chord) * radius)
        return max(2 * radius, root_up((2 if gaussian else 4) * squared))

    def step(self, exponent: int) -> float:
        """What one step of the sum is worth in coordinates of the mean."""
        return self.radius / self.count * 2.0**-exponent


def root_up(square: int) -> int:
    """The root, rounded up to a whole number."""
    return math.isqrt(square - 1) + 1 if square else 0


def mean_facts(
    domain: Domain,
    n: int,
    dtype: Any = "float64",
    *,
    adjacency: str = "replace-one",
    unit: str = "record",
    labelled: bool = False,
) -> Facts:
    """How far the mean of n records moves in the tangent space of a public point: a sum of integers over n (B1).

    2r/n for neighbours that differ in one record, on every manifold, for every arithmetic. Where records may be added
    or removed, n is a public guess, and the number of records is counted along. `labelled`: one such sum for each
    class, and the class is protected. Mechanisms around the Fréchet mean itself have facts of their own, which are
    worked out when such a mechanism is asked for, as computed in `dtype`.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> facts = mean_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8), n=100)
    >>> round(float(facts.at_center), 8)
    0.00785398
    """
    if not isinstance(domain, Domain):
        raise ArgumentError(
            f"domain must be a Domain such as Ball, the public promise about records; got {shown(domain)}."
        )
    n = positive_integer("n", n)
    choice("adjacency", adjacency, ADJACENCIES)
    if domain.radius == math.inf:
        raise ArgumentError(
            f"must be bounded, such as a Ball; got {domain!r}. Means of records that may lie anywhere are extrinsic "
            "ones: private_mean(..., kind='extrinsic').",
            argument="domain",
        )
    axes = domain.body
    dim = domain.manifold.dim if axes is None else axes.count
    shape = SumShape(dim, domain.radius, n, adjacency, labelled, axes=axes)
    finest = shape.finest
    moved = Sensitivity(
        shape.diameter(finest, gaussian=True) * shape.step(finest) * (1 + 2.0**-49),
        "B1",
        "P",
        "2r/n for a sum of integers" if adjacency == "replace-one" else "√(r² + c₀²)/n for a sum of integers",
        adjacency,
    )
    precision = str(np.dtype(dtype)) if adjacency == "replace-one" and not labelled else None
    return Facts(domain, moved, adjacency=adjacency, unit=unit, shape=shape, precision=precision)


def value_facts(
    domain: Domain, sensitivity: float | Sensitivity, *, adjacency: str = "replace-one", unit: str = "record"
) -> Facts:
    """A user's own statistic with values in the domain, that moves by at most `sensitivity` as a geodesic distance.

    log at the centre is 1-Lipschitz where the curvature is at most 0, and stretches by at most √κr/sin(√κr) on a
    ball of radius r where it is at most κ > 0 (Rauch), in tangent directions of geodesics that stay in the ball, which
    is convex.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> facts = value_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0), 0.1)
    >>> round(float(facts.at_center), 6)
    0.11884
    """
    if not isinstance(domain, Domain):
        raise ArgumentError(
            f"domain must be a Domain such as Ball, the public promise about values; got {shown(domain)}."
        )
    choice("adjacency", adjacency, ADJACENCIES)
    if not isinstance(sensitivity, Sensitivity):
        number, statement = positive_number("sensitivity", sensitivity), "a geodesic distance between neighbours"
        sensitivity = Sensitivity(number, "stated by the user", "stated", statement, adjacency)
    elif sensitivity.adjacency != adjacency:
        raise ArgumentError(
            f"this sensitivity holds for {sensitivity.adjacency!r} neighbours; got adjacency {adjacency!r}. State one "
            "that holds for these, as a number."
        )
    if not domain.has_unique_mean:
        raise NotAvailableError(
            f"how far a value moves at the centre is known for radii below {domain.manifold.max_radius:.6g} on "
            f"{domain.manifold!r}; got {domain.radius:.6g}. Use a smaller ball."
        )
    angle = math.sqrt(max(domain.manifold.curvature_bounds[1], 0.0)) * domain.radius
    stretch = angle / math.sin(angle) if angle > 1e-8 else 1.0
    rounding = 2 * coordinate_rounding(domain)
    at_center = replace(sensitivity, value=(sensitivity.value * stretch + rounding) * (1 + 2.0**-49))
    in_distance = replace(sensitivity, value=sensitivity.value + rounding)
    return Facts(domain, at_center, in_distance, adjacency=adjacency, unit=unit)


@dataclass(frozen=True)
class ExpectedError:
    """How far a draw will be from the statistic, before anything is drawn.

    What is made of the draw, its projection to the domain or the best guess of `sums.estimate`, is hardly ever farther,
    and near the centre much closer.

    `mean` and `radius_90` are for a statistic at the centre. Where curvature is negative, noise of the same size in
    the tangent space at the centre moves points near the edge of the domain farther: `mean_at_edge` is the largest
    over the domain, to first order in the noise.

    >>> import dpmanifolds as dpm
    >>> print(dpm.plan(dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4), 100, dpm.PureDP(1.0)).best().error)
    0.016 on average, within 0.03112 in 90 % of releases
    """

    mean: float
    """Expected geodesic distance."""
    radius_90: float
    """The distance that is kept in 90 % of releases."""
    mean_at_edge: float
    """Expected geodesic distance at the worst point of the domain."""
    simulated: bool = False
    """Whether draws with a fixed seed stand in for an integral that has no one-dimensional form."""
    clipping: float = 0.0
    """What clipping to a radius that was paid for moved the answer by at most, but for one release in twenty: a part of
    `radius_90`. 0 where no radius was paid for, and nothing is known of what clipping to the domain moved."""
    target: float = 0.0
    """How far the extrinsic mean, where it stands in for the Fréchet mean, lies from it at most, for records within
    half the injectivity radius of it: a part of `radius_90`. 0 where it does not stand in."""

    def exceeds(self, domain: Domain) -> bool:
        """Whether the noise is as large as the domain, so that a draw says little more than the public centre."""
        return self.mean >= domain.radius

    def relate(self, domain: Domain, point: Any) -> str:
        """The mean in percent of the radius and, as far as that tells anything, in the units of those who use points.

        >>> import dpmanifolds as dpm
        >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4)
        >>> dpm.plan(ball, 100, dpm.PureDP(1.0)).best().error.relate(ball, ball.center)
        '4 % of the radius of the domain, or 0.917 degrees'
        """
        told = tell_percent(self.mean / domain.radius)
        units = "" if self.exceeds(domain) else domain.manifold.describe_distance(point, self.mean)
        which = "of the radius that was paid for" if self.clipping > 0 else "of the radius of the domain"
        return f"{told} {which}{units and ', or '}{units}"

    def __str__(self) -> str:
        edge = ""
        if self.mean_at_edge > 1.05 * self.mean > 0:
            edge = f"; up to {self.mean_at_edge / self.mean:.2g} times that near the edge of the domain (curvature)"
        paid = f"; of these {self.clipping:.4g} for what a smaller body may have cut off" if self.clipping > 0 else ""
        if self.target > 0:
            paid += f"; of these {self.target:.4g} for the distance between extrinsic and Fréchet mean"
        return f"{self.mean:.4g} on average, within {self.radius_90:.4g} in 90 % of releases{paid}{edge}"


class Draw(NamedTuple):
    """What a mechanism lets out.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, PureDP
    >>> from dpmanifolds.sums import calibrate, mean_facts
    >>> facts = mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500)
    >>> drawn = calibrate("direct-laplace", facts, PureDP(1.0), "rounded").draw(np.eye(2), rng=0)
    >>> drawn.point.shape, drawn.coordinates.shape
    ((2, 2), (3,))
    """

    point: Array
    """In the domain: the best guess of the statistic."""
    coordinates: np.ndarray | None
    """The noisy coordinates at the centre that the point was made of, where noise was added to coordinates."""


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A law of noise calibrated to a budget, for a statistic with these facts.

    >>> from dpmanifolds import Ball, PureDP, Sphere
    >>> from dpmanifolds.sums import calibrate, mean_facts
    >>> facts = mean_facts(Ball(Sphere(2), [0.0, 0.0, 1.0], radius=0.4), n=100)
    >>> mechanism = calibrate("direct-laplace", facts, PureDP(1.0), "rounded")
    >>> mechanism.release(facts.domain.center, rng=0).shape, mechanism.guarantee.fits(PureDP(1.0))
    ((3,), True)
    """

    facts: Facts
    sigma: float
    """σ of the noise."""
    step: float
    """Of the public lattice or grid of tangent coordinates that a draw is shown on, a power of two."""
    guarantee: Guarantee
    numerics: str
    """"rounded", "lattice" or "idealized" (docs/proofs/numerics.md)."""

    name: ClassVar[str]
    theorem: ClassVar[str]
    """Why the promise holds."""
    offered_numerics: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            FAMILIES[cls.name] = cls

    @classmethod
    @abstractmethod
    def calibrate(cls, facts: Facts, budget: Budget, numerics: str) -> Self:
        """The mechanism whose promise is within the budget; `NotAvailableError` where there is none."""

    @classmethod
    def errs_more(cls, facts: Facts, budget: Budget, numerics: str, error: float) -> bool:
        """Whether it is plain without calibrating it that its expected error is above this one."""
        return False

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """The one of the facts that σ was made from."""

    @cached_property
    @abstractmethod
    def expected_error(self) -> ExpectedError:
        """Computed from public facts."""

    @abstractmethod
    def draw(self, statistic: Array, *, records: Array | None = None, rng: Any = None) -> Draw:
        """One draw, and the point of the domain made of it. Each call spends the guarantee once."""

    def release(self, statistic: Array, *, records: Array | None = None, rng: Any = None) -> Array:
        """The noisy statistic as a point of the domain. Each call spends the guarantee once."""
        return self.draw(statistic, records=records, rng=rng).point

    def error_quantile(self, probability: float) -> float:
        """The error that a release keeps with this probability, measured as `error_metric` says."""
        raise NotImplementedError

    error_metric: ClassVar[str] = "coordinates"
    """"coordinates": tangent coordinates at the centre; "distance": geodesic distance."""
    stays_inside: ClassVar[bool] = False
    """Whether the law lives on the domain alone."""

    @abstractmethod
    def draw_many(self, statistic: Array, count: int, *, records: Array | None = None, rng: Any = None) -> Array:
        """Releases (count, …) of one statistic, each of which spends the guarantee: for audits."""

    @abstractmethod
    def log_likelihood(self, released: Array, statistic: Array, *, records: Array | None = None) -> np.ndarray:
        """ln of the density of releases (count, …) of this statistic, up to a constant: for audits.

        Exact where a release was not moved into the domain; any score makes a valid attack.
        """

    def weakened(self, factor: float) -> Self:
        """The same with so much of its noise: it does not keep its guarantee, and shows audits that find it out."""
        return replace(self, sigma=self.sigma * factor)


def simulated_error(distances: np.ndarray) -> ExpectedError:
    """From draws with a fixed seed."""
    mean = float(np.mean(distances))
    return ExpectedError(mean, float(np.quantile(distances, 0.9)), mean, simulated=True)
