"""What a private geodesic regression lets out: a base point, velocities, and how far off they may be.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> years = np.random.default_rng(0).uniform(20, 80, 2000)
>>> points = np.stack([0.02 * (years - 50), 0.1 * np.sin(years)], axis=1)
>>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=1.0)
>>> fit = dpm.private_geodesic_regression(points, years, ball, dpm.GaussianDP(1.0), covariate_bounds=(20, 80), rng=0)
>>> abs(fit.predict([80.0]).round(1)).tolist(), fit.slope_region().contains([[0.02, 0.0]]).tolist()
([[0.6, 0.0]], [True])
>>> dpm.GeodesicRegression.from_json(fit.to_json()) == fit
True
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats

from dpmanifolds._arrays import Array
from dpmanifolds._validate import choice, number_between, numeric_array
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases.regression_fit import hidden_share
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.written import (
    WrittenAnswer,
    domain_from_json,
    domain_to_json,
    point_from_json,
    point_to_json,
    read_json,
)

_SCHEMA = 1
_NODES = (np.arange(200) + 0.5) / 200
_TESTED_RECORDS, _TESTED_NOISE = 100, 0.1


@dataclass(frozen=True, eq=False)
class SlopeRegion:
    """For each covariate all velocities within a radius of the estimated one, in tangent coordinates at the base.

    >>> import numpy as np
    >>> region = SlopeRegion(np.zeros((1, 2)), np.array([0.5]), 0.95)
    >>> region.contains(np.array([[0.3, 0.3]])).tolist(), region.excludes_zero.tolist()
    ([True], [False])
    """

    slopes: np.ndarray
    """(covariates, dim): coordinates at the base, for one unit of each covariate, before they were shrunk."""
    radii: np.ndarray
    """Of the ball for each covariate."""
    level: float
    """The probability that the ball of one covariate holds its slope."""

    def contains(self, slopes: Any) -> np.ndarray:
        """Whether each of these slopes (covariates, dim) lies in its ball."""
        gaps = np.linalg.norm(np.asarray(numeric_array("slopes", slopes)) - self.slopes, axis=-1)
        return np.asarray(gaps <= self.radii)

    @property
    def excludes_zero(self) -> np.ndarray:
        """For each covariate, whether zero, a slope of no change, lies outside of its ball."""
        return np.asarray(np.linalg.norm(self.slopes, axis=-1) > self.radii)


@dataclass(frozen=True, eq=False, kw_only=True)
class GeodesicRegression(WrittenAnswer):
    """y ≈ exp_base(Σ (x_j − reference_j)·velocity_j): a private fit, and everything that is promised about it.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> age, ball = np.linspace(20, 80, 400), dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> X = dpm.SPD(2).random_point(400, rng=0)
    >>> fit = dpm.private_geodesic_regression(X, age, ball, dpm.PureDP(1.0), covariate_bounds=(20, 80))
    >>> fit.base.shape, fit.velocities.shape, fit.predict([30.0, 60.0]).shape, fit.spent
    ((2, 2), (1, 2, 2), (2, 2, 2), PureDP(epsilon=1.0))
    """

    base: Array
    """Where the fit is in the middle of all bounds."""
    slopes: np.ndarray
    """(covariates, dim): tangent coordinates at the base, for one unit of each covariate."""
    raw_slopes: np.ndarray
    """The same before they were shrunk by what is known of the noise: not biased towards 0."""
    covariate_bounds: np.ndarray
    """(covariates, 2): public."""
    noise_variances: np.ndarray
    """(covariates,): of the noise in each coordinate of a slope, from the law of the noise."""
    sampling_variances: np.ndarray
    """(covariates,): of the sampling error in each coordinate, from the paid residual spread, if residuals spread alike
    in all directions and at all covariates."""
    noise_tail: int | None
    """None for Gaussian noise; else how many numbers the last ℓ2-Laplace noise has."""
    residual_spread: float
    """The root mean square distance of records to the fit, from paid moments."""
    r_squared: float
    """The share of the spread around the mean that the fit takes away, from paid moments; between 0 and 1."""
    releases: tuple[Release, ...]
    """The noisy moments that all this was made of."""
    guarantee: Guarantee
    """What holds for all of it together."""
    budget: Budget
    domain: Domain
    n: int

    @property
    def manifold(self) -> Manifold:
        return self.domain.manifold

    @property
    def spent(self) -> Budget:
        """The guarantee in the words of the budget."""
        return self.budget

    @property
    def reproducible(self) -> bool:
        """Made with a seed: not for real records."""
        return any(release.reproducible for release in self.releases)

    @property
    def reference(self) -> np.ndarray:
        """The covariates of the base: the middle of their bounds."""
        return np.asarray(self.covariate_bounds.mean(axis=1))

    @property
    def velocities(self) -> Array:
        """The tangent vector at the base for one unit of each covariate."""
        return self.manifold.from_coordinates(self.base, self.slopes)

    def predict(self, covariates: Any) -> Array:
        """The points of the fit at covariates (m,) or (m, covariates); free of charge.

        Beyond the bounds the geodesic goes on, and nothing is known of how well it fits there.
        """
        table = _covariate_rows(covariates, len(self.slopes))
        ahead = (table - self.reference) @ self.slopes
        return self.manifold.exp_coordinates(self.base, ahead)

    def slope_region(self, level: float = 0.95, *, scatter: str = "any") -> SlopeRegion:
        """Where the slope of each covariate lies in the population, with at least this probability for each.

        Of the geodesic that independent records scatter around, alike at all covariates. How far they scatter was paid
        for, but not in which directions: all of it is taken to lie along one of them, where tails are longest. With
        scatter="even", for records known to scatter alike in all directions, the region is up to 1.5 times smaller.
        The law of the noise is known to first order, which asks for 100 records, and 100/μ (docs/regression.md).
        """
        level = number_between("level", level, 0.01, 0.9999)
        even = choice("scatter", scatter, ("any", "even")) == "even"
        pairs = zip(self.noise_variances.tolist(), self.sampling_variances.tolist(), strict=True)
        radii = np.array([self._radius(noise, sampling, level, even) for noise, sampling in pairs])
        return SlopeRegion(self.raw_slopes, radii, level)

    def _radius(self, noise: float, sampling: float, level: float, even: bool) -> float:
        """Of the sum of both errors; its square is taken for the multiple of χ² with its mean and variance.

        ℓ2-Laplace noise of D numbers is a Gaussian whose variance is a χ² of D + 1 degrees of freedom.
        """
        dim, tail = self.manifold.dim, self.noise_tail
        nodes = np.ones(1) if tail is None else stats.chi2.ppf(_NODES, tail + 1) / (tail + 1)
        hidden = hidden_share(dim) if len(self.releases) > 1 else 1.0
        along, across = (sampling, sampling) if even else (dim * hidden * sampling, 0.0)
        first, others = noise * nodes + along, noise * nodes + across
        mean, square = first + (dim - 1) * others, first**2 + (dim - 1) * others**2
        degrees, scale = mean * mean / square, square / mean
        most = float(np.max(scale * stats.chi2.ppf(1 - (1 - level) / 2, degrees)))
        missed = lambda edge: float(np.mean(stats.chi2.cdf(edge / scale, degrees))) - level  # noqa: E731
        return math.sqrt(float(optimize.brentq(missed, 0.0, 4 * most + 1e-300)))

    @property
    def assumption(self) -> str:
        """What has to be true of the records, and of n and the noise, for a region of slopes to hold."""
        return (
            "Independent records that scatter alike at all covariates, few of them clipped by the ball. The law of the "
            f"noise is known to first order: from n = {_TESTED_RECORDS} on, where its deviation, on a slope times half "
            f"the bounds, is at most {_TESTED_NOISE:g} of the radius (docs/regression.md). {self.caution}".rstrip()
        )

    @property
    def caution(self) -> str:
        """Why regions of slopes are not to be relied on: too few records or too much noise; else nothing."""
        half = np.diff(self.covariate_bounds, axis=1)[:, 0] / 2
        share = float(np.max(np.sqrt(self.noise_variances) * half)) / self.domain.radius
        if self.n >= _TESTED_RECORDS and share <= _TESTED_NOISE:
            return ""
        return f"Here n = {self.n} and the noise is {share:.2g} of the radius: do not rely on the region."

    def __repr__(self) -> str:
        seeded = ", reproducible (not for real records)" if self.reproducible else ""
        return (
            f"GeodesicRegression({len(self.slopes)} covariates on {self.manifold!r}, {self.budget!r}, neighbours "
            f"differ in one {self.guarantee.unit}, n={self.n}{seeded})"
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything, every float bit for bit."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        written = {
            "schema": _SCHEMA,
            "kind": "geodesic regression",
            "base": point_to_json(self.base),
            **arrays,
            **{name: getattr(self, name) for name in ("noise_tail", "residual_spread", "r_squared", "n")},
            "releases": [json.loads(release.to_json()) for release in self.releases],
            "guarantee": json.loads(self.guarantee.to_json()),
            "budget": self.budget.to_dict(),
            "domain": domain_to_json(self.domain),
        }
        return json.dumps(written, ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> GeodesicRegression:
        """What `to_json` wrote; anything else is refused."""
        with read_json(cls, text, _SCHEMA) as data:
            choice("kind", data["kind"], ("geodesic regression",))
            return cls(
                base=point_from_json(data["base"]),
                **{name: np.asarray(data[name], dtype=np.float64) for name in _ARRAYS},
                noise_tail=None if data["noise_tail"] is None else int(data["noise_tail"]),
                residual_spread=float(data["residual_spread"]),
                r_squared=float(data["r_squared"]),
                n=int(data["n"]),
                releases=tuple(Release.from_json(json.dumps(each)) for each in data["releases"]),
                guarantee=Guarantee.from_json(json.dumps(data["guarantee"])),
                budget=Budget.from_dict(data["budget"]),
                domain=domain_from_json(data["domain"]),
            )


_ARRAYS = ("slopes", "raw_slopes", "covariate_bounds", "noise_variances", "sampling_variances")


def _covariate_rows(covariates: Any, count: int) -> np.ndarray:
    """Public covariates as a table, or an error."""
    table = np.asarray(numeric_array("covariates", covariates), dtype=np.float64)
    table = table[:, None] if table.ndim == 1 and count == 1 else table
    if table.ndim != 2 or table.shape[1] != count or not np.all(np.isfinite(table)):
        raise ArgumentError(f"must be finite numbers, not NaN or inf, of shape (m, {count}).", argument="covariates")
    return table
