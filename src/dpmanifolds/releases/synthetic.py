"""Records drawn from a private answer: post-processing of a mean and a spread, and marked as synthetic.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
>>> release = dpm.private_mean_and_spread(dpm.SPD(2).random_point(900, rng=0), ball, dpm.GaussianDP(1.0), rng=0)
>>> made = synthesize(release, 5, rng=0)
>>> made.points.shape, made.is_synthetic
((5, 2, 2), True)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds._validate import positive_integer
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.releases.covariance import released_mean
from dpmanifolds.releases.population import fit_covariance
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.spread import read_spread
from dpmanifolds.sums.walk import generator_of


@dataclass(frozen=True, eq=False)
class SyntheticRecords:
    """Points that were drawn, not observed, and the release that they were drawn from.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], radius=4.0)
    >>> X = np.random.default_rng(0).standard_normal((500, 1))
    >>> dpm.synthesize(dpm.private_mean_and_spread(X, ball, dpm.GaussianDP(1.0), rng=0), 3, rng=0)
    SyntheticRecords(3 points of Euclidean(1), drawn from a private mean and spread: no record is among them)
    """

    points: Array
    """(size, *point_shape), in the public domain of the release."""
    release: Release
    """Its guarantee covers them: drawing them costs nothing."""

    is_synthetic = True

    def __repr__(self) -> str:
        count = self.release.manifold.batch_shape(self.points)[0]
        return (
            f"SyntheticRecords({count} points of {self.release.manifold!r}, drawn from a private "
            f"{self.release.statistic}: no record is among them)"
        )


def synthesize(release: Release, size: int, rng: Any = None) -> SyntheticRecords:
    """`size` points of a wrapped Gaussian at a released mean, with the released spread, clipped to the public domain.

    x = exp_m(v), v ~ N(0, Σ): Σ is what noise left of the covariance that was released, or the same variance in all
    directions where only their sum was. Of `private_mean_and_spread`, `private_covariance` and `private_variance`; any
    number of points, free of charge: it is post-processing. Means and spreads of such points are those of the release,
    with its noise; whatever else is true of the records (several groups, long tails, corners) is not in them, and no
    study should treat them as observations: `n` of them hold no more than the release does.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X = np.random.default_rng(0).standard_normal((2000, 2)) * [3.0, 1.0]
    >>> made = dpm.synthesize(dpm.private_covariance(X, 20.0, dpm.GaussianDP(1.0), rng=0), 10_000, rng=0)
    >>> np.round(np.std(made.points, axis=0)).tolist(), made.is_synthetic
    ([3.0, 1.0], True)
    """
    if not isinstance(release, Release):
        raise ArgumentError(f"release must be a Release; got {type(release).__name__}.")
    count = positive_integer("size", size)
    base, center, covariance = _law_of(release)
    manifold, source = release.manifold, generator_of(rng)
    values, frame = np.linalg.eigh(covariance)
    drawn = source.standard_normal((count, manifold.dim)) * np.sqrt(np.maximum(values, 0.0)) @ frame.T
    # within the ball a point can always be reached
    most = 2 * release.domain.radius
    drawn = drawn * np.minimum(1.0, most / np.maximum(np.linalg.norm(drawn, axis=1), 1e-300))[:, None]
    vectors = manifold.transport(base, center, manifold.from_coordinates(base, drawn))
    points = manifold.project(manifold.exp(center, vectors))
    return SyntheticRecords(release.domain.clip(points), release)


def _law_of(release: Release) -> tuple[Array, Array, np.ndarray]:
    """Where coordinates are, the mean, and the covariance in them."""
    manifold: Manifold = release.manifold
    if release.spread is not None:
        _, noisy = read_spread(release)
        if release.spread.kind == "covariance":
            return release.viewpoint, host(release.value), fit_covariance(noisy, release.spread.moment)[0]
        return release.viewpoint, host(release.value), _even(manifold, float(noisy[0, 0]))
    if release.statistic == "covariance" and isinstance(release.domain, Ball):
        mean = released_mean(release)
        return mean, mean, np.asarray(release.value)
    if release.statistic == "variance":
        mean = host(release.stages[-1].value)
        return mean, mean, _even(manifold, float(release.value))
    raise NotAvailableError(
        f"a private {release.statistic} says where records lie, but not how far they spread, and nothing can be drawn "
        "from it. Release both: private_mean_and_spread(points, domain, budget), or private_covariance of vectors."
    )


def _even(manifold: Manifold, variance: float) -> np.ndarray:
    return np.asarray(max(variance, 0.0) / manifold.dim * np.eye(manifold.dim))
