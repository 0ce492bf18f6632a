"""How far the answer without privacy, or the population's, may be from a release: post-processing, free of charge.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.5)
>>> release = dpm.private_mean(dpm.SPD(2).random_point(400, rng=0), ball, dpm.PureDP(1.0), rng=0)
>>> region = dpm.confidence_region(release, level=0.9)
>>> bool(region.contains(release.value)), round(region.radius, 4)
(True, 0.0399)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._points import host
from dpmanifolds._validate import numeric_array, positive_number
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.releases.population import mean_part, region_law
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.spread import assumption_of, estimate_mean, read_spread
from dpmanifolds.sums import Facts, SumShape, error_metric, error_quantile


@dataclass(frozen=True, eq=False)
class ConfidenceRegion:
    """All points within `radius` of a release's noisy coordinates: holds what it is `about` with chance `level`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.5)
    >>> release = dpm.private_mean(dpm.SPD(2).random_point(400, rng=0), ball, dpm.PureDP(1.0))
    >>> region = dpm.confidence_region(release, level=0.95)
    >>> region.level, region.metric, region.about
    (0.95, 'coordinates', 'the point that the last step reaches without noise')
    """

    release: Release
    radius: float
    """In tangent coordinates at the domain's centre, or as a geodesic distance: see `metric`. Infinite: all of it."""
    metric: str
    """"coordinates", "distance", or "number" for a released number."""
    level: float
    about: str
    middle: np.ndarray | None = None
    """Of an ellipsoid, in tangent coordinates at the viewpoint; None: a ball around what was released."""
    shape: np.ndarray | None = None
    """The matrix E of the ellipsoid {c : (c − middle)ᵀE⁻¹(c − middle) ≤ 1}; `radius` is its longest semi-axis."""
    assumption: str = ""
    """What has to be true of the records, and how large n has to be, for the region to hold."""

    def contains(self, points: Any) -> np.ndarray:
        """Whether each point (..., *point_shape), or number, lies in the region."""
        if self.metric == "number":
            drawn = self.release.value if self.release.coordinates is None else self.release.coordinates[0]
            return np.asarray(np.abs(numeric_array("points", points) - drawn) <= self.radius)
        manifold = self.release.manifold
        given = host(manifold.as_points(points))
        if self.metric == "distance":
            return np.asarray(manifold.dist(self.release.value, given) <= self.radius)
        center = self.release.viewpoint
        if self.shape is not None:
            gaps = manifold.log_coordinates(center, given) - self.middle
            return np.asarray(np.sum(gaps * np.linalg.solve(self.shape, gaps[..., None])[..., 0], axis=-1) <= 1)
        drawn = self.release.coordinates
        if drawn is None:
            drawn = manifold.log_coordinates(center, self.release.value)
        gap = manifold.log_coordinates(center, given) - drawn
        return np.asarray(np.linalg.norm(gap, axis=-1) <= self.radius)

    def __str__(self) -> str:
        where = f"within {self.radius:.4g} ({self.metric}) of the release"
        if self.shape is not None:
            axes = np.sqrt(np.linalg.eigvalsh(self.shape))
            where = f"an ellipsoid of semi-axes {axes[0]:.4g} to {axes[-1]:.4g} around the release"
        return f"{self.level:.0%} region for {self.about}: {where}"


def confidence_region(release: Release, level: float = 0.9) -> ConfidenceRegion:
    """Where the statistic of the clipped records lies without privacy, with probability at least `level`.

    From the law of the noise alone, which is public. Wrapped mechanisms: the noise has a known norm in coordinates at
    the centre, which the release keeps. Intrinsic ones: the same with distances, where a radius beyond π/(2√κ) says
    nothing and becomes infinite.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.5)
    >>> release = dpm.private_mean(dpm.SPD(2).random_point(400, rng=0), ball, dpm.PureDP(1.0))
    >>> region = dpm.confidence_region(release, level=0.9)
    >>> bool(region.contains(release.value)), round(region.radius, 4)
    (True, 0.0399)
    """
    level = _checked_level(level)
    _needs_one_draw(release)
    if isinstance(release.value, float):
        radius = _noise_radius(release, Ball(Euclidean(1), np.zeros(1), 1.0), level)
        return ConfidenceRegion(release, radius, "number", level, _about(release))
    metric = error_metric(release.mechanism)
    radius = _noise_radius(release, release.domain, level)
    upper = release.manifold.curvature_bounds[1]
    if metric == "distance" and upper > 0 and radius >= math.pi / (2 * math.sqrt(upper)):
        radius = math.inf
    return ConfidenceRegion(release, radius, metric, level, _about(release))


def population_region(release: Release, spread: float | None = None, level: float = 0.9) -> ConfidenceRegion:
    """Where the population's Fréchet mean m lies, if the records are independent draws of one law in the domain.

    Of a `private_mean_and_spread` without a stated model, by the delta method (docs/proofs/regions.md): an ellipsoid
    {c : (c − H⁻¹m̂)ᵀW(c − H⁻¹m̂) ≤ t} in tangent coordinates, from the released covariance, the curvature, the known law
    of the noise on both, and n. It holds asymptotically; `assumption` says what has to be true. Where the trace alone
    was released, the region is a ball that holds whatever the directions are in which records spread.

    Of a `private_mean` with a public `spread`: the stated model E ρ(m, X)² ≤ spread², and a bound that holds for every
    n. With v_i = log_m(x_i), ρ(x̄, m) ≤ ‖(1/n)Σv_i‖/λ where the objective's Hessian is at least λ: 1 where the curvature
    is at most 0, s·cot(s) at s = 2√κr otherwise. The average is bounded by Chebyshev, or by the Bernstein inequality
    for bounded vectors, ‖v_i‖ ≤ 2r (Pinelis and Sakhanenko 1985), whichever is less. Half of the error probability goes
    to the noise, half to the sampling.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=5.0)
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> release = dpm.private_mean(X, ball, dpm.PureDP(1.0), rng=0)
    >>> population_region(release, spread=1.5).radius < 0.2
    True
    >>> both = dpm.private_mean_and_spread(X, ball, dpm.GaussianDP(1.0), rng=0)
    >>> region = population_region(both, level=0.95)
    >>> region.about, 0.05 < region.radius < 0.06
    ('the population mean', True)
    """
    level = _checked_level(level)
    if isinstance(release, Release) and release.spread is not None:
        if spread is not None:
            raise ArgumentError("spread= is for a private_mean; this release holds a spread of its own. Leave it out.")
        return _delta_region(release, level)
    if spread is None:
        raise NotAvailableError(
            "no spread is known: pass private_mean_and_spread(points, domain, budget), or a public spread=."
        )
    spread = positive_number("spread", spread)
    _needs_one_draw(release)
    if release.public is not None:
        raise NotAvailableError(
            "with a public sample records are clipped to what the noise lets through, not to where they live: no "
            "region for the population is known. What to expect is in release.public."
        )
    if release.statistic not in ("mean", "class mean") or release.n is None:
        raise NotAvailableError(f"a region for the population is known for means only; this is a {release.statistic}.")
    domain, miss = release.domain, (1 - level) / 2
    noise = confidence_region(release, 1 - miss)
    upper = release.manifold.curvature_bounds[1]
    angle = math.sqrt(max(upper, 0.0)) * domain.radius
    if 2 * angle >= math.pi / 2 or not domain.has_unique_mean:
        raise NotAvailableError(
            f"the objective need not be convex on a ball of radius {domain.radius:.4g} here: no region is known. "
            "Promise a smaller ball."
        )
    convexity = 2 * angle / math.tan(2 * angle) if angle > 1e-8 else 1.0
    stretch = angle / math.sin(angle) if angle > 1e-8 and noise.metric == "coordinates" else 1.0
    sampling = _average_at_most(release.n, spread, domain.diameter, miss) / convexity
    about = f"the population mean, for independent records with a spread of at most {spread:.4g}"
    assumption = (
        "The records are independent draws of one law in the domain, whose spread around its mean is at most "
        f"{spread:.4g}. For every n."
    )
    return ConfidenceRegion(
        release, noise.radius + sampling * stretch, noise.metric, level, about, assumption=assumption
    )


def _delta_region(release: Release, level: float) -> ConfidenceRegion:
    """The ellipsoid of a mean and spread."""
    assert release.spread is not None
    assert release.n is not None
    middle, inverse = estimate_mean(release)
    _, noisy = read_spread(release)
    law = region_law([mean_part(noisy, n=release.n, noise=release.spread, derivative=inverse)])
    shape = law.threshold(level) * np.linalg.inv(law.weight)
    radius = math.sqrt(float(np.linalg.eigvalsh(shape)[-1]))
    return ConfidenceRegion(
        release,
        radius,
        "coordinates",
        level,
        "the population mean",
        middle,
        (shape + shape.T) / 2,
        assumption_of(release),
    )


def _average_at_most(n: int, spread: float, largest: float, miss: float) -> float:
    """What the norm of an average of n independent centred vectors exceeds with probability at most `miss`."""
    chebyshev = spread / math.sqrt(n * miss)
    weight = math.log(2 / miss)
    slack = largest * weight / 3
    bernstein = (slack + math.sqrt(slack * slack + 2 * n * spread * spread * weight)) / n
    return min(chebyshev, bernstein, largest)


def _noise_radius(release: Release, domain: Any, level: float) -> float:
    facts = Facts(domain, release.sensitivity, release.sensitivity, shape=_shape(release, domain))
    radius = error_quantile(release.mechanism, release.numerics, facts, release.sigma, release.guarantee, level)
    # the statistic, and its noise, were rounded to the lattice
    return radius + math.sqrt(domain.manifold.dim) * (release.step or 0.0)


def _shape(release: Release, domain: Any) -> SumShape | None:
    """Of the sum, where the noise has the shape of an ellipsoid."""
    if domain.body is None or release.sensitivity.theorem != "B1":
        return None
    return SumShape(domain.body.count, domain.radius, release.n or 1, release.sensitivity.adjacency, axes=domain.body)


def _about(release: Release) -> str:
    """What the noise was added to: where the metric is curved, a tangent mean at a public point."""
    by_sums = release.sensitivity.theorem == "B1" and not isinstance(release.value, float)
    if by_sums and not release.manifold.is_flat:
        return "the point that the last step reaches without noise"
    return f"the {release.statistic} of the clipped records without privacy"


def _needs_one_draw(release: Any) -> None:
    if not isinstance(release, Release):
        raise ArgumentError(f"release must be a Release; got {type(release).__name__}.")
    if release.spread is not None:
        raise NotAvailableError("of a mean and spread the region of the population is known: population_region.")
    if release.expected_error is None or release.statistic in ("counts", "squares", "extrinsic mean"):
        raise NotAvailableError(f"no region is known for this kind of release: {release.statistic}.")
    drawn = 1 if release.coordinates is None else release.coordinates.size
    if drawn not in (1, release.manifold.dim):
        raise NotAvailableError(f"of a {release.statistic} more was drawn than a point: no region is known for it.")
    if release.guarantee.adjacency != "replace-one":
        raise NotAvailableError("no region is known where the number of records is private: it is noisy, too.")


def _checked_level(level: Any) -> float:
    number = positive_number("level", level)
    if number >= 1:
        raise ArgumentError(f"level must be below 1, such as 0.9; got {number:g}.")
    return number
